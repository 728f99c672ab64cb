# SPDX-License-Identifier: MIT
"""The command trend: its options, and histories as text, Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

from ladder import cells, units
from ladder.arguments import regex
from ladder.compare_command import read_floors
from ladder.errors import OK, REGRESSION, LadderError
from ladder.history import UNDATED, histories
from ladder.results import load_processes

_BLOCKS = "▁▂▃▄▅▆▇█"
_LEAST_SPAN = 0.05  # of logs: a sparkline of noise alone stays flat
_MORE = """\
Each commit is a point: the median of its files' medians. Files of one GPU (else one host), cache
mode and build type make one history. Change points are found by PELT with the squared distance of
logarithms from their segment's mean as cost, and a penalty of 6 x ln(runs) x the row's variance;
those stay whose two segments 'ladder compare' would call FASTER, SLOWER or CLOCK. A run that
differs from both its neighbours is an outlier, so a change shows once a second run has it. With
fewer than 5 runs neighbours are compared instead.

exit codes:
  0  done                           2  wrong usage, nothing to show
  1  --fail: a row became slower    3  a file cannot be read
                                    5  --noise: of another GPU or cache mode
"""


def add(commands: argparse._SubParsersAction) -> None:
    """Add trend."""
    parser = commands.add_parser(
        "trend",
        help="the history of rows over commits, with its change points",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("results", nargs="+", metavar="RESULTS", help="results files, or directories of *.json")
    option("--row", type=regex, metavar="REGEX", help="only rows whose name this is found in")
    option("--metric", default="real_time", metavar="NAME", help="or a counter; default: real_time")
    option("--better", choices=["less", "more"], help="where the metric's name does not tell")
    option("--noise", type=Path, metavar="FILE", help="what 'ladder noise' wrote")
    option(
        "--repository",
        type=Path,
        metavar="DIR",
        help="order commits as they follow in this git repository, not by the dates of the files",
    )
    option("--format", choices=["text", "markdown", "json"], default="text")
    option("--plot", type=_image, metavar="FILE", help="draw it, as .svg or .png")
    option("--fail", action="store_true", help="exit 1 if the last change of a row is for slower")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from ladder import metrics
    from ladder.trend import trend
    from ladder.verdicts import Rules

    results = load_processes(options.results)
    if metrics.is_time(options.metric) or metrics.follows_time(options.metric):
        results = [result for result in results if result.source == "timed"]
    floors = read_floors(options.noise, results) if options.noise else None
    rules = Rules(metric=options.metric, better=options.better, pattern=options.row)
    found = [trend(h, rules, floors) for h in histories(results, options.repository)]
    found = [one for one in found if one.tracks]
    if not found:
        row = f" whose name '{options.row.pattern}' is found in" if options.row else ""
        raise LadderError(f"no row{row} has a {options.metric}")
    if options.plot:
        from ladder.plots import style
        from ladder.plots import trend as figure

        with style.look():
            drawn = figure.draw(found)
            stem, form = options.plot.stem, options.plot.suffix[1:]
            style.save(drawn, options.plot.parent, stem, [form])
    write = {"text": text, "markdown": markdown, "json": to_json}[options.format]
    sys.stdout.write(write(found))
    slower = any(track.slower for one in found for track in one.tracks)
    return REGRESSION if options.fail and slower else OK


def text(found) -> str:
    """Write a line a row: its ends, its sparkline (up is better) and its change points."""
    return "\n".join(_block(one, cells.aligned, "", str) for one in found)


def markdown(found) -> str:
    """Write the same as Markdown tables."""
    return "\n".join(_block(one, cells.table, "- ", cells.escape) for one in found)


def to_json(found) -> str:
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
    return json.dumps(_null(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _null(value):
    if isinstance(value, dict):
        return {key: _null(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_null(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _block(one, table, bullet: str, told) -> str:
    runs = one.history.runs
    first, last = runs[0].label, runs[-1].label
    lines = [_line(one, track) for track in one.tracks]
    count = f"{len(runs)} run{'s' * (len(runs) > 1)}"
    title = f"{one.history.title}: {one.metric} in {count}, from {first} to {last}."
    changed = sum(bool(track.shifts) for track in one.tracks)
    slower = sum(track.slower for track in one.tracks)
    rows = f"{len(lines)} row{'s' * (len(lines) > 1)}"
    summary = f"{rows}, {changed} changed, {slower} slower since their last change"
    notes = [f"{bullet}{told(note)}" for note in (*_notes(one), summary)]
    return "\n".join([told(title), "", table(lines), "", *notes]) + "\n"


def _line(one, track) -> dict[str, str]:
    from ladder import metrics, trend

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
        "history": sparkline(track.values, more=one.more),
        "note": ", ".join(notes),
    }


def _ratio(one, track) -> str:
    """Write how much better the last segment is than the first: above 1."""
    if not track.shifts:
        return ""
    first, last = track.levels[0], track.levels[-1]
    better, worse = (last, first) if one.more else (first, last)
    return f"{better / worse:.3f}" if worse else ""


def _shift(one, shift) -> str:
    reason = f" ({shift.reason})" if shift.reason else ""
    return f"{shift.verdict} {shift.ratio:.3f} at {one.history.runs[shift.at].label}{reason}"


def _notes(one) -> list[str]:
    from ladder import trend

    notes = [f"note: {note}" for note in one.history.notes]
    if len(one.history.runs) < trend.LEAST_RUNS:
        few = f"fewer than {trend.LEAST_RUNS} runs"
        notes.append(f"note: {few}: neighbours compared, as 'ladder compare' does")
    return notes


def sparkline(values, *, more: bool) -> str:
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


def _image(name: str) -> Path:
    if Path(name).suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"'{name}' is neither .svg nor .png")
    return Path(name)
