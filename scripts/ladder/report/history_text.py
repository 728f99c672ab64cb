# SPDX-License-Identifier: MIT
"""Histories of rows as text, Markdown or JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

from ladder.analysis.history import UNDATED
from ladder.io import files
from ladder.model import units
from ladder.report.markdown import aligned, escape, table
from ladder.stats import metrics, trend
from ladder.stats.trend import Shift, Track, Trend

_BLOCKS = "▁▂▃▄▅▆▇█"
_LEAST_SPAN = 0.05  # of logs: a sparkline of noise alone stays flat


def text(found: Sequence[Trend]) -> str:
    """Write a line per row: its ends, its sparkline (up is better) and its change points.

    A history of a single run has its notes and a line per row that failed.
    """
    return "\n".join(_block(one, aligned, "", str) for one in found)


def markdown(found: Sequence[Trend]) -> str:
    """Write the same as Markdown tables."""
    return "\n".join(_block(one, table, "- ", escape) for one in found)


def to_json(found: Sequence[Trend]) -> str:
    """Write a list of histories; what was not measured is null, times are in seconds."""
    document = [
        {
            "title": one.history.title,
            "metric": one.metric,
            "better": "more" if one.more else "less",
            "notes": _notes(one),
            "runs": [
                {
                    "label": r.label,
                    "commit": r.commit,
                    "date": None if r.date == UNDATED else r.date.isoformat(),
                }
                for r in one.history.runs
            ],
            "rows": [asdict(track) | {"slower": track.slower} for track in one.tracks],
        }
        for one in found
    ]
    return files.indented(document)


def _block(
    one: Trend,
    table: Callable[[list[dict[str, str]]], str],
    bullet: str,
    told: Callable[[str], str],
) -> str:
    runs = one.history.runs
    first, last = runs[0].label, runs[-1].label
    if len(runs) == 1:
        failed = [t for t in one.tracks if t.status != "ok"]
        alone = [f"{t.name}: {t.status}{t.reason and f': {t.reason}'}" for t in failed]
        notes = [f"{bullet}{told(note)}" for note in (*_notes(one), *alone)]
        title = told(f"{one.history.title}: one run, {first}: no trend.")
        return "\n".join([title, *[""] * bool(notes), *notes]) + "\n"
    told_lines = (line(one, track) for track in one.tracks)
    lines = [{title: told(cell) for title, cell in each.items()} for each in told_lines]
    title = f"{one.history.title}: {one.metric} in {len(runs)} runs, from {first} to {last}."
    changed = sum(bool(track.shifts) for track in one.tracks)
    slower = sum(track.slower for track in one.tracks)
    rows = f"{len(lines)} row{'s' * (len(lines) > 1)}"
    summary = f"{rows}, {changed} changed, {slower} slower since their last change"
    notes = [f"{bullet}{told(note)}" for note in (*_notes(one), summary)]
    return "\n".join([told(title), "", table(lines), "", *notes]) + "\n"


def line(one: Trend, track: Track) -> dict[str, str]:
    """Return the cells of a row's history: its ends, its sparkline and its change points."""
    told = units.duration if metrics.is_time(one.metric) else units.count
    known = [value for value in track.values if value == value]
    notes = [_shift(one, shift) for shift in track.shifts]
    if track.outliers:
        notes.append(f"outliers: {', '.join(one.history.runs[i].label for i in track.outliers)}")
    if len(known) < trend.LEAST_RUNS <= len(track.values):
        notes.append(f"in {len(known)} runs alone: neighbours compared")
    if track.status != "ok":
        reason = f": {track.reason}" if track.reason else ""
        notes.append(f"newest run: {track.status}{reason}")
    return {
        "benchmark": track.name,
        "first": told(known[0]),
        "last": told(known[-1]),
        "ratio": _ratio(one, track),
        # Up is better: of a time what is drawn is the speed.
        "speed" if metrics.is_time(one.metric) else "history": sparkline(
            track.values, more=one.more
        ),
        "note": ", ".join(notes),
    }


def _ratio(one: Trend, track: Track) -> str:
    """Write how much better the last segment is than the first: above 1."""
    if not track.shifts:
        return ""
    first, last = track.levels[0], track.levels[-1]
    better, worse = (last, first) if one.more else (first, last)
    return f"{better / worse:.3f}" if worse else ""


def _shift(one: Trend, shift: Shift) -> str:
    reason = f" ({shift.reason})" if shift.reason else ""
    return f"{shift.verdict} {shift.ratio:.3f} at {one.history.runs[shift.at].label}{reason}"


def _notes(one: Trend) -> list[str]:
    notes = [f"note: {note}" for note in one.history.notes]
    if 1 < len(one.history.runs) < trend.LEAST_RUNS:
        few = f"fewer than {trend.LEAST_RUNS} runs"
        notes.append(f"note: {few}: neighbours compared, as 'ladder compare' does")
    return notes


def sparkline(values: Sequence[float], *, more: bool) -> str:
    """Draw values as blocks, the best highest; a run without one is a dot."""
    known = [math.log(value) for value in values if value > 0]
    if not known:
        return ""
    low, high = min(known), max(known)
    widened = max(high - low, _LEAST_SPAN)
    low -= (widened - (high - low)) / 2
    drawn = []
    for value in values:
        place = (math.log(value) - low) / widened if value > 0 else math.nan
        place = place if more else 1 - place
        top = len(_BLOCKS) - 1
        drawn.append(_BLOCKS[min(top, int(place * len(_BLOCKS)))] if place == place else "·")
    return "".join(drawn)
