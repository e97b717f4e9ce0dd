"""A sample of a large pool: more of the strange, at known rates."""

import numpy as np
import pytest

from s2osc.pipeline import sampling
from s2osc.pipeline.sampling import (
    SKIPPED,
    draw_evenly,
    draw_strata,
    fit_strangeness,
    keys,
    share_out,
)
from s2osc.types import Labelled


@pytest.fixture(scope="module")
def strangeness():
    random = np.random.default_rng(0)
    references = Labelled(random.normal(size=(300, 6)).astype(np.float32), np.arange(300) % 3)
    return fit_strangeness(references, random.normal(size=(500, 6)).astype(np.float32))


def test_strangeness_is_the_distance_to_the_nearest_reference(strangeness):
    items = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32) * 3
    scaled = strangeness.scaling.transform(items)
    expected = np.linalg.norm(scaled[:, None] - strangeness.references, axis=2)
    found = strangeness.measure(items)
    np.testing.assert_allclose(found.distances, expected.min(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found.names, strangeness.labels[expected.argmin(1)])


def test_strangeness_does_not_depend_on_what_an_item_is_measured_with(strangeness):
    items = np.random.default_rng(2).normal(size=(2_500, 6)).astype(np.float32)
    whole = strangeness.measure(items).distances
    parts = [strangeness.measure(part).distances for part in np.array_split(items, 7)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_images_are_compared_by_a_few_pixels():
    images = np.random.default_rng(3).integers(0, 256, (60, 32, 32, 3)).astype(np.uint8)
    found = fit_strangeness(Labelled(images[:30], np.arange(30) % 2), images[30:])
    assert found.references.shape == (30, 16 * 16 * 3)
    assert found.measure(images[:30]).distances.max() < 0.1


def test_a_stratum_gives_no_more_than_it_has():
    for sizes in ([5, 0, 3], [1_000, 10, 1], [0, 0, 50], [7, 7, 7]):
        for n in (1, 8, 20, 2_000):
            shared = share_out(np.array(sizes), n)
            assert (shared <= sizes).all()
            assert shared.sum() == min(n, sum(sizes))


def test_the_strange_are_drawn_more_often_at_the_rate_that_is_stated():
    strata = np.random.default_rng(4).choice(3, 100_000, p=[0.9, 0.09, 0.01])
    drawn = draw_strata(strata, 3, 5_000, seed=0)
    sizes, found = (np.bincount(rows, minlength=3) for rows in (strata, strata[drawn.rows]))
    assert len(np.unique(drawn.rows)) == 5_000
    np.testing.assert_allclose(drawn.rates, found / sizes)
    assert drawn.rates[2] > 10 * drawn.rates[0]
    np.testing.assert_allclose(drawn.weights(np.arange(3)), drawn.rates / drawn.rates[0])


def test_the_even_part_of_a_sample_has_one_rate():
    strata = np.random.default_rng(5).choice(3, 100_000, p=[0.9, 0.09, 0.01])
    drawn = draw_strata(strata, 3, 5_000, seed=0)
    even = np.bincount(strata[drawn.rows[drawn.is_even]], minlength=3)
    rates = even / np.bincount(strata)
    np.testing.assert_allclose(rates, drawn.rates.min(), rtol=0.02)


def test_a_stratum_without_items_leaves_the_others_as_they_are():
    drawn = draw_strata(np.array([0, 0, 2, 2, 2]), 3, 4, seed=0)
    assert len(drawn.rows) == 4
    assert np.isfinite(drawn.weights(np.arange(3))).all()


def test_the_number_of_a_row_decides_its_key():
    whole = keys(np.arange(1_000), 3, "sample")
    np.testing.assert_array_equal(whole[400:500], keys(np.arange(400, 500), 3, "sample"))
    assert len(np.unique(whole)) == 1_000
    assert not np.array_equal(whole, keys(np.arange(1_000), 4, "sample"))


def test_rows_drawn_evenly_are_spread_evenly():
    rows = draw_evenly(100_000, 10_000, seed=0)
    counts = np.bincount(rows // 10_000, minlength=10)
    assert len(np.unique(rows)) == 10_000
    assert (np.abs(counts - 1_000) < 150).all()


def test_rows_are_the_same_however_many_keys_are_made_at_once(monkeypatch):
    random = np.random.default_rng(0)
    strata = random.choice([0, 1, 2, SKIPPED], 5_000, p=[0.8, 0.1, 0.05, 0.05]).astype(np.uint8)
    found = []
    for size in (5_000, 700):
        monkeypatch.setattr(sampling, "KEYS_AT_ONCE", size)
        drawn = draw_strata(strata, 3, 1_000, seed=3)
        found.append([drawn.rows, drawn.is_even, draw_evenly(5_000, 900, seed=3)])
    for whole, parts in zip(*found, strict=True):
        np.testing.assert_array_equal(whole, parts)
    # Of each stratum those with the smallest keys, as all keys at once tell.
    rows = np.flatnonzero(strata == 1)
    first = rows[np.argsort(keys(rows, 3, "sample"))]
    mine = found[0][0][strata[found[0][0]] == 1]
    np.testing.assert_array_equal(mine, np.sort(first[: len(mine)]))
