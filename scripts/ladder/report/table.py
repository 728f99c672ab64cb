# SPDX-License-Identifier: MIT
"""Tables of results: Markdown for reading, CSV and JSON for other programs."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ladder.analysis import families, prediction
from ladder.analysis.emulated_study import Tally, limiter, per_request, tallies
from ladder.analysis.limits import Limits
from ladder.analysis.prediction import Predictions
from ladder.analysis.study import Study, describe, name_of, studies
from ladder.io import files
from ladder.io.results import Results, frame
from ladder.model import units
from ladder.model.counters import SPACES
from ladder.model.errors import LadderError
from ladder.model.rows import Row, bare
from ladder.model.text import nearest
from ladder.report import counter_tables, speed_tables, sweep_tables
from ladder.report.markdown import (
    OCCUPANCY_LIMITED_BY,
    TRIPLE,
    code,
    escape,
    resources,
    table,
    triple,
)

# All ladders' tables; one ladder's is "transactions/LADDER", "counters/LADDER".
TRANSACTIONS, COUNTERS = "transactions", "counters"
# Of rows of no ladder: families over an argument, and all of them.
ARGUMENTS, BENCHMARKS = "arguments", "benchmarks"
_RATES = (("bytes_per_second", "bytes", "B/s"), ("items_per_second", "items", "items/s"))
_REQUESTED, _DISTRIBUTED = "requested / compulsory bytes", "distributed accesses"
_COUNTED = {  # of columns, what their titles do not say
    _REQUESTED: "bytes of global memory that lanes and bulk copies request, divided by those of "
    "all different sectors that are read and of those that are written",
    _DISTRIBUTED: "accesses of single lanes to another block's shared memory",
}
_EMPTY = (
    "a dash or an empty cell: no such request is counted, the registers are unknown, or nothing "
    "limits the occupancy; docs/emulator.md explains every count"
)
TREE, CLIMB, CHOICES = "tree", "climb", "choices"
_MARKER = re.compile(
    r"(?P<open><!-- ladder:table (?P<name>\S+) -->)(?P<body>.*?)(?P<close><!-- ladder:end -->)",
    re.DOTALL,
)


def markdown(
    results: list[Results], ladder: str | None = None, metric: str = sweep_tables.TIME
) -> str:
    """Return the tables of each of `results`: one per ladder, or only the one that is named.

    Tables have the names that markers use; a ladder's name stands for its table of transactions
    too. Rows of no ladder come last: over their arguments, in `metric`, and in a table of all.
    """
    tables = _tables(results, metric=metric)
    if ladder is None:
        apart = (TREE, CLIMB, CHOICES)  # for documents alone
        wanted = [name for name in tables if name not in (TRANSACTIONS, COUNTERS)]  # but the parts
        wanted = [name for name in wanted if name.partition("/")[0] not in apart]
    elif ladder == "":
        wanted = [name for name in (ARGUMENTS, BENCHMARKS) if name in tables]
    else:
        wanted = [name for name in (ladder, f"{TRANSACTIONS}/{ladder}") if name in tables]
    found = [(name, write()) for name in wanted for write in tables[name]]
    if not found:
        raise LadderError(_unknown(ladder, results))
    blocks = [block for _, block in found if block]
    counted = [block for name, block in found if name.startswith(TRANSACTIONS)]
    if counted:  # below the last of them, which timed tables may follow
        blocks.insert(blocks.index(counted[-1]) + 1, _legend("\n".join(counted)))
    return "\n\n".join(blocks) + "\n"


def _legend(counted: str) -> str:
    """Say what the columns that these tables have mean."""
    told = [f"{title}: {why}" for title, why in _COUNTED.items() if f"| {title} |" in counted]
    return "\n".join(["In these tables:", *(f"- {line}" for line in [*told, _EMPTY])])


def tidy(results: list[Results], form: str, ladder: str | None = None) -> str:
    """Return one row per measurement as `csv` or `json`, in the columns of `ladder.load`.

    One more column is `gain`: the speed over that of the parent, the rung that it builds on.
    """
    found = [s for r in results for s in studies(r)]
    gains = {row: s.gain(row) for s in found if s.results.source == "timed" for row in s.rows}
    rows = [row for r in results for row in r.rows if ladder in (None, row.ladder)]
    if not rows:
        there = dict.fromkeys(study.ladder.name for study in found)
        raise LadderError(f"no ladder '{ladder}'; {nearest(str(ladder), there)}")
    tidied = frame(rows).rename(columns={"gain": "user_gain"})
    tidied["gain"] = [gains.get(row, math.nan) for row in rows]
    tidied = tidied.dropna(axis="columns", how="all").convert_dtypes()
    if form == "csv":
        written: str = tidied.to_csv(index=False, lineterminator="\n")
        return written
    records = tidied.astype(object).where(tidied.notna(), None).to_dict("records")
    return files.indented(records)


def path(results: list[Results], name: str) -> str:
    """Return the path to `name`, a "ladder/rung": a table for each of `results` that has it.

    Raises LadderError if no timed results have it.
    """
    ladder, _, rung = name.partition("/")
    timed = [s for r in results if r.source == "timed" for s in studies(r)]
    named = [s for s in timed if s.ladder.name == ladder]
    found = [s for s in named if s.ladder.rung(rung)]
    if not found:
        known = dict.fromkeys(rung.name for study in named for rung in study.ladder.rungs)
        raise LadderError(
            f"--path {name}: {ladder}'s rungs are {', '.join(known)}"
            if known
            else f"--path {name}: no timed results of a ladder {ladder}"
        )
    return "\n\n".join(speed_tables.path(study, rung) for study in found) + "\n"


def ladders(results: Results, names: list[str | None]) -> set[str]:
    """Return the ladders of `results` that tables of these names show; None stands for all."""
    present = {row.ladder for row in results.rows}
    if {None, "", "overview", COUNTERS} & set(names):
        return present
    return present & {name.rpartition("/")[2] for name in names if name}


def update(
    path: Path,
    results: list[Results],
    ladder: str | None = None,
    differences: Path | None = None,
) -> list[str]:
    """Replace the tables between the markers of a Markdown file in place; return their names.

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
    return wanted


def _by_nsight_compute(result: Results, results: list[Results]) -> dict[str, Row]:
    """Return the counterpart of a run that CUPTI counted, by Nsight Compute."""
    return prediction.counterpart(
        result, [r for r in results if not str(r.context.get("counters")).startswith("CUPTI")]
    )


def _tables(
    results: list[Results], differences: Path | None = None, metric: str = sweep_tables.TIME
) -> dict[str, list[Callable[[], str]]]:
    """What writes each name's tables: of speed from timed results, of requests from emulated."""
    tables: dict[str, list[Callable[[], str]]] = defaultdict(list)
    for result in results:
        if result.source == "timed" and (found := studies(result)):
            limits = Limits(result)
            tables["overview"].append(partial(speed_tables.overview, result, limits))
            if any(row.chosen for row in result.rows):
                tables[CHOICES].append(partial(speed_tables.choices, result))
            for study in found:
                tables[study.ladder.name].append(partial(speed_tables.ladder, study, limits))
                if study.ladder.is_tree:
                    tables[f"{TREE}/{study.ladder.name}"].append(partial(_tree, study))
                    tables[f"{CLIMB}/{study.ladder.name}"].append(partial(_climb, study, limits))
            if pairs := counter_tables.compare(result, _by_nsight_compute(result, results)):
                tables[f"{COUNTERS}_agreement"].append(
                    partial(counter_tables.agreement, result, pairs)
                )
            for study in filter(counter_tables.has_counters, found):
                for name in (COUNTERS, f"{COUNTERS}/{study.ladder.name}"):
                    tables[name].append(partial(counter_tables.table, study, limits))
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
    foreign = [r for r in results if r.source == "timed" and any(not row.ladder for row in r.rows)]
    for result in foreign:
        for sweep in families.sweeps(result):
            if metric == sweep_tables.TIME or sweep_tables.has(sweep, metric):
                write = partial(sweep_tables.table, result, sweep, metric)
                tables[ARGUMENTS].append(write)
    if foreign and metric != sweep_tables.TIME and ARGUMENTS not in tables:
        from ladder.stats import metrics  # with scipy, which takes a while to load

        metrics.check(metric, foreign)
        raise LadderError(f"--metric {metric}: no rows over an argument have it")
    for result in foreign:
        tables[BENCHMARKS].append(partial(_foreign, result))
    return tables


def _tree(study: Study) -> str:
    from ladder.report import tree  # with the figures' libraries, which take a while to load

    return tree.mermaid(study)


def _climb(study: Study, limits: Limits) -> str:
    from ladder.report import tree

    return tree.climb(study, limits)


def _unknown(name: str | None, results: list[Results]) -> str:
    """Say that no table has this name, and why where results hold no speeds."""
    there = nearest(name or "", _tables(results) or ["none"])
    sources = {r.source for r in results}
    reasons = [r.hardware_counters for r in results if r.hardware_counters.startswith("none")]
    if name and name.partition("/")[0] == COUNTERS and "timed" in sources:
        return f"no table '{name}': {(reasons or ['no row carries counters'])[0]}"
    if sources == {"counters"}:
        return "hardware counters alone make no table: give the emulated results beside them"
    if sources and "timed" not in sources:
        wanted = f"no table '{name}'" if name else "no table"
        return f"{wanted} from emulated results, whose times are no speeds; {there}"
    return f"no ladder '{name}'; {there}"


def predicted(predictions: Predictions, title: str) -> str:
    """Return a table of emulated and measured totals, a line per rung, and how many agree.

    Of several cases of a rung, the table shows the one that differs most.
    """
    lines = []
    for rung, rows in predictions.rungs.items():
        line = {"rung": code(rung), "cases": str(len(rows))}
        pairs = {space: prediction.worst(rows, space) for space in SPACES}
        for space, unit in SPACES.items():
            pair = pairs[space]
            figures = (
                (units.count(pair.emulated), units.count(pair.measured), f"{pair.ratio:.3f}")
                if pair
                else ("", "", "")
            )
            for what, cell in zip(("emulated", "measured", "ratio"), figures, strict=True):
                line[f"{space} {unit}, {what}"] = cell
        agree = all(row.agrees for row in rows)
        line["within 1 %"] = ("yes" if agree else "no") if any(pairs.values()) else ""
        line["why not"] = "" if agree else escape(rows[0].reason) or "unexplained"
        lines.append(line)
    notes = "\n".join(f"- {line}" for line in predictions.summary())
    return f"{title}\n\n{table(lines)}\n\n{notes}"


def _predicted(emulated: Results, measured: dict[str, Row], differences: Path | None) -> str:
    title = f"{escape(describe(emulated))}, and the GPU's own counters."
    return predicted(prediction.predict(emulated, measured, differences), title)


def _transactions(tally: Tally) -> str:
    lines = []
    for rung, row in tally.shown:
        distributed = row.distributed_accesses
        moved = row.global_bytes / row.compulsory_bytes if row.compulsory_bytes else math.nan
        lines.append(
            {
                "rung": code(name_of(rung, row)),
                "idea": rung.idea,
                **{
                    f"{space} {unit} per request, {TRIPLE}": triple(row, space)
                    for space, unit in SPACES.items()
                },
                _REQUESTED: units.count(moved),
                _DISTRIBUTED: units.count(distributed) if distributed > 0 else "",
                "active lanes": units.count(row.active_lanes),
                "barriers": units.count(row.barriers),
                **resources(row),
                OCCUPANCY_LIMITED_BY: limiter(row, tally.sms),
            }
        )
    about = f"{tally.title}: {escape(describe(tally.results))}, {tally.spell(tally.headline)}."
    return "\n\n".join(filter(None, (about, table(lines), _missing(tally))))


def _missing(tally: Tally) -> str:
    """Say why rungs were not counted, one line per rung."""
    rows = [tally.best.get((rung.name, tally.headline)) for rung in tally.rungs]
    return "\n".join(
        f"- {code(row.rung)} {row.status}{': ' + escape(row.reason) if row.reason else ''}"
        for row in rows
        if row and row.status != "ok"
    )


def _experiment(tally: Tally, measured: dict[str, Row]) -> str:
    lines = []
    for rung, row in tally.shown:
        line = {"rung": code(rung.name), "idea": rung.idea}
        other = measured.get(bare(row.name))
        for operation in ("load", "store"):
            found = {
                "predicted": row.counter(f"predicted_{operation}_wavefronts"),
                "emulated": per_request(row, "shared", operation),
                "measured": per_request(other, "shared", operation) if other else math.nan,
            }
            for what, value in found.items():
                line[f"{operation}, {what}"] = units.count(value)
        lines.append(line)
    about = f"{tally.title}, wavefronts per request: {escape(describe(tally.results))}."
    return f"{about}\n\n{table(lines)}"


def _foreign(results: Results) -> str:
    lines = [
        {
            "benchmark": code(row.name),
            "time": units.duration(row.seconds),
            "CPU time": units.duration(row.cpu_seconds),
            "iterations": units.whole(row.iterations),
            "threads": units.whole(row.threads),
            "repetitions": str(row.repetitions),
            **{title: units.scaled(row.counter(name), unit) for name, title, unit in _RATES},
            "note": escape(f"{row.status}: {row.reason}" if row.reason else row.label),
        }
        for row in results.rows
        if not row.ladder
    ]
    return f"{escape(describe(results))}.\n\n{table(lines)}"
