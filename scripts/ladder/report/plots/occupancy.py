# SPDX-License-Identifier: MIT
"""How many warps that an SM holds, by block size and by shared memory, and what the limit is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.emulated_study import Tally
from ladder.analysis.study import describe, name_of
from ladder.io.emulator_details import Curves, Details, Point
from ladder.model import units
from ladder.model.rows import bare
from ladder.model.text import first_of
from ladder.report.plots import style

_TITLE, _PANEL, _TICKS = 0.5, 0.85, 0.4  # inches of one kernel, from the top down
_TOP, _BOTTOM, _LEFT, _BETWEEN, _RIGHT = 1.1, 0.35, 0.7, 0.7, 0.4
_COLOURS = {
    "warps": "#56b4e9",
    "registers": "#e69f00",
    "shared memory": "#009e73",
    "blocks": "#cc79a7",
}


@dataclass(frozen=True)
class Kernels:
    """Kernels whose panels are alike."""

    names: list[str]
    curves: list[Curves]  # of blocks without clusters
    percent: float  # of the warps that an SM holds, as launched, clusters and all


def chosen(tally: Tally, details: Details) -> list[Kernels]:
    """Return the headline's kernels, in one where their panels are alike."""
    by_row = {bare(curves.row): curves for curves in details.occupancy}
    found: dict[tuple[object, ...], Kernels] = {}
    for rung, row in tally.shown:
        if curves := by_row.get(bare(row.name)):
            percent = 100 * row.theoretical_occupancy
            percent = _alone(curves) if math.isnan(percent) else percent
            dot = (curves.block_threads, _shared(curves) // 1024, percent)
            key = (curves.by_block, curves.by_shared, dot)
            kernels = found.setdefault(key, Kernels([], [], percent))
            kernels.names.append(name_of(rung, row))
            kernels.curves.append(curves)
    return list(found.values())


def draw(tally: Tally, found: list[Kernels]) -> Figure:
    """Draw two panels for kernels that are alike; the dot is where they are launched."""
    each = _TITLE + _PANEL + _TICKS
    height = _TOP + each * len(found) + _BOTTOM
    width = (style.WIDE - _LEFT - _BETWEEN - _RIGHT) / 2
    title = f"{tally.title}: occupancy"
    about = f"{describe(tally.results)}: percent of the warps that an SM holds, by what limits them"
    figure = style.page(style.WIDE, height, title, about)
    all_curves = [kernels.curves[0] for kernels in found]
    limits = [p.limiter for c in all_curves for p in (*c.by_block, *c.by_shared)]
    used = [(name, colour) for name, colour in _COLOURS.items() if name in limits]
    style.legend(figure, used, "● as launched")
    top = height - _TOP
    for kernels in found:
        curves = kernels.curves[0]
        bottom = top - _TITLE - _PANEL
        by_block = style.panel(figure, _LEFT, bottom, width, _PANEL)
        _curve(by_block, curves.by_block, curves.block_threads, kernels.percent)
        by_block.set_xticks(range(0, 1025, 128))
        by_shared = style.panel(figure, _LEFT + width + _BETWEEN, bottom, width, _PANEL)
        _curve(by_shared, curves.by_shared, _shared(curves), kernels.percent)
        kib = range(0, int(max((p.size for p in curves.by_shared), default=0)) + 1, 32 * 1024)
        by_shared.set_xticks(kib, [f"{size // 1024}" for size in kib])
        look: style.Look = {"coordinates": "axes fraction", "size": style.NORMAL}
        told = _several(kernels.names, style.WIDE - _LEFT - _RIGHT)
        style.note(by_block, told, (0, 1), (0, 21), **look, color="black", weight="bold")
        style.note(by_block, _resources(kernels), (0, 1), (0, 8), **look)
        top -= each
    by_block.set_xlabel("threads per block")
    by_shared.set_xlabel("KiB of shared memory per block")
    return figure


def _shared(curves: Curves) -> float:
    return curves.static_shared_bytes + curves.dynamic_shared_bytes


def _alone(curves: Curves) -> float:
    """Occupancy in percent of the kernel's blocks as they are launched, but in no clusters."""
    wanted = curves.block_threads
    return 100 * min(curves.by_block, key=lambda point: abs(point.size - wanted)).occupancy


def _resources(kernels: Kernels) -> str:
    """Tell what kernels take as they are launched, and how full that makes an SM."""
    curves = kernels.curves[0]
    registers = _span([curves.registers for curves in kernels.curves], "{:.0f}".format)
    shared = _span([_shared(curves) for curves in kernels.curves], units.kibibytes)
    percent, alone = units.percent(kernels.percent), units.percent(_alone(curves))
    if percent != alone:
        percent += f" in its clusters, {alone} without"
    return f"{registers} registers, {curves.block_threads:.0f} threads, {shared} shared: {percent}"


def _span(values: list[float], spell: Callable[[float], str]) -> str:
    return " to ".join(dict.fromkeys((spell(min(values)), spell(max(values)))))


def _several(names: list[str], width: float) -> str:
    """Name as many rungs as `width` inches of bold type hold, and count the others."""
    for shown in range(len(names), 1, -1):
        text = first_of(names, shown)
        if 1.2 * style.text_width(text) <= width:
            return text
    return first_of(names)


def _curve(axes: Axes, points: Sequence[Point], own: float, percent: float) -> None:
    """Draw a bar per size, or per run of sizes that are alike, and a dot at the launch's own."""
    points = sorted(points, key=lambda point: point.size)
    edges = _edges([point.size for point in points])
    start = 0
    for i, point in enumerate(points, start=1):
        if i == len(points) or (points[i].occupancy, points[i].limiter) != (
            point.occupancy,
            point.limiter,
        ):
            look: style.Look = {"color": _COLOURS.get(point.limiter, style.FAINT), "linewidth": 0}
            width = edges[i] - edges[start]
            axes.bar(edges[start], 100 * point.occupancy, width=width, align="edge", **look)
            start = i
    axes.plot(own, percent, "o", color="black", markersize=5, clip_on=False)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 100))
    axes.set_yticks((0, 50, 100), ("0", "50", "100%"))


def _edges(sizes: list[float]) -> list[float]:
    """Return where one size gives way to the next: half way."""
    inner = [(a + b) / 2 for a, b in pairwise(sizes)]
    half = (sizes[1] - sizes[0]) / 2 if inner else 16
    return [sizes[0] - half, *inner, sizes[-1] + half]
