# SPDX-License-Identifier: MIT
"""What limits each rung: percent of the ceiling, and of each limit that the counters know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ladder.analysis.limits import COUNTS_FROM, LAUNCH, Limiter, Limits
from ladder.analysis.study import (
    ABOVE_ROOF_PERCENT,
    ABOVE_SHORT_PERCENT,
    SHORT_LAUNCHES,
    Study,
    describe,
    name_of,
)
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import cases, style

_TOP, _BOTTOM, _BAR, _HEADER = 1.1, 0.45, 0.3, 0.2  # inches, _BAR of a rung
_LEAST_BARS, _NUMBER = 0.38, 0.46  # inches, of a limit's bars and of the numbers beside them
_SHOWN = 0.05  # least share that a limit has to have at some rung
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


def draw(study: Study, found: Sequence[Share]) -> Figure:
    """Draw what the rungs use of each limit at the headline."""
    names = [name_of(share.rung, share.row) for share in found]
    left = 0.4 + style.widest(names)
    columns = _columns(found)
    right = style.widest([str(share.limiter) for share in found], style.SMALL) + 0.3
    width = max(style.WIDE, left + (1 + len(columns)) * (_LEAST_BARS + _NUMBER) + right)
    height = _TOP + _HEADER + _BAR * len(found) + _BOTTOM
    own, at = study.own_ceilings(), cases.at_headline(study).removeprefix(",")
    about = f"Percent of {study.ladder.ceilings}{own} and of each limit{at}"
    title = f"{study.ladder.title}: what limits each rung"
    figure = style.page(width, height, title, about, describe(study.results))
    figure.text(0.2 / width, 1 - 0.74 / height, _signs(study, found, columns), color=style.GREY)
    _shares(figure, height - _TOP - _HEADER, left, width - right, study, found, columns)
    return figure


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
    """Draw a column of bars per limit, of one scale, and write what limits each rung after them.

    All stand on one pair of axes, in inches across: a pair each would take twice as long.
    """
    each = (right - left) / (1 + len(columns))
    full, height = each - _NUMBER, _BAR * len(found)
    axes = style.panel(figure, left, top - height, right - left, height)
    axes.set(xlim=(0, right - left), ylim=(len(found) - 0.5, -0.5), xticks=[])
    names = [name_of(share.rung, share.row) for share in found]
    axes.set_yticks(range(len(names)), names, size=style.NORMAL)
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    edge: style.Look = {"color": "black", "linewidth": 0.8, "zorder": 2.5, "clip_on": False}
    axes.vlines([i * each for i in range(1 + len(columns))], -0.5, len(found) - 0.5, **edge)
    header: style.Look = {"coordinates": ("data", "axes fraction"), "color": "black"}
    header["size"] = style.NORMAL
    tracks = []
    for i, column in enumerate(["", *columns]):
        start, end = i * each, i * each + full
        style.note(axes, column.replace(" ", "\n") or "speed", (start, 1), (0, 4), **header)
        for y, share in enumerate(found):
            value = 100 * share.shares.get(column, math.nan) if column else study.percent(share.row)
            if value != value:
                style.note(axes, "–", (end, y), (3, 0), va="center")
                continue
            limits = column in ("", share.limiter.name)
            look = style.bar_style(share.rung, style.colour_of(share.rung))
            tracks.append((start, y - 0.34, full, 0.68))
            bar = look if limits else {"facecolor": _OTHER}
            if column in share.impossible:
                bar = {"facecolor": style.ALARM}
            # Axes.barh takes ten times as long, as it looks for limits and units.
            length = full * min(value, 100) / 100
            axes.add_artist(Rectangle((start, y - 0.34), length, 0.68, **bar))
            look = {"weight": "bold" if column and limits else "normal", "va": "center"}
            colour = "black" if limits else style.GREY
            text = units.percent(value) if value >= 0.05 else "0%"
            style.note(axes, text, (end, y), (3, 0), color=colour, **look)
    if tracks:
        style.boxes(axes, tracks, facecolor=_TRACK, zorder=0.9)
    style.note(axes, "limited by", (right - left, 1), (0, 4), **header)
    for y, share in enumerate(found):
        style.note(axes, str(share.limiter), (right - left, y), color="black", va="center")


def _signs(study: Study, found: Sequence[Share], columns: list[str]) -> str:
    """Say what red and what a dash stand for among the shares, where they have any."""
    red = f"{_red(study, [s.row for s in found])}, or more than a limit allows"
    unknown = any(name not in s.shares for s in found for name in columns)
    dash = unknown or any(math.isnan(study.percent(s.row)) for s in found)
    told = [red if any(s.impossible for s in found) else "", "–: not known" if dash else ""]
    return ". ".join(filter(None, told))


def _red(study: Study, rows: list[Row]) -> str:
    """Say what red stands for: of what was let pass, too."""
    passed = [
        row for row in rows if study.percent(row) > ABOVE_ROOF_PERCENT and study.short_ceiling(row)
    ]
    short = f" ({ABOVE_SHORT_PERCENT:g}% of one shorter than {SHORT_LAUNCHES} launches)"
    return f"Red: over {ABOVE_ROOF_PERCENT:g}% of its ceiling{short if passed else ''}"
