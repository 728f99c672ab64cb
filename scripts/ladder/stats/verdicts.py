# SPDX-License-Identifier: MIT
"""Judges rows that were measured on two sides: FASTER, SLOWER, SAME, or why neither."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
import scipy
from numpy.typing import NDArray

from ladder.model import counters, units
from ladder.stats import interval, metrics
from ladder.stats.distribution import Distribution
from ladder.stats.interval import Pair, Process, Spread
from ladder.stats.noise import Floor

_EXACT = Spread(0.0, 1)
_Key = tuple[str, str]  # GPU and name


@dataclass(frozen=True, slots=True)
class Change:
    """One benchmark in two runs; `ratio` is how much better head is: above 1 when faster.

    `low` and `high` are the confidence interval of the ratio. Values are of the metric, in its own
    unit; a time in seconds.
    """

    gpu: str
    name: str
    verdict: str  # FASTER SLOWER SAME NOISY CLOCK NEW MISSING ERROR SKIPPED
    base_seconds: float = math.nan
    head_seconds: float = math.nan
    ratio: float = math.nan
    reason: str = ""
    lost: bool = False  # base has it, head no longer measures it
    unchanged: bool = False  # SAME, or skipped in both
    low: float = math.nan
    high: float = math.nan
    base_value: float = math.nan
    head_value: float = math.nan
    chance: float = math.nan  # p-value of no change beyond the limit; NaN without interval
    allowed: bool = False  # a known exception: counted, but no failure
    host: bool = False  # a CPU ran it
    warm_up: float = math.nan  # the first repetition over the others, where it is far from them
    distribution: Distribution | None = None  # where it was asked for and is known

    @property
    def fails(self) -> bool:
        """Whether it makes the exit code fail."""
        return (self.verdict == "SLOWER" or self.lost) and not self.allowed


@dataclass(frozen=True)
class Rules:
    """What the user asks for. `maps` are pairs of leading segments of names, of base and head."""

    threshold: float = 0.01  # relative change that counts
    confidence: float = 0.95
    metric: str = metrics.TIME
    better: str | None = None  # "less" or "more", where the registry does not tell
    pattern: re.Pattern[str] | None = None  # rows to compare
    maps: Sequence[tuple[str, str]] = ()
    allow: re.Pattern[str] | None = None  # rows that may be slower or lost
    allow_lost: bool = False
    distribution: bool = False  # set the samples beside each other too
    known: metrics.Registry = field(default_factory=lambda: counters.OWN)


@dataclass(frozen=True, slots=True)
class Side:
    """A row as all processes of a side measured it."""

    name: str  # its own, before any map
    status: str
    reason: str
    seconds: float
    clock: float
    throttled: bool
    processes: tuple[Process, ...]
    host: bool = False  # a CPU ran it: nothing was launched
    samples: tuple[NDArray[np.float64], ...] = ()  # a repetition each, in seconds, if asked for


def unpaired(gpu: str, name: str, base: Side | None, head: Side | None) -> Change:
    """Judge a row that only one side, or neither, measured."""
    if base is None:
        assert head is not None
        return Change(gpu, name, "NEW", head_seconds=head.seconds, reason=head.reason)
    if head is None:
        never = "" if base.status == "ok" else f"never measured: {base.status}: {base.reason}"
        return Change(gpu, name, "MISSING", base.seconds, reason=never, lost=not never)
    # An old fault that is fixed counts as new; one that stays keeps its name.
    verdict = head.status.upper() if head.status != "ok" else "NEW"
    reason = head.reason or f"was {base.status} in base: {base.reason}"
    lost = base.status == "ok" or (head.status, base.status) == ("error", "skipped")
    both = head.status == base.status == "skipped"
    times = base.seconds, head.seconds
    return Change(gpu, name, verdict, *times, reason=reason, lost=lost, unchanged=both)


def judge(
    pairs: Mapping[tuple[str, str], tuple[Side, Side]],
    rules: Rules,
    floors: Mapping[str, Floor] | None,
    *,
    more: bool = False,
    exact: bool = False,
) -> dict[tuple[str, str], Change]:
    """Judge the rows that both sides measured.

    With `more`, a larger value of the metric is better. With `exact`, no two runs of one program
    differ in it, so that there is no noise.
    """
    known = {
        key: (_EXACT, 0.0) if exact else noise_of(*sides, rules, floors)
        for key, sides in pairs.items()
    }
    plain, found = {}, {}
    for key, sides in pairs.items():
        first, second = reversed(sides) if more else sides
        if all(sample > 0 for side in sides for p in side.processes for sample in p.samples):
            plain[key] = Pair(first.processes, second.processes, known[key][0])
        else:  # no ratio of medians to speak of
            found[key] = _with_zero(*key, *sides, rules.threshold, more=more)
    limits = {key: max(rules.threshold, known[key][1]) for key in plain}
    intervals = interval.intervals(list(plain.values()), rules.confidence, [*limits.values()])
    for key, (ratio, low, high, chance) in zip(plain, intervals.tolist(), strict=True):
        base, head = pairs[key]
        limit = limits[key]
        verdict, reason = _verdict(ratio, low, high, base, head, limit, rules)
        values = [interval.middle(side.processes) for side in (base, head)]
        times = values if rules.metric == metrics.TIME else [base.seconds, head.seconds]
        found[key] = Change(
            *key,
            verdict,
            base_seconds=times[0],
            head_seconds=times[1],
            ratio=ratio,
            reason=reason,
            unchanged=verdict == "SAME",
            low=low,
            high=high,
            base_value=values[0],
            head_value=values[1],
            chance=chance,
            host=base.host and head.host,
            warm_up=math.nan if exact else _warm_up(base, head),
        )
    return found


def together(found: Mapping[_Key, Change], confidence: float) -> dict[_Key, Change]:
    """Turn FASTER and SLOWER into NOISY where the change may be chance among so many rows.

    Benjamini-Hochberg, with a false discovery rate of 1 - `confidence`: on average at most that
    share of the FASTER and SLOWER that stay is wrong; of rows that are all equal, that is how often
    any is called different. A single row keeps its verdict.
    """
    # Counters with zeros have no interval and no chance: they keep their verdict.
    tested = {key: change for key, change in found.items() if not math.isnan(change.chance)}
    called = {key for key, c in tested.items() if c.verdict in ("FASTER", "SLOWER")}
    if not called:  # and nothing of scipy.stats to load, which takes a while
        return dict(found)
    # A single row's interval is rounded by as much.
    chances = [max(c.chance - 1e-9, 0.0) if key in called else 1.0 for key, c in tested.items()]
    rates = dict(zip(tested, scipy.stats.false_discovery_control(chances), strict=True))
    reason = f"may be chance among {len(tested)} rows"
    return dict(found) | {
        key: replace(found[key], verdict="NOISY", reason=reason)
        for key in called
        if rates[key] > 1 - confidence
    }


def noise_of(
    base: Side, head: Side, rules: Rules, floors: Mapping[str, Floor] | None
) -> tuple[Spread, float]:
    """Return how processes of a row differ, and the least change of it that counts."""
    host = base.host and head.host
    speed = metrics.follows_time(rules.metric, rules.known)
    if not (speed or (host and metrics.is_time(rules.metric))):
        return interval.default_spread(math.inf), 0.0
    measured = [floor for side in (base, head) if (floor := (floors or {}).get(side.name))]
    if measured:
        floor = max(measured, key=lambda floor: floor.spread)
        prior = interval.host_spread() if host else interval.default_spread(math.inf)
        return interval.measured_spread(floor.spread, floor.processes, prior), floor.spread
    if host:
        return interval.host_spread(), 0.0
    seconds = min(base.seconds, head.seconds)
    # Launches come in modes, which the medians of a few processes jump between, however many.
    return interval.default_spread(seconds), interval.launch_share(seconds) / 2


def _verdict(
    ratio: float, low: float, high: float, base: Side, head: Side, limit: float, rules: Rules
) -> tuple[str, str]:
    """Return a verdict and why; the whole interval decides."""
    if 1 / (1 + rules.threshold) <= low and high <= 1 + rules.threshold:
        return "SAME", ""
    if low <= 1 + limit and high >= 1 / (1 + limit):
        if not _within(ratio, rules.threshold) and _within(ratio, limit):
            return "NOISY", f"within the noise of this row, {limit:.1%}"
        return "NOISY", _few(base, head)
    if not interval.apart(base.processes, head.processes, rules.confidence):
        return "NOISY", "processes of the two sides overlap"
    if metrics.follows_time(rules.metric, rules.known):
        clocks = head.clock / base.clock if base.clock > 0 < head.clock else math.nan
        corrected = ratio / clocks
        throttled = base.throttled or head.throttled
        unknown = throttled and math.isnan(corrected)
        # Under a power limit the clock that was sampled is not quite the one that the time was of.
        left = abs(math.log(corrected)) if corrected > 0 else math.inf
        mostly = throttled and left <= abs(math.log(ratio)) / 3
        if unknown or mostly or _between(ratio, clocks, limit):
            mhz = [units.number(side.clock / 1e6) or "unknown" for side in (base, head)]
            return "CLOCK", f"SM clock in MHz: {mhz[0]} in base, {mhz[1]} in head"
    return "FASTER" if ratio > 1 else "SLOWER", ""


def _warm_up(base: Side, head: Side) -> float:
    """Return the first repetition over the others of a row, NaN where it is not far from them."""
    found = [interval.warm_up(side.processes) for side in (base, head)]
    far = [times for times in found if not math.isnan(times)]
    return max(far, key=lambda times: abs(math.log(times)), default=math.nan)


def _between(ratio: float, clocks: float, limit: float) -> bool:
    """Whether a change is no more than the clock's: memory-bound rows follow it in part."""
    return min(1.0, clocks) / (1 + limit) <= ratio <= max(1.0, clocks) * (1 + limit)


def _few(base: Side, head: Side) -> str:
    """Say why the interval is wide, if more runs would narrow it."""
    sides = base.processes, head.processes
    if min(map(len, sides)) > 1:
        return ""
    alone = all(len(p.samples) == 1 and not p.noise for side in sides for p in side)
    return "one number per side" if alone else "one process per side"


def _within(ratio: float, threshold: float) -> bool:
    """Symmetric, so that swapping base and head swaps FASTER and SLOWER; false for NaN."""
    return 1 / (1 + threshold) <= ratio <= 1 + threshold


def _with_zero(
    gpu: str, name: str, base: Side, head: Side, threshold: float, *, more: bool
) -> Change:
    """Judge counters that are 0 somewhere by the threshold alone."""
    values = [median(s for p in side.processes for s in p.samples) for side in (base, head)]
    first, second = reversed(values) if more else values
    ratio = first / second if second else 1.0 if not first else math.inf
    verdict = "SAME" if _within(ratio, threshold) else "FASTER" if ratio > 1 else "SLOWER"
    reason = "" if verdict == "SAME" else "has zeros: judged by the threshold alone"
    if min(values) < 0:
        verdict, ratio, reason = "NOISY", math.nan, "below zero: no ratio"
    return Change(
        gpu,
        name,
        verdict,
        base.seconds,
        head.seconds,
        ratio,
        reason,
        unchanged=verdict == "SAME",
        base_value=values[0],
        head_value=values[1],
        host=base.host and head.host,
    )
