# SPDX-License-Identifier: MIT
"""Speed of light: percent of the measured ceiling, for ladders that count no FLOPs."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder import units
from ladder.catalogue import Rung
from ladder.plots import style
from ladder.study import Study, describe, facet_title

_STRIP, _BAR = 0.78, 0.32  # inches a rung, over several cases and over one
_TOP, _BOTTOM, _GAP = 1.1, 0.75, 0.25


def draw(study: Study) -> Figure:
    """Draw percent of the ceiling by rung: strips of bars over the shapes, a bar for one shape."""
    rungs = [
        r
        for r in study.rungs
        if any((row := study.ok(r, c)) and study.percent(row) > 0 for c in study.cases)
    ]
    if not rungs:
        raise style.NothingToDrawError("no row has percent_of_ceiling")
    single = len(study.cases) == 1
    left = 0.4 + style.widest([rung.name for rung in rungs])
    widths = {
        facet: 4.5
        if single
        else max(0.36 * len(cases), 0.1 + style.text_width(facet_title(facet), style.NORMAL + 1))
        for facet, cases in study.facets.items()
    }
    what = f"percent of {study.ladder.ceiling}, the line at 100%; this ladder counts no FLOPs"
    subtitle = f"{describe(study.results)}: {what}"
    width = left + sum(widths.values()) + _GAP * len(widths) + 0.1
    height = _TOP + (_BAR if single else _STRIP) * len(rungs) + _BOTTOM
    spare = max(0.0, 0.4 + style.text_width(subtitle) - width)
    width += spare
    widths = {facet: w * (1 + spare / sum(widths.values())) for facet, w in widths.items()}
    figure = style.page(width, height, f"{study.ladder.title}: speed of light", subtitle)
    if single:
        axes = style.panel(figure, left, _BOTTOM, widths.popitem()[1], height - _TOP - _BOTTOM)
        _single(axes, study, rungs)
        return figure
    for column, (facet, panel_width) in enumerate(widths.items()):
        for i, rung in enumerate(rungs):
            bottom = height - _TOP - _STRIP * (i + 1) + 0.18
            axes = style.panel(figure, left, bottom, panel_width, _STRIP - 0.24)
            _strip(axes, study, rung, study.facets[facet])
            if i == 0:
                title = {"loc": "left", "size": style.NORMAL, "weight": "bold", "pad": 8}
                axes.set_title(facet_title(facet), **title)
            if column == 0:
                beside = {"rotation": 0, "ha": "right", "va": "center", "labelpad": 6}
                axes.set_ylabel(rung.name, size=style.NORMAL, **beside)
        labels = [study.label(case) for case in study.facets[facet]]
        style.category_ticks(axes, labels, panel_width)
        if column == 0:
            axes.set_xlabel(" × ".join(study.shape_axes), loc="left")
        left += panel_width + _GAP
    return figure


def _strip(axes: Axes, study: Study, rung: Rung, cases: list[str]) -> None:
    rows = [study.ok(rung, case) for case in cases]
    values = [study.percent(row) if row else math.nan for row in rows]
    above = [bool(row) and study.above_roof(row) for row in rows]
    colours = style.colours(study.ladder)
    for x, value in enumerate(values):
        text = units.percent(value).removesuffix("%") or "–"
        look = {"ha": "center", "size": 6.5}
        if value != value:
            style.note(axes, text, (x, 0), (0, 2), **look)
            continue
        colour = style.ALARM if above[x] else colours[rung.name]
        axes.bar(x, min(value, 100), width=0.72, **style.bar_style(rung, colour))
        if value <= 70:
            style.note(axes, text, (x, value), (0, 2), **look)
        elif rung.role == "step":
            style.note(axes, text, (x, min(value, 100)), (0, -9), **look | {"color": "white"})
        else:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            style.note(axes, text, (x, min(value, 100)), (0, -10), bbox=box, **look)
    axes.axhline(100, color=style.GREY, linewidth=0.6)
    axes.set(ylim=(0, 100), xlim=(-0.6, len(cases) - 0.4), yticks=[], xticks=[])
    axes.spines["left"].set_visible(False)


def _single(axes: Axes, study: Study, rungs: list[Rung]) -> None:
    colours = style.colours(study.ladder)
    for y, rung in enumerate(rungs):
        row = study.ok(rung, study.headline)
        value = study.percent(row) if row else math.nan
        fault = row and study.above_roof(row)
        axes.barh(
            y, np.nan_to_num(value), height=0.68, color=style.ALARM if fault else colours[rung.name]
        )
        inside = {"offset": (-4, 0), "ha": "right", "color": "white"}
        outside = {"offset": (4, 0), "color": "black"}
        place = inside if value > 70 and rung.role == "step" else outside
        style.note(
            axes, units.percent(value) or "–", (np.nan_to_num(value), y), va="center", **place
        )
    axes.axvline(100, color=style.GREY, linewidth=1.2)
    axes.set(
        xlim=(0, 105), ylim=(len(rungs) - 0.5, -0.5), xlabel=f"percent of {study.ladder.ceiling}"
    )
    axes.set_yticks(range(len(rungs)), [rung.name for rung in rungs], size=style.NORMAL)
    axes.tick_params(axis="y", length=0)
