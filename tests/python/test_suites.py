# SPDX-License-Identifier: MIT
"""Suites as other projects have them: every number is what a few lines over the JSON say."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from statistics import median

import pytest
import suite
from ladder.commands.cli import main
from ladder.io import library_fields

SUITES = sorted((Path(__file__).parent / "data/suites").glob("*.json"))
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def measured(file: Path) -> dict[str, list[dict]]:
    """Return the repetitions of each row by name; of aggregates alone the median."""
    by_name: dict[str, list[dict]] = {}
    for row in json.loads(file.read_text(), object_pairs_hook=first_wins)["benchmarks"]:
        by_name.setdefault(row["run_name"], []).append(row)
    found = {}
    for name, rows in by_name.items():
        own = [row for row in rows if row["run_type"] == "iteration"]
        own = own or [row for row in rows if row["aggregate_name"] == "median"]
        if own:
            found[name] = own
    return found


def first_wins(pairs: list[tuple]) -> dict:
    """Read an object in which a counter has the name of a field that stands before it."""
    found: dict = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def ok(row: dict) -> bool:
    """Whether it has a time: what an empty loop takes is none."""
    failed = row.get("error_occurred") is True or row.get("skipped") is True
    return not failed and row["real_time"] * SECONDS[row["time_unit"]] >= 1e-15


def is_counter(name: str) -> bool:
    return name not in library_fields.FIELDS


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
def test_a_table_has_the_medians_of_the_file(file, capsys):
    assert main(["table", str(file), "--format", "csv"]) == 0
    table = {row["name"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    wanted = measured(file)
    assert table.keys() == wanted.keys()
    for name, rows in wanted.items():
        told = table[name]
        if not all(map(ok, rows)):
            assert told["status"] in ("error", "skipped")
            assert told["seconds"] == told["cpu_seconds"] == ""
            continue
        for column, key in (("seconds", "real_time"), ("cpu_seconds", "cpu_time")):
            times = [row[key] * SECONDS[row["time_unit"]] for row in rows]
            assert float(told[column]) == pytest.approx(median(times), rel=1e-12)
        assert float(told["threads"]) == rows[0]["threads"]
        loops = [row["iterations"] for row in rows if row["run_type"] == "iteration"]
        if loops:
            assert float(told["iterations"]) == median(loops)
        else:  # those of an aggregate are its repetitions
            assert not told.get("iterations")
        for counter in filter(is_counter, rows[0]):
            value = told.get(f"user_{counter}") or told[counter]
            assert float(value) == pytest.approx(median(row[counter] for row in rows), rel=1e-12)


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
def test_a_comparison_has_the_ratios_of_the_medians(file, tmp_path, capsys):
    document = json.loads(file.read_text())
    for row in document["benchmarks"]:
        if "BM_S" in row["name"] and row.get("aggregate_name") != "cv" and "real_time" in row:
            row["real_time"] *= 2
    head = suite.write(tmp_path / "head.json", document)
    assert main(["compare", str(file), str(head), "--format", "json"]) in (0, 1)
    changes = {c["name"]: c for c in json.loads(capsys.readouterr().out)["changes"]}
    wanted = measured(file)
    assert changes.keys() == wanted.keys()
    for name, rows in wanted.items():
        if all(map(ok, rows)):
            changed = "BM_S" in name
            assert changes[name]["ratio"] == pytest.approx(0.5 if changed else 1.0, rel=1e-9)


@pytest.mark.parametrize("file", SUITES, ids=lambda file: file.stem)
@pytest.mark.parametrize("command", ["table", "matrix", "trend", "report", "plot"])
def test_every_command_takes_it(file, command, tmp_path, capsys):
    where = ["-o", str(tmp_path)] if command in ("report", "plot") else []
    assert main([command, str(file), *where]) == 0
    out, err = capsys.readouterr()
    assert out
    assert all(line.startswith("ladder: note: ") for line in err.splitlines())


def test_a_reason_of_several_lines_is_told_in_one(capsys):
    file = str(next(file for file in SUITES if file.stem == "habits"))
    for command in (["compare", file], ["matrix"], ["table", "--format", "text"]):
        assert main([command[0], file, *command[1:]]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "oh" in line]
        assert "broke" in line


def test_rows_are_named_in_full(tmp_path, capsys):
    """A suite may have the same benchmark with and without manual time."""
    rows = [
        {"name": name, "run_name": name, "real_time": time, "cpu_time": 1, "time_unit": "us"}
        for name, time in (("BM_a", 1.0), ("BM_a/manual_time", 5.0))
    ]
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": rows})
    assert main(["compare", str(file), str(file), "--all"]) == 0
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:3]]
    assert names == ["BM_a", "BM_a/manual_time"]
    assert main(["report", str(file), "-o", str(tmp_path)]) == 0
    assert "BM_a/manual_time |" in (tmp_path / "summary.md").read_text()
