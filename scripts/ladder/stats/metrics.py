# SPDX-License-Identifier: MIT
"""What can be compared of a row: its time or any counter, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ladder.io.entries import SECONDS
from ladder.io.results import Results
from ladder.model import counters
from ladder.model.errors import LadderError
from ladder.model.text import nearest
from ladder.stats.interval import Process

TIME = "real_time"
_TIMES = (TIME, "cpu_time")

# The standard error of the median of n normal draws, times sqrt(n): over their standard deviation,
# and over their interquartile range.
_OF_DEVIATION, _OF_QUARTILES = 1.2533, 0.9291


Registry = Mapping[str, counters.Counter]  # what is known of counters, by name


def check(metric: str, results: Iterable[Results]) -> None:
    """Raise LadderError if no row has `metric`: it names the nearest metrics, or else all."""
    counters = (name for result in results for row in result.rows for name in row.counters)
    names = sorted({*_TIMES, *counters})
    if metric in names:
        return
    raise LadderError(f"--metric {metric}: no row has it; {nearest(metric, names)}")


def more_is_better(metric: str, told: str | None = None, known: Registry = counters.OWN) -> bool:
    """Say which way `metric` is better; `told` is "less" or "more" where the user says.

    Raises LadderError where neither tells.
    """
    if way := told or (known[metric].better if metric in known else counters.ASK):
        return way == counters.MORE
    raise LadderError(f"--metric {metric}: is less or more of it better? (--better less|more)")


def is_exact(metric: str, known: Registry = counters.OWN) -> bool:
    """Whether two runs of one program never differ in it."""
    return metric in known and known[metric].kind == counters.PROPERTY


def is_time(metric: str) -> bool:
    """Whether it is a time of the library's, in a row's own unit."""
    return metric in _TIMES


def follows_time(metric: str, known: Registry = counters.OWN) -> bool:
    """Whether it is known as the GPU's time or a speed, which launches and the SM clock move."""
    return metric in known and known[metric].follows_time


def process(
    written: Sequence[Mapping[str, Any]], metric: str, known: Registry = counters.OWN
) -> Process | None:
    """Return what one process measured of a row, whose entries in the file are `written`.

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
    return Process(samples, _noise(rows[0], metric, known) if len(samples) == 1 else 0.0)


def _value(row: Mapping[str, Any], metric: str) -> float | None:
    for key in ("median_seconds", TIME) if metric == TIME else (metric,):  # ours has all its digits
        value = row.get(key)
        if isinstance(value, float) and math.isfinite(value):
            if key in _TIMES:
                value *= SECONDS[row.get("time_unit", "ns")]
            if value > 0 or not is_time(metric):
                return value
    return None


def _noise(row: Mapping[str, Any], metric: str, known: Registry) -> float:
    """Return the relative standard error of a row's median time; 0 where nothing tells it."""
    if not follows_time(metric, known):
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


def _aggregated(written: Sequence[Mapping[str, Any]], metric: str) -> Process | None:
    found = {row.get("aggregate_name"): row for row in written}
    if "median" not in found or (value := _value(found["median"], metric)) is None:
        return None
    deviation = _value(found.get("stddev", {}), metric) or 0.0
    count = _value(found["median"], "repetitions") or 1.0
    noise = _OF_DEVIATION * deviation / value / math.sqrt(max(count, 1.0)) if value else 0.0
    return Process((value,), noise if 0 < noise < math.inf else 0.0)
