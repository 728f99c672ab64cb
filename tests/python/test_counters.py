# SPDX-License-Identifier: MIT
"""The registry of counters: what it knows of ours, and what it tells of foreign names, or asks."""

import re
from pathlib import Path

import pytest
import suite
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.model import counters
from ladder.model.rows import COUNTERS
from ladder.stats import metrics

ROOT = Path(__file__).parents[2]
MORE = """GFLOPS gflops TFLOP/s FLOPS GB/s MB/s KiB/s MBps GB_s ops/s Mops rows/s 1/s items_per_sec
    items_per_second bytesPerSec edges_per_second qps IPC instructions_per_cycle speedup bw
    bandwidth_gb throughput cache_hits hit_rate cpu_utilization""".split()
LESS = """latency_us p99_latency_us latency_p99 time_ms cpu_time_ms parse_ns p99_us elapsed_s CPI
    cycles_per_byte ns/op allocs_per_iter max_bytes_used total_allocated_bytes net_heap_growth
    peak_memory peak_memory_mb peak_rss_kb CYCLES CACHE-MISSES branch_misses relative_err_stddev
    l2_error collisions""".split()
ASKED = """percent fpr_percentage overhead_percent hit% items/real_time Bytes/CpuTime X/time
    collision_rate collisions/s collisions_per_second misses_per_sec miss_rate error_ratio
    conflicts_per_iter rate_of_misses throughput_loss rate ratio load_factor free_memory bytes
    bytes_per_iter size n time_steps uptime fish""".split()


@pytest.mark.parametrize(
    ("name", "better"),
    [(n, b) for b, names in (("more", MORE), ("less", LESS), ("", ASKED)) for n in names],
)
def test_foreign_names_tell_a_direction_or_ask(name, better):
    assert name not in counters.OWN or name == "items_per_second"
    assert counters.better(name) == better


@pytest.mark.parametrize("name", ["GB/s", "GFLOPS", "edges_per_second", "ops_per_sec"])
def test_foreign_speeds_follow_the_time(name):
    assert metrics.follows_time(name)
    assert not metrics.is_exact(name)


@pytest.mark.parametrize("name", ["IPC", "latency_us", "cpu_time", "registers", "fish"])
def test_what_is_no_speed_of_the_gpu_does_not(name):
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
    assert main(["compare", *files, "--metric", "bw"]) == 1
    assert "SLOWER" in capsys.readouterr().out
