"""Signs of the unknown, and their sum."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from s2osc.pipeline.audit.held_back import hide_in_pool
from s2osc.pipeline.filter.distinctness import distinctness, units
from s2osc.pipeline.filter.neighbours import input_spaces
from s2osc.pipeline.filter.signs import (
    FEWEST_OF_CLASS,
    KNOWN_NEIGHBOURS,
    LEAST_SPREAD,
    Signs,
    find_spaces,
    joined_signs,
    measure_inputs,
    measure_signs,
    rankings,
    score_of_signs,
    signs_of_inputs,
    standardise,
    sum_of_signs,
)
from s2osc.pipeline.teacher import train_teacher
from samples import SEEDED, make_blobs, make_images, open_set


def random(seed=0):
    return np.random.default_rng(seed)


def make_signs(columns, families):
    return Signs(np.array(columns, float), tuple("abcdef"[: len(families)]), tuple(families))


# Families


def test_signs_of_a_family_count_as_one():
    signs = make_signs([[1.0, 3.0, 8.0], [0.0, 2.0, -1.0]], ("near", "near", "f"))
    np.testing.assert_array_equal(signs.by_family(signs.columns), [[2.0, 8.0], [1.0, -1.0]])


def test_families_are_told_by_their_name_not_by_their_place():
    signs = make_signs([[1.0, 8.0, 3.0]], ("near", "f", "near"))
    np.testing.assert_array_equal(signs.by_family(signs.columns), [[2.0, 8.0]])


def test_some_of_the_signs_keep_their_names_and_families():
    signs = make_signs([[1.0, 2.0, 3.0]], ("x", "y", "z"))
    some = signs.take(np.array([True, False, True]))
    assert (some.names, some.families) == (("a", "c"), ("x", "z"))
    np.testing.assert_array_equal(some.columns, [[1.0, 3.0]])


def test_signs_are_joined_side_by_side():
    one, two = make_signs([[1.0], [2.0]], ("x",)), make_signs([[3.0, 4.0], [5.0, 6.0]], ("y", "z"))
    both = joined_signs(one, two)
    assert (both.names, both.families) == (("a", "a", "b"), ("x", "y", "z"))
    np.testing.assert_array_equal(both.columns, [[1.0, 3.0, 4.0], [2.0, 5.0, 6.0]])
    np.testing.assert_array_equal(both.of_rows(slice(1, 2)).columns, [[2.0, 5.0, 6.0]])


# The sum


def test_a_value_is_counted_in_upper_spreads_from_the_middle_of_the_references():
    values = np.append(np.arange(101.0), [50.0, 90.0, 130.0])
    found = standardise(values, np.zeros(104, int), np.arange(104) < 101)
    np.testing.assert_allclose(np.sinh(found[101:]), [0.0, 1.0, 2.0])  # 40 is one spread


def test_each_predicted_class_has_a_middle_and_a_spread_of_its_own():
    names = np.repeat([0, 1], 101)
    values = np.append(np.arange(101.0), 20 + 2 * np.arange(101.0))
    found = standardise(values, names, np.ones(202, bool))
    np.testing.assert_allclose(found[:101], found[101:])


def test_a_class_with_few_references_is_counted_with_all_of_them():
    names = np.r_[np.zeros(101, int), np.ones(FEWEST_OF_CLASS - 1, int)]
    values = np.append(np.arange(101.0), np.full(FEWEST_OF_CLASS - 1, 50.0))
    found = standardise(values, names, np.ones(len(values), bool))
    np.testing.assert_allclose(found[101:], 0.0)
    shifted = np.append(np.arange(101.0), np.full(FEWEST_OF_CLASS - 1, 90.0))
    assert (standardise(shifted, names, np.arange(len(names)) < 101)[101:] > 0.5).all()


def test_a_class_that_hardly_varies_has_a_least_spread():
    names = np.repeat([0, 1], 101)
    values = np.append(np.arange(101.0), np.full(101, 7.0))
    values[-1] = 8.0
    found = standardise(values, names, np.ones(202, bool))
    middle, upper = np.quantile(values, [0.5, 0.9])
    np.testing.assert_allclose(np.sinh(found[-1]), 1 / (LEAST_SPREAD * (upper - middle)))


@pytest.mark.parametrize(
    ("values", "is_reference"),
    [
        (np.zeros(5), np.ones(5, bool)),
        (np.arange(5.0), np.zeros(5, bool)),
        (np.array([0.0, 1e30, -1e30, 1.0, 2.0]), np.arange(5) < 1),
        (np.arange(5.0), np.arange(5) == 4),
    ],
    ids=["nothing varies", "no reference", "far out", "one reference"],
)
def test_a_standardised_value_is_always_a_number(values, is_reference):
    found = standardise(values, np.array([0, 1, 1, 0, 2]), is_reference)
    assert np.isfinite(found).all()
    sum_ = sum_of_signs(
        make_signs(np.stack([values, values], 1), ("x", "y")), np.zeros(5, int), is_reference
    )
    assert np.isfinite(sum_).all()


def test_no_sign_silences_the_others():
    references = random().normal(size=(100, 2))
    far, strange = [[40.0, 0.0]], [[6.0, 6.0]]
    signs = make_signs(np.concatenate([references, far, strange]), ("x", "y"))
    score = sum_of_signs(signs, np.zeros(102, int), np.arange(102) < 100)
    assert score[101] > score[100] > np.quantile(score[:100], 0.9)


def test_the_units_of_a_sign_do_not_matter():
    columns, names = random().normal(size=(80, 3)), random(1).integers(0, 2, 80)
    families, spies = ("x", "x", "y"), np.arange(80) >= 30
    found, again = (
        sum_of_signs(make_signs(each, families), names, spies)
        for each in (columns, 7 + columns * [1e-6, 1.0, 1e6])
    )
    np.testing.assert_allclose(again, found, atol=1e-6)


# Signs of the inputs


@pytest.mark.parametrize("make", [make_blobs, make_images], ids=["vectors", "images"])
def test_items_that_live_where_nobody_known_does_stand_out(make):
    inputs, labels = make(60)
    is_known = (labels < 3) & (np.arange(len(labels)) % 2 == 0)
    signs, names = signs_of_inputs(find_spaces(inputs, seed=0), is_known, labels, seed=0)
    for column in signs.columns.T:
        assert roc_auc_score(labels == 3, column) > 0.9
    assert (names[labels < 3] == labels[labels < 3]).mean() > 0.95
    assert set(signs.families) == {"neighbours", "distance"}


def test_labels_of_items_that_do_not_count_as_known_are_not_used():
    inputs, labels = make_blobs(40)
    is_known, spaces = (labels < 3) & (np.arange(160) % 2 == 0), find_spaces(inputs, seed=0)
    found, names = signs_of_inputs(spaces, is_known, labels, seed=0)
    again, same = signs_of_inputs(spaces, is_known, np.where(is_known, labels, 1), seed=0)
    np.testing.assert_array_equal(found.columns, again.columns)
    np.testing.assert_array_equal(names, same)


@pytest.mark.parametrize("n_known", [1, 2, 3])
def test_a_few_known_items_give_numbers(n_known):
    inputs, _ = make_blobs(5)
    is_known = np.arange(20) < n_known
    labels = np.where(is_known, np.arange(20) % 2, -1)
    signs, _ = signs_of_inputs(find_spaces(inputs, seed=0), is_known, labels, seed=0)
    assert np.isfinite(signs.columns).all()


# All signs, and those of the inputs alone


def measured_of(make, **changes):
    split = open_set(*make(40))
    training, pooled = hide_in_pool(split.known, split.pool, SEEDED.seeds, seed=0)
    pooled = pooled._replace(**changes)
    teacher, of_training = train_teacher(
        training, SEEDED.teacher, SEEDED.augmentation, seed=0, device="cpu"
    )
    found = teacher.outputs(pooled.inputs)
    w = distinctness(found, units(found, SEEDED.filtering), SEEDED.filtering)

    def measure(order=None):
        """The signs with pool and calibration items in another order."""
        order = np.arange(len(pooled.inputs)) if order is None else order
        outputs = type(found)(*(each[order] for each in found))
        items = pooled._replace(inputs=pooled.inputs[order])
        inputs = measure_inputs(items, training, seed=0)
        return measure_signs(inputs, items, outputs, of_training, w[order], training, seed=0)

    return pooled, training, measure


@pytest.fixture(scope="module", params=[make_blobs, make_images], ids=["vectors", "images"])
def made(request):
    pooled, training, measure = measured_of(request.param)
    return pooled, training, measure, measure()


def test_every_space_has_signs_of_neighbours_and_distance(made):
    pooled, _, _, measured = made
    n_spaces = len(input_spaces(pooled.inputs, seed=0))
    families = measured.signs.families
    counted = {family: families.count(family) for family in families}
    assert counted == {"f": 2, "neighbours": 3 * n_spaces, "distance": 2 * n_spaces, "embedding": 3}
    assert measured.signs.columns.shape == (len(pooled.inputs), len(families))
    assert len(set(measured.signs.names)) == len(families)


def test_a_calibration_item_and_one_of_the_pool_that_change_places_keep_their_signs(made):
    pooled, _, measure, measured = made
    for i, j in ((0, pooled.n), (7, pooled.n_unlabelled - 1)):
        order = np.arange(len(pooled.inputs))
        order[[i, j]] = j, i
        swapped = measure(order)
        np.testing.assert_allclose(
            swapped.signs.columns, measured.signs.columns[order], rtol=1e-5, atol=1e-5
        )


def test_a_spy_and_an_item_of_the_pool_that_change_places_keep_signs_without_spies(made):
    pooled, _, measure, measured = made
    order = np.arange(len(pooled.inputs))
    order[[3, -1]] = len(order) - 1, 3
    np.testing.assert_allclose(
        measure(order).without_spies.columns,
        measured.without_spies.columns[order],
        rtol=1e-5,
        atol=1e-5,
    )


def test_of_the_inputs_every_labelled_item_teaches_or_judges(made):
    pooled, training, _, measured = made
    free, labels = measured.of_inputs, np.concatenate([pooled.held_back_labels, training.labels])
    assert not (free.is_judge & free.is_spy).any()
    assert (free.is_judge | free.is_spy)[pooled.n :].all()
    assert not (free.is_judge | free.is_spy)[: pooled.n].any()
    assert 0 < free.is_spy.sum() < free.is_judge.sum()
    np.testing.assert_array_equal(measured.labels, labels[free.is_judge[pooled.n :]])
    times = np.sum([fold.is_spy for fold in measured.folds], axis=0)
    np.testing.assert_array_equal(times, np.arange(len(times)) >= pooled.n)  # each one once


def test_signs_of_the_inputs_do_not_depend_on_who_judges():
    inputs, labels = make_blobs(40)
    order = np.arange(160)
    order[[3, 150]] = 150, 3  # neither of them teaches
    teaches = (np.arange(160) % 3 == 1) & (labels < 3)
    found, names = signs_of_inputs(find_spaces(inputs, seed=0), teaches, labels, seed=0)
    again, same = signs_of_inputs(
        find_spaces(inputs[order], seed=0), teaches[order], labels[order], seed=0
    )
    np.testing.assert_allclose(again.columns, found.columns[order], atol=1e-5)
    np.testing.assert_array_equal(same, names[order])


def test_training_items_that_were_chosen_teach_and_never_judge():
    pooled, _, measure = measured_of(make_blobs, training_is_random=False)
    measured = measure()
    free = measured.of_inputs
    is_held = pooled.is_held_back
    np.testing.assert_array_equal(np.flatnonzero(free.is_judge), np.flatnonzero(is_held))
    assert free.is_spy[len(pooled.inputs) :].all()
    assert free.is_spy.sum() == len(free.is_spy) - len(pooled.inputs)
    np.testing.assert_array_equal(measured.labels, pooled.held_back_labels)


# One score of all signs

N_POOL, N_SPIES = 600, 200
IS_SPY = np.arange(N_POOL + N_SPIES) >= N_POOL
NAMES = np.zeros(N_POOL + N_SPIES, int)
BY_INPUTS = f"{KNOWN_NEIGHBOURS}1, 30"


def draw_signs(n_unknown=0, shift=2.0, names=("entropy of f", BY_INPUTS, "distance"), seed=0):
    """Signs of pool and spies, each of its own family; the first items of the pool are unknown."""
    columns = np.random.default_rng(seed).normal(size=(N_POOL + N_SPIES, len(names)))
    columns[:n_unknown] += shift
    return Signs(columns, tuple(names), tuple(names))


def test_all_signs_together_rank_unknown_items_better_than_any_of_them():
    signs, is_unknown = draw_signs(200), np.arange(N_POOL) < 200
    score = score_of_signs(signs, NAMES, IS_SPY)[:N_POOL]
    best = max(roc_auc_score(is_unknown, column[:N_POOL]) for column in signs.columns.T)
    assert roc_auc_score(is_unknown, score) > best + 0.02


def test_neighbours_find_a_class_that_f_cannot_see():
    signs, is_unknown = draw_signs(names=("a", "b", "c", BY_INPUTS)), np.arange(N_POOL) < 200
    signs.columns[:200, 3] += 4.0
    score, total = (f(signs, NAMES, IS_SPY) for f in (score_of_signs, sum_of_signs))
    found, found_by_sum = (roc_auc_score(is_unknown, v[:N_POOL]) for v in (score, total))
    assert found > found_by_sum + 0.05


@pytest.mark.parametrize("sign", range(3))
def test_a_sign_that_rises_never_lowers_the_score(sign):
    signs = draw_signs(100)
    score = score_of_signs(signs, NAMES, IS_SPY)[3]
    signs.columns[3, sign] += 1.5
    assert score_of_signs(signs, NAMES, IS_SPY)[3] > score


def test_the_unknown_is_looked_for_by_the_score_too():
    signs = draw_signs(100)
    found = rankings(signs, NAMES, IS_SPY)
    assert found.shape[1] == 3 + 2
    np.testing.assert_array_equal(found[:, -1], score_of_signs(signs, NAMES, IS_SPY))


def test_the_score_does_not_know_who_is_of_the_pool():
    signs, order = draw_signs(100), np.arange(N_POOL + N_SPIES)
    order[[5, 590]] = 590, 5
    moved = Signs(signs.columns[order], signs.names, signs.families)
    score, again = (score_of_signs(each, NAMES, IS_SPY) for each in (signs, moved))
    np.testing.assert_allclose(again, score[order])


def test_without_neighbours_among_the_inputs_the_sum_of_the_signs_is_the_score():
    signs = draw_signs(100, names=("entropy of f", "distance"))
    score, total = (f(signs, NAMES, IS_SPY) for f in (score_of_signs, sum_of_signs))
    np.testing.assert_array_equal(np.argsort(score), np.argsort(total))
