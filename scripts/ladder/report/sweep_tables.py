# SPDX-License-Identifier: MIT
"""Tables of families over an argument, with what Google Benchmark fitted to them."""

from __future__ import annotations

import math
import re

from ladder.analysis.families import UNNAMED, Fit, Line, Sweep
from ladder.analysis.study import describe
from ladder.io.results import Results
from ladder.model import units
from ladder.model.rows import Row
from ladder.report import markdown

TIME, CPU_TIME = "real_time", "cpu_time"
FIT, RMS = "BigO", "RMS of CPU time"
_MOST, _SHOWN = 12, 10  # values across: if there are more, so many of them
_PER_SECOND = re.compile(r"(.+)_per_second")
_SHORT = {"bytes": "B", "flops": "FLOP"}


def value(row: Row, metric: str) -> float:
    """Return a row's metric, a time in seconds; NaN if the row lacks it."""
    if metric in (TIME, CPU_TIME):
        return row.seconds if metric == TIME else row.cpu_seconds
    return row.counter(metric)


def spell(metric: str, number: float) -> str:
    """Write a value of a metric with its unit; NaN is empty."""
    if metric in (TIME, CPU_TIME):
        return units.duration(number)
    if match := _PER_SECOND.fullmatch(metric):
        return units.scaled(number, f"{_SHORT.get(match[1], match[1])}/s")
    return units.scaled(number, "")


def title(sweep: Sweep, metric: str = TIME) -> str:
    """Say what the table, or the figure, is of."""
    what = {TIME: "time", CPU_TIME: "CPU time"}.get(metric, metric)
    return f"{what} over {'the ' * (sweep.title == UNNAMED)}{sweep.title}"


def has(sweep: Sweep, metric: str) -> bool:
    """Whether any row of a sweep has a metric."""
    return any(
        not math.isnan(value(row, metric)) for li in sweep.lines for row in li.points.values()
    )


def lines(sweep: Sweep, metric: str = TIME) -> list[dict[str, str]]:
    """Return a table's lines as plain text, by column: one for each line of the sweep.

    A fit is of a whole family, so it stands in the family's first line. Lines without the metric
    are left out.
    """
    shown = _shown(sweep)
    told_of: set[str] = set()
    found = []
    for line in sweep.lines:
        cells = {"benchmark": line.name}
        cells |= {sweep.labels[x]: _cell(line, x, metric) for x in shown}
        ok = [row for row in line.points.values() if row.status == "ok"]
        if ok and all(math.isnan(value(row, metric)) for row in ok):
            continue  # it has times, but not this
        fit = None if line.family in told_of else sweep.fits.get(line.family)
        told_of.add(line.family)
        found.append(cells | _fit(fit, metric))
    return found


def notes(sweep: Sweep) -> list[str]:
    """Say what the table leaves out."""
    left = len(sweep.labels) - len(_shown(sweep))
    return [f"{left} more values are left out here"] if left else []


def table(results: Results, sweep: Sweep, metric: str = TIME) -> str:
    """Write the table as Markdown."""
    found = lines(sweep, metric)
    rows = [
        {
            k: markdown.code(cell) if k == "benchmark" else markdown.escape(cell)
            for k, cell in each.items()
        }
        for each in found
    ]
    told = f"{describe(results)}: {title(sweep, metric)}"
    about = markdown.escape("; ".join([told, *notes(sweep)]))
    return f"{about}.\n\n{markdown.table(rows)}"


def _shown(sweep: Sweep) -> list[float]:
    """Thin the values evenly to what a table can show."""
    found = list(sweep.labels)
    if len(found) <= _MOST:
        return found
    step = (len(found) - 1) / (_SHOWN - 1)
    return [found[round(i * step)] for i in range(_SHOWN)]


def _cell(line: Line, x: float, metric: str) -> str:
    if not (row := line.points.get(x)):
        return ""
    return spell(metric, value(row, metric)) if row.status == "ok" else row.status


def _fit(fit: Fit | None, metric: str) -> dict[str, str]:
    if metric not in (TIME, CPU_TIME):
        return {}
    if fit is None:
        return {FIT: "", RMS: ""}
    root = units.percent(100 * fit.rms) if fit.rms == fit.rms else ""
    return {FIT: fit.told(cpu=metric == CPU_TIME), RMS: root}
