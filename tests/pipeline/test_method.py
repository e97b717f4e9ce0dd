"""The whole line: teacher, filter, student, groups, answer."""

import inspect
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from s2osc.errors import DataError, S2OSCWarning, SettingsError
from s2osc.nets.networks import Network
from s2osc.pipeline import method as method_module
from s2osc.pipeline.audit.held_back import SeedSettings, hide_in_pool
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence
from s2osc.pipeline.filter.distinctness import FilterSettings, distinctness, partition_pool, units
from s2osc.pipeline.grouping.clusters import ClusterSettings
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.presets import ABLATIONS
from s2osc.pipeline.sources.matched import RawItems
from s2osc.pipeline.sources.suspicion import suspected_sources
from s2osc.pipeline.verdict import finds_clearly_more, is_too_rare
from s2osc.types import UNKNOWN, UNSURE, Labelled
from samples import (
    LEARNT,
    MANY,
    SEEDED,
    SEEDED_MANY,
    TINY,
    make_blobs,
    make_images,
    open_set,
    several,
)

BLOBS = open_set(*make_blobs())
KNOWN_POOL = BLOBS.pool[BLOBS.truth != UNKNOWN]
KNOWN_TRUTH = BLOBS.truth[BLOBS.truth != UNKNOWN]
METHODS = {"one": TINY, "many": MANY, "one, seeds": SEEDED, "many, seeds": SEEDED_MANY}
MODES = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def modes(*quick, of=METHODS):
    """Each method; those that are not named are slow, as each half of them is in the others."""
    return pytest.mark.parametrize(
        "method",
        [
            pytest.param(method, id=name, marks=() if name in quick else pytest.mark.slow)
            for name, method in of.items()
        ],
    )


# One with and one without calibration items, one for an unknown class and one for several.
HALF_THE_MODES = modes("one, seeds", "many")
PLAIN_MODES = modes("one", of={"one": TINY, "many": MANY})
SEEDED_METHODS = {"one": SEEDED, "many": SEEDED_MANY}
SEEDED_MODES = modes("one", of=SEEDED_METHODS)


@cache
def fit_once(method):
    return method.fit(BLOBS.known, BLOBS.pool, seed=0)


@pytest.fixture
def solution():
    return fit_once(TINY)


@pytest.fixture
def seeded():
    return fit_once(SEEDED)


@pytest.fixture(scope="module")
def all_known():
    return SEEDED.fit(BLOBS.known, KNOWN_POOL, seed=0)


@pytest.fixture
def answered(monkeypatch):
    """How many items went through each network to be answered, not learnt from; by its id."""
    n_items, embed = Counter(), Network.embed

    def counted(network, inputs):
        if torch.is_inference_mode_enabled():
            n_items[id(network)] += len(inputs)
        return embed(network, inputs)

    monkeypatch.setattr(Network, "embed", counted)
    return n_items


def accuracy(split, answer):
    return np.mean(answer.labels == split.truth)


# The answer


@HALF_THE_MODES
def test_every_item_goes_through_f_and_every_item_of_the_pool_through_g_once(
    method, answered, monkeypatch
):
    monkeypatch.setattr(method_module, "suspected_sources", lambda matched, *, seed: iter(()))
    model = method.fit(BLOBS.known, BLOBS.pool, seed=0).model
    _, pooled = hide_in_pool(BLOBS.known, BLOBS.pool, method.seeds, seed=0)
    assert answered == {
        id(model.teacher.network): len(BLOBS.known) + len(BLOBS.pool),
        id(model.student.network): len(pooled.inputs),
    }


@pytest.mark.usefixtures("just_as_users_get_it")
def test_where_another_source_is_suspected_only_changed_items_go_through_f_again(
    answered, monkeypatch
):
    found = []

    def suspect(matched, *, seed):
        found.extend(suspected_sources(matched, seed=seed))
        return iter(found)

    monkeypatch.setattr(method_module, "suspected_sources", suspect)
    monkeypatch.setattr(method_module, "stands_out_by_inputs", lambda *_, seed: False)
    model = SEEDED.fit(BLOBS.known, BLOBS.pool, seed=0).model
    assert found
    n_answered = (1 + len(found)) * len(BLOBS.known) + len(BLOBS.pool)
    assert answered[id(model.teacher.network)] == n_answered


@pytest.mark.usefixtures("just_as_users_get_it")
def test_what_stands_out_by_its_inputs_alone_needs_no_f_for_a_suspected_source(
    answered, monkeypatch
):
    judged, found = method_module.stands_out_by_inputs, []

    def judge(suspected, level, *, seed):
        found.append(judged(suspected, level, seed=seed))
        return found[-1]

    monkeypatch.setattr(method_module, "stands_out_by_inputs", judge)
    model = SEEDED.fit(BLOBS.known, BLOBS.pool, seed=0).model
    assert found
    n_answered = (1 + found.count(False)) * len(BLOBS.known) + len(BLOBS.pool)
    assert answered[id(model.teacher.network)] == n_answered
    assert True in found


def test_every_item_goes_through_f_once_where_nothing_is_unknown(answered):
    model = SEEDED.fit(BLOBS.known, KNOWN_POOL, seed=0).model
    assert answered == {id(model.teacher.network): len(BLOBS.known) + len(KNOWN_POOL)}


def test_a_new_item_goes_through_f_and_g_once(solution, answered):
    solution.model.answer_fully(BLOBS.pool[:3])
    assert sorted(answered.values()) == [3, 3]


@pytest.mark.parametrize(
    ("method", "colour"),
    [
        pytest.param(SEEDED_MANY, False, id="many, seeds"),
        pytest.param(SEEDED, True, id="colour"),
        # Each half of them stands in one of those above.
        pytest.param(TINY, False, id="one", marks=pytest.mark.slow),
        pytest.param(MANY, False, id="many", marks=pytest.mark.slow),
        pytest.param(SEEDED, False, id="one, seeds", marks=pytest.mark.slow),
    ],
)
def test_images_are_answered(method, colour):
    split = open_set(*make_images(60, colour=colour))
    # A mirrored corner is another class here.
    method = replace(method, augmentation=replace(method.augmentation, flip=False))
    assert accuracy(split, method.fit(split.known, split.pool, seed=0).answer) > 0.9


def test_strong_views_of_images_are_learnt_from():
    split = open_set(*make_images())
    solution = ABLATIONS["S"](TINY).fit(split.known, split.pool, seed=0)
    assert accuracy(split, solution.answer) > 0.7


def test_several_unknown_classes_fall_into_their_groups():
    split = open_set(*make_blobs(n_classes=5))
    method = replace(several(LEARNT), clusters=ClusterSettings(n_groups=2))
    solution = method.fit(split.known, split.pool, seed=0)
    assert accuracy(split, solution.answer) > 0.9
    groups = solution.answer.groups
    majority = [np.bincount(groups[split.truth_classes == c] + 1).argmax() for c in (3, 4)]
    assert sorted(majority) == [1, 2]


def test_the_answer_for_the_pool_is_that_of_the_model(solution):
    again = solution.model.answer(BLOBS.pool)
    np.testing.assert_array_equal(again.labels, solution.answer.labels)
    np.testing.assert_array_equal(again.groups, solution.answer.groups)
    np.testing.assert_allclose(again.unknown_score, solution.answer.unknown_score, atol=1e-6)
    np.testing.assert_allclose(again.distinctness, solution.answer.distinctness, rtol=1e-4)
    np.testing.assert_array_equal(solution.predict(BLOBS.pool).labels, solution.answer.labels)


def test_filtered_items_are_d_out_and_new_items_are_never_filtered(solution):
    filtered = solution.answer.filtered
    np.testing.assert_array_equal(np.flatnonzero(filtered), solution.partition.unknown)
    assert filtered.sum() == solution.k == 15
    assert not solution.model.answer(BLOBS.pool).filtered.any()


def test_d_out_is_what_the_teachers_sight_says(solution):
    teacher_outputs = solution.model.teacher.outputs(solution.model.scaling.transform(BLOBS.pool))
    weights = distinctness(teacher_outputs, units(teacher_outputs, TINY.filtering), TINY.filtering)
    parts = partition_pool(weights, 15)
    np.testing.assert_array_equal(solution.partition.unknown, parts.unknown)
    np.testing.assert_allclose(solution.answer.distinctness, weights)


def test_unknown_items_have_a_group_and_known_items_none(solution):
    answer = solution.answer
    np.testing.assert_array_equal(answer.groups >= 0, answer.is_unknown)
    assert answer.groups.max() < solution.model.grouping.n_groups


@MODES
def test_probabilities_sum_to_one_and_agree_with_scores(method):
    model = fit_once(method).model
    p, answer = model.probabilities(BLOBS.pool), model.answer(BLOBS.pool)
    assert p.shape == (len(BLOBS.pool), 4)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(p[:, -1], answer.unknown_score, atol=1e-6)
    if model.confidence is not None:  # then held-back items say how sure an answer is
        assert ((answer.confidence > 0) & (answer.confidence < 1)).all()
        return
    columns = np.where(answer.is_unknown, 3, answer.labels)
    np.testing.assert_allclose(p[np.arange(len(p)), columns], answer.confidence, atol=1e-6)


# The fit


def test_no_truth_can_enter_a_fit():
    # A label of the pool would need an argument, which a reader would see.
    parameters = inspect.signature(S2OSCMethod.fit).parameters
    assert list(parameters) == ["self", "known", "pool", "seed", "device", "raw"]
    assert RawItems._fields == ("pool", "labelled", "embed")


def test_steps_and_seconds_of_a_fit_are_told(solution):
    n_known, n_undecided = len(BLOBS.known), len(BLOBS.pool) - 15
    assert solution.n_steps == {
        "teacher": TINY.teacher.training.n_steps(n_known),
        "student": TINY.student.training.n_steps(n_undecided),
    }
    steps = {"sources", "teacher", "filter", "student", "answer", "groups"}
    assert set(solution.seconds) == steps
    assert solution.embeddings.shape == (len(BLOBS.pool), 16)


def test_another_seed_gives_other_weights(solution):
    other = TINY.fit(BLOBS.known, BLOBS.pool, seed=1)
    for role in ("teacher", "student"):
        mine, theirs = (getattr(s.model, role).network.head.weight for s in (solution, other))
        assert not np.allclose(mine.detach(), theirs.detach())


@PLAIN_MODES
def test_a_k_larger_than_the_pool_is_reduced_with_a_warning(method):
    method = replace(method, filtering=replace(method.filtering, k=5_000))
    with pytest.warns(S2OSCWarning, match="K = 5000 is too large for a pool of 200 items"):
        solution = method.fit(BLOBS.known, BLOBS.pool, seed=0)
    assert solution.k == solution.answer.filtered.sum() == 40  # the largest class
    assert accuracy(BLOBS, solution.answer) > 0.9


@HALF_THE_MODES
@pytest.mark.parametrize("n_pool", [2, 5])
def test_a_pool_of_a_few_items_is_answered(method, n_pool):
    method = replace(method, filtering=replace(method.filtering, k=None))
    solution = method.fit(BLOBS.known, BLOBS.pool[-n_pool:], seed=0)
    assert solution.answer.labels.shape == (n_pool,)


@pytest.mark.parametrize("n_pool", [0, 1])
def test_a_pool_too_small_to_learn_from_is_refused(n_pool):
    with pytest.raises(DataError, match=f"the pool has {n_pool} item; give at least two"):
        TINY.fit(BLOBS.known, BLOBS.pool[:n_pool], seed=0)


@HALF_THE_MODES
def test_a_class_of_two_items_is_enough_to_be_learnt_from(method):
    rows = np.concatenate([np.flatnonzero(BLOBS.known.labels < 2), [80, 81]])
    known = Labelled(BLOBS.known.inputs[rows], BLOBS.known.labels[rows])
    assert np.bincount(known.labels)[2] == 2
    answer = method.fit(known, BLOBS.pool, seed=0).answer
    assert set(answer.labels) <= {UNKNOWN, 0, 1, 2}


@pytest.mark.usefixtures("just_as_users_get_it")
@SEEDED_MODES
@pytest.mark.parametrize(("n", "n_judges"), [(2, 0), (3, 2), (6, 2)])
def test_two_classes_of_a_few_labelled_items_are_enough(method, n, n_judges):
    rows = np.concatenate([np.flatnonzero(BLOBS.known.labels == c)[:n] for c in (0, 1)])
    known = Labelled(BLOBS.known.inputs[rows], BLOBS.known.labels[rows])
    pool = BLOBS.pool[BLOBS.truth != 2]
    solution = method.fit(known, pool, seed=0)
    assert set(solution.answer.labels) <= {UNKNOWN, 0, 1}
    n_seeds = 0 if solution.trust is None else len(solution.trust.evidence.seed_score)
    assert n_seeds == n_judges  # of a third of each class, every other one is a spy


# Seeds


def test_an_unknown_class_in_the_pool_is_found(seeded):
    assert isinstance(seeded.model, OpenSetModel)
    assert accuracy(BLOBS, seeded.answer) > 0.9
    audit = seeded.trust.audit
    assert not audit.nothing_unknown
    assert audit.test.p_value < 0.01
    share = audit.unknown_share
    assert share.low <= 0.4 <= share.high  # 80 of 200
    assert audit.groups.number == seeded.model.grouping.n_groups == 1
    # 21 calibration items, or most labelled items where f has no part in the score.
    assert audit.n_seeds == len(seeded.trust.evidence.seed_score)
    assert audit.n_seeds == 21 or len(BLOBS.known) / 2 < audit.n_seeds < len(BLOBS.known)
    assert audit.purity.k == seeded.k


def test_new_items_are_answered_at_the_operating_point_of_the_pool(seeded):
    new = open_set(*make_blobs(seed=1))
    answer = seeded.model.answer(new.pool)
    assert accuracy(new, answer) > 0.9
    np.testing.assert_array_equal(answer.groups >= 0, answer.is_unknown)
    assert isinstance(seeded.model.thresholds.common, float)


def test_pool_and_new_items_are_unknown_exactly_up_to_the_operating_point(seeded):
    new = seeded.model.answer(open_set(*make_blobs(seed=1)).pool)
    at = seeded.trust.audit.operating_point
    for answer, point in ((seeded.answer, at), (new, seeded.model.operating_point)):
        assert 0 < point <= 0.05
        np.testing.assert_array_equal(answer.is_unknown, answer.p_known <= point)


def test_new_known_items_have_p_values_as_evenly_spread_as_promised(seeded, all_known):
    new = open_set(*make_blobs(seed=1))
    known = new.pool[new.truth != UNKNOWN]
    for model in (seeded.model, all_known.model):
        p = model.answer(known).p_known
        for level in (0.05, 0.2, 0.5):
            assert np.mean(p <= level) == pytest.approx(level, abs=0.25)
    assert not all_known.model.answer(new.pool).is_unknown.any()
    assert all_known.model.operating_point == all_known.trust.audit.operating_point == 0


def test_without_seeds_there_are_no_p_values(solution):
    assert solution.answer.p_known is None
    assert solution.model.answer(BLOBS.pool).p_known is None


def test_seeds_are_in_no_part_of_the_answer(seeded):
    n = len(BLOBS.pool)
    answer = seeded.answer
    for values in (answer.labels, answer.unknown_score, answer.groups, answer.filtered):
        assert values.shape == (n,)
    assert seeded.embeddings.shape[0] == len(seeded.leaves) == n
    np.testing.assert_array_equal(np.flatnonzero(answer.filtered), seeded.partition.unknown)
    both = np.concatenate(seeded.partition)
    np.testing.assert_array_equal(np.sort(both), np.arange(n))
    if seeded.trust.odds is None:  # a score of the inputs decided, not one of g
        assert len(seeded.trust.evidence.seed_score) > len(BLOBS.known) / 2
    else:
        assert len(seeded.trust.odds) == n + 21


def test_without_an_unknown_class_nothing_is_unknown_and_f_answers(all_known):
    assert isinstance(all_known.model, KnownOnlyModel)
    assert all_known.trust.audit.nothing_unknown
    assert all_known.k == 0
    assert not all_known.answer.filtered.any()
    assert (all_known.answer.groups == -1).all()
    np.testing.assert_array_equal(
        all_known.answer.labels, all_known.model.answer(KNOWN_POOL).labels
    )
    assert np.mean(all_known.answer.labels == KNOWN_TRUTH) > 0.95
    assert set(all_known.n_steps) == {"teacher"}
    assert len(all_known.partition.undecided) == len(KNOWN_POOL)


def test_a_pool_with_and_one_without_unknown_items_are_accounted_for_alike(seeded, all_known):
    for solution in (seeded, all_known):
        assert solution.trust.audit.purity.k == solution.k
        assert solution.trust.audit.nothing_unknown == (solution.k == 0)
    assert seeded.trust.audit.groups.number == seeded.model.grouping.n_groups
    assert all_known.trust.audit.groups is None


@pytest.fixture(scope="module")
def in_folds():
    return replace(SEEDED, seeds=replace(SEEDED.seeds, judges=100)).fit(
        BLOBS.known, BLOBS.pool, seed=0
    )


def test_few_calibration_items_judge_in_folds(seeded, in_folds):
    n_judges = len(seeded.trust.evidence.seed_score)
    assert n_judges < 100
    evidence = in_folds.trust.evidence
    assert len(evidence.seed_score) >= min(100, 3 * n_judges)
    assert in_folds.seconds["folds"] > 0
    assert "folds" not in seeded.seconds
    assert accuracy(BLOBS, in_folds.answer) >= accuracy(BLOBS, seeded.answer) - 0.02
    audit = in_folds.trust.audit
    assert audit.false_alarm.high - audit.false_alarm.low < (
        seeded.trust.audit.false_alarm.high - seeded.trust.audit.false_alarm.low
    )


def test_new_items_are_answered_where_folds_judged(in_folds):
    new = in_folds.model.answer(BLOBS.pool)
    assert np.mean(new.labels == in_folds.answer.labels) > 0.9
    for answer, point in (
        (in_folds.answer, in_folds.trust.audit.operating_point),
        (new, in_folds.model.operating_point),
    ):
        np.testing.assert_array_equal(answer.is_unknown, answer.p_known <= point)


def test_where_nothing_is_unknown_there_are_no_folds(all_known):
    method = replace(SEEDED, seeds=replace(SEEDED.seeds, judges=100))
    again = method.fit(BLOBS.known, KNOWN_POOL, seed=0)
    np.testing.assert_array_equal(again.answer.labels, all_known.answer.labels)
    assert "folds" not in again.seconds


@SEEDED_MODES
def test_f_and_g_never_learn_from_a_seed(method, monkeypatch):
    learnt, lessons = [], []
    train_teacher, train_student = method_module.train_teacher, method_module.train_student

    def record_teacher(known, *arguments, **options):
        learnt.append(known)
        return train_teacher(known, *arguments, **options)

    def record_student(teacher, lesson, *arguments, **options):
        lessons.append(lesson)
        return train_student(teacher, lesson, *arguments, **options)

    monkeypatch.setattr(method_module, "train_teacher", record_teacher)
    monkeypatch.setattr(method_module, "train_student", record_student)
    solution = method.fit(BLOBS.known, BLOBS.pool, seed=0)
    (training,), (lesson,) = learnt, lessons
    seeds = lesson.pool[len(BLOBS.pool) :]
    assert len(seeds) == 39  # spies and calibration items
    scaled = solution.model.scaling.transform(BLOBS.known.inputs)
    everyone = {item.tobytes() for item in scaled}
    as_known = {item.tobytes() for item in training.inputs}
    assert {item.tobytes() for item in seeds} == everyone - as_known
    labelled_known = lesson.inputs[: lesson.n_known]
    assert {item.tobytes() for item in labelled_known} <= as_known


@modes("one", "many", of=SEEDED_METHODS)
def test_the_same_seed_gives_the_same_answer_and_account(method):
    first, again = fit_once(method), method.fit(BLOBS.known, BLOBS.pool, seed=0)
    for name in ("labels", "unknown_score", "confidence", "groups", "distinctness", "filtered"):
        np.testing.assert_array_equal(
            getattr(first.answer, name), getattr(again.answer, name), name
        )
    assert first.trust.audit == again.trust.audit
    assert first.model.thresholds == again.model.thresholds


def test_the_decision_can_be_taken_again_from_the_evidence(seeded):
    again = decide(seeded.trust.evidence, SEEDED.decision, seed=0)
    np.testing.assert_array_equal(again.labels, seeded.answer.labels)
    np.testing.assert_array_equal(again.unknown_score, seeded.answer.unknown_score)
    strict = decide(seeded.trust.evidence, replace(SEEDED.decision, false_alarm=0.03), seed=0)
    assert (strict.labels == UNKNOWN).sum() <= seeded.answer.is_unknown.sum()


def test_without_seeds_there_is_no_account(solution):
    assert solution.trust is None
    assert solution.model.thresholds is None


def test_a_share_of_nought_is_the_method_without_seeds():
    method = replace(
        SEEDED,
        seeds=SeedSettings(0.0),
        filtering=FilterSettings(k=15),
        decision=DecisionSettings(),
        student=replace(SEEDED.student, seed_weight=0.0, known_items="k"),
    )
    assert method == TINY


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("filtering", "filtering.by needs seeds, but seeds.share is 0; give seeds.share=0.15"),
        ("decision", "decision.rule needs seeds, but seeds.share is 0; .* or decision.rule=argmax"),
        ("student", "student.seed_weight needs seeds, .* or student.seed_weight=0"),
    ],
)
def test_settings_that_need_seeds_are_refused_without_them(name, words):
    with pytest.raises(SettingsError, match=words):
        replace(TINY, **{name: getattr(SEEDED, name)})


@pytest.mark.parametrize("rule", ["argmax", "seeds"])
def test_the_papers_filter_works_with_seeds(rule):
    method = replace(
        SEEDED, filtering=FilterSettings(k=15), decision=replace(SEEDED.decision, rule=rule)
    )
    solution = method.fit(BLOBS.known, BLOBS.pool, seed=0)
    assert accuracy(BLOBS, solution.answer) > 0.8
    assert solution.k == 15
    assert (solution.model.thresholds is None) == (rule == "argmax")
    assert solution.trust.audit.wanted_false_alarm == 0.05


def test_by_the_papers_rule_the_answer_is_gs_and_the_seeds_account_for_it():
    method = replace(SEEDED, decision=DecisionSettings())
    solution = method.fit(BLOBS.known, BLOBS.pool, seed=0)
    np.testing.assert_array_equal(solution.model.predict(BLOBS.pool).labels, solution.answer.labels)
    audit = solution.trust.audit
    assert audit.threshold == 0.5
    assert audit.false_alarm.low <= audit.false_alarm.estimate


def test_many_seeds_state_the_false_alarms_that_there_are():
    split = open_set(*make_blobs(220, distance=5.0))
    method = replace(SEEDED, seeds=SeedSettings(0.5))
    solution = method.fit(split.known, split.pool, seed=0)
    assert accuracy(split, solution.answer) > 0.9
    audit = solution.trust.audit
    is_known = split.truth != UNKNOWN
    alarms = solution.answer.is_unknown[is_known].mean()
    assert audit.false_alarm.low <= alarms <= audit.false_alarm.high
    assert alarms <= 0.1


def test_close_calls_can_be_left_open():
    split = open_set(*make_blobs(distance=3.0))
    method = replace(SEEDED, decision=replace(SEEDED.decision, unsure=True, level=0.9))
    answer = method.fit(split.known, split.pool, seed=0).answer
    assert set(answer.labels) <= {UNSURE, UNKNOWN, 0, 1, 2}
    assert (answer.groups[answer.is_unsure] == -1).all()


def stack(inputs, seed=0):
    """Three views of each item: itself, and two that differ a little."""
    noise = np.random.default_rng(seed).normal(size=(2, *inputs.shape)).astype(np.float32)
    return np.stack([inputs, inputs + 0.1 * noise[0], inputs + 0.1 * noise[1]], axis=1)


@HALF_THE_MODES
def test_stacked_views_are_answered_from_end_to_end(method):
    known = Labelled(stack(BLOBS.known.inputs), BLOBS.known.labels)
    solution = method.fit(known, stack(BLOBS.pool), seed=0)
    assert accuracy(BLOBS, solution.answer) > 0.9
    new = open_set(*make_blobs(seed=1))
    answer = solution.model.answer(stack(new.pool, seed=1))
    assert accuracy(new, answer) > 0.9
    np.testing.assert_array_equal(answer.groups >= 0, answer.is_unknown)


def test_an_account_holds_nothing_but_plain_values(seeded, all_known):
    def check(value):
        if isinstance(value, dict):
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)
        else:
            assert value is None or type(value) in (bool, int, float, str), repr(value)

    for solution in (seeded, all_known):
        check(solution.trust.audit.to_json())


# f alone


def test_without_a_pool_f_answers_alone_and_calls_nothing_unknown():
    model = TINY.fit_known_only(BLOBS.known, seed=0, device="cpu")
    is_known = BLOBS.truth != UNKNOWN
    predictions = model.predict(BLOBS.pool)
    assert np.mean(predictions.labels[is_known] == BLOBS.truth[is_known]) > 0.95
    assert predictions.labels.min() >= 0
    p = model.probabilities(BLOBS.pool)
    np.testing.assert_array_equal(p[:, -1], 0)
    np.testing.assert_allclose(p[:, :-1].max(1), predictions.confidence, atol=1e-6)
    entropy = model.teacher.outputs(model.scaling.transform(BLOBS.pool)).entropy
    np.testing.assert_allclose(predictions.unknown_score, entropy / np.log(3))


def test_f_alone_is_the_same_f_as_with_a_pool_that_does_not_change_the_scale():
    alone = TINY.fit_known_only(BLOBS.known, seed=0, device="cpu").teacher
    beside = TINY.fit(BLOBS.known, BLOBS.known.inputs, seed=0).model.teacher
    np.testing.assert_array_equal(
        alone.outputs(BLOBS.pool).logits, beside.outputs(BLOBS.pool).logits
    )


@pytest.mark.parametrize(("n_unknown", "n_calibration", "rare"), [(30, 40, True), (30, 400, False)])
def test_a_class_is_too_rare_for_a_few_calibration_items(n_unknown, n_calibration, rare):
    draw = np.random.default_rng(0)
    pool, seeds = draw.normal(size=2_000), draw.normal(size=1_000)
    pool[:n_unknown] += 20
    evidence = Evidence(
        score=pool,
        nearest=np.zeros(2_000, int),
        nearest_confidence=np.ones(2_000),
        seed_score=seeds,
        seed_label=np.zeros(1_000, int),
        seed_nearest=np.zeros(1_000, int),
        seed_weight=np.ones(1_000),
        p_value=1e-6,
    )
    assert is_too_rare(evidence, n_calibration, DecisionSettings(rule="seeds")) == rare


@pytest.mark.parametrize(
    ("n_few", "apart", "by_g"),
    [
        pytest.param(8, 2.5, 4.0, id="g finds nearly all"),
        pytest.param(4, 9.0, 2.5, id="inputs are surer of their few"),
    ],
)
def test_inputs_that_find_a_few_of_many_are_not_taken_for_those_of_a_rare_class(n_few, apart, by_g):
    random = np.random.default_rng(0)
    known, unknown = random.normal(size=450), random.normal(size=50)

    def evidence(apart, n_seeds):
        return Evidence(
            score=np.append(known, unknown + apart),
            nearest=np.zeros(500, int),
            nearest_confidence=np.ones(500),
            seed_score=random.normal(size=n_seeds),
            seed_label=np.zeros(n_seeds, int),
            seed_nearest=np.zeros(n_seeds, int),
            seed_weight=np.ones(n_seeds),
            p_value=1e-3,
        )

    settings = DecisionSettings(rule="seeds")
    a_few = np.where(np.arange(50) < n_few, apart, 0.7)
    by_inputs, by_calibration = evidence(a_few, 1_000), evidence(by_g, 115)
    assert is_too_rare(by_inputs, 115, settings)  # by what the inputs find
    assert not finds_clearly_more(by_inputs, by_calibration, settings)


def test_in_a_second_round_the_ranking_of_the_first_g_gives_the_distinct_unknowns():
    first = SEEDED.fit(BLOBS.known, BLOBS.pool, seed=0)
    twice = replace(SEEDED, student=replace(SEEDED.student, rounds=2))
    second = twice.fit(BLOBS.known, BLOBS.pool, seed=0)
    assert second.n_steps["student"] == 2 * first.n_steps["student"]
    assert first.trust is not None
    odds = first.trust.odds[: len(BLOBS.pool)]
    taken = second.partition.unknown
    others = np.delete(odds, taken)
    assert len(taken)
    assert odds[taken].min() >= others.max()
    assert first.partition.unknown.tolist() != taken.tolist()
