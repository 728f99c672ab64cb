# SPDX-License-Identifier: MIT
"""Rows without a ladder by machine: the time on each, its ratio to the first, and the fastest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ladder.analysis.history import dated
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row


@dataclass(frozen=True)
class Machines:
    """Benchmarks by machine; a machine is a GPU, or the host's name where there is none."""

    columns: dict[str, str]  # commits by machine
    rows: dict[str, dict[str, Row]]  # by benchmark and machine
    notes: list[str]

    def seconds(self, name: str, machine: str) -> float:
        """Return the time of a row; NaN where it has none."""
        row = self.rows[name].get(machine)
        return row.seconds if row and row.status == "ok" else math.nan

    def ratio(self, name: str, machine: str) -> float:
        """Return how many times as fast a row is as on the first machine."""
        return self.seconds(name, next(iter(self.columns))) / self.seconds(name, machine)

    def is_fastest(self, name: str, machine: str) -> bool:
        """Whether there are several machines and none of them takes less."""
        times = [self.seconds(name, each) for each in self.columns]
        known = [time for time in times if time == time]
        return len(known) > 1 and self.seconds(name, machine) == min(known)


def machines(results: Sequence[Results], pattern: Any = None) -> Machines | None:
    """Return the rows of no ladder whose name contains a match of `pattern`; None without any.

    The newest run of each program on a machine counts; a note names the older ones.
    """
    runs: dict[tuple[str, str], list[Results]] = {}
    for result in results:
        if result.source == "timed" and any(not row.ladder for row in result.rows):
            runs.setdefault((machine_of(result), result.program), []).append(result)
    columns: dict[str, list[str]] = {}
    rows: dict[str, dict[str, Row]] = {}
    notes = []
    for (machine, program), several in runs.items():
        newest, *older = sorted(several, key=dated, reverse=True)
        if older:
            of = f"{machine}, {program}" if program else machine
            others = ", ".join(map(_run, older))
            notes.append(f"{of}: {_run(newest)}, the newest; not {others}")
        columns.setdefault(machine, []).append(newest.commit)
        for row in newest.rows:
            if not row.ladder and (pattern is None or pattern.search(row.name)):
                rows.setdefault(row.name, {})[machine] = row
    if not rows:
        return None
    commits = {machine: ", ".join(dict.fromkeys(filter(None, c))) for machine, c in columns.items()}
    return Machines(commits, rows, notes)


def machine_of(result: Results) -> str:
    """Name what ran it: the GPU, or else the host."""
    return result.gpu or f"host {result.context.get('host_name', 'unknown')}"


def block(
    found: Machines,
    table: Callable[[list[dict[str, str]]], str],
    mark: Callable[[str], str],
    told: Callable[[str], str],
) -> str:
    """Write what the cells mean, the table, and its notes."""
    about = "Benchmarks of no ladder. Time"
    first, several = next(iter(found.columns)), len(found.columns) > 1
    if several:
        about += f", × {first}; the fastest is marked"
    lines = []
    for name in found.rows:
        line = {"benchmark": told(name)}
        for machine, commit in found.columns.items():
            title = told(f"{machine} ({commit})" if commit else machine)
            cell = told(_cell(found, name, machine, several=several and machine != first))
            line[title] = mark(cell) if found.is_fastest(name, machine) else cell
        lines.append(line)
    reasons = [
        f"{machine}: {name} {'failed' if row.status == 'error' else row.status}: {row.reason}"
        for name, by_machine in found.rows.items()
        for machine, row in by_machine.items()
        if row.status != "ok"
    ]
    notes = [f"- {told(note)}" for note in (*reasons, *found.notes)]
    return "\n".join([told(f"{about}."), "", table(lines), *[""] * bool(notes), *notes]) + "\n"


def records(found: Machines) -> list[dict[str, Any]]:
    """Return a record per benchmark and machine; unknown numbers are NaN."""
    return [
        {
            "benchmark": name,
            "gpu": machine,
            "commit": commit,
            "status": row.status if (row := by_machine.get(machine)) else "not run",
            "reason": row.reason if row else "",
            "seconds": found.seconds(name, machine),
            "over_first": found.ratio(name, machine),
            "fastest": found.is_fastest(name, machine),
        }
        for name, by_machine in found.rows.items()
        for machine, commit in found.columns.items()
    ]


def _cell(found: Machines, name: str, machine: str, *, several: bool) -> str:
    if not (row := found.rows[name].get(machine)):
        return "not run"
    if row.status != "ok":
        return "failed" if row.status == "error" else row.status
    ratio = found.ratio(name, machine)
    times = f" · {units.number(ratio)}×" if several and ratio == ratio else ""
    return f"{units.duration(row.seconds)}{times}"


def _run(result: Results) -> str:
    date = str(result.context.get("date", "an unknown date"))[:10]
    return f"{f'commit {result.commit}' if result.commit else result.file} of {date}"
