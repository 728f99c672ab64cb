# SPDX-License-Identifier: MIT
"""What a results file says of its ladders, so that no kernel is named in these scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ladder.model.text import legible


@dataclass(frozen=True)
class Ceiling:
    """A measured limit of a rung: the best speed of `rung` ("ladder/rung") over `products`."""

    rung: str
    products: float = 1  # operations there that make one of the rung under it
    quantity: Literal["", "bytes", "flops"] = ""  # where it is not the ladder's own

    def __post_init__(self) -> None:
        if not self.products > 0:
            raise ValueError(f"products of {self.rung} is not above zero")


@dataclass(frozen=True)
class Rung:
    """One implementation. `precision` is empty unless it differs from the ladder's own.

    Its role is `step`; `choice` (runs one of the steps, another for each shape), `peer` (another
    library's) or `ceiling` (a measured limit).
    """

    name: str
    idea: str = ""
    role: str = "step"
    precision: str = ""
    builds_on: str = ""  # its parent, a rung of the same ladder; empty at a root
    meant_for: tuple[str, ...] = ()  # cases where it is to be level with its parent; empty: all
    shows: str = ""  # what it shows where it is not meant to be as fast as its parent
    by_name_only: bool = False  # a step that no choice may choose
    sweeps: tuple[str, ...] = ()  # axes of this rung alone; the best row of them stands for it
    target: str = ""  # the counter that the idea is to change, if it is one
    ceilings: tuple[Ceiling, ...] = ()  # the lowest of them is the rung's
    factors: Mapping[str, str] = field(default_factory=dict, hash=False)  # of an experiment

    @property
    def sweep(self) -> str:
        """The axes of this rung alone, in words."""
        return ", ".join(self.sweeps)

    @property
    def is_ours(self) -> bool:
        """Whether it is no library's and no limit."""
        return self.role in ("step", "choice")

    @property
    def is_step(self) -> bool:
        """Whether it is a step in its ladder's own precision."""
        return self.role == "step" and not self.precision


@dataclass(frozen=True)
class Axis:
    """One dimension of a ladder's cases; a facet becomes small multiples, not the x axis."""

    name: str
    facet: bool = False


@dataclass(frozen=True)
class Ladder:
    """One problem and its rungs: a tree, listed so that each rung stands after its parent.

    With `factors` it is an experiment, whose rungs are combinations of their values and no tree.
    """

    name: str
    title: str
    quantity: Literal["bytes", "flops"]  # which rate is the speed
    axes: tuple[Axis, ...]
    rungs: tuple[Rung, ...]
    headline: str = ""  # the case shown first, as it stands in row names
    small_headline: str = ""  # likewise where the cases are small: emulated, profiled
    ceiling: str = ""  # "ladder/rung" that most of its rungs have as ceiling, for titles
    other_ceiling: str = ""  # likewise of the other quantity
    factors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        above: set[str] = set()
        for rung in self.rungs:
            if rung.builds_on and self.factors:
                raise ValueError(f"{self.name}/{rung.name} of an experiment builds on another rung")
            if rung.builds_on and rung.builds_on not in above:
                raise ValueError(
                    f"{self.name}/{rung.name} builds on '{rung.builds_on}', which is not an "
                    "earlier rung"
                )
            above.add(rung.name)

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

    @property
    def is_tree(self) -> bool:
        """Whether any rung says what it builds on."""
        return any(rung.builds_on for rung in self.rungs)

    def rung(self, name: str) -> Rung | None:
        """Return the rung of that name, or None."""
        return next((rung for rung in self.rungs if rung.name == name), None)

    def path(self, name: str) -> tuple[Rung, ...]:
        """Return the rung of that name, the one it builds on, and so on to the root.

        Raises ValueError where there is no such rung.
        """
        found: list[Rung] = []
        while name:
            if (rung := self.rung(name)) is None:
                raise ValueError(f"{self.name} has no rung '{name}'")
            found.append(rung)
            name = rung.builds_on
        return tuple(found)


def parse(text: str) -> tuple[Ladder, ...]:
    """Read the `ladders` string of a file's context. Raises ValueError naming what is wrong.

    A newer file may carry more keys.
    """
    import msgspec

    try:
        return msgspec.convert(json.loads(text, object_pairs_hook=_legible), tuple[Ladder, ...])
    except (TypeError, ValueError) as error:
        raise ValueError(f"context 'ladders': {error}") from error


def _legible(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: legible(value) if isinstance(value, str) else value for key, value in pairs}
