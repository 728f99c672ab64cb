# SPDX-License-Identifier: MIT
"""What tests of inputs share: files as users have them, and what is read or told of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ladder.io import files
from ladder.io.results import load
from ladder.model.errors import ResultError

INPUTS = Path(__file__).parent / "data/inputs"
CASES = Path(__file__).parent / "data/cases"
GOOD = {"context": {}, "benchmarks": [{"name": "a", "real_time": 1.0}]}
TEXT = json.dumps(GOOD, indent=1)


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(path: Path) -> str:
    """Return what is wrong with a file, less its name."""
    with pytest.raises(ResultError) as error:
        files.read(path)
    start = f"{path}: "
    assert str(error.value).startswith(start)
    return str(error.value).removeprefix(start)


def rows_of(path: Path) -> dict[str, dict]:
    return {row["name"]: row for row in load(path).to_dict("records")}
