# SPDX-License-Identifier: MIT
"""Shapes drawn at random, from between those at which a program measures a ladder."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ladder.model.errors import LadderError

_ALIGNED = 2 / 3  # of the shapes
_MULTIPLE = 32  # of what is aligned; numbers below stay as drawn
_TRIES = 1000  # in turn that draw no new shape


@dataclass(frozen=True)
class Range:
    """The whole numbers that an axis may take: log-uniform, both ends included."""

    low: int
    high: int


@dataclass(frozen=True)
class Space:
    """What to draw from: a range, or values, of each axis of a ladder in their order."""

    ladder: str
    axes: Mapping[str, Range | Sequence[str]]
    most: int  # product of what is drawn from ranges, as the largest measured shape has

    def shape(self, generator: random.Random) -> str | None:
        """Draw a shape as `--shape` takes it; None where it would be too large.

        Two thirds of the shapes are aligned: their numbers from 32 on are multiples of 32. Of the
        others most rows start at odd addresses, as they do for users.
        """
        aligned = generator.random() < _ALIGNED
        drawn: dict[str, str] = {}
        product = 1
        for name, values in self.axes.items():
            if isinstance(values, Range):
                low, high = math.log(values.low), math.log(values.high + 1)
                number = min(int(math.exp(generator.uniform(low, high))), values.high)
                if aligned and number // _MULTIPLE * _MULTIPLE >= max(values.low, _MULTIPLE):
                    number = number // _MULTIPLE * _MULTIPLE
                number = max(number, values.low)
                product *= number
                drawn[name] = str(number)
            else:
                drawn[name] = generator.choice(values)
        told = ",".join(f"{name}={value}" for name, value in drawn.items())
        return f"{self.ladder}:{told}" if product <= self.most else None

    def shapes(self, count: int, seed: int) -> list[str]:
        """Draw `count` different shapes, fewer where there are not so many."""
        generator = random.Random(f"{self.ladder} {seed}")
        found: dict[str, None] = {}
        tries = 0
        while len(found) < count and tries < _TRIES:
            shape = self.shape(generator)
            tries = 0 if shape and shape not in found else tries + 1
            if shape:
                found[shape] = None
        return list(found)


def space(
    ladder: str,
    rows: Iterable[str],
    given: Mapping[str, Range],
    takes: Callable[[str], bool],
) -> Space:
    """Return what to draw from, by the names of a ladder's rows.

    Numbers are drawn from between the least and the greatest measured, or from the range `given`
    for an axis. Labels, and numbers of an axis that takes no others (as `takes` says of a shape),
    are drawn from those measured. Raises LadderError for a range of labels, or of no axis.
    """
    cases = [
        dict(part.split(":", 1) for part in name.split("/")[2:] if ":" in part)
        for name in rows
        if name.startswith(f"{ladder}/")
    ]
    shared = [axis for axis in cases[0] if all(axis in case for case in cases)]
    for axis in given:
        if axis not in shared:
            raise LadderError(f"no axis '{axis}': {', '.join(shared)} are there")
        if not all(case[axis].isdecimal() for case in cases):
            raise LadderError(f"'{axis}' has labels, and no range")
    axes: dict[str, Range | Sequence[str]] = {}
    for axis in shared:
        values = [*dict.fromkeys(case[axis] for case in cases)]
        if axis in given:
            axes[axis] = given[axis]
        elif all(value.isdecimal() for value in values) and len(values) > 1:
            numbers = {int(value) for value in values}
            low, high = max(min(numbers), 1), max(numbers)
            other = next((n for n in range(low + 1, high) if n not in numbers), None)
            odd = other is not None and takes(f"{ladder}:{axis}={other}")
            axes[axis] = Range(low, high) if odd else values
        else:
            axes[axis] = values
    ranged = [axis for axis, values in axes.items() if isinstance(values, Range)]
    products = [math.prod(int(case[axis]) for axis in ranged) for case in cases]
    return Space(ladder, axes, max(products, default=1))
