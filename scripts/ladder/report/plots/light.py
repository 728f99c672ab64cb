# SPDX-License-Identifier: MIT
"""Speed of light: percent of the measured ceiling, and of each limit that the counters know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.limits import COUNTS_FROM, LAUNCH, Limiter, Limits
from ladder.analysis.study import (
    ABOVE_ROOF_PERCENT,
    ABOVE_SHORT_PERCENT,
    SHORT_LAUNCHES,
    Study,
    describe,
    facet_title,
    name_of,
)
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import style

_STRIP, _HEIGHT, _CASE = 0.7, 0.5, 0.25  # inches: a rung, its strip, a case's least width
_DASH = 3.8 / 72  # inches above a strip's foot
_TOP, _BOTTOM, _GAP = 1.1, 0.95, 0.2
_BAR, _HEADER, _BETWEEN = 0.3, 0.2, 0.75  # inches, of the shares, and from them to the strips
_LEAST_BARS, _NUMBER = 0.38, 0.46  # inches, of a limit's bars and of the numbers beside them
_SHOWN = 0.05  # least share that a limit has to have at some rung
_LINE = 100.05  # percent from which a speed is written as above the line, not at it
_TRACK, _OTHER = "#f0f0f0", "#b4b4b4"  # behind the bars, and of limits that do not limit


@dataclass(frozen=True)
class Share:
    """What a rung uses of each limit at the headline, and which of them limits it."""

    rung: Rung
    row: Row
    shares: dict[str, float]
    limiter: Limiter
    impossible: tuple[str, ...]  # the limits that it exceeds, and "" for its own speed


def shares(study: Study) -> list[Share]:
    """The rungs at the headline whose counters tell what limits them, in climbing order."""
    limits = Limits(study.results)
    return [
        Share(rung, row, limits.shares(row), limiter, _impossible(study, limits, row))
        for rung in study.rungs
        if (row := study.ok(rung, study.headline)) and (limiter := limits.limiter(row))
    ]


def _impossible(study: Study, limits: Limits, row: Row) -> tuple[str, ...]:
    found = [told.rpartition(" ")[0] for told in limits.impossible(row)]
    return (*found, *([""] if study.above_roof(row) else []))


def draw(study: Study, found: Sequence[Share] = ()) -> Figure:
    """Draw what the rungs use of each limit, as far as counted, and below it the strips.

    Strips show percent of the ceiling, a row a rung, a column a facet, a bar a shape; a ladder
    that counts FLOPs has a roofline in their place.
    """
    rungs = [] if study.counted or (found and len(study.cases) == 1) else _rungs(study)
    if not rungs and not found:
        raise style.NothingToDrawError("no row has percent_of_ceiling")
    names = [name_of(share.rung, share.row) for share in found]
    left = 0.4 + style.widest([*names, *(rung.name for rung in rungs)])
    told = [str(share.limiter) for share in found]
    columns = _columns(found)
    right = style.widest(told, style.SMALL) + 0.3
    least = left + (1 + len(columns)) * (_LEAST_BARS + _NUMBER) + right if found else 0.0
    widths = {
        facet: max(_CASE * len(cases), style.text_width(facet_title(facet), style.NORMAL + 1))
        for facet, cases in study.facets.items()
    }
    if rungs:
        least = max(least, left + sum(widths.values()) + _GAP * len(widths))
    width = max(style.PAGE, least)
    upper = _HEADER + _BAR * len(found) if found else 0.0
    lower = _STRIP * len(rungs) + _BOTTOM if rungs else 0.25
    height = _TOP + upper + (_BETWEEN if found and rungs else 0.0) + lower
    strips = f"percent of {study.ladder.ceilings}, the line above each strip{_key(study, rungs)}"
    own = study.own_ceilings()
    about = f"percent of {study.ladder.ceilings}{own} and of each limit{_at(study)}"
    about = about if found else strips
    title = f"{study.ladder.title}: speed of light"
    figure = style.page(width, height, title, f"{describe(study.results)}: {about}")
    if found:
        figure.text(0.2 / width, 1 - 0.74 / height, _signs(study, found, columns), color=style.GREY)
        _shares(figure, height - _TOP - _HEADER, left, width - right, study, found, columns)
    if rungs:
        if found:
            over = 0.2 / width, (lower + 0.35) / height
            figure.text(*over, strips[0].upper() + strips[1:], color=style.GREY)
        spare = width - left - sum(widths.values()) - _GAP * len(widths)
        share = spare / len(study.cases)
        widths = {facet: w + share * len(study.facets[facet]) for facet, w in widths.items()}
        _strips(figure, lower, left, study, rungs, widths)
    return figure


def _at(study: Study) -> str:
    return f" at {study.spell(study.headline)}" if study.headline else ""


def _rungs(study: Study) -> list[Rung]:
    """Return the rungs that have a strip: those with a percent of another rung's speed."""
    return [
        rung
        for rung in study.rungs
        if rung.role != "ceiling"
        and any((row := study.ok(rung, c)) and study.percent(row) > 0 for c in study.cases)
    ]


def _columns(found: Sequence[Share]) -> list[str]:
    """Name the limits that some rung uses noticeably, in the order of the rules."""
    used = {name for share in found for name, s in share.shares.items() if s >= _SHOWN}
    return [name for name in COUNTS_FROM if name in used and name != LAUNCH]


def _shares(
    figure: Figure,
    top: float,
    left: float,
    right: float,
    study: Study,
    found: Sequence[Share],
    columns: list[str],
) -> None:
    """Draw a column of bars a limit, of one scale, and write what limits each rung after them."""
    colours = style.colours(study.ladder)
    each = (right - left) / (1 + len(columns))
    width, height = each - _NUMBER, _BAR * len(found)
    names = [name_of(share.rung, share.row) for share in found]
    beside: style.Look = {"coordinates": ("axes fraction", "data"), "va": "center"}
    header: style.Look = {"coordinates": "axes fraction", "color": "black", "size": style.NORMAL}
    for i, column in enumerate(["", *columns]):
        axes = style.panel(figure, left + i * each, top - height, width, height)
        axes.set(xlim=(0, 100), ylim=(len(found) - 0.5, -0.5), xticks=[], yticks=[])
        if i == 0:
            axes.set_yticks(range(len(names)), names, size=style.NORMAL)
        axes.tick_params(axis="y", length=0)
        axes.spines["bottom"].set_visible(False)
        style.note(axes, column.replace(" ", "\n") or "speed", (0, 1), (0, 4), **header)
        tracks = []
        for y, share in enumerate(found):
            value = 100 * share.shares.get(column, math.nan) if column else study.percent(share.row)
            if value != value:
                style.note(axes, "–", (1, y), (3, 0), **beside)
                continue
            limits = column in ("", share.limiter.name)
            look = style.bar_style(share.rung, colours[share.rung.name])
            tracks.append((0, y - 0.34, 100, 0.68))
            bar = look if limits else {"color": _OTHER}
            if column in share.impossible:
                bar = {"color": style.ALARM}
            axes.barh(y, min(value, 100), height=0.68, **bar)
            weight = "bold" if column and limits else "normal"
            colour = "black" if limits else style.GREY
            text = units.percent(value) if value >= 0.05 else "0%"
            style.note(axes, text, (1, y), (3, 0), weight=weight, color=colour, **beside)
        if tracks:
            style.boxes(axes, tracks, facecolor=_TRACK, zorder=0.9)
    after = 72 * _NUMBER
    style.note(axes, "limited by", (1, 1), (after, 4), **header)
    for y, share in enumerate(found):
        style.note(axes, str(share.limiter), (1, y), (after, 0), color="black", **beside)


def _strips(
    figure: Figure,
    top: float,
    left: float,
    study: Study,
    rungs: list[Rung],
    widths: dict[str, float],
) -> None:
    """Draw percent of the ceiling `top` inches above the foot: a row a rung, a column a facet.

    A column is one Axes, as each takes long to make; its ordinate is inches.
    """
    feet = [_STRIP * i for i in reversed(range(len(rungs)))]
    bottom, height = top - _STRIP * len(rungs) + 0.14, feet[0] + _HEIGHT
    for facet, width in widths.items():
        cases = study.facets[facet]
        axes = style.panel(figure, left, bottom, width, height)
        axes.set(xlim=(-0.6, len(cases) - 0.4), ylim=(0, height), yticks=[])
        axes.spines["left"].set_visible(False)
        for rung, foot in zip(rungs, feet, strict=True):
            _strip(axes, study, rung, cases, foot)
        across: style.Look = {"transform": axes.get_yaxis_transform(), "clip_on": False}
        axes.hlines(feet[:-1], 0, 1, color="black", linewidth=0.8, zorder=2.5, **across)
        lines = [foot + _HEIGHT for foot in feet]
        axes.hlines(lines, 0, 1, color=style.GREY, linewidth=0.6, **across)
        title: style.Look = {"loc": "left", "size": style.NORMAL, "weight": "bold", "pad": 8}
        axes.set_title(facet_title(facet), **title)
        style.category_ticks(axes, [study.label(case) for case in cases], width)
        if facet == next(iter(widths)):
            axes.set_xlabel(" × ".join(study.shape_axes), loc="left")
            beside: style.Look = {
                "coordinates": ("axes fraction", "data"),
                "ha": "right",
                "va": "center",
            }
            beside |= {"size": style.NORMAL, "color": "black"}
            for rung, foot in zip(rungs, feet, strict=True):
                style.note(axes, rung.name, (0, foot + _HEIGHT / 2), (-6, 0), **beside)
        left += width + _GAP


def _signs(study: Study, found: Sequence[Share], columns: list[str]) -> str:
    """Say what red and what a dash stand for among the shares, where they have any."""
    red = f"{_red(study, [s.row for s in found])}, or more than a limit allows"
    unknown = any(name not in s.shares for s in found for name in columns)
    dash = unknown or any(math.isnan(study.percent(s.row)) for s in found)
    told = [red if any(s.impossible for s in found) else "", "–: not known" if dash else ""]
    return ". ".join(filter(None, told))


def _key(study: Study, rungs: list[Rung]) -> str:
    """Say what red and what a dash stand for, where the strips have any."""
    found = [study.ok(rung, case) for rung in rungs for case in study.cases]
    rows = [row for row in found if row]
    red = f". {_red(study, rows)}" if any(map(study.above_roof, rows)) else ""
    return red + _gaps(study, rungs)


def _red(study: Study, rows: list[Row]) -> str:
    """Say what red stands for: of what was let pass, too."""
    passed = [
        row for row in rows if study.percent(row) > ABOVE_ROOF_PERCENT and study.short_ceiling(row)
    ]
    short = f" ({ABOVE_SHORT_PERCENT:g}% of one shorter than {SHORT_LAUNCHES} launches)"
    return f"Red: over {ABOVE_ROOF_PERCENT:g}% of its ceiling{short if passed else ''}"


def _gaps(study: Study, rungs: list[Rung]) -> str:
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


def _strip(axes: Axes, study: Study, rung: Rung, cases: list[str], foot: float) -> None:
    """Draw the strip of a rung, `foot` inches up."""
    own = style.colours(study.ladder)[rung.name]
    bars: list[tuple[float, float, float, float]] = []
    colours: list[style.Colour] = []
    unknown: list[int] = []
    for x, case in enumerate(cases):
        row = study.ok(rung, case)
        if not row or math.isnan(value := study.percent(row)):
            unknown.append(x)
            continue
        near = _LINE <= value < 110  # whether it is red hangs on the decimal
        text = f"{value:.1f}" if near else units.percent(value).removesuffix("%")
        top = _HEIGHT * min(value, 100) / 100
        bars.append((x - 0.36, foot, 0.72, top))
        colours.append(style.ALARM if study.above_roof(row) else own)
        look: style.Look = {"ha": "center", "size": 6.5}
        if value <= 70:
            style.note(axes, text, (x, foot + top), (0, 2), **look)
        elif rung.is_ours:
            style.note(axes, text, (x, foot + top), (0, -9), **look | {"color": "white"})
        else:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            style.note(axes, text, (x, foot + top), (0, -10), bbox=box, **look)
    if bars:
        style.boxes(axes, bars, label=rung.name, **style.bar_style(rung, colours))
    dash: style.Look = {"markersize": 2.6, "markeredgewidth": 0.5, "color": style.GREY}
    axes.plot(unknown, [foot + _DASH] * len(unknown), "_", **dash)
