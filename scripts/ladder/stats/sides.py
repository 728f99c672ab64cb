# SPDX-License-Identifier: MIT
"""Reads the two sides of a comparison from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ladder.io.results import Results, load_sides, registry_of
from ladder.model.errors import IncomparableError
from ladder.stats import metrics, noise
from ladder.stats.compare import Comparison, compare
from ladder.stats.noise import Floor
from ladder.stats.verdicts import Rules

_COUNTS = "as --metric shared_load_wavefronts or --metric global_load_sectors"


def compared(
    base: Sequence[str], head: Sequence[str], rules: Rules, noise: Path | None, *, force: bool
) -> Comparison:
    """Compare the results in files or directories, each file per process.

    `noise` is what 'ladder noise' wrote. Raises LadderError.
    """
    loaded = load_sides(base, head)
    known = registry_of(result for side in loaded for result in side)
    timed = metrics.is_time(rules.metric) or metrics.follows_time(rules.metric, known)
    before, after = _of_one_source(loaded, [base, head], timed=timed)
    floors = read_floors(noise, [*before, *after]) if noise else None
    return compare(before, after, force=force, floors=floors, rules=rules)


def _of_one_source(
    loaded: list[list[Results]], sides: list[Sequence[str]], *, timed: bool
) -> list[list[Results]]:
    """Leave out what is not timed, or for counters what the other side has none of.

    Raises IncomparableError where a side has no times to compare.
    """
    sources = [{result.source for result in side} for side in loaded]
    for paths, found in zip(sides, sources, strict=True):
        if timed and "timed" not in found:
            what = "emulated" if "emulated" in found else "hardware counters"
            told = f"{what}: has no speeds to compare; its counts are, {_COUNTS}"
            raise IncomparableError(f"{paths[0]}: {told}")
    common = sources[0] & sources[1]
    kept = next((source for source in ("timed", "counters", "emulated") if source in common), None)
    return [[r for r in side if kept in (None, r.source)] for side in loaded]


def read_floors(path: Path, results: list[Results]) -> dict[str, Floor]:
    """Read the noise floors of the same GPU and cache mode. Raises IncomparableError."""
    context, floors = noise.read(path)
    for key in ("gpu_name", "cache_mode"):
        measured = str(context.get(key, ""))
        if other := [value for r in results if (value := str(r.context.get(key, ""))) != measured]:
            raise IncomparableError(
                f"{path}: noise of {measured or 'an unknown'} {key}, not of {other[0] or 'another'}"
            )
    return floors
