# SPDX-License-Identifier: MIT
"""A report of results as one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from ladder.analysis import roofs
from ladder.analysis.limits import Limits
from ladder.analysis.study import Study, describe
from ladder.io.results import Results
from ladder.model.errors import LadderError
from ladder.report import comparison_text, plots
from ladder.report.html import figures, pages, rows
from ladder.report.html.source import Sources
from ladder.report.plots import parallel, style
from ladder.stats.compare import Comparison

_HERE = Path(__file__).parent
_MOST_CHANGES = 8  # on the first screen


@dataclass(frozen=True)
class Run:
    """The pages of one GPU at one commit."""

    number: int  # from 1
    name: str
    suffix: str  # of its links
    title: str
    facts: list[tuple[str, str]]
    counts: str
    ladders: list[pages.LadderPage]
    signs: dict[str, str]  # what those after the speeds of the best rungs mean
    sweeps: list[pages.Table]  # of rows of no ladder
    plots: list[pages.Plot]
    notes: list[str]
    source: str  # what is to be said of the kernels' source


def write(
    results: list[Results],
    comparison: Comparison | None = None,
    checkout: Path | None = None,
) -> bytes:
    """Return the report of `results`, and of the `comparison` whose head they are.

    The source of kernels is that of the `checkout`; without one there is none in it.
    """
    results = sorted(results, key=lambda result: result.source != "timed")  # speeds come first
    sources = Sources(checkout) if checkout else None
    names = style.distinct_names(results)
    jobs: list[Callable[[], Run] | Callable[[], str]] = []
    for number, (result, name) in enumerate(zip(results, names, strict=True), start=1):
        found, limits = pages.found(result), Limits(result)
        counters = [r for r in results if r.source == "counters" and result.source == "emulated"]
        jobs.append(partial(_run, number, name, result, counters, found, limits, sources))
        jobs.append(partial(_rows, result, found, limits))
    made = parallel.run(jobs)
    runs = made[::2]
    blocks = {f"rows-{run.number}": block for run, block in zip(runs, made[1::2], strict=True)}
    worse: list[dict[str, Any]] = []
    if comparison:
        block = rows.of_comparison(comparison)
        worse = [row for row in block["rows"] if row["bad"]]
        blocks["changes"] = _json(block)
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": _code, "comments": _comments}
    page = environment.get_template("report.html.j2").render(
        runs=runs,
        side_by_side=_side_by_side(results),
        comparison=comparison,
        counts=comparison_text.counts(comparison) if comparison else "",
        remarks=comparison_text.remarks(comparison) if comparison else [],
        lost=[comparison_text.cells(comparison, change) for change in comparison.lost]
        if comparison
        else [],
        gravest=worse[:_MOST_CHANGES],
        worse=len(worse),
        blocks=blocks,
        columns=pages.columns,
        style=_asset("report.css"),
        script=_asset("report.js"),
    )
    return page.encode(errors="backslashreplace")


def _run(
    number: int,
    name: str,
    result: Results,
    counters: list[Results],
    found: list[Study],
    limits: Limits,
    sources: Sources | None,
) -> Run:
    suffix = f"?gpu={number}" if number > 1 else ""
    ladders = [pages.ladder(study, limits, sources) for study in found]
    by_stem = {ladder.name: ladder for ladder in ladders}
    for study, page in zip(found, ladders, strict=True):
        if study.ladder.is_roof:
            by_stem.setdefault("roofs", page)
    points: dict[str, tuple[str, str]] = {}
    for study in found:
        points |= pages.points(study, limits, suffix)
    notes: list[str] = []
    own: list[pages.Plot] = []

    def page_of(stem: str) -> pages.LadderPage | None:
        return by_stem.get(stem) or by_stem.get(stem.rpartition("-")[0])

    def inline(stem: str, figure: Figure) -> str:
        home = page_of(stem)
        title = home.title if home else name
        return figures.inline(figure, f"{number}-{stem}", f"{title}: {stem}", points)

    for stem, svg in _figures([result, *counters], inline, notes).items():
        home = page_of(stem)
        (home.plots if home else own).append(pages.plot(stem, Markup(svg)))
    counted = Counter(row.status for row in result.rows)
    told = ", ".join(f"{count} {status}" for status, count in counted.most_common())
    if result.source != "timed":
        name += f", {result.context.get('counters', 'emulated')}"
    return Run(
        number=number,
        name=name,
        suffix=suffix,
        title=describe(result),
        facts=pages.context(result),
        counts=f"{len(result.rows)} rows: {told}",
        ladders=ladders,
        signs=roofs.explained(filter(None, (s.best_step(s.headline) for s in found))),
        sweeps=pages.sweeps(result),
        plots=own,
        notes=notes,
        source=_source(sources, result),
    )


def _rows(result: Results, found: list[Study], limits: Limits) -> str:
    return _json(rows.of_results(result, found, limits))


def _figures(
    results: list[Results], inline: Callable[[str, Figure], str], notes: list[str]
) -> dict[str, str]:
    try:
        return plots.make(results, inline, notes.append)
    except LadderError as error:
        notes.append(f"No plots: {error}")
        return {}


def _side_by_side(results: list[Results]) -> list[pages.Plot]:
    """Plot timed results of several GPUs together, if all are cold or all warm."""
    timed = [r for r in results if r.source == "timed" and pages.found(r)]
    if len(timed) < 2 or len({r.cache_mode for r in timed}) > 1:
        return []

    def inline(stem: str, figure: Figure) -> str:
        return figures.inline(figure, stem, stem, {})

    drawn = plots.make_compared(timed, inline)
    return [pages.plot(stem, Markup(svg)) for stem, svg in drawn.items()]


def _source(sources: Sources | None, result: Results) -> str:
    """Say of which commit the source is, if it is not that of the results."""
    if sources is None:
        return ""
    ours, theirs = sources.commit, str(result.context.get("git_commit", ""))
    dirty = result.commit.endswith("-dirty") or ours.endswith("-dirty")
    if ours and not dirty and theirs and ours.startswith(theirs):
        return ""
    own = f"commit {ours[:7]}{'-dirty' * ours.endswith('-dirty')}" if ours else "an unknown commit"
    return f"Source of {own}; the results are of {result.commit or 'an unknown commit'}."


def _asset(name: str) -> Markup:
    return Markup((_HERE / name).read_text(encoding="utf-8"))


def _json(block: dict[str, Any]) -> Markup:
    """Write JSON that cannot end the element it stands in."""
    text = json.dumps(block, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _code(text: str) -> Markup:
    """Show what stands in `backquotes` as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _comments(text: str) -> Markup:
    """Move a source to the left, and set its comments apart."""
    text = textwrap.dedent(text)
    return Markup(re.sub(r"(//[^\n]*)", r"<i>\1</i>", str(escape(text))))
