# SPDX-License-Identifier: MIT
"""Broken input: one clear line that names the file, the right exit code, no traceback."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import suite
from conftest import ROOT
from ladder.commands.cli import main

HISTORY = ROOT / "tests/python/data/cases/history"  # long enough for change points
GOOD = json.dumps({"context": {}, "benchmarks": [{"name": "a", "real_time": 1.0}]})
ROW = '{"name": "a", "real_time": 1.0, "time_unit": "ns"}'


def with_catalogue(catalogue: str, name: str = "a/b") -> str:
    row = {"name": name, "real_time": 1.0}
    return json.dumps({"context": {"ladders": catalogue}, "benchmarks": [row]})


def with_rungs(rungs: str, more: str = "") -> str:
    ladder = f'"name":"a","title":"A","quantity":"bytes","axes":[],{more}"rungs":[{rungs}]'
    return with_catalogue(f"[{{{ladder}}}]")


CASES = {
    "empty": ("", "empty"),
    "blank": (" \n", "empty"),
    "truncated": (GOOD[:-20], "truncated or not JSON"),
    "prose": ("hello", "not JSON"),
    "binary": (b"\x89PNG\r\n\x1a\n\xff\x00", "not a text file"),
    "list": ("[]", "not a Google Benchmark result"),
    "foreign": ('{"version": 3}', "not a Google Benchmark result"),
    "wrong types": ('{"context": [], "benchmarks": {}}', "not a Google Benchmark result"),
    "no rows": ('{"context": {}, "benchmarks": []}', "no benchmark rows"),
    "row is text": ('{"context": {}, "benchmarks": ["a"]}', "without a name"),
    "row without name": ('{"context": {}, "benchmarks": [{"real_time": 1}]}', "without a name"),
    "name is a list": ('{"context": {}, "benchmarks": [{"name": []}]}', "without a name"),
    "name is a number": ('{"context": {}, "benchmarks": [{"name": 3}]}', "without a name"),
    "only fits": (
        '{"context": {}, "benchmarks": [{"name": "a", "run_type": "aggregate", "rms": 1}]}',
        "no measurements",
    ),
    "unknown unit": (GOOD.replace("1.0", '1.0, "time_unit": "weeks"'), "unknown time unit"),
    "unit is a list": (GOOD.replace("1.0", '1.0, "time_unit": []'), "unknown time unit"),
    "duplicate key": ('{"context": {}, "context": {}, "benchmarks": []}', "duplicate key"),
    "duplicate counter": (
        '{"context": {}, "benchmarks": [{"name": "a", "x": 1, "x": 2}]}',
        "duplicate key 'x'",
    ),
    "deep": ("[" * 100_000, "not usable JSON"),
    "catalogue is no JSON": (with_catalogue("[{"), "'ladders'"),
    "catalogue lacks rungs": (
        with_catalogue('[{"name": "a", "axes": []}]'),
        "missing required field",
    ),
    "catalogue is no list": (with_catalogue("3"), "'ladders'"),
    "catalogue is a number": (
        '{"context": {"ladders": 3}, "benchmarks": [{"name": "a"}]}',
        "'ladders'",
    ),
    "catalogue of text": (with_catalogue('["a"]'), "'ladders'"),
    "unknown quantity": (
        with_catalogue(
            '[{"name":"a","title":"A","quantity":"fish","axes":[],"rungs":[{"name":"b"}]}]'
        ),
        "fish",
    ),
    "rung of text": (
        with_catalogue('[{"name":"a","title":"A","quantity":"bytes","axes":[],"rungs":["b"]}]'),
        "'ladders'",
    ),
    "sweeps are no list": (
        with_rungs('{"name":"b","sweeps":"c"}'),
        "Expected `array`, got `str` - at `$[0].rungs[0].sweeps`",
    ),
    "parent that is not there": (
        with_rungs('{"name":"b","builds_on":"c"}'),
        "a/b builds on 'c', which is not an earlier rung",
    ),
    "parent below": (
        with_rungs('{"name":"b","builds_on":"c"},{"name":"c","builds_on":"b"}'),
        "a/b builds on 'c', which is not an earlier rung",
    ),
    "parent of itself": (
        with_rungs('{"name":"b","builds_on":"b"}'),
        "a/b builds on 'b', which is not an earlier rung",
    ),
    "parent in an experiment": (
        with_rungs('{"name":"c"},{"name":"b","builds_on":"c"}', '"factors":["width"],'),
        "a/b of an experiment builds on another rung",
    ),
    "factors are no object": (
        with_rungs('{"name":"b","factors":["width"]}'),
        "Expected `object`, got `array` - at `$[0].rungs[0].factors`",
    ),
    "ceilings are no list": (
        with_rungs('{"name":"b","ceilings":"c/d"}'),
        "`$[0].rungs[0].ceilings`",
    ),
    "ceiling of no products": (
        with_rungs('{"name":"b","ceilings":[{"rung":"c/d","products":0}]}'),
        "products of c/d is not above zero",
    ),
    "ceiling of another quantity": (
        with_rungs('{"name":"b","ceilings":[{"rung":"c/d","quantity":"fish"}]}'),
        "Invalid enum value 'fish' - at `$[0].rungs[0].ceilings[0].quantity`",
    ),
    "unlisted rung": (
        with_catalogue('[{"name":"a","title":"A","quantity":"bytes","axes":[],"rungs":[]}]'),
        "lists no rung 'b'",
    ),
}


@pytest.mark.parametrize(("content", "told"), CASES.values(), ids=CASES.keys())
def test_broken_files_are_named_in_one_line(tmp_path, capsys, content, told):
    file = tmp_path / "result.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["table", str(file)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ladder: {file}: ")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["matrix", "trend", "check --write new.toml"])
def test_other_commands_name_a_broken_file_too(tmp_path, capsys, command):
    broken = tmp_path / "broken.json"
    broken.write_text('{"context": ')
    assert main([*command.split(), str(broken)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {broken}: truncated or not JSON")


@pytest.mark.parametrize("command", ["plot", "table", "compare"])
def test_every_command_fails_as_a_process_without_a_traceback(ladder, tmp_path, whole, command):
    broken = tmp_path / "broken.json"
    broken.write_text('{"context": ')
    done = ladder(command, whole, broken)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith(f"ladder: {broken}: truncated or not JSON")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["plot"],
        ["table", "x", "--format", "pdf"],
        ["plot", "x", "--format", "svg,gif"],
        ["table", "x", "--filter", "("],
        ["compare", "x", "y", "--threshold", "-1"],
        ["compare", "x", "y", "--threshold", "nan"],
        ["predict", "x"],
        ["counters", "--profile", "x"],
        ["table", "x", "--bogus"],
        ["check", "x"],
        ["check", "x", "--references", "y", "--write", "z"],
        ["matrix", "x", "--case", "("],
        ["trend", "x", "--row", "("],
    ],
)
def test_wrong_usage_exits_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    command = (
        " ".join(["ladder", *arguments[:1]])
        if len(arguments) > 1 or arguments == ["plot"]
        else "ladder"
    )
    assert err.startswith("ladder: error: ")
    assert err.endswith(f" (see {command} --help)\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["plot", "table"])
def test_a_filter_that_keeps_nothing_is_an_error(whole, capsys, command):
    assert main([command, str(whole), "--filter", "^no_such"]) == 2
    assert capsys.readouterr().err == "ladder: --filter ^no_such: no row matches\n"


def test_a_reader_that_leaves_early_is_no_error(ladder, whole):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        pipes = {"capture_output": False, "stdout": closed, "stderr": subprocess.PIPE}
        done = ladder("table", whole, "--format", "csv", **pipes)
    assert done.stderr == ""
    assert done.returncode == 141  # what a shell reports for SIGPIPE; 1 would mean a regression


def test_a_full_disk_is_no_regression(ladder, data):
    file = data / "v1_8_3.json"
    with Path("/dev/full").open("w") as full:
        done = ladder(
            *("compare", file, file, "--all"),
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 2
    assert done.stderr == "ladder: output: No space left on device\n"


def test_a_threshold_that_is_no_number_is_named(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["compare", "x", "y", "--threshold", "abc"])
    assert stop.value.code == 2
    told = "argument --threshold: 'abc' is not a fraction of zero or more"
    assert capsys.readouterr().err == f"ladder: error: {told} (see ladder compare --help)\n"


ABSURD = ["-1.0", "0.0", "5e-324", "1e308", "NaN", "Infinity", "null", '"fast"']


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("real_time", value) for value in ABSURD),
        *(("median_seconds", value) for value in ABSURD[:4]),
        ("q1_seconds", "-1.0"),
        ("sm_clock_hz", "0.0"),
        ("bytes_per_second", "5e-324"),
        ("flops_per_second", "-1.0"),
        ("flops_per_second", "1e-300"),
        ("percent_of_ceiling", "5e-324"),
    ],
)
def test_absurd_figures_end_in_no_traceback(tmp_path, whole, capsys, key, value):
    document = suite.only(suite.document(), "sgemm/tiled/", "roof/")
    for row in document["benchmarks"]:
        row[key] = "@"
        if key == "real_time":
            row.pop("median_seconds", None)
    text = json.dumps(document).replace('"@"', value)
    file = tmp_path / "bad.json"
    file.write_text(text)
    assert main(["table", str(file)]) == 0
    assert main(["compare", str(whole), str(file), "--format", "json"]) in (1, 4)
    assert main(["compare", str(file), str(whole)]) in (0, 1, 4)
    assert main(["matrix", str(file)]) == 0
    for metric in ("real_time", "percent_of_ceiling"):
        some = ["--row", "^sgemm/tiled/", "--metric", metric]
        assert main(["trend", str(whole), str(file), *some]) in (0, 2)
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("pandas", ["table", "--format", "csv"]),
        ("matplotlib", ["plot"]),
        ("scipy", ["gate", "x"]),
        ("ruptures", ["trend", *map(str, sorted(HISTORY.glob("*.json")))]),
    ],
)
def test_a_missing_package_is_told_in_a_line(ladder, whole, tmp_path, missing, arguments):
    """As where nothing was installed: a module in the working directory stands in for that."""
    text = f"raise ModuleNotFoundError(\"No module named '{missing}'\", name='{missing}')\n"
    (tmp_path / f"{missing}.py").write_text(text)
    done = ladder(*arguments, whole, cwd=tmp_path)
    told = f"ladder: needs {missing}: run scripts/study once, or pip install -e .\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_the_entry_point_tells_of_a_missing_package_too(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    assert main(["trend", str(HISTORY)]) == 2
    told = "ladder: needs ruptures: run scripts/study once, or pip install -e .\n"
    assert capsys.readouterr() == ("", told)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["ladder"] == "ladder.__main__:main"  # which can tell of pandas


@pytest.mark.parametrize("command", ["plot", "report"])
def test_an_interrupt_ends_in_a_line(tmp_path, command):
    """Sent while it reads: a pipe tells when that is."""
    pipe = tmp_path / "results.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "ladder", command, pipe, "--output", tmp_path / "out"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, pipe.open("w"):  # opens once the other end does
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=300)
    assert (process.returncode, *told) == (130, "", "ladder: interrupted\n")
