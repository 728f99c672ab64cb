# SPDX-License-Identifier: MIT
"""An experiment as a matrix of its factors, with the percent of the limit in the cells."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ladder.analysis.study import Study, describe
from ladder.model import units
from ladder.model.catalogue import Rung
from ladder.model.rows import Row
from ladder.report.plots import cases, style

_ROW, _COLUMN, _GAP, _APART = 0.29, 0.36, 0.1, 0.07  # inches; _APART: groups of columns
_TOP, _BOTTOM = 0.75, 0.4
_LINE = 0.155  # of a line of the names of columns
_Key = tuple[str, ...]


def cells(study: Study) -> dict[tuple[_Key, _Key], Row]:
    """The rows of an experiment at its headline, by the factors down and those across."""
    split = _split(study)
    factors = study.ladder.factors
    found: dict[tuple[_Key, _Key], Row] = {}
    for rung in study.rungs if factors else ():
        if row := study.ok(rung, study.headline):
            found[_key(rung, factors[:split]), _key(rung, factors[split:])] = row
    return found


def _split(study: Study) -> int:
    """Number of the factors down: those before the first whose values are all numbers."""
    for i, factor in enumerate(study.ladder.factors):
        if i and all(rung.factors.get(factor, "").isdecimal() for rung in study.rungs):
            return i
    return max(1, len(study.ladder.factors) // 2)


def _key(rung: Rung, factors: _Key) -> _Key:
    return tuple(rung.factors.get(factor, "") for factor in factors)


def draw(study: Study, found: dict[tuple[_Key, _Key], Row]) -> Figure:
    """Draw a cell per rung, the bluer the faster."""
    if all(math.isnan(study.percent(row)) for row in found.values()):
        raise style.NothingToDrawError("no row has percent_of_ceiling")
    split = _split(study)
    named = [cases.words(factor) for factor in study.ladder.factors]
    downs = list(dict.fromkeys(down for down, _ in found))
    first = {down[:-1]: i for i, down in reversed(list(enumerate(downs)))}
    downs.sort(key=lambda down: first[down[:-1]])  # what differs in the last factor alone
    acrosses = list(dict.fromkeys(across for _, across in found))
    groups = {
        rest: [a for a in acrosses if a[1:] == rest]
        for rest in dict.fromkeys(a[1:] for a in acrosses)
    }
    texts = [[named[i], *(cases.words(down[i]) for down in downs)] for i in range(split)]
    widths = [
        _GAP + max(style.widest(column), style.BOLD * style.text_width(column[0]))
        for column in texts
    ]
    left = 0.2 + sum(widths)
    heads = {
        rest: [
            word
            for v, n in zip(rest, named[split + 1 :], strict=True)
            for word in cases.words(f"{v} {n}" if v.isdecimal() else v).split()
        ]
        for rest in groups
    }
    above = max(map(len, heads.values())) * _LINE + 0.3
    spans = {
        rest: max(_COLUMN * len(group), style.widest(heads[rest], style.SMALL) + 0.05)
        for rest, group in groups.items()
    }
    width = max(style.PAGE, left + sum(spans.values()) + _APART * (len(groups) - 1) + 0.2)
    body = _ROW * len(downs)
    height = _TOP + above + body + _BOTTOM
    rows = [row for row in found.values() if study.has_own_ceiling(row)]
    own = dict.fromkeys(study.spell_ceiling(row).replace("`", "") for row in rows)
    about = ", or of ".join([f"Percent of {study.ladder.ceilings}", *own])
    title = f"{study.ladder.title}: speed by its factors"
    figure = style.page(width, height, title, about, describe(study.results))
    at = left
    for rest, group in groups.items():
        axes = style.panel(figure, at, _BOTTOM, _COLUMN * len(group), body)
        axes.set(xlim=(-0.5, len(group) - 0.5), ylim=(len(downs) - 0.5, -0.5), yticks=[])
        axes.xaxis.tick_top()
        axes.set_xticks(range(len(group)), [_short(across[0], named[split]) for across in group])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        place: style.Look = {"coordinates": "axes fraction", "color": "black"}
        style.note(axes, "\n".join(heads[rest]), (0, 1), (0, 20), **place)
        for x, across in enumerate(group):
            for y, down in enumerate(downs):
                if row := found.get((down, across)):
                    share = study.percent(row) / 100
                    box = (x - 0.46, y - 0.44, 0.92, 0.88)
                    style.boxes(
                        axes,
                        [box],
                        facecolor=style.tint(style.OURS, 0.06 + 0.94 * min(max(share, 0.0), 1.0)),
                    )
                    ink: style.Look = {
                        "color": "white" if share > 0.5 else "black",
                        "size": style.NORMAL,
                    }
                    told = units.percent(100 * share).removesuffix("%")
                    style.note(axes, told, (x, y), ha="center", va="center_baseline", **ink)
        at += spans[rest] + _APART
    at = 0.2
    for column, wide in zip(texts, widths, strict=True):
        for y, text in enumerate(column):
            up = _BOTTOM + body - _ROW * (y - 0.5) if y else _BOTTOM + body + 0.08
            weight = "normal" if y else "bold"
            look: style.Look = {"va": "center_baseline" if y else "bottom", "weight": weight}
            figure.text(at / width, up / height, text, **look)
        at += wide
    return figure


def _short(value: str, factor: str) -> str:
    """Write the value of a factor across: `16 B` of `bytes`."""
    return f"{value} B" if factor == "bytes" else value
