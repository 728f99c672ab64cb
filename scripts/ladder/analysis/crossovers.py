# SPDX-License-Identifier: MIT
"""Crossovers: the sizes at which a choice changes kernels, found from measurements of both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import tomli_w

from ladder.io import files, toml_file
from ladder.model.errors import ResultError
from ladder.model.rows import bare

_HEAD = """\
# Where choices change kernels on this GPU: `ladder tune` wrote it, and the programs are
# built with it. Below its value a choice takes one kernel, from it on the other.
"""
_SIDES = ("below", "above")
_LEVEL = 0.003  # of the time: values that lose so little per probe are as good as the best


@dataclass(frozen=True)
class Probe:
    """A shape measured both ways: the crossover's size of it, and the seconds of each way."""

    case: str
    size: float
    below: float
    above: float

    def loss(self, value: float) -> float:
        """Return the log of the time with the crossover at `value` over the shorter time."""
        taken = self.above if self.size >= value else self.below
        return math.log(taken / min(self.below, self.above))


@dataclass(frozen=True)
class Crossover:
    """One crossover: its "ladder.name", its choice, its earlier value and its best value."""

    name: str
    choice: str
    before: float
    value: float
    probes: tuple[Probe, ...]

    def gain(self) -> float:
        """Return how much faster the probes are than with the value before: a mean fraction."""
        saved = sum(p.loss(self.before) - p.loss(self.value) for p in self.probes)
        return math.expm1(saved / len(self.probes))


def find(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Crossover]:
    """Find the crossovers of rows that `ladder_bench --tune` measured, by name.

    A row is "ladder/rung/case/NAME:below" or "...:above". A probe is left out if one of its sides
    failed or was skipped. A crossover is left out if no probe of it remains.
    """
    sides: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    choices: dict[str, str] = {}
    for name, entries in rows.items():
        ladder, choice, *axes = bare(name).split("/")
        crossover, _, side = axes[-1].partition(":")
        if side in _SIDES and (entries[0].get("median_seconds") or 0) > 0:
            choices[f"{ladder}.{crossover}"] = choice
            sides.setdefault((f"{ladder}.{crossover}", "/".join(axes[:-1])), {})[side] = entries[0]
    probes: dict[str, list[Probe]] = {}
    before: dict[str, float] = {}
    for (name, case), found in sides.items():
        if len(found) < len(_SIDES):
            continue
        below, above = (found[side] for side in _SIDES)
        seconds = below["median_seconds"], above["median_seconds"]
        probes.setdefault(name, []).append(Probe(case, below["crossover_size"], *seconds))
        before[name] = below["crossover_value"]
    return [
        Crossover(name, choices[name], before[name], best(of, before[name]), tuple(of))
        for name, of in probes.items()
    ]


def best(probes: Sequence[Probe], before: float) -> float:
    """Return the value that loses the least time, or `before` if that is as good.

    The value lies between the sizes of two probes. Where one way is better at all of them, it is
    `before` or lies just outside of them: nothing was measured further away. So a `before` of 0 or
    infinity, which means everywhere, does not stay.
    """
    sizes = sorted({probe.size for probe in probes})
    least_size, most_size = 0.999 * sizes[0], 1.001 * sizes[-1]
    if before <= 0 or math.isinf(before):
        before = min(max(before, least_size), most_size)
    between = [math.sqrt(a * b) for a, b in pairwise(sizes)]
    outside = min(before, least_size), max(before, most_size)
    losses = {value: sum(p.loss(value) for p in probes) for value in [*between, *outside]}
    least = min(losses.values())
    if sum(p.loss(before) for p in probes) <= least + _LEVEL * len(probes):
        return before
    value = min(losses, key=lambda value: losses[value])
    return _six(value)


def held_out(crossovers: Iterable[Crossover], within: float) -> tuple[int, int]:
    """Tune on every other probe, and test on the rest.

    Returns how many of the tested probes are within the fraction `within` of the best time, and how
    many were tested.
    """
    good = count = 0
    for crossover in crossovers:
        ordered = sorted(crossover.probes, key=lambda probe: probe.size)
        for known, unknown in ((ordered[::2], ordered[1::2]), (ordered[1::2], ordered[::2])):
            if not known or not unknown:
                continue
            value = best(known, crossover.before)
            good += sum(probe.loss(value) <= math.log1p(within) for probe in unknown)
            count += len(unknown)
    return good, count


@dataclass(frozen=True)
class Measured:
    """A probe as a tuning file has it: the microseconds of each way."""

    crossover: str
    case: str = ""
    size: float = math.nan
    below_us: float = math.nan
    above_us: float = math.nan


@dataclass(frozen=True)
class TuningFile:
    """What a tuning file holds: values by ladder and name, and the entries they were found from."""

    values: dict[str, dict[str, float]]
    measured: list[Measured] = field(default_factory=list)


def read(path: Path) -> TuningFile:
    """Read a tuning file.

    Raises ResultError for a file that cannot be read, is no TOML, or has a value that is no number.
    """
    document = toml_file.read(path)
    tables = {key: entry for key, entry in document.items() if isinstance(entry, dict)}
    for ladder, values in tables.items():
        for name, value in values.items():
            if not isinstance(value, int | float):
                raise ResultError(f"{path}: {ladder}.{name} is not a number")
    return files.typed(
        path, {"values": tables, "measured": document.get("measured", [])}, TuningFile
    )


def to_toml(
    context: Mapping[str, Any], crossovers: Sequence[Crossover], earlier: TuningFile | None
) -> str:
    """Return a tuning file's text. What `earlier` has of other crossovers stays."""
    about = {
        "gpu": context["gpu_name"],
        "compute_capability": int(str(context["compute_capability"]).replace(".", "")),
        "commit": context.get("git_commit", ""),
    }
    tables = {name: dict(of) for name, of in earlier.values.items()} if earlier else {}
    for crossover in crossovers:
        ladder, _, name = crossover.name.partition(".")
        tables.setdefault(ladder, {})[name] = crossover.value
    found = {crossover.name for crossover in crossovers}
    kept = [each for each in (earlier.measured if earlier else []) if each.crossover not in found]
    measured = [*kept, *(entry for crossover in crossovers for entry in _entries(crossover))]
    values = {ladder: {n: _whole(v) for n, v in of.items()} for ladder, of in tables.items()}
    entries = toml_file.array("measured", files.short([asdict(each) for each in measured]))
    return f"{_HEAD}{tomli_w.dumps(about | dict(sorted(values.items())))}\n{entries}"


def _whole(value: float) -> float:
    return files.short(float(value)) if float(value).is_integer() else value


def _entries(crossover: Crossover) -> list[Measured]:
    return [
        Measured(crossover.name, p.case, p.size, _six(1e6 * p.below), _six(1e6 * p.above))
        for p in crossover.probes
    ]


def _six(value: float) -> float:
    return float(f"{value:.6g}")
