# SPDX-License-Identifier: MIT
"""What tests of figures share: what of `insight.document` to draw, and what is then seen."""

import insight
import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.text import Text


def only(document: dict, *ladders: str) -> dict:
    starts = tuple(f"{ladder}/" for ladder in (*ladders, "roof"))
    return {
        **document,
        "benchmarks": [row for row in document["benchmarks"] if row["name"].startswith(starts)],
    }


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def markers(axes, shape: str, *, hollow: bool) -> dict[str, tuple[float, float]]:
    """Places of single markers of a shape, by the colour of their edge."""
    return {
        to_hex(line.get_markeredgecolor() if hollow else line.get_color()): (
            float(line.get_xdata()[0]),
            float(line.get_ydata()[0]),
        )
        for line in axes.lines
        if line.get_marker() == shape
        and len(line.get_xdata()) == 1
        and (line.get_markerfacecolor() == "white") == hollow
        and line.get_markersize() > 4
    }


def colour(ladder: str, rung: str) -> str:
    """The colour that a rung has in every figure."""
    (found,) = [entry for entry in insight.catalogue() if entry["name"] == ladder]
    steps = [r["name"] for r in found["rungs"] if r["role"] == "step"]
    shades = matplotlib.colormaps["viridis"](np.linspace(0.72, 0.0, len(steps)))
    return to_hex(shades[steps.index(rung)])


def overlaps(figure) -> list[tuple[str, str]]:
    """Pairs of level texts that touch."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    found = list(figure.texts)
    for axes in figure.axes:
        found += [*axes.texts, axes.title, axes.xaxis.label, axes._left_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            found += [tick.label1 for tick in ticks]  # others are not drawn
    level = [t for t in found if t.get_text().strip() and t.get_visible() and not t.get_rotation()]
    boxes = [(t.get_text(), Text.get_window_extent(t, renderer)) for t in level]  # without arrows
    inside = [(text, b) for text, b in boxes if b.width and figure.bbox.overlaps(b)]
    return [
        (a, b)
        for i, (a, one) in enumerate(inside)
        for b, other in inside[:i]
        if one.x0 + 1 < other.x1 and other.x0 + 1 < one.x1
        if one.y0 + 1 < other.y1 and other.y0 + 1 < one.y1
    ]
