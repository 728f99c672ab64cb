# SPDX-License-Identifier: MIT
"""What the emulator predicts over what the hardware's counters say, rung by rung."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.prediction import TOLERANCE, Prediction, predict, worst
from ladder.analysis.study import describe
from ladder.io.results import Results
from ladder.model.counters import SPACES
from ladder.model.rows import Row
from ladder.report.plots import style

_ROW, _TOP, _BOTTOM, _NUMBERS, _RIGHT = 0.19, 1.2, 0.65, 0.95, 0.1  # inches
_REACH = 2.2  # the largest ratio either way that the axes show
_AGREES = "#0072b2"


def draw(emulated: Results, measured: dict[str, Row]) -> Figure:
    """Draw a line per rung with a dot for each case at the ratio of the two."""
    rungs = predict(emulated, measured).rungs
    rungs = {n: rows for n, rows in rungs.items() if any(worst(rows, space) for space in SPACES)}
    if not rungs:
        raise style.NothingToDrawError("the hardware counted no requests")
    names = list(rungs)
    left = 0.35 + style.widest(names, style.SMALL)
    width = max(2.0, (style.WIDE - left - _RIGHT) / len(SPACES) - _NUMBERS)
    body = _ROW * len(rungs)
    total = left + len(SPACES) * (width + _NUMBERS) + _RIGHT
    about = f"{describe(emulated)}, over the GPU's own counters; a dot for each case"
    title = "What the emulator predicts, and what the GPU does"
    figure = style.page(total, _TOP + body + _BOTTOM, title, about)
    band = f"within {TOLERANCE:.0%}"
    differs = "differs: at the right the worst case's ratio"
    found = [row.pairs[s] for rows in rungs.values() for row in rows for s in SPACES]
    beyond = any(pair.known and not 1 / _REACH < pair.ratio < _REACH for pair in found)
    colours = [(band, _AGREES), (differs, style.ALARM)]
    style.legend(figure, colours, "◂ ▸ beyond the axes" if beyond else "")
    for i, space in enumerate(SPACES):
        axes = style.panel(figure, left + i * (width + _NUMBERS), _BOTTOM, width, body)
        _dots(axes, list(rungs.values()), space)
        axes.set_yticks(range(len(rungs)), names if i == 0 else [], size=style.SMALL)
    return figure


def _dots(axes: Axes, rungs: list[list[Prediction]], space: str) -> None:
    axes.axvspan(1 - TOLERANCE, 1 + TOLERANCE, color=style.FAINT, linewidth=0)
    agree = known = 0
    for y, rows in enumerate(rungs):
        furthest = worst(rows, space)
        if not furthest:
            continue
        known += 1
        agree += furthest.agrees
        for pair in (row.pairs[space] for row in rows if row.pairs[space].known):
            at = min(max(pair.ratio, 1 / _REACH), _REACH)  # beyond it only the number tells
            shape = "o" if at == pair.ratio else "<" if at < 1 else ">"
            look: style.Look = {
                "color": _AGREES if pair.agrees else style.ALARM,
                "markeredgewidth": 0,
            }
            axes.plot(at, y, shape, markersize=5, clip_on=False, **look)
        if not furthest.agrees:
            text = f"{furthest.ratio:.3g}" if furthest.measured else "only emulated"
            place: style.Look = {"coordinates": ("axes fraction", "data"), "va": "center"}
            style.note(axes, text, (1, y), (7, 0), color=style.ALARM, **place)
    axes.set(xscale="log", xlim=(1 / _REACH, _REACH), ylim=(len(rungs) - 0.5, -0.5))
    ticks = (0.5, 0.75, 1, 1.33, 2)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.tick_params(axis="y", length=0)
    title = f"{space} {SPACES[space]}: {agree} of {known}"
    axes.set_title(title, loc="left", size=style.NORMAL, weight="bold")
    axes.set_xlabel("emulated / measured")
