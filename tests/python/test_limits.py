# SPDX-License-Identifier: MIT
"""What limits a row: that an expert would agree, and what happens where counters are missing."""

import math
from pathlib import Path

import limited
import pytest
import suite
from conftest import committed
from ladder.analysis import roofs
from ladder.analysis.limits import COUNTS_FROM, Limits
from ladder.analysis.study import studies
from ladder.io.results import load_results


@pytest.fixture
def judge(tmp_path):
    """Read a file of rows of "work"; return its limits and the rows by rung."""

    def read(*rows, **options):
        (results,) = load_results(
            suite.write(tmp_path / "a.json", limited.document(*rows, **options))
        )
        found = [row for row in results.rows if row.ladder == "work"]
        return Limits(results), {row.rung: row for row in found}

    return read


def reads(fraction):
    """Bytes of a kernel that reads DRAM at this fraction of its roof."""
    return {
        "dram_bytes": fraction * 4.6e9,
        "dram_read_bytes": fraction * 4.6e9,
        "dram_write_bytes": 0.0,
    }


CASES = {  # counters that differ from an idle kernel's: what limits it
    "reads": (reads(0.94), "DRAM 94%"),
    "copies": (
        {"dram_bytes": 3.852e9, "dram_read_bytes": 1.926e9, "dram_write_bytes": 1.926e9},
        "DRAM 90%",
    ),
    "writes": (
        {"dram_bytes": 3.96e9, "dram_read_bytes": 0.1e9, "dram_write_bytes": 3.86e9},
        "DRAM 90%",
    ),
    "too few bytes in flight": (
        reads(0.57) | {"stall_long_scoreboard": 0.92},
        "latency (memory 92%)",
    ),
    "bank conflicts": ({"shared_load_wavefronts": 140e6}, "shared memory 55%"),
    "L2": ({"l2_bytes": 5.2e9}, "L2 80%"),
    "hits in L1": ({"global_load_requests": 180e6}, "L1 71%"),
    "scattered loads": ({"l1_wavefronts": 250e6}, "L1 97%"),
    "wide loads": ({"l1_bytes": 26.32e9}, "L1 80%"),
    "another block's memory": ({"distributed_sectors": 82.5e6}, "distributed shared memory 80%"),
    "increments in another block's": (
        {"distributed_atomic_sectors": 54e6, "distributed_sectors": 54e6},
        "distributed atomics 90%",
    ),
    "instructions": ({"issue_utilisation": 0.67, **reads(0.5)}, "issue slots 67%"),
    "multiply-adds": ({"issue_utilisation": 0.9, "fp32_operations": 51.35e9}, "FP32 79%"),
    "too few multiply-adds": (
        {"issue_utilisation": 0.53, "fp32_operations": 22.1e9},
        "issue slots 53%",
    ),
    "matrices": ({"tensor_utilisation": 0.92, "issue_utilisation": 0.2}, "tensor cores 92%"),
    "one address": (
        {"l2_atomic_utilisation": 0.8, "global_atomic_sectors": 1.36e6},
        "atomics 100%",
    ),
    "scattered atomics": (
        {"l2_atomic_utilisation": 0.56, "global_atomic_sectors": 90e6},
        "atomics 92%",
    ),
    "few warps": ({"achieved_occupancy": 0.24}, "latency at low occupancy (memory 60%)"),
    "stores": (
        {"stall_long_scoreboard": 0.2, "stall_drain": 0.59},
        "unexplained (stores to drain 59%; DRAM 12%, L2 9.2%)",
    ),
    "stalls that nobody counted": (
        {"stall_long_scoreboard": 0.3, "stall_barrier": 0.1, "stall_not_selected": 0.1},
        "latency",
    ),
    "tiny blocks": ({"grid_blocks": 1.44e6}, "block launches 90%"),
    "instructions beside loads": ({"issue_utilisation": 0.54, **reads(0.69)}, "DRAM 69%"),
    "operands of wgmma": ({"shared_wavefronts": 180.0e6}, "shared memory 70%"),
}


@pytest.mark.parametrize(("counters", "told"), CASES.values(), ids=CASES)
def test_an_expert_would_agree(judge, counters, told):
    limits, rows = judge(limited.row("kernel", **counters))
    assert str(limits.limiter(rows["kernel"])) == told


ROOT = Path(__file__).parents[2]

BY_CONSTRUCTION = {  # the roofs that start so: what alone can limit them
    "dram_": {"DRAM"},
    "memcpy": {"DRAM"},
    "l2_": {"L2"},
    "shared_": {"shared memory"},
    "distributed_shared": {"distributed shared memory"},
    "distributed_atomics": {"distributed atomics"},
    "fma": {"FP32"},
    "tf32": {"tensor cores", "power"},
    "bf16": {"tensor cores", "power"},
    "global_atomics": {"atomics"},
}


@pytest.mark.parametrize("gpu", ["nvidia-h100-80gb-hbm3", "nvidia-h200"])
def test_rows_made_for_a_limit_are_limited_by_it(gpu):
    results = committed(gpu)
    limits, wrong, known = Limits(results), [], 0
    for name, row in roofs.measured(results).items():
        of_latency = row.loads_per_second > 0
        expected = (
            {"latency"}
            if of_latency
            else next(names for start, names in BY_CONSTRUCTION.items() if name.startswith(start))
        )
        known += 1
        if (limiter := limits.limiter(row)) is None or limiter.name not in expected:
            wrong.append(f"{name}: {limiter}")
    assert known >= 18
    assert wrong == []


@pytest.mark.parametrize("gpu", ["nvidia-h100-80gb-hbm3", "nvidia-h200"])
def test_few_rows_stay_unexplained(gpu):
    results = committed(gpu)
    limits = Limits(results)
    headline = [
        row
        for study in studies(results)
        for rung in study.rungs
        if (row := study.measured(rung, study.headline))
    ]
    for rows in (headline, [row for row in results.rows if row.status == "ok"]):
        found = [limiter.name for row in rows if (limiter := limits.limiter(row))]
        assert len(found) > 140
        assert found.count("unexplained") <= 0.05 * len(found)


def test_a_kernel_of_two_launches_time_is_limited_by_the_launch(judge):
    short = {name: value / 200 for name, value in limited.IDLE.items() if value > 1}
    limits, rows = judge(limited.row("kernel", 5e-6, **short))
    assert str(limits.limiter(rows["kernel"])) == "launch 66%"


HELD = {"clock_held_by_power": 1.0, "sm_clock_hz": 1.5e9, "watts": 679.0}


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        (HELD, "power 97%"),
        (HELD | {"tensor_utilisation": 0.9}, "power 97%"),
        (HELD | {"clock_held_by_power": 0.02, "clock_held_by_heat": 0.98}, "heat 98%"),
        (HELD | {"clock_held_by_power": 0.4}, "latency (memory 60%)"),
        (HELD | {"sm_clock_hz": 1.95e9}, "latency (memory 60%)"),  # told of a row before
        ({name: HELD[name] for name in ("clock_held_by_power", "sm_clock_hz")}, "power"),
    ],
)
def test_power_is_the_limit_where_the_driver_says_so(judge, counters, told):
    context = {"sm_clock_max_hz": "1980000000", "watts_limit": "700"}
    limits, rows = judge(limited.row("kernel", **counters), **context)
    assert str(limits.limiter(rows["kernel"])) == told


def test_shares_are_of_the_roof_that_fits(judge):
    limits, rows = judge(limited.row("kernel", shared_load_wavefronts=60e6, **reads(0.5)))
    shares = limits.shares(rows["kernel"])
    assert set(shares) == set(COUNTS_FROM)
    assert shares["DRAM"] == pytest.approx(0.5)
    assert shares["shared memory"] == pytest.approx((60e6 + 2e6) * 128 / 1e-3 / 32.9e12)
    assert shares["launch"] == pytest.approx(0.0033)


def test_a_row_without_counters_has_no_limiter(judge):
    bare = suite.row("work/bare/n:8", 1e12, 1e9) | HELD
    failed = limited.row("failed") | {"error_occurred": True, "error_message": "wrong"}
    limits, rows = judge(bare, failed)
    for row in rows.values():
        assert limits.shares(row) == {}
        assert limits.limiter(row) is None


def test_operations_that_were_not_counted_are_those_of_the_algorithm(judge):
    made = [
        limited.row("fma", issue_utilisation=0.9, flops_per_second=51.35e12),
        limited.row("tensor", tensor_utilisation=0.6, flops_per_second=200e12),
        limited.row("copy", issue_utilisation=0.9),
    ]
    for row in made:
        del row["fp32_operations"]
    limits, rows = judge(*made)
    assert str(limits.limiter(rows["fma"])) == "FP32 79%"
    assert str(limits.limiter(rows["tensor"])) == "tensor cores 60%"
    assert str(limits.limiter(rows["copy"])) == "issue slots 90%"


def test_one_missing_counter_costs_its_own_limit_only(judge):
    row = limited.row("kernel", **reads(0.9))
    del row["shared_load_wavefronts"], row["stall_long_scoreboard"]
    limits, rows = judge(row)
    assert "shared memory" not in limits.shares(rows["kernel"])
    assert str(limits.limiter(rows["kernel"])) == "DRAM 90%"


def test_without_stalls_latency_is_all_there_is_to_say(judge):
    row = limited.row("kernel")
    for name in [name for name in row if name.startswith("stall_")]:
        del row[name]
    limits, rows = judge(row)
    limiter = limits.limiter(rows["kernel"])
    assert str(limiter) == "latency"
    assert math.isnan(limiter.share)


def test_without_roofs_only_what_needs_none_is_judged(judge):
    limits, rows = judge(limited.row("kernel", **reads(0.94), tensor_utilisation=0.6), roofs=[])
    assert set(limits.shares(rows["kernel"])) == {"issue slots", "tensor cores", "launch"}
    assert str(limits.limiter(rows["kernel"])) == "tensor cores 60%"


@pytest.mark.parametrize("counters", [{}, {"issue_utilisation": 0.9}], ids=["latency", "slots"])
def test_without_roofs_nothing_is_what_is_left(judge, counters):
    limits, rows = judge(limited.row("kernel", **reads(0.94), **counters), roofs=[])
    assert limits.limiter(rows["kernel"]) is None


def test_a_slice_may_do_more_than_the_roof_of_one_word(judge):
    limits, rows = judge(limited.row("kernel", l2_atomic_utilisation=0.85))
    assert str(limits.limiter(rows["kernel"])) == "atomics 100%"
    assert limits.impossible(rows["kernel"]) == []


def test_a_missing_roof_of_writes_is_that_of_copies(judge):
    roofs = [r for r in limited.roof_rows() if "/dram_write/" not in r["name"]]
    writes = {"dram_bytes": 4.28e9, "dram_read_bytes": 0.0, "dram_write_bytes": 4.28e9}
    limits, rows = judge(limited.row("kernel", **writes), roofs=roofs)
    assert limits.shares(rows["kernel"])["DRAM"] == pytest.approx(1.0)


def test_roofs_as_short_as_a_launch_are_none(judge):
    """Small cases take microseconds: what they reach is no roof, and all would be above it."""
    roofs = [r | {"median_seconds": 5e-6, "real_time": 5.0} for r in limited.roof_rows()]
    limits, rows = judge(limited.row("kernel", **reads(2.0)), roofs=roofs)
    assert "DRAM" not in limits.shares(rows["kernel"])
    assert limits.impossible(rows["kernel"]) == []


def test_an_unreadable_launch_time_is_none(judge):
    limits, rows = judge(limited.row("kernel", **reads(0.9)), launch_nanoseconds="fast")
    assert "launch" not in limits.shares(rows["kernel"])
    assert str(limits.limiter(rows["kernel"])) == "DRAM 90%"


def test_more_than_a_roof_is_named_as_impossible(judge):
    limits, rows = judge(limited.row("kernel", **reads(1.2)), limited.row("noise", **reads(1.02)))
    assert limits.impossible(rows["kernel"]) == ["DRAM 120%"]
    assert limits.impossible(rows["noise"]) == []
