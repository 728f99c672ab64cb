# SPDX-License-Identifier: MIT
"""Confidence intervals of the ratio of two medians, over processes and the samples within them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
import scipy  # whose `special`, which takes longer to load than all else here, loads when used
from numpy.typing import NDArray

_Array = NDArray[np.float64]
_LEAST_TAIL = math.log(1e-15)  # smaller tail probabilities are given as this one

# The prior of how processes differ where no noise was measured. With one process per side, the 95 %
# interval reaches FLOOR either way, plus LAUNCH_SECONDS over the row's time, but at most
# MOST_OF_LAUNCH. As `ladder noise` saw on two H200: a kernel takes longer in one process than in
# another, perhaps because its buffers lie elsewhere.
FLOOR, LAUNCH_SECONDS, MOST_OF_LAUNCH, PRIOR_DF = 0.005, 0.2e-6, 0.04, 6

# The same for rows that a CPU ran, of any length: with one process per side the interval reaches
# HOST_FLOOR, since the placement of code and data and other load on the machine move times by as
# much. Several processes show their own spread, so for these the prior is the small HOST_DEVIATION.
HOST_FLOOR, HOST_DEVIATION = 0.13, 0.0035

# The prior of the relative standard deviation of the samples within a process. It weighs little,
# but without it the interval of three samples would be too wide to be of use.
SAMPLES, HOST_SAMPLES, SAMPLES_DF = 0.002, 0.02, 4

# Up to this much, the deviation by the range of all samples counts, as there may be a second mode
# outside the shortest half. Beyond it the range shows outliers.
_MODES = 0.02

_WARM_UP = 1.2  # times the others: a first repetition that is far from them

# A prior is dropped for a row whose observed deviation is more than so many times the prior's.
_REFUTED = 5

# Expected range of n standard normal draws, from 2 to 10 (d2 of control charts); more count as 10.
_RANGES = (1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078)

# Variance of the median of n standard normal draws, from 1 on; further on (pi / 2) / (n + 0.57).
_MEDIANS = (1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104, 0.1682, 0.1661, 0.1383)

# Standard deviation of n normal draws, from 2 on, over the length of their shortest half, such that
# its square is unbiased. That square has 0.83 degrees of freedom per two draws: with these
# Student's t is right at 95 and 99 %. From 300 000 draws: tests/python/calibration.py --halves.
_HALVES = (0.707, 1.702, 0.875, 1.340, 0.915, 1.196, 0.921, 1.114, 0.916)
_HALF_DF = 0.83


@dataclass(frozen=True, slots=True)
class Process:
    """What one process measured of a row: samples above 0, in any unit.

    `noise` is the relative standard error of a single one, where it is known.
    """

    samples: tuple[float, ...]
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The prior of how processes differ: a relative standard deviation, and how much it weighs.

    `alone` is the deviation that is assumed where neither side has a second process; `samples` is
    that of the samples within a process.
    """

    deviation: float
    df: float  # degrees of freedom
    alone: float = 0.0  # 0: as `deviation` says
    samples: float = 0.0


def launch_share(seconds: float) -> float:
    """Return the fraction by which launches of two processes may differ in a row of that length."""
    return min(LAUNCH_SECONDS / seconds, MOST_OF_LAUNCH) if seconds > 0 else 0.0


@cache
def _floor_quantile() -> float:
    return math.sqrt(2) * float(scipy.special.stdtrit(PRIOR_DF, 0.975))


def default_spread(seconds: float) -> Spread:
    """Return the prior of a GPU's row of that length, where no noise was measured."""
    return Spread((FLOOR + launch_share(seconds)) / _floor_quantile(), PRIOR_DF, samples=SAMPLES)


def host_spread() -> Spread:
    """Return the prior of a row that a CPU ran, where no noise was measured."""
    alone = HOST_FLOOR / _floor_quantile()
    return Spread(HOST_DEVIATION, PRIOR_DF, alone, HOST_SAMPLES)


def measured_spread(spread: float, processes: int, prior: Spread) -> Spread:
    """Return the prior from two or more `processes` that were up to `spread` apart.

    It is pooled with `prior`: three processes alone have so few degrees of freedom that among a
    thousand rows no change would be beyond chance. Its deviation is at least the measured one.
    """
    deviation, own = math.log1p(spread) / _RANGES[min(processes, 10) - 2], processes - 1
    df = own + prior.df
    both = (own * deviation**2 + prior.df * prior.deviation**2) / df
    return Spread(max(deviation, math.sqrt(both)), df, samples=prior.samples)


@dataclass(frozen=True, slots=True)
class Pair:
    """One row on both sides, a process or more each, and how processes of it differ."""

    base: tuple[Process, ...]
    head: tuple[Process, ...]
    spread: Spread


@dataclass(frozen=True)
class _Sides:
    """The two sides of n pairs, in logs: arrays of shape (n, 2)."""

    count: _Array  # processes
    middle: _Array
    squares: _Array  # of the processes' medians, about their mean
    scale: _Array  # variance of the samples of a lone process
    size: _Array  # their number; 0 where the side has several processes
    noise: _Array  # variance of a lone process' median, as its file tells


def intervals(
    pairs: Sequence[Pair], confidence: float = 0.95, limits: Sequence[float] | None = None
) -> _Array:
    """Return (ratio of base's median over head's, low, high, chance) of each pair: shape (n, 4).

    `chance` is the p-value of a ratio within that pair's limit (`limits`, a fraction, 0 where left
    out): the interval ends at the limit where the confidence is 1 less it.

    A side's median is that of its processes' medians. Its error is of two parts: how processes
    differ, by the variance of their medians, and how the samples of a lone process scatter, by the
    shortest half of them, which no minority of slow ones moves. Each part is pooled with the prior
    `spread`, and Student's t with the pooled degrees of freedom makes the interval.
    """
    sides = _sides([side for pair in pairs for side in (pair.base, pair.head)])
    known = [pair.spread for pair in pairs]
    several = (sides.count > 1).any(axis=1)
    processes = _pooled(
        np.where(several, [s.deviation for s in known], [s.alone or s.deviation for s in known]),
        np.array([s.df for s in known]),
        sides.squares.sum(axis=1),
        (sides.count - 1).sum(axis=1),
        2,
    )
    seen = np.where(sides.size > 1, _HALF_DF * (sides.size // 2), 0.0)
    samples = _pooled(
        np.array([s.samples for s in known]),
        np.full(len(known), SAMPLES_DF),
        (seen * sides.scale).sum(axis=1),
        seen.sum(axis=1),
        3,
    )
    shares = of_median(sides.count).sum(axis=1)
    within = np.where(sides.size > 1, of_median(sides.size), 0.0).sum(axis=1)
    noise = sides.noise.sum(axis=1)

    def half(tail: float | _Array) -> _Array:
        """Return half the width of intervals that leave out this probability at either end."""
        quantile = scipy.special.stdtrit
        of_processes: _Array = quantile(processes[1], tail) ** 2 * processes[0] * shares
        of_samples: _Array = quantile(samples[1], tail) ** 2 * samples[0] * within
        told: _Array = scipy.special.ndtri(tail) ** 2 * noise
        return np.asarray(np.sqrt(of_processes + of_samples + told))

    ratio = sides.middle[:, 0] - sides.middle[:, 1]
    beyond = np.abs(ratio) - np.log1p(np.zeros(len(pairs)) if limits is None else limits)
    ends = ratio + half((1 - confidence) / 2) * np.array([[0], [-1], [1]])
    with np.errstate(over="ignore"):  # absurd figures end in absurd intervals
        return np.column_stack([*np.exp(ends), _chances(half, beyond)])


def _pooled(
    deviation: _Array, df: _Array, squares: _Array, seen: _Array, least: int
) -> tuple[_Array, _Array]:
    """Return the variance, and its degrees of freedom, from a prior and observed squares.

    `seen` has the degrees of freedom of the squares. Where their variance refutes the prior, that
    is dropped, and at least `least` degrees of freedom are left.
    """
    both = np.maximum(seen + df, 1)
    pooled = (df * deviation**2 + squares) / both
    own = squares / np.maximum(seen, 1e-9)
    refuted = own > (_REFUTED * deviation) ** 2
    # A single degree of freedom would say that nothing can be told, however large the change.
    return np.where(refuted, own, pooled), np.where(refuted, np.maximum(seen, least), both)


def of_median(count: _Array) -> _Array:
    """Return the variance of the median of so many standard normal draws."""
    table = np.array([math.nan, *_MEDIANS])
    small = table[np.minimum(count, len(_MEDIANS)).astype(int)]
    return np.where(count <= len(_MEDIANS), small, math.pi / 2 / (count + math.pi / 2 - 1))


def deviation(logs: _Array) -> _Array:
    """Return the standard deviation of samples, (rows, two samples or more), without outliers.

    From their shortest half, as of normal samples; from all of them up to `_MODES`.
    """
    ordered = np.sort(logs, axis=1)
    count, kept = logs.shape[1], logs.shape[1] // 2 + 1
    half = (ordered[:, kept - 1 :] - ordered[:, : count - kept + 1]).min(axis=1)
    if count - 2 < len(_HALVES):
        half *= _HALVES[count - 2]
    else:  # towards the quartiles' range; an odd number has a longer half
        half *= (1 + 0.76 * count**-0.48 + count % 2 * 2 / count) / 1.349
    span = (ordered[:, -1] - ordered[:, 0]) / _RANGES[min(count, 10) - 2]
    found: _Array = np.maximum(half, np.minimum(span, _MODES))
    return found


def _chances(half: Callable[[_Array], _Array], beyond: _Array) -> _Array:
    """Return p-values: both tails of the intervals whose half width is `beyond`, by bisection."""
    low, high = np.full(len(beyond), _LEAST_TAIL), np.full(len(beyond), math.log(0.5))
    for _ in range(30):
        middle = (low + high) / 2
        wide = half(np.exp(middle)) > beyond
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    chances: _Array = 2 * np.exp(high)
    return chances


def middle(side: Sequence[Process]) -> float:
    """Return the median of the processes' medians, in the samples' unit; half way in their logs."""
    if len(side) == len(side[0].samples) == 1:
        return side[0].samples[0]
    return math.exp(median(median(map(math.log, process.samples)) for process in side))


def apart(base: Sequence[Process], head: Sequence[Process], confidence: float) -> bool:
    """Whether the ranks of the processes' medians tell the sides apart: the Mann-Whitney U test.

    By the normal approximation. With so few processes that it could never reject, all of one side
    have to be beyond all of the other. Student's t assumes one mode, and errs where a row has two.
    """
    first, second = ([median(p.samples) for p in side] for side in (base, head))
    pairs = len(first) * len(second)
    above = sum((a > b) + (a == b) / 2 for a in first for b in second)
    error = math.sqrt(pairs * (len(first) + len(second) + 1) / 12)
    least = 0.5 - float(scipy.special.ndtri((1 - confidence) / 2)) * error
    return abs(above - pairs / 2) >= min(least, pairs / 2)


def warm_up(side: Sequence[Process]) -> float:
    """Return the median of processes' first repetition over the median of the others.

    NaN unless in most processes it is by a fifth and five deviations away from the others, of which
    there are two or more.
    """
    found = []
    for process in side:
        first, *others = process.samples
        if len(others) < 2:
            continue
        low, high = min(others), max(others)
        if low / _WARM_UP < first < _WARM_UP * high:
            continue  # as a rule, and quick
        far = abs(math.log(first / median(others)))
        if far > max(math.log(_WARM_UP), 5 * float(deviation(np.log([others]))[0])):
            found.append(first / median(others))
    return median(found) if 2 * len(found) > len(side) else math.nan


def _grouped(numbers: Iterable[int]) -> Iterable[tuple[int, list[int]]]:
    """Yield each number with its places."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, number in enumerate(numbers):
        places[number].append(place)
    return places.items()


def _sides(sides: Sequence[tuple[Process, ...]]) -> _Sides:
    """Return the values of each side's processes."""
    processes = [process for side in sides for process in side]
    medians, scales = np.empty(len(processes)), np.zeros(len(processes))
    for size, at in _grouped(len(process.samples) for process in processes):
        logs = np.log([processes[i].samples for i in at])
        medians[at] = np.median(logs, axis=1)
        if size > 1:
            scales[at] = deviation(logs) ** 2
    counts = np.array([len(side) for side in sides], dtype=float)
    found = [np.zeros(len(sides)) for _ in range(5)]
    middles, squares, scale, sizes, noise = found
    ends = np.cumsum(counts).astype(int)
    for count, at in _grouped(map(len, sides)):
        values = medians[ends[at][:, None] - count + np.arange(count)]
        middles[at], squares[at] = np.median(values, axis=1), values.var(axis=1) * count
        if count == 1:
            scale[at] = scales[ends[at] - 1]
            sizes[at] = [len(sides[i][0].samples) for i in at]
            noise[at] = [sides[i][0].noise ** 2 for i in at]
    return _Sides(*(array.reshape(-1, 2) for array in (counts, *found)))
