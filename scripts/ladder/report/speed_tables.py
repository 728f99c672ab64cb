# SPDX-License-Identifier: MIT
"""Tables of timed results: how fast each rung is, compared with what, and what limits it."""

from __future__ import annotations

from ladder.analysis import roofs
from ladder.analysis.limits import Limits
from ladder.analysis.shapes import facet_title
from ladder.analysis.study import (
    PREDICTION,
    Study,
    describe,
    own_quantity,
    own_speed,
    studies,
    values_of,
)
from ladder.io.results import Results
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.model.text import first_of
from ladder.report import counter_tables, markdown
from ladder.report.markdown import code, escape

_MAX_SHAPES = 6
_TO_PEER, _PEAK, _BEST_AT = "× peer", "of the datasheet", "best at"
_LEAST, _IN_FLIGHT = "latency", "bytes in flight, per SM"
GAIN, _PER_JOULE = "× parent", "per joule"


def ladder(study: Study, limits: Limits) -> str:
    """Write one ladder: its rungs at up to six shapes, and more of them at the headline.

    Results with hardware counters say what limits a rung instead of what it takes; that is in the
    table of counters then.
    """
    headline = study.headline
    cases = _pick(study.shapes.facets[study.shapes.facet(headline)], headline)
    percent = f"% of `{study.ladder.ceilings}`"
    divisor, unit = study.unit
    with_counters = counter_tables.has_counters(study)
    several = study.ladder.is_roof and len(study.cases) > 1
    best = roofs.measured(study.results) if several else {}
    table = []
    for rung in study.rungs:
        row = study.ok(rung, headline)
        # Not all memories hold the headline's set: of a roof its best row counts.
        measured = best.get(rung.name) if several else study.measured(rung, headline)
        about = ", ".join(filter(None, (rung.role.replace("step", ""), rung.precision)))
        line = {
            "rung": code(rung.name) + (f" ({about})" if about else ""),
            "idea": rung.idea,
        }
        line |= factors(study, rung)
        for case in cases:
            line[study.shapes.label(case) if len(study.cases) > 1 else "speed"] = _cell(
                study, study.best.get((rung.name, case)), divisor
            )
        line |= _roof(study, rung, measured)
        line[GAIN] = study.to_parent(row) if row else ""
        line[percent] = _percent(study, row) if row else ""
        line[_TO_PEER] = study.to_peer(row) if row else ""
        predicted = study.prediction(row) if row else ("", "", "")
        line |= zip(PREDICTION, predicted, strict=True)
        limiter = limits.limiter(measured) if measured else None
        line[markdown.LIMITED_BY] = str(limiter) if limiter else ""
        line[_PER_JOULE] = _per_joule(study, measured) if measured else ""
        line |= dict.fromkeys(markdown.RESOURCES, "")
        if measured and not with_counters:
            line |= markdown.resources(measured)
        table.append(line)
    notes = [f"{study.ladder.title}: {escape(describe(study.results))}."]
    if not study.ladder.is_roof:
        notes.append(f"Speed in {unit}.")
    groups = {
        "gain": (GAIN,),
        "percent": (percent,),
        "ratio": (_TO_PEER,),
        "limit": (markdown.LIMITED_BY,),
        "energy": (_PER_JOULE,),
        "resources": markdown.RESOURCES,
    }
    shown = [n for n, columns in groups.items() if any(line[c] for line in table for c in columns)]
    if shown and (several or study.spell(headline)):
        names = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        where = "of the fastest row" if several else f"at {study.spell(headline)}"
        notes.append(f"{names.capitalize()} {where}.")
    if any(line[PREDICTION[0]] for line in table):
        notes.append("Slow-down against the fastest step.")
    sweeps = sorted({rung.sweep for rung in study.rungs if rung.sweep})
    told = [f"the best {'cluster size' if sweep == 'cluster' else sweep}" for sweep in sweeps]
    told += ["the rung chosen"] * any(row.chosen for row in study.rows)
    if told and not study.ladder.is_roof:
        notes.append(f"In parentheses: {', or '.join(told)}.")
    return "\n\n".join(filter(None, (" ".join(notes), markdown.table(table), _footnotes(study))))


def factors(study: Study, rung: Rung) -> dict[str, str]:
    """Return the cells of an experiment's factors; none of a ladder."""
    return {name.replace("_", " "): rung.factors.get(name, "") for name in study.ladder.factors}


def path(study: Study, name: str) -> str:
    """Write the rungs that one builds on, from the root: their speeds at the headline, and gains.

    Of a choice it is the path of the step that it ran there. Raises ValueError for no such rung.
    """
    rung, *_ = study.ladder.path(name)
    row = study.measured(rung, study.headline)
    chosen = row.chosen if row else ""
    table = []
    for step in reversed(study.ladder.path(chosen or name)):
        row = study.best.get((step.name, study.headline))
        ok = study.ok(step, study.headline)
        table.append(
            {
                "rung": code(step.name),
                "idea": step.idea,
                "speed": _rate(study, row) if row else "not measured",
                GAIN: study.to_parent(ok) if ok else "",
                "% of ceiling": of_ceiling(study, ok) if ok else "",
                "shows": step.shows,
            }
        )
    about = f"{study.ladder.title}: {escape(describe(study.results))}. The path to `{name}`"
    about += f", which chose `{chosen}`" if chosen else ""
    at = f", at {study.spell(study.headline)}" if study.spell(study.headline) else ""
    return f"{about}{at}.\n\n{markdown.table(table)}"


def of_ceiling(study: Study, row: Row) -> str:
    """Write the percent of a row's ceiling and which that is; empty where none was measured."""
    percent = units.percent(study.percent(row))
    of = study.spell_lowest_ceiling(row)
    return " of ".join(filter(None, (percent, of))) if percent else ""


def _per_joule(study: Study, row: Row) -> str:
    """Write the work that a joule does, in the quantity of the speed; empty where it was not read.

    Roofs differ in quantity, so each has its own. One chain of loads takes hardly more power than
    the idle board, so latencies have no energy.
    """
    if study.ladder.is_roof:
        quantity = own_quantity(row)
        if quantity == "loads":
            return ""
        unit = {"bytes": "B", "flops": "FLOP"}.get(quantity, quantity)
        return units.scaled(own_speed(row) * row.seconds / row.joules, unit)
    if study.ladder.quantity == "flops":
        return units.scaled(row.flops_per_joule, "FLOP")
    return units.scaled(row.bytes_per_joule, "B")


def _percent(study: Study, row: Row) -> str:
    """Write the percent of the row's ceiling, and of which where it is not its ladder's."""
    own = study.has_own_ceiling(row)
    return of_ceiling(study, row) if own else units.percent(study.percent(row))


def overview(results: Results, limits: Limits) -> str:
    """Write the best rung of each ladder."""
    found = studies(results)
    lines = [line for study in found if (line := best(study, limits))]
    rows = [row for study in found if (row := study.best_step(study.headline))]
    notes = "\n".join(f"- {mark} {told}" for mark, told in roofs.explained(rows).items())
    return "\n\n".join(
        filter(None, (f"{escape(describe(results))}.", markdown.table(lines), notes))
    )


def choices(results: Results) -> str:
    """Write which step each choice took at the shapes of the headline's facet, a line per choice.

    Behind the shapes of a step is its speed over that of the fastest peer.
    """
    lines = []
    for study in studies(results):
        facet = study.shapes.facet(study.headline)
        for rung in (rung for rung in study.rungs if rung.role == "choice"):
            taken: dict[str, list[Row]] = {}
            for row in filter(None, (study.ok(rung, case) for case in study.shapes.facets[facet])):
                taken.setdefault(row.chosen, []).append(row)
            told = []
            for step, rows in taken.items():
                peer = _range_to_peer(study, rows)
                where = _listed([study.shapes.label(row.case) for row in rows])
                told.append(f"{code(step)} at {where}" + f" ({peer})" * bool(peer))
            title = ", ".join(filter(None, (study.ladder.title, facet_title(facet))))
            lines.append({"ladder": title, "use": "; ".join(told)})
    about = f"{escape(describe(results))}. In parentheses: speed over the fastest library's."
    return f"{about}\n\n{markdown.table(lines)}"


def _listed(shapes: list[str]) -> str:
    return first_of(shapes, 4 if len(shapes) <= 4 else 2)


def _range_to_peer(study: Study, rows: list[Row]) -> str:
    """Write the smallest and the largest speed over that of the fastest peer."""
    peers = [(row, study.peer(row.precision, row.case)) for row in rows]
    found = sorted(study.speed(row) / study.speed(peer) for row, peer in peers if peer)
    if not found:
        return ""
    ends = dict.fromkeys(units.ratio(ratio) for ratio in (found[0], found[-1]))
    return " to ".join(ends)


def best(study: Study, limits: Limits) -> dict[str, str] | None:
    """Return the line of the overview that is a ladder's, or None where no step has a speed."""
    row = study.best_step(study.headline)
    if row is None:
        return None
    limiter = limits.limiter(row)
    return {
        "ladder": study.ladder.title,
        "case": study.spell(study.headline),
        "best rung": f"`{row.rung}`" + (f" ({row.sweep})" if row.sweep else ""),
        "speed": _rate(study, row),
        "% of ceiling": of_ceiling(study, row),
        _TO_PEER: study.to_peer(row),
        markdown.LIMITED_BY: str(limiter) if limiter else "",
    }


def _rate(study: Study, row: Row) -> str:
    """Write a speed with its unit and signs, or why there is none."""
    if row.status != "ok":
        return row.status
    return units.rate(study.ladder.quantity, study.speed(row)) + roofs.marks(row)


def _cell(study: Study, row: Row | None, divisor: float) -> str:
    if row is None or row.status != "ok":
        return row.status if row else ""
    signs = roofs.marks(row)
    if study.ladder.is_roof:  # roofs differ in quantity and by decades, so each has its own unit
        return units.rate(own_quantity(row), own_speed(row)) + signs
    told = row.sweep or row.chosen
    return units.number(study.speed(row) / divisor) + signs + (f" ({told})" if told else "")


def _roof(study: Study, rung: Rung, row: Row | None) -> dict[str, str]:
    """Say where in its sweep a roof was fastest, its part of the datasheet's peak, and more."""
    found = {_LEAST: "", _BEST_AT: "", _PEAK: "", _IN_FLIGHT: ""}
    sheet = roofs.datasheet(study.results.gpu)
    best = roofs.measured(study.results).get(rung.name) if study.ladder.is_roof else None
    if best and best.loads_per_second > 0:
        cycles = f", {best.cycles_per_load:.0f} cycles" if best.cycles_per_load > 0 else ""
        found[_LEAST] = units.rate(own_quantity(best), own_speed(best)) + cycles
    if not (row and best and any(rung.sweeps for rung in study.ladder.rungs)):
        return found
    if (sms := units.parse(study.results.context.get("sms"))) > 0:
        found[_IN_FLIGHT] = units.kibibytes(roofs.bytes_in_flight(study.results, rung.name) / sms)
    if row.sweep:
        found[_BEST_AT] = values_of(rung, row)
    if sheet and (peak := sheet.peak(rung.name)) > 0:
        percent = units.percent(roofs.percent_of_peak(study.results, row))
        found[_PEAK] = f"{percent} of {units.rate(own_quantity(row), peak)}"
    return found


def _footnotes(study: Study) -> str:
    """Say why cases have no speed and what signs mean: one line per reason, for all its rungs."""
    lines = []
    if slow := [row for row in study.best.values() if study.ladder.is_roof and row.throttled > 0]:
        throttled = ", ".join(code(name) for name in dict.fromkeys(row.rung for row in slow))
        lines.append(f"- {roofs.SLOW_MARK} {throttled}: {roofs.slow_clocks(study.results, slow)}")
    found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}  # by sign and reason
    for (name, case), row in study.best.items():
        told = []
        if row.status != "ok":
            why = f": {escape(row.reason)}" if row.reason else ""
            told = [("", f" {row.status}{why}")]
        for mark, why in roofs.explained([row]).items():
            if row.status == "ok" and not (mark == roofs.SLOW_MARK and study.ladder.is_roof):
                told.append((f"{mark} ", f": {why}"))
        for note in told:
            names, cases = found.setdefault(note, ([], []))
            names.append(code(name))
            cases.append(study.spell(case))
    for (sign, why), (names, cases) in found.items():
        shapes = _several(list(dict.fromkeys(cases)))
        where = f" ({shapes})" if shapes else ""
        lines.append(f"- {sign}{', '.join(dict.fromkeys(names))}{why}{where}")
    return "\n".join(lines)


def _several(cases: list[str]) -> str:
    return "; ".join(cases) if len(cases) <= 3 else first_of(cases)


def _pick(cases: list[str], headline: str) -> list[str]:
    """Thin the shapes evenly to what a table can show, keeping the headline."""
    if len(cases) <= _MAX_SHAPES + 2:  # a few more are better than some left out
        return cases
    step = (len(cases) - 1) / (_MAX_SHAPES - 1)
    picked = {round(i * step) for i in range(_MAX_SHAPES)}
    at = cases.index(headline)
    picked = picked - {min(picked, key=lambda i: abs(i - at))} | {at}
    return [cases[i] for i in sorted(picked)]
