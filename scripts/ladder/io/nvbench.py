# SPDX-License-Identifier: MIT
"""Reads NVBench's JSON into the form of Google Benchmark's.

As `--json FILE` and `--jsonbin FILE` write it (nvbench/json_printer.cu, file version 1.0.0 and the
form before): benchmarks have states, one for each combination of their axes, and states have
summaries by tag. Numbers in them are texts. The samples that --jsonbin writes beside are not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ladder.io import library_fields

# The time of a state: what was measured with the L2 flushed, else launches in a row, else the
# host's. By their median where NVBench has it, else by their mean.
_TIMES = tuple(
    f"nv/{where}/{kind}"
    for where in ("cold/time/gpu", "batch/time/gpu", "cpu_only/time/cpu", "cold/time/cpu")
    for kind in ("median", "mean")
)
_CACHE_MODES = {"nv/cold/time/gpu": "cold", "nv/batch/time/gpu": "warm"}
_SAMPLES = ("nv/cold/sample_size", "nv/cold/time/gpu/sample_size")  # of one year or another
_COUNTERS = {  # ours: theirs
    "bytes_per_second": "nv/cold/bw/global/bytes_per_second",
    "items_per_second": "nv/cold/bw/item_rate",
    "dram_utilisation": "nv/cold/bw/global/utilization",
    "sm_clock_hz": "nv/cold/sm_clock_rate/mean",
}
_OF_MEDIAN = math.sqrt(math.pi / 2)  # standard error of the median over the mean's, where normal


def found(document: Any) -> bool:
    """Whether a JSON is NVBench's."""
    if not isinstance(document, dict) or "context" in document:
        return False
    benchmarks = document.get("benchmarks")
    return isinstance(benchmarks, list) and any(
        isinstance(benchmark, dict) and "states" in benchmark for benchmark in benchmarks
    )


def converted(document: dict[str, Any]) -> dict[str, Any]:
    """Return the context and a row for each state, named `benchmark/Axis:value/...`.

    The row's time is in us; `nvbench_time` in the context tells the summaries that times are of.
    NVBench has the relative standard deviation s of n samples, so `median_noise`, the relative
    standard error of the time, is s / sqrt(n) of a mean, and sqrt(pi / 2) times that of a median,
    as of normal samples; where there are quartiles these are handed on instead. A skipped state
    becomes a skipped row with its reason. Of several devices each row says its own, as the axis
    Device. Summaries of the program's own become counters by their tags.

    Raises:
        ValueError: it is not what NVBench writes; the message says where.
    """
    states = list(_states(document))
    names = {
        _spelled(device.get("id")): str(device.get("name", ""))
        for device in _entries(document, "devices", "the file")
    }
    used = list(dict.fromkeys(_spelled(state.get("device", 0.0)) for _, state in states))
    rows: list[dict[str, Any]] = []
    times: set[str] = set()
    for name, state in states:
        device = f"/Device:{_spelled(state.get('device', 0.0))}" if len(used) > 1 else ""
        row, time = _row(f"{name}{device}", state)
        rows.append(row)
        times |= {time} - {""}
    context = _context(document) | {"nvbench_time": ", ".join(sorted(times))}
    if gpus := list(dict.fromkeys(gpu for device in used if (gpu := names.get(device)))):
        context["gpu_name"] = ", ".join(gpus)
    modes = {_CACHE_MODES.get(time.rpartition("/")[0], "") for time in times}
    if len(modes) == 1 and (mode := modes.pop()):
        context["cache_mode"] = mode
    return {"context": context, "benchmarks": rows}


def _states(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the states of all benchmarks, each with its row's name."""
    for benchmark in _entries(document, "benchmarks", "the file"):
        name = benchmark.get("name")
        if not isinstance(name, str):
            raise ValueError("a benchmark of NVBench without a name")
        for state in _entries(benchmark, "states", name):
            axes = _entries(state, "axis_values", name)
            values = [f"{axis.get('name')}:{_spelled(axis.get('value'))}" for axis in axes]
            yield "/".join([name, *values]), state


def _row(name: str, state: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a state's row, and the tag that its time is of, or empty."""
    row: dict[str, Any] = {"name": name, "run_name": name, "run_type": "iteration"}
    if state.get("is_skipped"):
        reason = str(state.get("skip_reason") or "no reason given")
        return row | {"skipped": True, "skip_message": reason}, ""
    values = dict(_values(state, name))
    time = next((tag for tag in _TIMES if values.get(tag, 0.0) > 0), None)
    if not time:
        return row | {"error_occurred": True, "error_message": "NVBench recorded no time"}, ""
    place, _, kind = time.rpartition("/")
    counters = {
        f"user_{tag}" if tag in library_fields.FIELDS else tag: value
        for tag, value in values.items()
        if not tag.startswith("nv/")
    }
    counters |= {ours: values[tag] for ours, tag in _COUNTERS.items() if tag in values}
    counters |= _noise(values, place, kind)
    row = counters | row
    row |= {"real_time": values[time] * 1e6, "time_unit": "us"}
    row["cpu_time"] = values.get("nv/cold/time/cpu/mean", values[time]) * 1e6
    if "samples" in counters:
        row["iterations"] = counters["samples"]
    return row, time


def _noise(values: dict[str, float], place: str, kind: str) -> dict[str, float]:
    """Return the counters that say how accurate the time is."""
    samples = next((v for tag in _SAMPLES if (v := values.get(tag, 0.0)) > 0), 0.0)
    if not place.startswith("nv/cold"):
        samples = values.get(f"{place.rpartition('/time')[0]}/sample_size", 0.0)
    found = {"samples": samples} if samples > 0 else {}
    if f"{place}/min" in values:
        found["min_seconds"] = values[f"{place}/min"]
    quartiles = {f"{key}_seconds": f"{place}/{key}" for key in ("q1", "median", "q3")}
    if kind == "median" and all(tag in values for tag in quartiles.values()):
        return found | {key: values[tag] for key, tag in quartiles.items()}
    deviation = values.get(f"{place}/stdev/relative", 0.0)
    if deviation > 0 and samples > 0:
        factor = _OF_MEDIAN if kind == "median" else 1.0
        found["median_noise"] = factor * deviation / math.sqrt(samples)
    return found


def _values(state: dict[str, Any], name: str) -> Iterator[tuple[str, float]]:
    """Yield the finite numbers among a state's summaries, by tag."""
    summaries = state.get("summaries")
    if isinstance(summaries, dict):  # before version 1.0.0
        summaries = [
            {"tag": tag, "data": entry.get("values")}
            for tag, entry in summaries.items()
            if isinstance(entry, dict)
        ]
    for summary in _entries({"summaries": summaries}, "summaries", name):
        for entry in _entries(summary, "data", name):
            value = _number(entry.get("value"))
            if entry.get("name") == "value" and math.isfinite(value):
                yield str(summary.get("tag", "")), value


def _number(value: Any) -> float:
    """Return a number, which may be written as text; NaN of anything else."""
    try:
        return float(value) if isinstance(value, str | float) else math.nan
    except ValueError:
        return math.nan


def _spelled(value: Any) -> str:
    """Write an axis' value as NVBench does: the reader made floats of all numbers."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _entries(where: dict[str, Any], key: str, name: str) -> list[dict[str, Any]]:
    """Return a list of objects; null means an empty one."""
    entries = where.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"not what NVBench writes: '{key}' of {name} is not a list of objects")
    return entries


def _context(document: dict[str, Any]) -> dict[str, Any]:
    """Return the program and the version of NVBench."""
    meta = document.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    context: dict[str, Any] = {}
    arguments, version = meta.get("argv"), meta.get("version")
    if isinstance(arguments, list) and arguments:
        context["executable"] = str(arguments[0])
    nvbench = version.get("nvbench") if isinstance(version, dict) else None
    if isinstance(nvbench, dict) and "string" in nvbench:
        context["nvbench_version"] = str(nvbench["string"])
    return context
