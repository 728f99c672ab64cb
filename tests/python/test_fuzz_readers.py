# SPDX-License-Identifier: MIT
"""Mutated files of every dialect are read or refused in a line; `fuzz_readers.py` tries longer."""

from __future__ import annotations

import pytest

pytest.importorskip("hypothesis", reason="needs hypothesis: pip install hypothesis")
import fuzz_readers


@pytest.mark.parametrize("dialect", fuzz_readers.DIALECTS)
def test_a_mutated_file_ends_in_rows_or_in_a_line(dialect):
    content = fuzz_readers.DIALECTS[dialect][0]
    fuzz_readers.attempt(dialect, content)
    fuzz_readers.run(dialect, examples=60)


def test_a_traceback_is_found(monkeypatch):
    def careless(path):
        if b"real_time" not in path.read_bytes():
            raise KeyError("real_time")

    content, name, _ = fuzz_readers.DIALECTS["csv"]
    monkeypatch.setitem(fuzz_readers.DIALECTS, "csv", (content, name, careless))
    with pytest.raises(KeyError):
        fuzz_readers.run("csv", examples=400)
