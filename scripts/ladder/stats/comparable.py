# SPDX-License-Identifier: MIT
"""What forbids comparing two runs, and what else differs between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ladder.io.results import Results, identity
from ladder.stats.metrics import is_time

# Context that may explain a change but does not forbid comparing.
_NOTED = ("gpu_uuid", "driver_version", "runtime_version", "compiler", "cuda_flags", "host_name")


def differences(base: list[Results], head: list[Results], metric: str) -> list[str]:
    """Say what forbids comparing."""
    found = []
    gpus = {r.gpu for r in base}, {r.gpu for r in head}
    if not gpus[0] & gpus[1]:
        found.append(f"different GPUs: {_list(gpus[0])} in base, {_list(gpus[1])} in head")
    for title in ("source", "cache mode", "build type"):
        values = [{getattr(r, title.replace(" ", "_")) for r in side} for side in (base, head)]
        if len(values[0] | values[1]) > 1:
            found.append(
                f"different {title}s: {_list(values[0])} in base, {_list(values[1])} in head"
            )
    inputs = [
        {str(r.context.get("input_distribution", "")) for r in s} - {""} for s in (base, head)
    ]
    if all(inputs) and len(inputs[0] | inputs[1]) > 1:  # older files do not tell
        found.append(f"different inputs: {_list(inputs[0])} in base, {_list(inputs[1])} in head")
    found += [
        f"{title} holds {twice[0]} of {len(twice)} rows more than once: several commits or boards"
        for title, side in (("base", base), ("head", head))
        if (twice := _repeated(side))
    ]
    return found + (_units(base, head) if is_time(metric) else [])


def notes(base: list[Results], head: list[Results]) -> list[str]:
    """Say what else differs."""
    values = [(k, *({str(r.context.get(k, "")) for r in s} for s in (base, head))) for k in _NOTED]
    differing = [(key, b, h) for key, b, h in values if b != h]
    if {r.with_counters for r in base} != {r.with_counters for r in head}:
        told = ({r.hardware_counters or "none" for r in side} for side in (base, head))
        differing.append(("hardware_counters", *told))
    told = [f"{key}: {_list(b)} in base, {_list(h)} in head" for key, b, h in differing]
    if any(key == "gpu_uuid" and "" not in b | h for key, b, h in differing):
        told.append("different boards: they differ by more than runs on one of them")
    return told


def same_files(base: list[Results], head: list[Results]) -> bool:
    """Whether each file of either side is one of the other, which is hardly meant."""
    sides = [[(r.context, r.written) for r in side] for side in (base, head)]
    return all(file in other for side, other in (sides, sides[::-1]) for file in side)


def _repeated(results: list[Results]) -> list[str]:
    """Name the rows of a side that files hold which are not processes of one program."""
    programs: dict[tuple[str, str], set[tuple]] = defaultdict(set)
    for result in results:
        program = identity(result.context)
        for row in result.rows:
            programs[result.gpu, row.name].add(program)
    return [name for (_, name), found in programs.items() if len(found) > 1]


def _units(base: list[Results], head: list[Results]) -> list[str]:
    """Say which rows changed their time unit: the benchmark itself was redefined."""
    sides: list[dict[tuple[str, str], str]] = [
        {(r.gpu, row.name): row.time_unit for r in side for row in r.rows} for side in (base, head)
    ]
    before, after = sides
    changed = [
        f"{name} ({unit} in base, {after[gpu, name]} in head)"
        for (gpu, name), unit in before.items()
        if after.get((gpu, name), unit) != unit
    ]
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [f"different time units: {changed[0]}{more}"] if changed else []


def _list(values: Iterable[str]) -> str:
    return " and ".join(sorted(value or "unknown" for value in values))
