# SPDX-License-Identifier: MIT
"""The instruction roofline: how fast a ladder issues, and what its accesses ask of memory.

After N. Ding and S. Williams, "An Instruction Roofline Model for GPUs", 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ladder.analysis import roofs
from ladder.analysis.study import Study, describe, name_of
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.counters import OPERATIONS, SPACES
from ladder.model.rows import Row
from ladder.report.plots import quantities, roofline, slopes, style

_PAGE = 9.0  # inches: names of walls stand beside each other
_LEFT, _HEIGHT, _LEAST_WIDTH = 0.75, 3.7, 4.0  # inches, of the roofline
_TOP, _LINE, _BETWEEN, _ROW, _BOTTOM = 1.1, 0.2, 0.75, 0.28, 0.8
_WALLS = {  # what one instruction of a warp asks for, in transactions
    "global": {1: "broadcast", 4: "unit stride", 32: "full scatter"},
    "shared": {1: "no conflicts", 32: "one bank"},
}
_MARKERS = {"load": (">", "▷", -0.17), "store": ("<", "◁", 0.17), "atomic": ("s", "□", 0.0)}
_FEW = 0.01  # share of a rung's accesses under which an operation tells nothing
_NAMED = 2  # of the rungs that are left out, at most
_LEAST = 1e-3  # share of the transactions asked for under which a level is out of sight
_GIGA = 1e9


@dataclass(frozen=True)
class Point:
    """One rung at the headline."""

    rung: Rung
    row: Row
    transactions: dict[str, float]  # by level of memory, that which the accesses ask first

    @property
    def instructions(self) -> float:
        """Instructions that its warps issued."""
        return quantities.counter(self.row, "warp_instructions")

    @property
    def rate(self) -> float:
        """Warp instructions per second, in GIPS."""
        return self.instructions / self.row.seconds / _GIGA

    def intensities(self) -> dict[str, float]:
        """Warp instructions per transaction, by level of memory."""
        return {level: self.instructions / n for level, n in self.transactions.items()}

    def accesses(self, space: str) -> dict[str, float]:
        """Instructions a transaction, by operation; those left out that are few."""
        asked = {o: quantities.counter(self.row, f"{space}_{o}_requests") for o in OPERATIONS}
        given = {
            o: quantities.counter(self.row, f"{space}_{o}_{SPACES[space]}") for o in OPERATIONS
        }
        most = max((n for n in asked.values() if n > 0), default=0.0)
        return {
            o: asked[o] / given[o] for o in OPERATIONS if asked[o] > _FEW * most and given[o] > 0
        }


def points(study: Study) -> list[Point]:
    """The rungs that the hardware counted at the headline; none where that counts FLOPs.

    Without those whose accesses it does not count, or go to another memory than the ladder's, such
    as bulk copies, and loads from other blocks.
    """
    rows = _counted(study)
    if any(row.flops_per_second > 0 for _, row in rows):
        return []
    space = "shared" if study.ladder.ceiling.endswith("/shared_memory") else "global"
    found = [
        Point(rung, row, _transactions(row, space))
        for rung, row in rows
        if not study.has_own_ceiling(row)
    ]
    return [point for point in found if point.transactions]


def _counted(study: Study) -> list[tuple[Rung, Row]]:
    """The rungs that the hardware counted at the headline, with their rows."""
    rows = [(rung, study.ok(rung, study.headline)) for rung in study.rungs]
    return [(rung, row) for rung, row in rows if row and quantities.counted(row)]


def _transactions(row: Row, space: str) -> dict[str, float]:
    """Transactions by level; only the levels that had any to speak of."""
    if space == "shared":
        found = {"shared memory": quantities.wavefronts(row)}
    else:
        moved = quantities.level_bytes(row)
        found = {"L1": quantities.sectors(row)}
        found |= {level: moved[level] / quantities.SECTOR for level in ("L2", "DRAM")}
    first = next(iter(found.values()))
    return {level: count for level, count in found.items() if count > _LEAST * first > 0}


def draw(study: Study, found: list[Point]) -> Figure:
    """Draw the roofline of all instructions, and below it each rung's loads and stores.

    Both have one x axis, so that the walls of the accesses stand under the roofs.
    """
    space = "shared" if "shared memory" in found[0].transactions else "global"
    unit = SPACES[space].removesuffix("s")
    names = [name_of(point.rung, point.row) for point in found]
    labels = 0.4 + style.widest(names, style.SMALL)
    width = max(_PAGE - _LEFT - labels, _LEAST_WIDTH)
    body = _ROW * len(found)
    shown = {point.rung.name for point in found}
    others = [rung.name for rung, _ in _counted(study) if rung.name not in shown]
    top = _TOP + (_LINE if others else 0)
    height = top + _HEIGHT + _BETWEEN + body + _BOTTOM
    memory, issue = _roofs(study, space, found)
    dashed = ". Roofs: ── measured, ╌╌ datasheet" if any(m.peak > 0 for m in memory) else ""
    figure = style.page(
        _LEFT + width + labels,
        height,
        f"{study.ladder.title}: instruction roofline",
        f"At {study.spell(study.headline)}{dashed}",
        describe(study.results),
    )
    if others:
        page = _LEFT + width + labels
        named = ", ".join(others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        text = f"Left out, as their accesses are of another kind: {named}{more}"
        figure.text(0.2 / page, 1 - 0.74 / height, text, color=style.GREY)
    upper = style.panel(figure, _LEFT, height - top - _HEIGHT, width, _HEIGHT)
    lower = style.panel(figure, _LEFT, _BOTTOM, width, body)
    titles: style.Look = {"loc": "left", "size": style.NORMAL, "weight": "bold"}
    upper.set_title(_asked(found, space), pad=8, **titles)
    lower.set_title(_told(found, space), pad=18, **titles)
    _limits(upper, lower, found, space, memory, issue)
    upper.set_ylabel("GIPS: 10⁹ warp instructions per second")
    lower.set_xlabel(f"warp instructions per {unit}")
    for wall in _WALLS[space]:
        upper.axvline(1 / wall, color=style.FAINT, linewidth=1, linestyle=":", zorder=0)
        lower.axvline(1 / wall, color=style.GREY, linewidth=1.2, linestyle=":", zorder=0)
        place: style.Look = {"coordinates": ("data", "axes fraction"), "ha": "center"}
        style.note(lower, _WALLS[space][wall], (1 / wall, 1), (0, 4), **place)
    spans = [(min(at), max(at), p.rate) for p in found if (at := p.intensities().values())]
    slopes.draw(upper, (width, _HEIGHT), memory, issue, spans)
    _all_instructions(upper, study, found, names, width)
    _accesses(lower, study, found, names, space)
    return figure


def _asked(found: list[Point], space: str) -> str:
    """Title of the upper panel, which says what its markers are."""
    if space == "shared":
        return "all instructions, a wavefront of shared memory"
    levels = [level for level in ("L2", "DRAM") if any(level in p.transactions for p in found)]
    moved = [f"{roofline.GLYPHS[level]} through {level}" for level in levels]
    return ", ".join(["all instructions, a sector of 32 bytes ● asked of L1", *moved])


def _told(found: list[Point], space: str) -> str:
    """Title of the lower panel, likewise."""
    used = {operation for point in found for operation in point.accesses(space)}
    kinds = [f"{_MARKERS[o][1]} {o}s" for o in OPERATIONS if o in used]
    return f"only {', '.join(kinds)}: the walls are patterns of 4-byte words"


def _roofs(
    study: Study, space: str, found: list[Point]
) -> tuple[list[slopes.Roof], list[slopes.Roof]]:
    """Measured roofs as slopes in 10⁹ transactions a second, and the most that a roof issued."""
    measured = roofs.measured(study.results)
    size = quantities.WAVEFRONT if space == "shared" else quantities.SECTOR
    memory = []
    for roof in roofline.memory_roofs(study, measured):
        level = roof.level
        if space == "global" and level == "shared memory":
            level = "L1"  # the same array: 128 bytes per clock
        if any(level in point.transactions for point in found):
            scale = size * _GIGA
            text = roof.told(level, scale, "GTXN/s")
            memory.append(slopes.Roof(text, roof.speed / scale, roof.peak / scale))
    rates = {
        name: quantities.counter(row, "warp_instructions") / row.seconds / _GIGA
        for name, row in measured.items()
    }
    name = max((n for n in rates if rates[n] > 0), key=lambda n: rates[n], default="")
    text = f"issue slots {units.number(rates[name])} GIPS ({name})" if name else ""
    return memory, [slopes.Roof(text, rates[name])] if name else []


def _limits(
    upper: Axes,
    lower: Axes,
    found: list[Point],
    space: str,
    memory: list[slopes.Roof],
    issue: list[slopes.Roof],
) -> None:
    """Scale both panels: the walls, every point and the ends of the slopes are in sight."""
    every = [x for p in found for x in p.intensities().values()]
    every += [1 / wall for wall in _WALLS[space]]
    every += [x for p in found for x in p.accesses(space).values()]
    every += [i.measured / m.measured for i in issue for m in memory]
    rates = [point.rate for point in found]
    upper.set(xscale="log", yscale="log", xlim=(min(every) / 1.6, 2.5 * max(every)))
    upper.set_ylim(min(rates) / 1.7, 1.8 * max(*rates, *(i.highest for i in issue)))
    lower.set(xscale="log", xlim=upper.get_xlim(), ylim=(len(found) - 0.5, -0.5), yticks=[])
    for axes in (upper, lower):
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=30))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _fraction(x)))
    low, high = upper.get_xlim()
    if high / low > 2**14:
        for axes in (upper, lower):
            axes.xaxis.set_major_locator(LogLocator(base=4, numticks=30))
    style.log_ticks(upper.yaxis)
    upper.grid(color=style.FAINT, linewidth=0.5)
    upper.tick_params(axis="x", labelbottom=False)
    lower.grid(axis="y", color=style.FAINT, linewidth=0.5)


def _fraction(x: float) -> str:
    """Write a power of two as a number or as a part of one."""
    return f"{x:.0f}" if x >= 1 else f"1/{1 / x:.0f}"


def _all_instructions(
    axes: Axes, study: Study, found: list[Point], names: list[str], width: float
) -> None:
    colours = style.colours(study.ladder)
    ends = []
    for point, name in zip(found, names, strict=True):
        colour = colours[point.rung.name]
        at = point.intensities()
        axes.plot(
            [min(at.values()), max(at.values())], [point.rate] * 2, color=colour, linewidth=0.7
        )
        first, *further = at
        for level in further:
            hollow: style.Look = {"markerfacecolor": "white", "markeredgecolor": colour}
            shape = roofline.LEVELS[level]
            axes.plot(at[level], point.rate, shape, markersize=8, markeredgewidth=1.2, **hollow)
        marker = "D" if point.rung.role == "peer" else "o"
        look: style.Look = {"markersize": 5.5, "markeredgewidth": 0, "zorder": 4}
        axes.plot(at[first], point.rate, marker, color=colour, **look)
        ends.append((max(at.values()), point.rate, name, colour))
    style.label_ends(axes, ends, width, _HEIGHT)


def _accesses(axes: Axes, study: Study, found: list[Point], names: list[str], space: str) -> None:
    colours = style.colours(study.ladder)
    for y, (point, name) in enumerate(zip(found, names, strict=True)):
        colour = colours[point.rung.name]
        for operation, x in point.accesses(space).items():
            marker, _, offset = _MARKERS[operation]
            look: style.Look = {
                "markersize": 5.5,
                "markerfacecolor": "white",
                "markeredgecolor": colour,
            }
            axes.plot(x, y + offset, marker, markeredgewidth=1.2, **look)
        place: style.Look = {"coordinates": ("axes fraction", "data"), "va": "center"}
        style.note(axes, name, (1, y), (72 * 0.15, 0), color=style.dark(colour), **place)
    axes.set_yticks(range(len(found)), [""] * len(found))
    axes.tick_params(axis="y", length=0)
