# SPDX-License-Identifier: MIT
"""What tests of figures share: what of a document to draw, and what is then seen."""

import suite
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

Seen = list[tuple[Text, Bbox]]


def only(document: dict, *ladders: str) -> dict:
    return suite.only(document, *(f"{ladder}/" for ladder in (*ladders, "roof")))


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def seen(figure) -> Seen:
    """The texts that are seen, and their boxes in pixels: all is laid out, nothing painted."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    with renderer._draw_disabled():
        figure.draw(renderer)
    found = list(figure.texts)
    for axes in figure.axes:
        found += [*axes.texts, axes.title, axes._left_title]
        for axis in (axes.xaxis, axes.yaxis):
            found.append(axis.label)
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            labels = [label for tick in ticks for label in (tick.label1, tick.label2)]
            found += [label for label in labels if label.get_visible()]  # others are not drawn
    shown = [t for t in found if t.get_text().strip() and t.get_visible()]
    boxes = [(t, Text.get_window_extent(t, renderer)) for t in shown]  # without arrows
    return [(text, box) for text, box in boxes if box.width]


def overlaps(figure, found: Seen | None = None) -> list[tuple[str, str]]:
    """Pairs of level texts that touch, of all or of those found."""
    level = [(t.get_text(), box) for t, box in found or seen(figure) if not t.get_rotation()]
    inside = [(text, box) for text, box in level if figure.bbox.overlaps(box)]
    return [
        (a, b)
        for i, (a, one) in enumerate(inside)
        for b, other in inside[:i]
        if one.x0 + 1 < other.x1 and other.x0 + 1 < one.x1
        if one.y0 + 1 < other.y1 and other.y0 + 1 < one.y1
    ]


def beyond(figure, found: Seen | None = None) -> list[str]:
    """Texts, of all or of those found, that are not whole within the figure."""
    edge = figure.bbox
    return [
        text.get_text()
        for text, box in found or seen(figure)
        if box.x0 < edge.x0 or box.x1 > edge.x1 or box.y0 < edge.y0 or box.y1 > edge.y1
    ]
