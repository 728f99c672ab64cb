# SPDX-License-Identifier: MIT
"""Puts results of several commits in order: the history of one GPU, a point a commit."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ladder.io.results import Results
from ladder.model.errors import LadderError

UNDATED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Run:
    """What was measured at one commit, each process a Results; a file without commit is a run."""

    label: str  # short commit, or the file's name
    commit: str  # as the file has it
    processes: tuple[Results, ...]

    @property
    def date(self) -> datetime:
        """When it was measured first: an old commit that runs again stays where it was."""
        return min(map(dated, self.processes))


@dataclass(frozen=True)
class History:
    """The runs of one GPU, cache mode and build type, oldest first."""

    title: str
    gpu: str
    runs: list[Run]
    notes: list[str] = field(default_factory=list)


def dated(results: Results) -> datetime:
    """Return when a file was measured; `UNDATED`, long ago, where it does not tell."""
    try:
        date = datetime.fromisoformat(str(results.context.get("date", "")))
    except ValueError:
        return UNDATED
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def histories(results: Sequence[Results], repository: Path | None = None) -> list[History]:
    """Order processes (`load_processes`) by date, or as the commits follow in `repository`.

    Raises LadderError where git cannot tell.
    """
    grouped: dict[tuple[str, ...], dict[str, list[Results]]] = {}
    for result in results:
        runs = grouped.setdefault(_machine(result), {})
        commit = str(result.context.get("git_commit", ""))
        key = f"{commit} {result.commit}" if commit else result.file
        runs.setdefault(key, []).append(result)
    order = _log(repository) if repository else []
    found = []
    for runs in grouped.values():
        made = [
            Run(
                processes[0].commit or Path(processes[0].file).stem,
                str(processes[0].context.get("git_commit", "")),
                tuple(processes),
            )
            for processes in runs.values()
        ]
        found.append(_ordered(sorted(made, key=lambda run: run.date), order))
    return found


def _machine(result: Results) -> tuple[str, ...]:
    """Tell what makes times comparable: the GPU, else the program and its CPUs; and how it ran.

    A host's name is none of it, since each container has another.
    """
    cpus = (str(result.context.get(key, "")) for key in ("num_cpus", "caches"))
    machine = (result.gpu,) if result.gpu else (result.executable, *cpus)
    return *machine, _mode(result), result.build_type


def _mode(result: Results) -> str:
    if result.source != "timed":
        return str(result.context.get("counters", "emulated on a CPU"))
    return f"{result.cache_mode} cache" if result.cache_mode else ""


def _ordered(runs: list[Run], order: list[str]) -> History:
    """Put `runs`, which are in order of date, in that of the log if it has them all."""
    notes = []
    if order:
        places = {run.commit: _place(run.commit, order) for run in runs}
        if lost := [run.label for run in runs if places[run.commit] < 0]:
            told = f"{lost[0]} is" if len(lost) == 1 else f"{lost[0]} and {len(lost) - 1} more are"
            notes.append(f"ordered by date: {told} not in the repository")
        else:
            runs = sorted(runs, key=lambda run: (places[run.commit], "dirty" in run.label))
    boards = {r.context.get("gpu_uuid") for run in runs for r in run.processes} - {None}
    if len(boards) > 1:
        notes.append(f"measured on {len(boards)} boards, which may differ")
    first = runs[0].processes[0]
    hosts = {str(r.context.get("host_name", "unknown")) for run in runs for r in run.processes}
    where = f"host {min(hosts)}" if len(hosts) == 1 else f"{len(hosts)} hosts"
    if not first.gpu and len(hosts) > 1:
        notes.append(f"measured on {len(hosts)} hosts, which may differ")
    parts = (first.gpu or f"{where}, {first.executable}", _mode(first), first.build_type)
    return History(", ".join(filter(None, parts)), first.gpu, runs, notes)


def _place(commit: str, order: list[str]) -> int:
    """Return where a commit, which files may shorten, is in the log; -1 where it is not."""
    return next((i for i, known in enumerate(order) if commit and known.startswith(commit)), -1)


def _log(repository: Path) -> list[str]:
    """Return all commits of a repository, parents first."""
    command = ["git", "-C", str(repository), "rev-list", "--topo-order", "--reverse", "--all"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except OSError as error:
        raise LadderError(f"git: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        told = error.stderr.strip().splitlines() or ["git rev-list failed"]
        raise LadderError(f"{repository}: {told[0]}") from error
    return done.stdout.split()
