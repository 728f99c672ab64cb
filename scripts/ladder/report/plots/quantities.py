# SPDX-License-Identifier: MIT
"""Hardware counters as a reader wants them: in words, and with their unit."""

from __future__ import annotations

import math

from ladder.analysis.limits import STALLS
from ladder.model import counters, units
from ladder.model.rows import Row

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def words(counter: str) -> str:
    """Name a counter in words: `shared load wavefronts per request`."""
    if counter in STALLS:
        return f"warps wait for {STALLS[counter]}"
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


def decimal(amount: float) -> str:
    """Write three digits and a decimal prefix, a space between: `134 M`."""
    divisor, prefix = next((d for d in _DECIMAL if abs(amount) >= 0.9995 * d[0]), (1.0, ""))
    scaled = amount / divisor
    text = f"{scaled:.0f}" if scaled == round(scaled) and not prefix else units.number(scaled)
    return f"{text} {prefix}"


def counter(row: Row | None, name: str) -> float:
    """Value of a row's counter; NaN where the row, or the whole file, has none."""
    return row.counter(name) if row else math.nan
