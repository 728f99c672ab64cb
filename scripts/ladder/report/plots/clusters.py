# SPDX-License-Identifier: MIT
"""Where clusters of blocks win and where they lose: the best rung with them over that without."""

from __future__ import annotations

from dataclasses import dataclass, field

from matplotlib.figure import Figure

from ladder.analysis import roofs
from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.rows import Row
from ladder.report.plots import panels, quantities, style
from ladder.report.plots.cases import across, grouped, short

AXIS = "cluster"  # the axis of a rung's own that is the number of blocks per cluster
_STEPS = (1.01, 1.1, 1.25, 2.0)  # where colours change; `ladder compare` calls no less a change
_SHADES = (0.18, 0.38, 0.62, 0.95)  # of the full colour after each step
_NAMED = 3  # rungs that the figure names
_NONE = "#f6f6f6"


@dataclass
class Case:
    """The fastest rows of one case, by blocks per cluster."""

    without: Row | None = None
    best: dict[int, Row] = field(default_factory=dict)
    why_not: dict[int, str] = field(default_factory=dict)  # of sizes that were tried

    @property
    def tried(self) -> bool:
        """Whether any rung was to run it in clusters."""
        return bool(self.best or self.why_not)


@dataclass(frozen=True)
class Map:
    """The cases that were run in clusters."""

    axis: str  # what goes across
    sizes: list[int]
    groups: dict[str, dict[str, Case]]  # by title, and by what is written below
    untried: int  # cases that no rung was to run in clusters

    @property
    def cases(self) -> list[Case]:
        """The cases of all groups."""
        return [case for group in self.groups.values() for case in group.values()]


def chosen(study: Study) -> Map | None:
    """Return what there is to draw; None where no rung has the axis, or nothing ran in clusters."""
    if not any(AXIS in rung.sweeps for rung in study.rungs):
        return None
    cases = _cases(study)
    sizes = {size for case in cases.values() for size in case.best}
    if not sizes:
        return None
    sizes |= {size for case in cases.values() for size in case.why_not}
    tried = {name: cases[name] for name in study.cases if name in cases and cases[name].tried}
    axis = across(study, tried)
    groups = {
        group.title: {label: tried[case] for label, case in group.cases.items()}
        for group in grouped(study, list(tried), axis)
    }
    return Map(axis, sorted(sizes), groups, len(cases) - len(tried))


def _cases(study: Study) -> dict[str, Case]:
    """Sort the rows of the ladder's own precision into cases, and pick the fastest of each size."""
    cases: dict[str, Case] = {}
    for row in study.rows:
        size = cluster_size(row)
        if row.precision or row.role == "ceiling" or size is None:
            continue
        case = cases.setdefault(row.case, Case())
        if row.status == "ok" and study.speed(row) > 0:
            best = case.without if size == 1 else case.best.get(size)
            if best is None or study.speed(row) > study.speed(best):
                if size == 1:
                    case.without = row
                else:
                    case.best[size] = row
        elif size > 1:
            case.why_not.setdefault(size, _why_not(row))
    return cases


def cluster_size(row: Row) -> int | None:
    """Blocks per cluster: as launched, as the row's name says, else 1; None if that is no size.

    A cluster of one block is as good as none: it has no other block's shared memory to go to.
    """
    size = quantities.counter(row, "cluster_size")
    if not size >= 1:
        named = [s.partition(":")[2] for s in row.name.split("/") if s.startswith(f"{AXIS}:")]
        size = units.parse(named[0]) if named else 1.0
    return int(size) if size >= 1 and size % 1 == 0 else None


def _why_not(row: Row) -> str:
    """Say in a few words why a row has no speed: what its reason begins with."""
    if row.status == "skipped":
        return row.reason.partition(":")[0]
    return "failed" if row.status == "error" else "no speed"


def colour(ratio: float) -> style.Colour:
    """Colour of a ratio: white where both are level, blue above that and orange below."""
    steps = sum(max(ratio, 1 / ratio) >= step for step in _STEPS)
    return _shade(style.OURS if ratio > 1 else style.PEER, steps)


def _shade(full: str, steps: int) -> style.Colour:
    return style.tint(full, (0.0, *_SHADES)[steps])


def draw(study: Study, found: Map) -> Figure:
    """Draw a panel per group of cases: cases across, blocks per cluster down."""
    if not any(case.without and case.best for case in found.cases):
        raise style.NothingToDrawError("no case ran both in clusters and without")
    shown = [
        panels.Panel(title, [short(label) for label in group], _cells(study, found, group))
        for title, group in found.groups.items()
    ]
    key: list[tuple[str, style.Colour]] = [
        ("faster", _shade(style.OURS, 2)),
        ("slower", _shade(style.PEER, 2)),
        *((why, style.GREY) for why in _reasons(found)),
    ]
    title = f"{study.ladder.title}: gain by clusters of blocks, percent"
    source = describe(study.results)
    if any(cell.text.endswith(roofs.SLOW_MARK) for panel in shown for cell in panel.cells.values()):
        source += f". {roofs.SLOW_MARK}: the clock was throttled"
    if found.untried:
        source += f". {found.untried} cases ran in no cluster"
    thousands = " (1K = 1024)" if any("K" in x for panel in shown for x in panel.columns) else ""
    rows = [f"{size} blocks" for size in found.sizes]
    page = title, f"The fastest rung in clusters{_named(found)} over the fastest without", source
    signs = "■■" + "–" * (len(key) - 2)
    return panels.draw(page, rows, shown, key, signs, f"{found.axis}{thousands}")


def _named(found: Map) -> str:
    """Name the rungs that are the fastest in clusters somewhere, where they are few."""
    rows = [row for case in found.cases for row in case.best.values()]
    names = dict.fromkeys(row.chosen or row.rung for row in rows)
    return f" ({', '.join(names)})" if len(names) <= _NAMED else ""


def _cells(study: Study, found: Map, group: dict[str, Case]) -> dict[tuple[int, int], panels.Cell]:
    cells = {}
    for x, case in enumerate(group.values()):
        for y, size in enumerate(found.sizes):
            row, base = case.best.get(size), case.without
            if not (row and base):
                cells[x, y] = panels.Cell("–", _NONE, style.GREY)
                continue
            ratio = study.speed(row) / study.speed(base)
            mark = roofs.SLOW_MARK if row.throttled > 0 or base.throttled > 0 else ""
            ink = "white" if max(ratio, 1 / ratio) >= _STEPS[-1] else "black"
            bold = max(ratio, 1 / ratio) >= _STEPS[1]
            cells[x, y] = panels.Cell(_percent(ratio) + mark, colour(ratio), ink, bold)
    return cells


def _percent(ratio: float) -> str:
    """Write what was gained: `+24`, or `0` where the colour says that both are level."""
    level = max(ratio, 1 / ratio) < _STEPS[0]
    return "0" if level else f"{100 * (ratio - 1):+.0f}".replace("-", "\N{MINUS SIGN}")


def _reasons(found: Map) -> list[str]:
    """Say why cells have no number."""
    told: dict[str, None] = {}
    for case in found.cases:
        for size in found.sizes:
            if not case.without:
                told["not run without"] = None
            elif size not in case.best:
                told[case.why_not.get(size, "not run")] = None
    return list(told)
