# SPDX-License-Identifier: MIT
"""Figures of results. The same files give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ladder.errors import IncomparableError, LadderError
from ladder.plots import climb, gpus, light, overview, roofline, style
from ladder.results import Results
from ladder.study import Study, describe, studies

_FOREIGN = "the file's context does not list their ladder"


@style.look()
def draw(
    results: list[Results], directory: Path, formats: Sequence[str], warn: Callable[[str], None]
) -> list[Path]:
    """Draw every figure of `results` into `directory` and return the files written.

    One GPU's figures go straight into the directory; those of several into one directory each,
    with the comparison of GPUs beside them. What cannot be drawn is said through `warn`. Raises
    IncomparableError for warm and cold results together, LadderError when nothing can be drawn
    or written.
    """
    if len(modes := sorted({r.cache_mode or "unknown" for r in results})) > 1:
        raise IncomparableError(f"cache modes {' and '.join(modes)} do not belong in one plot")
    figures: dict[str, style.Figure] = {}
    drawable = [r for r in results if studies(r)]
    if not drawable:
        raise LadderError(f"{results[0].rows['file'].iloc[0]}: nothing to plot: {_FOREIGN}")
    names = style.distinct_names(drawable)
    for result, name in zip(drawable, names, strict=True):
        folder = f"{_slug(name)}/" if len(drawable) > 1 else ""
        for problem in _problems(result):
            warn(problem)
        for stem, make in _figures(result).items():
            try:
                figures[folder + stem] = make()
            except style.NothingToDrawError as error:
                warn(f"{stem} not drawn: {error}")
    by_ladder: dict[str, list[tuple[str, Study]]] = {}
    for result, name in zip(drawable, names, strict=True):
        for study in studies(result):
            by_ladder.setdefault(study.ladder.name, []).append((name, study))
    for ladder, found in by_ladder.items():
        if len(found) > 1 and not found[0][1].ladder.is_roof:
            figures[f"{ladder}-compare"] = gpus.draw(found)
    for result in results:
        if (foreign := result.rows[result.rows["ladder"] == ""]).size:
            warn(f"{foreign['file'].iloc[0]}: {len(foreign)} rows not plotted: {_FOREIGN}")
    if not figures:
        raise LadderError("nothing to plot")
    return [
        path
        for stem, figure in figures.items()
        for path in style.save(figure, directory, stem, formats)
    ]


def _figures(result: Results) -> dict[str, Callable[[], style.Figure]]:
    """What draws each figure of one GPU, by file stem."""
    found = studies(result)
    figures: dict[str, Callable[[], style.Figure]] = {}
    for study in found:
        name = study.ladder.name
        if study.ladder.is_roof:
            continue  # the lines of every other figure
        figures[f"{name}-climb"] = partial(climb.draw, study)
        if study.counted:
            figures[f"{name}-roofline"] = partial(roofline.draw, study)
        elif len(study.cases) > 1:  # of one case, the climb tells the percent
            figures[f"{name}-light"] = partial(light.draw, study)
    return figures | {"overview": partial(overview.draw, result, found)}


def _problems(result: Results) -> list[str]:
    """Name the rows that failed, and those that beat their own ceiling."""
    rows = result.rows[result.rows["status"] == "error"]
    found = [f"{row.name}: error: {row.reason}" for row in rows.itertuples()]
    for study in studies(result):
        for row in study.rows:
            if row.status == "ok" and study.above_roof(row):
                percent = f"{study.percent(row):.1f}%"
                found.append(f"{row.name}: {percent} of its ceiling {study.ladder.ceiling}")
    return [f"{describe(result)}: {problem}" for problem in found]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
