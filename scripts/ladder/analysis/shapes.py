# SPDX-License-Identifier: MIT
"""The cases of a ladder as shapes and small multiples, and how tables and plots write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, wraps
from typing import TypeVar

from ladder.model import units
from ladder.model.catalogue import Axis

_KIBIBYTES = "kibibytes"  # an axis whose values are told as sizes of memory

_Of = TypeVar("_Of")
_Told = TypeVar("_Told")


def by_case(method: Callable[[_Of, str], _Told]) -> Callable[[_Of, str], _Told]:
    """Keep what a method returns for a case: thousands of rows may ask for it."""

    @wraps(method)
    def kept(self: _Of, case: str) -> _Told:
        known: dict[str, _Told] = self.__dict__.setdefault(f"_{method.__name__}_by_case", {})
        if case not in known:
            known[case] = method(self, case)
        return known[case]

    return kept


@cache
def axis_values(case: str) -> Mapping[str, str]:
    """Split `axis:value/...` into values by axis."""
    return dict(segment.split(":", 1) for segment in case.split("/") if segment)


def facet_title(facet: str) -> str:
    """Write `distribution:uniform` as `distribution uniform`."""
    return facet.replace("/", ", ").replace(":", " ").replace("_", " ")


class Shapes:
    """The cases of a ladder with these axes, each a string `axis:value/...`.

    A case's shape is its values of the axes that make the x axis of plots. Its facet is the part
    that names its small multiple.
    """

    def __init__(self, axes: Iterable[Axis], cases: Iterable[str]) -> None:
        axes = list(axes)
        self._facets = {axis.name for axis in axes if axis.facet}
        self._plain = [axis.name for axis in axes if not axis.facet]
        self._found = list(cases)

    @cached_property
    def cases(self) -> list[str]:
        """All cases: the series of sizes rising, then other shapes in the order given."""
        return sorted(self._found, key=lambda case: (not self.in_series(case), self._size(case)))

    def facet(self, case: str) -> str:
        """Return the part of a case that names its small multiple, as `axis:value`."""
        return "/".join(s for s in case.split("/") if s.partition(":")[0] in self._facets)

    @cached_property
    def facets(self) -> dict[str, list[str]]:
        """Cases by facet, in the order of `cases`."""
        split: dict[str, list[str]] = {}
        for case in self.cases:
            split.setdefault(self.facet(case), []).append(case)
        return split

    @cached_property
    def axes(self) -> list[str]:
        """Names of the axes that make the x axis: those that vary and are no facets."""
        values = [axis_values(case) for case in self._found]
        varying = [name for name in self._plain if len({v.get(name) for v in values}) > 1]
        return varying or self._plain

    @by_case
    def _shape(self, case: str) -> list[str]:
        return [axis_values(case).get(name, "") for name in self.axes]

    def in_series(self, case: str) -> bool:
        """Whether all axes of a shape have one value, so that it is one of a series of sizes."""
        return len(set(self._shape(case))) <= 1

    def in_line(self, case: str) -> bool:
        """Whether a line through the series goes through this shape.

        Where the smallest size is a power of two, the line goes through its whole multiples only.
        An odd size between them is another kind of shape, as a rectangle is: the line would swing
        to it and back.
        """
        powers = self._smallest & (self._smallest - 1) == 0
        return self.in_series(case) and not (powers and self._size(case) % self._smallest)

    @cached_property
    def _smallest(self) -> int:
        return min(filter(None, map(self._size, self.cases)), default=1)

    def _size(self, case: str) -> int:
        shape = self._shape(case)
        return int(shape[0]) if self.in_series(case) and shape and shape[0].isdecimal() else 0

    @by_case
    def label(self, case: str) -> str:
        """Write a shape compactly: `4096` where all its axes agree, else `1000×3000×77`."""
        values = self._shape(case)
        if self.axes == [_KIBIBYTES] and values[0].isdecimal():
            return units.memory(1024 * float(values[0]))
        values = [units.power_of_two(v) if self._powers or len(v) > 6 else v for v in values]
        return "×".join(values[:1] if self.in_series(case) else values)

    @by_case
    def spell(self, case: str) -> str:
        """Write a whole case for a title: `bins 256, keys 2²⁸` or `m = n = k = 4096`."""
        axes, label, values = self.axes, self.label(case), axis_values(case)
        sign = " × " if "×" in label else " = "
        shape = f"{axes[0]} {label}" if len(axes) == 1 else f"{sign.join(axes)} = {label}"
        shape = label if axes == [_KIBIBYTES] else shape
        rest = {name: value for name, value in values.items() if name not in axes}
        others = [f"{name} {units.power_of_two(value)}" for name, value in rest.items()]
        return ", ".join([*([shape] if axes else []), *others]).replace("_", " ")

    @cached_property
    def _powers(self) -> bool:
        """Whether every shape is made of powers of two and the longest is long to write."""
        values = {value for case in self.cases for value in self._shape(case)}
        written = {units.power_of_two(value) for value in values}
        return not written & values and max(map(len, values), default=0) > 6
