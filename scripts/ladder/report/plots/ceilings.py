# SPDX-License-Identifier: MIT
"""The measured roofs: the best of each, the rows of its sweep, and the datasheet's peak."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis import roofs
from ladder.analysis.study import Study, describe, own_speed
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import quantities, style

_BAR, _LEAST_WIDTH, _TOP, _HEADER, _FOOT = 0.28, 2.4, 0.85, 0.4, 0.45  # inches
_PANEL, _PANEL_TOP, _PANEL_FOOT, _LEFT, _BETWEEN = 1.9, 0.55, 0.6, 0.75, 0.85
_ABREAST = 2  # panels
_SOURCE = 0.25  # inches at the foot
_WIDE_SPAN = 30  # highest over lowest from which bars on a linear scale are too short to compare
_BAR_COLOUR = "#56b4e9"
_QUANTITIES = {  # a roof's own quantity is the first of these that it has: divisor, unit
    "atomics_per_second": (1e9, "G atomics/s"),
    "flops_per_second": (1e12, "TFLOP/s"),
    "bytes_per_second": (1e12, "TB/s"),
}
_GROUPS = ("DRAM", "memory on the chip", "arithmetic", "atomics")
_PANELS = {"mebibytes": "working set, MiB", "cluster": "blocks per cluster"}


@dataclass(frozen=True)
class Roof:
    """All rows of one rung of the ladder of roofs, in its own quantity."""

    rung: Rung
    quantity: str
    rows: list[Row]
    peak: float  # what the datasheet says, in the figure's unit; NaN where it does not

    def speed(self, row: Row) -> float:
        """Speed in the figure's unit; of `l2_read` that of what came through L2."""
        return own_speed(row) / _QUANTITIES[self.quantity][0]

    @property
    def group(self) -> str:
        """The roofs that it is compared with: those of a similar speed, on one scale."""
        if self.quantity == "bytes_per_second":
            dram = self.rung.name == "memcpy" or self.rung.name.startswith("dram_")
            return _GROUPS[0 if dram else 1]
        return _GROUPS[2 if self.quantity == "flops_per_second" else 3]

    @property
    def best(self) -> Row:
        """The row that stands for the roof."""
        return max(self.rows, key=self.speed)

    def along(self, axis: str) -> dict[float, Row]:
        """Best row at each value of an axis that has several, rising; else nothing."""
        found: dict[float, Row] = {}
        for row in sorted(self.rows, key=self.speed):
            pairs = (part.partition(":") for part in row.name.split("/"))
            value = next((v for name, _, v in pairs if name == axis), "")
            if value.isdecimal():
                found[float(value)] = row
        return dict(sorted(found.items())) if len(found) > 1 else {}

    def asked(self, row: Row) -> float:
        """Speed by what the kernel counts; beyond `speed` where L1 served a part of it."""
        return quantities.counter(row, self.quantity) / _QUANTITIES[self.quantity][0]


def roofs_of(study: Study) -> list[Roof]:
    """The roofs that have a speed, those of one group together."""
    sheet = roofs.datasheet(study.results.gpu)
    found = []
    for rung in study.rungs:
        rows = [row for row in study.rows if row.rung == rung.name and row.status == "ok"]
        for quantity, (divisor, _) in _QUANTITIES.items():
            if counted := [row for row in rows if quantities.counter(row, quantity) > 0]:
                peak = sheet.peak(rung.name) / divisor if sheet else math.nan
                found.append(Roof(rung, quantity, counted, peak))
                break
    return sorted(found, key=lambda roof: _GROUPS.index(roof.group))


def draw(study: Study, found: list[Roof]) -> Figure:
    """Draw a bar per roof, in groups of one scale, and below them speeds along a roof's axis."""
    groups = [list(group) for _, group in groupby(found, key=lambda roof: roof.group)]
    names = [roof.rung.name for roof in found]
    cells = {roof.rung.name: _cells(roof) for roof in found}
    left = 0.35 + style.widest(names)
    headers = ("speed", "of datasheet")
    wide = {header: [row[i] for row in cells.values()] for i, header in enumerate(headers)}
    wide = {header: column for header, column in wide.items() if any(column)}
    right = 0.2 + style.columns_width(wide)
    panels = [(roof, axis) for roof in found for axis in _PANELS if roof.along(axis)]
    width = max(style.WIDE, left + _LEAST_WIDTH + right)
    bars = sum(_HEADER + _BAR * len(group) + _FOOT for group in groups)
    down = _PANEL_TOP + _PANEL + _PANEL_FOOT
    below = math.ceil(len(panels) / _ABREAST) * down + _SOURCE
    height = _TOP + bars + below
    signs = ["Bar: the best"]
    if any(len(roof.rows) > 1 for roof in found):
        signs.append("○ the rows of its sweep")
    if any(roof.peak > 0 for roof in found):
        signs.append("┊ the datasheet")
    about = ", ".join(signs)
    figure = style.page(width, height, study.ladder.title, about, describe(study.results))
    if told := roofs.slow_clocks(study.results, [roof.best for roof in found]):
        style.legend(figure, [], f"{roofs.SLOW_MARK} {told}")
    top = height - _TOP
    for group in groups:
        body = _BAR * len(group)
        axes = style.panel(figure, left, top - _HEADER - body, width - left - right, body)
        _bars(axes, group)
        at = width - left - right
        for i, header in enumerate(headers):
            if header in wide:
                at += style.columns_width({header: wide[header]})
                column = [cells[roof.rung.name][i] for roof in group]
                over = header if group is groups[0] else ""
                _column(axes, over, column, at / (width - left - right))
        top -= _HEADER + body + _FOOT
    each = (width - _LEFT - 0.3 - _BETWEEN * (_ABREAST - 1)) / _ABREAST
    for i, (roof, axis) in enumerate(panels):
        line, across = divmod(i, _ABREAST)
        start = _LEFT + across * (each + _BETWEEN)
        bottom = below - (line + 1) * down + _PANEL_FOOT
        _line(style.panel(figure, start, bottom, each, _PANEL), each, study, roof, axis)
    return figure


def _cells(roof: Roof) -> list[str]:
    """Texts right of a roof's bar."""
    _, unit = _QUANTITIES[roof.quantity]
    speed = roof.speed(roof.best)
    percent = units.percent(100 * speed / roof.peak) if roof.peak > 0 else ""
    mark = roofs.SLOW_MARK if roof.best.throttled > 0 else ""
    return [f"{units.number(speed)} {unit}{mark}", percent]


def _column(axes: Axes, header: str, column: list[str], at: float) -> None:
    """Write a column of text that ends `at` times the width of the axes."""
    look: style.Look = {"ha": "right", "size": style.NORMAL}
    style.note(axes, header, (at, 1), (0, 4), coordinates="axes fraction", **look)
    look |= {"coordinates": ("axes fraction", "data"), "va": "center_baseline", "color": "black"}
    for y, cell in enumerate(column):
        style.note(axes, cell, (at, y), **look)


def _bars(axes: Axes, group: list[Roof]) -> None:
    """Draw one group, on a logarithmic scale where the least bar would be none."""
    best = [roof.speed(roof.best) for roof in group]
    every = [roof.speed(row) for roof in group for row in roof.rows]
    peaks = [roof.peak for roof in group if roof.peak > 0]
    limit = max([*best, *peaks])
    wide = limit > _WIDE_SPAN * min(best)
    start = min(every) / 2 if wide else 0.0
    for y, roof in enumerate(group):
        speed = roof.speed(roof.best)
        axes.barh(y, speed - start, left=start, height=0.68, color=_BAR_COLOUR)
        dots = [roof.speed(row) for row in roof.rows]
        if len(dots) > 1:
            look: style.Look = {
                "markerfacecolor": "white",
                "markeredgecolor": "black",
                "markersize": 3.5,
            }
            axes.plot(dots, [y] * len(dots), "o", markeredgewidth=0.6, clip_on=False, **look)
        if roof.peak > 0:
            ends = [y - 0.44, y + 0.44]
            axes.plot([roof.peak] * 2, ends, color="black", linewidth=1.5, linestyle=(0, (2, 1.2)))
    axes.set(ylim=(len(group) - 0.5, -0.5))
    if wide:
        axes.set(xscale="log", xlim=(start, 1.15 * limit))
        style.log_ticks(axes.xaxis)
    else:
        axes.set_xlim(0, 1.03 * limit)
    _, unit = _QUANTITIES[group[0].quantity]
    axes.set_title(group[0].group, loc="left", size=style.NORMAL, weight="bold")
    axes.set_xlabel(unit + (", logarithmic" if wide else ""))
    axes.set_yticks(range(len(group)), [roof.rung.name for roof in group], size=style.NORMAL)
    axes.tick_params(axis="y", length=0)


def _line(axes: Axes, width: float, study: Study, roof: Roof, axis: str) -> None:
    """Draw a roof's best speed at each value of one of its axes, on `width` inches."""
    found = roof.along(axis)
    shown, speeds = list(found), [roof.speed(row) for row in found.values()]
    axes.plot(shown, speeds, "o-", color=style.GPU_COLOURS[0], markersize=4)
    asked = [roof.asked(row) for row in found.values()]
    if asked != speeds:
        hollow: style.Look = {"markerfacecolor": "white", "markersize": 4, "linewidth": 1}
        axes.plot(shown, asked, "o--", color=style.PEER, **hollow)
        key = "● what came through L2\n○ what the kernel read"
        style.note(axes, key, (0, 0), (6, 6), coordinates="axes fraction")
    axes.set(xscale="log", ylim=(0, 1.15 * max(*speeds, *asked)))
    style.value_ticks(axes, shown, [f"{value:.0f}" for value in shown], width)
    axes.set_xlabel(_PANELS[axis])
    axes.set_ylabel(_QUANTITIES[roof.quantity][1])
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.set_title(roof.rung.name, loc="left", size=style.NORMAL, weight="bold")
    size = units.parse(study.results.context.get("l2_bytes")) / 2**20
    if axis == "mebibytes" and shown[0] < size < shown[-1]:
        axes.axvline(size, color=style.GREY, linewidth=1, linestyle=":")
        place = {"coordinates": ("data", "axes fraction")}
        style.note(axes, f"L2, {size:.0f} MiB", (size, 0), (4, 5), **place)
