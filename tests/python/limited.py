# SPDX-License-Identifier: MIT
"""A results file whose rows carry hardware counters: all roofs, and a ladder of rungs as asked."""

from __future__ import annotations

import json
from typing import Any

import suite

ROOFS = {  # rung: (speed in bytes/s or FLOP/s, its own axes and their best values)
    "memcpy": (4.28e12, {}),
    "dram_copy": (4.2e12, {"bytes": 16, "in_flight": 2, "blocks": 2}),
    "dram_read": (4.6e12, {"bytes": 16, "in_flight": 4, "blocks": 2}),
    "dram_write": (4.4e12, {"bytes": 16, "blocks": 2}),
    "l2_read": (6.5e12, {"mebibytes": 16}),
    "shared_memory": (32.9e12, {"bytes": 4}),
    "distributed_shared_memory": (3.3e12, {"cluster": 2}),
    "fma": (65e12, {"chains": 16}),
    "tf32": (480e12, {}),
    "bf16": (940e12, {}),
    "shared_atomics_same": (4e12, {}),
    "shared_atomics_spread": (16e12, {}),
    "distributed_atomics_scattered": (240e9, {}),
    "global_atomics_same": (5.44e9, {}),
    "global_atomics_spread": (400e9, {}),
    "global_atomics_scattered": (390e9, {}),
}
FLOPS = ("fma", "tf32", "bf16")
SECONDS = 1e-3

# What a kernel of one millisecond does at half of nothing: too little of anything to limit it.
IDLE = {
    "achieved_occupancy": 0.7,
    "active_lanes": 32.0,
    "dram_bytes": 0.5e9,
    "dram_read_bytes": 0.25e9,
    "dram_write_bytes": 0.25e9,
    "l2_bytes": 0.6e9,
    "l2_read_bytes": 0.3e9,
    "l2_write_bytes": 0.3e9,
    "l1_bytes": 0.6e9,
    "fp32_operations": 1e9,
    "warp_instructions": 1e7,
    "grid_blocks": 1e3,
    "issue_utilisation": 0.1,
    "tensor_utilisation": 0.0,
    "l2_atomic_utilisation": 0.0,
    "global_load_requests": 2e6,
    "global_load_sectors": 8e6,
    "global_load_sectors_per_request": 4.0,
    "global_store_requests": 2e6,
    "global_store_sectors": 64e6,
    "global_store_sectors_per_request": 32.0,
    "global_atomic_requests": 0.0,
    "global_atomic_sectors": 0.0,
    "shared_load_requests": 1e6,
    "shared_load_wavefronts": 1e6,
    "shared_load_wavefronts_per_request": 1.0,
    "shared_store_requests": 1e6,
    "shared_store_wavefronts": 2e6,
    "shared_store_wavefronts_per_request": 2.0,
    "shared_atomic_requests": 0.0,
    "shared_atomic_wavefronts": 0.0,
    "distributed_sectors": 0.0,
    "distributed_atomic_sectors": 0.0,
    "stall_long_scoreboard": 0.6,
    "stall_barrier": 0.2,
    "stall_not_selected": 0.7,
}


def row(name: str, seconds: float = SECONDS, **counters: float) -> dict[str, Any]:
    """One row of the ladder "work" at its only case; counters differ from IDLE as given."""
    return suite.row(f"work/{name}/n:8", 1e9 / seconds, 1e9) | IDLE | counters


def roof_rows(**changes: float) -> list[dict[str, Any]]:
    """The rows of the roofs: of those with axes a worse one first. `changes` are to speeds."""
    found = []
    for rung, (speed, sweep) in ROOFS.items():
        speed = changes.get(rung, speed)
        for part, values in ((0.5, dict.fromkeys(sweep, 1)), (1.0, sweep)):
            if part < 1 and not sweep:
                continue
            own = "".join(f"/{axis}:{value}" for axis, value in values.items())
            made = suite.row(f"roof/{rung}/size:4096{own}", part * speed, part * speed * SECONDS)
            if rung in FLOPS:
                made["flops_per_second"] = made.pop("bytes_per_second")
            if "atomics" in rung:
                made["atomics_per_second"] = made["bytes_per_second"] / 4
            found.append(made | IDLE)
    by_name = {made["name"].split("/")[1]: made for made in found}
    by_name["global_atomics_same"]["l2_atomic_utilisation"] = 0.8
    by_name["distributed_atomics_scattered"]["distributed_atomic_sectors"] = 60e9 * SECONDS
    by_name["global_atomics_scattered"]["global_atomic_sectors"] = 97.5e9 * SECONDS
    by_name["l2_read"]["l2_bytes"] = 6.5e12 * SECONDS
    by_name["dram_write"]["grid_blocks"] = 1.6e9 * SECONDS
    return found


def document(*rows: dict[str, Any], roofs: list | None = None, **context: str) -> dict[str, Any]:
    """The whole file; `roofs` are rows to put in place of `roof_rows()`."""
    names = dict.fromkeys(made["name"].split("/")[1] for made in rows)
    ladders = [
        {
            "name": "roof",
            "title": "Measured roofs",
            "quantity": "bytes",
            "axes": [{"name": "size"}],
            "headline": "size:4096",
            "rungs": [
                suite.rung(
                    name,
                    name.replace("_", " ").capitalize() + ".",
                    "ceiling",
                    name if name in FLOPS[1:] else "",
                    sweeps=list(sweep),
                )
                for name, (_, sweep) in ROOFS.items()
            ],
        },
        {
            "name": "work",
            "title": "Work",
            "quantity": "bytes",
            "axes": [{"name": "n"}],
            "headline": "n:8",
            "ceiling": "roof/dram_read",
            "rungs": [suite.rung(name, f"Idea of {name}.") for name in names],
        },
    ]
    suite.grown(ladders[1])
    base = suite.document()["context"] | {
        "ladders": json.dumps(ladders),
        "hardware_counters": "CUPTI 13.0, 9 passes",
        "launch_nanoseconds": "3300",
    }
    benchmarks = [*(roof_rows() if roofs is None else roofs), *rows]
    return {"context": base | context, "benchmarks": benchmarks}
