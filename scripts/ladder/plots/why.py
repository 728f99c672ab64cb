# SPDX-License-Identifier: MIT
"""Why it is faster: the counter that each rung's idea was to move, and what that bought."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ladder import units
from ladder.catalogue import Rung
from ladder.plots import quantities, style
from ladder.study import Row, Study, describe, name_of, values_of
from ladder.tally import Tally

_TOP, _ROW, _BOTTOM = 1.15, 0.76, 0.15  # inches, from the top down
_LEFT, _TEXT, _GAP, _TRACK = 0.2, 2.9, 0.25, 1.7  # inches, from left to right
_SPEED, _GAIN, _LEAST_TRACK = 0.5, 0.65, 1.6
_IDEA, _LINES, _LETTERS = 7.5, 3, 60  # points, lines of them, letters that a line holds at most
_BOLD = 1.17  # width of bold text over that of plain
_UNMOVED = 0.02  # of a gain that is none


@dataclass(frozen=True)
class Step:
    """A rung beside the one below it: at the headline, or where its row has another case."""

    rung: Rung
    row: Row
    below: Row | None
    best: Row | None = None  # of the rung, where that is another row of its sweep

    @property
    def after(self) -> float:
        """What the rung has of the counter that its idea was to move; NaN if it names none."""
        return quantities.counter(self.row, self.rung.moves)

    @property
    def before(self) -> float:
        """What the rung below has of it."""
        return quantities.counter(self.below, self.rung.moves) if self.below else math.nan

    @property
    def numbers(self) -> str:
        """Write both: `32.4 → 1.01`; empty where this rung's was not counted."""
        after = quantities.value(self.rung.moves, self.after)
        if not (after and self.below):
            return after
        return f"{quantities.value(self.rung.moves, self.before) or 'none'} → {after}"


def steps(study: Study) -> list[Step]:
    """The steps measured at the headline, each with the one below; empty if no counter is known.

    Where the fastest row of a sweep has nothing of what the idea was to move, as a cluster of one
    block has no requests to others, the fastest that has some stands in its place. Where the rung
    below has nothing of it, the idea is one for other cases: the first at which both have some
    stands in for the headline.
    """
    found: list[Step] = []
    for rung in study.rungs:
        row = study.ok(rung, study.headline)
        if row and rung.role == "step" and not rung.precision:
            below = study.below(rung, study.headline)
            idle = rung.sweeps and quantities.counter(row, rung.moves) == 0
            step = Step(rung, row, below)
            if idle and (moving := _moving(study, rung)):
                step = Step(rung, moving, below, best=row)
            elif below and math.isnan(step.before):
                step = _elsewhere(study, rung) or step
            found.append(step)
    return found if any(not math.isnan(step.after) for step in found) else []


def counted_steps(tally: Tally) -> list[Step]:
    """The emulated steps, each with the one below; empty if no counter is known.

    Of a sweep stands the first row that has some of what the idea was to move.
    """
    found: list[Step] = []
    for rung in dict.fromkeys(rung for rung, _ in tally.shown):
        if rung.role == "step" and not rung.precision:
            rows = [row for other, row in tally.shown if other is rung]
            moving = (row for row in rows if quantities.counter(row, rung.moves) > 0)
            found.append(Step(rung, next(moving, rows[0]), found[-1].row if found else None))
    return found if any(not math.isnan(step.after) for step in found) else []


def _moving(study: Study, rung: Rung) -> Row | None:
    rows = [
        row
        for row in study.rows
        if row.rung == rung.name
        and row.case == study.headline
        and row.status == "ok"
        and quantities.counter(row, rung.moves) > 0
    ]
    return max(rows, key=study.speed, default=None)


def _elsewhere(study: Study, rung: Rung) -> Step | None:
    found = (
        Step(rung, row, study.below(rung, case))
        for case in study.cases
        if (row := study.ok(rung, case))
    )
    return next((step for step in found if not math.isnan(step.before + step.after)), None)


def draw(study: Study, found: list[Step]) -> Figure:
    """Draw a row a step: its idea, the counter before and after it, the speed before and after.

    Emulated steps have no speed.
    """
    timed = not isinstance(study, Tally)
    numbers = 0.2 + _BOLD * style.widest([step.numbers for step in found])
    room = style.PAGE - (_LEFT + _TEXT + _GAP + numbers + _GAP + 0.3)
    track = _TRACK if timed else max(_TRACK, room)
    right = _LEFT + _TEXT + _GAP + track + numbers + _GAP
    ends = _SPEED + _GAIN + 0.3
    width = max(style.PAGE, right + (_LEAST_TRACK + ends if timed else 0.3))
    body = _ROW * len(found)
    height = _TOP + body + _BOTTOM
    ceiling = f", │ {study.ladder.ceilings}" if timed and study.ceiling(study.headline) > 0 else ""
    figure = style.page(
        width,
        height,
        f"{study.ladder.title}: what each idea moved" + (", and what it bought" if timed else ""),
        f"{describe(study.results)}, at {study.spell(study.headline)}. "
        f"○ the rung below, ● this one{ceiling}",
    )
    moved = style.panel(figure, _LEFT + _TEXT + _GAP, _BOTTOM, track, body)
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
    _ideas(moved, study, found)
    _moves(moved, study, found)
    if timed:
        _speeds(panels[1], study, found)
    return figure


def _ideas(axes: Axes, study: Study, found: list[Step]) -> None:
    """Write each rung's name and idea left of the axes."""
    colours = style.colours(study.ladder)
    for y, step in enumerate(found):
        start = -72 * (_TEXT + _GAP)
        place = {"coordinates": ("axes fraction", "data"), "va": "top"}
        bold = {
            "size": style.NORMAL,
            "weight": "bold",
            "color": style.dark(colours[step.rung.name]),
        }
        name = style.fit(name_of(step.rung, step.row), _TEXT / _BOLD)
        style.note(axes, name, (0, y - 0.5), (start, -6), **place, **bold)
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


def _moves(axes: Axes, study: Study, found: list[Step]) -> None:
    """Draw each counter before and after on a scale of its own, from zero to the larger."""
    colours = style.colours(study.ladder)
    axes.set_xlim(0, 1)
    header = {"size": style.NORMAL, "weight": "bold", "color": "black"}
    at = {"coordinates": "axes fraction"}
    style.note(axes, "what the idea was to move", (0, 1), (0, 7), **at, **header)
    for y, step in enumerate(found):
        if not step.rung.moves:
            why = "the first rung" if y == 0 else "no counter named"
            style.note(axes, why, (0, y), va="center", style="italic")
            continue
        before, after = step.before, step.after
        most = max((v for v in (before, after) if not math.isnan(v)), default=0.0)
        style.note(axes, quantities.words(step.rung.moves), (0, y), (0, 10), color="black")
        if math.isnan(after):
            style.note(axes, "not counted", (0, y), (0, -6), va="center", style="italic")
            continue
        scale = most or 1.0
        _arrow(axes, y + 0.14, before / scale, after / scale, colours[step.rung.name])
        style.note(axes, step.numbers, (1, y + 0.14), (12, 0), va="center", **header)


def _speeds(axes: Axes, study: Study, found: list[Step]) -> None:
    """Draw each speed before and after, all on one scale, and the gain."""
    divisor, unit = study.unit
    colours = style.colours(study.ladder)
    ceiling = study.ceiling(study.headline) / divisor
    speeds = [study.speed(step.row) / divisor for step in found]
    limit = max([*speeds, *([] if math.isnan(ceiling) else [ceiling])])
    axes.set_xlim(0, limit)
    bold = {"size": style.NORMAL, "weight": "bold", "color": "black"}
    at = {"coordinates": "axes fraction"}
    style.note(axes, f"speed, {unit}", (0, 1), (0, 7), **at, **bold)
    right = 72 * (_SPEED + 0.1), 72 * (_SPEED + _GAIN + 0.1)
    style.note(axes, "gain", (1, 1), (right[1], 7), ha="right", **at, **bold)
    if not math.isnan(ceiling):
        axes.axvline(ceiling, color=style.GREY, linewidth=1.0)
        where = {"coordinates": ("data", "axes fraction"), "ha": "center"}
        beside = (1, 7) if ceiling == limit else (0, -11)  # clear of the heading
        style.note(axes, units.number(ceiling), (ceiling, beside[0]), (0, beside[1]), **where)
    for y, (step, speed) in enumerate(zip(found, speeds, strict=True)):
        below = study.speed(step.below) / divisor if step.below else math.nan
        _arrow(axes, y + 0.14, below, speed, colours[step.rung.name])
        told = f"at {study.spell(step.row.case)}" if step.row.case != study.headline else ""
        if step.best:
            shown, best = (values_of(step.rung, row) for row in (step.row, step.best))
            highest = units.number(study.speed(step.best) / divisor)
            told = f"at {shown} (best: {best}, {highest} {unit})"
        if told:
            room = axes.figure.get_size_inches()[0] * (1 - axes.get_position().x0) - _LEFT
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # over the ceiling's line
            told = style.fit(told, room, style.SMALL)
            style.note(axes, told, (0, y), (0, 10), color="black", bbox=box)
        look = {"coordinates": ("axes fraction", "data"), "ha": "right", "va": "center"}
        look |= {"size": style.NORMAL, "color": "black"}
        style.note(axes, units.number(speed), (1, y + 0.14), (right[0], 0), **look)
        if step.below:
            gain = speed / below
            weight = "bold" if gain > 1 + _UNMOVED else "normal"
            style.note(
                axes, quantities.times(gain), (1, y + 0.14), (right[1], 0), weight=weight, **look
            )


def _arrow(axes: Axes, y: float, before: float, after: float, colour: tuple | str) -> None:
    """Draw a line from zero, where the rung below stood and where this one stands."""
    axes.plot([0, axes.get_xlim()[1]], [y, y], color=style.FAINT, linewidth=1, zorder=1)
    axes.plot([0, 0], [y - 0.09, y + 0.09], color=style.GREY, linewidth=1, zorder=1)
    look = {"markersize": 7, "clip_on": False}
    if not math.isnan(before):
        axes.plot([before, after], [y, y], color=colour, linewidth=2.5, zorder=2)
        hollow = {"markerfacecolor": "white", "markeredgecolor": style.GREY}
        axes.plot(before, y, "o", **look, **hollow, zorder=3)
    axes.plot(after, y, "o", color=colour, markeredgewidth=0, **look, zorder=4)
