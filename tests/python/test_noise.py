# SPDX-License-Identifier: MIT
"""Noise floors: of a program run in turn, of results that exist, and in a comparison."""

import itertools
import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import suite
from conftest import ROOT
from ladder.commands.cli import main
from ladder.measure import process, processes
from ladder.stats import noise
from test_compare import document, timed

# Rows of three processes, in us: an even one, one that a process saw 4 % slower, a late failure.
TIMES = {"quiet": (10.0, 10.01, 10.0), "noisy": (10.0, 10.0, 10.4), "once": (5.0, None, None)}
FAILED = {"error_occurred": True, "error_message": "wrong"}

# Stands in for ladder_bench: writes the next of the results in its own folder, as told by a count.
PROGRAM = """#!{python}
import os, pathlib, sys, time
folder = pathlib.Path(__file__).parent
(folder / "flags").open("a").write(" ".join(sys.argv[1:]) + "\\n")
with (folder / "small_kernels").open("a") as file:
    print(os.environ.get("LADDER_SMALL_KERNEL_NANOSECONDS", "any"), file=file)
number = len((folder / "flags").read_text().splitlines())
source = folder / f"result-{{number}}.json"
print("rows, rows, rows")
if not source.exists():
    (folder / "waiting").touch()
    time.sleep({patience})
    sys.exit(3)
(out,) = [a.partition("=")[2] for a in sys.argv if a.startswith("--benchmark_out=")]
pathlib.Path(out).write_text(source.read_text())
"""


def run_of(number: int, **context: str) -> dict:
    rows = {name: timed(us[number]) if us[number] else FAILED for name, us in TIMES.items()}
    return document(rows, git_commit="abc", **context)


@pytest.fixture
def runs(tmp_path) -> list[str]:
    return [str(suite.write(tmp_path / f"{i}.json", run_of(i))) for i in range(3)]


@pytest.fixture
def program(tmp_path):
    """A program that has results for `count` processes, and then fails after `patience` seconds."""

    def make(count: int, patience: float = 0.0) -> Path:
        folder = tmp_path / "program"
        folder.mkdir()
        for i in range(count):
            suite.write(folder / f"result-{i + 1}.json", run_of(i))
        path = folder / "ladder_bench"
        path.write_text(PROGRAM.format(python=sys.executable, patience=patience))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


def flying(waiting: Path) -> SimpleNamespace:
    """A clock that stands until a file is there, and then goes on by 1000 s at each look."""
    moments = itertools.count(0.0, 1000.0)
    return SimpleNamespace(monotonic=lambda: next(moments) if waiting.exists() else 0.0)


def check_floors(path: Path) -> None:
    rows = json.loads(path.read_text())["rows"]
    assert set(rows) == {"quiet", "noisy"}
    assert rows["quiet"]["floor"] == pytest.approx(0.001)
    assert rows["noisy"]["floor"] == rows["noisy"]["spread"] == pytest.approx(0.04)
    assert rows["noisy"]["seconds"] == pytest.approx(10e-6)
    assert rows["noisy"]["processes"] == 3
    assert rows["noisy"]["medians"] == pytest.approx([10e-6, 10e-6, 10.4e-6])  # by process


def test_existing_results_give_each_row_its_floor(runs, tmp_path, capsys):
    output = tmp_path / "noise.json"
    assert main(["noise", "--from", *runs, "--output", str(output)]) == 0
    check_floors(output)
    context = json.loads(output.read_text())["context"]
    assert (context["gpu_name"], context["git_commit"], context["processes"]) == (
        "NVIDIA H200",
        "abc",
        3,
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "NVIDIA H200, cold cache, commit abc: 2 rows in 3 processes.",
        "within 0.5% of their median: 1 (50.0%)",
        "within 1.0% of their median: 1 (50.0%)",
        "not within 3.0% of their median: 1",
        "within 0.5% of each other: 1 (50.0%)",
        "within 1.0% of each other: 1 (50.0%)",
        "not within 3.0% of each other: 1",
        "in one process only, and left out: 1",
        "floor   spread  time     clock     noisiest rows",
        "4.00%   4.00%   10.0 us  –         noisy",
        "0.10%   0.10%   10.0 us  –         quiet",
    ]


def test_a_row_keeps_the_clocks_of_its_processes(runs, tmp_path, capsys):
    clocks = (1.98e9, 1.96e9, 1.94e9)
    for path, clock in zip(runs, clocks, strict=True):
        document = json.loads(Path(path).read_text())
        for row in document["benchmarks"]:
            if row["name"] == "noisy":
                row["sm_clock_hz"] = clock
        Path(path).write_text(json.dumps(document))
    output = tmp_path / "noise.json"
    assert main(["noise", "--from", *runs, "--output", str(output)]) == 0
    assert "4.00%   4.00%   10.0 us  2.06%     noisy" in capsys.readouterr().out
    _, floors = noise.read(output)
    assert (floors["noisy"].clocks, floors["quiet"].clocks) == (clocks, ())


@pytest.mark.parametrize(
    ("times", "line"),
    [
        (
            ("3307", "3427", "3320"),
            "small kernels took 3.31 us, 3.43 us and 3.32 us in them, "
            "so rows of a few microseconds differ too",
        ),
        (("3300", "3330", "3310"), "small kernels took 3.30 us, 3.33 us and 3.31 us in them"),
        (("3300", "3400", None), None),
        (("3300", "unknown", "3300"), None),
    ],
)
def test_small_kernels_of_the_processes_are_told_where_all_are_known(tmp_path, capsys, times, line):
    files = []
    for i, taken in enumerate(times):
        context = {} if taken is None else {"small_kernel_nanoseconds": taken}
        files.append(str(suite.write(tmp_path / f"{i}.json", run_of(i, **context))))
    output = tmp_path / "noise.json"
    assert main(["noise", "--from", *files, "-o", str(output)]) == 0
    lines = capsys.readouterr().out.splitlines()
    context = json.loads(output.read_text())["context"]
    if line:
        assert lines[1] == line
        assert context["small_kernel_nanoseconds"] == [float(taken) for taken in times]
    else:
        assert not any("small kernel" in line for line in lines)
        assert "small_kernel_nanoseconds" not in context


def test_files_without_the_medians_of_processes_are_read_as_before(runs, tmp_path):
    output = tmp_path / "noise.json"
    assert main(["noise", "--from", *runs, "-o", str(output)]) == 0
    context, floors = noise.read(output)
    assert floors["quiet"].medians == pytest.approx((10e-6, 10.01e-6, 10e-6))
    old = json.loads(output.read_text())
    for row in old["rows"].values():
        del row["medians"]
    output.write_text(json.dumps(old))
    without = {name: replace(floor, medians=()) for name, floor in floors.items()}
    assert noise.read(output) == (context, without)


def test_noise_beside_results_is_not_read_as_one(runs, tmp_path):
    assert main(["noise", "--from", *runs, "-o", str(tmp_path / "noise.json")]) == 0
    assert main(["table", str(tmp_path)]) == 0


def test_a_slow_and_a_fast_process_spread_further_than_either_is_off(tmp_path, capsys):
    files = [
        suite.write(tmp_path / f"{us}.json", document({"x": timed(us)})) for us in (9.9, 10, 10.2)
    ]
    output = tmp_path / "noise.json"
    assert main(["noise", "--from", *map(str, files), "-o", str(output)]) == 0
    (row,) = json.loads(output.read_text())["rows"].values()
    assert row["floor"] == pytest.approx(0.02)
    assert row["spread"] == pytest.approx(10.2 / 9.9 - 1)
    out = capsys.readouterr().out
    assert "not within 3.0% of their median: 0" in out
    assert "not within 3.0% of each other: 1" in out
    # What two of these processes differ by is noise.
    assert main(["compare", str(files[0]), str(files[2]), "--noise", str(output)]) == 0


def test_two_processes_are_half_as_far_from_their_median_as_from_each_other(tmp_path, capsys):
    files = [
        str(suite.write(tmp_path / f"{us}.json", document({"x": timed(us)}))) for us in (10, 10.08)
    ]
    assert main(["noise", "--from", *files, "-o", str(tmp_path / "noise.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "within 0.5% of their median: 1 (100.0%)" in lines
    assert "within 0.5% of each other: 0 (0.0%)" in lines
    assert "within 1.0% of each other: 1 (100.0%)" in lines


def test_a_program_is_run_in_fresh_processes(program, tmp_path, capsys):
    path, output = program(3), tmp_path / "noise.json"
    command = ["noise", str(path), "--processes", "3", "--filter", "quiet|noisy", "-o", str(output)]
    assert main([*command, "--", "--cache=cold", "--cases=small"]) == 0
    check_floors(output)
    said = (path.parent / "flags").read_text().splitlines()
    assert len(said) == 3
    for line in said:
        *flags, out = line.split()
        assert flags == ["--benchmark_filter=quiet|noisy", "--cache=cold", "--cases=small"]
        assert out.startswith("--benchmark_out=")
    assert not any(tmp_path.glob("noise.json.*"))
    assert "rows, rows" not in capsys.readouterr().out


def test_processes_look_for_a_context_as_quick_as_the_first(program, tmp_path):
    path = program(3)
    for i, taken in enumerate(("3190", "3191", "3189")):
        suite.write(path.parent / f"result-{i + 1}.json", run_of(i, small_kernel_nanoseconds=taken))
    assert main(["noise", str(path), "--processes", "3", "-o", str(tmp_path / "noise.json")]) == 0
    assert (path.parent / "small_kernels").read_text().split() == ["any", "3190", "3190"]


def test_what_was_measured_before_a_process_failed_is_kept(program, tmp_path, capsys):
    output = tmp_path / "noise.json"
    assert main(["noise", str(program(2)), "--processes", "4", "-o", str(output)]) == 4
    assert json.loads(output.read_text())["rows"]["quiet"]["processes"] == 2
    (kept,) = tmp_path.glob("noise.json.*")
    said = capsys.readouterr().err
    assert "ladder: it left no results: ended with exit code 3\n" in said
    assert said.endswith(f"ladder: 2 of 4 processes finished, kept in {kept}\n")
    again = tmp_path / "again.json"
    assert main(["noise", "--from", str(kept), "-o", str(again)]) == 0
    assert again.read_bytes() == output.read_bytes()


def test_an_emulator_is_refused_after_one_process(program, tmp_path, capsys):
    path = program(3)
    suite.write(path.parent / "result-1.json", run_of(0, emulated="true"))
    assert main(["noise", str(path), "-o", str(tmp_path / "noise.json")]) == 5
    assert len((path.parent / "flags").read_text().splitlines()) == 1
    assert capsys.readouterr().err.endswith(f"{path}: an emulator has no times to compare\n")
    assert not any(tmp_path.glob("noise.json*"))


def test_a_process_that_hangs_ends_the_series(program, tmp_path, capsys, monkeypatch):
    path, output = program(2, patience=600), tmp_path / "noise.json"
    monkeypatch.setattr(process, "time", flying(path.parent / "waiting"))
    assert main(["noise", str(path), "--timeout", "60", "-o", str(output)]) == 4
    assert json.loads(output.read_text())["rows"]["quiet"]["processes"] == 2
    assert "ladder: it left no results: no result within 60 s\n" in capsys.readouterr().err


def test_a_process_that_cannot_be_ended_costs_no_other(program, tmp_path, capsys, monkeypatch):
    path, output = program(2, patience=600), tmp_path / "noise.json"
    monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    monkeypatch.setattr(os, "killpg", lambda *_: None)  # as when it is stuck in a driver
    monkeypatch.setattr(process, "time", flying(path.parent / "waiting"))
    assert main(["noise", str(path), "-o", str(output)]) == 4
    said = capsys.readouterr().err
    os.kill(int(re.search(r"process (\d+) cannot be ended\n", said)[1]), signal.SIGKILL)
    assert json.loads(output.read_text())["rows"]["quiet"]["processes"] == 2


def test_a_folder_that_cannot_be_written_is_told_in_a_line(program, tmp_path, capsys):
    output = tmp_path / "none" / "noise.json"
    assert main(["noise", str(program(2)), "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"ladder: {output.parent}: No such file or directory\n"


def test_one_process_makes_no_noise_but_is_kept(program, tmp_path):
    output = tmp_path / "noise.json"
    assert main(["noise", str(program(1)), "-o", str(output)]) == 4
    assert not output.exists()
    (kept,) = tmp_path.glob("noise.json.*")
    assert [file.name for file in kept.iterdir()] == ["1.json"]


def test_nothing_is_left_where_nothing_was_measured(program, tmp_path):
    assert main(["noise", str(program(0)), "-o", str(tmp_path / "noise.json")]) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["program"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_was_measured_and_ends_the_program(program, tmp_path, number):
    path, output = program(2, patience=60), tmp_path / "noise.json"
    command = [sys.executable, "-m", "ladder", "noise", str(path), "-o", str(output)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (path.parent / "waiting").exists():
            assert process.poll() is None
            assert time.monotonic() < started + 300
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 4
    assert "Traceback" not in said
    assert "ladder: 2 of 5 processes finished, kept in " in said
    assert json.loads(output.read_text())["rows"]["noisy"]["processes"] == 2


@pytest.mark.parametrize(
    ("context", "told"),
    [
        ({"gpu_name": "NVIDIA A100"}, "different gpu_name: NVIDIA H200 in {0}, NVIDIA A100 in {1}"),
        ({"git_commit": "def"}, "different git_commit: abc in {0}, def in {1}"),
        ({"cache_mode": "warm"}, "different cache_mode: cold in {0}, warm in {1}"),
        ({"emulated": "true"}, "{1}: has no times to compare"),
    ],
)
def test_what_is_not_the_same_program_is_refused(tmp_path, capsys, context, told):
    contexts = ({"git_commit": "abc"}, {"git_commit": "abc"} | context)
    files = [
        str(suite.write(tmp_path / f"{i}.json", document({"x": timed(10)}, **values)))
        for i, values in enumerate(contexts)
    ]
    assert main(["noise", "--from", *files, "-o", str(tmp_path / "noise.json")]) == 5
    assert capsys.readouterr().err == f"ladder: {told.format(*files)}\n"
    assert not (tmp_path / "noise.json").exists()


def test_wrong_usage_is_told_in_a_line(runs, program, tmp_path, capsys):
    path = str(program(0))
    for arguments, told in (
        ([], "noise: name either a program to run, or --from and its results"),
        ([path, "--from", *runs], "noise: name either a program to run, or --from and its results"),
        (["--from", runs[0]], "noise is the difference between results: name two files or more"),
        (["--from", runs[0], runs[0]], f"ladder: {runs[0]}: the same file twice"),
        (["--from", *runs, "--filter", "once"], "no row was measured in two of the results"),
        ([path, "--", "--benchmark_out=x"], "--benchmark_out=x: use --output instead"),
        ([path, "--", "--samples_out=x"], "--samples_out=x: what is compared are medians"),
        ([str(tmp_path / "none")], f"{tmp_path / 'none'}: No such file or directory"),
    ):
        assert main(["noise", "-o", str(tmp_path / "n.json"), *arguments]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
    assert not any(tmp_path.glob("n.json*"))


@pytest.fixture
def compared(runs, tmp_path, capsys):
    """Compare two times of a row of that noise; return exit code, verdict and reason."""
    noise = str(tmp_path / "noise.json")
    assert main(["noise", "--from", *runs, "-o", noise]) == 0
    capsys.readouterr()

    def compare(name: str, base: float, head: float, **context: str) -> tuple[int, str, str]:
        files = [
            str(suite.write(tmp_path / f"side-{i}.json", document({name: timed(us)}, **context)))
            for i, us in enumerate((base, head))
        ]
        code = main(["compare", *files, "--noise", noise, "--format", "json"])
        out = capsys.readouterr().out
        (change,) = json.loads(out)["changes"] if out else [{"verdict": "", "reason": ""}]
        return code, change["verdict"], change["reason"]

    return compare


def test_a_change_counts_only_beyond_the_noise_of_its_row(compared):
    assert compared("noisy", 10, 10.3) == (0, "NOISY", "within the noise of this row, 4.0%")
    assert compared("noisy", 10, 10.5)[1] == "NOISY"
    assert compared("noisy", 10, 14) == (1, "SLOWER", "")
    assert compared("quiet", 10, 10.3) == (1, "SLOWER", "")  # though it is short
    assert compared("quiet", 10, 10.02) == (0, "SAME", "")
    assert compared("quiet", 10, 10.1) == (
        0,
        "NOISY",
        "one process per side",
    )  # the threshold stays
    assert compared("new", 10, 10.3)[1] == "NOISY"  # of unknown noise, and short
    assert compared("new", 100, 103) == (1, "SLOWER", "")


def test_noise_of_another_gpu_or_cache_mode_is_refused(compared):
    assert compared("noisy", 10, 10.3, gpu_name="NVIDIA A100")[0] == 5
    assert compared("noisy", 10, 10.3, cache_mode="warm")[0] == 5


@pytest.mark.parametrize(
    "text", ["{}", '{"context": {}, "rows": {"x": {}}}', '{"context": {}, "rows": [1]}', "[]", ""]
)
def test_a_file_that_is_no_noise_is_named(runs, tmp_path, capsys, text):
    file = tmp_path / "noise.json"
    file.write_text(text)
    assert main(["compare", runs[0], runs[1], "--noise", str(file)]) == 3
    assert capsys.readouterr().err.startswith(f"ladder: {file}: ")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"spread": -1}, "quiet: no spread of two processes or more"),
        ({"spread": math.nan}, "quiet: no spread of two processes or more"),
        ({"spread": math.inf}, "quiet: no spread of two processes or more"),
        ({"spread": "wide"}, "not what 'ladder noise' writes"),
        ({"processes": 1}, "quiet: no spread of two processes or more"),
    ],
)
def test_a_spread_that_is_no_fraction_is_refused(runs, tmp_path, capsys, changes, told):
    file = tmp_path / "noise.json"
    assert main(["noise", "--from", *runs, "-o", str(file)]) == 0
    document = json.loads(file.read_text())
    document["rows"]["quiet"] |= changes
    file.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["compare", runs[0], runs[1], "--noise", str(file)]) == 3
    assert capsys.readouterr().err == f"ladder: {file}: {told}\n"
