# SPDX-License-Identifier: MIT
"""Tables of timed results: how fast each rung is, against what, and what limits it."""

from __future__ import annotations

from ladder import cells, counted, roofs, units
from ladder.catalogue import Rung
from ladder.limits import Limits
from ladder.results import Results
from ladder.study import (
    PREDICTION,
    Row,
    Study,
    describe,
    own_quantity,
    own_speed,
    studies,
    values_of,
)

_MAX_SHAPES = 6
_THROTTLED = roofs.SLOW_MARK
_GAIN, _TO_PEER, _PEAK, _BEST_AT = "× rung below", "× peer", "of the datasheet", "best at"


def ladder(study: Study, limits: Limits) -> str:
    """Write one ladder: its rungs at up to six shapes, and more of them at the headline.

    Results with hardware counters say what limits a rung instead of what it takes; that is in the
    table of counters then.
    """
    headline = study.headline
    cases = _pick(study.facets[study.facet(headline)], headline)
    percent = f"% of `{study.ladder.ceilings}`"
    divisor, unit = study.unit
    with_counters = counted.has_counters(study)
    table = []
    for rung in study.rungs:
        row = study.ok(rung, headline)
        measured = study.measured(rung, headline)
        about = ", ".join(filter(None, (rung.role.replace("step", ""), rung.precision)))
        line = {"rung": f"`{rung.name}`" + (f" ({about})" if about else ""), "idea": rung.idea}
        for case in cases:
            line[study.label(case) if len(study.cases) > 1 else "speed"] = _cell(
                study, study.best.get((rung.name, case)), divisor
            )
        line |= _roof(study, rung, measured)
        line[_GAIN] = gain(study, rung, row) if row and with_counters else ""
        line[percent] = _percent(study, rung, row) if row else ""
        line[_TO_PEER] = study.to_peer(row) if row else ""
        predicted = study.prediction(row) if row else ("", "", "")
        line |= zip(PREDICTION, predicted, strict=True)
        limiter = limits.limiter(measured) if measured else None
        line[cells.LIMITED_BY] = str(limiter) if limiter else ""
        line |= dict.fromkeys(cells.RESOURCES, "")
        if measured and not with_counters:
            line |= cells.resources(measured)
        table.append(line)
    notes = [f"{study.ladder.title}: {describe(study.results)}."]
    if not study.ladder.is_roof:
        notes.append(f"Speed in {unit}.")
    groups = {
        "gain": (_GAIN,),
        "percent": (percent,),
        "ratio": (_TO_PEER,),
        "limit": (cells.LIMITED_BY,),
        "resources": cells.RESOURCES,
    }
    shown = [n for n, columns in groups.items() if any(line[c] for line in table for c in columns)]
    if shown and study.spell(headline):
        names = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        notes.append(f"{names.capitalize()} at {study.spell(headline)}.")
    if any(line[PREDICTION[0]] for line in table):
        notes.append("Slow-down against the fastest step.")
    sweeps = sorted({rung.sweep for rung in study.rungs if rung.sweep})
    if sweeps and not study.ladder.is_roof:
        notes.append(f"In parentheses: the best {', '.join(sweeps)}.")
    return "\n\n".join(filter(None, (" ".join(notes), cells.table(table), _footnotes(study))))


def _percent(study: Study, rung: Rung, row: Row) -> str:
    """Write the percent of the rung's ceiling, and of which where it is not its ladder's."""
    percent = units.percent(study.percent(row))
    return f"{percent} of {study.spell_ceiling(rung)}" if rung.ceiling and percent else percent


def overview(results: Results, limits: Limits) -> str:
    """Write the best rung of each ladder."""
    lines = [line for study in studies(results) if (line := best(study, limits))]
    text = f"{describe(results)}.\n\n{cells.table(lines)}"
    throttled = any(line["speed"].endswith(_THROTTLED) for line in lines)
    return text + (f"\n\n- {_THROTTLED} the clock was throttled" if throttled else "")


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
        "speed": units.rate(study.ladder.quantity, study.speed(row))
        + (_THROTTLED if row.throttled > 0 else ""),
        "% of ceiling": f"{units.percent(study.percent(row))} of "
        + study.spell_ceiling(study.ladder.rung(row.rung)),
        _TO_PEER: study.to_peer(row),
        cells.LIMITED_BY: str(limiter) if limiter else "",
    }


def _cell(study: Study, row: Row | None, divisor: float) -> str:
    if row is None or row.status != "ok":
        return row.status if row else ""
    mark = _THROTTLED if row.throttled > 0 or _slow_roof(study, row) else ""
    if study.ladder.is_roof:  # roofs differ in quantity and by decades, so each has its own unit
        return units.rate(own_quantity(row), own_speed(row)) + mark
    sweep = f" ({row.sweep})" if row.sweep else ""
    return units.number(study.speed(row) / divisor) + mark + sweep


def _roof(study: Study, rung: Rung, row: Row | None) -> dict[str, str]:
    """Say where in its sweep a roof was fastest, and how much of the datasheet's peak that is."""
    found = {_BEST_AT: "", _PEAK: ""}
    sheet = roofs.datasheet(study.results.gpu)
    if not (row and study.ladder.is_roof and any(rung.sweeps for rung in study.ladder.rungs)):
        return found
    if row.sweep:
        found[_BEST_AT] = values_of(rung, row)
    if sheet and (peak := sheet.peak(rung.name)) > 0:
        percent = units.percent(roofs.percent_of_peak(study.results, row))
        found[_PEAK] = f"{percent} of {units.rate(own_quantity(row), peak)}"
    return found


def gain(study: Study, rung: Rung, row: Row) -> str:
    """Write the speed over that of the rung below, as `2.41×`; empty where there is none."""
    below = study.below(rung, row.case)
    return f"{units.number(study.speed(row) / study.speed(below))}×" if below else ""


def _footnotes(study: Study) -> str:
    """Say why cases have no speed and which were throttled, one line a rung and reason."""
    found: dict[str, list[str]] = {}
    if slow := [row for row in study.best.values() if _slow_roof(study, row)]:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(row.rung for row in slow))
        clocks = roofs.clocks(study.results, slow)
        found[f"{_THROTTLED} {names}: at {clocks}, {roofs.SLOW_CLOCK}"] = []
    for (name, case), row in study.best.items():
        if row.status != "ok":
            note = f"`{name}` {row.status}{': ' + row.reason if row.reason else ''}"
        elif row.throttled > 0 and not _slow_roof(study, row):
            note = f"{_THROTTLED} `{name}`: the clock was throttled"
        else:
            continue
        found.setdefault(note, []).append(study.spell(case))
    return "\n".join(
        f"- {note}" + (f" ({_several(cases)})" if any(cases) else "")
        for note, cases in found.items()
    )


def _slow_roof(study: Study, row: Row) -> bool:
    return study.ladder.is_roof and roofs.below_clock(study.results, row)


def _several(cases: list[str]) -> str:
    return "; ".join(cases) if len(cases) <= 3 else f"{cases[0]} and {len(cases) - 1} more"


def _pick(cases: list[str], headline: str) -> list[str]:
    """Thin the shapes evenly to what a table can show, keeping the headline."""
    if len(cases) <= _MAX_SHAPES + 2:  # a few more are better than some left out
        return cases
    step = (len(cases) - 1) / (_MAX_SHAPES - 1)
    picked = {round(i * step) for i in range(_MAX_SHAPES)}
    at = cases.index(headline)
    picked = picked - {min(picked, key=lambda i: abs(i - at))} | {at}
    return [cases[i] for i in sorted(picked)]
