"""Matrices: a table per metric, methods against data sets, the paper's figures in brackets."""

from dataclasses import replace

import pytest

from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.tables.layouts import make_blocks
from s2osc.bench.tables.rendering import Table
from s2osc.bench.tables.runs import Runs
from s2osc.bench.tables.words import what_is_missing, who_beats_ours
from s2osc.data.splits import SINGLE_UNKNOWN
from s2osc.errors import DataError

METHODS = {"odin": None, "msp": None, "s2osc": None}
EXPERIMENT = Experiment(
    "One unknown class",
    SINGLE_UNKNOWN,
    METHODS,
    data=("mnist", "cifar10-features"),
    layout="matrix",
    table="one",
)


def record(method, f1=0.5, *, partition=0, dataset="mnist", size="cpu", **others):
    return {
        "size": size,
        "dataset": dataset,
        "method": method,
        "protocol": {"n_unknown": 1, "sizes": [600, 300, 900], "pool_share": 0.33},
        "partition": partition,
        "seed": partition,
        "unknown_classes": ["5"],
        "metrics": {"f1": f1, "accuracy": f1 / 2},
        "machine": {"threads": 1},
    } | others


def failed(method, **others):
    found = record(method, **others)
    del found["metrics"]
    return found | {"error": {"kind": "DataError", "message": "no room"}}


def tables(records, experiment=EXPERIMENT):
    """Cells by row and column, for each caption in order; of what follows, only tables."""
    found = {}
    for block in make_blocks(experiment, records):
        if isinstance(block, Table):
            rows = {
                name: dict(zip(block.header[1:], cells, strict=True)) for name, *cells in block.rows
            }
            found.setdefault(block.caption, []).append(rows)
    return found


def texts(records, experiment=EXPERIMENT):
    return [block for block in make_blocks(experiment, records) if isinstance(block, str)]


def row(records, method, caption="Weighted F1"):
    return tables(records)[caption][0][method]


# Cells


def test_a_cell_is_the_mean_with_its_interval_their_number_and_the_paper_s_figure():
    records = [record("odin", f1, partition=p) for p, f1 in enumerate((0.9, 0.9, 0.6))]
    assert row(records, "odin")["MNIST"] == "**0.800** ± 0.430 (3) [0.767]"
    assert row(records, "odin", "Accuracy")["MNIST"] == "**0.400** ± 0.215 (3) [0.778]"


def test_one_partition_has_no_interval_and_a_method_of_today_no_figure_in_the_paper():
    assert row([record("msp", 0.25)], "msp")["MNIST"] == "**0.250** (1)"


def test_what_has_no_record_is_a_dash_beside_the_paper_s_figure():
    cells = row([record("msp")], "odin")
    assert cells == {"MNIST": "– [0.767]", "CIFAR-10, features": "– [0.380]"}
    assert row([record("msp")], "msp")["CIFAR-10, features"] == "–"


def test_only_a_cell_of_nothing_but_errors_has_failed():
    both = [failed("msp"), record("msp", 0.25, partition=1)]
    assert row([failed("msp"), record("odin")], "msp")["MNIST"] == "failed"
    assert row(both, "msp")["MNIST"] == "**0.250** (1)"


def test_a_metric_that_some_runs_lack_is_a_mean_over_those_that_have_it():
    records = [record("msp", 0.25), record("msp", partition=1, metrics={"accuracy": 0.5})]
    assert row(records, "msp")["MNIST"] == "**0.250** (1)"


def test_the_best_of_each_column_is_bold_and_so_is_what_looks_the_same():
    records = [
        record("odin", 0.7001),
        record("msp", 0.7004),
        record("s2osc", 0.6),
        record("odin", 0.1, dataset="cifar10-features"),
        record("s2osc", 0.2, dataset="cifar10-features"),
    ]
    bold = {
        method: [dataset for dataset, cell in cells.items() if "**" in cell]
        for method, cells in tables(records)["Weighted F1"][0].items()
    }
    assert bold == {"odin": ["MNIST"], "msp": ["MNIST"], "s2osc": ["CIFAR-10, features"]}


# Tables


def test_metrics_come_in_their_order_and_only_those_that_are_recorded():
    figures = {"oscr": 0.1, "auroc": 0.2, "f_out": 0.3, "accuracy": 0.4, "f1": 0.5, "nmi": 0.6}
    one = [record("msp", metrics=figures)]
    assert list(tables(one)) == ["Weighted F1", "Accuracy", "F_out", "AUROC", "OSCR"]
    several = [record("msp", metrics=figures | {"group_accuracy": 0.7}, unknown_classes=["1", "2"])]
    assert list(tables(several))[5:] == ["Group accuracy", "NMI"]
    of_classes = [several[0] | {"metrics": figures | {"class_f1": 0.3, "class_accuracy": 0.4}}]
    assert list(tables(of_classes))[5:7] == [
        "Weighted F1, each unknown class by itself",
        "Accuracy, each unknown class by itself",
    ]


def test_rows_are_the_methods_in_the_order_of_the_experiment_then_those_run_by_name():
    records = [record(method) for method in ("s2osc", "msp", "odin", "mine")]
    assert list(tables(records)["Weighted F1"][0]) == ["odin", "msp", "s2osc", "mine"]


def test_columns_are_those_of_the_experiment_and_what_else_was_run():
    [rows] = tables([record("msp", dataset="svhn"), record("msp", dataset="own")])["Weighted F1"]
    assert list(rows["msp"]) == ["MNIST", "CIFAR-10, features", "own", "SVHN, rebuilt"]


def test_f_out_has_the_line_of_calling_everything_unknown_which_is_never_best():
    records = [
        record(method, partition=p, metrics={"f_out": 0.1, "f_out_all_unknown": 0.5 + p / 10})
        for method in ("odin", "msp")
        for p in (0, 1)
    ]
    rows = tables(records)["F_out"][0]
    assert list(rows) == [*METHODS, "everything unknown"]
    # one value of each partition, not of each record: t of 1 degree of freedom is 12.706
    assert rows["everything unknown"] == {"MNIST": "0.550 ± 0.635 (2)", "CIFAR-10, features": "–"}
    assert rows["msp"]["MNIST"] == "**0.100** ± 0.000 (2)"


def test_methods_with_both_modes_have_two_rows_and_paper_mode_is_never_best():
    records = [record("odin", 0.3, paper_mode={"f1": 0.9}), record("msp", 0.4, paper_mode=None)]
    rows = tables(records)["Weighted F1"][0]
    assert list(rows) == ["odin (fair mode)", "odin (paper mode)", "msp", "s2osc"]
    assert rows["odin (fair mode)"]["MNIST"] == "0.300 (1) [0.767]"
    assert rows["odin (paper mode)"]["MNIST"] == "0.900 (1) [0.767]"
    assert rows["msp"]["MNIST"] == "**0.400** (1)"
    assert list(tables(records)["Accuracy"][0]) == ["odin", "msp", "s2osc"]


def test_items_never_seen_have_tables_of_their_own_without_the_paper():
    records = [record("odin", 0.3, held_out={"f1": 0.2, "f_out": 0.1, "f_out_all_unknown": 0.6})]
    [pool] = tables(records)["Weighted F1"]
    [new] = tables(records)["Weighted F1, items never seen"]
    assert pool["odin"]["MNIST"] == "**0.300** (1) [0.767]"
    assert new["odin"] == {"MNIST": "**0.200** (1)", "CIFAR-10, features": "–"}
    assert (
        tables(records)["F_out, items never seen"][0]["everything unknown"]["MNIST"] == "0.600 (1)"
    )
    assert any(text.startswith("Items never seen") for text in texts(records))
    assert not any(text.startswith("Items never seen") for text in texts([record("odin")]))


def test_seconds_are_shown_where_every_method_trains_what_it_needs():
    timed = replace(EXPERIMENT, keeps_networks=False)
    records = [record("msp", partition=p, seconds_total=s) for p, s in enumerate((1.5, 2.0))]
    rows = tables([*records, failed("odin")], timed)["Seconds"][0]
    assert rows["msp"] == {"MNIST": "1.8 (2)", "CIFAR-10, features": "–"}
    assert rows["odin"]["MNIST"] == "–"
    assert "Seconds" not in tables(records)


def test_sizes_are_never_mixed():
    records = [record("msp", f1, size=size) for size, f1 in (("cpu", 0.2), ("paper", 0.8))]
    large, small = tables(records)["Weighted F1"]
    assert large["msp"]["MNIST"] == "**0.800** (1)"
    assert small["msp"]["MNIST"] == "**0.200** (1)"
    titles = [text for text in texts(records) if text.startswith("One unknown class")]
    assert ["size paper" in text for text in titles] == [True, False]


def test_records_of_two_protocols_at_one_size_are_refused():
    other = record("msp", protocol={"n_unknown": 1, "sizes": [500, 250, 750]})
    with pytest.raises(DataError, match="records of mnist at size cpu have two protocols"):
        make_blocks(EXPERIMENT, [record("odin"), other])


def test_a_record_that_names_no_protocol_agrees_with_all():
    assert "protocol: 1 unknown class" in texts([record("odin"), record("msp", protocol=None)])[0]
    assert "protocol" not in texts([record("msp", protocol=None)])[0]


# Paragraphs


def test_the_first_line_says_what_was_run():
    records = [
        record("msp", partition=partition, dataset=dataset)
        for partition in (0, 1)
        for dataset in ("mnist", "svhn")
    ]
    assert texts(records)[0] == (
        "One unknown class (size cpu; protocol: 1 unknown class, 600 labelled and 300 pool items "
        "of each known class, 900 unknown ones; partitions 0, 1; 1 thread; SVHN, rebuilt):"
    )


def test_data_sets_are_named_where_their_protocols_differ():
    small = record("msp", dataset="own", protocol={"n_unknown": 1, "pool_share": 0.5})
    assert (
        "protocol of mnist: 1 unknown class, 600 labelled and 300 pool items of each known class, "
        "900 unknown ones; protocol of own: 1 unknown class, 50 % of the known data and all of the "
        "unknown in the pool" in texts([record("msp"), small])[0]
    )


def test_modes_groups_and_kinds_of_data_are_explained_where_there_are_some():
    plain = Experiment("Title", SINGLE_UNKNOWN, METHODS, data=("mnist",), layout="matrix")
    legend = texts([record("msp")], plain)[1]
    for word in ("Paper mode", "groups", "rebuilt", "Features", "Sample"):
        assert word not in legend
    everything = [
        record("odin", paper_mode={"f1": 0.5}, unknown_classes=["1", "2"]),
        record("msp", dataset="svhn"),
        record("msp", dataset="cinic10_sample"),
        record("msp", dataset="cifar10-features"),
    ]
    legend = texts(everything)[1]
    for word in ("Paper mode", "groups", "SVHN, rebuilt: ", "Features: ", "Sample: "):
        assert word in legend


def missing(records):
    return what_is_missing(Runs(EXPERIMENT, "cpu", records))


def test_what_is_missing_is_listed_with_data_sets_alike_together():
    records = [record("odin", partition=p) for p in (0, 1)] + [record("s2osc", partition=1)]
    assert missing(records) == ("Missing: mnist: msp, s2osc (partition 0); cifar10-features: all.")
    whole = [record(m, dataset=d) for m in METHODS for d in EXPERIMENT.data]
    assert missing(whole) == "Nothing is missing."
    assert missing([r for r in whole if r["method"] == "odin"]) == (
        "Missing: mnist, cifar10-features: msp, s2osc."
    )


def test_a_failed_run_is_not_missing_and_its_error_is_told():
    records = [failed(m, dataset=d) for m in METHODS for d in EXPERIMENT.data]
    assert missing(records) == "Nothing is missing."
    assert "Failed: msp on mnist, partition 0 (DataError: no room)." in texts(
        [failed("msp"), record("odin")]
    )


def beaten(records):
    return who_beats_ours(Runs(EXPERIMENT, "cpu", records))


def test_a_method_that_beats_ours_is_named_with_both_means():
    records = [record("s2osc", 0.5), record("odin", 0.6), record("msp", 0.4)]
    assert beaten(records) == (
        "Better than s2osc in mean weighted F1: odin on MNIST (0.600 against 0.500, 1 partition)."
    )


def test_means_are_compared_over_the_partitions_that_both_have():
    records = [record("s2osc", f1, partition=p) for p, f1 in enumerate((0.5, 0.9, 0.9))]
    assert beaten([*records, record("odin", 0.6)]).count("(0.600 against 0.500, 1 partition)") == 1
    elsewhere = [record("s2osc", 0.5), record("odin", 0.6, partition=1)]
    assert beaten(elsewhere) == ""


def test_alone_ours_beats_nobody():
    assert beaten([record("s2osc", 0.5)]) == ""


def test_a_mean_over_fewer_partitions_is_not_the_best():
    records = [record("s2osc", f1, partition=p) for p, f1 in enumerate((0.5, 0.9))]
    cells = tables([*records, record("odin", 0.95)])["Weighted F1"][0]
    assert "**0.700**" in cells["s2osc"]["MNIST"]
    assert "**" not in cells["odin"]["MNIST"]


def test_without_records_of_ours_nothing_is_said_of_it():
    assert beaten([record("odin", 0.6)]) == ""
    equal = [record("s2osc", 0.5), record("odin", 0.5)]
    assert beaten(equal) == "No other method beats s2osc in mean weighted F1."
