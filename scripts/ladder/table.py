# SPDX-License-Identifier: MIT
"""Tables of results: Markdown for reading, CSV and JSON for other programs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pandas as pd

from ladder import units
from ladder.errors import LadderError
from ladder.results import Results
from ladder.study import PREDICTION, Row, Study, describe, studies

_MAX_SHAPES = 6
_MARKER = re.compile(
    r"(?P<open><!-- ladder:table (?P<name>\S+) -->)(?P<body>.*?)(?P<close><!-- ladder:end -->)",
    re.DOTALL,
)


def markdown(results: list[Results], ladder: str | None = None) -> str:
    """Write one table a ladder, for each of `results`; `overview` is a name too."""
    blocks = [
        block
        for name in _names(results)
        if ladder in (None, name)
        for block in _blocks(results, name)
    ]
    if ladder in (None, ""):
        blocks += [_foreign(r) for r in results if (r.rows["ladder"] == "").any()]
    if not blocks:
        raise LadderError(f"no ladder '{ladder}'; there are: {', '.join(_names(results))}")
    return "\n\n".join(blocks) + "\n"


def tidy(results: list[Results], form: str, ladder: str | None = None) -> str:
    """Write one row a measurement as `csv` or `json`; columns as `ladder.load` documents them."""
    rows = pd.concat([r.rows for r in results], ignore_index=True)
    if ladder is not None and (rows := rows[rows["ladder"] == ladder]).empty:
        raise LadderError(f"no ladder '{ladder}'; there are: {', '.join(_names(results)[1:])}")
    rows = rows.dropna(axis="columns", how="all").convert_dtypes()
    if form == "csv":
        return rows.to_csv(index=False, lineterminator="\n")
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def update(path: Path, results: list[Results], ladder: str | None = None) -> None:
    """Replace the tables between the markers of a Markdown file in place.

    A table goes between `<!-- ladder:table NAME -->` and `<!-- ladder:end -->`. Raises
    LadderError when the file cannot be used, has no marker or names a ladder not in `results`.
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
    if missing := sorted(set(wanted or [str(ladder)]) - set(_names(results) if wanted else [])):
        where = "the results hold no such ladder" if wanted else "the file has no such marker"
        raise LadderError(f"{path}: {missing[0]}: {where}")
    newline = "\r\n" if "\r\n" in text else "\n"

    def fill(match: re.Match[str]) -> str:
        if match["name"] not in wanted:
            return match[0]
        body = "\n\n".join(_blocks(results, match["name"])).replace("\n", newline)
        return match["open"] + newline + body + newline + match["close"]

    filled = _MARKER.sub(fill, text)
    if filled != text:
        try:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.write(filled)
        except OSError as error:
            raise LadderError(f"{path}: {error.strerror}") from error


def _names(results: list[Results]) -> list[str]:
    return ["overview", *dict.fromkeys(s.ladder.name for r in results for s in studies(r))]


def _blocks(results: list[Results], name: str) -> list[str]:
    if name == "overview":
        return [_overview(r) for r in results if studies(r)]
    return [_ladder(s) for r in results for s in studies(r) if s.ladder.name == name]


def _ladder(study: Study) -> str:
    headline = study.headline
    cases = _pick(study.facets[study.facet(headline)], headline)
    divisor, unit = study.unit
    table = []
    for rung in study.rungs:
        row = study.ok(rung, headline)
        about = ", ".join(filter(None, (rung.role.replace("step", ""), rung.precision)))
        line = {"rung": f"`{rung.name}`" + (f" ({about})" if about else ""), "idea": rung.idea}
        for case in cases:
            line[study.label(case) if len(study.cases) > 1 else "speed"] = _cell(
                study, study.best.get((rung.name, case)), divisor
            )
        line[f"% of `{study.ladder.ceiling}`"] = units.percent(study.percent(row)) if row else ""
        line["× peer"] = study.to_peer(row) if row else ""
        predicted = study.prediction(row) if row else ("", "", "")
        line |= zip(PREDICTION, predicted, strict=True)
        line["registers"] = f"{row.registers:.0f}" if row and row.registers >= 0 else ""
        line["shared"] = units.kibibytes(_shared(row)) if row else ""
        line["occupancy"] = units.percent(100 * row.theoretical_occupancy) if row else ""
        table.append(line)
    notes = [f"{study.ladder.title}: {describe(study.results)}."]
    if not study.ladder.is_roof:
        notes.append(f"Speed in {unit}.")
    if study.spell(headline):
        notes.append(f"Percent, ratio and resources at {study.spell(headline)}.")
    if any(line[PREDICTION[0]] for line in table):
        notes.append("Slow-down against the fastest step.")
    if sweeps := sorted({rung.sweep for rung in study.rungs if rung.sweep}):
        notes.append(f"In parentheses: the best {', '.join(sweeps)}.")
    return "\n\n".join(filter(None, (" ".join(notes), _format(table), _absent(study))))


def _cell(study: Study, row: Row | None, divisor: float) -> str:
    if row is None or row.status != "ok":
        return row.status if row else ""
    if study.ladder.is_roof:  # roofs differ in quantity and by decades, so each has its own unit
        if row.bytes_per_second > 0:
            return units.rate("bytes", row.bytes_per_second)
        return units.rate("flops", row.flops_per_second)
    return units.number(study.speed(row) / divisor) + (f" ({row.sweep})" if row.sweep else "")


def _shared(row: Row) -> float:
    known = [b for b in (row.static_shared_bytes, row.dynamic_shared_bytes) if b == b]
    return sum(known) if known else math.nan


def _absent(study: Study) -> str:
    """Say why cases have no speed, one line a rung and reason."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for (name, case), row in study.best.items():
        if row.status != "ok":
            key = (row.status, name, row.reason)
            reasons.setdefault(key, []).append(study.spell(case))
    return "\n".join(
        f"- `{name}` {status}{': ' + reason if reason else ''}"
        + (f" ({_several(cases)})" if any(cases) else "")
        for (status, name, reason), cases in reasons.items()
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
    lines = [columns, [":--" if c in left else "--:" for c in columns]]
    lines += [[line[c].replace("|", "\\|").replace("\n", " ") for c in columns] for line in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
