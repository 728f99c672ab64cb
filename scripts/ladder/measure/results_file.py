# SPDX-License-Identifier: MIT
"""The results file of a run in many processes: complete at any moment, and resumable."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ladder.io import files
from ladder.measure.process import Output, error_row, failure, lacks
from ladder.model import catalogue, units
from ladder.model.ceilings import Ceilings, Entries
from ladder.model.errors import IncomparableError, LadderError, LostError, ResultError
from ladder.model.units import SMALL_KERNEL

_FLAGS, _UNFINISHED = "run_flags", "run_unfinished"  # what the context tells of the run itself
_SMALL_KERNELS = f"run_{SMALL_KERNEL}"  # of all processes, the smallest and the largest
_SAME = (
    "emulated gpu_name gpu_uuid modelled_gpu git_commit git_dirty build_type cache_mode cases "
    "tuning"
).split()
_BETWEEN_WRITES = 10.0  # seconds


class RunFile:
    """The rows that were measured so far, in the order of the program's."""

    def __init__(
        self, path: Path, flags: Sequence[str], full: Sequence[str], small: Sequence[str]
    ) -> None:
        self.path = path
        self.context: dict[str, Any] = {}
        self.rows: dict[str, Entries] = {}
        self.unfinished: set[str] = set()  # timed, but not through all passes that were asked for
        self.ceilings = Ceilings([], [])
        self._flags = " ".join(flags)
        self._known = full, small
        self._place = {name: place for place, name in enumerate([*full, *small])}
        self._written = -_BETWEEN_WRITES

    @property
    def scratch(self) -> Path:
        """Where the processes write."""
        return self.path.with_name(self.path.name + ".now")

    def resume(self, passes: Sequence[str]) -> None:
        """Read what an earlier run left, if any.

        Raises ResultError where it cannot be read, IncomparableError where its flags were others.
        """
        if not self.path.exists():
            return
        document = self._own()
        context = document["context"]
        self.unfinished = set(str(context.pop(_UNFINISHED, "")).split())
        flags = context.get(_FLAGS, "unknown")
        if flags != self._flags:
            raise IncomparableError(
                f"{self.path}: different flags: {flags or 'none'} there, {self._flags or 'none'} "
                "now"
            )
        self._admit(context)
        for row in document["benchmarks"]:
            self.rows.setdefault(row.get("run_name", row.get("name")), []).append(row)
        output = Output(self.scratch, passes)  # of a run that could not end in order
        if output.read():
            self.take(output)
            self.write()
        output.remove()

    def _own(self) -> dict[str, Any]:
        """Read the file with the numbers as written. Raises ResultError where it is no run's."""
        files.read(self.path)  # raises what is wrong with it
        try:
            document: dict[str, Any] = json.loads(files.read_text(self.path), strict=False)
            if isinstance(document["context"], dict) and isinstance(document["benchmarks"], list):
                return document
        except (ValueError, KeyError, TypeError):
            pass  # a file that is read in another way, as NVBench's or one with text around it
        told = "not a file that 'ladder run' wrote: give another as --output"
        raise ResultError(f"{self.path}: {told}")

    def take(self, output: Output) -> None:
        """Take over the rows of a process that stand.

        Raises IncomparableError where it is of another GPU or program than those before.
        """
        if output.context is None:
            return
        self._admit(output.context)
        rows = output.rows()
        self.rows |= rows
        self.unfinished = self.unfinished - set(rows) | output.unfinished()

    def fail(self, name: str, reason: str) -> None:
        """Note why a row has no result; one that was timed stays."""
        if name not in self.unfinished:
            self.rows[name] = [error_row(name, reason)]

    def missing(self, names: Iterable[str], *, or_failed: bool = False) -> list[str]:
        """Return which of these rows are yet to be measured."""
        return [
            name
            for name in names
            if name not in self.rows
            or name in self.unfinished
            or (or_failed and (failure(self.rows[name]) or lacks(self.rows[name])))
        ]

    def write_if_due(self) -> None:
        """Write the file if it was not written recently."""
        if time.monotonic() - self._written >= _BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        """Write the file completely or not at all. Raises LostError if the disk is full."""
        if not self.rows:
            return
        names = sorted(self.rows, key=lambda name: self._place.get(name, len(self._place)))
        rows = {name: self.rows[name] for name in names}
        self.ceilings.fill(rows)
        for place, name in enumerate(names):  # to the program each row is a family
            for entry in rows[name]:
                entry["family_index"] = place
        context = self.context
        if self.unfinished:
            context = context | {_UNFINISHED: " ".join(sorted(self.unfinished))}
        listed = [row for name in names for row in rows[name]]
        if context.get("emulated") != "true":  # whose counts are compared digit by digit
            listed = [files.short(row) for row in listed]
        text = files.by_row(context, "benchmarks", listed)
        try:
            files.write(self.path, text.encode("utf-8", "replace"))
        except LadderError as error:
            raise LostError(f"{error}; earlier results stay, --resume continues them") from error
        self._written = time.monotonic()

    def _admit(self, context: dict[str, Any]) -> None:
        if not self.context:
            try:
                ladders = catalogue.parse(context.get("ladders") or "[]")
            except ValueError as error:
                raise ResultError(f"{self.path}: {error}") from error
            self.ceilings = Ceilings(ladders, *self._known)
            context = context | {_FLAGS: self._flags}
        for key in _SAME if self.context else ():
            there, now = (str(c.get(key, "unknown")) for c in (self.context, context))
            if there != now:
                raise IncomparableError(f"{self.path}: different {key}: {there} there, {now} now")
        times = _small_kernels(self.context) + _small_kernels(context)
        # Only a later pass tells what it reads; what one process could not read another may.
        told = {key: value for key, value in self.context.items() if not _none(value)}
        self.context = self.context | context | told
        if times:
            self.context[_SMALL_KERNELS] = f"{min(times):g} {max(times):g}"


def _none(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("none: ")


def _small_kernels(context: dict[str, Any]) -> list[float]:
    """Return the times of the small kernels in ns; of a run the smallest and the largest."""
    told = context.get(_SMALL_KERNELS, context.get(SMALL_KERNEL, ""))
    return [each for each in map(units.parse, str(told).split()) if 0 < each < float("inf")]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make a folder of results, and keep other runs out of it for as long as the block lasts.

    Raises LadderError where it cannot be made, or another run is there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LadderError(f"{folder}: {error.strerror}") from error
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LadderError(f"{folder}: another run is writing there") from error
        yield
    finally:
        os.close(handle)
