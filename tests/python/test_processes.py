# SPDX-License-Identifier: MIT
"""Comparisons of several processes per side, of any counter, of rungs; the gate and JUnit."""

import json
from xml.etree import ElementTree as Xml

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from ladder.commands.cli import main


@pytest.fixture
def files(tmp_path):
    """Write documents as files, and return their paths."""

    def write(*documents: dict, side: str = "side") -> list[str]:
        return [
            str(suite.write(tmp_path / f"{side}-{number}.json", content))
            for number, content in enumerate(documents)
        ]

    return write


@pytest.fixture
def compared(files, capsys):
    """Compare two lists of documents; return the exit code and the JSON report."""

    def compare(base: list[dict], head: list[dict], *options: str) -> tuple[int, dict]:
        sides = ["--base", *files(*base, side="base"), "--head", *files(*head, side="head")]
        code = main(["compare", *options, *sides, "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return compare


def runs(*times: float, name: str = "x") -> list[dict]:
    return [document({name: timed(us)}) for us in times]


def only(report: dict) -> dict:
    (change,) = report["changes"]
    return change


def test_processes_stay_apart_and_their_spread_is_the_noise(compared):
    quiet, wild = runs(100, 100.1, 99.9), runs(100, 108, 93)
    code, report = compared(quiet, runs(103, 103.1, 102.9))
    assert (code, only(report)["verdict"]) == (1, "SLOWER")
    assert report["processes"] == [3, 3]
    assert only(report)["ratio"] == pytest.approx(100 / 103)
    assert only(report)["low"] < 100 / 103 < only(report)["high"] < 0.99
    code, report = compared(wild, runs(103, 111, 96))
    assert (code, only(report)["verdict"]) == (0, "NOISY")


def test_more_processes_make_the_interval_narrower(compared):
    widths = []
    for count in (1, 2, 4, 8):
        times = [100 + 0.2 * (-1) ** i for i in range(count)]
        change = only(compared(runs(*times), runs(*times))[1])
        widths.append(change["high"] - change["low"])
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.5 * widths[0]


def test_short_rows_need_more_than_a_mode_of_launches(compared):
    """One process per side; three of each tell what one cannot."""
    assert only(compared(runs(6.0), runs(6.24))[1])["verdict"] == "NOISY"
    assert only(compared(runs(6.0), runs(6.7))[1])["verdict"] == "SLOWER"
    few = only(compared(runs(6, 6.01, 6), runs(6.4, 6.4, 6.41))[1])
    assert few["verdict"] == "SLOWER"
    many = only(compared(runs(*[6, 6.01] * 8), runs(*[6, 6.01] * 8))[1])
    assert many["verdict"] == "SAME"


def test_confidence_widens_the_interval(compared):
    widths = []
    for confidence in ("0.8", "0.95", "0.99"):
        change = only(compared(runs(100), runs(100), "--confidence", confidence)[1])
        widths.append(change["high"] - change["low"])
    assert widths == sorted(widths)
    assert widths[1] == pytest.approx(0.0174, abs=1e-4)  # 0.7 % of the process, 0.5 % of samples


def test_a_process_that_fails_a_row_fails_it(compared):
    head = [
        document({"x": timed(100), "y": timed(1000)}),
        document({"x": FAILED, "y": timed(1000)}),
    ]
    code, report = compared([document({"x": timed(100), "y": timed(1000)})], head)
    assert code == 4
    assert [(c["name"], c["verdict"]) for c in report["changes"]] == [
        ("x", "ERROR"),
        ("y", "SAME"),
    ]


def test_a_file_given_twice_is_one_process(files, capsys):
    (path,) = files(document({"x": timed(100)}))
    sides = ["--base", path, path, "--head", path]
    assert main(["compare", *sides, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["processes"] == [1, 1]


def test_repetitions_are_samples_of_their_process(compared):
    def repeated(*times: float) -> list[dict]:
        rows = [
            {"name": "x", "run_name": "x", "run_type": "iteration", "time_unit": "us"}
            | {"real_time": us, "repetitions": len(times), "repetition_index": i}
            for i, us in enumerate(times)
        ]
        return [{"context": {"gpu_name": "NVIDIA H200"}, "benchmarks": rows}]

    for times, verdict in (
        ((100, 100.1, 99.9, 100, 100.1), "SLOWER"),
        ((100, 110, 90, 104, 95), "NOISY"),
    ):
        report = compared(repeated(*times), repeated(*(1.03 * us for us in times)))[1]
        assert only(report)["verdict"] == verdict
        assert only(report)["ratio"] == pytest.approx(1 / 1.03)
        assert report["processes"] == [1, 1]


def test_aggregates_alone_have_their_deviation(compared):
    def aggregates(median: float, deviation: float) -> list[dict]:
        common = {"run_name": "x", "run_type": "aggregate", "time_unit": "us", "repetitions": 9}
        values = {"mean": median, "median": median, "stddev": deviation}
        rows = [
            common | {"name": f"x_{n}", "aggregate_name": n, "real_time": v}
            for n, v in values.items()
        ]
        return [{"context": {"gpu_name": "NVIDIA H200"}, "benchmarks": rows}]

    assert only(compared(aggregates(100, 0.1), aggregates(103, 0.1))[1])["verdict"] == "SLOWER"
    assert only(compared(aggregates(100, 9.0), aggregates(103, 9.0))[1])["verdict"] == "NOISY"


def test_a_counter_that_aggregates_lack_is_told(data, capsys):
    path = str(data / "aggregates_only.json")
    assert main(["compare", path, path, "--metric", "dram_bytes"]) == 2
    assert "--metric dram_bytes: no row has it" in capsys.readouterr().err


def test_of_many_hosts_one_is_named(compared):
    nodes = [document({"x": timed(100)}, host_name=f"node{i}") for i in range(5)]
    _, report = compared(nodes, [document({"x": timed(100)}, host_name="other")])
    assert "host_name: node0 and 4 more in base, other in head" in report["notes"]


def counted(**counters: float) -> list[dict]:
    return [document({"x": timed(100) | counters, "plain": timed(100)})]


@pytest.mark.parametrize(
    ("metric", "base", "head", "verdict", "ratio"),
    [
        ("dram_bytes", 100.0, 110.0, "SLOWER", 100 / 110),
        ("bytes_per_second", 1e12, 1.1e12, "FASTER", 1.1),
        ("items_per_second", 1e6, 0.9e6, "SLOWER", 0.9),
        ("achieved_occupancy", 0.5, 0.6, "FASTER", 1.2),
        ("percent_of_ceiling", 50.0, 45.0, "SLOWER", 0.9),
        ("stall_long_scoreboard", 0.5, 0.25, "FASTER", 2.0),
        ("registers", 64.0, 65.0, "SLOWER", 64 / 65),  # exact: one run is enough
        ("registers", 64.0, 64.0, "SAME", 1.0),
        ("dram_bytes", 1000.0, 1012.0, "NOISY", 1000 / 1012),
        ("shared_load_conflicts", 0.0, 0.0, "SAME", 1.0),
        ("shared_load_conflicts", 0.0, 32.0, "SLOWER", 0.0),
        ("shared_load_conflicts", 32.0, 0.0, "FASTER", None),
        ("relative_error", -1.0, 1.0, "NOISY", None),
    ],
)
def test_any_counter_is_compared_the_way_that_is_better(
    compared, metric, base, head, verdict, ratio
):
    code, report = compared(
        counted(**{metric: base}), counted(**{metric: head}), "--metric", metric
    )
    change, other = report["changes"]
    assert change["verdict"] == verdict
    assert change["ratio"] == (None if ratio is None else pytest.approx(ratio))
    assert code == (verdict == "SLOWER")
    assert (change["base_value"], change["head_value"]) == (base, head)
    assert (other["verdict"], other["reason"]) == ("SKIPPED", f"no {metric}")
    assert other["unchanged"]


def test_a_counter_that_is_gone_is_lost(compared):
    code, report = compared(counted(dram_bytes=9.0), counted(), "--metric", "dram_bytes", "--force")
    assert code == 4
    assert report["changes"][0]["lost"]


def test_an_unknown_direction_is_asked_for(compared, files, capsys):
    paths = files(*counted(fish=9.0), *counted(fish=12.0))
    assert main(["compare", *paths, "--metric", "fish"]) == 2
    told = "ladder: --metric fish: is less or more of it better? (--better less|more)\n"
    assert capsys.readouterr().err == told
    for better, verdict in (("less", "SLOWER"), ("more", "FASTER")):
        options = "--metric", "fish", "--better", better
        report = compared(counted(fish=9.0), counted(fish=12.0), *options)[1]
        assert report["changes"][0]["verdict"] == verdict


def test_emulated_requests_are_exact_but_not_against_measured_ones(compared):
    emulated = [document({"x": {"shared_load_wavefronts": 64.0}}, emulated="true")]
    more = [document({"x": {"shared_load_wavefronts": 65.0}}, emulated="true")]
    option = "--metric", "shared_load_wavefronts"
    assert only(compared(emulated, more, *option)[1])["verdict"] == "SLOWER"
    code, report = compared(emulated, counted(shared_load_wavefronts=64.0), *option)
    assert code == 5
    assert report["differences"][0] == "different sources: emulated in base, timed in head"


LADDER = {f"sgemm/{r}/n:{n}": timed(t) for r, n, t in (("a", 1, 100), ("a", 2, 200))}


def test_rungs_are_compared_case_by_case_also_within_a_file(files, capsys):
    rows = LADDER | {"sgemm/b/n:1": timed(80), "sgemm/b/n:3": timed(9), "sgemm/ab/n:1": timed(1)}
    (path,) = files(document(rows))
    assert main(["compare", path, path, "--map", "sgemm/a=>sgemm/b", "--format", "json"]) == 4
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert [(c["name"], c["verdict"]) for c in changes] == [
        ("sgemm/a=>sgemm/b/n:1", "FASTER"),
        ("sgemm/a=>sgemm/b/n:2", "MISSING"),
        ("sgemm/a=>sgemm/b/n:3", "NEW"),
    ]
    options = ["--map", "sgemm/a=>sgemm/b", "--filter", "n:1"]
    assert main(["gate", path, path, *options]) == 0
    assert capsys.readouterr().out.startswith("pass: 1 FASTER (")


def test_a_filter_that_finds_nothing_is_told(files, capsys):
    (path,) = files(document(LADDER))
    assert main(["compare", path, path, "--filter", "fft"]) == 2
    assert capsys.readouterr().err == "ladder: --filter fft: no row matches\n"


def test_a_map_that_fits_nothing_is_told(files, capsys):
    (path,) = files(document(LADDER))
    for text, told in (
        ("sgemm/c=>sgemm/a", "no row of base begins with sgemm/c"),
        ("sgemm/a=>sgemm/c", "no row of head begins with sgemm/c"),
        ("sgem=>sgemm", "no row of base begins with sgem"),
    ):
        assert main(["compare", path, path, "--map", text]) == 2
        assert capsys.readouterr().err == f"ladder: --map {text}: {told}\n"


MIXED = {"slow": timed(100), "gone": timed(100), "bad": timed(100), "old": FAILED, "no": SKIPPED}
HEAD = MIXED | {"slow": timed(120), "bad": FAILED, "new": timed(1)}
del HEAD["gone"]
TERMS = "threshold 1%, 95% intervals, 1 process per side"


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        ([], 1, "regression: 1 SLOWER, 2 ERROR, 1 MISSING, 1 NEW, 1 SKIPPED"),
        (
            ["--allow", "slow"],
            4,
            "lost coverage: 1 SLOWER, 2 ERROR, 1 MISSING, 1 NEW, 1 SKIPPED; 1 of them allowed",
        ),
        (
            ["--allow", "slow", "--allow-lost"],
            0,
            "pass: 1 SLOWER, 2 ERROR, 1 MISSING, 1 NEW, 1 SKIPPED; 3 of them allowed",
        ),
        (["--filter", "old|no$"], 0, "pass: 1 ERROR, 1 SKIPPED"),
    ],
)
def test_the_gate_is_one_line_and_an_exit_code(files, capsys, options, code, line):
    assert main(["gate", *files(document(MIXED), document(HEAD)), *options]) == code
    out = capsys.readouterr().out
    assert out.startswith(f"{line} (")
    assert out.count("\n") == 1


def test_the_gate_refuses_what_is_incomparable(files, capsys):
    paths = files(document(MIXED), document(MIXED, cache_mode="warm"))
    assert main(["gate", *paths]) == 5
    told = "incomparable: different cache modes: cold in base, warm in head\n"
    assert capsys.readouterr().out == told
    assert main(["gate", *paths, "--force"]) == 0
    assert ", compared by force" in capsys.readouterr().out


def test_other_inputs_are_incomparable(files, capsys):
    one, two = ({"input_distribution": name} for name in ("uniform", "zipf"))
    rows = {"x": timed(100)}
    assert main(["gate", *files(document(rows, **one), document(rows, **two))]) == 5
    assert "different inputs: uniform in base, zipf in head" in capsys.readouterr().out
    assert main(["gate", *files(document(rows, **one), document(rows))]) == 0


def test_junit_fails_what_the_exit_code_tells_of(files, tmp_path, data):
    path = tmp_path / "junit.xml"
    rows = {"clock": timed(100, clock=2e9), "bell\x07": timed(100)}
    head = {"clock": timed(110, clock=2e9 / 1.1), "bell\x07": timed(100)}
    paths = files(document(MIXED | rows), document(HEAD | head))
    assert main(["gate", *paths, "--junit", str(path), "--allow", "bad"]) == 1
    assert path.read_text() == (data / "junit.xml").read_text()
    suite = Xml.parse(path).getroot()
    assert {case.get("name") for case in suite if case.find("failure") is not None} == {
        "slow",
        "gone",
    }


def test_junit_of_a_refusal_is_in_error(files, tmp_path):
    path = tmp_path / "junit.xml"
    paths = files(document(MIXED), document(MIXED, gpu_name="NVIDIA A100"))
    assert main(["gate", *paths, "--junit", str(path)]) == 5
    root = Xml.parse(path).getroot()
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    assert main(["gate", *paths, "--junit", str(tmp_path / "no" / "junit.xml")]) == 2


@pytest.mark.parametrize(
    "arguments", [[], ["a"], ["a", "b", "c"], ["a", "b", "--base", "c"], ["--base", "c"]]
)
def test_sides_are_given_in_one_form(arguments, capsys):
    assert main(["gate", *arguments]) == 2
    told = "ladder: either BASE and HEAD, or --base RESULTS... and --head RESULTS...\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    "arguments",
    [
        ["--confidence", "1"],
        ["--confidence", "0.1"],
        ["--map", "a"],
        ["--map", "=>b"],
        ["--allow", "("],
        ["--better", "bigger"],
        ["--format", "text"],
    ],
)
def test_wrong_options_exit_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["gate", "x", "y", *arguments])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", ["compare {0} {0}", "gate {0} {0}", "trend {0}"])
@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("dram_byte", "nearest: dram_bytes"),
        ("lanes", "nearest: active_lanes"),
        ("time", "nearest: cpu_time, real_time"),
        ("fish", "there are: active_lanes, cpu_time, dram_bytes, "),
    ],
)
def test_metrics_are_named_where_no_row_has_the_one_asked_for(files, capsys, command, metric, told):
    (path,) = files(*counted(dram_bytes=9.0, active_lanes=32.0))
    assert main([*command.format(path).split(), "--metric", metric]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"ladder: --metric {metric}: no row has it; {told}")


@pytest.mark.parametrize("version", ["v1_7_1", "v1_8_3", "v1_9_1", "aggregates_only", "foreign"])
@pytest.mark.parametrize("metric", ["real_time", "cpu_time", "bytes_per_second"])
def test_every_dialect_does_not_change_against_itself(data, capsys, version, metric):
    file = str(data / f"{version}.json")
    assert main(["compare", file, file, "--metric", metric, "--format", "json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    ratios = [change["ratio"] for change in changes if change["ratio"]]
    assert ratios == [1] * len(ratios) != []


def test_of_many_metrics_that_are_near_a_dozen_are_named(files, capsys):
    (path,) = files(*counted(**{f"count_{n:02}": 1.0 for n in range(20)}))
    assert main(["trend", path, "--metric", "count"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ladder: --metric count: no row has it; nearest: count_00, count_01, ")
    assert err.endswith(", count_11 and 8 more\n")


@pytest.mark.parametrize("command", ["check", "compare x", "matrix", "plot", "table", "trend"])
def test_a_metric_without_a_name_is_refused(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "x", "--metric", ""])
    assert stop.value.code == 2
    assert "--metric: the name of a metric is empty" in capsys.readouterr().err
