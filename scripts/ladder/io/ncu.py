# SPDX-License-Identifier: MIT
"""Turns an Nsight Compute profile into a results file, with our names of counters."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

from ladder.io import files
from ladder.model.counters import STALLS
from ladder.model.errors import ResultError
from ladder.model.rows import bare

_OPERATIONS = {"load": ("ld",), "store": ("st",), "atomic": ("atom", "red")}
_METRICS = {  # counter: metrics whose sum it is, as far as the profile has them
    f"{space}_{operation}_{what}": tuple(metric.format(op) for op in ops)
    for space, what, metric in (
        ("shared", "requests", "smsp__inst_executed_op_shared_{}_pred_on_any.sum"),
        ("shared", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"),
        ("global", "requests", "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"),
        ("shared", "conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"),
        ("global", "sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"),
    )
    for operation, ops in _OPERATIONS.items()
} | {
    "active_lanes": ("smsp__thread_inst_executed_per_inst_executed.ratio",),
    "predicated_on_lanes": ("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",),
    "warp_instructions": ("smsp__inst_executed.sum",),
    "l1_bytes": ("l1tex__t_bytes.sum",),
    "l1_wavefronts": ("l1tex__t_output_wavefronts.sum",),
    "shared_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",),
    "dram_read_bytes": ("dram__bytes_read.sum", "dram__bytes_op_read.sum"),
    "dram_write_bytes": ("dram__bytes_write.sum", "dram__bytes_op_write.sum"),
    "bulk_copy_bytes": ("l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum",),
    "distributed_requests": ("l1tex__t_requests_pipe_lsu_mem_dshared.sum",),
    "distributed_sectors": ("l1tex__t_sectors_pipe_lsu_mem_dshared.sum",),
    "distributed_atomic_sectors": ("l1tex__t_sectors_pipe_lsu_mem_dshared_op_atom.sum",),
    "registers": ("launch__registers_per_thread",),
    "occupancy_limit_blocks": ("launch__occupancy_limit_blocks",),
    "occupancy_limit_registers": ("launch__occupancy_limit_registers",),
    "occupancy_limit_shared": ("launch__occupancy_limit_shared_mem",),
    "occupancy_limit_warps": ("launch__occupancy_limit_warps",),
}
_PERCENT = {  # of what the counter is a fraction of
    "theoretical_occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "tensor_utilisation": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
}
_SECTORS = {  # as 32 bytes each
    "l2_bytes": "lts__t_sectors_srcunit_tex.sum",
    "l2_read_bytes": "lts__t_sectors_srcunit_tex_op_read.sum",
    "l2_write_bytes": "lts__t_sectors_srcunit_tex_op_write.sum",
}
_QUOTIENTS = {
    "issue_utilisation": ("smsp__inst_issued.sum", "smsp__cycles_active.sum"),
    "active_lanes": ("smsp__thread_inst_executed.sum", "smsp__inst_executed.sum"),
    "predicated_on_lanes": ("smsp__thread_inst_executed_pred_on.sum", "smsp__inst_executed.sum"),
} | {
    stall: (f"smsp__warps_issue_{stall.replace('stall', 'stalled', 1)}.sum", "sm__warps_active.sum")
    for stall in STALLS
}
_ATOMIC_CYCLES = ("lts__d_atomic_input_cycles_active.max", "lts__cycles_elapsed.max")
_WORKED = ("sm__cycles_active.max", "sm__cycles_elapsed.max")  # the launch is not work
_FP32 = {  # operations of one instruction in one lane
    f"smsp__sass_thread_inst_executed_op_f{op}_pred_on.sum": count
    for op, count in (("fma", 2), ("add", 1), ("mul", 1))
}
_UNITS = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}  # that ncu may choose
# What a file of counters has instead of times, and of the context of the run with the same rows.
NO_TIMES = {"iterations": 1, "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"}
CONTEXT = ("gpu_name", "git_commit", "git_dirty", "build_type", "suite", "ladders")


def convert(profile: Path, rows: Path, like: Path | None, version: str) -> str:
    """Write as Google Benchmark JSON what `ncu --csv --page raw` printed.

    Args:
        profile: the output of ncu, one launch per line.
        rows: a line for each launch, in the same order: row name, tab, kernel name.
        like: a results file with the same rows; its context tells GPU, commit and ladders.
        version: of Nsight Compute.

    Raises:
        ResultError: the files cannot be read, or do not belong together.
    """
    context = files.read(like)["context"] if like else {}
    context = {key: context[key] for key in CONTEXT if key in context}
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
            raise ResultError(f"{rows}: {row} appears twice")
        try:
            benchmarks[row] = _benchmark(row, _counters(launch))
        except ValueError as error:
            raise ResultError(f"{profile}: launch {i} ({row}): {error}") from error
    return files.by_row(context, "benchmarks", list(benchmarks.values()))


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
        found.append((bare(row.strip()), kernel.strip()))
    return found


def _launches(path: Path) -> list[dict[str, str]]:
    """Rows of the CSV, with their unit where it is no base unit, less what was said around it."""
    lines = [line for line in files.read_text(path).splitlines() if line.startswith('"')]
    reader = csv.DictReader(lines, restval="")
    if "ID" not in (reader.fieldnames or []):
        raise ResultError(f"{path}: not what 'ncu --csv --page raw' prints: no column 'ID'")
    launches: list[dict[str, str]] = []
    units: dict[str, str] = {}
    try:
        read = list(reader)
    except csv.Error as error:
        raise ResultError(f"{path}: {error}") from error
    for number, line in enumerate(read, start=1):
        if None in line:  # where DictReader keeps the cells past the columns
            raise ResultError(f"{path}: line {number} below the columns has too many cells")
        if line["ID"].strip():
            scaled = {metric: f"{line[metric]} {unit}" for metric, unit in units.items()}
            launches.append(line | scaled)
        else:
            units = {metric: unit for metric, unit in line.items() if unit in _UNITS}
    return launches


def _counters(launch: dict[str, str]) -> dict[str, float]:
    found = {}
    for counter, metrics in _METRICS.items():
        values = [v for metric in metrics if (v := _value(launch, metric)) is not None]
        if values:
            found[counter] = sum(values)
    for counter, metric in _PERCENT.items():
        if (percent := _value(launch, metric)) is not None:
            found[counter] = percent / 100
    for counter, metric in _SECTORS.items():
        if (sectors := _value(launch, metric)) is not None:
            found[counter] = 32 * sectors
    for counter, metrics in _QUOTIENTS.items():
        over, under = (_value(launch, metric) for metric in metrics)
        if over is not None and under:
            found.setdefault(counter, over / under)
    cycles = [v for m in _ATOMIC_CYCLES + _WORKED if (v := _value(launch, m)) is not None]
    if len(cycles) == 4 and all(cycles[1:]):
        found["l2_atomic_utilisation"] = cycles[0] / cycles[1] * cycles[3] / cycles[2]
    executed = {m: count for m in _FP32 if (count := _value(launch, m)) is not None}
    if len(executed) == len(_FP32):
        found["fp32_operations"] = sum(_FP32[metric] * count for metric, count in executed.items())
    if "dram_read_bytes" in found and "dram_write_bytes" in found:
        found["dram_bytes"] = found["dram_read_bytes"] + found["dram_write_bytes"]
    for counter in [c for c in found if c.endswith(("_wavefronts", "_sectors"))]:
        requests = found.get(counter.rpartition("_")[0] + "_requests")
        if requests:
            found[f"{counter}_per_request"] = found[counter] / requests
    return found


def _value(launch: dict[str, str], metric: str) -> float | None:
    text = (launch.get(metric) or "").strip().replace(",", "")
    text, _, unit = text.partition(" ")
    if not text or text == "n/a":
        return None
    try:
        value = float(text) * _UNITS.get(unit, 1.0)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{metric} is '{text}'")
    return value


def _benchmark(row: str, counters: dict[str, float]) -> dict[str, Any]:
    name = f"{row}/manual_time"
    return {"name": name, "run_name": name, "run_type": "iteration"} | NO_TIMES | counters
