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
_RESOURCES = ("registers", "shared", "occupancy")
_THROTTLED = "†"  # marks a speed measured below the full clock
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
        # Beside it first: a full disk must not cost the document.
        new = path.with_name(path.name + ".new")
        try:
            new.write_bytes(filled.encode(errors="backslashreplace"))
            new.replace(path)
        except OSError as error:
            new.unlink(missing_ok=True)
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
    lines = [columns, [":--" if c in left else "--:" for c in columns]]
    lines += [[line[c].replace("|", "\\|").replace("\n", " ") for c in columns] for line in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
