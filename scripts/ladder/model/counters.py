# SPDX-License-Identifier: MIT
"""The registry of counters: of each its unit, its kind, which way it is better, group and title.

Of our own counters it knows each by name. A file may carry a registry of others; of what neither
has, the user says which way is better.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType

PROPERTY = "property"  # of the program: no two runs of one binary differ in it
MEASUREMENT = "measurement"  # differs from run to run
COUNT = "count"  # of events: a program repeats it, but for what hardware adds
KINDS = (PROPERTY, MEASUREMENT, COUNT)

LESS, MORE, ASK = "less", "more", ""  # what is better; ASK where only the user can tell

# What warps asked of memory, as an emulator or a profiler counts it: wavefronts or sectors.
SPACES = {"shared": "wavefronts", "global": "sectors"}
OPERATIONS = ("load", "store", "atomic")

HELD = 0.5  # from this share of the driver's readings on, a reason has lowered the clock

CONTEXT = "counter_registry"  # the key in the context of a file that carries a registry


@dataclass(frozen=True)
class Counter:
    """What is known of a counter, so that nobody need guess it from the name."""

    name: str
    unit: str  # "s", "B", "B/s", "FLOP/s", "1/s", "Hz", "%", "share" of 1, "" of plain numbers
    kind: str  # one of KINDS
    better: str  # LESS, MORE or ASK
    group: str  # under which it is shown
    title: str
    hidden: str = ""  # "yes" where no table has a column for it; what older files lack

    def __post_init__(self) -> None:
        known = {"kind": KINDS, "better": (LESS, MORE, ASK), "hidden": ("", "yes")}
        for key, values in known.items():
            if (value := getattr(self, key)) not in values:
                raise ValueError(f"{key} '{value}' of counter {self.name} is not known")

    @property
    def follows_time(self) -> bool:
        """Whether it is the GPU's time or a speed, which launches and the SM clock move."""
        return self.unit.endswith("/s") or self.name in _GPU_TIMES


_GPU_TIMES = ("real_time", "median_seconds", "percent_of_ceiling")


def parse(text: str) -> dict[str, Counter]:
    """Read a registry: CSV with a line for each counter and the fields of `Counter` as columns.

    Columns that are not known are left out: a newer file may carry more. Raises ValueError.
    """
    found = {}
    for entry in csv.DictReader(text.splitlines(), strict=True):
        values = {each.name: entry.get(each.name) for each in fields(Counter)}
        values["hidden"] = values["hidden"] or ""
        if missing := [key for key, value in values.items() if value is None]:
            raise ValueError(f"counter {entry.get('name')} has no {missing[0]}")
        found[str(values["name"])] = Counter(**{key: str(value) for key, value in values.items()})
    return found


# Of our programs, and the times and rates of Google Benchmark. The programs are built with the same
# table and write it into their results.
OWN: Mapping[str, Counter] = MappingProxyType(
    parse(Path(__file__).with_name("counters.csv").read_text(encoding="utf-8"))
)

ENERGY = "Power and energy"  # the group
GROUPS = tuple(dict.fromkeys(counter.group for counter in OWN.values()))  # in the order shown
STALLS = tuple(name for name in OWN if name.startswith("stall_"))  # why a warp did not issue


@cache
def of_file(text: str) -> Mapping[str, Counter]:
    """Return our registry, and over it what a file carries. Raises ValueError."""
    try:
        return MappingProxyType({**OWN, **parse(text)}) if text else OWN
    except (ValueError, csv.Error) as error:
        raise ValueError(f"context '{CONTEXT}': {error}") from error
