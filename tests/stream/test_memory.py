"""What is remembered of each class, in which order, and what is left out first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.arrays import unit_rows
from s2osc.errors import SettingsError
from s2osc.stream.memory import (
    Memory,
    MemorySettings,
    choose_exemplars,
    first_of_each,
    herd,
    remember,
)
from s2osc.types import Labelled

feature_rows = st.builds(
    # Whole numbers: many items are alike, and many choices are ties.
    lambda n, seed: np.random.default_rng(seed).integers(-3, 4, (n, 3)).astype(float),
    st.integers(1, 30),
    st.integers(0, 999),
)


def items(labels, *, start=0):
    """Items that differ: each is its own number."""
    numbers = np.arange(start, start + len(labels), dtype=np.float32)
    return Labelled(np.column_stack([numbers, numbers**2]), np.array(labels))


def nothing():
    return items([])


def numbers(labelled):
    return labelled.inputs[:, 0].astype(int).tolist()


def recall(old, training, seeds, *, size, share=0.3, selection="herding", seed=0):
    settings = MemorySettings(size, share, selection)
    return remember(old, training, training.inputs, seeds, settings, np.random.default_rng(seed))


# Herding


def test_herding_follows_the_running_mean():
    # The mean is 2: first 2, then 1 (1.5), then 5 (2.67), then 0.
    values = np.array([[0.0], [1.0], [2.0], [5.0]])
    assert values[herd(values, 4)].ravel().tolist() == [2, 1, 5, 0]


def test_herding_fewer_gives_the_beginning_of_herding_more():
    values = np.random.default_rng(0).normal(size=(40, 5))
    np.testing.assert_array_equal(herd(values, 7), herd(values, 40)[:7])


@given(feature_rows, st.integers(0, 40))
def test_herding_is_the_greedy_choice_of_its_equation(features, n):
    chosen = herd(features, n)
    assert len(set(chosen.tolist())) == len(chosen) == min(n, len(features))
    mean = features.mean(0)
    for k in range(len(chosen)):
        before = features[chosen[:k]].sum(0)
        off = np.linalg.norm(mean - (features + before) / (k + 1), axis=1)
        off[chosen[:k]] = np.inf
        assert off[chosen[k]] <= off.min() + 1e-6


@given(feature_rows)
def test_all_items_herded_have_the_mean_of_all(features):
    chosen = features[herd(features, len(features))]
    np.testing.assert_allclose(chosen.mean(0), features.mean(0), atol=1e-9)


def test_a_few_herded_items_have_a_mean_nearer_to_that_of_all_than_random_ones():
    random = np.random.default_rng(0)
    features = random.normal(size=(200, 8))
    mean = features.mean(0)
    off = [np.linalg.norm(features[random.permutation(200)[:10]].mean(0) - mean) for _ in range(50)]
    assert np.linalg.norm(features[herd(features, 10)].mean(0) - mean) < min(off) / 2


def test_features_are_compared_by_direction():
    features = np.array([[1.0, 0.0], [0.0, 9.0], [3.0, 3.1]])
    np.testing.assert_allclose(np.linalg.norm(unit_rows(features), axis=1), 1)
    # As they are, the long one is nearest to the mean.
    assert choose_exemplars(features, 1, MemorySettings(), np.random.default_rng(0)).tolist() == [2]
    scaled = features * np.array([[50.0], [1.0], [0.1]])
    assert choose_exemplars(scaled, 1, MemorySettings(), np.random.default_rng(0)).tolist() == [2]


def test_an_item_without_any_feature_is_no_failure():
    assert unit_rows(np.zeros((2, 3))).tolist() == [[0, 0, 0]] * 2


def test_exemplars_drawn_at_random_differ_from_seed_to_seed():
    settings, features = MemorySettings(selection="random"), np.eye(50)
    drawn = [
        choose_exemplars(features, 20, settings, np.random.default_rng(seed)).tolist()
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 20


# Shares


@given(st.integers(4, 3_000), st.floats(0, 0.5), st.integers(2, 60))
def test_shares_are_equal_and_fit_into_the_memory(size, share, n_classes):
    n_exemplars, n_seeds = MemorySettings(size, share).shares(n_classes)
    assert n_exemplars >= 1
    assert n_seeds <= share * size / n_classes
    if n_classes <= size:
        assert n_classes * (n_exemplars + n_seeds) <= size
        assert n_classes * (n_exemplars + n_seeds + 1) > size  # nothing is wasted


def test_a_class_keeps_one_exemplar_where_there_are_more_classes_than_places():
    assert MemorySettings(size=4).shares(9) == (1, 0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 3}, "memory.size is 3; give a number from 4"),
        ({"seeds": 0.6}, "memory.seeds is 0.6; give a share from 0 to 0.5"),
        ({"seeds": float("nan")}, "memory.seeds is nan"),
        ({"selection": "best"}, "memory.selection is 'best'; give 'herding' or 'random'"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        MemorySettings(**wrong)


# Growing and shrinking


def test_a_memory_shrinks_by_the_last_of_each_class():
    exemplars = Labelled(np.array([[7], [3], [9], [1], [5], [8]]), np.array([1, 0, 1, 0, 1, 0]))
    shorter = first_of_each(exemplars, 2)
    assert shorter.inputs.ravel().tolist() == [3, 1, 7, 9]  # as they stood, whatever they hold
    assert shorter.labels.tolist() == [0, 0, 1, 1]


def test_old_exemplars_make_room_for_new_classes_and_are_never_sorted_again():
    first = recall(None, items([0] * 20 + [1] * 20), nothing(), size=20, share=0)
    before = {c: numbers(first_of_each(first.exemplars, 10))[10 * c : 10 * c + 10] for c in (0, 1)}
    later = recall(first, items([2] * 9 + [3] * 9, start=100), nothing(), size=20, share=0)
    assert np.bincount(later.exemplars.labels).tolist() == [5, 5, 5, 5]
    for c in (0, 1):
        of_class = Labelled(*(part[later.exemplars.labels == c] for part in vars_of(later)))
        assert numbers(of_class) == before[c][:5]


def vars_of(memory):
    return memory.exemplars.inputs, memory.exemplars.labels


def test_exemplars_are_in_the_order_of_herding():
    training = items([0] * 12 + [1] * 12)
    memory = recall(None, training, nothing(), size=12, share=0)
    mine = training.inputs[:12]
    expected = herd(unit_rows(mine), 6).tolist()
    assert numbers(memory.exemplars)[:6] == expected


def test_a_class_that_is_full_stays_as_it_is():
    first = recall(None, items([0] * 20 + [1] * 20), nothing(), size=20, share=0)
    again = recall(first, items([0, 1] * 30, start=500), nothing(), size=20, share=0)
    assert numbers(again.exemplars) == numbers(first.exemplars)


def test_a_class_that_is_not_full_grows_behind_what_is_there():
    first = recall(None, items([0] * 4 + [1] * 20), nothing(), size=20, share=0)
    more = recall(first, items([0] * 30, start=500), nothing(), size=20, share=0)
    mine = [
        n for n, c in zip(numbers(more.exemplars), more.exemplars.labels, strict=True) if c == 0
    ]
    had = [
        n for n, c in zip(numbers(first.exemplars), first.exemplars.labels, strict=True) if c == 0
    ]
    assert len(had) == 4
    assert mine[:4] == had
    assert len(mine) == 10
    assert all(n >= 500 for n in mine[4:])


steps = st.lists(
    st.lists(st.integers(0, 5), min_size=1, max_size=25).map(lambda more: [0, 1, *more]),
    min_size=1,
    max_size=5,
)


@given(steps, st.integers(8, 40), st.sampled_from(["herding", "random"]), st.floats(0, 0.5))
def test_a_memory_never_outgrows_its_size_and_never_takes_seeds_for_exemplars(
    batches, size, selection, share
):
    memory, start, seed_numbers, training_numbers = None, 0, set(), set()
    for batch in batches:
        labels = _without_gaps(batch, memory)
        training, seeds = items(labels, start=start), items(labels[:3], start=start + 1_000)
        start += 100
        seed_numbers |= set(numbers(seeds))
        training_numbers |= set(numbers(training))
        memory = recall(memory, training, seeds, size=size, share=share, selection=selection)
        n_exemplars, n_seeds = MemorySettings(size, share).shares(memory.n_classes)
        assert len(memory) <= size
        assert np.bincount(memory.exemplars.labels).min() >= 1
        assert np.bincount(memory.exemplars.labels).max() <= n_exemplars
        assert np.bincount(memory.seeds.labels, minlength=1).max() <= n_seeds
        assert set(numbers(memory.exemplars)) <= training_numbers
        assert set(numbers(memory.seeds)) <= seed_numbers
        assert len(set(numbers(memory.exemplars))) == len(memory.exemplars)


def _without_gaps(labels, memory):
    """Classes are numbered as they come."""
    order = list(range(memory.n_classes)) if memory else []
    names = {c: c for c in order}
    for label in labels:
        names.setdefault(label, len(names))
    return [names[label] for label in labels]


def test_old_seeds_stay_eligible_beside_new_ones():
    first = recall(None, items([0] * 9 + [1] * 9), items([0] * 6 + [1] * 6, start=50), size=40)
    assert len(first.seeds) == 12
    drawn = set()
    for seed in range(20):
        new = items([0] * 6 + [1] * 6, start=900)
        later = recall(first, items([0, 1], start=200), new, size=40, seed=seed)
        assert np.bincount(later.seeds.labels).tolist() == [6, 6]
        drawn |= set(numbers(later.seeds))
    assert drawn == {*range(50, 62), *range(900, 912)}


def test_seeds_of_all_classes_shrink_alike_when_classes_arrive():
    seeds = items([0] * 30 + [1] * 30, start=500)
    first = recall(None, items([0] * 40 + [1] * 40), seeds, size=100)
    assert np.bincount(first.seeds.labels).tolist() == [15, 15]
    more = items([2] * 20 + [3] * 20, start=700)
    later = recall(first, items([2] * 30 + [3] * 30, start=900), more, size=100)
    assert np.bincount(later.seeds.labels).tolist() == [7, 7, 7, 7]
    assert np.bincount(later.exemplars.labels).tolist() == [18, 18, 18, 18]


def test_without_a_share_for_seeds_none_are_kept():
    memory = recall(None, items([0, 1] * 9), items([0, 1] * 5, start=90), size=40, share=0)
    assert len(memory.seeds) == 0
    assert memory.seeds.inputs.shape == (0, 2)


def test_the_length_of_a_memory_counts_both():
    assert len(Memory(items([0, 1, 1]), items([0]))) == 4
