# SPDX-License-Identifier: MIT
"""Noise floors: of results of several processes, and in a comparison."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import suite
from comparison import FAILED, document, timed
from fake_program import Fake
from ladder.commands.cli import main
from ladder.stats import noise

# Rows of three processes, in us: an even one, one that a process saw 4 % slower, a late failure.
TIMES = {"quiet": (10.0, 10.01, 10.0), "noisy": (10.0, 10.0, 10.4), "once": (5.0, None, None)}


def run_of(number: int, **context: str) -> dict:
    rows = {name: timed(us[number]) if us[number] else FAILED for name, us in TIMES.items()}
    return document(rows, git_commit="abc", **context)


@pytest.fixture
def runs(tmp_path) -> list[str]:
    return [str(suite.write(tmp_path / f"{i}.json", run_of(i))) for i in range(3)]


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
    assert main(["noise", *runs, "--output", str(output)]) == 0
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
    assert main(["noise", *runs, "--output", str(output)]) == 0
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
    assert main(["noise", *files, "-o", str(output)]) == 0
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
    assert main(["noise", *runs, "-o", str(output)]) == 0
    context, floors = noise.read(output)
    assert floors["quiet"].medians == pytest.approx((10e-6, 10.01e-6, 10e-6))
    old = json.loads(output.read_text())
    for row in old["rows"].values():
        del row["medians"]
    output.write_text(json.dumps(old))
    without = {name: replace(floor, medians=()) for name, floor in floors.items()}
    assert noise.read(output) == (context, without)


def test_noise_beside_results_is_not_read_as_one(runs, tmp_path):
    assert main(["noise", *runs, "-o", str(tmp_path / "noise.json")]) == 0
    assert main(["table", str(tmp_path)]) == 0


def test_a_slow_and_a_fast_process_spread_further_than_either_is_off(tmp_path, capsys):
    files = [
        suite.write(tmp_path / f"{us}.json", document({"x": timed(us)})) for us in (9.9, 10, 10.2)
    ]
    output = tmp_path / "noise.json"
    assert main(["noise", *map(str, files), "-o", str(output)]) == 0
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
    assert main(["noise", *files, "-o", str(tmp_path / "noise.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "within 0.5% of their median: 1 (100.0%)" in lines
    assert "within 0.5% of each other: 0 (0.0%)" in lines
    assert "within 1.0% of each other: 1 (100.0%)" in lines


def test_a_program_that_run_ran_in_several_processes(tmp_path, capsys):
    fake, folder, output = Fake(tmp_path / "fake"), tmp_path / "runs", tmp_path / "noise.json"
    options = ["--processes", "3", "--split", "none", "--filter", "^mul/"]
    assert main(["run", str(fake.path), "-o", str(folder), *options]) == 0
    assert len(fake.starts) == 3
    assert main(["noise", str(folder), "-o", str(output)]) == 0
    assert " rows in 3 processes.\n" in capsys.readouterr().out
    context, floors = noise.read(output)
    assert context["processes"] == 3
    assert {floor.processes for floor in floors.values()} == {3}


def test_only_the_rows_of_the_filter_are_compared(runs, tmp_path):
    output = tmp_path / "noise.json"
    assert main(["noise", *runs, "--filter", "qui", "-o", str(output)]) == 0
    assert set(noise.read(output)[1]) == {"quiet"}


def test_a_folder_that_cannot_be_written_is_told_in_a_line(runs, tmp_path, capsys):
    output = tmp_path / "none" / "noise.json"
    assert main(["noise", *runs, "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"ladder: {output}: No such file or directory\n"


@pytest.mark.usefixtures("runs")
def test_files_without_times_in_a_directory_are_left_out(tmp_path):
    suite.write(tmp_path / "counters.json", run_of(0, emulated="true"))
    output = tmp_path / "out" / "noise.json"
    output.parent.mkdir()
    assert main(["noise", str(tmp_path), "-o", str(output)]) == 0
    check_floors(output)


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
    assert main(["noise", *files, "-o", str(tmp_path / "noise.json")]) == 5
    assert capsys.readouterr().err == f"ladder: {told.format(*files)}\n"
    assert not (tmp_path / "noise.json").exists()


def test_wrong_usage_is_told_in_a_line(runs, tmp_path, capsys):
    for arguments, code, told in (
        ([runs[0]], 2, "noise is the difference between results: name two files or more"),
        ([runs[0], runs[0]], 2, f"ladder: {runs[0]}: the same file twice"),
        ([*runs, "--filter", "once"], 2, "no row was measured in two of the results"),
        ([runs[0], str(tmp_path / "none")], 3, f"{tmp_path / 'none'}: No such file or directory"),
    ):
        assert main(["noise", "-o", str(tmp_path / "n.json"), *arguments]) == code
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
    assert not any(tmp_path.glob("n.json*"))


@pytest.fixture
def compared(runs, tmp_path, capsys):
    """Compare two times of a row of that noise; return exit code, verdict and reason."""
    noise = str(tmp_path / "noise.json")
    assert main(["noise", *runs, "-o", noise]) == 0
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
        ({"spread": "wide"}, "quiet: Expected `float`, got `str` - at `$.spread`"),
        ({"processes": 1}, "quiet: no spread of two processes or more"),
    ],
)
def test_a_spread_that_is_no_fraction_is_refused(runs, tmp_path, capsys, changes, told):
    file = tmp_path / "noise.json"
    assert main(["noise", *runs, "-o", str(file)]) == 0
    document = json.loads(file.read_text())
    document["rows"]["quiet"] |= changes
    file.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["compare", runs[0], runs[1], "--noise", str(file)]) == 3
    assert capsys.readouterr().err == f"ladder: {file}: {told}\n"
