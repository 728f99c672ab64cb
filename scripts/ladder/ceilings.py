# SPDX-License-Identifier: MIT
"""The percent of its ladder's ceiling that a row reaches, by the benchmark program's own rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from ladder.catalogue import Ladder, Rung

Entries = list[dict[str, Any]]  # what a results file holds of one benchmark: its repetitions
PERCENT = "percent_of_ceiling"
_OTHER = {"flops": "bytes", "bytes": "flops"}


class Ceilings:
    """Which rows are the ceilings of which.

    Among all that a program knows: `full` has the names of the rows that GPUs are measured at,
    `small` those of the small cases. The roofs of a small row are those of any other.
    """

    def __init__(
        self, ladders: Iterable[Ladder], full: Iterable[str], small: Iterable[str] = ()
    ) -> None:
        self._ladders = {ladder.name: ladder for ladder in ladders}
        self._full, self._small = _by_rung(full), _by_rung(small)

    def rows(self, name: str) -> list[str]:
        """Return the names of all rows that tell the ceiling of a row; empty where it has none."""
        return [ceiling for path, _ in self._paths(name) for ceiling in self._at(path, name)]

    def fill(self, rows: Mapping[str, Entries]) -> None:
        """Write into `rows`, by name, the percent of those whose ceilings are all among them.

        A percent that cannot be told, since its ceiling failed, is taken out.
        """
        for name, entries in rows.items():
            ceilings = self.rows(name)
            if not ceilings or not all(ceiling in rows for ceiling in ceilings):
                continue
            rate = f"{self._ladders[name.split('/')[0]].quantity}_per_second"
            ceiling = self._ceiling(name, rows)
            for entry in entries:
                entry.pop(PERCENT, None)
                if ceiling and entry.get(rate):
                    relative = entry.get("aggregate_name") == "cv"  # of both the same
                    entry[PERCENT] = entry[rate] if relative else 100 * entry[rate] / ceiling

    def _find(self, name: str) -> tuple[Ladder | None, Rung | None]:
        ladder_name, _, rest = name.partition("/")
        ladder = self._ladders.get(ladder_name)
        return ladder, ladder and ladder.rung(rest.split("/")[0])

    def _paths(self, name: str) -> list[tuple[str, str]]:
        """Return (ladder/rung, quantity) of a row's ceiling, of two where its ladder has two."""
        ladder, rung = self._find(name)
        if ladder is None or rung is None or rung.precision:
            return []
        if rung.ceiling:
            return [(rung.ceiling, ladder.quantity)]
        both = [(ladder.ceiling, ladder.quantity)]
        if ladder.other_ceiling:
            both.append((ladder.other_ceiling, _OTHER[ladder.quantity]))
        return both if ladder.ceiling else []

    def _at(self, path: str, name: str) -> list[str]:
        """Return the rows of a ceiling, at the row's own case where it is of the same ladder."""
        rows = self._full.get(path, [])
        ladder = self._ladders[name.split("/")[0]]
        if path.split("/")[0] != ladder.name:
            return rows
        axes = {axis.name for axis in ladder.axes}

        def case(of: str) -> list[str]:
            return [part for part in of.split("/")[2:] if part.partition(":")[0] in axes]

        both = dict.fromkeys([*rows, *self._small.get(path, [])])
        return [row for row in both if case(row) == case(name)]

    def _ceiling(self, name: str, rows: Mapping[str, Entries]) -> float | None:
        """Return the speed of a row's ceiling in its ladder's quantity, the lower one of two."""
        ladder, rung = self._find(name)
        found = []
        for path, quantity in self._paths(name):
            rate = f"{quantity}_per_second"
            best = max((_typical(rows[row], rate) for row in self._at(path, name)), default=None)
            if best and quantity != ladder.quantity:
                intensity = rows[name][0].get("arithmetic_intensity")  # in FLOPs a byte
                factor = intensity and (intensity if quantity == "bytes" else 1 / intensity)
                best = best * factor if factor else None
            found.append(best)
        return min(found) / rung.products if all(found) else None


def _typical(entries: Entries, rate: str) -> float:
    """Return the median of the repetitions, or the first aggregate where they are not there."""
    repetitions = [e for e in entries if e.get("run_type") != "aggregate"] or entries[:1]
    return median([e[rate] for e in repetitions if e.get(rate)] or [0.0])


def _by_rung(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault("/".join(name.split("/")[:2]), []).append(name)
    return found
