# SPDX-License-Identifier: MIT
"""The samples behind rows: in the order taken, and how they are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ladder.analysis.study import Study, describe, name_of
from ladder.io.samples import Samples
from ladder.model import units
from ladder.model.rows import Row, bare
from ladder.report.plots import style

MOST = 24  # rows on a page
_FEW = 8  # so many rows are drawn all, of more those at the headline
_HEIGHT, _BETWEEN, _LEFT, _RIGHT, _BOTTOM, _TOP = 0.95, 0.55, 0.85, 1.3, 0.6, 1.25  # inches
_SHARES, _GAP, _NOTE = 1.5, 0.12, 0.16  # inches: of the distribution, left of it, a line of text
_LEAST_REACH = 0.0025  # of the median, that the time axis has either way: noise alone stays flat
_SINGLE = 2000  # points in a figure of which each is drawn as itself in an SVG
_QUANTILES = (0.9, 0.5, 0.1)


@dataclass(frozen=True)
class Side:
    """The samples of one result."""

    label: str
    study: Study
    samples: Samples

    def of(self, row: Row) -> list[NDArray[np.float64]]:
        """Return a row's repetitions, in seconds; empty where there are none."""
        return self.samples.get(bare(row.name), [])


def chosen(side: Side) -> list[Row]:
    """Return the rows to draw: all that have samples if they are few, else those at the headline.

    Those stand in climbing order, and without any there the first rows stand in.
    """
    study, places = side.study, {rung.name: i for i, rung in enumerate(side.study.climb)}
    rows = sorted((row for row in study.rows if side.of(row)), key=lambda row: places[row.rung])
    if len(rows) > _FEW:
        best = (study.measured(rung, study.headline) for rung in study.climb)
        rows = [row for row in best if row and side.of(row)] or rows
    return rows[:MOST]


def draw(sides: Sequence[Side], rows: Sequence[Row]) -> Figure:
    """Draw panels of one time axis for each row: samples in the order taken, and their shares.

    Several sides have a panel of the former each, and lie over one another in the latter.
    """
    study, several = sides[0].study, len(sides) > 1
    labels = [side.label for side in sides]
    pad = _NOTE if several else 0.0  # inches from what is said of a panel to the row's name
    width, pitch = style.WIDE, _HEIGHT + _BETWEEN + pad
    height = _TOP + pitch * len(rows) - _BETWEEN + _BOTTOM + style.legend_height(labels, width)
    alike = len({row.case for row in rows}) == 1
    subtitle = _subtitle(sides, rows, study.spell(rows[0].case) if alike else "")
    figure = style.page(width, height, f"{study.ladder.title}: samples", subtitle)
    colours = [style.GPU_COLOURS[i % len(style.GPU_COLOURS)] for i in range(len(sides))]
    entries = list(zip(labels, colours, strict=True)) if several else []
    style.legend(figure, entries, "│ a new repetition or process   △▽ beyond the axis")
    points = sum(len(times) for side in sides for row in rows for times in side.of(row))
    room = (width - _LEFT - _SHARES - _RIGHT) / len(sides)
    bottom = _BOTTOM + pitch * (len(rows) - 1)
    for row in rows:
        found = [
            _Drawn(
                side.of(row),
                colour if several else style.colour_of(study.rung(row)),
                points > _SINGLE,
            )
            for side, colour in zip(sides, colours, strict=True)
        ]
        places = [_LEFT + room * i for i, each in enumerate(found) if each.repetitions]
        found = [each for each in found if each.repetitions]
        taken = [style.panel(figure, x, bottom, room - _GAP, _HEIGHT) for x in places]
        shares = style.panel(figure, width - _RIGHT - _SHARES, bottom, _SHARES, _HEIGHT)
        rung = study.ladder.rung(row.rung)
        name = name_of(rung, row) if rung and alike else bare(row.name)
        taken[0].set_title(name, loc="left", weight="bold", size=style.NORMAL, pad=4 + 72 * pad)
        _row(taken, shares, found)
        if row is rows[-1]:
            for axes in taken:
                axes.set_xlabel("sample, in the order taken")
            shares.set_xlabel("share of samples")
        bottom -= pitch
    return figure


def _subtitle(sides: Sequence[Side], rows: Sequence[Row], case: str) -> str:
    count = sum(bool(side.of(row)) for side in sides for row in side.study.rows)
    drawn = sum(bool(side.of(row)) for side in sides for row in rows)
    about = [describe(sides[0].study.results)] if len(sides) == 1 else []
    told = ", ".join([*about, *([f"at {case}"] if case else [])])
    left_out = f"{count - drawn} rows not shown" if count > drawn else ""
    return "; ".join(filter(None, (told, left_out)))


@dataclass(frozen=True)
class _Drawn:
    """The repetitions of a row on one side, and how they are drawn."""

    repetitions: list[NDArray[np.float64]]
    colour: Any
    rasterized: bool

    @property
    def times(self) -> NDArray[np.float64]:
        return np.concatenate(self.repetitions)


def _row(taken: Sequence[Axes], shares: Axes, found: Sequence[_Drawn]) -> None:
    factor, unit = units.time_unit(float(np.median(found[0].times)))
    low, high = (end / factor for end in _limits([each.times for each in found]))
    for axes in (*taken, shares):
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.ticklabel_format(axis="y", useOffset=False, style="plain")
        axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
        axes.tick_params(labelleft=axes is taken[0])
    for axes, each in zip(taken, found, strict=True):
        beyond = [f"{text} {unit}" for text in _in_order(axes, each, factor)]
        place = {"coordinates": "axes fraction", "ha": "right"}
        style.note(axes, "; ".join(beyond), (1, 1), (0, 5), **place)
        times = np.clip(each.times / factor, low, high)
        bins = np.linspace(low, high, int(np.clip(1.5 * np.sqrt(len(times)), 12, 40))).tolist()
        look: dict[str, Any] = {
            "orientation": "horizontal",
            "histtype": "stepfilled",
            "color": each.colour,
        }
        shares.hist(times, bins, weights=np.full(len(times), 1 / len(times)), alpha=0.55, **look)
    taken[0].set_ylabel(f"time, {unit}")
    shares.tick_params(labelbottom=False, length=0)
    shares.set_xlim(left=0)
    _percentiles(shares, found, factor, unit)


def _in_order(axes: Axes, drawn: _Drawn, factor: float) -> list[str]:
    """Draw a point per sample; return how many are beyond either end of the axis, and how far."""
    (low, high), times = axes.get_ylim(), drawn.times / factor
    at = np.arange(1, len(times) + 1)
    look: dict[str, Any]
    look = {"color": style.dark(drawn.colour), "linestyle": "none", "rasterized": drawn.rasterized}
    inside = (times >= low) & (times <= high)
    size = float(np.clip(70 / np.sqrt(len(times)), 3.5, 7))
    axes.plot(at[inside], times[inside], ".", markersize=size, alpha=0.7, mew=0, **look)
    told = []
    look |= {"markersize": 4, "markerfacecolor": "white", "mew": 0.8, "clip_on": False, "zorder": 4}
    for marker, sign, edge, out in (("^", "△", high, times > high), ("v", "▽", low, times < low)):
        if out.any():
            axes.plot(at[out], np.full(out.sum(), edge), marker, **look)
            most = times[out].max() if marker == "^" else times[out].min()
            told.append(f"{out.sum()} {sign} to {units.number(float(most))}")
    for end in list(accumulate(map(len, drawn.repetitions)))[:-1]:
        axes.axvline(end + 0.5, color=style.GREY, linewidth=0.6, zorder=0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlim(0.5 - 0.01 * len(times), 0.5 + 1.01 * len(times))
    return told


def _limits(sides: list[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the ends of the time axis: few samples that are far from the others are beyond it."""
    ends = []
    for times in sides:
        low, high = np.quantile(times, [0.05, 0.95])
        ends += [max(times.min(), 2 * low - high), min(times.max(), 2 * high - low)]
    middle = (min(ends) + max(ends)) / 2
    reach = max(0.55 * (max(ends) - min(ends)), _LEAST_REACH * middle)
    return middle - reach, middle + reach


def _percentiles(axes: Axes, found: Sequence[_Drawn], factor: float, unit: str) -> None:
    """Name percentiles right of the distribution, each as near its height as the others let it."""
    low, high = axes.get_ylim()
    quantiles = _QUANTILES[: 2 if len(found) > 1 else 3]
    told = [
        (float(value) / factor, f"p{100 * q:.0f}  {_digits(float(value) / factor)} {unit}", each)
        for each in found
        for q, value in zip(quantiles, np.quantile(each.times, quantiles), strict=True)
    ]
    gap = 1.2 * style.SMALL / 72 / _HEIGHT
    places = style.spread([(value - low) / (high - low) for value, *_ in told], gap, 0.0, 1.0)
    for (value, text, each), place in zip(told, places, strict=True):
        colour = style.dark(each.colour)
        axes.axhline(value, color=colour, linewidth=0.7, linestyle=":")
        look: dict[str, Any] = {"coordinates": "axes fraction", "va": "center", "color": colour}
        style.note(axes, text, (1.04, place), **look)


def _digits(value: float) -> str:
    """Write four digits: percentiles are often within a percent."""
    return f"{value:.{max(0, 3 - len(str(int(value))) + (value >= 1))}f}"
