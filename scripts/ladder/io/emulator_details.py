# SPDX-License-Identifier: MIT
"""Reads the details of an emulated result: requests by source line, and occupancy curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from ladder.io import files
from ladder.io.results import Results

LANES = 32
_Lanes = Annotated[
    list[Annotated[float, msgspec.Meta(ge=0)] | None],
    msgspec.Meta(min_length=LANES, max_length=LANES),
]


@dataclass(frozen=True)
class Line:
    """The requests of one kind that one source line made in one row."""

    row: str
    kernel: str
    file: str
    line: float
    space: str  # shared, global, distributed, constant
    operation: str  # load, store, atomic
    bytes: float  # per lane
    requests: float
    transactions: float
    worst: float  # transactions of the worst request
    worst_request: _Lanes  # its lanes' bytes from the start of the block's memory


class _Point(msgspec.Struct, frozen=True):
    occupancy: float  # 0 to 1
    limiter: str


class BlockPoint(_Point, frozen=True, rename={"size": "threads"}):
    """Occupancy at one block size, in threads."""

    size: float


class SharedPoint(_Point, frozen=True, rename={"size": "bytes"}):
    """Occupancy at one size of shared memory, in bytes per block."""

    size: float


Point = BlockPoint | SharedPoint


@dataclass(frozen=True)
class Curves:
    """Occupancy of one row's kernel, by block size and by shared memory."""

    row: str
    registers: float
    static_shared_bytes: float
    dynamic_shared_bytes: float
    block_threads: float
    by_block: Annotated[tuple[BlockPoint, ...], msgspec.Meta(min_length=1)]
    by_shared: Annotated[tuple[SharedPoint, ...], msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class Details:
    """All of one results file."""

    lines: tuple[Line, ...]
    occupancy: tuple[Curves, ...]


def load(results: Results) -> Details | None:
    """Read the details of these results; None if there are none. Raises ResultError."""
    paths = dict.fromkeys(path for file in results.files for path in _beside(file))
    found = [files.typed(path, files.read_json(path), Details) for path in paths if path.exists()]
    if not found:
        return None
    return Details(
        tuple(line for details in found for line in details.lines),
        tuple(curves for details in found for curves in details.occupancy),
    )


def _beside(file: Path) -> list[Path]:
    """Where the details of a results file may be: an earlier study's bear its date."""
    if file.suffix == ".old":
        _, _, date = file.name.partition("-")
        return [file.with_name(f"{Path(files.DETAILS).stem}-{date}")]
    return [file.with_name(name) for name in (files.DETAILS, f"{files.DETAILS}.gz")]
