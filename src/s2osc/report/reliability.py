"""The reliability curve: stated confidence against how often it was right."""

from dataclasses import dataclass

from s2osc.pipeline.audit.record import Reliability
from s2osc.pipeline.audit.wording import reliability_in_words
from s2osc.report.charts import AxisScale, Mark, band, line


@dataclass(frozen=True)
class ReliabilityChart:
    """A line with its 95 % intervals, and the diagonal on which stated confidence is right."""

    line: str
    band: str
    diagonal: str
    x_ticks: list[Mark]
    y_ticks: list[Mark]
    caption: str


def reliability_chart(found: Reliability) -> ReliabilityChart | None:
    """The chart of the held-back items; None where they are too few for two bins."""
    if len(found.bins) < 2:
        return None
    least = min(min(each.stated, each.right.low) for each in found.bins)
    low = int(10 * least) / 10 if least < 0.9 else 0.8
    scale = AxisScale(low, 1.0)
    places = [scale.place(each.stated) for each in found.bins]
    ticks = [Mark(f"{value:.0%}", scale.place(value)) for value in scale.ticks(6)]
    return ReliabilityChart(
        line=line(
            zip(places, [scale.place(each.right.estimate) for each in found.bins], strict=True)
        ),
        band=band(
            places,
            [scale.place(each.right.low) for each in found.bins],
            [scale.place(each.right.high) for each in found.bins],
        ),
        diagonal=line([(0, 0), (100, 100)]),
        x_ticks=ticks,
        y_ticks=ticks,
        caption=reliability_in_words(found),
    )
