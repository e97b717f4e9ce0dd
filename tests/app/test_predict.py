"""Answers for new items with a saved model."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from files import easy_images, easy_vectors, image, known_labels, npy, npz, pool_labels, text
from s2osc.app.predict import predict_files
from s2osc.cli.main import main
from s2osc.errors import DataError

KNOWN, POOL = known_labels(60), pool_labels(20)
MAKERS = {"images": easy_images, "vectors": easy_vectors}


@pytest.fixture(scope="module")
def results(tmp_path_factory, finished, quick) -> dict[str, Path]:
    """Folders with known.npz, pool.npz and, in ``out``, the results, for each kind of items."""
    folder = tmp_path_factory.mktemp("images")
    npz(folder / "known.npz", x=easy_images(KNOWN, seed=0), y=KNOWN)
    npz(folder / "pool.npz", x=easy_images(POOL, seed=1), y=POOL)
    return {"images": classified(folder, *quick), "vectors": finished}


def classified(folder: Path, *more: str) -> Path:
    paths = [f"--{name}={folder / name}.npz" for name in ("known", "pool")]
    assert main(["classify", *paths, f"--out={folder / 'out'}", *more]) == 0
    return folder


def read_csv(path: Path) -> dict[str, list]:
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=False)
    return pyarrow.csv.read_csv(path, convert_options=options).to_pydict()


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_saved_model_answers_for_the_same_pool_nearly_as_before(tmp_path, results, kind, suffix):
    pool = npy(tmp_path / "pool.npy", MAKERS[kind](POOL, seed=1))
    out = tmp_path / f"again{suffix}"
    answer, notes = predict_files(results[kind] / "out" / "model", pool, out)
    again = read_csv(out) if suffix == ".csv" else pq.read_table(out).to_pydict()
    before = pq.read_table(results[kind] / "out" / "predictions.parquet").to_pydict()
    assert list(again) == list(before)
    # In its pool an item is also judged by its neighbours, of which a new item has none.
    for name, at_least in (("label", 0.8), ("nearest", 1.0)):
        assert np.mean(np.equal(again[name], before[name])) >= at_least
    assert (len(answer.labels), notes) == (len(POOL), [])
    assert not any(again["filtered"])


def test_without_seeds_a_saved_model_answers_for_the_same_pool_as_before(tmp_path, quick):
    npz(tmp_path / "known.npz", x=easy_vectors(KNOWN, seed=0), y=KNOWN)
    pool = npz(tmp_path / "pool.npz", x=easy_vectors(POOL, seed=1), y=POOL)
    out = classified(tmp_path, *quick, "--preset=plain") / "out"
    predict_files(out / "model", pool, tmp_path / "again.parquet")
    again, before = (
        pq.read_table(path).drop_columns("filtered")
        for path in (tmp_path / "again.parquet", out / "predictions.parquet")
    )
    assert again.equals(before)


def test_new_images_of_other_sizes_come_to_the_shape_of_the_model(tmp_path, results):
    folder = image(tmp_path / "items" / "a.png", size=(40, 30), mode="RGB").parent
    text(folder / "b.png", "no image")
    model = results["images"] / "out" / "model"
    answer, notes = predict_files(model, folder, tmp_path / "a.csv")
    assert len(answer.labels) == 1
    (note,) = notes
    assert note.startswith("1 item was skipped (first: b.png, not an image of a known format); ")


def test_new_items_of_another_kind_are_refused(tmp_path, results):
    items = npy(tmp_path / "a.npy", easy_vectors(POOL, seed=1))
    with pytest.raises(DataError, match="holds vectors, the model was trained on images"):
        predict_files(results["images"] / "out" / "model", items, tmp_path / "a.csv")
