"""What a person's labels of random items say: exact whatever the answer is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from s2osc.errors import DataError
from s2osc.pipeline.audit.check import (
    NO_LABEL,
    Check,
    check_order,
    meant_classes,
    measure_labels,
    outlook,
)
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import interval_in_words
from s2osc.types import UNKNOWN, UNSURE
from samples import make_audit

RATES = ("unknown_share", "accuracy", "false_alarm", "known_accuracy", "unknown_recall")


def answered(truth: np.ndarray, *, seed: int) -> np.ndarray:
    """Answers of which some are wrong in every way there is."""
    random, is_known = np.random.default_rng(seed), truth >= 0
    wrong = random.random(len(truth))
    answers = np.where(is_known & (wrong < 0.1), (truth + 1) % 3, truth)
    return np.where(wrong > 0.9, np.where(is_known, UNKNOWN, 0), answers)


def true_rates(truth: np.ndarray, answers: np.ndarray) -> dict[str, float]:
    is_known = truth >= 0
    return {
        "unknown_share": np.mean(~is_known),
        "accuracy": np.mean(truth == answers),
        "false_alarm": np.mean(answers[is_known] == UNKNOWN),
        "known_accuracy": np.mean((truth == answers)[is_known]),
        "unknown_recall": np.mean(answers[~is_known] == UNKNOWN),
    }


def shares_covered(truth: np.ndarray, answers: np.ndarray, n: int, leave_out: str) -> list[float]:
    """How often each interval holds the rate of the pool, over random samples of ``n`` items."""
    true, covered = true_rates(truth, answers), {name: [] for name in RATES}
    random = np.random.default_rng(0)
    for _ in range(80):
        rows = random.permutation(len(truth))[:n]
        labels = truth[rows].copy()
        if leave_out == "mistakes":
            labels[(labels != answers[rows]) & (random.random(n) < 0.5)] = NO_LABEL
        found = measure_labels(labels, rows.tolist(), answers)
        for name in RATES:
            if (figure := getattr(found, name)) is not None:
                is_in = figure.low - 1e-9 <= true[name] <= figure.high + 1e-9
                covered[name].append(is_in)
    return [float(np.mean(covered[name])) for name in RATES]


@pytest.mark.parametrize(("n_pool", "n", "leave_out"), [(60, 30, "nothing"), (400, 60, "mistakes")])
def test_intervals_hold_the_rates_of_the_pool_also_where_a_person_leaves_mistakes_out(
    n_pool, n, leave_out
):
    truth = np.random.default_rng(1).integers(UNKNOWN, 3, n_pool)
    covered = shares_covered(truth, answered(truth, seed=2), n, leave_out)
    assert min(covered) >= 0.9  # two deviations below .95 in 80 samples


def test_a_pool_of_which_every_item_is_checked_leaves_nothing_open():
    truth = np.random.default_rng(0).integers(UNKNOWN, 3, 50)
    answers = answered(truth, seed=1)
    found = measure_labels(truth, range(50), answers)
    for name, rate in true_rates(truth, answers).items():
        assert getattr(found, name) == pytest.approx((rate, rate, rate))


def test_counts_are_those_of_the_items_with_a_label():
    truth = np.array([0, 1, UNKNOWN, NO_LABEL, 2, UNKNOWN])
    answers = np.array([0, UNKNOWN, UNKNOWN, 0, 0, 1, 1, *[0] * 93])
    found = measure_labels(truth, range(6), answers)
    assert (found.n_items, found.n_skipped) == (5, 1)
    assert (found.n_unknown, found.n_known, found.n_alarms, found.n_right) == (2, 3, 1, 2)
    assert found.unknown_share.estimate == pytest.approx(2 / 5)
    assert found.false_alarm.estimate == pytest.approx(1 / 3)
    assert found.unknown_recall.estimate == pytest.approx(1 / 2)


def test_an_item_left_out_widens_every_interval_and_moves_no_estimate():
    truth, answers = np.tile([0, 1, UNKNOWN], 10), np.tile([0, 1, UNKNOWN], 100)
    whole = measure_labels(truth, range(30), answers)
    with_gap = measure_labels(np.append(NO_LABEL, truth), [0, *range(30)], answers)
    for name in RATES:
        narrow, wide = getattr(whole, name), getattr(with_gap, name)
        assert narrow.estimate == wide.estimate
        assert wide.low <= narrow.low
        assert wide.high >= narrow.high
    assert with_gap.accuracy.low < whole.accuracy.low
    assert with_gap.unknown_share.high > whole.unknown_share.high


def test_unsure_answers_are_neither_right_nor_wrong():
    answers = np.array([0, UNSURE, UNSURE, UNKNOWN, *[0] * 16])
    found = measure_labels(np.array([0, 1, UNKNOWN, UNKNOWN]), range(4), answers)
    assert (found.accuracy.estimate, found.unknown_recall.estimate) == (1, 1)
    assert (found.n_known, found.n_right) == (1, 2)
    assert found.unknown_share.estimate == 0.5
    assert measure_labels(np.array([0]), [0], np.full(5, UNSURE)).accuracy is None


def test_rates_of_which_no_item_tells_are_absent():
    found = measure_labels(np.array([0, 0]), range(2), np.zeros(10, int))
    assert found.unknown_recall is None
    assert found.false_alarm is not None
    assert measure_labels(np.full(3, NO_LABEL), range(3), np.zeros(10, int)) is None
    assert Check().measure(np.zeros(4, int), ["cat"]) is None


def test_items_asked_in_several_steps_are_those_asked_at_once():
    steps = Check().asked(7, n_pool=40, seed=3).asked(9, n_pool=40, seed=3)
    assert steps == Check().asked(16, n_pool=40, seed=3)
    everything = steps.asked(1_000, n_pool=40, seed=3)
    assert sorted(everything.rows) == list(range(40))
    assert everything.rows == tuple(check_order(40, 3).tolist())


def test_labels_stay_with_their_items_when_more_are_asked():
    check = Check().asked(3, n_pool=9, seed=0)
    first, second, third = check.rows
    check = check.labelled({second: "cat"}).asked(1, n_pool=9, seed=0)
    assert check.labels == ("", "cat", "", "")
    assert check.open_rows == (first, third, check.rows[3])
    assert check.n_labels == 1


def test_items_after_the_last_label_are_not_skipped_unless_a_person_could_not_tell():
    check = Check((4, 2, 7, 1), ("cat", "", "cat", ""))
    found = check.measure(np.zeros(9, int), ["cat"])
    assert (found.n_items, found.n_skipped) == (2, 1)
    found = check.labelled({1: "unsure"}).measure(np.zeros(9, int), ["cat"])
    assert (found.n_items, found.n_skipped) == (2, 2)


@pytest.mark.parametrize(
    ("label", "meant"),
    [("cat", 0), ("CAT", 0), ("7", 1), ("7.0", 1), ("owl", UNKNOWN), ("unknown", UNKNOWN)],
)
def test_a_label_is_a_known_class_or_unknown(label, meant):
    assert meant_classes([label], ["cat", "7"]) == {label: meant}


@pytest.mark.parametrize("label", ["", "unsure", "Unsure"])
def test_who_cannot_tell_gives_no_label(label):
    assert meant_classes([label], ["cat", "7"]) == {label: NO_LABEL}
    assert meant_classes([label or "x"], ["cat", label or "x"]) == {label or "x": 1}


def test_a_number_that_two_classes_could_be_is_refused():
    with pytest.raises(DataError, match=r"'7\.0' may be '7', '07'"):
        meant_classes(["7.0"], ["7", "07"])
    assert meant_classes(["7", "07"], ["7", "07"]) == {"7": 0, "07": 1}


@pytest.mark.parametrize(("n", "three_in"), [(30, 0.1), (100, 0.03), (300, 0.01)])
def test_a_class_is_seen_from_about_three_in_as_many_as_are_labelled(n, three_in):
    found = outlook(n, n_pool=100_000, called_unknown=0.2)
    assert found.visible_share == pytest.approx(three_in, rel=0.06)
    assert found.unknown_share.low < 0.2 < found.unknown_share.high


def test_more_labels_tell_more_and_all_of_them_everything():
    found = [outlook(n, n_pool=300, called_unknown=0.2) for n in (30, 100, 300)]
    widths = [each.unknown_share.high - each.unknown_share.low for each in found]
    assert widths[0] > widths[1] > widths[2] == 0
    assert found[2].visible_share == pytest.approx(1 / 300)


def test_the_document_says_what_labels_tell():
    document = (Path(__file__).parents[3] / "docs" / "trust.md").read_text(encoding="utf-8")
    for n in (30, 100, 300):
        found = outlook(n, n_pool=50_000, called_unknown=0.4)
        cells = [interval_in_words(found.unknown_share), interval_in_words(found.accuracy)]
        share, right = (cell.replace("% to ", " to ").replace("%", " %") for cell in cells)
        assert f"| {n} | {share} | {right} | {round(100 * found.visible_share)} %" in document


def test_a_record_of_a_check_comes_back_from_json():
    checked = measure_labels(np.array([0, 1, UNKNOWN]), range(3), np.tile([0, UNKNOWN], 10))
    audit = replace(make_audit(), checked=checked)
    assert audit.checked is not None
    assert Audit.from_json(audit.to_json()) == audit
