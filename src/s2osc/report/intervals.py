"""Estimates with their 95 % intervals, as the page draws and words them."""

from dataclasses import dataclass

from s2osc.pipeline.audit.statistics import Estimate
from s2osc.report.words import percent


@dataclass(frozen=True)
class Interval:
    """A share from 0 to 1 with its interval; None where it was not estimated."""

    figure: Estimate | None

    @property
    def bar(self) -> float:
        """Where a bar ends that starts at 0."""
        return self.figure.estimate if self.figure else 0.0

    @property
    def whiskers(self) -> tuple[float, float] | None:
        """From where to where the estimate may lie."""
        return (self.figure.low, self.figure.high) if self.figure else None

    @property
    def value(self) -> str:
        return percent(self.figure.estimate) if self.figure else "not estimated"

    @property
    def range(self) -> str:
        """Between which shares the estimate lies; nothing where there is no estimate.

        >>> Interval(Estimate(0.04, 0.021, 0.063)).range, Interval(None).range
        ('2.1% to 6.3%', '')
        """
        return f"{percent(self.figure.low)} to {percent(self.figure.high)}" if self.figure else ""

    @property
    def text(self) -> str:
        """The estimate and its interval.

        >>> Interval(Estimate(0.04, 0.021, 0.063)).text, Interval(None).text
        ('4.0% (2.1% to 6.3%)', 'not estimated')
        """
        return f"{self.value} ({self.range})" if self.figure else self.value
