"""The scale of vectors: units do not matter, odd columns do no harm, images stay as they are."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.pipeline.scaling import UNSCALED, fit_scaling, tame
from s2osc.types import Labelled
from samples import SEEDED, TINY, make_blobs, make_images, open_set

N = 1_000


def scale(column):
    """A column after it was scaled by itself."""
    inputs = np.asarray(column, np.float32)[:, None]
    return fit_scaling(inputs).transform(inputs)[:, 0]


def random():
    return np.random.default_rng(0)


def in_wild_units(inputs):
    """The same columns in other units, and counted from other places."""
    offsets = random().normal(0, 10, inputs.shape[-1])
    return ((inputs + offsets) * 10 ** np.linspace(-3, 4, inputs.shape[-1])).astype(np.float32)


def test_a_gaussian_column_is_standardised_and_nothing_else():
    column = random().normal(7, 3, N)
    scaled = scale(column)
    np.testing.assert_allclose(scaled, (column - np.median(column)) / 3, atol=0.3)
    assert np.corrcoef(column, scaled)[0, 1] > 1 - 1e-9


def test_units_and_offsets_do_not_matter():
    inputs = random().standard_t(2, (N, 8))
    wild = in_wild_units(inputs)
    expected = fit_scaling(inputs).transform(inputs)
    np.testing.assert_allclose(fit_scaling(wild).transform(wild), expected, atol=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(TINY, id="without seeds", marks=pytest.mark.slow),
        pytest.param(SEEDED, id="with seeds"),
    ],
)
def test_a_fit_gives_the_same_labels_in_any_units(method):
    inputs, labels = make_blobs(60)
    more = random().normal(size=(len(inputs), 6)).astype(np.float32)
    inputs = np.concatenate([inputs, more], axis=1)
    answers = []
    for columns in (inputs, in_wild_units(inputs)):
        split = open_set(columns, labels)
        solution = method.fit(split.known, split.pool, seed=0)
        new = solution.model.answer(split.pool)
        answers.append((solution.answer.labels, solution.answer.groups, new.labels, new.groups))
    for as_it_was, wild in zip(*answers, strict=True):
        np.testing.assert_array_equal(as_it_was, wild)


def test_one_huge_value_leaves_the_others_as_they_were():
    column = random().normal(size=N)
    expected = scale(column)
    column[3] = 1e15
    scaled = scale(column)
    np.testing.assert_allclose(np.delete(scaled, 3), np.delete(expected, 3), atol=0.05)
    assert 30 < scaled[3] < 50


def test_a_heavy_tail_keeps_its_order_and_comes_near():
    column = np.sort(np.exp(random().normal(0, 3, N)))
    scaled = scale(column)
    assert np.all(np.diff(scaled) > 0)
    assert scaled.max() < 20
    assert np.std(scaled[: N // 2]) > 0.1


def test_a_constant_column_says_nothing_then_or_later():
    inputs = np.full((N, 1), 7.3, np.float32)
    scaling = fit_scaling(inputs)
    assert not scaling.transform(inputs).any()
    assert not scaling.transform(inputs + 1).any()


def test_what_is_constant_but_for_rounding_says_nothing():
    values = np.float32(1e6) * (1 + np.tile([-1, 0, 1], 100) * np.finfo(np.float32).eps)
    assert np.ptp(values.astype(np.float32)) > 0
    assert not scale(values).any()


@pytest.mark.parametrize("n_ones", [1, 10, 499, 500, 501, 990])
def test_zeros_and_ones_stay_apart_by_less_than_a_spread_however_rare_one_is(n_ones):
    scaled = scale(np.arange(N) < n_ones)
    assert np.ptp(scaled) == pytest.approx(1 / 1.4826, abs=1e-5)


def test_counts_that_are_mostly_zero_are_scaled_by_the_others():
    counts = np.where(np.arange(N) < 900, 0, random().poisson(20, N))
    scaled = scale(counts)
    assert not scaled[:900].any()
    assert 0.5 < np.median(scaled[900:]) < 1


def test_labelled_items_and_pool_have_one_scale_with_the_larger_spread():
    first, second = random().normal(0, 1, (300, 2)), random().normal(4, 3, (300, 2))
    scaling, together = fit_scaling(first, second), fit_scaling(np.concatenate([first, second]))
    np.testing.assert_array_equal(scaling.centre, together.centre)
    np.testing.assert_array_equal(scaling.spread, fit_scaling(second).spread)
    np.testing.assert_array_equal(scaling.spread, fit_scaling(second, first).spread)


@pytest.mark.parametrize(
    "change", [lambda x: x + 0.1, lambda x: x + random().normal(0, 0.1, len(x))]
)
def test_zeros_that_another_source_changes_a_little_do_not_set_the_scale(change):
    counts = np.where(np.arange(N) < 900, 0, random().poisson(20, N)).astype(float)
    scaling = fit_scaling(counts[:, None], change(counts)[:, None])
    assert np.abs(scaling.transform(np.array([[0.0], [0.1]]))).max() < 0.1


def test_a_column_that_is_constant_in_each_part_is_scaled_by_their_difference():
    scaling = fit_scaling(np.zeros((4, 1)), np.ones((4, 1)))
    assert scaling.spread.item() > 0


def test_an_embedding_keeps_its_direction():
    spreads = np.geomspace(1, 5, 150)
    inputs = random().normal(0, spreads, (N, 150))
    scaled = fit_scaling(inputs).transform(inputs)
    centred = inputs - np.median(inputs, axis=0)
    cosines = (scaled * centred).sum(1) / np.linalg.norm(scaled, axis=1)
    assert np.min(cosines / np.linalg.norm(centred, axis=1)) > 0.999


@pytest.mark.parametrize(("n_columns", "factor"), [(150, 1e4), (20, 3)], ids=["units", "few"])
def test_columns_of_a_table_weigh_the_same(n_columns, factor):
    inputs = random().normal(0, np.geomspace(1, factor, n_columns), (N, n_columns))
    scaled = fit_scaling(inputs).transform(inputs)
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=0.2)


def test_no_column_of_an_embedding_outweighs_all_others():
    inputs = random().normal(0, np.append(np.ones(149), 1e6), (N, 150))
    assert fit_scaling(inputs).transform(inputs).std(axis=0).max() < 12


def test_stacked_views_are_scaled_feature_by_feature():
    views = random().normal(0, [1, 10], (50, 3, 2)).astype(np.float32)
    flat = views.reshape(-1, 2)
    scaled = fit_scaling(views).transform(views)
    np.testing.assert_array_equal(scaled.reshape(-1, 2), fit_scaling(flat).transform(flat))


def test_images_stay_as_they_are():
    images, _ = make_images(3)
    scaling = fit_scaling(images, images)
    assert scaling is UNSCALED
    assert scaling.transform(images) is images


def test_no_item_makes_no_difference():
    inputs = random().normal(size=(20, 3)).astype(np.float32)
    alone, with_nothing = fit_scaling(inputs), fit_scaling(inputs, inputs[:0])
    np.testing.assert_array_equal(alone.spread, with_nothing.spread)
    assert alone.transform(inputs[:0]).shape == (0, 3)


def test_a_column_that_was_constant_gets_its_scale_from_what_comes_later():
    first, later = random().normal(size=(2, 100, 3))
    first[:, 1] = 0
    scaling = fit_scaling(first)
    completed = scaling.completed(later)
    assert completed.spread[1] == fit_scaling(later).spread[1]
    assert completed.centre[1] == fit_scaling(later).centre[1]
    for column in (0, 2):
        assert completed.spread[column] == scaling.spread[column]
        assert completed.centre[column] == scaling.centre[column]


def test_a_model_that_knows_no_pool_is_scaled_too():
    split = open_set(*make_blobs(30))
    wild = in_wild_units(split.known.inputs)
    plain = TINY.fit_known_only(split.known, seed=0, device="cpu")
    other = TINY.fit_known_only(Labelled(wild, split.known.labels), seed=0, device="cpu")
    np.testing.assert_array_equal(
        plain.predict(split.known.inputs).labels, other.predict(wild).labels
    )


def test_every_answer_of_a_model_scales_its_items():
    split = open_set(*make_blobs(30))
    model = TINY.fit(split.known, split.pool, seed=0).model
    bare, items = replace(model, scaling=UNSCALED), model.scaling.transform(split.pool)
    np.testing.assert_array_equal(model.features(split.pool), bare.features(items))
    np.testing.assert_array_equal(model.probabilities(split.pool), bare.probabilities(items))
    np.testing.assert_array_equal(
        model.predict(split.pool).unknown_score, bare.predict(items).unknown_score
    )


def test_taming_is_smooth_odd_and_never_falls():
    places = np.linspace(-20, 20, 4_001)
    tamed = tame(places)
    slopes = np.diff(tamed) / np.diff(places)
    np.testing.assert_allclose(tamed, -tamed[::-1], atol=1e-12)
    assert np.all(slopes > 0)
    assert np.abs(np.diff(slopes)).max() < 0.02


def test_noise_on_a_column_that_is_constant_among_labelled_items_stays_small():
    pool = np.where(np.arange(N) < 950, 0, 10.0) + random().normal(0, 0.1, N)
    scaling = fit_scaling(np.zeros((50, 1)), pool[:, None])
    assert np.abs(scaling.transform(np.full((1, 1), 0.2))).max() < 0.2


def test_scaled_vectors_are_counted_in_spreads_again_whatever_their_tails_and_weights():
    draw = np.random.default_rng(0)
    heavy = np.exp(2.5 * draw.standard_normal((200, 5)))
    embedding = draw.standard_normal((200, 120)) * np.linspace(0.4, 2, 120)
    for vectors in (heavy, embedding):
        scaling = fit_scaling(vectors.astype(np.float32))
        scaled = scaling.transform(vectors)
        spreads = (vectors - scaling.centre) / scaling.spread
        np.testing.assert_allclose(scaling.in_spreads(scaled), spreads, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(scaling.from_spreads(spreads), scaled, rtol=1e-3, atol=1e-3)
