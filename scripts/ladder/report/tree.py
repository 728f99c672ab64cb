# SPDX-License-Identifier: MIT
"""The ideas of a ladder as a tree, and the path from its first rung to its best."""

from __future__ import annotations

from collections.abc import Iterable

from ladder.analysis.limits import Limits
from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report import markdown
from ladder.report.markdown import code, escape
from ladder.report.plots import quantities, why

_BEST = "stroke-width:3px"


def mermaid(study: Study) -> str:
    """Write the tree of steps as a Mermaid diagram: each with its speed at the headline.

    An arrow leads from a rung to those that build on it, with the gain there. The best step has a
    thick border. A rung that does not run at the headline shows its best case of those that it is
    meant for.
    """
    divisor, unit = study.unit
    best = study.best_step(study.headline)
    lines = ["```mermaid", "flowchart LR"]
    for rung in _steps(study):
        row = study.lead(rung)
        told = f"{units.number(study.speed(row) / divisor)} {unit}" if row else "not measured"
        if row and row.case != study.headline:
            told += f" at {study.differs(row.case)}"
        lines.append(f'  {rung.name}["{rung.name}<br/>{told}"]')
    for rung in _steps(study):
        if rung.builds_on:
            row = study.ok(rung, study.headline)
            gain = study.gain(row) if row else float("nan")
            label = f"|{units.gain(gain)}|" if gain == gain else ""
            lines.append(f"  {rung.builds_on} -->{label} {rung.name}")
    if best:
        lines.append(f"  style {best.rung} {_BEST}")
    return "\n".join([*lines, "```"])


def climb(study: Study, limits: Limits) -> str:
    """Write the path to the best step as a table: what limited the parent, idea, counter, gain."""
    best = study.best_step(study.headline)
    path = study.ladder.path(best.rung)[::-1] if best else ()
    told = {step.rung.name: step for step in why.steps(study)}
    lines = []
    for rung in path:
        row = study.ok(rung, study.headline)
        step = told.get(rung.name)
        counter = ""
        if step and rung.target and step.changes:
            counter = f"{quantities.words(rung.target)}: {step.numbers}"
        lines.append(
            {
                "rung": code(rung.name),
                "its parent was limited by": _limit(study.parent(row) if row else None, limits),
                "idea": rung.idea,
                "what it changed": escape(counter),
                "speed": units.rate(study.ladder.quantity, study.speed(row)) if row else "",
                "gain": units.gain(study.gain(row)) if row and rung.builds_on else "",
            }
        )
    about = f"{escape(describe(study.results))}, at {study.spell(study.headline)}."
    return f"{about}\n\n{markdown.table(lines)}"


def _steps(study: Study) -> Iterable[Rung]:
    return (rung for rung in study.rungs if rung.is_step)


def _limit(row: Row | None, limits: Limits) -> str:
    limiter = limits.limiter(row) if row else None
    return str(limiter) if limiter else ""
