# SPDX-License-Identifier: MIT
"""The ceiling of a row: the lowest of those that its file lists for its rung."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from ladder.model.catalogue import Ceiling, Ladder, Rung

Entries = list[dict[str, Any]]  # what a results file holds of one benchmark: its repetitions
PERCENT = "percent_of_ceiling"
_CHOSEN = "chosen:"  # how the label of a choice's row begins; the name of the rung that ran follows


def chosen(label: object) -> str:
    """Return the rung that a choice ran, as the label of its row tells; empty without one."""
    text = str(label or "")
    return text.removeprefix(_CHOSEN) if text.startswith(_CHOSEN) else ""


def rate(ceiling: Ceiling, quantity: str) -> str:
    """Name the rate of a ceiling's rows that counts, under a ladder of that quantity."""
    return f"{ceiling.quantity or quantity}_per_second"


def lowest(
    ceilings: Iterable[Ceiling],
    quantity: str,
    intensity: float,
    best: Callable[[Ceiling], float],
) -> tuple[float, Ceiling] | None:
    """Return the lowest ceiling, in `quantity` a second; None if there is none, or one not known.

    `best` is the best speed of a ceiling's own rows, in its own quantity; `intensity`, in FLOP a
    byte, is that of the row under it.
    """
    found: list[tuple[float, Ceiling]] = []
    for ceiling in ceilings:
        speed = best(ceiling) / ceiling.products
        if ceiling.quantity not in ("", quantity):
            speed *= intensity if quantity == "flops" else 1 / (intensity or math.nan)
        found.append((speed, ceiling))
    known = found and all(speed > 0 for speed, _ in found)
    return min(found, key=lambda pair: pair[0]) if known else None


def at_own_case(ceiling: Ceiling, ladder: Ladder) -> bool:
    """Whether a ceiling is of the same ladder, so that its row at the same case counts alone."""
    return ceiling.rung.split("/")[0] == ladder.name


class Ceilings:
    """Finds the rows that measure the ceiling of a row, among all that a program has.

    `full` has the names of the rows at the cases that GPUs are measured at, `small` those at the
    small cases. Roofs are measured at the former only, for small rows too.
    """

    def __init__(
        self, ladders: Iterable[Ladder], full: Iterable[str], small: Iterable[str] = ()
    ) -> None:
        self._ladders = {ladder.name: ladder for ladder in ladders}
        self._full, self._small = _by_rung(full), _by_rung(small)

    def rows(self, name: str) -> list[str]:
        """Return the names of all rows that tell the ceiling of a row; empty where it has none.

        Of a choice they are those of every step that it may choose.
        """
        ladder, rung = self._find(name)
        if ladder is None or rung is None:
            return []
        rungs = [r for r in ladder.rungs if r.is_step] if rung.role == "choice" else [rung]
        listed = dict.fromkeys(ceiling for each in rungs for ceiling in each.ceilings)
        return list(dict.fromkeys(row for each in listed for row in self._at(each, ladder, name)))

    def fill(self, rows: Mapping[str, Entries]) -> None:
        """Write into `rows`, by name, the percent of those whose ceilings are all among them.

        A percent that cannot be told, since its ceiling failed, is taken out.
        """
        for name, entries in rows.items():
            ladder, rung = self._find(name)
            if ladder and rung and rung.role == "choice":
                rung = ladder.rung(chosen(entries[0].get("label")))
            if ladder is None or rung is None or not rung.ceilings:
                continue
            at = (row for each in rung.ceilings for row in self._at(each, ladder, name))
            if not all(row in rows for row in at):
                continue
            ceiling = self._ceiling(ladder, rung, name, rows)
            for entry in entries:
                entry.pop(PERCENT, None)
                if ceiling and entry.get(ladder.rate):
                    relative = entry.get("aggregate_name") == "cv"  # of both the same
                    own = entry[ladder.rate]
                    entry[PERCENT] = own if relative else 100 * own / ceiling

    def _find(self, name: str) -> tuple[Ladder | None, Rung | None]:
        ladder_name, _, rest = name.partition("/")
        ladder = self._ladders.get(ladder_name)
        return ladder, ladder.rung(rest.split("/")[0]) if ladder else None

    def _ceiling(
        self, ladder: Ladder, rung: Rung, name: str, rows: Mapping[str, Entries]
    ) -> float | None:
        """Return the speed of a row's ceiling in its ladder's quantity; None if it is not known."""

        def best(ceiling: Ceiling) -> float:
            column, found = rate(ceiling, ladder.quantity), self._at(ceiling, ladder, name)
            return max((_typical(rows[row], column) for row in found), default=0.0)

        intensity = rows[name][0].get("arithmetic_intensity") or math.nan
        found = lowest(rung.ceilings, ladder.quantity, intensity, best)
        return found[0] if found else None

    def _at(self, ceiling: Ceiling, ladder: Ladder, name: str) -> list[str]:
        """Return the rows of a ceiling, at the row's own case where it is of the same ladder."""
        rows = self._full.get(ceiling.rung, [])
        if not at_own_case(ceiling, ladder):
            return rows
        axes = {axis.name for axis in ladder.axes}

        def case(of: str) -> list[str]:
            return [part for part in of.split("/")[2:] if part.partition(":")[0] in axes]

        both = dict.fromkeys([*rows, *self._small.get(ceiling.rung, [])])
        return [row for row in both if case(row) == case(name)]


def _typical(entries: Entries, column: str) -> float:
    """Return the median of the repetitions, or the first aggregate where they are not there."""
    repetitions = [e for e in entries if e.get("run_type") != "aggregate"] or entries[:1]
    found: list[float] = [e[column] for e in repetitions if e.get(column)]
    return median(found or [0.0])


def _by_rung(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault("/".join(name.split("/")[:2]), []).append(name)
    return found
