# SPDX-License-Identifier: MIT
"""Drawn shapes: where the choices of a ladder lose to a library, or to another of its rungs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.rows import Row
from ladder.report import markdown
from ladder.report.markdown import code, escape

_WORST = 10  # shapes of a table
_LEVEL = 0.97  # of the best sibling: what a choice may lose to it


@dataclass(frozen=True)
class Ratio:
    """A choice at a shape, over what it is compared with there."""

    row: Row
    other: Row
    value: float  # speeds of the two


def ratios(study: Study, name: str) -> tuple[list[Ratio], list[Ratio]]:
    """Return the ratios of a rung to the best peer, and to the best step, slowest first."""
    (rung,) = (rung for rung in study.rungs if rung.name == name)
    found: tuple[list[Ratio], list[Ratio]] = ([], [])
    for case in study.cases:
        row = study.ok(rung, case)
        for others, other in zip(
            found, (study.peer(rung.precision, case), study.best_step(case)), strict=True
        ):
            if row and other:
                others.append(Ratio(row, other, study.speed(row) / study.speed(other)))
    return tuple(sorted(each, key=lambda ratio: ratio.value) for each in found)  # type: ignore[return-value]


def text(study: Study) -> str:
    """Write, for each choice of a ladder, how it does at the drawn shapes and where worst."""
    about = escape(describe(study.results))
    told = [f"{study.ladder.title}: {about}, {len(study.cases)} drawn shapes."]
    choices = [rung.name for rung in study.rungs if rung.role == "choice"]
    for name in choices:
        others = (("the best library", 1.0), ("the best rung measured", _LEVEL))
        for (what, level), found in zip(others, ratios(study, name), strict=True):
            if found:
                told += [_summary(name, what, level, found), _table(study, found)]
    failed = [row for row in study.rows if row.status == "error"]
    told += [f"Failed: {code(row.name)}: {escape(row.reason)}" for row in failed]
    if not choices:
        told.append("It has no choice, so there is nothing to compare.")
    return "\n\n".join(told)


def _summary(name: str, what: str, level: float, found: Sequence[Ratio]) -> str:
    below = sum(ratio.value < level for ratio in found)
    mean = math.exp(sum(math.log(ratio.value) for ratio in found) / len(found))
    return (
        f"{code(name)} against {what}: geometric mean {units.ratio(mean)}, least "
        f"{units.ratio(found[0].value)}, below {level:g} at {below} of {len(found)} shapes."
    )


def _table(study: Study, found: Sequence[Ratio]) -> str:
    return markdown.table(
        [
            {
                "case": escape(study.spell(ratio.row.case)),
                "ran": code(ratio.row.chosen) if ratio.row.chosen else "",
                "time": units.duration(ratio.row.seconds),
                "against": code(ratio.other.rung),
                "ratio": units.ratio(ratio.value),
            }
            for ratio in found[:_WORST]
        ]
    )
