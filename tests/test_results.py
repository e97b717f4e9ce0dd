"""The results that are kept: records of today's settings, and documents made of them."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.methods import METHODS
from s2osc.bench.records import (
    check_same_settings,
    partition_of,
    read_record,
    read_records,
    record_path,
)
from s2osc.bench.runner import prepare
from s2osc.bench.tables.documents import (
    MARK,
    cells_path,
    make_cells,
    make_tables,
    with_tables,
)
from s2osc.data.datasets import DATASETS, Dataset
from s2osc.settings import change
from s2osc.types import Method

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LEVEL = "learner.method.decision.level"
"""Streams were recorded at other levels than today's; their tables say at which."""
NOTHING = Dataset("nothing", np.zeros((1, 1, 1), np.uint8), np.zeros(1, int), ("a",), 1, flip=False)


def test_every_record_is_of_the_settings_its_experiment_has_now() -> None:
    paths = sorted(RESULTS.glob("*/*.json"))
    assert len(paths) > 700

    @cache  # most records differ from another in their split alone
    def prepared_for(name: str, experiment: str, size: str | None, data: str) -> Method:
        source = data.removesuffix("-features").removesuffix("_sample")
        dataset = replace(NOTHING, flip=source in DATASETS and DATASETS[source].flip)
        method = (METHODS | dict(EXPERIMENTS[experiment].methods))[name]
        return prepare(method, EXPERIMENTS[experiment], size, data, dataset)

    for path in paths:
        record = read_record(path)
        name, data, size = record["method"], record["dataset"], record.get("size")
        where = record["experiment"], data, name, size, partition_of(record)
        assert path == record_path(RESULTS, *where)
        if "error" in record:
            continue  # it is run again, with whatever settings there are then
        experiment = EXPERIMENTS[record["experiment"]]
        prepared = prepared_for(name, record["experiment"], size, data)
        if (level := record["settings"].get(LEVEL)) is not None:
            prepared = change(prepared, {LEVEL: level})
        check_same_settings(
            path,
            prepared,
            experiment.protocol_of(size, data, partition_of(record)),
            shows_groups=experiment.shows_groups,
        )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_tables_of_a_document_are_those_of_the_records(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    if names := MARK.findall(text):
        tables = make_tables(RESULTS, names, brief=True)
        assert with_tables(text, tables, where=document.name) == text


def test_every_cell_of_every_table_lies_beside_its_records() -> None:
    recorded = {EXPERIMENTS[name].records or name for name in EXPERIMENTS}
    folders = {path.name for path in RESULTS.iterdir() if path.is_dir()}
    assert folders <= recorded
    for name, experiment in EXPERIMENTS.items():
        if (folder := experiment.records or name) in folders:
            cells = make_cells(name, read_records(RESULTS, folder))
            assert cells_path(RESULTS, name).read_text(encoding="utf-8") == cells


def test_the_page_of_results_is_short_enough_to_read() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 300
    for figure in re.findall(r"\]\((figures/\S+)\)", page):
        assert (ROOT / "docs" / figure).is_file()
