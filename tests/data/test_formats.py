"""Readers are given tiny files written here, byte by byte, in the official formats."""

import gzip
import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from s2osc.data.formats import read_cifar, read_cinic, read_digits_csv, read_idx, read_svhn
from s2osc.errors import DataError

CLASSES = ("airplane", "automobile", "bird")


def some_pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def write_idx(path: Path, array: np.ndarray, kind: int = 0x08) -> Path:
    header = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))
    return path


def write_tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def idx_pair(folder: Path) -> tuple[Path, Path]:
    images = write_idx(folder / "images.gz", some_pixels(3, 28, 28))
    return images, write_idx(folder / "labels.gz", np.array([7, 0, 9], dtype=np.uint8))


def cifar_record(labels: list[int], image: np.ndarray) -> bytes:
    return bytes(labels) + image.transpose(2, 0, 1).tobytes()


def cifar_tar(folder: Path) -> Path:
    batch = b"".join(cifar_record([3], image) for image in some_pixels(40, 32, 32, 3))
    return write_tar(folder / "cifar.tar.gz", {"batches/a.bin": batch, "batches/b.bin": batch})


def svhn_mat(folder: Path) -> Path:
    path = folder / "digits.mat"
    savemat(path, {"X": some_pixels(32, 32, 3, 3), "y": np.array([[10], [1], [9]], np.uint8)})
    return path


def cinic_tar(folder: Path) -> Path:
    images = some_pixels(9, 32, 32, 3)
    files = {
        f"./{part}/{label}/cifar10-{part}-1.png": png(images[3 * p + c])
        for p, part in enumerate(("train", "valid", "test"))
        for c, label in enumerate(CLASSES)
    }
    return write_tar(folder / "cinic.tar.gz", {"./README.md": b"hello", **files})


def test_idx_files_give_back_the_images_and_labels_written(tmp_path: Path) -> None:
    images, labels = read_idx(*idx_pair(tmp_path))
    np.testing.assert_array_equal(images, some_pixels(3, 28, 28))
    assert labels.tolist() == [7, 0, 9]
    assert (images.dtype, labels.dtype) == (np.uint8, np.int64)


def test_an_idx_file_of_other_values_than_bytes_is_refused_by_name(tmp_path: Path) -> None:
    images, labels = idx_pair(tmp_path)
    write_idx(images, some_pixels(3, 28, 28), kind=0x0D)
    with pytest.raises(DataError, match=r"images\.gz does not begin like an idx file.*00000d03"):
        read_idx(images, labels)


def test_an_idx_file_shorter_than_it_announces_is_refused(tmp_path: Path) -> None:
    images, labels = idx_pair(tmp_path)
    images.write_bytes(gzip.compress(gzip.decompress(images.read_bytes())[:-1]))
    with pytest.raises(DataError, match=r"holds 2351 values where shape \(3, 28, 28\)"):
        read_idx(images, labels)


@pytest.mark.parametrize("content", [b"", b"\0\0\x08", b"\0\0\x08\x03\0\0"])
def test_an_idx_file_without_a_whole_header_is_refused(tmp_path: Path, content: bytes) -> None:
    images, labels = idx_pair(tmp_path)
    images.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"images\.gz does not begin like an idx file"):
        read_idx(images, labels)


def test_labels_of_another_number_of_images_are_refused(tmp_path: Path) -> None:
    images, labels = idx_pair(tmp_path)
    write_idx(labels, np.zeros(4, np.uint8))
    with pytest.raises(
        DataError, match=r"labels\.gz holds labels of shape \(4,\) for the 3 images"
    ):
        read_idx(images, labels)


def test_images_and_labels_in_each_others_place_are_refused(tmp_path: Path) -> None:
    images, labels = idx_pair(tmp_path)
    with pytest.raises(DataError, match=r"labels\.gz holds an array of 1 axes instead of images"):
        read_idx(labels, images)


def test_cifar_batches_come_in_the_order_asked_for_with_colours_last(tmp_path: Path) -> None:
    images = some_pixels(3, 32, 32, 3)
    path = write_tar(
        tmp_path / "cifar.tar.gz",
        {
            "cifar-10-batches-bin/data_batch_2.bin": cifar_record([9], images[2]),
            "cifar-10-batches-bin/readme.html": b"<html>",
            "cifar-10-batches-bin/data_batch_1.bin": cifar_record([4], images[0])
            + cifar_record([5], images[1]),
        },
    )
    found, labels = read_cifar(path, ["data_batch_1.bin", "data_batch_2.bin"], n_label_bytes=1)
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [4, 5, 9]


def test_the_fine_label_of_cifar_100_is_the_second_byte(tmp_path: Path) -> None:
    image = some_pixels(32, 32, 3)
    path = write_tar(tmp_path / "c.tar.gz", {"c/train.bin": cifar_record([11, 98], image)})
    images, labels = read_cifar(path, ["train.bin"], n_label_bytes=2)
    np.testing.assert_array_equal(images, image[None])
    assert labels.tolist() == [98]


def test_a_missing_cifar_batch_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar\.tar\.gz lacks c\.bin"):
        read_cifar(cifar_tar(tmp_path), ["a.bin", "c.bin"], n_label_bytes=1)


def test_a_cifar_batch_cut_within_a_record_is_refused(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "c.tar.gz", {"a.bin": bytes(3073 + 3072)})
    with pytest.raises(DataError, match=r"a\.bin with 6145 bytes, not whole 3073-byte records"):
        read_cifar(path, ["a.bin"], n_label_bytes=1)


def test_svhn_puts_images_first_and_calls_label_10_zero(tmp_path: Path) -> None:
    images, labels = read_svhn(svhn_mat(tmp_path))
    np.testing.assert_array_equal(images, some_pixels(32, 32, 3, 3).transpose(3, 0, 1, 2))
    assert labels.tolist() == [0, 1, 9]
    assert labels.dtype == np.int64


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": some_pixels(32, 32, 3, 2)}, "lacks the arrays X and y"),
        ({"X": some_pixels(32, 32, 3, 2), "y": np.ones((3, 1))}, "for 3 labels"),
        ({"X": np.zeros((32, 32, 3, 1)), "y": np.ones((1, 1))}, "float64"),
        ({"X": some_pixels(32, 32, 3, 1), "y": np.zeros((1, 1))}, "other than 1 to 10"),
    ],
)
def test_a_mat_file_with_other_arrays_is_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], message: str
) -> None:
    savemat(tmp_path / "digits.mat", arrays)
    with pytest.raises(DataError, match=rf"digits\.mat .*{message}"):
        read_svhn(tmp_path / "digits.mat")


def test_cinic_gives_each_part_with_labels_from_the_folder_names(tmp_path: Path) -> None:
    parts = read_cinic(cinic_tar(tmp_path), CLASSES)
    assert list(parts) == ["train", "valid", "test"]
    for p, (images, labels) in enumerate(parts.values()):
        np.testing.assert_array_equal(images, some_pixels(9, 32, 32, 3)[3 * p : 3 * p + 3])
        assert labels.tolist() == [0, 1, 2]


def test_a_grey_cinic_image_becomes_three_equal_colours(tmp_path: Path) -> None:
    grey = some_pixels(32, 32)
    files = {f"CINIC-10/{part}/bird/x.png": png(grey) for part in ("train", "valid", "test")}
    images, _ = read_cinic(write_tar(tmp_path / "c.tar.gz", files), CLASSES)["test"]
    np.testing.assert_array_equal(images[0], np.stack([grey] * 3, axis=2))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test/wolf/x.png", png(some_pixels(32, 32, 3)), "unknown class, 'wolf'"),
        ("test/bird/x.png", png(some_pixels(16, 32, 3)), r"\(32, 16\) pixels"),
        ("test/bird/x.png", png(some_pixels(32, 32, 3))[:500], "cannot be read"),
        ("test/bird/x.png", b"no image", "cannot be read"),
        ("train/bird/x.png", png(some_pixels(32, 32, 3)), "no images in valid, test"),
    ],
)
def test_a_cinic_archive_with_a_wrong_image_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = write_tar(tmp_path / "cinic.tar.gz", {name: content})
    with pytest.raises(DataError, match=rf"cinic\.tar\.gz .*{message}"):
        read_cinic(path, CLASSES)


def test_a_table_of_digits_gives_pixels_and_the_last_column_as_label(tmp_path: Path) -> None:
    images = some_pixels(2, 28, 28)
    rows = [
        ",".join(map(str, [*image.ravel(), label]))
        for image, label in zip(images, "38", strict=True)
    ]
    (tmp_path / "digits.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    found, labels = read_digits_csv(tmp_path / "digits.csv.gz")
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [3, 8]


@pytest.mark.parametrize("text", [b"1,2,3\n4,5,6\n", b"a,b\n", b"1,2\n3\n"])
def test_another_table_than_digits_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "digits.csv.gz").write_bytes(gzip.compress(text))
    with pytest.raises(DataError, match=r"digits\.csv\.gz (has rows of 3|cannot be read)"):
        read_digits_csv(tmp_path / "digits.csv.gz")


READERS = {
    "idx": (lambda folder: idx_pair(folder)[0], lambda path: read_idx(path, path)),
    "cifar": (cifar_tar, lambda path: read_cifar(path, ["a.bin", "b.bin"], n_label_bytes=1)),
    "svhn": (svhn_mat, read_svhn),
    "cinic": (cinic_tar, lambda path: read_cinic(path, CLASSES)),
}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize(("write", "read"), READERS.values(), ids=READERS.keys())
def test_a_truncated_file_is_refused_by_name(
    tmp_path: Path, write: Callable[[Path], Path], read: Callable[[Path], object], share: float
) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataError, match=path.name):
        read(path)


@pytest.mark.parametrize(("write", "read"), READERS.values(), ids=READERS.keys())
def test_a_web_page_in_place_of_the_file_is_refused_in_one_line(
    tmp_path: Path, write: Callable[[Path], Path], read: Callable[[Path], object]
) -> None:
    path = write(tmp_path)
    path.write_text("<!DOCTYPE html>\n<title>Not found</title>\n" * 20)
    with pytest.raises(DataError, match=path.name) as caught:
        read(path)
    assert "\n" not in str(caught.value)
