# SPDX-License-Identifier: MIT
"""One ladder as one GPU measured it: the questions that tables and plots ask."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path

from ladder.analysis.shapes import Shapes, axis_values, by_case
from ladder.io.results import Results
from ladder.model import ceilings, units
from ladder.model.catalogue import Ceiling, Ladder, Rung
from ladder.model.rows import Row

# A roof is itself measured, so a row counts as above it only beyond the roof's own noise.
ABOVE_ROOF_PERCENT = 101.0

# One of less than ten launches is mostly launch, whose time differs by a few percent of the whole.
SHORT_LAUNCHES, ABOVE_SHORT_PERCENT = 10, 105.0

# What was predicted of shared memory, and the slow-down against the fastest step.
PREDICTION = ("wavefronts, load / store", "slow-down, predicted", "slow-down, measured")
_NOISE = 0.005  # speeds this close count as equal: from process to process most differ by less


class Study:
    """The rows of `ladder` within `results`."""

    def __init__(self, results: Results, ladder: Ladder) -> None:
        self.results = results
        self.ladder = ladder
        self.rows: list[Row] = [row for row in results.rows if row.ladder == ladder.name]
        self.best: dict[tuple[str, str], Row] = {}  # by (rung, case): the best of a sweep
        for row in self.rows:
            key = (row.rung, row.case)
            if key not in self.best or self._rank(row) > self._rank(self.best[key]):
                self.best[key] = row

    def _rank(self, row: Row) -> tuple[bool, float]:
        speed = own_speed(row) if self.ladder.is_roof else self.speed(row)
        return row.status == "ok", 0.0 if math.isnan(speed) else speed

    @cached_property
    def shapes(self) -> Shapes:
        """The cases as shapes: the file's order is that of the rung with most cases."""
        by_rung: dict[str, dict[str, None]] = {}
        for row in self.rows:
            by_rung.setdefault(row.rung, {})[row.case] = None
        fullest_first = sorted(by_rung.values(), key=len, reverse=True)
        return Shapes(
            self.ladder.axes, dict.fromkeys(case for cases in fullest_first for case in cases)
        )

    @property
    def cases(self) -> list[str]:
        """Every case measured: the series of sizes rising, then other shapes."""
        return self.shapes.cases

    @cached_property
    def rungs(self) -> list[Rung]:
        """The rungs that have rows, in climbing order."""
        present = {row.rung for row in self.rows}
        return [rung for rung in self.ladder.rungs if rung.name in present]

    @cached_property
    def headline(self) -> str:
        """The ladder's headline case, or the case most rungs ran when that one is absent."""
        ran = {case: sum(self.ok(r, case) is not None for r in self.rungs) for case in self.cases}
        return (
            self.ladder.headline if ran.get(self.ladder.headline) else max(ran, key=ran.__getitem__)
        )

    @cached_property
    def counted(self) -> list[Row]:
        """The rows that count FLOPs and bytes, and so have a place on a roofline."""
        return [
            row for row in self.rows if row.flops_per_second > 0 and row.arithmetic_intensity > 0
        ]

    def ok(self, rung: Rung, case: str) -> Row | None:
        """Return the measurement of a rung at a case, or None where there is no speed."""
        row = self.measured(rung, case)
        return row if row and self.speed(row) > 0 else None

    def measured(self, rung: Rung, case: str) -> Row | None:
        """Return the measurement of a rung at a case, in whatever quantity it counts."""
        row = self.best.get((rung.name, case))
        return row if row and row.status == "ok" else None

    def rung(self, row: Row) -> Rung:
        """Return the rung that a row is of: none is read whose ladder does not list it."""
        return self._by_name[row.rung]

    @cached_property
    def _by_name(self) -> dict[str, Rung]:
        return {rung.name: rung for rung in self.ladder.rungs}

    def lead(self, rung: Rung) -> Row | None:
        """Return the measurement at the headline, else at the case where the rung is fastest.

        Of the cases that it is meant for, if any was measured, and of those the ones that share
        most with the headline beside their shape, such as the distribution of its keys.
        """
        measured = [row for case in self.cases if (row := self.measured(rung, case))]
        meant = [row for row in measured if row.case in rung.meant_for]
        shared = {row.case: self._shared(row.case) for row in meant or measured}
        most = max(shared.values(), default=0)
        near = [row for row in meant or measured if shared[row.case] == most]
        return self.measured(rung, self.headline) or max(near, key=self._rank, default=None)

    def _shared(self, case: str) -> int:
        """On how many axes beside its shape a case has the headline's value."""
        values, headline = axis_values(case), axis_values(self.headline)
        others = values.keys() - set(self.shapes.axes)
        return sum(values[axis] == headline.get(axis) for axis in others)

    def speed(self, row: Row) -> float:
        """Speed in FLOP/s or bytes/s; NaN where the row counts neither."""
        return row.counter(self.ladder.rate)

    @cached_property
    def unit(self) -> tuple[float, str]:
        """(divisor, unit) that suits the headline's speeds in the ladder's own precision."""
        found = [self.ok(rung, self.headline) for rung in self.rungs if not rung.precision]
        return units.rate_unit(self.ladder.quantity, [self.speed(row) for row in found if row])

    @cached_property
    def path(self) -> list[Row]:
        """What the rungs up to the best step measured at the headline, from the root of its path.

        Where no tree is known it is the steps that were faster than all that are listed before.
        """
        best = self.best_step(self.headline)
        if best and self.ladder.is_tree:
            rungs = self.ladder.path(best.rung)[::-1]
            return [row for rung in rungs if (row := self.ok(rung, self.headline))]
        faster: list[Row] = []
        for rung in self.rungs:
            row = self.ok(rung, self.headline) if rung.is_step else None
            if row and (not faster or self.speed(row) > self.speed(faster[-1])):
                faster.append(row)
        return faster

    @cached_property
    def climb(self) -> list[Rung]:
        """The rungs as a list of all has them: first ceilings, then the path to the best step.

        What stands on none of it follows in the file's order, as all do where no tree is known.
        """
        first = [rung for rung in self.rungs if rung.role == "ceiling"]
        if self.ladder.is_tree:
            first += [self.rung(row) for row in self.path]
        return [*first, *(rung for rung in self.rungs if rung not in first)]

    def parent(self, row: Row) -> Row | None:
        """Return the measurement, at the same case, of the rung that a row's rung builds on."""
        parent = self._by_name.get(self.rung(row).builds_on)
        return self.measured(parent, row.case) if parent else None

    def gain(self, row: Row) -> float:
        """Return the speed over that of the parent; NaN where there is none at the case."""
        parent = self.parent(row)
        return self.speed(row) / self.speed(parent) if parent else math.nan

    def to_parent(self, row: Row) -> str:
        """Write the gain as `2.41× name`, with the parent's name; empty where there is none."""
        gain, parent = self.gain(row), self.parent(row)
        return f"{units.gain(gain)} {parent.rung}" if parent and gain == gain else ""

    def ceilings_of(self, row: Row) -> tuple[Ceiling, ...]:
        """Return the ceilings of a row's rung, or of the one that a choice ran there."""
        rung = self._by_name.get(row.chosen or row.rung)
        return rung.ceilings if rung else ()

    def _lowest_ceiling(self, row: Row) -> tuple[float, Ceiling, Row] | None:
        """Return a row's ceiling: its speed in the ladder's quantity, which it is, and its row."""
        quantity = self.ladder.quantity
        best = {each: self._best_of(each, row.case) for each in self.ceilings_of(row)}

        def speed(ceiling: Ceiling) -> float:
            column = ceilings.rate(ceiling, quantity)
            return row.counter(column) if (row := best[ceiling]) else math.nan

        if not (found := ceilings.lowest(best, quantity, row.arithmetic_intensity, speed)):
            return None
        was = best[found[1]]
        return (*found, was) if was else None

    def _best_of(self, ceiling: Ceiling, case: str) -> Row | None:
        """Return the best row of a ceiling: at `case` where it is of the same ladder."""
        if ceiling not in self._best_ceilings:
            self._best_ceilings[ceiling] = self._best_by_case(ceiling)
        own = ceilings.at_own_case(ceiling, self.ladder)
        return self._best_ceilings[ceiling].get(case if own else None)

    @cached_property
    def _best_ceilings(self) -> dict[Ceiling, dict[str | None, Row]]:
        return {}

    def _best_by_case(self, ceiling: Ceiling) -> dict[str | None, Row]:
        """Return the best row of a ceiling at each case, and that of all cases under None."""
        column = ceilings.rate(ceiling, self.ladder.quantity)
        best: dict[str | None, Row] = {}
        for row in self.results.ceilings:
            if f"{row.ladder}/{row.rung}" == ceiling.rung and row.counter(column) > 0:
                for case in (row.case, None):
                    if case not in best or row.counter(column) > best[case].counter(column):
                        best[case] = row
        return best

    def ceiling_of(self, row: Row) -> float:
        """Return the speed of a row's ceiling; NaN where it was not measured."""
        if found := self._lowest_ceiling(row):
            return found[0]
        return (
            100 * self.speed(row) / row.percent_of_ceiling if row.percent_of_ceiling else math.nan
        )

    @by_case
    def ceiling(self, case: str) -> float:
        """Return the ceiling at `case` of the rungs that have the ladder's; NaN if not measured."""
        rows = (self.ok(rung, case) for rung in self.rungs)
        found = (self.ceiling_of(row) for row in rows if row and not self.has_own_ceiling(row))
        return next((speed for speed in found if speed > 0), math.nan)

    def short_ceiling(self, row: Row) -> bool:
        """Whether the ceiling of a row took less than `SHORT_LAUNCHES` launches of a kernel."""
        launch = units.parse(self.results.context.get("launch_nanoseconds")) * 1e-9
        found = self._lowest_ceiling(row)
        return found is not None and found[2].seconds < SHORT_LAUNCHES * launch

    def percent(self, row: Row) -> float:
        """Percent of the row's ceiling; NaN where it has none, or none was measured."""
        if not math.isnan(row.percent_of_ceiling):
            return row.percent_of_ceiling
        return 100 * self.speed(row) / self.ceiling_of(row)

    def has_own_ceiling(self, row: Row) -> bool:
        """Whether a row's ceilings are others than those that its ladder names."""
        found = {(each.rung, each.products) for each in self.ceilings_of(row)}
        named = {self.ladder.ceiling, self.ladder.other_ceiling} - {""}
        return bool(found) and found != {(name, 1) for name in named}

    def own_ceilings(self) -> str:
        """Say which rungs have a ceiling of their own, or how many; empty where none has."""
        leads = ((rung, self.lead(rung)) for rung in self.rungs)
        own = [rung.name for rung, row in leads if row and self.has_own_ceiling(row)]
        names = ", ".join(own) if len(own) <= 3 else f"{len(own)} rungs"
        return f" ({names}: of their own)" if own else ""

    def spell_ceiling(self, row: Row) -> str:
        """Name the ceilings of a row, and how many operations make one; empty of an unknown one."""
        return " or ".join(map(_spell, self.ceilings_of(row)))

    def spell_lowest_ceiling(self, row: Row) -> str:
        """Name the one of them that is the lowest, or all where it is not known which that is."""
        found = self._lowest_ceiling(row)
        return _spell(found[1]) if found else self.spell_ceiling(row)

    def above_roof(self, row: Row) -> bool:
        """Whether a row beats its ceiling, which is a fault of the accounting.

        A ceiling itself does not: that it was measured twice says how well it repeats. Nor is what
        a kernel of another precision reaches a limit.
        """
        if row.role == "ceiling" or not self.percent(row) > ABOVE_ROOF_PERCENT:
            return False
        others = {f"{self.ladder.name}/{rung.name}" for rung in self.rungs if rung.precision}
        if others.issuperset(ceiling.rung for ceiling in self.ceilings_of(row)):
            return False
        return self.percent(row) > ABOVE_SHORT_PERCENT or not self.short_ceiling(row)

    def peer(self, precision: str, case: str) -> Row | None:
        """Return the fastest peer of that precision at `case`."""
        found = [self.ok(rung, case) for rung in self._peers if rung.precision == precision]
        return max(filter(None, found), key=self.speed, default=None)

    @cached_property
    def _peers(self) -> list[Rung]:
        return [rung for rung in self.rungs if rung.role == "peer"]

    def to_peer(self, row: Row) -> str:
        """Write the ratio to the best peer of the row's precision, as `0.71× name`."""
        peer = self.peer(row.precision, row.case)
        if not peer or row.role == "ceiling" or peer.rung == row.rung:
            return ""
        return f"{units.ratio(self.speed(row) / self.speed(peer))} {peer.rung}"

    def best_step(self, case: str) -> Row | None:
        """Return the fastest step in the ladder's own precision at `case`.

        If the step that the ladder's choice launches is as fast, up to noise, it is that one.
        """
        rows = {r.name: row for r in self.rungs if r.is_step and (row := self.ok(r, case))}
        choices = [self.ok(r, case) for r in self.rungs if r.role == "choice"]
        best = max(rows.values(), key=self.speed, default=None)
        for chosen in (rows.get(row.chosen) for row in choices if row):
            if best and chosen and self.speed(chosen) >= (1 - _NOISE) * self.speed(best):
                return chosen
        return best

    def predicted(self, row: Row) -> float:
        """Speed that the fastest step would have with this row's predicted wavefronts.

        In FLOP/s or bytes/s; NaN where none were predicted.
        """
        best = self.best_step(row.case)
        return (
            self.speed(best) * _predicted_share(row) / _predicted_share(best) if best else math.nan
        )

    def prediction(self, row: Row) -> tuple[str, str, str]:
        """Write the cells under `PREDICTION`; empty where nothing was predicted."""
        best = self.best_step(row.case)
        if best is None or math.isnan(predicted := self.predicted(row)):
            return "", "", ""
        fastest = self.speed(best)
        counts = f"{row.predicted_load_wavefronts:g} / {row.predicted_store_wavefronts:g}"
        slower = [f"{units.number(fastest / s)}×" for s in (predicted, self.speed(row))]
        return counts, slower[0], slower[1]

    @by_case
    def differs(self, case: str) -> str:
        """Write a shape, and what else of a case is not the headline's: `4096, sorted`."""
        values, headline = axis_values(case), axis_values(self.headline)
        others = (axis for axis in values if axis not in self.shapes.axes)
        told = [values[axis] for axis in others if values[axis] != headline.get(axis)]
        named = [units.power_of_two(value).replace("_", " ") for value in told]
        return ", ".join([self.shapes.label(case), *named])

    def spell(self, case: str) -> str:
        """Write a whole case for a title: `bins 256, keys 2²⁸` or `m = n = k = 4096`."""
        return self.shapes.spell(case)


def studies(results: Results) -> list[Study]:
    """Return the ladders that have rows, in the file's order."""
    measured = {row.ladder for row in results.rows}
    return [Study(results, ladder) for ladder in results.ladders if ladder.name in measured]


def describe(results: Results) -> str:
    """Say in one line what measured: GPU, cache mode and commit, as far as the file tells.

    For host code, program and host stand in for the GPU. Without a commit the file's name is given.
    """
    commit = f"commit {results.commit}" if results.commit else ""
    host = f"host {results.context.get('host_name', 'unknown')}"
    where = (results.gpu,) if results.gpu else (results.program, host)
    more = f" and {len(results.files) - 1} more" * (len(results.files) > 1)
    which = commit or Path(results.file).name + more
    return ", ".join(filter(None, (*where, results.conditions, which)))


def name_of(rung: Rung, row: Row | None) -> str:
    """Name a rung, with the values of its own axes that were its best, or the step it chose."""
    values = values_of(rung, row) if row else ""
    return f"{rung.name} ({values})" if values else rung.name


def values_of(rung: Rung, row: Row) -> str:
    """Spell a row's values of its rung's own axes, `cluster 2`, or the step that a choice ran."""
    sweep = f"{rung.sweep} {row.sweep}" if row.sweep and len(rung.sweeps) == 1 else row.sweep
    return sweep or row.chosen


def _spell(ceiling: Ceiling) -> str:
    return f"`{ceiling.rung}`" + (f" / {ceiling.products:g}" if ceiling.products != 1 else "")


def own_quantity(row: Row) -> str:
    """What a roof counts: "loads", "atomics", "flops" or else "bytes"."""
    own = ("loads", "atomics", "flops")
    return next((q for q in own if row.counter(f"{q}_per_second") > 0), "bytes")


def own_speed(row: Row) -> float:
    """Return the speed of a roof in its own quantity per second; NaN without any.

    Of `l2_read` only what came through L2, where that was counted: neighbours that ask for the same
    at once are answered once, before their requests reach L2.
    """
    if row.rung == "l2_read" and row.l2_bytes > 0:
        return row.l2_bytes / row.seconds
    return row.counter(f"{own_quantity(row)}_per_second")


def _predicted_share(row: Row) -> float:
    """What is predicted to pass in one shared-memory wavefront; NaN when not given.

    In bytes; or in requests, all of which move the same bytes where bytes are not given.
    """
    if row.predicted_bytes_per_wavefront > 0:
        return row.predicted_bytes_per_wavefront
    return 1 / (row.predicted_load_wavefronts + row.predicted_store_wavefronts)
