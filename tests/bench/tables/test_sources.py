"""The table of sources compares each pool with its like, and with the paper's method."""

from dataclasses import asdict, replace

import pytest

from s2osc.bench.tables.sources import (
    f1_beside_paper,
    is_below_paper,
    loses_known,
    loses_unknown,
    loss_of_f_out,
    pair_pools,
    sources_table,
)
from s2osc.bench.tasks.audit import PairedPool, Stated
from s2osc.codec import to_plain
from s2osc.pipeline.audit.statistics import Estimate

STATED = Stated(
    unknown_share=Estimate(0.4, 0.3, 0.5),
    false_alarms=Estimate(0.04, 0.02, 0.06),
    known_accuracy=Estimate(0.95, 0.93, 0.97),
    unknown_recall=Estimate(0.85, 0.7, 0.9),
    p_value=1e-9,
    finds_unknown=True,
    cautions=(),
)


def record(partition, share, source, *, method="s2osc", draw=0, cautions=(), **figures):
    truth = {"accuracy": 0.9, "f1": 0.9, "f_out": 0.9, "false_alarms": 0.03} | figures
    truth |= {"teacher_known_accuracy": 0.95, "teacher_f1": 0.5}
    stated = replace(STATED, cautions=cautions, finds_unknown=share > 0)
    return {
        **{"method": method, "dataset": "pendigits", "partition": partition, "metrics": truth},
        "protocol": asdict(PairedPool("pendigits", share, 300, source=source, draw=draw)),
        "stated": to_plain(stated) if method == "s2osc" else None,
    }


RECORDS = [
    record(0, 0.0, "same", accuracy=0.94),
    record(1, 0.0, "noise 10 %", accuracy=0.92, cautions=("sources_differ",)),
    record(2, 0.4, "same", f_out=0.9),
    record(3, 0.4, "noise 10 %", f_out=0.84, f1=0.85),
    record(3, 0.4, "noise 10 %", method="s2osc-paper", f1=0.88),
    record(4, 0.4, "noise 10 %", draw=1, f_out=0.2),
]


def test_a_pool_is_compared_with_the_same_items_from_the_same_source():
    losses = [loss_of_f_out(pool) for pool in pair_pools(RECORDS)]
    # Nothing unknown, or the same source itself, or no pool of its draw from the same source.
    assert losses == [None, None, None, pytest.approx(0.06), None]


def test_what_is_lost_counts_from_its_limit_on():
    nothing, changed, same, noisy, alone = pair_pools(RECORDS)
    assert [loses_known(pool) for pool in (nothing, changed, same)] == [False, True, None]
    assert [loses_unknown(pool) for pool in (same, noisy, alone)] == [None, True, None]
    assert [is_below_paper(pool) for pool in (nothing, same, noisy)] == [None, None, True]
    assert f1_beside_paper([nothing, noisy]) == "0.850 (0.880)"
    assert f1_beside_paper([nothing]) == "–"


def test_the_table_has_a_row_for_each_source_and_one_for_all_others():
    table = sources_table(pair_pools(RECORDS))
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(rows) == ["same", "noise 10 %", "all others"]
    assert rows["same"]["pools"] == "2"
    assert rows["same"]["F_out - that of the same source"] == "–"
    assert rows["noise 10 %"]["told"].startswith("0.33")
    assert rows["noise 10 %"]["F_out - that of the same source"] == "-0.060"
    assert rows["all others"]["more than 0.05 below"].startswith("1.00")
    assert rows["all others"]["discoveries"].startswith("0.00")
