# SPDX-License-Identifier: MIT
"""Reads Google Benchmark's CSV into the form of its JSON.

As `--benchmark_format=csv` and `--benchmark_out_format=csv` write it (src/csv_reporter.cc): the
columns below, then a column for each user counter. A row that failed or was skipped ends after its
message. Lines about the machine come before, in the file or from stderr. Numbers have six digits.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import Any

_NUMBERS = ("iterations", "real_time", "cpu_time")
_NEEDED = ("name", *_NUMBERS)  # since 2014; time_unit was added later, ns was meant before
_TEXTS = ("name", "time_unit", "label", "error_occurred", "error_message")
_FAILED, _LAST = "error_occurred", "error_message"
_HEADER = re.compile(
    r'^"?name"?,(?=[^\n]*\b(?:iterations|real_time|cpu_time|time_unit)\b)[^\n]*$', re.MULTILINE
)
_MACHINE = re.compile(r"^Run on \((\d+) X ([\d.]+) MHz CPU")
_PROGRAM = re.compile(r"^Running (.+)$")
_DATE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*$")
_CUSTOM = re.compile(r"^(\w+): (.+)$")  # --benchmark_context and AddCustomContext
_ALWAYS = ("mean", "median", "stddev")  # aggregates that the library makes of all repetitions


def found(text: str) -> bool:
    """Whether a text has the header of such a CSV."""
    return bool(_HEADER.search(text))


def document(text: str) -> dict[str, Any]:
    """Return the context and rows as the JSON has them, in the units that the CSV has.

    Aggregates are told from rows by their names and iterations, which are their repetitions. Lines
    that a program printed between rows are left out.

    Raises:
        ValueError: a column is missing, a line is truncated, or a cell is not a number.
    """
    header = _HEADER.search(text)
    if not header:
        raise ValueError("not Google Benchmark's CSV: no header 'name,iterations,real_time,...'")
    names = _told_apart(_split(header.group().rstrip("\r")))
    needed = (*_NEEDED, _FAILED) if _LAST in names else _NEEDED
    if missing := [name for name in needed if name not in names]:
        raise ValueError(f"no column '{missing[0]}' in its CSV")
    above = text.count("\n", 0, header.start()) + 1  # lines up to the header
    rows = []
    for number, line in enumerate(text[header.end() :].split("\n")[1:], start=above + 1):
        try:
            if cells := _cells(line.rstrip("\r"), names):
                rows.append(_row(cells))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    _mark_aggregates(rows)
    return {"context": _context(text[: header.start()]), "benchmarks": rows}


def _split(line: str, *, strict: bool = False) -> list[str]:
    try:
        return next(csv.reader([line], strict=strict))
    except csv.Error as error:
        raise ValueError(f"truncated or broken: {error}") from None


def _told_apart(names: list[str]) -> list[str]:
    """Rename a counter to `user_NAME` if a column of the library has its name."""
    found: list[str] = []
    for name in names:
        if name in found and name in (*_TEXTS, *_NUMBERS):
            found.append(f"user_{name}")
        elif name in found:
            raise ValueError(f"two columns '{name}' in its CSV")
        else:
            found.append(name)
    return found


def _cells(line: str, names: list[str]) -> dict[str, str] | None:
    """Return the cells of a row by their columns, or None if the line is not a row."""
    if not line.strip():
        return None
    quoted = line.startswith('"')
    values = _split(line, strict=quoted)
    if values[0] == "name" and _HEADER.match(line):  # of another run, appended
        return None
    cells = dict(zip(names, values, strict=False))
    if not quoted and not _is_number(cells.get("iterations", "-")):
        return None  # names of rows are quoted, so it was printed by the program
    failed = bool(cells.get(_LAST))
    if len(values) != len(names) and not (failed and len(values) == names.index(_LAST) + 1):
        raise ValueError(f"truncated or broken: {len(values)} columns, not {len(names)}")
    return cells


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text
    return True


def _row(cells: dict[str, str]) -> dict[str, Any]:
    name, unit = cells["name"], cells.get("time_unit", "")
    row: dict[str, Any] = {"name": name, "run_name": name, "run_type": "iteration"}
    fitted = not cells.get("iterations")  # BigO, whose unit is its function, or RMS
    if unit and not fitted:
        row["time_unit"] = unit
    if cells.get("label"):
        row["label"] = cells["label"]
    if message := cells.get(_LAST):
        failed = cells.get(_FAILED) == "true"
        row |= {"error_occurred": True} if failed else {"skipped": True}
        return row | {"error_message" if failed else "skip_message": message}
    for key, text in cells.items():
        if key in _TEXTS or not text:
            continue
        try:
            row[key] = float(text)
        except ValueError:
            if key in _NUMBERS:
                raise ValueError(f"{key} is '{text}'") from None
    if fitted:
        kind = next((kind for kind in ("BigO", "RMS") if name.endswith(f"_{kind}")), None)
        if not kind:
            raise ValueError(f"no iterations of {name}")
        row |= _aggregate(name, kind) | _fit(kind, unit, row)
    elif lacking := [key for key in _NUMBERS if key not in row]:
        raise ValueError(f"no {lacking[0]} of {name}")
    return row


def _fit(kind: str, unit: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a fit as the JSON has them; its times are in the unit of its rows."""
    times = row.pop("real_time", None), row.pop("cpu_time", None)
    if kind == "RMS":
        found = {"rms": times[1]}
    else:
        found = {"big_o": unit, "real_coefficient": times[0], "cpu_coefficient": times[1]}
    return {key: value for key, value in found.items() if value is not None}


def _mark_aggregates(rows: list[dict[str, Any]]) -> None:
    """Mark aggregates, which the CSV does not distinguish from rows.

    Their name is a row's name, an underscore and a word. There are as many rows of that name as
    their iterations say; or there are none, but all of the usual aggregates.
    """
    count = Counter(row["name"] for row in rows)
    for row in rows:
        base, _, word = row["name"].rpartition("_")
        repetitions = row.get("iterations", 0.0)
        beside = count[base] == repetitions * count[row["name"]] and repetitions > 1
        alone = not count[base] and all(count[f"{base}_{each}"] for each in _ALWAYS)
        if row["run_type"] == "iteration" and base and (beside or alone):
            row |= _aggregate(row["name"], word) | {"repetitions": repetitions}


def _aggregate(name: str, word: str) -> dict[str, Any]:
    run = name.removesuffix(f"_{word}")
    return {"run_name": run, "run_type": "aggregate", "aggregate_name": word}


def _context(text: str) -> dict[str, Any]:
    """Read the lines about the machine, and those of a program's own context."""
    context: dict[str, Any] = {}
    for line in map(str.strip, text.splitlines()):
        if match := _MACHINE.match(line):
            context |= {"num_cpus": float(match[1]), "mhz_per_cpu": _number(match[2])}
            context.setdefault("library_build_type", "release")
        elif match := _PROGRAM.match(line):
            context["executable"] = match[1]
        elif _DATE.match(line):
            context["date"] = line
        elif line.startswith("***WARNING*** Library was built as DEBUG"):
            context["library_build_type"] = "debug"
        elif line.startswith("***WARNING*** CPU scaling is enabled"):
            context["cpu_scaling_enabled"] = True
        elif match := _CUSTOM.match(line):
            context[match[1]] = match[2]
    return context


def _number(text: str) -> float:
    return float(text) if _is_number(text) else 0.0
