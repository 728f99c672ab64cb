# SPDX-License-Identifier: MIT
"""Panels of cells beside and below each other: rows named at the left, columns below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.report.plots import style

_ROW, _TITLE, _FOOT, _BETWEEN = 0.25, 0.3, 0.32, 0.18  # inches
_TOP, _BOTTOM, _LEFT, _RIGHT = 0.7, 0.3, 0.3, 0.2
_COLUMNS = (0.62, 0.55, 0.5, 0.44, 0.4, 0.36)  # widths that are tried
_KEY, _ACROSS = 0.25, 0.15  # inches of a key, and of what the columns are


@dataclass(frozen=True)
class Cell:
    """A number on a colour."""

    text: str
    fill: style.Colour
    ink: style.Colour = "black"
    bold: bool = False


@dataclass(frozen=True)
class Panel:
    """Columns that have all but one axis in common, and the cells by (column, row)."""

    title: str
    columns: Sequence[str]
    cells: Mapping[tuple[int, int], Cell]


def draw(
    page: tuple[str, str, str],
    rows: Sequence[str],
    panels: Sequence[Panel],
    key: Sequence[tuple[str, style.Colour]] = (),
    signs: str = "",
    across: str = "",
) -> Figure:
    """Draw panels in as few lines as the page is wide; `page` is title, subtitle and source.

    `key` and `signs` are those of `style.legend`; `across` says what the columns are, below them.
    """
    left = _LEFT + style.widest(rows)
    room = style.PAGE - left - _RIGHT
    most = max(len(panel.columns) for panel in panels)
    fit = [column for column in _COLUMNS if column * most <= room] or _COLUMNS[-1:]
    column = min(fit, key=lambda column: len(_lines(panels, column, room)))
    lines = _lines(panels, column, room)
    width = max(style.PAGE, left + column * most + _RIGHT)
    body = _ROW * len(rows)
    feet = [_foot(line, column) for line in lines]
    more = _KEY + style.legend_height([name for name, _ in key], width) if key else 0.0
    bottom = _BOTTOM + _ACROSS * bool(across)
    height = _TOP + more + sum(_TITLE + body + foot for foot in feet) + bottom
    figure = style.page(width, height, *page)
    style.legend(figure, key, signs=signs)
    top = height - _TOP - more
    for line, foot in zip(lines, feet, strict=True):
        at = left
        for panel in line:
            size = column * len(panel.columns), body
            axes = style.panel(figure, at, top - _TITLE - body, *size)
            _cells(axes, len(rows), panel)
            axes.set_yticks(range(len(rows)), rows if at == left else [], size=style.NORMAL)
            label_columns(axes, panel.columns, turned=foot > _FOOT)
            axes.set_title(panel.title, loc="left", size=style.NORMAL, weight="bold", pad=5)
            at += _width(panel, column) + _BETWEEN
        top -= _TITLE + body + foot
    if across:
        figure.text(left / width, (_BOTTOM + 0.05) / height, across)
    return figure


def label_columns(
    axes: Axes, labels: Sequence[str], written: Sequence[int] = (), *, turned: bool
) -> None:
    """Write what columns, all or those `written`, are below axes that have nothing but cells."""
    turn: style.Look = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.tick_params(length=0)  # first: ticks that are there already would be changed one by one
    places = written or range(len(labels))
    axes.set_xticks(places, [labels[x] for x in places], **(turn if turned else {}))
    axes.spines[:].set_visible(False)


def _width(panel: Panel, column: float) -> float:
    return max(column * len(panel.columns), style.BOLD * style.text_width(panel.title))


def _lines(panels: Sequence[Panel], column: float, room: float) -> list[list[Panel]]:
    """Split panels into lines of those beside each other."""
    lines: list[list[Panel]] = []
    taken = math.inf
    for panel in panels:
        taken += _BETWEEN + _width(panel, column)
        if taken > room:
            lines.append([])
            taken = _width(panel, column)
        lines[-1].append(panel)
    return lines


def _foot(line: Sequence[Panel], column: float) -> float:
    """Inches that the labels of a line of panels take, turned where they would touch."""
    widest = style.widest([x for panel in line for x in panel.columns], style.SMALL)
    return _FOOT + (0.6 * widest if widest > column - 0.06 else 0.0)


def _cells(axes: Axes, rows: int, panel: Panel) -> None:
    axes.set(xlim=(-0.5, len(panel.columns) - 0.5), ylim=(rows - 0.5, -0.5))
    boxes: dict[style.Colour, list[tuple[float, float, float, float]]] = {}
    for (x, y), cell in panel.cells.items():
        boxes.setdefault(cell.fill, []).append((x - 0.47, y - 0.46, 0.94, 0.92))
        place: style.Look = {"ha": "center", "va": "center_baseline"}
        weight = "bold" if cell.bold else "normal"
        style.note(axes, cell.text, (x, y), color=cell.ink, weight=weight, **place)
    for fill, places in boxes.items():
        style.boxes(axes, places, facecolor=fill)
