# SPDX-License-Identifier: MIT
"""The roofs of a roofline: slopes of memory up to the flat ones of the processor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from ladder.report.plots import style

_CLEAR = 0.15  # inches between the ends of a name and the middle of a point


@dataclass(frozen=True)
class Roof:
    """A limit in the units of the axes: y over x of a slope, y of a flat one; NaN is no peak."""

    text: str
    measured: float
    peak: float = math.nan  # what the datasheet says

    @property
    def highest(self) -> float:
        """The higher of the two lines."""
        return max(self.measured, self.peak) if self.peak > 0 else self.measured


def draw(
    axes: Axes,
    size: tuple[float, float],
    slopes: Sequence[Roof],
    flats: Sequence[Roof],
    spans: Sequence[tuple[float, float, float]] = (),
) -> None:
    """Draw roofs on logarithmic axes of `size` inches, each named along its line.

    What was measured is solid, the datasheet dashed. Slopes end at the highest flat roof, or at
    the edge where there is none, and flat roofs begin at the steepest slope. Names keep clear of
    `spans`, which are (least x, most x, y), as far as they can.
    """
    (x0, x1), (_, y1) = axes.get_xlim(), axes.get_ylim()
    top = max((roof.measured for roof in flats), default=y1)
    place = _Place(axes, size)
    solid: style.Look = {"color": style.GREY, "linewidth": 1.2}
    dashed: style.Look = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (4, 3))}
    steepest = max((roof.measured for roof in slopes), default=math.inf)
    lowest = min(slopes, key=lambda roof: roof.measured, default=None)
    for roof in slopes:
        for speed, look in ((roof.measured, solid), (roof.peak, dashed)):
            if speed > 0:
                ends = [x0, min(x1, top / speed)]
                axes.plot(ends, [speed * x for x in ends], zorder=2, **look)
        flat = [(y / steepest, x1, y) for f in flats for y in {f.measured, f.highest}]
        # The lowest name is clear of its neighbour's below its line; the others go above theirs.
        sides = (True, False) if roof is lowest and len(slopes) > 1 else (False,)
        for below in (*sides, sides[0]):
            line = roof.measured if below else roof.highest
            end, free = place.end(
                roof.text, line, min(x1, top / line), [*spans, *flat], below=below
            )
            if free:
                break
        look = {"ha": "right", "va": "top" if below else "bottom", "rotation": place.degrees}
        look |= {"rotation_mode": "anchor", "path_effects": style.halo()}
        style.note(axes, roof.text, (end, line * end), (4, -4) if below else (-4, 4), **look)
    for roof in flats:
        for speed, look in ((roof.measured, solid), (roof.peak, dashed)):
            if speed > 0:
                axes.plot([max(x0, speed / steepest), x1], [speed, speed], zorder=2, **look)
        style.note(axes, roof.text, (x1, roof.highest), (-2, 3), ha="right")


class _Place:
    """Where the name of a slope ends on logarithmic axes, reckoned in inches."""

    def __init__(self, axes: Axes, size: tuple[float, float]) -> None:
        (self._x0, x1), (self._y0, y1) = axes.get_xlim(), axes.get_ylim()
        self._decade = size[0] / math.log10(x1 / self._x0), size[1] / math.log10(y1 / self._y0)
        self._angle = math.atan2(self._decade[1], self._decade[0])
        self.degrees = math.degrees(self._angle)

    def _inches(self, x: float, y: float) -> tuple[float, float]:
        across, up = self._decade
        return across * math.log10(x / self._x0), up * math.log10(y / self._y0)

    def end(
        self,
        text: str,
        slope: float,
        ridge: float,
        spans: Sequence[tuple[float, float, float]],
        *,
        below: bool,
    ) -> tuple[float, bool]:
        """Return the x nearest to the ridge where the name meets no span, and whether there is one.

        Where there is none it is the one near the ridge.
        """
        length = style.text_width(text, style.SMALL) + 0.1
        across, up = length * math.cos(self._angle), length * math.sin(self._angle)
        right, _ = self._inches(ridge, slope * ridge)
        nearest = 0.12 if below else 0.35  # inches from the ridge
        back = nearest
        while True:
            x = self._x0 * 10 ** ((right - back) / self._decade[0])
            start = self._inches(x, slope * x)
            if start[0] < across or start[1] < up:  # it would leave the axes
                return self._x0 * 10 ** ((right - nearest) / self._decade[0]), False
            if not any(self._meets(start, length, span, below=below) for span in spans):
                return x, True
            back += 0.05

    def _meets(
        self,
        end: tuple[float, float],
        length: float,
        span: tuple[float, float, float],
        *,
        below: bool,
    ) -> bool:
        """Whether a name of that length that ends there comes close to a span."""
        low, high = self._inches(span[0], span[2]), self._inches(span[1], span[2])
        steps = max(1, math.ceil((high[0] - low[0]) / 0.05))
        cos, sin = math.cos(self._angle), math.sin(self._angle)
        for i in range(steps + 1):
            x = low[0] + (high[0] - low[0]) * i / steps - end[0]
            y = low[1] - end[1]
            along, above = x * cos + y * sin, y * cos - x * sin
            if -length - _CLEAR < along < _CLEAR and -0.04 < (-above if below else above) < 0.27:
                return True
        return False
