# SPDX-License-Identifier: MIT
"""Turns what Nsight Compute counted into a results file, under the emulator's names."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

from ladder import files
from ladder.errors import ResultError

_OPERATIONS = {"load": ("ld",), "store": ("st",), "atomic": ("atom", "red")}
_METRICS = {  # counter: metrics whose sum it is, as far as the profile has them
    f"{space}_{operation}_{what}": tuple(metric.format(op) for op in ops)
    for space, what, metric in (
        ("shared", "requests", "smsp__inst_executed_op_shared_{}.sum"),
        ("shared", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"),
        ("global", "requests", "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"),
        ("global", "sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"),
    )
    for operation, ops in _OPERATIONS.items()
} | {
    "active_lanes": ("smsp__thread_inst_executed_per_inst_executed.ratio",),
    "distributed_requests": ("l1tex__t_requests_pipe_lsu_mem_dshared.sum",),
    "distributed_sectors": ("l1tex__t_sectors_pipe_lsu_mem_dshared.sum",),
    "registers": ("launch__registers_per_thread",),
    "occupancy_limit_blocks": ("launch__occupancy_limit_blocks",),
    "occupancy_limit_registers": ("launch__occupancy_limit_registers",),
    "occupancy_limit_shared": ("launch__occupancy_limit_shared_mem",),
    "occupancy_limit_warps": ("launch__occupancy_limit_warps",),
}
_OCCUPANCY_PERCENT = "sm__maximum_warps_per_active_cycle_pct"
_CONTEXT = ("gpu_name", "git_commit", "git_dirty", "build_type", "suite", "ladders")


def convert(profile: Path, rows: Path, like: Path | None, version: str) -> str:
    """Write as Google Benchmark JSON what `ncu --csv --page raw` printed.

    Args:
        profile: the output of ncu, one launch a line.
        rows: a line for each launch, in the same order: row name, tab, kernel name.
        like: a results file with the same rows; its context tells GPU, commit and ladders.
        version: of Nsight Compute.

    Raises:
        ResultError: the files cannot be read, or do not belong together.
    """
    context = files.read(like)["context"] if like else {}
    context = {key: context[key] for key in _CONTEXT if key in context}
    context["counters"] = f"Nsight Compute {version}".strip()
    launches, named = _launches(profile), _rows(rows)
    if len(launches) != len(named):
        raise ResultError(
            f"{profile}: {len(launches)} launches, but {rows} has {len(named)} rows for them"
        )
    benchmarks: dict[str, dict[str, Any]] = {}
    for i, (launch, (row, kernel)) in enumerate(zip(launches, named, strict=True), start=1):
        ran = launch.get("Kernel Name", "")
        if kernel and ran and base_name(kernel) != base_name(ran):
            raise ResultError(
                f"{profile}: launch {i} is of {base_name(ran)}, "
                f"but {rows} says {base_name(kernel)} for {row}"
            )
        if row in benchmarks:
            raise ResultError(f"{rows}: {row} stands there twice")
        try:
            benchmarks[row] = _benchmark(row, _counters(launch))
        except ValueError as error:
            raise ResultError(f"{profile}: launch {i} ({row}): {error}") from error
    document = {"context": context, "benchmarks": list(benchmarks.values())}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def base_name(kernel: str) -> str:
    """Return a kernel's name without return type, namespaces, template and call arguments."""
    kernel = kernel.replace("unnamed>::", "")  # what ncu leaves of an anonymous namespace
    while (plain := re.sub(r"<[^<>]*>|\([^()]*\)", "", kernel)) != kernel:
        kernel = plain
    kernel = re.split(r"[<(]", kernel)[0].strip()  # ncu shortens long names
    return re.split(r"::|\s", kernel)[-1] if kernel else ""


def _rows(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in files.read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ResultError(f"{path}: names no rows")
    found = []
    for line in lines:
        row, _, kernel = line.partition("\t")
        found.append((row.strip().removesuffix("/manual_time"), kernel.strip()))
    return found


def _launches(path: Path) -> list[dict[str, str]]:
    """Rows of the CSV, less its line of units and what ncu and the program said around it."""
    lines = [line for line in files.read_text(path).splitlines() if line.startswith('"')]
    reader = csv.DictReader(lines, restval="")
    if "ID" not in (reader.fieldnames or []):
        raise ResultError(f"{path}: not what 'ncu --csv --page raw' prints: no column 'ID'")
    return [launch for launch in reader if launch["ID"].strip()]


def _counters(launch: dict[str, str]) -> dict[str, float]:
    found = {}
    for counter, metrics in _METRICS.items():
        values = [v for metric in metrics if (v := _value(launch, metric)) is not None]
        if values:
            found[counter] = sum(values)
    if (percent := _value(launch, _OCCUPANCY_PERCENT)) is not None:
        found["theoretical_occupancy"] = percent / 100
    for counter in [c for c in found if c.endswith(("_wavefronts", "_sectors"))]:
        requests = found.get(counter.rpartition("_")[0] + "_requests")
        if requests:
            found[f"{counter}_per_request"] = found[counter] / requests
    return found


def _value(launch: dict[str, str], metric: str) -> float | None:
    text = (launch.get(metric) or "").strip().replace(",", "")
    if not text or text.endswith("n/a"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{metric} is '{text}'")
    return value


def _benchmark(row: str, counters: dict[str, float]) -> dict[str, Any]:
    name = f"{row}/manual_time"
    fixed = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1}
    return fixed | {"real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"} | counters
