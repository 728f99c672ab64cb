# SPDX-License-Identifier: MIT
"""The registry of counters: ours, those that a file brings, and what is asked of any other."""

import re
from pathlib import Path

import pytest
import suite
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.model import counters
from ladder.model.errors import LadderError
from ladder.model.rows import COUNTERS
from ladder.stats import metrics

ROOT = Path(__file__).parents[2]


def test_what_no_registry_has_is_asked_for_and_follows_no_time():
    assert metrics.more_is_better("items_per_second")
    assert not metrics.more_is_better("cpu_time")
    assert metrics.more_is_better("GB/s", "more")
    assert not metrics.follows_time("GB/s")
    assert not metrics.is_exact("GB/s")
    with pytest.raises(LadderError, match="is less or more of it better"):
        metrics.more_is_better("GB/s")


@pytest.mark.parametrize("name", ["cpu_time", "registers", "fish"])
def test_what_is_no_speed_of_the_gpu_does_not_follow_its_time(name):
    assert not metrics.follows_time(name)


def test_each_counter_of_ours_is_known_with_all_that_is_asked_of_it():
    assert set(COUNTERS) <= set(counters.OWN)
    for counter in counters.OWN.values():
        assert counter.title
        if counter.name.endswith("_bytes"):
            assert counter.unit == "B"
        assert counter.unit.endswith("/s") == counter.name.endswith("_per_second")
        assert metrics.is_exact(counter.name) == (counter.kind == "property")


def test_what_the_committed_results_carry_and_rungs_aim_at_is_known():
    told = [path.read_text(encoding="utf-8") for path in ROOT.glob("kernels/*/ladder.cu")]
    found = {target for text in told for target in re.findall(r'\.target = "(\w+)"', text)}
    for path in ROOT.glob("results/*/study.json*"):
        columns = {name for row in load_results(path)[0].rows for name in row.counters}
        found |= {column for column in columns if not column.startswith("axis_")}
    assert found <= set(counters.OWN)
    assert "dram_bytes" in found


HEADER = "name,unit,kind,better,group,title"


def test_the_programs_write_the_same_registry_into_their_results():
    cmake = (ROOT / "cmake/build_info.cmake").read_text(encoding="utf-8")
    assert "scripts/ladder/model/counters.csv" in cmake
    context = ROOT / "benchmarks/program/context.cpp"
    assert f'"{counters.CONTEXT}", kCounters' in context.read_text(encoding="utf-8")


def suite_of(tmp_path, title, steadiness, registry):
    row = {"name": "x", "run_name": "x", "run_type": "iteration", "real_time": 1.0}
    row |= {"cpu_time": 1.0, "time_unit": "us", "iterations": 1, "steadiness": steadiness}
    context = {"date": title} | ({counters.CONTEXT: registry} if registry else {})
    return str(suite.write(tmp_path / f"{title}.json", {"context": context, "benchmarks": [row]}))


def test_a_file_says_which_way_its_own_counters_are_better(tmp_path, capsys):
    registry = f"since,{HEADER}\n3,steadiness,,property,more,Launch,how steady it is\n"
    files = [suite_of(tmp_path, side, value, registry) for side, value in (("a", 8.0), ("b", 4.0))]
    assert main(["compare", *files, "--metric", "steadiness"]) == 1
    assert "SLOWER" in capsys.readouterr().out
    files = [suite_of(tmp_path, side, 1.0, "") for side in ("c", "d")]
    assert main(["compare", *files, "--metric", "steadiness"]) == 2
    assert "is less or more of it better?" in capsys.readouterr().err


def test_a_speed_of_a_files_own_follows_the_time(tmp_path):
    registry = f"{HEADER}\nsteadiness,1/s,measurement,more,Launch,how steady it is\n"
    (results,) = load_results(suite_of(tmp_path, "a", 8.0, registry))
    assert metrics.follows_time("steadiness", results.registry)


def test_a_history_goes_by_what_its_files_say(tmp_path, capsys):
    registry = f"{HEADER}\nsteadiness,,property,more,Launch,how steady it is\n"
    files = [suite_of(tmp_path, side, value, registry) for side, value in (("a", 8.0), ("b", 4.0))]
    assert main(["trend", *files, "--metric", "steadiness", "--fail"]) == 1
    assert "SLOWER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("3", "counter None has no name"),
        ("name\nx", "counter x has no unit"),
        (f"{HEADER}\nx,,k,,Work,", "kind 'k' of counter x is not known"),
        (f"{HEADER}\nx,,count,up,Work,", "better 'up' of counter x is not known"),
        (f'{HEADER}\nx,,count,,Work,"', "unexpected end of data"),
    ],
)
def test_a_broken_registry_is_told_of(tmp_path, capsys, lines, told):
    file = suite_of(tmp_path, "a", 1.0, lines if "\n" in lines else f"what\n{lines}")
    assert main(["table", file]) == 3
    assert capsys.readouterr().err == f"ladder: {file}: context 'counter_registry': {told}\n"


@pytest.mark.parametrize("metric", ["overhead_percent", "fpr_percentage"])
def test_a_percentage_asks_which_way_is_better(data, capsys, metric):
    files = [str(data / "cases" / f"percent_{side}.json") for side in ("base", "head_worse")]
    assert main(["compare", *files, "--metric", metric]) == 2
    told = f"ladder: --metric {metric}: is less or more of it better? (--better less|more)\n"
    assert capsys.readouterr().err == told
    assert main(["compare", *files, "--metric", metric, "--better", "less"]) == 1
    assert "SLOWER" in capsys.readouterr().out


def test_a_bandwidth_that_fell_is_a_regression(data, capsys):
    files = [str(data / "cases" / f"percent_{side}.json") for side in ("base", "head_worse")]
    assert main(["compare", *files, "--metric", "bw", "--better", "more"]) == 1
    assert "SLOWER" in capsys.readouterr().out
