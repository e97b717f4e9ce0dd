"""Labels that go out: every format holds what was corrections, and nothing leaves its folder."""

import base64
import io
import json
import shutil
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from PIL import Image

from files import (
    NEW_CLASS,
    easy_images,
    easy_vectors,
    known_labels,
    npz,
    pool_files,
    pool_labels,
    snapshot,
    text,
    write_images,
)
from s2osc.app.corrections import Correction, Corrections
from s2osc.app.export.folders import folder_name
from s2osc.app.export.items import read_labelled
from s2osc.app.export.job import FORMATS, Files, export_results
from s2osc.app.output import LIST
from s2osc.app.results_folder import version_of
from s2osc.cli.export import FORMATS as SPELT
from s2osc.cli.main import main
from s2osc.data.inputs import open_known
from s2osc.errors import DataError, OutputError, SettingsError

KNOWN, POOL, POOL_FILES = known_labels(60), pool_labels(20), pool_files(20)
NEW = [name for name, label in zip(POOL_FILES, POOL, strict=True) if label == NEW_CLASS]


CORRECTIONS = Corrections(
    (
        Correction(NEW[0], "red fox", "Ann", "2026-01-02"),
        Correction(NEW[1], "red fox"),
        Correction(POOL_FILES[0], "unknown", "Bob"),
        Correction(POOL_FILES[1], "../../out"),
    )
)


def labels_of(results: Path) -> dict[str, str]:
    pool = read_labelled(version_of(results))
    return {item.item: item.category for item in pool.items}


def test_the_command_names_every_format():
    assert SPELT.split("|") == list(FORMATS)


# Folders


def test_every_item_is_copied_into_the_folder_of_its_class_or_group(photos, tmp_path):
    done = export_results(photos / "out", tmp_path / "to", "folders")
    assert (done.n_items, done.n_by_person) == (len(POOL), 0)
    for item, category in labels_of(photos / "out").items():
        copy = tmp_path / "to" / category / item
        assert copy.read_bytes() == (photos / "pool" / item).read_bytes()
        assert not copy.is_symlink()
    assert len(list((tmp_path / "to").rglob("*.png"))) == len(POOL)
    assert (tmp_path / "to" / "unknown" / "group-0").is_dir()


def test_links_lead_to_the_items_where_they_lie(photos, tmp_path):
    export_results(photos / "out", tmp_path / "to", "folders", files=Files(link=True))
    links = list((tmp_path / "to").rglob("*.png"))
    assert len(links) == len(POOL)
    assert {link.resolve() for link in links} == {(photos / "pool" / f) for f in POOL_FILES}


def test_what_people_say_goes_before_and_no_name_leaves_the_folder(photos, tmp_path):
    export_results(photos / "out", tmp_path / "deep" / "to", "folders", corrections=CORRECTIONS)
    to = tmp_path / "deep" / "to"
    assert (to / "red fox" / NEW[0]).is_file()
    assert (to / "unknown" / "ungrouped" / POOL_FILES[0]).is_file()
    assert (to / "%2E.%2F..%2Fout" / POOL_FILES[1]).is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_images_of_an_array_become_files(tmp_path, quick):
    images = easy_images(POOL, seed=1)
    npz(tmp_path / "known.npz", x=easy_images(KNOWN, seed=0), y=KNOWN)
    npz(tmp_path / "pool.npz", x=images)
    paths = [f"--{name}={tmp_path / name}.npz" for name in ("known", "pool")]
    assert main(["classify", *paths, f"--out={tmp_path / 'out'}", *quick]) == 0
    export_results(tmp_path / "out", tmp_path / "to", "folders")
    found = {int(path.stem): path for path in (tmp_path / "to").rglob("*.png")}
    assert len(found) == len(POOL)
    np.testing.assert_array_equal(np.asarray(Image.open(found[7])), images[7])


def test_a_second_export_needs_force_and_replaces_what_was_there(photos, tmp_path):
    export_results(photos / "out", tmp_path / "to", "folders")
    with pytest.raises(OutputError, match="is there already"):
        export_results(photos / "out", tmp_path / "to", "folders")
    export_results(photos / "out", tmp_path / "to", "folders", corrections=CORRECTIONS, force=True)
    assert (tmp_path / "to" / "red fox").is_dir()
    text(tmp_path / "to" / "red fox" / "notes.txt", "mine")
    with pytest.raises(OutputError, match=r"holds red fox/notes\.txt"):
        export_results(photos / "out", tmp_path / "to", "folders", force=True)


@pytest.mark.parametrize(
    "name",
    ["..", ".", "/etc/passwd", "a/../../b", "~", "nul", "x" * 500, "\x00", " ", "ü", "C:\\x"],
)
def test_whatever_a_class_is_called_its_folder_lies_in_the_export(tmp_path, name):
    place = tmp_path / folder_name(name)
    assert place.resolve().parent == tmp_path
    place.mkdir()


# Tables


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_table_says_who_labelled_what_and_when(photos, tmp_path, kind):
    path = tmp_path / f"labels.{kind}"
    export_results(photos / "out", path, kind, corrections=CORRECTIONS)
    if kind == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        table = pq.read_table(path) if kind == "parquet" else pyarrow.csv.read_csv(path)
        rows = table.to_pylist()
    by_item = {row["item"]: row for row in rows}
    assert list(by_item) == POOL_FILES
    ann = by_item[NEW[0]]
    assert [str(ann[name])[:10] for name in ("label", "labelled_by", "labelled_at")] == [
        *("red fox", "Ann", "2026-01-02")
    ]
    assert by_item[NEW[1]]["labelled_by"] == "a person"
    program = by_item[POOL_FILES[3]]
    assert program["labelled_by"].startswith("s2osc ")
    assert program["labelled_at"]
    assert Counter(row["label"] for row in rows)["red fox"] == 2


# COCO


def test_coco_has_an_image_a_category_and_an_annotation_for_each_item(photos, tmp_path):
    path = tmp_path / "labels.json"
    export_results(photos / "out", path, "coco", corrections=CORRECTIONS)
    found = json.loads(path.read_text())
    names = {category["id"]: category["name"] for category in found["categories"]}
    assert [image["file_name"] for image in found["images"]] == POOL_FILES
    assert {(image["width"], image["height"]) for image in found["images"]} == {(8, 8)}
    labelled = {
        found["images"][each["image_id"] - 1]["file_name"]: names[each["category_id"]]
        for each in found["annotations"]
    }
    expected = labels_of(photos / "out") | {
        **{NEW[0]: "red fox", NEW[1]: "red fox"},
        **{POOL_FILES[0]: "unknown/ungrouped", POOL_FILES[1]: "../../out"},
    }
    assert labelled == expected
    above = {category["name"]: category["supercategory"] for category in found["categories"]}
    assert (above["left"], above["unknown/group-0"]) == ("known", "unknown")


# Label Studio


def test_tasks_have_pictures_predictions_and_the_annotations_of_people(photos, tmp_path):
    export_results(photos / "out", tmp_path / "to", "label-studio", corrections=CORRECTIONS)
    tasks = json.loads((tmp_path / "to" / "tasks.json").read_text())
    view = ElementTree.parse(tmp_path / "to" / "labelling.xml").getroot()
    choices = [choice.get("value") for choice in view.iter("Choice")]
    assert choices == ["left", "top", "../../out", "red fox", "unknown"]
    by_item = {task["data"]["item"]: task for task in tasks}
    annotated = [item for item, task in by_item.items() if "annotations" in task]
    assert annotated == [name for name in POOL_FILES if name in {r.item for r in CORRECTIONS.rows}]
    for item, task in by_item.items():
        given = task.get("annotations") or task["predictions"]
        (result,) = given[0]["result"]
        assert result["from_name"] == view.find("Choices").get("name")
        assert result["to_name"] == view.find("Image").get("name")
        assert result["value"]["choices"][0] in choices
        header, _, content = task["data"]["image"].partition(",")
        assert header == "data:image/png;base64"
        shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))
        np.testing.assert_array_equal(shown, np.asarray(Image.open(photos / "pool" / item)))


# Labelled items for the next run


def test_an_updated_folder_of_labelled_items_is_read_again(photos, tmp_path, learnt):
    named = Corrections(tuple(Correction(name, "red fox") for name in NEW[:8]))
    done = export_results(photos / "out", tmp_path / "known", "known", corrections=named)
    assert done.n_items == len(KNOWN) + 8
    opened = open_known(tmp_path / "known")
    assert opened.n_of_class == {"left": 60, "top": 60, "red fox": 8}
    paths = [f"--known={tmp_path / 'known'}", f"--pool={photos / 'pool'}"]
    assert main(["classify", *paths, f"--out={tmp_path / 'out'}", *learnt]) == 0
    found = Counter(labels_of(tmp_path / "out").values())
    assert found["red fox"] >= 18


def test_names_that_occur_twice_are_both_kept(photos, tmp_path):
    # A pool in which 000.png lies in a folder of its own; in the class folder there is one, too.
    corrections = Corrections(
        (Correction(POOL_FILES[0], "left"), Correction(POOL_FILES[2], "left"))
    )
    moved = Files(pool=shutil.copytree(photos / "pool", tmp_path / "pool"))
    export_results(photos / "out", tmp_path / "to", "known", corrections=corrections, files=moved)
    assert open_known(tmp_path / "to").n_of_class == {"left": 62, "top": 60}


def test_vectors_go_to_an_array_with_their_labels(finished, tmp_path):
    rows = [str(row) for row, name in enumerate(POOL) if name == NEW_CLASS]
    corrections = Corrections(tuple(Correction(row, "fox") for row in rows[:5]))
    path = tmp_path / "known.npz"
    export_results(finished / "out", path, "known", corrections=corrections)
    opened = open_known(path)
    assert opened.n_of_class == {"left": 60, "top": 60, "fox": 5}
    expected = easy_vectors(POOL, seed=1)[[int(row) for row in rows[:5]]]
    np.testing.assert_allclose(opened.known.content[-5:], expected)


def table_with(path: Path, labels: list[str], seed: int, *, labelled: bool) -> Path:
    random = np.random.default_rng(seed)
    rows = ["item,size,colour" + (",label" if labelled else "")]
    for number, label in enumerate(labels):
        size = "" if number == 3 else f"{random.normal() + 6 * (label == 'top'):.3f}"
        colour = {"left": "red", "top": "blue"}.get(label, "green")
        rows.append(f"{seed}-{number},{size},{colour}" + (f",{label}" if labelled else ""))
    return text(path, *rows)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_a_table_keeps_its_columns_also_where_cells_are_empty(tmp_path, quick, suffix):
    known = table_with(tmp_path / "known.csv", KNOWN, 0, labelled=True)
    pool = table_with(tmp_path / "pool.csv", POOL, 1, labelled=False)
    out = tmp_path / "out"
    assert main(["classify", f"--known={known}", f"--pool={pool}", f"--out={out}", *quick]) == 0
    corrections = Corrections((Correction("1-2", "fox"), Correction("1-5", "fox")))
    to = tmp_path / f"next{suffix}"
    export_results(out, to, "known", corrections=corrections)
    opened = open_known(to)
    assert opened.n_of_class == {"left": 60, "top": 60, "fox": 2}
    assert opened.known.names[-2:] == ["1-2", "1-5"]
    assert opened.known.content.columns["colour"][-1] == "green"
    assert np.isnan(opened.known.content.columns["size"][3])


# What cannot be done


@pytest.mark.parametrize(
    ("kind", "to", "error", "message"),
    [
        ("xml", "a.xml", SettingsError, "give one of folders"),
        ("csv", "a.txt", SettingsError, r"ending in \.csv"),
        ("folders", "a", DataError, "vectors, which have no files"),
        ("coco", "a.json", DataError, "COCO is about images"),
        ("known", "a.npz", DataError, "give --corrections"),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(
    finished, tmp_path, kind, to, error, message
):
    with pytest.raises(error, match=message):
        export_results(finished / "out", tmp_path / to, kind)
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    ("results", "to", "wanted"), [("finished", "a.csv", r"\.npz"), ("photos", "a.npz", "a folder")]
)
def test_labelled_items_go_to_a_place_of_their_kind(request, tmp_path, results, to, wanted):
    folder = request.getfixturevalue(results)
    items = read_labelled(version_of(folder / "out")).names
    corrections = Corrections(tuple(Correction(item, "fox") for item in items[:2]))
    with pytest.raises(SettingsError, match=f"for these labelled items give .*{wanted}"):
        export_results(folder / "out", tmp_path / to, "known", corrections=corrections)


def test_items_that_are_gone_are_asked_for(photos, tmp_path):
    results = shutil.copytree(photos / "out", tmp_path / "out", symlinks=True)
    empty = write_images(tmp_path / "pool", ["a.png"], easy_images(["left"], seed=0))
    with pytest.raises(DataError, match=r"item 'a/000\.png' .* is not in .*pool; .* --pool"):
        export_results(results, tmp_path / "to", "folders", files=Files(pool=empty))
    with pytest.raises(DataError, match="any more; give the pool with --pool"):
        export_results(results, tmp_path / "to", "folders", files=Files(pool=tmp_path / "no"))
    assert not (tmp_path / "to").exists()


def test_the_command_prints_what_it_wrote(photos, tmp_path, capsys):
    corrections = text(tmp_path / "corrections.csv", "item,label", f"{NEW[0]},fox")
    to = tmp_path / "labels.csv"
    words = [
        f"--results={photos / 'out'}",
        f"--to={to}",
        "--format=csv",
        f"--corrections={corrections}",
    ]
    assert main(["export", *words]) == 0
    assert capsys.readouterr().out == f"60 items, 1 labelled by people: {to}\n"
    assert main(["export", *words]) == 2
    assert "is there already" in capsys.readouterr().err
    assert LIST not in snapshot(tmp_path)
