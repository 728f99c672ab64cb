# SPDX-License-Identifier: MIT
"""What can be compared of a row: its time or any counter, and which way is better."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ladder.io.results import SECONDS
from ladder.model.errors import LadderError
from ladder.stats.interval import Process

TIME = "real_time"
_TIMES = (TIME, "cpu_time")

# What is better, by the first of these that is found in a counter's name, whatever its case.
_DIRECTIONS = (
    ("less", r"^stall_|(miss|error|conflict)(_rate|_ratio)$"),
    ("more", r"(_per_second|_per_wavefront|_lanes|_hz|hits|speed|rate|throughput|bandwidth)$"),
    ("more", r"(occupancy|utili[sz]ation|efficiency)$|percent"),
    ("less", r"(time|seconds|latency|bytes|registers|errors?|noise|cycles|misses|throttled)$"),
    ("less", r"(conflicts|wavefronts|requests|sectors|accesses|instructions|barriers)$"),
    ("less", r"(_ideal|_per_request)$|^late_samples$"),
)

# Properties of the program, not measurements: no two runs of one binary differ in them.
_EXACT = re.compile(
    r"^(registers|spilled_bytes|\w+_shared_bytes|grid_blocks|block_threads|blocks_per_sm|waves|"
    r"cluster_size|resident_clusters|theoretical_occupancy|arithmetic_intensity|predicted_\w+)$"
)
_OF_TIME = re.compile(r"_per_second$|^(real_time|median_seconds|percent_of_ceiling)$")

# The standard error of the median of n draws, over their deviation and over their quartile range.
_OF_DEVIATION, _OF_QUARTILES = 1.2533, 0.9291


def more_is_better(metric: str, told: str | None = None) -> bool:
    """Say which way `metric` is better; `told` is "less" or "more" where the user says.

    Raises LadderError where neither tells.
    """
    if told:
        return told == "more"
    for way, pattern in _DIRECTIONS:
        if re.search(pattern, metric, re.IGNORECASE):
            return way == "more"
    raise LadderError(f"--metric {metric}: is less or more of it better? (--better less|more)")


def is_exact(metric: str) -> bool:
    """Whether two runs of one program never differ in it."""
    return bool(_EXACT.search(metric))


def is_time(metric: str) -> bool:
    """Whether it is a time of the library's, in a row's own unit."""
    return metric in _TIMES


def follows_time(metric: str) -> bool:
    """Whether it is the GPU's time or a speed, which launches and the SM clock move."""
    return bool(_OF_TIME.search(metric))


def process(written: list[Mapping[str, Any]], metric: str) -> Process | None:
    """Return what one process measured of a row, `written` as in its file.

    Repetitions are its samples. A row of a single one may tell its error itself: `median_noise`, or
    quartiles and `samples`; a file of aggregates alone has a deviation. None where the row has no
    such number. Times are in seconds, counters as they stand.
    """
    rows = [row for row in written if row.get("run_type") != "aggregate"]
    if not rows:
        return _aggregated(written, metric)
    samples = tuple(v for row in rows if (v := _value(row, metric)) is not None)
    if not samples:
        return None
    return Process(samples, _noise(rows[0], metric) if len(samples) == 1 else 0.0)


def _value(row: Mapping[str, Any], metric: str) -> float | None:
    for key in ("median_seconds", TIME) if metric == TIME else (metric,):  # ours has all its digits
        value = row.get(key)
        if isinstance(value, float) and math.isfinite(value):
            if key in _TIMES:
                value *= SECONDS[row.get("time_unit", "ns")]
            if value > 0 or not is_time(metric):
                return value
    return None


def _noise(row: Mapping[str, Any], metric: str) -> float:
    """Return the relative standard error of a row's median time; 0 where nothing tells it."""
    if not follows_time(metric):
        return 0.0
    noise = _value(row, "median_noise")
    if noise is None:
        low, middle, high = (
            _value(row, key) or 0.0 for key in ("q1_seconds", "median_seconds", "q3_seconds")
        )
        if not 0 < low <= middle <= high:
            return 0.0
        count = max(_value(row, "samples") or 1.0, 1.0)
        noise = _OF_QUARTILES * (high - low) / middle / math.sqrt(count)
    return noise if 0 < noise < math.inf else 0.0


def _aggregated(written: list[Mapping[str, Any]], metric: str) -> Process | None:
    found = {row.get("aggregate_name"): row for row in written}
    if "median" not in found or (value := _value(found["median"], metric)) is None:
        return None
    deviation = _value(found.get("stddev", {}), metric) or 0.0
    count = _value(found["median"], "repetitions") or 1.0
    noise = _OF_DEVIATION * deviation / value / math.sqrt(max(count, 1.0)) if value else 0.0
    return Process((value,), noise if 0 < noise < math.inf else 0.0)
