# SPDX-License-Identifier: MIT
"""Speed against energy: what a FLOP or a byte of each rung costs, and the power that results."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe, name_of
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import cases, style

_TOP, _BOTTOM, _LEFT, _HEIGHT = 0.8, 0.95, 0.75, 4.2  # inches
_NAMED = 24  # rungs at most
_LEAST = 2.6  # inches of the axes
_LEADER = 0.35  # inches from the axes to the names
_PICO = 1e12
_SHORT = 2.0  # ends of a line, whose name would not fit


def chosen(study: Study) -> list[Row]:
    """Return the rows of the headline whose energy was read: steps and peers, fastest first."""
    found = [study.measured(rung, study.headline) for rung in study.rungs if _shown(rung.role)]
    return sorted((r for r in found if r and r.joules > 0), key=study.speed, reverse=True)


def draw(study: Study, rows: Sequence[Row]) -> Figure:
    """Draw a point per rung, on logarithmic axes on which lines of constant power are straight."""
    divisor, unit = study.unit
    named = _named(study, rows)
    texts = [_text(study, row) for row in named]
    right = _LEADER + style.widest(texts) + 0.25
    width = max(style.PAGE, _LEFT + _LEAST + right)
    figure = style.page(width, _TOP + _HEIGHT + _BOTTOM, *_titles(study), describe(study.results))
    axes = style.panel(figure, _LEFT, _BOTTOM, width - _LEFT - right, _HEIGHT)
    x = [_work(study, row) / row.joules * row.watts / divisor for row in rows]
    y = [_PICO * row.joules / _work(study, row) for row in rows]
    axes.set(xscale="log", xlim=(min(x) / 1.5, 1.5 * max(x)), xlabel=unit)
    axes.set(yscale="log", ylim=(min(y) / 1.8, 1.8 * max(y)), ylabel=_unit(study))
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis)
    _power(axes, divisor / _PICO, study)
    for row, at in zip(rows, zip(x, y, strict=True), strict=True):
        peer = row.role == "peer"
        look: style.Look = {"marker": "D" if peer else "o", "markersize": 5.5 if peer else 6}
        look["color"] = style.PEER if peer else style.OURS
        axes.plot(*at, linestyle="none", zorder=4, label=row.name, **look)
    points = dict(zip((row.name for row in rows), zip(x, y, strict=True), strict=True))
    _name(axes, width - _LEFT - right, dict(zip(texts, named, strict=True)), points)
    return figure


def _shown(role: str) -> bool:
    return role in {"step", "peer"}


def _named(study: Study, rows: Sequence[Row]) -> list[Row]:
    """The rows whose names fit: the path to the best and peers before the others."""
    path = {row.name for row in study.path}
    first = sorted(rows, key=lambda row: row.name not in path and row.role != "peer")
    kept = {row.name for row in first[:_NAMED]}
    return [row for row in rows if row.name in kept]


def _titles(study: Study) -> tuple[str, str]:
    told = "Launches back to back. Along grey lines power is the same. Orange: libraries"
    return f"{study.ladder.title}: speed and energy{cases.at_headline(study)}", told


def _work(study: Study, row: Row) -> float:
    """Work of a launch in FLOP or bytes."""
    per_joule = row.flops_per_joule if study.ladder.quantity == "flops" else row.bytes_per_joule
    return row.joules * per_joule


def _unit(study: Study) -> str:
    return "pJ per FLOP" if study.ladder.quantity == "flops" else "pJ per byte"


def _text(study: Study, row: Row) -> str:
    picojoules = _PICO * row.joules / _work(study, row)
    return f"{name_of(study.rung(row), row)}  {picojoules:.3g} pJ, {row.watts:.0f} W"


def _power(axes: Axes, scale: float, study: Study) -> None:
    """Draw the lines of the idle board's power and of its limit. `scale`: watts of 1 by 1."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for key, what, line in (("idle_watts", "idle", ":"), ("watts_limit", "the limit", "-")):
        watts = units.parse(study.results.context.get(key))
        constant = watts / scale
        start, end = max(left, constant / high), min(right, constant / low)
        if not start < end:
            continue
        look: style.Look = {"linewidth": 1.0, "color": style.GREY, "zorder": 1}
        axes.plot([start, end], [constant / start, constant / end], **look, linestyle=line)
        name = f"{watts:.0f} W, {what}"
        if line == "-":
            style.note(axes, name, (start, constant / start), (8, -9))
        elif left * _SHORT < end < right:  # it leaves at the bottom
            style.note(axes, name, (end, low), (-8, 3), ha="right")


def _name(
    axes: Axes, width: float, named: dict[str, Row], points: dict[str, tuple[float, float]]
) -> None:
    """Write names right of the axes, each with a thin line to its point."""
    low, high = (math.log(end) for end in axes.get_ylim())
    wanted = [(math.log(points[row.name][1]) - low) / (high - low) for row in named.values()]
    gap = 1.45 * style.SMALL / 72 / _HEIGHT
    left, right = (math.log(end) for end in axes.get_xlim())
    places = style.spread(wanted, gap, 0.0, 1.0)
    for (text, row), own, y in zip(named.items(), wanted, places, strict=True):
        x, _ = points[row.name]
        at = (math.log(x) - left) / (right - left)
        bend, end = 1 + 0.1 / width, 1 + (_LEADER - 0.05) / width
        axes.plot(
            [at, bend, end],
            [own, own, y],
            transform=axes.transAxes,
            color=style.FAINT,
            linewidth=0.7,
            clip_on=False,
            zorder=0,
        )
        place: style.Look = {"coordinates": "axes fraction", "va": "center"}
        place["color"] = style.PEER if row.role == "peer" else "black"
        style.note(axes, text, (1 + _LEADER / width, y), **place)
