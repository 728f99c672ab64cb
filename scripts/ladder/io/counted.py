# SPDX-License-Identifier: MIT
"""Counts and launch properties of a timed run, as a results file without times."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ladder.io import files, ncu
from ladder.model.counters import COUNT, OWN, PROPERTY
from ladder.model.errors import ResultError


def convert(run: Path) -> str:
    """Return a results file of the counts and launch properties of a run with hardware counters.

    Rows that failed, or that the hardware did not count, are left out, as are all repetitions of a
    row but the first.

    Raises:
        ResultError: the file cannot be read, or has no hardware counters.
    """
    document = files.read(run)
    context = document["context"]
    if "counters" in context:
        raise ResultError(f"{run}: has counters alone already")
    source = str(context.get("hardware_counters", ""))
    kept = {key: context[key] for key in ncu.CONTEXT if key in context} | {"counters": source}
    rows: dict[str, dict[str, Any]] = {}
    for row in document["benchmarks"]:
        if _was_counted(row):
            rows.setdefault(row["name"], _row(row))
    if not source or not rows:
        raise ResultError(f"{run}: no hardware counters: measure with --hardware_counters")
    return files.by_row(kept, "benchmarks", list(rows.values()))


def _was_counted(row: dict[str, Any]) -> bool:
    counted = row.get("run_type") == "iteration" and "warp_instructions" in row
    return counted and not row.get("error_occurred")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    named = {key: row[key] for key in ("name", "run_name", "run_type")}
    counters = {
        name: row[name]
        for name, counter in OWN.items()
        if counter.kind in (COUNT, PROPERTY) and math.isfinite(row.get(name, math.nan))
    }
    return named | ncu.NO_TIMES | counters
