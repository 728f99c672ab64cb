# SPDX-License-Identifier: MIT
"""Reads the details of an emulated result: requests by source line, and occupancy curves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from ladder.io import files
from ladder.io.results import Results
from ladder.model.errors import ResultError

LANES = 32


@dataclass(frozen=True)
class Line:
    """The requests of one kind that one source line made in one row."""

    row: str
    kernel: str
    file: str
    line: float
    space: str  # shared, global, distributed, constant
    operation: str  # load, store, atomic
    bytes: float  # a lane
    requests: float
    transactions: float
    worst: float  # transactions of the worst request
    worst_request: list[float | None]  # its lanes' bytes from the start of the block's memory


@dataclass(frozen=True)
class Point:
    """What an SM holds at one size of block or of shared memory."""

    size: int  # threads, or bytes of shared memory a block
    occupancy: float  # 0 to 1
    limiter: str


@dataclass(frozen=True)
class Curves:
    """Occupancy of one row's kernel, by block size and by shared memory."""

    row: str
    registers: float
    static_shared_bytes: float
    dynamic_shared_bytes: float
    block_threads: float
    by_block: tuple[Point, ...]
    by_shared: tuple[Point, ...]


_Made = TypeVar("_Made", Line, Point, Curves)

_TYPES: dict[Any, type] = {"str": str, "float": float}  # those that are looked at
_FIELDS = {
    kind: {field.name: _TYPES.get(field.type, object) for field in fields(kind)}
    for kind in (Line, Point, Curves)
}


@dataclass(frozen=True)
class Details:
    """All of one results file."""

    lines: tuple[Line, ...]
    occupancy: tuple[Curves, ...]


def load(results: Results) -> Details | None:
    """Read the details of these results; None if there are none. Raises ResultError."""
    folders = dict.fromkeys(Path(row.file).parent for row in results.rows)
    names = (files.DETAILS, f"{files.DETAILS}.gz")
    found = [_read(path) for f in folders for name in names if (path := f / name).exists()]
    if not found:
        return None
    return Details(
        tuple(line for details in found for line in details.lines),
        tuple(curves for details in found for curves in details.occupancy),
    )


def _read(path: Path) -> Details:
    document = files.read_json(path)
    made: dict[str, list[Any]] = {}
    for key, make in (("lines", _line), ("occupancy", _curves)):
        entries = document.get(key) if isinstance(document, dict) else None
        if not isinstance(entries, list):
            raise ResultError(f"{path}: no list of '{key}'")
        made[key] = []
        for i, entry in enumerate(entries):
            try:
                made[key].append(make(entry))
            except KeyError as error:
                raise ResultError(f"{path}: {key}[{i}]: no {error}") from error
            except (TypeError, ValueError) as error:
                raise ResultError(f"{path}: {key}[{i}]: {error}") from error
    return Details(tuple(made["lines"]), tuple(made["occupancy"]))


def _line(entry: dict[str, Any]) -> Line:
    line = _make(Line, entry, worst_request=entry["worst_request"])
    lanes = line.worst_request
    if not isinstance(lanes, list) or len(lanes) != LANES:
        raise ValueError(f"worst_request is not a list of {LANES} lanes")
    if not all(at is None or (isinstance(at, float) and at >= 0) for at in lanes):
        raise ValueError("worst_request holds something else than bytes and null")
    return line


def _curves(entry: dict[str, Any]) -> Curves:
    curves = {
        f"by_{axis}": tuple(
            _make(Point, point, size=int(point[size])) for point in entry[f"by_{axis}"]
        )
        for axis, size in (("block", "threads"), ("shared", "bytes"))
    }
    if not all(curves.values()):
        raise ValueError("an empty curve")
    return _make(Curves, entry, **curves)


def _make(kind: type[_Made], entry: dict[str, Any], **given: Any) -> _Made:
    """Build a dataclass from an entry that may have further keys."""
    values = given | {name: entry[name] for name in _FIELDS[kind] if name not in given}
    for name, wanted in _FIELDS[kind].items():
        if not isinstance(values[name], wanted):
            raise ValueError(f"{name} is not a {wanted.__name__}")
    return kind(**values)
