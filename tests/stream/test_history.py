"""The record of a window: its JSON, as states hold it, and its classes under another name."""

import json
from dataclasses import replace

import pytest

from s2osc.pipeline.audit.record import Rate
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.stream.history import SeedAccuracy, UpdateRecord, WindowAudit, WindowRecord
from s2osc.stream.update import Losses

INTERVAL = Estimate(0.5, 0.25, 0.75)
RATE = Rate(INTERVAL, {"a": INTERVAL, "b": None})
NEW = WindowRecord(window=1, items=9, unknown=4, groups=2, k=3, asked=2, seconds=1.5)
WHOLE = replace(
    NEW,
    answered=1,
    labelled=3,
    ignored=1,
    new_classes=("c",),
    updates=(UpdateRecord(3, 1, Losses(0.5, 0.25), Losses(0.5, 0.75), seconds=0.25),),
    audit=WindowAudit(
        nothing_unknown=False,
        unknown_share=INTERVAL,
        false_alarm=RATE,
        known_accuracy=Rate(None, {}),
    ),
    version=2,
    answer="0f",
    classes={"a": SeedAccuracy(3, INTERVAL), "c": SeedAccuracy(0, None)},
)


@pytest.mark.parametrize("record", [NEW, WHOLE])
def test_a_record_is_read_as_it_was_written(record):
    assert WindowRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_the_keys_of_a_record_are_those_of_the_file_format():
    first = {
        *("window", "items", "unknown", "groups", "k", "asked", "answered", "labelled"),
        *("ignored", "new_classes", "updates", "seconds"),
    }
    assert NEW.to_json().keys() == first
    plain = WHOLE.to_json()
    assert plain.keys() == first | {"audit", "version", "answer", "classes"}
    assert plain["updates"][0] == {
        "n_labels": 3,
        "n_new_classes": 1,
        "memory": {"before": 0.5, "after": 0.25, "holds": True},
        "seeds": {"before": 0.5, "after": 0.75, "holds": False},
        "seconds": 0.25,
    }
    interval = {"estimate": 0.5, "low": 0.25, "high": 0.75}
    assert plain["audit"] == {
        "nothing_unknown": False,
        "unknown_share": interval,
        "false_alarm": interval | {"per_class": {"a": interval, "b": None}},
        "known_accuracy": {"estimate": None, "low": None, "high": None, "per_class": {}},
    }
    assert plain["classes"] == {"a": {"n": 3} | interval, "c": {"n": 0}}


def test_the_seconds_of_a_window_are_those_of_its_answer_and_its_updates():
    assert WHOLE.seconds_in_all == 1.75


def test_a_class_has_its_new_name_in_every_part_of_a_record():
    renamed = WHOLE.renamed("a", "ant").renamed("c", "cat")
    assert renamed.new_classes == ("cat",)
    assert list(renamed.classes) == ["ant", "cat"]
    assert list(renamed.audit.false_alarm.per_class) == ["ant", "b"]
    assert renamed.renamed("ant", "a").renamed("cat", "c") == WHOLE
