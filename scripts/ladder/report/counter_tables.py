# SPDX-License-Identifier: MIT
"""Tables of hardware counters: what each rung asked of the GPU, and whether profilers agree."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from ladder.analysis.limits import Limits, longest_stall
from ladder.analysis.study import Study, describe, name_of
from ladder.io.results import Results
from ladder.model import counters, units
from ladder.model.counters import SPACES
from ladder.model.rows import COUNTERS, Row, bare
from ladder.report import markdown
from ladder.report.markdown import code, escape

TOLERANCE = 0.02  # of Nsight Compute's value
_SMALL = 0.05  # of a fraction; below it two runs differ by as much
_LEAST = 0.001  # of a counter's largest value; where there is less, profilers count themselves
_SHORTEST = 20e-6  # seconds; of less the start and the end of a launch are most
_CHANGED = "values of rows that run other instructions since the profile's commit"
_ZERO = "values that are 0 on both sides"
_BRIEF = f"fractions of rows under {units.duration(_SHORTEST)}"
_LOW = f"fractions below {_SMALL:.0%} on both sides"
_LITTLE = f"counts of less than {_LEAST:.1%} of the counter's largest"
_RULES = (_CHANGED, _ZERO, _BRIEF, _LOW, _LITTLE)


@dataclass(frozen=True)
class Agreement:
    """One counter of one row, as counted in process and by Nsight Compute."""

    row: str
    counter: str
    ours: float
    theirs: float
    seconds: float  # that the row took
    changed: bool = False  # the row's kernel, since the commit that was profiled

    @property
    def larger(self) -> float:
        """The larger of both figures."""
        return max(self.ours, self.theirs)

    @property
    def difference(self) -> float:
        """Ours less theirs, over theirs; infinite where that is 0."""
        return (self.ours - self.theirs) / self.theirs if self.theirs else math.inf


def _is_fraction(counter: str) -> bool:
    return counters.OWN[counter].unit == "share"


def has_counters(study: Study) -> bool:
    """Whether any row was counted."""
    return any(row.issue_utilisation >= 0 for row in study.rows)


def table(study: Study, limits: Limits) -> str:
    """Write the main counters of each rung at the headline, and what limits it."""
    lines = []
    for rung in study.rungs:
        row = study.measured(rung, study.headline)
        if row and limits.shares(row):
            lines.append({"rung": code(name_of(rung, row))} | _line(row))
    about = f"{study.ladder.title}: {escape(describe(study.results))}"
    with_what = f"{study.results.hardware_counters}, one launch at {study.spell(study.headline)}"
    return f"{about}; {with_what}.\n\n{markdown.table(lines)}"


def _line(row: Row) -> dict[str, str]:
    registers, shared, theoretical = markdown.resources(row).values()
    achieved = units.percent(100 * row.achieved_occupancy)
    stall, share = longest_stall(row)
    return {
        "DRAM, × algorithm": _times(row, row.dram_bytes),
        "L2, × algorithm": _times(row, row.l2_bytes),
        **{
            f"{space} {unit} per request, {markdown.TRIPLE}": markdown.triple(row, space)
            for space, unit in SPACES.items()
        },
        "active lanes": units.count(row.active_lanes),
        "issue slots": units.percent(100 * row.issue_utilisation),
        "waits for": f"{stall} {units.percent(100 * share)}" if stall else "",
        "registers": registers,
        "shared": shared,
        "occupancy": f"{achieved} of {theoretical}" if achieved and theoretical else achieved,
    }


def _times(row: Row, moved: float) -> str:
    """Write bytes moved over those that the algorithm must move; empty where either is unknown."""
    if not (needed := row.bytes_per_second * row.seconds) > 0 or moved != moved:
        return ""
    return units.number(moved / needed)


def compare(results: Results, measured: dict[str, Row]) -> list[Agreement]:
    """Pair each counter of each row with that of `measured`, the rows by bare name."""
    return [
        Agreement(bare(row.name), counter, ours, theirs, row.seconds, _changed(row, other))
        for row in results.rows
        if row.issue_utilisation >= 0 and (other := measured.get(bare(row.name)))
        for counter in COUNTERS
        if (ours := row.counter(counter)) >= 0 and (theirs := other.counter(counter)) >= 0
    ]


def _changed(row: Row, other: Row) -> bool:
    """Whether these rows of two commits ran different numbers of instructions."""
    ours, theirs = row.warp_instructions, other.warp_instructions
    return row.commit != other.commit and abs(ours - theirs) > TOLERANCE * theirs


def agreement(results: Results, pairs: list[Agreement]) -> str:
    """Write for each counter how many rows agree, and the row that differs most.

    Left out is where agreement would say nothing, or difference be of two runs.
    """
    most: dict[str, float] = {}
    for pair in pairs:
        most[pair.counter] = max(pair.larger, most.get(pair.counter, 0.0))
    kept: dict[str, list[Agreement]] = {}
    left_out: Counter[str] = Counter()
    for pair in pairs:
        if why := _why_left_out(pair, most[pair.counter]):
            left_out[why] += 1
        else:
            kept.setdefault(pair.counter, []).append(pair)
    lines = []
    for counter in filter(kept.get, COUNTERS):
        rows = kept[counter]
        agree = sum(abs(pair.difference) <= TOLERANCE for pair in rows)
        worst = max(rows, key=lambda pair: abs(pair.difference))
        off = f"{worst.difference:+.1%}" if math.isfinite(worst.difference) else "theirs is 0"
        lines.append(
            {
                "counter": f"`{counter}`",
                "rows": str(len(rows)),
                f"within {TOLERANCE:.0%}": f"{agree / len(rows):.0%}",
                "largest difference": f"{off} in {code(worst.row)}" if worst.difference else "",
            }
        )
    about = (
        f"{escape(describe(results))}: {results.hardware_counters}, compared with Nsight Compute."
    )
    there = {pair.row for pair in pairs}
    compared = {pair.row for rows in kept.values() for pair in rows}
    told = f"{len(compared)} of {len(there)} rows that both counted are compared"
    told += f", {sum(map(len, kept.values()))} of {len(pairs)} values."
    rules = [f"{why} ({left_out[why]})" for why in _RULES if left_out[why]]
    left = f" Left out: {', '.join(rules)}." if rules else ""
    return f"{about} {told}{left}\n\n{markdown.table(lines)}"


def _why_left_out(pair: Agreement, most: float) -> str:
    """Return the first of the rules by which a pair is not compared; empty where it is."""
    if pair.changed:
        return _CHANGED
    if pair.larger == 0:
        return _ZERO
    if _is_fraction(pair.counter):
        if pair.seconds < _SHORTEST:
            return _BRIEF
        return _LOW if pair.larger < _SMALL else ""
    return _LITTLE if pair.larger < _LEAST * most else ""
