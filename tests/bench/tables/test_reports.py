"""Reports: everything about an experiment in a folder, from its records alone."""

import csv
import json
from dataclasses import replace

import pytest

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import record_path, write_record
from s2osc.bench.tables import documents
from s2osc.bench.tables.documents import write_experiment
from s2osc.errors import DataError, S2OSCWarning

METHODS = ("odin", "msp", "s2osc")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Records of ``table1`` with three methods on one data set, one of which failed once."""
    table1 = EXPERIMENTS["table1"]
    few = replace(table1, methods={m: table1.methods[m] for m in METHODS}, data=("mnist",))
    monkeypatch.setitem(EXPERIMENTS, "table1", few)
    for place, method in enumerate(METHODS):
        for partition in (0, 1):
            add(tmp_path, method, partition, 0.6 + 0.1 * place + 0.02 * partition)
    add(tmp_path, "msp", 2, None)
    return tmp_path


def add(results, method, partition, f1):
    """A record with figures around ``f1``; None: of a run that failed."""
    record = {
        "experiment": "table1",
        "size": "cpu",
        "method": method,
        "dataset": "mnist",
        "protocol": {"n_unknown": 1, "sizes": [600, 300, 900], "held_out": 200},
        "partition": partition,
        "seed": partition,
        "known_classes": ["0", "1"],
        "unknown_classes": ["5"],
        "machine": {"threads": 1, "device": "cpu"},
    }
    if f1 is None:
        record["error"] = {"kind": "RuntimeError", "message": "out of luck"}
    else:
        figures = {"f1": f1, "accuracy": f1, "f_out": f1 - 0.1, "f_out_all_unknown": 0.545}
        record["metrics"] = figures
        record["held_out"] = figures | {"f1": round(f1 - 0.01, 3)}
        record["paper_mode"] = figures if method == "odin" else None
        record["seconds_total"] = 3.0
    write_record(record_path(results, "table1", "mnist", method, "cpu", partition), record)


@pytest.fixture
def drawn(monkeypatch) -> list:
    """What figures were drawn of; they are saved as empty files."""
    asked = []

    def figures_for(name, records):
        asked.append((name, [(r["method"], r["partition"]) for r in records]))
        return {"ranking": object()}

    def save(figure, path):
        path.with_suffix(".svg").write_text("")
        return [path.with_suffix(".svg")]

    monkeypatch.setattr(documents, "figures_for", figures_for)
    monkeypatch.setattr(documents, "save", save)
    return asked


def test_each_experiment_has_a_folder_of_tables_figures_and_numbers(results, drawn, tmp_path):
    out = tmp_path / "out"
    paths = write_experiment(results, "table1", out / "table1")
    assert [path.relative_to(out).as_posix() for path in paths] == [
        *(f"table1/table1.{kind}" for kind in ("md", "csv", "tex")),
        "table1/ranking.svg",
    ]
    assert sorted(paths) == sorted(path for path in out.rglob("*") if path.is_file())
    text = paths[0].read_text()
    assert "| s2osc | **0.810**" in text
    assert "Failed: msp on mnist, partition 2 (RuntimeError: out of luck)" in text
    with paths[1].open(newline="") as file:
        rows = list(csv.DictReader(file))
    of_odin = [r for r in rows if (r["method"], r["metric"]) == ("odin", "f1")]
    assert {(r["partition"], r["mode"], r["part"], float(r["value"])) for r in of_odin} == {
        *(("0", "fair", "pool", 0.6), ("1", "fair", "pool", 0.62)),
        *(("0", "paper", "pool", 0.6), ("1", "paper", "pool", 0.62)),
        *(("0", "fair", "held_out", 0.59), ("1", "fair", "held_out", 0.61)),
    }


def test_figures_are_drawn_of_runs_that_did_not_fail(results, drawn, tmp_path):
    write_experiment(results, "table1", tmp_path / "out")
    [(name, runs)] = drawn
    assert name == "table1"
    assert sorted(runs) == sorted((method, p) for method in METHODS for p in (0, 1))


def test_a_report_made_again_has_the_same_bytes(results, tmp_path):
    first, again = (write_experiment(results, "table1", tmp_path / name) for name in ("a", "b"))
    names = [path.name for path in first]
    assert [path.name for path in again] == names
    assert {"table1.md", "table1.csv", "table1.tex"} < set(names)
    assert any(name.startswith("f1") for name in names)
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes() != b"", one.name


def test_what_cannot_be_drawn_yet_is_said_and_left_out(results, tmp_path):
    for path in (results / "table1").iterdir():
        record = json.loads(path.read_text())
        path.unlink()
        if record["method"] == "msp" and "error" in record:
            write_record(path, record)
    with pytest.warns(S2OSCWarning, match="table1: no figure"):
        paths = write_experiment(results, "table1", tmp_path / "out")
    assert [path.suffix for path in paths] == [".md", ".csv", ".tex"]


def test_an_experiment_without_records_is_refused(results, tmp_path):
    with pytest.raises(DataError, match="holds no records of large"):
        write_experiment(results, "large", tmp_path / "out")
    assert not (tmp_path / "out").exists()
