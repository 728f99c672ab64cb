# SPDX-License-Identifier: MIT
"""What the interactive charts draw, as JSON for charts.js, and the library that draws them.

That is Vega-Lite, in one script without a network, as `vl-convert-python` has it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from ladder.analysis.history import History
from ladder.analysis.shapes import facet_title
from ladder.analysis.study import Study
from ladder.io import files
from ladder.model import units
from ladder.model.errors import LadderError
from ladder.model.rows import Row
from ladder.report.html.rows import route
from ladder.stats.trend import Track

Chart = dict[str, Any]

_NAMED = 5  # rungs that have a colour
_MOST_SAMPLES = 400  # drawn in the order taken, evenly picked from more
_QUANTILES = (0.1, 0.5, 0.9)


def available() -> bool:
    """Whether the package is there that has what charts need."""
    try:
        import vl_convert  # noqa: F401 -- is it there?
    except ImportError:
        return False
    return True


def library() -> tuple[str, str]:
    """Return Vega-Lite with what it needs as a script, and versions; empty where it is missing."""
    return _bundled() if available() else ("", "")


@cache
def _bundled() -> tuple[str, str]:
    """Return the bundle that is kept beside matplotlib's list of fonts, or make it.

    To bundle takes more than a second.
    """
    import vl_convert

    kept = Path(mpl.get_cachedir()) / f"ladder-vega-{version('vl-convert-python')}.js"
    try:
        script = kept.read_text(encoding="utf-8")
    except OSError:
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        with suppress(LadderError):  # where it cannot be kept it is made again
            files.write(kept, script.encode())
    versions = vl_convert.get_vega_version(), vl_convert.get_vegalite_versions()[-1]
    return script.replace("</script", "<\\/script"), "Vega {} and Vega-Lite {}".format(*versions)


def climb(study: Study) -> Chart | None:
    """Return the best speeds of all rungs over the shapes; None where these are less than two.

    `cases` are label, number of the facet, whether a line goes through, and the ceiling; `rungs`
    are name, route, role (none of another precision) and parent; `points` are numbers of rung and
    case, speed and percent of the row's own ceiling. Speeds are in `unit`.
    """
    best = {key: row for key, row in study.best.items() if study.speed(row) > 0}
    measured = {case for _, case in best}
    cases = [case for case in study.cases if case in measured]
    if study.ladder.is_roof or len(cases) < 2:
        return None
    divisor, unit = study.unit
    facets = list(dict.fromkeys(map(study.shapes.facet, cases)))
    facets.sort(key=lambda facet: facet != study.shapes.facet(study.headline))
    axes = study.shapes.axes
    agree = ", one number where all agree" if any(map(study.shapes.in_series, cases)) else ""
    shown = {name for name, _ in best}
    rungs = [rung for rung in study.rungs if rung.name in shown]
    number = {rung.name: i for i, rung in enumerate(rungs)}
    place = {case: i for i, case in enumerate(cases)}
    return {
        "title": study.ladder.title,
        "unit": unit,
        "axis": axes[0] if len(axes) == 1 else " × ".join(axes) + agree,
        "facets": [facet_title(facet) for facet in facets],
        "cases": [
            [
                study.shapes.label(case),
                facets.index(study.shapes.facet(case)),
                study.shapes.in_line(case),
                _short(study.ceiling(case) / divisor),
            ]
            for case in cases
        ],
        "rungs": [
            [
                rung.name,
                route(study.ladder.name, rung.name),
                "" if rung.precision else rung.role,
                rung.builds_on,
            ]
            for rung in rungs
        ],
        "named": [number[name] for name in _named(study) if name in number],
        "points": [
            [
                number[rung],
                place[case],
                _short(study.speed(row) / divisor),
                _short(study.percent(row)),
            ]
            for (rung, case), row in best.items()
        ],
    }


def _named(study: Study) -> list[str]:
    """Name the ends of the path to the best rung, and those between that gained most."""
    path = study.path
    between = sorted(path[1:-1], key=study.gain, reverse=True)[: _NAMED - 2]
    shown = {row.rung for row in (*path[:1], *between, *path[-1:])}
    return [row.rung for row in path if row.rung in shown]


def samples(repetitions: list[NDArray[np.float64]]) -> Chart | None:
    """Return the distribution of a row's samples, given in seconds; None where it has none.

    `bins` are low, high and count; a sample far from the others is counted in the last.
    """
    if not repetitions:
        return None
    times = np.concatenate(repetitions)
    factor, unit = units.time_unit(float(np.median(times)))
    times = times / factor
    low, high = np.quantile(times, [0.05, 0.95])
    reach = max(high - low, 0.001 * high)
    ends = max(times.min(), low - reach), min(times.max(), high + reach)
    ends = ends if ends[1] > ends[0] else (0.999 * ends[0], 1.001 * ends[0])
    inside = np.clip(times, *ends)
    counts, edges = np.histogram(inside, int(np.clip(np.sqrt(len(times)), 8, 24)), ends)
    picked = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MOST_SAMPLES)).astype(int))
    far = int((times != inside).sum())
    values = ", ".join(
        f"p{100 * q:.0f} {value:#.4g} {unit}".replace(". ", " ")
        for q, value in zip(_QUANTILES, np.quantile(times, _QUANTILES), strict=True)
    )
    told = f"{len(times)} samples: {values}"
    told += f"; beyond the scale, and drawn at its end: {far}" if far else ""
    return {
        "told": told + ".",
        "unit": unit,
        "taken": [[int(i) + 1, _short(inside[i], 8)] for i in picked],
        "bins": [
            [_short(a, 8), _short(b, 8), int(count)]
            for a, b, count in zip(edges, edges[1:], counts, strict=False)
        ],
    }


def track(history: History, found: Track, row: Row, case: str) -> Chart:
    """Return the times of a row over commits, and where they changed."""
    factor, unit = units.time_unit(row.seconds)
    return {
        "title": case,
        "unit": unit,
        "runs": [
            [run.label, _short(value / factor)]
            for run, value in zip(history.runs, found.values, strict=True)
        ],
        "shifts": [
            [history.runs[shift.at].label, shift.verdict, f"{shift.verdict} {shift.ratio:.3f}"]
            for shift in found.shifts
        ],
    }


def _short(value: float, digits: int = 5) -> float | None:
    """Round to so many digits (8 tell samples of one row apart); None for what was not measured."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None
