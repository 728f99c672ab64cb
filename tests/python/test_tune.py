# SPDX-License-Identifier: MIT
"""Crossovers: found from both ways measured, written to a file, read again."""

import math
import sys
import tomllib

import pytest
from ladder.analysis import crossovers
from ladder.analysis.crossovers import Probe, best, find, held_out
from ladder.commands.cli import main
from ladder.model.errors import ResultError

STAND_IN = """#!{python}
import json, re, sys
flags = dict(flag.partition("=")[::2] for flag in sys.argv[1:])
if "--help" in flags:
    print("--cases=CASES --ceilings=BOOL")
    sys.exit()
assert "--tune" in flags and flags["--ceilings"] == "false"
if "--cases" in flags:
    sys.exit("--tune has its own shapes")
times = {{1: (5, 9), 2: (5, 7), 4: (5, 4), 8: (5, 3)}}
rows = {{
    f"{{ladder}}/fastest/n:{{n}}/ring_from:{{side}}/manual_time": (n, times[n][place])
    for ladder in ("scan", "sum") for n in times for place, side in enumerate(("below", "above"))
}}
chosen = [name for name in rows if re.search(flags.get("--benchmark_filter", "."), name)]
if "--benchmark_list_tests" in flags:
    print("\\n".join(chosen))
    sys.exit(0 if chosen else "Failed to match any benchmarks")
context = {{"gpu_name": 'A "GPU"', "compute_capability": "9.0", "git_commit": "abc"}}
benchmarks = [
    {{"name": name, "run_name": name, "real_time": 1.0, "time_unit": "us", "iterations": 1,
      "median_seconds": 1e-6 * rows[name][1], "crossover_size": rows[name][0],
      "crossover_value": 2.0}} for name in chosen
]
with open(flags["--benchmark_out"], "w") as file:
    json.dump({{"context": context, "benchmarks": benchmarks}}, file)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "bench"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return path


def probes(*times, repeat=1):
    """Probes of sizes 1, 2, 4 and so on, with the times of both ways."""
    return [Probe("", 2.0**i, *pair) for i, pair in enumerate(times) for _ in range(repeat)]


@pytest.mark.parametrize(
    ("times", "before", "value"),
    [
        ([(1, 2), (1, 2), (2, 1), (2, 1)], 7, math.sqrt(8)),
        ([(1, 2), (1, 2)], 2, 2.002),  # beyond the last probe nothing is known
        ([(1, 2), (1, 2)], 7, 7),
        ([(1, 2), (1, 2)], math.inf, 2.002),
        ([(2, 1), (2, 1)], 2, 0.999),
        ([(2, 1), (2, 1)], 0, 0.999),
        ([(2, 1), (2, 1)], 0.5, 0.5),
        ([(1, 2), (2, 1), (1, 1.1), (2, 1)], 7, math.sqrt(2)),  # one that does not fit is outvoted
        ([(1, 1), (1, 1.001), (1.001, 1)], 3, 3),  # no way is better: what was there stays
    ],
)
def test_the_value_loses_the_least_time(times, before, value):
    assert best(probes(*times), before) == pytest.approx(value, rel=1e-5)


def test_rounding_leaves_no_probe_on_the_wrong_side():
    for size in (128 / 132, 128 / 108, 2.0**20):
        assert best([Probe("", size, 2, 1)], before=2 * size) <= size
        assert best([Probe("", size, 1, 2)], before=size / 2) > size


def test_a_value_that_is_as_good_stays():
    found = probes((1, 2), (1, 2), (2, 1))
    assert best(found, before=3.9) == 3.9
    assert best(found, before=4.1) != 4.1


def test_what_is_held_out_is_held_against_the_faster_way():
    fitting = probes((1, 2), (1, 2), (1, 2), (2, 1), (2, 1), (2, 1))
    rows = {
        f"l/c/n:{i}/x_from:{side}/manual_time": [
            {"median_seconds": s, "crossover_size": p.size, "crossover_value": 0}
        ]
        for i, p in enumerate(fitting)
        for side, s in (("below", p.below), ("above", p.above))
    }
    (found,) = find(rows)
    assert (found.name, found.before) == ("l.x_from", 0.0)
    assert found.value == pytest.approx(math.sqrt(32), rel=1e-5)
    assert found.gain() == pytest.approx(2**0.5 - 1)
    assert held_out([found], 0.03) == (5, 6)  # of size 4, half of them tell nothing


def test_a_probe_without_one_side_tells_nothing():
    row = [{"median_seconds": 1.0, "crossover_size": 1, "crossover_value": 1}]
    failed = [{"error_occurred": True, "error_message": "wrong", "real_time": 0}]
    assert find({"l/c/n:1/x:below": row, "l/c/n:1/x:above": failed}) == []
    assert find({"l/c/n:1/x:below": row, "l/c/n:2": row}) == []


def test_both_ways_are_measured_and_the_file_says_so(program, tmp_path, capsys):
    out = tmp_path / "results" / "tuning.toml"
    assert main(["tune", "--program", str(program), "-o", str(out)]) == 0
    found = tomllib.loads(out.read_text())
    assert found["gpu"] == 'A "GPU"'
    assert found["compute_capability"] == 90
    assert found["scan"] == found["sum"] == {"ring_from": pytest.approx(math.sqrt(8), rel=1e-5)}
    assert len(found["measured"]) == 8
    probe = {"crossover": "scan.ring_from", "case": "n:8", "size": 8}
    assert probe | {"below_us": 5, "above_us": 3} in found["measured"]
    shown = capsys.readouterr().out
    assert "scan.ring_from" in shown
    assert "8.8% faster" in shown  # at one of four probes 7 instead of 5


def test_what_is_not_measured_stays(program, tmp_path):
    out = tmp_path / "tuning.toml"
    probe = "crossover = '{}.ring_from'\ncase = 'n:1'\nsize = 1\nbelow_us = 2.5\nabove_us = 3\n"
    probes = [f"[[measured]]\n{probe.format(name)}" for name in ("sum", "scan")]
    values = "[sum]\nring_from = 77\n[scan]\nring_from = 1\n[gemm]\nx = inf\ny = 751619276.8\n"
    out.write_text("gpu = 'A'\n" + values + "".join(probes))
    assert main(["tune", "scan", "--program", str(program), "-o", str(out)]) == 0
    found = tomllib.loads(out.read_text())
    kept, *new = found["measured"]
    assert kept == {"crossover": "sum.ring_from", "case": "n:1", "size": 1, "below_us": 2.5} | {
        "above_us": 3
    }
    assert {each["crossover"] for each in new} == {"scan.ring_from"}
    assert len(new) == 4
    assert found["sum"] == {"ring_from": 77}
    assert found["gemm"] == {"x": math.inf, "y": 751619276.8}
    assert found["scan"]["ring_from"] == pytest.approx(math.sqrt(8), rel=1e-5)


@pytest.mark.parametrize(
    "text",
    ["gpu = ", "measured = 3\n", "[[measured]]\nsize = 1\n", "[[measured]]\ncrossover = []\n"],
)
def test_a_broken_file_is_told_before_anything_is_measured(program, tmp_path, capsys, text):
    out = tmp_path / "tuning.toml"
    out.write_text(text)
    program.write_text("#!/bin/sh\nexit 1\n")
    assert main(["tune", "--program", str(program), "-o", str(out)]) == ResultError.exit_code
    assert str(out) in capsys.readouterr().err
    assert out.read_text() == text


def test_an_unknown_ladder_is_told(program, tmp_path, capsys):
    out = tmp_path / "tuning.toml"
    assert main(["tune", "nothing", "--program", str(program), "-o", str(out)]) == 2
    assert "'nothing' has no crossover to tune: scan, sum have" in capsys.readouterr().err
    assert not out.exists()


def test_a_value_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "tuning.toml"
    path.write_text("[scan]\nring_from = '3'\n")
    with pytest.raises(ResultError, match=r"tuning\.toml: scan\.ring_from is not a number"):
        crossovers.read(path)
