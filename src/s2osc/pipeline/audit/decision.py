"""From scores to labels: the operating point, and the audit of the labels by the seeds.

``Evidence`` is all that is needed, so a decision can be taken again, for another false-alarm rate,
without training anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import numpy as np

from s2osc.errors import SettingsError
from s2osc.pipeline.audit import statistics, unknown_test
from s2osc.pipeline.audit.confidence import Curve, answer_confidence, fit_unknown
from s2osc.pipeline.audit.record import (
    Audit,
    ClassAudit,
    ClassLimit,
    OperatingPoint,
    UnknownTest,
)
from s2osc.pipeline.audit.statistics import Estimate, Tails
from s2osc.pipeline.filter.score import squash
from s2osc.seeding import rng
from s2osc.settings import require_choice, require_range
from s2osc.text import listed
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
    false_alarm_of: tuple[float, ...] = ()  # of those named each class; 0: no limit of its own
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
        for limit in self.false_alarm_of:
            require_range("false-alarm-of", limit, 0, 1)


def number_classes(changes: Mapping[str, Any], classes: Sequence[str] | None) -> dict[str, Any]:
    """Changes of settings, limits of single classes by their names as one for each class.

    Where the classes are not known yet (None), such limits are left out.

    >>> number_classes({"decision.false_alarm_of": {"dog": "0.01"}}, ["cat", "dog"])
    {'decision.false_alarm_of': (0.0, 0.01)}
    """
    numbered = dict(changes)
    for setting, limits in changes.items():
        if not setting.endswith("false_alarm_of") or not isinstance(limits, Mapping):
            continue
        rates = {str(name): _class_rate(str(name), rate) for name, rate in limits.items()}
        del numbered[setting]
        if classes is None:
            continue
        for name in rates:
            if name not in classes:
                near = get_close_matches(name, classes, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there is {listed(classes)}"
                raise SettingsError(
                    f"false-alarm-of names {name!r}, which is no known class; {hint}"
                )
        numbered[setting] = tuple(rates.get(name, 0.0) for name in classes) if rates else ()
    return numbered


def _class_rate(name: str, rate: Any) -> float:
    try:
        found = float(rate)
    except (TypeError, ValueError):
        found = np.nan
    if not 0 < found < 1:
        raise SettingsError(
            f"false-alarm-of {name} is {rate}; give a share between 0 and 1, such as 0.01"
        )
    return found


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured about pool and seeds."""

    score: np.ndarray  # (n,) of the pool; rises with the belief that an item is unknown
    nearest: np.ndarray  # (n,) the best known class
    nearest_confidence: np.ndarray  # (n,) that it is right, given that the item is known
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

    def named(self, name: int) -> "Evidence":
        """The same with the seeds alone that are given one known class."""
        return self.without_seeds(self.seed_nearest != name)

    def by_odds(self, odds: np.ndarray) -> "Evidence":
        """The same with the log-odds of g for pool and seeds, (n + m,), as the score."""
        n_pool = len(self.score)
        return replace(self, score=odds[:n_pool], seed_score=odds[n_pool:])

    @property
    def n_effective(self) -> float:
        """The number of seeds of equal weight that these are worth."""
        return statistics.effective_number(self.seed_weight)

    def tails(self) -> Tails:
        return statistics.tails(self.score, self.seed_score, self.seed_weight)


@dataclass(frozen=True)
class Thresholds:
    """Items are unknown above the common threshold or, if given such a class, above its own."""

    common: float
    of_class: Mapping[int, float] = field(default_factory=dict)

    def level(self, score: np.ndarray, names: np.ndarray) -> np.ndarray:
        """The scores, those of each class moved so that the common threshold is right for all.

        >>> Thresholds(2.0, {1: 5.0}).level(np.array([2.5, 5.5, 4.0]), np.array([0, 1, 1])).tolist()
        [2.5, 2.5, 1.0]
        """
        if not self.of_class:
            return score
        move = np.zeros(int(names.max(initial=0)) + 1 + max(self.of_class))
        move[list(self.of_class)] = [self.common - own for own in self.of_class.values()]
        return score + move[names]

    def are_passed(self, score: np.ndarray, names: np.ndarray) -> np.ndarray:
        """(n,) whether items with these scores and best known classes are unknown."""
        thresholds = np.full(len(score), self.common)
        for name, own in self.of_class.items():
            thresholds[names == name] = own
        return score > thresholds


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
    confidence: np.ndarray  # (n,) the probability that the label is right
    p_known: np.ndarray  # (n,) the share of known items at least as strange
    thresholds: Thresholds
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
    return _best_above(_limit(evidence, share, settings), evidence, share, settings)


def choose_thresholds(evidence: Evidence, share: float, settings: DecisionSettings) -> Thresholds:
    """The common threshold, and one for each class with a limit on false alarms of its own.

    That limit is kept among the known items *that are given the class*, by the seeds that are given
    it, and the common one among the others. A class without such seeds has the common threshold.
    """
    limit = _limit(_without_own_limit(evidence, settings), share, settings)
    common = _best_above(limit, evidence, share, settings)
    if not np.isfinite(common):
        return Thresholds(common)
    own = {}
    for name, judged in _with_own_limit(evidence, settings):
        limited = replace(settings, false_alarm=settings.false_alarm_of[name])
        limit = _limit(judged, share, limited)
        threshold = _best_above(limit, evidence, share, settings)
        own[name] = threshold if np.isfinite(threshold) else limit
    return Thresholds(common, own)


def _with_own_limit(
    evidence: Evidence, settings: DecisionSettings
) -> Iterator[tuple[int, Evidence]]:
    """Each class with a limit of its own and seeds that are given it, and their evidence."""
    for name, rate in enumerate(settings.false_alarm_of):
        is_named = evidence.nearest == name
        judged = replace(evidence.named(name), score=evidence.score[is_named])
        if rate > 0 and len(judged.seed_score):
            yield name, judged


def _without_own_limit(evidence: Evidence, settings: DecisionSettings) -> Evidence:
    """The evidence of the items that are given other classes; all, where no seed is."""
    own = [name for name, rate in enumerate(settings.false_alarm_of) if rate > 0]
    has_own = np.isin(evidence.seed_nearest, own)
    if not own or has_own.all():
        return evidence
    others = evidence.without_seeds(has_own)
    return replace(others, score=evidence.score[~np.isin(evidence.nearest, own)])


def _best_above(
    limit: float, evidence: Evidence, share: float, settings: DecisionSettings
) -> float:
    """Where F_out is best of all thresholds from a limit on; the limit, if recall is the aim."""
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


def thresholds_for_new(
    evidence: Evidence, odds: np.ndarray, settings: DecisionSettings
) -> Thresholds | None:
    """The same operating point on the log-odds of g, (n + m,), which is all that new items have.

    It lies at a seed, where the p-value changes: unlike items of the pool, new ones may come
    between that seed and the threshold. None leaves them to g's largest output, as in the paper.
    """
    if settings.rule == "argmax":
        return None
    if evidence.p_value > settings.level:
        return Thresholds(np.inf)
    by_odds = evidence.by_odds(odds)
    chosen = choose_thresholds(by_odds, share_of_unknown(by_odds).estimate, settings)

    def at_seed(threshold: float) -> float:
        below = by_odds.seed_score[by_odds.seed_score <= threshold]
        return float(below.max()) if np.isfinite(threshold) else threshold

    of_class = {name: at_seed(own) for name, own in chosen.of_class.items()}
    return Thresholds(at_seed(chosen.common), of_class)


def unknown_curve(evidence: Evidence, share: float, *, seed: int) -> Curve:
    """P(unknown) over the score, where a share of the pool is unknown."""
    weights = evidence.seed_weight
    return fit_unknown(evidence.score, evidence.seed_score, weights, share, seed=seed)


def unknown_curve_for_new(
    evidence: Evidence, odds: np.ndarray, settings: DecisionSettings, *, seed: int
) -> Curve | None:
    """The same over the log-odds of g, (n + m,); None where nothing is called unknown."""
    if settings.rule == "seeds" and evidence.p_value > settings.level:
        return None
    by_odds = evidence.by_odds(odds)
    return unknown_curve(by_odds, share_of_unknown(by_odds).estimate, seed=seed)


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
    thresholds: Thresholds,
    known_below: float | None,
    *,
    seed: int,
) -> Audit:
    """Every figure, from the seeds alone. The names of classes are their numbers."""
    n_known = round(len(evidence.score) * (1 - share.estimate))
    weights = evidence.seed_weight
    # With thresholds chosen without each seed, and with the one used: the wider interval.
    alarms = [
        _alarms(evidence, thresholds, settings, seed=seed),
        thresholds.are_passed(evidence.seed_score, evidence.seed_nearest),
    ]
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
        smallest_false_alarm=_smallest_promise(
            _without_own_limit(evidence, settings), share.estimate, settings
        ),
        n_seeds=len(weights),
        test=UnknownTest(evidence.p_value, settings.level),
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
    judges = dict(_with_own_limit(evidence, settings))
    found = []
    for name, rate in enumerate(settings.false_alarm_of):
        if rate == 0:
            continue
        smallest = 1.0
        if name in judges:
            smallest = _smallest_promise(judges[name], share.estimate, settings)
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
