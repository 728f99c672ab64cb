# SPDX-License-Identifier: MIT
"""Transactions a request, rung by rung: wavefronts of shared memory, sectors of other memory."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.emulated_study import Tally, ideal, per_request
from ladder.analysis.study import describe, name_of
from ladder.model import units
from ladder.model.counters import OPERATIONS, SPACES
from ladder.model.rows import Row
from ladder.report.plots import style

_BAR, _GAP, _RIGHT, _BETWEEN = 0.15, 0.14, 0.5, 0.75  # inches
_TOP, _BOTTOM = 1.25, 0.4
START = 0.7  # where bars begin on the logarithmic axis: one transaction has to be seen
_DISTRIBUTED, _ALL = "distributed shared", "requests of any kind"  # one figure for all operations
_UNITS = SPACES | {_DISTRIBUTED: "sectors"}
_COLOURS = dict(zip((*OPERATIONS, _ALL), ("#0072b2", "#e69f00", "#cc79a7", "#888888"), strict=True))


def draw(tally: Tally) -> Figure:
    """Draw a group of bars per rung, and on each bar the fewest transactions it could take."""
    used = {
        space: [o for o in _COLOURS if any(_each(r, space, o) > 0 for _, r in tally.shown)]
        for space in _UNITS
    }
    spaces = [space for space, operations in used.items() if operations]
    if not spaces:
        raise style.NothingToDrawError("no rung made a request of shared or global memory")
    names = [name_of(rung, row) for rung, row in tally.shown]
    group = _BAR * max(map(len, used.values())) + _GAP
    body = group * len(names)
    left = 0.35 + style.widest(names)
    room = style.PAGE - left - _RIGHT - _BETWEEN * (len(spaces) - 1)
    width = max(2.0, room / len(spaces))
    total = left + len(spaces) * width + (len(spaces) - 1) * _BETWEEN + _RIGHT
    line = "\n" if _DISTRIBUTED in spaces else " "  # where three panels are too narrow for one
    top = _TOP + (0.17 if line == "\n" else 0)
    figure = style.page(
        total,
        top + body + _BOTTOM,
        f"{tally.title}: transactions a request",
        f"{describe(tally.results)}, at {tally.spell(tally.headline)}",
    )
    shown = [o for o in _COLOURS if any(o in used[space] for space in spaces)]
    kinds = [(f"{o}s" if o in OPERATIONS else o, _COLOURS[o]) for o in shown]
    style.legend(figure, kinds, "┃ fewest for as many bytes")
    most = max(
        _each(r, s, o)
        for s in spaces
        for o in used[s]
        for _, r in tally.shown
        if _each(r, s, o) > 0
    )
    for i, space in enumerate(spaces):
        axes = style.panel(figure, left + i * (width + _BETWEEN), _BOTTOM, width, body)
        _bars(axes, tally, space, used[space], max(most, 32), group)
        title = f"{space} memory:{line}{_UNITS[space]} a request"
        axes.set_title(title, loc="left", size=style.NORMAL, weight="bold")
        axes.set_yticks(range(len(names)), names if i == 0 else [], size=style.NORMAL)
    return figure


def _each(row: Row, space: str, operation: str) -> float:
    """Transactions a request; of distributed shared memory only those of all operations."""
    if (space == _DISTRIBUTED) != (operation == _ALL):
        return math.nan
    if space == _DISTRIBUTED:
        return row.distributed_sectors / (row.distributed_requests or math.nan)
    return per_request(row, space, operation)


def _bars(
    axes: Axes, tally: Tally, space: str, operations: list[str], most: float, group: float
) -> None:
    thick = _BAR / group  # of a rung's unit height
    for y, (_, row) in enumerate(tally.shown):
        for i, operation in enumerate(operations):
            value = _each(row, space, operation)
            if not value > 0:
                continue
            at = y + thick * (i - (len(operations) - 1) / 2)
            axes.barh(at, value - START, left=START, height=0.9 * thick, color=_COLOURS[operation])
            least = math.nan if operation == _ALL else ideal(row, space, operation)
            if least > 0:
                ends = [at - 0.45 * thick, at + 0.45 * thick]
                axes.plot([least] * 2, ends, color="black", linewidth=2, solid_capstyle="butt")
            end = max(value, least) if least > 0 else value
            style.note(axes, units.count(value), (end, at), (4, 0), va="center", color="black")
    axes.set(xscale="log", xlim=(START, 1.2 * most), ylim=(len(tally.shown) - 0.5, -0.5))
    ticks = [t for t in (1, 2, 4, 8, 16, 32, 64, 128) if t <= most]
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", color=style.FAINT, linewidth=0.5)
    axes.tick_params(axis="y", length=0)
