# SPDX-License-Identifier: MIT
"""The table of hardware counters: what each rung of a ladder asked of the GPU, at the headline."""

from __future__ import annotations

from ladder import cells, units
from ladder.limits import Limits, longest_stall
from ladder.results import SPACES
from ladder.study import Row, Study, describe, name_of


def has_counters(study: Study) -> bool:
    """Whether any row was counted."""
    return any(row.issue_utilisation >= 0 for row in study.rows)


def table(study: Study, limits: Limits) -> str:
    """Write the main counters of each rung at the headline, and what limits it."""
    lines = []
    for rung in study.rungs:
        row = study.measured(rung, study.headline)
        if row and limits.shares(row):
            lines.append({"rung": f"`{name_of(rung, row)}`"} | _line(row))
    about = f"{study.ladder.title}: {describe(study.results)}"
    with_what = f"{study.results.hardware_counters}, one launch at {study.spell(study.headline)}"
    return f"{about}; {with_what}.\n\n{cells.table(lines)}"


def _line(row: Row) -> dict[str, str]:
    registers, shared, theoretical = cells.resources(row).values()
    achieved = units.percent(100 * row.achieved_occupancy)
    stall, share = longest_stall(row)
    return {
        "DRAM, × algorithm": _times(row, row.dram_bytes),
        "L2, × algorithm": _times(row, row.l2_bytes),
        **{f"{space} {unit} a request, ld / st / at": cells.triple(row, space)
           for space, unit in SPACES.items()},
        "active lanes": f"{row.active_lanes:.3g}" if row.active_lanes == row.active_lanes else "",
        "issue slots": units.percent(100 * row.issue_utilisation),
        "waits for": f"{stall} {units.percent(100 * share)}" if stall else "",
        "registers": registers,
        "shared": shared,
        "occupancy": f"{achieved} of {theoretical}" if achieved and theoretical else achieved,
    }  # fmt: skip


def _times(row: Row, moved: float) -> str:
    """Write bytes moved over those that the algorithm must move; empty where either is unknown."""
    if not (needed := row.bytes_per_second * row.seconds) > 0 or moved != moved:
        return ""
    return units.number(moved / needed)
