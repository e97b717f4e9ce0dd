"""Scales, ticks and outlines of the page's charts.

A chart is a box of 100 by 100 that the page stretches to its own size: x runs to the right, y runs
down, as in SVG.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

MOST_TICKS = 7


@dataclass(frozen=True)
class Mark:
    """A value on an axis."""

    text: str
    left: float  # 0 .. 100, from the start of the axis


@dataclass(frozen=True)
class CutLine:
    """A value drawn across a chart, with its name beside it."""

    name: str
    left: float  # 0 .. 100

    @property
    def is_right(self) -> bool:
        """Whether the name has more room before the line than after it."""
        return self.left > 50


@dataclass(frozen=True)
class AxisScale:
    """Values of an axis, placed from 0 to 100; those beyond its ends stand at its ends.

    >>> AxisScale(0.0, 4.0).place(1.0), AxisScale(1.0, 100.0, is_log=True).place(10.0)
    (25.0, 50.0)
    >>> AxisScale(0.0, 4.0).place(9.0)
    100.0
    """

    low: float
    high: float
    is_log: bool = False

    def place(self, value: float) -> float:
        axis = np.array([self.low, self.high, min(max(value, self.low), self.high)])
        low, high, at = np.log(axis) if self.is_log else axis
        return round(100 * float((at - low) / (high - low)), 3)

    def ticks(self, most: int = MOST_TICKS) -> list[float]:
        return choose_ticks(self.low, self.high, self.is_log, most)


def choose_ticks(low: float, high: float, is_log: bool, most: int = MOST_TICKS) -> list[float]:
    """Round values along an axis.

    >>> choose_ticks(0.0, 0.55, False)
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    >>> choose_ticks(0.03, 5000.0, True)
    [0.1, 1.0, 10.0, 100.0, 1000.0]
    """
    if is_log:
        powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        step = -(-len(powers) // (most + 2))
        factors = (1, 2, 5) if len(powers) <= 3 else (1,)
        values = [float(f"{factor}e{power}") for power in powers[::step] for factor in factors]
        return [value for value in values if low <= value <= high]
    rough = (high - low) / (most - 1)
    size = 10.0 ** np.floor(np.log10(rough))
    step = size * next(factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    places = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return [float(f"{place * step:.12g}") for place in places]


def line(points: Iterable[tuple[float, float]]) -> str:
    """An open path through places on two scales.

    >>> line([(0, 0), (50, 100)])
    'M0 100L50 0'
    """
    return "M" + "L".join(f"{x:.6g} {100 - y:.6g}" for x, y in points)


def band(places: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    """The area between two lines over the same places.

    >>> band([0, 50], [10, 20], [30, 40])
    'M0 70L50 60L50 80L0 90Z'
    """
    above = list(zip(places, high, strict=True))
    below = list(zip(places, low, strict=True))
    return line([*above, *below[::-1]]) + "Z"


def step_outline(heights: Sequence[float]) -> str:
    """The outline of bars that fill the box from left to right, standing on its floor.

    >>> step_outline([50, 100])
    'M0 100L0 50L50 50L50 0L100 0L100 100'
    """
    width = 100 / len(heights)
    corners = [(0.0, 0.0)]
    for place, height in enumerate(heights):
        corners += [(width * place, height), (width * (place + 1), height)]
    return line([*corners, (100.0, 0.0)])
