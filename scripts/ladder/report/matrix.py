# SPDX-License-Identifier: MIT
"""Rungs by GPUs: speed, percent of each GPU's own roof, and which rung wins where."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from ladder.analysis import roofs
from ladder.analysis.history import dated
from ladder.analysis.study import Study, own_quantity, own_speed, studies, values_of
from ladder.io import files
from ladder.io.results import Results
from ladder.model import counters, units
from ladder.model.catalogue import Rung
from ladder.model.errors import IncomparableError, LadderError
from ladder.model.text import nearest
from ladder.report import machines, sweep_tables
from ladder.report.machines import Machines
from ladder.report.markdown import aligned, escape, table

TIE = 0.01  # speeds within this of the best are told beside it


@dataclass(frozen=True)
class Cell:
    """One rung on one GPU at one case; NaN is what is not known."""

    ladder: str
    case: str
    rung: str
    role: str
    gpu: str
    commit: str
    status: str  # ok, skipped, error, "not run" or "no speed"
    reason: str = ""
    quantity: str = ""  # bytes, flops, atomics or loads, of which `speed` is a second's
    speed: float = math.nan
    percent_of_ceiling: float = math.nan  # of a roof of the same GPU
    speedup: float = math.nan  # over the naive rung on the same GPU
    best: bool = False  # fastest step of that GPU
    throttled: bool = False
    sweep: str = ""  # values of the rung's own axes that were its best, or the step it chose
    late: bool = False  # whether samples may hold time of the host
    value: float = math.nan  # of the metric that was asked for, a time in seconds


@dataclass(frozen=True)
class Matrix:
    """One ladder at one case: cells by rung, in climbing order, then by GPU."""

    study: Study  # that spells the case
    case: str
    naive: str  # the rung that speed-ups are over; empty where none was measured
    columns: dict[str, str]  # commit by GPU
    rows: dict[str, list[Cell]]
    notes: list[str]
    metric: str = ""  # that cells show instead of the speed


def matrices(
    results: Sequence[Results],
    ladder: str | None = None,
    case: re.Pattern[str] | None = None,
    metric: str = "",
) -> Iterator[Matrix]:
    """Return the ladders of timed results, each at its headline or at the cases asked for.

    Roofs that do not run at their headline are shown where each is fastest.

    Raises:
        IncomparableError: cold and warm results together.
        LadderError: nothing is left to show, or no row has the metric.
    """
    timed = [result for result in results if result.source == "timed"]
    found: dict[str, list[Study]] = {}
    for study in (study for result in timed for study in studies(result)):
        found.setdefault(study.ladder.name, []).append(study)
    if not found:
        if ladder:
            raise LadderError(f"no ladder '{ladder}': no timed results list any")
        raise LadderError("no timed results of ladders, or of rows that match")
    if metric:
        from ladder.stats import metrics  # with scipy, which takes a while to load

        metrics.check(metric, timed)
    shown = [study.results for several in found.values() for study in several]
    if len(modes := sorted({result.cache_mode or "unknown" for result in shown})) > 1:
        raise IncomparableError(f"cache modes {' and '.join(modes)} do not belong in one table")
    if ladder and ladder not in found:
        raise LadderError(f"no ladder '{ladder}'; {nearest(ladder, found)}")
    gpus = list(dict.fromkeys(result.gpu for result in shown))
    none = lacks = True
    for several in [found[ladder]] if ladder else found.values():
        studied, notes = _newest(several, gpus)
        present = [study for study in studied.values() if study]
        cases: dict[str, set[str]] = {}
        for study in present:
            for at, names in _shown(study).items():
                known = cases.setdefault(at, names)
                cases[at] = known | names if known and names else set()  # all at a headline
        if case:
            cases = {c: set() for s in present for c in s.cases if case.search(c)}
        for at, names in cases.items():
            none = False
            made = _matrix(studied, at, names, notes, metric)
            cells = (cell for row in made.rows.values() for cell in row)
            if not metric or any(cell.value == cell.value for cell in cells):
                lacks = False
                yield made
    if none and case:
        raise LadderError(f"--case {case.pattern}: no case matches")
    if metric and lacks:
        chosen = f"--ladder {ladder}" if ladder else "the headlines"
        at_cases = f"--case {case.pattern}" if case else chosen
        raise LadderError(f"--metric {metric}: no row of {at_cases} has it")


def _shown(study: Study) -> dict[str, set[str]]:
    """Return the headline, and the cases where roofs that it lacks are fastest, with their names.

    All rungs belong to the headline, so it has no names.
    """
    cases: dict[str, set[str]] = {study.headline: set()}
    if study.ladder.is_roof:
        fastest = roofs.measured(study.results)
        for rung in study.ladder.rungs:
            row = fastest.get(rung.name)
            if row and not study.measured(rung, study.headline):
                cases.setdefault(row.case, set()).add(rung.name)
    return cases


def _newest(found: list[Study], gpus: Sequence[str]) -> tuple[dict[str, Study | None], list[str]]:
    """Return the newest study of each GPU (None without any), and notes on those left out."""
    newest: dict[str, Study | None] = dict.fromkeys(gpus)
    notes = []
    for gpu in gpus:
        own = sorted(
            (s for s in found if s.results.gpu == gpu), key=lambda s: dated(s.results), reverse=True
        )
        if own:
            newest[gpu] = own[0]
        if len(own) > 1:
            older = ", ".join(_dated(study) for study in own[1:])
            notes.append(f"{_name(gpu)}: {_dated(own[0])}, the newest; not {older}")
    return newest, notes


def _dated(study: Study) -> str:
    date = str(study.results.context.get("date", "an unknown date"))[:10]
    return f"commit {study.results.commit or 'unknown'} of {date}"


def _matrix(
    studied: dict[str, Study | None], case: str, names: set[str], notes: list[str], metric: str
) -> Matrix:
    present = {gpu: study for gpu, study in studied.items() if study}
    listed: dict[str, Rung] = {}
    for study in present.values():
        for rung in study.ladder.rungs:
            if (rung.name, case) in study.best and (not names or rung.name in names):
                listed.setdefault(rung.name, rung)
    # As their ladder lists them: a GPU that lacks a rung must not put it last.
    fullest = max(present.values(), key=lambda study: len(study.ladder.rungs))
    order = [rung.name for rung in fullest.ladder.rungs]
    climbed = sorted(listed, key=lambda name: order.index(name) if name in order else len(order))
    naive = next(
        (name for name in climbed for s in present.values() if _is_kernel(s, listed[name], case)),
        "",
    )
    rows = {
        name: [
            _cell((fullest.ladder.name, case, name, listed[name].role, gpu), study, naive, metric)
            for gpu, study in studied.items()
        ]
        for name in climbed
    }
    columns = {gpu: study.results.commit if study else "" for gpu, study in studied.items()}
    first = next(study for study in present.values() if case in study.cases)
    return Matrix(first, case, naive, columns, rows, notes, metric)


def _is_kernel(study: Study, rung: Rung, case: str) -> bool:
    """Whether a rung is a step that this GPU ran: rows of the host have no grid.

    A rung of an experiment is no step.
    """
    row = study.ok(rung, case)
    return bool(row and rung.is_step and not study.ladder.factors and row.grid_blocks > 0)


def _cell(
    place: tuple[str, str, str, str, str], study: Study | None, naive: str, metric: str
) -> Cell:
    """Fill the cell at (ladder, case, rung, role, gpu)."""
    _, case, name, _, _ = place
    if study is None:
        return Cell(*place, "", "not run")
    commit = study.results.commit
    if (row := study.best.get((name, case))) is None:
        return Cell(*place, commit, "not run")
    own = study.rung(row)
    quantity: str = study.ladder.quantity
    speed = study.speed(row)
    if study.ladder.is_roof:
        quantity, speed = own_quantity(row), own_speed(row)
    if row.status != "ok" or not speed > 0:
        status = "no speed" if row.status == "ok" else row.status
        return Cell(*place, commit, status, row.reason)
    best, base = study.best_step(case), study.best.get((naive, case))
    compared = base if base and base.status == "ok" and not own.precision else None
    return Cell(
        *place,
        commit,
        "ok",
        "",
        quantity,
        speed,
        math.nan if study.ladder.is_roof else study.percent(row),
        speed / study.speed(compared) if compared else math.nan,
        best is not None and best.rung == name,
        row.throttled > 0,
        values_of(own, row),
        row.late_samples > 0,
        sweep_tables.value(row, metric),
    )


def text(found: list[Matrix], others: Machines | None = None) -> str:
    """Write aligned tables; the best step of a GPU has a star."""
    return _blocks(found, others, aligned, "* {}".format, str)


def markdown(found: list[Matrix], others: Machines | None = None) -> str:
    """Write Markdown tables; the best step of a GPU is bold."""
    return _blocks(found, others, table, "**{}**".format, escape)


def to_csv(found: list[Matrix], others: Machines | None = None) -> str:
    """Write a line per rung, case and GPU; columns as `Cell` has them, and `metric` beside `value`.

    Rows of no ladder have the columns of `machines.records`.
    """
    records = [
        record | ({"metric": m.metric} if m.metric else {}) for m in found for record in _records(m)
    ]
    records += machines.records(others) if others else []
    written: str = pd.DataFrame(records).to_csv(index=False, lineterminator="\n")
    return written


def to_json(found: list[Matrix], others: Machines | None = None) -> str:
    """Return JSON: a list of ladders with their cells, then rows of no ladder; unknown is null."""
    document: list[dict[str, Any]] = [
        {
            "ladder": m.study.ladder.name,
            "case": m.case,
            "naive": m.naive,
            "gpus": m.columns,
            "notes": [*_best(m), *_reasons(m), *m.notes],
            "cells": _records(m),
            **({"metric": m.metric} if m.metric else {}),
        }
        for m in found
    ]
    if others:
        cells = machines.records(others)
        own = {"ladder": "", "gpus": others.columns, "notes": others.notes, "cells": cells}
        document.append(own)
    return files.indented(document)


def _records(matrix: Matrix) -> list[dict[str, Any]]:
    """Return its cells; `value` is there only where a metric was asked for."""
    records = [asdict(cell) for row in matrix.rows.values() for cell in row]
    unasked = set() if matrix.metric else {"value"}
    return [{k: v for k, v in record.items() if k not in unasked} for record in records]


def _blocks(
    found: list[Matrix],
    others: Machines | None,
    table: Callable[[list[dict[str, str]]], str],
    mark: Callable[[str], str],
    told: Callable[[str], str],
) -> str:
    blocks = [_block(matrix, table, mark, told) for matrix in found]
    blocks += [machines.block(others, table, mark, told)] if others else []
    return "\n".join(blocks)


def _block(
    matrix: Matrix,
    table: Callable[[list[dict[str, str]]], str],
    mark: Callable[[str], str],
    told: Callable[[str], str],
) -> str:
    """Write the title, what the cells mean, the table and its notes."""
    ladder = matrix.study.ladder
    speeds = [c.speed for row in matrix.rows.values() for c in row if c.status == "ok"]
    divisor, unit = (1.0, "") if ladder.is_roof else units.rate_unit(ladder.quantity, speeds)
    about = [f"Speed in {unit}"] if unit else ["Speed"]
    if any(c.percent_of_ceiling == c.percent_of_ceiling for r in matrix.rows.values() for c in r):
        about.append(
            f"percent of each GPU's own {ladder.ceilings or 'roof'}{matrix.study.own_ceilings()}"
        )
    if matrix.metric:
        about = [f"Shown: {matrix.metric}; marked: the fastest rung"]
    elif matrix.naive:
        about.append(f"× each GPU's own {matrix.naive}")
    spelled = matrix.study.spell(matrix.case)
    title = ", ".join(filter(None, (ladder.title, spelled and f"at {spelled}")))
    lines = []
    for name, row in matrix.rows.items():
        role = f" ({row[0].role})" if row[0].role != "step" else ""
        line = {"rung": told(name + role)}
        for cell in row:
            written = told(_written(cell, divisor, unit, matrix.metric))
            line[told(_column(cell.gpu, matrix))] = (
                mark(written) if cell.best and written else written
            )
        lines.append(line)
    notes = [f"- {told(note)}" for note in (*_best(matrix), *_reasons(matrix), *matrix.notes)]
    body = [
        told(f"{title}. {', '.join(about)}."),
        "",
        table(lines),
        *([""] if notes else []),
        *notes,
    ]
    return "\n".join(body) + "\n"


def _column(gpu: str, matrix: Matrix) -> str:
    commit = matrix.columns[gpu]
    return f"{_name(gpu)} ({commit})" if commit else _name(gpu)


def _name(gpu: str) -> str:
    return gpu or "host"


def _written(cell: Cell, divisor: float, unit: str, metric: str) -> str:
    if cell.status != "ok":
        return "failed" if cell.status == "error" else cell.status
    if metric:
        value = _value(metric, cell.value)
        return value and " · ".join(filter(None, (value + _signs(cell, metric), cell.sweep)))
    speed = units.number(cell.speed / divisor) if unit else units.rate(cell.quantity, cell.speed)
    speedup = f"{units.number(cell.speedup)}×" if cell.speedup == cell.speedup else ""
    parts = (
        speed + _signs(cell, metric),
        units.percent(cell.percent_of_ceiling),
        speedup,
        cell.sweep,
    )
    return " · ".join(filter(None, parts))


def _value(metric: str, value: float) -> str:
    """Write times and rates with their unit, a share with all of three digits, else a count."""
    times = (sweep_tables.TIME, sweep_tables.CPU_TIME)
    if metric in times or metric.endswith(("_per_second", "_per_joule")):
        return sweep_tables.spell(metric, value)
    return f"{value:#.3g}" if 0 < abs(value) < 1 else units.count(value)


def _best(matrix: Matrix) -> list[str]:
    """Name the best step on each GPU, and those that are as good as it."""
    told = []
    for gpu in matrix.columns:
        column = [c for row in matrix.rows.values() for c in row if c.gpu == gpu]
        if best := next((cell for cell in column if cell.best), None):
            near = [c.rung for c in column if _ties(c, best, matrix)]
            of = " of its speed" if matrix.metric else ""
            ties = f" ({', '.join(near)} within {TIE:.0%}{of})" if near else ""
            told.append(f"on {_name(gpu)}: {best.rung}{ties}")
    word = "fastest" if matrix.metric else "best"  # not in the metric: others may have less of it
    return [f"{word} {'; '.join(told)}"] if told else []


def _ties(cell: Cell, best: Cell, matrix: Matrix) -> bool:
    rung = matrix.study.ladder.rung(cell.rung)
    plain = cell.role == "step" and not (rung and rung.precision) and not cell.best
    return plain and cell.speed >= (1 - TIE) * best.speed


def _reasons(matrix: Matrix) -> list[str]:
    """Say why cells have no speed, and what signs mean."""
    rows = matrix.rows.values()
    told = [
        f"{_name(c.gpu)}: {c.rung} {'failed' if c.status == 'error' else c.status}: {c.reason}"
        for row in rows
        for c in row
        if c.reason
    ]
    shown = (c for row in rows for c in row if not matrix.metric or c.value == c.value)
    signs = "".join(_signs(cell, matrix.metric) for cell in shown)
    return told + [f"{mark}: {why}" for mark, why in roofs.MARKS.items() if mark in signs]


def _signs(cell: Cell, metric: str) -> str:
    """Return the signs that concern what is shown: the clock moves energy too, the host times."""
    known = counters.OWN.get(metric)
    timed = not metric or (known is not None and known.follows_time)
    energy = known is not None and known.group == counters.ENERGY
    slow, late = cell.throttled and (timed or energy), cell.late and timed
    return roofs.SLOW_MARK * slow + roofs.LATE_MARK * late
