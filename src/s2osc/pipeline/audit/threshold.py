"""The operating point: from what was measured about pool and seeds to the thresholds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from s2osc.errors import SettingsError
from s2osc.pipeline.audit import statistics, unknown_test
from s2osc.pipeline.audit.confidence import Curve, fit_unknown
from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.statistics import Estimate, Tails
from s2osc.settings import NamedSettings, require_choice, require_range
from s2osc.text import listed


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


def number_classes(changes: Mapping[str, Any], classes: Sequence[str] | None) -> NamedSettings:
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
    long_tail: LongTail | None = None  # what the p-value rests on; None: on exact tests

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
        n_pool, long_tail = len(self.score), self.long_tail
        long_tail = long_tail and replace(long_tail, start=None)
        return replace(self, score=odds[:n_pool], seed_score=odds[n_pool:], long_tail=long_tail)

    @property
    def n_effective(self) -> float:
        """The number of seeds of equal weight that these are worth."""
        return statistics.effective_number(self.seed_weight)

    @property
    def guessed_share(self) -> float:
        """The share of known items whose class is merely guessed."""
        is_right = self.seed_nearest == self.seed_label
        accuracy = float(self.seed_weight @ is_right / self.seed_weight.sum())
        return statistics.guessed_share(accuracy, self.n_classes)

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


def share_of_unknown(evidence: Evidence) -> Estimate:
    """The unknown share of the pool, estimated low."""
    return statistics.unknown_share(
        evidence.tails(),
        len(evidence.score),
        evidence.n_effective,
        _fewest_below(evidence),
        hidden=max(statistics.HIDDEN, evidence.guessed_share),
    )


def likely_unknown_share(evidence: Evidence, curve: Tails) -> float:
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
    F_out rises until the next false alarm, just above one: ``operating_point`` needs that. (Between
    a seed and the place where a long tail begins there are no scores, see ``LongTail.levelled``.)
    """
    return _best_above(false_alarm_limit(evidence, share, settings), evidence, share, settings)


def choose_thresholds(evidence: Evidence, share: float, settings: DecisionSettings) -> Thresholds:
    """The common threshold, and one for each class with a limit on false alarms of its own.

    That limit is kept among the known items *that are given the class*, by the seeds that are given
    it, and the common one among the others. A class without such seeds has the common threshold.
    """
    limit = false_alarm_limit(without_own_limit(evidence, settings), share, settings)
    common = _best_above(limit, evidence, share, settings)
    if not np.isfinite(common):
        return Thresholds(common)
    own = {}
    for name, judged in with_own_limit(evidence, settings):
        limited = replace(settings, false_alarm=settings.false_alarm_of[name])
        limit = false_alarm_limit(judged, share, limited)
        threshold = _best_above(limit, evidence, share, settings)
        own[name] = threshold if np.isfinite(threshold) else limit
    return Thresholds(common, own)


def with_own_limit(
    evidence: Evidence, settings: DecisionSettings
) -> Iterator[tuple[int, Evidence]]:
    """Each class with a limit of its own and seeds that are given it, and their evidence."""
    for name, rate in enumerate(settings.false_alarm_of):
        is_named = evidence.nearest == name
        judged = replace(evidence.named(name), score=evidence.score[is_named])
        if rate > 0 and len(judged.seed_score):
            yield name, judged


def without_own_limit(evidence: Evidence, settings: DecisionSettings) -> Evidence:
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
    """Where F_out is best of all thresholds from a limit on; the limit, if recall is the aim.

    Where items lie too far out for a regular tail, F_out is best where they begin.
    """
    if settings.aim == "recall":
        return limit
    if evidence.long_tail is not None and evidence.long_tail.start is not None:
        return max(limit, evidence.long_tail.start)
    curve = evidence.tails()
    allowed = curve.thresholds >= limit
    if not allowed.any():
        return limit
    f_out = np.where(allowed, statistics.estimated_f_out(curve, share, evidence.n_effective), -1)
    best = int(f_out.argmax())
    return float(max(limit, curve.thresholds[best])) if f_out[best] > 0 else np.inf


def false_alarm_limit(evidence: Evidence, share: float, settings: DecisionSettings) -> float:
    """The lowest threshold that keeps the limit on false alarms, on average or in this pool."""
    seeds, weights = evidence.seed_score, evidence.seed_weight
    if settings.guarantee == "pool":
        n_known = _n_known(evidence, share)
        return statistics.threshold_for_pool(seeds, weights, settings.false_alarm, n_known)
    return statistics.conformal_threshold(seeds, weights, settings.false_alarm)


def smallest_limit(evidence: Evidence, share: float, settings: DecisionSettings) -> float:
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


def estimated_f_out_at(
    evidence: Evidence,
    settings: DecisionSettings,
    *,
    n_seeds: float | None = None,
    share: float | None = None,
) -> float:
    """The estimated F_out of the best allowed threshold on these scores.

    Few seeds make an estimate low, and scores that find little suppose that little is unknown. To
    compare scores, give both the same ``n_seeds`` and the same ``share`` of the pool that is.
    """
    own_share = share_of_unknown(evidence).estimate
    threshold, curve = choose_threshold(evidence, own_share, settings), evidence.tails()
    n_seeds = evidence.n_effective if n_seeds is None else n_seeds
    share = own_share if share is None else share
    return float(statistics.estimated_f_out(curve, share, n_seeds)[curve.place(threshold)])
