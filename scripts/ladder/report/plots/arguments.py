# SPDX-License-Identifier: MIT
"""Families over an argument: a line each, named beside it, and the fits that the file has."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ladder.analysis.families import UNNAMED, Fit, Line, Sweep
from ladder.analysis.study import describe
from ladder.io.results import Results
from ladder.report import sweep_tables
from ladder.report.plots import style

_LEFT, _WIDTH, _HEIGHT, _TOP, _BOTTOM, _BETWEEN = 0.85, 5.2, 2.7, 0.85, 0.75, 0.5  # inches
_NAMES, _NAME_WIDTH, _INDENT = 6.3, 3.2, 0.3  # inches: where names begin; at most so wide
_LINE, _GAP = 1.3 * style.SMALL / 72, 0.05  # inches of a line of text, and between names
_MOST_LINES, _MOST_PANELS, _NAME_LINES = 8, 6, 3
_DECADE = 16  # an axis that spans so much is logarithmic
_COLOURS = (*style.GPU_COLOURS, "#000000", "#999999")
_MARKERS = "osD^vPX*"
_PIECE = re.compile(r"[^/,: ]*[/,: ]*")


def draw(results: Results, sweep: Sweep, metric: str = sweep_tables.TIME) -> Figure:
    """Draw a metric over the argument, in panels of up to eight lines with the same axes.

    Raises NothingToDrawError where no line has two points.
    """
    points = {line.name: _points(line, metric) for line in sweep.lines}
    lines = [line for line in sweep.lines if points[line.name]]
    if all(len(points[line.name]) < 2 for line in lines):
        raise style.NothingToDrawError(f"no family has two values with a {metric}")
    panels = [lines[i : i + _MOST_LINES] for i in range(0, len(lines), _MOST_LINES)]
    left_out = sum(map(len, panels[_MOST_PANELS:]))
    panels = panels[:_MOST_PANELS]
    named = [_named(panel, sweep, metric) for panel in panels]
    heights = [max(_HEIGHT, sum(len(text) * _LINE + _GAP for text in each)) for each in named]
    height = _TOP + sum(heights) + _BETWEEN * (len(panels) - 1) + _BOTTOM
    first = sweep.arguments[0]
    what = f"the {first}" if first == UNNAMED else first
    about = "A line for each benchmark"
    about += f"; dashed: Google Benchmark's fit, where N is {what}" * any(
        _drawn(sweep, line, metric) for panel in panels for line in panel
    )
    about += f"; {left_out} more lines are not drawn" * bool(left_out)
    title = sweep_tables.title(sweep, metric)
    title = "Time" + title.removeprefix("time") if title.startswith("time") else title
    lines_of_names = [line for each in named for name in each for line in name]
    width = _NAMES + _INDENT + style.widest(lines_of_names, style.SMALL) + 0.3
    figure = style.page(max(style.PAGE, width), height, title, about, describe(results))
    every = [at for panel in panels for line in panel for at in points[line.name]]
    top = height - _TOP
    for panel, texts, tall in zip(panels, named, heights, strict=True):
        axes = style.panel(figure, _LEFT, top - tall, _WIDTH, tall)
        _scale(axes, every, metric)
        _panel(axes, panel, points, sweep, metric)
        _names(axes, texts, tall)
        style.value_ticks(axes, [*sweep.labels], [*sweep.labels.values()], _WIDTH)
        top -= tall + _BETWEEN
    axes.set_xlabel(sweep.title)
    return figure


def _points(line: Line, metric: str) -> list[tuple[float, float]]:
    found = [
        (x, sweep_tables.value(row, metric)) for x, row in line.points.items() if row.status == "ok"
    ]
    return [(x, y) for x, y in found if math.isfinite(y)]


def _drawn(sweep: Sweep, line: Line, metric: str) -> Fit | None:
    """Return the fit that can be drawn in a line's colour."""
    if metric not in (sweep_tables.TIME, sweep_tables.CPU_TIME):
        return None
    fit = sweep.fits.get(line.family)
    return fit if fit and (fit.argument == sweep.arguments[0] or fit.curve == "(1)") else None


def _scale(axes: Axes, points: Sequence[tuple[float, float]], metric: str) -> None:
    """Make the axes logarithmic where the values ask for it."""
    for axis, values in zip((axes.xaxis, axes.yaxis), zip(*points, strict=True), strict=True):
        low, high = min(values), max(values)
        log = low > 0 and high >= _DECADE * low
        if axis is axes.xaxis:
            room = (high / low) ** 0.04 if log else 0.04 * (high - low) or 1.0
            limits = (low / room, high * room) if log else (low - room, high + room)
            axes.set(xscale="log" if log else "linear", xlim=limits)
        else:
            limits = (low / 1.5, high * 1.5) if log else (min(0.0, 1.1 * low), 1.1 * high or 1.0)
            axes.set(yscale="log" if log else "linear", ylim=limits)
            if log:
                style.log_ticks(axis)
            axis.set_major_formatter(FuncFormatter(lambda y, _: _short(metric, y)))
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)


def _short(metric: str, value: float) -> str:
    """Write a tick: a round value with its unit."""
    if value == 0:
        return "0"
    return re.sub(r"(\.\d*?)0+(?= |$)", r"\1", sweep_tables.spell(metric, value)).replace(". ", " ")


def _panel(
    axes: Axes,
    panel: Sequence[Line],
    points: dict[str, list[tuple[float, float]]],
    sweep: Sweep,
    metric: str,
) -> None:
    drawn: set[str] = set()
    for i, line in enumerate(panel):
        x, y = zip(*points[line.name], strict=True)
        look: dict[str, Any] = {
            "color": _COLOURS[i],
            "marker": _MARKERS[i],
            "markersize": 4,
            "linewidth": 1.3,
        }
        axes.plot(x, y, **look)
        if (fit := _drawn(sweep, line, metric)) and line.family not in drawn:
            drawn.add(line.family)
            curve = [*_between([*sweep.labels], log=axes.get_xscale() == "log")]
            curve = [at for at in curve if min(sweep.labels) <= at <= max(sweep.labels)]
            cpu = metric == sweep_tables.CPU_TIME
            fitted = [fit.at(at, cpu=cpu) for at in curve]
            axes.plot(curve, fitted, "--", color=_COLOURS[i], linewidth=0.9, alpha=0.7)


def _between(values: Sequence[float], *, log: bool) -> Iterable[float]:
    """Return values close enough to look like a curve."""
    low, high = min(values), max(values)
    steps = [i / 60 for i in range(61)]
    return (low * (high / low) ** s if log else low + s * (high - low) for s in steps)


def _named(panel: Sequence[Line], sweep: Sweep, metric: str) -> list[list[str]]:
    """Return the lines of text of each name: the name, and its family's fit."""
    told: set[str] = set()
    found = []
    for line in panel:
        text = _wrapped(line.name)
        fit = sweep.fits.get(line.family)
        timed = metric in (sweep_tables.TIME, sweep_tables.CPU_TIME)
        if fit and timed and line.family not in told:
            told.add(line.family)
            root = f", RMS {100 * fit.rms:.2g}% of CPU time" if fit.rms == fit.rms else ""
            fitted = f"fit {fit.told(cpu=metric == sweep_tables.CPU_TIME)}{root}"
            why = "" if _drawn(sweep, line, metric) else f", not drawn: {fit.reason}"
            text += _wrapped(fitted + (why if fit.reason else ""))
        found.append(text)
    return found


def _wrapped(text: str) -> list[str]:
    """Break a name behind its marks where it is too wide; of too much the middle is left out."""
    lines = [""]
    for piece in _PIECE.findall(text):
        while piece:
            if style.text_width(lines[-1] + piece, style.SMALL) <= _NAME_WIDTH:
                lines[-1] += piece
                break
            if not lines[-1]:  # a single word that is too wide
                fits = _fitting(piece)
                lines[-1], piece = piece[:fits], piece[fits:]
            lines.append("")
    if len(lines) > _NAME_LINES:
        lines = [f"{lines[0]}…", *lines[1 - _NAME_LINES :]]
    return [line for line in lines if line]


def _fitting(word: str) -> int:
    """Return how many letters of a word that is too wide have room, but at least one."""

    def width(count: int) -> float:
        return style.text_width(word[:count], style.SMALL)

    return max(1, bisect_right(range(1, len(word)), _NAME_WIDTH, key=width))


def _names(axes: Axes, texts: Sequence[Sequence[str]], height: float) -> None:
    """Write the names right of the axes, each behind a piece of its line."""
    down = 0.0
    for i, lines in enumerate(texts):
        for j, text in enumerate(lines):
            at = 1 - (down + (j + 0.5) * _LINE) / height
            place: dict[str, Any] = {
                "coordinates": "axes fraction",
                "va": "center",
                "color": "black",
            }
            style.note(axes, text, ((_NAMES + _INDENT - _LEFT) / _WIDTH, at), **place)
            if j == 0:
                ends = [(_NAMES + x - _LEFT) / _WIDTH for x in (0.0, _INDENT / 2.4, _INDENT / 1.2)]
                axes.plot(
                    ends,
                    [at] * 3,
                    transform=axes.transAxes,
                    clip_on=False,
                    color=_COLOURS[i],
                    marker=_MARKERS[i],
                    markevery=[1],
                    markersize=4,
                    linewidth=1.3,
                )
        down += len(lines) * _LINE + _GAP
