# SPDX-License-Identifier: MIT
"""Drawn shapes: where the choices of a ladder lose to a library or a rung, or miss a ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.ceilings import at_own_case
from ladder.model.rows import Row
from ladder.report import markdown
from ladder.report.markdown import code, escape

_WORST = 10  # shapes of a table
_CEILING = "its ceiling"
# What a choice is compared with, and the ratio of speeds below which it does badly.
_LEVELS = {"the best library": 1.0, "the best rung measured": 0.97, _CEILING: 0.9}
_LARGE = 8e6  # bytes: what moves fewer is mostly launch, and so is its ceiling


@dataclass(frozen=True)
class Ratio:
    """A choice at a shape, over what it is compared with there."""

    row: Row
    against: str  # in Markdown
    value: float  # speeds of the two


def ratios(study: Study, name: str) -> tuple[list[Ratio], list[Ratio], list[Ratio]]:
    """Return the ratios of a rung to the best peer, the best step and its ceiling, slowest first.

    Of ceilings only those that do the same work: rows of the same ladder at the same case.
    """
    (rung,) = (rung for rung in study.rungs if rung.name == name)
    rows = [row for case in study.cases if (row := study.ok(rung, case))]

    def over(others: list[Row | None]) -> list[Ratio]:
        return [
            Ratio(row, code(other.rung), study.speed(row) / study.speed(other))
            for row, other in zip(rows, others, strict=True)
            if other
        ]

    limited = [
        Ratio(row, study.spell_lowest_ceiling(row), study.percent(row) / 100)
        for row in rows
        if study.percent(row) > 0
        and all(at_own_case(ceiling, study.ladder) for ceiling in study.ceilings_of(row))
    ]
    peers = over([study.peer(rung.precision, row.case) for row in rows])
    found = peers, over([study.best_step(row.case) for row in rows]), limited
    for each in found:
        each.sort(key=lambda ratio: ratio.value)
    return found


def text(study: Study) -> str:
    """Write, for each choice of a ladder, how it does at the drawn shapes and where worst."""
    about = escape(describe(study.results))
    told = [f"{study.ladder.title}: {about}, {len(study.cases)} drawn shapes."]
    choices = [rung.name for rung in study.rungs if rung.role == "choice"]
    for name in choices:
        for (what, level), found in zip(_LEVELS.items(), ratios(study, name), strict=True):
            if found:
                told += [_summary(name, what, level, found), _table(study, found)]
    failed = [row for row in study.rows if row.status == "error"]
    told += [f"Failed: {code(row.name)}: {escape(row.reason)}" for row in failed]
    if not choices:
        told.append("It has no choice, so there is nothing to compare.")
    return "\n\n".join(told)


def _summary(name: str, what: str, level: float, found: Sequence[Ratio]) -> str:
    below = sum(ratio.value < level for ratio in found)
    mean = geometric_mean(ratio.value for ratio in found)
    told = (
        f"{code(name)} against {what}: geometric mean {units.ratio(mean)}, least "
        f"{units.ratio(found[0].value)}, below {level:g} at {below} of {len(found)} shapes"
    )
    large = [r.value for r in found if r.row.bytes_per_second * r.row.seconds > _LARGE]
    if what == _CEILING and large:
        told += f", least {units.ratio(large[0])} at the {len(large)} that move more than 8 MB"
    return f"{told}."


def _table(study: Study, found: Sequence[Ratio]) -> str:
    return markdown.table(
        [
            {
                "case": escape(study.spell(ratio.row.case)),
                "ran": code(ratio.row.chosen) if ratio.row.chosen else "",
                "time": units.duration(ratio.row.seconds),
                "against": ratio.against,
                "ratio": units.ratio(ratio.value),
            }
            for ratio in found[:_WORST]
        ]
    )
