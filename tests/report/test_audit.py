import pytest

from s2osc.report.audit import class_rows, figures, notes, read_audit, stability


@pytest.fixture
def audit(pool, seeded):
    return seeded(pool()).summary["audit"]


def test_a_run_without_seeds_has_no_audit(pool):
    for nothing in (None, {}):
        assert read_audit(nothing, answer=pool().answer, seed_scores=None, folder="results") is None


def test_the_four_figures_come_in_order_each_with_its_interval(audit):
    assert [(figure.name, figure.interval.text) for figure in figures(audit)] == [
        ("False alarms", "4.0% (2.0% to 6.0%)"),
        ("Accuracy on known classes", "90.0% (85.0% to 95.0%)"),
        ("Unknown share", "40.0% (31.0% to 45.0%)"),
        ("Recall of unknown items", "80.0% (70.0% to 85.0%)"),
    ]
    assert [figure.wanted for figure in figures(audit)] == [0.05, None, None, None]
    assert figures(audit)[0].meaning == "known items called unknown; at most 5.0% wanted"


def test_figures_of_unknown_items_are_left_out_where_there_are_none(audit):
    shown = figures(audit | {"unknown_recall": None, "known_accuracy": None})
    assert [figure.name for figure in shown] == [
        "False alarms",
        "Accuracy on known classes",
        "Unknown share",
    ]
    assert shown[1].interval.text == "not estimated"


def test_the_class_with_most_false_alarms_comes_first(audit):
    alarms = {"class 0": 0.01, "class 1": 0.2, "class 2": None}
    per_class = {name: {"estimate": rate} for name, rate in alarms.items()}
    rows = class_rows(audit | {"false_alarm": {"per_class": per_class}})
    assert [row.name for row in rows] == ["class 1", "class 0", "class 2"]
    assert rows[0].n_seeds == "500"
    assert rows[0].false_alarm.text == "20.0%"
    assert rows[0].accuracy.text == "90.0% (85.0% to 95.0%)"
    assert rows[2].false_alarm.text == "not estimated"


def test_notes_tell_how_many_seeds_there_were_and_what_the_test_found(audit):
    said = " ".join(notes(audit))
    assert "1,500 seeds" in said
    assert "probability below 0.001" in said
    assert "weighted" not in said
    shifted = audit | {"prior_shift": {"found": True, "weights": {}}}
    assert "each seed is weighted" in " ".join(notes(shifted))
    assert notes({"sentence": "Nothing else is known."}) == []


def test_where_nothing_is_unknown_no_threshold_is_drawn(pool, seeded):
    for nothing_unknown in (False, True):
        inputs = seeded(pool(), nothing_unknown=nothing_unknown)
        found = read_audit(
            inputs.summary["audit"],
            answer=inputs.answer,
            seed_scores=inputs.seed_scores,
            folder="results",
        )
        assert (found.scores.threshold is None) == nothing_unknown


def test_groups_whose_stability_is_missing_show_none(audit):
    assert stability(audit, 2) == ["0.93", "0.81"]
    assert stability(audit, 3) == ["0.93", "0.81", ""]
    assert stability({}, 1) == [""]
