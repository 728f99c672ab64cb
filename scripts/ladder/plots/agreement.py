# SPDX-License-Identifier: MIT
"""What the emulator predicts over what the hardware's counters say, rung by rung."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.plots import style
from ladder.prediction import TOLERANCE, Prediction, predict
from ladder.results import SPACES, Results
from ladder.study import Row, describe

_ROW, _TOP, _BOTTOM, _BETWEEN, _RIGHT = 0.19, 1.2, 0.65, 0.4, 0.7  # inches
_AGREES = "#0072b2"


def draw(emulated: Results, measured: dict[str, Row]) -> Figure:
    """Draw a dot a rung at the ratio of the two, on a band of what counts as equal."""
    rows = [r for r in predict(emulated, measured).rows if any(p.known for p in r.pairs.values())]
    if not rows:
        raise style.NothingToDrawError("the hardware counted no requests")
    names = _names(rows)
    left = 0.35 + style.widest(names, style.SMALL)
    width = max(2.0, (style.PAGE - left - _RIGHT - _BETWEEN) / len(SPACES))
    body = _ROW * len(rows)
    total = left + len(SPACES) * width + _BETWEEN + _RIGHT
    about = f"{describe(emulated)}, over the GPU's own counters"
    title = "What the emulator predicts, and what the GPU does"
    figure = style.page(total, _TOP + body + _BOTTOM, title, about)
    band = f"within {TOLERANCE:.0%}"
    style.legend(figure, [(band, _AGREES), ("differs, emulated / measured", style.ALARM)])
    for i, space in enumerate(SPACES):
        axes = style.panel(figure, left + i * (width + _BETWEEN), _BOTTOM, width, body)
        _dots(axes, rows, space, _reach(rows))
        axes.set_yticks(range(len(rows)), names if i == 0 else [], size=style.SMALL)
    return figure


def _names(rows: list[Prediction]) -> list[str]:
    """Name rungs; with their case where a rung has several."""
    names = [f"{row.rung} ({row.sweep})" if row.sweep else row.rung for row in rows]
    return [
        name if names.count(name) == 1 else f"{name} {row.case}"
        for name, row in zip(names, rows, strict=True)
    ]


def _reach(rows: list[Prediction]) -> float:
    """Return the largest ratio either way that the axes show, with room for its label."""
    ratios = [pair.ratio for row in rows for pair in row.pairs.values() if pair.known]
    finite = [max(ratio, 1 / ratio) for ratio in ratios if 0 < ratio < math.inf]
    return max([1.1, *finite]) ** 1.6


def _dots(axes: Axes, rows: list[Prediction], space: str, reach: float) -> None:
    axes.axvspan(1 - TOLERANCE, 1 + TOLERANCE, color=style.FAINT, linewidth=0)
    known = [(y, p) for y, row in enumerate(rows) if (p := row.pairs[space]).known]
    for y, pair in known:
        at = min(max(pair.ratio, 1 / reach), reach)
        colour = _AGREES if pair.agrees else style.ALARM
        axes.plot(at, y, "o", color=colour, markersize=5, markeredgewidth=0, clip_on=False)
        if not pair.agrees:
            text = f"{pair.ratio:.3g}" if pair.measured else "only emulated"
            outward = (at > 1) == (1 / reach < at < reach)
            offset, ha = ((5, 0), "left") if outward else ((-5, 0), "right")
            style.note(axes, text, (at, y), offset, ha=ha, va="center", color=style.ALARM)
    axes.set(xscale="log", xlim=(1 / reach, reach), ylim=(len(rows) - 0.5, -0.5))
    steps = (1.1, 1.25) if reach < 1.5 else (1.5, 2) if reach < 4 else (3, 10, 100, 1000)
    ticks = sorted({1.0, *(t for s in steps if s < reach for t in (s, 1 / s))})
    axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.tick_params(axis="y", length=0)
    agree = sum(pair.agrees for _, pair in known)
    title = f"{space} {SPACES[space]}: {agree} of {len(known)} agree"
    axes.set_title(title, loc="left", size=style.NORMAL, weight="bold")
    axes.set_xlabel("emulated / measured")
