"""The list of experiments: what is recorded, what failed, what is missing."""

import io

import pytest
from rich.console import Console

from s2osc.baselines.msp import MSP
from s2osc.bench import listing
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import SIZES, Experiment
from s2osc.bench.listing import make_listing
from s2osc.bench.records import record_path, write_record
from s2osc.data.splits import SINGLE_UNKNOWN
from s2osc.errors import DataError

METHODS = {"msp": MSP(), "strict": MSP(known_recall=0.9)}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two experiments, and no others: ``matrix``, which has sizes, and ``pool``."""
    sized = Experiment(
        *("Many", SINGLE_UNKNOWN, METHODS), data=("a", "b"), layout="matrix", sizes=SIZES
    )
    one = Experiment("One", SINGLE_UNKNOWN, {"msp": MSP()}, data=("a",))
    monkeypatch.setattr(listing, "EXPERIMENTS", {"matrix": sized, "pool": one})
    return tmp_path


def add(results, experiment, data, method, size=None, partition=0, **outcome):
    record = {"dataset": data, "method": method, "size": size, "partition": partition}
    path = record_path(results, experiment, data, method, size, partition)
    write_record(path, record | (outcome or {"metrics": {"f1": 0.5}}))


def rows(results):
    table = make_listing(results)
    return [tuple(column._cells[row] for column in table.columns) for row in range(table.row_count)]


def test_without_records_everything_is_missing(results):
    assert rows(results) == [
        ("matrix", "any", "a, b", "2", "0", "0", "all"),
        ("pool", "one", "a", "1", "0", "0", "all"),
    ]


def test_each_size_has_a_row_with_what_it_lacks(results):
    for partition in (0, 1):
        add(results, "matrix", "a", "msp", "cpu", partition)
    add(results, "matrix", "b", "msp", "cpu", error={"kind": "DataError", "message": "no"})
    for data in ("a", "b"):
        for method in METHODS:
            add(results, "matrix", data, method, "smoke")
    add(results, "pool", "a", "msp")
    assert rows(results) == [
        ("matrix", "cpu", "a, b", "2", "2", "1", "a: strict; b: all"),
        ("matrix", "smoke", "a, b", "2", "4", "0", "nothing"),
        ("pool", "one", "a", "1", "1", "0", "nothing"),
    ]


def test_a_cell_lacks_the_partitions_that_other_cells_have(results):
    for partition in (0, 1, 2):
        add(results, "matrix", "a", "msp", "cpu", partition)
    add(results, "matrix", "a", "strict", "cpu", 1)
    for method in METHODS:
        add(results, "matrix", "b", method, "cpu", 0)
    add(results, "matrix", "b", "msp", "cpu", 1, error={"kind": "DataError", "message": "no"})
    add(results, "matrix", "b", "msp", "cpu", 2)
    missing = "a: strict (partitions 0 2); b: msp (partition 1), strict (partitions 1 2)"
    assert rows(results)[0][4:] == ("7", "1", missing)


def test_a_partition_that_failed_everywhere_is_missing(results):
    add(results, "pool", "a", "msp")
    add(results, "pool", "a", "msp", partition=1, error={"kind": "DataError", "message": "no"})
    assert rows(results)[1][4:] == ("1", "1", "a: msp (partition 1)")


def test_earlier_records_name_no_size(results):
    write_record(results / "pool" / "a-msp-p0.json", {"dataset": "a", "method": "msp", "seed": 0})
    assert rows(results)[1] == ("pool", "one", "a", "1", "1", "0", "nothing")


def test_a_run_that_failed_and_was_repeated_is_there(results):
    add(results, "pool", "a", "msp", error={"kind": "DataError", "message": "no"})
    assert rows(results)[1][4:] == ("0", "1", "all")
    add(results, "pool", "a", "msp")
    assert rows(results)[1][4:] == ("1", "0", "nothing")


def test_a_file_that_is_no_record_is_named(results):
    (results / "pool").mkdir()
    (results / "pool" / "a.json").write_text("{")
    with pytest.raises(DataError, match=r"a\.json cannot be read .* it is not a record"):
        make_listing(results)


def printed(results, width):
    shown = io.StringIO()
    Console(file=shown, width=width).print(make_listing(results))
    return shown.getvalue()


def test_the_list_names_every_experiment(tmp_path):
    _, _, _, *lines = printed(tmp_path, 400).splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == list(EXPERIMENTS)


def test_nothing_is_cut_in_80_columns(tmp_path):
    text = printed(tmp_path, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    words = set(text.replace(",", "").split())
    assert words >= EXPERIMENTS.keys()
    assert words >= {data for experiment in EXPERIMENTS.values() for data in experiment.data}
    long = "a-data-set-with-a-name-that-is-longer-than-any-column"
    add(tmp_path, "table1", long, "msp", "cpu")
    header, *lines = printed(tmp_path, 80).splitlines()
    column = slice(header.index("data"), header.index("methods"))
    assert long in "".join(line[column].strip() for line in lines)
