"""Which items of a window a person is asked about."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.arrays import unit_rows
from s2osc.errors import SettingsError
from s2osc.stream.memory import herd
from s2osc.stream.queries import (
    N_TYPICAL,
    STRATEGIES,
    QuerySettings,
    choose_queries,
    interleave,
    spread_out,
    uncertainty,
)
from s2osc.types import UNKNOWN, UNSURE, Predictions

EVERY = pytest.mark.parametrize("strategy", STRATEGIES)


def window(n_known, group_sizes=(), seed=0):
    """Predictions, embeddings and groups: known items first, unknown ones score above them."""
    random = np.random.default_rng(seed)
    n_unknown = sum(group_sizes)
    labels = np.repeat([0, UNKNOWN], [n_known, n_unknown])
    score = np.sort(random.random(n_known + n_unknown))
    groups = np.repeat(np.arange(-1, len(group_sizes)), [n_known, *group_sizes])
    embeddings = random.normal(size=(len(labels), 4)) + 6 * groups[:, None]
    return Predictions(labels, score, np.ones(len(labels))), embeddings, groups


def ask(strategy, made, budget, *, seed=0, **more):
    answer, embeddings, groups = made
    return choose_queries(
        QuerySettings(budget, strategy), answer, embeddings, groups=groups, seed=seed, **more
    )


windows = st.builds(
    window,
    st.integers(0, 30),
    st.lists(st.integers(1, 20), max_size=4).map(tuple),
    st.integers(0, 9),
)


@EVERY
@given(made=windows, budget=st.integers(0, 120), seed=st.integers(0, 99))
def test_no_strategy_asks_too_much_or_twice_or_what_it_may_not(strategy, made, budget, seed):
    may_ask = np.random.default_rng(seed).random(len(made[2])) < 0.7
    rows, why = ask(strategy, made, budget, may_ask=may_ask)
    assert len(rows) <= budget
    assert len(set(rows.tolist())) == len(rows) == len(why)
    assert all(why)
    assert rows.dtype.kind == "i"
    assert may_ask[rows].all()


@EVERY
def test_the_same_seed_asks_the_same(strategy):
    made = window(60, (30, 20))
    np.testing.assert_array_equal(ask(strategy, made, 20).rows, ask(strategy, made, 20).rows)


@EVERY
def test_a_budget_of_nothing_asks_nothing(strategy):
    rows, why = ask(strategy, window(20, (10,)), 0)
    assert rows.tolist() == why == []


@EVERY
def test_a_window_whose_items_may_not_be_asked_about_is_left_alone(strategy):
    assert len(ask(strategy, window(20, (10,)), 9, may_ask=np.zeros(30, bool)).rows) == 0


# Ours


def test_groups_are_asked_about_in_turn():
    made = window(50, (40, 30, 20))
    rows, why = ask("representative", made, 30)
    n_first = 3 * N_TYPICAL
    assert made[2][rows[:n_first]].tolist() == [0, 1, 2] * N_TYPICAL
    assert why[:3] == ["typical of group 0", "typical of group 1", "typical of group 2"]
    assert all(reason.startswith("one of group") for reason in why[n_first:21])
    assert why[21:] == ["between known and unknown"] * 9


def test_the_first_of_a_group_are_its_most_typical():
    _, embeddings, groups = made = window(50, (40, 30))
    rows, why = ask("representative", made, 20)
    for group in (0, 1):
        members = np.flatnonzero(groups == group)
        expected = members[herd(unit_rows(embeddings[members]), N_TYPICAL)]
        typical = [reason == f"typical of group {group}" for reason in why]
        np.testing.assert_array_equal(rows[typical], expected)
        others = [reason == f"one of group {group}" for reason in why]
        assert set(rows[others]) <= set(members) - set(expected)


def test_a_small_group_is_named_and_then_asked_about_by_its_size():
    # A class in two groups of which equal numbers are labelled is learnt out of proportion.
    made = window(50, (400, 3, 100))
    rows = ask("representative", made, 200).rows[:140]
    counts = np.bincount(made[2][rows])
    assert counts[1] == 3
    assert counts[0] / counts[2] == pytest.approx(3.5, abs=1.2)


def test_of_the_others_each_is_as_likely_as_any():
    _, _, groups = made = window(50, (14, 6))
    members = np.flatnonzero(groups >= 0)
    times = np.zeros(len(groups))
    for seed in range(400):
        rows, why = ask("representative", made, 22, seed=seed)
        times[rows[[reason.startswith("one of group") for reason in why]]] += 1
    others = times[members][times[members] > 0]
    # 6 of 10 each time: 240 on average, with a deviation of 10
    assert len(others) == 20 - 2 * N_TYPICAL
    assert np.all(np.abs(others - 240) < 40)


def test_border_items_are_among_those_nearest_to_the_threshold():
    made = window(100, (100,))
    rows, why = ask("representative", made, 20)
    border = rows[[reason == "between known and unknown" for reason in why]]
    assert len(border) == 6
    # 6 of the 24 nearest, twelve on either side but for the typical items in between
    assert border.min() >= 100 - 24
    assert border.max() < 100 + 24


def test_border_items_are_far_from_each_other():
    answer, embeddings, groups = window(100, (100,))
    embeddings = np.zeros_like(embeddings)
    embeddings[90:100] = np.eye(10, 4) + np.arange(10)[:, None]
    rows, why = ask("representative", (answer, embeddings, groups), 10)
    border = rows[[reason == "between known and unknown" for reason in why]]
    assert len({embeddings[row].tobytes() for row in border}) == len(border) == 3


@given(st.integers(0, 300))
def test_a_window_with_nothing_unknown_costs_at_most_three_tenths_of_the_budget(budget):
    rows, why = ask("representative", window(100), budget)
    assert len(rows) <= 0.3 * budget
    assert set(why) <= {"between known and unknown"}
    assert len(rows) == min(100, (3 * budget) // 10)


def test_of_a_window_with_nothing_unknown_the_strangest_items_are_asked_about():
    rows = ask("representative", window(100), 20).rows
    assert rows.min() >= 100 - 4 * 6


def test_a_budget_above_the_window_asks_about_every_unknown_item():
    made = window(10, (5, 5))
    rows = ask("representative", made, 500).rows
    assert sorted(rows.tolist()) == list(range(20))


def test_a_window_of_unknown_items_alone_can_be_asked_about():
    made = window(0, (10, 10))
    assert len(ask("representative", made, 10).rows) == 10


def test_without_groups_unknown_items_are_one():
    answer, embeddings, _ = window(30, (20, 10))
    rows, why = choose_queries(QuerySettings(10), answer, embeddings, seed=0)
    assert why[:7] == ["typical of group 0"] * N_TYPICAL + ["one of group 0"] * (7 - N_TYPICAL)
    assert (answer.labels[rows[:7]] == UNKNOWN).all()


# The others


def test_the_paper_asks_about_any_item_called_unknown():
    made = window(30, (20, 10))
    rows, why = ask("unknown", made, 12)
    assert (rows >= 30).all()
    assert len(rows) == 12
    assert set(why) == {"called unknown"}
    assert sorted(ask("unknown", made, 99).rows.tolist()) == list(range(30, 60))
    assert rows.tolist() != ask("unknown", made, 12, seed=1).rows.tolist()


def test_at_random_any_item_is_asked_about():
    made = window(30, (20, 10))
    often = np.bincount(
        np.concatenate([ask("random", made, 12, seed=seed).rows for seed in range(300)])
    )
    # 12 of 60 each time: 60 times in 300, give or take four deviations
    assert often.min() > 32
    assert often.max() < 88
    assert ask("random", made, 12).why == ["drawn at random"] * 12


# Parts


@given(st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=5))
def test_taking_turns_loses_nothing(lists):
    made = interleave([np.array(rows, int) for rows in lists])
    assert sorted(made.tolist()) == sorted(x for rows in lists for x in rows)


def test_doubt_is_greatest_at_the_threshold_whatever_the_scale():
    answer, _, _ = window(30, (20,))
    for score in (answer.unknown_score, np.exp(30 * answer.unknown_score)):
        doubt = uncertainty(Predictions(answer.labels, score, answer.confidence))
        assert set(np.argsort(-doubt)[:2].tolist()) == {29, 30}
        assert (np.diff(doubt[30:]) < 0).all()


def test_items_left_open_are_no_unknown_ones():
    labels = np.array([0, UNSURE, UNKNOWN])
    answer = Predictions(labels, np.array([0.1, 0.5, 0.9]), np.ones(3))
    assert uncertainty(answer).tolist() == [-1.5, -0.5, -0.5]


@given(st.integers(0, 12), st.integers(0, 20))
def test_items_spread_out_are_never_the_same_even_where_all_are_alike(n_items, n):
    chosen = spread_out(np.zeros((n_items, 3)), n)
    assert len(set(chosen.tolist())) == len(chosen) == min(n, n_items)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(SettingsError, match="the strategy is 'best'; give representative or"):
        ask("best", window(5), 5)
    with pytest.raises(SettingsError, match="the budget is -1; give a number of labels from 0"):
        ask("random", window(5), -1)
