# SPDX-License-Identifier: MIT
"""Directories: results in them are found, what is foreign is told of and left out."""

from __future__ import annotations

import gzip
import json
import os

import pytest
from inputs import CASES, TEXT, put
from ladder.commands.cli import main
from ladder.io import files
from ladder.io.results import load
from ladder.model.errors import ResultError


def test_what_is_foreign_in_a_directory_stops_nothing(capsys):
    assert main(["table", str(CASES / "mixed_dir")]) == 0
    out, err = capsys.readouterr()
    assert "| `BM_A` | 1.00 us |" in out
    assert err.splitlines() == [
        f"ladder: note: {CASES}/mixed_dir/compile_commands.json: has no results, left out",
        f"ladder: note: {CASES}/mixed_dir/nothing_matched.json: empty, left out",
    ]


def test_a_note_is_told_once_by_a_command(capsys):
    for _ in range(2):
        assert main(["compare", str(CASES / "mixed_dir"), str(CASES / "mixed_dir")]) == 0
        assert capsys.readouterr().err.count("left out") == 2


@pytest.mark.parametrize("name", ["compile_commands.json", "nothing_matched.json"])
def test_what_is_foreign_and_named_is_an_error(name, capsys):
    file = CASES / "mixed_dir" / name
    assert main(["table", str(CASES / "mixed_dir/a.json"), str(file)]) == 3
    assert capsys.readouterr().err.startswith(f"ladder: {file}: ")


def test_a_directory_of_nothing_else_is_an_error(tmp_path, capsys):
    put(tmp_path, "tsconfig.json", "{}")
    put(tmp_path, "pytest.json", '{"machine_info": {}, "benchmarks": [{"name": "a"}]}')
    put(tmp_path, "settings.json", '{"benchmarks": 1} // no JSON, and no results')
    put(tmp_path, "filtered.json", '{"context": {}, "benchmarks": []}')
    assert main(["table", str(tmp_path)]) == 3
    *notes, last = capsys.readouterr().err.splitlines()
    assert len(notes) == 4
    assert last == f"ladder: {tmp_path}: no results below this directory"


def test_a_damaged_file_in_a_directory_is_an_error(tmp_path):
    """It may be the one that holds the regression."""
    put(tmp_path, "a.json", TEXT)
    cut = put(tmp_path, "b.json.gz", gzip.compress(TEXT.encode())[:-5])
    with pytest.raises(ResultError, match="truncated"):
        load(tmp_path)
    cut.write_bytes(TEXT[:-5].encode())
    with pytest.raises(ResultError, match="truncated"):
        load(tmp_path)


def test_packed_files_in_a_directory_are_found(tmp_path):
    put(tmp_path, "a.json.gz", gzip.compress(TEXT.encode()))
    assert [path.name for path, _ in files.find([tmp_path])] == ["a.json.gz"]


NOISE = json.dumps({"context": {}, "rows": {"a": {"floor": 0.1, "spread": 0.2}}}, indent=1)
DETAILS = '{"lines":[\n],"occupancy":[]}'


@pytest.mark.parametrize(
    ("content", "what"), [(NOISE, "--noise"), (DETAILS, "details of emulated results")]
)
def test_what_stands_beside_results_is_told_by_what_it_holds(tmp_path, capsys, content, what):
    beside, good = put(tmp_path, "x.json", content), put(tmp_path, "a.json", TEXT)
    assert main(["table", str(beside)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {beside}: ")
    assert what in err
    assert main(["table", str(good), str(beside)]) == 0
    assert capsys.readouterr().err.startswith(f"ladder: note: {beside}: ")
    assert main(["table", str(tmp_path)]) == 0  # beside results is where it belongs
    assert capsys.readouterr().err == ""


def test_results_may_have_the_name_of_what_stands_beside(tmp_path):
    for name in (files.NOISE, files.DETAILS):
        put(tmp_path, name, TEXT)
    assert len([*files.find([tmp_path])]) == 2


def test_missing_files_and_empty_directories(tmp_path, capsys):
    assert main(["table", str(tmp_path / "no.json")]) == 3
    assert capsys.readouterr().err == f"ladder: {tmp_path / 'no.json'}: No such file or directory\n"
    assert main(["table", str(tmp_path)]) == 3
    assert capsys.readouterr().err == f"ladder: {tmp_path}: no *.json below this directory\n"


def test_a_directory_without_results_beside_others_is_left_out(tmp_path, capsys, whole):
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "tuning.toml").write_text("gpu = 'NVIDIA L4'\n")
    assert main(["matrix", str(tmp_path / "tuned"), str(whole)]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err.startswith(f"ladder: note: {tmp_path / 'tuned'}: no results, left out\n")


def test_a_name_of_a_file_need_not_be_text(tmp_path, capsys):
    path = tmp_path / os.fsdecode(b"b\xff.json")
    path.write_text(TEXT)
    assert main(["table", "--format", "json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["file"].endswith("b\ufffd.json")
