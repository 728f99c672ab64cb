# SPDX-License-Identifier: MIT
"""A study: measures the rows of one program, and replaces earlier results once it is complete.

Until then what is measured is in files of its own, `*.unfinished`, which a later study may resume.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ladder.io import files
from ladder.measure import runner
from ladder.measure.process import Output
from ladder.measure.progress import Progress
from ladder.measure.results_file import RunFile
from ladder.measure.runner import Job, Program
from ladder.model.errors import LadderError, LostError
from ladder.model.rows import bare

RESULTS = "study.json"
_UNFINISHED = ".unfinished"
_BETWEEN_WRITES = 10.0  # seconds
_COUNTED = "grid_blocks"  # what each row has of which the emulator ran a kernel


class Details:
    """The details of emulated rows, merged: each process writes its own, if it ends well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[str, dict[str, list[Any]]] = {}  # by row and kind
        self._written = time.monotonic()

    @property
    def scratch(self) -> Path:
        """Where the processes write."""
        return self.path.with_name(self.path.name + ".now")

    def resume(self) -> None:
        """Take in what an earlier run left, if it can be read: its rows are counted anew if not."""
        self._add(self.path)

    def take(self) -> None:
        """Take over what a process left."""
        self._add(self.scratch)
        for name in (self.scratch.name, self.scratch.name + ".partial"):
            self.path.with_name(name).unlink(missing_ok=True)
        if time.monotonic() - self._written >= _BETWEEN_WRITES:
            self.write()

    def lost(self, file: RunFile) -> list[str]:
        """Return the counted rows of a file that are not here: their process ended early."""
        return [
            name for name in file.rows if counted(file, name) and bare(name) not in self._entries
        ]

    def write(self) -> None:
        """Write all of it, as the program does. Raises LostError where there is no room for it."""
        parts = []
        for kind in ("lines", "occupancy"):
            rows = sorted(self._entries.items())
            entries = [entry for _, found in rows for entry in found.get(kind, [])]
            lines = ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries)
            parts.append(f'"{kind}":[\n{lines}]')
        try:
            files.write(self.path, ("{" + ",\n".join(parts) + "}\n").encode())
        except LadderError as error:
            raise LostError(str(error)) from error
        self._written = time.monotonic()

    def _add(self, path: Path) -> None:
        try:
            document = json.loads(path.read_bytes())
            found: dict[str, dict[str, list[Any]]] = {}
            for kind in ("lines", "occupancy"):
                for entry in document[kind]:
                    found.setdefault(entry["row"], {}).setdefault(kind, []).append(entry)
        except (OSError, ValueError, KeyError, TypeError):
            return
        self._entries |= found


class Measurement:
    """What a program measures into a folder of results."""

    def __init__(
        self, folder: Path, program: Program, *, emulated: bool, sampled: bool = False
    ) -> None:
        unfinished = folder / (RESULTS + _UNFINISHED)
        self.path = folder / RESULTS
        self.program = program
        self.file = RunFile(unfinished, program.flags, program.full, program.small)
        self.details: Details | None = None
        if emulated:
            self.details = Details(folder / (files.DETAILS + _UNFINISHED))
        self.samples = files.samples_beside(unfinished)
        self._sampled = program.samples_to(self.samples) if sampled else []

    @property
    def interrupted(self) -> bool:
        """Whether there is anything to resume."""
        return any(path.exists() for path in (self.file.path, self.file.scratch, self.samples))

    def set_aside(self) -> Path | None:
        """Keep what an interrupted study left under its date; return where, if there was any."""
        Output(self.file.scratch).remove()
        if not self.file.path.exists():
            self.samples.unlink(missing_ok=True)
            return None
        details = self.file.path.with_name(files.DETAILS + _UNFINISHED)
        return _keep(self.file.path, details, self.samples)

    def resume(self) -> None:
        """Take in what an interrupted study left.

        Raises ResultError where it cannot be read, IncomparableError where its flags were others.
        What has samples goes on with them.
        """
        self.file.resume(self.program.later)
        if self.samples.exists():
            self._sampled = self.program.samples_to(self.samples)
        if self.details:
            self.details.resume()

    def job(self, *, retry_failed: bool) -> Job:
        """Return what is yet to be measured."""
        names = self.file.missing(self.program.rows, or_failed=retry_failed)
        if not self.details:
            return Job(self.program, self.file, names, {}, more_flags=self._sampled)
        lost = {*self.details.lost(self.file), *names}
        return Job(
            self.program,
            self.file,
            [name for name in self.program.rows if name in lost],
            {},
            more_flags=[f"--details_out={self.details.scratch}"],
            ended=self.details.take,
        )

    def measure(self, job: Job, timeout: float, progress: Progress) -> None:
        """Measure it. Raises LadderError where it is no use to go on; what there is by then stays.

        Ladders have a process each if they are emulated, or if rows are counted once all are timed.
        So one which ends early takes little with it; that is measured again.
        """
        apart = self.details or self.program.passes > 1
        try:
            runner.run([[job]], "ladder" if apart else "none", timeout, progress)
            if self.details and (lost := self.details.lost(self.file)):
                progress.add(len(lost))
                runner.run([[replace(job, todo=lost)]], "rung", timeout, progress)
        finally:
            if self.details and self.file.rows:
                self.details.write()

    @property
    def kept(self) -> int:
        """How many rows need not be measured again."""
        lost = self.details.lost(self.file) if self.details else []
        return len(self.file.rows.keys() - self.file.unfinished - set(lost))

    @property
    def counted(self) -> bool:
        """Whether the emulator ran any row."""
        return any(counted(self.file, name) for name in self.file.rows)

    @property
    def reasons(self) -> list[str]:
        """Why rows failed or were skipped, each reason once."""
        entries = [entry for found in self.file.rows.values() for entry in found]
        told = [entry.get("error_message") or entry.get("skip_message") for entry in entries]
        return sorted({str(why).removeprefix("skipped: ") for why in told if why})

    def publish(self) -> Path | None:
        """Put the results in the place of earlier ones; return where these are now, if any."""
        kept = None
        details = self.path.with_name(files.DETAILS)
        try:
            samples = files.samples_beside(self.path)
            if self.path.exists():
                kept = _keep(self.path, details, samples)
            if self.details:
                self.details.path.replace(details)
            if self.samples.exists():
                self.samples.replace(samples)
            self.file.path.replace(self.path)
        except OSError as error:
            raise LostError(f"{error.filename}: {error.strerror}") from error
        return kept

    def discard(self) -> None:
        """Remove what was measured."""
        self.file.path.unlink(missing_ok=True)
        if self.details:
            self.details.path.unlink(missing_ok=True)


def counted(file: RunFile, name: str) -> bool:
    """Whether the emulator ran a kernel for this row."""
    return any(_COUNTED in entry for entry in file.rows[name])


def _keep(results: Path, *beside: Path) -> Path:
    """Rename results, and what stands beside them, after the date of the former."""
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(results.stat().st_mtime))

    def kept(path: Path) -> Path:
        stem, _, rest = path.name.removesuffix(_UNFINISHED).partition(".")
        return path.with_name(f"{stem}-{date}.{rest}.old")

    for path in (results, *beside):
        if path.exists():
            path.replace(kept(path))
    return kept(results)
