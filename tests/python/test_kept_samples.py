# SPDX-License-Identifier: MIT
"""Samples beside results: which are kept of a run, and which count."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from fake_program import SMI, TILED, Fake, errors_of, run, run_study
from ladder.commands.cli import main
from ladder.io import samples
from ladder.io.results import load_processes, load_results

ROWS = ("--filter", "^mul/tiled/")


@pytest.fixture
def fake(tmp_path) -> Fake:
    return Fake(tmp_path / "program")


@pytest.fixture
def out(tmp_path) -> Path:
    return tmp_path / "out" / "study.json"


def firsts(out: Path) -> dict[str, list[int]]:
    """The process, counted from 1, that each repetition of a row is from."""
    (results,) = load_results(out)
    found = samples.beside(results)
    return {name: [round(1e9 * r[0]) - 9000 for r in runs] for name, runs in found.items()}


def names(*rows: str) -> list[str]:
    return [row.removesuffix("/manual_time") for row in rows]


def test_samples_are_kept_beside_each_results_file(fake, tmp_path):
    assert run(fake, tmp_path / "out", *ROWS, "--samples", "--processes", "2") == 0
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == ["1.json", "1.samples.jsonl", "2.json", "2.samples.jsonl"]
    assert firsts(tmp_path / "out/2.json") == {name: [2] for name in names(*TILED)}
    assert firsts(tmp_path / "out") == {name: [1, 2] for name in names(*TILED)}  # of one commit


def test_without_the_flag_there_are_none(fake, out):
    assert run(fake, out, *ROWS) == 0
    assert [path.name for path in out.parent.iterdir()] == ["study.json"]
    assert firsts(out) == {}


def test_of_a_row_that_is_measured_again_the_last_samples_count(fake, out):
    fake.plan({TILED[1]: "once"})
    assert run(fake, out, *ROWS, "--samples") == 1
    assert firsts(out) == {names(TILED[0])[0]: [1], names(TILED[2])[0]: [2]}  # none of what failed
    # What is there goes on: else the row would be told by what it was before it failed.
    assert run(fake, out, *ROWS, "--resume", "--retry-failed") == 0
    assert firsts(out) == dict(zip(names(*TILED), ([1], [3], [2]), strict=True))


def test_the_rows_of_a_run_without_samples_have_none_when_it_is_resumed_with_them(fake, out):
    assert run(fake, out, "--filter", TILED[0]) == 0
    assert run(fake, out, *ROWS, "--resume", "--samples") == 0
    assert list(firsts(out)) == names(*TILED[1:])


def test_samples_of_results_that_are_gone_are_not_taken_for_those_of_new_ones(fake, out, capsys):
    assert run(fake, out, *ROWS, "--samples") == 0
    out.unlink()
    assert run(fake, out, *ROWS) == 2
    assert "study.samples.jsonl: exists already" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "study"])
def test_a_program_that_keeps_no_samples_is_told(fake, out, command, on_path, capsys):
    on_path("nvidia-smi", SMI)
    fake.plan(samples=False)
    assert {"run": run, "study": run_study}[command](fake, out, "--samples") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--samples_out" in line
    assert fake.starts == []


@pytest.mark.parametrize("command", ["run", "study"])
def test_where_samples_go_is_not_told_by_hand(fake, out, command, capsys):
    assert {"run": run, "study": run_study}[command](fake, out, "--", "--samples_out=x") == 2
    assert "--samples" in capsys.readouterr().err


def test_samples_of_a_study_come_and_go_with_its_results(fake, tmp_path, monkeypatch, on_path):
    on_path("nvidia-smi", SMI)
    monkeypatch.setattr("ladder.commands.study._draw", lambda *_: None)
    fake.plan({TILED[1]: "once"})
    folder = tmp_path / "out/results/nvidia-h200"
    assert run_study(fake, tmp_path / "out", *ROWS, "--samples") == 1
    assert list(errors_of(folder / "study.json")) == [TILED[1]]
    assert list(firsts(folder / "study.json")) == names(TILED[0], TILED[2])
    assert run_study(fake, tmp_path / "out", *ROWS) == 0
    (old,) = folder.glob("study-*.json.old")
    assert list(firsts(old)) == names(TILED[0], TILED[2])
    assert firsts(folder / "study.json") == {}
    assert len(list(folder.iterdir())) == 3


def test_packed_samples_and_half_lines_are_read(fake, out):
    assert run(fake, out, *ROWS, "--samples") == 0
    path = out.with_name("study.samples.jsonl")
    torn = b'{"name":"mul/ti\n' + path.read_bytes() + b'{"name":"mul/tiled/n:64","nanosec'
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(torn))
    path.unlink()
    (results,) = load_processes([out])
    found = samples.beside(results)
    assert list(found) == names(*TILED)
    np.testing.assert_allclose(found["mul/tiled/n:64"], [[9.001e-6, 11e-6]])


@pytest.mark.parametrize(
    "line",
    ['{"name":"x"}', "[1]", '{"name":1,"nanoseconds":[1]}', '{"name":"x","nanoseconds":[0]}'],
)
def test_what_is_no_sample_is_told_with_its_line(tmp_path, line):
    path = tmp_path / "a.samples.jsonl"
    path.write_text(json.dumps({"name": "x", "nanoseconds": [1.5]}) + f"\n{line}\n")
    with pytest.raises(samples.ResultError, match="line 2"):
        samples.read(path, {"x": 1})


def test_samples_are_no_results(fake, out, capsys):
    assert run(fake, out, *ROWS, "--samples") == 0
    assert main(["table", str(out.parent)]) == 0  # a directory is read as without them
    assert "jsonl" not in capsys.readouterr().err
    assert main(["table", str(out.with_name("study.samples.jsonl"))]) == 3
    assert "samples of results" in capsys.readouterr().err
