# SPDX-License-Identifier: MIT
"""Turns the entries that Google Benchmark wrote for one benchmark into one row."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from statistics import median
from typing import Any

from ladder.io import library_fields
from ladder.model import ceilings
from ladder.model.catalogue import Ladder
from ladder.model.rows import Row
from ladder.model.text import in_line

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
WORST_FIRST = ("error", "skipped", "ok")
# Fields that only give a row's place in its file.
_OF_FILE = frozenset(
    "name run_name family_index per_family_instance_index repetition_index".split()
)
_NO_TIME = "no time was recorded"
_LEAST_SECONDS, _MOST_SECONDS = 1e-15, 1e9  # of a time that can be one
# Counters of ladders that figures divide by: values next to 0 are left out.
_DIVISOR = re.compile(r"_per_second$|^percent_of_ceiling$|^arithmetic_int|^predicted_")
_SPEED = re.compile(
    r"_per_second$|_seconds$|^(percent_of_ceiling|sm_clock_hz|throttled|late_samples)$"
)


def slim(entry: dict[str, Any]) -> dict[str, Any]:
    """Return only the fields that are used, since many rows with all fields are large."""
    found = {key: value for key, value in entry.items() if key not in _OF_FILE}
    if found.get("run_type") == "iteration":  # as those are that do not tell
        del found["run_type"]
        found.pop("repetitions", None)  # of an aggregate it counts
    if isinstance(unit := found.get("time_unit"), str):
        found["time_unit"] = sys.intern(unit)
    return found


def families_told_apart(
    entries: list[dict[str, Any]], ladders: Mapping[str, Ladder]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the rows of one file with their names, numbered where families have the same one.

    They end in `#1`, `#2` in the order of `family_index`, which is of one process alone: a filter
    moves it. Rows of known ladders, whose names are unique, may come from several processes.
    """
    first: dict[str, float] = {}
    several: dict[str, set[float]] = {}  # of names that several families have
    for entry in entries:
        name, family = entry["run_name"], _family(entry)
        if first.setdefault(name, family) != family:
            several.setdefault(name, {first[name]}).add(family)
    for entry in entries:
        name = entry["run_name"]
        if name in several and name.partition("/")[0] not in ladders:
            yield f"{name}#{sorted(several[name]).index(_family(entry)) + 1}", entry
        else:
            yield name, entry


def _family(entry: dict[str, Any]) -> float:
    index = entry.get("family_index")
    return index if isinstance(index, float) and math.isfinite(index) else -1.0


def measure(row: Row, entries: list[dict[str, Any]], *, of_ladder: bool) -> None:
    """Merge repetitions; the worst status of any of them is the benchmark's.

    What rows that are not `timed` tell of time is that of an emulator or of a profiler: dropped.
    """
    timed = row.source == "timed"
    units = [entry.get("time_unit", "ns") for entry in entries]
    if unknown := [unit for unit in units if unit not in list(SECONDS)]:
        raise ValueError(f"unknown time unit '{unknown[0]}'")
    found = (_status(entry, timed=timed) for entry in entries)
    row.status, row.reason = min(found, key=lambda pair: WORST_FIRST.index(pair[0]))
    label = entries[0].get("label")
    row.label = label if isinstance(label, str) else ""
    row.time_unit = units[0]
    row.repetitions = sum(map(_repetitions, entries))
    row.threads = _typical(entries, "threads", least=1)
    if row.status != "ok":
        return
    counters = _folded([_counters(entry, of_ladder=of_ladder) for entry in entries])
    if timed:
        times = [e["real_time"] * SECONDS[unit] for e, unit in zip(entries, units, strict=True)]
        row.seconds = counters.get("median_seconds") or median(times)
        if not _LEAST_SECONDS <= row.seconds <= _MOST_SECONDS:
            row.status, row.reason, row.seconds = "error", _NO_TIME, math.nan
            return
        scales = [SECONDS[unit] for unit in units]
        row.cpu_seconds = _typical(entries, "cpu_time", scales)
        # The iterations of an aggregate are the repetitions that it was made of.
        row.iterations = _typical(
            [entry for entry in entries if entry.get("run_type") != "aggregate"], "iterations"
        )
    else:
        counters = {key: value for key, value in counters.items() if not _SPEED.search(key)}
    row.counters = counters


def _typical(
    entries: list[dict[str, Any]],
    key: str,
    scales: Iterable[float] | None = None,
    least: float = 0,
) -> float:
    """Return the median of one of the library's own numbers, each times its scale.

    NaN where no entry has it; what is below `least` was not recorded.
    """
    values = [entry.get(key) for entry in entries]
    pairs = zip(values, scales, strict=False) if scales else ((value, 1) for value in values)
    found = [
        value if scale == 1 else value * scale  # a number as it stands takes no memory again
        for value, scale in pairs
        if isinstance(value, float) and least <= value < math.inf
    ]
    return median(found) if found else math.nan


def _repetitions(entry: dict[str, Any]) -> int:
    """Return how many repetitions an entry stands for: an aggregate stands for all of its own."""
    count = entry.get("repetitions") if entry.get("run_type") == "aggregate" else None
    return int(count) if isinstance(count, float) and 1 <= count < math.inf else 1


def _counters(entry: dict[str, Any], *, of_ladder: bool) -> dict[str, float]:
    """Return a row's counters that are usable numbers; as read, all of them are floats."""
    keys, divisors = _counter_keys(tuple(entry))
    values = [*map(entry.__getitem__, keys)]
    # As a rule all are: a finite sum has finite terms.
    if {*map(type, values)} == {float} and math.isfinite(sum(values)):
        found = dict(zip(keys, values, strict=True))
    else:
        pairs = zip(keys, values, strict=True)
        found = {k: v for k, v in pairs if isinstance(v, float) and math.isfinite(v)}
    for key in divisors if of_ladder else ():
        if key in found and not 1e-9 <= found[key] <= 1e24:
            del found[key]
    return found


@cache  # rows of a rung have the same keys
def _counter_keys(keys: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the keys that may be counters, and those among them that others are divided by."""
    counters = [key for key in keys if key not in library_fields.ROW]
    return counters, [key for key in counters if _DIVISOR.search(key)]


def _folded(repetitions: list[dict[str, float]]) -> dict[str, float]:
    if len(repetitions) == 1:
        return repetitions[0]
    folds: dict[str, Callable[[list[float]], float]] = {"q1_seconds": min, "min_seconds": min}
    folds |= {"q3_seconds": max, "throttled": max, "samples": sum, "late_samples": sum}
    keys = dict.fromkeys(key for counters in repetitions for key in counters)
    return {
        key: folds.get(key, median)([counters[key] for counters in repetitions if key in counters])
        for key in keys
    }


def _status(entry: dict[str, Any], *, timed: bool) -> tuple[str, str]:
    """Return (status, reason); 1.7.1 has only errors, so the message marks a skip."""
    told = (entry.get("skip_message"), entry.get("error_message"))
    message = next((in_line(text) for text in told if text and isinstance(text, str)), "")
    message = message or "no reason given"
    if entry.get("skipped") is True or message.startswith("skipped: "):  # a number is a counter
        return "skipped", message.removeprefix("skipped: ")
    if entry.get("error_occurred") is True:
        return "error", message
    time = entry.get("real_time")
    good = isinstance(time, float) and 0 < time < math.inf
    return ("ok", "") if good or not timed else ("error", _NO_TIME)


def spell(row: Row, ladders: Mapping[str, Ladder]) -> None:
    """Split `ladder/rung/axis:value/...`; a row of no known ladder keeps its whole name."""
    ladder_name, _, rest = row.name.partition("/")
    rung_name, *segments = rest.split("/")
    if not (ladder := ladders.get(ladder_name)):
        return
    if not (rung := ladder.rung(rung_name)):
        raise ValueError(f"ladder '{ladder_name}' lists no rung '{rung_name}'")
    values = dict(segment.split(":", 1) for segment in segments if ":" in segment)
    row.axes = {axis.name: values[axis.name] for axis in ladder.axes if axis.name in values}
    row.ladder, row.rung, row.role = ladder.name, rung.name, rung.role
    row.precision, row.sweep = rung.precision, _sweep(rung.sweeps, values)
    if rung.role == "choice" and (step := ceilings.chosen(row.label)):
        if not ladder.rung(step):
            raise ValueError(f"ladder '{ladder_name}' lists no rung '{step}', which was chosen")
        row.chosen = step
    row.case = "/".join(f"{axis}:{value}" for axis, value in row.axes.items())


def _sweep(axes: tuple[str, ...], values: dict[str, str]) -> str:
    """Spell the values of a rung's own axes: `16`, or `bytes 16, blocks 2` of several."""
    found = [axis for axis in axes if axis in values]
    if len(axes) == 1:
        return "".join(values[axis] for axis in found)
    return ", ".join(f"{axis} {values[axis]}" for axis in found)
