# SPDX-License-Identifier: MIT
"""What the emulator and the profiler write, with the true figures of a few 32x32 tiles."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import suite
from suite import axes, rung

BANKS = 32
SHAPE = "rows:1024/columns:1024/element:4"
LAYOUTS = {  # rung: (words per row, along rows when stored, along rows when loaded)
    "row_row": (32, True, True),
    "column_column": (32, False, False),
    "row_column": (32, True, False),
    "row_column_padded": (33, True, False),
}
TILES = {"tiled": 32, "padded": 33}
CATALOGUE = [
    {
        "name": "transpose",
        "title": "Transpose",
        "quantity": "bytes",
        "axes": axes("rows", "columns", element=["4", "8"]),
        "headline": "rows:8192/columns:8192/element:4",
        "small_headline": SHAPE,
        "ceiling": "transpose/copy",
        "rungs": [
            rung("naive", "Stores stride down columns."),
            rung("tiled", "A 32x32 tile in shared memory."),
            rung("padded", "A spare column.", target="shared_load_wavefronts_per_request"),
            rung("cublas", "cublasSgeam.", "peer"),
        ],
    },
    {
        "name": "smem_layout",
        "title": "Shared-memory layout",
        "quantity": "bytes",
        "axes": axes("repetitions"),
        "headline": "repetitions:4096",
        "small_headline": "repetitions:4",
        "ceiling": "roof/shared_memory",
        "factors": ["layout", "padding"],
        "rungs": [rung(name, f"{name}.", factors=suite.factors(name)) for name in LAYOUTS],
    },
    {
        "name": "histogram",
        "title": "Histogram",
        "quantity": "bytes",
        "axes": axes("bins", "keys"),
        "headline": "bins:256/keys:268435456",
        "ceiling": "roof/dram_read",
        "rungs": [
            rung("shared", "A copy of the bins a block."),
            rung("distributed", "Bins split over a cluster.", sweeps=["cluster"]),
        ],
    },
]
CATALOGUE = [*map(suite.grown, CATALOGUE)]


def addresses(words: int, *, along_row: bool) -> list[int]:
    """Bytes that the lanes of a warp want of the first row, or column, of a tile."""
    return [4 * (lane if along_row else lane * words) for lane in range(32)]


def wavefronts(request: list[int]) -> int:
    """Most words that one bank has to give."""
    words = {at // 4 for at in request}
    return max(sum(word % BANKS == bank for word in words) for bank in range(BANKS))


def traffic(space: str, operation: str, requests: int, each: float, ideal: float = 1) -> dict:
    """Return the counters of requests that take `each` transactions where `ideal` would do."""
    unit = {"shared": "wavefronts", "global": "sectors"}[space]
    start = f"{space}_{operation}"
    return {
        f"{start}_requests": requests,
        f"{start}_{unit}": requests * each,
        f"{start}_{unit}_ideal": requests * ideal,
        f"{start}_{unit}_per_request": each,
    }


def row(name: str, *counted: dict, **more: float) -> dict[str, Any]:
    """Return one emulated row; its times are those of a host."""
    fixed = {"name": f"{name}/manual_time", "run_name": f"{name}/manual_time"}
    fixed |= {"run_type": "iteration", "iterations": 1, "time_unit": "us"}
    counters = {
        "real_time": 12345.0,
        "cpu_time": 12345.0,
        "verified": 1.0,
        "relative_error": 0.0,
        "active_lanes": 32.0,
        "barriers": 1024.0,
        "registers": 32.0,
        "static_shared_bytes": 4096.0,
        "dynamic_shared_bytes": 0.0,
        "block_threads": 1024.0,
        "grid_blocks": 1024.0,
        "blocks_per_sm": 2.0,
        "theoretical_occupancy": 1.0,
        "occupancy_limit_blocks": 32.0,
        "occupancy_limit_warps": 2.0,
        "occupancy_limit_registers": 2.0,
        "occupancy_limit_shared": 44.0,
        "global_bytes": 8388608.0,
        "compulsory_bytes": 8388608.0,
    }
    for part in counted:
        counters |= {key: float(value) for key, value in part.items()}
    return fixed | counters | more


def rows() -> list[dict[str, Any]]:
    n = 32768
    found = [
        row(
            f"transpose/naive/{SHAPE}",
            traffic("global", "load", n, 4, 4),
            traffic("global", "store", n, 32, 4),
            static_shared_bytes=0.0,
        )
    ]
    for name, words in TILES.items():
        down = wavefronts(addresses(words, along_row=False))
        found.append(
            row(
                f"transpose/{name}/{SHAPE}",
                traffic("shared", "store", n, 1),
                traffic("shared", "load", n, down),
                traffic("global", "load", n, 4, 4),
                traffic("global", "store", n, 4, 4),
                static_shared_bytes=128.0 * words,
            )
        )
    found.append(row("transpose/naive/rows:64/columns:64/element:8"))
    found.append(suite.skipped(f"transpose/cublas/{SHAPE}", "a library's kernel"))
    for name, (words, stored, loaded) in LAYOUTS.items():
        store, load = (wavefronts(addresses(words, along_row=a)) for a in (stored, loaded))
        found.append(
            row(
                f"smem_layout/{name}/repetitions:4",
                traffic("shared", "store", 8448, store),
                traffic("shared", "load", 8448, load),
                traffic("global", "store", 8448, 4, 4),
                predicted_store_wavefronts=float(store),
                predicted_load_wavefronts=float(load),
            )
        )
    case = "bins:256/keys:1048576"
    atomics = traffic("shared", "atomic", n, 2.5), traffic("global", "atomic", 2112, 4, 4)
    found.append(row(f"histogram/shared/{case}", traffic("global", "load", n, 4, 4), *atomics))
    for cluster in (1, 2):
        found.append(
            row(
                f"histogram/distributed/{case}/cluster:{cluster}",
                traffic("global", "load", n, 4, 4),
                *atomics,
                distributed_requests=1000.0 * (cluster - 1),
                distributed_accesses=524288.0 * (cluster - 1),
                cluster_size=float(cluster),
            )
        )
    return found


def document(**context: str) -> dict[str, Any]:
    """Return the emulated results."""
    base = suite.document()["context"] | {"ladders": json.dumps(CATALOGUE)}
    for key in ("driver_version", "runtime_version", "gpu_uuid"):
        del base[key]
    base |= {"emulated": "true", "modelled_gpu": "h200"}
    return {"context": base | context, "benchmarks": rows()}


def points(size: str, sizes: range, limits: Any) -> list[dict[str, Any]]:
    """Return an occupancy curve; `limits` tells (limiter, blocks, threads) at a size."""
    found = []
    for value in sizes:
        limiter, blocks, threads = limits(value)
        occupancy = blocks * threads / 2048
        found.append({size: value, "blocks": blocks, "occupancy": occupancy, "limiter": limiter})
    return found


def details() -> dict[str, Any]:
    """Return what stands beside them."""
    lines, occupancy = [], []

    def line(name: str, file: str, operation: str, request: list[int]) -> None:
        n = 8448
        each = wavefronts(request)
        fixed = {"row": name, "kernel": "kernel", "file": file, "line": 118, "space": "shared"}
        counted = {"operation": operation, "bytes": 4, "requests": n, "lanes": 32 * n}
        counted |= {"transactions": n * each, "ideal": n, "worst": each, "worst_request": request}
        lines.append(fixed | counted)

    for name, words in TILES.items():
        row_name = f"transpose/{name}/{SHAPE}"
        line(row_name, "transpose.cu", "store", addresses(words, along_row=True))
        line(row_name, "transpose.cu", "load", addresses(words, along_row=False))
    for name, (words, stored, loaded) in LAYOUTS.items():
        row_name = f"smem_layout/{name}/repetitions:4"
        line(row_name, "smem_layout.cu", "store", addresses(words, along_row=stored))
        line(row_name, "smem_layout.cu", "load", addresses(words, along_row=loaded))

    def by_block(threads: int) -> tuple[str, int, int]:
        return min(("warps", 2048 // threads, threads), ("blocks", 32, threads), key=lambda x: x[1])

    for made in rows():
        if "skipped" in made:
            continue
        shared, threads = made["static_shared_bytes"], int(made["block_threads"])

        def by_shared(size: int, threads: int = threads) -> tuple[str, int, int]:
            fit = 233472 // (size + 1024)
            full = ("warps", 2048 // threads, threads)
            return min(full, ("shared memory", fit, threads), key=lambda x: x[1])

        occupancy.append(
            {
                "row": made["name"].removesuffix("/manual_time"),
                "registers": 32,
                "static_shared_bytes": int(shared),
                "dynamic_shared_bytes": 0,
                "block_threads": threads,
                "by_block": points("threads", range(32, 1025, 32), by_block),
                "by_shared": points("bytes", range(0, 232449, 1024), by_shared),
            }
        )
    return {"lines": lines, "occupancy": occupancy}


METRICS = {
    "smsp__inst_executed_op_shared_ld_pred_on_any.sum": "shared_load_requests",
    "smsp__inst_executed_op_shared_st_pred_on_any.sum": "shared_store_requests",
    "smsp__inst_executed_op_shared_atom_pred_on_any.sum": "shared_atomic_requests",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "shared_load_wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "shared_store_wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum": "shared_atomic_wavefronts",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "global_load_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global_load_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "global_store_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global_store_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": "global_atomic_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum": "global_atomic_sectors",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "active_lanes",
    "launch__registers_per_thread": "registers",
    "launch__occupancy_limit_shared_mem": "occupancy_limit_shared",
}


def profile(scale: dict[str, float] | None = None) -> tuple[str, str]:
    """Return (CSV as ncu prints it, rows) of hardware that does what was emulated.

    `scale` multiplies the counts of a rung, given as "ladder/rung".
    """
    out, listed = io.StringIO(), []
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    extra = ["sm__maximum_warps_per_active_cycle_pct", "never__collected.sum"]
    out.write("==PROF== Connected to process 123\n")
    writer.writerow(["ID", "Kernel Name", *METRICS, *extra])
    writer.writerow(["", "", *("inst" for _ in METRICS), "%", ""])
    kept = [made for made in rows() if "skipped" not in made]
    for i, made in enumerate(kept):
        name = made["name"].removesuffix("/manual_time")
        rung_name = "/".join(name.split("/")[:2])
        factor = (scale or {}).get(rung_name, 1.0)
        kernel = rung_name.rpartition("/")[2]
        values = [factor * made.get(counter, 0.0) for counter in METRICS.values()]
        cells = [f"{value:,.6g}" if value % 1 else f"{value:,.0f}" for value in values]
        writer.writerow(
            [
                i,
                f"void (anonymous namespace)::{kernel}<float, (int)32>(T1 *, int)",
                *cells,
                "100",
                "n/a",
            ]
        )
        listed.append(f"{name}\tladders::{kernel}<float>\n")
    return out.getvalue(), "".join(listed)


def write(folder: Path, *, with_details: bool = True) -> Path:
    """Write the emulated results as the program does and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    if with_details:
        (folder / "details.json").write_text(json.dumps(details()), encoding="utf-8")
    return suite.write(folder / "study.json", document())


def write_counters(folder: Path, scale: dict[str, float] | None = None) -> Path:
    """Write a profile, its rows and what `ladder counters` makes of them; return the last."""
    from ladder.io import ncu

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(("ncu.csv", "rows.txt"), profile(scale), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    like = suite.write(folder / "like.tmp", document())
    made = ncu.convert(folder / "ncu.csv", folder / "rows.txt", like, "2025.3")
    (folder / "counters.json").write_text(made, encoding="utf-8")
    like.unlink()
    return folder / "counters.json"
