# SPDX-License-Identifier: MIT
"""Parts of the tables: Markdown of lines, and cells that several tables have."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ladder.analysis.emulated_study import per_request
from ladder.model import units
from ladder.model.counters import OPERATIONS
from ladder.model.rows import Row

RESOURCES = ("registers", "shared", "occupancy")
LIMITED_BY, OCCUPANCY_LIMITED_BY = "limited by", "occupancy limited by"  # of speed, of warps
TRIPLE = " / ".join(OPERATIONS)  # what the cells of `triple` are
_TEXT = {"rung", "idea", "ladder", "case", "best rung", "best at", "benchmark", "note", "counter"}
_TEXT |= {"use", "where", "its parent was limited by", "what it changed"}
_TEXT |= {LIMITED_BY, OCCUPANCY_LIMITED_BY, "why not", "waits for", "largest difference"}
_TEXT |= {"ran", "against", "shows"}
# Of underscores those between letters are no markup.
_MARKUP = re.compile(r"[\\`*\[\]<>|~&#$]|(?<![^\W_])_|_(?![^\W_])")
_CODE = re.compile(r"<code>(.*?)</code>|(?<!\\)`([^`]*)`")
_ESCAPED = re.compile(r"\\([\\`*\[\]<>|~&#$_])")
_CELL = re.compile(r"(?:\\.|[^\\|])+")  # of a row of a table
_PIPE = re.compile(r"\\.|\|")  # or what is escaped already


def table(lines: list[dict[str, str]]) -> str:
    """Write a Markdown table without the columns that are empty.

    Cells are Markdown: what a file says goes through `escape` or `code` first.
    """
    if not lines:
        return "No measurements."
    columns = used_columns(lines)
    rows = [columns, [":--" if c in _TEXT else "--:" for c in columns]]
    rows += [[_PIPE.sub(_escaped, line[c]).replace("\n", " ") for c in columns] for line in lines]
    return "\n".join(map(markdown_row, rows))


def markdown_row(texts: Iterable[str]) -> str:
    """Write a row of a Markdown table."""
    return f"| {' | '.join(texts)} |"


def _escaped(match: re.Match[str]) -> str:
    return r"\|" if match[0] == "|" else match[0]


def code(text: str) -> str:
    """Write a name as code, in one line, whatever it holds."""
    line = " ".join(text.split())
    return f"<code>{escape(line)}</code>" if re.search(r"[`|\\]", line) else f"`{line}`"


def escape(text: str) -> str:
    """Escape markup of Markdown and HTML, in one line."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def used_columns(lines: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the columns of a table that are not empty throughout."""
    lines = list(lines)
    return [column for column in (lines[0] if lines else {}) if any(line[column] for line in lines)]


def padded(rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> list[str]:
    """Return rows of cells as lines of text with aligned columns; `right` says which to the right.

    Raises ValueError if rows differ in length.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    flags = right or [False] * len(widths)
    return [
        "  ".join(
            cell.rjust(width) if flag else cell.ljust(width)
            for cell, width, flag in zip(row, widths, flags, strict=True)
        ).rstrip()
        for row in rows
    ]


def aligned(lines: list[dict[str, str]]) -> str:
    """Write the same as plain text, its columns padded."""
    columns = used_columns(lines)
    cells = [[" ".join(line[column].split()) for column in columns] for line in lines]
    return "\n".join(padded([columns, *cells]))


def plain(markdown: str) -> str:
    """Write Markdown of this package as plain text: tables aligned, nothing escaped.

    Columns of numbers are aligned to the right, as Markdown has them.
    """
    lines: list[str] = []
    block: list[list[str]] = []
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("| ") and line.endswith(" |"):
            block.append([cell.strip() for cell in _CELL.findall(line)])
            continue
        lines += _columns(block)
        block = []
        lines.append(_unescaped(line))
    return "\n".join(lines[:-1])


def _columns(block: list[list[str]]) -> list[str]:
    if not block:
        return []
    head, kinds, *body = block
    cells = [[_unescaped(cell) for cell in row] for row in [head, *body]]
    return padded(cells, [kind == "--:" for kind in kinds])


def _unescaped(text: str) -> str:
    """Remove the markup of `code` and `escape`."""
    text = _CODE.sub(lambda match: match[1] if match[1] is not None else match[2], text)
    return _ESCAPED.sub(r"\1", text)


def triple(row: Row, space: str) -> str:
    """Write transactions per request by `TRIPLE`; a dash where there are none."""
    values = [per_request(row, space, operation) for operation in OPERATIONS]
    cells = [units.count(value) or "–" for value in values]
    return " / ".join(cells) if any(value == value for value in values) else ""


def resources(row: Row) -> dict[str, str]:
    """Write what a kernel takes, under `RESOURCES`."""
    known = [b for b in (row.static_shared_bytes, row.dynamic_shared_bytes) if b == b]
    registers = f"{row.registers:.0f}" if row.registers >= 0 else ""
    shared = units.kibibytes(sum(known) if known else math.nan)
    occupancy = units.percent(100 * row.theoretical_occupancy)
    return dict(zip(RESOURCES, (registers, shared, occupancy), strict=True))
