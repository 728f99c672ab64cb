# SPDX-License-Identifier: MIT
"""What repetitions, processes and the kind of a row make of a verdict."""

import json
from pathlib import Path

import numpy as np
import pytest
import suite
from ladder.commands.cli import main
from ladder.stats import interval
from ladder.stats.interval import Pair, Process

CASES = Path(__file__).with_name("data") / "cases"
GPU = {"gpu_name": "NVIDIA H200"}


@pytest.fixture
def compared(tmp_path, capsys):
    """Compare repetitions of one row: a list a process; return the JSON report."""

    def compare(base: list[list[float]], head: list[list[float]], context: dict, us=1.0) -> dict:
        options = []
        for title, processes in (("base", base), ("head", head)):
            options.append(f"--{title}")
            for number, times in enumerate(processes):
                rows = [
                    {"name": "x", "run_name": "x", "run_type": "iteration", "time_unit": "us"}
                    | {"real_time": us * time, "repetitions": len(times), "repetition_index": i}
                    for i, time in enumerate(times)
                ]
                path = tmp_path / f"{title}{number}.json"
                document = {"context": context | {"date": str(path)}, "benchmarks": rows}
                options.append(str(suite.write(path, document)))
        main(["compare", *options, "--format", "json"])
        return json.loads(capsys.readouterr().out)

    return compare


def of_five(title: str) -> list[str]:
    return [str(CASES / "warmup_5_processes" / f"{title}{i}.json") for i in range(5)]


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ([str(CASES / "warmup_base.json")], [str(CASES / "warmup_head_2x_slower.json")]),
        (of_five("base"), of_five("head")),
    ],
    ids=["alone", "five"],
)
def test_a_doubling_is_found_behind_a_warm_up(capsys, base, head):
    assert main(["gate", "--base", *base, "--head", *head]) == 1
    assert capsys.readouterr().out.startswith("regression: 1 SLOWER")
    for options, begin in (([], "note: "), (["--format", "markdown"], "- note: ")):
        assert main(["compare", "--base", *base, "--head", *head, *options]) == 1
        (note,) = [line for line in capsys.readouterr().out.splitlines() if "warm-up" in line]
        assert note.startswith(f"{begin}warm-up: the first repetition")
        assert "Load 10 times" in note
    assert main(["compare", "--base", *base, "--head", *head, "--format", "json"]) == 1
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert change["warm_up"] == pytest.approx(10, rel=0.01)
    assert change["ratio"] == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("slow", range(3))
def test_one_slow_repetition_of_three_hides_no_change_of_half(compared, slow):
    times = [1.0, 1.004, 0.997]
    times[slow] *= 5
    for context in (GPU, {}):
        report = compared([times], [[1.5 * time for time in times]], context)
        assert [change["verdict"] for change in report["changes"]] == ["SLOWER"]
        (warm,) = [change["warm_up"] for change in report["changes"]]
        assert (warm is None) == (slow > 0)


def test_repetitions_that_scatter_are_no_warm_up():
    rng = np.random.default_rng(3)
    for deviation, most in ((0.02, 0.0), (0.1, 0.03)):
        drawn = np.exp(deviation * rng.standard_normal((1000, 5))).tolist()
        found = [interval.warm_up((Process(tuple(times)),)) for times in drawn]
        assert np.mean(np.isfinite(found)) <= most
    assert np.isnan(interval.warm_up((Process((9.0, 1.0)), Process((9.0,)))))


def test_most_processes_have_to_be_warmed_up():
    warm, quiet = Process((3.0, 1.0, 1.01)), Process((1.0, 1.0, 1.01))
    assert interval.warm_up((warm, warm, quiet)) == pytest.approx(3, rel=0.01)
    assert np.isnan(interval.warm_up((warm, quiet)))


def test_launches_are_supposed_of_gpus_alone(compared):
    """Of 100 ns that a CPU ran, half as long again is a change, and a tenth is its own noise."""
    base = [[1.0, 1.01, 0.99]]
    for context, change, verdict in (
        ({}, 1.5, "SLOWER"),
        ({}, 1.1, "NOISY"),
        (GPU, 1.1, "SLOWER"),
    ):
        head = [[change * time for time in base[0]]]
        (found,) = compared(base, head, context, us=0.1)["changes"]
        assert (found["verdict"], found["host"]) == (verdict, context == {})


def test_several_processes_outvote_what_is_supposed_of_a_cpu(compared):
    base = [[time] * 3 for time in (1.0, 1.003, 0.997)]
    head = [[1.03 * time for time in times] for times in base]
    (found,) = compared(base, head, {}, us=0.1)["changes"]
    assert found["verdict"] == "SLOWER"


def test_a_peer_that_the_cpu_runs_launches_nothing(tmp_path, capsys):
    names = ("scan/serial_cpu/n:1", "scan/naive/n:1")
    for title, us in (("base", 100.0), ("head", 110.0)):
        rows = [
            {"name": n, "run_name": n, "time_unit": "us", "real_time": us, "run_type": "iteration"}
            for n in names
        ]
        suite.write(tmp_path / f"{title}.json", {"context": GPU, "benchmarks": rows})
    main(["compare", *(str(tmp_path / f"{t}.json") for t in ("base", "head")), "--format", "json"])
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert [(c["verdict"], c["host"]) for c in changes] == [("NOISY", True), ("SLOWER", False)]


def test_sides_whose_processes_overlap_have_not_changed(compared):
    """Two modes a tenth apart, 5 and 0 against 2 and 3: Student's t alone is sure of a change."""
    modes = (1.0, 1.1)
    base = [[modes[0] * (1 + i / 1000)] * 3 for i in range(5)]
    head = [[modes[i > 1] * (1 + i / 1000)] * 3 for i in range(5)]
    (found,) = compared(base, head, {})["changes"]
    assert (found["verdict"], found["reason"]) == ("NOISY", "processes of the two sides overlap")


@pytest.mark.parametrize("count", [3, 5, 10])
def test_one_sample_of_any_size_moves_the_interval_no_further(count):
    """From three samples on, ten times as slow is no worse than a fifth slower."""
    quiet = np.exp(0.002 * np.random.default_rng(count).standard_normal(count))
    spans = []
    for times in (1.2, 10.0, 1000.0):
        slow = Process((*quiet[1:].tolist(), times))
        pair = Pair((slow,), (slow,), interval.default_spread(1e-3))
        ((_, low, high, _),) = interval.intervals([pair]).tolist()
        spans.append(high / low)
    assert spans[0] == pytest.approx(spans[1]) == pytest.approx(spans[2])


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 8, 10, 11, 20, 51])
def test_the_deviation_of_normal_samples_is_right_on_average(count):
    drawn = np.random.default_rng(1).standard_normal((20_000, count))
    found = interval.deviation(drawn)  # far beyond what counts as a second mode
    assert np.mean(found**2) == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("count", [3, 4, 5, 10, 20])
def test_a_lone_process_is_judged_by_its_samples_at_the_confidence_promised(count):
    """With nothing supposed, equal ones that scatter widely are called different as often as said.

    Not of three samples: they are given more freedom than they have, else they could tell nothing.
    """
    drawn = np.exp(np.random.default_rng(2).standard_normal((6000, 2, count))).tolist()
    nothing = interval.Spread(1e-9, 1)
    pairs = [Pair(*((Process(tuple(side)),) for side in row), nothing) for row in drawn]
    _, low, high, _ = interval.intervals(pairs).T
    assert np.mean((low > 1) | (high < 1)) <= (0.12 if count == 3 else 0.065)
