"""Labelled items are brought to the source of the pool."""

import numpy as np
import pytest

from s2osc.data.corruptions import (
    add_column_noise,
    add_noise,
    add_typing_errors,
    offset_columns,
)
from s2osc.pipeline.audit.held_back import SeedSettings, hide_in_pool
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.sources.matched import FEWEST_THERE, RawItems
from s2osc.pipeline.sources.matching import (
    compare_inputs,
    match_as_told,
    match_raw,
    match_sources,
)
from s2osc.types import Labelled
from samples import make_blobs, make_images, open_set
from texts import WORDS, easy_texts, embed_texts

pytestmark = pytest.mark.usefixtures("as_users_get_it")


def matched(known, pool):
    """Training items, the pool with held-back ones, scaled as the method does, and their match."""
    scaling = fit_scaling(known.inputs, pool)
    known, pool = scaling.transform_items(known), scaling.transform(pool)
    training, pooled = hide_in_pool(known, pool, SeedSettings(0.15), seed=0)
    return training, pooled, match_sources(training, pooled, scaling=scaling, seed=0)


def matched_to(make, change=None, *, n=150, n_classes=4):
    split = open_set(*make(n, n_classes))
    return matched(split.known, split.pool if change is None else change(split.pool))


@pytest.mark.parametrize("make", [make_blobs, make_images])
def test_the_same_source_changes_nothing(make):
    training, pooled, found = matched_to(make)
    assert not found.changes
    assert not found.last.differ
    assert found.unexplained == 0
    assert found.training is training
    assert found.pooled is pooled


def test_noise_on_the_images_of_the_pool_is_found_and_given_to_the_labelled_ones():
    training, pooled, found = matched_to(make_images, lambda x: add_noise(x, 12, seed=9))
    assert found.first.differ
    assert not found.last.differ
    assert [change.kind for change in found.changes] == ["noise"]
    assert 8 <= found.changes[0].strength <= 16
    assert not np.array_equal(found.training.inputs, training.inputs)
    np.testing.assert_array_equal(found.training.labels, training.labels)
    before, after = pooled.inputs, found.pooled.inputs
    np.testing.assert_array_equal(before[: pooled.n], after[: pooled.n])
    assert not np.array_equal(before[pooled.n :], after[pooled.n :])
    assert found.unexplained == 0


def test_an_offset_of_columns_is_found_in_a_pool_with_unknown_items():
    split = open_set(*make_blobs(300, 4, distance=4.0))
    pool = offset_columns(split.pool, 0.2)
    _, _, found = matched(split.known, pool)
    assert found.first.differ
    moved = sum(change.offset for change in found.changes)
    assert moved.sum() > 0


@pytest.mark.parametrize("seed", range(3))
def test_an_offset_of_columns_in_which_many_items_share_a_value_is_found_as_large_as_it_is(seed):
    split = open_set(*make_blobs(300, 4, distance=4.0))
    known, pool = (np.clip(np.round(x), -2, 3) for x in (split.known.inputs, split.pool))
    _, _, found = matched(Labelled(known, split.known.labels), offset_columns(pool, 0.1))
    assert found.first.differ
    assert not found.last.differ
    moved = sum(change.offset for change in found.changes)
    share = np.median(moved / found.changes[0].deviations)
    assert 0.08 < share < 0.12


def test_noise_that_leaves_nothing_sure_is_found_by_the_surest_items():
    _, _, found = matched_to(make_images, lambda x: add_noise(x, 20, seed=9))
    assert [change.kind for change in found.changes][:1] == ["noise"]
    assert found.sure_share >= FEWEST_THERE


def test_a_pool_with_nothing_known_is_no_other_source():
    inputs, labels = make_images(150, 4)
    training, pooled = hide_in_pool(
        Labelled(inputs[labels < 3], labels[labels < 3]),
        inputs[labels == 3],
        SeedSettings(0.15),
        seed=0,
    )
    found = match_sources(training, pooled, seed=0)
    assert not found.changes
    assert found.unexplained == 0


def test_where_sure_items_are_missing_only_a_clear_difference_is_another_source():
    # Unknown items lie between the known classes, so they take the place of sure ones in all.
    inputs, labels = make_blobs(200, 4)
    is_labelled = np.arange(len(inputs)) % 2 == 0
    between = np.random.default_rng(1).normal(inputs.mean(axis=0), 1.0, (900, inputs.shape[1]))
    pool = np.concatenate([inputs[~is_labelled], between]).astype(np.float32)
    _, _, found = matched(Labelled(inputs[is_labelled], labels[is_labelled]), pool)
    found = found._replace(changes=())
    assert found.sure_share < FEWEST_THERE
    likely, clear = (found._replace(last=found.last._replace(p_value=p)) for p in (0.05, 0.005))
    assert likely.may_be_apart
    assert not likely.is_apart
    assert likely.unexplained == 0
    assert clear.is_apart
    assert clear.unexplained > 0


@pytest.mark.parametrize("n", [2, 3, 9, 12])
def test_pools_of_a_few_items_are_matched_or_left(n):
    split = open_set(*make_images(20, 3))
    training, pooled = hide_in_pool(split.known, split.pool[:n], SeedSettings(0.15), seed=0)
    found = match_sources(training, pooled, seed=0)
    assert len(found.pooled.inputs) == len(pooled.inputs)


def test_an_offset_of_columns_with_heavy_tails_is_found():
    inputs, labels = make_blobs(150, 4)
    heavy = np.exp(2.5 * np.random.default_rng(0).standard_normal((len(inputs), 2)))
    inputs = np.column_stack([inputs, heavy]).astype(np.float32)
    is_labelled = np.arange(len(inputs)) % 2 == 0
    known = Labelled(inputs[is_labelled], labels[is_labelled])
    _, _, found = matched(known, offset_columns(inputs[~is_labelled], 0.1))
    assert found.changes
    assert not found.last.differ
    assert found.sure_share >= FEWEST_THERE


@pytest.mark.parametrize("n_unknown", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_an_offset_of_many_columns_of_which_some_have_heavy_tails_is_found(n_unknown):
    # As features of a network are: most are zero for most items, and large for a few.
    draw, labels = np.random.default_rng(0), np.repeat(np.arange(4), 150)
    inputs = draw.normal(size=(4, 150))[labels] + 0.7 * draw.normal(size=(600, 150))
    features = np.maximum(inputs - np.linspace(-1, 2, 150), 0) ** 2
    split = open_set(features.astype(np.float32), labels, n_known=4 - n_unknown)
    _, _, found = matched(split.known, offset_columns(split.pool, 0.1))
    assert found.first.differ
    assert not found.last.differ
    first = found.changes[0]
    moved = first.offset[first.deviations > 0] / first.deviations[first.deviations > 0]
    np.testing.assert_allclose(np.median(moved), 0.1, atol=0.03)
    assert found.sure_share >= FEWEST_THERE


def embed(photos):
    """Features as a network would make them: of all pixels, and not of their order alone."""
    mixing = np.random.default_rng(0).normal(size=(photos[0].size, 24))
    return np.tanh(photos.reshape(len(photos), -1) @ mixing / 2_000).astype(np.float32)


def photos_matched_to(change=None):
    split = open_set(*make_images(150, 4))
    images, pool = split.known.inputs, split.pool if change is None else change(split.pool)
    known = Labelled(embed(images), split.known.labels)
    found = match_raw(known, embed(pool), RawItems(pool, images, embed), seed=0)
    return known, images, found


def test_noise_of_a_camera_is_found_in_photos_and_labelled_ones_get_it_before_their_features():
    known, images, found = photos_matched_to(lambda x: add_noise(x, 12, seed=9))
    assert found.first.differ
    assert [change.kind for change in found.changes] == ["noise"]
    (change,) = found.changes
    assert 8 <= change.strength <= 16
    np.testing.assert_allclose(found.training.inputs, embed(change.apply(images, seed=0)))
    np.testing.assert_array_equal(found.training.labels, known.labels)
    after = matched_to(make_blobs)[2].after(found)
    assert after.is_changed
    assert after.of_raw == found.changes
    assert after.first is found.first


def test_photos_of_the_same_source_stay_as_they_are():
    known, _, found = photos_matched_to()
    assert not found.changes
    assert found.training is known
    other = matched_to(make_blobs)[2]
    assert other.after(found) is other


def test_typing_errors_are_found_in_texts_and_labelled_ones_get_them_before_their_features():
    labels = np.arange(900) % 3
    texts = np.array(easy_texts([list(WORDS)[c] for c in labels], seed=0))
    known, pool = texts[:400], add_typing_errors(texts[400:], 0.3, seed=1)
    items = Labelled(embed_texts(known), labels[:400])
    found = match_raw(items, embed_texts(pool), RawItems(pool, known, embed_texts), seed=0)
    kinds = [change.kind for change in found.changes]
    assert kinds
    assert set(kinds) == {"typing errors"}
    assert 0.1 <= found.changes[0].strength <= 0.4
    assert not np.array_equal(found.training.inputs, items.inputs)
    same = match_raw(
        items, embed_texts(texts[400:]), RawItems(texts[400:], known, embed_texts), seed=0
    )
    assert not same.changes
    assert not same.are_columns


def make_measurements(n, n_classes, seed):
    """Twelve columns that four quantities decide, as those of an instrument do."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), n)
    centres, mixing = random.normal(size=(n_classes, 4)), random.normal(size=(4, 12))
    quantities = 2 * centres[labels] + random.normal(size=(len(labels), 4))
    return (quantities @ mixing).astype(np.float32), labels


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_on_columns_is_found_as_strong_as_it_is(seed):
    """The items that are still sure got little of it, and would show too little."""
    split = open_set(*make_measurements(300, 4, seed))
    _, _, found = matched(split.known, add_column_noise(split.pool, 0.1, seed=seed))
    noise = np.sqrt(sum(change.noise**2 for change in found.changes))
    assert 0.08 <= noise <= 0.15


def told_by_f(p_of_inputs, *, noise=0.1):
    """A pool with noise that the inputs show with this p-value, and the signs of f clearly."""
    split = open_set(*make_blobs(300, 4, distance=4.0))
    pool = add_column_noise(split.pool, noise, seed=9) if noise else split.pool
    scaling = fit_scaling(split.known.inputs, pool)
    known, pool = scaling.transform_items(split.known), scaling.transform(pool)
    training, pooled = hide_in_pool(known, pool, SeedSettings(0.15), seed=0)
    found = compare_inputs(training, pooled, scaling=scaling, seed=0)
    by_outputs = found.last._replace(p_value=0.001)
    return found._replace(last=found.last._replace(p_value=p_of_inputs)), by_outputs


def test_what_the_inputs_do_not_quite_show_and_f_does_is_given_to_the_labelled_items():
    found, by_outputs = told_by_f(0.05, noise=0.3)
    again = match_as_told(found, by_outputs, seed=0)
    assert again.changes[0].noise >= 0.2
    assert again.is_changed
    assert again.first is by_outputs
    assert not np.array_equal(again.training.inputs, found.training.inputs)


@pytest.mark.parametrize(("p_of_inputs", "p_of_f"), [(0.05, 0.02), (0.5, 0.001)])
def test_where_f_or_the_inputs_say_nothing_the_labelled_items_stay_as_they_are(p_of_inputs, p_of_f):
    found, by_outputs = told_by_f(p_of_inputs, noise=0.3)
    assert match_as_told(found, by_outputs._replace(p_value=p_of_f), seed=0) is None
