# SPDX-License-Identifier: MIT
"""Reads Google Benchmark JSON, of libbenchmark 1.7.1 to 1.9.x, into one row a measurement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from ladder.io import files
from ladder.model import catalogue, ceilings
from ladder.model.catalogue import Ladder
from ladder.model.errors import ResultError

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
WORST_FIRST = ("error", "skipped", "ok")
_NO_TIME = "no time was recorded"
_LEAST_SECONDS, _MOST_SECONDS = 1e-15, 1e9  # of a time that can be one
_DIVISOR = re.compile(r"_per_second$|^percent_of_ceiling$|^arithmetic_int|^predicted_")  # never 0
_SPEED = re.compile(
    r"_per_second$|_seconds$|^(percent_of_ceiling|sm_clock_hz|throttled|late_samples)$"
)

# Everything else that is a number in a row is a user counter.
_LIBRARY_FIELDS = frozenset(
    "name family_index per_family_instance_index run_name run_type repetitions repetition_index "
    "threads aggregate_name aggregate_unit iterations real_time cpu_time time_unit label "
    "error_occurred error_message skipped skip_message cpu_coefficient real_coefficient big_o "
    "rms".split()
)

# What makes two files of host code one program on one kind of machine.
HOST_PROGRAM = ("executable", "library_build_type", "num_cpus", "caches")

# What warps asked of memory, as an emulator or a profiler counts it: wavefronts or sectors.
SPACES = {"shared": "wavefronts", "global": "sectors"}
OPERATIONS = ("load", "store", "atomic")

# Why a warp did not issue: shares of the cycles that warps were resident.
STALLS = (
    "stall_long_scoreboard stall_short_scoreboard stall_barrier stall_membar stall_mio_throttle "
    "stall_lg_throttle stall_math_pipe_throttle stall_wait stall_not_selected stall_drain "
    "stall_no_instruction stall_branch_resolving stall_dispatch_stall stall_imc_miss "
    "stall_gmma".split()
)

# Always present, so that callers need not ask first; missing values are NaN.
COUNTERS = (
    "flops_per_second bytes_per_second arithmetic_intensity percent_of_ceiling "
    "theoretical_occupancy registers static_shared_bytes dynamic_shared_bytes spilled_bytes "
    "block_threads grid_blocks blocks_per_sm waves cluster_size resident_clusters sm_clock_hz "
    "samples late_samples min_seconds q1_seconds median_seconds q3_seconds relative_error "
    "worst_error library_relative_error library_worst_error error_over_library throttled "
    "predicted_load_wavefronts predicted_store_wavefronts predicted_bytes_per_wavefront "
    "predicted_distributed_sectors_per_request "
    "distributed_requests distributed_sectors distributed_sectors_per_request "
    "distributed_atomic_sectors "
    "distributed_accesses distributed_bytes "
    "global_bytes compulsory_bytes active_lanes barriers cluster_barriers "
    "occupancy_limit_blocks occupancy_limit_warps occupancy_limit_registers "
    "occupancy_limit_shared atomics_per_second achieved_occupancy dram_bytes dram_read_bytes "
    "dram_write_bytes l2_bytes l2_read_bytes l2_write_bytes l1_bytes l1_wavefronts bulk_copy_bytes "
    "fp32_operations warp_instructions predicated_on_lanes issue_utilisation tensor_utilisation "
    "l2_atomic_utilisation shared_wavefronts shared_load_conflicts shared_store_conflicts "
    "shared_atomic_conflicts".split()
) + [
    f"{space}_{operation}_{what}"
    for space, unit in SPACES.items()
    for operation in OPERATIONS
    for what in ("requests", unit, f"{unit}_ideal", f"{unit}_per_request")
]
COUNTERS += STALLS
COLUMNS = (
    "file source gpu gpu_uuid commit cache_mode build_type name ladder rung role precision case "
    "sweep chosen status reason label time_unit repetitions seconds".split()
)


@dataclass(frozen=True)
class Results:
    """What one GPU measured, or an emulator counted, at one commit, merged from all its files."""

    context: dict[str, Any]
    ladders: tuple[Ladder, ...]
    rows: pd.DataFrame
    ceilings: list[Any]  # rows that measured limits, as `tuples`, also when `rows` was filtered
    written: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    # as the files have them: repetitions and aggregates by run_name

    @cached_property
    def tuples(self) -> list[Any]:
        """The rows as named tuples, which takes pandas a while."""
        return list(self.rows.itertuples(index=False))

    @property
    def source(self) -> str:
        """What the rows hold: `timed` speeds, or the requests `emulated` or from `counters`."""
        return _source(self.context)

    @property
    def gpu(self) -> str:
        """The GPU's name, or empty in a file of another suite."""
        return str(self.context.get("gpu_name", ""))

    @property
    def cache_mode(self) -> str:
        """`cold`, `warm`, or empty in a file of another suite."""
        return str(self.context.get("cache_mode", ""))

    @property
    def commit(self) -> str:
        """Short commit, marked when the tree held changes."""
        commit = str(self.context.get("git_commit", ""))[:7]
        return commit + ("-dirty" if commit and self.context.get("git_dirty") == "true" else "")

    @property
    def hardware_counters(self) -> str:
        """What counted beside the times; "none: " and why not; or empty where nobody asked."""
        return str(self.context.get("hardware_counters", ""))

    @property
    def with_counters(self) -> bool:
        """Whether the hardware counted beside the times."""
        return bool(self.hardware_counters) and not self.hardware_counters.startswith("none")

    @property
    def program(self) -> str:
        """The file name of the program that measured, or empty."""
        return re.split(r"[\\/]", str(self.context.get("executable", "")))[-1]

    @property
    def build_type(self) -> str:
        """How the measuring program was built; the library's own build type for other suites."""
        return str(self.context.get("build_type") or self.context.get("library_build_type", ""))

    def keep(self, pattern: re.Pattern[str]) -> Results:
        """Return these results with only the rows whose name `pattern` is found in."""
        found = [bool(pattern.search(name)) for name in self.rows["name"]]
        return replace(self, rows=self.rows[found].reset_index(drop=True))


def load(paths: str | PathLike[str] | Iterable[str | PathLike[str]]) -> pd.DataFrame:
    """Read files, or every *.json below directories, as tidy rows: one a benchmark.

    Columns: `file`; `source` ("timed", "emulated", or hardware "counters": only timed rows have
    seconds and speeds); `gpu`, `gpu_uuid`, `commit`, `cache_mode`, `build_type`; `name` (the
    benchmark's run_name) and what it spells: `ladder`, `rung`, `case` ("axis:value/..."), `sweep`
    (the value of the rung's own axis, or "axis value, ..." of several) and one `axis_<name>`
    column an axis; `role` and `precision` of the rung; `chosen`, the step that a rung of the role
    "choice" ran; `status` ("ok", "skipped", "error") and
    its `reason`; `label`; `time_unit` as written; `repetitions`; `seconds`, the median time of
    one run. Then the counters under their own names, in the unit the name ends in:
    `*_per_second` in bytes/s, FLOP/s or atomics/s, `*_seconds`, `*_bytes`, `*_hz`;
    `arithmetic_intensity` in FLOP/byte, `percent_of_ceiling` in percent, `*_occupancy`,
    `*_utilisation` and `stall_*` (of the cycles that warps were resident) as fractions;
    `relative_error` of the whole result and `worst_error` of the worst element, relative to its
    own scale, as fractions; `throttled`, 1 where the SM clock was under 90 % of its maximum;
    `late_samples`, of the `samples` those that may have waited for the host.
    Counts of the hardware (requests, wavefronts, sectors, bytes) are of one launch. Repetitions
    are folded by their median, quartiles by the widest range, `throttled` by any. What was not
    recorded is NaN, or "" in text.

    Raises:
        ResultError: a file is missing, unreadable or not a Google Benchmark result.
    """
    return pd.concat([r.rows for r in load_results(paths)], ignore_index=True)


def load_results(paths: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[Results]:
    """Read as `load` does, merging the files of one GPU, commit and cache mode into one Results."""
    groups: dict[tuple, list[tuple[Path, dict]]] = {}
    for path in files.find([paths] if isinstance(paths, str | PathLike) else paths):
        document = files.read(path)
        groups.setdefault(identity(document["context"]), []).append((path, document))
    return [_merge(documents) for documents in groups.values()]


def load_processes(paths: Iterable[str | PathLike[str]]) -> list[Results]:
    """Read as `load_results` does, but each file, which is one process, as a Results of its own."""
    return [_merge([(path, files.read(path))]) for path in files.find(paths)]


def identity(context: dict[str, Any]) -> tuple:
    """Tell which program on which machine a file is of: equal where files may be merged.

    Of host code these are the executable, how the library was built, the number of CPUs and their
    caches. The host's name is none of it, since each container has another; nor is the clock,
    which is measured anew each time.
    """
    keys = ["gpu_name", "gpu_uuid", "git_commit", "git_dirty", "cache_mode", "build_type"]
    if "gpu_name" not in context:
        keys += HOST_PROGRAM
    return _source(context), *(str(context.get(key, "")) for key in [*keys, "counters"])


def _source(context: dict[str, Any]) -> str:
    if "counters" in context:
        return "counters"
    return "emulated" if str(context.get("emulated")).lower() == "true" else "timed"


def _merge(documents: list[tuple[Path, dict]]) -> Results:
    """Fold the files of one identity: a benchmark found twice counts as repeated."""
    ladders: dict[str, Ladder] = {}
    repeated: dict[str, list[tuple[Path, dict]]] = {}
    for path, document in documents:
        try:
            for ladder in catalogue.parse(document["context"].get("ladders") or "[]"):
                ladders.setdefault(ladder.name, ladder)
            for row in document["benchmarks"]:
                repeated.setdefault(row["run_name"], []).append((path, row))
        except ValueError as error:
            raise ResultError(f"{path}: {error}") from error

    results = Results(documents[0][1]["context"], tuple(ladders.values()), pd.DataFrame(), [])
    timed = results.source == "timed"
    common = {
        "source": results.source,
        "gpu": results.gpu,
        "gpu_uuid": str(results.context.get("gpu_uuid", "")),
        "commit": results.commit,
        "cache_mode": results.cache_mode,
        "build_type": results.build_type,
    }
    records = []
    for name, rows in repeated.items():
        # Means, deviations and fits (BigO, RMS) are no measurements: only a median stands in.
        iterations = [(p, r) for p, r in rows if r.get("run_type") != "aggregate"]
        medians = [(p, r) for p, r in rows if r.get("aggregate_name") == "median"]
        if used := iterations or medians:
            path = used[0][0]
            try:
                measured = _measure([row for _, row in used], timed=timed)
                spelled = _spell(name, ladders, measured["label"])
                records.append(measured | spelled | common | {"file": str(path)})
            except ValueError as error:
                raise ResultError(f"{path}: {name}: {error}") from error
    if not records:
        raise ResultError(f"{documents[0][0]}: holds no measurements, only derived rows")
    frame = pd.DataFrame(records)
    axes = [column for column in frame.columns if column.startswith("axis_")]
    order = dict.fromkeys([*COLUMNS, *axes, *COUNTERS, *frame.columns])
    frame = frame.reindex(columns=list(order)).fillna(dict.fromkeys(axes, ""))
    limits = frame[(frame["role"] == "ceiling") & (frame["status"] == "ok")]
    written = {name: [row for _, row in rows] for name, rows in repeated.items()}
    limits = list(limits.itertuples(index=False))
    return replace(results, rows=frame, ceilings=limits, written=written)


def _measure(rows: list[dict[str, Any]], *, timed: bool) -> dict[str, Any]:
    """Fold repetitions; the worst status of any of them is the benchmark's.

    What rows that are not `timed` tell of time is that of an emulator or of a profiler: dropped.
    """
    unit = rows[0].get("time_unit", "ns")
    if unknown := [u for row in rows if (u := row.get("time_unit", "ns")) not in list(SECONDS)]:
        raise ValueError(f"unknown time unit '{unknown[0]}'")
    found = (_status(row, timed=timed) for row in rows)
    status, reason = min(found, key=lambda pair: WORST_FIRST.index(pair[0]))
    measured = {
        "status": status,
        "reason": reason,
        "label": str(rows[0].get("label", "")),
        "time_unit": unit,
        "repetitions": len(rows),
        "seconds": math.nan,
    }
    if status != "ok":
        return measured
    counters = _folded([_counters(row) for row in rows])
    if not timed:
        counters = {key: value for key, value in counters.items() if not _SPEED.search(key)}
    if timed:
        times = [row["real_time"] * SECONDS[row.get("time_unit", "ns")] for row in rows]
        measured["seconds"] = counters.get("median_seconds") or median(times)
        if not _LEAST_SECONDS <= measured["seconds"] <= _MOST_SECONDS:
            return measured | {"status": "error", "reason": _NO_TIME, "seconds": math.nan}
    return counters | measured


def _counters(row: dict[str, Any]) -> dict[str, float]:
    """Return a row's counters that are usable numbers; as read, all of them are floats."""
    keys, divisors = _counter_keys(tuple(row))
    values = [*map(row.__getitem__, keys)]
    # As a rule all are: a finite sum has finite terms.
    if {*map(type, values)} == {float} and math.isfinite(sum(values)):
        found = dict(zip(keys, values, strict=True))
    else:
        pairs = zip(keys, values, strict=True)
        found = {k: v for k, v in pairs if isinstance(v, float) and math.isfinite(v)}
    for key in divisors:
        if key in found and not 1e-9 <= found[key] <= 1e24:
            del found[key]
    return found


@cache  # rows of a rung have the same keys
def _counter_keys(keys: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return those that are no field of the library's, and of these what others are divided by."""
    counters = [key for key in keys if key not in _LIBRARY_FIELDS]
    return counters, [key for key in counters if _DIVISOR.search(key)]


def _folded(repetitions: list[dict[str, float]]) -> dict[str, float]:
    if len(repetitions) == 1:
        return repetitions[0]
    folds = {"q1_seconds": min, "min_seconds": min, "q3_seconds": max, "samples": sum}
    folds |= {"throttled": max, "late_samples": sum}
    keys = dict.fromkeys(key for counters in repetitions for key in counters)
    return {
        key: folds.get(key, median)([counters[key] for counters in repetitions if key in counters])
        for key in keys
    }


def _status(row: dict[str, Any], *, timed: bool) -> tuple[str, str]:
    """Return (status, reason); 1.7.1 knows only errors, so a skip is told by its message."""
    message = str(row.get("skip_message") or row.get("error_message") or "no reason given")
    if row.get("skipped") or message.startswith("skipped: "):
        return "skipped", message.removeprefix("skipped: ")
    if row.get("error_occurred"):
        return "error", message
    time = row.get("real_time")
    good = isinstance(time, float) and 0 < time < math.inf
    return ("ok", "") if good or not timed else ("error", _NO_TIME)


def _spell(name: str, ladders: dict[str, Ladder], label: str) -> dict[str, Any]:
    """Split `ladder/rung/axis:value/...`; a row of no known ladder keeps its whole name."""
    ladder_name, _, rest = name.partition("/")
    rung_name, *segments = rest.split("/")
    keys = ("ladder", "rung", "role", "precision", "case", "sweep", "chosen")
    spelled = dict.fromkeys(keys, "")
    spelled["name"] = name
    if not (ladder := ladders.get(ladder_name)):
        return spelled
    if not (rung := ladder.rung(rung_name)):
        raise ValueError(f"ladder '{ladder_name}' lists no rung '{rung_name}'")
    values = dict(segment.split(":", 1) for segment in segments if ":" in segment)
    axes = {axis.name: values[axis.name] for axis in ladder.axes if axis.name in values}
    spelled |= {"ladder": ladder.name, "rung": rung.name, "role": rung.role}
    spelled |= {"precision": rung.precision, "sweep": _sweep(rung.sweeps, values)}
    if rung.role == "choice" and (step := ceilings.chosen(label)):
        if not ladder.rung(step):
            raise ValueError(f"ladder '{ladder_name}' lists no rung '{step}', which was chosen")
        spelled["chosen"] = step
    spelled |= {"case": "/".join(f"{axis}:{value}" for axis, value in axes.items())}
    return spelled | {f"axis_{axis}": value for axis, value in axes.items()}


def _sweep(axes: tuple[str, ...], values: dict[str, str]) -> str:
    """Spell the values of a rung's own axes: `16`, or `bytes 16, blocks 2` of several."""
    found = [axis for axis in axes if axis in values]
    if len(axes) == 1:
        return "".join(values[axis] for axis in found)
    return ", ".join(f"{axis} {values[axis]}" for axis in found)
