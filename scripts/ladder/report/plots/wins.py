# SPDX-License-Identifier: MIT
"""Which rung wins where: the fewest rungs of which one is near the fastest at every shape."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe
from ladder.model.rows import Row
from ladder.report.plots import cases, style
from ladder.report.plots.cases import Group

NEAR = 0.98  # of the fastest, from which a rung is as good as it
_ROW, _TITLE, _FOOT, _BETWEEN = 0.25, 0.3, 0.3, 0.2  # inches
_TOP, _BOTTOM, _COLUMNS = 0.8, 0.3, (0.62, 0.5, 0.44, 0.38, 0.34, 0.3)
_STRIP, _BOX = 0.62, 0.4  # inches: a row of strips, and the coloured part of it
_FEW = 4  # panels, beyond which there are strips
_REST = "#f0f0f0"
_OWN = "#00785a"  # of rungs with a limit of their own
_COLOURS = (style.OURS, _OWN, "#a8457f", "#8a6d00", "#404040", "#5b7fa6")
_Boxes = dict[str, list[tuple[float, float, float, float]]]


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
        """By case, of the rungs near the fastest that which is so at most cases."""
        near: dict[str, list[str]] = {}
        for (rung, case), row in self.rows.items():
            best = max(self.fastest(study, case, own=own) for own in {*self.rungs.values()})
            if rung in self.rungs and study.speed(row) >= NEAR * best:
                near.setdefault(case, []).append(rung)
        count = Counter(rung for rungs in near.values() for rung in rungs)
        return {case: max(rungs, key=count.__getitem__) for case, rungs in near.items()}


def chosen(study: Study) -> Map | None:
    """Return what there is to draw; None of a single case, or where one rung wins everywhere."""
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
    shown = [case for case in study.cases if any(case == other for _, other in rows)]
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
    """Pick rungs, by (rung, case), until one is near the fastest at every case."""
    best: dict[str, float] = {}
    for (_, case), speed in speeds.items():
        best[case] = max(speed, best.get(case, 0.0))
    near = {key for key, speed in speeds.items() if speed >= NEAR * best[key[1]]}
    picked: set[str] = set()
    while near:
        count = {name: sum(name == other for other, _ in near) for name, _ in sorted(near)}
        name = max(count, key=count.__getitem__)
        done = {case for other, case in near if other == name}
        near = {key for key in near if key[1] not in done}
        picked.add(name)
    return picked


def _groups(study: Study, shown: list[str]) -> list[Group]:
    """Group cases; shapes that are not one of the series of sizes stand apart."""
    axis = cases.across(study, shown)
    sizes = [case for case in shown if study.in_line(case)]
    odd = [case for case in shown if case not in sizes]
    if not sizes:
        return cases.grouped(study, odd, axis)
    apart = [replace(group, odd=True) for group in cases.grouped(study, odd, axis)]
    return cases.grouped(study, sizes, axis) + apart


@dataclass(frozen=True)
class _Measure:
    """What is written of each row, and how the figure calls it."""

    title: str
    about: str
    of: Callable[[Row], float]
    digits: int  # after the point, below ten

    def write(self, row: Row) -> str:
        """Write what is measured; NaN is empty."""
        value = self.of(row)
        return "" if math.isnan(value) else f"{value:.{0 if value >= 9.95 else self.digits}f}"


def draw(study: Study, found: Map) -> Figure:
    """Draw percent of the limit by rung and case; of many facets by facet and case."""

    def percent(row: Row) -> float:
        # Of the ladder's ceiling, whatever the row's own is, so that a column can be compared.
        value = 100 * study.speed(row) / study.ceiling(row.case)
        return study.percent(row) if math.isnan(value) else value

    if all(math.isnan(percent(row)) for row in found.rows.values()):
        raise style.NothingToDrawError("no row has percent_of_ceiling")
    about = f"Percent of {study.ladder.ceilings}"
    return _draw(study, found, _Measure("which rung wins where", about, percent, 1))


def beside(study: Study, found: Map) -> Figure:
    """Draw the same rungs as times the speed of the fastest library."""

    def times(row: Row) -> float:
        peer = found.rows.get(("", row.case))
        return study.speed(row) / study.speed(peer) if peer else math.nan

    about = f"Times the speed of {found.peer}"
    return _draw(study, found, _Measure("beside the library", about, times, 2))


def _draw(study: Study, found: Map, measure: _Measure) -> Figure:
    many = len(found.groups) > _FEW
    return (_strips if many else _tables)(study, found, measure)


def _tables(study: Study, found: Map, measure: _Measure) -> Figure:
    """Draw a panel per group, with a row per rung and a column per case."""
    names = [*found.rungs, *([found.peer] if found.peer else [])]
    left = 0.35 + style.widest(names)
    room = style.PAGE - left - 0.2
    most = max(len(group.cases) for group in found.groups)
    fit = [column for column in _COLUMNS if column * most <= room] or _COLUMNS[-1:]
    column = min(fit, key=lambda column: len(_lines(found.groups, column, room)))
    width = max(style.PAGE, left + column * most + 0.2)
    lines = _lines(found.groups, column, room)
    body = _ROW * len(names)
    feet = [_foot(line, column) for line in lines]
    height = _TOP + sum(_TITLE + body + foot for foot in feet) + _BOTTOM
    green = "; green: of rungs with a limit of their own" * any(found.rungs.values())
    across = cases.words(" × ".join(study.shape_axes))
    about = f"{measure.about} by {across}. Blue: the fastest; pale: within 2% of it{green}"
    title = f"{study.ladder.title}: {measure.title}"
    figure = style.page(width, height, title, about, describe(study.results))
    top = height - _TOP
    for line, foot in zip(lines, feet, strict=True):
        at = left
        for group in line:
            axes = style.panel(figure, at, top - _TITLE - body, column * len(group.cases), body)
            _table(axes, study, found, group, measure)
            axes.set_yticks(range(len(names)), names if at == left else [], size=style.NORMAL)
            _label(axes, list(group.cases), turned=foot > _FOOT)
            axes.set_title(group.title, loc="left", size=style.NORMAL, weight="bold", pad=5)
            at += _width(group, column) + _BETWEEN
        top -= _TITLE + body + foot
    return figure


def _width(group: Group, column: float) -> float:
    return max(column * len(group.cases), 1.15 * style.text_width(group.title))  # it is bold


def _lines(groups: Sequence[Group], column: float, room: float) -> list[list[Group]]:
    """Split groups into lines of panels beside each other."""
    lines: list[list[Group]] = []
    taken = math.inf
    for group in groups:
        taken += _BETWEEN + _width(group, column)
        if taken > room:
            lines.append([])
            taken = _width(group, column)
        lines[-1].append(group)
    return lines


def _foot(line: Sequence[Group], column: float) -> float:
    """Inches that the labels of a line of panels take, turned where they would touch."""
    widest = style.widest([x for group in line for x in group.cases], style.SMALL)
    return _FOOT + (0.6 * widest if widest > column - 0.06 else 0.0)


def _label(axes: Axes, labels: list[str], *, turned: bool) -> None:
    turn: style.Look = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(labels)), labels, **(turn if turned else {}))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _table(axes: Axes, study: Study, found: Map, group: Group, measure: _Measure) -> None:
    rungs = [*found.rungs, *([""] if found.peer else [])]
    axes.set(xlim=(-0.5, len(group.cases) - 0.5), ylim=(len(rungs) - 0.5, -0.5))
    boxes: _Boxes = {}
    for x, case in enumerate(group.cases.values()):
        best = {own: found.fastest(study, case, own=own) for own in (False, True)}
        for y, rung in enumerate(rungs):
            if not (row := found.rows.get((rung, case))):
                continue
            own, speed = found.rungs.get(rung, False), study.speed(row)
            shade, ink, weight = _REST, style.PEER if not rung else style.GREY, "normal"
            if speed >= best[own] if rung else speed > max(best.values()):
                shade = style.PEER if not rung else _OWN if own else style.OURS
                ink, weight = "white", "bold"
            elif rung and speed >= NEAR * best[own]:
                shade, ink = style.PALE, "black"
            boxes.setdefault(shade, []).append((x - 0.47, y - 0.46, 0.94, 0.92))
            place: style.Look = {"ha": "center", "va": "center_baseline", "weight": weight}
            style.note(axes, measure.write(row), (x, y), color=ink, **place)
    for shade, places in boxes.items():
        style.boxes(axes, places, facecolor=shade)


def _strips(study: Study, found: Map, measure: _Measure) -> Figure:
    """Draw a strip per group, a column per case: the winner, and below it the library."""
    usual = next(g.others for g in found.groups if study.headline in g.cases.values())
    titles = [_strip_title(group, usual) for group in found.groups]
    labels = sorted({label for group in found.groups for label in group.cases}, key=_size)
    won = found.winners(study)
    used = [rung for rung in found.rungs if rung in won.values()]
    key = [(rung, _COLOURS[i % len(_COLOURS)]) for i, rung in enumerate(used)]
    peer = [(f"{found.peer}, below", style.PEER)] if found.peer else []
    more = style.legend_height([name for name, _ in key + peer], style.PAGE)
    left = 0.35 + style.widest(titles)
    body, foot = _STRIP * len(titles), 0.5 + _BOTTOM
    at = f" at {cases.spelled(usual)}" if usual else ""
    about = f"{measure.about}{at}, in the colour of a rung that is the fastest or within 2% of it"
    title = f"{study.ladder.title}: {measure.title}"
    height = _TOP + 0.25 + more + body + foot
    figure = style.page(style.PAGE, height, title, about, describe(study.results))
    style.legend(figure, key + peer)
    width = style.PAGE - left - 0.2
    axes = style.panel(figure, left, foot, width, body)
    axes.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(titles) - 0.5, -0.5))
    boxes: _Boxes = {}
    for y, group in enumerate(found.groups):
        for run in _runs(group, labels, won):
            (first, case), (last, _) = run[0], run[-1]
            rung = won[case]
            box = (first - 0.47, y - 0.42, last - first + 0.94, _BOX / _STRIP)
            boxes.setdefault(dict(key)[rung], []).append(box)
            white: style.Look = {"ha": "center", "va": "center_baseline", "color": "white"}
            fits = style.text_width(rung, style.SMALL) < len(run) * width / len(labels)
            style.note(axes, rung * fits, ((first + last) / 2, y - 0.26), **white)
            for x, each in run:
                told = measure.write(found.rows[rung, each])
                style.note(axes, told, (x, y + 0.05), weight="bold", **white)
                if row := found.rows.get(("", each)):
                    ink = white | {"color": style.PEER}
                    style.note(axes, measure.write(row), (x, y + 0.38), **ink)
    for shade, where in boxes.items():
        style.boxes(axes, where, facecolor=shade)
    axes.set_yticks(range(len(titles)), titles, size=style.NORMAL)
    _label(axes, [cases.short(label) for label in labels], turned=False)
    axes.set_xlabel(cases.words(cases.across(study, list(won))))
    return figure


def _strip_title(group: Group, usual: str) -> str:
    """Write what tells a strip from others: its facet, and other values than the usual ones."""
    facet = cases.words(", ".join(cases.values(group.facet).values()))
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
