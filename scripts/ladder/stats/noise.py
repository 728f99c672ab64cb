# SPDX-License-Identifier: MIT
"""How far the rows of one program differ from process to process: each row's noise floor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any

from ladder.analysis.study import describe
from ladder.io import files
from ladder.io.results import load_processes
from ladder.model import units
from ladder.model.errors import IncomparableError, LadderError
from ladder.model.units import SMALL_KERNEL

_LIMITS = (0.005, 0.01)  # that the summary counts rows within
_NOISY, _NOISIEST = 0.03, 10  # beyond which rows are counted too, and how many at least are named
_ALIKE = 0.01  # what the small kernels of processes agree within
_SAME = ("gpu_name", "gpu_uuid", "git_commit", "git_dirty", "cache_mode", "build_type")


@dataclass(frozen=True)
class Floor:
    """The medians of one row in several processes."""

    floor: float  # largest distance from the median of them all, as a fraction of it
    spread: float  # the slowest over the fastest, less one
    seconds: float  # the median of them all
    processes: int
    medians: tuple[float, ...] = ()  # of each process, in seconds; older files lack them
    clocks: tuple[float, ...] = ()  # of the SMs meanwhile, in Hz; host code has none

    def __post_init__(self) -> None:
        if not (0 <= self.spread < float("inf") and self.processes >= 2):
            raise ValueError("no spread of two processes or more")


@dataclass(frozen=True)
class _File:
    context: dict[str, Any]
    rows: dict[str, Any]


@dataclass(frozen=True)
class Noise:
    """Whose noise it is, and the floor of each row by its name."""

    context: dict[str, Any]
    title: str  # GPU, cache mode and commit in one line
    rows: dict[str, Floor]
    single: list[str]  # rows that one process alone measured


def noise(paths: Iterable[str | PathLike[str]], pattern: re.Pattern[str] | None = None) -> Noise:
    """Compare results files of one program on one GPU, one file per process.

    With `pattern`, only of rows whose name it is found in. Files without times that a directory
    holds are left out.

    Raises:
        IncomparableError: they are of different GPUs, commits, cache modes or builds, or not timed.
        LadderError: there are fewer than two, or no row is in two of them.
    """
    paths = list(paths)
    named = {Path(path) for path in paths}
    runs = {
        result.files[0]: result
        for result in load_processes(paths)
        if result.source == "timed" or result.files[0] in named
    }
    if len(runs) < 2 and len(paths) > 1:
        raise LadderError(f"{paths[0]}: the same file twice")
    if len(runs) < 2:
        raise LadderError("noise is the difference between results: name two files or more")
    for path, result in runs.items():
        if result.source != "timed":
            raise IncomparableError(f"{path}: has no times to compare")
    first, *others = runs
    for key in _SAME:
        for other in others:
            values = [str(runs[path].context.get(key, "unknown")) for path in (first, other)]
            if values[0] != values[1]:
                raise IncomparableError(
                    f"different {key}: {values[0]} in {first}, {values[1]} in {other}"
                )
    seconds: dict[str, list[float]] = {}
    clocks: dict[str, list[float]] = {}
    for result in runs.values():
        for row in (result.keep(pattern) if pattern else result).with_status("ok"):
            seconds.setdefault(row.name, []).append(row.seconds)
            clocks.setdefault(row.name, []).append(row.sm_clock_hz)
    floors = {
        name: floor_of(times, clocks[name]) for name, times in seconds.items() if len(times) > 1
    }
    if not floors:
        raise LadderError("no row was measured in two of the results")
    context = {key: runs[first].context[key] for key in _SAME if key in runs[first].context}
    context["processes"] = len(runs)
    times = [units.parse(result.context.get(SMALL_KERNEL)) for result in runs.values()]
    if all(0 < time < float("inf") for time in times):
        context[SMALL_KERNEL] = times
    single = [name for name, times in seconds.items() if len(times) == 1]
    return Noise(context, describe(runs[first]), floors, single)


def floor_of(times: list[float], clocks: Sequence[float] = ()) -> Floor:
    """Return the floor of a row from its median time in each process, in seconds.

    And its SM clock, in Hz, which is left out unless all are known.
    """
    middle = median(times)
    floor = max(abs(time / middle - 1) for time in times)
    known = tuple(clocks) if all(clock > 0 for clock in clocks) else ()
    return Floor(floor, max(times) / min(times) - 1, middle, len(times), tuple(times), known)


def to_json(found: Noise) -> str:
    """Write what `read` reads: the context, and each row as `Floor` has it by its name."""
    rows = {name: files.short(asdict(floor)) for name, floor in found.rows.items()}
    return files.by_row(found.context, "rows", rows)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Floor]]:
    """Return the context, and the floor of each row by its name. Raises ResultError."""
    file = files.typed(path, files.read_json(path), _File)
    return file.context, {n: files.typed(path, row, Floor, n) for n, row in file.rows.items()}


def summary(found: Noise) -> str:
    """Say how many rows are within each limit, and list the noisiest with their clocks' spread.

    A row's floor is its largest distance from the median, its spread that from process to process:
    with two processes twice as much. Small kernels come first, where the results have their times.
    """
    rows = found.rows.values()
    lines = [f"{found.title}: {len(rows)} rows in {found.context['processes']} processes."]
    if times := found.context.get(SMALL_KERNEL):
        lines.append(_small_kernels(times))
    for what, apart in (
        ("of their median", [row.floor for row in rows]),
        ("of each other", [row.spread for row in rows]),
    ):
        for limit in _LIMITS:
            count = sum(value <= limit for value in apart)
            lines.append(f"within {limit:.1%} {what}: {count} ({count / len(rows):.1%})")
        lines.append(f"not within {_NOISY:.1%} {what}: {sum(value > _NOISY for value in apart)}")
    if found.single:
        lines.append(f"in one process only, and left out: {len(found.single)}")
    noisiest = sorted(found.rows.items(), key=lambda item: -item[1].floor)
    shown = max(_NOISIEST, sum(row.floor > _LIMITS[0] for row in rows))
    lines.append("floor   spread  time     clock     noisiest rows")
    for name, row in noisiest[:shown]:
        time = units.duration(row.seconds)
        off = f"{max(row.clocks) / min(row.clocks) - 1:.2%}" if row.clocks else "–"
        lines.append(f"{row.floor:<6.2%}  {row.spread:<6.2%}  {time:<7}  {off:<8}  {name}")
    return "\n".join(lines) + "\n"


def _small_kernels(nanoseconds: Sequence[float]) -> str:
    *most, last = (units.duration(time * 1e-9) for time in nanoseconds)
    line = f"small kernels took {', '.join(most)} and {last} in them"
    alike = max(nanoseconds) <= (1 + _ALIKE) * min(nanoseconds)
    return line if alike else f"{line}, so rows of a few microseconds differ too"
