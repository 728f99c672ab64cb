# SPDX-License-Identifier: MIT
"""The climb: the path from the first rung to the best, and what each rung gained on its parent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe, name_of
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import cases, style

_BAR, _LEAST_WIDTH = 0.31, 1.9  # inches
_TOP, _BOTTOM, _APART = 1.35, 0.8, 0.25  # _APART: bars, between the path and the library
_BASE = "#c4c4c4"
_NONE = 0.005  # of a gain that is none


def draw(study: Study) -> Figure:
    """Draw a bar for each rung of the path to the best: grey up to its parent's speed.

    Blue is what it gained, orange what it lost. Below the path is the fastest library.
    """
    if not study.path:
        raise style.NothingToDrawError(f"no step has {study.ladder.rate} at its headline")
    peer = study.peer("", study.headline)
    rows = [*study.path, *([peer] if peer else [])]
    names = [name_of(study.rung(row), row) for row in rows]
    columns = _columns(study, rows)
    bold = style.BOLD * style.text_width(names[len(study.path) - 1])
    left = 0.27 + max(style.widest(names), bold)
    right = style.columns_width(columns) + 0.2
    width = max(style.PAGE, left + _LEAST_WIDTH + right)
    body = _BAR * (len(rows) + _APART * bool(peer))
    height = _TOP + body + _BOTTOM
    figure = style.page(width, height, *_titles(study), describe(study.results))
    axes = style.panel(figure, left, _BOTTOM, width - left - right, body)
    places = [y + _APART * (row is peer) for y, row in enumerate(rows)]
    key: list[tuple[str, style.Colour]] = [("kept from the parent", _BASE), ("gained", style.OURS)]
    signs = "■■"
    if any(study.gain(row) < 1 - _NONE for row in study.path):
        key.append(("lost", style.LOST))
        signs += "⬚"
    if peer:
        key.append(("library", style.PEER))
        signs += "▨"
    style.legend(figure, key, signs=signs)
    _bars(axes, study, rows, places)
    axes.set_ylim(places[-1] + 0.5, -0.5)
    axes.set_yticks(places, names, size=style.NORMAL)
    axes.tick_params(axis="y", length=0)
    axes.get_yticklabels()[len(study.path) - 1].set_fontweight("bold")
    style.text_columns(axes, columns, places, width - left - right)
    return figure


def _titles(study: Study) -> tuple[str, str]:
    gain = study.speed(study.path[-1]) / study.speed(study.path[0])
    title = f"{study.ladder.title}: {units.number(gain)} times the first rung"
    return title, f"The path to the best rung{cases.at_headline(study)}"


def _columns(study: Study, rows: Sequence[Row]) -> dict[str, list[str]]:
    """Texts right of the bars, by header."""
    divisor, unit = study.unit
    own = any(study.has_own_ceiling(row) for row in rows)
    columns = {
        unit: [units.number(study.speed(row) / divisor) for row in rows],
        "of limit" + ", * its own" * own: [_percent(study, row) for row in rows],
        "gain on, parent": [units.gain(study.gain(row)) for row in rows],
    }
    return {header: cells for header, cells in columns.items() if any(cells)}


def _percent(study: Study, row: Row) -> str:
    percent = units.percent(study.percent(row))
    return percent + "*" * bool(percent and study.has_own_ceiling(row))


def _bars(axes: Axes, study: Study, rows: Sequence[Row], places: Sequence[float]) -> None:
    divisor, unit = study.unit
    ceiling = study.ceiling(study.headline) / divisor
    speeds = [study.speed(row) / divisor for row in rows]
    axes.set(xlim=(0, 1.02 * max([*speeds, *([] if math.isnan(ceiling) else [ceiling])])))
    axes.set_xlabel(unit)
    look: style.Look = {"height": 0.72}
    for y, row, speed in zip(places, rows, speeds, strict=True):
        if row.role == "peer":
            hatched: style.Look = {"edgecolor": style.PEER, "facecolor": "white", "hatch": "////"}
            axes.barh(y, speed, **hatched, **look)
            continue
        parent = study.parent(row)
        before = study.speed(parent) / divisor if parent else math.nan
        kept = speed if math.isnan(before) else min(before, speed)
        axes.barh(y, kept, color=_BASE, **look)
        if speed > before * (1 + _NONE):
            axes.barh(y, speed - before, left=before, color=style.OURS, **look)
        elif speed < before * (1 - _NONE):
            lost: style.Look = {"edgecolor": style.LOST, "facecolor": "white", "linestyle": ":"}
            axes.barh(y, before - speed, left=speed, linewidth=1.2, **lost, **look)
    if not math.isnan(ceiling):
        axes.axvline(ceiling, color="black", linewidth=1.2)
        label = f"limit: {study.ladder.ceilings} {units.number(ceiling)}"
        side = "right" if ceiling > 0.5 * axes.get_xlim()[1] else "left"
        place: style.Look = {"coordinates": ("data", "axes fraction"), "color": "black"}
        style.note(axes, label, (ceiling, 1), (0, 4), ha=side, **place)
