"""The protocols: which items are labelled, which are in the pool, and what is known of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.data.datasets import Dataset
from s2osc.data.splits import (
    RELEASED_SPLIT,
    SINGLE_UNKNOWN,
    Protocol,
    divide_class,
    shift_classes,
    split_dataset,
    thin_out,
)
from s2osc.errors import DataError, SettingsError
from s2osc.types import UNKNOWN


def numbered(sizes, seed=0):
    """A data set of one-row images that carry their own number, in mixed order."""
    n = sum(sizes)
    images = np.arange(n, dtype="<u4").view(np.uint8).reshape(n, 1, 4)
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    classes = tuple(f"class {c}" for c in range(len(sizes)))
    return Dataset("numbered", images, labels, classes, n_train=n, flip=False)


def numbers(images):
    return np.ascontiguousarray(images).view("<u4").ravel()


TEN = numbered([60] * 10)


# The paper's protocol


def test_half_of_the_classes_are_known_and_one_is_unknown():
    split = split_dataset(TEN, SINGLE_UNKNOWN, 0)
    assert len(split.known_classes) == 5
    assert len(split.unknown_classes) == 1
    assert not set(split.known_classes) & set(split.unknown_classes)


def test_a_third_of_the_known_items_and_all_unknown_ones_are_in_the_pool():
    split = split_dataset(TEN, SINGLE_UNKNOWN, 0)
    assert np.bincount(split.known.labels).tolist() == [40] * 5  # 60 - round(0.33 * 60)
    assert [np.sum(split.truth == c) for c in range(5)] == [20] * 5
    assert np.sum(split.truth == UNKNOWN) == 60


def test_known_classes_are_numbered_from_zero_in_their_order():
    protocol = Protocol(known_classes=(7, 2), unknown_classes=(4,))
    split = split_dataset(TEN, protocol, 0)
    assert set(TEN.labels[numbers(split.known.inputs)[split.known.labels == 0]]) == {7}
    assert set(TEN.labels[numbers(split.known.inputs)[split.known.labels == 1]]) == {2}


@given(
    st.lists(st.integers(3, 20), min_size=4, max_size=8),
    st.integers(1, 2),
    st.floats(0.1, 0.9),
    st.integers(0, 10_000),
)
def test_no_item_is_both_labelled_and_in_the_pool_and_every_truth_is_true(
    sizes, n_unknown, share, seed
):
    dataset = numbered(sizes)
    split = split_dataset(dataset, Protocol(n_unknown=n_unknown, pool_share=share), seed)
    training, pool = numbers(split.known.inputs), numbers(split.pool)
    both = np.concatenate([training, pool])
    assert len(set(both.tolist())) == len(both)

    np.testing.assert_array_equal(split.truth_classes, dataset.labels[pool])
    label_of = {c: place for place, c in enumerate(split.known_classes)}
    assert split.truth.tolist() == [label_of.get(c, UNKNOWN) for c in split.truth_classes]
    assert split.known.labels.tolist() == [label_of[c] for c in dataset.labels[training]]
    # Every item of every class that takes part is used.
    taking_part = [*split.known_classes, *split.unknown_classes]
    assert len(both) == sum(sizes[c] for c in taking_part)
    assert len(split.unknown_classes) == n_unknown


@given(st.integers(0, 10_000))
def test_a_class_that_is_named_unknown_is_never_drawn_as_known(seed):
    split = split_dataset(TEN, Protocol(unknown_classes=(5,)), seed)
    assert 5 not in split.known_classes


def test_the_seed_decides_classes_and_items():
    first, again, other = (split_dataset(TEN, SINGLE_UNKNOWN, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.pool, again.pool)
    np.testing.assert_array_equal(first.known.inputs, again.known.inputs)
    assert first.known_classes != other.known_classes
    fixed = replace(SINGLE_UNKNOWN, known_classes=(0, 1), unknown_classes=(2,))
    first, other = (split_dataset(TEN, fixed, seed) for seed in (0, 1))
    assert first.known_classes == other.known_classes
    assert set(numbers(first.known.inputs)) != set(numbers(other.known.inputs))


def test_the_pool_comes_in_random_order():
    split = split_dataset(TEN, SINGLE_UNKNOWN, 0)
    changes = np.sum(np.diff(split.truth) != 0)
    assert changes > 80  # sorted by class there would be five


def test_a_pool_may_be_without_unknown_items():
    split = split_dataset(TEN, Protocol(n_unknown=0), 0)
    assert (split.truth != UNKNOWN).all()
    assert split.unknown_classes == ()


# The released code's


def test_the_released_split_has_its_sizes():
    split = split_dataset(numbered([6_000] * 6), RELEASED_SPLIT, 3)
    assert split.known_classes == (0, 1, 2, 3, 4)
    assert split.unknown_classes == (5,)
    assert np.bincount(split.known.labels).tolist() == [4_000] * 5
    assert np.bincount(split.truth + 1).tolist() == [6_000] + [2_000] * 5


def test_unknown_items_are_shared_out_among_the_unknown_classes():
    protocol = Protocol((0, 1), (2, 3), sizes=(10, 5, 30))
    split = split_dataset(TEN, protocol, 0)
    assert [np.sum(split.truth_classes == c) for c in (2, 3)] == [15, 15]


def test_a_class_with_too_few_items_is_named():
    with pytest.raises(DataError, match="class 0 of numbered has 60 items; the protocol takes 61"):
        split_dataset(TEN, Protocol((0, 1), (2,), sizes=(40, 21, 60)), 0)


# Pools with a given share of unknown items


def counts(split, classes):
    """How many items of each class of the data set are in the pool."""
    return [int(np.sum(split.truth_classes == c)) for c in classes]


def test_a_pool_may_have_nothing_unknown_though_a_class_could_be():
    split = split_dataset(TEN, Protocol((0, 1), (2,), unknown_shares=(0.0,)), 0)
    assert counts(split, (0, 1, 2)) == [20, 20, 0]
    assert len(split.pool) == 40
    assert split.unknown_classes == ()


def test_two_per_cent_of_a_pool_are_two_per_cent():
    protocol = Protocol((0, 1), (2,), sizes=(10, 49, 60), unknown_shares=(0.02,))
    split = split_dataset(TEN, protocol, 0)
    assert counts(split, (0, 1, 2)) == [49, 49, 2]
    assert np.mean(split.truth == UNKNOWN) == 0.02
    assert split.unknown_classes == (2,)


def test_without_shares_all_unknown_items_are_in_the_pool():
    assert Protocol().draw_unknown_share(3) is None
    assert counts(split_dataset(TEN, Protocol((0, 1), (2,)), 0), (2,)) == [60]


def test_partitions_take_the_shares_in_turn():
    protocol = Protocol((0, 1), (2,), unknown_shares=(0.0, 0.2, 0.5))
    shares = [protocol.draw_unknown_share(seed) for seed in range(7)]
    assert shares == [0.0, 0.2, 0.5, 0.0, 0.2, 0.5, 0.0]
    drawn = [counts(split_dataset(TEN, protocol, seed), (2,))[0] for seed in range(6)]
    assert drawn == [0, 10, 40] * 2  # beside 40 known items


def test_a_share_leaves_known_items_as_they_are():
    whole, thin = (
        split_dataset(TEN, Protocol((0, 1), (2,), unknown_shares=shares), 0)
        for shares in ((), (0.1,))
    )
    np.testing.assert_array_equal(whole.known.inputs, thin.known.inputs)
    assert set(numbers(whole.pool[whole.truth >= 0])) == set(numbers(thin.pool[thin.truth >= 0]))


@given(
    st.integers(1, 300), st.lists(st.integers(0, 400), min_size=1, max_size=4), st.floats(0, 0.9)
)
def test_unknown_classes_are_thinned_out_alike_or_refused(n_known, sizes, share):
    unknown = [np.arange(size) for size in sizes]
    wanted = round(share / (1 - share) * n_known)
    most = -(-wanted // len(sizes))
    if min(sizes) < most - 1:
        with pytest.raises(DataError):
            thin_out(unknown, share, n_known)
    elif min(sizes) >= most:
        left = [len(rows) for rows in thin_out(unknown, share, n_known)]
        assert sum(left) == wanted
        assert max(left) - min(left) <= 1


def test_too_few_unknown_items_for_a_share_are_refused():
    protocol = Protocol((0, 1), (2,), unknown_shares=(0.6,))
    assert counts(split_dataset(TEN, protocol, 0), (2,)) == [60]
    message = (
        "an unknown share of 0.7 takes 93 items of a class that has 60; "
        "give a smaller share or more unknown classes"
    )
    with pytest.raises(DataError, match=message):
        split_dataset(TEN, replace(protocol, unknown_shares=(0.7,)), 0)
    two = replace(protocol, unknown_classes=(2, 3), unknown_shares=(0.7,))
    assert counts(split_dataset(TEN, two, 0), (2, 3)) == [47, 46]


# Pools in which known classes are rarer or more frequent than among labelled items


def test_a_shifted_pool_lacks_one_class_and_has_five_times_as_many_of_another():
    protocol = Protocol((7, 2, 5, 9), (4,), sizes=(20, 30, 10), shifted=True)
    split = split_dataset(TEN, protocol, 0)
    assert counts(split, (7, 2, 5, 9, 4)) == [0, 30, 6, 6, 10]
    assert np.bincount(split.known.labels).tolist() == [20] * 4
    assert split.known_classes == (7, 2, 5, 9)


def test_the_share_of_unknown_items_is_that_of_the_shifted_pool():
    protocol = Protocol((0, 1, 2), (3,), sizes=(20, 40, 60), unknown_shares=(0.25,), shifted=True)
    split = split_dataset(TEN, protocol, 0)
    assert counts(split, (0, 1, 2, 3)) == [0, 40, 8, 16]


@given(st.lists(st.integers(0, 40), min_size=2, max_size=6))
def test_shifting_takes_items_away_and_changes_none(sizes):
    pool = [np.arange(size) + 100 * place for place, size in enumerate(sizes)]
    shifted = shift_classes(pool)
    assert [len(rows) for rows in shifted] == [0, sizes[1], *(size // 5 for size in sizes[2:])]
    for before, after in zip(pool, shifted, strict=True):
        np.testing.assert_array_equal(after, before[: len(after)])


# Items that nobody sees, and classes of few items


def test_without_any_held_out_every_item_is_seen():
    split = split_dataset(TEN, SINGLE_UNKNOWN, 0)
    assert split.held_out.shape == (0, 1, 4)
    assert len(split.held_out_truth) == len(split.held_out_classes) == 0


@given(
    st.lists(st.integers(10, 60), min_size=4, max_size=8),
    st.integers(1, 2),
    st.integers(1, 8),
    st.sampled_from([None, (10, 5, 12)]),
    st.integers(0, 10_000),
)
def test_items_held_out_are_in_neither_the_labelled_items_nor_the_pool(
    sizes, n_unknown, held_out, wanted, seed
):
    dataset = numbered(sizes)
    protocol = Protocol(n_unknown=n_unknown, sizes=wanted, held_out=held_out, shrink=True)
    split = split_dataset(dataset, protocol, seed)
    seen = np.concatenate([numbers(split.known.inputs), numbers(split.pool)])
    apart = numbers(split.held_out)
    assert not np.isin(apart, seen).any()
    assert len(set(apart.tolist())) == len(apart)
    np.testing.assert_array_equal(split.held_out_classes, dataset.labels[apart])
    label_of = {c: place for place, c in enumerate(split.known_classes)}
    assert split.held_out_truth.tolist() == [
        label_of.get(c, UNKNOWN) for c in dataset.labels[apart]
    ]
    for c in (*split.known_classes, *split.unknown_classes):
        assert np.sum(split.held_out_classes == c) == min(held_out, sizes[c] // 10)


def test_what_is_held_out_leaves_the_rest_in_its_order():
    plain, apart = (
        split_dataset(TEN, Protocol((0, 1), (2,), sizes=(20, 10, 30), held_out=n), 0)
        for n in (0, 6)
    )
    np.testing.assert_array_equal(plain.known.inputs, apart.known.inputs)
    np.testing.assert_array_equal(plain.pool, apart.pool)


def test_an_item_held_out_is_none_to_be_drawn():
    protocol = Protocol((0, 1), (2,), sizes=(40, 20, 60), held_out=1)
    with pytest.raises(DataError, match="class 0 of numbered has 59 items; the protocol takes 60"):
        split_dataset(TEN, protocol, 0)
    split = split_dataset(TEN, replace(protocol, shrink=True), 0)
    assert np.bincount(split.known.labels).tolist() == [40, 40]
    assert counts(split, (0, 1, 2)) == [19, 19, 59]


@given(st.integers(0, 2_000), st.integers(1, 700), st.integers(1, 400))
def test_a_class_of_few_items_is_divided_in_proportion(n_items, n_training, n_pool):
    protocol = Protocol(sizes=(n_training, n_pool, 1), shrink=True)
    training, pool = divide_class(n_items, protocol, "it")
    if n_items >= n_training + n_pool:
        assert (training, pool) == (n_training, n_pool)
    else:
        assert training + pool == n_items
        assert pool == pytest.approx(n_items * n_pool / (n_training + n_pool), abs=1)
        assert training <= n_training
        assert pool <= n_pool


def test_classes_of_different_sizes_shrink_each_by_itself():
    dataset = numbered([90, 30, 20])
    split = split_dataset(dataset, Protocol((0, 1), (2,), sizes=(40, 20, 50), shrink=True), 0)
    assert np.bincount(split.known.labels).tolist() == [40, 20]
    assert counts(split, (0, 1, 2)) == [20, 10, 20]


@given(st.integers(1, 8), st.integers(0, 10_000))
def test_a_number_of_known_classes_is_drawn_at_random(n_known, seed):
    known, unknown = Protocol(n_known=n_known, n_unknown=2).draw_classes(10, seed)
    assert len(set(known)) == n_known
    assert len(set(unknown)) == 2
    assert not set(known) & set(unknown)


def test_half_of_the_classes_are_known_where_no_number_is_given():
    for seed in range(3):
        assert Protocol(n_known=5).draw_classes(10, seed) == Protocol().draw_classes(10, seed)


def test_a_class_cannot_be_known_and_unknown():
    with pytest.raises(SettingsError, match="class 1 is to be known and unknown"):
        Protocol((0, 1), (1,))


def test_more_unknown_classes_than_there_are_left_are_refused():
    with pytest.raises(SettingsError, match=r"7 of 10 .* known, which leaves 3; 5 are to be"):
        Protocol(n_known=7, n_unknown=5).draw_classes(10, seed=0)


def test_a_pool_of_unknown_items_alone_is_no_share():
    with pytest.raises(SettingsError, match="give shares below 1"):
        Protocol(unknown_shares=(0.5, 1.0))


def test_an_unknown_class_that_is_too_small_is_refused_unless_it_may_shrink():
    dataset = numbered([20] * 4)
    n = int(np.sum(dataset.labels == 3))
    protocol = Protocol((0, 1), (3,), sizes=(2, 1, n + 1))
    with pytest.raises(DataError, match=f"class 3 .* has {n} items; the protocol takes {n + 1}"):
        split_dataset(dataset, protocol, seed=0)
    assert np.sum(split_dataset(dataset, replace(protocol, shrink=True), seed=0).truth < 0) == n


def test_a_shift_takes_two_known_classes():
    with pytest.raises(SettingsError, match="1 class is known; a shift takes 2"):
        split_dataset(numbered([20] * 4), Protocol((0,), (1,), shifted=True), seed=0)
