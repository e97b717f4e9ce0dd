"""How the unknown scores of seeds and pool are distributed, drawn over each other."""

from dataclasses import dataclass

import numpy as np

from s2osc.report.charts import Cut, Mark, Scale, steps
from s2osc.report.words import percent

N_BINS = 40
END_PERCENTILE = 0.5  # scores beyond it share the bar at their end
CROWDED = 0.05  # an axis of log-odds where half of the scores lie this near to 0 or 1
SUREST = 1e-4  # probabilities nearer to 0 or 1 than this are drawn as if they were not
PROBABILITIES = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class ScoreChart:
    """Two outlines on one axis."""

    pool: str
    seeds: str
    ticks: list[Mark]
    threshold: Cut | None
    sure_known: Cut | None
    caption: str


@dataclass(frozen=True)
class ScoreAxis:
    """An axis of scores, stretched towards 0 and 1 where they are crowded there."""

    scale: Scale
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
    axis = choose_axis(np.concatenate([pool, seeds]), cuts)
    of_pool, of_seeds = (shares(scores, axis) for scores in (pool, seeds))
    highest = max(of_pool.max(), of_seeds.max()) / 100
    return ScoreChart(
        pool=steps((of_pool / highest).tolist()),
        seeds=steps((of_seeds / highest).tolist()),
        ticks=axis.ticks(),
        threshold=_cut("unknown above", threshold, axis),
        sure_known=_cut("known below", sure_known_below, axis),
        caption=_caption(pool, seeds, threshold, axis),
    )


def choose_axis(scores: np.ndarray, cuts: list[float]) -> ScoreAxis:
    """An axis that a few far scores do not flatten, on which every cut is seen.

    >>> choose_axis(np.array([0.0] * 500 + [2.0] * 500 + [1000.0]), [3.0]).scale
    Scale(low=0.0, high=3.0, is_log=False)
    """
    is_stretched = is_crowded(scores)
    values = log_odds(scores) if is_stretched else scores
    seen = log_odds(np.array(cuts)) if is_stretched else np.array(cuts)
    ends = np.percentile(values, [END_PERCENTILE, 100 - END_PERCENTILE])
    low, high = (float(end) for end in (min([*ends, *seen]), max([*ends, *seen])))
    margin = 0.5 if low == high else 0.0
    return ScoreAxis(Scale(low - margin, high + margin), is_stretched)


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
    counts = np.histogram(np.clip(values, low, high), N_BINS, (low, high))[0]
    return counts / len(scores)


def _cut(what: str, score: float | None, axis: ScoreAxis) -> Cut | None:
    return None if score is None else Cut(f"{what} {score:.4g}", axis.place(score))


def _caption(pool: np.ndarray, seeds: np.ndarray, threshold: float | None, axis: ScoreAxis) -> str:
    said = "Height is the share of the pool, and of the seeds, with about that unknown score."
    if axis.is_stretched:
        said += " The axis is stretched towards 0 and 1."
    if threshold is None:
        return said
    above = [percent(float(np.mean(scores > threshold))) for scores in (seeds, pool)]
    return f"{above[0]} of the seeds and {above[1]} of the pool lie above the threshold. {said}"
