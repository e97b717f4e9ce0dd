"""Tables of streams: methods against data sets, the paper beside them, or window by window."""

from dataclasses import replace

import pytest

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.tables.documents import make_table
from s2osc.bench.tables.layouts import make_blocks
from s2osc.bench.tables.rendering import Table, to_latex, to_markdown

SINGLE = replace(EXPERIMENTS["stream-single"], data=("mnist", "fashion_mnist"))


def window(number: int, **changes):
    return {
        "window": number,
        "n_known": 4 + number,
        "k": 100 * number,
        "labels": 60,
        "n_new": 1,
        "n_found": 1,
        "metrics": {"accuracy": 0.5, "f1": 0.25, "f_out": 0.75},
        "seconds": {"recognise": 12.0, "learn": 3.0},
        "peak_memory_mb": 500.0 + number,
    } | changes


def record(method="s2osc", partition=0, dataset="mnist", **metrics):
    return {
        "experiment": "stream-single",
        "method": method,
        "dataset": dataset,
        "size": "cpu",
        "partition": partition,
        "seed": partition,
        "protocol": {"sizes": [600, 300], "held_out": 200},
        "known_classes": ["a", "b"],
        "unknown_classes": ["c", "d"],
        "machine": {"threads": 1, "device": "cpu"},
        "joint_accuracy": 0.98,
        "windows": [window(1), window(2)],
        "metrics": {"accuracy": 0.9, "f1": 0.8, "f_out": 0.7, "f_out_all_unknown": 0.3} | metrics,
    }


def tables(experiment, records):
    blocks = make_blocks(experiment, records)
    return {block.caption: block for block in blocks if isinstance(block, Table)}


def rows(table: Table) -> dict[str, tuple[str, ...]]:
    """The cells of each method for MNIST, which is the first data set."""
    return {row[0]: row[1:2] for row in table.rows}


def test_a_cell_is_the_mean_over_partitions_with_the_paper_s_figure_beside_it():
    records = [record(partition=p, accuracy=a) for p, a in enumerate((0.9, 0.8, 0.7))]
    records.append(record("odin", accuracy=0.6))
    found = rows(tables(SINGLE, records)["Average accuracy"])
    assert found["s2osc"] == ("**0.800** ± 0.248 (3) [0.926]",)
    assert found["odin"] == ("0.600 (1) [0.853]",)
    assert found["cpe"] == ("– [0.961]",)
    assert found["msp"] == ("–",)


def test_of_forgetting_the_least_is_the_best_and_what_never_learns_has_none():
    records = [
        record(forgetting=0.2),
        record("odin", forgetting=0.1),
        record("isolation-forest"),
    ]
    found = rows(tables(SINGLE, records)["Forgetting"])
    assert found["s2osc"] == ("0.200 (1) [0.037]",)
    assert found["odin"] == ("**0.100** (1) [0.049]",)
    assert found["isolation-forest"] == ("n/a",)


def test_a_failed_run_is_said_and_has_no_figure():
    broken = {key: value for key, value in record("dtc").items() if key != "metrics"}
    broken = broken | {"error": {"kind": "RuntimeError", "message": "out of luck"}}
    blocks = make_blocks(SINGLE, [record(), broken])
    assert rows(tables(SINGLE, [record(), broken])["Average weighted F1"])["dtc"] == (
        "failed [0.717]",
    )
    assert "Failed: dtc on mnist, partition 0 (RuntimeError: out of luck)." in blocks


def test_f_out_stands_above_that_of_calling_everything_unknown():
    found = rows(tables(SINGLE, [record(), record("odin")])["Average F_out"])
    assert found["everything unknown"] == ("0.300 (1)",)


def test_the_words_before_the_tables_say_what_was_run_and_how_to_read_it():
    described, explained, *_ = make_blocks(SINGLE, [record(), record(partition=1)])
    assert described == (
        "A stream with one new class per window: half of the classes known at the beginning "
        "(size cpu; 600 labelled items of each known class, then 300 of each class per window, "
        "200 never seen; partitions 0, 1; 1 thread):"
    )
    assert explained.endswith("A*: MNIST 0.980 (2).")
    assert "[the paper's figure]" in explained


def test_sizes_are_not_mixed():
    small = record(accuracy=0.1) | {"size": "smoke"}
    blocks = make_blocks(SINGLE, [record(), small])
    captions = [block.caption for block in blocks if isinstance(block, Table)]
    assert captions.count("Average accuracy") == 2
    cells = [rows(b)["s2osc"] for b in blocks if getattr(b, "caption", "") == "Average accuracy"]
    assert cells == [("**0.900** (1) [0.926]",), ("**0.100** (1) [0.926]",)]


def test_where_ours_is_beaten_or_missing_is_said():
    blocks = make_blocks(SINGLE, [record(f1=0.5), record("odin", f1=0.6)])
    assert any(
        text.startswith("Better than s2osc in mean weighted F1: odin on MNIST (0.600 against 0.500")
        for text in blocks
        if isinstance(text, str)
    )
    assert any(
        "Missing: mnist: isolation-forest" in text for text in blocks if isinstance(text, str)
    )


def test_labels_are_counted_and_none_is_best():
    experiment = replace(EXPERIMENTS["stream-queries"], data=("mnist", "svhn"))
    records = [record("s2osc-random-100", labels=500, found=0.8)]
    found = tables(experiment, records)
    assert rows(found["Labels in all"])["s2osc-random-100"] == ("500 (1)",)
    share = found["Share of the new classes that were found in their window"]
    assert rows(share)["s2osc-random-100"] == ("**0.800** (1)",)


def test_the_table_of_forgetting_shows_both_kinds_and_old_classes_apart_from_new():
    figures = {"forgetting": 0.1, "chaudhry_forgetting": 0.05}
    figures |= {"old_accuracy": 0.9, "new_accuracy": 0.6}
    experiment = replace(EXPERIMENTS["forgetting"], data=("mnist", "svhn"))
    found = [rows(table)["s2osc"] for table in tables(experiment, [record(**figures)]).values()]
    assert found == [
        ("**0.100** (1) [0.037]",),
        ("**0.050** (1)",),
        ("**0.900** (1)",),
        ("**0.600** (1)",),
    ]


# Window by window


def test_windows_are_rows_in_the_order_of_time_methods_side_by_side():
    experiment = replace(EXPERIMENTS["stream-k"], data=("mnist",))
    [table] = tables(experiment, [record(), record("s2osc-k300")]).values()
    assert table.caption == "MNIST"
    assert [row[:2] for row in table.rows] == [
        ("1", "s2osc"),
        ("1", "s2osc-k300"),
        ("2", "s2osc"),
        ("2", "s2osc-k300"),
    ]
    first = dict(zip(table.header, table.rows[2], strict=True))
    assert first == {
        "window": "2",
        "method": "s2osc",
        "known classes": "6",
        "K": "200",
        "labels": "60",
        "new classes": "1.0",
        "found": "1.0",
        "accuracy": "0.500",
        "weighted F1": "0.250",
        "F_out": "0.750",
        "seconds to recognise": "12.0",
        "seconds to learn": "3.0",
        "MB at most so far": "502",
    }


def test_windows_are_means_over_the_partitions_that_have_them():
    longer = record() | {"windows": [window(1, k=None), window(2), window(3)]}
    shorter = record(partition=1) | {"windows": [window(1, k=300, labels=20)]}
    nothing_new = {"accuracy": 0.5, "f1": 0.5}
    longer["windows"][2]["metrics"] = nothing_new
    experiment = replace(EXPERIMENTS["stream-long"], data=("mnist",))
    [table] = tables(experiment, [longer, shorter]).values()
    cells = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    assert [(cell["window"], cell["labels"], cell["K"]) for cell in cells] == [
        ("1", "40", "300"),
        ("2", "60", "200"),
        ("3", "60", "300"),
    ]
    assert cells[2]["F_out"] == "–"


@pytest.mark.parametrize("name", ["stream-single", "stream-long"])
def test_tables_of_streams_are_markdown_and_latex(name):
    blocks = make_blocks(EXPERIMENTS[name], [record()])
    assert make_table(name, [record()]) == to_markdown(blocks)
    latex = to_latex(blocks)
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") > 0


def test_figures_of_one_data_set_stand_side_by_side():
    experiment = EXPERIMENTS["stream-multi"]
    records = [record(dataset="cifar10-features", accuracy=0.8, f1=0.7, f_out_all_unknown=0.5)]
    first, *_ = [b for b in make_blocks(experiment, records) if isinstance(b, Table)]
    assert first.caption == "CIFAR-10, features"
    titles = [title for title, metric in experiment.columns.items() if metric in ("accuracy", "f1")]
    assert {*titles} <= {*first.header}
    [ours] = [row for row in first.rows if row[0] == "s2osc"]
    cells = dict(zip(first.header, ours, strict=True))
    assert cells[titles[0]].startswith("**0.800**")
    assert cells[titles[1]].startswith("**0.700**")
    assert "everything unknown" in rows(first)
