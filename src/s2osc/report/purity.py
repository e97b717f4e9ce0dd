"""The estimated purity of the k most distinct items against k."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s2osc.report.charts import Cut, Mark, Scale, band, line
from s2osc.report.intervals import read_interval, read_number, read_rows
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


def purity_chart(purity: Mapping[str, Any]) -> PurityChart | None:
    """The chart of what an audit says about purity; None where it was not estimated."""
    rows = read_rows(purity.get("curve"), ("k", "purity"))
    if not rows:
        return None
    k = read_number(purity.get("k"))
    lows = [read_interval({**row, "estimate": row["purity"]}).ends[0] for row in rows]
    across = Scale(0.0, float(max(1, k or 0, *(row["k"] for row in rows))))
    # Near 1 lie the differences that matter.
    up = Scale(0.5 if min(lows) >= 0.5 else 0.0, 1.0)
    places = [across.place(row["k"]) for row in rows]
    heights = [up.place(row["purity"]) for row in rows]
    return PurityChart(
        line=line(zip(places, heights, strict=True)),
        band=band(places, [up.place(low) for low in lows], heights),
        x_ticks=[Mark(f"{value:,.0f}", across.place(value)) for value in across.ticks(5)],
        y_ticks=[Mark(f"{value:.0%}", up.place(value)) for value in up.ticks(6)],
        chosen=Cut(f"K = {k:,.0f}", across.place(k)) if k else None,
        caption=_caption(k, read_number(purity.get("estimate"))),
    )


def _caption(k: float | None, estimate: float | None) -> str:
    said = "The line is the estimate, the shade reaches down to its lower bound."
    if not k or estimate is None:
        return said
    return (
        f"Of the K = {k:,.0f} most distinct items, about {percent(estimate)} are of no known "
        f"class. {said}"
    )
