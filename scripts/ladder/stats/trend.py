# SPDX-License-Identifier: MIT
"""Where the history of a row changes: change points by PELT, each judged as compare judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from statistics import median

import numpy as np
import scipy

from ladder.analysis.history import History
from ladder.io.entries import WORST_FIRST
from ladder.io.results import registry_of
from ladder.stats import compare, interval, metrics
from ladder.stats.noise import Floor
from ladder.stats.verdicts import Change, Rules, Side, judge, noise_of, together

LEAST_RUNS = 5  # below which neighbours are compared
PENALTY = 6  # times the variance of a row and the log of its number of runs
_OUTLIER = 4  # standard deviations
_LEAST_SEGMENT = 2  # runs: one alone that differs is an outlier


@dataclass(frozen=True)
class Shift:
    """A change point: from run `at` on, the row is `ratio` times as good (above 1 is better)."""

    at: int  # index of a run
    verdict: str  # FASTER, SLOWER, or CLOCK where the SM clock explains it
    ratio: float
    low: float  # confidence interval
    high: float
    reason: str = ""
    chance: float = math.nan  # p-value of no change


@dataclass(frozen=True)
class Track:
    """The history of a row: a value per run, NaN where it was not measured."""

    name: str
    values: tuple[float, ...]  # of the metric, a time in seconds
    shifts: tuple[Shift, ...] = ()
    levels: tuple[float, ...] = ()  # median of each segment, one more than there are shifts
    outliers: tuple[int, ...] = ()  # runs that differ from both neighbours
    method: str = ""  # "PELT", or "neighbours" where there are few runs
    status: str = "ok"  # of the newest run: ok, skipped, error or missing
    reason: str = ""

    @property
    def slower(self) -> bool:
        """Whether the newest segment is worse than the one before."""
        return bool(self.shifts) and self.shifts[-1].verdict == "SLOWER"


@dataclass(frozen=True)
class _Points:
    """A row before its change points are judged."""

    track: Track
    at: list[int]  # the runs that measured it
    points: list[Side]  # what they measured
    bounds: list[int] = field(default_factory=list)  # of `points`, where it may have changed


@dataclass(frozen=True)
class Trend:
    """One history and its rows."""

    history: History
    metric: str
    more: bool  # is better
    tracks: list[Track] = field(default_factory=list)


def trend(history: History, rules: Rules, floors: Mapping[str, Floor] | None = None) -> Trend:
    """Find the change points of all rows.

    `rules` are those of a comparison; `floors` are what `ladder noise` measured, by row name.
    Raises LadderError where nothing tells which way the metric is better.
    """
    processes = [process for run in history.runs for process in run.processes]
    rules = replace(rules, known=registry_of(processes))
    more = metrics.more_is_better(rules.metric, rules.better, rules.known)
    gathered = [
        {name: side for (_, name), side in compare.gather(list(run.processes), rules, 0).items()}
        for run in history.runs
    ]
    names = dict.fromkeys(name for sides in gathered for name in sides)
    emulated = all(process.source == "emulated" for process in processes)
    exact = emulated or metrics.is_exact(rules.metric, rules.known)
    points = [
        _points(name, [of.get(name) for of in gathered], rules, floors, exact) for name in names
    ]
    tracks = _followed(points, rules, floors, more=more, exact=exact)
    lone = len(history.runs) == 1
    kept = [t for t in tracks if t.levels or (lone and t.status == "error")]
    for at in range(1, len(history.runs)):
        kept = _together(kept, at, rules.confidence)
    return Trend(history, rules.metric, more, kept)


def _together(tracks: list[Track], at: int, confidence: float) -> list[Track]:
    """Drop changes between neighbouring runs that may be chance among so many rows."""
    measured = [t for t in tracks if t.method == "neighbours" and math.isfinite(t.values[at])]
    found = {("", t.name): Change("", t.name, "SAME", chance=1.0) for t in measured}
    for track in measured:
        for shift in track.shifts:
            if shift.at == at:
                change = Change("", track.name, shift.verdict, chance=shift.chance)
                found["", track.name] = change
    judged = together(found, confidence)
    dropped = {name for (_, name), change in judged.items() if change.verdict == "NOISY"}
    return [_without(track, at) if track.name in dropped else track for track in tracks]


def _without(track: Track, at: int) -> Track:
    shifts = tuple(shift for shift in track.shifts if shift.at != at)
    return replace(track, shifts=shifts, levels=_levels(track.values, [s.at for s in shifts]))


def _levels(values: Sequence[float], starts: Sequence[int]) -> tuple[float, ...]:
    """Return the median of each segment; the first begins at 0, the others at `starts`."""
    segments = pairwise([0, *starts, len(values)])
    return tuple(median(v for v in values[a:b] if math.isfinite(v)) for a, b in segments)


def _points(
    name: str,
    sides: Sequence[Side | None],
    rules: Rules,
    floors: Mapping[str, Floor] | None,
    exact: bool,
) -> _Points:
    """Return what was measured of a row, and where it may have changed."""
    newest = sides[-1]
    status = newest.status if newest else "missing"
    measured = {i: side for i, side in enumerate(sides) if side and side.processes}
    at, points = list(measured), list(measured.values())
    values = [math.nan] * len(sides)
    for i, side in measured.items():
        values[i] = median(median(process.samples) for process in side.processes)
    track = Track(name, tuple(values), status=status, reason=newest.reason if newest else "")
    if not at:
        return _Points(track, at, points)
    positive = all(sample > 0 for p in points for q in p.processes for sample in q.samples)
    outliers: list[int] = []
    if exact or len(at) < LEAST_RUNS or not positive:
        least = rules.threshold if exact else 0.0  # what is exact has no noise to judge by
        steps = pairwise(values[i] for i in at)
        bounds = [i for i, step in enumerate(steps, 1) if _differ(*step, least)]
        method = "neighbours"
    else:
        spread = noise_of(points[0], points[-1], rules, floors)[0]
        method, (bounds, outliers) = "PELT", change_points([values[i] for i in at], spread)
    track = replace(track, outliers=tuple(at[i] for i in outliers), method=method)
    return _Points(track, at, points, bounds)


def _followed(
    rows: Sequence[_Points],
    rules: Rules,
    floors: Mapping[str, Floor] | None,
    *,
    more: bool,
    exact: bool,
) -> list[Track]:
    """Return the tracks of rows with the change points that compare calls changes."""
    tracks = []
    changes = _judged(rows, rules, floors, more=more, exact=exact)
    for row, found in zip(rows, changes, strict=True):
        shifts = [
            Shift(row.at[bound], c.verdict, c.ratio, c.low, c.high, c.reason, c.chance)
            for bound, c in found.items()
        ]
        levels = _levels(row.track.values, [shift.at for shift in shifts]) if row.at else ()
        tracks.append(replace(row.track, shifts=tuple(shifts), levels=levels))
    return tracks


def _differ(first: float, second: float, threshold: float) -> bool:
    return abs(second - first) > threshold * min(abs(first), abs(second))


def change_points(values: Sequence[float], spread: interval.Spread) -> tuple[list[int], list[int]]:
    """Return where segments of `values`, all above 0, begin, and which of them are outliers.

    PELT with the squared distance of logs from their segment's mean as cost, and a penalty of
    `PENALTY` x log of the number of values x variance. The variance is that of the shorter nine
    tenths of the steps from value to value, pooled with the row's prior `spread`.
    """
    import ruptures  # takes a while to load

    logs = np.log(values)
    count = len(logs)
    kept = count - 1 - max(1, count // 10)  # changes are among the longest steps
    steps = np.sort(np.abs(np.diff(logs)))[:kept]
    seen = np.mean(steps**2) / 2 / _share(kept / (count - 1))
    df = count / 3  # fewer than there are steps, since neighbouring steps share a value
    variance = (spread.df * spread.deviation**2 + df * seen) / (spread.df + df)
    # An outlier has its neighbours on one side; the first and the last have the same three.
    places = np.clip(np.arange(count), 1, count - 2)
    middle = np.median([logs[places - 1], logs[places], logs[places + 1]], axis=0)
    off = np.abs(logs - middle) > _OUTLIER * math.sqrt(variance)
    cleaned = np.where(off, middle, logs)
    search = ruptures.KernelCPD(kernel="linear", min_size=_LEAST_SEGMENT).fit(cleaned[:, None])
    found = search.predict(pen=PENALTY * math.log(count) * variance)
    return found[:-1], np.flatnonzero(off).tolist()


@cache
def _share(kept: float) -> float:
    """Return the variance of a standard normal variable truncated to its central share `kept`."""
    bound = float(scipy.special.ndtri((1 + kept) / 2))
    density = math.exp(-(bound**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - 2 * bound * density / kept


def _judged(
    rows: Sequence[_Points],
    rules: Rules,
    floors: Mapping[str, Floor] | None,
    *,
    more: bool,
    exact: bool,
) -> list[dict[int, Change]]:
    """Return of each row the change points that compare calls a change.

    Of the others the least is dropped, and the two beside it are judged anew; and so on. All rows
    are judged together: thousands at once take hardly longer than one.
    """
    kept = [list(row.bounds) for row in rows]
    judged: list[dict[tuple[int, int, int], Change]] = [{} for _ in rows]  # by `_spans`
    left = [n for n, bounds in enumerate(kept) if bounds]
    while left:
        asked = [(n, span) for n in left for span in _spans(rows[n], kept[n])]
        asked = [(n, span) for n, span in asked if span not in judged[n]]
        pairs = {
            ("", str(i)): (_folded(rows[n].points[a:b]), _folded(rows[n].points[b:c]))
            for i, (n, (a, b, c)) in enumerate(asked)
        }
        for (_, i), change in judge(pairs, rules, floors, more=more, exact=exact).items():
            n, span = asked[int(i)]
            judged[n][span] = change
        left = [n for n in left if _drop_weakest(kept[n], judged[n], rows[n])]
    return [
        {bound: changes[span] for bound, span in zip(bounds, _spans(row, bounds), strict=True)}
        for row, bounds, changes in zip(rows, kept, judged, strict=True)
    ]


def _drop_weakest(
    bounds: list[int], judged: Mapping[tuple[int, int, int], Change], row: _Points
) -> bool:
    """Drop the least change point that compare calls no change; say if others are to be judged."""
    weak = [
        (abs(math.log(change.ratio)) if 0 < change.ratio < math.inf else 0.0, i)
        for i, change in enumerate(judged[span] for span in _spans(row, bounds))
        if change.verdict not in ("FASTER", "SLOWER", "CLOCK")
    ]
    if weak:
        del bounds[min(weak)[1]]
    return bool(weak and bounds)


def _spans(row: _Points, bounds: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return of each change point where the segments before and after it begin, and the end."""
    ends = [0, *bounds, len(row.points)]
    return list(zip(ends, ends[1:], ends[2:], strict=False))


def _folded(sides: Sequence[Side]) -> Side:
    """Merge the runs of a segment: all their processes."""
    return Side(
        sides[0].name,
        min((side.status for side in sides), key=WORST_FIRST.index),
        "",
        median(side.seconds for side in sides),
        median(side.clock for side in sides),
        any(side.throttled for side in sides),
        tuple(process for side in sides for process in side.processes),
        all(side.host for side in sides),
    )
