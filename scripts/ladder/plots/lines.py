# SPDX-License-Identifier: MIT
"""Speed over shapes, a line a rung, each named where it ends."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ladder.catalogue import Rung
from ladder.plots import style
from ladder.study import Study, facet_title

_LEFT, _WIDTH, _HEIGHT = 0.65, 2.9, 2.6  # inches
TOTAL_HEIGHT = _HEIGHT + 1.0


def width(study: Study, cases: list[str]) -> float:
    """Inches that the panel of `cases` takes with its names."""
    names = [*map(_line_name, study.rungs), study.ladder.ceiling]
    return _LEFT + _panel_width(cases) + 0.5 + style.widest(names, style.SMALL)


def _panel_width(cases: list[str]) -> float:
    return _WIDTH if len(cases) > 1 else 0.6


def _line_name(rung: Rung) -> str:
    return f"{rung.name} (best)" if rung.sweep else rung.name


def draw(
    figure: Figure, corner: tuple[float, float], study: Study, facet: str, cases: list[str]
) -> None:
    """Draw the speed of every rung over `cases` in a panel whose top left is at `corner`."""
    x, y = corner
    axes = style.panel(figure, x + _LEFT, y - _HEIGHT, _panel_width(cases), _HEIGHT)
    divisor, unit = study.unit()
    colours = style.colours(study.ladder)
    ends: list[tuple[float, float, str, tuple | str]] = []
    for rung in study.rungs:
        colour = colours[rung.name]
        rows = [study.ok(rung, case) for case in cases]
        speeds = [study.speed(row) / divisor if row else math.nan for row in rows]
        measured = [(x, speed) for x, speed in enumerate(speeds) if speed == speed]
        if not measured:
            continue
        axes.plot(
            speeds, style.line_style(rung), color=colour, marker="o", markersize=3, linewidth=1.5
        )
        ends.append((*measured[-1], _line_name(rung), colour))
        for value, points in _sweep(study, rung, cases).items():
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.6, alpha=0.5)
            style.note(
                axes, value, points[0], (-3, 0), ha="right", va="center", size=6, color=colour
            )
    ceilings = [(x, study.ceiling(case) / divisor) for x, case in enumerate(cases)]
    inside = study.ladder.ceiling.partition("/")[0] == study.ladder.name
    if not inside and not any(math.isnan(y) for _, y in ceilings):
        axes.plot(*zip(*ceilings, strict=True), color=style.GREY, linewidth=1.2)
        ends.append((*ceilings[-1], study.ladder.ceiling, style.GREY))

    speeds = [study.speed(row) / divisor for row in study.rows if row.status == "ok"]
    speeds = [s for s in [*speeds, *(y for _, y in ceilings)] if s == s]
    axes.set(
        yscale="log",
        xlim=(-0.4, len(cases) - 0.6),
        ylim=(min(speeds) / 1.4, max(speeds) * 1.4),
        ylabel=unit,
    )
    axes.set_xlabel(" × ".join(study.shape_axes))
    style.category_ticks(axes, [study.label(case) for case in cases], _panel_width(cases))
    style.log_ticks(axes.yaxis)
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.set_title(facet_title(facet), loc="left", size=style.NORMAL, weight="bold")
    style.label_ends(axes, ends, _panel_width(cases), _HEIGHT)


def _sweep(study: Study, rung: Rung, cases: list[str]) -> dict[str, list[tuple[int, float]]]:
    """Lines of each sweep value: (x, speed in the figure's unit)."""
    divisor, _ = study.unit()
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in study.rows:
        if row.rung == rung.name and row.sweep and row.status == "ok" and row.case in cases:
            point = (cases.index(row.case), study.speed(row) / divisor)
            lines.setdefault(row.sweep, []).append(point)
    return lines
