"""The filter as a whole: scores in which calibration items and pool are exchangeable."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.pipeline.audit.held_back import Pool, SeedSettings, hide_in_pool
from s2osc.pipeline.filter.distinctness import FilterSettings
from s2osc.pipeline.filter.screening import (
    audit_sources,
    filter_pool,
    skill_of_inputs,
    stands_out_by_inputs,
    with_sure_items,
)
from s2osc.pipeline.filter.signs import InputSigns, MeasuredInputs
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.sources.matching import (
    compare_inputs,
)
from s2osc.pipeline.teacher import train_teacher
from s2osc.types import UNKNOWN, Labelled
from samples import SEEDED, make_blobs, make_images, open_set

BY_SEEDS = SEEDED.filtering


def random(seed=0):
    return np.random.default_rng(seed)


def prepared(inputs, labels, *, share=0.15, pool=None, known=None):
    """f, its training items, and a pool with held-back items."""
    split = open_set(inputs, labels)
    known = split.known if known is None else known
    training, pooled = hide_in_pool(
        known, split.pool if pool is None else pool, SeedSettings(share), seed=0
    )
    teacher, _ = train_teacher(training, SEEDED.teacher, SEEDED.augmentation, seed=0, device="cpu")
    return teacher, training, pooled


def compared(training, pooled):
    """Labelled items as they are, beside those of the pool."""
    if not pooled.is_calibrated:
        return Matched(training, pooled)
    return compare_inputs(training, pooled, seed=0)


def screened(teacher, training, pooled, settings=BY_SEEDS):
    of_training = teacher.outputs(training.inputs)
    found = teacher.outputs(pooled.inputs)
    return filter_pool(found, of_training, compared(training, pooled), settings, seed=0)


def swapped(pooled, i, j):
    """The pool with two items in each other's place, and the order that does it."""
    order = np.arange(len(pooled.inputs))
    order[[i, j]] = j, i
    return pooled._replace(inputs=pooled.inputs[order]), order


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(make_blobs, id="vectors"),
        pytest.param(make_images, id="images", marks=pytest.mark.slow),
    ],
)
def made(request):
    return prepared(*request.param(60))


@pytest.fixture(scope="module")
def vectors():
    return prepared(*make_blobs(60))


# Exchangeable by construction


def test_a_calibration_item_and_one_of_the_pool_that_change_places_keep_their_scores(made):
    teacher, training, pooled = made
    filtered = screened(*made)
    assert not filtered.sources_differ
    for i, j in ((0, pooled.n), (8, pooled.n_unlabelled - 1)):
        other, order = swapped(pooled, i, j)
        again = screened(teacher, training, other)
        np.testing.assert_allclose(again.w, filtered.w[order], rtol=1e-5)
        # What rounding is left, in f's outputs, may decide which of two items is the hundredth
        # neighbour of a third. That moves the third, and the ranks of those it passes by one place.
        apart = np.abs(again.score - filtered.score[order])
        assert np.mean(apart < 1 / len(apart)) > 0.98
        assert apart.max() < 0.05
        np.testing.assert_array_equal(again.sources.is_sure, filtered.sources.is_sure[order])


def test_the_papers_filter_keeps_them_apart_as_little(vectors):
    teacher, training, pooled = vectors
    other, order = swapped(pooled, 3, pooled.n + 2)
    filtered, again = (screened(teacher, training, p, FilterSettings()) for p in (pooled, other))
    np.testing.assert_allclose(again.score, filtered.score[order], rtol=1e-5)
    assert 0 < filtered.p_value <= 1


def test_weights_of_a_class_are_those_of_spies_in_what_is_learnt_and_of_all_in_what_is_judged():
    inputs, labels = make_blobs(60)
    teacher, training, pooled = prepared(inputs, labels)
    pooled = pooled._replace(class_weights=np.array([1.0, 3.0, 2.0]))
    filtered = screened(teacher, training, pooled)
    weights, of_class = filtered.weights(pooled), np.array([1.0, 3.0, 2.0])
    if filtered.mix.is_shifted:
        of_class = of_class * filtered.mix.weights
    np.testing.assert_allclose(weights[: pooled.n], 1.0)
    np.testing.assert_allclose(weights[pooled.n :], of_class[pooled.held_back_labels])
    teaching = filtered.teaching_weights(pooled)
    np.testing.assert_allclose(pooled.of_unlabelled(teaching), 1.0)
    np.testing.assert_allclose(pooled.of_spies(teaching), of_class[pooled.spy_labels])


# What the filter finds


def test_an_unknown_class_is_found_and_ranks_first(made):
    _, _, pooled = made
    filtered = screened(*made)
    assert filtered.p_value < 0.01
    top = np.argsort(-pooled.of_pool(filtered.score))[:40]
    assert np.mean(top >= 90) > 0.9  # 90 known items come first in the pool, then 60 unknown


def test_spies_judge_all_that_is_unlabelled_and_calibration_items_the_pool(vectors):
    pooled, filtered = vectors[2], screened(*vectors)
    known = np.eye(3)[filtered.outputs.logits.argmax(1)]
    by_spies = filtered.evidence(filtered.score, known, pooled, by="spies")
    by_calibration = filtered.evidence(filtered.score, known, pooled, by="calibration")
    assert len(by_spies.score) == pooled.n_unlabelled
    assert len(by_calibration.score) == pooled.n
    np.testing.assert_array_equal(by_spies.seed_label, pooled.spy_labels)
    np.testing.assert_array_equal(by_calibration.seed_label, pooled.calibration_labels)
    np.testing.assert_array_equal(by_calibration.nearest_confidence, 1.0)
    assert by_spies.p_value == by_calibration.p_value == filtered.p_value


def named_by_inputs(right):
    """Two classes by turns: 4 items of the pool, 2 calibration items, 4 spies, 10 for training."""
    labels = np.append(np.full(4, -1), np.arange(16) % 2)
    is_judge = np.arange(20) >= 6
    names = np.where(np.arange(20) < 6 + right, np.maximum(labels, 0), 1 - np.maximum(labels, 0))
    fold = InputSigns(None, names, np.zeros(20, bool), is_judge)
    labelled = labels[4:10]
    pooled = Pool(np.zeros((10, 1)), 4, labelled[:2], labelled[2:], np.ones(2))
    return MeasuredInputs([], labels, [], fold), pooled


@pytest.mark.parametrize(("right", "skill"), [(14, 1.0), (7, 0.0), (3, 0.0), (10, 3 / 7)])
def test_the_inputs_have_skill_as_far_as_they_name_labelled_items_as_f_does(right, skill):
    measured, pooled = named_by_inputs(right)
    by_f = np.append(np.zeros(4, int), pooled.held_back_labels)  # f names all of them right
    assert skill_of_inputs(measured, by_f, pooled) == pytest.approx(skill)


def test_beside_an_f_that_names_fewer_right_the_inputs_have_more_skill():
    measured, pooled = named_by_inputs(10)  # 3/14 above chance
    by_f = np.append(np.zeros(4, int), pooled.held_back_labels)
    by_f[-1] = 1 - by_f[-1]  # f: 1/4 above chance
    assert skill_of_inputs(measured, by_f, pooled) == pytest.approx(6 / 7)
    by_f[-2] = 1 - by_f[-2]  # f: by chance
    assert skill_of_inputs(measured, by_f, pooled) == 1


def test_calibration_items_do_not_tell_the_skill_of_the_inputs():
    measured, pooled = named_by_inputs(10)
    by_f = np.append(np.zeros(4, int), pooled.held_back_labels)
    by_f[4:6] = 1 - by_f[4:6]
    assert skill_of_inputs(measured, by_f, pooled) == pytest.approx(3 / 7)


def test_without_held_back_items_w_ranks_alone():
    inputs, labels = make_blobs(20)
    teacher, training, pooled = prepared(inputs, labels, share=0.0)
    filtered = screened(teacher, training, pooled)
    np.testing.assert_array_equal(filtered.score, filtered.w)
    assert filtered.p_value is None
    assert not filtered.sources_differ


def test_the_inputs_alone_are_judged_at_the_rate_they_promise():
    # Nothing is unknown: of the pool, as many items lie above a threshold as of those that judge.
    inputs, labels = make_blobs(300, 3, distance=8.0, seed=1)
    teacher, training, pooled = prepared(inputs, labels)
    judged = screened(teacher, training, pooled).by_inputs
    for share in (0.5, 0.8, 0.9):
        above = np.mean(judged.score > np.quantile(judged.seed_score, share))
        assert above == pytest.approx(1 - share, abs=0.05)


def test_the_inputs_alone_are_judged_in_the_mix_of_the_pool():
    # Nothing is unknown, and most of the pool is of the class whose items are the strangest.
    inputs, labels = make_blobs(400, 3, distance=12.0, seed=1)
    inputs[labels == 0] += random().normal(size=(400, 8)).astype(np.float32)
    split = open_set(inputs, labels)
    strangest = np.flatnonzero(split.truth == 0)
    others = [np.flatnonzero(split.truth == c)[:20] for c in (1, 2)]
    pool = split.pool[np.concatenate([strangest, *others])]
    judged = screened(*prepared(inputs, labels, pool=pool)).by_inputs
    for threshold in np.quantile(judged.score, (0.5, 0.8)):
        above = judged.seed_weight @ (judged.seed_score > threshold) / judged.seed_weight.sum()
        assert above == pytest.approx(np.mean(judged.score > threshold), abs=0.1)


# Another source


def test_another_source_is_found_and_named_and_held_back_items_are_moved_to_it():
    inputs, labels = make_blobs(600, 3, distance=6.0)
    split = open_set(inputs, labels)
    noise = 0.8 * random().normal(size=split.pool.shape).astype(np.float32)
    made = prepared(inputs, labels, pool=split.pool + noise, share=0.5)
    filtered, (teacher, training, pooled) = screened(*made), made
    assert filtered.sources_differ
    audit = audit_sources(filtered, compared(training, pooled))
    assert audit.differ
    assert audit.remain_apart
    assert audit.signs
    assert set(audit.signs) <= set(filtered.sign_names)
    assert (audit.n_pool, audit.n_labelled) == (
        filtered.sources.n_sure,
        filtered.sources.n_compared,
    )
    assert np.isfinite(filtered.score).all()
    of_training = filtered.of_training.logits
    more, logits = with_sure_items(
        training, of_training, pooled, filtered.sources, filtered.outputs
    )
    np.testing.assert_allclose(logits, teacher.outputs(more.inputs).logits, atol=1e-4)
    n_sure = pooled.of_unlabelled(filtered.sources.is_sure).sum()
    assert len(more) == len(training) + n_sure
    moved = filtered.brought_to_pool(filtered.w, pooled)
    np.testing.assert_array_equal(moved[: pooled.n], filtered.w[: pooled.n])
    assert not np.array_equal(moved[pooled.n :], filtered.w[pooled.n :])


def test_the_same_source_names_no_sign_and_moves_nothing(vectors):
    filtered = screened(*vectors)
    matched = compared(*vectors[1:])
    audit = audit_sources(filtered, matched)
    assert audit is None or (not audit.differ and audit.signs == ())
    pooled = vectors[2]
    assert filtered.brought_to_pool(filtered.w, pooled) is filtered.w
    assert audit_sources(replace(filtered, sources=None), matched) is None


# Pools at the edge


def check_numbers(filtered, pooled):
    assert np.isfinite(filtered.score).all()
    if filtered.p_value is not None:
        assert 0 <= filtered.p_value <= 1
        assert np.isfinite(filtered.weights(pooled)).all()
    if filtered.by_inputs is not None:
        for each in (filtered.by_inputs.score, filtered.by_inputs.seed_score):
            assert np.isfinite(each).all()
        assert 0 <= filtered.by_inputs.p_value <= 1


INPUTS, LABELS = make_blobs(60)
SPLIT = open_set(INPUTS, LABELS)
IS_UNKNOWN = SPLIT.truth == UNKNOWN
EDGES = {
    "nothing known in the pool": SPLIT.pool[IS_UNKNOWN],
    "nothing unknown": SPLIT.pool[~IS_UNKNOWN],
    "one known class in the pool": SPLIT.pool[SPLIT.truth == 1],
    "two items": SPLIT.pool[-2:],
    "two equal items": SPLIT.pool[[0, 0]],
    "all items equal": np.repeat(SPLIT.pool[:1], 40, axis=0),
}


@pytest.mark.parametrize("pool", EDGES.values(), ids=EDGES.keys())
def test_every_pool_has_numbers(pool, vectors):
    teacher, training, pooled = vectors
    held_back = pooled.of_held_back(pooled.inputs)
    pooled = pooled._replace(inputs=np.concatenate([pool, held_back]), n=len(pool))
    for settings in (BY_SEEDS, FilterSettings()):
        check_numbers(screened(teacher, training, pooled, settings), pooled)


@pytest.mark.parametrize(
    ("n_calibration", "n_spies"), [(1, 0), (1, 1), (5, 0), (1, 15)], ids=lambda n: f"{n}"
)
def test_a_few_held_back_items_give_numbers(n_calibration, n_spies, vectors):
    teacher, training, pooled = vectors
    rows = np.r_[
        : pooled.n + n_calibration, pooled.n_unlabelled : pooled.n_unlabelled + n_spies
    ].astype(int)
    few = pooled._replace(
        inputs=pooled.inputs[rows],
        calibration_labels=pooled.calibration_labels[:n_calibration],
        spy_labels=pooled.spy_labels[:n_spies],
    )
    check_numbers(screened(teacher, training, few), few)


@pytest.mark.parametrize("n", [1, 2])
def test_a_class_of_one_or_two_items_gives_numbers(n):
    rows = np.r_[
        np.flatnonzero(SPLIT.known.labels < 2), np.flatnonzero(SPLIT.known.labels == 2)[:n]
    ]
    known = Labelled(SPLIT.known.inputs[rows], SPLIT.known.labels[rows])
    teacher, training, pooled = prepared(INPUTS, LABELS, known=known)
    check_numbers(screened(teacher, training, pooled), pooled)


def test_many_spies_and_unequal_weights_give_numbers():
    teacher, training, pooled = prepared(*make_blobs(110), share=0.5)
    pooled = pooled._replace(class_weights=np.array([1.0, 40.0, 5.0]))
    filtered = screened(teacher, training, pooled)
    check_numbers(filtered, pooled)
    assert np.corrcoef(filtered.score, filtered.w)[0, 1] > 0.3


# By the inputs alone


@pytest.mark.parametrize(
    ("n", "distance"), [(0, 0.0), (40, 3.0), pytest.param(40, 8.0, marks=pytest.mark.slow)]
)
def test_what_stands_out_by_its_inputs_is_found_whatever_f_says(n, distance):
    known = random().normal(0.0, 1.0, (300, 3))
    known[150:, 0] += 6
    other = random(5).normal((3.0, distance, 0.0), 0.3, (n, 3))
    labelled = Labelled(known.astype(np.float32), np.repeat([0, 1], 150))
    pool = np.concatenate([known + 0.1, other]).astype(np.float32)
    teacher, training, pooled = prepared(*make_blobs(60), pool=pool, known=labelled)
    filtered, inputs = screened(teacher, training, pooled), compared(training, pooled)
    assert not filtered.sources_differ
    found = {level: stands_out_by_inputs(inputs, level, seed=0) for level in (1e-6, 0.01, 0.3)}
    assert all(filtered.p_value <= level for level, stands_out in found.items() if stands_out)
    assert found[0.01] == (n > 0)
