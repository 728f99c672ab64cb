# SPDX-License-Identifier: MIT
"""Where clusters of blocks win and where they lose: the best rung with them over that without."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ladder.analysis import roofs
from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import quantities, style
from ladder.report.plots.cases import Group, across, grouped, spelled

AXIS = "cluster"  # the axis of a rung's own that is the number of blocks per cluster
_ROW, _COLUMN, _TITLE, _BETWEEN = 0.47, 0.72, 0.22, 0.45  # inches; columns are at least that wide
_LINE = 9.5  # points from a line in a cell to the next
_TOP, _NOTE, _BOTTOM, _RIGHT = 1.35, 0.17, 0.55, 0.2
_BOX, _BOX_HEIGHT = 0.5, 0.15  # inches, of a colour of the key
_STEPS = (1.01, 1.1, 1.25, 2.0)  # where colours change; `ladder compare` calls no less a change
_SHADES = (0.18, 0.38, 0.62, 0.95)  # of the full colour after each step
_NEAR = 1.015  # so close to the first step it takes a third decimal to tell the side
_FASTER, _SLOWER, _BASE, _INK = "#0072b2", "#d55e00", "#eeeeee", "#333333"
_LUMINANCE = (0.2126, 0.7152, 0.0722)
_HATCH: style.Look = {"facecolor": "white", "edgecolor": style.FAINT, "hatch": "////"}
_THROTTLED = roofs.SLOW_MARK


@dataclass
class Case:
    """The fastest rows of one case, by blocks per cluster."""

    without: Row | None = None
    best: dict[int, Row] = field(default_factory=dict)
    why_not: dict[int, str] = field(default_factory=dict)  # of sizes that were tried

    @property
    def tried(self) -> bool:
        """Whether any rung was to run it in clusters."""
        return bool(self.best or self.why_not)


@dataclass(frozen=True)
class Panel:
    """A group of cases that stand beside each other."""

    group: Group
    columns: dict[str, Case]  # by what is written below them


@dataclass(frozen=True)
class Map:
    """The cases that were run in clusters."""

    axis: str  # what goes across
    sizes: list[int]
    panels: list[Panel]
    untried: int  # cases that no rung was to run in clusters

    @property
    def cases(self) -> list[Case]:
        """The cases of all panels."""
        return [case for panel in self.panels for case in panel.columns.values()]

    @property
    def usual(self) -> str:
        """The rung that is most often the fastest in clusters."""
        rows = [row for case in self.cases for row in case.best.values()]
        return Counter(row.chosen or row.rung for row in rows).most_common(1)[0][0]


def chosen(study: Study) -> Map | None:
    """Return what there is to draw; None where no rung has the axis, or nothing ran in clusters."""
    if not any(AXIS in rung.sweeps for rung in study.rungs):
        return None
    cases = _cases(study)
    sizes = {size for case in cases.values() for size in case.best}
    if not sizes:
        return None
    sizes |= {size for case in cases.values() for size in case.why_not}
    tried = {name: cases[name] for name in study.cases if name in cases and cases[name].tried}
    axis = across(study, tried)
    panels = [
        Panel(group, {label: tried[case] for label, case in group.cases.items()})
        for group in grouped(study, list(tried), axis)
    ]
    return Map(axis, sorted(sizes), panels, len(cases) - len(tried))


def _cases(study: Study) -> dict[str, Case]:
    """Sort the rows of the ladder's own precision into cases, and pick the fastest of each size."""
    cases: dict[str, Case] = {}
    for row in study.rows:
        size = cluster_size(row)
        if row.precision or row.role == "ceiling" or size is None:
            continue
        case = cases.setdefault(row.case, Case())
        if row.status == "ok" and study.speed(row) > 0:
            best = case.without if size == 1 else case.best.get(size)
            if best is None or study.speed(row) > study.speed(best):
                if size == 1:
                    case.without = row
                else:
                    case.best[size] = row
        elif size > 1:
            case.why_not.setdefault(size, _why_not(row))
    return cases


def cluster_size(row: Row) -> int | None:
    """Blocks per cluster: as launched, as the row's name says, else 1; None if that is no size.

    A cluster of one block is as good as none: it has no other block's shared memory to go to.
    """
    size = quantities.counter(row, "cluster_size")
    if not size >= 1:
        named = [s.partition(":")[2] for s in row.name.split("/") if s.startswith(f"{AXIS}:")]
        size = units.parse(named[0]) if named else 1.0
    return int(size) if size >= 1 and size % 1 == 0 else None


def _why_not(row: Row) -> str:
    """Say in a few words why a row has no speed: what its reason begins with."""
    if row.status == "skipped":
        return row.reason.partition(":")[0]
    return "failed" if row.status == "error" else "no speed"


def colour(ratio: float) -> tuple[float, ...]:
    """Colour of a ratio: white where both are level, blue above that and orange below."""
    steps = sum(max(ratio, 1 / ratio) >= step for step in _STEPS)
    return _shade(_FASTER if ratio > 1 else _SLOWER, steps)


def _shade(full: str, steps: int) -> tuple[float, ...]:
    share = (0.0, *_SHADES)[steps]
    return tuple(1 - share * (1 - part) for part in to_rgb(full))


def draw(study: Study, found: Map) -> Figure:
    """Draw a row of panels a facet, and beside each other those of the remaining axes."""
    if not any(case.without and case.best for case in found.cases):
        raise style.NothingToDrawError("no case ran both in clusters and without")
    panels = {(panel.group.facet, panel.group.others): panel for panel in found.panels}
    facets = list(dict.fromkeys(facet for facet, _ in panels))
    columns: dict[str, int] = {}  # of the panels below each other
    for panel in found.panels:
        others = panel.group.others
        columns[others] = max(columns.get(others, 0), len(panel.columns))
    rows = ["no cluster", *(f"cluster {size}" for size in found.sizes)]
    left = 0.35 + style.widest([*rows, found.axis], style.SMALL)
    beside = left + _BETWEEN * (len(columns) - 1) + _RIGHT
    titles = [
        style.text_width(panel.group.title, style.NORMAL + 1) / columns[others]
        for (_, others), panel in panels.items()
    ]
    labels = style.widest([x for p in found.panels for x in p.columns], style.SMALL) + 0.1
    room = (style.PAGE - beside) / sum(columns.values())
    column = max(_COLUMN, labels, room, *titles)
    notes = _notes(found)
    top, body = _TOP + _NOTE * len(notes), _ROW * len(rows)
    each = _TITLE + body + _BETWEEN
    width = beside + column * sum(columns.values())
    height = top + each * len(facets) - _BETWEEN + _BOTTOM
    about = "Speed of the fastest rung in clusters of blocks, as times that of the fastest without"
    heading = f"{study.ladder.title}: clusters"
    figure = style.page(width, height, heading, about, describe(study.results))
    _key(figure)
    for i, note in enumerate(notes):
        start = 0.2 / width, 1 - (_TOP - 0.05 + _NOTE * i) / height
        figure.text(*start, note, size=style.SMALL, color=style.GREY)
    for i, facet in enumerate(facets):
        at, bottom = left, height - top - each * (i + 1) + _BETWEEN
        for others, most in columns.items():
            axes = style.panel(figure, at, bottom, column * most, body)
            axes.set(xlim=(-0.5, most - 0.5), ylim=(len(rows) - 0.5, -0.5), xticks=[])
            axes.set_yticks(range(len(rows)), rows if at == left else [])
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0)
            own = panels.get((facet, others))
            title: style.Look = {"loc": "left", "size": style.NORMAL, "weight": "bold"}
            ink = "black" if own else style.GREY
            axes.set_title(spelled(f"{facet}/{others}"), color=ink, **title)
            place = {"coordinates": "axes fraction", "va": "top"}
            if own:
                axes.set_xticks(range(len(own.columns)), list(own.columns))
                _cells(axes, study, found, own, column)
            else:
                style.note(axes, "not run in clusters", (0, 1), (0, -4), **place)
            if at == left:
                style.note(axes, found.axis, (0, 0), (-4, -4), ha="right", color="black", **place)
            at += column * most + _BETWEEN
    return figure


def _cells(axes: Axes, study: Study, found: Map, panel: Panel, width: float) -> None:
    """Draw the cells of a panel, whose columns are `width` inches wide."""
    usual = found.usual
    for x, case in enumerate(panel.columns.values()):
        base = case.without
        texts = ("", _name(base)) if base else ("", "not run")
        _cell(axes, (x, 0), {"facecolor": _BASE} if base else _HATCH, texts, width)
        for y, size in enumerate(found.sizes, 1):
            row = case.best.get(size)
            look, texts = _HATCH, ("", case.why_not.get(size, "not run"))
            if row and base:
                ratio = study.speed(row) / study.speed(base)
                look = {"facecolor": colour(ratio)}
                mark = _THROTTLED if row.throttled > 0 or base.throttled > 0 else ""
                name = row.chosen or row.rung
                texts = _times(ratio) + mark, name if name != usual else ""
            elif row:  # nothing to hold it against
                look, texts = {"facecolor": _BASE}, (_speed(study, row), "")
            _cell(axes, (x, y), look, texts, width)


def _speed(study: Study, row: Row) -> str:
    divisor, unit = study.unit
    return f"{units.number(study.speed(row) / divisor)} {unit}"


def _times(ratio: float) -> str:
    near = 1 / _NEAR < ratio < _NEAR
    return f"{ratio:.3f}×" if near else quantities.times(ratio)


def _name(row: Row) -> str:
    """Name the rung that ran, and the one block that its cluster has where it could have more."""
    name = row.chosen or row.rung
    return f"{name} (1)" if row.sweep and cluster_size(row) == 1 else name


def _cell(
    axes: Axes, at: tuple[float, float], look: style.Look, texts: tuple[str, str], width: float
) -> None:
    """Draw one cell with a number in it, if there is one, and words below that."""
    (x, y), (number, words) = at, texts
    axes.add_artist(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, linewidth=0, **look))
    light = np.dot(to_rgb(look["facecolor"]), _LUMINANCE) > 0.5
    lines = [words] if style.text_width(words, style.SMALL) < 0.96 * width else _halves(words)
    lines = [style.fit(line, 0.96 * width, style.SMALL) for line in lines if line]
    up = (_LINE * len(lines) + (_LINE if number else 0)) / 2 - _LINE / 2
    place: style.Look = {"ha": "center", "va": "center_baseline"}
    if number:
        ink = "black" if light else "white"
        style.note(axes, number, at, (0, up), color=ink, size=style.NORMAL, **place)
        up -= _LINE
    for line in lines:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1} if look is _HATCH else None
        ink = style.GREY if look is _HATCH else _INK if light else "white"
        style.note(axes, line, at, (0, up), color=ink, bbox=box, **place)
        up -= _LINE


def _halves(name: str) -> list[str]:
    """Break a name at its first underscore."""
    first, stroke, rest = name.partition("_")
    return [first + stroke, rest]


def _key(figure: Figure) -> None:
    """Draw what the colours stand for, below the titles of the page."""
    _, height = figure.get_size_inches()
    ratios = [*(1 / step for step in reversed(_STEPS)), *_STEPS]
    shades = [_shade(_SLOWER, n) for n in range(len(_STEPS), 0, -1)]
    shades += [_shade(_FASTER, n) for n in range(len(_STEPS) + 1)]
    left = 0.3 + style.text_width("clusters slower")
    axes = style.panel(figure, left, height - 0.92, _BOX * len(shades), _BOX_HEIGHT)
    axes.set(xlim=(0, len(shades)), ylim=(0, 1), yticks=[])
    axes.set_xticks(range(1, len(shades)), [f"{ratio:.2f}×" for ratio in ratios])
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    for x, shade in enumerate(shades):
        look: style.Look = {"facecolor": shade, "edgecolor": style.FAINT, "linewidth": 0.5}
        axes.add_artist(Rectangle((x, 0), 1, 1, **look))
    place: style.Look = {
        "coordinates": "axes fraction",
        "va": "center_baseline",
        "size": style.NORMAL,
    }
    for text, x, offset, side in (("slower", 0, -6, "right"), ("faster", 1, 6, "left")):
        look = {"color": "black", "ha": side}
        style.note(axes, f"clusters {text}", (x, 0.5), (offset, 0), **look, **place)


def _notes(found: Map) -> list[str]:
    """Say in a line or two what stands in the cells, and what in none."""
    base = "Grey: the fastest rung without clusters."
    ratios = f"In clusters: {found.usual} where no other is named."
    told = []
    if any(case.without and case.without.sweep for case in found.cases):
        told.append("(1): a cluster of one block, which is none.")
    rows = [row for case in found.cases for row in (case.without, *case.best.values()) if row]
    if any(row.throttled > 0 for row in rows):
        told.append(f"{_THROTTLED}: the clock was throttled.")
    if found.untried:
        told.append(f"Not shown: {found.untried} other cases, which no rung ran in clusters.")
    return [f"{base} {ratios}", *([" ".join(told)] if told else [])]
