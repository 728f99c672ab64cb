# SPDX-License-Identifier: MIT
"""Tables of results: Markdown for reading, CSV and JSON for other programs."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from ladder import files, prediction, units
from ladder.errors import LadderError
from ladder.prediction import Predictions
from ladder.results import OPERATIONS, SPACES, Results
from ladder.study import PREDICTION, Row, Study, describe, name_of, studies
from ladder.tally import Tally, bare, limiter, per_request, tallies

TRANSACTIONS = "transactions"  # all ladders' tables; one ladder's is "transactions/LADDER"
_MAX_SHAPES = 6
_RESOURCES = ("registers", "shared", "occupancy")
_THROTTLED = "†"  # marks a speed measured below the full clock
_MARKER = re.compile(
    r"(?P<open><!-- ladder:table (?P<name>\S+) -->)(?P<body>.*?)(?P<close><!-- ladder:end -->)",
    re.DOTALL,
)


def markdown(results: list[Results], ladder: str | None = None) -> str:
    """Write one table a ladder, for each of `results`, or that of one name.

    Names are those of the markers, and of a ladder also for its transactions.
    """
    tables = _tables(results)
    if ladder is None:
        wanted = [name for name in tables if name != TRANSACTIONS]  # their parts say it all
    else:
        wanted = [name for name in (ladder, f"{TRANSACTIONS}/{ladder}") if name in tables]
    blocks = [write() for name in wanted for write in tables[name]]
    if ladder in (None, ""):
        foreign = [r for r in results if r.source == "timed" and (r.rows["ladder"] == "").any()]
        blocks += map(_foreign, foreign)
    if not blocks:
        raise LadderError(_unknown(ladder, results))
    return "\n\n".join(blocks) + "\n"


def tidy(results: list[Results], form: str, ladder: str | None = None) -> str:
    """Write one row a measurement as `csv` or `json`; columns as `ladder.load` documents them."""
    rows = pd.concat([r.rows for r in results], ignore_index=True)
    if ladder is not None and (rows := rows[rows["ladder"] == ladder]).empty:
        there = dict.fromkeys(s.ladder.name for r in results for s in studies(r))
        raise LadderError(f"no ladder '{ladder}'; there are: {', '.join(there)}")
    rows = rows.dropna(axis="columns", how="all").convert_dtypes()
    if form == "csv":
        return rows.to_csv(index=False, lineterminator="\n")
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def update(
    path: Path,
    results: list[Results],
    ladder: str | None = None,
    differences: Path | None = None,
) -> None:
    """Replace the tables between the markers of a Markdown file in place.

    A table goes between `<!-- ladder:table NAME -->` and `<!-- ladder:end -->`. Raises
    LadderError when the file cannot be used, has no marker or names a table not in `results`.
    `differences` is the file of reasons for the table `prediction`.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise LadderError(f"{path}: {getattr(error, 'strerror', None) or 'not text'}") from error
    found = [m["name"] for m in _MARKER.finditer(text)]
    if not found or len(found) != text.count("<!-- ladder:table "):
        raise LadderError(f"{path}: no pair of <!-- ladder:table NAME --> and <!-- ladder:end -->")
    wanted = [name for name in found if ladder in (None, name)]
    if not wanted:
        raise LadderError(f"{path}: {ladder}: the file has no such marker")
    tables = _tables(results, differences)
    if missing := sorted(set(wanted) - set(tables)):
        raise LadderError(f"{path}: {_unknown(missing[0], results)}")
    newline = "\r\n" if "\r\n" in text else "\n"

    def fill(match: re.Match[str]) -> str:
        if match["name"] not in wanted:
            return match[0]
        body = "\n\n".join(write() for write in tables[match["name"]]).replace("\n", newline)
        return match["open"] + newline + body + newline + match["close"]

    filled = _MARKER.sub(fill, text)
    if filled != text:
        files.write(path, filled.encode(errors="backslashreplace"))


def _tables(
    results: list[Results], differences: Path | None = None
) -> dict[str, list[Callable[[], str]]]:
    """What writes each name's tables: of speed from timed results, of requests from emulated."""
    tables: dict[str, list[Callable[[], str]]] = defaultdict(list)
    for result in results:
        if result.source == "timed" and (found := studies(result)):
            tables["overview"].append(partial(_overview, result))
            for study in found:
                tables[study.ladder.name].append(partial(_ladder, study))
    for result in results:
        if result.source == "emulated":
            measured = prediction.counterpart(result, results)
            for tally in tallies(result):
                write = partial(_transactions, tally)
                tables[TRANSACTIONS].append(write)
                tables[f"{TRANSACTIONS}/{tally.ladder.name}"].append(write)
                if tally.predicts:
                    name = f"{tally.ladder.name}_experiment"
                    tables[name].append(partial(_experiment, tally, measured))
            if measured:
                write = partial(_predicted, result, measured, differences)
                tables["prediction"].append(write)
    return tables


def _unknown(name: str | None, results: list[Results]) -> str:
    """Say that no table has this name, and why where results hold no speeds."""
    there = f"there are: {', '.join(_tables(results)) or 'none'}"
    sources = {r.source for r in results}
    if sources == {"counters"}:
        return "hardware counters alone make no table: give the emulated results beside them"
    if sources and "timed" not in sources:
        return f"no table '{name}' from emulated results, whose times are no speeds; {there}"
    return f"no ladder '{name}'; {there}"


def predicted(predictions: Predictions, title: str) -> str:
    """Write emulated beside measured totals, a line a rung, and below it how many agree.

    Of several cases the one that is furthest off is shown.
    """
    table = []
    for rung, rows in predictions.rungs.items():
        line = {"rung": f"`{rung}`", "cases": str(len(rows))}
        pairs = {space: prediction.worst(rows, space) for space in SPACES}
        for space, unit in SPACES.items():
            pair = pairs[space]
            cells = (
                (f"{pair.emulated:,.0f}", f"{pair.measured:,.0f}", f"{pair.ratio:.3f}")
                if pair
                else ("", "", "")
            )
            for what, cell in zip(("emulated", "measured", "ratio"), cells, strict=True):
                line[f"{space} {unit}, {what}"] = cell
        agree = all(row.agrees for row in rows)
        line["within 1 %"] = ("yes" if agree else "no") if any(pairs.values()) else ""
        line["why not"] = "" if agree else rows[0].reason or "unexplained"
        table.append(line)
    notes = "\n".join(f"- {line}" for line in predictions.summary())
    return f"{title}\n\n{_format(table)}\n\n{notes}"


def _predicted(emulated: Results, measured: dict[str, Row], differences: Path | None) -> str:
    title = f"{describe(emulated)}, and the GPU's own counters."
    return predicted(prediction.predict(emulated, measured, differences), title)


def _transactions(tally: Tally) -> str:
    table = []
    for rung, row in tally.shown:
        distributed = row.distributed_accesses
        moved = row.global_bytes / row.compulsory_bytes if row.compulsory_bytes else math.nan
        limit = limiter(row)
        table.append(
            {
                "rung": f"`{name_of(rung, row)}`",
                "idea": rung.idea,
                **{
                    f"{space} {unit} a request, ld / st / atomic": _triple(row, space)
                    for space, unit in SPACES.items()
                },
                "global bytes asked for / touched": f"{moved:.3g}" if moved == moved else "",
                "distributed accesses": f"{distributed:,.0f}" if distributed > 0 else "",
                "active lanes": f"{row.active_lanes:.3g}"
                if row.active_lanes == row.active_lanes
                else "",
                "barriers": f"{row.barriers:,.0f}" if row.barriers == row.barriers else "",
                **_resources(row),
                "limited by": limit,
            }
        )
    about = f"{tally.ladder.title}: {describe(tally.results)}, {tally.spell(tally.headline)}."
    return "\n\n".join(filter(None, (about, _format(table), _missing(tally))))


def _triple(row: Row, space: str) -> str:
    """Write transactions a request of loads, stores and atomics; a dash where there are none."""
    values = [per_request(row, space, operation) for operation in OPERATIONS]
    cells = [f"{value:.3g}" if value == value else "–" for value in values]
    return " / ".join(cells) if any(value == value for value in values) else ""


def _missing(tally: Tally) -> str:
    """Say why rungs were not counted, one line a rung."""
    rows = [tally.best.get((rung.name, tally.headline)) for rung in tally.rungs]
    return "\n".join(
        f"- `{row.rung}` {row.status}{': ' + row.reason if row.reason else ''}"
        for row in rows
        if row and row.status != "ok"
    )


def _experiment(tally: Tally, measured: dict[str, Row]) -> str:
    table = []
    for rung, row in tally.shown:
        line = {"rung": f"`{rung.name}`", "idea": rung.idea}
        other = measured.get(bare(row.name))
        for operation in ("store", "load"):
            found = {
                "predicted": getattr(row, f"predicted_{operation}_wavefronts"),
                "emulated": per_request(row, "shared", operation),
                "measured": per_request(other, "shared", operation) if other else math.nan,
            }
            for what, value in found.items():
                line[f"{operation}, {what}"] = f"{value:.4g}" if value == value else ""
        table.append(line)
    about = f"{tally.ladder.title}, wavefronts a request: {describe(tally.results)}."
    return f"{about}\n\n{_format(table)}"


def _ladder(study: Study) -> str:
    headline = study.headline
    cases = _pick(study.facets[study.facet(headline)], headline)
    percent = f"% of `{study.ladder.ceiling}`"
    divisor, unit = study.unit
    table = []
    for rung in study.rungs:
        row = study.ok(rung, headline)
        measured = study.measured(rung, headline)
        about = ", ".join(filter(None, (rung.role.replace("step", ""), rung.precision)))
        line = {"rung": f"`{rung.name}`" + (f" ({about})" if about else ""), "idea": rung.idea}
        for case in cases:
            line[study.label(case) if len(study.cases) > 1 else "speed"] = _cell(
                study, study.best.get((rung.name, case)), divisor
            )
        line[percent] = units.percent(study.percent(row)) if row else ""
        line["× peer"] = study.to_peer(row) if row else ""
        predicted = study.prediction(row) if row else ("", "", "")
        line |= zip(PREDICTION, predicted, strict=True)
        line |= dict.fromkeys(_RESOURCES, "") | (_resources(measured) if measured else {})
        table.append(line)
    notes = [f"{study.ladder.title}: {describe(study.results)}."]
    if not study.ladder.is_roof:
        notes.append(f"Speed in {unit}.")
    groups = {"percent": (percent,), "ratio": ("× peer",), "resources": _RESOURCES}
    shown = [n for n, columns in groups.items() if any(line[c] for line in table for c in columns)]
    if shown and study.spell(headline):
        names = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        notes.append(f"{names.capitalize()} at {study.spell(headline)}.")
    if any(line[PREDICTION[0]] for line in table):
        notes.append("Slow-down against the fastest step.")
    if sweeps := sorted({rung.sweep for rung in study.rungs if rung.sweep}):
        notes.append(f"In parentheses: the best {', '.join(sweeps)}.")
    return "\n\n".join(filter(None, (" ".join(notes), _format(table), _footnotes(study))))


def _cell(study: Study, row: Row | None, divisor: float) -> str:
    if row is None or row.status != "ok":
        return row.status if row else ""
    mark = _THROTTLED if row.throttled > 0 else ""
    if study.ladder.is_roof:  # roofs differ in quantity and by decades, so each has its own unit
        if row.bytes_per_second > 0:
            return units.rate("bytes", row.bytes_per_second) + mark
        return units.rate("flops", row.flops_per_second) + mark
    sweep = f" ({row.sweep})" if row.sweep else ""
    return units.number(study.speed(row) / divisor) + mark + sweep


def _resources(row: Row) -> dict[str, str]:
    known = [b for b in (row.static_shared_bytes, row.dynamic_shared_bytes) if b == b]
    registers = f"{row.registers:.0f}" if row.registers >= 0 else ""
    shared = units.kibibytes(sum(known) if known else math.nan)
    occupancy = units.percent(100 * row.theoretical_occupancy)
    return dict(zip(_RESOURCES, (registers, shared, occupancy), strict=True))


def _footnotes(study: Study) -> str:
    """Say why cases have no speed and which were throttled, one line a rung and reason."""
    found: dict[str, list[str]] = {}
    for (name, case), row in study.best.items():
        if row.status != "ok":
            note = f"`{name}` {row.status}{': ' + row.reason if row.reason else ''}"
        elif row.throttled > 0:
            note = f"{_THROTTLED} `{name}`: the clock was throttled"
        else:
            continue
        found.setdefault(note, []).append(study.spell(case))
    return "\n".join(
        f"- {note}" + (f" ({_several(cases)})" if any(cases) else "")
        for note, cases in found.items()
    )


def _several(cases: list[str]) -> str:
    return "; ".join(cases) if len(cases) <= 3 else f"{cases[0]} and {len(cases) - 1} more"


def _pick(cases: list[str], headline: str) -> list[str]:
    """Thin the shapes evenly to what a table can show, keeping the headline."""
    if len(cases) <= _MAX_SHAPES:
        return cases
    step = (len(cases) - 1) / (_MAX_SHAPES - 1)
    picked = {round(i * step) for i in range(_MAX_SHAPES)}
    at = cases.index(headline)
    picked = picked - {min(picked, key=lambda i: abs(i - at))} | {at}
    return [cases[i] for i in sorted(picked)]


def _overview(results: Results) -> str:
    table = []
    for study in studies(results):
        if row := study.best_step(study.headline):
            table.append(
                {
                    "ladder": study.ladder.title,
                    "case": study.spell(study.headline),
                    "best rung": f"`{row.rung}`" + (f" ({row.sweep})" if row.sweep else ""),
                    "speed": units.rate(study.ladder.quantity, study.speed(row)),
                    "% of ceiling": f"{units.percent(study.percent(row))} of "
                    f"`{study.ladder.ceiling}`",
                    "× peer": study.to_peer(row),
                }
            )
    return f"{describe(results)}.\n\n{_format(table)}"


def _foreign(results: Results) -> str:
    rows = results.rows[results.rows["ladder"] == ""]
    table = [
        {
            "benchmark": f"`{row.name}`",
            "time": units.duration(row.seconds),
            "repetitions": str(row.repetitions),
            "note": f"{row.status}: {row.reason}" if row.reason else row.label,
        }
        for row in rows.itertuples(index=False)
    ]
    return f"{describe(results)}.\n\n{_format(table)}"


def _format(table: list[dict[str, str]]) -> str:
    """Write a Markdown table, less the columns that are empty throughout."""
    if not table:
        return "No measurements."
    columns = [c for c in table[0] if any(line[c] for line in table)]
    left = {"rung", "idea", "ladder", "case", "best rung", "benchmark", "note"}
    left |= {"limited by", "why not"}
    lines = [columns, [":--" if c in left else "--:" for c in columns]]
    lines += [[line[c].replace("|", "\\|").replace("\n", " ") for c in columns] for line in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
