# SPDX-License-Identifier: MIT
"""Figures of results. The same files give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from ladder.analysis import families, limits, prediction
from ladder.analysis.emulated_study import tallies
from ladder.analysis.study import Study, describe, studies
from ladder.io import emulator_details, files
from ladder.io.results import Results
from ladder.io.samples import beside as samples_of
from ladder.model.errors import IncomparableError, LadderError
from ladder.model.text import first_of, nearest, slug
from ladder.report import sweep_tables
from ladder.report.plots import (
    agreement,
    arguments,
    banks,
    ceilings,
    climb,
    clusters,
    energy,
    factors,
    latency,
    limiters,
    occupancy,
    overview,
    parallel,
    roofline,
    samples,
    style,
    why,
    wins,
)

_NO_LADDER = "it lists no ladder, and the other figures are of ladders"
_NO_ARGUMENT = "no argument varies"
_MOST_SWEEPS = 12  # figures of one file over an argument


OVER = "over-"  # how the stems of figures over an argument begin

T = TypeVar("T")
_Makers = dict[str, Callable[[], Figure]]  # by the stem of a figure's file


def draw(
    results: list[Results],
    directory: Path,
    formats: Sequence[str],
    warn: Callable[[str], None],
    metric: str = sweep_tables.TIME,
    only: Sequence[str] = ("*",),
) -> list[Path]:
    """Draw the figures of `results` into `directory` and return the files written.

    They are those of `make` whose stems match a pattern of `only`. Once all files are written,
    `warn` is told what could not be drawn. Raises LadderError, as `make` does and where a file
    cannot be written; `warn` is not called then.
    """

    def save(stem: str, figure: Figure) -> list[Path]:
        return style.save(figure, directory, stem, formats)

    notes: list[str] = []
    written = make(results, save, notes.append, metric, only)
    for note in notes:
        warn(note)
    return [path for paths in written.values() for path in paths]


@style.look()
def make(
    results: list[Results],
    finish: Callable[[str, Figure], T],
    warn: Callable[[str], None],
    metric: str = sweep_tables.TIME,
    only: Sequence[str] = ("*",),
) -> dict[str, T]:
    """Make every figure of `results`; return what `finish` makes of each, by the stem of its file.

    Timed results give figures of speed, emulated results those of requests. Rows of no ladder are
    drawn over their arguments, in `metric`. If there are several GPUs, each has a directory, which
    its stems begin with, and the comparison of GPUs stands beside these. Emulated results have a
    directory of their own if there are others. `warn` is told what cannot be drawn. `finish` runs
    in another process, and what it returns is pickled.

    Raises:
        IncomparableError: warm and cold results together.
        LadderError: nothing can be drawn.
    """
    timed = [r for r in results if r.source == "timed"]
    emulated = [r for r in results if r.source == "emulated"]
    if not (timed or emulated):
        raise LadderError("hardware counters alone make no plot: give the emulated results too")
    notes: list[str] = []
    makers = _timed(timed, notes.append, metric, alone=not emulated) if timed else {}
    makers |= _emulated(emulated, results, notes.append, alone=not timed)
    chosen = {s: m for s, m in makers.items() if any(fnmatchcase(s, each) for each in only)}
    if makers and not chosen:
        wanted = " ".join(only)
        raise LadderError(f"no figure '{wanted}'; {nearest(wanted, makers)}")
    finished = _finished(chosen, finish, notes.append)
    if not finished:
        raise LadderError(": ".join(["nothing to plot", *notes[:1]]))
    for note in notes:
        warn(note)
    return finished


@style.look()
def make_compared(results: list[Results], finish: Callable[[str, Figure], T]) -> dict[str, T]:
    """Make only the figures that compare GPUs; return them as `make` does.

    The results are timed, and all have the same cache mode.
    """
    return _finished(_compared(results), finish, lambda _: None)


def _finished(
    makers: _Makers, finish: Callable[[str, Figure], T], warn: Callable[[str], None]
) -> dict[str, T]:
    """Draw and finish what can be drawn, and say what cannot."""

    def job(stem: str, make: Callable[[], Figure]) -> tuple[T | None, str]:
        try:
            return finish(stem, make()), ""
        except style.NothingToDrawError as error:
            return None, f"{stem} not drawn: {error}"

    outcomes = parallel.run([partial(job, *maker) for maker in makers.items()])
    finished = {}
    for stem, (found, problem) in zip(makers, outcomes, strict=True):
        if problem:
            warn(problem)
        else:
            finished[stem] = found
    return finished


def _timed(
    results: list[Results], warn: Callable[[str], None], metric: str, *, alone: bool
) -> _Makers:
    swept = {id(result): families.sweeps(result) for result in results}
    own = {id(result): studies(result) for result in results}
    drawable = [r for r in results if own[id(r)]]
    if len(modes := sorted({r.cache_mode or "unknown" for r in drawable})) > 1:
        raise IncomparableError(f"cache modes {' and '.join(modes)} do not belong in one plot")
    every = [sweep for found in swept.values() for sweep in found]
    if metric != sweep_tables.TIME and not any(sweep_tables.has(s, metric) for s in every):
        from ladder.stats import metrics  # with scipy, which takes a while to load

        metrics.check(metric, results)
        raise LadderError(f"--metric {metric}: no row over an argument has it")
    shown = [r for r in results if own[id(r)] or swept[id(r)]]
    if not shown and alone:
        told = f"{_NO_ARGUMENT}; {_NO_LADDER}"
        raise LadderError(f"{results[0].file}: nothing to plot: {told}")
    for result in results:
        foreign = [row for row in result.rows if not row.ladder]
        if foreign and not own[id(result)]:
            warn(f"{foreign[0].file}: {_NO_LADDER}")
        if rest := families.left_out(result, swept[id(result)]):
            names = first_of([family.name for family in rest])
            warn(f"{foreign[0].file}: not plotted: {names}: {_NO_ARGUMENT}")
    makers: _Makers = {}
    for result, name in zip(shown, style.distinct_names(shown), strict=True):
        folder = f"{slug(name)}/" if len(shown) > 1 else ""
        for problem in _problems(result):
            warn(problem)
        if found := own[id(result)]:
            makers |= {folder + stem: made for stem, made in _figures(result, found).items()}
        over = _swept(result, swept[id(result)], warn, metric)
        makers |= {folder + stem: maker for stem, maker in over.items()}
    makers |= _compared(drawable)
    return makers


def _swept(
    result: Results, found: list[families.Sweep], warn: Callable[[str], None], metric: str
) -> _Makers:
    """What draws each sweep's figure, by file stem; stems that would be the same are numbered."""
    have = [sweep for sweep in found if sweep_tables.has(sweep, metric)]
    if found and not have:
        warn(f"{result.file}: no row over an argument has {metric}")
    if len(have) > _MOST_SWEEPS:
        warn(f"{result.file}: {len(have) - _MOST_SWEEPS} more groups of families are not drawn")
    named = over(found, metric).items()
    return {stem: partial(arguments.draw, result, sweep, metric) for stem, sweep in named}


def over(
    found: Sequence[families.Sweep], metric: str = sweep_tables.TIME
) -> dict[str, families.Sweep]:
    """Return the sweeps that are drawn in a metric, each by the stem of its figure's file."""
    stems: dict[str, families.Sweep] = {}
    for sweep in [sweep for sweep in found if sweep_tables.has(sweep, metric)][:_MOST_SWEEPS]:
        stem = f"{OVER}{slug(sweep.title) or 'argument'}"
        count = sum(bool(re.fullmatch(rf"{re.escape(stem)}(?:-\d+)?", each)) for each in stems)
        stems[stem + f"-{count + 1}" * bool(count)] = sweep
    return stems


def _compared(results: list[Results]) -> _Makers:
    """What sets GPUs, or runs, side by side: the best of all ladders, and samples of each."""
    if len(results) < 2:
        return {}
    names = style.distinct_names(results)
    found = {name: studies(result) for name, result in zip(names, results, strict=True)}
    figures: _Makers = {"gpus": partial(overview.compare, list(found.items()))}
    by_ladder: dict[str, list[samples.Side]] = {}
    for result, (name, own) in zip(results, found.items(), strict=True):
        kept = samples_of(result)
        for study in own:
            by_ladder.setdefault(study.ladder.name, []).append(samples.Side(name, study, kept))
    for ladder, sides in by_ladder.items():
        sampled = [side for side in sides if samples.chosen(side)]
        if len(sampled) > 1:
            figures[f"{ladder}-samples"] = partial(
                samples.draw, sampled, samples.chosen(sampled[0])
            )
    return figures


def _emulated(
    emulated: list[Results], results: list[Results], warn: Callable[[str], None], *, alone: bool
) -> _Makers:
    found: _Makers = {}
    for result, name in zip(emulated, _emulated_names(emulated), strict=True):
        own = not alone or len(emulated) > 1
        folder = f"emulated-{slug(name)}/" if own else ""
        for row in result.with_status("error"):
            warn(f"{describe(result)}: {row.name}: error: {row.reason}")
        beside = emulator_details.load(result)
        if beside is None:
            warn(f"{result.file}: occupancy and banks not drawn: no {files.DETAILS} beside it")
        makers: _Makers = {}
        for tally in tallies(result):
            ladder = tally.ladder.name
            if moved := why.counted_steps(tally):
                makers[f"{ladder}-why"] = partial(why.draw, tally, moved)
            if beside:
                if curves := occupancy.chosen(tally, beside):
                    makers[f"{ladder}-occupancy"] = partial(occupancy.draw, tally, curves)
                if pair := banks.chosen(tally, beside):
                    makers[f"{ladder}-banks"] = partial(banks.draw, tally, *pair)
        if measured := prediction.counterpart(result, results):
            makers["prediction"] = partial(agreement.draw, result, measured)
        found |= {folder + stem: maker for stem, maker in makers.items()}
    return found


def _emulated_names(emulated: list[Results]) -> list[str]:
    """Name each as the emulator's --gpu, as scripts/study does; more where two are of one GPU."""
    models = [str(result.context.get("modelled_gpu", "")) for result in emulated]
    names = [name.removeprefix("NVIDIA ") for name in style.distinct_names(emulated)]
    return [
        model if model and models.count(model) == 1 else name
        for model, name in zip(models, names, strict=True)
    ]


def _figures(result: Results, found: list[Study]) -> _Makers:
    """What draws each figure of one GPU, of whose ladders `found` are, by file stem."""
    kept = samples_of(result)
    figures: _Makers = {}
    for study in found:
        name = study.ladder.name
        side = samples.Side(name, study, kept)
        if sampled := samples.chosen(side):
            figures[f"{name}-samples"] = partial(samples.draw, [side], sampled)
        if study.ladder.is_roof:  # the lines of every other figure
            if lines := latency.lines_of(study):
                figures[name] = partial(latency.draw, study, lines)
            elif roofs := ceilings.roofs_of(study):
                figures["roofs"] = partial(ceilings.draw, study, roofs)
            continue
        if not study.ladder.factors:  # an experiment climbs nowhere
            figures[f"{name}-climb"] = partial(climb.draw, study)
        elif matrix := factors.cells(study):
            figures[f"{name}-matrix"] = partial(factors.draw, study, matrix)
        if won := wins.chosen(study):
            figures[f"{name}-wins"] = partial(wins.draw, study, won)
        if study.counted:
            figures[f"{name}-roofline"] = partial(roofline.draw, study)
        if shares := limiters.shares(study):
            figures[f"{name}-limits"] = partial(limiters.draw, study, shares)
        if cases := clusters.chosen(study):
            figures[f"{name}-clusters"] = partial(clusters.draw, study, cases)
        if spent := energy.chosen(study):
            figures[f"{name}-energy"] = partial(energy.draw, study, spent)
        if steps := why.steps(study):
            figures[f"{name}-why"] = partial(why.draw, study, steps)
    return figures | {"overview": partial(overview.draw, result, found)}


def _problems(result: Results) -> list[str]:
    """Name the rows that failed, and those above a limit."""
    found = [f"{row.name}: error: {row.reason}" for row in result.with_status("error")]
    return [f"{describe(result)}: {problem}" for problem in [*found, *limits.problems(result)]]
