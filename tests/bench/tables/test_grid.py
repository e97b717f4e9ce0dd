"""The table of the grid counts what could have been wrong, and nothing else."""

from dataclasses import replace

import pytest

from s2osc.bench.tables.grid import (
    MORE_COLUMNS,
    Count,
    Outcome,
    excess_of_false_alarms,
    grid_table,
    is_covered,
    is_difference_found,
    is_discovery,
    is_false_difference,
    is_false_discovery,
    is_false_shift,
    is_falsely_warned,
    is_much_worse,
    rival_table,
    source_table,
)
from s2osc.bench.tasks.audit import AuditPool, Stated
from s2osc.codec import to_plain
from s2osc.errors import DataError
from s2osc.pipeline.audit.statistics import Estimate

TRUTH = {
    **{"unknown_share": 0.4, "false_alarms": 0.03, "known_accuracy": 0.9, "unknown_recall": 0.8},
    **{"accuracy": 0.86, "f1": 0.86, "f_out": 0.85, "teacher_known_accuracy": 0.92},
    "teacher_f1": 0.5,
}
STATED = Stated(
    unknown_share=Estimate(0.35, 0.3, 0.45),
    false_alarms=Estimate(0.04, 0.02, 0.06),
    known_accuracy=Estimate(0.95, 0.93, 0.97),
    unknown_recall=Estimate(0.85, 0.7, 0.9),
    p_value=1e-9,
    finds_unknown=True,
    cautions=(),
)
SOME = Outcome(AuditPool(unknown_share=0.4), TRUTH, STATED)
NOTHING = Outcome(
    AuditPool(unknown_share=0.0),
    {
        **{"unknown_share": 0.0, "false_alarms": 0.0, "known_accuracy": 0.94, "accuracy": 0.94},
        **{"f1": 0.94, "teacher_known_accuracy": 0.94, "teacher_f1": 0.94},
    },
    replace(
        STATED,
        unknown_share=Estimate(0.0, 0.0, 0.02),
        false_alarms=Estimate(0.0, 0.0, 0.01),
        unknown_recall=None,
        p_value=0.5,
        finds_unknown=False,
    ),
)


def stating(outcome, **changes):
    return replace(outcome, stated=replace(outcome.stated, **changes))


def test_a_damaged_record_is_refused_in_one_line():
    record = {"dataset": "digits", "partition": 3, "metrics": TRUTH}
    sound = record | {"protocol": to_plain(SOME.pool), "stated": to_plain(STATED)}
    assert Outcome.of(sound) == SOME
    with pytest.raises(DataError, match=r"digits, partition 3: what it states, p_value.*run again"):
        Outcome.of(sound | {"stated": to_plain(STATED) | {"p_value": "small"}})


def test_an_interval_covers_what_it_holds_its_ends_included():
    rates = ("unknown_share", "false_alarms", "known_accuracy", "unknown_recall")
    assert [is_covered(SOME, rate) for rate in rates] == [True, True, False, True]
    at_its_end = stating(SOME, false_alarms=Estimate(0.04, 0.03, 0.06))
    assert is_covered(at_its_end, "false_alarms") is True


def test_where_nothing_is_unknown_and_nothing_was_found_only_the_accuracy_counts():
    rates = ("unknown_share", "false_alarms", "known_accuracy", "unknown_recall")
    assert [is_covered(NOTHING, rate) for rate in rates] == [None, None, True, None]


def test_a_class_that_was_missed_counts_against_the_unknown_share():
    missed = replace(NOTHING, pool=SOME.pool, truth=TRUTH)
    assert is_covered(missed, "unknown_share") is False
    assert is_covered(missed, "false_alarms") is None


def test_an_interval_that_holds_everything_or_has_no_truth_does_not_count():
    assert is_covered(stating(SOME, unknown_share=Estimate(0.5, 0, 1)), "unknown_share") is None
    assert is_covered(stating(SOME, false_alarms=None), "false_alarms") is None
    all_unknown = replace(SOME, truth={"unknown_share": 1.0, "unknown_recall": 0.8})
    assert is_covered(all_unknown, "known_accuracy") is None


def test_level_and_power_are_of_pools_without_and_with_something_unknown():
    found = stating(NOTHING, finds_unknown=True)
    assert [is_false_discovery(each) for each in (NOTHING, found, SOME)] == [False, True, None]
    assert [is_discovery(each) for each in (NOTHING, SOME)] == [None, True]


def test_warnings_are_false_where_there_is_nothing_to_warn_of():
    shift, differ = (
        stating(SOME, cautions=("class_shift",)),
        stating(SOME, cautions=("sources_differ",)),
    )
    noisy = replace(differ, pool=replace(SOME.pool, source="noise 10 %"))
    everything = replace(shift, pool=replace(SOME.pool, unknown_share=1.0))
    assert [is_false_shift(each) for each in (SOME, shift, everything)] == [False, True, None]
    assert [is_false_difference(each) for each in (SOME, differ, noisy)] == [False, True, None]
    assert [is_difference_found(each) for each in (SOME, noisy)] == [None, True]
    assert [is_falsely_warned(each) for each in (SOME, shift, differ, noisy)] == [
        *(False, True, True, False)
    ]


def test_an_answer_is_much_worse_than_f_from_two_hundredths_of_f1_on():
    f1 = {-0.01: False, -0.03: True, 0.1: False}
    for difference, expected in f1.items():
        outcome = replace(SOME, truth=TRUTH | {"f1": TRUTH["teacher_f1"] + difference})
        assert is_much_worse(outcome) is expected


def test_the_bias_of_false_alarms_is_over_pools_in_which_some_item_is_called_unknown():
    assert excess_of_false_alarms([SOME, NOTHING]) == "+0.010"
    other = stating(SOME, false_alarms=Estimate(0.06, 0.02, 0.08))
    assert excess_of_false_alarms([SOME, other]) == "+0.020 ± 0.020"
    assert excess_of_false_alarms([NOTHING]) == "–"


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (3, 10), (950, 1_000)])
def test_the_interval_of_a_share_holds_it(hits, n):
    low, high = Count(hits, n).interval()
    assert 0 <= low <= hits / n <= high <= 1


def test_the_table_has_a_row_for_every_level_that_some_pool_has():
    table = grid_table([SOME, NOTHING])
    names = [row[:2] for row in table.rows]
    assert names[:3] == [("all", ""), ("unknown share", "0 %"), ("unknown share", "40 %")]
    assert ("data", "digits") in names
    assert ("source", "noise 12") not in names
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert row["pools"] == "2"
    assert row["known accuracy covered"] == "0.50 (0.01–0.99; 2)"
    assert row["false alarms covered"] == "1.00 (0.03–1.00; 1)"
    assert row["nothing unknown: accuracy (f's own)"] == "0.940 (0.940)"
    assert row["something unknown: F1 (f's own)"] == "0.860 (0.500)"
    more = grid_table([SOME, NOTHING], MORE_COLUMNS)
    assert dict(zip(more.header, more.rows[0], strict=True))["F_out"] == "0.850"
    by_source = source_table([SOME, NOTHING])
    assert by_source.rows == (("same", "0.940 (0.940)", "–", "–", "0.850", "–"),)


def test_another_method_is_compared_on_the_pools_that_both_have():
    def record(method, partition, f1):
        facts = {"dataset": "digits", "partition": partition, "metrics": {"f1": f1}}
        return {"method": method, **facts}

    ours = [record("s2osc", 0, 0.9), record("s2osc", 1, 0.8), record("s2osc", 2, 0.1)]
    theirs = [record("plain", 0, 0.85), record("plain", 1, 0.83)]
    table = rival_table(ours + theirs, "s2osc")
    assert table.rows == (("plain", "2", "0.840", "0.850", "0.50 (0.01–0.99; 2)"),)
    assert rival_table(ours, "s2osc") is None
