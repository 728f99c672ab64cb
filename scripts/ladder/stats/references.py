# SPDX-License-Identifier: MIT
"""Expected values of rows with their bounds: read, compared with results, and made from them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import msgspec

from ladder.analysis.study import describe
from ladder.io import toml_file
from ladder.io.programs import identity
from ladder.io.results import Results, registry_of
from ladder.model import counters
from ladder.model.errors import (
    LOST_COVERAGE,
    OK,
    REGRESSION,
    IncomparableError,
    LadderError,
    ResultError,
)
from ladder.model.rows import bare
from ladder.stats import metrics
from ladder.stats.noise import Floor

METRIC = "percent_of_ceiling"  # a ratio to a roof of the same process: the same on another board
BOUND = 0.05  # where no noise is known
LEAST_BOUND, SPREADS = 0.02, 2  # where it is: so many times what processes were apart


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reference as the file has it."""

    gpu: str = ".*"
    cache_mode: str = ""
    row: str
    metric: str = METRIC
    value: float
    lower: Annotated[float, msgspec.Meta(le=0)] = -math.inf
    upper: Annotated[float, msgspec.Meta(ge=0)] = math.inf
    better: Literal["less", "more"] | None = None
    expected_failure: str = ""


@dataclass(frozen=True)
class Reference:
    """What is expected of the rows that a pattern names, on the GPUs that another does.

    `low` and `high` are in the metric's own unit, infinite where there is no bound.
    """

    gpu: re.Pattern[str]
    cache_mode: str  # empty for any
    row: re.Pattern[str]
    metric: str
    value: float
    low: float
    high: float
    more: bool  # is better
    expected_failure: str = ""


@dataclass(frozen=True)
class Finding:
    """One row compared with one reference."""

    verdict: str  # OK LOW HIGH MISSING ERROR XFAIL XPASS
    reference: Reference
    name: str  # the row's, or the pattern that no row matches
    where: str  # what measured
    value: float = math.nan
    reason: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of this finding alone."""
        if self.verdict in ("LOW", "HIGH"):
            return OK if (self.verdict == "HIGH") == self.reference.more else REGRESSION
        return LOST_COVERAGE if self.verdict in ("MISSING", "ERROR") else OK


def read(path: Path) -> list[Reference]:
    """Read a references file. Raises ResultError saying what is wrong with it."""
    entries = toml_file.read(path).get("reference")
    if not isinstance(entries, list) or not entries:
        raise ResultError(f"{path}: has no [[reference]]")
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(_reference(msgspec.convert(entry, _Entry)))
        except ValueError as error:
            raise ResultError(f"{path}: reference {number}: {error}") from error
    return found


def _reference(entry: _Entry) -> Reference:
    value = entry.value
    if not math.isfinite(value):
        raise ValueError("value is not finite")
    try:
        more = metrics.more_is_better(entry.metric, entry.better)
    except LadderError as error:
        told = f'is less or more of {entry.metric} better? (better = "less" or "more")'
        raise ValueError(told) from error
    return Reference(
        _pattern("gpu", entry.gpu),
        entry.cache_mode,
        _pattern("row", entry.row),
        entry.metric,
        value,
        value + entry.lower * abs(value) if entry.lower > -math.inf else -math.inf,
        value + entry.upper * abs(value) if entry.upper < math.inf else math.inf,
        more,
        entry.expected_failure,
    )


def _pattern(key: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{key} '{text}' is not a regular expression: {error}") from error


def check(results: Sequence[Results], references: Sequence[Reference]) -> tuple[list[Finding], int]:
    """Compare each reference with what its GPUs measured; count those of other GPUs.

    Raises LadderError where all of them are.
    """
    found: list[Finding] = []
    others = 0
    for reference in references:
        own = [r for r in results if _is_of(reference, r)]
        findings = [finding for result in own for finding in _findings(reference, result)]
        if own and not findings:
            where, name = describe(own[0]), reference.row.pattern
            findings = [Finding("MISSING", reference, name, where, reason="no such row")]
        found += findings
        others += not own
    if not found:
        there = " or ".join(dict.fromkeys(map(describe, results)))
        raise LadderError(f"no reference is of {there}")
    return found, others


def _is_of(reference: Reference, result: Results) -> bool:
    modes = (reference.cache_mode or result.cache_mode, result.cache_mode)
    return bool(reference.gpu.fullmatch(result.gpu)) and modes[0] == modes[1]


def _findings(reference: Reference, result: Results) -> list[Finding]:
    shorts = _short_names(result)
    return [
        _finding(reference, result, row.name, row.status, row.reason, shorts[row.name])
        for row in result.rows
        if reference.row.fullmatch(shorts[row.name]) or reference.row.fullmatch(row.name)
    ]


def _short_names(result: Results) -> dict[str, str]:
    """Return what each row is called without /manual_time, unless another row has that name.

    Of all rows of the files, also where `result` was filtered.
    """
    names = result.written
    return {name: name if (short := bare(name)) in names else short for name in names}


def _finding(
    reference: Reference, result: Results, name: str, status: str, reason: str, shown: str
) -> Finding:
    value = value_of(result, name, reference.metric) if status == "ok" else math.nan
    verdict = "LOW" if value < reference.low else "HIGH" if value > reference.high else "OK"
    if status != "ok":
        verdict, reason = "ERROR" if status == "error" else "MISSING", f"{status}: {reason}"
    elif math.isnan(value):
        verdict, reason = "MISSING", f"no {reference.metric}"
    finding = Finding(verdict, reference, shown, describe(result), value, reason)
    if reference.expected_failure:
        if finding.exit_code != LOST_COVERAGE:  # what was not measured is not what was expected
            met = finding.exit_code == OK
            verdict, reason = ("XPASS", "no longer fails") if met else ("XFAIL", reason)
        reason = ", ".join(filter(None, (reason, reference.expected_failure)))
    elif verdict in ("LOW", "HIGH") and finding.exit_code == OK:
        reason = "better than expected: update the reference"
    return Finding(verdict, reference, finding.name, finding.where, value, reason)


def value_of(result: Results, name: str, metric: str) -> float:
    """Return the median of a row's metric, a time in seconds; NaN where it has none."""
    process = metrics.process(result.written[name], metric)
    return median(process.samples) if process else math.nan


def exit_code(findings: Sequence[Finding]) -> int:
    """Return that of the worst finding: a regression comes before lost coverage."""
    codes = {finding.exit_code for finding in findings}
    return REGRESSION if REGRESSION in codes else max(codes)


def to_toml(
    results: Sequence[Results],
    wanted: Sequence[str],
    floors: Mapping[str, Floor] | None = None,
    chosen: str = "",
    better: str | None = None,
) -> str:
    """Write a reference for each row that has one of the metrics; `floors` make their bounds.

    `chosen` is the pattern that rows were chosen by, which the file says. `better` is "less" or
    "more", of metrics that neither we nor the results know.

    Raises:
        IncomparableError: a row is there twice, of several commits or boards.
        LadderError: no row has such a metric, or nothing tells which way it is better.
    """
    known = registry_of(results)
    for metric in wanted:
        if metric != METRIC:  # which has a hint of its own
            metrics.check(metric, results)
    ways = {metric: _better(metric, better, known) for metric in wanted}
    entries: dict[tuple[str, ...], dict[str, Any]] = {}
    for result in results:
        shorts = _short_names(result)
        triples = [(row.name, row.ladder, row.role) for row in result.with_status("ok")]
        for (name, ladder, role), metric in itertools.product(triples, wanted):
            value = value_of(result, name, metric)
            trivial = role == "ceiling" and metric == METRIC  # 100 % of itself
            if trivial or not math.isfinite(value):
                continue
            # A foreign suite may have a row of the short name tomorrow.
            shown = shorts[name] if ladder else name
            key = (result.gpu, result.cache_mode, shown, metric)
            if key in entries:
                raise IncomparableError(f"{name}: measured twice: {_why_twice(results)}")
            floor = (floors or {}).get(name)
            entries[key] = _entry(key, value, _bound(floor, metric, known), ways[metric])
    if not entries:
        hint = " (--metric real_time, or another that they have)" * (METRIC in wanted)
        raise LadderError(f"no row has {' or '.join(wanted)}{hint}")
    sources = "; ".join(map(describe, results))
    head = [f"# Expected of {sources}, as 'ladder check --write' has it."]
    head += [f"# --filter '{chosen}'"] * bool(chosen)
    told = "".join(f"{line.translate(_CONTROLS)}\n" for line in head)
    return f"{told}\n{toml_file.array('reference', entries.values())}"


def _why_twice(results: Sequence[Results]) -> str:
    kinds = [identity(result.context) for result in results if not result.commit]
    if len(kinds) > len({*kinds}):
        return "files that do not name their commit (--one-run: they are processes of one program)"
    return "several commits or boards, machines or builds"


_CONTROLS = dict.fromkeys([*range(32), 127])


def _bound(floor: Floor | None, metric: str, known: metrics.Registry) -> float:
    if metrics.is_exact(metric, known):
        return 0.0
    if not floor or not metrics.follows_time(metric, known):
        return BOUND
    return max(LEAST_BOUND, math.ceil(round(SPREADS * floor.spread * 1000, 6)) / 1000)


def _better(metric: str, told: str | None, known: metrics.Registry) -> str:
    """Return which way a metric is better; empty where whoever reads the file knows it."""
    if metric in counters.OWN and counters.OWN[metric].better:
        return ""
    return counters.MORE if metrics.more_is_better(metric, told, known) else counters.LESS


def _entry(key: tuple[str, ...], value: float, bound: float, better: str) -> dict[str, Any]:
    gpu, cache_mode, name, metric = key
    given = {
        "gpu": _escaped(gpu),
        "cache_mode": cache_mode,
        "row": _escaped(name),
        "metric": "" if metric == METRIC else metric,
        "better": better,
    }
    # Five digits are enough to read, but a bound of 0 leaves no room for what they drop.
    numbers = {"value": float(f"{value:.5g}") if bound else value, "lower": -bound, "upper": bound}
    return {key: text for key, text in given.items() if text} | numbers


def _escaped(text: str) -> str:
    """Return a pattern of `text` alone; unlike re.escape it leaves blanks and dashes legible."""
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text)
