# SPDX-License-Identifier: MIT
"""What a results file says of its ladders, so that no kernel is named in these scripts."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from ladder import files


@dataclass(frozen=True)
class Rung:
    """One implementation. `precision` is empty unless it differs from the ladder's own."""

    name: str
    idea: str = ""
    role: str = "step"  # step, peer (another library's) or ceiling (a measured limit)
    precision: str = ""
    sweeps: tuple[str, ...] = ()  # axes of this rung alone; the best row of them stands for it
    moves: str = ""  # the counter that the idea is to move, if it is one
    ceiling: str = ""  # "ladder/rung", where it is not the ladder's,
    products: float = 1  # and how many operations there make one of this rung

    @property
    def sweep(self) -> str:
        """The axes of this rung alone, in words."""
        return ", ".join(self.sweeps)


@dataclass(frozen=True)
class Axis:
    """One dimension of a ladder's cases; a facet becomes small multiples, not the x axis."""

    name: str
    facet: bool = False


@dataclass(frozen=True)
class Ladder:
    """One problem and its rungs, in climbing order."""

    name: str
    title: str
    quantity: str  # "bytes" or "flops": which rate is the speed
    axes: tuple[Axis, ...]
    rungs: tuple[Rung, ...]
    headline: str = ""  # the case shown first, as it stands in row names
    small_headline: str = ""  # likewise where the cases are small: emulated, profiled
    ceiling: str = ""  # "ladder/rung" that percent_of_ceiling is against
    other_ceiling: str = ""  # of the other quantity: the percent is of the lower of the two

    def __post_init__(self) -> None:
        if self.quantity not in ("bytes", "flops"):
            raise ValueError(f"quantity '{self.quantity}' of {self.name} is not bytes or flops")

    @property
    def rate(self) -> str:
        """Name of the column that holds this ladder's speed, in units per second."""
        return f"{self.quantity}_per_second"

    @property
    def ceilings(self) -> str:
        """Name the ceiling, or both of two."""
        return " or ".join(filter(None, (self.ceiling, self.other_ceiling)))

    @property
    def is_roof(self) -> bool:
        """Whether the ladder holds nothing but measured limits."""
        return all(rung.role == "ceiling" for rung in self.rungs)

    def rung(self, name: str) -> Rung | None:
        """Return the rung of that name, or None."""
        return next((rung for rung in self.rungs if rung.name == name), None)


def parse(text: str) -> tuple[Ladder, ...]:
    """Read the `ladders` string of a file's context. Raises ValueError naming what is wrong."""
    try:
        return tuple(
            _make(
                Ladder,
                entry,
                axes=tuple(_make(Axis, axis) for axis in entry["axes"]),
                rungs=tuple(_make(Rung, rung, sweeps=_sweeps(rung)) for rung in entry["rungs"]),
            )
            for entry in json.loads(text, object_pairs_hook=_legible)
        )
    except KeyError as error:
        raise ValueError(f"context 'ladders': no {error}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"context 'ladders': {error}") from error


def _legible(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: files.legible(value) if isinstance(value, str) else value for key, value in pairs}


def _sweeps(rung: dict[str, Any]) -> tuple[str, ...]:
    """Read a rung's own axes; older files have one at most, as `sweep`."""
    sweeps = rung.get("sweeps", [rung["sweep"]] if rung.get("sweep") else [])
    if not isinstance(sweeps, list) or not all(isinstance(axis, str) for axis in sweeps):
        raise ValueError(f"sweeps of {rung.get('name')} is no list of names")
    return tuple(sweeps)


def _make(kind: type, entry: dict[str, Any], **given: Any) -> Any:
    """Build a dataclass from the keys it knows: a newer file may carry more."""
    made = kind(**({f.name: entry[f.name] for f in fields(kind) if f.name in entry} | given))
    for field in fields(kind):
        wanted = {"str": str, "bool": bool}.get(str(field.type))
        if wanted and not isinstance(getattr(made, field.name), wanted):
            raise ValueError(f"{field.name} is not a {wanted.__name__}")
    return made
