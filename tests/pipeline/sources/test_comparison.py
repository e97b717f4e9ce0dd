"""Whether labelled items and pool come from the same source."""

import numpy as np
import pytest
from scipy import stats

from s2osc.pipeline.filter.signs import Signs
from s2osc.pipeline.sources import comparison as sources
from s2osc.pipeline.sources.comparison import (
    CLEAR_MOVE,
    FEWEST_SURE,
    LEVEL,
    USELESS,
    Comparison,
    bring_to_pool,
    compare_sources,
    more_than_a_class,
    move_held_back,
    share_of_sure,
    sure_items,
)

N_POOL, N_JUDGES, N_SPIES = 150, 60, 60
ROWS = np.arange(N_POOL + N_JUDGES + N_SPIES)
IS_POOL = ROWS < N_POOL
IS_SPY = ROWS >= N_POOL + N_JUDGES
IS_JUDGE = ~IS_POOL & ~IS_SPY
FAMILIES = ("f", "f", "neighbours", "distance")


def make_signs(columns):
    return Signs(columns, tuple("abcd"[: columns.shape[1]]), FAMILIES[: columns.shape[1]])


def draw(seed=0, *, n_unknown=0, move=0.0):
    """Signs of pool, judges and spies, and the classes f gives them.

    The first items of the pool are unknown; ``move`` is what another source adds to its signs.
    """
    random = np.random.default_rng(seed)
    names = random.integers(0, 3, len(ROWS))
    strangeness = random.normal(size=len(ROWS)) + 4 * (n_unknown > ROWS)
    columns = strangeness[:, None] + 0.5 * random.normal(size=(len(ROWS), 4)) + names[:, None]
    columns[IS_POOL] += move
    return make_signs(columns), names


def compare(signs, names, is_judge=IS_JUDGE, seed=0):
    return compare_sources(signs, names, IS_SPY, is_judge, seed=seed)


# Surely known items


def test_about_a_third_of_the_known_items_is_sure_and_of_the_unknown_hardly_any():
    signs, names = draw(n_unknown=50)
    is_sure = sure_items(signs, names, IS_SPY)
    assert is_sure[:50].sum() <= 1
    assert is_sure[IS_SPY].mean() == pytest.approx(1 / 3, abs=0.1)
    assert is_sure[50:N_POOL].mean() == pytest.approx(1 / 3, abs=0.15)


def test_who_is_sure_does_not_depend_on_who_judges():
    signs, names = draw()
    order = ROWS.copy()
    order[[4, N_POOL + 9]] = order[[N_POOL + 9, 4]]
    is_sure = sure_items(signs, names, IS_SPY)
    swapped = make_signs(signs.columns[order])
    np.testing.assert_array_equal(sure_items(swapped, names[order], IS_SPY), is_sure[order])


def test_a_family_that_another_source_has_moved_does_not_matter():
    signs, names = draw()
    moved = signs.columns.copy()
    moved[IS_POOL, 3] += 100.0
    before, after = (sure_items(each, names, IS_SPY) for each in (signs, make_signs(moved)))
    assert after[IS_POOL].sum() > 0.5 * before[IS_POOL].sum()


def test_only_the_order_of_a_sign_matters():
    signs, names = draw()
    np.testing.assert_array_equal(
        sure_items(make_signs(np.exp(signs.columns)), names, IS_SPY),
        sure_items(signs, names, IS_SPY),
    )


def test_without_spies_nothing_is_sure():
    signs, names = draw()
    assert not sure_items(signs, names, np.zeros(len(ROWS), bool)).any()


# The test


def test_the_same_source_is_hardly_ever_taken_for_another(monkeypatch):
    monkeypatch.setattr(sources, "N_PERMUTED", 99)
    p = np.array([compare(*draw(seed), seed=seed).p_value for seed in range(120)])
    for level in (0.05, 0.2):
        n_wrong = int((p <= level).sum())
        assert stats.binomtest(n_wrong, len(p), level, alternative="greater").pvalue > 0.01
    assert np.mean(p > 0.5) > 0.3  # nor is the test blind


def test_another_source_is_found_and_an_unknown_class_is_none(monkeypatch):
    monkeypatch.setattr(sources, "N_PERMUTED", 199)
    move = np.array([0.0, 0.0, 0.0, 1.5])
    found = [compare(*draw(seed, move=move), seed=seed) for seed in range(10)]
    assert sum(each.differ for each in found) >= 9
    for each in found:
        assert np.abs(each.deviations).argmax() == 3
        assert each.deviations[3] > CLEAR_MOVE
        assert each.auroc[3] > 0.7
    of_unknown = [compare(*draw(seed, n_unknown=60), seed=seed) for seed in range(10)]
    assert not any(each.differ for each in of_unknown)


def test_the_auroc_is_that_of_the_sure_items_of_each_predicted_class():
    columns = np.zeros((len(ROWS), 1))
    columns[IS_POOL, 0] = 1.0
    columns[IS_JUDGE, 0] = np.tile([0.0, 2.0], N_JUDGES // 2)  # half of them above, half below
    columns[IS_SPY, 0] = 3.0  # all others are sure
    found = compare(make_signs(columns), np.zeros(len(ROWS), int))
    assert found.auroc[0] == pytest.approx(0.5)
    assert found.deviations[0] == pytest.approx(0, abs=1e-9)
    columns[IS_JUDGE, 0] = 0.0
    above = compare(make_signs(columns), np.zeros(len(ROWS), int))
    assert above.auroc[0] == 1.0
    assert above.p_value == 1 / (1 + sources.N_PERMUTED)
    assert above.differ


def test_the_p_value_is_the_share_of_orders_that_deviate_as_much():
    # 10 of the pool against 10 judges, apart but for one pair: 2 x 101 of 184,756 orders.
    rows = np.arange(40)
    columns = np.r_[np.arange(9.0, 19), np.arange(10.0) - 1, np.full(20, 99.0)][:, None]
    columns[0], columns[19] = 8.5, 8.75
    found = compare_sources(
        make_signs(columns), np.zeros(40, int), rows >= 20, (rows >= 10) & (rows < 20), seed=0
    )
    assert found.p_value <= 0.01
    assert (found.n_sure, found.n_compared) == (10, 10)


@pytest.mark.parametrize("n_known", [0, 3, FEWEST_SURE - 1])
def test_with_too_few_known_items_in_the_pool_nothing_is_compared(n_known):
    signs, names = draw()
    columns = signs.columns.copy()
    columns[N_POOL - n_known > ROWS] += 50.0
    found = compare(make_signs(columns), names)
    assert not found.is_possible
    assert not found.differ
    assert found.p_value == 1.0
    for each in (found.deviations, found.auroc):
        assert np.isfinite(each).all()


@pytest.mark.parametrize("n_judges", [0, 1, 5])
def test_with_too_few_judges_nothing_is_compared(n_judges):
    signs, names = draw()
    rows = IS_POOL | IS_SPY | (N_POOL + n_judges > ROWS)
    found = compare_sources(
        make_signs(signs.columns[rows]), names[rows], IS_SPY[rows], IS_JUDGE[rows], seed=0
    )
    assert not found.is_possible
    assert np.isfinite([found.p_value, *found.deviations, *found.auroc]).all()


def test_signs_that_are_all_the_same_do_not_differ():
    signs = make_signs(np.zeros((len(ROWS), 4)))
    found = compare(signs, np.zeros(len(ROWS), int))
    assert found.is_possible
    assert found.p_value == 1.0
    np.testing.assert_allclose(found.auroc, 0.5)


def test_the_same_seed_gives_the_same_p_value():
    signs, names = draw(3)
    assert compare(signs, names, seed=1).p_value == compare(signs, names, seed=1).p_value


# Held-back items moved to the pool


def test_held_back_items_are_moved_by_the_difference_of_sure_items_of_their_class():
    n = 3_000
    names, is_held = np.repeat([0, 1, 2], n), np.tile([False, True], 3 * n // 2)
    values = np.random.default_rng(0).normal(size=3 * n) + np.array([1.0, 2.0, 3.0])[names]
    values[~is_held] += np.array([0.5, 1.0, 4.0])[names[~is_held]]
    moved = move_held_back(values, names, is_held, np.ones(3 * n, bool))
    np.testing.assert_array_equal(moved[~is_held], values[~is_held])
    by = [np.mean((moved - values)[is_held & (names == c)]) for c in range(3)]
    np.testing.assert_allclose(by, [0.5, 1.0, 4.0], atol=0.15)


def test_a_class_with_few_sure_items_is_moved_as_the_others_are():
    names = np.repeat([0, 1, 2], 400)
    is_held, is_sure = np.tile([False, True], 600), names < 2
    values = np.where(is_held, 0.0, 2.0)
    moved = move_held_back(values, names, is_held, is_sure)
    np.testing.assert_allclose(moved, 2.0)


def test_where_nothing_is_sure_nothing_is_moved():
    values, names = np.arange(20.0), np.arange(20) % 2
    moved = move_held_back(values, names, np.arange(20) > 9, np.zeros(20, bool))
    np.testing.assert_array_equal(moved, values)
    assert moved is not values


def comparison(deviations, auroc):
    return Comparison(
        0.001, np.ones(len(ROWS), bool), np.array(deviations), np.array(auroc), 100, 50
    )


def test_a_sign_that_moved_is_moved_back_and_one_that_tells_the_source_is_dropped():
    signs, names = draw(move=np.array([0.0, 1.5, 1.5, 30.0]))
    found = comparison([0.5, 0.5, 5.0, 11.0], [0.5, 0.5, USELESS - 0.05, USELESS + 0.1])
    brought = bring_to_pool(signs, names, ~IS_POOL, found)
    assert brought.names == ("a", "b", "c")
    assert brought.families == ("f", "f", "neighbours")
    np.testing.assert_array_equal(brought.columns[:, :2], signs.columns[:, :2])
    np.testing.assert_array_equal(brought.columns[IS_POOL], signs.columns[IS_POOL, :3])
    gaps = [
        np.median(each.columns[IS_POOL, 2]) - np.median(each.columns[~IS_POOL, 2])
        for each in (signs, brought)
    ]
    assert gaps[0] > 1
    assert abs(gaps[1]) < 0.4


def test_where_all_signs_tell_the_source_the_one_that_does_so_least_stays():
    signs, names = draw(move=9.0)
    brought = bring_to_pool(
        signs, names, ~IS_POOL, comparison([9.0, 9.0, 9.0, 9.0], [0.99, 0.9, 1.0, 0.0])
    )
    assert brought.names == ("b",)
    assert np.isfinite(brought.columns).all()


def test_a_sign_that_is_lower_in_the_pool_tells_the_source_too():
    signs, names = draw()
    brought = bring_to_pool(
        signs, names, ~IS_POOL, comparison([0.0, -9.0, 0.0, 0.0], [0.5, 0.1, 0.5, 0.5])
    )
    assert brought.names == ("a", "c", "d")


def test_the_level_decides():
    for p_value, differ in ((LEVEL, True), (1.1 * LEVEL, False)):
        found = comparison([0.0], [0.5])._replace(p_value=p_value)
        assert found.differ == differ
    assert not comparison([0.0], [0.5])._replace(n_sure=FEWEST_SURE - 1).differ


# How many surely known items the pool lacks


def share_with(lacking):
    """The share of sure items where the pool has none in the predicted classes ``lacking``."""
    names = ROWS % 5
    is_sure = (ROWS // 5 % 3 == 0) & ~(IS_POOL & np.isin(names, lacking))
    return share_of_sure(is_sure, names, IS_SPY, IS_JUDGE)


def test_unknown_items_in_the_place_of_all_but_one_class_are_no_other_source():
    assert share_with([0, 1, 3, 4]) == pytest.approx(1, abs=0.1)


def test_a_source_that_moves_all_classes_leaves_no_sure_item():
    assert share_with([0, 1, 2, 3, 4]) == 0


def test_without_a_class_to_compare_nothing_is_sure():
    nowhere = np.zeros(len(ROWS), bool)
    assert share_of_sure(nowhere, ROWS % 5, IS_SPY, IS_JUDGE) == 0


def noise_of(pool, *classes):
    """Noise of items around these means, and their labels."""
    random, means = np.random.default_rng(0), [pool, *classes]
    added = np.concatenate([mean + 0.1 * random.standard_normal(100) for mean in means])
    return added, np.repeat(np.arange(len(means)) - 1, 100)


def test_noise_of_a_pool_is_compared_with_how_far_classes_lie_apart():
    near, far = (more_than_a_class(*noise_of(pool, 1, 2, 3)) for pool in (4, 20))
    # One mean more: 4 lies 2 / sqrt(1 + 1/3) deviations of the means above them.
    assert near == pytest.approx(stats.t.sf(3**0.5, df=2), abs=0.01)
    assert far < 0.01
    assert more_than_a_class(*noise_of(-20, 1, 2, 3)) > 0.99  # less of it is no harm


def test_pools_of_a_further_class_have_no_more_noise_than_their_level_says():
    random, n_low = np.random.default_rng(0), 0
    for _ in range(1_000):
        pool, *classes = random.standard_normal(6)
        n_low += more_than_a_class(*noise_of(pool, *classes)) <= 0.05
    assert 25 <= n_low <= 75


def test_noise_is_not_compared_with_one_class_or_with_hardly_any_item():
    assert more_than_a_class(*noise_of(5, 1)) == 1
    added, labels = noise_of(5, 1, 2, 3)
    few = np.concatenate([np.flatnonzero(labels < 0)[:2], np.flatnonzero(labels >= 0)])
    assert more_than_a_class(added[few], labels[few]) == 1


def test_one_odd_item_is_no_noise_of_a_pool_where_classes_have_none():
    labels = np.repeat(np.arange(-1, 5), 100)
    added = np.zeros(len(labels))
    added[0] = 1.0
    assert more_than_a_class(added, labels) > 0.1
