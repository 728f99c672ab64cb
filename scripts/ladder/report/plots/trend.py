# SPDX-License-Identifier: MIT
"""Histories of rows over commits: a panel per row, its segments as lines."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.report.plots import style
from ladder.stats.trend import Track, Trend

MOST = 24  # rows on a page
_HEIGHT, _BETWEEN, _LEFT, _RIGHT, _BOTTOM, _TOP = 0.62, 0.4, 0.75, 0.9, 0.75, 1.0  # inches
_ABSURD = 1e9  # percent, that the scale leaves out
_COLOURS = {"FASTER": style.GPU_COLOURS[0], "SLOWER": style.ALARM, "CLOCK": style.GREY}


def draw(found: list[Trend]) -> Figure:
    """Draw the rows that changed, then others while there is room.

    Values are percent of the first segment, of the metric itself, so that panels can be compared.
    """
    rows = [(one, track) for one in found for track in one.tracks if track.levels]
    chosen = sorted(rows, key=lambda pair: not pair[1].shifts)[:MOST]
    chosen.sort(key=lambda pair: found.index(pair[0]))
    width, pitch = style.WIDE, _HEIGHT + _BETWEEN
    titles = dict.fromkeys(id(one) for one, _ in chosen)
    height = _TOP + pitch * len(chosen) + _BOTTOM + 0.35 * (len(titles) - 1)
    first = chosen[0][0]
    better = "more" if first.more else "less"
    left_out = f"; {len(rows) - len(chosen)} rows not shown" if len(rows) > len(chosen) else ""
    title = first.history.title if len(titles) == 1 else f"{len(titles)} histories"
    subtitle = f"{first.metric}, percent of the first segment; {better} is better{left_out}"
    figure = style.page(width, height, f"Trend: {title}", subtitle)
    top = height - _TOP
    for i, (one, track) in enumerate(chosen):
        axes = style.panel(figure, _LEFT, top - _HEIGHT, width - _LEFT - _RIGHT, _HEIGHT)
        name = track.name if len(titles) == 1 else f"{one.history.title}: {track.name}"
        axes.set_title(name, loc="left", size=style.SMALL, pad=3)
        _panel(axes, track)
        last = i + 1 == len(chosen) or chosen[i + 1][0] is not one
        labels = [run.label for run in one.history.runs]
        axes.set_xlim(-0.5, len(labels) - 0.5)
        if last:  # of its history
            style.category_ticks(axes, labels, width - _LEFT - _RIGHT)
        else:
            axes.set_xticks(range(len(labels)), [])
        top -= pitch + (0.35 if last else 0.0)
    return figure


def _panel(axes: Axes, track: Track) -> None:
    base = track.levels[0] or 1.0
    values = [100 * value / base for value in track.values]
    axes.plot(values, "o", markersize=3, color=style.GREY)
    outliers = [(i, values[i]) for i in track.outliers]
    if outliers:
        axes.plot(*zip(*outliers, strict=True), "o", markersize=5, color="none", mec=style.PEER)
    ends = [0, *(shift.at for shift in track.shifts), len(values)]
    for start, end, level in zip(ends, ends[1:], track.levels, strict=False):
        axes.plot([start - 0.4, end - 0.6], [100 * level / base] * 2, color="black", linewidth=1.2)
    known = [value for value in values if abs(value) < _ABSURD] or [100.0]
    middle = (max(known) + min(known)) / 2
    reach = max(0.65 * (max(known) - min(known)), 2.5)  # percent: noise alone stays flat
    for shift, level in zip(track.shifts, track.levels[1:], strict=False):
        colour = _COLOURS[shift.verdict]
        axes.axvline(shift.at - 0.5, color=colour, linewidth=1)
        text = f"{shift.verdict} {shift.ratio:.3f}"
        low = 100 * level / base > middle  # clear of the line that begins there
        place = {"coordinates": ("data", "axes fraction"), "va": "bottom" if low else "top"}
        at = shift.at - 0.5, 0.0 if low else 1.0
        style.note(axes, text, at, (3, 0), color=colour, path_effects=style.halo(), **place)
    axes.set_ylim(middle - reach, middle + reach)
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
