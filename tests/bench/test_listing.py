"""The list of experiments: what is recorded, what failed, what is missing."""

import io

import pytest
from rich.console import Console

from s2osc.baselines.msp import MSP
from s2osc.bench import listing
from s2osc.bench.experiment import SIZES, Experiment
from s2osc.bench.experiments import EXPERIMENTS
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
        ("matrix", "any of paper, cpu, smoke", "a, b", "2", "0", "0", "all"),
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
    with pytest.raises(DataError, match=r"a\.json is not a record"):
        make_listing(results)


def test_the_list_names_every_experiment(tmp_path):
    shown = io.StringIO()
    Console(file=shown, width=400).print(make_listing(tmp_path))
    lines = [line.split("│")[1].strip() for line in shown.getvalue().splitlines() if "│" in line]
    assert lines == list(EXPERIMENTS)
