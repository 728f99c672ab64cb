# SPDX-License-Identifier: MIT
"""Which rung wins where: few rungs, of which one is near the fastest at every shape."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from ladder.analysis.shapes import axis_values
from ladder.analysis.study import Study, describe
from ladder.model.rows import Row
from ladder.report.plots import cases, panels, style
from ladder.report.plots.cases import Group

NEAR = 0.98  # of the fastest, from which a rung is as good as it
_TOP, _BOTTOM = 0.75, 0.3  # inches
_STRIP, _BOX = 0.62, 0.23  # inches: a row of strips, and the coloured part of it
_GAP = 0.07  # inches, the least between texts
_FEW = 4  # panels, beyond which there are strips
_REST = "#f0f0f0"
_OWN = "#00785a"  # of rungs with a limit of their own
_COLOURS = (style.OURS, _OWN, "#a8457f", "#8a6d00", "#404040", "#5b7fa6")
_Boxes = dict[str, list[tuple[float, float, float, float]]]
_Told = Mapping[tuple[str, str], str]  # percent by rung and case


@dataclass(frozen=True)
class Map:
    """The rungs that win somewhere, those with a limit of their own last, and the library."""

    rungs: dict[str, bool]  # and whether their limit is their own
    peer: str  # the library's name; empty where none was measured
    rows: Mapping[tuple[str, str], Row]  # by rung, or "" for the fastest library, and case
    groups: list[Group]

    def fastest(self, study: Study, case: str, *, own: bool) -> float:
        """Speed of the fastest rung of a kind at a case; 0 where none ran."""
        rows = [self.rows.get((rung, case)) for rung, kind in self.rungs.items() if kind == own]
        return max((study.speed(row) for row in rows if row), default=0.0)

    def winners(self, study: Study) -> dict[str, str]:
        """Return each case's winner: of the rungs near the fastest, the one most often near."""
        ours = {key: study.speed(row) for key, row in self.rows.items() if key[0] in self.rungs}
        best = _fastest(ours)
        near: dict[str, list[str]] = {}
        for (rung, case), speed in ours.items():
            if speed >= NEAR * best[case]:
                near.setdefault(case, []).append(rung)
        count = Counter(rung for rungs in near.values() for rung in rungs)
        return {case: max(rungs, key=count.__getitem__) for case, rungs in near.items()}


def chosen(study: Study) -> Map | None:
    """Return what to draw; None if there is one case only, or one rung wins everywhere."""
    rows: dict[tuple[str, str], Row] = {}
    for row in study.best.values():
        rung = study.rung(row)
        if row.status == "ok" and study.speed(row) > 0 and rung.is_ours and not rung.precision:
            key = (row.chosen or row.rung, row.case)  # what a choice ran is that step's speed
            if key not in rows or study.speed(row) > study.speed(rows[key]):
                rows[key] = row
    own = {name for (name, _), row in rows.items() if study.has_own_ceiling(row)}
    plain = {key: study.speed(row) for key, row in rows.items() if key[0] not in own}
    names = _cover({key: study.speed(row) for key, row in rows.items()}) | _cover(plain)
    measured = {case for _, case in rows}
    shown = [case for case in study.cases if case in measured]
    if len(shown) < 2 or len(names) < 2:
        return None
    peers = [peer for case in shown if (peer := study.peer("", case))]
    rows |= {("", peer.case): peer for peer in peers}
    told = {peer.rung for peer in peers}
    listed = [rung.name for rung in study.ladder.rungs if rung.name in names]
    return Map(
        {name: name in own for name in sorted(listed, key=own.__contains__)},
        told.pop() if len(told) == 1 else "library" * bool(told),
        rows,
        _groups(study, shown),
    )


def _cover(speeds: Mapping[tuple[str, str], float]) -> set[str]:
    """Pick rungs until one is near the fastest at every case: a greedy set cover.

    `speeds` are by (rung, case).
    """
    best = _fastest(speeds)
    near = {key for key, speed in speeds.items() if speed >= NEAR * best[key[1]]}
    picked: set[str] = set()
    while near:
        count = Counter(sorted(name for name, _ in near))
        name = max(count, key=count.__getitem__)
        done = {case for other, case in near if other == name}
        near = {key for key in near if key[1] not in done}
        picked.add(name)
    return picked


def _fastest(speeds: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return by case the highest of the speeds that are given by rung and case."""
    best: dict[str, float] = {}
    for (_, case), speed in speeds.items():
        best[case] = max(speed, best.get(case, 0.0))
    return best


def _groups(study: Study, shown: list[str]) -> list[Group]:
    """Group cases; shapes that are not one of the series of sizes stand apart."""
    axis = cases.across(study, shown)
    sizes = [case for case in shown if study.shapes.in_line(case)]
    odd = [case for case in shown if not study.shapes.in_line(case)]
    if not sizes:
        return cases.grouped(study, odd, axis)
    apart = [replace(group, odd=True) for group in cases.grouped(study, odd, axis)]
    return cases.grouped(study, sizes, axis) + apart


def draw(study: Study, found: Map) -> Figure:
    """Draw percent of the limit by rung and case; of many facets by facet and case."""
    percents = {key: _percent(study, row) for key, row in found.rows.items()}
    if all(math.isnan(percent) for percent in percents.values()):
        raise style.NothingToDrawError("no row has percent_of_ceiling")
    told = {key: _told(percent) for key, percent in percents.items()}
    many = len(found.groups) > _FEW
    return (_strips if many else _tables)(study, found, told)


def _percent(study: Study, row: Row) -> float:
    """Of the ladder's limit, whatever the row's own is, so that a column can be compared."""
    value = 100 * study.speed(row) / study.ceiling(row.case)
    return study.percent(row) if math.isnan(value) else value


def _told(percent: float) -> str:
    return "" if math.isnan(percent) else f"{percent:.{0 if percent >= 9.95 else 1}f}"


def _tables(study: Study, found: Map, told: _Told) -> Figure:
    """Draw a panel per group, with a row per rung and a column per case."""
    names = [rung + "*" * own for rung, own in found.rungs.items()]
    names += [found.peer] if found.peer else []
    key = [("fastest of these", style.OURS), ("within 2% of it", style.PALE)]
    if any(found.rungs.values()):
        key.append(("fastest with a limit of its own*", _OWN))
    across = cases.words(" × ".join(study.shapes.axes))
    errors = any(row.error_over_library > 1 for row in found.rows.values())
    about = (
        f"Percent of {study.ladder.ceilings}, by {across}; rungs not shown are at most 2% faster"
    )
    about += "; errors ignored" * errors
    page = _page(study, about)
    return panels.draw(page, names, [_table(study, found, g, told) for g in found.groups], key)


def _page(study: Study, about: str) -> tuple[str, str, str]:
    return f"{study.ladder.title}: which rung wins where", about, describe(study.results)


def _table(study: Study, found: Map, group: Group, told: _Told) -> panels.Panel:
    rungs = [*found.rungs, *([""] if found.peer else [])]
    cells = {}
    for x, case in enumerate(group.cases.values()):
        best = {own: found.fastest(study, case, own=own) for own in (False, True)}
        for y, rung in enumerate(rungs):
            if not (row := found.rows.get((rung, case))):
                continue
            own, speed = found.rungs.get(rung, False), study.speed(row)
            fill, ink, bold = _REST, style.PEER if not rung else style.GREY, False
            if speed >= best[own] if rung else speed > max(best.values()):
                fill = style.PEER if not rung else _OWN if own else style.OURS
                ink, bold = "white", True
            elif rung and speed >= NEAR * best[own]:
                fill, ink = style.PALE, "black"
            cells[x, y] = panels.Cell(told[rung, case], fill, ink, bold)
    return panels.Panel(group.title, list(group.cases), cells)


def _strips(study: Study, found: Map, told: _Told) -> Figure:
    """Draw a strip per group, a column per case: the winner, and below it the library."""
    usual = next(g.others for g in found.groups if study.headline in g.cases.values())
    titles = [_strip_title(group, usual) for group in found.groups]
    labels = sorted({label for group in found.groups for label in group.cases}, key=_size)
    won = found.winners(study)
    used = [rung for rung in found.rungs if rung in won.values()]
    colours = {rung: _COLOURS[i % len(_COLOURS)] for i, rung in enumerate(used)}
    key = [(f"{found.peer}, below", style.PEER)] if found.peer else []
    left = 0.3 + style.widest(titles)
    body, foot = _STRIP * len(titles), 0.55 + _BOTTOM
    at = f", at {cases.spelled(usual)}" if usual else ""
    about = f"Percent of {study.ladder.ceilings} by the fastest rung, or one within 2%{at}"
    height = _TOP + 0.25 + body + foot
    figure = style.page(style.PAGE, height, *_page(study, about))
    style.legend(figure, key)
    width = style.PAGE - left - 0.2
    axes = style.panel(figure, left, foot, width, body)
    axes.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(titles) - 0.5, -0.5))
    column = width / len(labels)
    names = [cases.short(label) for label in labels]
    widest = style.widest([*names, *told.values()], style.SMALL) + _GAP
    step = math.ceil(widest / column)  # of columns with text, where that is wider than a column
    written = range(step // 2, len(labels), step)
    boxes: _Boxes = {}
    above: set[tuple[int, int, str]] = set()  # the runs of the strip above
    for y, group in enumerate(found.groups):
        runs = _runs(group, labels, won)
        named = {(run[0][0], run[-1][0], won[run[0][1]]) for run in runs}
        end = len(labels) - 0.5  # of the room of a name
        for first, last, rung in sorted(named, reverse=True):
            box = (first - 0.47, y - 0.2, last - first + 0.94, _BOX / _STRIP)
            boxes.setdefault(colours[rung], []).append(box)
            if (first, last, rung) in above:
                continue
            # A name that is wider than the room at its right begins further left.
            start = min(first - 0.47, end - style.text_width(rung, style.SMALL) / column)
            name = style.fit(rung, (end - start) * column + 0.01, style.SMALL)
            style.note(axes, name, (start, y - 0.24), color=colours[rung])
            end = start - 0.1
        above = named
        for x, case in (place for run in runs for place in run if place[0] in written):
            middle: style.Look = {"ha": "center", "va": "center_baseline"}
            number = middle | {"color": "white", "weight": "bold"}
            style.note(axes, told[won[case], case], (x, y - 0.2 + _BOX / _STRIP / 2), **number)
            if library := told.get(("", case), ""):
                style.note(axes, library, (x, y + 0.34), color=style.PEER, **middle)
    for shade, where in boxes.items():
        style.boxes(axes, where, facecolor=shade)
    axes.set_yticks(range(len(titles)), titles, size=style.NORMAL)
    panels.label_columns(axes, names, written, turned=False)
    across = cases.words(cases.across(study, list(won)))
    thousands = " (1K = 1024)" if names != labels else ""
    axes.set_xlabel(across + thousands)
    return figure


def _strip_title(group: Group, usual: str) -> str:
    """Write what tells a strip from others: its facet, and other values than the usual ones."""
    facet = cases.words(", ".join(axis_values(group.facet).values()))
    return ", ".join(filter(None, (facet, cases.spelled(group.others) * (group.others != usual))))


def _runs(group: Group, labels: list[str], won: Mapping[str, str]) -> list[list[tuple[int, str]]]:
    """Split a group's cases, with their columns, into neighbours that one rung wins."""
    runs: list[list[tuple[int, str]]] = []
    for place in sorted((labels.index(label), case) for label, case in group.cases.items()):
        if runs and runs[-1][-1][0] == place[0] - 1 and won[runs[-1][-1][1]] == won[place[1]]:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _size(label: str) -> tuple[bool, int, str]:
    return (False, int(label), "") if label.isdecimal() else (True, 0, label)
