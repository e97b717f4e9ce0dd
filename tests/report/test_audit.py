from dataclasses import replace

import pytest

from s2osc.pipeline.audit.record import CheckedAudit, UnknownTest
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.report.audit import certainty, checked_figures, class_rows, figures, notes, show_audit
from s2osc.report.words import IntervalText
from samples import make_audit


@pytest.fixture
def audit():
    return make_audit(("class 0", "class 1", "class 2"))


def test_the_four_figures_come_in_order_each_with_its_interval(audit):
    assert [(figure.name, figure.interval.text) for figure in figures(audit)] == [
        ("False alarms", "4.0% (2.0% to 6.0%)"),
        ("Accuracy on known classes", "90.0% (85.0% to 95.0%)"),
        ("Unknown share", "40.0% (31.8% to 45.0%)"),
        ("Recall of unknown items", "80.0% (70.0% to 85.0%)"),
    ]
    assert [figure.wanted for figure in figures(audit)] == [0.05, None, None, None]
    assert figures(audit)[0].meaning == "known items called unknown; at most 5.0% wanted"


def test_a_recall_that_was_not_estimated_is_left_out_and_a_rate_is_said_to_be_absent(audit):
    shown = figures(replace(audit, unknown_recall=None, known_accuracy=None))
    assert [figure.name for figure in shown] == [
        "False alarms",
        "Accuracy on known classes",
        "Unknown share",
    ]
    assert shown[1].interval.text == "not estimated"
    assert (shown[1].interval.bar, shown[1].interval.whiskers) == (0, None)


def test_what_a_person_measured_is_shown_but_for_rates_of_which_no_item_tells():
    share = Estimate(0.4, 0.2, 0.6)
    counts = dict.fromkeys(("n_items", "n_skipped", "n_unknown", "n_known", "n_alarms"), 1)
    rates = dict.fromkeys(("false_alarm", "known_accuracy", "unknown_recall"))
    checked = CheckedAudit(**counts, **rates, n_right=1, unknown_share=share, accuracy=share)
    shown = checked_figures(checked)
    assert [(figure.name, figure.interval.text) for figure in shown] == [
        ("Right answers", "40.0% (20.0% to 60.0%)"),
        ("Unknown share", "40.0% (20.0% to 60.0%)"),
    ]


def test_the_class_with_most_false_alarms_comes_first(audit):
    rates = (Estimate(0.01, 0.0, 0.1), Estimate(0.2, 0.1, 0.3), None)
    classes = [replace(c, false_alarm=r) for c, r in zip(audit.classes, rates, strict=True)]
    rows = class_rows(replace(audit, classes=tuple(classes)))
    assert [row.name for row in rows] == ["class 1", "class 0", "class 2"]
    assert rows[0].n_seeds == "500"
    assert rows[0].false_alarm.text == "20.0% (10.0% to 30.0%)"
    assert rows[0].accuracy.text == "90.0% (85.0% to 95.0%)"
    assert rows[2].false_alarm.text == "not estimated"


def test_notes_say_how_many_seeds_there_were_and_what_the_test_found(audit):
    text = " ".join(notes(audit))
    assert "Measured with 1,500 labelled items of known classes" in text
    assert "probability below 0.001" in text
    assert "weighted" not in text
    assert "Too few" not in text
    assert "each held-back item is weighted" in " ".join(notes(replace(audit, is_shifted=True)))
    likely = replace(audit, test=UnknownTest(0.2, 0.01), false_alarm=None)
    assert "probability 0.2." in " ".join(notes(likely))
    assert "Too few items of the pool are known" in " ".join(notes(likely))


def test_where_nothing_is_unknown_no_threshold_is_drawn(pool, seeded):
    for threshold in (0.8, None):
        inputs = seeded(pool(), nothing_unknown=threshold is None, threshold=threshold)
        found = show_audit(
            inputs.audit,
            answer=inputs.answer,
            seed_scores=inputs.seed_scores,
            folder="results",
        )
        assert (found.scores.threshold is None) == (threshold is None)


def test_groups_whose_certainty_is_missing_show_none(audit):
    assert certainty(audit.groups, 2) == ["0.93", "0.74"]
    assert certainty(audit.groups, 3) == ["0.93", "0.74", ""]
    assert certainty(None, 1) == [""]


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Estimate(0.04, 0.021, 0.063), "4.0% (2.1% to 6.3%)"),
        (Estimate(0.0, 0.0, 0.0004), "0% (0% to <0.1%)"),
        (None, "not estimated"),
    ],
)
def test_an_interval_in_words_says_what_is_known_and_no_more(figure, text):
    assert IntervalText(figure).text == text
