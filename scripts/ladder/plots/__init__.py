# SPDX-License-Identifier: MIT
"""Figures of results. The same files give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ladder import details, files, limits, prediction
from ladder.errors import IncomparableError, LadderError
from ladder.plots import (
    achieved,
    agreement,
    banks,
    ceilings,
    climb,
    clusters,
    gpus,
    instructions,
    light,
    occupancy,
    overview,
    roofline,
    style,
    transactions,
    why,
)
from ladder.results import Results
from ladder.study import Study, describe, studies
from ladder.tally import tallies

_FOREIGN = "the file's context does not list their ladder"


@style.look()
def draw(
    results: list[Results], directory: Path, formats: Sequence[str], warn: Callable[[str], None]
) -> list[Path]:
    """Draw every figure of `results` into `directory` and return the files written.

    What `make` makes; what cannot be drawn is said through `warn`, once all else is written: an
    error comes alone. Raises LadderError, also when nothing can be written.
    """
    notes: list[str] = []
    written = [
        path
        for stem, figure in make(results, notes.append).items()
        for path in style.save(figure, directory, stem, formats)
    ]
    for note in notes:
        warn(note)
    return written


@style.look()
def make(results: list[Results], warn: Callable[[str], None]) -> dict[str, style.Figure]:
    """Make every figure of `results`, by the stem of its file.

    Timed results give figures of speed, emulated ones those of requests. One GPU's figures have no
    directory in their stems; those of several have one each, and the comparison of GPUs stands
    beside them. Emulated figures beside others have a directory of their own. What cannot be drawn
    is said through `warn`. Raises IncomparableError for warm and cold results together, LadderError
    when nothing can be drawn.
    """
    timed = [r for r in results if r.source == "timed"]
    emulated = [r for r in results if r.source == "emulated"]
    if not (timed or emulated):
        raise LadderError("hardware counters alone make no plot: give the emulated results too")
    notes: list[str] = []
    figures = _timed(timed, notes.append, alone=not emulated) if timed else {}
    figures |= _emulated(emulated, results, notes.append, alone=not timed)
    if not figures:
        raise LadderError(": ".join(["nothing to plot", *notes[:1]]))
    for note in notes:
        warn(note)
    return figures


def _timed(
    results: list[Results], warn: Callable[[str], None], *, alone: bool
) -> dict[str, style.Figure]:
    if len(modes := sorted({r.cache_mode or "unknown" for r in results})) > 1:
        raise IncomparableError(f"cache modes {' and '.join(modes)} do not belong in one plot")
    figures: dict[str, style.Figure] = {}
    drawable = [r for r in results if studies(r)]
    if not drawable and alone:
        raise LadderError(f"{results[0].rows['file'].iloc[0]}: nothing to plot: {_FOREIGN}")
    names = style.distinct_names(drawable)
    for result, name in zip(drawable, names, strict=True):
        folder = f"{_slug(name)}/" if len(drawable) > 1 else ""
        for problem in _problems(result):
            warn(problem)
        figures |= _made(_figures(result), folder, warn)
    figures |= compared(drawable)
    for result in results:
        if (foreign := result.rows[result.rows["ladder"] == ""]).size:
            warn(f"{foreign['file'].iloc[0]}: {len(foreign)} rows not plotted: {_FOREIGN}")
    return figures


@style.look()
def compared(results: list[Results]) -> dict[str, style.Figure]:
    """Make the figures that set GPUs side by side, one a ladder that several have, by their stem.

    The results are timed, all in one cache mode.
    """
    by_ladder: dict[str, list[tuple[str, Study]]] = {}
    for result, name in zip(results, style.distinct_names(results), strict=True):
        for study in studies(result):
            by_ladder.setdefault(study.ladder.name, []).append((name, study))
    return {
        f"{ladder}-compare": gpus.draw(found)
        for ladder, found in by_ladder.items()
        if len(found) > 1 and not found[0][1].ladder.is_roof
    }


def _emulated(
    emulated: list[Results], results: list[Results], warn: Callable[[str], None], *, alone: bool
) -> dict[str, style.Figure]:
    figures: dict[str, style.Figure] = {}
    for result, name in zip(emulated, _emulated_names(emulated), strict=True):
        own = not alone or len(emulated) > 1
        folder = f"emulated-{_slug(name)}/" if own else ""
        for row in result.rows[result.rows["status"] == "error"].itertuples():
            warn(f"{describe(result)}: {row.name}: error: {row.reason}")
        beside = details.load(result)
        if beside is None:
            warn(
                f"{result.rows['file'].iloc[0]}: occupancy and banks not drawn: "
                f"no {files.DETAILS} beside it"
            )
        makers: dict[str, Callable[[], style.Figure]] = {}
        for tally in tallies(result):
            ladder = tally.ladder.name
            makers[f"{ladder}-transactions"] = partial(transactions.draw, tally)
            if moved := why.counted_steps(tally):
                makers[f"{ladder}-why"] = partial(why.draw, tally, moved)
            if beside:
                if curves := occupancy.chosen(tally, beside):
                    makers[f"{ladder}-occupancy"] = partial(occupancy.draw, tally, curves)
                if pair := banks.chosen(tally, beside):
                    makers[f"{ladder}-banks"] = partial(banks.draw, tally, *pair)
        if measured := prediction.counterpart(result, results):
            makers["prediction"] = partial(agreement.draw, result, measured)
        figures |= _made(makers, folder, warn)
    return figures


def _emulated_names(emulated: list[Results]) -> list[str]:
    """Name each as the emulator's --gpu, as scripts/study does; more where two are of one GPU."""
    models = [str(result.context.get("modelled_gpu", "")) for result in emulated]
    names = [name.removeprefix("NVIDIA ") for name in style.distinct_names(emulated)]
    return [
        model if model and models.count(model) == 1 else name
        for model, name in zip(models, names, strict=True)
    ]


def _made(
    makers: dict[str, Callable[[], style.Figure]], folder: str, warn: Callable[[str], None]
) -> dict[str, style.Figure]:
    """Draw what can be drawn, and say what cannot."""
    figures = {}
    for stem, make in makers.items():
        try:
            figures[folder + stem] = make()
        except style.NothingToDrawError as error:
            warn(f"{stem} not drawn: {error}")
    return figures


def _figures(result: Results) -> dict[str, Callable[[], style.Figure]]:
    """What draws each figure of one GPU, by file stem."""
    found = studies(result)
    figures: dict[str, Callable[[], style.Figure]] = {}
    for study in found:
        name = study.ladder.name
        if study.ladder.is_roof:  # the lines of every other figure
            if roofs := ceilings.roofs_of(study):
                figures["roofs"] = partial(ceilings.draw, study, roofs)
            continue
        figures[f"{name}-climb"] = partial(climb.draw, study)
        if study.counted:
            figures[f"{name}-roofline"] = partial(roofline.draw, study)
        shares = light.shares(study)
        if shares or not (study.counted or len(study.cases) == 1):
            figures[f"{name}-light"] = partial(light.draw, study, shares)
        if rows := achieved.rows(study):
            figures[f"{name}-occupancy"] = partial(achieved.draw, study, rows)
        if cases := clusters.chosen(study):
            figures[f"{name}-clusters"] = partial(clusters.draw, study, cases)
        if points := instructions.points(study):
            figures[f"{name}-instructions"] = partial(instructions.draw, study, points)
        if steps := why.steps(study):
            figures[f"{name}-why"] = partial(why.draw, study, steps)
    return figures | {"overview": partial(overview.draw, result, found)}


def _problems(result: Results) -> list[str]:
    """Name the rows that failed, and those above a limit."""
    rows = result.rows[result.rows["status"] == "error"]
    found = [f"{row.name}: error: {row.reason}" for row in rows.itertuples()]
    return [f"{describe(result)}: {problem}" for problem in [*found, *limits.problems(result)]]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
