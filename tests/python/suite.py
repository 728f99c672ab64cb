# SPDX-License-Identifier: MIT
"""A results file as the benchmark program writes it, with figures near an H200's."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

CEILINGS = {"dram_copy": 3.99e12, "dram_read": 4.658e12, "shared_memory": 32.6e12, "fma": 63.7e12}


def axes(*names: str, **facets: list[str]) -> list[dict[str, Any]]:
    plain = [{"name": name} for name in names]
    return plain + [{"name": n, "labels": v, "facet": True} for n, v in facets.items()]


def rung(name: str, idea: str, role: str = "step", precision: str = "", **more: Any) -> dict:
    return {"name": name, "idea": idea, "role": role, "precision": precision, **more}


def grown(ladder: dict[str, Any]) -> dict[str, Any]:
    """Give rungs the ladder's ceiling, and each step of no experiment the one before as parent."""
    step = ""
    for each in ladder["rungs"]:
        if ladder["ceiling"] and not each["precision"]:
            each.setdefault("ceilings", [{"rung": ladder["ceiling"], "products": 1}])
        if each["role"] == "step" and not each["precision"] and "factors" not in ladder:
            each |= {"builds_on": step} if step else {}
            step = each["name"]
    return ladder


SMEM = {  # rung: (load wavefronts, store wavefronts, percent of the roof)
    "row_write_row_read": (1, 1, 99.1),
    "column_write_column_read": (32, 32, 3.1),
    "row_write_column_read": (32, 1, 6.0),
    "row_write_column_read_padded": (1, 1, 98.9),
    "row_write_column_read_swizzled": (1, 1, 98.7),
    "row_write_column_read_dynamic": (32, 1, 6.0),
    "row_write_column_read_dynamic_padded": (1, 1, 98.8),
    "rectangle_row_write_row_read": (1, 1, 98.9),
    "rectangle_row_write_column_read": (16, 1, 11.8),
    "rectangle_padded_by_one": (2, 1, 66.1),
    "rectangle_padded_by_two": (1, 1, 98.4),
}


def factors(name: str) -> dict[str, str]:
    """Return the factors of a layout, as its name tells them."""
    layout, _, padded = name.partition("_padded")
    padding = {"_by_one": "1", "_by_two": "2"}.get(padded, "1") if "_padded" in name else "0"
    return {"layout": layout, "padding": padding}


CATALOGUE = [
    {
        "name": "transpose",
        "title": "Transpose",
        "quantity": "bytes",
        "axes": axes("rows", "columns", element=["2", "4", "8"]),
        "headline": "rows:8192/columns:8192/element:4",
        "ceiling": "transpose/copy",
        "rungs": [
            rung("copy", "The copy that no transpose can beat.", "ceiling"),
            rung("naive", "Reads run along rows, writes stride down columns."),
            rung("tile", "A 32x32 tile in shared memory makes both sides coalesced."),
            rung("padded", "One column of padding removes the bank conflicts."),
            rung("rows_per_thread", "32x8 threads move four rows each, for more bytes in flight."),
            rung("vectorised", "16-byte accesses on both sides with a register transpose."),
            rung("cublas", "cublasSgeam.", "peer"),
        ],
    },
    {
        "name": "sgemm",
        "title": "SGEMM",
        "quantity": "flops",
        "axes": axes("m", "n", "k"),
        "headline": "m:4096/n:4096/k:4096",
        "ceiling": "roof/fma",
        "rungs": [
            rung("naive", "One output per thread, reads uncoalesced."),
            rung("coalesced", "Consecutive threads take consecutive columns."),
            rung("tiled", "A 32x32 tile of each operand in shared memory."),
            rung("register_tile", "Each thread computes 8x8 outputs from registers."),
            rung("vectorised", "float4 accesses, A transposed while it is stored."),
            rung("pipelined", "cp.async loads the next tiles during the arithmetic."),
            rung("cublas", "cublasSgemm, pedantic FP32.", "peer"),
            rung("cublas_tf32", "cublasSgemm on tensor cores.", "peer", "tf32"),
        ],
    },
    {
        "name": "reduction",
        "title": "Reduction",
        "quantity": "bytes",
        "axes": axes("elements", operation=["sum_of_squares", "sum"]),
        "headline": "elements:268435456/operation:sum_of_squares",
        "ceiling": "roof/dram_read",
        "rungs": [
            rung("global_atomic", "One global atomic an element."),
            rung("shared_tree", "A tree in shared memory, one atomic per block."),
            rung("warp_shuffle", "The last five steps stay in registers."),
            rung("grid_stride", "A grid of the GPU's size, many elements per thread."),
            rung("vectorised", "Eight independent float4 loads in flight."),
            rung("cub", "cub::DeviceReduce.", "peer"),
        ],
    },
    {
        "name": "histogram",
        "title": "Histogram",
        "quantity": "bytes",
        "axes": axes("bins", "keys", distribution=["uniform", "constant", "zipf", "sorted"]),
        "headline": "bins:256/keys:268435456/distribution:uniform",
        "ceiling": "roof/dram_read",
        "rungs": [
            rung("global", "One global atomic per key."),
            rung("shared", "One private copy of the bins a block, merged at the end."),
            rung("distributed", "Bins split over a cluster's shared memories.", sweeps=["cluster"]),
            rung("cub", "cub::DeviceHistogram.", "peer"),
        ],
    },
    {
        "name": "smem_layout",
        "title": "Shared-memory layout",
        "quantity": "bytes",
        "axes": axes("repetitions"),
        "headline": "repetitions:4096",
        "ceiling": "roof/shared_memory",
        "factors": ["layout", "padding"],
        "rungs": [
            rung(name, name.replace("_", " ").capitalize() + ".", factors=factors(name))
            for name in SMEM
        ],
    },
    {
        "name": "roof",
        "title": "Measured roofs",
        "quantity": "bytes",
        "axes": axes("size"),
        "headline": "size:2048",
        "ceiling": "",
        "rungs": [rung(name, name.replace("_", " ") + ".", "ceiling") for name in CEILINGS],
    },
]
CATALOGUE = [*map(grown, CATALOGUE)]

SGEMM = {  # TFLOP/s at 512, 1024, 2048, 4096, 8192 and the rectangle
    "naive": (0.48, 0.49, 0.49, 0.50, 0.50, 0.44),
    "coalesced": (5.7, 6.3, 6.4, 6.2, 5.8, 5.1),
    "tiled": (8.0, 9.1, 9.4, 9.1, 9.1, 6.0),
    "register_tile": (3.4, 14.3, 34.8, 36.4, 40.6, 2.9),
    "vectorised": (6.1, 17.7, 44.0, 48.3, 49.8, 4.2),
    "pipelined": (8.4, 27.7, 46.1, 51.3, 51.8, 5.5),
    "cublas": (18.8, 38.1, 50.3, 51.1, 51.0, 6.9),
    "cublas_tf32": (40.0, 72.0, 270.0, 393.0, 416.0, 9.9),
}
TRANSPOSE = {  # GB/s for 4-byte elements at 1024, 2048, 4096, 8192, 16384
    "copy": (2755, 5150, 3715, 4120, 4232),
    "naive": (469, 474, 525, 557, 550),
    "tile": (1023, 1222, 977, 1014, 1019),
    "padded": (1908, 2556, 1681, 1769, 1775),
    "rows_per_thread": (2617, 4962, 3364, 3570, 3573),
    "vectorised": (2755, 5120, 3590, 3870, 3990),
    "cublas": (2150, 4413, 3221, 3718, 3945),
}
REDUCTION = {  # (GB/s for large inputs, fixed cost in us)
    "global_atomic": (165, 4.1),
    "shared_tree": (872, 4.0),
    "warp_shuffle": (1810, 3.9),
    "grid_stride": (3650, 4.4),
    "vectorised": (4560, 4.6),
    "cub": (4634, 6.2),
}
BINS = (256, 4096, 16384, 32768, 57344, 65536, 131072, 458752)
HISTOGRAM = {  # GB/s of keys by bins, uniform
    "global": (15.5, 140, 272, 301, 323, 367, 369, 390),
    "shared": (4489, 4479, 4423, 4267, 4177, None, None, None),
    "2": (532, 538, 633, 640, 646, 655, None, None),
    "4": (185, 345, 368, 370, 375, 375, 366, None),
    "8": (154, 284, 266, 290, 298, 301, 308, 311),
    "16": (114, 161, 274, 266, 259, 282, 273, 281),
    "cub": (1728, 362, 373, 200, 106, 99, 79, 66),
}
SKEW = {"uniform": 1.0, "constant": 0.35, "zipf": 0.7, "sorted": 0.55}


def row(name: str, speed: float, work: float, flops: float = 0, **counters: Any) -> dict[str, Any]:
    """Return one measured row; speed in the ladder's quantity a second, work in that quantity."""
    seconds = work / speed
    rates = {"bytes_per_second": (work if not flops else counters.pop("bytes")) / seconds}
    if flops:
        rates |= {"flops_per_second": flops / seconds}
        rates |= {"arithmetic_intensity": flops / (rates["bytes_per_second"] * seconds)}
    return {
        "name": f"{name}/manual_time",
        "run_name": f"{name}/manual_time",
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
        "threads": 1,
        "iterations": 100,
        "real_time": seconds * 1e6,
        "cpu_time": seconds * 1.1e6,
        "time_unit": "us",
        **rates,
        "theoretical_occupancy": 0.75,
        "registers": 40,
        "static_shared_bytes": 4224,
        "dynamic_shared_bytes": 0,
        "block_threads": 256,
        "grid_blocks": 1056,
        "samples": 100,
        "min_seconds": seconds * 0.995,
        "q1_seconds": seconds * 0.998,
        "median_seconds": seconds,
        "q3_seconds": seconds * 1.002,
        **counters,
    }


def skipped(name: str, reason: str) -> dict[str, Any]:
    """Return one row that did not apply, as libbenchmark 1.8 and later write it."""
    return {
        "name": f"{name}/manual_time",
        "run_name": f"{name}/manual_time",
        "run_type": "iteration",
        "skipped": True,
        "skip_message": reason,
        "iterations": 0,
        "real_time": 0.0,
        "cpu_time": 0.0,
        "time_unit": "us",
    }


def rows(scale: float = 1.0) -> list[dict[str, Any]]:
    """Return every row of the suite on a GPU `scale` times as fast as an H200."""
    roof = {name: value * scale for name, value in CEILINGS.items()}
    found = []
    for name, speeds in TRANSPOSE.items():
        for element in (4, 2, 8):
            for i, n in enumerate((1024, 2048, 4096, 8192, 16384)):
                if element != 4 and n != 8192:
                    continue
                case = f"transpose/{name}/rows:{n}/columns:{n}/element:{element}"
                grain = {2: 0.7, 4: 1.0, 8: 1.04}[element] if name != "copy" else 1.0
                grain = min(grain, TRANSPOSE["copy"][i] / speeds[i])
                percent = 100 * grain * speeds[i] / TRANSPOSE["copy"][i]
                if name == "cublas" and element == 2:
                    found.append(skipped(case, "cuBLAS has no 2-byte geam"))
                else:
                    speed = speeds[i] * 1e9 * grain * scale
                    counters = {} if name == "copy" else {"percent_of_ceiling": percent}
                    found.append(row(case, speed, 2.0 * n * n * element, **counters))
    for name, speeds in SGEMM.items():
        shapes = [(n, n, n) for n in (512, 1024, 2048, 4096, 8192)]
        shapes += [(1000, 3000, 77)]
        for (m, n, k), speed in zip(shapes, speeds, strict=True):
            own = name != "cublas_tf32"
            counters = {"percent_of_ceiling": 100 * speed * 1e12 / CEILINGS["fma"]} if own else {}
            work, size = 2.0 * m * n * k, 4.0 * (m * n + n * k + m * k)
            case = f"sgemm/{name}/m:{m}/n:{n}/k:{k}"
            found.append(row(case, speed * 1e12 * scale, work, work, bytes=size, **counters))
    for name, (peak, fixed) in REDUCTION.items():
        for operation in ("sum_of_squares", "sum"):
            for n in (1 << e for e in range(12, 29)):
                speed = 4.0 * n / (4.0 * n / (peak * 1e9) + fixed * 1e-6)
                flops = n if operation == "sum" else 0  # the squares are of integers
                case = f"reduction/{name}/elements:{n}/operation:{operation}"
                percent = 100 * speed / CEILINGS["dram_read"]
                counters = {"percent_of_ceiling": percent} | ({"bytes": 4.0 * n} if flops else {})
                found.append(row(case, speed * scale, 4.0 * n, flops, **counters))
    for name, speeds in HISTOGRAM.items():
        cluster = f"/cluster:{name}" if name.isdigit() else ""
        for distribution, skew in SKEW.items():
            for bins, speed in zip(BINS, speeds, strict=True):
                label = "distributed" if cluster else name
                case = f"histogram/{label}/bins:{bins}/keys:268435456"
                case += f"/distribution:{distribution}{cluster}"
                if speed is None:
                    found.append(skipped(case, "the bins do not fit in shared memory"))
                else:
                    speed *= 1e9 * (1.0 if name == "shared" else skew)
                    percent = 100 * speed / CEILINGS["dram_read"]
                    counters = {"percent_of_ceiling": percent}
                    found.append(row(case, speed * scale, 4.0 * (1 << 28), **counters))
    for name, (loads, stores, percent) in SMEM.items():
        speed = percent / 100 * roof["shared_memory"]
        counters = {"predicted_load_wavefronts": loads, "predicted_store_wavefronts": stores}
        found.append(
            row(
                f"smem_layout/{name}/repetitions:4096",
                speed,
                1e10,
                percent_of_ceiling=percent,
                **counters,
            )
        )
    for name, speed in roof.items():
        if name == "fma":
            counters = {"bytes": math.nan}
            made = row(f"roof/{name}/size:2048", speed, 1e12, 1e12, **counters)
            del made["bytes_per_second"], made["arithmetic_intensity"]
            found.append(made)
        else:
            found.append(row(f"roof/{name}/size:2048", speed, 1e10))
    return found


def document(scale: float = 1.0, **context: str) -> dict[str, Any]:
    """Return the whole file; `context` overrides what it says of the machine."""
    base = {
        "date": "2026-01-02T03:04:05+00:00",
        "host_name": "gpu-node",
        "executable": "./cuda_ladders",
        "num_cpus": 16,
        "library_version": "v1.9.1",
        "library_build_type": "release",
        "json_schema_version": 1,
        "gpu_name": "NVIDIA H200",
        "gpu_uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "compute_capability": "9.0",
        "sms": "132",
        "driver_version": "13.0",
        "runtime_version": "13.0",
        "build_type": "Release",
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "git_dirty": "false",
        "cache_mode": "cold",
        "ladders": json.dumps(CATALOGUE),
    }
    return {"context": base | context, "benchmarks": rows(scale)}


def only(document: dict[str, Any], *prefixes: str) -> dict[str, Any]:
    """Return a copy of a file that has only the rows whose names start so."""
    kept = [each for each in document["benchmarks"] if each["name"].startswith(prefixes)]
    return {**document, "benchmarks": kept}


def write(path: Path, content: dict[str, Any] | None = None) -> Path:
    """Write a results file, by default the whole suite, and return its path."""
    path.write_text(json.dumps(content or document()), encoding="utf-8")
    return path
