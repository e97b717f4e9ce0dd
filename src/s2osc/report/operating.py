"""The operating curve: how many unknown items are found at what price in false alarms."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s2osc.report.charts import Mark, Scale, band, line
from s2osc.report.intervals import Interval, read_interval, read_number, read_rows
from s2osc.report.words import percent, short_number
from s2osc.types import Answer

LEAST_FALSE_ALARM = 0.001  # a logarithmic axis must start somewhere
APART = 3.5  # of 100: nearer points are too close for a finger
TICKS_APART = 11.0
UP = Scale(0.0, 1.0)
ROUND_RATES = (0.001, 0.01, 0.1, 1.0, 0.005, 0.05, 0.5, 0.002, 0.02, 0.2)  # the roundest first


@dataclass(frozen=True)
class Choice:
    """One way to decide the pool."""

    false_alarm: Interval
    recall: Interval
    threshold: float | None
    n_unknown: float | None
    command: str  # that applies it; empty for the present way

    @property
    def place(self) -> tuple[float, float]:
        """Its false alarms and its recall."""
        return self.false_alarm.estimate or 0.0, self.recall.estimate or 0.0


@dataclass(frozen=True)
class Point:
    """A choice as the page shows it."""

    left: float
    bottom: float
    name: str
    figures: list[tuple[str, str]]
    command: str

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


def operating_curve(
    audit: Mapping[str, Any], answer: Answer, *, folder: str
) -> OperatingCurve | None:
    """The curve of an audit with the points to choose from; None where it was not estimated."""
    choices = read_choices(audit, folder)
    if not choices:
        return None
    everything = [*present_choice(audit, answer), *choices]
    across = false_alarm_scale([choice.place[0] for choice in everything])
    places = [across.place(choice.place[0]) for choice in choices]
    heights = [UP.place(choice.place[1]) for choice in choices]
    lows, highs = zip(*(choice.recall.ends for choice in choices), strict=True)
    points = [_point(choice, across, len(answer.labels)) for choice in everything]
    return OperatingCurve(
        line=line(zip(places, heights, strict=True)),
        band=band(places, [UP.place(low) for low in lows], [UP.place(high) for high in highs]),
        x_ticks=rate_ticks(across),
        y_ticks=[Mark(f"{share:.0%}", UP.place(share)) for share in UP.ticks(6)],
        points=thin_out(points),
    )


def read_choices(audit: Mapping[str, Any], folder: str) -> list[Choice]:
    """The points of the curve, each with the command that applies it."""
    return [
        Choice(
            false_alarm=Interval(row["false_alarm"]),
            recall=read_interval({**row, "estimate": row["recall"]}),
            threshold=read_number(row.get("threshold")),
            n_unknown=read_number(row.get("n_unknown")),
            command=decide_command(folder, row["false_alarm"]),
        )
        for row in read_rows(audit.get("curve"), ("false_alarm", "recall"))
    ]


def present_choice(audit: Mapping[str, Any], answer: Answer) -> list[Choice]:
    """How the pool is decided now: one choice, or none where its place is not known."""
    false_alarm = read_interval(audit.get("false_alarm"))
    recall = read_interval(audit.get("unknown_recall"))
    if false_alarm.estimate is None or recall.estimate is None:
        return []
    n_unknown = float(answer.is_unknown.sum())
    return [Choice(false_alarm, recall, read_number(audit.get("threshold")), n_unknown, "")]


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


def false_alarm_scale(rates: list[float]) -> Scale:
    """A logarithmic axis over all rates: the step from 1 to 2 % matters as that from 10 to 20 %.

    >>> false_alarm_scale([0.0, 0.01, 0.2]), false_alarm_scale([0.0])
    (Scale(low=0.001, high=0.2, is_log=True), Scale(low=0.001, high=0.01, is_log=True))
    """
    low = max(LEAST_FALSE_ALARM, min(rates))
    return Scale(low, max(*rates, 10 * LEAST_FALSE_ALARM, 2 * low), is_log=True)


def rate_ticks(across: Scale) -> list[Mark]:
    """Round rates along the axis, none so near to another that their texts would touch.

    >>> [tick.text for tick in rate_ticks(Scale(0.01, 0.2, is_log=True))]
    ['1%', '2%', '5%', '10%', '20%']
    >>> [tick.text for tick in rate_ticks(Scale(0.001, 0.5, is_log=True))]
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


def thin_out(points: list[Point]) -> list[Point]:
    """Points far enough apart to be chosen with a finger; earlier ones win, the present always.

    >>> near = [Point(left, 50, "", [], "a command") for left in (0, 2, 4, 40)]
    >>> [point.left for point in thin_out([Point(39, 50, "", [], ""), *near])]
    [0, 4, 39]
    """
    kept: list[Point] = []
    for point in points:
        gaps = [math.hypot(point.left - p.left, point.bottom - p.bottom) for p in kept]
        if min(gaps, default=math.inf) >= APART:
            kept.append(point)
    return sorted(kept, key=lambda point: (point.left, point.bottom))


def _point(choice: Choice, across: Scale, n_pool: int) -> Point:
    figures = [
        ("False alarms", choice.false_alarm.text),
        ("Estimated recall", choice.recall.text),
    ]
    if choice.n_unknown is not None:
        figures.append(("Called unknown", f"{choice.n_unknown:,.0f} of {n_pool:,}"))
    if choice.threshold is not None:
        figures.append(("Threshold", short_number(choice.threshold)))
    false_alarm, recall = choice.place
    name = f"{percent(false_alarm)} false alarms, {percent(recall)} recall"
    return Point(
        left=across.place(false_alarm),
        bottom=UP.place(recall),
        name=name if choice.command else f"now: {name}",
        figures=figures,
        command=choice.command,
    )
