# SPDX-License-Identifier: MIT
"""The suite's results as a run with hardware counters writes them, with every roof."""

import copy
import json
import math
from itertools import product

import suite

ROOFS = {  # rung: (column, best speed, precision, sweeps); the last value of each axis is the best
    "memcpy": ("bytes", 4.27e12, "", {}),
    "dram_copy": ("bytes", 4.12e12, "", {"bytes": (4, 16), "unroll": (1, 4), "blocks": (1, 2)}),
    "dram_read": ("bytes", 4.54e12, "", {"bytes": (4, 16), "unroll": (1, 4)}),
    "dram_write": ("bytes", 4.36e12, "", {"bytes": (4, 16)}),
    "l2_read": ("bytes", 8.45e12, "", {"mebibytes": (128, 64, 32, 16)}),
    "shared_memory": ("bytes", 33.2e12, "", {"bytes": (4, 16)}),
    "distributed_shared_memory": (
        "bytes",
        4.2e12,
        "",
        {"cluster": (16, 8, 4, 2), "unroll": (4, 8)},
    ),
    "fma": ("flops", 65e12, "", {"chains": (4, 16)}),
    "tf32": ("flops", 400e12, "tf32", {"tiles": (1, 2)}),
    "bf16": ("flops", 800e12, "bf16", {"tiles": (1, 2)}),
    "shared_atomics_same": ("atomics", 7.1e12, "", {"blocks": (1, 2)}),
    "shared_atomics_spread": ("atomics", 6.5e12, "", {"blocks": (1, 2)}),
    "global_atomics_same": ("atomics", 4e10, "", {"blocks": (1, 2)}),
    "global_atomics_spread": ("atomics", 8.4e11, "", {"blocks": (1, 2)}),
    "global_atomics_scattered": ("atomics", 1.04e11, "", {"blocks": (1, 2)}),
}
ISSUED = 1.04e12  # warp instructions per second of the roof of arithmetic
TARGETS = {
    "transpose/tile": "global_store_sectors_per_request",
    "transpose/padded": "shared_load_wavefronts_per_request",
    "transpose/rows_per_thread": "warp_instructions",
    "transpose/vectorised": "stall_barrier",
    "sgemm/coalesced": "global_load_sectors_per_request",
    "sgemm/tiled": "l1_bytes",
    "sgemm/vectorised": "warp_instructions",
    "reduction/shared_tree": "global_atomic_requests",
    "reduction/grid_stride": "achieved_occupancy",
    "histogram/shared": "global_atomic_requests",
}
# What single rungs have instead of what `_counters` makes up: sectors or wavefronts per request.
PER_REQUEST = {
    "transpose/naive": {"global_load": 4.0, "global_store": 32.0},
    "transpose/tile": {"global_load": 4.0, "global_store": 4.0, "shared_load": 32.0},
    "sgemm/naive": {"global_load": 16.5, "global_store": 32.0},
}
DRAM = {"sgemm/naive": 42.0, "sgemm/tiled": 21.0}  # bytes of DRAM over the algorithmic
COUNTERS = (
    "achieved_occupancy dram_bytes dram_read_bytes dram_write_bytes l2_bytes l1_bytes "
    "fp32_operations warp_instructions issue_utilisation tensor_utilisation "
    "l2_atomic_utilisation active_lanes global_atomic_requests global_atomic_sectors "
    "global_atomic_sectors_per_request shared_atomic_requests shared_atomic_wavefronts "
    "stall_long_scoreboard stall_barrier global_load_requests global_load_sectors "
    "global_load_sectors_per_request global_store_requests global_store_sectors "
    "global_store_sectors_per_request shared_load_requests shared_load_wavefronts "
    "shared_load_wavefronts_per_request shared_store_requests shared_store_wavefronts "
    "shared_store_wavefronts_per_request".split()
)
MOST_DRAM, MOST_L2 = 4e12, 8e12  # bytes/s, that no row is above its roof


def catalogue() -> list[dict]:
    """Return the suite's ladders with every roof, and the rungs' target counters."""
    ladders = copy.deepcopy(suite.CATALOGUE)
    for ladder in ladders:
        for rung in ladder["rungs"]:
            if target := TARGETS.get(f"{ladder['name']}/{rung['name']}"):
                rung["target"] = target
    ladders[-1]["rungs"] = [
        suite.rung(name, f"{name}.", "ceiling", precision, sweeps=list(sweeps))
        for name, (_, _, precision, sweeps) in ROOFS.items()
    ]
    return ladders


def document(**context: str) -> dict:
    """Return the whole file; `context` overrides what it says of the machine."""
    made = suite.document(
        **({"ladders": json.dumps(catalogue()), "l2_bytes": str(60 << 20)} | context)
    )
    made["context"]["hardware_counters"] = "CUPTI 13.0, 9 passes"
    kept = [row for row in made["benchmarks"] if not row["name"].startswith("roof/")]
    made["benchmarks"] = kept + _roofs()
    for row in made["benchmarks"]:
        if not row.get("skipped"):
            row |= _counters(row)
    return made


def row(made: dict, start: str) -> dict:
    """Return the one row of a document whose name begins so."""
    (found,) = [row for row in made["benchmarks"] if row["name"].startswith(start)]
    return found


def _roofs() -> list[dict]:
    found = []
    for name, (quantity, best, _, sweeps) in ROOFS.items():
        combinations = list(product(*sweeps.values()))
        for i, values in enumerate(combinations, start=1):
            axes = "".join(f"/{axis}:{value}" for axis, value in zip(sweeps, values, strict=True))
            speed = best * (0.5 + 0.5 * i / len(combinations))
            made = suite.row(f"roof/{name}/size:2048{axes}", speed, 1e10)
            made[f"{quantity}_per_second"] = made.pop("bytes_per_second")
            found.append(made)
    return found


def _counters(row: dict) -> dict[str, float]:
    """Make up plausible counters for a row, those of PER_REQUEST and DRAM as they stand there."""
    rung = "/".join(row["name"].split("/")[:2])
    seconds = row["median_seconds"]
    moved = row.get("bytes_per_second", math.nan) * seconds
    if rung.startswith("roof/"):
        issued = ISSUED if rung == "roof/fma" else ISSUED / 20
        return {
            "warp_instructions": issued * seconds,
            "issue_utilisation": 1.0,
            "grid_blocks": 1e12 * seconds,
        }
    shared = rung.startswith("smem_layout/")
    per = {"global_load": 4.0, "global_store": 4.0, "shared_load": 1.0, "shared_store": 1.0}
    per |= PER_REQUEST.get(rung, {})
    if shared:
        per["shared_load"] = row["predicted_load_wavefronts"]
        per["shared_store"] = row["predicted_store_wavefronts"]
    requests = dict.fromkeys(per, moved / 256)  # 128 bytes each, both ways
    if shared:
        requests |= {"global_load": 0.0, "global_store": 1000.0}
    if rung == "transpose/naive":
        requests |= {"shared_load": 0.0, "shared_store": 0.0}
    far = 1e6 if shared else moved  # what leaves the SM
    dram = min(DRAM.get(rung, 1.25) * far, MOST_DRAM * seconds)
    written = 0.5 if rung.startswith("transpose/") else 0.02
    found = {
        "achieved_occupancy": 0.6,
        "dram_bytes": dram,
        "dram_read_bytes": dram * (1 - written),
        "dram_write_bytes": dram * written,
        "l2_bytes": min(1.5 * far, MOST_L2 * seconds),
        "l1_bytes": 2.0 * far,
        "fp32_operations": 0.0 if "tf32" in rung else row.get("flops_per_second", 0.0) * seconds,
        "warp_instructions": moved / 8,
        "issue_utilisation": 0.3,
        "tensor_utilisation": 0.0,
        "l2_atomic_utilisation": 0.0,
        "active_lanes": 32.0,
        "global_atomic_requests": 10.0,
        "global_atomic_sectors": 10.0,
        "global_atomic_sectors_per_request": 1.0,
        "shared_atomic_requests": 0.0,
        "shared_atomic_wavefronts": 0.0,
        "stall_long_scoreboard": 0.5,
        "stall_barrier": 0.25,
    }
    for kind, value in per.items():
        unit = "sectors" if kind.startswith("global") else "wavefronts"
        found[f"{kind}_requests"] = requests[kind]
        found[f"{kind}_{unit}"] = requests[kind] * value
        if requests[kind]:
            found[f"{kind}_{unit}_per_request"] = value
    return found
