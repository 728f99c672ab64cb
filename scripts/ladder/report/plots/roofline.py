# SPDX-License-Identifier: MIT
"""Where the rungs of the path to the best stand under the roofs, by the bytes that moved."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis import roofs
from ladder.analysis.study import Study, describe, own_speed
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import cases, quantities, style

_LEFT, _HEIGHT = 0.85, 3.6  # inches, of the axes
_BETWEEN = 3  # rungs named between the ends of the path
_APART = 1.1  # between two roofs that are drawn as two
_ONE_WAY = 0.1  # share of writes in the traffic of DRAM up to which its roof is that of reads
_TERA = 1e12
_BYTES = {"DRAM": "dram_bytes", "L2": "l2_bytes"}  # the counter of what a level moved
_CLEAR = 0.1  # inches between a name and the middle of a point


@dataclass(frozen=True)
class Roof:
    """A measured limit, and what the datasheet says of it (NaN where it does not)."""

    name: str
    speed: float  # bytes/s or FLOP/s
    peak: float

    def told(self, quantity: str) -> str:
        """Write name, speed and datasheet."""
        divisor, unit = units.rate_unit(quantity, [self.speed])
        peak = f" of {units.number(self.peak / divisor)}" if self.peak > 0 else ""
        return f"{self.name}: {units.number(self.speed / divisor)}{peak} {unit}"

    @property
    def highest(self) -> float:
        """The higher of its two lines."""
        return max(self.speed, self.peak) if self.peak > 0 else self.speed


def _memory(study: Study, measured: dict[str, Row], level: str) -> Roof | None:
    """Return the roof of a level of memory, of DRAM that which fits the ladder's traffic."""
    copies = [name for name in ("memcpy", "dram_copy") if name in measured]
    copies.sort(key=lambda name: -own_speed(measured[name]))
    fits = [*copies, "dram_read"] if _writes(study) else ["dram_read", *copies]
    names = ["l2_read"] if level == "L2" else fits
    return next((_roof(study, measured[name]) for name in names if name in measured), None)


def _writes(study: Study) -> bool:
    """Whether the ladder writes much of what it moves, so that a copy is its roof."""
    row = study.best_step(study.headline)
    written = quantities.counter(row, "dram_write_bytes") if row else math.nan
    return written > _ONE_WAY * quantities.counter(row, "dram_bytes")


def _arithmetic(study: Study, measured: dict[str, Row], shown: list[Row]) -> list[Roof]:
    """Return the roof of the ladder's own precision, and those that rows shown have instead.

    A roof of which a rung takes several operations for one of its own is that many times as low. A
    limit that is no roof, such as a library's kernel, counts at the case of the row.
    """
    rows = [row for row in measured.values() if row.flops_per_second > 0 and not row.precision]
    found = [_roof(study, row) for row in rows]
    shares: list[Roof] = []
    others = {
        (ceiling.rung.split("/")[-1], ceiling.products): row
        for row in shown
        for ceiling in study.ceilings_of(row)
        if ceiling.products > 1
    }
    for (name, products), row in others.items():
        told = f"{name} / {products:g}"
        if name in measured:
            roof = _roof(study, measured[name])
            shares.append(Roof(told, roof.speed / products, roof.peak / products))
        elif len(study.ceilings_of(row)) == 1 and study.ceiling_of(row) > 0:
            shares.append(Roof(told, study.ceiling_of(row), math.nan))
    return found + _joined(shares)


def _joined(found: list[Roof]) -> list[Roof]:
    """Draw roofs as one, the highest, whose lines and labels would lie on each other."""
    joined: list[Roof] = []
    for roof in sorted(found, key=lambda roof: -roof.speed):
        if joined and roof.speed > joined[-1].speed / _APART:
            joined[-1] = replace(joined[-1], name=f"{joined[-1].name}, {roof.name}")
        else:
            joined.append(roof)
    return joined


def _roof(study: Study, row: Row) -> Roof:
    sheet = roofs.datasheet(study.results.gpu)
    return Roof(row.rung, own_speed(row), sheet.peak(row.rung) if sheet else math.nan)


def _intensity(row: Row, level: str) -> float:
    """FLOP a byte that a row moved at a level of memory; of the algorithm where none is named."""
    if not level:
        return row.arithmetic_intensity
    moved = quantities.counter(row, _BYTES[level])
    return row.flops_per_second * row.seconds / moved if moved > 0 else math.nan


def draw(study: Study) -> Figure:
    """Draw rungs by the bytes that they moved, the path to the best as a line, a few of them named.

    They are of the headline, or where that counts no FLOPs of the last case with most rungs.
    """
    measured = roofs.measured(study.results)
    best = [
        row
        for row in study.counted
        if row is study.best.get((row.rung, row.case)) and not row.precision
    ]
    if not best:
        raise style.NothingToDrawError("no row of the ladder's own precision counts FLOPs")
    rungs = Counter(row.case for row in best)
    last = max(reversed(study.cases), key=lambda case: rungs[case])
    case = study.headline if rungs[study.headline] else last
    shown = [row for row in best if row.case == case and study.rung(row).role != "choice"]
    level = "L2" if study.ladder.quantity == "flops" else "DRAM"
    if any(math.isnan(_intensity(row, level)) for row in shown):
        level = ""
    path = _path(study, shown)
    named = _named(study, path, shown)
    memory = _memory(study, measured, level or "DRAM")
    arithmetic = _arithmetic(study, measured, named)
    if not (memory and arithmetic):
        raise style.NothingToDrawError("the results hold no measured memory and arithmetic roofs")
    height = _HEIGHT + 2.0
    at = cases.whole(study, case)
    about = f"The path to the best rung, at {at}. {_key([memory, *arithmetic])}."
    title = f"{study.ladder.title}: roofline"
    figure = style.page(style.PAGE, height, title, about, describe(study.results))
    rest = [row for row in shown if row not in path and row.role != "peer"]
    key: list[tuple[str, style.Colour]] = [("on the path", style.OURS)] * bool(path)
    key += [("other rungs", style.GREY)] * bool(rest)
    key += [("library", style.PEER)] * any(row.role == "peer" for row in shown)
    style.legend(figure, key, signs="".join("◆" if name == "library" else "●" for name, _ in key))
    width = style.PAGE - _LEFT - 0.25
    axes = style.panel(figure, _LEFT, 0.9, width, _HEIGHT)
    points = {row.rung: (_intensity(row, level), row.flops_per_second / _TERA) for row in shown}
    names = style.widest([_label(row) for row in named]) + 0.2
    slope = style.text_width(memory.told("bytes"), style.SMALL) + 0.7
    shares = slope / width, names / width
    _limits(axes, memory, arithmetic, list(points.values()), shares)
    bytes_ = f"moved through {level}" if level else "of the algorithm"
    axes.set(xlabel=f"FLOP per byte {bytes_}", ylabel="TFLOP/s")
    _slope(axes, width, memory, max(roof.speed for roof in arithmetic), [*points.values()])
    for roof in arithmetic:
        _flat(axes, roof, memory)
    joined = [points[row.rung] for row in path if row in named]
    _draw_points(axes, study, shown, points, named=named, path=path)
    for start, end in pairwise(joined):
        arrow: style.Look = {"arrowstyle": "-|>", "color": style.OURS, "linewidth": 1.4}
        arrow |= {"shrinkA": 4, "shrinkB": 4}
        axes.annotate("", end, start, arrowprops=arrow, annotation_clip=False)
    _name(axes, named, points)
    return figure


def _path(study: Study, shown: list[Row]) -> list[Row]:
    """The rows that lead to the fastest step of those shown, from the root up."""
    steps = {row.rung: row for row in shown if study.rung(row).is_step}
    if not steps or not study.ladder.is_tree:
        return []
    best = max(steps.values(), key=study.speed)
    rungs = study.ladder.path(best.rung)[::-1]
    return [steps[rung.name] for rung in rungs if rung.name in steps]


def _named(study: Study, path: list[Row], shown: list[Row]) -> list[Row]:
    """The ends of the path, the rungs between that gained most, and the fastest library."""
    peers = [row for row in shown if row.role == "peer"]
    between = sorted(path[1:-1], key=study.gain, reverse=True)[:_BETWEEN]
    others = path or sorted(shown, key=study.speed)
    return [*dict.fromkeys([others[0], *between, others[-1]]), *sorted(peers, key=study.speed)[-1:]]


def _key(drawn: list[Roof]) -> str:
    """Say what the lines are."""
    peaks = any(roof.peak > 0 for roof in drawn)
    return "Limits: ── measured" + (", ╌╌ datasheet" if peaks else "")


def _limits(
    axes: Axes,
    memory: Roof,
    arithmetic: list[Roof],
    points: list[tuple[float, float]],
    names: tuple[float, float],
) -> None:
    """Scale the axes: every point, the ridge of the measured roofs and the names are in sight.

    `names` are shares of the axes' width: of the slope's name, left of the ridge, and of those
    right of the points.
    """
    ridge = max(roof.speed for roof in arithmetic) / memory.speed
    xs, ys = zip(*points, strict=True)
    highest = max(*ys, *(roof.highest / _TERA for roof in arithmetic))
    highest_x = math.log(max(ridge, *xs))
    left, right = min(names[0], 0.38), 1 - min(names[1], 0.5)
    low = (math.log(ridge) - highest_x * left / right) / (1 - left / right)
    low = min(low, math.log(min(xs) / 3))
    axes.set(xscale="log", xlim=(math.exp(low), math.exp(low + (highest_x - low) / right)))
    axes.set(yscale="log", ylim=(min(ys) / 2, 2 * highest))
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis)


def _lines(roof: Roof) -> list[tuple[float, style.Look]]:
    """A roof's speed and how its line looks: solid what was measured, dashed the datasheet."""
    solid: style.Look = {"color": style.GREY, "linewidth": 1.2, "zorder": 2}
    dashed = solid | {"linewidth": 0.9, "linestyle": (0, (4, 3))}
    return [(roof.speed, solid), *([(roof.peak, dashed)] if roof.peak > 0 else [])]


def _flat(axes: Axes, roof: Roof, memory: Roof) -> None:
    """Draw a roof of arithmetic from the slope on, named above its right end."""
    (left, right) = axes.get_xlim()
    for speed, look in _lines(roof):
        axes.plot([max(left, speed / memory.speed), right], [speed / _TERA] * 2, **look)
    style.note(axes, roof.told("flops"), (right, roof.highest / _TERA), (-2, 3), ha="right")


def _slope(
    axes: Axes, width: float, roof: Roof, top: float, points: list[tuple[float, float]]
) -> None:
    """Draw a roof of memory up to `top` FLOP/s, named above it, or below it if points are above."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for speed, look in _lines(roof):
        ends = np.array([left, min(right, top / speed)])
        axes.plot(ends, speed * ends / _TERA, **look)
    # All in inches from the left end of the line, along it and above it.
    across, up = width / math.log(right / left), _HEIGHT / math.log(high / low)
    angle = math.atan2(up, across)
    cos, sin = math.cos(angle), math.sin(angle)
    start = up * math.log(roof.highest * left / _TERA / low)
    text = roof.told("bytes")
    need = style.text_width(text, style.SMALL) + _CLEAR
    length = across * math.log(min(right, top / roof.highest) / left) / cos
    beside = [(across * math.log(x / left), up * math.log(y / low) - start) for x, y in points]
    near = [x * cos + y * sin for x, y in beside if -0.05 < y * cos - x * sin < 2 * _CLEAR]
    # The end of the name: as near to the ridge as no point is beside it.
    places = [length - 0.12 - 0.05 * i for i in range(math.ceil(max(length - need, 0) / 0.05))]
    free = [end for end in places if not any(end - need < at < end + _CLEAR for at in near)]
    end = left * math.exp((free or [length - 0.12])[0] * cos / across)
    look = {"ha": "right", "rotation": math.degrees(angle), "rotation_mode": "anchor"}
    look["path_effects"] = style.halo()
    speed, offset = (roof.highest, (-4, 4)) if free else (roof.speed, (4, -4))
    look["va"] = "bottom" if free else "top"
    style.note(axes, text, (end, speed * end / _TERA), offset, **look)


def _draw_points(
    axes: Axes,
    study: Study,
    shown: list[Row],
    points: dict[str, tuple[float, float]],
    *,
    named: list[Row],
    path: list[Row],
) -> None:
    for row in shown:
        x, y = points[row.rung]
        look: style.Look = {"marker": "o", "color": style.OURS if row in path else style.GREY}
        if row.role == "peer":
            look = {"marker": "D", "color": style.PEER}
        look |= {"markersize": 6.5, "alpha": 1} if row in named else {"markersize": 3}
        # By its label a page finds the point.
        axes.plot(x, y, linestyle="none", label=row.name, zorder=4, **look)
        if study.above_roof(row):
            axes.plot(x, y, "o", markersize=11, markerfacecolor="none", color=style.ALARM)
            text = f"{row.rung}: above its roof"
            style.note(axes, text, (x, y), (-7, 4), ha="right", color=style.ALARM)


def _name(axes: Axes, named: list[Row], points: dict[str, tuple[float, float]]) -> None:
    """Write names right of their points and a little below, further where names would touch."""
    low, high = np.log(axes.get_ylim())
    wanted = [(np.log(points[row.rung][1]) - low) / (high - low) for row in named]
    gap = 1.3 * style.NORMAL / 72 / _HEIGHT
    for row, y in zip(named, style.spread(wanted, gap, 0.0, 1.0), strict=True):
        look: style.Look = {"coordinates": ("data", "axes fraction"), "va": "center"}
        look["size"] = style.NORMAL
        look |= {"color": style.PEER if row.role == "peer" else "black"}
        style.note(axes, _label(row), (points[row.rung][0], y), (9, -3), **look)


def _label(row: Row) -> str:
    divisor, unit = units.rate_unit("flops", [row.flops_per_second])
    return f"{row.rung}  {units.number(row.flops_per_second / divisor)} {unit}"
