"""Corrections: read as a person leaves them, and what a new fit makes of them."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from files import NEW_CLASS, easy_vectors, known_labels, npz, pool_labels, text
from s2osc.app.corrections import (
    Correction,
    Corrections,
    corrections_table,
    read_corrections,
)
from s2osc.app.decide import redecide
from s2osc.app.result_files import load_result
from s2osc.app.results_folder import version_of
from s2osc.cli.main import main
from s2osc.errors import DataError

POOL = pool_labels(20)
NEW_ITEMS = [str(row) for row, name in enumerate(POOL) if name == NEW_CLASS]
KNOWN_ITEMS = [str(row) for row, name in enumerate(POOL) if name != NEW_CLASS]


def classify(folder: Path, out: Path, quick: tuple[str, ...], *more: str) -> int:
    paths = [f"--{name}={folder / name}.npz" for name in ("known", "pool")]
    return main(["classify", *paths, f"--out={out}", *quick, *more])


def predictions(out: Path) -> dict[str, dict]:
    return {row["item"]: row for row in pq.read_table(out / "predictions.parquet").to_pylist()}


# The file


def test_a_table_of_corrections_is_read_as_it_was_written(tmp_path):
    corrections = Corrections(
        (
            Correction("a.png", "fox", "Ann", "2026-01-02T03:04:05+00:00"),
            Correction("=b.png", "unknown"),
            Correction("ü.png", "Füchse", by="@Ann"),
        )
    )
    path = tmp_path / "corrections.csv"
    path.write_bytes(corrections_table(corrections))
    assert read_corrections(path) == corrections


def test_who_and_when_may_be_missing_and_rows_without_a_label_say_nothing(tmp_path):
    path = text(tmp_path / "c.csv", "item;label", "1;fox", "2;", "3;UNKNOWN", "1;fox")
    assert read_corrections(path).rows == (Correction("1", "fox"), Correction("3", "unknown"))


def test_items_that_went_through_a_spreadsheet_are_recognised():
    corrections = Corrections((Correction("12", "fox"),)).matched(["00012", "7"], "c.csv")
    assert corrections.rows[0].item == "00012"


def test_a_class_that_a_spreadsheet_took_for_a_number_is_no_new_class():
    given = Corrections((Correction("a", "4"), Correction("b", "5")))
    assert given.matched("ab", "c.csv", ["00004", "7"]).sizes() == {"00004": 1, "5": 1}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["item,label", "1,fox", "1,cat"], "both 'fox' and 'cat'"),
        (["item,label", "1,"], "holds no label"),
        (["item,label", "1,Unsure"], "give it a class, or unknown"),
        (["item,class", "1,fox"], "has no column `label`"),
        (["item,label", ",fox"], "but no item"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_one_line(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        read_corrections(text(tmp_path / "c.csv", *lines))


def test_an_item_that_is_not_in_the_pool_is_refused():
    with pytest.raises(DataError, match=r"item 'z' of c\.csv is not in the pool"):
        Corrections((Correction("z", "fox"),)).matched(["a"], "c.csv")


# A new fit


@pytest.fixture(scope="module")
def corrected(finished, tmp_path_factory, quick) -> Path:
    """Results after a person named eight items of the new class, and called one item unknown."""
    folder = tmp_path_factory.mktemp("corrected")
    rows = [f"{item},{NEW_CLASS},Ann,monday" for item in NEW_ITEMS[:8]]
    path = text(folder / "c.csv", "item,label,by,at", *rows, f"{KNOWN_ITEMS[0]},unknown,,")
    assert classify(finished, folder / "out", quick, f"--corrections={path}") == 0
    return folder / "out"


def test_named_items_make_a_new_class_that_the_rest_of_the_pool_is_sorted_into(corrected):
    found = predictions(corrected)
    assert len(found) == len(POOL)
    rest = [found[item]["label"] for item in NEW_ITEMS[8:]]
    assert rest.count(NEW_CLASS) > 0.9 * len(rest)


def test_corrected_items_keep_the_label_of_the_person(corrected):
    found = predictions(corrected)
    for item in NEW_ITEMS[:8]:
        cells = [found[item][name] for name in ("label", "labelled_by", "labelled_at", "group")]
        assert cells == [NEW_CLASS, "Ann", "monday", None]
    sure = found[KNOWN_ITEMS[0]]
    assert sure["label"] == "unknown"
    assert sure["labelled_by"] == "a person"
    assert sure["group"] is not None
    assert found[KNOWN_ITEMS[1]]["labelled_by"] == "s2osc"


def test_the_summary_says_what_the_corrections_were(corrected):
    summary = json.loads((corrected / "summary.json").read_text())
    assert summary["corrections"] == {"labelled": {NEW_CLASS: 8}, "unknown": 1}
    assert summary["items"]["known"] == 128
    assert summary["items"]["pool"] == len(POOL) - 8
    note = next(text for text in summary["warnings"] if "a person labelled" in text)
    assert f"{NEW_CLASS} 8; new: {NEW_CLASS}" in note
    assert "keep these labels" in note


def test_another_decision_leaves_the_persons_labels_alone(corrected, tmp_path):
    before = predictions(corrected)
    redecide(corrected, {"false_alarm": "0.3"})
    redecide(corrected, {"false_alarm": "0.05"})
    assert predictions(corrected) == before
    assert load_result(version_of(corrected)).corrections.sizes() == {NEW_CLASS: 8}


def test_a_pool_with_nothing_unknown_still_has_what_a_person_calls_so(tmp_path, quick):
    known, pool = known_labels(60), known_labels(20)
    npz(tmp_path / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_vectors(pool, seed=1))
    corrections = text(tmp_path / "c.csv", "item,label", "3,unknown")
    assert classify(tmp_path, tmp_path / "out", quick, f"--corrections={corrections}") == 0
    found = predictions(tmp_path / "out")
    unknown = {item: row["group"] for item, row in found.items() if row["label"] == "unknown"}
    assert unknown == {"3": 0}


def test_a_new_class_of_one_item_is_refused_before_anything_is_written(
    finished, tmp_path, quick, capsys
):
    corrections = text(tmp_path / "c.csv", "item,label", f"{NEW_ITEMS[0]},fox")
    assert classify(finished, tmp_path / "out", quick, f"--corrections={corrections}") == 2
    assert "new class 'fox' to 1 item" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
