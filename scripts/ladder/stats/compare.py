# SPDX-License-Identifier: MIT
"""Compares two runs row by row: ratios of medians with their intervals, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import geometric_mean, median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ladder.io import samples
from ladder.io.entries import WORST_FIRST
from ladder.io.results import Results, registry_of
from ladder.model import errors
from ladder.model.errors import LadderError
from ladder.model.rows import Row, bare
from ladder.stats import comparable, distribution, metrics
from ladder.stats.distribution import Distribution
from ladder.stats.interval import Process
from ladder.stats.noise import Floor
from ladder.stats.verdicts import Change, Rules, Side, judge, together, unpaired

_Sides = Mapping[tuple[str, str], Side]  # by GPU and name


@dataclass(frozen=True)
class Comparison:
    """All changes, why runs are incomparable (`differences`), and other differences (`notes`)."""

    threshold: float
    differences: list[str]
    notes: list[str]
    refused: bool
    changes: list[Change] = field(default_factory=list)
    metric: str = metrics.TIME
    follows_time: bool = True  # the metric is a time on the GPU or a speed
    confidence: float = 0.95
    processes: tuple[int, int] = (1, 1)  # of the row that has most, in base and in head
    noise_measured: bool = False  # how processes differ is known, not assumed
    same_files: bool = False  # base and head hold the same, and no --map says why

    @cached_property
    def gpus(self) -> set[str]:
        """The GPUs of the rows; "" stands for host code."""
        return {change.gpu for change in self.changes}

    @property
    def lost(self) -> list[Change]:
        """Return what base measured and head does not."""
        return [change for change in self.changes if change.lost]

    @property
    def geometric_mean(self) -> Mean | None:
        """Return the mean change of all rows in time or speed that both sides measured.

        NOISY and allowed rows count like the rest, since the mean of rows that stand out would be
        biased. None for other metrics, and of fewer than two rows.
        """
        if not (metrics.is_time(self.metric) or self.follows_time):
            return None
        ratios = [c.ratio for c in self.changes if 0 < c.ratio < math.inf]
        return Mean(geometric_mean(ratios), len(ratios)) if len(ratios) > 1 else None

    @property
    def exit_code(self) -> int:
        """Refusal comes before a regression, and that before lost coverage."""
        if self.refused:
            return errors.INCOMPARABLE
        failed = [change for change in self.changes if change.fails]
        if any(change.verdict == "SLOWER" for change in failed):
            return errors.REGRESSION
        return errors.LOST_COVERAGE if failed else errors.OK


class Mean(NamedTuple):
    """The geometric mean of ratios, above 1 where head is better, and their number."""

    ratio: float
    rows: int


def compare(
    base: list[Results],
    head: list[Results],
    threshold: float = 0.01,
    *,
    force: bool = False,
    floors: Mapping[str, Floor] | None = None,
    rules: Rules | None = None,
) -> Comparison:
    """Compare the rows of two runs that have the same GPU and name.

    Results of one program on one side are its processes (`load_processes`). `floors` are what
    `ladder noise` measured, by row name. `rules`, where given, has the threshold too. Incomparable
    runs give no changes unless `force`.

    Raises:
        LadderError: no row is left to compare, none has the metric, or nothing tells which way it
            is better.
    """
    rules = replace(rules or Rules(threshold), known=registry_of([*base, *head]))
    if rules.distribution and rules.metric != metrics.TIME:
        raise LadderError(f"--distribution: there are samples of {metrics.TIME} alone")
    metrics.check(rules.metric, [*base, *head])
    more = metrics.more_is_better(rules.metric, rules.better, rules.known)
    if rules.pattern and not rules.maps:
        base, head = ([r.keep(rules.pattern) for r in side] for side in (base, head))
    differences = comparable.differences(base, head)
    refused = bool(differences) and not force
    before, after = (gather(side, rules, at) for at, side in enumerate((base, head)))
    counts = [max([1, *(len(s.processes) for s in x.values())]) for x in (before, after)]
    comparison = Comparison(
        rules.threshold,
        differences,
        comparable.notes(base, head, rules.metric),
        refused,
        metric=rules.metric,
        follows_time=metrics.follows_time(rules.metric, rules.known),
        confidence=rules.confidence,
        processes=(counts[0], counts[1]),
        noise_measured=bool(floors),
        same_files=not rules.maps and comparable.same_files(base, head),
    )
    if refused:
        return comparison
    _check(before, after, rules)
    if rules.distribution:
        comparison.notes.extend(_unsampled(before, after))
    gpus = [dict.fromkeys(gpu for gpu, _ in rows) for rows in (before, after)]
    if len(gpus[0]) == len(gpus[1]) == 1 and gpus[0] != gpus[1]:  # forced: match by name alone
        (gpu,) = gpus[0]
        after = {(gpu, name): row for (_, name), row in after.items()}
    pairs = {
        key: (row, after[key])
        for key, row in before.items()
        if key in after and row.status == after[key].status == "ok"
    }
    exact = metrics.is_exact(rules.metric, rules.known)
    exact |= all(result.source == "emulated" for result in [*base, *head])
    judged = together(judge(pairs, rules, floors, more=more, exact=exact), rules.confidence)
    for key in dict.fromkeys([*before, *after]):
        change = judged.get(key) or unpaired(*key, before.get(key), after.get(key))
        if change.fails and _allows(rules, change):
            change = replace(change, allowed=True)
        if rules.distribution and key in pairs:
            change = replace(change, distribution=_distribution(*pairs[key], rules.threshold))
        comparison.changes.append(change)
    return comparison


def _allows(rules: Rules, change: Change) -> bool:
    known = rules.allow and rules.allow.search(change.name)
    return bool(known) or (rules.allow_lost and change.lost)


def _unsampled(before: _Sides, after: _Sides) -> Iterator[str]:
    """Say which side has rows whose repetitions stand in for samples."""
    for title, rows in (("base", before), ("head", after)):
        measured = [side for side in rows.values() if side.processes]
        if lacking := sum(not side.samples for side in measured):
            yield (
                f"{title} has no samples of {lacking} of {len(measured)} rows ('ladder run "
                "--samples' keeps them): repetitions are compared, where there are three"
            )


def _distribution(base: Side, head: Side, threshold: float) -> Distribution | None:
    """Compare the samples of a row, or else its repetitions; None if there are too few."""
    of = "samples" if base.samples and head.samples else "repetitions"
    before, after = (
        np.concatenate(side.samples if of == "samples" else [p.samples for p in side.processes])
        for side in (base, head)
    )
    if min(len(before), len(after)) < distribution.LEAST:
        return None
    return distribution.compared(of, before, after, threshold)


def gather(results: list[Results], rules: Rules, at: int) -> dict[tuple[str, str], Side]:
    """Collect what the processes of a side measured, by GPU and name."""
    found: dict[tuple[str, str], list[tuple[Row, Process | None]]] = {}
    sampled: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for result in results:
        beside = samples.beside(result) if rules.distribution else {}
        for row in result.rows:
            for shown in _shown(row.name, rules, at):
                process = metrics.process(result.written[row.name], rules.metric, rules.known)
                found.setdefault((result.gpu, shown), []).append((row, process))
                sampled.setdefault((result.gpu, shown), []).extend(beside.get(bare(row.name), []))
    sides = {
        key: _side(measured, rules.metric, host=not key[0] or _on_host(measured[0][0].name))
        for key, measured in found.items()
    }
    return {key: replace(side, samples=tuple(sampled[key])) for key, side in sides.items()}


def _on_host(name: str) -> bool:
    """Whether a rung of a GPU's file is one that the CPU runs: `ladder/NAME_cpu/...`."""
    return "/" in name and name.split("/")[1].endswith("_cpu")


def _shown(name: str, rules: Rules, at: int) -> Iterator[str]:
    """Yield the names under which a row of base (`at` 0) or head (1) is compared, if any."""
    shown = [name]
    if rules.maps:
        shown = [
            "=>".join(pair) + name.removeprefix(pair[at])
            for pair in rules.maps
            if f"{name}/".startswith(f"{pair[at]}/")
        ]
    for candidate in shown:
        if not rules.pattern or rules.pattern.search(candidate):
            yield candidate


def _side(measured: list[tuple[Row, Process | None]], metric: str, *, host: bool) -> Side:
    """Merge processes: the worst status of any is the row's."""
    rows = [row for row, _ in measured]
    worst = min(rows, key=lambda row: WORST_FIRST.index(row.status))
    processes = tuple(process for _, process in measured if process)
    status, reason = worst.status, worst.reason
    if status == "ok" and not processes:
        status, reason = "skipped", f"no {metric}"
    return Side(
        rows[0].name,
        status,
        reason,
        _median([row.seconds for row in rows]),
        _median([row.sm_clock_hz for row in rows]),
        any(row.throttled == 1 for row in rows),
        processes if status == "ok" else (),
        host,
    )


def _median(values: list[float]) -> float:
    return math.nan if any(map(math.isnan, values)) else median(values)


def _check(before: _Sides, after: _Sides, rules: Rules) -> None:
    """Refuse options that leave nothing to compare."""
    if not before and not after and rules.pattern:
        raise LadderError(f"--filter {rules.pattern.pattern}: no row matches")
    for left, right in rules.maps:
        for side, title, prefix in ((before, "base", left), (after, "head", right)):
            if not any(name.startswith(f"{left}=>{right}") for _, name in side):
                raise LadderError(f"--map {left}=>{right}: no row of {title} begins with {prefix}")
    found = any(side.processes for rows in (before, after) for side in rows.values())
    if not found and rules.metric != metrics.TIME:
        of = f" that --filter {rules.pattern.pattern} matches" if rules.pattern else ""
        raise LadderError(f"--metric {rules.metric}: no row{of} has it")
