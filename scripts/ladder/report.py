# SPDX-License-Identifier: MIT
"""Writes a comparison as text, Markdown or JSON.

Text and Markdown list the rows that changed, or `every` row; the summary counts all.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ladder import units
from ladder.compare import Change, Comparison

_COLOURS = {
    "FASTER": "green",
    "SLOWER": "red",
    "MISSING": "red",
    "ERROR": "red",
    "NOISY": "yellow",
    "CLOCK": "yellow",
}
_HEADER = ("verdict", "benchmark", "base", "head", "speed ratio", "why")


def terminal(comparison: Comparison, *, every: bool = False) -> None:
    """Print a coloured table and the summary."""
    console = Console(highlight=False)
    table = Table(box=None, header_style="bold")
    for header in _HEADER:
        table.add_column(header, overflow="fold")
    for row in _cells(comparison, every=every):
        colour = _COLOURS.get(row[0], "default")
        table.add_row(f"[{colour}]{row[0]}[/]", *map(escape, row[1:]))
    if table.rows:
        console.print(table)
    for line in _summary(comparison):
        console.print(line, markup=False)


def text(comparison: Comparison, *, every: bool = False) -> str:
    """Write one plain line a benchmark, then the summary."""
    lines = [_HEADER, *_cells(comparison, every=every)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([*(table if len(lines) > 1 else []), *_summary(comparison)]) + "\n"


def markdown(comparison: Comparison, *, every: bool = False) -> str:
    """Write the summary first, as a CI page shows it, then the table."""
    lines = [f"- {line}" for line in _summary(comparison)]
    if cells := _cells(comparison, every=every):
        lines += ["", f"| {' | '.join(_HEADER)} |", "| :-- | :-- | --: | --: | --: | :-- |"]
        escaped = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in cells)
        lines += [f"| {' | '.join(row)} |" for row in escaped]
    return "\n".join(lines) + "\n"


def to_json(comparison: Comparison) -> str:
    """Write everything for other programs; what is not known is null."""
    document = asdict(comparison) | {"exit_code": comparison.exit_code}
    document["changes"] = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in change.items()}
        for change in document["changes"]
    ]
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _cells(comparison: Comparison, *, every: bool) -> list[tuple[str, ...]]:
    several = len({change.gpu for change in comparison.changes}) > 1

    def cells(change: Change) -> tuple[str, ...]:
        name = f"{change.gpu}: {change.name}" if several else change.name
        ratio = "" if math.isnan(change.ratio) else f"{change.ratio:.3f}"
        times = units.duration(change.base_seconds), units.duration(change.head_seconds)
        return (change.verdict, name, *times, ratio, change.reason)

    return [cells(change) for change in comparison.changes if every or not change.unchanged]


def _summary(comparison: Comparison) -> list[str]:
    verb = "refused (--force compares anyway)" if comparison.refused else "compared by force"
    lines = [f"{verb}: {difference}" for difference in comparison.differences]
    lines += [f"note: {note}" for note in comparison.notes]
    if not comparison.refused:
        counts = Counter(change.verdict for change in comparison.changes)
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        lines.append(f"{told} (threshold {100 * comparison.threshold:g}%)")
    return lines
