# SPDX-License-Identifier: MIT
"""Lines over shapes, one a rung, each named where it ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study, facet_title
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import style

_AXIS, _BARE = 0.75, 0.3  # inches left of axes with and without a scale of their own
_WIDE, _NARROW = 2.3, 0.4  # least inches of axes of several shapes and of one
_TITLE, _HEIGHT, _TICKS = 0.3, 2.6, 0.85  # inches, from the top down
_SWEEP = 7.0  # points of the values of a sweep
_TURNED = 0.45  # inches that an axis label and its gaps take below labels that are turned


@dataclass
class Panel:
    """Axes of one facet: `width` inches wide, `left` inches right of the panel before."""

    facet: str
    cases: list[str]
    left: float
    width: float


@dataclass
class Measure:
    """What the lines show of rows; NaN of those that have it not."""

    value: Callable[[Row], float]
    label: str
    limits: tuple[float, float]  # of the axis, the same in all panels
    log: bool = True
    ceilings: dict[str, float] = field(default_factory=dict)  # by case; none: no line of its own


def speed(study: Study) -> Measure:
    """Return the speed in the figure's unit, and the ladder's ceilings."""
    divisor, unit = study.unit
    ceilings = {case: study.ceiling(case) / divisor for case in study.cases}
    if any(f"{study.ladder.name}/{rung.name}" == study.ladder.ceiling for rung in study.rungs):
        ceilings = {}  # its own line
    speeds = [study.speed(row) / divisor for row in study.rows if row.status == "ok"]
    speeds = [speed for speed in [*speeds, *ceilings.values()] if speed > 0]
    limits = min(speeds) / 1.4, max(speeds) * 1.4
    return Measure(lambda row: study.speed(row) / divisor, unit, limits, ceilings=ceilings)


def height(study: Study) -> float:
    """Inches that a row of panels takes, with room for the longest label turned by 45 degrees."""
    label = style.widest([study.label(case) for case in study.cases], style.SMALL)
    return _TITLE + _HEIGHT + max(_TICKS, _TURNED + label * math.sqrt(0.5))


def least_width(study: Study) -> float:
    """Inches that a page needs for any panel of `study`."""
    return _AXIS + _WIDE + _names_width(study)


def rows(study: Study, page: float, facets: dict[str, list[str]]) -> list[list[Panel]]:
    """Lay a panel a facet out in rows of `page` inches, those of several shapes widened to it."""
    names = _names_width(study)

    def taken(row: list[Panel]) -> float:
        return sum(panel.left + panel.width + names for panel in row)

    split: list[list[Panel]] = []
    wide: list[Panel] = []
    for facet, cases in facets.items():
        panel = Panel(facet, cases, *((_AXIS, _WIDE) if len(cases) > 1 else (_BARE, _NARROW)))
        if not split or taken([*split[-1], panel]) > page:
            split.append([])
            panel.left = _AXIS
        split[-1].append(panel)
        if len(cases) > 1:
            wide.append(panel)
    spare = [(page - taken(row)) / max(1, sum(panel in wide for panel in row)) for row in split]
    for panel in wide:
        panel.width += min(spare)
    return split


def draw(figure: Figure, top: float, study: Study, measure: Measure, row: list[Panel]) -> None:
    """Draw a row of panels, which begins `top` inches above the page's bottom."""
    left = 0.0
    for panel in row:
        left += panel.left
        axes = style.panel(figure, left, top - _TITLE - _HEIGHT, panel.width, _HEIGHT)
        _draw(axes, study, measure, panel)
        left += panel.width + _names_width(study)


def _draw(axes: Axes, study: Study, measure: Measure, panel: Panel) -> None:
    colours = style.colours(study.ladder)
    cases = sorted(panel.cases, key=study.in_line, reverse=True)
    series = sum(map(study.in_line, cases))  # they come first, and only they are joined
    ends: list[tuple[float, float, str, style.Colour]] = []
    sweeps = {rung: _sweep(study, rung, measure, cases[:series]) for rung in study.rungs}
    for rung, sweep in sweeps.items():
        colour = colours[rung.name]
        found = [study.ok(rung, case) for case in cases]
        values = [measure.value(row) if row else math.nan for row in found]
        measured = [(x, value) for x, value in enumerate(values) if value == value]
        if not measured:
            continue
        look: style.Look = {
            "color": colour,
            "marker": "D" if rung.role == "peer" else "o",
            "markersize": 3,
        }
        axes.plot(values[:series], style.line_style(rung), linewidth=1.5, **look)
        axes.plot(range(series, len(cases)), values[series:], linestyle="none", **look)
        ends.append((*measured[-1], _line_name(rung), colour))
        for points in sweep.values():
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.6, alpha=0.5)
    line = [measure.ceilings.get(case, math.nan) for case in cases]
    if not any(map(math.isnan, line)):
        axes.plot(line, color=style.GREY, linewidth=1.2)
        ends.append((len(cases) - 1, line[-1], study.ladder.ceilings, style.GREY))

    start = -0.5 - (0.3 if any(sweeps.values()) else 0.0)
    axes.set(yscale="log" if measure.log else "linear", xlim=(start, len(cases) - 0.6))
    axes.set(ylim=measure.limits)
    axes.set_xlabel(" × ".join(study.shape_axes))
    style.category_ticks(axes, [study.label(case) for case in cases], panel.width)
    if measure.log:
        style.log_ticks(axes.yaxis)
    for rung, sweep in sweeps.items():
        _name_sweep(axes, sweep, colours[rung.name])
    if panel.left == _BARE:
        axes.tick_params(axis="y", labelleft=False)
    else:
        axes.set_ylabel(measure.label)
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.set_title(facet_title(panel.facet), loc="left", size=style.NORMAL, weight="bold")
    style.label_ends(axes, ends, panel.width, _HEIGHT)


def _name_sweep(
    axes: Axes, found: dict[str, list[tuple[int, float]]], colour: style.Colour
) -> None:
    """Write each value left of its line, on axes that are scaled."""
    up = axes.transData + axes.transAxes.inverted()
    wanted = [up.transform(points[0])[1] for points in found.values()]
    places = style.spread(wanted, _SWEEP / 72 / _HEIGHT, 0.0, 1.0)
    for (value, points), y in zip(found.items(), places, strict=True):
        look: style.Look = {"coordinates": ("data", "axes fraction"), "color": style.dark(colour)}
        look |= {"ha": "right", "va": "center", "size": _SWEEP}
        style.note(axes, value, (points[0][0], y), (-4, 0), **look)


def _line_name(rung: Rung) -> str:
    return f"{rung.name} (best {rung.sweep})" if rung.sweep else rung.name


def _names_width(study: Study) -> float:
    """Inches right of axes that the names of the lines take."""
    names = [*map(_line_name, study.rungs), study.ladder.ceilings]
    return 0.3 + style.widest(names, style.SMALL)


def _sweep(
    study: Study, rung: Rung, measure: Measure, cases: list[str]
) -> dict[str, list[tuple[int, float]]]:
    """Lines of each sweep value: (x, what is measured)."""
    lines: dict[str, list[tuple[int, float]]] = {}
    own = (row for row in study.rows if row.rung == rung.name and row.sweep and row.status == "ok")
    for row in own:
        if row.case in cases and (measured := measure.value(row)) == measured:
            lines.setdefault(row.sweep, []).append((cases.index(row.case), measured))
    return {value: sorted(points) for value, points in lines.items()}
