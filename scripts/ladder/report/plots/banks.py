# SPDX-License-Identifier: MIT
"""One request on the 32 banks of shared memory: which lane wants which word, before and after."""

from __future__ import annotations

import re
from collections import Counter

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ladder.analysis.emulated_study import Tally
from ladder.analysis.study import describe
from ladder.io.emulator_details import LANES, Details, Line
from ladder.model.catalogue import Rung
from ladder.model.rows import bare
from ladder.report.plots import style

BANKS, WORD = 32, 4  # a bank gives one word of 4 bytes per wavefront
_CELL, _GAP, _LEFT, _TOP, _BOTTOM = 0.135, 0.7, 0.65, 1.2, 0.55  # inches
_COUNTS, _BETWEEN = 0.7, 0.45  # of the bars below, and between them and the cells
_MOST_ROWS = 40
_PADDING, _NO_PADDING = "padding", "0"  # the factor of an experiment, and what has none
_OF_BANKS = re.compile(
    r"shared_(load|store)_(wavefronts|conflicts)"
)  # counters that padding changes


def chosen(tally: Tally, details: Details) -> tuple[tuple[str, Line], tuple[str, Line]] | None:
    """Return (rung, request) before padding and after it, or None if no rung is a padded one.

    The catalogue tells which those are: of an experiment rungs that differ in the factor `padding`
    alone; else a rung whose target is the wavefronts or conflicts of loads or stores, after the one
    that it builds on, if it leaves no conflict. The request is that which takes most transactions
    before, and the worst of the same operation after.
    """
    rungs = [rung for rung, _ in tally.shown]
    rows = {rung.name: bare(row.name) for rung, row in tally.shown}
    for after in rungs:
        before = _unpadded(after, rungs)
        if not before:
            continue
        worst = _worst(details, rows[before.name], None)
        other = worst and _worst(details, rows[after.name], worst.operation)
        if not (worst and other and worst.worst > other.worst):
            continue
        if after.factors or other.worst <= max(1, other.bytes / WORD):
            return (before.name, worst), (after.name, other)
    return None


def _unpadded(after: Rung, rungs: list[Rung]) -> Rung | None:
    """Return the rung that `after` is without its padding; None of one that has none."""
    if _PADDING in after.factors:
        plain = {**after.factors, _PADDING: _NO_PADDING}
        return next((r for r in rungs if r.factors == plain and r is not after), None)
    if not _OF_BANKS.match(after.target):
        return None
    return next((r for r in rungs if r.name == after.builds_on), None)


def _worst(details: Details, row: str, operation: str | None) -> Line | None:
    found = [
        line
        for line in details.lines
        if bare(line.row) == row
        and line.space == "shared"
        and operation in (None, line.operation)
        and any(at is not None for at in line.worst_request)
    ]
    return max(found, key=lambda line: line.worst, default=None)


def draw(tally: Tally, *requests: tuple[str, Line]) -> Figure:
    """Draw requests side by side: banks across, rows of 32 words down, a cell a word wanted."""
    words = [_words(line) for _, line in requests]
    listed = [_listed(found) for found in words]
    side = BANKS * _CELL
    down = max(map(len, listed)) * _CELL
    width = _LEFT + len(requests) * side + (len(requests) - 1) * _GAP + 0.3
    height = _TOP + down + _BETWEEN + _COUNTS + _BOTTOM
    title = f"{tally.title}: one request on the 32 banks"
    about = f"{describe(tally.results)}. A number is the lane that wants the word"
    figure = style.page(width, height, title, about)
    for i, (name, line) in enumerate(requests):
        left = _LEFT + i * (side + _GAP)
        own = len(listed[i]) * _CELL
        cells = style.panel(figure, left, height - _TOP - own, side, own)
        _cells(cells, words[i], listed[i])
        count = f"{line.worst:.0f} wavefront{'s' if line.worst != 1 else ''}"
        look: style.Look = {
            "coordinates": "axes fraction",
            "color": "black",
            "size": style.NORMAL + 1,
        }
        style.note(cells, f"{name}: {count}", (0, 1), (0, 18), weight="bold", **look)
        where = f"the worst {line.operation} of {line.file}:{line.line:.0f}"
        style.note(cells, where, (0, 1), (0, 5), coordinates="axes fraction")
        counts = style.panel(figure, left, _BOTTOM, side, _COUNTS)
        _bars(counts, words[i], max(len(found) for found in listed))
        if i == 0:
            cells.set_ylabel("bytes from the start of shared memory", size=style.SMALL)
            counts.set_ylabel("words", size=style.SMALL)
    return figure


def _words(line: Line) -> dict[int, int]:
    """Return the lane by word; of several lanes that want one word, the first."""
    found: dict[int, int] = {}
    for lane, at in enumerate(line.worst_request):
        if at is not None:
            first, last = int(at) // WORD, int(at + line.bytes - 1) // WORD
            for word in range(first, last + 1):
                found.setdefault(word, lane)
    return found


def _listed(words: dict[int, int]) -> list[int]:
    """Rows of 32 words to show: all from the first to the last, unless that is a long way."""
    rows = sorted({word // BANKS for word in words})
    every = list(range(rows[0], rows[-1] + 1))
    return every if len(every) <= _MOST_ROWS else rows


def _cells(axes: Axes, words: dict[int, int], rows: list[int]) -> None:
    places = {row: y for y, row in enumerate(rows)}
    for x in range(BANKS + 1):
        axes.axvline(x, color=style.FAINT, linewidth=0.4)
    for y in range(len(rows) + 1):
        axes.axhline(y, color=style.FAINT, linewidth=0.4)
    shades = mpl.colormaps["viridis"]
    for word, lane in words.items():
        x, y = word % BANKS, places[word // BANKS]
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=shades(lane / (LANES - 1)), linewidth=0))
        colour = "white" if lane < 0.6 * LANES else "black"
        middle: style.Look = {"ha": "center", "va": "center_baseline"}
        axes.text(x + 0.5, y + 0.55, str(lane), size=5.5, color=colour, **middle)
    axes.set(xlim=(0, BANKS), ylim=(len(rows), 0), xticks=[])
    shown = range(0, len(rows), 8 if len(rows) > 8 else 1)
    axes.set_yticks([y + 0.5 for y in shown], [str(rows[y] * BANKS * WORD) for y in shown])
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _bars(axes: Axes, words: dict[int, int], limit: int) -> None:
    """Draw how many words each bank has to give: the most is the number of wavefronts."""
    counts = Counter(word % BANKS for word in words)
    for bank, count in counts.items():
        axes.bar(bank + 0.5, count, width=0.8, color=style.ALARM if count > 1 else style.GREY)
    bank, most = max(counts.items(), key=lambda item: item[1])
    axes.set(xlim=(0, BANKS), ylim=(0, max(limit, most)), xlabel="bank")
    axes.set_yticks([most])
    axes.set_xticks([x + 0.5 for x in range(0, BANKS, 4)], map(str, range(0, BANKS, 4)))
