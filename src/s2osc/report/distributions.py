"""Distributions: w over the pool, split by the answer; unknown scores of seeds and pool."""

from dataclasses import dataclass

import numpy as np

from s2osc.report.charts import AxisScale, CutLine, Mark, step_outline
from s2osc.text import rounded_percent as percent
from s2osc.types import UNKNOWN, UNSURE, Answer

N_BINS = 48
LONG_TAIL = 20  # a log axis where the tail reaches this many medians
TOP_PERCENTILE = 99.5
N_SCORE_BINS = 40
END_PERCENTILE = 0.5  # scores beyond it share the bar at their end
CROWDED = 0.05  # an axis of log-odds where half of the scores lie this near to 0 or 1
SUREST = 1e-4  # probabilities nearer to 0 or 1 than this are drawn as if they were not
PROBABILITIES = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Bar:
    """One bin of one panel."""

    count: int
    height: float  # 0 .. 100
    range: str


@dataclass(frozen=True)
class Panel:
    """The bars of the items that got one answer."""

    count: int
    highest: int
    bars: list[Bar]


@dataclass(frozen=True)
class Distribution:
    """Histograms over one axis."""

    known: Panel
    unsure: Panel | None  # where no item is unsure
    unknown: Panel
    ticks: list[Mark]
    threshold: Mark | None  # the smallest w that was filtered
    n_filtered: int
    notes: list[str]  # what a reader must know about the axis


def distribution(answer: Answer) -> Distribution | None:
    """Count w in bins, on an axis that its long tail does not flatten."""
    is_finite = np.isfinite(answer.distinctness)
    w = answer.distinctness[is_finite].astype(np.float64)
    if not len(w):
        return None
    edges, is_log, notes = choose_axis(w)
    if n_left_out := int((~is_finite).sum()):
        notes.append(f"{n_left_out:,} items without a finite distinctness are left out.")
    labels, filtered = answer.labels[is_finite], answer.filtered[is_finite]
    scale = AxisScale(float(edges[0]), float(edges[-1]), is_log)
    return Distribution(
        known=_panel(w[labels >= 0], edges),
        unsure=_panel(w[labels == UNSURE], edges) if answer.is_unsure.any() else None,
        unknown=_panel(w[labels == UNKNOWN], edges),
        ticks=[_mark(value, scale) for value in scale.ticks()],
        threshold=_mark(float(w[filtered].min()), scale) if filtered.any() else None,
        n_filtered=int(answer.filtered.sum()),
        notes=notes,
    )


def choose_axis(w: np.ndarray) -> tuple[np.ndarray, bool, list[str]]:
    """Edges of the bins, whether they grow by a factor, and notes for the reader.

    >>> edges, is_log, _ = choose_axis(np.array([1.0, 1.0, 1.0, 10_000.0]))
    >>> is_log, round(edges[-1])
    (True, 10000)
    """
    low, median, top, high = np.percentile(w, [0, 50, TOP_PERCENTILE, 100])
    if median > 0 and top > LONG_TAIL * median:
        first = max(np.percentile(w[w > 0], 100 - TOP_PERCENTILE), high * 1e-9)
        notes = ["The axis is logarithmic."]
        if n_below := int((w < first).sum()):
            notes.append(f"The {n_below:,} smallest values are counted in the first bar.")
        return np.geomspace(first, high, N_BINS + 1), True, notes
    if low == high:
        return np.linspace(low - 0.5, low + 0.5, N_BINS + 1), False, []
    if low < top and high - low > 1.5 * (top - low):
        n_above = int((w > top).sum())
        note = f"The {n_above:,} largest values, up to {high:.4g}, are counted in the last bar."
        return np.linspace(low, top, N_BINS + 1), False, [note]
    return np.linspace(low, high, N_BINS + 1), False, []


def _panel(w: np.ndarray, edges: np.ndarray) -> Panel:
    counts = np.histogram(np.clip(w, edges[0], edges[-1]), edges)[0]
    highest = int(counts.max())
    bars = [
        Bar(count, 100 * count / max(1, highest), f"{left:.4g} to {right:.4g}")
        for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True)
    ]
    return Panel(len(w), highest, bars)


def _mark(value: float, scale: AxisScale) -> Mark:
    return Mark(f"{value:.4g}", scale.place(value))


# --- scores ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreChart:
    """Two outlines on one axis."""

    pool: str
    seeds: str
    ticks: list[Mark]
    threshold: CutLine | None
    sure_known: CutLine | None
    caption: str


@dataclass(frozen=True)
class ScoreAxis:
    """An axis of scores, stretched towards 0 and 1 where they are crowded there."""

    scale: AxisScale
    is_stretched: bool

    def place(self, score: float) -> float:
        return self.scale.place(float(log_odds(score)) if self.is_stretched else score)

    def ticks(self) -> list[Mark]:
        values = PROBABILITIES if self.is_stretched else self.scale.ticks()
        marks = [Mark(f"{value:.4g}", self.place(value)) for value in values]
        return [mark for mark in marks if not self.is_stretched or 0 < mark.left < 100]


def score_chart(
    pool: np.ndarray,
    seeds: np.ndarray | None,
    threshold: float | None,
    sure_known_below: float | None,
) -> ScoreChart | None:
    """Both distributions as shares; None where there is nothing to draw."""
    if seeds is None:
        return None
    pool, seeds = pool[np.isfinite(pool)], seeds[np.isfinite(seeds)]
    if not len(pool) or not len(seeds):
        return None
    cuts = [cut for cut in (threshold, sure_known_below) if cut is not None]
    axis = choose_score_axis(np.concatenate([pool, seeds]), cuts)
    of_pool, of_seeds = (shares(scores, axis) for scores in (pool, seeds))
    highest = max(of_pool.max(), of_seeds.max()) / 100
    return ScoreChart(
        pool=step_outline((of_pool / highest).tolist()),
        seeds=step_outline((of_seeds / highest).tolist()),
        ticks=axis.ticks(),
        threshold=_cut("unknown above", threshold, axis),
        sure_known=_cut("known below", sure_known_below, axis),
        caption=_caption(pool, seeds, threshold, axis),
    )


def choose_score_axis(scores: np.ndarray, cuts: list[float]) -> ScoreAxis:
    """An axis that shows every cut and is not stretched by a few extreme scores.

    >>> choose_score_axis(np.array([0.0] * 500 + [2.0] * 500 + [1000.0]), [3.0]).scale
    AxisScale(low=0.0, high=3.0, is_log=False)
    """
    is_stretched = is_crowded(scores)
    values = log_odds(scores) if is_stretched else scores
    shown = log_odds(np.array(cuts)) if is_stretched else np.array(cuts)
    ends = np.percentile(values, [END_PERCENTILE, 100 - END_PERCENTILE])
    low, high = (float(end) for end in (min([*ends, *shown]), max([*ends, *shown])))
    margin = 0.5 if low == high else 0.0
    return ScoreAxis(AxisScale(low - margin, high + margin), is_stretched)


def is_crowded(scores: np.ndarray) -> bool:
    """Whether scores are probabilities of which most lie at 0 or 1: a plain axis hides their shape.

    >>> is_crowded(np.array([0.001, 0.002, 0.5, 0.999])), is_crowded(np.linspace(0, 1, 9))
    (True, False)
    """
    if scores.min() < 0 or scores.max() > 1:
        return False
    return bool(np.median(np.minimum(scores, 1 - scores)) < CROWDED)


def log_odds(probability: np.ndarray | float) -> np.ndarray:
    """The logarithm of p / (1 - p), finite also for 0 and 1."""
    inside = np.clip(probability, SUREST, 1 - SUREST)
    return np.log(inside / (1 - inside))


def shares(scores: np.ndarray, axis: ScoreAxis) -> np.ndarray:
    """The share of the scores in each bin of the axis; those beyond its ends count there."""
    values = log_odds(scores) if axis.is_stretched else scores
    low, high = axis.scale.low, axis.scale.high
    counts = np.histogram(np.clip(values, low, high), N_SCORE_BINS, (low, high))[0]
    return counts / len(scores)


def _cut(what: str, score: float | None, axis: ScoreAxis) -> CutLine | None:
    return None if score is None else CutLine(f"{what} {score:.4g}", axis.place(score))


def _caption(pool: np.ndarray, seeds: np.ndarray, threshold: float | None, axis: ScoreAxis) -> str:
    text = "Height is the share of the pool, and of the held-back items, with about that score."
    if axis.is_stretched:
        text += " The axis is stretched towards 0 and 1."
    if threshold is None:
        return text
    above = [percent(float(np.mean(scores > threshold))) for scores in (seeds, pool)]
    return (
        f"{above[0]} of the held-back items and {above[1]} of the pool lie above the threshold. "
        f"{text}"
    )
