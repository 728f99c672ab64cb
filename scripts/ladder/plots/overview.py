# SPDX-License-Identifier: MIT
"""All ladders in one figure: how far each has climbed towards its ceiling."""

from __future__ import annotations

from matplotlib.figure import Figure

from ladder import units
from ladder.plots import style
from ladder.results import Results
from ladder.study import Study, describe

_WIDTH, _ROW = 4.4, 0.62  # inches


def draw(results: Results, found: list[Study]) -> Figure:
    """Draw a line a ladder: every step on the way, the best one named, and the best peer."""
    chosen = [s for s in found if (row := s.best_step(s.headline)) and s.percent(row) > 0]
    if not chosen:
        raise style.NothingToDrawError("no ladder has a step with percent_of_ceiling")
    titles = [study.ladder.title for study in chosen]
    wheres = [study.spell(study.headline) for study in chosen]
    columns = _columns(chosen)
    left = 0.45 + max(style.widest(titles, style.NORMAL + 1), style.widest(wheres, style.SMALL))
    height = 1.2 + _ROW * len(chosen) + 0.85
    width = left + _WIDTH + style.columns_width(columns) + 0.3
    figure = style.page(width, height, "How far each ladder climbs", describe(results))
    axes = style.panel(figure, left, 0.85, _WIDTH, _ROW * len(chosen))
    limit = 100.0
    for y, study in enumerate(chosen):
        colours = style.colours(study.ladder)
        best = study.best_step(study.headline)
        top = study.percent(best)
        axes.plot([0, top], [y, y], color=style.FAINT, linewidth=5, solid_capstyle="butt", zorder=1)
        for rung in study.rungs:
            row = study.ok(rung, study.headline)
            if row and rung.role == "step" and not rung.precision:
                size = 10 if row is best else 5
                look = {"color": colours[rung.name], "markersize": size, "clip_on": False}
                axes.plot(study.percent(row), y, "o", zorder=3, **look)
        if peer := study.peer("", study.headline):
            limit = max(limit, study.percent(peer))
            look = {"markerfacecolor": "none", "color": style.PEER, "clip_on": False}
            axes.plot(
                study.percent(peer), y, "D", markersize=9, markeredgewidth=1.6, zorder=4, **look
            )
        limit = max(limit, top)
    axes.axvline(100, color=style.GREY, linewidth=1.2)
    axes.set(xlim=(0, 1.03 * limit), ylim=(len(chosen) - 0.5, -0.5))
    axes.set_xlabel("percent of the measured ceiling")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=style.FAINT, linewidth=0.5)
    for y, (title, where) in enumerate(zip(titles, wheres, strict=True)):
        bold = {"size": style.NORMAL, "color": "black", "weight": "bold"}
        style.note(axes, title, (0, y), (-10, 1), ha="right", **bold)
        style.note(axes, where, (0, y), (-10, -10), ha="right")
    style.text_columns(axes, columns, _WIDTH)
    key = "● best step, smaller: the steps below it", "◇ best peer"
    places = left, left + 0.4 + style.text_width(key[0], style.SMALL)
    for text, at, colour in zip(key, places, (style.LAST_STEP, style.PEER), strict=True):
        figure.text(at / width, 0.2 / height, text, color=colour, size=style.SMALL)
    return figure


def _columns(chosen: list[Study]) -> dict[str, list[str]]:
    rows = [study.best_step(study.headline) for study in chosen]
    speeds = []
    for study, row in zip(chosen, rows, strict=True):
        divisor, unit = study.unit()
        speeds.append(f"{units.number(study.speed(row) / divisor)} {unit}")
    both = list(zip(chosen, rows, strict=True))
    return {
        "best rung": [row.rung + (f" ({row.sweep})" if row.sweep else "") for row in rows],
        "speed": speeds,
        "of ceiling": [f"{units.percent(s.percent(r))} of {s.ladder.ceiling}" for s, r in both],
        "to best peer": [s.to_peer(r) for s, r in both],
    }
