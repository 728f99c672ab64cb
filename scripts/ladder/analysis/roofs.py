# SPDX-License-Identifier: MIT
"""The limits of a GPU: as the ladder of roofs measured them, and as its datasheet states them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from ladder.analysis.study import ABOVE_ROOF_PERCENT, own_speed, studies
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row

_DATASHEETS = Path(__file__).with_name("datasheet.toml")

# Which figure of a datasheet is the peak of a roof; the others have none.
_PEAKS = dict.fromkeys(("memcpy", "dram_copy", "dram_read", "dram_write"), "dram_bytes_per_second")
_PEAKS |= {"fma": "fp32", "tf32": "tf32", "bf16": "bf16"}
# The latency that bytes in flight must cover for a roof of loads.
_LATENCIES = {
    "dram_read": "global_dram",
    "l2_read": "global_l2",
    "shared_memory": "shared",
    "distributed_shared_memory": "distributed",
}
SLOW_MARK = "†"  # of a speed whose clock was below 90 % of the highest, as the program judged
LATE_MARK = "‡"  # of a speed whose samples may hold time of the host
MARKS = {
    SLOW_MARK: "the clock was throttled",
    LATE_MARK: "in some samples the GPU may have waited for the host",
}


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
    """Return the datasheet of a GPU, by the driver's name for it; None if it is not known."""
    return _datasheets().get(gpu)


def measured(results: Results) -> dict[str, Row]:
    """Return the best row of each roof by its rung's name: the fastest in its own quantity.

    Empty where no ladder of roofs was measured. Rows that a filter left out count too.
    """
    ladders = {ladder.name for ladder in results.ladders if ladder.is_roof}
    best: dict[str, Row] = {}
    for row in results.ceilings:
        if row.ladder not in ladders or not own_speed(row) > 0:
            continue
        if row.rung not in best or own_speed(row) > own_speed(best[row.rung]):
            best[row.rung] = row
    return best


def bytes_in_flight(results: Results, roof: str) -> float:
    """Return the bytes that must be in flight to reach a roof of loads, of the whole GPU.

    It is bandwidth times latency (Little 1961); NaN where either was not measured.
    """
    found = measured(results)
    loads = found.get(roof), found.get(_LATENCIES.get(roof, ""))
    return own_speed(loads[0]) / own_speed(loads[1]) if loads[0] and loads[1] else math.nan


def slow_clocks(results: Results, rows: Iterable[Row]) -> str:
    """Say that these rows' clocks were throttled, and to how many MHz; empty if none was."""
    slow = [row for row in rows if row.throttled > 0]
    found = [row.sm_clock_hz / 1e6 for row in slow if row.sm_clock_hz > 0]
    span = dict.fromkeys(f"{clock:.0f}" for clock in (min(found), max(found))) if found else {}
    top = units.parse(results.context.get("sm_clock_max_hz")) / 1e6
    told = f" to {' or '.join(span)} MHz of {top:.0f}" if found and top > 0 else ""
    return f"{MARKS[SLOW_MARK]}{told}" if slow else ""


def marks(row: Row) -> str:
    """Return the signs that stand after a row's speed."""
    return SLOW_MARK * (row.throttled > 0) + LATE_MARK * (row.late_samples > 0)


def explained(rows: Iterable[Row]) -> dict[str, str]:
    """Return what each sign after the speeds of these rows means, by the sign."""
    used = "".join(map(marks, rows))
    return {mark: told for mark, told in MARKS.items() if mark in used}


def percent_of_peak(results: Results, row: Row) -> float:
    """Percent of the datasheet's peak that a roof's row reaches; NaN where no peak is known."""
    sheet = datasheet(results.gpu)
    return 100 * own_speed(row) / sheet.peak(row.rung) if sheet else math.nan


def problems(results: Results, ladders: Collection[str]) -> list[str]:
    """Say which rows of these ladders beat their ceiling, and which roofs beat the datasheet.

    Either means that the accounting is wrong, or that the GPU ran above its boost clock.
    """
    found = [
        f"{row.name}: {study.percent(row):.1f}% of its ceiling "
        + study.spell_ceiling(row).replace("`", "")
        for study in studies(results)
        if study.ladder.name in ladders
        for row in study.rows
        if row.status == "ok" and study.above_roof(row)
    ]
    for row in measured(results).values():
        percent = percent_of_peak(results, row)
        if row.ladder in ladders and percent > ABOVE_ROOF_PERCENT:
            found.append(f"{row.name}: {percent:.1f}% of the datasheet's peak")
    return found
