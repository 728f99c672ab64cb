# SPDX-License-Identifier: MIT
"""What the pages of one GPU say: its ladders, and each of their rungs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ladder.analysis import families, roofs
from ladder.analysis.emulated_study import Tally, tallies
from ladder.analysis.limits import COUNTS_FROM, LAUNCH, SLOTS, Limiter, Limits
from ladder.analysis.study import Study, own_quantity, own_speed, studies, values_of
from ladder.io.results import Results
from ladder.io.samples import Samples
from ladder.model import counters, units
from ladder.model.catalogue import Rung
from ladder.model.rows import COUNTERS, Row, bare
from ladder.report import history_text, markdown, plots, speed_tables, sweep_tables
from ladder.report.html import charts
from ladder.report.html.rows import route
from ladder.report.html.source import Place, Sources
from ladder.stats.trend import Trend

_CONTEXT = {  # what the first screen tells of a GPU, and where it stands
    "Commit": "git_commit",
    "Driver": "driver_version",
    "CUDA": "runtime_version",
    "SM clock": "sm_clock_max_hz",
    "Memory clock": "memory_clock_max_hz",
    "Cache": "cache_mode",
    "Counters": "hardware_counters",
    "Measured": "date",
    "Host": "host_name",
}
_PLOTS = {
    "climb": ("Climb", "The path to the best rung, and what each gained on its parent."),
    "wins": ("Wins", "Which rung is the fastest at which shape, in percent of the limit."),
    "limits": (
        "Share of the limits",
        "Percent of the ceiling and of each limit; the limiter is bold. Every instruction takes an "
        "issue slot, so a limit whose share is four fifths of theirs counts before them.",
    ),
    "matrix": ("Matrix", "Percent of the limit by the factors of the experiment."),
    "roofline": ("Roofline", "Speed over FLOP per byte."),
    "why": ("Why", "The target counter of each idea, and what its change gained."),
    "energy": ("Energy", "Energy per FLOP or byte over speed. Falling lines: constant power."),
    "occupancy": ("Occupancy", "The share of an SM's warps that are resident."),
    "clusters": ("Clusters", "Best speed with clusters of blocks over best speed without."),
    "banks": ("Banks", "The worst request, before padding and after it."),
    "samples": ("Samples", "Samples in the order taken, and their distribution."),
    "latency": ("Latency", "Time of a load over the bytes that are read, by memory."),
    "roofs": ("Roofs", "The best row of each roof beside the datasheet."),
    "overview": ("Percent of the limit", "First and best rung of each ladder, and the library."),
    "prediction": ("Prediction", "Emulated over measured counts, a dot per case."),
    "gpus": ("GPUs side by side", "The best rung of each ladder on each GPU."),
}


_MOST_NAMED = 2  # families in a title


@dataclass
class Plot:
    """A plot of a page."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Table:
    """A table of a page, in plain text; the first column names its lines."""

    title: str
    columns: list[str]
    lines: list[dict[str, str]]
    plot: Plot | None = None  # of the same rows


@dataclass(frozen=True)
class Node:
    """A rung in the tree of its ladder, above those that build on it."""

    name: str
    route: str
    speed: str
    role: str  # empty of a step
    best: bool
    above: list[Node]


@dataclass(frozen=True)
class Share:
    """How much of a limit a rung uses."""

    limit: str
    share: str
    width: float  # of 100
    is_limiter: bool
    why: str  # it is not the limiter, though it is larger


@dataclass(frozen=True)
class Moved:
    """A counter that an idea changed."""

    counter: str
    before: str
    after: str
    ratio: str
    is_target: bool


@dataclass(frozen=True)
class RungPage:
    """One rung at its ladder's headline case, or else at the case where it is fastest."""

    name: str
    route: str
    role: str
    idea: str
    case: str
    facts: list[tuple[str, str]]  # what, how much
    line: dict[str, str]  # of the ladder's table, at the headline
    limiter: str
    shares: list[Share]
    parent: str  # the name of the one it builds on
    changes: list[Moved]  # where that was measured at the case
    counters: list[tuple[str, list[tuple[str, str]]]]  # group, its names and values
    place: Place | None  # of its source
    samples: dict[str, Any] | None  # at that case
    history: list[dict[str, str]]  # a line for each of its rows
    track: dict[str, Any] | None  # the history at that case


@dataclass
class LadderPage:
    """One ladder."""

    name: str
    title: str
    route: str
    about: str
    best: dict[str, str] | None  # its line of the overview
    rungs: list[RungPage]
    tree: list[Node]
    chart: dict[str, Any] | None
    signs: dict[str, str]  # what those after speeds mean
    plots: list[Plot] = field(default_factory=list)


def found(results: Results) -> list[Study]:
    """Return the ladders: their speeds where they were timed, else what was counted."""
    return studies(results) if results.source == "timed" else list(tallies(results))


def sweeps(results: Results, drawn: Mapping[str, str]) -> list[Table]:
    """Return the tables of rows of no ladder over their arguments, each with its plot.

    `drawn` has the plots, as SVG by the stem of the figure's file.
    """
    found = families.sweeps(results)
    stems = {id(sweep): stem for stem, sweep in plots.over(found).items()}
    titles = Counter(map(sweep_tables.title, found))
    tables = []
    for sweep in found:
        if lines := sweep_tables.lines(sweep):
            title = sweep_tables.title(sweep)
            about = [f"{title}: {_families(sweep)}" if titles[title] > 1 else title]
            told = "; ".join(about + sweep_tables.notes(sweep))
            svg = drawn.get(stems.get(id(sweep), ""))
            own = Plot(told, "", svg) if svg else None
            tables.append(
                Table(told[:1].upper() + told[1:], markdown.used_columns(lines), lines, own)
            )
    return tables


def _families(sweep: families.Sweep) -> str:
    """Name the families of a sweep, or how many they are."""
    names = list(dict.fromkeys(line.family for line in sweep.lines))
    return ", ".join(names) if len(names) <= _MOST_NAMED else f"{len(names)} families"


def plot(stem: str, svg: str) -> Plot:
    """Give a plot its title by the end of its stem."""
    kind = stem.rpartition("-")[2]
    return Plot(*_PLOTS.get(kind, (kind, "")), svg)


def context(results: Results) -> list[tuple[str, str]]:
    """Say what was measured on what, and how: a name and a value each."""
    told = []
    for title, key in _CONTEXT.items():
        value = str(results.context.get(key, ""))
        if key == "git_commit":
            value = results.commit
        elif key.endswith("_hz"):
            hz = units.parse(value)
            value = f"{hz / 1e6:.0f} MHz" if hz > 0 else ""
        elif key == "date":
            value = value.replace("T", " ")[:16]
        if value:
            told.append((title, value))
    return told


@dataclass(frozen=True)
class Beside:
    """What the pages of a run show beside its results."""

    limits: Limits
    sources: Sources | None
    samples: Samples
    trend: Trend | None


def ladder(study: Study, beside: Beside) -> LadderPage:
    """Return the page of a ladder, without its plots."""
    name = study.ladder.name
    about = f"Headline: {study.spell(study.headline)}." if study.spell(study.headline) else ""
    if study.ladder.ceiling:
        about += f" Ceiling: `{study.ladder.ceilings}`."
    emulated = isinstance(study, Tally)
    return LadderPage(
        name=name,
        title=study.ladder.title,
        route=route(name),
        about=about,
        best=None if emulated else _best(study, beside.limits),
        rungs=[_rung(study, rung, beside) for rung in study.rungs],
        tree=_tree(study),
        chart=None if emulated else charts.climb(study),
        signs=roofs.explained(row for row in study.rows if row.status == "ok"),
    )


def _best(study: Study, limits: Limits) -> dict[str, str] | None:
    """Return the line of the overview that is a ladder's, what a phone has room for first."""
    line = speed_tables.best(study, limits)
    first = ("ladder", "speed", "% of ceiling", "best rung")
    return {key: line[key] for key in (*first, *line)} if line else None


def _tree(study: Study) -> list[Node]:
    """Return the roots of the tree: steps, then what builds on nothing and is built on by none."""
    names = {rung.name for rung in study.rungs}
    best = study.best_step(study.headline)

    def node(rung: Rung) -> Node:
        row = study.lead(rung)
        speed = _speeds(study, row, None)["speed"] if row else "not measured"
        if row and row.case != study.headline:
            speed += f" at {study.differs(row.case)}"
        above = [node(each) for each in study.rungs if each.builds_on == rung.name]
        is_best = best is not None and best.rung == rung.name
        role = "" if rung.is_step else _role(rung)
        return Node(rung.name, route(study.ladder.name, rung.name), speed, role, is_best, above)

    roots = [rung for rung in study.rungs if rung.builds_on not in names]
    return [node(rung) for rung in sorted(roots, key=lambda rung: not rung.is_step)]


def _role(rung: Rung) -> str:
    role = "library" if rung.role == "peer" else rung.role
    return ", ".join(filter(None, (role, rung.precision)))


def _rung(study: Study, rung: Rung, beside: Beside) -> RungPage:
    row = study.lead(rung)
    line = {"speed": ""} | speed_tables.factors(study, rung)
    line |= dict.fromkeys((speed_tables.GAIN, "% of ceiling", "× peer", "limited by"), "")
    limiter = beside.limits.limiter(row) if row else None
    facts: list[tuple[str, str]] = []
    if row:
        facts += _speeds(study, row, limiter).items()
        facts.append(("chose" if row.chosen else "best at", values_of(rung, row)))
        facts.append(("time", units.duration(row.seconds)))
        facts += markdown.resources(row).items()
    if row and (row.case == study.headline or study.ladder.is_roof):
        line |= _speeds(study, row, limiter)
        if row.case != study.headline:
            line["speed"] += f" at {study.differs(row.case)}"
    else:
        headline = study.best.get((rung.name, study.headline))
        why = f"{headline.status}: {headline.reason}" if headline else "not measured"
        line["limited by"] = why if headline else ""
        facts.insert(0, ("headline", f"{study.spell(study.headline)}: {why}".lstrip(": ")))
    facts += [("path", _path(study, rung)), ("shows", rung.shows)]
    case = study.spell(row.case) if row else ""
    own = {each.name: each for each in study.rows if each.rung == rung.name}
    tracks = [track for track in beside.trend.tracks if track.name in own] if beside.trend else []
    lead = [track for track in tracks if row and track.name == row.name]
    return RungPage(
        name=rung.name,
        route=route(study.ladder.name, rung.name),
        role=_role(rung),
        idea=rung.idea,
        case=f"At {case}" if case else "Measured" if row else "Not measured",
        facts=[(what, value) for what, value in facts if value],
        line=line,
        limiter=str(limiter) if limiter else "",
        shares=_shares(beside.limits.shares(row), limiter) if row else [],
        parent=rung.builds_on,
        changes=_changes(row, study.parent(row), rung.target, study) if row else [],
        counters=_counters(row, study.results.registry) if row else [],
        place=beside.sources.place(study.ladder.name, rung.name) if beside.sources else None,
        samples=charts.samples(beside.samples.get(bare(row.name), [])) if row else None,
        history=[
            {"case": study.spell(own[track.name].case), "sweep": own[track.name].sweep}
            | history_text.line(beside.trend, track)
            | {"benchmark": ""}  # which the others tell
            for track in tracks
            if beside.trend
        ],
        track=charts.track(beside.trend.history, lead[0], row, case)
        if beside.trend and lead and row
        else None,
    )


def _path(study: Study, rung: Rung) -> str:
    """Write the rungs that one builds on, from the root up to itself; empty of a root."""
    path = study.ladder.path(rung.name)
    return " → ".join(f"`{each.name}`" for each in reversed(path)) if rung.builds_on else ""


def _speeds(study: Study, row: Row, limiter: Limiter | None) -> dict[str, str]:
    roof = study.ladder.is_roof
    speed = own_speed(row) if roof else study.speed(row)
    quantity = own_quantity(row) if roof else study.ladder.quantity
    signs = roofs.marks(row) if speed > 0 else ""
    return {
        "speed": units.rate(quantity, speed) + signs,
        speed_tables.GAIN: study.to_parent(row) if speed > 0 else "",
        "% of ceiling": speed_tables.of_ceiling(study, row),
        "× peer": study.to_peer(row) if speed > 0 else "",
        "limited by": str(limiter) if limiter else "",
    }


def _shares(shares: Mapping[str, float], limiter: Limiter | None) -> list[Share]:
    """Return the shares by size; those above the limiter's say why they are not it."""
    own = shares.get(limiter.name, math.inf) if limiter else math.inf
    return [
        Share(
            name,
            units.percent(100 * share),
            round(100 * min(share, 1.0), 1),
            limiter is not None and limiter.name == name,
            _yields(name, share, limiter) if limiter and share > own else "",
        )
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if name in COUNTS_FROM and share >= 0.005
    ]


def _yields(name: str, share: float, limiter: Limiter) -> str:
    """Say why a share is not the limiter though it is the larger."""
    if share < COUNTS_FROM[name]:
        return f"counts from {100 * COUNTS_FROM[name]:.0f}% on"
    if limiter.name == LAUNCH:
        return f"counts only where the launch takes less than {100 * COUNTS_FROM[LAUNCH]:.0f}%"
    if name == SLOTS:
        return (
            "every instruction takes an issue slot, so a limit whose share is four fifths of "
            f"theirs counts before them: {limiter}"
        )
    return ""


_LEAST_CHANGE, _LEAST_SHARE, _MOST_CHANGES = 1.1, 0.05, 10


def _changes(row: Row, parent: Row | None, target: str, study: Study) -> list[Moved]:
    """Return the counters that an idea changed most, its target first.

    Shares of less than `_LEAST_SHARE` on both sides are left out: they change by chance.
    """
    if not parent:
        return []
    known = study.results.registry
    about = {counters.OWN[name].group for name in ("warp_instructions", "dram_bytes", "registers")}
    about.add(counters.OWN[counters.STALLS[0]].group)
    found: dict[str, float] = {}
    for name in COUNTERS:
        before, after = parent.counter(name), row.counter(name)
        if math.isnan(before) or math.isnan(after) or known[name].group not in about:
            continue
        least, most = sorted((before, after))
        small = known[name].unit == "share" and most < _LEAST_SHARE
        ratio = most / least if least > 0 else math.inf if most > 0 else 1.0
        if name == target or (ratio >= _LEAST_CHANGE and not small):
            found[name] = ratio
    names = sorted(found, key=lambda name: (name != target, -found[name]))[:_MOST_CHANGES]
    return [
        Moved(
            name,
            _counter(known[name], parent.counter(name)),
            _counter(known[name], row.counter(name)),
            _ratio(parent.counter(name), row.counter(name)),
            name == target,
        )
        for name in names
    ]


def _ratio(before: float, after: float) -> str:
    """Write how many times as much it has become; empty where it was or is nothing."""
    return f"× {units.number(after / before)}" if before > 0 and after > 0 else ""


def _counters(
    row: Row, known: Mapping[str, counters.Counter]
) -> list[tuple[str, list[tuple[str, str]]]]:
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in counters.GROUPS}
    files_own = [name for name in row.counters if name in known and name not in counters.OWN]
    for name in dict.fromkeys([*COUNTERS, *files_own]):
        if (value := row.counter(name)) == value:
            told = _counter(known[name], value)
            groups.setdefault(known[name].group, []).append((name, told))
    return [(group, entries) for group, entries in groups.items() if entries]


def _counter(counter: counters.Counter, value: float) -> str:
    quantity, second, _ = counter.name.partition("_per_second")
    if second:
        return units.rate(quantity, value)
    if counter.unit == "s":
        return units.duration(value)
    if counter.unit == "Hz":
        return f"{value / 1e6:.0f} MHz"
    if counter.unit == "%":
        return units.percent(value)
    if counter.group == counters.ENERGY and counter.unit not in ("", "share"):
        return units.scaled(value, counter.unit)
    if counter.group == "Accuracy":
        return f"{value:.2g}"
    return units.percent(100 * value) if counter.unit == "share" else units.count(value)
