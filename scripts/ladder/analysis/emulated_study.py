# SPDX-License-Identifier: MIT
"""One ladder as an emulator counted it: what the rungs asked of memory, at one small case."""

from __future__ import annotations

import math
from functools import cached_property

from ladder.analysis.study import Study
from ladder.io.results import Results
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.counters import OPERATIONS, SPACES
from ladder.model.rows import Row

_LIMITS = {
    "occupancy_limit_blocks": "blocks",
    "occupancy_limit_warps": "warps",
    "occupancy_limit_registers": "registers",
    "occupancy_limit_shared": "shared memory",
}


class Tally(Study):
    """The rows of a ladder; those at the headline case stand for their rungs."""

    @property
    def title(self) -> str:
        """The ladder's title, where `Measured X` becomes `Kernels of the X`: none are timed."""
        _, measured, what = self.ladder.title.partition("Measured ")
        return f"Kernels of the {what}" if measured else self.ladder.title

    @property
    def sms(self) -> float:
        """SMs of the GPU that was modelled; NaN if not known."""
        return units.parse(self.results.context.get("sms"))

    @cached_property
    def headline(self) -> str:
        """The case for small runs, else the headline, else the case that most rungs ran."""
        ran = {
            case: sum(self.measured(r, case) is not None for r in self.rungs) for case in self.cases
        }
        named = (self.ladder.small_headline, self.ladder.headline)
        return next((case for case in named if ran.get(case)), max(ran, key=ran.__getitem__))

    @cached_property
    def shown(self) -> list[tuple[Rung, Row]]:
        """The counted rows at the headline, in climbing order, each value of a sweep its own."""
        return [
            (rung, row)
            for rung in self.rungs
            for row in self.rows
            if (row.rung, row.case, row.status) == (rung.name, self.headline, "ok")
            and row.grid_blocks > 0  # else no kernel of ours ran
        ]

    def spell(self, case: str) -> str:
        """Write a whole case for a title; axes with different values are listed one by one."""
        if self.shapes.in_series(case):
            return super().spell(case)
        pairs = (segment.split(":", 1) for segment in case.split("/"))
        spelled = ", ".join(f"{name} {units.power_of_two(value)}" for name, value in pairs)
        return spelled.replace("_", " ")

    @property
    def predicts(self) -> bool:
        """Whether a rung predicts its wavefronts from its indices."""
        return any(row.predicted_load_wavefronts > 0 for _, row in self.shown)


def tallies(results: Results) -> list[Tally]:
    """Return the ladders with counted rows, in the file's order."""
    present = {row.ladder for row in results.rows}
    found = [Tally(results, ladder) for ladder in results.ladders if ladder.name in present]
    return [tally for tally in found if tally.shown]


def per_request(row: Row, space: str, operation: str) -> float:
    """Return wavefronts (shared memory) or sectors (global) per request; NaN without requests."""
    return row.counter(f"{space}_{operation}_{SPACES[space]}_per_request")


def total(row: Row, space: str, operations: tuple[str, ...] = OPERATIONS) -> float:
    """Return the transactions of these operations; one that was not recorded counts as 0."""
    values = [row.counter(f"{space}_{operation}_{SPACES[space]}") for operation in operations]
    return sum(value for value in values if value == value)


def limiter(row: Row, sms: float) -> str:
    """Name what limits the warps of an SM: several names where limits agree, "" at full occupancy.

    `sms` is the number of SMs of the GPU. Clusters are the limit where the whole GPU holds fewer
    blocks than the other limits allow: a cluster needs its SMs in one group, which is limited.
    """
    if row.theoretical_occupancy >= 1:
        return ""
    limits = {name: row.counter(key) for key, name in _LIMITS.items()}
    least = min((v for v in limits.values() if v == v), default=math.nan)
    if row.cluster_size > 1 and row.resident_clusters * row.cluster_size < least * sms:
        return "clusters"
    return ", ".join(name for name, value in limits.items() if value == least)
