"""The whole line: teacher, filter, student, groups, answer."""

import inspect
from dataclasses import asdict, replace
from math import log

import numpy as np
import pytest

from s2osc.errors import DataError, S2OSCWarning
from s2osc.nets.networks import Network
from s2osc.pipeline.clusters import ClusterSettings, Grouping
from s2osc.pipeline.filtering import FilterSettings, Units, distinctness, partition_pool, units
from s2osc.pipeline.method import OpenSetModel, S2OSCMethod
from s2osc.pipeline.presets import ABLATIONS
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Sight, Teacher
from s2osc.types import UNKNOWN, Labelled
from samples import MANY, TINY, TINY_NETWORK, make_blobs, make_images, open_set

BLOBS = open_set(*make_blobs())
MODES = pytest.mark.parametrize("method", [TINY, MANY], ids=["one", "many"])


@pytest.fixture(scope="module")
def solution():
    return TINY.fit(BLOBS.known, BLOBS.pool, seed=0)


def accuracy(split, answer):
    return np.mean(answer.labels == split.truth)


# The answer


@MODES
@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
def test_images_are_answered(method, colour):
    split = open_set(*make_images(colour=colour))
    # A mirrored corner is another class here.
    method = replace(method, augmentation=replace(method.augmentation, flip=False))
    assert accuracy(split, method.fit(split.known, split.pool, seed=0).answer) > 0.9


def test_strong_views_of_images_are_learnt_from():
    split = open_set(*make_images())
    solution = ABLATIONS["S"](TINY).fit(split.known, split.pool, seed=0)
    assert accuracy(split, solution.answer) > 0.7


def test_several_unknown_classes_fall_into_their_groups():
    split = open_set(*make_blobs(n_classes=5))
    method = replace(MANY, clusters=ClusterSettings(n_groups=2))
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
    sight = solution.model.teacher.look(BLOBS.pool)
    weights = distinctness(sight, units(sight, TINY.filtering), TINY.filtering)
    parts = partition_pool(weights, 15)
    np.testing.assert_array_equal(solution.partition.unknown, parts.unknown)
    np.testing.assert_allclose(solution.answer.distinctness, weights)


def test_unknown_items_have_a_group_and_known_items_none(solution):
    answer = solution.answer
    np.testing.assert_array_equal(answer.groups >= 0, answer.is_unknown)
    assert answer.groups.max() < len(solution.model.grouping.centres)


@MODES
def test_probabilities_sum_to_one_and_agree_with_scores(method):
    model = method.fit(BLOBS.known, BLOBS.pool, seed=0).model
    p, answer = model.probabilities(BLOBS.pool), model.answer(BLOBS.pool)
    assert p.shape == (len(BLOBS.pool), 4)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(p[:, -1], answer.unknown_score, atol=1e-6)
    columns = np.where(answer.is_unknown, 3, answer.labels)
    np.testing.assert_allclose(p[np.arange(len(p)), columns], answer.confidence, atol=1e-6)


def hand_made_model(unknown, centres, *, vote=False):
    """A model of two known classes whose parts say nothing of their own."""
    f = Teacher(Network(TINY_NETWORK, (8,), 2), np.zeros((2, 16), np.float32))
    g = Student(Network(TINY_NETWORK, (8,), 3 if unknown == "one" else 2), unknown, vote=vote)
    return OpenSetModel(
        f, g, Grouping(np.array(centres, np.float32)), FilterSettings(), Units(0.5, 10.0)
    )


def test_the_answer_is_combined_from_what_f_and_g_saw():
    model = hand_made_model("one", [[0.0, 0.0], [9.0, 9.0]])
    logits = np.array([[log(3), 0.0, 0.0], [0.0, 0.0, log(8)]])
    sight = Sight(np.zeros((2, 2)), np.array([0.5, 1.0]), np.array([10.0, 30.0]))
    answer = model.combine(sight, logits, np.array([[8.0, 8.0], [8.0, 8.0]]))
    assert answer.labels.tolist() == [0, UNKNOWN]
    assert answer.groups.tolist() == [-1, 1]
    np.testing.assert_allclose(answer.confidence, [0.6, 0.8])
    np.testing.assert_allclose(answer.unknown_score, [0.2, 0.8])
    np.testing.assert_allclose(answer.distinctness, [0.5 / 0.5 + 10 / 10, 1 / 0.5 + 30 / 10])


def test_by_vote_f_may_overrule_g_on_which_known_class_it_is():
    model = hand_made_model("one", [[0.0, 0.0]], vote=True)
    logits, taught = np.array([[log(2), 0.0, 0.0]]), np.array([[0.0, log(10)]])
    answer = model.combine(Sight(taught, np.zeros(1), np.zeros(1)), logits, np.zeros((1, 2)))
    assert answer.labels.tolist() == [1]  # 2 * 1 against 1 * 10
    np.testing.assert_allclose(answer.confidence, [0.75 * 10 / 12])


def test_in_the_binary_variant_f_names_the_known_class():
    model = hand_made_model("many", [[0.0, 0.0]])
    sight = Sight(np.array([[0.0, log(3)]] * 2), np.zeros(2), np.zeros(2))
    answer = model.combine(sight, np.array([[log(4), 0.0], [0.0, log(4)]]), np.zeros((2, 2)))
    assert answer.labels.tolist() == [1, UNKNOWN]
    np.testing.assert_allclose(answer.confidence, [0.8 * 0.75, 0.8])


def test_an_unknown_item_after_a_pool_without_any_is_answered_unknown():
    model = hand_made_model("one", np.empty((0, 2)))
    sight = Sight(np.zeros((1, 2)), np.zeros(1), np.zeros(1))
    answer = model.combine(sight, np.array([[0.0, 0.0, 5.0]]), np.ones((1, 2)))
    assert answer.labels.tolist() == [UNKNOWN]


# The fit


def test_no_truth_can_enter_a_fit():
    # A label of the pool would need an argument, which a reader would see.
    parameters = inspect.signature(S2OSCMethod.fit).parameters
    assert list(parameters) == ["self", "known", "pool", "seed", "device"]


def test_steps_and_seconds_of_a_fit_are_told(solution):
    n_known, n_undecided = len(BLOBS.known), len(BLOBS.pool) - 15
    assert solution.n_steps == {
        "teacher": TINY.teacher.training.n_steps(n_known),
        "student": TINY.student.training.n_steps(n_undecided),
    }
    assert set(solution.seconds) == {"teacher", "filter", "student", "answer", "groups"}
    assert solution.embeddings.shape == (len(BLOBS.pool), 16)


def test_another_seed_gives_other_weights(solution):
    other = TINY.fit(BLOBS.known, BLOBS.pool, seed=1)
    for role in ("teacher", "student"):
        mine, theirs = (getattr(s.model, role).network.head.weight for s in (solution, other))
        assert not np.allclose(mine.detach(), theirs.detach())


@MODES
def test_a_k_larger_than_the_pool_is_reduced_with_a_warning(method):
    method = replace(method, filtering=FilterSettings(k=5_000))
    with pytest.warns(S2OSCWarning, match="K = 5000 is too large for a pool of 200 items"):
        solution = method.fit(BLOBS.known, BLOBS.pool, seed=0)
    assert solution.k == solution.answer.filtered.sum() == 40  # the largest class
    assert accuracy(BLOBS, solution.answer) > 0.9


@MODES
@pytest.mark.parametrize("n_pool", [2, 3, 5])
def test_a_pool_of_a_few_items_is_answered(method, n_pool):
    method = replace(method, filtering=FilterSettings())
    solution = method.fit(BLOBS.known, BLOBS.pool[-n_pool:], seed=0)
    assert solution.answer.labels.shape == (n_pool,)


@pytest.mark.parametrize("n_pool", [0, 1])
def test_a_pool_too_small_to_learn_from_is_refused(n_pool):
    with pytest.raises(DataError, match=f"the pool has {n_pool} item; give at least two"):
        TINY.fit(BLOBS.known, BLOBS.pool[:n_pool], seed=0)


@MODES
def test_a_class_of_two_items_is_enough_to_be_learnt_from(method):
    rows = np.concatenate([np.flatnonzero(BLOBS.known.labels < 2), [80, 81]])
    known = Labelled(BLOBS.known.inputs[rows], BLOBS.known.labels[rows])
    assert np.bincount(known.labels)[2] == 2
    answer = method.fit(known, BLOBS.pool, seed=0).answer
    assert set(answer.labels) <= {UNKNOWN, 0, 1, 2}


def test_settings_of_a_fit_stay_with_its_method():
    before = asdict(TINY)
    TINY.fit(BLOBS.known, BLOBS.pool, seed=0)
    assert asdict(TINY) == before


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
    np.testing.assert_allclose(predictions.unknown_score, model.teacher.look(BLOBS.pool).entropy)


def test_f_alone_is_the_same_f_as_with_a_pool(solution):
    alone = TINY.fit_known_only(BLOBS.known, seed=0, device="cpu").teacher
    np.testing.assert_array_equal(
        alone.look(BLOBS.pool).logits, solution.model.teacher.look(BLOBS.pool).logits
    )
