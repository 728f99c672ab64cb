# SPDX-License-Identifier: MIT
"""All ladders in one figure: every rung by how much of its ceiling it reaches."""

from __future__ import annotations

import math
from itertools import product

from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe, name_of
from ladder.io.results import Results
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import style

_TOP, _HEADER, _BAR, _GAP = 0.75, 0.65, 0.2, 0.2  # inches, from the top down
_PERCENT = 0.85  # inches right of the bars


def draw(results: Results, found: list[Study]) -> Figure:
    """Draw a bar a rung at each ladder's headline case, the ladders in two columns."""
    best = {s: row for s in found if (row := s.best_step(s.headline)) and s.percent(row) > 0}
    chosen = list(best)
    if not chosen:
        raise style.NothingToDrawError("no ladder has a step with percent_of_ceiling")
    columns = _balance(chosen)
    height = _TOP + max(map(_height, columns)) + 0.1
    own = any(study.own_ceilings() for study in chosen)
    what = f"percent of each ladder's measured ceiling{', * of its own' * own}; hatched: libraries"
    title = "How far each ladder climbs", f"{describe(results)}: {what}"
    figure = style.page(style.PAGE, height, *title)
    names = [name for study in chosen for name in _names(study)]
    left = 0.3 + style.widest(names, style.SMALL)
    share = style.PAGE / len(columns)
    for i, column in enumerate(columns):
        top = height - _TOP
        for study in column:
            _panel(figure, i * share, top, left, share - left - _PERCENT, study, best[study])
            top -= _height([study])
    return figure


def _balance(chosen: list[Study]) -> list[list[Study]]:
    """Split ladders into two columns, as equal in height as can be; one ladder into one."""
    splits = (
        [[s for s, put in zip(chosen, places, strict=True) if put == i] for i in (0, 1)]
        for places in product((0, 1), repeat=len(chosen))
    )
    return [c for c in min(splits, key=lambda columns: max(map(_height, columns))) if c]


def _rungs(study: Study) -> list[Rung]:
    """Return the rungs in the ladder's own precision."""
    return [rung for rung in study.rungs if rung.role != "ceiling" and not rung.precision]


def _names(study: Study) -> list[str]:
    return [name_of(rung, study.ok(rung, study.headline)) for rung in _rungs(study)]


def _height(column: list[Study]) -> float:
    """Inches that ladders take above each other."""
    return sum(_HEADER + _BAR * len(_rungs(study)) + _GAP for study in column)


def _panel(
    figure: Figure, x: float, top: float, left: float, width: float, study: Study, best: Row
) -> None:
    """Draw one ladder: its header from `x` and below `top`, its bars `left` inches further in."""
    rungs, names = _rungs(study), _names(study)
    rows = [study.ok(rung, study.headline) for rung in rungs]
    percents = [study.percent(row) if row else math.nan for row in rows]
    height = _BAR * len(rungs)
    axes = style.panel(figure, x + left, top - _HEADER - height, width, height)
    colours = style.colours(study.ladder)
    for y, (rung, percent) in enumerate(zip(rungs, percents, strict=True)):
        if percent == percent:
            axes.barh(y, percent, height=0.76, **style.bar_style(rung, colours[rung.name]))
    axes.axvline(100, color=style.GREY, linewidth=1.2)
    limit = max(100.0, *(percent for percent in percents if percent == percent))
    axes.set(xlim=(0, limit), ylim=(len(rungs) - 0.5, -0.5), xticks=[])
    axes.spines["bottom"].set_visible(False)
    axes.set_yticks(range(len(names)), names, size=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.get_yticklabels()[[rung.name for rung in rungs].index(best.rung)].set_fontweight("bold")
    shares = [
        units.percent(percent) + "*" * bool(row and study.has_own_ceiling(row)) or "–"
        for percent, row in zip(percents, rows, strict=True)
    ]
    style.text_columns(axes, {"": shares}, width)

    quantity = study.ladder.quantity
    speeds = units.rate(quantity, study.speed(best)), study.to_peer(best)
    header: style.Look = {"coordinates": "axes fraction"}
    start = 72 * (0.2 - left)  # points right of the bars
    bold: style.Look = {"size": style.NORMAL, "color": "black", "weight": "bold"}
    style.note(axes, study.ladder.title, (0, 1), (start, 31), **header, **bold)
    style.note(axes, study.spell(study.headline), (0, 1), (start, 18), **header)
    told = f"{best.rung} {', '.join(filter(None, speeds))}"
    ceiling = f"{study.ladder.ceilings} {units.rate(quantity, study.ceiling(study.headline))}"
    # Right of the line where bars reach far beyond it, else left.
    beyond = width * (1 - 100 / limit) > style.text_width(ceiling, style.SMALL)
    room = left + width * 100 / limit - 0.3 if beyond else left + width - 0.3
    room -= 0 if beyond else style.text_width(ceiling, style.SMALL)
    told = style.fit(told, room, style.SMALL)
    style.note(axes, told, (0, 1), (start, 6), **header, color="black")
    at = {"coordinates": ("data", "axes fraction"), "ha": "left" if beyond else "right"}
    style.note(axes, ceiling, (100, 1), (-2 if beyond else 2, 6), **at)
