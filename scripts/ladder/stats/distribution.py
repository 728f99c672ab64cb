# SPDX-License-Identifier: MIT
"""How the times of a row are distributed on two sides: what explains a verdict, and changes none.

Samples of one process are alike: a difference here is one of what was measured, and says nothing of
what another process would have measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # whose `stats`, which takes a while to load, loads when used
from numpy.typing import NDArray

_Array = NDArray[np.float64]

LEAST = 3  # times a side, to speak of percentiles
_LEAST_OF_SHAPE, _LEAST_OF_MODES = 20, 50  # times a side, to speak of these
_QUANTILES = (0.1, 0.5, 0.9)
_INNER = (0.05, 0.95)  # quantiles that times are clipped to, since outliers may lie beyond
_CRITICAL = 1.63  # of the Kolmogorov-Smirnov test at 1 %: times sqrt(1/n + 1/m), for large n and m
_LEAST_DISTANCE = 0.2  # with many samples even a tiny difference is significant
_LEAST_SHARE = 0.15  # of a mode; what is less may be outliers
_LEAST_APART = 4.5  # of two modes, Ashman's D: a uniform distribution cut in half has 3.5


@dataclass(frozen=True)
class Mode:
    """One of two modes: its median, in seconds, and its share of all times, a fraction."""

    seconds: float
    share: float


@dataclass(frozen=True)
class Distribution:
    """The times of a row on both sides; `p10` to `p90` are ratios, above 1 where head is faster."""

    of: str  # samples, repetitions
    base_count: int
    head_count: int
    p10: float
    p50: float
    p90: float
    kolmogorov_smirnov: float  # distance of the shapes: after scaling head by one of the ratios
    differ: bool | None  # in shape; None if there are too few times
    base_modes: tuple[Mode, ...]  # two or none
    head_modes: tuple[Mode, ...]


def compared(of: str, base: _Array, head: _Array, threshold: float) -> Distribution:
    """Compare the distributions of two sides' times, in seconds.

    Shapes differ where the distance is significant at 1 % and 0.2 or more, and the ratios at the
    percentiles are further apart than `threshold`, a fraction; so are two modes.
    """
    ratios = (np.quantile(base, _QUANTILES) / np.quantile(head, _QUANTILES)).tolist()
    p10, p50, p90 = ratios
    # The median may jump between two modes: then another ratio brings equal shapes together.
    tests = [scipy.stats.ks_2samp(base, ratio * head, method="asymp") for ratio in ratios]
    distance = min(float(test.statistic) for test in tests)
    differ = None
    if min(len(base), len(head)) >= _LEAST_OF_SHAPE:
        critical = _CRITICAL * math.sqrt(1 / len(base) + 1 / len(head))
        far = distance >= max(critical, _LEAST_DISTANCE)
        differ = far and max(ratios) / min(ratios) > 1 + threshold
    before, after = modes(base, threshold), modes(head, threshold)
    counts = len(base), len(head)
    return Distribution(of, *counts, p10, p50, p90, distance, differ, before, after)


def modes(times: _Array, least: float) -> tuple[Mode, ...]:
    """Return the two modes of times above 0, the lower one first; empty where there are not two.

    They are cut where the variance between both is largest (Otsu's method), in logs. They are two
    where their means are more than `least`, a fraction, and several standard deviations apart.
    """
    count, edge = len(times), math.ceil(_LEAST_SHARE * len(times))
    if count < _LEAST_OF_MODES:
        return ()
    ordered = np.sort(times)
    inner = np.clip(np.log(ordered), *np.log(np.quantile(ordered, _INNER)))
    cuts = np.arange(edge, count - edge + 1)
    sums = np.cumsum(inner)
    lower, upper = sums[cuts - 1] / cuts, (sums[-1] - sums[cuts - 1]) / (count - cuts)
    cut = int(cuts[np.argmax(cuts * (count - cuts) * (upper - lower) ** 2)])
    apart = float(inner[cut:].mean() - inner[:cut].mean())
    deviation = math.sqrt((inner[:cut].var() + inner[cut:].var()) / 2)
    if apart <= max(math.log1p(least), _LEAST_APART * deviation):
        return ()
    parts = ordered[:cut], ordered[cut:]
    return tuple(Mode(float(np.median(part)), len(part) / count) for part in parts)
