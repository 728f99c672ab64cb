# SPDX-License-Identifier: MIT
"""One row of results: a benchmark as a run measured it, or as an emulator or profiler counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ladder.model.counters import OPERATIONS, SPACES, STALLS

# Those that any row may be asked for; what was not recorded is NaN.
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
    "shared_atomic_conflicts clock_held_by_power clock_held_by_heat clock_held_by_others watts "
    "joules flops_per_joule bytes_per_joule idle_share energy_clock_hz driver_clock_hz "
    "celsius power_over_energy energy_launch_seconds memory_clock_hz loads_per_second "
    "cycles_per_load".split()
) + [
    f"{space}_{operation}_{what}"
    for space, unit in SPACES.items()
    for operation in OPERATIONS
    for what in ("requests", unit, f"{unit}_ideal", f"{unit}_per_request")
]
COUNTERS += STALLS
_NONE: Mapping[str, Any] = {}  # of all rows that have none


def bare(name: str) -> str:
    """Return a row's name without what Google Benchmark adds, as details and profiles have it."""
    return name.removesuffix("/manual_time")


@dataclass(slots=True, eq=False)
class Row:
    """A benchmark, its repetitions folded; text that was not recorded is empty, a number NaN.

    A counter of `COUNTERS` is an attribute too, `row.dram_bytes`, NaN where it was not recorded;
    other counters of a row are in `counters` alone.
    """

    file: str
    source: str = ""  # timed, emulated, counters
    gpu: str = ""
    gpu_uuid: str = ""
    commit: str = ""
    cache_mode: str = ""
    build_type: str = ""
    executable: str = ""
    name: str = ""  # run_name, made unique where families or programs have the same
    ladder: str = ""  # this and the following are of the name, as the file's ladders spell it
    rung: str = ""
    role: str = ""
    precision: str = ""
    case: str = ""  # axis:value/...
    sweep: str = ""  # the values of the rung's own axes
    chosen: str = ""  # the step that a choice ran
    status: str = "ok"  # skipped, error
    reason: str = ""  # of a status other than ok
    label: str = ""
    time_unit: str = "ns"  # as written; `seconds` is in seconds
    repetitions: int = 1
    seconds: float = math.nan  # median time of one run
    cpu_seconds: float = math.nan  # likewise of the CPU, as Google Benchmark's cpu_time
    threads: float = math.nan  # that ran it at once
    iterations: float = math.nan  # of the loop, median of the repetitions
    axes: Mapping[str, str] = field(default_factory=lambda: _NONE)  # value by axis
    counters: Mapping[str, float] = field(
        default_factory=lambda: _NONE
    )  # in the unit the name ends in

    def counter(self, name: str) -> float:
        """Return any counter by its name; NaN where it was not recorded."""
        return self.counters.get(name, math.nan)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> float: ...


def _attribute(name: str) -> property:
    return property(lambda row: row.counters.get(name, math.nan))


for _name in COUNTERS:  # a property takes an eighth of the time that __getattr__ takes
    setattr(Row, _name, _attribute(_name))
