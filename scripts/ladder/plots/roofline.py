# SPDX-License-Identifier: MIT
"""Where each rung stands under the measured roofs."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder import units
from ladder.plots import style
from ladder.study import Study, describe

_LEFT, _HEIGHT, _LEAST_WIDTH = 0.75, 4.4, 4.0  # inches, of the axes


def _roofs(study: Study) -> tuple[dict[str, float], dict[str, float]]:
    """Return memory roofs in bytes/s and arithmetic roofs in FLOP/s, by name."""
    roofs = {ladder.name for ladder in study.results.ladders if ladder.is_roof}
    memory, arithmetic = {}, {}
    for row in study.results.ceilings.itertuples():
        if row.ladder in roofs and row.bytes_per_second > 0:
            memory.setdefault(row.rung, row.bytes_per_second)
        elif row.ladder in roofs and row.flops_per_second > 0:
            arithmetic.setdefault(row.rung, row.flops_per_second)
    return memory, arithmetic


def draw(study: Study) -> Figure:
    """Draw every measurement by arithmetic intensity, those of one case named.

    That is the headline, or the last case that counts FLOPs where the headline does not.
    """
    memory, arithmetic = _roofs(study)
    if not memory or not arithmetic:
        raise style.NothingToDrawError("the results hold no measured memory and arithmetic roofs")
    counted = {row.case for row in study.counted}
    case = next(c for c in (study.headline, *reversed(study.cases)) if c in counted)
    names = {r.name: r.name + (f" ({r.precision})" if r.precision else "") for r in study.rungs}
    labels = 0.4 + style.widest(list(names.values()), style.SMALL)
    width = max(style.PAGE - _LEFT - labels, _LEAST_WIDTH)
    figure = style.page(
        _LEFT + width + labels,
        _HEIGHT + 1.55,
        f"{study.ladder.title}: roofline",
        f"{describe(study.results)}. Named points: {study.spell(case)}; pale points: other cases.",
    )
    axes = style.panel(figure, _LEFT, 0.65, width, _HEIGHT)
    flat = max(arithmetic.values())
    ridges = [flat / bandwidth for bandwidth in memory.values()]
    intensities = [row.arithmetic_intensity for row in study.counted]
    xlim = min(*ridges, *intensities) / 20, max(*ridges, *intensities) * 3
    speeds = [row.flops_per_second / 1e12 for row in study.counted]
    ylim = min(speeds) / 2, max(*speeds, flat / 1e12) * 2
    axes.set(xscale="log", yscale="log", xlim=xlim, ylim=ylim)
    axes.set(xlabel="arithmetic intensity, FLOP/byte (algorithmic)", ylabel="TFLOP/s")
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis)
    axes.grid(color=style.FAINT, linewidth=0.5)
    _draw_roofs(axes, memory, arithmetic, width)

    colours = style.colours(study.ladder)
    ends = []
    for row in study.counted:
        x, y = row.arithmetic_intensity, row.flops_per_second / 1e12
        shown = row is study.best.get((row.rung, case))
        colour = colours[row.rung]
        marker = "D" if row.role == "peer" else "o"
        axes.plot(
            x,
            y,
            marker,
            color=colour,
            markersize=6 if shown else 3,
            alpha=1 if shown else 0.25,
            markeredgewidth=0,
        )
        if study.above_roof(row):
            axes.plot(x, y, "o", markersize=11, markerfacecolor="none", color=style.ALARM)
            text = f"{row.rung}: above its roof"
            style.note(axes, text, (x, y), (-7, 4), ha="right", color=style.ALARM)
        if shown:
            ends.append((x, y, names[row.rung], colour))
    style.label_ends(axes, ends, width, _HEIGHT)
    return figure


def _draw_roofs(
    axes: Axes, memory: dict[str, float], arithmetic: dict[str, float], width: float
) -> None:
    """Draw memory roofs as slopes up to the highest arithmetic roof, each named along its line."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    flat = max(arithmetic.values()) / 1e12
    decades = math.log10(y1 / y0) / math.log10(x1 / x0)
    angle = math.degrees(math.atan(_HEIGHT / width / decades))
    ordered = sorted(memory.items(), key=lambda item: item[1])
    before_ridge = 10 ** (0.3 / width * math.log10(x1 / x0))  # 0.3 inches, as a factor
    for i, (name, bandwidth) in enumerate(ordered):
        slope = bandwidth / 1e12
        ridge = flat / slope
        axes.plot([x0, ridge], [slope * x0, flat], color=style.GREY, linewidth=1.2)
        lowest = i == 0 and len(ordered) > 1  # its name goes below, clear of its neighbour's
        style.note(
            axes,
            f"{name} {units.rate('bytes', bandwidth)}",
            (ridge / before_ridge, flat / before_ridge),
            (4, -4) if lowest else (-4, 4),
            ha="right",
            va="top" if lowest else "bottom",
            rotation=angle,
            rotation_mode="anchor",
        )
    steepest = ordered[-1][1] / 1e12
    for name, speed in arithmetic.items():
        y = speed / 1e12
        axes.plot([y / steepest, x1], [y, y], color=style.GREY, linewidth=1.2)
        style.note(axes, f"{name} {units.rate('flops', speed)}", (x1, y), (-2, 3), ha="right")
