# SPDX-License-Identifier: MIT
"""Latency over the size of what is read: a line per memory, named with its least latency."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import style

_AXIS, _KIB = "kibibytes", 1024.0
_LEFT, _LEAST, _HEIGHT, _TOP, _BOTTOM, _LEADER = 0.7, 2.8, 3.0, 0.8, 0.7, 0.25  # inches
_MARKERS = "osD^vP"


@dataclass(frozen=True)
class Line:
    """The rows of one memory, by the bytes that the chain of loads runs through."""

    rung: Rung
    rows: dict[float, Row]

    @property
    def best(self) -> Row:
        """The row of the least latency."""
        return max(self.rows.values(), key=lambda row: row.loads_per_second)


def lines_of(study: Study) -> list[Line]:
    """Return the memories whose latency was measured, fastest first; none of other ladders."""
    found = []
    for rung in study.rungs:
        rows = {
            size: row
            for row in study.rows
            if row.rung == rung.name
            and row.loads_per_second > 0
            and 0 < (size := _KIB * units.parse(row.axes.get(_AXIS))) < math.inf
        }
        if rows:
            found.append(Line(rung, dict(sorted(rows.items()))))
    return sorted(found, key=lambda line: -line.best.loads_per_second)


def draw(study: Study, lines: list[Line]) -> Figure:
    """Draw the latency of each memory over the bytes read, both logarithmic."""
    texts = [_text(line) for line in lines]
    right = _LEADER + style.widest(texts) + 0.2
    width = max(style.PAGE, _LEFT + _LEAST + right)
    title, about = f"{study.ladder.title} of a load", "One thread: each load waits for the last"
    figure = style.page(width, _TOP + _HEIGHT + _BOTTOM, title, about, describe(study.results))
    axes = style.panel(figure, _LEFT, _BOTTOM, width - _LEFT - right, _HEIGHT)
    sizes = sorted({size for line in lines for size in line.rows})
    times = [1e9 / row.loads_per_second for line in lines for row in line.rows.values()]
    axes.set(xscale="log", xlim=(sizes[0] / 1.6, 1.6 * sizes[-1]), xlabel="bytes read")
    axes.set(yscale="log", ylim=(min(times) / 1.5, 1.5 * max(times)), ylabel="ns per load")
    style.log_ticks(axes.yaxis)
    style.value_ticks(axes, sizes, [*map(units.memory, sizes)], width - _LEFT - right)
    low, high = (math.log(end) for end in axes.get_ylim())
    least = [1e9 / line.best.loads_per_second for line in lines]
    wanted = [(math.log(time) - low) / (high - low) for time in least]
    places = style.spread(wanted, 1.45 * style.SMALL / 72 / _HEIGHT, 0.0, 1.0)
    for i, (line, text, place) in enumerate(zip(lines, texts, places, strict=True)):
        colour = style.GPU_COLOURS[i % len(style.GPU_COLOURS)]
        y = [1e9 / row.loads_per_second for row in line.rows.values()]
        axes.plot([*line.rows], y, marker=_MARKERS[i % len(_MARKERS)], color=colour, markersize=5)
        look: style.Look = {"coordinates": "axes fraction", "va": "center"}
        at = 1 + _LEADER / (width - _LEFT - right)
        style.note(axes, text, (at, place), (8, 0), color="black", **look)
        dot: style.Look = {"transform": axes.transAxes, "clip_on": False, "markersize": 5}
        axes.plot([at], [place], _MARKERS[i % len(_MARKERS)], color=colour, **dot)
    if (l2 := units.parse(study.results.context.get("l2_bytes"))) > 0:
        axes.axvline(l2, color=style.GREY, linewidth=1, linestyle=":", zorder=0)
        place_of_note: style.Look = {"coordinates": ("data", "axes fraction"), "ha": "right"}
        style.note(axes, f"L2, {units.memory(l2)}", (l2, 0), (-4, 5), **place_of_note)
    return figure


def _text(line: Line) -> str:
    best = line.best
    cycles = f", {best.cycles_per_load:.0f} cycles" if best.cycles_per_load > 0 else ""
    return f"{line.rung.name}  {units.rate('loads', best.loads_per_second)}{cycles}"
