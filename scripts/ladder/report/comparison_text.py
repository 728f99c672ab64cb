# SPDX-License-Identifier: MIT
"""Writes a comparison as text, Markdown or JSON.

Text and Markdown list the rows that changed, or `every` row; the summary counts all. Rows that one
side lacks take one line per rung if they are many. A second table has the distributions of the rows
listed where these were asked for, and of rows whose shape differs too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from rich import markup
from rich.console import Console
from rich.table import Table

from ladder.io import files
from ladder.model import units
from ladder.model.rows import bare
from ladder.model.text import first_of
from ladder.report.markdown import escape, markdown_row, padded
from ladder.stats import interval, metrics
from ladder.stats.compare import Comparison
from ladder.stats.distribution import Distribution, Mode
from ladder.stats.verdicts import Change

_COLOURS = {
    "FASTER": "green",
    "SLOWER": "red",
    "MISSING": "red",
    "ERROR": "red",
    "NOISY": "yellow",
    "CLOCK": "yellow",
}
_GRAVITY = ("SLOWER", "ERROR", "MISSING", "CLOCK", "NOISY", "NEW", "FASTER", "SKIPPED", "SAME")
_TEXT = ("verdict", "benchmark", "why", "shapes")
HEADER = ("verdict", "benchmark", "base", "head", "ratio", "interval", "why")
_DISTRIBUTION = ("benchmark", "base / head", "p10", "p50", "p90", "KS", "shapes")
_NAMED = 3  # rows with a warm-up
_LISTED_PER_RUNG = 3  # of the rows that one side lacks
# What follows the name of a rung or a family: /64, /-5, /1k or /rows:64.
_ARGUMENT = re.compile(r"/(?=-?\d[\w.]*(?:/|$)|\w+[:=](?!:))")
_SEVERAL = "'ladder run --base OLD --processes 3 -o DIR NEW', or more files per side"
_SAME_FILES = "base and head are the same files"
_OUTCOMES = ("pass", "regression", "", "", "lost coverage", "incomparable")  # by exit code


def terminal(comparison: Comparison, *, every: bool = False) -> None:
    """Print a coloured table and the summary."""
    console = Console(highlight=False)
    for header, rows in _tables(comparison, every=every):
        table = Table(box=None, header_style="bold")
        for title in header:
            table.add_column(title, overflow="fold")
        for row in rows:
            colour = _COLOURS.get(row[0], "default") if header is HEADER else "default"
            table.add_row(f"[{colour}]{markup.escape(row[0])}[/]", *map(markup.escape, row[1:]))
        console.print(table)
    for remark in remarks(comparison):
        console.print(remark, markup=False)


def text(comparison: Comparison, *, every: bool = False) -> str:
    """Write one plain line per benchmark, then the summary."""
    written: list[str] = []
    for header, rows in _tables(comparison, every=every):
        written += [*[""] * bool(written), *padded([header, *rows])]
    return "\n".join([*written, *remarks(comparison)]) + "\n"


def markdown(comparison: Comparison, *, every: bool = False) -> str:
    """Write the summary first, as a CI page shows it, then the table."""
    lines = [f"- {escape(line)}" for line in remarks(comparison)]
    for header, rows in _tables(comparison, every=every):
        kinds = [":--" if title in _TEXT else "--:" for title in header]
        lines += ["", markdown_row(header), markdown_row(kinds)]
        lines += [markdown_row(map(escape, row)) for row in rows]
    return "\n".join(lines) + "\n"


def to_json(comparison: Comparison) -> str:
    """Write everything for other programs; unknown and infinite numbers are null."""
    mean = comparison.geometric_mean
    document = asdict(comparison) | {"exit_code": comparison.exit_code}
    document["geometric_mean"] = mean and mean._asdict()
    return files.indented(document)


def line(comparison: Comparison) -> str:
    """Write the outcome and what it rests on in one line."""
    outcome = _OUTCOMES[comparison.exit_code]
    if comparison.refused:
        return f"{outcome}: {'; '.join(comparison.differences)}"
    forced = ", compared by force" if comparison.differences else ""
    same = f", {_SAME_FILES}" if comparison.same_files else ""
    few = ""
    if _rests_on_assumptions(comparison):
        few = f"; one process per side rests on assumptions, several do not: {_SEVERAL}"
    return f"{outcome}: {_outcome(comparison)}{forced}{same}{few}"


def gravity(change: Change) -> tuple[int, float]:
    """Sort key: regressions first, and within a verdict the largest changes."""
    off = abs(math.log(change.ratio)) if change.ratio > 0 else 0.0
    return _GRAVITY.index(change.verdict), -off


def shown(comparison: Comparison) -> list[Change]:
    """Return the rows that may have changed."""
    most = 1 + comparison.threshold

    def near(change: Change) -> bool:
        return change.verdict == "NOISY" and 1 / most <= change.ratio <= most

    return [change for change in comparison.changes if not (change.unchanged or near(change))]


def cells(comparison: Comparison, change: Change) -> tuple[str, ...]:
    """Return the cells of a row, under `HEADER`."""
    timed = comparison.metric == metrics.TIME  # then rows that one side lacks have one too
    what = "seconds" if timed else "value"
    told = units.duration if metrics.is_time(comparison.metric) else units.count
    values = (told(getattr(change, f"{side}_{what}")) for side in ("base", "head"))
    ratio = "" if math.isnan(change.ratio) else f"{change.ratio:.3f}"
    span = "" if math.isnan(change.low) else f"{change.low:.3f}–{change.high:.3f}"
    reason = ", ".join(filter(None, ("allowed" * change.allowed, change.reason)))
    return (change.verdict, _name(comparison, change), *values, ratio, span, reason)


def counts(comparison: Comparison) -> str:
    """Say how many rows have which verdict, the gravest first: `2 SLOWER, 31 SAME`."""
    found = Counter(change.verdict for change in comparison.changes)
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in _GRAVITY if found[verdict])


def _tables(
    comparison: Comparison, *, every: bool
) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return header and rows of each table that has any."""
    listed = comparison.changes if every else sorted(shown(comparison), key=gravity)
    differ = [c for c in comparison.changes if c.distribution and c.distribution.differ]
    told = {(change.gpu, change.name): change for change in [*listed, *differ]}.values()
    pairs = [(_name(comparison, change), change.distribution) for change in told]
    tables = (
        (HEADER, [cells(comparison, c) for c in (listed if every else _folded(listed))]),
        (_DISTRIBUTION, [_distribution(name, found) for name, found in pairs if found]),
    )
    return [(header, rows) for header, rows in tables if rows]


def _folded(changes: Sequence[Change]) -> list[Change]:
    """Leave one of many rows of a rung that one side lacks for the same reason; it counts them."""
    alike: dict[tuple[object, ...], list[Change]] = {}
    for at, change in enumerate(changes):
        lacks = change.verdict in ("MISSING", "NEW")
        rung = _ARGUMENT.split(change.name)[0]
        key = (change.gpu, change.verdict, change.allowed, change.reason, rung)
        alike.setdefault(key if lacks else (at, rung), []).append(change)
    found: list[Change] = []
    for (*_, rung), rows in alike.items():
        if len(rows) > _LISTED_PER_RUNG:
            more = f"and {len(rows) - 1} more rows of {rung} (--all)"
            reason = ", ".join(filter(None, (rows[0].reason, more)))
            rows = [replace(rows[0], reason=reason)]
        found += rows
    return found


def _name(comparison: Comparison, change: Change) -> str:
    """Name a row, with its GPU where there are several."""
    return f"{change.gpu}: " * (len(comparison.gpus) > 1) + _in_full(change)


def _in_full(change: Change) -> str:
    """Name a row; of a suite without GPU as its file does, which may have it in both ways."""
    return bare(change.name) if change.gpu else change.name


def _distribution(name: str, found: Distribution) -> tuple[str, ...]:
    """Return the cells of a row's distribution, under `_DISTRIBUTION`."""
    shape = {None: "too few to tell", True: "differ", False: "alike"}[found.differ]
    sides = (("base", found.base_modes), ("head", found.head_modes))
    modes = [f"{side} {_modes(modes)}" for side, modes in sides if modes]
    return (
        name,
        f"{found.base_count} / {found.head_count} {found.of}",
        *(f"{ratio:.3f}" for ratio in (found.p10, found.p50, found.p90)),
        f"{found.kolmogorov_smirnov:.2f}",
        "; ".join([shape, *modes]),
    )


def _modes(modes: Sequence[Mode]) -> str:
    parts = [f"{100 * mode.share:.0f}% at {units.duration(mode.seconds)}" for mode in modes]
    return f"in two modes: {', '.join(parts)}"


def remarks(comparison: Comparison) -> list[str]:
    """Return the remarks on all rows together."""
    verb = "refused (--force compares anyway)" if comparison.refused else "compared by force"
    lines = [f"{verb}: {difference}" for difference in comparison.differences]
    lines += [f"note: {note}" for note in comparison.notes]
    if comparison.same_files:
        lines.append(f"note: {_SAME_FILES}: nothing changed, and NOISY rows tell of noise alone")
    if comparison.refused:
        return lines
    told = [*_warm_ups(comparison), *_assumed(comparison), *_mean(comparison)]
    return [*lines, *told, _outcome(comparison)]


def _mean(comparison: Comparison) -> list[str]:
    mean = comparison.geometric_mean
    return [f"geometric mean of {mean.rows} ratios: {mean.ratio:.3f}"] if mean else []


def _rests_on_assumptions(comparison: Comparison) -> bool:
    """Whether a side of a row has a single process, and no noise was measured."""
    judged = any(change.low < change.high for change in comparison.changes)
    return judged and min(comparison.processes) == 1 and not comparison.noise_measured


def _assumed(comparison: Comparison) -> list[str]:
    """Say what noise was assumed, if a side has one process."""
    if not _rests_on_assumptions(comparison):
        return []
    hosts = {change.host for change in comparison.changes if change.low < change.high}
    told = []
    if False in hosts:
        timed = comparison.follows_time
        launches = f" and {units.duration(interval.LAUNCH_SECONDS)}" if timed else ""
        told.append(f"{100 * interval.FLOOR:g}%{launches}")
    if True in hosts:
        told.append(f"{100 * interval.HOST_FLOOR:g}%{' on a CPU' if told else ''}")
    return [
        f"note: one process per side: runs are assumed to differ by {' or '.join(told)}; "
        f"several processes measure it: {_SEVERAL}"
    ]


def _warm_ups(comparison: Comparison) -> list[str]:
    """Say which rows begin with a repetition that is far from the others."""
    warm = [change for change in comparison.changes if not math.isnan(change.warm_up)]
    if not warm:
        return []
    warm.sort(key=lambda change: -abs(math.log(change.warm_up)))
    rows = [f"{change.warm_up:.3g} times in {_in_full(change)}" for change in warm]
    return [
        f"note: warm-up: the first repetition was far from the others, {first_of(rows, _NAMED)}; "
        "medians leave it out ('--benchmark_min_warmup_time=1' avoids it)"
    ]


def _outcome(comparison: Comparison) -> str:
    """Say what was found, and what it rests on."""
    told = counts(comparison)
    if allowed := sum(change.allowed for change in comparison.changes):
        told += f"; {allowed} of them allowed"
    what = "" if comparison.metric == metrics.TIME else f"{comparison.metric}, "
    most = max(comparison.processes)
    if comparison.processes != (most, most):
        runs = "{} and {} processes".format(*comparison.processes)
    else:
        runs = f"{most} process{'es' * (most > 1)} per side"
    rest = f"threshold {100 * comparison.threshold:g}%, {100 * comparison.confidence:g}% intervals"
    return f"{told} ({what}{rest}, {runs})"
