# SPDX-License-Identifier: MIT
"""Comparisons: verdicts, what is refused, and exit codes a CI job can rely on."""

import json

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from ladder.commands.cli import main


@pytest.fixture
def compared(tmp_path, capsys):
    """Compare two documents; return the exit code and the JSON report."""

    def compare(base: dict, head: dict, *options: str) -> tuple[int, dict]:
        files = [suite.write(tmp_path / f"{i}.json", d) for i, d in enumerate((base, head))]
        code = main(["compare", *map(str, files), "--format", "json", *options])
        return code, json.loads(capsys.readouterr().out)

    return compare


VERDICTS = {  # base, head, verdict, exit code
    "faster": (timed(100), timed(90), "FASTER", 0),
    "slower": (timed(100), timed(110), "SLOWER", 1),
    "same": (timed(1000), timed(1000.5), "SAME", 0),
    "noisy when quartiles overlap": (timed(100, 0.1), timed(110, 0.1), "NOISY", 0),
    "clock": (timed(100, clock=1.98e9), timed(110, clock=1.8e9), "CLOCK", 0),
    "clock that fell further": (timed(100, clock=2e9), timed(104, clock=1.8e9), "CLOCK", 0),
    "clock that rose": (timed(100, clock=1.8e9), timed(110, clock=2e9), "SLOWER", 1),
    "clock that explains nothing": (timed(100, clock=2e9), timed(110, clock=2e9), "SLOWER", 1),
    "a clock of zero": (timed(100, clock=2e9), timed(110) | {"sm_clock_hz": 0.0}, "SLOWER", 1),
    "throttled, mostly the clock": (
        timed(804, clock=1.722e9),
        timed(843, clock=1.622e9) | {"throttled": 1.0},
        "CLOCK",
        0,
    ),
    "throttled, hardly the clock": (
        timed(804, clock=1.722e9),
        timed(880, clock=1.69e9) | {"throttled": 1.0},
        "SLOWER",
        1,
    ),
    "throttled, the clock unknown": (timed(100), timed(110) | {"throttled": 1.0}, "CLOCK", 0),
    "throttled alike": (
        timed(100, clock=1.5e9) | {"throttled": 1.0},
        timed(110, clock=1.5e9) | {"throttled": 1.0},
        "SLOWER",
        1,
    ),
    "no quartiles": ({"real_time": 100.0}, {"real_time": 110.0}, "SLOWER", 1),
    "missing": (timed(100), None, "MISSING", 4),
    "new": (None, timed(100), "NEW", 0),
    "newly failing": (timed(100), FAILED, "ERROR", 4),
    "newly skipped": (timed(100), SKIPPED, "SKIPPED", 4),
    "still failing": (FAILED, FAILED, "ERROR", 0),
    "still skipped": (SKIPPED, SKIPPED, "SKIPPED", 0),
    "skipped, now failing": (SKIPPED, FAILED, "ERROR", 4),
    "fixed": (FAILED, timed(100), "NEW", 0),
}


@pytest.mark.parametrize(("base", "head", "verdict", "code"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts_and_exit_codes(compared, base, head, verdict, code):
    rows = [{"anchor": 500.0} | ({"x": fields} if fields else {}) for fields in (base, head)]
    got, report = compared(*map(document, rows))
    verdicts = {change["name"]: change["verdict"] for change in report["changes"]}
    assert verdicts == {"anchor": "SAME", "x": verdict}
    assert got == report["exit_code"] == code


def test_swapping_the_runs_swaps_the_verdict(compared):
    slow, fast = document({"x": timed(102.5)}), document({"x": timed(100)})
    for base, head, verdict in ((slow, fast, "FASTER"), (fast, slow, "SLOWER")):
        assert compared(base, head)[1]["changes"][0]["verdict"] == verdict


def test_the_ratio_is_of_speeds_and_the_threshold_is_the_users(compared):
    code, report = compared(document({"x": 100.0}), document({"x": 125.0}))
    assert code == 1
    assert report["changes"][0]["ratio"] == pytest.approx(0.8)
    code, report = compared(document({"x": 100.0}), document({"x": 125.0}), "--threshold", "0.3")
    assert code == 0
    assert report["changes"][0]["verdict"] == "SAME"


def test_a_regression_outranks_lost_coverage(compared):
    code, _ = compared(document({"x": 10.0, "gone": 1.0}), document({"x": 20.0}))
    assert code == 1


INCOMPARABLE = {
    "different GPUs": {"gpu_name": "NVIDIA A100"},
    "different cache modes": {"cache_mode": "warm"},
    "different build types": {"build_type": "Debug"},
}


@pytest.mark.parametrize(("told", "context"), INCOMPARABLE.items())
def test_what_is_incomparable_is_refused_unless_forced(compared, told, context):
    base, head = document({"x": 10.0}), document({"x": 5.0}, **context)
    code, report = compared(base, head)
    assert code == 5
    assert report["changes"] == []
    assert report["differences"][0].startswith(told)
    code, report = compared(base, head, "--force")
    assert code == 0
    assert [change["verdict"] for change in report["changes"]] == ["FASTER"]
    assert report["differences"][0].startswith(told)


def test_changed_time_units_are_converted_and_told(data, capsys):
    files = [str(data / "cases" / f"unit_{side}.json") for side in ("base", "head")]
    assert main(["compare", *files, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    verdicts = {change["name"]: change["verdict"] for change in report["changes"]}
    assert verdicts == {"BM_A": "SLOWER", "BM_B": "NOISY"}  # one process per side
    told = "different time units, converted: BM_B (s in base, ms in head)"
    assert (report["differences"], report["notes"]) == ([], [told])


def test_what_was_never_measured_is_not_lost_when_it_goes(data, tmp_path, capsys):
    files = [str(data / "cases" / f"removed_{side}.json") for side in ("base", "head")]
    xml = tmp_path / "junit.xml"
    assert main(["compare", *files, "--format", "json", "--junit", str(xml)]) == 0
    changes = {c["name"]: c for c in json.loads(capsys.readouterr().out)["changes"]}
    for name, reason in (
        ("BM_NeedsGpu", "never measured: skipped: no device"),
        ("BM_Broken", "never measured: error: no input file"),
    ):
        change = changes[name]
        assert (change["verdict"], change["lost"], change["reason"]) == ("MISSING", False, reason)
    assert 'tests="3" failures="0" errors="0" skipped="3"' in xml.read_text()


def test_containers_of_one_program_are_its_processes(data, capsys):
    folder = data / "cases/containers"
    sides = [sorted(map(str, folder.glob(f"{side}*"))) for side in ("base", "head")]
    command = ["compare", "--base", *sides[0], "--head", *sides[1], "--format", "json"]
    assert main(command) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["differences"], report["processes"]) == ([], [3, 3])
    assert [change["verdict"] for change in report["changes"]] == ["SLOWER", "SLOWER"]
    mean = report["geometric_mean"]
    assert mean == {"ratio": pytest.approx(1 / 1.1, rel=1e-3), "rows": 2}


def host(rows: dict[str, dict | float], **context) -> dict:
    """As `document`, of host code, which has no GPU."""
    made = document(rows)
    made["context"] = {"executable": "./bench", "num_cpus": 8, "mhz_per_cpu": 3000} | context
    return made


@pytest.mark.parametrize(
    ("base", "head", "notes"),
    [
        ({}, {"mhz_per_cpu": 3100}, []),
        ({"host_name": "a"}, {"host_name": "b"}, ["host_name: a in base, b in head"]),
        (
            {"caches": [{"size": 1}]},
            {"num_cpus": 4, "mhz_per_cpu": 2000, "caches": [{"size": 2}]},
            [
                "different machines: num_cpus 8 in base, 4 in head; other caches; "
                "mhz_per_cpu 3000 in base, 2000 in head"
            ],
        ),
        (
            {"cpu_scaling_enabled": True},
            {"cpu_scaling_enabled": True},
            ["CPU scaling was on in base and head: times follow the CPU's clock"],
        ),
        (
            {"library_build_type": "debug"},
            {"library_build_type": "debug"},
            ["Google Benchmark was built for debugging in base and head: its own time counts too"],
        ),
        (
            {"cublas_version": "13.0", "cub_version": "3.0"},
            {"cublas_version": "13.1", "cub_version": "3.0"},
            ["cublas_version: 13.0 in base, 13.1 in head"],
        ),
    ],
)
def test_what_makes_times_of_host_code_differ_is_noted(compared, base, head, notes):
    code, report = compared(host({"x": 100.0}, **base), host({"x": 100.0}, **head))
    assert (code, report["notes"], report["differences"]) == (0, notes, [])


def test_processes_of_other_machines_are_no_processes_of_one_program(tmp_path, capsys):
    for i, cpus in enumerate((8, 96)):
        suite.write(tmp_path / f"{i}.json", host({"x": 100.0}, num_cpus=cpus))
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 5
    assert "1 rows more than once: several programs, " in capsys.readouterr().out


def test_the_geometric_mean_is_of_all_rows_in_time_that_both_measured(compared):
    base = {"a": timed(100), "b": timed(100), "c": timed(100, 0.5), "gone": timed(9), "d": FAILED}
    head = {"a": timed(50), "b": timed(200), "c": timed(110, 0.5), "new": timed(9), "d": FAILED}
    head["b"]["registers"] = base["b"]["registers"] = 8.0
    _, report = compared(document(base), document(head), "--allow", "b")
    assert [c["verdict"] for c in report["changes"][:3]] == ["FASTER", "SLOWER", "NOISY"]
    assert report["geometric_mean"] == {"ratio": pytest.approx((1 / 1.1) ** (1 / 3)), "rows": 3}
    _, report = compared(document(base), document(head), "--metric", "registers")
    assert report["geometric_mean"] is None
    _, report = compared(document({"a": timed(1)}), document({"a": timed(1)}))
    assert report["geometric_mean"] is None


def test_a_few_slow_rows_of_a_suite_may_be_chance(compared):
    """A change that a single row shows, and that one of 200 equal rows shows now and then."""
    quiet = {f"row/{i}": timed(100) for i in range(200)}
    base, head = quiet | {"x": timed(100)}, quiet | {"x": timed(102)}
    code, report = compared(document({"x": base["x"]}), document({"x": head["x"]}))
    assert (code, report["changes"][0]["verdict"]) == (1, "SLOWER")
    assert 0.001 < report["changes"][0]["chance"] < 0.05
    code, report = compared(document(base), document(head))
    change = report["changes"][-1]
    assert (code, change["verdict"]) == (0, "NOISY")
    assert change["reason"] == "may be chance among 201 rows"
    code, report = compared(document(base), document(base | {"x": timed(110)}))
    assert (code, report["changes"][-1]["verdict"]) == (1, "SLOWER")
    slow = {name: timed(102) for name in base}  # all of them are no chance
    assert compared(document(base), document(slow))[0] == 1


def test_one_side_with_two_commits_is_refused(tmp_path, capsys):
    (tmp_path / "base").mkdir()
    for commit in ("aaa", "bbb"):
        path = tmp_path / "base" / f"{commit}.json"
        suite.write(path, document({"x": 10.0}, git_commit=commit))
    assert main(["compare", str(tmp_path / "base"), str(tmp_path / "base")]) == 5
    assert "more than once" in capsys.readouterr().out


def test_a_filter_can_leave_one_side_empty(compared):
    code, report = compared(document({"x": 1.0, "y": 1.0}), document({"y": 1.0}), "--filter", "x")
    assert code == 4
    assert [change["verdict"] for change in report["changes"]] == ["MISSING"]


def test_a_change_of_driver_is_noted_but_compared(compared):
    code, report = compared(
        document({"x": 1.0}, driver_version="13.0"), document({"x": 1.0}, driver_version="12.9")
    )
    assert code == 0
    assert report["notes"] == ["driver_version: 13.0 in base, 12.9 in head"]


@pytest.mark.parametrize(
    ("base", "boards"), [({"gpu_uuid": "GPU-1"}, True), ({"gpu_uuid": ""}, False)]
)
def test_other_boards_are_noted(compared, base, boards):
    _, report = compared(document({"x": 1.0}, **base), document({"x": 1.0}, gpu_uuid="GPU-2"))
    assert report["notes"][0].startswith("gpu_uuid: ")
    assert [note.partition(":")[0] for note in report["notes"][1:]] == ["different boards"] * boards


WITH = {"hardware_counters": "CUPTI 13.0, 9 passes"}


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        (WITH, {}, "CUPTI 13.0, 9 passes in base, none in head"),
        ({"hardware_counters": "none: no CUPTI"}, WITH, "none: no CUPTI in base, CUPTI 13.0"),
        (WITH, {"hardware_counters": "CUPTI 13.1, 8 passes"}, ""),
        ({"hardware_counters": "none: no CUPTI"}, {}, ""),
    ],
)
def test_counters_on_one_side_alone_are_noted(compared, base, head, told):
    code, report = compared(document({"x": 1.0}, **base), document({"x": 1.0}, **head))
    assert code == 0
    assert len(report["notes"]) == bool(told)
    assert all(note.startswith(f"hardware_counters: {told}") for note in report["notes"])


def test_a_file_against_itself_is_told_of_whatever_its_name(compared):
    one, other = (document({"a": timed(us)}, date=f"Monday, {us}") for us in (10, 11))
    assert compared(one, one)[1]["same_files"]
    assert not compared(one, other)[1]["same_files"]
    rungs = document({"a/x": timed(10), "b/x": timed(10)})
    assert not compared(rungs, rungs, "--map", "a=>b")[1]["same_files"]


def test_a_metric_that_only_other_rows_have_is_not_said_to_be_of_none(tmp_path, capsys):
    file = suite.write(tmp_path / "a.json", document({"x": 1.0, "y": timed(1) | {"joules": 2.0}}))
    asked = ["compare", str(file), str(file), "--metric", "joules", "--filter", "x"]
    assert main(asked) == 2
    assert "--metric joules: no row that --filter x matches has it\n" in capsys.readouterr().err
