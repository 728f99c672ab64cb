# SPDX-License-Identifier: MIT
"""Confidence intervals of the ratio of two medians, over processes and the samples within them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.special import ndtri, stdtrit

_RESAMPLES = 400  # a standard error needs far fewer than a percentile
_CHUNK = 2_000_000  # numbers held at once
_LEAST_TAIL = math.log(1e-15)  # smaller chances are told as this one
_SEED = 20260101  # the same files give the same intervals

# What is supposed of how processes differ where it was not measured: half of what the interval of
# one process a side spans at 95 %, and the freedom that has. As seen on two H200 (`ladder noise`):
# kernels take longer in one process than in another, and perhaps by where their buffers are. Rows
# of nanoseconds, which are no launches, are not supposed to be worse than launches of 5 us.
FLOOR, LAUNCH_SECONDS, MOST_OF_LAUNCH, FREEDOM = 0.005, 0.2e-6, 0.04, 6

_FLOOR_QUANTILE = math.sqrt(2) * float(stdtrit(FREEDOM, 0.975))

# Of the range of n normal draws over their standard deviation; past those, ranges say little more.
_RANGES = (1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078)


@dataclass(frozen=True)
class Process:
    """What one process measured of a row: samples above 0, in any unit.

    `noise` is the relative standard error of a single one, where it is known.
    """

    samples: tuple[float, ...]
    noise: float = 0.0


@dataclass(frozen=True)
class Spread:
    """How processes differ, as known beforehand: a relative standard deviation and its freedom."""

    deviation: float
    freedom: float


def launch_share(seconds: float) -> float:
    """Return the part of a row of that length by which launches of two processes may differ."""
    return min(LAUNCH_SECONDS / seconds, MOST_OF_LAUNCH) if seconds > 0 else 0.0


def default_spread(seconds: float) -> Spread:
    """Return what is supposed of a row of that length where nobody measured it."""
    return Spread((FLOOR + launch_share(seconds)) / _FLOOR_QUANTILE, FREEDOM)


def measured_spread(spread: float, processes: int) -> Spread:
    """Return what `processes` of two or more tell that were up to `spread` apart.

    They are added to what is supposed of long rows: three alone have so little freedom that among a
    thousand rows no change would be beyond chance. A row noisier than both together stays so.
    """
    supposed = default_spread(math.inf)
    deviation, own = math.log1p(spread) / _RANGES[min(processes, 10) - 2], processes - 1
    freedom = own + supposed.freedom
    both = (own * deviation**2 + supposed.freedom * supposed.deviation**2) / freedom
    return Spread(max(deviation, math.sqrt(both)), freedom)


@dataclass(frozen=True)
class Pair:
    """One row on both sides, a process or more each, and how processes of it differ."""

    base: tuple[Process, ...]
    head: tuple[Process, ...]
    spread: Spread


def intervals(
    pairs: Sequence[Pair], confidence: float = 0.95, limits: Sequence[float] | None = None
) -> np.ndarray:
    """Return (ratio of base's median over head's, low, high, chance) of each pair: shape (n, 4).

    `chance` is the p-value of a ratio within that pair's limit (`limits`, a fraction, 0 where left
    out): the interval ends at the limit where the confidence is 1 less it.

    A side's median is that of its processes' medians. How uncertain it is tells a bootstrap that
    draws processes, and samples in each. Percentiles of so few processes would be far too narrow:
    the bootstrap gives a variance alone, of both sides together, to which `spread` adds what is
    known beforehand, and Student's t with the freedom of all of it makes the interval.
    """
    sides = [side for pair in pairs for side in (pair.base, pair.head)]
    middle, variance = _medians(sides)
    middle, variance = middle.reshape(-1, 2), variance.reshape(-1, 2)
    counts = np.array([len(side) for side in sides], dtype=float).reshape(-1, 2)
    known = np.array([(p.spread.deviation, p.spread.freedom) for p in pairs]).reshape(-1, 2)

    share = (math.pi / 2) / (counts + math.pi / 2 - 1)  # of one process' variance in the median
    seen = counts - 1  # freedom; one process shows its samples' noise and nothing of others
    freedom = known[:, 1] + seen.sum(axis=1)
    between = known[:, 0] ** 2 * known[:, 1] + (seen * variance / share).sum(axis=1)
    between /= np.maximum(freedom, 1)
    within = np.where(counts == 1, variance, 0.0).sum(axis=1)
    errors = np.sqrt(between * share.sum(axis=1)), np.sqrt(within)

    def half(tail: float | np.ndarray) -> np.ndarray:
        """Return half the width of intervals that leave out that much at either end."""
        return np.hypot(stdtrit(np.maximum(freedom, 1), tail) * errors[0], ndtri(tail) * errors[1])

    ratio = middle[:, 0] - middle[:, 1]
    beyond = np.abs(ratio) - np.log1p(np.zeros(len(pairs)) if limits is None else limits)
    ends = ratio + half((1 - confidence) / 2) * np.array([[0], [-1], [1]])
    with np.errstate(over="ignore"):  # absurd figures end in absurd intervals
        return np.column_stack([*np.exp(ends), _chances(half, beyond)])


def _chances(half: Callable[[np.ndarray], np.ndarray], beyond: np.ndarray) -> np.ndarray:
    """Return both tails of the intervals that are half as wide as `beyond`, by bisection."""
    low, high = np.full(len(beyond), _LEAST_TAIL), np.full(len(beyond), math.log(0.5))
    for _ in range(50):
        middle = (low + high) / 2
        wide = half(np.exp(middle)) > beyond
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return 2 * np.exp(high)


def middle(side: Sequence[Process]) -> float:
    """Return the median of the processes' medians, in the samples' unit; half way in their logs."""
    if len(side) == len(side[0].samples) == 1:
        return side[0].samples[0]
    return math.exp(median(median(map(math.log, process.samples)) for process in side))


def _medians(sides: Sequence[tuple[Process, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of each side's median and its variance, sides of one shape together."""
    shapes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, side in enumerate(sides):
        shapes[tuple(len(process.samples) for process in side)].append(index)
    middle, variance = np.empty(len(sides)), np.empty(len(sides))
    for shape, at in shapes.items():
        step = max(1, _CHUNK // (_RESAMPLES * sum(shape)))
        for part in (at[i : i + step] for i in range(0, len(at), step)):
            values = [
                np.log([sides[i][process].samples for i in part]) for process in range(len(shape))
            ]
            noise = np.array([[process.noise for process in sides[i]] for i in part])
            middle[part] = np.median([np.median(v, axis=1) for v in values], axis=0)
            variance[part] = _variance(values, noise)
    return middle, variance


def _variance(values: list[np.ndarray], noise: np.ndarray) -> np.ndarray:
    """Return the variance of the median of processes' medians, of each row.

    `values` are (rows, samples) of each process, `noise` is (rows, processes).
    What resampling few takes off a variance is put back, and few samples of a lone process are
    given the tails that Student gives them.
    """
    count = len(values)
    if count == 1 and values[0].shape[1] == 1:
        return noise[:, 0] ** 2
    draw = np.random.default_rng(_SEED)
    drawn = np.stack([_redrawn(v, noise[:, i], draw) for i, v in enumerate(values)], axis=2)
    if count == 1:
        size = values[0].shape[1]
        tails = stdtrit(size - 1, 0.975) / stdtrit(np.inf, 0.975)
        return drawn[:, :, 0].var(axis=1) * size / (size - 1) * tails**2
    chosen = draw.integers(count, size=(_RESAMPLES, count))
    drawn = drawn[:, np.arange(_RESAMPLES)[:, None], chosen]
    return np.median(drawn, axis=2).var(axis=1) * count / (count - 1)


def _redrawn(values: np.ndarray, noise: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Return the median of samples drawn anew, so often: (rows, resamples)."""
    size = values.shape[1]
    if size == 1:
        return values + noise[:, None] * draw.standard_normal(_RESAMPLES)
    return np.median(values[:, draw.integers(size, size=(_RESAMPLES, size))], axis=2)
