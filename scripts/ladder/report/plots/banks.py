# SPDX-License-Identifier: MIT
"""One request on the 32 banks of shared memory: where its words are, before and after."""

from __future__ import annotations

import re
from collections import Counter

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.emulated_study import Tally
from ladder.analysis.study import describe
from ladder.io.emulator_details import Details, Line
from ladder.model.catalogue import Rung
from ladder.model.rows import bare
from ladder.report.plots import style

BANKS, WORD = 32, 4  # a bank gives one word of 4 bytes per wavefront
_CELL, _GAP, _LEFT, _TOP, _BOTTOM = 0.083, 0.33, 0.25, 1.35, 0.85  # inches
_COUNTS, _BETWEEN = 0.6, 0.25  # of the bars below, and between them and the cells
_MOST_ROWS = 40
_NAMED = (0, 8, 16, 24, 31)  # lanes
_USED = style.OURS
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
    """Draw requests side by side: banks across, rows of 32 words down, a square per word."""
    words = [_words(line) for _, line in requests]
    listed = [_listed(found) for found in words]
    side = BANKS * _CELL
    down = max(map(len, listed)) * _CELL
    width = max(style.PAGE, _LEFT + len(requests) * (side + _GAP))
    height = _TOP + down + _BETWEEN + _COUNTS + _BOTTOM
    title = f"{tally.title}: one {requests[0][1].operation} of a warp on the 32 banks"
    about = "Rows are 32 words. Squares are words that lanes want. Words in one bank take turns"
    figure = style.page(width, height, title, about, describe(tally.results))
    for i, (name, line) in enumerate(requests):
        left = _LEFT + i * (side + _GAP)
        own = len(listed[i]) * _CELL
        cells = style.panel(figure, left, height - _TOP - own, side, own)
        _cells(cells, words[i], listed[i])
        count = f"{line.worst:.0f} wavefront{'s' if line.worst != 1 else ''}"
        look: style.Look = {"coordinates": "axes fraction", "color": "black"}
        heading = look | {"weight": "bold", "size": style.NORMAL + 1}
        style.note(cells, f"{name}: {count}", (0, 1), (0, 21), **heading)
        where = f"{line.file.rpartition('/')[2]}:{line.line:.0f}"
        style.note(cells, where, (0, 1), (0, 7), coordinates="axes fraction")
        counts = style.panel(figure, left, _BOTTOM, side, _COUNTS)
        _bars(counts, words[i], max(len(found) for found in listed))
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
    """Draw a square per word, and name a few lanes beside their first."""
    places = {row: y for y, row in enumerate(rows)}
    at = {word: (word % BANKS, places[word // BANKS]) for word in sorted(words)}
    axes.set(xlim=(0, BANKS), ylim=(len(rows), 0), xticks=[], yticks=[])
    for x in range(0, BANKS + 1, 4):
        axes.axvline(x, color=style.FAINT, linewidth=0.4)
    for y in (0, len(rows)):
        axes.axhline(y, color=style.FAINT, linewidth=0.4)
    style.boxes(axes, [(x + 0.05, y + 0.05, 0.9, 0.9) for x, y in at.values()], facecolor=_USED)
    first = {lane: at[word] for word, lane in sorted(words.items(), reverse=True)}
    for lane in _NAMED if len(rows) > 2 * len(_NAMED) else ():
        if lane in first:
            x, y = first[lane]
            right = x < 0.7 * BANKS
            place: style.Look = {"ha": "left" if right else "right", "va": "center"}
            text = f"lane {lane}"
            style.note(axes, text, (x + right, y + 0.5), (5 if right else -10, 0), **place)
    axes.spines[:].set_visible(False)


def _bars(axes: Axes, words: dict[int, int], limit: int) -> None:
    """Draw how many words each bank has to give: the most is the number of wavefronts."""
    counts = Counter(word % BANKS for word in words)
    for bank, count in counts.items():
        axes.bar(bank + 0.5, count, width=0.8, color=style.PEER if count > 1 else style.GREY)
    bank, most = max(counts.items(), key=lambda item: item[1])
    axes.set(xlim=(0, BANKS), ylim=(0, max(limit, most)), xlabel="bank", yticks=[])
    text = f"{most} word{'s' if most > 1 else ''} from {'each' if most == 1 else 'one'} bank"
    right = bank < BANKS / 2 and most > 1
    at = (bank + 1, most) if right else (0, most)
    style.note(axes, text, at, (4, 0 if right else 4), va="top" if right else "bottom")
    axes.set_xticks([x + 0.5 for x in range(0, BANKS, 8)], map(str, range(0, BANKS, 8)))
