# SPDX-License-Identifier: MIT
"""Several GPUs side by side at the headline case."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import style

_BAR, _GAP, _RIGHT, _LEAST_WIDTH = 0.24, 0.9, 0.7, 2.0  # inches


def draw(found: list[tuple[str, Study]]) -> Figure:
    """Draw grouped bars by rung for (name, study) pairs of one ladder: speed, and percent."""
    first = found[0][1]
    case = first.headline
    present = {rung.name for _, study in found for rung in study.rungs}
    listed = dict.fromkeys(rung.name for _, study in found for rung in study.ladder.rungs)
    names = [name for name in listed if name in present]
    speeds = [s.speed(row) for _, s in found for r in s.rungs if (row := s.ok(r, case))]
    divisor, unit = units.rate_unit(first.ladder.quantity, speeds)
    left = 0.4 + style.widest(names)
    group = _BAR * len(found) + 0.14
    body = group * len(names)
    bars = max((style.PAGE - left - _GAP - _RIGHT) / 2, _LEAST_WIDTH)
    width = left + 2 * bars + _GAP + _RIGHT
    labels = [
        name if study.results.commit in name else f"{name} ({study.results.commit})"
        for name, study in found
    ]
    height = body + 1.75 + style.legend_height(labels, width)
    where = f", at {first.spell(case)}" if case else ""
    subtitle = f"{first.results.cache_mode} cache{where}"
    figure = style.page(width, height, f"{first.ladder.title}: {len(found)} GPUs", subtitle)
    style.legend(figure, [(label, _colour(i)) for i, label in enumerate(labels)])
    speed = style.panel(figure, left, 0.65, bars, body)
    _grouped(speed, found, names, lambda s, row: s.speed(row) / divisor, units.number)
    speed.set_xlabel(unit)
    speed.set_yticks(range(len(names)), names, size=style.NORMAL)
    percent = style.panel(figure, left + bars + _GAP, 0.65, bars, body)
    _grouped(percent, found, names, Study.percent, units.percent)
    percent.set_xlabel(f"percent of each GPU's own {first.ladder.ceilings}")
    percent.set_yticks(range(len(names)), [])
    return figure


def _colour(i: int) -> str:
    return style.GPU_COLOURS[i % len(style.GPU_COLOURS)]


def _grouped(
    axes: Axes,
    found: list[tuple[str, Study]],
    names: list[str],
    measure: Callable[[Study, Row], float],
    write: Callable[[float], str],
) -> None:
    case = found[0][1].headline
    own = [
        measure(study, row)
        for _, study in found
        for rung in study.rungs
        if not rung.precision and (row := study.ok(rung, case))
    ]
    limit = 1.02 * max((value for value in own if value == value), default=math.inf)
    thick = 0.84 / len(found)
    for i, (_, study) in enumerate(found):
        for y, name in enumerate(names):
            rung = study.ladder.rung(name)
            row = study.ok(rung, case) if rung else None
            value = measure(study, row) if row else math.nan
            at = y - 0.42 + thick * (i + 0.5)
            text = write(value) if value == value else "–"
            end = min(value, limit) if value == value else 0.0
            axes.barh(at, end, height=0.9 * thick, color=_colour(i))
            if value > limit:
                style.break_bar(axes, 0.85 * limit, at)
            style.note(axes, text, (end, at), (3, 0), va="center", color="black")
    axes.set(xlim=(0, limit if math.isfinite(limit) else None), ylim=(len(names) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
