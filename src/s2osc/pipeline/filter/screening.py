"""The filter as a whole: how distinct every item is, and what that says about the pool.

All signs are measured, labelled items and pool are compared where both are surely known, and a test
says whether anything in the pool is unknown. If the sources differ, held-back items are moved to
that of the pool before they are compared with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import softmax

from s2osc.arrays import in_one_thread
from s2osc.pipeline.audit import unknown_test
from s2osc.pipeline.audit.confidence import known_confidence
from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.audit.label_shift import (
    Mix,
    Names,
    are_ordinary,
    compare_mix,
    items_per_judge,
)
from s2osc.pipeline.audit.long_tail import SURE, LongTail, find_long_tail
from s2osc.pipeline.audit.record import SourcesAudit
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence, estimated_f_out_at
from s2osc.pipeline.filter.distinctness import FilterSettings, Units, distinctness, units
from s2osc.pipeline.filter.far_items import N_PARTS, FarItems, measure_far_items
from s2osc.pipeline.filter.signs import (
    InputSigns,
    Measured,
    MeasuredInputs,
    Signs,
    measure_signs,
    rankings,
    score_of_signs,
    signs_of_fold,
    sum_of_signs,
)
from s2osc.pipeline.sources.changes import Change
from s2osc.pipeline.sources.comparison import (
    CLEAR_MOVE,
    LEVEL,
    Comparison,
    bring_to_pool,
    compare_sources,
    move_held_back,
)
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.teacher import TeacherOutputs
from s2osc.types import Labelled

MATCHED_TOLERANCE = 0.05
"""Share of the pool that may lie above the held-back items, though it is known, where these were
given a change that is only about that of the pool's source. Where the change is only suspected,
there may be none: what stands out from items with it is a discovery."""
SOURCE_TOLERANCE = 0.1
"""Share of the pool that another source may carry above the held-back items, though it is known:
held-back items are moved to the pool's source by their middle, not one by one."""

DOUBTFUL = 0.1
"""The chance of so few labelled items among those far out, from which on these are no discovery."""
FEWEST_JUDGES = 2 * N_PARTS
"""Labelled items, from which on those far from all of them are counted."""
LEAST_RATIO = 1e-3
"""Items of the pool for one judge: a class of which there are none has a logarithm, too."""


@dataclass(frozen=True, eq=False)
class Filtered:
    """How distinct all items are, and what that says about the pool as a whole."""

    outputs: TeacherOutputs
    of_training: TeacherOutputs
    unit: Units
    w: np.ndarray  # (n,) Eq. 2
    score: np.ndarray  # (n,) by which D_out is chosen
    signs: Signs | None = None  # None: ranked by w alone
    sign_names: tuple[str, ...] = ()  # of all signs measured
    sources: Comparison | None = None  # None: not compared
    mix: Mix | None = None
    by_inputs: Evidence | None = None  # of the inputs alone, judged by all labelled items
    p_value: float | None = None  # of "nothing is unknown"; None: nothing was held back
    skill: float = 1.0  # of the inputs in naming labelled items, beside that of f
    long_tail: LongTail | None = None  # what the p-value rests on; None: on the exact tests

    @property
    def sources_differ(self) -> bool:
        return self.sources is not None and self.sources.differ

    def brought_to_pool(self, score: np.ndarray, pooled: Pool) -> np.ndarray:
        """The score with the held-back items moved to the pool's source, where that is another."""
        if self.sources is None or not self.sources.differ:
            return score
        names = self.outputs.logits.argmax(1)
        return move_held_back(score, names, pooled.is_held_back, self.sources.is_sure)

    def weights(self, pooled: Pool) -> np.ndarray:
        """(n,) how many known items of the pool each held-back item stands for; 1 for the pool."""
        of_class = pooled.class_weights * (1.0 if self.mix is None else self.mix.weights)
        of_items = of_class[pooled.held_back_labels]
        if pooled.item_weights is not None:
            of_items = of_items * pooled.item_weights
        return np.append(np.ones(pooled.n), of_items)

    def teaching_weights(self, pooled: Pool) -> np.ndarray:
        """(n,) the same for steps that learn, to which a calibration item is one of the pool."""
        return np.where(pooled.is_spy, self.weights(pooled), 1.0)

    def evidence(
        self,
        score: np.ndarray,
        known: np.ndarray,
        pooled: Pool,
        *,
        by: Literal["calibration", "spies"],
    ) -> Evidence:
        """Scores and probabilities of the known classes, (n, C), as evidence for the pool.

        Spies are compared with all that is unlabelled, calibration items with the pool.
        """
        assert self.p_value is not None, "evidence needs held-back items"
        of_pool, of_judges, labels = (
            pooled.of_pool,
            pooled.of_calibration,
            pooled.calibration_labels,
        )
        if by == "spies":
            of_pool, of_judges, labels = pooled.of_unlabelled, pooled.of_spies, pooled.spy_labels
        nearest = known.argmax(1)
        return Evidence(
            score=of_pool(score),
            nearest=of_pool(nearest),
            nearest_confidence=of_pool(known_confidence(known)),
            seed_score=of_judges(score),
            seed_label=labels,
            seed_nearest=of_judges(nearest),
            seed_weight=of_judges(self.weights(pooled)),
            p_value=self.p_value,
            long_tail=self.long_tail and replace(self.long_tail, start=None),
            sources_differ=self.sources_differ,
        )


@in_one_thread
def filter_pool(
    teacher_outputs: TeacherOutputs,
    of_training: TeacherOutputs,
    matched: Matched,
    settings: FilterSettings,
    *,
    seed: int,
) -> Filtered:
    """Rank all items by how distinct they are, and test whether any of the pool is unknown."""
    training, pooled = matched.training, matched.pooled
    unit = units(teacher_outputs, settings)
    w = distinctness(teacher_outputs, unit, settings)
    plain = Filtered(teacher_outputs, of_training, unit, w, score=w)
    if not pooled.is_calibrated:
        return plain
    names = teacher_outputs.logits.argmax(1)
    if settings.by == "paper":
        return replace(plain, p_value=unknown_p_value(w[:, None], names, pooled))
    assert matched.inputs is not None
    assert matched.last is not None
    measured = measure_signs(
        matched.inputs, pooled, teacher_outputs, of_training, w, training, seed=seed
    )
    signs, is_held_back = measured.signs, pooled.is_held_back
    sources = compare_pool_with_labelled(measured, matched.last, names, pooled, seed=seed)
    mix = mix_of_pool(measured, matched, are_apart=sources.differ or matched.is_changed)
    if sources.differ:
        signs = bring_to_pool(signs, names, is_held_back, sources)
    filtered = replace(
        plain,
        signs=signs,
        sign_names=measured.signs.names,
        sources=sources,
        mix=mix,
        skill=skill_of_inputs(matched.inputs, names, pooled),
    )
    strange = max(matched.unexplained, MATCHED_TOLERANCE if matched.is_changed else 0.0)
    if sources.differ:
        steady = sum_of_signs(signs, names, pooled.is_spy)
        steady = move_held_back(steady, names, is_held_back, sources.is_sure)
        far_end = unknown_test.unknown_at_far_end(
            pooled.of_pool(steady), pooled.of_calibration(steady), max(strange, SOURCE_TOLERANCE)
        )
        return replace(filtered, score=steady, p_value=far_end)
    by_f = rankings(measured.without_spies, names, np.ones(len(names), bool))
    p_value = unknown_p_value(by_f, names, pooled)
    scores = [(pooled.of_pool(by_f[:, -1]), pooled.of_held_back(by_f[:, -1]))]
    by_inputs = evidence_of_inputs(
        measured, matched.inputs.labels, teacher_outputs.logits, pooled, mix
    )
    if by_inputs is not None:
        p_value = min(1.0, 2 * min(p_value, by_inputs.p_value))
        scores.append((by_inputs.score, by_inputs.seed_score))
    if strange:
        far_ends = [unknown_test.unknown_at_far_end(*each, strange) for each in scores]
        p_value = max(p_value, min(far_ends))
    score = score_of_signs(signs, names, pooled.is_spy)
    filtered = replace(filtered, by_inputs=by_inputs, p_value=p_value, score=score)
    if strange or by_inputs is None or not pooled.training_is_random:
        return filtered
    return with_long_tail(filtered, by_inputs, matched.inputs, seed=seed)


def with_p_value_of_whole(
    filtered: Filtered, matched: Matched, p_by_inputs: Callable[[Sequence[Change]], float]
) -> Filtered:
    """The same for a sample, where the inputs of its whole pool say more than the sample does.

    ``p_by_inputs`` is by labelled items with changes. Where the pool shows a change, which is only
    about the right one, the sample decides.
    """
    if filtered.p_value is None or filtered.sources_differ or matched.is_changed:
        return filtered
    if matched.unexplained:
        return filtered
    return replace(filtered, p_value=min(filtered.p_value, p_by_inputs(matched.changes)))


def with_long_tail(
    filtered: Filtered, by_inputs: Evidence, inputs: MeasuredInputs, *, seed: int
) -> Filtered:
    """The same, where items too far out for a regular tail say more than the exact tests.

    Such items are too few for the labelled ones to tell where they begin, and the tail tells it:
    what it explains beyond the labelled items is as strange as the strangest of these, not more.
    """
    labels, p_value = inputs.labels, filtered.p_value
    is_judge, found = labels >= 0, None
    # A tail never says more than SURE.
    if is_judge.sum() >= FEWEST_JUDGES and p_value is not None and p_value > SURE:
        far = measure_far_items([space.points for space in inputs.spaces], labels, seed=seed)
        found = tail_of_a_class(far, is_judge)
    if found is None or p_value is None or found.p_value >= p_value:
        return filtered
    score = found.levelled(far.score, is_judge)
    of_pool, of_judges = score[~is_judge], score[is_judge]
    mix = filtered.mix
    weights = np.ones(len(of_judges)) if mix is None else mix.weights[labels[is_judge]]
    return replace(
        filtered,
        by_inputs=replace(
            by_inputs,
            score=of_pool,
            seed_score=of_judges,
            seed_label=labels[is_judge],
            seed_nearest=far.names[is_judge],
            seed_weight=weights,
            p_value=found.p_value,
            long_tail=found,
        ),
        p_value=found.p_value,
        long_tail=found,
    )


def tail_of_a_class(far: FarItems, is_judge: np.ndarray) -> LongTail | None:
    """A tail that is too long, with so few judges in it that it is hardly one of known items."""
    found = find_long_tail(far.score, far.names, is_judge)
    return found if found is not None and found.chance <= DOUBTFUL else None


def unknown_p_value(scores: np.ndarray, names: np.ndarray, pooled: Pool) -> float:
    """The p-value of "nothing is unknown" by scores (n, m) to which all held-back items are alike.

    ``names`` are the known classes f gives the items.
    """
    labels = np.append(np.full(pooled.n, -1), pooled.held_back_labels)
    return unknown_test.anything_unknown_in_any_mix(scores, names, labels)


def skill_of_inputs(inputs: MeasuredInputs, names: np.ndarray, pooled: Pool) -> float:
    """How well the inputs name labelled items, beside f: 0 is by chance, 1 is as well as f.

    Pixels of house numbers, say, hardly tell which digit they show, and no better that it is a new
    one. ``names`` (n,) are the known classes f gives pool and held-back items. Calibration items
    have no part in this: to every step they are items of the pool.
    """
    labels, fold = inputs.labels, inputs.free
    may_judge = fold.is_judge & (np.arange(len(labels)) >= pooled.n_unlabelled)
    if not may_judge.any() or not pooled.is_spy.any():
        return 1.0
    by_chance = 1 / (labels.max() + 1)
    of_inputs = np.mean(fold.names[may_judge] == labels[may_judge])
    of_f = np.mean(names[pooled.is_spy] == pooled.spy_labels)
    if of_f <= by_chance:
        return 1.0
    return float(np.clip((of_inputs - by_chance) / (of_f - by_chance), 0, 1))


def compare_pool_with_labelled(
    measured: Measured, by_inputs: Comparison, names: np.ndarray, pooled: Pool, *, seed: int
) -> Comparison:
    """The sources by all signs and calibration items, beside ``by_inputs``: two comparisons."""
    is_judge = pooled.is_held_back & ~pooled.is_spy
    left_out = pooled.is_beyond_even(len(names))
    found = compare_sources(
        measured.signs, names, pooled.is_spy, is_judge, left_out=left_out, seed=seed
    )
    if not found.is_possible:
        return found
    return found._replace(p_value=min(1.0, 2 * found.p_value, by_inputs.p_value))


def mix_of_pool(measured: Measured, matched: Matched, *, are_apart: bool) -> Mix:
    """How the pool mixes the known classes, by the items that are ordinary among the inputs.

    There most labelled items judge. Where the sources are apart, or labelled items were given a
    change, which is only about the right one, only surely known items are ordinary on both sides.
    """
    assert matched.inputs is not None
    assert matched.last is not None
    labels, pooled = matched.inputs.labels, matched.pooled
    of_class, ratios, first = class_weights_of_inputs(pooled), [], None
    for fold in measured.folds[:1] if are_apart else measured.folds:
        if are_apart:
            is_ordinary = matched.last.is_sure.copy()
        else:
            total = sum_of_signs(fold.signs, fold.names, fold.is_spy)
            is_ordinary = are_ordinary(total, fold.names, fold.is_judge)
        is_ordinary &= ~pooled.is_beyond_even(len(labels))
        judged = np.where(fold.is_spy, -2, labels)
        ordinary = Names.of(fold.names, judged, is_ordinary, n_classes=len(of_class))
        n_judges = np.bincount(labels[fold.is_judge], minlength=len(of_class))
        per_judge = items_per_judge(ordinary, n_judges)
        ratios.append(np.log(np.maximum(per_judge, LEAST_RATIO)))
        first = first or ordinary
    assert first is not None
    return compare_mix(first.n_pool, first.n_judges, of_class, np.exp(np.mean(ratios, axis=0)))


def class_weights_of_inputs(pooled: Pool) -> np.ndarray:
    """(C,) how many labelled items each one stands for that judges the inputs, relatively.

    All labelled items do so, or held-back ones alone.
    """
    return np.ones_like(pooled.class_weights) if pooled.training_is_random else pooled.class_weights


def evidence_of_inputs(
    measured: Measured, labels: np.ndarray, logits: np.ndarray, pooled: Pool, mix: Mix
) -> Evidence | None:
    """The evidence of the inputs alone, judged by most labelled items; None without any.

    They count as the pool mixes their classes, as calibration items do. Also None for a sample that
    has more of the strange, which labelled items have not. The test is repeated with each third of
    the labelled items as the teaching ones.
    """
    _, names, is_spy, is_judge = first = measured.of_inputs
    if not is_judge.any() or not is_spy.any() or pooled.is_extra is not None:
        return None
    known, of_class = softmax(pooled.of_pool(logits), axis=1), class_weights_of_inputs(pooled)
    of_class = of_class * mix.weights
    answer = Evidence(
        score=np.zeros(pooled.n),
        nearest=known.argmax(1),
        nearest_confidence=known.max(1),
        seed_score=np.zeros(int(is_judge.sum())),
        seed_label=measured.labels,
        seed_nearest=names[is_judge],
        seed_weight=of_class[measured.labels],
        p_value=unknown_test.most_agree([p_value_of_fold(fold, labels) for fold in measured.folds]),
    )
    scores = rankings(first.signs, names, is_spy)
    chosen = scores.shape[1] - 1  # all signs together
    if len(measured.folds) > 1:
        chosen = _best_ranking(measured.folds[1], is_spy, of_class[labels[is_spy]], answer)
    score = scores[:, chosen]
    return replace(answer, score=score[: pooled.n], seed_score=score[is_judge])


def _best_ranking(
    fold: InputSigns, is_chooser: np.ndarray, weights: np.ndarray, answer: Evidence
) -> int:
    """Which of the rankings finds most, as the items that taught in the first fold say.

    They judge in this one, and the judges of the first fold have no part in the choice but that
    some teach here.
    """
    rated, n, m = [], len(answer.score), int(is_chooser.sum())
    for score in rankings(fold.signs, fold.names, fold.is_spy).T:
        evidence = replace(
            answer,
            score=score[:n],
            seed_score=score[is_chooser],
            seed_label=np.zeros(m, int),
            seed_nearest=fold.names[is_chooser],
            seed_weight=weights,
        )
        rated.append(estimated_f_out_at(evidence, DecisionSettings(rule="seeds")))
    # All signs together, which is last, unless another one finds more.
    return len(rated) - 1 - int(np.argmax(rated[::-1]))


def p_value_of_fold(fold: InputSigns, labels: np.ndarray) -> float:
    """The p-value of "nothing is unknown" by signs of the inputs.

    ``labels`` (n,) are the classes of all items, -1 for those of the pool.
    """
    scores, is_tested = rankings(fold.signs, fold.names, fold.is_spy), ~fold.is_spy
    return unknown_test.anything_unknown_in_any_mix(
        scores[is_tested], fold.names[is_tested], labels[is_tested]
    )


def stands_out_by_inputs(matched: Matched, level: float, *, seed: int) -> bool:
    """Whether the inputs alone say at a level that something is unknown, whatever f says.

    Then ``filter_pool`` says so, too, unless it finds that the sources differ. This takes no f, and
    no more folds than make a majority.
    """
    inputs = matched.inputs
    assert inputs is not None
    if matched.pooled.is_extra is not None or not inputs.free.is_judge.any():
        return False
    n_folds = len(inputs.folds)
    majority = inputs.folds[: n_folds // 2 + 1]
    of_one_fold = level / 2 * len(majority) / n_folds  # beside the test by f (Bonferroni, Rueger)
    for number, teaches in enumerate(majority):
        fold = inputs.free
        if number:
            fold = signs_of_fold(inputs.spaces, inputs.labels, teaches, seed=seed)
        if not fold.is_spy.any() or p_value_of_fold(fold, inputs.labels) > of_one_fold:
            return False
    return True


def with_sure_items(
    training: Labelled,
    training_logits: np.ndarray,
    pooled: Pool,
    sources: Comparison,
    teacher_outputs: TeacherOutputs,
) -> tuple[Labelled, np.ndarray]:
    """The training items and the surely known items of a pool from another source, as f names them.

    Also the logits of f for all of them. Without them g would learn that only what looks like the
    labelled items is known.
    """
    rows = pooled.of_unlabelled(sources.is_sure).nonzero()[0]
    logits = teacher_outputs.logits[rows]
    items = Labelled(
        np.concatenate([training.inputs, pooled.inputs[rows]]),
        np.concatenate([training.labels, logits.argmax(1)]),
    )
    return items, np.concatenate([training_logits, logits])


def audit_sources(filtered: Filtered, matched: Matched) -> SourcesAudit | None:
    """What the comparison of the sources says; None where they could not be compared.

    Told is the comparison before labelled items were changed, if they were.
    """
    last, signs = filtered.sources, filtered.sign_names
    if last is None or matched.first is None:
        return None
    found = matched.first if matched.changes or matched.of_raw else last
    if not found.is_possible:
        return None
    still_differ = not matched.is_suspected and (last.differ or matched.is_apart)
    changes = (*matched.of_raw, *matched.changes)
    order = np.argsort(-np.abs(last.deviations), kind="stable")
    clear = [signs[i] for i in order if abs(last.deviations[i]) > CLEAR_MOVE]
    return SourcesAudit(
        p_value=found.p_value,
        level=LEVEL,
        n_pool=found.n_sure,
        n_labelled=found.n_compared,
        differ=still_differ or matched.is_changed,
        signs=tuple(clear) if still_differ else (),
        changes=tuple(filter(None, (change.in_words() for change in changes))),
        still_differ=still_differ,
        is_suspected=matched.is_suspected,
        tolerance=MATCHED_TOLERANCE if matched.is_changed else 0.0,
    )
