# SPDX-License-Identifier: MIT
"""Hardware counters as a reader wants them: in words, and with their unit."""

from __future__ import annotations

import math

from ladder.model import counters, units
from ladder.model.rows import Row

SECTOR, WAVEFRONT = 32, 128  # bytes of a sector, and of a wavefront that serves every bank
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def words(counter: str) -> str:
    """Name a counter in words: `shared load wavefronts per request`."""
    if counter.startswith("stall_"):
        counter = f"warps stalled: {counter.removeprefix('stall_')}"
    return counter.replace("_", " ").replace("dram", "DRAM").replace("fp32", "FP32")


def value(counter: str, amount: float) -> str:
    """Write a counter's value; NaN is empty."""
    if math.isnan(amount):
        return ""
    known = counters.OWN.get(counter)
    unit = known.unit if known else ""
    if unit == "share":
        return units.percent(100 * amount)
    if known and unit == "B":
        of_launch = known.kind == counters.PROPERTY
        return units.kibibytes(amount) if of_launch else decimal(amount) + "B"
    if counter.endswith("_per_request"):
        return units.count(amount)
    return decimal(amount).rstrip()


def times(ratio: float) -> str:
    """Write a ratio with three digits, or two decimals below ten."""
    return units.ratio(ratio) if ratio < 9.995 else f"{units.number(ratio)}×"


def decimal(amount: float) -> str:
    """Write three digits and a decimal prefix, a space between: `134 M`."""
    divisor, prefix = next((d for d in _DECIMAL if abs(amount) >= 0.9995 * d[0]), (1.0, ""))
    scaled = amount / divisor
    text = f"{scaled:.0f}" if scaled == round(scaled) and not prefix else units.number(scaled)
    return f"{text} {prefix}"


def counter(row: Row | None, name: str) -> float:
    """Value of a row's counter; NaN where the row, or the whole file, has none."""
    return row.counter(name) if row else math.nan


def counted(row: Row) -> bool:
    """Whether the hardware counted anything of a row."""
    return counter(row, "warp_instructions") > 0


def sectors(row: Row) -> float:
    """Sectors of 32 bytes that a row's loads, stores and atomics of global memory asked for."""
    return _sum(row, "global", "sectors")


def wavefronts(row: Row) -> float:
    """Wavefronts that a row's loads, stores and atomics of shared memory took."""
    return _sum(row, "shared", "wavefronts")


def _sum(row: Row, space: str, what: str) -> float:
    """Sum over operations, of which those that were not counted are none; NaN if none was."""
    found = [counter(row, f"{space}_{o}_{what}") for o in ("load", "store", "atomic")]
    found = [amount for amount in found if not math.isnan(amount)]
    return sum(found) if found else math.nan


def level_bytes(row: Row) -> dict[str, float]:
    """Bytes that a row moved at each level of memory, by the level's name; NaN if not counted."""
    shared = wavefronts(row)
    # No load counts operands of wgmma. (Up to 3 % of the pipe is moves that compilers put there.)
    if counter(row, "tensor_utilisation") > 0.05:
        everything = counter(row, "shared_wavefronts")
        shared = shared if math.isnan(everything) else everything
    return {
        "DRAM": counter(row, "dram_bytes"),
        "L2": counter(row, "l2_bytes"),
        "shared memory": WAVEFRONT * shared,
    }
