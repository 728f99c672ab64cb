# SPDX-License-Identifier: MIT
"""Puts results of several commits in order: the history of one machine, a point per commit."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ladder.io.programs import host_program
from ladder.io.results import Results
from ladder.model.errors import LadderError
from ladder.model.text import first_of

UNDATED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Run:
    """What was measured at one commit, a Results per process; a file without a commit is a run."""

    label: str  # short commit, or the file's name; where several have that, its date or its path
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
    """Return when a file was measured; `UNDATED`, long ago, if the file has no date."""
    try:
        date = datetime.fromisoformat(str(results.context.get("date", "")))
    except ValueError:
        return UNDATED
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def histories(results: Sequence[Results], repository: Path | None = None) -> list[History]:
    """Sort processes (`load_processes`) into histories, one for each machine, in order of time.

    Runs are ordered by date, or by the log of the git `repository`. Raises LadderError where git
    fails, OSError where there is none.
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
        labels = _labels([processes[0] for processes in runs.values()])
        made = [
            Run(label, str(processes[0].context.get("git_commit", "")), tuple(processes))
            for label, processes in zip(labels, runs.values(), strict=True)
        ]
        ordered = _ordered(sorted(made, key=lambda run: run.date), order)
        found.append(replace(ordered, title=_title(ordered)))
    titles = Counter(history.title for history in found)
    return [
        replace(one, title=f"{one.title}, {_details(one)}") if titles[one.title] > 1 else one
        for one in found
    ]


def _labels(results: Sequence[Results]) -> list[str]:
    """Name runs, no two alike: by commit or file name, then by day, minute and path."""
    ways: list[Callable[[Results], str]] = [
        lambda result: "" if dated(result) == UNDATED else f"{dated(result):%Y-%m-%d}",
        lambda result: "" if dated(result) == UNDATED else f"{dated(result):%Y-%m-%d %H:%M}",
        lambda result: result.file,
    ]
    labels = [result.commit or Path(result.file).stem for result in results]
    for way in ways:
        counts = Counter(labels)
        labels = [
            (way(result) or label) if counts[label] > 1 and not result.commit else label
            for label, result in zip(labels, results, strict=True)
        ]
    return labels


def _machine(result: Results) -> tuple[str, ...]:
    """Return what must be equal for times to be comparable.

    That is the GPU, or else the program and the CPUs; and how it was measured. The host's name does
    not count, since each container has another.
    """
    host = () if result.gpu else (result.program, *host_program(result.context))
    return result.gpu, result.conditions, result.build_type, *host


def _title(history: History) -> str:
    """Name the machine and the program of a history, in one line."""
    result = history.runs[0].processes[0]
    where = [result.gpu] if result.gpu else [result.program, _hosts(history)]
    return ", ".join(filter(None, (*where, result.conditions, result.build_type)))


def _hosts(history: History) -> str:
    hosts = {
        str(r.context.get("host_name", "unknown")) for run in history.runs for r in run.processes
    }
    return f"host {min(hosts)}" if len(hosts) == 1 else f"{len(hosts)} hosts"


def _details(history: History) -> str:
    """Say what tells apart histories of programs and hosts of the same name."""
    context = history.runs[0].processes[0].context
    cpus = f"{context['num_cpus']:g} CPUs" if isinstance(context.get("num_cpus"), float) else ""
    return ", ".join(filter(None, (str(context.get("executable", "")), cpus)))


def _ordered(runs: list[Run], order: list[str]) -> History:
    """Order `runs` by the log if it has all their commits; else leave them in order of date."""
    notes = []
    if order:
        places = {run.commit: _place(run.commit, order) for run in runs}
        if lost := [run.label for run in runs if places[run.commit] < 0]:
            are = "is" if len(lost) == 1 else "are"
            notes.append(f"ordered by date: {first_of(lost)} {are} not in the repository")
        else:
            runs = sorted(runs, key=lambda run: (places[run.commit], "dirty" in run.label))
    boards = {r.context.get("gpu_uuid") for run in runs for r in run.processes} - {None}
    if len(boards) > 1:
        notes.append(f"measured on {len(boards)} boards, which may differ")
    hosts = {r.context.get("host_name") for run in runs for r in run.processes if not r.gpu}
    if len(hosts) > 1:
        notes.append(f"measured on {len(hosts)} hosts of one kind, which may differ")
    return History("", runs[0].processes[0].gpu, runs, notes)


def _place(commit: str, order: list[str]) -> int:
    """Return the place in the log of a commit, which may be shortened; -1 if it is not there."""
    return next((i for i, known in enumerate(order) if commit and known.startswith(commit)), -1)


def _log(repository: Path) -> list[str]:
    """Return all commits of a repository, parents first."""
    command = ["git", "-C", str(repository), "rev-list", "--topo-order", "--reverse", "--all"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        told = error.stderr.strip().splitlines() or ["git rev-list failed"]
        raise LadderError(f"{repository}: {told[0]}") from error
    return done.stdout.split()
