# SPDX-License-Identifier: MIT
"""Speed of light: percent of the measured ceiling, for ladders that count no FLOPs."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder import units
from ladder.catalogue import Rung
from ladder.plots import style
from ladder.study import Study, describe, facet_title

_STRIP, _CASE = 0.7, 0.25  # inches, of a rung's height and of a case's least width
_TOP, _BOTTOM, _GAP = 1.1, 0.95, 0.2


def draw(study: Study) -> Figure:
    """Draw percent of the ceiling as strips: a row a rung, a column a facet, a bar a shape."""
    rungs = [
        rung
        for rung in study.rungs
        if f"{study.ladder.name}/{rung.name}" != study.ladder.ceiling
        and any((row := study.ok(rung, c)) and study.percent(row) > 0 for c in study.cases)
    ]
    if not rungs:
        raise style.NothingToDrawError("no row has percent_of_ceiling")
    left = 0.4 + style.widest([rung.name for rung in rungs])
    widths = {
        facet: max(_CASE * len(cases), style.text_width(facet_title(facet), style.NORMAL + 1))
        for facet, cases in study.facets.items()
    }
    spare = style.PAGE - left - sum(widths.values()) - _GAP * len(widths)
    share = max(0.0, spare) / len(study.cases)
    widths = {facet: w + share * len(study.facets[facet]) for facet, w in widths.items()}
    height = _TOP + _STRIP * len(rungs) + _BOTTOM
    figure = style.page(
        style.PAGE + max(0.0, -spare),
        height,
        f"{study.ladder.title}: speed of light",
        f"{describe(study.results)}: percent of {study.ladder.ceiling}, the line above each strip"
        + _gaps(study, rungs),
    )
    for facet, width in widths.items():
        for i, rung in enumerate(rungs):
            bottom = height - _TOP - _STRIP * (i + 1) + 0.14
            axes = style.panel(figure, left, bottom, width, _STRIP - 0.2)
            _strip(axes, study, rung, study.facets[facet])
            if i == 0:
                title = {"loc": "left", "size": style.NORMAL, "weight": "bold", "pad": 8}
                axes.set_title(facet_title(facet), **title)
            if facet == next(iter(widths)):
                beside = {"rotation": 0, "ha": "right", "va": "center", "labelpad": 6}
                axes.set_ylabel(rung.name, size=style.NORMAL, **beside)
        style.category_ticks(axes, [study.label(case) for case in study.facets[facet]], width)
        if facet == next(iter(widths)):
            axes.set_xlabel(" × ".join(study.shape_axes), loc="left")
        left += width + _GAP
    return figure


def _gaps(study: Study, rungs: list[Rung]) -> str:
    """Say what a dash stands for, where the figure has any."""
    rows = [
        study.best.get((rung.name, case))
        for cases in study.facets.values()
        for rung in rungs
        for case in cases
        if not (row := study.ok(rung, case)) or math.isnan(study.percent(row))
    ]
    words = {"skipped": "skipped", "error": "failed", "ok": "no percent"}
    why = dict.fromkeys(words[row.status] if row else "not measured" for row in rows)
    return f". –: {' or '.join(sorted(why, reverse=True))}" if why else ""


def _strip(axes: Axes, study: Study, rung: Rung, cases: list[str]) -> None:
    colours = style.colours(study.ladder)
    for x, case in enumerate(cases):
        row = study.ok(rung, case)
        value = study.percent(row) if row else math.nan
        text = units.percent(value).removesuffix("%") or "–"
        look = {"ha": "center", "size": 6.5}
        if value != value:
            style.note(axes, text, (x, 0), (0, 2), **look)
            continue
        colour = style.ALARM if study.above_roof(row) else colours[rung.name]
        top = min(value, 100)
        axes.bar(x, top, width=0.72, **style.bar_style(rung, colour))
        if value <= 70:
            style.note(axes, text, (x, top), (0, 2), **look)
        elif rung.role == "step":
            style.note(axes, text, (x, top), (0, -9), **look | {"color": "white"})
        else:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            style.note(axes, text, (x, top), (0, -10), bbox=box, **look)
    axes.axhline(100, color=style.GREY, linewidth=0.6)
    axes.set(ylim=(0, 100), xlim=(-0.6, len(cases) - 0.4), yticks=[], xticks=[])
    axes.spines["left"].set_visible(False)
