# SPDX-License-Identifier: MIT
"""A summary in Markdown for a page of limited size, such as GitHub's job summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ladder.analysis import families
from ladder.analysis.limits import Limits
from ladder.analysis.study import describe, studies
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row, bare
from ladder.report import comparison_text, speed_tables, sweep_tables
from ladder.report.markdown import escape, markdown_row, used_columns
from ladder.stats.compare import Comparison
from ladder.stats.verdicts import Change

LIMIT = 1_000_000  # bytes; GitHub refuses a summary above 1 MiB
_REMARK = 100  # bytes at most, of a line that says what is left out


@dataclass(frozen=True)
class _Table:
    title: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def markdown(
    results: list[Results], comparison: Comparison | None = None, limit: int = LIMIT
) -> str:
    """Return overview and changes, then failed rows, then all rows: `limit` bytes at most.

    If a table is cut or left out, a last line says how many of its rows are missing.
    """
    tables = [_overview(result) for result in results]
    if comparison:
        tables += _changes(comparison)
    tables += [table for result in results for table in (*_swept(result), *_rows(result))]
    lines: list[str] = []
    room = limit - _REMARK  # for the last line
    missing = 0
    for table in tables:
        written, left_out = _fit(table, room)
        lines += written
        room -= sum(map(_size, written))
        missing += left_out if not written else 0
    if missing:
        lines.append(f"{missing} rows of further tables are left out.")
    return "\n".join(lines) + "\n"


def table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Write one table, to stand before the others."""
    return "\n".join(_fit(_Table(title, columns, list(rows)), LIMIT)[0]) + "\n"


def _fit(table: _Table, room: int) -> tuple[list[str], int]:
    """Return the lines of a table that fit into `room` bytes, and how many rows do not."""
    lines = [f"### {escape(table.title)}", "", *map(escape, table.remarks)]
    if table.rows:
        lines += ["", markdown_row(table.columns), markdown_row(":--" for _ in table.columns)]
    room -= sum(map(_size, lines)) + _REMARK
    if room < 0:
        return [], len(table.rows)
    for i, row in enumerate(table.rows):
        line = markdown_row(map(escape, row))
        room -= _size(line)
        if room < 0:
            left_out = len(table.rows) - i
            return [*lines, "", f"{left_out} more rows are left out.", ""], left_out
        lines.append(line)
    return [*lines, ""], 0


def _overview(result: Results) -> _Table:
    limits = Limits(result)
    lines = [line for study in studies(result) if (line := speed_tables.best(study, limits))]
    columns = tuple(lines[0]) if lines else ()
    rows = [tuple(line[c].replace("`", "") for c in columns) for line in lines]
    counted = Counter(row.status for row in result.rows)
    told = ", ".join(f"{n} {status}" for status, n in counted.items())
    return _Table(describe(result), columns, rows, [f"{len(result.rows)} rows: {told}."])


def _changes(comparison: Comparison) -> list[_Table]:
    """What changed, the gravest first, then what base measured and head does not."""
    told = comparison_text.counts(comparison) or "nothing compared"
    against = _of_changes(f"Against base: {told}", comparison, comparison_text.shown(comparison))
    lost = _of_changes(f"Lost: {len(comparison.lost)} rows", comparison, comparison.lost)
    against.remarks.extend(f"{remark}." for remark in comparison_text.remarks(comparison))
    return [against, lost] if lost.rows else [against]


def _of_changes(title: str, comparison: Comparison, found: list[Change]) -> _Table:
    rows = [
        comparison_text.cells(comparison, change)
        for change in sorted(found, key=comparison_text.gravity)
    ]
    return _Table(title, comparison_text.HEADER, rows)


def _swept(result: Results) -> list[_Table]:
    """Families of no ladder over their arguments."""
    tables = []
    for sweep in families.sweeps(result):
        if not (lines := sweep_tables.lines(sweep)):
            continue
        columns = used_columns(lines)
        rows = [tuple(line[column] for column in columns) for line in lines]
        title = f"{describe(result)}: {sweep_tables.title(sweep)}"
        tables.append(_Table("; ".join([title, *sweep_tables.notes(sweep)]), tuple(columns), rows))
    return tables


def _rows(result: Results) -> list[_Table]:
    """The rows that failed, then those of each ladder, then those of none."""
    tables = [_of_rows(f"Failed: {describe(result)}", result.with_status("error"))]
    by_ladder: dict[str, list[Row]] = {}
    for row in result.rows:
        by_ladder.setdefault(row.ladder, []).append(row)
    for ladder, rows in by_ladder.items():
        title = next((la.title for la in result.ladders if la.name == ladder), "Other benchmarks")
        tables.append(_of_rows(f"{title}: {describe(result)}", rows))
    return [table for table in tables if table.rows]


def _of_rows(title: str, found: list[Row]) -> _Table:
    rows: list[tuple[str, ...]] = [
        (
            bare(row.name) if row.ladder else row.name,
            units.duration(row.seconds),
            units.duration(row.cpu_seconds) if not row.ladder else "",
            units.percent(row.percent_of_ceiling),
            f"{row.status}: {row.reason}" if row.reason else row.status,
        )
        for row in found
    ]
    columns = ("benchmark", "time", "CPU time", "% of ceiling", "status")
    empty = [i in (2, 3) and not any(row[i] for row in rows) for i in range(len(columns))]
    rows = [tuple(cell for cell, no in zip(row, empty, strict=True) if not no) for row in rows]
    return _Table(title, tuple(c for c, no in zip(columns, empty, strict=True) if not no), rows)


def _size(line: str) -> int:
    return len(line.encode(errors="backslashreplace")) + 1
