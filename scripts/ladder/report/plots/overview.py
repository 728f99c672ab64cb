# SPDX-License-Identifier: MIT
"""All ladders in one figure, a row of dots each: percent of the limit, on one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import cases, style

_ROW, _TOP, _BOTTOM, _LEAST_WIDTH, _GAP = 0.46, 1.15, 0.8, 2.4, 0.25  # inches
_BOLD = 1.17  # width of bold text over that of plain
_MARKERS, _SIGNS = "osD^vP", "●■◆▲▼✚"


@dataclass(frozen=True)
class _Dot:
    """A percent of the limit, and its marker; `up` rows apart from others that may be as high."""

    percent: float
    look: style.Look
    up: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class _Line:
    """A row of the figure: what a ladder reaches of one limit, and what is written beside it."""

    title: str
    about: str
    dots: list[_Dot]
    cells: tuple[str, ...]  # of two lines at most


def draw(results: Results, found: Sequence[Study]) -> Figure:
    """Draw the first rung, the best and the fastest library of each ladder at its headline."""
    lines = [line for study in found if not study.ladder.factors for line in _climbed(study)]
    if not lines:
        raise style.NothingToDrawError("no ladder has a step with percent_of_ceiling")
    return _draw(
        lines,
        "How far each ladder climbs",
        "Speed as percent of the limit that was measured on the same GPU",
        describe(results),
        [("first rung", style.GREY), ("best rung", style.OURS), ("library", style.PEER)],
        "○●◇",
        ("best rung", "× library"),
    )


def compare(found: list[tuple[str, list[Study]]]) -> Figure:
    """Draw the best rung of each ladder on each GPU, of (name, studies) pairs."""
    names = [name.removeprefix("NVIDIA ") for name, _ in found]
    by_ladder: dict[str, dict[int, Study]] = {}
    for i, (_, studies) in enumerate(found):
        for study in studies:
            by_ladder.setdefault(study.ladder.name, {})[i] = study
    lines = []
    for several in by_ladder.values():
        best = {i: row for i, study in several.items() if (row := study.best_step(study.headline))}
        percents = {i: several[i].percent(row) for i, row in best.items()}
        experiment = any(study.ladder.factors for study in several.values())
        if len(several) < 2 or experiment or not any(p > 0 for p in percents.values()):
            continue
        dots, cells = [], []
        for i in range(len(found)):
            look = {"marker": _MARKERS[i % len(_MARKERS)], "color": _colour(i), "markersize": 6.5}
            apart = 0.24 * (i / (len(found) - 1) - 0.5)
            dots.append(_Dot(percents.get(i, math.nan), look, apart))
            cells.append("–")
            if row := best.get(i):
                speed = units.rate(several[i].ladder.quantity, several[i].speed(row))
                cells[i] = f"{units.percent(percents[i])}, {speed}"
        first = next(iter(several.values()))
        lines.append(_Line(first.ladder.title, cases.headline(first), dots, tuple(cells)))
    if not lines:
        raise style.NothingToDrawError("no ladder that several have has percent_of_ceiling")
    return _draw(
        lines,
        f"The best rung of each ladder on {len(found)} GPUs",
        "Speed as percent of the limit that was measured on the same GPU",
        "; ".join(describe(studies[0].results) for _, studies in found if studies),
        [(name, _colour(i)) for i, name in enumerate(names)],
        "".join(_SIGNS[i % len(_SIGNS)] for i in range(len(names))),
        tuple(names),
    )


def _colour(i: int) -> str:
    return style.GPU_COLOURS[i % len(style.GPU_COLOURS)]


def _climbed(study: Study) -> list[_Line]:
    """Return the row of a ladder, and another where the best has a limit of its own."""
    best = study.best_step(study.headline)
    if not best or not study.percent(best) > 0:
        return []
    about = cases.headline(study)
    if not study.has_own_ceiling(best):
        return [_line(study, study.ladder.title, about, best, study.path[0])]
    rows = [row for rung in study.rungs if rung.is_step and (row := study.ok(rung, study.headline))]
    plain = [r for r in rows if not study.has_own_ceiling(r) and study.percent(r) > 0]
    limit = f"its own limit: {study.spell_ceiling(best)}".replace("`", "")
    own = _line(study, "", limit, best, None)
    if not plain:
        return [own]
    fastest = max(plain, key=study.speed)
    return [_line(study, study.ladder.title, about, fastest, study.path[0]), own]


def _line(study: Study, title: str, about: str, best: Row, first: Row | None) -> _Line:
    dots: list[_Dot] = []
    hollow: style.Look = {"markerfacecolor": "white", "markeredgewidth": 1.6, "markersize": 7}
    if first and first is not best:
        percent = study.percent(first)
        look: style.Look = {"marker": "o", "color": style.GREY, **hollow}
        dots.append(_Dot(percent, look, text=units.percent(percent)))
    dots.append(_Dot(study.percent(best), {"marker": "o", "color": style.OURS, "markersize": 9}))
    if first and (peer := study.peer("", study.headline)):
        dots.append(_Dot(study.percent(peer), {"marker": "D", "color": style.PEER, **hollow}))
    speed = units.rate(study.ladder.quantity, study.speed(best))
    told = f"{best.rung}\n{units.percent(study.percent(best))}, {speed}"
    return _Line(title, about, dots, (told, study.to_peer(best).replace(" ", "\n", 1)))


def _draw(
    lines: list[_Line],
    title: str,
    subtitle: str,
    source: str,
    key: list[tuple[str, str]],
    signs: str,
    headers: tuple[str, ...],
) -> Figure:
    left = 0.35 + max(
        _BOLD * style.widest([line.title for line in lines]),
        style.widest([line.about for line in lines], style.SMALL),
    )
    columns = [
        [part for line in lines for part in line.cells[i].split("\n")] for i in range(len(headers))
    ]
    widths = [
        _GAP + max(_BOLD * style.text_width(header), style.widest(column))
        for header, column in zip(headers, columns, strict=True)
    ]
    width = max(style.PAGE, left + _LEAST_WIDTH + sum(widths) + 0.2)
    body = _ROW * len(lines)
    height = _TOP + style.legend_height([name for name, _ in key], width) + body + _BOTTOM
    figure = style.page(width, height, title, subtitle, source)
    style.legend(figure, key, signs=signs)
    axes = style.panel(figure, left, _BOTTOM, width - left - sum(widths) - 0.2, body)
    found = [dot.percent for line in lines for dot in line.dots if dot.percent == dot.percent]
    axes.set(xlim=(-4, max(101.0, *found)), ylim=(len(lines) - 0.5, -0.5), yticks=[])
    for y, line in enumerate(lines):
        _row(axes, y, line)
    axes.axvline(100, color="black", linewidth=1.2, zorder=1)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("percent of the limit")
    axes.spines["left"].set_visible(False)
    end = 72 * _GAP
    text: style.Look = {"size": style.NORMAL, "color": "black"}
    for i, header in enumerate(headers):
        over: style.Look = {"coordinates": "axes fraction", "weight": "bold"}
        style.note(axes, header, (1, 1), (end, 4), **text, **over)
        for y, line in enumerate(lines):
            beside: style.Look = {"coordinates": ("axes fraction", "data"), "va": "center"}
            style.note(axes, line.cells[i], (1, y), (end, 0), **text, **beside)
        end += 72 * widths[i]
    return figure


def _row(axes: Axes, y: int, line: _Line) -> None:
    """Draw the dots of one row, joined, and what it is of left of them."""
    known = [dot.percent for dot in line.dots if dot.percent == dot.percent]
    axes.axhline(y, color=style.FAINT, linewidth=0.6, zorder=0)
    if not any(dot.up for dot in line.dots):
        axes.plot([min(known), max(known)], [y, y], color=style.GREY, linewidth=1.2, zorder=1)
    for dot in line.dots:
        axes.plot(dot.percent, y + dot.up, linestyle="none", clip_on=False, zorder=3, **dot.look)
        style.note(axes, dot.text, (dot.percent, y), (0, 7), ha="center")
    left: style.Look = {"coordinates": ("axes fraction", "data"), "ha": "right"}
    bold: style.Look = {"size": style.NORMAL, "color": "black", "weight": "bold"}
    style.note(axes, line.title, (0, y), (-8, 1), **left, **bold)
    alone: style.Look = {"va": "top" if line.title else "center"}
    style.note(axes, line.about, (0, y), (-8, -2 if line.title else 0), **left, **alone)
