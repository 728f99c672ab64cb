# SPDX-License-Identifier: MIT
"""Families of any Google Benchmark suite over an argument, and the fits that the library made.

A row's name is a path: `BM_sort<int>/size:1024/real_time/threads:8`. A segment is an argument if it
is a whole number or `name:value`. All other segments belong to the family, as does what the library
itself adds (`real_time`, `repeats:3`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median
from typing import Any

from ladder.io.entries import SECONDS
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row

UNNAMED, THREADS = "argument", "threads"
_OF_FAMILY = ("min_time", "min_warmup_time", "iterations", "repeats")  # the same in all of it
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAMED = re.compile(r"([^:/]+):([^:/]+)")
_TWICE = re.compile(r"#\d+$")  # what `ladder.io` adds where families have the same name
_OPEN, _CLOSE = "<([{", ">)]}"
_AGREES = 0.01  # relative difference of a fit's coefficient from that of its rows

# The curves that Google Benchmark names, of its N.
_CURVES: Mapping[str, Callable[[float], float]] = {
    "(1)": lambda _: 1.0,
    "lgN": math.log2,
    "N": lambda n: n,
    "NlgN": lambda n: n * math.log2(n),
    "N^2": lambda n: n**2,
    "N^3": lambda n: n**3,
}


@dataclass(frozen=True)
class Name:
    """A row's name in its parts. Several unnamed arguments are numbered: `argument 1`."""

    segments: tuple[str, ...]
    places: dict[str, int]  # segment by argument
    values: dict[str, str]  # by argument, in order
    number: str  # "#2", or empty

    @cached_property
    def family(self) -> str:
        """The name without its arguments."""
        own = set(self.places.values())
        return "/".join(s for i, s in enumerate(self.segments) if i not in own) + self.number

    def without(self, arguments: Iterable[str]) -> str:
        """Return the name without some arguments, a star for one that only its place tells."""
        left_out = {self.places[argument]: argument for argument in arguments}
        kept = (
            "*" if left_out[i].startswith(f"{UNNAMED} ") else ""
            for i, segment in enumerate(self.segments)
            if i in left_out
        )
        stars = dict(zip(sorted(left_out), kept, strict=True))
        found = (stars.get(i, segment) for i, segment in enumerate(self.segments))
        return "/".join(filter(None, found)) + self.number


@dataclass(frozen=True)
class Fit:
    """What Google Benchmark fitted to a family: `seconds` of one run, times a curve of N.

    The file does not say what N is. `argument` is the one for which a fit of the rows' times gives
    the file's coefficient. It is empty where no argument does, or the curve is the program's own.
    """

    curve: str  # as the file has it: "N", "NlgN", "(1)", "f(N)"
    seconds: float
    cpu_seconds: float
    rms: float  # of the CPU time, over its mean; a fraction
    argument: str = ""
    reason: str = ""  # why it cannot be drawn

    def told(self, *, cpu: bool = False) -> str:
        """Write it as `14.0 ns × N`; empty where the file does not tell the CPU's."""
        seconds = self.cpu_seconds if cpu else self.seconds
        if math.isnan(seconds):
            return ""
        # What a single N takes may be far below a nanosecond, and a fit's may be below zero.
        time = units.duration(seconds) if seconds >= 1e-9 else f"{seconds / 1e-9:.3g} ns"
        return time if self.curve == "(1)" else f"{time} × {self.curve}"

    def at(self, value: float, *, cpu: bool = False) -> float:
        """Return the fitted seconds at a value of `argument`."""
        return (self.cpu_seconds if cpu else self.seconds) * _CURVES[self.curve](value)


@dataclass(frozen=True)
class Line:
    """Rows that differ in one argument alone; `name` is theirs without it."""

    name: str
    family: str
    points: dict[float, Row]  # by value, rising


@dataclass(frozen=True)
class Sweep:
    """Families over an argument that they share, with some of its values in common.

    Arguments that change together, as the three sizes of a square matrix product, count as one: the
    first of `arguments` lies along the axis.
    """

    arguments: tuple[str, ...]
    labels: dict[float, str]  # of all values, rising, as the names spell them
    lines: list[Line]
    fits: dict[str, Fit] = field(default_factory=dict)  # by family

    @property
    def title(self) -> str:
        """The argument's name; of several that go together `m = n` or `m, n`."""
        equal = not any(", " in label for label in self.labels.values())
        return (" = " if equal else ", ").join(self.arguments)


def spell(name: str) -> Name:
    """Split a row's name into its family and its arguments."""
    number = found[0] if (found := _TWICE.search(name)) else ""
    segments = _split(name.removesuffix(number) if number else name)
    places: dict[int, str] = {}  # argument by segment
    for i, segment in enumerate(segments):
        named = _NAMED.fullmatch(segment)
        if i == 0 or (named and named[1] in _OF_FAMILY):
            continue
        if named:
            places[i] = named[1]
        elif segment.removeprefix("-").isdecimal():
            places[i] = UNNAMED
    count = Counter(places.values())
    seen: Counter[str] = Counter()
    arguments, values = {}, {}
    for i, argument in places.items():
        seen[argument] += 1
        unique = f"{argument} {seen[argument]}" if count[argument] > 1 else argument
        arguments[unique] = i
        values[unique] = segments[i].rpartition(":")[2]
    return Name(tuple(segments), arguments, values, number)


def sweeps(results: Results) -> list[Sweep]:
    """Return the rows of no ladder as sweeps over arguments that vary; failed rows too.

    A family is shown over the argument of its fit, or else the numeric one with most values.
    Families with the same argument share a sweep if they have half of its values in common. The
    result is empty for results that were not timed.
    """
    rows = [(spell(row.name), row) for row in results.rows if not row.ladder]
    if results.source != "timed" or not rows:
        return []
    fits = _fits(results, {name.family for name, _ in rows})
    by_family: dict[tuple[str, tuple[str, ...]], list[tuple[Name, Row]]] = {}
    for name, row in rows:
        by_family.setdefault((name.family, tuple(name.values)), []).append((name, row))
    found: list[Sweep] = []
    for (family, arguments), members in by_family.items():
        fit = fits.get(family)
        names = [name for name, _ in members]
        argument = _argument(names, arguments, fit)
        if not argument:
            continue
        together = _together(names, argument)
        labels = {float(name.values[argument]): _label(name, together) for name in names}
        lines = _lines(family, together, members)
        _put(found, Sweep(together, labels, lines, {family: fit} if fit else {}))
    return found


def left_out(results: Results, found: Iterable[Sweep]) -> list[Row]:
    """Return the rows of no ladder that are in none of these sweeps."""
    swept = {id(row) for sweep in found for line in sweep.lines for row in line.points.values()}
    return [row for row in results.rows if not row.ladder and id(row) not in swept]


def _split(name: str) -> list[str]:
    """Split at slashes outside of brackets; at all of them where brackets do not match."""
    if not any(bracket in name for bracket in _OPEN):
        return name.split("/")
    segments, start, depth = [], 0, 0
    for i, character in enumerate(name):
        if character == "/" and not depth:
            segments.append(name[start:i])
            start = i + 1
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE and depth:
            depth -= 1
    return name.split("/") if depth else [*segments, name[start:]]


def _argument(names: list[Name], arguments: Iterable[str], fit: Fit | None) -> str:
    """Return the argument that a family is shown over; empty where no number varies."""
    found: dict[str, tuple[bool, int, float]] = {}
    for argument in arguments:
        texts = {name.values[argument] for name in names}
        if not all(map(_NUMBER.fullmatch, texts)) or len(values := {*map(float, texts)}) < 2:
            continue
        span = max(values) / min(values) if min(values) > 0 else 1.0  # a flag spans nothing
        found[argument] = argument != THREADS, len(values), span
    if fit and fit.argument in found:
        return fit.argument
    return max(found, key=found.__getitem__, default="")


def _together(names: list[Name], argument: str) -> tuple[str, ...]:
    """Return the argument, and those that change exactly where it changes."""
    found = [argument]
    for other in names[0].values:
        pairs = {(name.values[argument], name.values[other]) for name in names}
        sides = [{pair[at] for pair in pairs} for at in (0, 1)]
        if other != argument and len(pairs) == len(sides[0]) == len(sides[1]):
            found.append(other)
    return tuple(found)


def _label(name: Name, arguments: tuple[str, ...]) -> str:
    """Write the values of arguments that go together: one if they are equal."""
    return ", ".join(dict.fromkeys(name.values[argument] for argument in arguments))


def _lines(family: str, together: tuple[str, ...], members: list[tuple[Name, Row]]) -> list[Line]:
    points: dict[str, dict[float, Row]] = {}
    for name, row in members:
        points.setdefault(name.without(together), {})[float(name.values[together[0]])] = row
    return [Line(name, family, dict(sorted(own.items()))) for name, own in points.items()]


def _put(found: list[Sweep], sweep: Sweep) -> None:
    """Merge a sweep into one of the same argument with half of its values, or append it."""
    for each in found:
        common = len(each.labels.keys() & sweep.labels.keys())
        least = min(len(each.labels), len(sweep.labels))
        if each.arguments == sweep.arguments and 2 * common >= least:
            labels = sorted((each.labels | sweep.labels).items())
            each.labels.clear()
            each.labels.update(labels)
            each.lines.extend(sweep.lines)
            each.fits.update(sweep.fits)
            return
    labels = sorted(sweep.labels.items())
    found.append(Sweep(sweep.arguments, dict(labels), sweep.lines, sweep.fits))


def _fits(results: Results, families: set[str]) -> dict[str, Fit]:
    """Read the BigO and RMS rows of a file's families, and find out what their N is."""
    written: dict[str, dict[str, list[dict[str, Any]]]] = {}
    of_kind: dict[str, dict[str, list[dict[str, Any]]]] = {"BigO": {}, "RMS": {}}
    for name, entries in results.written.items():
        for entry in entries:
            kind = entry.get("aggregate_name")
            if entry.get("run_type") == "aggregate" and kind in ("BigO", "RMS"):
                family = spell(name).family
                # Of several programs rows are told apart by it, and the fits have no row.
                own = f"{results.program}:{family}"
                family = own if own in families else family
                of_kind[str(kind)].setdefault(family, []).append(entry)
    if not of_kind["BigO"]:
        return {}
    for name, entries in results.written.items():
        if (family := spell(name).family) in of_kind["BigO"]:
            written.setdefault(family, {})[name] = entries
    found = {}
    for family, big_o in of_kind["BigO"].items():
        if family in families and (rows := written.get(family)):
            fit = _fit(big_o, of_kind["RMS"].get(family, []), rows)
            if fit:
                found[family] = fit
    return found


def _fit(
    big_o: list[dict[str, Any]],
    rms: list[dict[str, Any]],
    rows: Mapping[str, list[dict[str, Any]]],
) -> Fit | None:
    """Merge the fits of one family, one for each process; the most common curve counts."""
    curves = Counter(str(entry.get("big_o") or "") for entry in big_o)
    curve, _ = curves.most_common(1)[0]
    if not curve:
        return None
    own = [entry for entry in big_o if entry.get("big_o") == curve]
    real, cpu = _numbers(own, "real_coefficient"), _numbers(own, "cpu_coefficient")
    if not real:
        return None
    scales = _scales(own, rows)
    for scale in scales:
        argument, reason = _drawn_over(curve, [scale * value for value in real], rows)
        if argument:
            break
    if not argument and len(scales) > 1:  # seconds or milliseconds, nothing tells
        return None
    if len(curves) > 1:
        argument, reason = "", f"other processes have {' and '.join(sorted({*curves} - {curve}))}"
    roots = _numbers(rms, "rms")
    return Fit(
        curve,
        scale * median(real),
        scale * median(cpu) if cpu else math.nan,
        median(roots) if roots else math.nan,
        argument,
        reason,
    )


def _scales(fits: list[dict[str, Any]], rows: Mapping[str, list[dict[str, Any]]]) -> list[float]:
    """Return the units, in seconds, that coefficients may have.

    JSON names the unit. CSV does not: then it is nanoseconds, the default, or a unit of the rows.
    """
    told = {str(unit) for entry in fits if (unit := entry.get("time_unit"))}
    if not told:
        told = {
            "ns",
            *(str(e["time_unit"]) for es in rows.values() for e in es if "time_unit" in e),
        }
    return [scale for unit, scale in SECONDS.items() if unit in told] or [math.nan]


def _drawn_over(
    curve: str, coefficients: list[float], rows: Mapping[str, list[dict[str, Any]]]
) -> tuple[str, str]:
    """Return which argument N is, or "" and the reason why none is.

    The library's fit is one of least squares over all repetitions: sum(t f(N)) / sum(f(N)^2).
    """
    if not (of := _CURVES.get(curve)):
        return "", "the curve is the program's own"
    names = {name: spell(name) for name in rows}
    measured = {name: _times(entries) for name, entries in rows.items()}
    told: dict[str, float] = {}
    for argument in dict.fromkeys(a for name in names.values() for a in name.values):
        try:
            pairs = [
                (of(float(names[name].values[argument])), time)
                for name, times in measured.items()
                for time in times
            ]
        except (KeyError, ValueError, OverflowError):  # not of all rows, no number, no logarithm
            continue
        if (squares := sum(f * f for f, _ in pairs)) > 0:
            told[argument] = sum(f * t for f, t in pairs) / squares
    wanted = fmean(coefficients)
    near = [a for a, value in told.items() if abs(value - wanted) <= _AGREES * abs(wanted)]
    if near:
        return near[0], ""
    return "", "N is none of its arguments" if told else "its rows have no argument that could be N"


def _times(entries: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return the seconds of the repetitions, or their means where the file has aggregates alone."""
    kinds: dict[str, list[float]] = {"": [], "mean": []}
    for entry in entries:
        kind = entry.get("aggregate_name", "") if entry.get("run_type") == "aggregate" else ""
        time, unit = entry.get("real_time"), entry.get("time_unit", "ns")
        failed = entry.get("error_occurred") is True or entry.get("skipped") is True
        if not (isinstance(kind, str) and isinstance(unit, str)) or failed:
            continue
        if kind in kinds and isinstance(time, float) and unit in SECONDS:
            kinds[kind].append(time * SECONDS[unit])
    return kinds[""] or kinds["mean"]


def _numbers(entries: Iterable[Mapping[str, Any]], key: str) -> list[float]:
    found = [entry.get(key) for entry in entries]
    return [value for value in found if isinstance(value, float) and math.isfinite(value)]
