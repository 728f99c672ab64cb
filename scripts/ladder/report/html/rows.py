# SPDX-License-Identifier: MIT
"""Tables that the page's script draws. Numeric cells sort by the number behind their text."""

from __future__ import annotations

import math
from itertools import compress
from typing import Any
from urllib.parse import quote

from ladder.analysis import roofs
from ladder.analysis.limits import Limits
from ladder.analysis.study import Study, name_of, own_quantity, own_speed
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row, bare
from ladder.report import comparison_text, markdown
from ladder.stats.compare import Comparison
from ladder.stats.verdicts import Change

_COLUMNS = (  # title, and whether it is a number; those of which no row has a cell are left out
    ("rung", False),  # or the benchmark of no ladder
    ("speed", True),
    ("time", True),
    ("case", False),
    ("ladder", False),
    ("CPU time", True),
    ("iterations", True),
    ("threads", True),
    ("% of ceiling", True),
    ("× peer", True),
    ("limited by", False),
    ("occupancy", True),
    ("registers", True),
    ("error", True),
    ("label", False),
    ("status", False),
)
_RATES = (("bytes_per_second", "B/s"), ("items_per_second", "items/s"))  # the first is the speed
_CHANGES = tuple((title, title in ("base", "head", "ratio")) for title in comparison_text.HEADER)


def route(*names: str) -> str:
    """Return the fragment of a ladder's or a rung's page, less the GPU."""
    return "/" + "/".join(quote(name, safe="") for name in names)


def block(columns: tuple[tuple[str, bool], ...], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a table: the columns, and each row's name, route and cells.

    A cell is None if it is empty, else a text, or a text and the number that it is sorted by. The
    route is that of the row's rung; it is empty for a row of no known ladder.
    """
    return {"columns": columns, "rows": rows}


def packed(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table of `block` as the page holds it, where ten thousand rows are to be small.

    A row is a list: name, route, 1 where it is bad, and the cells of those columns that have any. A
    text, of which many rows have the same, is its place in `texts`.
    """
    texts: dict[str, int] = {}

    def place(cell: Any) -> Any:
        return texts.setdefault(cell, len(texts)) if isinstance(cell, str) else cell

    rows = [
        [place(row["name"]), place(row["link"]), int(row["bad"]), *map(place, row["cells"])]
        for row in table["rows"]
    ]
    used = [any(cell is not None for cell in column) for column in zip(*rows, strict=True)][3:]
    kept = [True, True, True, *used]
    return {
        "columns": list(compress(table["columns"], used)),
        "texts": list(texts),
        "rows": [list(compress(row, kept)) for row in rows],
    }


def of_results(results: Results, found: list[Study], limits: Limits) -> dict[str, Any]:
    """Return all rows: those of ladders, of roofs, and of no known ladder."""
    ordered = sorted(found, key=lambda study: study.ladder.is_roof)
    rows = [_row(study, row, limits) for study in ordered for row in study.rows]
    foreign = [_foreign(row) for row in results.rows if row.ladder == ""]
    first = ("benchmark", False) if foreign else _COLUMNS[0]
    return block((first, *_COLUMNS[1:]), rows + foreign)


def of_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return all changes in time, the gravest first."""
    ordered = sorted(comparison.changes, key=comparison_text.gravity)
    return block(_CHANGES, [_change(comparison, change) for change in ordered])


def _row(study: Study, row: Row, limits: Limits) -> dict[str, Any]:
    roof = study.ladder.is_roof
    speed = own_speed(row) if roof else study.speed(row)
    quantity = own_quantity(row) if roof else study.ladder.quantity
    peer = study.peer(row.precision, row.case) if speed > 0 else None
    limiter = limits.limiter(row) if row.status == "ok" else None
    percent = study.percent(row)
    return {
        "name": bare(row.name),
        "link": route(row.ladder, row.rung),
        "bad": row.status == "error",
        "cells": [
            name_of(study.rung(row), row),
            _cell(units.rate(quantity, speed) + roofs.marks(row), speed),
            _cell(units.duration(row.seconds), row.seconds),
            study.spell(row.case),
            study.ladder.title,
            *[None] * 3,  # of the host
            _cell(units.percent(percent), percent),
            _cell(study.to_peer(row), speed / study.speed(peer)) if peer else None,
            str(limiter) if limiter else None,
            *_resources(row),
            None,
            _status(row),
        ],
    }


def _foreign(row: Row) -> dict[str, Any]:
    times = [_cell(units.duration(seconds), seconds) for seconds in (row.seconds, row.cpu_seconds)]
    counts = [_cell(units.whole(count), count) for count in (row.iterations, row.threads)]
    rate = next((r for r in _RATES if row.counter(r[0]) == row.counter(r[0])), None)
    speed = (
        _cell(units.scaled(row.counter(rate[0]), rate[1]), row.counter(rate[0])) if rate else None
    )
    seconds, *cpu = times
    return {
        "name": row.name,
        "link": "",
        "bad": row.status == "error",
        "cells": [
            row.name,
            speed,
            seconds,
            *[None] * 2,
            *cpu,
            *counts,
            *[None] * 3,
            *_resources(row),
            row.label,
            _status(row),
        ],
    }


def _resources(row: Row) -> list[Any]:
    registers, _, theoretical = markdown.resources(row).values()
    achieved = units.percent(100 * row.achieved_occupancy)
    occupancy = f"{achieved} of {theoretical}" if achieved and theoretical else theoretical
    share = row.achieved_occupancy if achieved else row.theoretical_occupancy
    error = f"{row.relative_error:.2g}" if row.relative_error >= 0 else ""
    return [
        _cell(occupancy or achieved, share),
        _cell(registers, row.registers),
        _cell(error, row.relative_error),
    ]


def _status(row: Row) -> str:
    """Say what became of a row: why it failed, or what the signs after its speed mean."""
    told = ", ".join(filter(None, (row.reason, *roofs.explained([row]).values())))
    return f"{row.status}: {told}" if told else row.status


def _change(comparison: Comparison, change: Change) -> dict[str, Any]:
    verdict, name, base, head, ratio, span, why = comparison_text.cells(comparison, change)
    return {
        "name": name,
        "link": "",
        "bad": change.fails,
        "cells": [
            [verdict, comparison_text.gravity(change)[0]],
            name,
            _cell(base, change.base_seconds),
            _cell(head, change.head_seconds),
            _cell(ratio, change.ratio),
            span or None,
            why,
        ],
    }


def _cell(text: str, value: float) -> list[str | float] | str | None:
    return [text, float(f"{value:.5g}")] if text and math.isfinite(value) else text or None
