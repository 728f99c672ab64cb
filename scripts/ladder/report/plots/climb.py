# SPDX-License-Identifier: MIT
"""The climb: every rung at the headline case, and below it over all shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe, name_of
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import lines, style

_BAR, _LEAST_WIDTH = 0.32, 2.4  # inches
_TOP, _BOTTOM = 1.25, 0.7


def draw(study: Study) -> Figure:
    """Draw bars of all rungs at the headline case, and below them lines over the shapes.

    First come the rungs of the path to the best step; each names its parent beside its gain.
    """
    if not any(study.ok(rung, case) for rung in study.rungs for case in study.cases):
        raise style.NothingToDrawError(f"no row has {study.ladder.rate}")
    columns = _columns(study)
    names = [name_of(rung, study.ok(rung, study.headline)) for rung in study.climb]
    left = 0.35 + style.widest(names)
    right = style.columns_width(columns) + 0.2
    several = len(study.cases) > 1
    least = lines.least_width(study) if several else 0.0
    width = max(style.PAGE, least, left + _LEAST_WIDTH + right)
    bars_width, bars_height = width - left - right, _BAR * len(study.rungs)
    rows = lines.rows(study, width, study.facets) if several else []
    speed = lines.speed(study)

    height = _TOP + bars_height + _BOTTOM + lines.height(study) * len(rows)
    figure = style.page(width, height, f"{study.ladder.title}: the climb", describe(study.results))
    top = height - _TOP - bars_height
    bars = style.panel(figure, left, top, bars_width, bars_height)
    _bars(bars, study, names, bars_width)
    style.text_columns(bars, columns, bars_width)
    top -= _BOTTOM
    for row in rows:
        lines.draw(figure, top, study, speed, row)
        top -= lines.height(study)
    return figure


def _columns(study: Study) -> dict[str, list[str]]:
    """Texts right of the bars, by header."""
    rows = [study.ok(rung, study.headline) for rung in study.climb]
    divisor, unit = study.unit

    def cells(write: Callable[[Row], str]) -> list[str]:
        return [write(row) if row else "" for row in rows]

    own = any(study.has_own_ceiling(row) for row in rows if row)
    columns = {
        unit: cells(lambda row: units.number(study.speed(row) / divisor)),
        "of ceiling" + ", * its own" * own: cells(lambda row: _percent(study, row)),
        "to parent": cells(study.to_parent),
        "to best peer": cells(study.to_peer),
    }
    return {header: cells for header, cells in columns.items() if any(cells)}


def _percent(study: Study, row: Row) -> str:
    percent = units.percent(study.percent(row))
    return percent + "*" * bool(percent and study.has_own_ceiling(row))


def _bars(axes: Axes, study: Study, names: list[str], width: float) -> None:
    divisor, unit = study.unit
    colours = style.colours(study.ladder)
    ceiling = study.ceiling(study.headline) / divisor
    found = {rung: study.ok(rung, study.headline) for rung in study.climb}
    own = [study.speed(row) / divisor for rung, row in found.items() if row and not rung.precision]
    other = [study.speed(row) / divisor for row in found.values() if row]
    limit = 1.04 * max([*own, *([] if math.isnan(ceiling) else [ceiling])] or other or [1.0])
    for y, (rung, row) in enumerate(found.items()):
        if not row:
            text = style.fit(_why_empty(study, rung), width - 0.1, style.SMALL)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            style.note(axes, text, (0, y), (3, 0), va="center", style="italic", bbox=box)
            continue
        speed = study.speed(row) / divisor
        axes.barh(y, min(speed, limit), height=0.68, **style.bar_style(rung, colours[rung.name]))
        if speed > limit:  # another precision, far beyond this ladder's scale
            style.break_bar(axes, 0.85 * limit, y)
        if study.above_roof(row):
            box = {"facecolor": style.ALARM, "edgecolor": "none", "pad": 2}
            inside = speed > 0.4 * limit
            look: style.Look = {
                "ha": "right" if inside else "left",
                "va": "center",
                "color": "white",
            }
            end = (min(speed, limit), y), (-4 if inside else 4, 0)
            style.note(axes, "above roof", *end, bbox=box, **look)
    if not math.isnan(ceiling):
        axes.axvline(ceiling, color=style.GREY, linewidth=1.2)
        label = f"{study.ladder.ceilings} {units.number(ceiling)}"
        right = ceiling > 0.5 * limit
        place = {"coordinates": ("data", "axes fraction"), "ha": "right" if right else "left"}
        style.note(axes, label, (ceiling, 1), (3 if right else -3, 4), **place)
    axes.set(xlim=(0, limit), ylim=(len(names) - 0.5, -0.5), xlabel=unit)
    if study.headline:
        title = f"at {study.spell(study.headline)}"
        axes.set_title(title, loc="left", size=style.NORMAL, pad=18, weight="bold")
    axes.set_yticks(range(len(names)), names, size=style.NORMAL)
    axes.tick_params(axis="y", length=0)


def _why_empty(study: Study, rung: Rung) -> str:
    row = study.best.get((rung.name, study.headline))
    if row is None:
        return "not measured at this shape"
    return f"{row.status}: {row.reason}" if row.reason else "no rate recorded"
