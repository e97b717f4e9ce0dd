"""Tables come from records alone, and go where their marks are."""

import pytest

from s2osc.bench.runner import EXPERIMENTS, Experiment, write_record
from s2osc.bench.tables import COLUMNS, insert_tables, make_table, make_tables
from s2osc.data.splits import SINGLE_UNKNOWN
from s2osc.errors import DataError, OutputError
from samples import MANY, TINY


@pytest.fixture(autouse=True)
def experiments(monkeypatch):
    one, two = {"fast": TINY}, {"fast": TINY, "binary": MANY}
    monkeypatch.setitem(EXPERIMENTS, "plain", Experiment("Plain title", SINGLE_UNKNOWN, one))
    monkeypatch.setitem(EXPERIMENTS, "pair", Experiment("Pair title", SINGLE_UNKNOWN, two))


def record(seed, value, *, dataset="mnist", method="fast", seconds=10.0):
    return {
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "known_classes": ["a", "b"],
        "unknown_classes": ["c"],
        "metrics": dict.fromkeys(COLUMNS.values(), value),
        "seconds_total": seconds,
        "machine": {"threads": 2},
    }


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_run_is_a_row_of_its_figures():
    title, empty, header, rule, row = make_table("plain", [record(0, 0.12345)]).splitlines()
    assert title == "Plain title (2 threads):"
    assert empty == ""
    assert len(cells(header)) == len(cells(rule)) == len(cells(row))
    assert set(cells(rule)) == {"---"}
    assert cells(row) == ["mnist", "a, b / c", *["0.123"] * len(COLUMNS), "0.985", "10"]


def test_several_partitions_have_a_mean_and_a_deviation():
    records = [record(seed, value) for seed, value in ((2, 0.6), (0, 0.9), (1, 0.9))]
    *_, last = make_table("plain", records).splitlines()
    # mean of 0.9 0.9 0.6; deviation over n - 1: sqrt((2 * 0.1^2 + 0.2^2) / 2)
    assert cells(last)[:3] == ["mnist", "mean of 3", "**0.800** ± 0.173"]


def test_partitions_stand_in_the_order_of_their_seeds():
    records = [record(seed, seed / 10) for seed in (2, 0, 1)]
    lines = make_table("plain", records).splitlines()[4:7]
    assert [cells(line)[2] for line in lines] == ["0.000", "0.100", "0.200"]


def test_data_sets_are_not_mixed():
    records = [
        record(seed, value, dataset=data)
        for data, value in (("mnist", 0.9), ("own", 0.1))
        for seed in (0, 1)
    ]
    lines = make_table("plain", records).splitlines()[4:]
    means = {cells(line)[0]: cells(line)[2] for line in lines if "mean of 2" in line}
    assert means == {"mnist": "**0.900** ± 0.000", "own": "**0.100** ± 0.000"}
    assert [cells(line)[-2] for line in lines if cells(line)[0] == "own"] == ["", "", ""]


def test_several_methods_have_a_row_each_with_their_means():
    records = [
        record(seed, value + seed / 10, method=method)
        for method, value in (("fast", 0.4), ("binary", 0.7))
        for seed in (0, 2)
    ]
    lines = make_table("pair", records).splitlines()[4:]
    assert [cells(line)[:3] for line in lines] == [
        ["mnist", "fast", "**0.500** ± 0.141"],
        ["mnist", "binary", "**0.800** ± 0.141"],
    ]


def test_one_partition_of_several_methods_has_no_deviation():
    lines = make_table("pair", [record(0, 0.4)]).splitlines()[4:]
    assert [cells(line)[:3] for line in lines] == [["mnist", "fast", "**0.400**"]]


def test_tables_are_made_of_what_lies_in_the_folder(tmp_path):
    write_record(tmp_path / "plain" / "mnist-fast-p0.json", record(0, 0.5))
    (tmp_path / "plain" / "mnist-fast-p1.part").write_text('{"half": ')
    tables = make_tables(tmp_path)
    assert list(tables) == ["plain"]
    assert tables["plain"] == make_table("plain", [record(0, 0.5)])
    assert make_tables(tmp_path, ["plain"]) == tables


def test_without_records_there_is_no_table(tmp_path):
    with pytest.raises(DataError, match="holds no records; make them with `s2osc bench run`"):
        make_tables(tmp_path)
    with pytest.raises(DataError, match="there is no experiment 'grand'"):
        make_tables(tmp_path, ["grand"])


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    document = tmp_path / "page.md"
    document.write_text(
        "before é\n<!-- table a -->\nold\nold\n<!-- end -->\nbetween\n"
        "<!-- table b -->\nkept\n<!-- end -->\nafter\n",
        encoding="utf-8",
    )
    insert_tables(document, {"a": "| new |"})
    expected = (
        "before é\n<!-- table a -->\n| new |\n<!-- end -->\nbetween\n"
        "<!-- table b -->\nkept\n<!-- end -->\nafter\n"
    )
    assert document.read_text(encoding="utf-8") == expected
    insert_tables(document, {"a": "| new |"})
    assert document.read_text(encoding="utf-8") == expected


def test_several_tables_find_their_own_places(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("<!-- table b -->\n<!-- end -->\n<!-- table a -->\n<!-- end -->\n")
    insert_tables(document, {"a": "A", "b": "B"})
    assert document.read_text() == (
        "<!-- table b -->\nB\n<!-- end -->\n<!-- table a -->\nA\n<!-- end -->\n"
    )


@pytest.mark.parametrize(
    "text", ["no marks", "<!-- table a -->\nno end", "<!-- end -->\n<!-- table a -->"]
)
def test_a_document_without_a_place_is_left_alone(tmp_path, text):
    document = tmp_path / "page.md"
    document.write_text(text)
    with pytest.raises(OutputError, match="add <!-- table a --> and <!-- end -->"):
        insert_tables(document, {"a": "A"})
    assert document.read_text() == text


def test_a_missing_end_does_not_swallow_the_next_table(tmp_path):
    document = tmp_path / "page.md"
    text = "<!-- table a -->\nold\n\n## Next\n<!-- table b -->\nkept\n<!-- end -->\n"
    document.write_text(text)
    with pytest.raises(OutputError):
        insert_tables(document, {"a": "A"})
    assert document.read_text() == text
