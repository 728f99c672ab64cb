# SPDX-License-Identifier: MIT
"""Why it is faster: the target counter of each rung's idea, and what its change bought."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.emulated_study import Tally
from ladder.analysis.study import Study, describe, name_of, values_of
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import cases, quantities, style

_TOP, _KEY, _ROW, _BOTTOM = 1.15, 0.25, 0.6, 0.7  # inches, from the top down
_LINE = 0.17  # inches, of small text
_LEFT, _GAP, _TRACK, _GAIN, _RIGHT = 0.2, 0.18, 0.85, 0.5, 0.2  # inches, from left to right
_UNMOVED = 0.02  # of a gain that is none
_ROOM_OF_UNIT = 0.85  # of the width of speeds: a limit left of it has no name
_SAME = 0.02  # of a counter that two runs of one program may differ by
_SHORT = 0.03  # of an axis, less than which is no arrow
_HEAD = 150.0  # size of a head over an arrow's share of an axis: short ones have small heads
_SIZE, _SPACE = style.SMALL, 0.08  # points of grey text, and inches before it
_TICKS, _MOST = 3, 100.0  # ticks, and times the parent's: what changed by more leaves the axis


@dataclass(frozen=True)
class Step:
    """A rung beside its parent: at the headline, or where its row has another case."""

    rung: Rung
    row: Row
    parent: Row | None
    best: Row | None = None  # of the rung, where that is another row of its sweep

    @property
    def after(self) -> float:
        """What the rung has of its target counter; NaN if it names none."""
        return quantities.counter(self.row, self.rung.target)

    @property
    def before(self) -> float:
        """What the parent has of it."""
        return quantities.counter(self.parent, self.rung.target) if self.parent else math.nan

    @property
    def changes(self) -> bool:
        """Whether the counter is another than the parent's, by more than two runs would differ.

        It is none where a reader would read the same number twice.
        """
        before, after = (quantities.value(self.rung.target, v) for v in (self.before, self.after))
        return before != after and not math.isclose(self.after, self.before, rel_tol=_SAME)

    @property
    def numbers(self) -> str:
        """Write both: `32.4 → 1.01`; empty where this rung's was not counted."""
        after = quantities.value(self.rung.target, self.after)
        if not (after and self.parent):
            return after
        return f"{quantities.value(self.rung.target, self.before) or 'none'} → {after}"


def steps(study: Study) -> list[Step]:
    """The steps measured at the headline, each with its parent; empty if no counter is known.

    First comes the path to the best, from its root up. A list that is no tree has no steps. Where
    the fastest row of a sweep has nothing of the target counter, as a cluster of one block has no
    requests to others, the fastest that has some stands in its place. Where the parent has nothing
    of it, the idea is one for other cases: the first at which both have some stands in for the
    headline.
    """
    found: list[Step] = []
    for rung in study.climb if study.ladder.is_tree else ():
        row = study.ok(rung, study.headline)
        if row and rung.is_step:
            parent = study.parent(row)
            idle = rung.sweeps and quantities.counter(row, rung.target) == 0
            step = Step(rung, row, parent)
            if idle and (moving := _moving(study, rung)):
                step = Step(rung, moving, parent, best=row)
            elif parent and math.isnan(step.before):
                step = _elsewhere(study, rung) or step
            found.append(step)
    return found if any(not math.isnan(step.after) for step in found) else []


def counted_steps(tally: Tally) -> list[Step]:
    """The emulated steps, each with its parent; empty if no counter is known, or of no tree.

    Of a sweep stands the first row that has some of the target counter.
    """
    found: dict[str, Step] = {}
    for rung in dict.fromkeys(rung for rung, _ in tally.shown if tally.ladder.is_tree):
        if rung.is_step:
            rows = [row for other, row in tally.shown if other is rung]
            moving = (row for row in rows if quantities.counter(row, rung.target) > 0)
            parent = found.get(rung.builds_on)
            found[rung.name] = Step(rung, next(moving, rows[0]), parent.row if parent else None)
    steps = list(found.values())
    return steps if any(not math.isnan(step.after) for step in steps) else []


def _moving(study: Study, rung: Rung) -> Row | None:
    rows = [
        row
        for row in study.rows
        if row.rung == rung.name
        and row.case == study.headline
        and row.status == "ok"
        and quantities.counter(row, rung.target) > 0
    ]
    return max(rows, key=study.speed, default=None)


def _elsewhere(study: Study, rung: Rung) -> Step | None:
    rows = (study.ok(rung, case) for case in study.cases)
    found = (Step(rung, row, study.parent(row)) for row in rows if row)
    return next((step for step in found if not math.isnan(step.before + step.after)), None)


def draw(study: Study, found: list[Step]) -> Figure:
    """Draw a row per step that names a counter: an arrow from the parent to it, and one of speeds.

    All counters are on one scale, as times the parent's. Emulated steps have no speed.
    """
    timed = not isinstance(study, Tally)
    shown = [step for step in found if step.parent and not math.isnan(step.before + step.after)]
    if not shown:
        raise style.NothingToDrawError(
            "no rung names a counter that was counted of it and of its parent"
        )
    names = _GAP + max(_told(study, step) for step in shown)
    body = _ROW * len(shown)
    room = style.PAGE - _LEFT - names - _RIGHT
    track = (room - _GAP - _GAIN) / 2 if timed else room
    width = style.PAGE + 2 * max(0.0, _TRACK - track)
    track = max(track, _TRACK)
    left_out = [s.rung.name for s in found if s.rung.builds_on and s not in shown]
    not_drawn = f"Not drawn: no counter, or not counted: {', '.join(left_out)}"
    below = style.wrap(not_drawn, width - 0.4, style.SMALL) if left_out else []
    bottom = _BOTTOM + _LINE * len(below)
    height = _TOP + _KEY * timed + body + bottom
    about = f"From each parent to its rung{cases.at_headline(study)}"
    source = "\n".join([describe(study.results), *below])
    title = f"{study.ladder.title}: what each rung changed" + " and gained" * timed
    figure = style.page(width, height, title, about, source)
    left = _LEFT + names
    moved = style.panel(figure, left, bottom, track, body)
    panels = [moved]
    if timed:
        panels.append(style.panel(figure, left + track + _GAP, bottom, track, body))
    for axes in panels:
        axes.set(ylim=(len(shown) - 0.5, -0.5), yticks=[])
        axes.spines["left"].set_visible(False)
        for y in range(len(shown)):
            axes.axhline(y, color=style.FAINT, linewidth=0.6, zorder=0)
    _write(moved, study, shown, names)
    _ratios(moved, shown)
    if timed:
        gains = [gain for step in shown if (gain := study.gain(step.row)) == gain]
        key: list[tuple[str, style.Colour]] = [("faster", style.OURS)]
        if any(gain < 1 - _UNMOVED for gain in gains):
            key.append(("slower", style.LOST))
        if any(abs(gain - 1) <= _UNMOVED for gain in gains):
            key.append(("as fast", style.GREY))
        style.legend(figure, key, f"●  too short for an arrow    bold: gains over {_UNMOVED:.0%}")
        _speeds(panels[1], study, shown)
    return figure


def _told(study: Study, step: Step) -> float:
    """Inches that the longest line takes of what is written of a step."""
    name = style.BOLD * style.text_width(name_of(step.rung, step.row))
    counted = style.BOLD * style.text_width(step.numbers) + style.text_width(_words(step), _SIZE)
    return max(name, style.text_width(_below(study, step), _SIZE), counted + _SPACE)


def _below(study: Study, step: Step) -> str:
    """Say what a rung builds on, and where its row is not the one that other figures show."""
    told = f"on {step.rung.builds_on}"
    if step.row.case != study.headline:
        told += f", at {study.shapes.label(step.row.case)}"
    return told + (f" (best: {values_of(step.rung, step.best)})" if step.best else "")


def _words(step: Step) -> str:
    return quantities.words(step.rung.target)


def _write(axes: Axes, study: Study, shown: list[Step], names: float) -> None:
    """Write left of the axes each rung, its parent, and the numbers of its counter."""
    place: style.Look = {"coordinates": ("axes fraction", "data")}
    bold: style.Look = {"size": style.NORMAL, "weight": "bold", "color": "black"}
    start = -72 * names
    for y, step in enumerate(shown):
        style.note(axes, name_of(step.rung, step.row), (0, y), (start, 9), **place, **bold)
        style.note(axes, _below(study, step), (0, y), (start, -3), **place)
        style.note(axes, step.numbers, (0, y), (start, -15), **place, **bold)
        after = style.BOLD * style.text_width(step.numbers) + _SPACE
        style.note(axes, _words(step), (0, y), (start + 72 * after, -15), **place)


def _ratios(axes: Axes, shown: list[Step]) -> None:
    """Draw counters as times the parent's."""
    ratios = [step.after / step.before if step.before else math.inf for step in shown]
    ratios = [
        1.0 if step.after == step.before else r for step, r in zip(shown, ratios, strict=True)
    ]
    known = [ratio for ratio in ratios if 0 < ratio < math.inf]
    low = max(min([0.45, *known]) / 1.3, 1 / _MOST)
    high = min(max([2.2, *known]) * 1.3, _MOST)
    axes.set(xscale="log", xlim=(low, high))
    step = next(s for s in (2, 4, 10, 100) if math.log(high / low, s) < _TICKS)
    first, last = (math.ceil(math.log(low, step)), math.floor(math.log(high, step)))
    ticks = [step**power for power in range(first, last + 1)]
    axes.set_xticks(ticks, [f"{tick:g}" if tick >= 1 else f"1/{1 / tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.axvline(1, color=style.GREY, linewidth=1, zorder=1)
    _header(axes, "counter,\n× parent's")
    for y, ratio in enumerate(ratios):
        _arrow(axes, y, 1.0, min(max(ratio, low), high), style.GREY)


def _speeds(axes: Axes, study: Study, shown: list[Step]) -> None:
    """Draw speeds on one scale, and write the gains."""
    divisor, unit = study.unit
    ceiling = study.ceiling(study.headline) / divisor
    ends = [
        (study.speed(step.parent) / divisor, study.speed(step.row) / divisor)
        for step in shown
        if step.parent
    ]
    found = [speed for pair in [*ends, (ceiling, ceiling)] for speed in pair]
    axes.set_xlim(0, 1.03 * max(speed for speed in found if speed == speed))
    if not math.isnan(ceiling):
        axes.axvline(ceiling, color="black", linewidth=1.2, zorder=1)
        place: style.Look = {"coordinates": ("data", "axes fraction"), "ha": "right"}
        if ceiling > axes.get_xlim()[1] * _ROOM_OF_UNIT:
            style.note(axes, "limit", (ceiling, 1), (2, 6), **place)
    _header(axes, f"speed,\n{unit}")
    bold: style.Look = {"size": style.NORMAL, "color": "black", "ha": "right"}
    right = 72 * _GAIN
    style.note(axes, "gain", (1, 1), (right, 6), coordinates="axes fraction", **bold)
    for y, (before, after) in enumerate(ends):
        gain = after / before
        moved = style.OURS if gain > 1 else style.LOST
        _arrow(axes, y, before, after, style.GREY if abs(gain - 1) <= _UNMOVED else moved)
        look = bold | {"weight": "bold" if gain > 1 + _UNMOVED else "normal", "va": "center"}
        style.note(
            axes,
            units.gain(gain),
            (1, y),
            (right, 0),
            coordinates=("axes fraction", "data"),
            **look,
        )


def _header(axes: Axes, text: str) -> None:
    look: style.Look = {"size": style.NORMAL, "color": "black"}
    style.note(axes, text, (0, 1), (0, 6), coordinates="axes fraction", **look)


def _arrow(axes: Axes, y: float, before: float, after: float, colour: style.Colour) -> None:
    """Draw an arrow from one value to another; a dot where they are as good as the same."""
    ends = axes.transAxes.inverted().transform(axes.transData.transform([(before, y), (after, y)]))
    length = abs(ends[1, 0] - ends[0, 0])
    if length < _SHORT:
        axes.plot(after, y, "o", color=colour, markersize=6, clip_on=False, zorder=3)
        return
    look: style.Look = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.2}
    look |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": min(13.0, _HEAD * length)}
    axes.annotate("", (after, y), (before, y), arrowprops=look, annotation_clip=False)
