# SPDX-License-Identifier: MIT
"""The limits of a GPU: measured by the ladder of roofs, and as its datasheet states them."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from ladder.results import Results
from ladder.study import ABOVE_ROOF_PERCENT, Row, own_speed, studies

_DATASHEETS = Path(__file__).with_name("datasheet.toml")

# Which figure of a datasheet is the peak of a roof; the others have none.
_PEAKS = dict.fromkeys(("memcpy", "dram_copy", "dram_read", "dram_write"), "dram_bytes_per_second")
_PEAKS |= {"fma": "fp32", "tf32": "tf32", "bf16": "bf16"}


@dataclass(frozen=True)
class Datasheet:
    """What its maker says a GPU can do at most: bytes/s, and FLOP/s without sparsity."""

    dram_bytes_per_second: float
    fp32: float
    tf32: float
    bf16: float
    source: str

    def peak(self, roof: str) -> float:
        """Peak of a roof by its rung's name, in bytes/s or FLOP/s; NaN where there is none."""
        return getattr(self, _PEAKS[roof]) if roof in _PEAKS else math.nan


@cache
def _datasheets() -> dict[str, Datasheet]:
    names = [field.name for field in fields(Datasheet)]
    tables = tomllib.loads(_DATASHEETS.read_text(encoding="utf-8"))
    return {gpu: Datasheet(*(table[n] for n in names)) for gpu, table in tables.items()}


def datasheet(gpu: str) -> Datasheet | None:
    """Return the datasheet of a GPU by the driver's name for it; None of one not in the table."""
    return _datasheets().get(gpu)


def speed(row: Row) -> float:
    """Speed of a roof's row in its own quantity; of `l2_read` only of what L2 gave, where counted.

    Neighbours that ask for the same at once are answered once, before their requests reach L2.
    """
    if row.rung == "l2_read" and row.l2_bytes > 0:
        return row.l2_bytes / row.seconds
    return own_speed(row)


def measured(results: Results) -> dict[str, Row]:
    """Return the best row of each roof by its rung's name: the fastest in its own quantity.

    Empty where no ladder of roofs was measured. Rows that a filter left out count too.
    """
    ladders = {ladder.name for ladder in results.ladders if ladder.is_roof}
    best: dict[str, Row] = {}
    for row in results.ceilings.itertuples(index=False):
        if row.ladder not in ladders or not speed(row) > 0:
            continue
        if row.rung not in best or speed(row) > speed(best[row.rung]):
            best[row.rung] = row
    return best


def percent_of_peak(results: Results, row: Row) -> float:
    """Percent of the datasheet's peak that a roof's row reaches; NaN where no peak is known."""
    sheet = datasheet(results.gpu)
    return 100 * own_speed(row) / sheet.peak(row.rung) if sheet else math.nan


def problems(results: Results) -> list[str]:
    """Name the rows that beat their ceiling, and the measured roofs above their datasheet.

    Either is a fault of the accounting, or of a GPU that ran above its boost clock.
    """
    found = [
        f"{row.name}: {study.percent(row):.1f}% of its ceiling {study.ladder.ceiling}"
        for study in studies(results)
        for row in study.rows
        if row.status == "ok" and study.above_roof(row)
    ]
    for row in measured(results).values():
        if (percent := percent_of_peak(results, row)) > ABOVE_ROOF_PERCENT:
            found.append(f"{row.name}: {percent:.1f}% of the datasheet's peak")
    return found
