"""Estimates with their 95 % intervals, as numbers and in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from s2osc.report.words import percent


@dataclass(frozen=True)
class Interval:
    """A share from 0 to 1 with its interval; what is not known is None."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_given(self) -> bool:
        return (self.estimate, self.low, self.high) != (None, None, None)

    @property
    def bar(self) -> float:
        """Where a bar ends that starts at 0."""
        return next((v for v in (self.estimate, self.low, self.high) if v is not None), 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, its missing ends at the estimate.

        >>> Interval(0.4, 0.3, 0.5).ends, Interval(0.4, low=0.3).ends
        ((0.3, 0.5), (0.3, 0.4))
        """
        low = self.bar if self.low is None else self.low
        return low, self.bar if self.high is None else self.high

    @property
    def whiskers(self) -> tuple[float, float] | None:
        """From where to where the estimate may lie; None where that is not known.

        >>> Interval(0.4, 0.3, 0.5).whiskers, Interval(0.4, low=0.3).whiskers
        ((0.3, 0.5), (0.3, 1.0))
        """
        if self.low is None and self.high is None:
            return None
        return self.low or 0.0, 1.0 if self.high is None else self.high

    @property
    def value(self) -> str:
        """The estimate, or the bound that stands in its place."""
        if self.estimate is not None:
            return percent(self.estimate)
        if self.low is not None:
            return f"at least {percent(self.low)}"
        return f"at most {percent(self.high)}" if self.high is not None else "not estimated"

    @property
    def range(self) -> str:
        """Between which shares the estimate lies; nothing where there is no estimate.

        >>> Interval(0.04, 0.021, 0.063).range, Interval(0.4, 0.31).range, Interval(0.4).range
        ('2.1% to 6.3%', 'at least 31.0%', '')
        """
        if self.estimate is None:
            return ""
        if self.low is not None and self.high is not None:
            return f"{percent(self.low)} to {percent(self.high)}"
        bound = Interval(low=self.low, high=self.high)
        return bound.value if bound.is_given else ""

    @property
    def text(self) -> str:
        """The estimate and its interval.

        >>> Interval(0.04, 0.021, 0.063).text, Interval(low=0.31).text, Interval().text
        ('4.0% (2.1% to 6.3%)', 'at least 31.0%', 'not estimated')
        """
        return f"{self.value} ({self.range})" if self.range else self.value


def read_interval(figures: Mapping[str, Any] | None) -> Interval:
    """The interval under the keys estimate, low and high, any of which may be missing or null."""
    figures = figures or {}
    return Interval(*(read_number(figures.get(key)) for key in ("estimate", "low", "high")))


def read_number(value: object) -> float | None:
    """A finite number, or None for anything else.

    >>> read_number(1), read_number(None), read_number(float("nan"))
    (1.0, None, None)
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def read_rows(
    curve: Sequence[Mapping[str, Any]] | None, keys: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows of a curve in which none of the keys is missing or null.

    >>> read_rows([{"k": 1, "purity": None}, {"k": 2, "purity": 0.5}], ("k", "purity"))
    [{'k': 2, 'purity': 0.5}]
    """
    rows = [dict(row) for row in curve or []]
    return [row for row in rows if all(read_number(row.get(key)) is not None for key in keys)]
