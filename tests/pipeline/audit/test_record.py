"""The audit as a value and as a record in a file."""

import json
from dataclasses import replace

import pytest

from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.record import SCHEMA, Audit, SourcesAudit, UnknownTest
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.audit.wording import tell
from samples import make_audit


def test_an_audit_comes_back_from_its_file_as_it_was():
    audit = make_audit()
    assert Audit.from_json(json.loads(json.dumps(audit.to_json(), allow_nan=False))) == audit
    assert Audit.from_json(tell(audit)) == audit


@pytest.mark.parametrize("start", [2.5, None])
def test_what_a_discovery_rests_on_comes_back_from_the_file(start):
    tail = LongTail(n_items=94, n_regular=43.4, n_judges=0, chance=0.024, start=start)
    audit = make_audit(test=UnknownTest(tail.p_value, 0.01, tail))
    assert Audit.from_json(json.loads(json.dumps(tell(audit), allow_nan=False))) == audit


def test_a_test_of_an_earlier_version_rests_on_exact_tests():
    record = make_audit().to_json()
    del record["test"]["long_tail"]
    assert Audit.from_json(record).test.long_tail is None


def test_absent_figures_are_null_and_come_back_absent():
    of_none = replace(make_audit().classes[0], false_alarm=None, known_accuracy=None)
    audit = make_audit(
        false_alarm=None,
        known_accuracy=None,
        unknown_recall=None,
        purity=None,
        groups=None,
        classes=(of_none,),
    )
    record = audit.to_json()
    assert record["false_alarm"] == {
        "estimate": None,
        "low": None,
        "high": None,
        "per_class": {"cat": None},
    }
    assert (record["unknown_recall"], record["purity"], record["groups"]) == (None, None, None)
    assert Audit.from_json(record) == audit


def test_a_record_has_the_keys_that_files_have():
    record = make_audit().to_json()
    assert set(record) == {
        *("schema", "nothing_unknown", "threshold", "sure_known_below", "seeds", "rule", "aim"),
        *("wanted_false_alarm", "smallest_false_alarm", "test", "unknown_share", "unknown_recall"),
        *("curve", "prior_shift", "false_alarm", "known_accuracy", "purity", "groups"),
        *("findable_share", "sources", "operating_point", "checked", "guarantee"),
        *("reliability", "class_limits"),
    }
    assert record["schema"] == SCHEMA
    assert record["seeds"] == {"number": 1500, "per_class": {"cat": 500, "dog": 500}}
    assert record["prior_shift"] == {"found": False, "weights": {"cat": 1.0, "dog": 1.0}}
    assert record["false_alarm"]["per_class"]["cat"] == {
        "estimate": 0.04,
        "low": 0.02,
        "high": 0.06,
    }
    assert record["curve"][0].keys() == {
        *("false_alarm", "recall", "low", "high", "threshold", "n_unknown"),
    }
    assert record["purity"]["curve"][0] == {"k": 10, "purity": 1.0, "low": 0.8}


def test_classes_are_called_by_their_numbers_until_they_are_named():
    audit = make_audit(("0", "2"))
    assert [each.name for each in audit.named(["a", "b", "c"]).classes] == ["a", "c"]


def test_what_the_comparison_of_the_sources_found_comes_back_from_the_file():
    sources = SourcesAudit(
        p_value=0.002, level=0.01, n_pool=80, n_labelled=31, differ=True, signs=("w", "entropy")
    )
    audit = make_audit(sources=sources, findable_share=0.0025)
    record = json.loads(json.dumps(audit.to_json(), allow_nan=False))
    assert record["findable_share"] == 0.0025
    assert record["sources"] == {
        **{"p_value": 0.002, "level": 0.01, "n_pool": 80, "n_labelled": 31, "differ": True},
        **{"signs": ["w", "entropy"], "changes": [], "still_differ": False, "is_suspected": False},
        "tolerance": 0.0,
    }
    assert Audit.from_json(record) == audit
    for name in (
        "changes",
        "still_differ",
        "is_suspected",
        "tolerance",
    ):  # which files of old do not have
        del record["sources"][name]
    assert Audit.from_json(record) == audit
    assert audit.sources_differ


def test_sources_that_were_not_compared_or_are_the_same_do_not_differ():
    same = SourcesAudit(0.4, 0.01, n_pool=80, n_labelled=31, differ=False, signs=())
    assert not make_audit(sources=same).sources_differ
    assert not make_audit(sources=None).sources_differ


def test_a_decision_taken_again_keeps_what_does_not_depend_on_it():
    fit = make_audit(
        is_shifted=True,
        findable_share=0.02,
        sources=SourcesAudit(0.4, 0.01, n_pool=80, n_labelled=31, differ=False, signs=()),
    )
    cat, dog = fit.classes
    fit = replace(fit, classes=(replace(cat, weight=0.5), replace(dog, weight=2.0)))
    again = make_audit(threshold=0.4, purity=None, groups=None, n_seeds=3).of_same_fit(fit)
    assert again == replace(fit, threshold=0.4, n_seeds=3)


RECORD = make_audit().to_json()
ABSENT = {
    *("schema", "rule", "guarantee", "findable_share", "sources", "operating_point", "checked"),
    *("reliability", "class_limits"),
}
"""Keys that files of earlier versions lack."""


@pytest.mark.parametrize("key", sorted(set(RECORD) - ABSENT))
def test_a_record_that_lacks_a_key_is_refused(key):
    with pytest.raises(ValueError, match=f"its audit lacks '{key}'"):
        Audit.from_json({name: value for name, value in RECORD.items() if name != key})


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "its audit is a NoneType, not an object"),
        ([1], "its audit is a list"),
        (RECORD | {"schema": 2}, "its audit has schema 2; this version reads 1"),
        (
            RECORD | {"unknown_share": {"estimate": "much", "low": 0, "high": 1}},
            "'much' is not a number",
        ),
        (RECORD | {"threshold": float("nan")}, "its audit, threshold: nan is not a number"),
        (RECORD | {"aim": 1}, "its audit, aim: 1 is not a text"),
        (RECORD | {"curve": 7}, "its audit, curve: 7 is not a list"),
        (RECORD | {"false_alarm": {"per_class": {}}}, "its audit lacks 'estimate'"),
        (RECORD | {"seeds": {"number": 3, "per_class": [1]}}, "its audit is damaged: "),
        (
            RECORD | {"purity": {"k": True, "estimate": 1.0, "curve": []}},
            "purity, k: True is not a whole number",
        ),
    ],
)
def test_what_is_no_audit_is_refused_in_one_line(record, words):
    with pytest.raises(ValueError, match=words):
        Audit.from_json(record)


def test_what_could_be_there_unseen_is_part_of_the_unknown_share():
    nothing = make_audit(
        nothing_unknown=True, unknown_share=Estimate(0.0, 0.0, 0.01), findable_share=0.04
    )
    assert nothing.with_missed().unknown_share == Estimate(0.0, 0.0, 0.04)
    apart = SourcesAudit(0.002, 0.01, n_pool=80, n_labelled=31, differ=True, signs=())
    assert replace(nothing, sources=apart).with_missed().unknown_share.high == 1
    assert make_audit(findable_share=0.9).with_missed() == make_audit(findable_share=0.9)


def test_figures_that_rest_on_one_source_are_absent_where_there_are_two():
    same = make_audit()
    apart = SourcesAudit(0.002, 0.01, n_pool=80, n_labelled=31, differ=True, signs=())
    found = replace(same, sources=apart).as_sources_allow()
    assert (found.false_alarm, found.known_accuracy, found.unknown_recall) == (None, None, None)
    assert all(each.false_alarm is None is each.known_accuracy for each in found.classes)
    assert found.curve == ()
    assert found.unknown_share == same.unknown_share._replace(low=0.0, high=1.0)
    assert Audit.from_json(found.to_json()) == found
    assert same.as_sources_allow() == same


def test_a_change_that_is_about_right_makes_the_intervals_wider():
    matched = SourcesAudit(
        *(0.002, 0.01, 80, 31),
        differ=True,
        signs=(),
        changes=("noise of about 12 of 255",),
        tolerance=0.05,
    )
    same = make_audit()
    found = replace(same, sources=matched).as_sources_allow()
    assert found.false_alarm == Estimate(0.04, 0.02, pytest.approx(0.11))
    assert found.known_accuracy == Estimate(0.9, pytest.approx(0.8), 0.95)
    low = same.unknown_share.low
    assert found.unknown_share == same.unknown_share._replace(low=pytest.approx(low - 0.05))
    nothing = replace(same, sources=matched, nothing_unknown=True).as_sources_allow()
    assert nothing.false_alarm == same.false_alarm
