"""Metrics with answers worked out by hand."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2osc.metrics import (
    Interval,
    auroc,
    chaudhry_forgetting,
    evaluate,
    evaluate_by_name,
    evaluate_classes,
    evaluate_groups,
    evaluate_paper_mode,
    f_out,
    f_out_of_all_unknown,
    forgetting,
    fpr95,
    interval_over,
    macro_f1,
    matched_accuracy,
    oscr,
    paper_mode,
    weighted_scores,
)
from s2osc.types import UNKNOWN, Answer, Predictions

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
    nearest = np.where(labels == UNKNOWN, 0, labels)
    return Predictions(labels, scores, np.ones(len(labels)), nearest=nearest)


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


# Figures of scores


def test_scores_of_the_worked_example():
    """Confidence 0.9 (right), 0.8 (wrong), 0.4 (right) of known items, 0.85 and 0.3 of unknown."""
    truth, labels = np.array([0, 1, 0, UNKNOWN, UNKNOWN]), np.array([0, 0, 0, 1, 1])
    unknown_score = -np.array([0.9, 0.8, 0.4, 0.85, 0.3])
    assert auroc(truth, unknown_score) == pytest.approx(2 / 3)
    assert oscr(truth, labels, unknown_score) == pytest.approx(0.5)


scored_items = st.lists(
    st.tuples(st.integers(-1, 1), st.integers(-1, 1), st.integers(0, 4)), max_size=20
).map(lambda rows: np.array([*rows, (0, 0, 0), (UNKNOWN, 0, 2)]).T)


@settings(max_examples=40)
@given(scored_items)
def test_oscr_is_the_share_of_pairs_with_the_known_item_right_and_below(items):
    truth, labels, scores = items
    pairs = [
        (labels[i] == truth[i]) * ((scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j]))
        for i in np.flatnonzero(truth != UNKNOWN)
        for j in np.flatnonzero(truth == UNKNOWN)
    ]
    assert oscr(truth, labels, scores) == pytest.approx(np.mean(pairs))


@settings(max_examples=40)
@given(scored_items)
def test_oscr_is_auroc_where_every_known_item_is_right_and_never_more(items):
    truth, labels, scores = items
    assert oscr(truth, truth, scores) == pytest.approx(auroc(truth, scores))
    is_known = truth != UNKNOWN
    closed_accuracy = np.mean((labels == truth)[is_known])
    assert oscr(truth, labels, scores) <= min(closed_accuracy, auroc(truth, scores)) + 1e-9


def test_scores_that_say_nothing_give_half_the_closed_accuracy():
    truth, labels = np.array([0, 0, 1, 1, UNKNOWN]), np.array([0, 0, 1, 0, 0])
    assert oscr(truth, labels, np.zeros(5)) == pytest.approx(0.75 / 2)


def test_oscr_of_many_items_takes_no_square_of_memory():
    truth = np.tile([0, UNKNOWN], 200_000)
    scores = np.arange(len(truth)) % 1_000.0
    assert 0.49 < oscr(truth, np.zeros(len(truth), int), scores) < 0.51


def test_fpr95_accepts_the_fewest_that_keep_95_percent_of_the_known():
    truth = np.array([0] * 100 + [UNKNOWN] * 4)
    # 95 of 100 known items score up to 94
    assert fpr95(truth, np.array([*range(100), 93.5, 94, 94.5, 200])) == 0.5
    assert fpr95(truth[-5:], np.array([1.0, 0, 2, 3, 4])) == 0.25  # of one item, all are kept
    assert fpr95(truth, np.zeros(104)) == 1.0


def test_macro_f1_counts_every_class_of_the_truth_alike():
    truth = np.array([0] * 8 + [1, UNKNOWN])
    assert macro_f1(truth, np.zeros(10, int)) == pytest.approx((16 / 18) / 3)
    assert macro_f1(truth, truth) == 1.0
    # a class that only the labels have is no class of its own: 0 has F1 2/3
    assert macro_f1(np.array([0, 0]), np.array([0, UNKNOWN])) == pytest.approx(2 / 3)


def test_evaluate_names_every_figure_that_the_pool_allows():
    truth = np.array([0, 1, 1, 1, UNKNOWN, UNKNOWN])
    figures = evaluate(truth, predictions([0, 1, 0, UNKNOWN, UNKNOWN, 0], [0, 1, 2, 8, 9, 3]))
    assert list(figures) == [
        *("accuracy", "precision", "recall", "f1", "macro_f1", "known_accuracy", "false_alarms"),
        *("f_out", "f_out_all_unknown", "unknown_recall", "auroc", "oscr", "fpr95"),
    ]
    # F1 of 0: 2/4, of 1: 2/4, of unknown: 2/4
    assert figures["macro_f1"] == 0.5
    assert figures["unknown_recall"] == 0.5
    assert figures["oscr"] == 0.5  # both that are right stand below both unknown items
    assert figures["fpr95"] == 0.5  # 8 keeps every known item, and 3 comes with them


# Groups


def test_groups_of_the_worked_example():
    classes = np.array([0, 0, 1, 1])
    everything = np.ones(4, bool)
    crossed = evaluate_groups(classes, everything, np.array([0, 1, 0, 1]))
    assert crossed == {
        "n_groups": 2,
        "group_accuracy": 0.5,
        "nmi_found": 0.0,
        "nmi": 0.0,
        "ari": -0.5,
    }
    for same in ([0, 0, 1, 1], [1, 1, 0, 0]):
        assert evaluate_groups(classes, everything, np.array(same)) == {
            "n_groups": 2,
            "group_accuracy": 1.0,
            "nmi_found": 1.0,
            "nmi": 1.0,
            "ari": 1.0,
        }


def test_known_items_in_a_group_change_no_figure_but_their_number():
    classes, groups = np.array([7, 7, 8, 8, 1, 1]), np.array([0, 0, 1, 1, 1, 2])
    is_unknown = np.array([True] * 4 + [False] * 2)
    figures = evaluate_groups(classes, is_unknown, groups)
    assert figures == {
        "n_groups": 3,
        "group_accuracy": 1.0,
        "nmi_found": 1.0,
        "nmi": 1.0,
        "ari": 1.0,
    }


def test_unknown_items_that_were_missed_are_wrong_in_every_figure():
    classes, everything = np.array([7, 7, 8, 8]), np.ones(4, bool)
    missed = evaluate_groups(classes, everything, np.full(4, -1))
    assert missed == {
        "n_groups": 0,
        "group_accuracy": 0.0,
        "nmi_found": 0.0,
        "nmi": 0.0,
        "ari": 0.0,
    }
    # a class that is missed altogether is not a group that was found, and what is found of one
    # class alone says nothing of how classes are told apart
    half = evaluate_groups(classes, everything, np.array([0, 0, -1, -1]))
    assert half == {"n_groups": 1, "group_accuracy": 0.5, "nmi_found": 0.0, "nmi": 0.0, "ari": 0.0}


def test_agreement_of_the_items_found_does_not_count_those_missed():
    classes, everything = np.array([7, 7, 8, 8]), np.ones(4, bool)
    figures = evaluate_groups(classes, everything, np.array([0, -1, 1, -1]))
    assert figures["nmi_found"] == 1.0
    assert figures["nmi"] == 0.5


def test_one_unknown_class_has_no_agreement_of_groups():
    figures = evaluate_groups(
        np.array([3, 3, 0]), np.array([True, True, False]), np.array([0, 1, -1])
    )
    assert figures == {"n_groups": 2, "group_accuracy": 0.5}
    assert evaluate_groups(np.array([3]), np.array([False]), np.array([0])) == {"n_groups": 1}
    assert evaluate_groups(np.empty(0, int), np.empty(0, bool), np.empty(0, int)) == {"n_groups": 0}


def test_the_number_of_groups_stays_a_whole_number():
    assert type(evaluate_groups(np.array([3]), np.array([True]), np.array([0]))["n_groups"]) is int


# Paper mode


def blobs(*classes, n=8, width=2):
    """``n`` items of each class: far apart by class, near each other within."""
    of_class = np.repeat(classes, n)
    inside = np.random.default_rng(0).normal(size=(len(of_class), width))
    inside[:, 0] += 1_000.0 * of_class
    return of_class, inside.astype(np.float32)


@pytest.mark.parametrize("width", [2, 60])
def test_clusters_in_paper_mode_are_matched_to_classes_of_the_data_set(width):
    classes, features = blobs(2, 4, 7, 9, width=width)
    truth = np.select([classes == 2, classes == 7], [0, 1], UNKNOWN)
    labels = paper_mode(truth, classes, truth == UNKNOWN, features, 2, 2, seed=0)
    np.testing.assert_array_equal(labels, classes)


def test_clusters_of_what_was_called_known_are_matched_to_known_classes_only():
    classes, features = blobs(2, 4, 7)
    truth = np.select([classes == 2, classes == 7], [0, 1], UNKNOWN)
    nothing, all_of_it = np.zeros(24, bool), np.ones(24, bool)
    known = paper_mode(truth, classes, nothing, features, n_known=2, n_unknown=1, seed=0)
    assert set(known.tolist()) == {2, 7}
    assert np.all(paper_mode(truth, classes, all_of_it, features, 2, 1, seed=0) == 4)
    # three clusters for two classes: one is left without
    three = paper_mode(truth, classes, nothing, features, 3, 1, seed=0)
    np.testing.assert_array_equal(three, np.where(classes == 4, -1, classes))


def test_paper_mode_takes_fewer_clusters_where_items_are_few_or_alike():
    classes, truth = np.array([3, 3, 5, 8]), np.array([0, 0, 1, UNKNOWN])
    features = np.array([[0.0], [0.0], [9.0], [4.0]])
    is_unknown = np.array([False, False, False, True])
    labels = paper_mode(truth, classes, is_unknown, features, 3, 2, seed=0)
    np.testing.assert_array_equal(labels, classes)
    assert np.all(paper_mode(truth, classes, ~is_unknown, features, 2, 0, seed=0)[:3] == -1)
    nothing = np.empty(0, int)
    assert paper_mode(nothing, nothing, nothing == 0, np.empty((0, 60)), 2, 1, seed=0).size == 0


def test_paper_mode_is_the_same_for_the_same_seed_and_leaves_global_state_alone():
    classes, features = np.repeat([0, 1, 2], 20), np.random.default_rng(1).normal(size=(60, 70))
    truth = np.where(classes == 2, UNKNOWN, classes)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (
        paper_mode(truth, classes, truth == UNKNOWN, features, 2, 1, seed=4) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_figures_in_paper_mode_forget_what_the_method_said_of_classes():
    classes, features = blobs(2, 4, 7)
    truth = np.select([classes == 2, classes == 7], [0, 1], UNKNOWN)
    always_first = predictions(np.where(truth == UNKNOWN, UNKNOWN, 0))
    figures = evaluate_paper_mode(truth, classes, always_first, features, seed=0)
    assert figures["accuracy"] == figures["f1"] == figures["macro_f1"] == figures["f_out"] == 1.0
    assert figures["known_accuracy"] == figures["unknown_recall"] == 1.0
    assert figures["f_out_all_unknown"] == 0.5
    assert figures["n_groups"] == 1
    assert not {"auroc", "oscr", "fpr95", "nmi"} & figures.keys()


def test_paper_mode_does_not_mend_what_the_method_did_not_detect():
    classes, features = blobs(2, 4)
    truth = np.where(classes == 2, 0, UNKNOWN)
    nothing_found = predictions(np.zeros(16, int))
    figures = evaluate_paper_mode(truth, classes, nothing_found, features, seed=0)
    assert (figures["accuracy"], figures["f_out"], figures["unknown_recall"]) == (0.5, 0.0, 0.0)
    assert figures["group_accuracy"] == 0.0


def test_each_unknown_class_counts_for_itself_once_groups_are_matched():
    truth = np.array([0, 0, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN])
    classes = np.array([4, 4, 9, 1, 1, 7, 7])
    labels = np.array([0, UNKNOWN, 1, UNKNOWN, UNKNOWN, UNKNOWN, 0])
    groups = np.array([-1, 2, -1, 2, 2, 0, -1])
    found = evaluate_classes(truth, classes, labels, groups)
    # Wrong are the known item in group 2 and the unknown one that was called 0.
    assert found["class_accuracy"] == found["class_recall"] == round(5 / 7, 5)
    exact = weighted_scores(np.array([0, 0, 1, 2, 2, 3, 3]), np.array([0, 2, 1, 2, 2, 3, 0]))
    assert found["class_f1"] == round(exact["f1"], 5)
    # Two unknown classes in one group: one of them is wrong as a whole.
    one = evaluate_classes(truth, classes, labels, np.where(labels == UNKNOWN, 0, -1))
    assert one["class_accuracy"] == round(4 / 7, 5)
    # One class in two groups: the smaller one is wrong.
    split = np.array([-1, -1, -1, 0, 1, 2, -1])
    assert evaluate_classes(truth, classes, labels, split)["class_accuracy"] == round(4 / 7, 5)


def test_without_unknown_items_classes_are_the_known_ones():
    truth = np.array([0, 1, 1])
    labels = np.array([0, UNKNOWN, 1])
    found = evaluate_classes(truth, truth, labels, np.array([-1, 0, -1]))
    assert found["class_accuracy"] == round(2 / 3, 5)


def test_several_unknown_classes_are_classes_of_their_own_in_paper_mode():
    classes, features = blobs(2, 4, 7)
    truth = np.where(classes == 2, 0, UNKNOWN)
    features[classes == 7] = features[classes == 4]  # no cluster can tell them apart
    figures = evaluate_paper_mode(truth, classes, predictions(truth), features, seed=0)
    assert figures["f_out"] == 1.0
    assert figures["accuracy"] == pytest.approx(2 / 3, abs=0.1)
    assert figures["known_accuracy"] == 1.0
    assert figures["nmi"] < 0.2


# Over partitions


def test_the_interval_over_partitions_is_that_of_student():
    found = interval_over([0.9, 0.9, 0.6])
    assert found.mean == pytest.approx(0.8)
    assert found.half_width == pytest.approx(4.302653 * 0.1, abs=1e-6)
    assert found.n == 3
    # five partitions: t of 4 degrees of freedom is 2.776
    assert interval_over([1, 2, 3, 4, 5]).half_width == pytest.approx(2.776445 * (2.5 / 5) ** 0.5)


def test_one_partition_has_no_interval():
    assert interval_over([0.25]) == Interval(0.25, None, 1)


# Streams

STAGES = [[0.9], [0.8, 0.9], [0.7, 0.8, 0.9]]


def test_forgetting_by_hand():
    assert forgetting(STAGES, 0.95) == pytest.approx((0.95 - 0.85) / 0.95)
    assert chaudhry_forgetting(STAGES) == pytest.approx(((0.9 - 0.7) + (0.9 - 0.8)) / 2)


def test_a_learner_as_good_as_the_one_of_all_data_forgets_nothing():
    assert forgetting([[0.9], [0.9, 0.9]], 0.9) == pytest.approx(0)
    assert chaudhry_forgetting([[0.9], [0.9, 0.1]]) == pytest.approx(0)


def test_what_grows_better_is_forgetting_below_nothing():
    assert forgetting([[0.9], [0.9, 0.9]], 0.8) < 0
    assert chaudhry_forgetting([[0.5], [0.9, 0.9]]) == pytest.approx(-0.4)


def test_a_stage_without_new_classes_counts_like_any_other():
    stages = [[0.9], [0.6], [0.8, 0.5]]
    mean = (0.9 + 0.6 + 0.65) / 3
    assert forgetting(stages, 0.8) == pytest.approx((0.8 - mean) / 0.8)
    assert chaudhry_forgetting(stages) == pytest.approx(0.1)


# By the names that items came with


def pool_answer(labels: list[int], groups: list[int]) -> Answer:
    n = len(labels)
    return Answer(
        labels=np.array(labels),
        unknown_score=np.linspace(0, 1, n),
        confidence=np.full(n, 0.5),
        groups=np.array(groups),
        distinctness=np.arange(n) / 4,
        filtered=np.arange(n) == 0,
        nearest=np.arange(n) % 2,
    )


def test_only_items_with_truth_are_judged():
    answer = pool_answer([0, 1, -1, -1], [-1, -1, 0, 1])
    figures = evaluate_by_name(answer, ("a", "b"), ["a", "a", "new", ""])
    assert figures["accuracy"] == pytest.approx(2 / 3, abs=1e-5)
    assert figures["group_accuracy"] == 1
    assert (
        evaluate_by_name(answer, ("a", "b"), None)
        == evaluate_by_name(answer, ("a", "b"), [""] * 4)
        == {}
    )


def test_any_class_other_than_the_known_ones_counts_as_unknown():
    answer = pool_answer([0, -1, -1], [-1, 0, 0])
    figures = evaluate_by_name(answer, ("a",), ["a", "unknown", "zebra"])
    assert (figures["accuracy"], figures["f_out"]) == (1, 1)
    assert figures["group_accuracy"] == 0.5


def test_items_left_unsure_are_neither_right_nor_wrong():
    answer = pool_answer([0, -1, -2, -2], [-1, 0, -1, -1])
    figures = evaluate_by_name(answer, ("a", "b"), ["a", "new", "a", "new"])
    assert (figures["accuracy"], figures["decided"]) == (1, 0.5)
    nobody = evaluate_by_name(pool_answer([-2, -2], [-1, -1]), ("a", "b"), ["a", "b"])
    assert nobody == {"decided": 0.0}
