# SPDX-License-Identifier: MIT
"""One row of results: a benchmark as a run measured it, or as an emulator or profiler counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ladder.model.counters import OWN

# Those that any row may be asked for; what was not recorded is NaN.
COUNTERS = tuple(name for name, counter in OWN.items() if not counter.hidden)
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
