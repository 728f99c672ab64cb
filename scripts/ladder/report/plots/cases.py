# SPDX-License-Identifier: MIT
"""The cases of a ladder as figures name them, and which of them stand beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ladder.analysis.shapes import axis_values
from ladder.analysis.study import Study
from ladder.model import units


@dataclass(frozen=True)
class Group:
    """Cases that differ in nothing but the axis that goes across."""

    facet: str
    others: str  # values of the remaining axes, as `axis:value/...`
    cases: dict[str, str]  # by what is written at each, numbers rising
    odd: bool = False  # shapes beside a series of sizes

    @property
    def title(self) -> str:
        """Name what all its cases have."""
        told = spelled(f"{self.facet}/{self.others}")
        return ", ".join(filter(None, (told, "other shapes" * self.odd)))


def across(study: Study, cases: Iterable[str]) -> str:
    """Name the axis that goes across: the first that varies, or all where shapes are a series."""
    if len(study.shapes.axes) > 1 and any(map(study.shapes.in_series, cases)):
        return " × ".join(study.shapes.axes)
    found = {axis: {axis_values(case).get(axis) for case in cases} for axis in study.shapes.axes}
    varying = [axis for axis, several in found.items() if len(several) > 1]
    return next(iter([*varying, *study.shapes.axes]), "")


def grouped(study: Study, cases: list[str], axis: str) -> list[Group]:
    """Split cases by facet and by the axes that do not go across, in the order that they come."""
    facets = {axis.name for axis in study.ladder.axes if axis.facet}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for case in cases:
        own = axis_values(case)
        rest = [a for a in own if a not in facets and a not in axis.split(" × ")]
        others = "/".join(f"{a}:{own[a]}" for a in rest)
        alone = axis in own and len(study.shapes.axes) > 1
        label = own[axis] if alone else study.shapes.label(case)
        found.setdefault((study.shapes.facet(case), others), {})[label] = case
    return [Group(*key, dict(sorted(group.items(), key=_order))) for key, group in found.items()]


def _order(column: tuple[str, str]) -> tuple[bool, int]:
    """Sort numbers, and leave what is none behind them as it was."""
    label = column[0]
    return not label.isdecimal(), int(label) if label.isdecimal() else 0


def spelled(case: str) -> str:
    """Write values for a title: `keys 2²⁸, uniform`."""
    told = [_spelled(axis, value) for axis, value in axis_values(case).items()]
    return words(", ".join(told))


def _spelled(axis: str, value: str) -> str:
    """Write a number with its axis; a word, as that of a distribution, says itself what it is."""
    return f"{axis} {units.power_of_two(value)}" if value[:1].isdecimal() else value


def words(text: str) -> str:
    """Write a name as words, and as `1.5` what a name has as `1_5`."""
    return re.sub(r"(?<=\d)_(?=\d)", ".", text).replace("_", " ")


def headline(study: Study) -> str:
    """Write the headline for a title."""
    return whole(study, study.headline)


def at_headline(study: Study) -> str:
    """Write `, at` and the headline, to end a subtitle; empty where the cases have no axes."""
    return f", at {headline(study)}" if study.headline else ""


def whole(study: Study, case: str) -> str:
    """Write a case for a title, a size that is all axes' own once: `m = n = k = 4096`."""
    axes = study.shapes.axes
    if len(axes) < 2 or not study.shapes.in_series(case):
        return spelled(case)
    rest = "/".join(f"{a}:{value}" for a, value in axis_values(case).items() if a not in axes)
    return ", ".join(filter(None, (" = ".join((*axes, study.shapes.label(case))), spelled(rest))))


def short(label: str) -> str:
    """Write a number in K of 1024 if it is a whole number of them."""
    if label.isdecimal() and int(label) and int(label) % 1024 == 0:
        return f"{int(label) // 1024}K"
    return label
