# SPDX-License-Identifier: MIT
"""Occupancy by rung: what the launch allows, and what the hardware counted."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe, name_of
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import quantities, style

_BAR, _LEAST_WIDTH, _TOP, _BOTTOM = 0.32, 2.4, 1.35, 0.6  # inches


def rows(study: Study) -> list[tuple[Rung, Row]]:
    """The rungs whose warps the hardware counted at the headline, in climbing order."""
    found = [(rung, study.ok(rung, study.headline)) for rung in study.rungs]
    return [(g, row) for g, row in found if row and _achieved(row) > 0]


def _achieved(row: Row) -> float:
    return 100 * quantities.counter(row, "achieved_occupancy")


def _theoretical(row: Row) -> float:
    return 100 * quantities.counter(row, "theoretical_occupancy")


def draw(study: Study, found: list[tuple[Rung, Row]]) -> Figure:
    """Draw a bar per rung as long as was achieved, and on it a mark at what is possible."""
    columns = _columns([row for _, row in found])
    names = [name_of(rung, row) for rung, row in found]
    left = 0.35 + style.widest(names)
    right = style.columns_width(columns) + 0.2
    width = max(style.PAGE, left + _LEAST_WIDTH + right)
    body = _BAR * len(found)
    height = _TOP + body + _BOTTOM
    about = f"{describe(study.results)}, at {study.spell(study.headline)}"
    figure = style.page(width, height, f"{study.ladder.title}: occupancy", about)
    key = "bar: achieved" + ("    ┃ theoretical" if "theoretical" in columns else "")
    axes = style.panel(figure, left, _BOTTOM, width - left - right, body)
    style.note(axes, key, (0, 1), (0, 5), coordinates="axes fraction", color="black")
    colours = style.colours(study.ladder)
    for y, (rung, row) in enumerate(found):
        axes.barh(y, _achieved(row), height=0.62, **style.bar_style(rung, colours[rung.name]))
        if not math.isnan(possible := _theoretical(row)):
            ends = [y - 0.42, y + 0.42]
            look: style.Look = {"color": "black", "linewidth": 2.5, "solid_capstyle": "butt"}
            axes.plot([possible] * 2, ends, clip_on=False, **look)
    axes.set(
        xlim=(0, 100),
        ylim=(len(found) - 0.5, -0.5),
        xlabel="percent of the warps that an SM can hold",
    )
    axes.set_yticks(range(len(names)), names, size=style.NORMAL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=style.FAINT, linewidth=0.5)
    style.text_columns(axes, columns, width - left - right)
    return figure


def _columns(found: list[Row]) -> dict[str, list[str]]:
    """Texts right of the bars, by header; columns that no row has anything for are left out."""
    columns = {
        "achieved": [units.percent(_achieved(row)) for row in found],
        "theoretical": [units.percent(_theoretical(row)) for row in found],
        "threads, a block": [_whole(row.block_threads) for row in found],
        "blocks, an SM": [_whole(row.blocks_per_sm) for row in found],
        "registers": [_whole(row.registers) for row in found],
        "shared": [_shared(row) for row in found],
    }
    return {header: cells for header, cells in columns.items() if any(cells)}


def _whole(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0f}"


def _shared(row: Row) -> str:
    return units.kibibytes(row.static_shared_bytes + row.dynamic_shared_bytes)
