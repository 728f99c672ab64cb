# SPDX-License-Identifier: MIT
"""Distributions of two sides: percentiles, shapes and modes, which explain a verdict."""

import json
from pathlib import Path

import numpy as np
import pytest
import suite
from ladder.commands.cli import main
from ladder.stats import distribution

GPU = {"gpu_name": "NVIDIA H200"}
COUNT = 400


def drawn(seed: int, *, slow: float = 0.0, by: float = 1.08, us: float = 10.0) -> np.ndarray:
    """Times in us with 0.3 % of noise, a share of which takes longer."""
    random = np.random.default_rng(seed)
    return us * np.where(random.random(COUNT) < slow, by, 1.0) * random.normal(1, 0.003, COUNT)


def write(path: Path, rows: dict[str, np.ndarray], *, kept: bool = True, **more: str) -> str:
    """Write results of a repetition a row, with their samples beside them."""
    entries, lines = [], []
    for name, times in rows.items():
        named = {"name": f"{name}/manual_time", "run_name": f"{name}/manual_time"}
        time = {"real_time": float(np.median(times)), "time_unit": "us"}
        entries.append(named | time | {"run_type": "iteration"})
        lines.append(json.dumps({"name": name, "nanoseconds": [1000 * t for t in times]}))
    suite.write(path, {"context": GPU | more, "benchmarks": entries})
    if kept:
        path.with_name(f"{path.stem}.samples.jsonl").write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def compared(tmp_path, capsys):
    """Compare rows of two sides; return the exit code and the JSON report."""

    def compare(base: dict, head: dict, *options: str, **more) -> tuple[int, dict]:
        sides = [write(tmp_path / f"{s}.json", r, **more) for s, r in (("a", base), ("b", head))]
        code = main(["compare", *sides, "--format", "json", "--distribution", *options])
        return code, json.loads(capsys.readouterr().out)

    return compare


def test_a_second_mode_is_seen_where_medians_are_the_same(compared):
    code, report = compared({"x": 100 * drawn(1)}, {"x": 100 * drawn(2, slow=0.3)})
    (change,) = report["changes"]
    found = change["distribution"]
    assert (code, change["verdict"]) == (0, "SAME")  # explained, and not changed
    assert (found["of"], found["base_count"], found["head_count"]) == ("samples", COUNT, COUNT)
    assert [found["p10"], found["p50"]] == pytest.approx([1, 1], abs=0.005)
    assert found["p90"] == pytest.approx(1 / 1.08, abs=0.005)
    assert found["differ"]
    assert found["kolmogorov_smirnov"] > 0.2
    assert found["base_modes"] == []
    low, high = found["head_modes"]
    assert (low["seconds"], high["seconds"]) == pytest.approx((1e-3, 1.08e-3), rel=0.01)
    assert (low["share"], high["share"]) == pytest.approx((0.7, 0.3), abs=0.06)


@pytest.mark.parametrize("slow", [0.0, 0.03, 0.5])
def test_equal_shapes_are_alike_however_fast(compared, slow):
    """Also of outliers, and of two modes of which the median jumps between."""
    _, report = compared({"x": drawn(3, slow=slow)}, {"x": 0.8 * drawn(4, slow=slow)})
    (change,) = report["changes"]
    assert change["verdict"] == "FASTER"
    assert change["distribution"]["differ"] is False
    assert change["distribution"]["p10"] == pytest.approx(1.25, rel=0.01)


def test_a_row_whose_shape_differs_is_listed_though_it_has_not_changed(tmp_path, capsys):
    equal, other = drawn(1), drawn(2, slow=0.3)
    base = write(tmp_path / "a.json", {"same": equal, "x": equal})
    head = write(tmp_path / "b.json", {"same": equal, "x": other})
    for form in ("text", "markdown"):
        assert main(["compare", base, head, "--distribution", "--format", form]) == 0
        said = capsys.readouterr().out
        (line,) = [line for line in said.splitlines() if "modes" in line]
        assert {"x", "p10"} <= set(said.replace("|", " ").split())
        assert {"differ", "10.8"} <= set(line.replace(";", " ").split())
        assert "same" not in said
    assert main(["compare", base, head]) == 0
    assert "p10" not in capsys.readouterr().out


def test_repetitions_stand_in_for_samples_and_a_line_says_so(tmp_path, capsys):
    times = {"base": (10.0, 10.1, 10.2), "head": (11.0, 11.1, 11.2)}
    files = []
    for side, repetitions in times.items():
        files.append(f"--{side}")
        for i, time in enumerate(repetitions):
            path = tmp_path / f"{side}{i}.json"
            files.append(write(path, {"x": np.array([time])}, kept=side == "base"))
    main(["compare", *files, "--distribution", "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    found = report["changes"][0]["distribution"]
    assert (found["of"], found["base_count"], found["head_count"]) == ("repetitions", 3, 3)
    assert found["differ"] is None  # of three nobody knows
    (told,) = [note for note in report["notes"] if "samples" in note]
    assert told.startswith("head")


def test_one_repetition_without_samples_has_no_distribution(compared):
    _, report = compared({"x": drawn(1)}, {"x": drawn(2)}, kept=False)
    assert report["changes"][0]["distribution"] is None
    assert sum("samples" in note for note in report["notes"]) == 2


def test_rows_are_matched_as_they_are_compared(compared):
    rows = {"a/one/n:1": drawn(1), "a/two/n:1": drawn(2, slow=0.3)}
    _, report = compared(rows, rows, "--map", "a/one=>a/two")
    (change,) = report["changes"]
    assert change["distribution"]["differ"]


@pytest.mark.parametrize("more", [["--metric", "registers"], ["--quiet"]])
def test_what_there_are_no_samples_of_is_refused_in_a_line(tmp_path, capsys, more):
    files = [write(tmp_path / f"{i}.json", {"x": drawn(i)}) for i in range(2)]
    assert main(["compare", *files, "--distribution", *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--distribution" in line


@pytest.mark.parametrize("count", [50, 100, 1000])
def test_what_has_one_mode_is_seldom_said_to_have_two(count):
    random = np.random.default_rng(count)
    draws = {
        "normal": lambda: random.normal(1, 0.02, count),
        "drift": lambda: np.linspace(1, 1.1, count) + random.normal(0, 0.005, count),
        "uniform": lambda: random.uniform(1, 1.2, count),
        "tail": lambda: 1 + 0.1 * random.exponential(size=count),
        "outliers": lambda: np.where(
            random.random(count) < 0.05, 2, random.normal(1, 0.005, count)
        ),
    }
    for name, draw in draws.items():
        wrong = sum(bool(distribution.modes(draw(), 0.01)) for _ in range(200)) / 200
        assert wrong < (0.1 if count == 50 else 0.03), name
