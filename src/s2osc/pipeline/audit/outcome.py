"""The labels of a pool at an operating point, and every figure of the audit, from the seeds alone.

``Evidence`` is all that is needed, so a decision can be taken again, for another false-alarm rate,
without training anything.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from s2osc.pipeline.audit import statistics, unknown_test
from s2osc.pipeline.audit.confidence import answer_confidence
from s2osc.pipeline.audit.record import (
    Audit,
    ClassAudit,
    ClassLimit,
    OperatingPoint,
    UnknownTest,
)
from s2osc.pipeline.audit.statistics import Estimate, Tails
from s2osc.pipeline.audit.threshold import (
    DecisionSettings,
    Evidence,
    Thresholds,
    choose_thresholds,
    false_alarm_limit,
    likely_unknown_share,
    share_of_unknown,
    smallest_limit,
    unknown_curve,
    with_own_limit,
    without_own_limit,
)
from s2osc.pipeline.filter.unknown_probability import squash
from s2osc.seeding import rng
from s2osc.types import UNKNOWN, UNSURE

CURVE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
"""False-alarm rates of the operating curve."""
N_RESAMPLED = 200
N_FOLDS = 10


class Decision(NamedTuple):
    """A label for each item of the pool, and the audit of the labels."""

    labels: np.ndarray  # (n,) a known class, UNKNOWN or UNSURE
    unknown_score: np.ndarray  # (n,) from 0 to 1
    confidence: np.ndarray  # (n,) the probability that the label is right
    p_known: np.ndarray  # (n,) the share of known items at least as strange
    thresholds: Thresholds
    audit: Audit


class Redrawn(NamedTuple):
    """Pool and seeds drawn anew, for intervals."""

    curve: Tails
    share: float  # of unknown items, as it is likely there

    def recall_at(self, threshold: float) -> float:
        if self.share == 0:
            return 0.0
        found = statistics.true_unknowns(self.curve, self.share)
        return float(found[self.curve.place(threshold)] / self.share)


def decide(evidence: Evidence, settings: DecisionSettings, *, seed: int) -> Decision:
    """Call items unknown, and estimate how often that is wrong.

    By the rule of the paper the threshold is 0 on the margin of C' over the known classes, and the
    seeds only measure.
    """
    share = share_of_unknown(evidence)
    nothing = settings.rule == "seeds" and evidence.p_value > settings.level
    if nothing:
        share, thresholds = Estimate(0.0, 0.0, share.high), Thresholds(np.inf)
    elif settings.rule == "argmax":
        thresholds = Thresholds(0.0)
    else:
        thresholds = choose_thresholds(evidence, share.estimate, settings)
    is_unknown = thresholds.are_passed(evidence.score, evidence.nearest)
    labels = np.where(is_unknown, UNKNOWN, evidence.nearest)
    levelled = _levelled(evidence, thresholds)
    known_below = _sure_known_below(levelled, thresholds.common, settings)
    if known_below is not None:
        labels[(levelled.score > known_below) & ~is_unknown] = UNSURE
    p = np.zeros(len(labels))
    if not nothing:
        p = unknown_curve(evidence, share.estimate, seed=seed)(evidence.score)
    confidence = answer_confidence(labels == UNKNOWN, p, evidence.nearest_confidence)
    return Decision(
        labels=labels,
        unknown_score=squash(evidence.score),
        confidence=confidence,
        p_known=statistics.p_known(evidence.score, evidence.seed_score, evidence.seed_weight),
        thresholds=thresholds,
        audit=_audit(evidence, settings, share, thresholds, known_below, seed=seed),
    )


def _levelled(evidence: Evidence, thresholds: Thresholds) -> Evidence:
    """The evidence by scores for which the common threshold is right, whatever the class."""
    return replace(
        evidence,
        score=thresholds.level(evidence.score, evidence.nearest),
        seed_score=thresholds.level(evidence.seed_score, evidence.seed_nearest),
    )


def _sure_known_below(
    evidence: Evidence, threshold: float, settings: DecisionSettings
) -> float | None:
    """The threshold below which so few unknown items lie that the answer "known" is sure.

    Unknown items that look like known ones everywhere cannot be left open: nobody sees them.
    """
    curve = evidence.tails()
    share = likely_unknown_share(evidence, curve)
    if not settings.unsure or not np.isfinite(threshold) or share == 0:
        return None
    missed = 1 - statistics.true_unknowns(curve, share) / share
    enough = curve.thresholds[missed <= settings.false_alarm]
    return float(min(threshold, enough.max() if len(enough) else -np.inf))


def _audit(
    evidence: Evidence,
    settings: DecisionSettings,
    share: Estimate,
    thresholds: Thresholds,
    known_below: float | None,
    *,
    seed: int,
) -> Audit:
    """Every figure, from the seeds alone. The names of classes are their numbers."""
    n_known = round(len(evidence.score) * (1 - share.estimate))
    weights = evidence.seed_weight
    alarms = _alarms_counted(evidence, thresholds, settings, seed=seed)
    is_named = evidence.seed_nearest == evidence.seed_label
    right = [~called & is_named for called in alarms]
    threshold, levelled = thresholds.common, _levelled(evidence, thresholds)
    drawn = _resampled(levelled, seed) if share.estimate else []
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
        smallest_false_alarm=smallest_limit(
            without_own_limit(evidence, settings), share.estimate, settings
        ),
        n_seeds=len(weights),
        test=UnknownTest(evidence.p_value, settings.level, evidence.long_tail),
        unknown_share=share,
        unknown_recall=_recall(levelled, threshold, share, drawn),
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
        curve=_operating_curve(levelled, share, drawn, settings),
        class_limits=_class_limits(evidence, settings, share, thresholds),
    )


def _class_limits(
    evidence: Evidence, settings: DecisionSettings, share: Estimate, thresholds: Thresholds
) -> tuple[ClassLimit, ...]:
    """The limits of single classes, and whether the seeds can keep them."""
    if settings.rule != "seeds":
        return ()
    judges = dict(with_own_limit(evidence, settings))
    found = []
    for name, rate in enumerate(settings.false_alarm_of):
        if rate == 0:
            continue
        smallest = 1.0
        if name in judges:
            smallest = smallest_limit(judges[name], share.estimate, settings)
        threshold = thresholds.of_class.get(name, thresholds.common)
        found.append(
            ClassLimit(
                name=str(name),
                wanted_false_alarm=rate,
                smallest_false_alarm=smallest,
                n_seeds=len(judges[name].seed_score) if name in judges else 0,
                operating_point=statistics.operating_point(
                    evidence.seed_score, evidence.seed_weight, threshold
                ),
            )
        )
    return tuple(found)


def false_alarm_rate(
    evidence: Evidence,
    thresholds: Thresholds,
    settings: DecisionSettings,
    n_known: int,
    *,
    seed: int,
) -> Estimate | None:
    """How often one of so many known items is called unknown; None where no seed tells."""
    alarms = _alarms_counted(evidence, thresholds, settings, seed=seed)
    return _rate(alarms, evidence.seed_weight, n_known)


def _alarms_counted(
    evidence: Evidence, thresholds: Thresholds, settings: DecisionSettings, *, seed: int
) -> list[np.ndarray]:
    """(m,) twice, whether each seed is called unknown: both count, and the wider interval.

    By thresholds chosen without each seed, and by the ones used.
    """
    return [
        _alarms(evidence, thresholds, settings, seed=seed),
        thresholds.are_passed(evidence.seed_score, evidence.seed_nearest),
    ]


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
    evidence: Evidence, thresholds: Thresholds, settings: DecisionSettings, *, seed: int
) -> np.ndarray:
    """(m,) whether each seed is called unknown by a threshold that was chosen without it.

    A threshold is optimistic for the seeds it was chosen by.
    """
    if settings.rule == "argmax" or not np.isfinite(thresholds.common):
        return thresholds.are_passed(evidence.seed_score, evidence.seed_nearest)
    fold_of = rng(seed, "folds").permutation(len(evidence.seed_score)) % N_FOLDS
    is_alarm = np.zeros(len(fold_of), bool)
    for fold in range(N_FOLDS):
        others = evidence.without_seeds(fold_of == fold)
        if len(others.seed_score):
            chosen = choose_thresholds(others, share_of_unknown(others).estimate, settings)
            is_alarm |= (fold_of == fold) & chosen.are_passed(
                evidence.seed_score, evidence.seed_nearest
            )
    return is_alarm


def _found(evidence: Evidence, threshold: float, share: float) -> float:
    """The share of the pool that is unknown and above the threshold."""
    weights, above = evidence.seed_weight, float(np.mean(evidence.score > threshold))
    alarms = float(weights @ (evidence.seed_score > threshold) / weights.sum())
    return float(np.clip(above - alarms * (1 - share), 0, share))


def _recall(
    evidence: Evidence, threshold: float, share: Estimate, drawn: Sequence[Redrawn]
) -> Estimate | None:
    """The share of unknown items that is called so; the interval by resampling."""
    if share.estimate == 0 or not np.isfinite(threshold):
        return None
    likely = likely_unknown_share(evidence, evidence.tails())
    value = _found(evidence, threshold, likely) / likely
    low, high = np.quantile([each.recall_at(threshold) for each in drawn], [0.025, 0.975])
    # Unknown items that resemble known ones are missing in the estimated share; its upper end
    # counts them as missed. There may be as few as its low end says, too.
    low = min(float(low), value * likely / share.high)
    of_fewest = _found(evidence, threshold, share.low) / share.low if share.low > 0 else 1.0
    return Estimate(value, low, max(value, float(high), of_fewest))


def _resampled(evidence: Evidence, seed: int) -> list[Redrawn]:
    curves = statistics.bootstrap(
        evidence.score,
        evidence.seed_score,
        evidence.seed_weight,
        n=N_RESAMPLED,
        random=rng(seed, "audit"),
    )
    return [Redrawn(curve, likely_unknown_share(evidence, curve)) for curve in curves]


def _operating_curve(
    evidence: Evidence, share: Estimate, drawn: Sequence[Redrawn], settings: DecisionSettings
) -> tuple[OperatingPoint, ...]:
    """What each false-alarm rate would find."""
    if share.estimate == 0:
        return ()
    likely = likely_unknown_share(evidence, evidence.tails())
    smallest = smallest_limit(evidence, share.estimate, settings)
    points: list[OperatingPoint] = []
    for rate in CURVE:
        if rate < smallest:
            continue
        threshold = false_alarm_limit(evidence, share.estimate, replace(settings, false_alarm=rate))
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
