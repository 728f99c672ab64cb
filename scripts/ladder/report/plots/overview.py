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

_ROW, _TOP, _BOTTOM, _LEFT, _GAP = 0.5, 1.2, 0.8, 0.2, 0.2  # inches
_DOWN, _UP = 0.22, 0.14  # of a row's height: its dots below its middle, its title above
_MARKERS, _SIGNS = "osD^vP", "●■◆▲▼✚"
_DIFFER = " †"  # after a headline whose limit is not the same on all GPUs


@dataclass(frozen=True)
class _Dot:
    """A percent of the limit and its marker, `up` of a row from others that may be as high."""

    percent: float
    look: style.Look
    up: float = 0.0


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
        [
            ("first rung", style.GREY),
            ("best rung", style.OURS),
            ("library", style.PEER),
            ("limit", "black"),
        ],
        "○●◇┃",
        ("best rung", "× library"),
    )


def compare(found: list[tuple[str, list[Study]]]) -> Figure:
    """Draw the best rung of each ladder on each GPU, of (name, studies) pairs."""
    names = [name.removeprefix("NVIDIA ") for name, _ in found]
    by_ladder: dict[str, dict[int, Study]] = {}
    for i, (_, studies) in enumerate(found):
        for study in studies:
            if not study.ladder.factors:
                by_ladder.setdefault(study.ladder.name, {})[i] = study
    lines = []
    for several in by_ladder.values():
        best = {i: row for i, study in several.items() if (row := study.best_step(study.headline))}
        if len(several) > 1 and any(several[i].percent(row) > 0 for i, row in best.items()):
            lines.append(_compared(several, best, len(found)))
    if not lines:
        raise style.NothingToDrawError("no ladder that several have has percent_of_ceiling")
    told = [describe(studies[0].results) for _, studies in found if studies]
    if any(line.about.endswith(_DIFFER) for line in lines):
        told.append(f"{_DIFFER.strip()} limits of different kinds")
    return _draw(
        lines,
        f"The best rung of each ladder on {len(found)} GPUs",
        "Speed as percent of that rung's limit, measured on the same GPU",
        ";\n".join(told),
        [*((name, _colour(i)) for i, name in enumerate(names)), ("limit", "black")],
        "".join(_SIGNS[i % len(_SIGNS)] for i in range(len(names))) + "┃",
        tuple(name.replace(" ", "\n", 1) for name in names),
    )


def _colour(i: int) -> str:
    return style.GPU_COLOURS[i % len(style.GPU_COLOURS)]


def _compared(several: dict[int, Study], rows: dict[int, Row], count: int) -> _Line:
    """Return the row of a ladder, of the best rung on each of `count` GPUs that has one."""
    dots, cells = [], []
    for i in range(count):
        look: style.Look = {"marker": _MARKERS[i % len(_MARKERS)], "color": _colour(i)}
        apart = 0.24 * (i / (count - 1) - 0.5)
        percent = several[i].percent(rows[i]) if i in rows else math.nan
        dots.append(_Dot(percent, look | {"markersize": 6.5}, apart))
        cells.append("–")
        if i in rows:
            speed = units.rate(several[i].ladder.quantity, several[i].speed(rows[i]))
            cells[i] = f"{units.percent(percent)}\n{speed}"
    first = next(iter(several.values()))
    limits = {several[i].spell_ceiling(row) for i, row in rows.items()}
    about = cases.headline(first) + (_DIFFER if len(limits) > 1 else "")
    return _Line(first.ladder.title, about, dots, tuple(cells))


def _bests(study: Study) -> dict[bool, Row]:
    """Return the fastest step under the ladder's limit, and under one of its own if it is faster.

    By whether the limit is its own.
    """
    best = study.best_step(study.headline)
    if not best or not study.percent(best) > 0:
        return {}
    if not study.has_own_ceiling(best):
        return {False: best}
    rows = [row for rung in study.rungs if rung.is_step and (row := study.ok(rung, study.headline))]
    plain = [r for r in rows if not study.has_own_ceiling(r) and study.percent(r) > 0]
    return ({False: max(plain, key=study.speed)} if plain else {}) | {True: best}


def _climbed(study: Study) -> list[_Line]:
    """Return the row of a ladder, and another where the best has a limit of its own."""
    lines = []
    for own, row in _bests(study).items():
        if own:
            limit = f"with a limit of its own, {study.spell_ceiling(row)}".replace("`", "")
            lines.append(_line(study, "", limit, row, None))
        else:
            title = study.ladder.title
            lines.append(_line(study, title, cases.headline(study), row, study.path[0]))
    return lines


def _line(study: Study, title: str, about: str, best: Row, first: Row | None) -> _Line:
    dots: list[_Dot] = []
    hollow: style.Look = {"markerfacecolor": "white", "markeredgewidth": 1.6, "markersize": 7}
    if first and first is not best:
        look: style.Look = {"marker": "o", "color": style.GREY, **hollow}
        dots.append(_Dot(study.percent(first), look))
    dots.append(_Dot(study.percent(best), {"marker": "o", "color": style.OURS, "markersize": 9}))
    if first and (peer := study.peer("", study.headline)):
        dots.append(_Dot(study.percent(peer), {"marker": "D", "color": style.PEER, **hollow}))
    speed = units.rate(study.ladder.quantity, study.speed(best))
    told = f"{best.rung}\n{units.percent(study.percent(best))}, {speed}"
    return _Line(title, about, dots, (told, study.to_peer(best).partition(" ")[0]))


def _draw(
    lines: list[_Line],
    title: str,
    subtitle: str,
    source: str,
    key: list[tuple[str, str]],
    signs: str,
    headers: tuple[str, ...],
) -> Figure:
    columns = [
        [part for line in lines for part in line.cells[i].split("\n")] for i in range(len(headers))
    ]
    widths = [
        _GAP + max(style.BOLD * style.widest(header.split("\n")), style.widest(column))
        for header, column in zip(headers, columns, strict=True)
    ]
    told = max(_title_width(line) for line in lines)
    width = max(style.PAGE, _LEFT + told + sum(widths) + 0.2)
    body = _ROW * len(lines)
    bottom = _BOTTOM + 0.17 * source.count("\n")
    broken = 0.12 * any("\n" in header for header in headers)
    more = style.legend_height([name for name, _ in key], width)
    height = _TOP + broken + more + body + bottom
    figure = style.page(width, height, title, subtitle, source)
    style.legend(figure, key, signs=signs)
    axes = style.panel(figure, _LEFT, bottom, width - _LEFT - sum(widths) - 0.2, body)
    found = [dot.percent for line in lines for dot in line.dots if dot.percent == dot.percent]
    axes.set(xlim=(-2, max(101.0, *found)), ylim=(len(lines) - 0.5, -0.5), yticks=[])
    for y, line in enumerate(lines):
        _row(axes, y, line)
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
            style.note(axes, line.cells[i], (1, y + 0.04), (end, 0), **text, **beside)
        end += 72 * widths[i]
    return figure


def _title_width(line: _Line) -> float:
    """Inches of a row's title and of what is written after it."""
    title = style.BOLD * style.text_width(line.title)
    return title + (0.08 if title else 0.0) + style.text_width(line.about, style.SMALL)


def _row(axes: Axes, y: int, line: _Line) -> None:
    """Draw the dots of one row, joined, and above them what it is of."""
    known = [dot.percent for dot in line.dots if dot.percent == dot.percent]
    at = y + _DOWN
    axes.plot([axes.get_xlim()[0], 100], [at, at], color=style.FAINT, linewidth=0.8, zorder=0)
    axes.plot([100, 100], [at - 0.22, at + 0.22], color="black", linewidth=1.8, zorder=1)
    if not any(dot.up for dot in line.dots):
        axes.plot([min(known), max(known)], [at, at], color=style.GREY, linewidth=1.2, zorder=1)
    for dot in line.dots:
        axes.plot(dot.percent, at + dot.up, linestyle="none", clip_on=False, zorder=3, **dot.look)
    place: style.Look = {"coordinates": ("axes fraction", "data"), "va": "baseline"}
    bold: style.Look = {"size": style.NORMAL, "color": "black", "weight": "bold"}
    title = style.BOLD * style.text_width(line.title)
    style.note(axes, line.title, (0, y - _UP), **place, **bold)
    style.note(axes, line.about, (0, y - _UP), (72 * title + 6 * bool(title), 0), **place)
