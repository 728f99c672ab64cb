# SPDX-License-Identifier: MIT
"""Every rung beside the fastest library, over all shapes: how many times its speed."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe
from ladder.model.rows import Row
from ladder.report.plots import lines, style

_LEAST = 0.5  # times the library's speed
_LINEAR = 5.0  # up to here a linear axis shows more
_TOP = 0.95  # inches


def facets(study: Study) -> dict[str, list[str]]:
    """Return the cases of both rungs and a library, by facet; facets of several cases alone."""
    beside = {
        facet: [case for case in cases if study.peer("", case) and study.best_step(case)]
        for facet, cases in study.facets.items()
    }
    return {facet: cases for facet, cases in beside.items() if len(cases) > 1}


def draw(study: Study, chosen: dict[str, list[str]]) -> Figure:
    """Draw a panel for each facet of `chosen`, which `facets` gave: a line a rung."""
    precisions = {rung.name: rung.precision for rung in study.rungs}

    def ratio(row: Row) -> float:
        peer = study.peer("", row.case)
        if precisions[row.rung] or row.role == "ceiling" or not peer:
            return math.nan
        times = study.speed(row) / study.speed(peer)
        return times if times >= _LEAST else math.nan

    cases = [case for cases in chosen.values() for case in cases]
    found = [ratio(row) for row in study.rows if row.status == "ok" and row.case in cases]
    highest = max(value for value in found if value == value)
    log = highest > _LINEAR
    peers = {peer.rung for case in cases if (peer := study.peer("", case))}
    label = f"× {peers.pop()}" if len(peers) == 1 else "× the fastest library"
    limits = _LEAST, highest * 1.1 if log else highest + 0.05
    measure = lines.Measure(ratio, label, limits, log)

    width = max(style.PAGE, lines.least_width(study))
    rows = lines.rows(study, width, chosen)
    height = _TOP + lines.height(study) * len(rows)
    about = f"{describe(study.results)}; what is slower than half of it is left out"
    figure = style.page(width, height, f"{study.ladder.title}: beside the library", about)
    top = height - _TOP
    for row in rows:
        lines.draw(figure, top, study, measure, row)
        top -= lines.height(study)
    return figure
