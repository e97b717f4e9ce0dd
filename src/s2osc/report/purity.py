"""The estimated purity of the k most distinct items against k."""

from dataclasses import dataclass

from s2osc.pipeline.audit.record import PurityAudit
from s2osc.report.charts import Cut, Mark, Scale, band, line
from s2osc.report.words import percent


@dataclass(frozen=True)
class PurityChart:
    """A line, and the area down to its lower bound."""

    line: str
    band: str
    x_ticks: list[Mark]
    y_ticks: list[Mark]
    chosen: Cut | None  # K
    caption: str


def purity_chart(purity: PurityAudit) -> PurityChart:
    """The chart of the purity that the seeds estimate."""
    points = purity.curve
    across = Scale(0.0, float(max(1, purity.k, *(point.k for point in points))))
    # Near 1 lie the differences that matter.
    up = Scale(0.5 if min(point.low for point in points) >= 0.5 else 0.0, 1.0)
    places = [across.place(point.k) for point in points]
    heights = [up.place(point.purity) for point in points]
    return PurityChart(
        line=line(zip(places, heights, strict=True)),
        band=band(places, [up.place(point.low) for point in points], heights),
        x_ticks=[Mark(f"{value:,.0f}", across.place(value)) for value in across.ticks(5)],
        y_ticks=[Mark(f"{value:.0%}", up.place(value)) for value in up.ticks(6)],
        chosen=Cut(f"K = {purity.k:,}", across.place(purity.k)) if purity.k else None,
        caption=_caption(purity),
    )


def _caption(purity: PurityAudit) -> str:
    drawn = "The line is the estimate, the shade reaches down to its lower bound."
    if purity.estimate is None:
        return drawn
    return (
        f"Of the K = {purity.k:,} most distinct items, about {percent(purity.estimate)} are of no "
        f"known class. {drawn}"
    )
