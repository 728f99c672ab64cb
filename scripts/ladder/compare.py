# SPDX-License-Identifier: MIT
"""Compares two runs row by row: ratios of medians, and what may not be compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ladder import errors
from ladder.results import Results
from ladder.study import Row

# Context that may explain a change but does not forbid comparing.
_NOTED = ("gpu_uuid", "driver_version", "runtime_version", "compiler", "cuda_flags", "host_name")


@dataclass(frozen=True)
class Change:
    """One benchmark in two runs; `ratio` is head's speed over base's, above 1 when faster."""

    gpu: str
    name: str
    verdict: str  # FASTER SLOWER SAME NOISY CLOCK NEW MISSING ERROR SKIPPED
    base_seconds: float = math.nan
    head_seconds: float = math.nan
    ratio: float = math.nan
    reason: str = ""
    lost: bool = False  # base has it, head no longer measures it
    unchanged: bool = False  # SAME, or skipped in both


@dataclass(frozen=True)
class Comparison:
    """All changes, what forbids comparing (`differences`) and what else differs (`notes`)."""

    threshold: float
    differences: list[str]
    notes: list[str]
    refused: bool
    changes: list[Change] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Refusal comes before a regression, and that before lost coverage."""
        if self.refused:
            return errors.INCOMPARABLE
        if any(change.verdict == "SLOWER" for change in self.changes):
            return errors.REGRESSION
        return errors.LOST_COVERAGE if any(c.lost for c in self.changes) else errors.OK


def compare(
    base: list[Results],
    head: list[Results],
    threshold: float = 0.01,
    *,
    force: bool = False,
    floors: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare the rows of two runs that have the same GPU and name.

    `threshold` is the relative change that counts, 0.01 for 1 %. A change beyond it is NOISY when
    the quartile ranges overlap, and CLOCK when the time moved but time x SM clock did not.
    `floors` are the noise of rows by name: where larger, the threshold of that row.
    Incomparable runs give no changes unless `force`.
    """
    before, after = _index(base), _index(head)
    gpus = [dict.fromkeys(gpu for gpu, _ in rows) for rows in (before, after)]
    differences = [*_differences(base, head), *_units(before, after)]
    refused = bool(differences) and not force
    comparison = Comparison(threshold, differences, _notes(base, head), refused)
    if refused:
        return comparison
    if len(gpus[0]) == len(gpus[1]) == 1 and gpus[0] != gpus[1]:  # forced: match by name alone
        (gpu,) = gpus[0]
        after = {(gpu, name): row for (_, name), row in after.items()}
    for gpu, name in dict.fromkeys([*before, *after]):
        pair = before.get((gpu, name)), after.get((gpu, name))
        comparison.changes.append(_change(gpu, name, *pair, threshold, (floors or {}).get(name, 0)))
    return comparison


def _index(results: list[Results]) -> dict[tuple[str, str], Row]:
    return {(r.gpu, row.name): row for r in results for row in r.rows.itertuples(index=False)}


def _change(
    gpu: str, name: str, base: Row | None, head: Row | None, threshold: float, floor: float
) -> Change:
    if base is None:
        return Change(gpu, name, "NEW", head_seconds=head.seconds, reason=head.reason)
    if head is None:
        return Change(gpu, name, "MISSING", base_seconds=base.seconds, lost=True)
    if head.status != "ok" or base.status != "ok":
        # An old fault that is fixed counts as new; one that stays keeps its name.
        verdict = head.status.upper() if head.status != "ok" else "NEW"
        reason = head.reason or f"was {base.status} in base: {base.reason}"
        lost = base.status == "ok" or (head.status, base.status) == ("error", "skipped")
        both = head.status == base.status == "skipped"
        times = base.seconds, head.seconds
        return Change(gpu, name, verdict, *times, reason=reason, lost=lost, unchanged=both)
    ratio = base.seconds / head.seconds
    verdict = "FASTER" if ratio > 1 else "SLOWER"
    reason = "" if _within(ratio, threshold) else f"within the noise of this row, {floor:.1%}"
    threshold = max(threshold, floor)
    if _within(ratio, threshold):
        verdict = "SAME"
    elif _overlap(base, head):
        verdict = "NOISY"
    elif 1 in (base.throttled, head.throttled) or _within(
        ratio * base.sm_clock_hz / (head.sm_clock_hz or math.nan), threshold
    ):
        verdict = "CLOCK"
    same = verdict == "SAME"
    times = base.seconds, head.seconds
    return Change(gpu, name, verdict, *times, ratio, reason if same else "", unchanged=same)


def _within(ratio: float, threshold: float) -> bool:
    """Symmetric, so that swapping base and head swaps FASTER and SLOWER; false for NaN."""
    return 1 / (1 + threshold) <= ratio <= 1 + threshold


def _overlap(base: Row, head: Row) -> bool:
    """Whether the quartile ranges share a time; false where either is unknown."""
    return base.q1_seconds <= head.q3_seconds and head.q1_seconds <= base.q3_seconds


def _differences(base: list[Results], head: list[Results]) -> list[str]:
    """Say what forbids comparing."""
    found = []
    gpus = {r.gpu for r in base}, {r.gpu for r in head}
    if not gpus[0] & gpus[1]:
        found.append(f"different GPUs: {_list(gpus[0])} in base, {_list(gpus[1])} in head")
    for title, value in (("cache mode", "cache_mode"), ("build type", "build_type")):
        values = [{getattr(r, value) for r in side} for side in (base, head)]
        if len(values[0] | values[1]) > 1:
            found.append(
                f"different {title}s: {_list(values[0])} in base, {_list(values[1])} in head"
            )
    return found + [
        f"{title} holds {twice[0]} of {len(twice)} rows more than once: several commits or boards"
        for title, side in (("base", base), ("head", head))
        if (twice := _repeated(side))
    ]


def _repeated(results: list[Results]) -> list[str]:
    counts = Counter((r.gpu, name) for r in results for name in r.rows["name"])
    return [name for (_, name), count in counts.items() if count > 1]


def _units(base: dict[tuple[str, str], Row], head: dict[tuple[str, str], Row]) -> list[str]:
    """Say which rows changed their time unit: the benchmark itself was redefined."""
    changed = [
        f"{name} ({base[gpu, name].time_unit} in base, {head[gpu, name].time_unit} in head)"
        for gpu, name in base
        if (gpu, name) in head and base[gpu, name].time_unit != head[gpu, name].time_unit
    ]
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [f"different time units: {changed[0]}{more}"] if changed else []


def _notes(base: list[Results], head: list[Results]) -> list[str]:
    values = [(k, *({str(r.context.get(k, "")) for r in s} for s in (base, head))) for k in _NOTED]
    differing = [(key, b, h) for key, b, h in values if b != h]
    if {r.with_counters for r in base} != {r.with_counters for r in head}:
        told = ({r.hardware_counters or "none" for r in side} for side in (base, head))
        differing.append(("hardware_counters", *told))
    return [f"{key}: {_list(b)} in base, {_list(h)} in head" for key, b, h in differing]


def _list(values: Iterable[str]) -> str:
    return " and ".join(sorted(value or "unknown" for value in values))
