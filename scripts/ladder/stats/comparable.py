# SPDX-License-Identifier: MIT
"""What makes two runs incomparable, and what else differs between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ladder.io.programs import identity
from ladder.io.results import Results
from ladder.model import units
from ladder.model.text import first_of
from ladder.stats.metrics import is_time

# Context that may explain a change but does not forbid comparing.
_NOTED = (
    "gpu_uuid",
    "driver_version",
    "runtime_version",
    "cublas_version",
    "cub_version",
    "compiler",
    "cuda_flags",
    "host_name",
)
_MACHINE = ("num_cpus", "caches")  # of host code; its clock, which is measured, besides
_CLOCK, _CLOCKS_DIFFER = "mhz_per_cpu", 0.05
_MOST_LISTED = 3

Side = list[Results]


def differences(base: Side, head: Side) -> list[str]:
    """List what makes the runs incomparable."""
    found = []
    gpus = {r.gpu for r in base}, {r.gpu for r in head}
    if not gpus[0] & gpus[1]:
        found.append(f"different GPUs: {_sides(*gpus)}")
    for title in ("source", "cache mode", "build type"):
        key = title.replace(" ", "_")
        values = [{str(getattr(r, key)) for r in side} for side in (base, head)]
        if len(values[0] | values[1]) > 1:
            found.append(f"different {title}s: {_sides(*values)}")
    inputs = [_values(side, "input_distribution") - {""} for side in (base, head)]
    if all(inputs) and len(inputs[0] | inputs[1]) > 1:  # older files do not name
        found.append(f"different inputs: {_sides(*inputs)}")
    found += [
        f"{title} holds {twice[0]} of {len(twice)} rows more than once: several programs, commits, "
        "boards or machines"
        for title, side in (("base", base), ("head", head))
        if (twice := _repeated(side))
    ]
    return found


def notes(base: Side, head: Side, metric: str) -> list[str]:
    """Say what else differs, what was converted, and what made times of host code unsteady."""
    values = {key: (_values(base, key), _values(head, key)) for key in _NOTED}
    differing = {key: sides for key, sides in values.items() if sides[0] != sides[1]}
    if {r.with_counters for r in base} != {r.with_counters for r in head}:
        told = [{r.hardware_counters or "none" for r in side} for side in (base, head)]
        differing["hardware_counters"] = told[0], told[1]
    found = [f"{key}: {_sides(*sides)}" for key, sides in differing.items()]
    boards = differing.get("gpu_uuid")
    if boards and "" not in boards[0] | boards[1]:
        found.append("different boards: they differ by more than runs on one of them")
    host = [[r for r in side if not r.gpu and r.source == "timed"] for side in (base, head)]
    if all(host):
        found += [*_machines(*host), *_unsteady(*host)]
    return found + (_units(base, head) if is_time(metric) else [])


def _machines(base: Side, head: Side) -> list[str]:
    """Say how the CPUs of host code differ; the host's name does not identify a machine."""
    told = []
    for key in _MACHINE:
        values = _values(base, key), _values(head, key)
        if values[0] != values[1] and all(values):
            told.append("other caches" if key == "caches" else f"{key} {_sides(*values)}")
    clocks = [[units.parse(r.context.get(_CLOCK)) for r in side] for side in (base, head)]
    known = [clock for side in clocks for clock in side if clock > 0]
    if known and max(known) > (1 + _CLOCKS_DIFFER) * min(known):
        told.append(f"{_CLOCK} {_sides(_values(base, _CLOCK), _values(head, _CLOCK))}")
    return [f"different machines: {'; '.join(told)}"] if told else []


def _unsteady(base: Side, head: Side) -> list[str]:
    """Say which sides ran with a clock that CPU scaling moves, or with a debug library."""

    def where(applies: Callable[[dict[str, Any]], bool]) -> str:
        sides = {"base": base, "head": head}
        return " and ".join(t for t, side in sides.items() if any(applies(r.context) for r in side))

    scaled = where(lambda c: str(c.get("cpu_scaling_enabled")).lower() == "true")
    debug = where(lambda c: str(c.get("library_build_type")).lower() == "debug")
    told = [f"CPU scaling was on in {scaled}: times follow the CPU's clock"] * bool(scaled)
    library = f"Google Benchmark was built for debugging in {debug}: its own time counts too"
    return told + [library] * bool(debug)


def same_files(base: Side, head: Side) -> bool:
    """Whether both sides have the same files, which is hardly intended."""
    sides = [[(r.context, r.written) for r in side] for side in (base, head)]
    return all(file in other for side, other in (sides, sides[::-1]) for file in side)


def _repeated(results: Side) -> list[str]:
    """Name the rows of a side that several programs measured."""
    programs: dict[tuple[str, str], set[tuple[Any, ...]]] = defaultdict(set)
    for result in results:
        program = identity(result.context)
        for row in result.rows:
            programs[result.gpu, row.name].add(program)
    return [name for (_, name), found in programs.items() if len(found) > 1]


def _units(base: Side, head: Side) -> list[str]:
    """Say which rows changed their time unit."""
    before, after = (
        {key: unit for r in side for key, unit in _written(r)} for side in (base, head)
    )
    changed = [
        f"{name} ({unit} in base, {after[gpu, name]} in head)"
        for (gpu, name), unit in before.items()
        if after.get((gpu, name), unit) != unit
    ]
    return [f"different time units, converted: {first_of(changed)}"] if changed else []


def _written(result: Results) -> Iterable[tuple[tuple[str, str], str]]:
    """Give the time unit of each row that was measured, by GPU and name."""
    for row in result.with_status("ok"):
        yield (result.gpu, row.name), row.time_unit


def _values(side: Side, key: str) -> set[str]:
    values = [r.context.get(key, "") for r in side]
    return {f"{v:g}" if isinstance(v, float) else str(v) for v in values}


def _sides(base: Iterable[str], head: Iterable[str]) -> str:
    return f"{_list(base)} in base, {_list(head)} in head"


def _list(values: Iterable[str]) -> str:
    told = sorted(value or "unknown" for value in values)
    return first_of(told) if len(told) > _MOST_LISTED else " and ".join(told)
