# SPDX-License-Identifier: MIT
"""Where each rung stands under the roofs: by algorithmic bytes, and by those that moved."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis import roofs
from ladder.analysis.study import Study, describe, own_speed
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import quantities, slopes, style

_LEFT, _HEIGHT, _LEAST_WIDTH = 0.75, 4.6, 4.0  # inches, of the axes
_ONE_WAY = 0.1  # share of writes in the traffic of DRAM up to which its roof is that of reads
LEVELS = {"DRAM": "o", "L2": "^", "shared memory": "s"}  # marker of measured bytes, hollow
_APART = 1.1  # between two roofs that are drawn as two
_LEAST = 0.01  # of the algorithmic bytes, under which a level tells nothing
_TERA = 1e12
_HEADER = "× algorithmic bytes\nmoved through DRAM"
GLYPHS = {"DRAM": "○", "L2": "△", "shared memory": "□"}


@dataclass(frozen=True)
class Roof:
    """A measured limit, and what the datasheet says of it (NaN where it does not)."""

    name: str
    speed: float  # bytes/s or FLOP/s
    peak: float
    level: str = ""  # of memory; empty of arithmetic

    def told(self, level: str, divisor: float, unit: str) -> str:
        """Write name, speed and datasheet, with the level of memory where the name hides it."""
        where = "" if level.lower().replace(" ", "_") in self.name else f" ({level})"
        peak = f" of {units.number(self.peak / divisor)}" if self.peak > 0 else ""
        return f"{self.name}{where} {units.number(self.speed / divisor)}{peak} {unit}"


def memory_roofs(study: Study, measured: dict[str, Row]) -> list[Roof]:
    """Return one roof a level of memory, of DRAM that which fits the ladder's traffic."""
    copies = [name for name in ("memcpy", "dram_copy") if name in measured]
    copies.sort(key=lambda name: -own_speed(measured[name]))
    fits = [*copies, "dram_read"] if _writes(study) else ["dram_read", *copies]
    wanted = {"DRAM": fits, "L2": ["l2_read"], "shared memory": ["shared_memory"]}
    chosen = {
        level: next((name for name in names if name in measured), "")
        for level, names in wanted.items()
    }
    return [_roof(study, measured[name], level) for level, name in chosen.items() if name]


def _writes(study: Study) -> bool:
    """Whether the ladder writes much of what it moves, so that a copy is its roof."""
    row = study.best_step(study.headline)
    written = quantities.counter(row, "dram_write_bytes") if row else math.nan
    return written > _ONE_WAY * quantities.counter(row, "dram_bytes")


def _arithmetic(study: Study, measured: dict[str, Row], shown: list[Row]) -> list[Roof]:
    """Return the roofs of the precisions that rungs of the ladder have.

    And where a rung that is shown takes several operations of another precision for one of its
    own, that roof over so many.
    """
    used = {"", *(row.precision for row in study.counted)}
    rows = [row for row in measured.values() if row.flops_per_second > 0 and row.precision in used]
    found = [_roof(study, row, "") for row in rows]
    several = {
        (ceiling.rung.split("/")[-1], ceiling.products): None
        for row in shown
        for ceiling in study.ceilings_of(row)
        if ceiling.products > 1
    }
    shares: list[Roof] = []
    for name, products in several:
        if name in measured:
            roof = _roof(study, measured[name], "")
            parts = roof.speed / products, roof.peak / products
            shares.append(Roof(f"{name} / {products:g}", *parts))
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


def _roof(study: Study, row: Row, level: str) -> Roof:
    sheet = roofs.datasheet(study.results.gpu)
    return Roof(row.rung, own_speed(row), sheet.peak(row.rung) if sheet else math.nan, level)


def intensities(row: Row) -> dict[str, float]:
    """FLOP a byte that a row moved, by level of memory; only levels that moved any to speak of."""
    flops = row.flops_per_second * row.seconds
    moved = quantities.level_bytes(row)
    least = _LEAST * flops / row.arithmetic_intensity
    return {level: flops / moved[level] for level in LEVELS if moved[level] > least}


def amplification(row: Row) -> float:
    """Bytes of DRAM that a row moved over those that its algorithm needs; NaN if not counted."""
    return row.arithmetic_intensity / intensities(row).get("DRAM", math.nan)


def draw(study: Study) -> Figure:
    """Draw every measurement by arithmetic intensity, those of one case named.

    That is the headline, or where that counts no FLOPs the last of the cases with most rungs. Named
    points that the hardware counted have a hollow marker for the bytes moved at each level.
    """
    measured = roofs.measured(study.results)
    best = [row for row in study.counted if row is study.best.get((row.rung, row.case))]
    rungs = Counter(row.case for row in best)
    last = max(reversed(study.cases), key=lambda case: rungs[case])
    case = study.headline if rungs[study.headline] else last
    shown = [row for row in best if row.case == case]
    memory, arithmetic = memory_roofs(study, measured), _arithmetic(study, measured, shown)
    if not memory or not arithmetic:
        raise style.NothingToDrawError("the results hold no measured memory and arithmetic roofs")
    moved = {row.rung: intensities(row) for row in shown}
    levels = [level for level in LEVELS if any(level in found for found in moved.values())]
    names = {row.rung: _label(row) for row in shown}
    header = _HEADER.split("\n") if "DRAM" in levels else []
    labels = 0.4 + style.widest([*names.values(), *header], style.SMALL)
    width = max(style.PAGE - _LEFT - labels, _LEAST_WIDTH)
    height = _HEIGHT + 1.95  # the header of the names clears the key
    figure = style.page(
        _LEFT + width + labels,
        height,
        f"{study.ladder.title}: roofline",
        f"{describe(study.results)}. Named points: {study.spell(case)}; pale points: other cases.",
    )
    key = 0.2 / (_LEFT + width + labels), 1 - 0.74 / height
    figure.text(*key, _key(levels, [*memory, *arithmetic]), color=style.GREY)
    axes = style.panel(figure, _LEFT, 0.65, width, _HEIGHT)
    _limits(axes, study, memory, arithmetic, moved)
    slopes.draw(
        axes,
        (width, _HEIGHT),
        [_drawn(roof, "bytes") for roof in memory],
        [_drawn(roof, "flops") for roof in arithmetic],
        [_span(row, moved[row.rung]) for row in shown],
    )
    _draw_points(axes, study, shown, moved)
    colours = style.colours(study.ladder)
    ends = [
        (r.arithmetic_intensity, r.flops_per_second / _TERA, names[r.rung], colours[r.rung])
        for r in shown
    ]
    style.label_ends(axes, ends, width, _HEIGHT)
    if header:
        look = {"coordinates": "axes fraction", "va": "bottom"}
        style.note(axes, _HEADER, (1 + 0.15 / width, 1), (0, 8), **look)
    return figure


def _key(levels: list[str], drawn: list[Roof]) -> str:
    """Say what the markers and the lines are."""
    lines = "── measured" + (", ╌╌ datasheet" if any(roof.peak > 0 for roof in drawn) else "")
    if not levels:
        return f"Roofs: {lines}"
    moved = ", ".join(f"{GLYPHS[level]} {level}" for level in levels)
    return f"● algorithmic bytes; bytes moved: {moved}; roofs: {lines}"


def _limits(
    axes: Axes,
    study: Study,
    memory: list[Roof],
    arithmetic: list[Roof],
    moved: dict[str, dict[str, float]],
) -> None:
    """Scale the axes: every point and the ridges of the measured roofs are in sight."""
    flat = max(roof.speed for roof in arithmetic)
    ridges = [flat / roof.speed for roof in memory]
    points = [row.arithmetic_intensity for row in study.counted]
    points += [x for found in moved.values() for x in found.values()]
    speeds = [row.flops_per_second / _TERA for row in study.counted]
    highest = max(*speeds, *(max(roof.speed, _known(roof.peak)) / _TERA for roof in arithmetic))
    axes.set(
        xscale="log", xlim=(min(min(ridges) / 20, min(points) / 1.6), 3 * max(*ridges, *points))
    )
    axes.set(yscale="log", ylim=(min(speeds) / 2, 2 * highest))
    axes.set(xlabel="arithmetic intensity, FLOP/byte", ylabel="TFLOP/s")
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis)
    axes.grid(color=style.FAINT, linewidth=0.5)


def _known(peak: float) -> float:
    return peak if peak > 0 else 0.0


def _label(row: Row) -> str:
    """Name a row by its rung, with how many times its algorithmic bytes went through DRAM."""
    told = row.precision or row.chosen
    name = row.rung + (f" ({told})" if told else "")
    times = amplification(row)
    return name if math.isnan(times) else f"{name}  {quantities.times(times)}"


def _span(row: Row, found: dict[str, float]) -> tuple[float, float, float]:
    """From the least to the most intensity of a row, at its speed."""
    ends = [row.arithmetic_intensity, *found.values()]
    return min(ends), max(ends), row.flops_per_second / _TERA


def _draw_points(
    axes: Axes, study: Study, shown: list[Row], moved: dict[str, dict[str, float]]
) -> None:
    colours = style.colours(study.ladder)
    for row in study.counted:
        x, y = row.arithmetic_intensity, row.flops_per_second / _TERA
        named = any(row is other for other in shown)
        colour = colours[row.rung]
        marker = "D" if row.role == "peer" else "o"
        look: style.Look = {"markersize": 5.5 if named else 3, "alpha": 1 if named else 0.25}
        if named and (found := moved[row.rung]):
            axes.plot(_span(row, found)[:2], [y, y], color=colour, linewidth=0.7, zorder=2)
            for level, at in found.items():
                hollow: style.Look = {"markerfacecolor": "white", "markeredgecolor": colour}
                shape = {"DRAM": marker}.get(level, LEVELS[level])
                axes.plot(at, y, shape, markersize=8, markeredgewidth=1.2, zorder=3, **hollow)
        look |= {"label": row.name}  # by which a page finds the point
        axes.plot(x, y, marker, color=colour, markeredgewidth=0, zorder=4 if named else 1, **look)
        if study.above_roof(row):
            axes.plot(x, y, "o", markersize=11, markerfacecolor="none", color=style.ALARM)
            text = f"{row.rung}: above its roof"
            style.note(axes, text, (x, y), (-7, 4), ha="right", color=style.ALARM)


def _drawn(roof: Roof, quantity: str) -> slopes.Roof:
    """Scale a roof to the figure's TFLOP, named in its own unit."""
    text = roof.told(roof.level, *units.rate_unit(quantity, [roof.speed]))
    return slopes.Roof(text, roof.speed / _TERA, roof.peak / _TERA)
