"""The jobs from files to files: every form of input, everything that is written."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from files import (
    KNOWN_CLASSES,
    broken_image,
    easy_images,
    easy_vectors,
    image,
    known_labels,
    npy,
    npz,
    parquet,
    pool_labels,
    text,
    visible,
    write_images,
)
from s2osc.app import origin
from s2osc.app.classify import classify_files, demo
from s2osc.app.corrections import Correction, Corrections
from s2osc.app.decide import redecide
from s2osc.app.export.job import export_results
from s2osc.app.predict import predict_files
from s2osc.app.request import Request
from s2osc.app.result_files import load_result
from s2osc.app.results_folder import RESULTS, version_of
from s2osc.cli.main import main
from s2osc.data.datasets import Dataset
from s2osc.errors import OutputError, SettingsError
from s2osc.report import drawing
from s2osc.text import at_most

NUMBERS = ["confidence", "nearest_confidence", "unknown_score", "distinctness"]
EXACT = ["p_known", "operating_point"]
COLUMNS = ["item", "label", "group", "confidence", "nearest", "nearest_confidence", *EXACT]
COLUMNS += ["unknown_score", "distinctness", "filtered"]
COLUMN_TYPES = (
    {"group": pa.int64()}
    | dict.fromkeys(NUMBERS, pa.float32())
    | dict.fromkeys(EXACT, pa.float64())
)


def quick_request(preset: str = "auto", **more: object) -> Request:
    changes = {
        f"{role}.{name}": value
        for role in ("teacher", "student")
        for name, value in {
            "training.epochs": 1,
            "training.min_steps": 12,
            "network.widths": (8, 8, 8),
            "network.hidden": (16, 16),
        }.items()
    }
    return Request(
        preset, changes | {"clusters.n_groups": 1, "seeds.judges": 0} | more, device="cpu"
    )


LEAST = quick_request(
    "plain", **{f"{role}.training.min_steps": 2 for role in ("teacher", "student")}
)


def read_csv(path: Path) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(column_types=COLUMN_TYPES, strings_can_be_null=False)
    return pyarrow.csv.read_csv(path, convert_options=options)


def answers(out: Path) -> pa.Table:
    """The table of a run without the names of the items."""
    return pq.read_table(out / "predictions.parquet").drop_columns("item")


def files_in(folder: Path) -> set[str]:
    return {name for name, held in visible(folder).items() if held is not None}


def summary(out: Path) -> dict:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


# The same items in every form give the same answers, in the order of the pool

KNOWN, POOL = known_labels(60), pool_labels(20)
KNOWN_FILES = [f"{name}/{row:03}.png" for row, name in enumerate(KNOWN)]
POOL_FILES = [f"{'ab'[row >= 9]}/deep/{row:03}.png" for row in range(len(POOL))]
KNOWN_IMAGES, POOL_IMAGES = easy_images(KNOWN, seed=0), easy_images(POOL, seed=1)
KNOWN_VECTORS, POOL_VECTORS = easy_vectors(KNOWN, seed=0), easy_vectors(POOL, seed=1)


def image_files(folder: Path) -> Path:
    write_images(folder / "known", KNOWN_FILES, KNOWN_IMAGES)
    write_images(folder / "pool", POOL_FILES, POOL_IMAGES)
    return folder


def manifest_lines(folder: str, files: list[str], labels: list[str]) -> list[str]:
    rows = [f"{folder}/{file},{name}" for file, name in zip(files, labels, strict=True)]
    return ["path,label", *rows]


def columns_of(vectors: np.ndarray) -> dict[str, np.ndarray]:
    return {f"v{index}": column for index, column in enumerate(vectors.T)}


def write_columns(path: Path, **columns: object) -> Path:
    pyarrow.csv.write_csv(pa.table(columns), path)
    return path


IMAGE_FORMS = {
    "known": {
        "npz": lambda p: npz(p / "k.npz", x=KNOWN_IMAGES, y=KNOWN),
        "npz with classes": lambda p: npz(
            p / "k.npz",
            x=KNOWN_IMAGES,
            y=[KNOWN_CLASSES.index(name) for name in KNOWN],
            classes=KNOWN_CLASSES,
        ),
        "folders": lambda p: image_files(p) / "known",
        "csv manifest": lambda p: text(
            image_files(p) / "k.csv", *manifest_lines("known", KNOWN_FILES, KNOWN)
        ),
        "parquet manifest": lambda p: parquet(
            image_files(p) / "k.parquet", path=[f"known/{f}" for f in KNOWN_FILES], label=KNOWN
        ),
    },
    "pool": {
        "npz": lambda p: npz(p / "p.npz", x=POOL_IMAGES, y=POOL),
        "npy": lambda p: npy(p / "p.npy", POOL_IMAGES),
        "nested folder": lambda p: image_files(p) / "pool",
        "csv manifest": lambda p: text(
            image_files(p) / "p.csv", *manifest_lines("pool", POOL_FILES, POOL)
        ),
        "parquet manifest": lambda p: parquet(
            image_files(p) / "p.parquet", path=[f"pool/{f}" for f in POOL_FILES]
        ),
    },
}
VECTOR_FORMS = {
    "known": {
        "npz": lambda p: npz(p / "k.npz", x=KNOWN_VECTORS, y=KNOWN),
        "parquet": lambda p: parquet(
            p / "k.parquet", v=pa.array(KNOWN_VECTORS.tolist()), label=KNOWN
        ),
        "csv": lambda p: write_columns(p / "k.csv", label=KNOWN, **columns_of(KNOWN_VECTORS)),
    },
    "pool": {
        "npz": lambda p: npz(p / "p.npz", x=POOL_VECTORS, y=POOL),
        "npy": lambda p: npy(p / "p.npy", POOL_VECTORS),
        "parquet": lambda p: parquet(
            p / "p.parquet", item=POOL_FILES, v=pa.array(POOL_VECTORS.tolist())
        ),
        "csv": lambda p: write_columns(p / "p.csv", id=POOL_FILES, **columns_of(POOL_VECTORS)),
    },
}
ITEM_NAMES = {
    ("images", "nested folder"): POOL_FILES,
    ("images", "csv manifest"): [f"pool/{file}" for file in POOL_FILES],
    ("images", "parquet manifest"): [f"pool/{file}" for file in POOL_FILES],
    ("vectors", "parquet"): POOL_FILES,
    ("vectors", "csv"): POOL_FILES,
}
ROWS = [str(row) for row in range(len(POOL))]
FORMS = {"images": IMAGE_FORMS, "vectors": VECTOR_FORMS}
PAIRS = [
    *((kind, known, "npz") for kind, forms in FORMS.items() for known in forms["known"]),
    *((kind, "npz", pool) for kind, forms in FORMS.items() for pool in forms["pool"]),
]


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, Path]:
    """Results for images and for vectors, both given as .npz."""
    outs = {}
    for kind, forms in FORMS.items():
        folder = tmp_path_factory.mktemp(kind)
        known, pool = (forms[role]["npz"](folder) for role in ("known", "pool"))
        classify_files(known, pool, folder / "out", quick_request())
        outs[kind] = folder / "out"
    return outs


@pytest.fixture(scope="module")
def least(tmp_path_factory) -> dict[str, pa.Table]:
    """The answers to both as .npz after a step or two."""
    tables = {}
    for kind, forms in FORMS.items():
        folder = tmp_path_factory.mktemp(kind)
        known, pool = (forms[role]["npz"](folder) for role in ("known", "pool"))
        classify_files(known, pool, folder / "out", LEAST)
        tables[kind] = answers(folder / "out")
    return tables


@pytest.mark.parametrize(("kind", "known", "pool"), [p for p in PAIRS if p[1:] != ("npz", "npz")])
def test_every_form_of_the_same_items_gives_the_same_answers(tmp_path, least, kind, known, pool):
    known_path, pool_path = (
        FORMS[kind]["known"][known](tmp_path),
        FORMS[kind]["pool"][pool](tmp_path),
    )
    out = tmp_path / "out"
    classify_files(known_path, pool_path, out, LEAST)
    assert answers(out).equals(least[kind])
    names = pq.read_table(out / "predictions.parquet")["item"].to_pylist()
    assert names == ITEM_NAMES.get((kind, pool), ROWS)
    assert ("metrics" in summary(out)) == (pool in ("npz", "csv manifest"))


# What is written


@pytest.mark.parametrize("kind", FORMS)
def test_a_run_leaves_tables_summary_page_and_model_and_nothing_else(expected, kind):
    out = expected[kind]
    absent = {"skipped.csv", "checked.parquet", "items.parquet", "corrections.csv"}
    assert files_in(out) == set(RESULTS) - absent


def test_a_run_without_seeds_leaves_nothing_to_decide_from(tmp_path):
    known, pool = VECTOR_FORMS["known"]["npz"](tmp_path), VECTOR_FORMS["pool"]["npy"](tmp_path)
    result = classify_files(known, pool, tmp_path / "out", quick_request("plain"))
    absent = {"skipped.csv", "checked.parquet", "items.parquet", "corrections.csv"}
    measured = {"scores.parquet", "seeds.parquet", "report.safetensors"}
    assert files_in(tmp_path / "out") == set(RESULTS) - absent - measured
    assert result.summary.audit is None
    nearest = pq.read_table(tmp_path / "out" / "predictions.parquet")["nearest"].to_pylist()
    assert set(nearest) <= set(KNOWN_CLASSES)


@pytest.mark.parametrize("kind", FORMS)
def test_a_model_is_plain_weights_and_json(expected, kind):
    out = expected[kind]
    assert {path.suffix for path in (out / "model").iterdir()} == {".json", ".safetensors"}


@pytest.mark.parametrize("kind", FORMS)
def test_both_tables_hold_the_same_rows(expected, kind):
    written = pq.read_table(expected[kind] / "predictions.parquet")
    assert written.column_names == COLUMNS
    assert written.num_rows == len(POOL)
    assert set(written["label"].to_pylist()) <= {*KNOWN_CLASSES, "unknown"}
    in_text = read_csv(expected[kind] / "predictions.csv")
    assert in_text.set_column(0, "item", in_text["item"].cast(pa.string())).equals(written)
    with (expected[kind] / "predictions.csv").open(newline="") as lines:
        assert next(csv.reader(lines)) == COLUMNS


@pytest.mark.parametrize("kind", FORMS)
def test_groups_go_with_unknown_items_and_numbers_lie_in_their_ranges(expected, kind):
    for row in pq.read_table(expected[kind] / "predictions.parquet").to_pylist():
        assert (row["group"] is None) == (row["label"] != "unknown")
        assert 0 <= row["unknown_score"] <= 1
        assert 0 <= row["confidence"] <= 1
        assert 0 < row["nearest_confidence"] <= 1
    filtered = answers(expected[kind])["filtered"].to_pylist()
    assert 0 < sum(filtered) <= summary(expected[kind])["k"]


@pytest.mark.parametrize("kind", FORMS)
def test_every_item_has_a_nearest_known_class_which_is_its_label_where_that_is_known(
    expected, kind
):
    rows = pq.read_table(expected[kind] / "predictions.parquet").to_pylist()
    assert {row["nearest"] for row in rows} == set(KNOWN_CLASSES)
    assert all(row["nearest"] == row["label"] for row in rows if row["label"] != "unknown")


@pytest.mark.parametrize("kind", FORMS)
def test_easy_items_are_recognised_and_easy_unknown_ones_found(expected, kind):
    labels = answers(expected[kind])["label"].to_pylist()
    right = [
        given == (true if true in KNOWN_CLASSES else "unknown")
        for given, true in zip(labels, POOL, strict=True)
    ]
    assert np.mean(right) > 0.8
    assert summary(expected[kind])["metrics"]["accuracy"] == pytest.approx(np.mean(right), abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("images", "180 images of 8x8, kept at that size, grey"),
        ("vectors", "180 vectors of 8 columns"),
    ],
)
def test_the_summary_tells_counts_settings_versions_and_seconds(expected, kind, shape):
    found = summary(expected[kind])
    assert found["items"] == {"known": len(KNOWN), "pool": len(POOL), "skipped": 0}
    labels = answers(expected[kind])["label"].to_pylist()
    assert found["counts"]["known"] == {name: labels.count(name) for name in KNOWN_CLASSES}
    assert found["counts"]["unknown"] == labels.count("unknown")
    assert sum(found["counts"]["groups"].values()) == labels.count("unknown")
    assert found["settings"]["student.training.min_steps"] == 12
    assert found["shape"] == shape
    assert found["versions"].keys() == {"s2osc", "python", "numpy", "scikit-learn", "torch"}
    steps = ("sources", "teacher", "filter", "student", "answer", "groups")
    assert tuple(found["seconds"]) == ("read", "representation", *steps, "save", "report")
    assert all(seconds >= 0 for seconds in found["seconds"].values())
    assert (found["warnings"], found["seed"], found["device"]) == ([], 0, "cpu")
    assert (found["title"], found["backbone"]) == ("Open set classification", None)


def test_images_and_vectors_start_from_a_preset_of_their_own(expected):
    assert summary(expected["images"])["preset"] == "quick"
    assert summary(expected["vectors"])["preset"] == "heads"


@pytest.mark.parametrize("kind", FORMS)
def test_the_summary_holds_what_the_seeds_say(expected, kind):
    audit = summary(expected[kind])["audit"]
    # Ten calibration items of each class or, where f has no part in the score, most of all 120.
    assert 20 <= audit["seeds"]["number"] < 120
    assert audit["seeds"]["per_class"].keys() == set(KNOWN_CLASSES)
    assert sum(audit["seeds"]["per_class"].values()) == audit["seeds"]["number"]
    assert audit["sources"] is None or not audit["sources"]["differ"]
    assert 0 < audit["findable_share"] < 0.5
    assert " of this pool is of no known class" in audit["sentence"]
    assert audit["test"]["verdict"].startswith("Something in this pool is unknown (p = ")
    assert audit["false_alarm"].keys() == {"estimate", "low", "high", "per_class"}
    assert audit["false_alarm"]["per_class"].keys() == set(KNOWN_CLASSES)
    assert audit["groups"]["number"] == 1
    page = (expected[kind] / "report.html").read_text(encoding="utf-8")
    assert audit["sentence"] in page
    command = f"s2osc decide --out {expected[kind]} --false-alarm"
    assert command in page.replace("</span> <span>", " ")


def test_a_pool_of_known_items_alone_is_said_to_hold_nothing_unknown(tmp_path):
    labels = known_labels(40)
    known = VECTOR_FORMS["known"]["npz"](tmp_path)
    pool = npz(tmp_path / "pool.npz", x=easy_vectors(labels, seed=3), y=labels)
    result = classify_files(known, pool, tmp_path / "out", quick_request())
    found = result.summary.to_json()
    assert found["audit"]["nothing_unknown"]
    # Of a pool of 80 items a small class could not be told from the known ones.
    assert found["audit"]["findable_share"] > 0.1
    assert found["audit"]["sentence"].startswith(
        "Cannot tell whether anything in this pool is unknown: with 20 labelled test items"
    )
    assert found["counts"]["unknown"] == found["k"] == 0
    answer, _ = predict_files(tmp_path / "out" / "model", pool, tmp_path / "again.csv")
    assert not answer.is_unknown.any()


def test_too_few_seeds_for_the_wanted_rate_are_a_warning(tmp_path):
    known, pool = VECTOR_FORMS["known"]["npz"](tmp_path), VECTOR_FORMS["pool"]["npy"](tmp_path)
    classify_files(known, pool, tmp_path / "out", quick_request(**{"decision.false_alarm": 0.01}))
    (note,) = summary(tmp_path / "out")["warnings"]
    n = summary(tmp_path / "out")["audit"]["seeds"]["number"]
    assert note == (
        f"{n} seeds can promise a false-alarm rate of {at_most(1 / (n + 1))} at best, not 1%: "
        "label more items of the known classes, or give a higher --false-alarm"
    )


def test_the_page_opens_by_itself_and_shows_the_pool(expected):
    page = (expected["images"] / "report.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert all(name in page for name in KNOWN_CLASSES)


@pytest.mark.parametrize("unknown", [pytest.param("one", marks=pytest.mark.slow), "many"])
def test_both_variants_of_the_student_answer_for_every_item(tmp_path, unknown):
    known, pool = VECTOR_FORMS["known"]["npz"](tmp_path), VECTOR_FORMS["pool"]["npy"](tmp_path)
    result = classify_files(
        known, pool, tmp_path / "out", quick_request(**{"student.unknown": unknown})
    )
    assert result.run.settings["student.unknown"] == unknown
    assert answers(tmp_path / "out").num_rows == len(POOL)


# What the user should know


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Path:
    """Images of which two cannot be read, and the results; to be copied, never changed."""
    folder = image_files(tmp_path_factory.mktemp("broken"))
    broken_image(folder / "known" / KNOWN_FILES[3])
    text(folder / "pool" / POOL_FILES[5], "no image")
    classify_files(folder / "known", folder / "pool", folder / "out", quick_request())
    return folder


def test_images_that_cannot_be_read_are_named_skipped_and_counted(broken):
    with (broken / "out" / "skipped.csv").open(newline="") as lines:
        header, first, second = csv.reader(lines)
    assert header == ["item", "reason"]
    assert first[0] == KNOWN_FILES[3]
    assert second == [POOL_FILES[5], "not an image of a known format"]
    found = summary(broken / "out")
    assert found["items"] == {"known": 119, "pool": 59, "skipped": 2}
    names = pq.read_table(broken / "out" / "predictions.parquet")["item"].to_pylist()
    assert names == [name for name in POOL_FILES if name != POOL_FILES[5]]
    (note,) = found["warnings"]
    assert note.startswith(f"2 items were skipped (first: {KNOWN_FILES[3]}, ")


@pytest.mark.parametrize("k", [41, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_k_above_a_class_or_the_pool_is_reduced_with_a_note(tmp_path, k):
    known, pool = VECTOR_FORMS["known"]["npz"](tmp_path), VECTOR_FORMS["pool"]["npy"](tmp_path)
    classify_files(known, pool, tmp_path / "out", quick_request(**{"filtering.k": k}))
    found = summary(tmp_path / "out")
    (note,) = found["warnings"]
    assert note.startswith(f"K = {k} is too large for a pool of 60 items and classes of up to 40")
    assert found["k"] == 15


def test_what_was_left_out_while_reading_is_noted(tmp_path):
    folder = image_files(tmp_path)
    image(folder / "known" / "stray.png")
    result = classify_files(folder / "known", folder / "pool", tmp_path / "out", quick_request())
    (note,) = result.summary.warnings
    assert "images outside the class folders are left out (1, first: stray.png)" in note


# Replacing


def test_a_second_run_replaces_the_first_only_when_forced(broken, tmp_path):
    folder = shutil.copytree(broken, tmp_path / "again", symlinks=True)
    out = folder / "out"
    text(out / "notes.txt", "mine")
    before = (out / "predictions.csv").read_bytes()
    (folder / "known" / KNOWN_FILES[3]).unlink()
    (folder / "pool" / POOL_FILES[5]).unlink()
    with pytest.raises(OutputError, match="holds results already"):
        classify_files(folder / "known", folder / "pool", out, quick_request())
    assert (out / "skipped.csv").exists()
    classify_files(folder / "known", folder / "pool", out, quick_request(), force=True)
    assert not (out / "skipped.csv").exists()
    assert (out / "notes.txt").read_text() == "mine\n"
    assert (out / "predictions.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (Request(device="abacus"), "give auto, cpu or cuda"),
        (Request(preset="slow"), "the preset is 'slow'"),
        (Request(changes={"student.tao": 1}), r"did you mean .*student\.tau"),
        (
            Request("paper", {"decision.false_alarm": 0.1}),
            "decision.false_alarm is for decisions by",
        ),
    ],
)
def test_a_run_that_cannot_be_is_refused_before_anything_is_read(tmp_path, run, message):
    with pytest.raises(SettingsError, match=message):
        classify_files(tmp_path / "gone", tmp_path / "gone", tmp_path / "out", run)


def test_a_seed_below_zero_is_refused():
    with pytest.raises(SettingsError, match="the seed is -1; give a whole number from 0"):
        Request(seed=-1)


# The demo


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Results of the demo on made-up digits, which stay in their place meanwhile."""
    digits = np.repeat(np.arange(10), 500)
    inputs = np.random.default_rng(0).integers(0, 40, (len(digits), 8, 8), dtype=np.uint8)
    inputs[np.arange(len(digits)), digits % 8] = 255
    data = Dataset(
        "mnist5k", inputs, digits, tuple(map(str, range(10))), n_train=len(digits), flip=False
    )
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(origin, "load_dataset", {"mnist5k": data}.__getitem__)
        with pytest.MonkeyPatch.context() as quickly:
            quickly.setattr(drawing, "MAP_ITEMS", 200)
            result = demo(out, quick_request("plain"))
        yield out, result


def test_the_demo_knows_six_digits_and_two_more_are_in_its_pool(digits):
    out, result = digits
    assert result.classes == tuple("012345")
    assert result.summary.to_json()["items"] == {"known": 1800, "pool": 2200, "skipped": 0}
    names = pq.read_table(out / "predictions.parquet")["item"].to_pylist()
    assert len(set(names)) == len(names) == 2200
    share = 1000 / 2200
    found = result.summary.metrics["f_out_all_unknown"]
    assert found == pytest.approx(2 * share / (1 + share), abs=1e-5)


def test_the_digits_of_the_demo_can_be_exported_though_no_file_holds_them(digits, tmp_path):
    out, result = digits
    named = Corrections((Correction(result.names[0], "six"),))
    for kind, name in {"folders": "f", "coco": "c.json", "label-studio": "l"}.items():
        export_results(out, tmp_path / name, kind, corrections=named)
    assert len(list((tmp_path / "f").rglob("*.png"))) == 2200
    assert len(list((tmp_path / "f" / "six").iterdir())) == 1
    export_results(out, tmp_path / "known.npz", "known", corrections=named)
    with np.load(tmp_path / "known.npz") as known:
        assert known["x"].shape == (1801, 8, 8)
        assert known["y"][-1] == "six"


def test_results_of_folds_are_decided_anew_as_others_are(finished, tmp_path):
    out, items = tmp_path / "out", (finished / "known.npz", finished / "pool.npz")
    result = classify_files(*items, out, quick_request(**{"seeds.judges": 30}))
    assert result.run.seconds["folds"] > 0
    once = load_result(version_of(finished / "out"))
    assert len(result.evidence.seed_score) > len(once.evidence.seed_score)
    again = redecide(out, {})
    np.testing.assert_array_equal(again.answer.labels, result.answer.labels)


def test_a_pool_above_the_limit_is_fitted_on_a_sample_and_decided_again_alike(tmp_path, learnt):
    known, pool = known_labels(200), pool_labels(200)
    npz(tmp_path / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_vectors(pool, seed=1), y=pool)
    paths = [f"--{name}={tmp_path / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    assert main(["classify", *paths, f"--out={out}", "--fit-on=500", *learnt]) == 0
    first = pq.read_table(out / "predictions.parquet")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["items"]["pool"] == len(pool) > 500
    assert summary["seconds"]["sample"] >= 0
    assert summary["metrics"]["accuracy"] > 0.9
    assert main(["report", f"--out={out}"]) == 0
    again = pq.read_table(out / "predictions.parquet")
    for column in ("item", "label", "p_known", "operating_point"):
        assert first[column].to_pylist() == again[column].to_pylist(), column
