"""From scores to labels: the operating point, and the audit of the labels by the seeds.

``Evidence`` is all that is needed, so a decision can be taken again, for another false-alarm rate,
without training anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from s2osc.errors import SettingsError
from s2osc.pipeline.audit import statistics, unknown_test
from s2osc.pipeline.audit.record import Audit, ClassAudit, OperatingPoint, UnknownTest
from s2osc.pipeline.audit.statistics import Estimate, Tails
from s2osc.pipeline.filter.score import squash, unknown_probability
from s2osc.seeding import rng
from s2osc.settings import require_choice
from s2osc.types import UNKNOWN, UNSURE

CURVE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
"""False-alarm rates of the operating curve."""
N_RESAMPLED = 200
N_FOLDS = 10


@dataclass(frozen=True)
class DecisionSettings:
    """Which items are called unknown."""

    rule: Literal["argmax", "seeds"] = "argmax"  # g's largest output (the paper's), or the seeds
    false_alarm: float = 0.05  # at most this share of known items is called unknown
    guarantee: Literal["average", "pool"] = "average"  # the limit holds over pools, or in this one
    aim: Literal["balance", "recall"] = "balance"  # best estimated F_out, or all the limit allows
    unsure: bool = False  # leave close calls open
    level: float = 0.01  # of the test whether anything is unknown

    def __post_init__(self) -> None:
        require_choice("decision.rule", self.rule, ("argmax", "seeds"))
        require_choice("the guarantee", self.guarantee, ("average", "pool"))
        require_choice("the aim", self.aim, ("balance", "recall"))
        for name in ("false_alarm", "level"):
            if not 0 < getattr(self, name) < 1:
                raise SettingsError(
                    f"{name.replace('_', '-')} is {getattr(self, name)}; "
                    "give a share between 0 and 1, such as 0.05"
                )


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured about pool and seeds."""

    score: np.ndarray  # (n,) of the pool; rises with the belief that an item is unknown
    nearest: np.ndarray  # (n,) the best known class
    nearest_confidence: np.ndarray  # (n,) its probability, given that the item is known
    seed_score: np.ndarray  # (m,)
    seed_label: np.ndarray  # (m,) the true class
    seed_nearest: np.ndarray  # (m,)
    seed_weight: np.ndarray  # (m,) how many items of the pool it stands for, relatively
    p_value: float  # of "nothing in the pool is unknown"
    sources_differ: bool = False  # the seeds were moved to the source of the pool

    @property
    def n_classes(self) -> int:
        return int(self.seed_label.max()) + 1

    def without_seeds(self, left_out: np.ndarray) -> "Evidence":
        """The same pool with some of the seeds left out."""
        names = ("seed_score", "seed_label", "seed_nearest", "seed_weight")
        return replace(self, **{name: getattr(self, name)[~left_out] for name in names})

    @property
    def n_effective(self) -> float:
        """The number of seeds of equal weight that these are worth."""
        return statistics.effective_number(self.seed_weight)

    def tails(self) -> Tails:
        return statistics.tails(self.score, self.seed_score, self.seed_weight)


class Redrawn(NamedTuple):
    """Pool and seeds drawn anew, for intervals."""

    curve: Tails
    share: float  # of unknown items, as it is likely there

    def recall_at(self, threshold: float) -> float:
        if self.share == 0:
            return 0.0
        found = statistics.true_unknowns(self.curve, self.share)
        return float(found[self.curve.place(threshold)] / self.share)


class Decision(NamedTuple):
    """A label for each item of the pool, and the audit of the labels."""

    labels: np.ndarray  # (n,) a known class, UNKNOWN or UNSURE
    unknown_score: np.ndarray  # (n,) from 0 to 1
    confidence: np.ndarray  # (n,)
    p_known: np.ndarray  # (n,) the share of known items at least as strange
    threshold: float  # unknown above it
    audit: Audit


def share_of_unknown(evidence: Evidence) -> Estimate:
    """The unknown share of the pool, estimated low."""
    return statistics.unknown_share(
        evidence.tails(), len(evidence.score), evidence.n_effective, _fewest_below(evidence)
    )


def _likely_share(evidence: Evidence, curve: Tails) -> float:
    return statistics.likely_share(
        curve, len(evidence.score), evidence.n_effective, _fewest_below(evidence)
    )


def _fewest_below(evidence: Evidence) -> float:
    """The share of the seeds below a threshold from which on it counts.

    Another source moves the middle of the scores, too; only the far end tells of classes.
    """
    return 1 - max(unknown_test.FAR_ENDS) if evidence.sources_differ else statistics.FEWEST_BELOW


def choose_threshold(evidence: Evidence, share: float, settings: DecisionSettings) -> float:
    """The limit the seeds set; above it, if balance is the aim, the best estimated F_out.

    Infinite where no threshold finds more than false alarms. Any other lies at a seed or, since
    F_out rises until the next false alarm, just above one: ``operating_point`` needs that.
    """
    limit = _limit(evidence, share, settings)
    if settings.aim == "recall":
        return limit
    curve = evidence.tails()
    allowed = curve.thresholds >= limit
    if not allowed.any():
        return limit
    f_out = np.where(allowed, statistics.estimated_f_out(curve, share, evidence.n_effective), -1)
    best = int(f_out.argmax())
    return float(max(limit, curve.thresholds[best])) if f_out[best] > 0 else np.inf


def _limit(evidence: Evidence, share: float, settings: DecisionSettings) -> float:
    """The lowest threshold that keeps the limit on false alarms, on average or in this pool."""
    seeds, weights = evidence.seed_score, evidence.seed_weight
    if settings.guarantee == "pool":
        n_known = _n_known(evidence, share)
        return statistics.threshold_for_pool(seeds, weights, settings.false_alarm, n_known)
    return statistics.conformal_threshold(seeds, weights, settings.false_alarm)


def _smallest_promise(evidence: Evidence, share: float, settings: DecisionSettings) -> float:
    """The smallest limit that these seeds can keep."""
    weights = evidence.seed_weight
    if settings.guarantee == "pool":
        return statistics.smallest_promise_for_pool(weights, _n_known(evidence, share))
    return statistics.smallest_promise(weights)


def _n_known(evidence: Evidence, share: float) -> int:
    return max(1, round(len(evidence.score) * (1 - share)))


def threshold_for_new(
    evidence: Evidence, odds: np.ndarray, settings: DecisionSettings
) -> float | None:
    """The same operating point on the log-odds of g, (n + m,), which is all that new items have.

    It lies at a seed, where the p-value changes: unlike items of the pool, new ones may come
    between that seed and the threshold. None leaves them to g's largest output, as in the paper.
    """
    if settings.rule == "argmax":
        return None
    if evidence.p_value > settings.level:
        return np.inf
    n_pool = len(evidence.score)
    by_odds = replace(evidence, score=odds[:n_pool], seed_score=odds[n_pool:])
    threshold = choose_threshold(by_odds, share_of_unknown(by_odds).estimate, settings)
    below = by_odds.seed_score[by_odds.seed_score <= threshold]
    return float(below.max()) if np.isfinite(threshold) else threshold


def estimated_f_out_at(evidence: Evidence, settings: DecisionSettings) -> float:
    """The estimated F_out of the best allowed threshold on these scores."""
    share = share_of_unknown(evidence).estimate
    threshold, curve = choose_threshold(evidence, share, settings), evidence.tails()
    return float(
        statistics.estimated_f_out(curve, share, evidence.n_effective)[curve.place(threshold)]
    )


def _found(evidence: Evidence, threshold: float, share: float) -> float:
    """The share of the pool that is unknown and above the threshold."""
    weights, above = evidence.seed_weight, float(np.mean(evidence.score > threshold))
    alarms = float(weights @ (evidence.seed_score > threshold) / weights.sum())
    return float(np.clip(above - alarms * (1 - share), 0, share))


def decide(evidence: Evidence, settings: DecisionSettings, *, seed: int) -> Decision:
    """Call items unknown, and estimate how often that is wrong.

    By the rule of the paper the threshold is 0 on the margin of C' over the known classes, and the
    seeds only measure.
    """
    share = share_of_unknown(evidence)
    nothing = settings.rule == "seeds" and evidence.p_value > settings.level
    if nothing:
        share, threshold = Estimate(0.0, 0.0, share.high), np.inf
    elif settings.rule == "argmax":
        threshold = 0.0
    else:
        threshold = choose_threshold(evidence, share.estimate, settings)
    known_below = _sure_known_below(evidence, threshold, settings)
    labels = np.where(evidence.score > threshold, UNKNOWN, evidence.nearest)
    if known_below is not None:
        labels[(evidence.score > known_below) & (evidence.score <= threshold)] = UNSURE
    everyone = np.concatenate([evidence.score, evidence.seed_score])
    is_seed = np.arange(len(everyone)) >= len(evidence.score)
    weights = np.append(np.ones(len(evidence.score)), evidence.seed_weight)
    p = unknown_probability(everyone, is_seed, weights, share.estimate, seed=seed)[
        : len(evidence.score)
    ]
    confidence = np.where(labels == UNKNOWN, p, (1 - p) * evidence.nearest_confidence)
    return Decision(
        labels=labels,
        unknown_score=squash(evidence.score),
        confidence=confidence,
        p_known=statistics.p_known(evidence.score, evidence.seed_score, evidence.seed_weight),
        threshold=threshold,
        audit=_audit(evidence, settings, share, threshold, known_below, seed=seed),
    )


def _sure_known_below(
    evidence: Evidence, threshold: float, settings: DecisionSettings
) -> float | None:
    """The threshold below which so few unknown items lie that the answer "known" is sure.

    Unknown items that look like known ones everywhere cannot be left open: nobody sees them.
    """
    curve = evidence.tails()
    share = _likely_share(evidence, curve)
    if not settings.unsure or not np.isfinite(threshold) or share == 0:
        return None
    missed = 1 - statistics.true_unknowns(curve, share) / share
    enough = curve.thresholds[missed <= settings.false_alarm]
    return float(min(threshold, enough.max() if len(enough) else -np.inf))


def _audit(
    evidence: Evidence,
    settings: DecisionSettings,
    share: Estimate,
    threshold: float,
    known_below: float | None,
    *,
    seed: int,
) -> Audit:
    """Every figure, from the seeds alone. The names of classes are their numbers."""
    n_known = round(len(evidence.score) * (1 - share.estimate))
    weights = evidence.seed_weight
    # With thresholds chosen without each seed, and with the one used: the wider interval.
    alarms = [_alarms(evidence, threshold, settings, seed=seed), evidence.seed_score > threshold]
    is_named = evidence.seed_nearest == evidence.seed_label
    right = [~called & is_named for called in alarms]
    drawn = _resampled(evidence, seed) if share.estimate else []
    nothing = settings.rule == "seeds" and evidence.p_value > settings.level
    operating_point = None
    if settings.rule == "seeds":
        operating_point = statistics.operating_point(evidence.seed_score, weights, threshold)
    return Audit(
        nothing_unknown=nothing,
        threshold=None if nothing else float(squash(threshold)),
        operating_point=operating_point,
        sure_known_below=None if known_below is None else float(squash(known_below)),
        rule=settings.rule,
        aim=settings.aim,
        wanted_false_alarm=settings.false_alarm,
        guarantee=settings.guarantee,
        smallest_false_alarm=_smallest_promise(evidence, share.estimate, settings),
        n_seeds=len(weights),
        test=UnknownTest(evidence.p_value, settings.level),
        unknown_share=share,
        unknown_recall=_recall(evidence, threshold, share, drawn),
        false_alarm=_rate(alarms, weights, n_known),
        known_accuracy=_rate(right, weights, n_known),
        is_shifted=False,
        findable_share=unknown_test.findable_share(
            len(evidence.score), len(weights), settings.level
        ),
        classes=tuple(
            ClassAudit(
                name=str(c),
                n_seeds=int(np.sum(evidence.seed_label == c)),
                weight=1.0,
                false_alarm=_rate_of_class(alarms, weights, n_known, evidence.seed_label == c),
                known_accuracy=_rate_of_class(right, weights, n_known, evidence.seed_label == c),
            )
            for c in np.unique(evidence.seed_label)
        ),
        curve=_operating_curve(evidence, share, drawn, settings),
    )


def _rate(hits: Sequence[np.ndarray], weights: np.ndarray, n_known: int) -> Estimate | None:
    """A rate among the known items of the pool, from ``hits`` of the seeds counted in two ways."""
    return _widest([statistics.weighted_interval(each, weights, n_known) for each in hits])


def _rate_of_class(
    hits: Sequence[np.ndarray], weights: np.ndarray, n_known: int, rows: np.ndarray
) -> Estimate | None:
    """The same among the known items of one class, of whose seeds ``rows`` is the mask."""
    n_pool, n = round(n_known * float(weights[rows].sum() / weights.sum())), int(rows.sum())
    return _widest([statistics.exact_interval(int(each[rows].sum()), n, n_pool) for each in hits])


def _widest(intervals: Sequence[Estimate | None]) -> Estimate | None:
    """The first estimate, with an interval that holds it and those of all; None: not estimated."""
    found = [interval for interval in intervals if interval is not None]
    if not found:
        return None
    # The rate of a few pool items has few possible values; that of the seeds may lie between them.
    value = found[0].estimate
    low, high = min(i.low for i in found), max(i.high for i in found)
    return Estimate(value, min(value, low), max(value, high))


def _alarms(
    evidence: Evidence, threshold: float, settings: DecisionSettings, *, seed: int
) -> np.ndarray:
    """(m,) whether each seed is called unknown by a threshold that was chosen without it.

    A threshold is optimistic for the seeds it was chosen by.
    """
    if settings.rule == "argmax" or not np.isfinite(threshold):
        return evidence.seed_score > threshold
    fold_of = rng(seed, "folds").permutation(len(evidence.seed_score)) % N_FOLDS
    is_alarm = np.zeros(len(fold_of), bool)
    for fold in range(N_FOLDS):
        others = evidence.without_seeds(fold_of == fold)
        if len(others.seed_score):
            chosen = choose_threshold(others, share_of_unknown(others).estimate, settings)
            is_alarm[fold_of == fold] = evidence.seed_score[fold_of == fold] > chosen
    return is_alarm


def _recall(
    evidence: Evidence, threshold: float, share: Estimate, drawn: Sequence[Redrawn]
) -> Estimate | None:
    """The share of unknown items that is called so; the interval by resampling."""
    if share.estimate == 0 or not np.isfinite(threshold):
        return None
    likely = _likely_share(evidence, evidence.tails())
    value = _found(evidence, threshold, likely) / likely
    low, high = np.quantile([each.recall_at(threshold) for each in drawn], [0.025, 0.975])
    # Unknown items that resemble known ones are missing in the estimated share; its upper end
    # counts them as missed. There may be fewer of them, too.
    low = min(float(low), value * likely / share.high)
    of_fewest = _found(evidence, threshold, share.estimate) / share.estimate
    return Estimate(value, low, max(value, float(high), of_fewest))


def _resampled(evidence: Evidence, seed: int) -> list[Redrawn]:
    curves = statistics.bootstrap(
        evidence.score,
        evidence.seed_score,
        evidence.seed_weight,
        n=N_RESAMPLED,
        random=rng(seed, "audit"),
    )
    return [Redrawn(curve, _likely_share(evidence, curve)) for curve in curves]


def _operating_curve(
    evidence: Evidence, share: Estimate, drawn: Sequence[Redrawn], settings: DecisionSettings
) -> tuple[OperatingPoint, ...]:
    """What each false-alarm rate would find."""
    if share.estimate == 0:
        return ()
    likely = _likely_share(evidence, evidence.tails())
    smallest = _smallest_promise(evidence, share.estimate, settings)
    points: list[OperatingPoint] = []
    for rate in CURVE:
        if rate < smallest:
            continue
        threshold = _limit(evidence, share.estimate, replace(settings, false_alarm=rate))
        found = _found(evidence, threshold, likely) / likely
        if points:  # a lower threshold cannot find less
            found = max(found, points[-1].recall.estimate)
        low, high = np.quantile([each.recall_at(threshold) for each in drawn], [0.025, 0.975])
        points.append(
            OperatingPoint(
                false_alarm=rate,
                recall=Estimate(found, min(found, float(low)), max(found, float(high))),
                threshold=float(squash(threshold)),
                n_unknown=int((evidence.score > threshold).sum()),
            )
        )
    return tuple(points)
