# SPDX-License-Identifier: MIT
"""The climb: every rung at the headline case, and over all shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder import units
from ladder.catalogue import Rung
from ladder.plots import lines, style
from ladder.study import Row, Study, describe, name_of, wavefronts

_BAR, _BARS_WIDTH = 0.34, 3.2  # inches
_TOP, _BOTTOM = 1.15, 0.7
_PAGE = 11.0  # widest that still reads well in a README


def draw(study: Study) -> Figure:
    """Draw bars of all rungs at the headline case, and lines over the shapes.

    The lines stand right of the bars, or below them in small multiples.
    """
    if not any(study.ok(rung, case) for rung in study.rungs for case in study.cases):
        raise style.NothingToDrawError(f"no row has {study.ladder.rate}")
    columns = _columns(study)
    names = [name_of(rung, study.ok(rung, study.headline)) for rung in study.rungs]
    left = 0.35 + style.widest(names)
    bars_width, bars_height = _BARS_WIDTH, _BAR * len(study.rungs)
    bars_end = left + bars_width + style.columns_width(columns)

    places, lines_width, lines_height = _flow(study)
    if below := len(study.facets) > 1:
        width = max(bars_end, lines_width) + 0.2
        bars_width += width - 0.2 - bars_end
        start, top = 0.15, bars_height + _BOTTOM + 0.6
        height = top + lines_height
    else:
        start, top = bars_end + 0.3, 0.0
        width = bars_end + 0.3 + lines_width
        height = max(bars_height + _BOTTOM, lines_height)
    title = f"{study.ladder.title}: the climb"
    figure = style.page(width, _TOP + height, title, describe(study.results))
    if not below:
        bars_height = min(height - _BOTTOM, 0.6 * len(study.rungs))
    bars = style.panel(figure, left, height - bars_height, bars_width, bars_height)
    _bars(bars, study, names, bars_width)
    style.text_columns(bars, columns, bars_width)
    for facet, (x, y) in places.items():
        lines.draw(figure, (start + x, height - top - y), study, facet, study.facets[facet])
    return figure


def _flow(study: Study) -> tuple[dict[str, tuple[float, float]], float, float]:
    """Place the line panels in rows; return places by facet, and the width and height taken."""
    if len(study.cases) == 1:
        return {}, 0.0, 0.0
    places = {}
    x = y = widest = 0.0
    widths = {facet: lines.width(study, cases) for facet, cases in study.facets.items()}
    for facet, width in widths.items():
        if x + width > max(_PAGE, 2 * max(widths.values())):
            x, y = 0.0, y + lines.TOTAL_HEIGHT
        places[facet] = x, y
        x += width
        widest = max(widest, x)
    return places, widest, y + lines.TOTAL_HEIGHT


def _columns(study: Study) -> dict[str, list[str]]:
    """Texts right of the bars, by header."""
    rows = [study.ok(rung, study.headline) for rung in study.rungs]
    divisor, unit = study.unit()

    def cells(write: Callable[[Row], str]) -> list[str]:
        return [write(row) if row else "" for row in rows]

    columns = {
        unit: cells(lambda row: units.number(study.speed(row) / divisor)),
        "of ceiling": cells(lambda row: units.percent(study.percent(row))),
        "to best peer": cells(study.to_peer),
        "wavefronts, ld/st": cells(wavefronts),
    }
    return {header: cells for header, cells in columns.items() if any(cells)}


def _bars(axes: Axes, study: Study, names: list[str], width: float) -> None:
    divisor, unit = study.unit()
    colours = style.colours(study.ladder)
    ceiling = study.ceiling(study.headline) / divisor
    found = {rung: study.ok(rung, study.headline) for rung in study.rungs}
    own = [study.speed(row) / divisor for rung, row in found.items() if row and not rung.precision]
    other = [study.speed(row) / divisor for row in found.values() if row]
    limit = 1.04 * max([*own, *([] if math.isnan(ceiling) else [ceiling])] or other or [1.0])
    for y, (rung, row) in enumerate(found.items()):
        if row:
            speed = study.speed(row) / divisor
            axes.barh(
                y, min(speed, limit), height=0.68, **style.bar_style(rung, colours[rung.name])
            )
            if speed > limit:  # another precision, far beyond this ladder's scale
                style.break_bar(axes, 0.85 * limit, y)
            if study.above_roof(row):
                box = {"facecolor": style.ALARM, "edgecolor": "none", "pad": 2}
                style.note(
                    axes,
                    "above roof",
                    (min(speed, limit), y),
                    (-4, 0),
                    ha="right",
                    va="center",
                    color="white",
                    bbox=box,
                )
        else:
            text = style.fit(_why_empty(study, rung), width - 0.1, style.SMALL)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            style.note(axes, text, (0, y), (3, 0), va="center", style="italic", bbox=box)
    if not math.isnan(ceiling):
        axes.axvline(ceiling, color=style.GREY, linewidth=1.2)
        right = ceiling > 0.5 * limit
        label = f"{study.ladder.ceiling} {units.number(ceiling)}"
        style.note(
            axes,
            label,
            (ceiling, 1),
            (3 if right else -3, 4),
            coordinates=("data", "axes fraction"),
            ha="right" if right else "left",
        )
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
