# SPDX-License-Identifier: MIT
"""Runs a benchmark program rung by rung in fresh processes, so that a failure costs one row."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ladder.measure import processes
from ladder.measure.process import (
    Output,
    alike,
    attend,
    batches,
    failure,
    filter_of,
    lacks,
    listed,
    without_name,
)
from ladder.measure.progress import Progress
from ladder.measure.results_file import RunFile
from ladder.model import errors
from ladder.model.counters import HELD
from ladder.model.errors import LadderError, LostError, ResultError
from ladder.model.rows import bare

SPLITS = {"rung": 2, "ladder": 1, "none": 0}  # leading parts of a name that a process is for
_STARTS = 3  # consecutive processes that may end before their first row
_PASSES = {  # after that of the times: its flag, and the key that it adds to the context
    re.compile(r"--energy="): "energy_source",
    re.compile(r"--hardware_counters(?!=(false|0|no|off)$)"): "hardware_counters",
}
_NO_CEILINGS = "--ceilings=false"
_SAMPLES = "--samples_out="
_SHAPE = "--shape="
_NOTE = "emulated: note: "  # what an emulated program writes before it runs
_FULL_DISK = ("is the disk full?", "SIGXFSZ")  # no fault of a row


class NoRowError(LadderError):
    """A filter that matches no row."""


@dataclass(frozen=True)
class Program:
    """A benchmark program, the flags it is given, and its rows."""

    path: str
    flags: list[str]
    rows: list[str]  # those to be measured
    full: list[str]  # all rows at the cases that GPUs are measured at
    small: list[str]  # all rows at the small cases, for the emulator and profilers
    ceilings_apart: bool  # whether it has --ceilings, to leave out what other rows measure
    keeps_samples: bool  # whether it has --samples_out
    has_plans: bool  # whether it is an emulated program of ours: only these have --plans

    @classmethod
    def find(cls, path: Path, flags: Sequence[str], pattern: str, timeout: float) -> Program:
        """Ask a program for its rows.

        Raises LadderError where it cannot say which it has, NoRowError where none matches.
        """
        command = [str(path.resolve()), *flags]
        rows = listed([*command, f"--benchmark_filter={pattern}"], timeout)
        if not rows:
            raise NoRowError(f"{path}: no row matches --filter {pattern}")
        told = _help(command[0], timeout)
        ours = "--cases=" in told
        if ours and "--tune" not in flags:  # which has shapes of its own
            full, small = (listed([*command, f"--cases={c}"], timeout) for c in ("full", "small"))
            if any(flag.startswith(_SHAPE) for flag in flags):  # ceilings of other ladders
                plain = [part for part in command if not part.startswith(_SHAPE)]
                full = [*dict.fromkeys([*full, *listed([*plain, "--cases=full"], timeout)])]
        else:
            full, small = listed(command, timeout), []
        known = ["--ceilings=" in told, _SAMPLES in told, ours and "--plans" in told]
        return cls(command[0], list(flags), rows, full, small, *known)

    def samples_to(self, path: Path) -> list[str]:
        """Return the flag that makes it append its samples to a file, as a list.

        Raises LadderError if it has no such flag.
        """
        if not self.keeps_samples:
            raise LadderError(f"{self.path}: has no flag {_SAMPLES[:-1]}, which --samples needs")
        return [f"{_SAMPLES}{path}"]

    def notes(self, pattern: str, timeout: float) -> list[str]:
        """Return the notes on named shapes that an emulated program prints under --plans.

        Empty if it cannot say: the run itself will tell why.
        """
        if not self.has_plans or not any(flag.startswith(_SHAPE) for flag in self.flags):
            return []
        command = [self.path, *self.flags, f"--benchmark_filter={pattern}", "--plans"]
        try:
            done = subprocess.run(
                [*command, "--benchmark_format=json"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=timeout,
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        said = done.stderr.decode("utf-8", "replace").splitlines()
        return [line.removeprefix(_NOTE) for line in said if line.startswith(_NOTE)]

    @property
    def later(self) -> list[str]:
        """What the context tells of each pass after that of the times."""
        return [key for flag, key in _PASSES.items() if any(map(flag.match, self.flags))]

    @property
    def passes(self) -> int:
        """How often each row is run."""
        return 1 + len(self.later)


def not_read(context: Mapping[str, Any]) -> list[str]:
    """Say why a pass found nothing to read, from its results' context."""
    sources = (str(context.get(key, "")) for key in _PASSES.values())
    told = zip(("energy", "hardware counters"), sources, strict=True)
    return [f"no {what}: {why[6:]}" for what, why in told if why.startswith("none: ")]


def heat_warning(rows: Iterable[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Say in how many rows, each the entries of its repetitions, heat mostly lowered the clock."""
    hot = sum(any(each.get("clock_held_by_heat", 0) >= HELD for each in row) for row in rows)
    told = f"heat lowered the clock in {hot} row{'s' * (hot != 1)}: a cooler GPU is faster"
    return [told] if hot else []


def _help(program: str, timeout: float) -> str:
    try:
        done = subprocess.run(
            [program, "--help"], capture_output=True, check=False, timeout=timeout
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


@dataclass(frozen=True)
class Job:
    """The rows of a program that go into one file."""

    program: Program
    file: RunFile
    todo: list[str]
    environment: Mapping[str, str]
    label: str = ""  # tells it from the other jobs of the run
    more_flags: Sequence[str] = ()  # that the results do not record
    ended: Callable[[], None] = lambda: None  # called when a process has ended

    def parts(self, split: str) -> dict[str, list[str]]:
        """Return the rows to be measured, by the part of their names that shares a process."""
        found: dict[str, list[str]] = {}
        for name in self.todo:
            found.setdefault("/".join(name.split("/")[: SPLITS[split]]), []).append(name)
        return found

    @property
    def failed(self) -> list[str]:
        """The rows that have no result, or were to be counted, say, and could only be timed."""
        rows, unfinished = self.file.rows, self.file.unfinished
        return [
            name
            for name in self.program.rows
            if name in rows and (name in unfinished or failure(rows[name]) or lacks(rows[name]))
        ]


def run(rounds: Iterable[Sequence[Job]], split: str, timeout: float, progress: Progress) -> None:
    """Measure all jobs: those of a round in turn, part by part, and in every other round backwards.

    Raises LadderError where it is no use to go on. What was measured by then is in the files.
    """
    settings: dict[str, str] = {}
    for number, jobs in enumerate(rounds):
        parts = [(job, job.parts(split)) for job in (jobs[::-1] if number % 2 else jobs)]
        for part in dict.fromkeys(part for _, found in parts for part in found):
            for job, found in parts:
                if part in found:
                    progress.show(0, f"{part or job.program.path}{job.label}")
                    known = filter(None, (alike(other.file.context) for other in jobs))
                    settings = settings or next(known, {})
                    ready = replace(job, environment={**settings, **job.environment})
                    measure(ready, found[part], timeout, progress)


def measure(job: Job, names: Sequence[str], timeout: float, progress: Progress) -> None:
    """Measure rows in as few processes as their filters allow."""
    for batch in batches(names):
        _measure(job, batch, timeout, progress)


def _measure(job: Job, names: Sequence[str], timeout: float, progress: Progress) -> None:
    """Measure rows in one process; if that ends early, the rest in a fresh one."""
    left, starts = list(names), 0
    while left:
        output = Output(job.file.scratch, job.program.later)
        code, reason = _attend(job, left, output, timeout, progress)
        if output.context is None:
            starts += 1
            _check_start(job, code, reason, starts)
            continue
        before, starts = left, 0
        standing, timed = output.rows(), output.unfinished()
        left = [name for name in left if name not in standing or name in timed]
        for name in before:
            if name in left:
                continue
            if why := failure(standing[name]):
                progress.fail(f"{name}{job.label}", why)
            elif lacks(standing[name]):
                why = reason.rpartition(f"{bare(name)}: ")[2]
                progress.fail(f"{name}{job.label}", f"timed, but incomplete: {why}")
        if left and (left == before or not output.broken):
            if any(sign in reason for sign in _FULL_DISK):
                raise LostError(f"{job.program.path}: {reason}")
            under_way = output.under_way(left) or (left[0] if left == before else None)
            if not under_way:
                continue
            left.remove(under_way)
            job.file.fail(under_way, reason)
            job.file.write()
            progress.fail(f"{under_way}{job.label}", reason)
        progress.done += job.program.passes * (len(before) - len(left))


def _attend(
    job: Job, names: list[str], output: Output, timeout: float, progress: Progress
) -> tuple[int | None, str]:
    """Run a process for these rows, and put what comes into the file."""
    file, program = job.file, job.program
    for name in names:  # a failure of before gives way
        if name in file.rows and failure(file.rows[name]):
            del file.rows[name]
    command = [program.path, *program.flags, *job.more_flags, f"--benchmark_out={file.scratch}"]
    command.append(f"--benchmark_filter={filter_of(names)}")
    # Each process would measure the ceilings of its rows anew.
    elsewhere = {ceiling for name in names for ceiling in file.ceilings.rows(name)}
    if program.ceilings_apart and elsewhere and elsewhere <= {*program.rows, *file.rows}:
        command.append(_NO_CEILINGS)

    def came() -> None:
        file.take(output)
        file.write_if_due()
        rows = output.rows()
        now = bare(next(reversed(rows), names[0]))
        progress.show(output.done, f"{now}{job.label}")

    output.remove()
    try:
        return attend(command, output, timeout, came, job.environment)
    finally:
        with processes.undisturbed():
            _keep(file, output)
            job.ended()


def _keep(file: RunFile, output: Output) -> None:
    """Put all that a process has written into the file."""
    output.read()
    try:
        file.take(output)
        file.write()
    except LostError:  # the rows stay where they are
        output.close()
        raise
    except LadderError:
        output.remove()
        raise
    output.remove()


def _check_start(job: Job, code: int | None, reason: str, starts: int) -> None:
    """Raise if a process without a row shows that others would fail too."""
    program = job.program.path
    if code == errors.USAGE:
        raise LadderError(f"{program}: {without_name(program, reason)}")
    if code == 0:
        raise ResultError(f"{program}: exited with 0, but left no readable results")
    if starts == _STARTS:
        raise LostError(f"{program}: {reason}, {starts} times in turn before the first row")
