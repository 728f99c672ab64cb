# SPDX-License-Identifier: MIT
"""Encodings, packed files, text of the program around the JSON, and standard input."""

from __future__ import annotations

import gzip
import io
import sys

import pytest
from inputs import CASES, GOOD, TEXT, put, told
from ladder.commands.cli import main
from ladder.io import files


@pytest.mark.parametrize("name", ["text_before.json", "text_after.json", "utf16_powershell.json"])
def test_a_file_as_users_have_it_is_read(name, capsys):
    assert main(["table", str(CASES / name)]) == 0
    out, err = capsys.readouterr()
    assert "| `BM_A` | 1.00 us |" in out
    assert err == ""


FORMS = {
    "utf-8 with a mark": TEXT.encode("utf-8-sig"),
    "utf-16, big end first": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16 without a mark": TEXT.encode("utf-16-le"),
    "utf-32": TEXT.encode("utf-32"),
    "gzip": gzip.compress(TEXT.encode()),
    "gzip of utf-16": gzip.compress(TEXT.encode("utf-16")),
    "two gzip files, one after the other": gzip.compress(TEXT[:9].encode())
    + gzip.compress(TEXT[9:].encode()),
    "lines end as on Windows": TEXT.replace("\n", "\r\n").encode(),
    "text on the first line": f"working... {TEXT}".encode(),
    "braces in the text": f"options {{x}}\n{{y\n{TEXT}\n}} done".encode(),
    "text between the lines": TEXT.replace(",\n", ",\nloading, 10 %\n").encode(),
    "text before, between and after": f"hi\n{TEXT}\n".replace('"name"', '\nx = 3\n"name"').encode(),
    "another JSON before": f'{{"config": [1, 2]}}\n{TEXT}'.encode(),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS.keys())
def test_forms_of_text_are_read(tmp_path, content):
    document = files.read(put(tmp_path, "a.json", content))
    assert document["context"] == GOOD["context"]
    assert [(row["name"], row["real_time"]) for row in document["benchmarks"]] == [("a", 1.0)]


BROKEN_FORMS = {
    "truncated gzip": (gzip.compress(TEXT.encode())[:-9], "truncated: the gzip file ends too"),
    "damaged gzip": (b"\x1f\x8b\x08\x00garbage that is none", "a damaged gzip file: "),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "half a character": (TEXT.encode("utf-16")[:-1], "not a text file"),
    "text before, cut off": (f"hi\n{TEXT[:-9]}", "truncated or not JSON: "),
    "text between, cut off": (
        f"hi\n{TEXT[:-9]}".replace(",\n", ",\nhm\n"),
        "truncated or not JSON: ",
    ),
    "two of them": (TEXT + "\n" + TEXT, "two results, one after the other: each needs a file"),
    "text within a line": (TEXT.replace('"name"', 'x "name"'), "truncated or not JSON: "),
    "only the word": ('say "benchmarks": [1 and "context": {', "truncated or not JSON: "),
    "a key twice after text": (
        f"hi\n{TEXT}".replace('"name"', '"x": 1, "x": 2, "name"'),
        "duplicate",
    ),
}


@pytest.mark.parametrize(("content", "why"), BROKEN_FORMS.values(), ids=BROKEN_FORMS.keys())
def test_broken_forms_are_told_in_a_line(tmp_path, content, why):
    assert why in told(put(tmp_path, "a.json", content))


def test_an_error_names_the_line_of_the_file(tmp_path):
    cut = "hi\nthere\n" + TEXT[: TEXT.index("real_time")]
    assert told(put(tmp_path, "a.json", cut)).endswith(f"at line {cut.count(chr(10)) + 1}")


def test_stdin_is_read_as_a_file(monkeypatch, capsys):
    for content in (TEXT.encode(), gzip.compress(TEXT.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert main(["table", "-"]) == 0
        assert "| `a` | 1.00 ns |" in capsys.readouterr().out


def test_stdin_serves_a_side_of_a_comparison(ladder, tmp_path):
    file = put(tmp_path, "a.json", TEXT)
    done = ladder("compare", file, "-", input=TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 NOISY" in done.stdout
    empty = ladder("table", "-", input="")
    assert (empty.returncode, empty.stdout) == (3, "")
    assert empty.stderr == "ladder: -: empty (did the benchmark filter match nothing?)\n"
