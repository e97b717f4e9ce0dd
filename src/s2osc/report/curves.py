"""Two curves: unknown items found against false alarms, and purity of the k most distinct items."""

import math
import shlex
from dataclasses import dataclass

from s2osc.pipeline.audit.record import Audit, OperatingPoint, PurityAudit
from s2osc.report.charts import AxisScale, CutLine, Mark, band, line
from s2osc.report.words import IntervalText, short_number
from s2osc.text import rounded_percent as percent
from s2osc.types import Answer

LEAST_FALSE_ALARM = 0.001  # a logarithmic axis must start somewhere
APART = 3.5  # of 100: nearer points are too close for a finger
TICKS_APART = 11.0
UP = AxisScale(0.0, 1.0)
ROUND_RATES = (0.001, 0.01, 0.1, 1.0, 0.005, 0.05, 0.5, 0.002, 0.02, 0.2)  # the roundest first


@dataclass(frozen=True)
class Point:
    """One way to decide the pool, as the page shows it."""

    left: float
    bottom: float
    name: str
    figures: list[tuple[str, str]]
    command: str  # that applies it; empty for the present way

    @property
    def is_now(self) -> bool:
        return not self.command


@dataclass(frozen=True)
class OperatingCurve:
    """Estimated recall of unknown items against false alarms, with its interval."""

    line: str
    band: str
    x_ticks: list[Mark]
    y_ticks: list[Mark]
    points: list[Point]  # from few false alarms to many

    @property
    def now(self) -> Point | None:
        return next((point for point in self.points if point.is_now), None)


def operating_curve(audit: Audit, answer: Answer, *, folder: str) -> OperatingCurve | None:
    """The curve of an audit with the points to choose from; None where it was not estimated."""
    if not audit.curve:
        return None
    now, n_pool = present_point(audit, answer), len(answer.labels)
    across = false_alarm_scale([point.false_alarm for point in (*now, *audit.curve)])
    places = [across.place(point.false_alarm) for point in audit.curve]
    recalls = [point.recall for point in audit.curve]
    points = [
        _point(point, across, n_pool, IntervalText(audit.false_alarm).text, "") for point in now
    ]
    for point in audit.curve:
        command = decide_command(folder, point.false_alarm)
        points.append(_point(point, across, n_pool, percent(point.false_alarm), command))
    return OperatingCurve(
        line=line(zip(places, [UP.place(recall.estimate) for recall in recalls], strict=True)),
        band=band(
            places,
            [UP.place(recall.low) for recall in recalls],
            [UP.place(recall.high) for recall in recalls],
        ),
        x_ticks=rate_ticks(across),
        y_ticks=[Mark(f"{share:.0%}", UP.place(share)) for share in UP.ticks(6)],
        points=thin_out_points(points),
    )


def present_point(audit: Audit, answer: Answer) -> list[OperatingPoint]:
    """Where the pool is decided now: one point, or none where its place was not estimated."""
    rate, recall, threshold = audit.false_alarm, audit.unknown_recall, audit.threshold
    if rate is None or recall is None or threshold is None:
        return []
    return [OperatingPoint(rate.estimate, recall, threshold, int(answer.is_unknown.sum()))]


def decide_command(folder: str, false_alarm: float) -> str:
    """What to type to decide the pool anew.

    The rate is rounded up: rounded down, it would forbid the very point it was taken from.

    >>> decide_command("my results", 0.02)
    "s2osc decide --out 'my results' --false-alarm 0.02 --aim recall"
    >>> decide_command("", 1 / 3)
    's2osc decide --out FOLDER --false-alarm 0.3334 --aim recall'
    """
    rate = max(1, math.ceil(false_alarm * 1e4 - 1e-6)) / 1e4
    out = shlex.quote(folder) if folder else "FOLDER"
    return f"s2osc decide --out {out} --false-alarm {rate:g} --aim recall"


def false_alarm_scale(rates: list[float]) -> AxisScale:
    """A logarithmic axis over all rates: the step from 1 to 2 % matters as that from 10 to 20 %.

    >>> false_alarm_scale([0.0, 0.01, 0.2]), false_alarm_scale([0.0])
    (AxisScale(low=0.001, high=0.2, is_log=True), AxisScale(low=0.001, high=0.01, is_log=True))
    """
    low = max(LEAST_FALSE_ALARM, min(rates))
    return AxisScale(low, max(*rates, 10 * LEAST_FALSE_ALARM, 2 * low), is_log=True)


def rate_ticks(across: AxisScale) -> list[Mark]:
    """Round rates along the axis, none so near to another that their texts would touch.

    >>> [tick.text for tick in rate_ticks(AxisScale(0.01, 0.2, is_log=True))]
    ['1%', '2%', '5%', '10%', '20%']
    >>> [tick.text for tick in rate_ticks(AxisScale(0.001, 0.5, is_log=True))]
    ['0.1%', '0.5%', '1%', '5%', '10%', '50%']
    """
    ticks: list[Mark] = []
    is_wide = across.high > 100 * across.low
    for rate in ROUND_RATES[:7] if is_wide else ROUND_RATES:
        place = across.place(rate)
        is_free = all(abs(tick.left - place) >= TICKS_APART for tick in ticks)
        if across.low <= rate <= across.high and is_free:
            ticks.append(Mark(f"{100 * rate:g}%", place))
    return sorted(ticks, key=lambda tick: tick.left)


def thin_out_points(points: list[Point]) -> list[Point]:
    """Points far enough apart to be chosen with a finger; earlier ones win, the present always.

    >>> near = [Point(left, 50, "", [], "a command") for left in (0, 2, 4, 40)]
    >>> [point.left for point in thin_out_points([Point(39, 50, "", [], ""), *near])]
    [0, 4, 39]
    """
    chosen: list[Point] = []
    for point in points:
        gaps = [math.hypot(point.left - p.left, point.bottom - p.bottom) for p in chosen]
        if min(gaps, default=math.inf) >= APART:
            chosen.append(point)
    return sorted(chosen, key=lambda point: (point.left, point.bottom))


def _point(
    point: OperatingPoint, across: AxisScale, n_pool: int, false_alarms: str, command: str
) -> Point:
    recall = point.recall.estimate
    name = f"{percent(point.false_alarm)} false alarms, {percent(recall)} recall"
    return Point(
        left=across.place(point.false_alarm),
        bottom=UP.place(recall),
        name=name if command else f"now: {name}",
        figures=[
            ("False alarms", false_alarms),
            ("Estimated recall", IntervalText(point.recall).text),
            ("Called unknown", f"{point.n_unknown:,} of {n_pool:,}"),
            ("Threshold", short_number(point.threshold)),
        ],
        command=command,
    )


# --- purity ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PurityChart:
    """A line, and the area down to its lower bound."""

    line: str
    band: str
    x_ticks: list[Mark]
    y_ticks: list[Mark]
    chosen: CutLine | None  # K
    caption: str


def purity_chart(purity: PurityAudit) -> PurityChart:
    """The chart of the purity that the seeds estimate."""
    points = purity.curve
    across = AxisScale(0.0, float(max(1, purity.k, *(point.k for point in points))))
    # Near 1 lie the differences that matter.
    up = AxisScale(0.5 if min(point.low for point in points) >= 0.5 else 0.0, 1.0)
    places = [across.place(point.k) for point in points]
    heights = [up.place(point.purity) for point in points]
    return PurityChart(
        line=line(zip(places, heights, strict=True)),
        band=band(places, [up.place(point.low) for point in points], heights),
        x_ticks=[Mark(f"{value:,.0f}", across.place(value)) for value in across.ticks(5)],
        y_ticks=[Mark(f"{value:.0%}", up.place(value)) for value in up.ticks(6)],
        chosen=CutLine(f"{purity.k:,} taken", across.place(purity.k)) if purity.k else None,
        caption=_purity_caption(purity),
    )


def _purity_caption(purity: PurityAudit) -> str:
    drawn = "The line is the estimate, the shade reaches down to its lower bound."
    if purity.estimate is None:
        return drawn
    return (
        f"Of the {purity.k:,} most distinct items, about {percent(purity.estimate)} are of no "
        f"known class. {drawn}"
    )
