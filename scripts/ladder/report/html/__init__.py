# SPDX-License-Identifier: MIT
"""A report of results as one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from ladder.analysis import roofs
from ladder.analysis.history import histories
from ladder.analysis.limits import Limits
from ladder.analysis.study import Study, describe
from ladder.io.results import Results, load_processes
from ladder.io.samples import beside as samples_of
from ladder.model.errors import LadderError
from ladder.report import comparison_text, plots
from ladder.report.html import charts, figures, pages, rows
from ladder.report.html.source import Sources
from ladder.report.markdown import used_columns
from ladder.report.plots import parallel, style
from ladder.stats.compare import Comparison
from ladder.stats.trend import Trend, trend
from ladder.stats.verdicts import Rules

_HERE = Path(__file__).parent
_MOST_CHANGES = 8  # on the first screen


@dataclass(frozen=True)
class Run:
    """The pages of one GPU at one commit."""

    number: int  # from 1
    name: str
    gpu: str  # empty of host code
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
    history: str  # of which commits there is one


def write(
    results: list[Results],
    comparison: Comparison | None = None,
    checkout: Path | None = None,
) -> bytes:
    """Return the report as one HTML page, in UTF-8.

    `results` are the head of the `comparison`, if there is one. The report shows the kernels of the
    `checkout`; without a checkout it shows none.
    """
    results = sorted(results, key=lambda result: result.source != "timed")  # speeds come first
    newest = _newest(results)
    sources = Sources(checkout) if checkout else None
    names = style.distinct_names([result for result, _ in newest])
    studies = [pages.found(result) for result, _ in newest]
    jobs: list[Callable[[], Any]] = [charts.library if any(studies) else lambda: ("", "")]
    for number, ((result, one), found) in enumerate(zip(newest, studies, strict=True), start=1):
        limits = Limits(result)
        counters = [r for r in results if r.source == "counters" and result.source == "emulated"]
        beside = pages.Beside(limits, sources, samples_of(result), one)
        jobs.append(partial(_run, number, names[number - 1], result, counters, found, beside))
        jobs.append(partial(_rows, result, found, limits))
    (library, versions), *made = parallel.run(jobs)
    runs: list[Run] = made[::2]
    shown = [_charts(run) for run in runs]
    if not any(shown):
        library = ""
    side_by_side = _side_by_side([result for result, _ in newest])
    styles = _share_styles(runs, side_by_side)
    blocks: dict[str, Markup] = {}
    for run, block, own in zip(runs, made[1::2], shown, strict=True):
        blocks |= {f"rows-{run.number}": block, f"counters-{run.number}": _counters(run)}
        if library:
            blocks[f"charts-{run.number}"] = _json(own)
    worse: list[dict[str, Any]] = []
    if comparison:
        block = rows.of_comparison(comparison)
        worse = [row for row in block["rows"] if row["bad"]]
        blocks["changes"] = _json(rows.packed(block))
    template = _environment().get_template("report.html.j2")
    page = template.render(
        runs=runs,
        side_by_side=side_by_side,
        chapters=_chapters(runs, sources) if sources else {},
        comparison=comparison,
        counts=comparison_text.counts(comparison) if comparison else "",
        remarks=comparison_text.remarks(comparison) if comparison else [],
        lost=[comparison_text.cells(comparison, change) for change in comparison.lost]
        if comparison
        else [],
        gravest=worse[:_MOST_CHANGES],
        worse=len(worse),
        blocks=blocks,
        columns=used_columns,
        style=_asset("report.css") + Markup(styles),
        script=_asset("report.js"),
        charts=_asset("charts.js"),
        library=Markup(library),
        licence=_asset("vega-licence.txt"),
        versions=versions,
        charts_missing=any(shown) and not library,
        megabytes=f"{len(library) / 1e6:.1f}",
    )
    return page.encode(errors="backslashreplace")


@cache  # to compile the templates takes longer than to fill them
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": _code, "comments": _comments, "breakable": _breakable}
    return environment


def _newest(results: list[Results]) -> list[tuple[Results, Trend | None]]:
    """Return the results that have pages, each with its history or None.

    Of several commits that one machine timed, only the newest has pages.
    """
    timed = [r for r in results if r.source == "timed" and r.commit]
    trends: dict[int, Trend | None] = {}
    for history in histories(timed):
        ordered = [result for run in history.runs for result in run.processes]
        trends |= dict.fromkeys(map(id, ordered[:-1]))
        if len(history.runs) > 1:
            files = [path for result in ordered for path in result.files]
            readable = all(Path(path).is_file() for path in files)
            (own,) = histories(load_processes(files)) if readable else (history,)
            trends[id(ordered[-1])] = trend(own, Rules())
    kept = [r for r in results if trends.get(id(r), r) is not None]
    return [(result, trends.get(id(result))) for result in kept]


def _run(
    number: int,
    name: str,
    result: Results,
    counters: list[Results],
    found: list[Study],
    beside: pages.Beside,
) -> Run:
    suffix = f"?gpu={number}" if number > 1 else ""
    ladders = [pages.ladder(study, beside) for study in found]
    by_stem = {ladder.name: ladder for ladder in ladders}
    for study, page in zip(found, ladders, strict=True):
        if study.ladder.is_roof:
            by_stem.setdefault("roofs", page)
    notes: list[str] = []
    own: list[pages.Plot] = []

    def page_of(stem: str) -> pages.LadderPage | None:
        return by_stem.get(stem) or by_stem.get(stem.rpartition("-")[0])

    def inline(stem: str, figure: Figure) -> str:
        home = page_of(stem)
        title = home.title if home else name
        return figures.inline(figure, f"{number}-{stem}", f"{title}: {stem}")

    drawn = _figures([result, *counters], inline, notes)
    for stem, svg in drawn.items():
        home = page_of(stem)
        if not stem.startswith(plots.OVER):
            (home.plots if home else own).append(pages.plot(stem, svg))
    counted = Counter(row.status for row in result.rows)
    told = ", ".join(f"{count} {status}" for status, count in counted.most_common())
    if result.source != "timed":
        name += f", {result.context.get('counters', 'emulated')}"
    history = beside.trend.history.runs if beside.trend else []
    return Run(
        number=number,
        name=name,
        gpu=result.gpu,
        suffix=suffix,
        title=describe(result),
        facts=pages.context(result),
        counts=f"{len(result.rows)} rows: {told}",
        ladders=ladders,
        signs=roofs.explained(filter(None, (s.best_step(s.headline) for s in found))),
        sweeps=pages.sweeps(result, drawn),
        plots=own,
        notes=notes,
        source=_source(beside.sources, result),
        history=", ".join(run.label for run in history),
    )


def _share_styles(runs: list[Run], side_by_side: list[pages.Plot]) -> str:
    """Give the elements of all figures classes instead of styles; return the rules."""
    drawn = [*side_by_side]
    for run in runs:
        drawn += run.plots + [plot for ladder in run.ladders for plot in ladder.plots]
        drawn += [table.plot for table in run.sweeps if table.plot]
    svgs, rules = figures.share_styles([plot.svg for plot in drawn])
    for plot, svg in zip(drawn, svgs, strict=True):
        plot.svg = Markup(svg)
    return rules


def _counters(run: Run) -> Markup:
    """Write the counters of each rung: groups and names once, the values by the rung's route."""
    own = {rung.route: rung.counters for page in run.ladders for rung in page.rungs}
    names = dict.fromkeys(
        (group, name)
        for counters in own.values()
        for group, entries in counters
        for name, _ in entries
    )
    told = {
        at: {(group, name): value for group, entries in counters for name, value in entries}
        for at, counters in own.items()
        if counters
    }
    values = {at: [each.get(name, "") for name in names] for at, each in told.items()}
    return _json({"names": list(names), "rungs": values})


def _charts(run: Run) -> dict[str, Any]:
    """Return what the charts of a run's ladders and rungs draw, by their routes."""
    found: dict[str, Any] = {page.route: {"climb": page.chart} for page in run.ladders}
    for page in run.ladders:
        for rung in page.rungs:
            found[rung.route] = {"samples": rung.samples, "track": rung.track}
    kept = {at: {name: one for name, one in each.items() if one} for at, each in found.items()}
    return {route: each for route, each in kept.items() if each}


def _chapters(runs: list[Run], sources: Sources) -> dict[str, str]:
    """Return the text of every source file that a rung's page shows, by its name."""
    places = [rung.place for run in runs for page in run.ladders for rung in page.rungs]
    names = {name for place in places if place and place.row for name in place.files}
    return {name: sources.text(name) for name in sorted(names)}


def _rows(result: Results, found: list[Study], limits: Limits) -> str:
    return _json(rows.packed(rows.of_results(result, found, limits)))


def _figures(
    results: list[Results], inline: Callable[[str, Figure], str], notes: list[str]
) -> dict[str, str]:
    try:
        return plots.make(results, inline, notes.append)
    except LadderError as error:
        notes.append(f"No figures: {error}")
        return {}


def _side_by_side(results: list[Results]) -> list[pages.Plot]:
    """Plot timed results of several GPUs together, if all are cold or all warm."""
    timed = [r for r in results if r.source == "timed" and pages.found(r)]
    if len(timed) < 2 or len({r.cache_mode for r in timed}) > 1:
        return []

    def inline(stem: str, figure: Figure) -> str:
        return figures.inline(figure, stem, stem)

    drawn = plots.make_compared(timed, inline)
    return [pages.plot(stem, svg) for stem, svg in drawn.items()]


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


def _breakable(name: str) -> Markup:
    """Let a long name be broken after its underscores."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))


def _comments(text: str) -> Markup:
    """Set the comments of a source apart."""
    return Markup(re.sub(r"(//[^\n]*)", r"<i>\1</i>", str(escape(text))))
