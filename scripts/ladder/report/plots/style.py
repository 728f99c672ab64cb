# SPDX-License-Identifier: MIT
"""The look of all figures, laid out in inches, and what makes their bytes repeatable."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.style
import numpy as np
import scipy
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.path import Path as Outline
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextPath, text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.typing import ColorType
from numpy.typing import NDArray

from ladder.analysis.study import describe
from ladder.io.results import Results
from ladder.model.catalogue import Rung
from ladder.model.errors import LadderError

PAGE = 6.25  # inches: 600 pixels, of which a phone shows two thirds
WIDE = 8.0  # inches, of figures that no page shows
SMALL, NORMAL, LARGE = 9.0, 9.5, 12.5  # points: at two thirds still six
BOLD = 1.17  # width of bold text over that of plain
_GAP = 0.18  # inches between text columns
_SQUARE = 0.15  # inches from a legend's square to its name
_LINE = 1.25  # height of a line of text over its size
GREY, FAINT, PEER, ALARM = "#555555", "#d0d0d0", "#d55e00", "#cc0000"
OURS, PALE, LOST = "#0072b2", "#bcdcf0", "#e69f00"
GPU_COLOURS = (OURS, LOST, "#009e73", "#cc79a7", "#56b4e9", PEER)  # told apart by anyone
Colour = ColorType
Look = dict[str, Any]  # options of matplotlib's
_FONT = FontProperties(family="DejaVu Sans", size=1)  # that text is measured in
_RC = {
    "font.family": "DejaVu Sans",
    "font.size": NORMAL,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titley": 1.0,  # no ticks are above axes: to look for some costs a twentieth of a figure
    "hatch.linewidth": 0.6,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "savefig.dpi": 120,
    "svg.fonttype": "path",
}


class NothingToDrawError(Exception):
    """The results lack what a figure needs; the message says what."""


@contextmanager
def look() -> Iterator[None]:
    """Apply the suite's look, whatever the user's own matplotlib settings are."""
    with matplotlib.style.context(["default", _RC]):
        yield


def save(figure: Figure, directory: Path, stem: str, formats: Sequence[str]) -> list[Path]:
    """Write a figure in each format, with nothing in it of the time or the machine."""
    paths = []
    for form in formats:
        path = directory / f"{stem}.{form}"
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The same figure whether GPUs are drawn together, and so into folders, or each alone.
            with mpl.rc_context({"svg.hashsalt": Path(stem).name}):
                figure.savefig(path, metadata=metadata)
            if form == "svg":
                path.write_text(_short(path.read_text(encoding="utf-8")), encoding="utf-8")
        except OSError as error:
            raise LadderError(f"{error.filename or path}: {error.strerror}") from error
        paths.append(path)
    return paths


def _short(text: str) -> str:
    """Leave out what makes an SVG long: indents, and of every letter its font and decimals."""
    text = re.sub(r"\n +", "\n", text)
    text = re.sub(r'" transform="translate\((\d+)(\.\d)?\d* 0\)"/>', r'" x="\1\2"/>', text)
    return text.replace("#DejaVuSans-", "#").replace('id="DejaVuSans-', 'id="')


class _Renderer(RendererSVG):
    """Draws SVG; what text measures is known from other figures too, which say much the same."""

    def get_text_width_height_descent(
        self,
        s: str,
        prop: FontProperties,
        ismath: bool | Literal["TeX"],  # noqa: ARG002 - no text is any
    ) -> tuple[float, float, float]:
        """Return width, height and descent of a line of text, in points."""
        size = prop.get_size_in_points()
        width, height, descent = _measured(s, str(prop.get_weight()))
        return size * width, size * height, size * descent


def svg(figure: Figure, salt: str) -> str:
    """Return a figure as SVG whose text is text, for where it can be searched and read aloud.

    `salt` keeps names in one figure from being those in another on the same page.
    """
    content = StringIO()
    figure.dpi = 72  # what an SVG of matplotlib's has to the inch
    width, height = 72 * figure.get_size_inches()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        make: Any = _Renderer  # of untyped parts
        renderer = make(width, height, content, metadata={"Date": None, "Creator": None})
        figure.draw(renderer)
        renderer.finalize()
    return content.getvalue()


def page(width: float, height: float, title: str, subtitle: str, source: str = "") -> Figure:
    """Return an empty figure of that many inches, titled at the top left.

    `source`, what was measured and where, stands at the foot.
    """
    figure = Figure(figsize=(width, height))
    room = width - 0.4
    size = LARGE * room / max(room, BOLD * text_width(title, LARGE))
    figure.text(0.2 / width, 1 - 0.32 / height, title, size=max(size, SMALL), weight="bold")
    size = NORMAL * room / max(room, 1.04 * text_width(subtitle))  # in a PNG letters are wider
    figure.text(0.2 / width, 1 - 0.54 / height, subtitle, size=max(size, SMALL), color=GREY)
    figure.text(0.2 / width, 0.1 / height, source, size=SMALL, color=GREY)
    return figure


def panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place given in inches."""
    total_width, total_height = figure.get_size_inches()
    return figure.add_axes(
        (left / total_width, bottom / total_height, width / total_width, height / total_height)
    )


def legend(
    figure: Figure, entries: Sequence[tuple[str, Colour]], last: str = "", signs: str = ""
) -> None:
    """Write coloured squares, or other signs, with their names below a page's titles.

    `last` comes after them.
    """
    width, height = figure.get_size_inches()
    signs = signs or "■" * len(entries)
    texts = [*(f"{sign} {name}" for sign, (name, _) in zip(signs, entries, strict=True)), last]
    colours = [*(colour for _, colour in entries), None]
    for text, colour, (left, down) in zip(texts, colours, _places(texts, width), strict=True):
        y = 1 - (0.82 + down) / height
        if colour is not None:
            figure.text(left / width, y, text[0], color=colour)
            left, text = left + _SQUARE, text[2:]
        if text:
            figure.text(left / width, y, text)


def legend_height(names: Sequence[str], width: float) -> float:
    """Inches that a legend takes beyond its first line on a page of `width` inches."""
    return _places([f"■ {name}" for name in names], width)[-1][1]


def _places(texts: Sequence[str], width: float) -> list[tuple[float, float]]:
    """Put texts in lines of a page: inches from its left, and down from the first line."""
    left, down, places = 0.2, 0.0, []
    for text in texts:
        if left > 0.2 and left + text_width(text) > width - 0.2:
            left, down = 0.2, down + 1.4 * NORMAL / 72
        places.append((left, down))
        left += 0.35 + text_width(text)
    return places


@cache
def text_width(text: str, size: float = NORMAL) -> float:
    """Width in inches of the ink of a line of text."""
    if not (text := text.strip()):
        return 0.0
    # The advance width less the outer side bearings: all outlines would take four times as long.
    advance, _, _ = _measured(text)
    return float(size * (advance - _bearings(text[0])[0] - _bearings(text[-1])[1])) / 72


@cache  # a third of a millisecond each, and the texts of all figures have half of them in common
def _measured(text: str, weight: str = "normal") -> tuple[float, float, float]:
    """Advance width, height and descent of a line of text, at a font size of 1."""
    font = FontProperties(family="DejaVu Sans", size=1, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, False)


@cache
def _bearings(character: str) -> tuple[float, float]:
    """Left and right side bearing of a character, at a font size of 1."""
    path = TextPath((0, 0), character, prop=_FONT)
    # Glyphs have a point of their outline where they are widest: no need to solve its curves.
    ink = path.vertices[path.codes != Outline.CLOSEPOLY, 0]
    return ink.min(), _measured(character)[0] - ink.max()


def widest(texts: Sequence[str], size: float = NORMAL) -> float:
    """Width in inches of the longest of several lines."""
    return max((text_width(text, size) for text in texts), default=0.0)


def fit(text: str, width: float, size: float = NORMAL) -> str:
    """Shorten a line to `width` inches."""
    short = text
    while len(short) > 1 and text_width(short, size) > width:
        short = short[:-2].rstrip() + "…"
    return short


def wrap(text: str, width: float, size: float = NORMAL) -> list[str]:
    """Break a text into lines of at most `width` inches."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def columns_width(columns: dict[str, list[str]]) -> float:
    """Inches that text columns take."""
    return sum(_GAP + widest([*header.split(", "), *cells]) for header, cells in columns.items())


def text_columns(
    axes: Axes, columns: dict[str, list[str]], places: Sequence[float], right: float
) -> None:
    """Write right-aligned columns beside axes of `right` inches, a cell at each y of `places`.

    A comma in a header breaks its line.
    """
    width = right
    for header, cells in columns.items():
        right += columns_width({header: cells})
        at = right / width
        place: Look = {"coordinates": "axes fraction", "ha": "right", "size": NORMAL}
        note(axes, header.replace(", ", "\n"), (at, 1), (0, 4), **place)
        for y, cell in zip(places, cells, strict=True):
            place["coordinates"] = ("axes fraction", "data")
            note(axes, cell, (at, y), va="center_baseline", color="black", **place)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Move positions as little as possible so that all lie `gap` apart within [low, high].

    This is isotonic regression of the positions less their ranks times the gap.
    """
    if not len(wanted):
        return np.empty(0)
    order = np.argsort(wanted, kind="stable")
    gap = min(gap, (high - low) / max(len(order) - 1, 1))
    ranks = gap * np.arange(len(order))
    level = scipy.optimize.isotonic_regression(np.asarray(wanted, dtype=float)[order] - ranks).x
    placed = np.empty(len(order))
    placed[order] = np.clip(level, low, max(low, high - ranks[-1])) + ranks
    return placed


def category_ticks(axes: Axes, labels: Sequence[str], width: float) -> None:
    """Label x = 0, 1, 2... on axes of `width` inches, turned or thinned where they would touch."""
    need = max((text_width(a + b, SMALL) / 2 for a, b in pairwise(labels)), default=0.0) + 0.07
    room = width / len(labels)
    turned = need > room and len(labels) <= 12
    shown = range(0, len(labels), 1 if turned else max(1, math.ceil(need / room)))
    angle = math.degrees(math.asin(min(1.0, _LINE * SMALL / 72 / room)))
    turn: Look = {"rotation": max(30.0, angle), "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(shown, [labels[i] for i in shown], **(turn if turned else {}))


def value_ticks(axes: Axes, values: Sequence[float], labels: Sequence[str], width: float) -> None:
    """Label these x values on axes of `width` inches, in their order, as many as fit."""
    low, high = axes.get_xlim()
    log = axes.get_xscale() == "log"

    def place(value: float) -> float:
        if log:
            return width * math.log(value / low) / math.log(high / low)
        return width * (value - low) / (high - low)

    shown, right = [], -math.inf
    for value, label in zip(values, labels, strict=True):
        if low <= value <= high:
            half = text_width(label, SMALL) / 2
            if place(value) - half > right + 0.08:
                shown.append((value, label))
                right = place(value) + half
    axes.set_xticks([value for value, _ in shown], [label for _, label in shown])
    axes.set_xticks([], minor=True)


def log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis plainly, at 1, 2 and 5 of each decade when it spans few.

    The ticks between are markers of one line: a tick of its own takes forty times as long.
    """
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 200 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.12g}"))
    between = [value for value in axis.get_minorticklocs() if low <= value <= high]
    axis.set_minor_locator(NullLocator())
    edge = [0] * len(between)
    look: Look = {"linestyle": "none", "color": "black", "markersize": 2, "markeredgewidth": 0.6}
    look |= {"zorder": 0.5, "clip_on": False}
    axes = axis.axes
    if axis is axes.xaxis:
        axes.plot(between, edge, marker=TICKDOWN, transform=axes.get_xaxis_transform(), **look)
    else:
        axes.plot(edge, between, marker=TICKLEFT, transform=axes.get_yaxis_transform(), **look)


def colour_of(rung: Rung) -> Colour:
    """Colour of a rung: ours are blue, peers orange, ceilings grey."""
    if rung.is_ours:
        return OURS
    return PEER if rung.role == "peer" else GREY


def dark(colour: Colour) -> tuple[float, ...]:
    """Darken a colour for text, so that the names of pale lines are legible."""
    return tuple(0.75 * part for part in to_rgb(colour))


def tint(colour: Colour, share: float) -> Colour:
    """Mix a share of a colour with white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def bar_style(rung: Rung, colour: Colour | list[Colour]) -> Look:
    """Bars of a colour, or of one each: ours filled, peers hatched, ceilings hollow."""
    if rung.is_ours:
        return {"facecolor": colour}
    hatch = "////" if rung.role == "peer" else None
    return {"facecolor": "white", "edgecolor": colour, "hatch": hatch}


def boxes(axes: Axes, places: Sequence[tuple[float, float, float, float]], **look: Any) -> None:
    """Draw (left, bottom, width, height) each, on axes that are scaled already.

    As one collection, of which a box takes a seventh of the time that a patch takes.
    """
    left, bottom, width, height = np.transpose(places)
    x = np.stack([left, left + width, left + width, left], axis=1)
    y = np.stack([bottom, bottom, bottom + height, bottom + height], axis=1)
    corners: Any = np.stack([x, y], axis=2)  # stays an array, which is drawn faster than a list
    drawn = PolyCollection(corners, joinstyle="miter", **look)
    axes.add_collection(drawn, autolim=False)


def distinct_names(results: Sequence[Results]) -> list[str]:
    """Name results by GPU, and by what else tells them apart when GPUs are equal."""
    names = [r.gpu or describe(r) for r in results]
    for extra in ([r.commit for r in results], [str(i + 1) for i in range(len(results))]):
        if len(set(names)) < len(names):
            names = [
                f"{n} {e}" if names.count(n) > 1 else n for n, e in zip(names, extra, strict=True)
            ]
    return names


def note(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float] = (0, 0),
    *,
    coordinates: str | tuple[str, str] = "data",
    **options: Any,
) -> None:
    """Write small grey text `offset` points from a place."""
    # To look whether a place is within the axes takes a third of the time, and all are.
    look: Look = {"size": SMALL, "color": GREY, "annotation_clip": False, **options}
    axes.annotate(text, at, offset, xycoords=coordinates, textcoords="offset points", **look)


def halo() -> list[withStroke]:
    """Path effects that keep text legible where it crosses a line."""
    return [withStroke(linewidth=2.5, foreground="white")]
