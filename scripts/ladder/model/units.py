# SPDX-License-Identifier: MIT
"""Figures as people read them: three digits and a decimal unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_UNITS = {  # (least speed, divisor, unit); memory speeds are compared in GB/s up to 10 TB/s
    "flops": ((1e12, 1e12, "TFLOP/s"), (0.0, 1e9, "GFLOP/s")),
    "bytes": ((1e13, 1e12, "TB/s"), (0.0, 1e9, "GB/s")),
    "atomics": ((1e9, 1e9, "G atomics/s"), (0.0, 1e6, "M atomics/s")),
}
SMALL_KERNEL = "small_kernel_nanoseconds"  # in the context of results: how long it took
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def rate_unit(quantity: str, speeds: Iterable[float]) -> tuple[float, str]:
    """Return (divisor, unit) that suits the fastest of `speeds`, in FLOP/s or bytes/s."""
    fastest = max((s for s in speeds if s == s), default=0.0)
    return next((divisor, unit) for least, divisor, unit in _UNITS[quantity] if fastest >= least)


def rate(quantity: str, speed: float) -> str:
    """Write a speed given per second, as `35.5 TFLOP/s`; NaN is empty.

    Loads that wait for one another are told by the time of one, their latency.
    """
    if quantity == "loads":
        return duration(1 / speed) if speed > 0 else ""
    divisor, unit = rate_unit(quantity, [speed])
    return f"{number(speed / divisor)} {unit}" if speed == speed else ""


def number(value: float) -> str:
    """Write three significant digits, never dropping digits left of the point; NaN is empty."""
    if value != value:
        return ""
    digits = next(
        (d for d, limit in ((0, 99.95), (1, 9.995), (2, 0.9995)) if abs(value) >= limit), 3
    )
    return f"{value:.{digits}f}"


def count(value: float) -> str:
    """Write three digits below a thousand, else a whole number in groups; NaN is empty."""
    if value != value:
        return ""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def whole(value: float) -> str:
    """Write a count that is a whole number, in groups; NaN is empty."""
    return "" if value != value else f"{value:,.0f}"


def scaled(value: float, unit: str) -> str:
    """Write any quantity with a decimal prefix, as `12.5 MB/s`; NaN is empty.

    A blank stands before a unit that is a word: `3.10 k items/s`. What is below one, or beyond
    every prefix, has none.
    """
    if value != value:
        return ""
    prefix = next((p for p in reversed(_PREFIXES) if abs(value) >= 0.9995 * _PREFIXES[p]), "")
    if abs(value) >= 1e18 or abs(value) < 0.9995:
        return f"{value:.3g} {unit}".rstrip()
    apart = " " if prefix and re.match("[a-z]", unit) else ""
    return f"{number(value / _PREFIXES[prefix])} {prefix}{apart}{unit}".rstrip()


def percent(value: float) -> str:
    """Write percent as a whole number, with one digit below ten; NaN is empty."""
    return "" if value != value else f"{value:.{0 if abs(value) >= 9.95 else 1}f}%"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return (seconds in the unit, unit) that keeps a time at one or more."""
    return next((unit for unit in _TIMES if seconds >= unit[0]), _TIMES[-1])


def duration(seconds: float) -> str:
    """Write a time in the unit that keeps it at one or more; NaN is empty."""
    if seconds != seconds:
        return ""
    factor, unit = time_unit(seconds)
    told = number(seconds / factor)
    # Of many threads an iteration's time may be far below a nanosecond.
    return f"{told if seconds == 0 or seconds >= 1e-10 else f'{seconds / factor:.3g}'} {unit}"


def kibibytes(size: float) -> str:
    """Write a size in KiB, as shared memory is counted; small sizes in bytes."""
    if size != size:
        return ""
    return f"{number(size / 1024)} KiB" if size >= 1024 else f"{size:.0f} B"


def memory(size: float) -> str:
    """Write the size of a memory with up to four digits: `256 KiB`, `4 GiB`; NaN is empty."""
    if size != size:
        return ""
    prefixes = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
    divisor, unit = next((p for p in prefixes if size >= p[0]), (1.0, "B"))
    return f"{size / divisor:.4g} {unit}"


def power_of_two(value: str) -> str:
    """Write a power of two from 1024 as 2 with its exponent raised; else return it as it is."""
    if not value.isdecimal() or int(value) < 1024 or int(value) & (int(value) - 1):
        return value
    return "2" + str(int(value).bit_length() - 1).translate(_SUPERSCRIPTS)


def ratio(value: float) -> str:
    """Write a ratio with two decimals, three below a tenth."""
    return f"{value:.{2 if value >= 0.0995 else 3}f}×"


def gain(value: float) -> str:
    """Write a speed over that of a parent: as `ratio` below ten, else with three digits.

    NaN is empty.
    """
    return ratio(value) if value < 9.995 else f"{number(value)}×" if value == value else ""


def parse(text: object) -> float:
    """Read a number that a file's context holds as text; NaN if it is none."""
    try:
        return float(str(text))
    except ValueError:
        return math.nan
