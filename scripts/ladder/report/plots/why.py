# SPDX-License-Identifier: MIT
"""Why it is faster: the target counter of each rung's idea, and what its change bought."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ladder.analysis.emulated_study import Tally
from ladder.analysis.study import Study, describe, name_of, values_of
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import quantities, style

_TOP, _ROW, _BOTTOM = 1.15, 0.76, 0.15  # inches, from the top down
_LEFT, _TEXT, _GAP, _TRACK = 0.2, 2.9, 0.25, 1.7  # inches, from left to right
_SPEED, _GAIN, _LEAST_TRACK = 0.5, 0.65, 1.6
_IDEA, _LINES, _LETTERS = 7.5, 3, 60  # points, lines of them, letters that a line holds at most
_BOLD = 1.17  # width of bold text over that of plain
_APART = 0.25  # inches between a rung's name and its parent's
_UNMOVED = 0.02  # of a gain that is none


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
    """Draw a row a step: its idea, the counter before and after it, the speed before and after.

    Emulated steps have no speed.
    """
    timed = not isinstance(study, Tally)
    text = max(_TEXT, *(_named(step) for step in found))
    numbers = 0.2 + _BOLD * style.widest([step.numbers for step in found])
    room = style.PAGE - (_LEFT + text + _GAP + numbers + _GAP + 0.3)
    track = _TRACK if timed else max(_TRACK, room)
    right = _LEFT + text + _GAP + track + numbers + _GAP
    ends = _SPEED + _GAIN + 0.3
    width = max(style.PAGE, right + (_LEAST_TRACK + ends if timed else 0.3))
    body = _ROW * len(found)
    height = _TOP + body + _BOTTOM
    ceiling = f", │ {study.ladder.ceilings}" if timed and study.ceiling(study.headline) > 0 else ""
    figure = style.page(
        width,
        height,
        f"{study.ladder.title}: what each idea changed" + (", and what it bought" if timed else ""),
        f"{describe(study.results)}, at {study.spell(study.headline)}. "
        f"○ the rung that it builds on, ● this one{ceiling}",
    )
    moved = style.panel(figure, _LEFT + text + _GAP, _BOTTOM, track, body)
    panels = [moved]
    if timed:
        panels.append(style.panel(figure, right, _BOTTOM, width - right - ends, body))
    for axes in panels:
        axes.set(ylim=(len(found) - 0.5, -0.5), xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_visible(False)
    for y in range(len(found) + 1):
        across = [_LEFT / width, 1 - _LEFT / width]
        at = (_BOTTOM + _ROW * y) / height
        figure.add_artist(Line2D(across, [at, at], color=style.FAINT, linewidth=0.6))
    _ideas(moved, study, found, text)
    _targets(moved, study, found)
    if timed:
        _speeds(panels[1], study, found, width - right - _LEFT)
    return figure


def _named(step: Step) -> float:
    """Inches that the name of a rung takes, with that of its parent beside it."""
    name = _BOLD * style.text_width(name_of(step.rung, step.row))
    return name + _APART + style.text_width(_after(step.rung), style.SMALL)


def _after(rung: Rung) -> str:
    return f"on {rung.builds_on}" if rung.builds_on else ""


def _ideas(axes: Axes, study: Study, found: list[Step], width: float) -> None:
    """Write each rung's name, its parent and its idea left of the axes."""
    colours = style.colours(study.ladder)
    for y, step in enumerate(found):
        start = -72 * (width + _GAP)
        place: style.Look = {"coordinates": ("axes fraction", "data"), "va": "top"}
        bold: style.Look = {
            "size": style.NORMAL,
            "weight": "bold",
            "color": style.dark(colours[step.rung.name]),
        }
        style.note(axes, name_of(step.rung, step.row), (0, y - 0.5), (start, -6), **place, **bold)
        right = {"ha": "right"} | place
        style.note(axes, _after(step.rung), (0, y - 0.5), (-72 * _GAP, -7), **right)
        told = "\n".join(_wrapped(step.rung.idea))
        style.note(axes, told, (0, y - 0.5), (start, -20), **place, size=_IDEA, linespacing=1.15)


def _wrapped(idea: str) -> list[str]:
    """Break an idea into the lines that its column holds."""
    letters = min(len(idea), _LETTERS)
    while letters > 10:
        lines = textwrap.wrap(idea, letters)
        if all(style.text_width(line, _IDEA) <= _TEXT for line in lines):
            break
        letters -= 1
    else:
        return []
    if len(lines) > _LINES:
        lines[_LINES - 1 :] = [style.fit(" ".join(lines[_LINES - 1 :]), _TEXT, _IDEA)]
    return lines


def _targets(axes: Axes, study: Study, found: list[Step]) -> None:
    """Draw each counter before and after on a scale of its own, from zero to the larger."""
    colours = style.colours(study.ladder)
    axes.set_xlim(0, 1)
    header: style.Look = {"size": style.NORMAL, "weight": "bold", "color": "black"}
    at: style.Look = {"coordinates": "axes fraction"}
    style.note(axes, "target counter", (0, 1), (0, 7), **at, **header)
    for y, step in enumerate(found):
        if not step.rung.target:
            why = "no counter named" if step.rung.builds_on else "a first rung"
            style.note(axes, why, (0, y), va="center", style="italic")
            continue
        before, after = step.before, step.after
        most = max((v for v in (before, after) if not math.isnan(v)), default=0.0)
        style.note(axes, quantities.words(step.rung.target), (0, y), (0, 10), color="black")
        if math.isnan(after):
            style.note(axes, "not counted", (0, y), (0, -6), va="center", style="italic")
            continue
        scale = most or 1.0
        _arrow(axes, y + 0.14, before / scale, after / scale, colours[step.rung.name])
        style.note(axes, step.numbers, (1, y + 0.14), (12, 0), va="center", **header)


def _speeds(axes: Axes, study: Study, found: list[Step], room: float) -> None:
    """Draw each speed before and after, all on one scale, and the gain.

    There are `room` inches for text from the left of the axes.
    """
    divisor, unit = study.unit
    colours = style.colours(study.ladder)
    ceiling = study.ceiling(study.headline) / divisor
    speeds = [study.speed(step.row) / divisor for step in found]
    limit = max([*speeds, *([] if math.isnan(ceiling) else [ceiling])])
    axes.set_xlim(0, limit)
    bold: style.Look = {"size": style.NORMAL, "weight": "bold", "color": "black"}
    at: style.Look = {"coordinates": "axes fraction"}
    style.note(axes, f"speed, {unit}", (0, 1), (0, 7), **at, **bold)
    right = 72 * (_SPEED + 0.1), 72 * (_SPEED + _GAIN + 0.1)
    style.note(axes, "gain", (1, 1), (right[1], 7), ha="right", **at, **bold)
    if not math.isnan(ceiling):
        axes.axvline(ceiling, color=style.GREY, linewidth=1.0)
        where: style.Look = {"coordinates": ("data", "axes fraction"), "ha": "center"}
        beside = (1, 7) if ceiling == limit else (0, -11)  # clear of the heading
        style.note(axes, units.number(ceiling), (ceiling, beside[0]), (0, beside[1]), **where)
    for y, (step, speed) in enumerate(zip(found, speeds, strict=True)):
        before = study.speed(step.parent) / divisor if step.parent else math.nan
        _arrow(axes, y + 0.14, before, speed, colours[step.rung.name])
        told = f"at {study.spell(step.row.case)}" if step.row.case != study.headline else ""
        if step.best:
            shown, best = (values_of(step.rung, row) for row in (step.row, step.best))
            highest = units.number(study.speed(step.best) / divisor)
            told = f"at {shown} (best: {best}, {highest} {unit})"
        if told:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # over the ceiling's line
            told = style.fit(told, room, style.SMALL)
            style.note(axes, told, (0, y), (0, 10), color="black", bbox=box)
        look: style.Look = {"coordinates": ("axes fraction", "data"), "ha": "right", "va": "center"}
        look |= {"size": style.NORMAL, "color": "black"}
        style.note(axes, units.number(speed), (1, y + 0.14), (right[0], 0), **look)
        if before > 0:
            gain = speed / before
            weight = "bold" if gain > 1 + _UNMOVED else "normal"
            style.note(
                axes, quantities.times(gain), (1, y + 0.14), (right[1], 0), weight=weight, **look
            )


def _arrow(axes: Axes, y: float, before: float, after: float, colour: style.Colour) -> None:
    """Draw a line from zero, where the parent stood and where this rung stands."""
    axes.plot([0, axes.get_xlim()[1]], [y, y], color=style.FAINT, linewidth=1, zorder=1)
    axes.plot([0, 0], [y - 0.09, y + 0.09], color=style.GREY, linewidth=1, zorder=1)
    look: style.Look = {"markersize": 7, "clip_on": False}
    if not math.isnan(before):
        axes.plot([before, after], [y, y], color=colour, linewidth=2.5, zorder=2)
        hollow: style.Look = {"markerfacecolor": "white", "markeredgecolor": style.GREY}
        axes.plot(before, y, "o", **look, **hollow, zorder=3)
    axes.plot(after, y, "o", color=colour, markeredgewidth=0, **look, zorder=4)
