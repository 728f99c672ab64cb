# SPDX-License-Identifier: MIT
"""What a study prints at its end: tables that fit a screen, of what the files have at length."""

from __future__ import annotations

import math
import sys

from rich.console import Console
from rich.table import Table

from ladder.analysis.emulated_study import Tally, tallies
from ladder.analysis.limits import Limits
from ladder.analysis.study import describe, name_of, studies
from ladder.io.results import Results
from ladder.model.counters import SPACES
from ladder.report import speed_tables
from ladder.report.markdown import LIMITED_BY, TRIPLE, resources, triple, used_columns
from ladder.report.plots import quantities, why

_MOST_RUNGS = 18
_WIDTH = 120  # where there is no terminal
_FEW = 3  # names in a line
_NAMES = {"ladder", "rung", "best rung"}
_TEXT = _NAMES | {"case", LIMITED_BY}


def timed(results: Results) -> None:
    """Print the best rung of each ladder at its headline, a line each."""
    limits = Limits(results)
    lines = [line for study in studies(results) if (line := speed_tables.best(study, limits))]
    for line in lines:
        del line["case"]
        line["% of ceiling"] = line["% of ceiling"].partition(" ")[0]
    _print(f"{describe(results)}. Each at its headline, which `ladder table` names:", lines)


def emulated(results: Results, measured: list[Results], *, checked: bool) -> None:
    """Print the rungs if they are few; else each ladder's rows, and what GPUs measured of it."""
    found = tallies(results)
    if found and sum(len(tally.shown) for tally in found) <= _MOST_RUNGS:
        for tally in found:
            _print(f"{tally.title}: {describe(results)}, {_at(tally)}.", _rungs(tally))
        for gpu in measured:
            for title, told in _best(gpu).items():
                print(f"{title}, best rung measured on {gpu.gpu}: {told}")
    else:
        lines: dict[str, dict[str, str]] = {}
        for ladder in results.ladders:
            status = [row.status for row in results.rows if row.ladder == ladder.name]
            if status:
                lines[ladder.title] = {
                    "ladder": ladder.title,
                    "counted": str(status.count("ok")),
                    "failed": str(status.count("error") or ""),
                }
        beside = " Of GPUs: the best rung, measured earlier." if measured else ""
        _print(f"{describe(results)}.{beside}", lines, measured)
        if changes := list(filter(None, map(_largest_change, found))):
            print("The largest change of a target counter in each ladder:", *changes, sep="\n")
    status = [row.status for row in results.rows]
    how = "verified, counted, and checked for races and accesses out of bounds"
    print(
        f"Rows {how if checked else 'verified and counted'}: {status.count('ok')}, "
        f"failed: {status.count('error')}, skipped: {status.count('skipped')}."
    )
    if unknown := _without_registers(results):
        print(
            f"Registers and occupancy are not known of {', '.join(unknown)}: building ladder_bench "
            "with nvcc finds them (cmake --build build/default --target ladder_bench)."
        )


def _largest_change(tally: Tally) -> str:
    """Name the step that changed its target counter most, in proportion; empty if none did."""
    moved = [s for s in why.counted_steps(tally) if s.changes and s.before > 0 < s.after]
    if not moved:
        return ""
    step = max(moved, key=lambda s: abs(math.log(s.after / s.before)))
    rung, counter = step.rung, quantities.words(step.rung.target)
    return f"{tally.title}: {rung.name} on {rung.builds_on}, {counter}: {step.numbers}"


def _without_registers(results: Results) -> list[str]:
    """Name the rungs whose kernel ran although no table has its registers; some, if many."""
    rows = (row for row in results.rows if row.status == "ok" and row.grid_blocks > 0)
    found = list(dict.fromkeys(f"{r.ladder}/{r.rung}" for r in rows if not r.registers >= 0))
    return found if len(found) <= _FEW else [*found[:_FEW], f"{len(found) - _FEW} more"]


def measured_earlier(measured: list[Results]) -> None:
    """Print the best rung that each GPU measured of each ladder."""
    _print("The best rung, measured earlier.", {}, measured)


def _at(tally: Tally) -> str:
    return tally.spell(tally.headline)


def _rungs(tally: Tally) -> list[dict[str, str]]:
    return [
        {
            "rung": name_of(rung, row),
            **{f"{space} {unit}, {TRIPLE}": triple(row, space) for space, unit in SPACES.items()},
            "distributed": f"{row.distributed_accesses:.0f}" * (row.distributed_accesses > 0),
            "occupancy": resources(row)["occupancy"],
        }
        for rung, row in tally.shown
    ]


def _best(results: Results) -> dict[str, str]:
    """Return the best rung of each ladder, by title."""
    limits = Limits(results)
    found = [line for study in studies(results) if (line := speed_tables.best(study, limits))]
    return {
        line["ladder"]: " ".join(
            filter(None, (line["best rung"], line["speed"], line["% of ceiling"].split(" ")[0]))
        ).replace("`", "")
        for line in found
    }


def _print(
    title: str,
    lines: list[dict[str, str]] | dict[str, dict[str, str]],
    measured: list[Results] | None = None,
) -> None:
    """Print lines as a table; those by ladder with a column more for each of `measured`."""
    rows = lines if isinstance(lines, list) else _with(lines, measured or [])
    table = Table(box=None, header_style="bold", pad_edge=False)
    if not rows:
        return
    columns = used_columns(rows)
    for column in columns:
        table.add_column(
            column,
            justify="left" if column in _TEXT else "right",
            no_wrap=column in _NAMES,
        )
    for row in rows:
        table.add_row(*(row[column].replace("`", "") for column in columns))
    # Where no terminal reads it nothing is cut: it may be searched.
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH)
    console.print(title, soft_wrap=True)
    console.print(table)


def _with(lines: dict[str, dict[str, str]], measured: list[Results]) -> list[dict[str, str]]:
    best = {results.gpu: _best(results) for results in measured}
    titles = dict.fromkeys([*lines, *(title for found in best.values() for title in found)])
    empty = dict.fromkeys(next(iter(lines.values()), {}), "")
    return [
        empty
        | {"ladder": title}
        | lines.get(title, {})
        | {gpu: found.get(title, "") for gpu, found in best.items()}
        for title in titles
    ]
