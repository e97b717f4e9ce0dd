"""Metrics with answers worked out by hand."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.bench.metrics import (
    auroc,
    evaluate,
    f_out,
    f_out_of_all_unknown,
    matched_accuracy,
    weighted_scores,
)
from s2osc.types import UNKNOWN, Predictions

pairs_of_labels = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=30
).map(lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True)))


def test_weighted_scores_by_hand():
    truth, labels = np.array([0, 0, 0, UNKNOWN]), np.array([0, 0, UNKNOWN, UNKNOWN])
    # class 0: precision 1, recall 2/3, F1 4/5; unknown: 1/2, 1, 2/3; weights 3/4 and 1/4
    assert weighted_scores(truth, labels) == pytest.approx(
        {
            "accuracy": 0.75,
            "precision": 0.75 * 1 + 0.25 * 0.5,
            "recall": 0.75 * 2 / 3 + 0.25 * 1,
            "f1": 0.75 * 0.8 + 0.25 * 2 / 3,
        }
    )


@given(pairs_of_labels)
def test_weighted_recall_is_accuracy(pair):
    scores = weighted_scores(*pair)
    assert scores["recall"] == pytest.approx(scores["accuracy"])


@given(pairs_of_labels)
def test_f_out_counts_unknown_against_known(pair):
    truth, labels = (values == UNKNOWN for values in pair)
    right, wrong = np.sum(truth & labels), np.sum(truth != labels)
    expected = 2 * right / (2 * right + wrong) if right + wrong else 0.0
    assert f_out(*pair) == pytest.approx(expected)


def test_mixing_up_known_classes_does_not_change_f_out():
    truth = np.array([0, 1, UNKNOWN, UNKNOWN])
    assert f_out(truth, np.array([1, 0, UNKNOWN, 0])) == pytest.approx(2 / 3)


@given(pairs_of_labels)
def test_the_line_to_be_above_is_the_f_out_of_calling_everything_unknown(pair):
    truth, _ = pair
    expected = f_out(truth, np.full(len(truth), UNKNOWN))
    assert f_out_of_all_unknown(truth) == pytest.approx(expected)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.lists(st.integers(0, 4), min_size=1))
def test_auroc_is_the_share_of_pairs_in_the_right_order_and_half_of_ties(known, unknown):
    truth = np.array([0] * len(known) + [UNKNOWN] * len(unknown))
    wins = sum((u > k) + 0.5 * (u == k) for k in known for u in unknown)
    expected = wins / (len(known) * len(unknown))
    assert auroc(truth, np.array([*known, *unknown], float)) == pytest.approx(expected)


@given(
    st.lists(st.tuples(st.integers(5, 7), st.integers(-1, 2)), min_size=1, max_size=20).map(
        lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True))
    )
)
def test_matched_accuracy_tries_every_match_of_groups_to_classes(pair):
    classes, groups = pair
    best = max(
        sum(groups[i] >= 0 and match[groups[i]] == classes[i] for i in range(len(groups)))
        for match in permutations((5, 6, 7))
    )
    assert matched_accuracy(classes, groups) == pytest.approx(best / len(groups))


def test_more_groups_than_classes_leave_some_unmatched():
    assert matched_accuracy(np.array([4, 4, 4]), np.array([0, 1, 2])) == pytest.approx(1 / 3)


def test_no_unknown_items_match_nothing():
    assert matched_accuracy(np.empty(0, int), np.empty(0, int)) == 0.0


def predictions(labels, scores=None):
    labels = np.array(labels)
    scores = (labels == UNKNOWN).astype(float) if scores is None else np.array(scores)
    return Predictions(labels, scores, np.ones(len(labels)))


def test_every_figure_of_the_main_table():
    truth = np.array([0, 1, 1, 1, UNKNOWN, UNKNOWN])
    figures = evaluate(truth, predictions([0, 1, 0, UNKNOWN, UNKNOWN, 0], [0, 1, 2, 8, 9, 3]))
    assert figures["accuracy"] == 0.5
    assert figures["known_accuracy"] == 0.5
    assert figures["false_alarms"] == 0.25
    assert figures["f_out"] == 0.5
    assert figures["f_out_all_unknown"] == 0.5
    assert figures["auroc"] == 0.875


def test_a_pool_of_known_items_has_no_figures_of_unknown_ones():
    figures = evaluate(np.array([0, 1]), predictions([0, UNKNOWN]))
    assert figures["false_alarms"] == 0.5
    assert not {"f_out", "f_out_all_unknown", "auroc"} & figures.keys()


def test_a_pool_of_unknown_items_has_no_figures_of_known_ones():
    figures = evaluate(np.array([UNKNOWN] * 2), predictions([0, UNKNOWN]))
    assert figures["f_out"] == pytest.approx(2 / 3, abs=1e-5)
    assert not {"known_accuracy", "false_alarms", "auroc"} & figures.keys()
