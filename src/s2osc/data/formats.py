"""Read the files data sets are published in: a path goes in, images and labels come out.

Archives are read where they lie, nothing is unpacked, and no pickle is ever opened. A damaged file
is a ``DataError`` that names it.
"""

import gzip
import io
import math
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from s2osc.errors import DataError
from s2osc.files import guarded
from s2osc.lazy import lazily
from s2osc.progress import track

scipy_io = lazily("scipy.io")

Arrays = tuple[np.ndarray, np.ndarray]
"""Images, (n, H, W) or (n, H, W, 3) uint8, and one int64 label each."""

IDX_UINT8 = 0x08
SIDE = 32  # of every CIFAR, SVHN and CINIC image
N_PIXELS = 3 * SIDE * SIDE
N_CINIC = 270_000
CINIC_PARTS = ("train", "valid", "test")


def damaged(path: Path, found: str) -> DataError:
    """The error for a file that is not what its name promises."""
    return DataError(f"{path} {found}; remove it and fetch the official file again")


def read_idx(images_path: Path, labels_path: Path) -> Arrays:
    """Read a pair of gzipped idx files, the format of MNIST and Fashion-MNIST."""
    images, labels = _read_idx_array(images_path), _read_idx_array(labels_path)
    if images.ndim != 3:
        raise damaged(images_path, f"holds an array of {images.ndim} axes instead of images")
    if labels.shape != (len(images),):
        raise damaged(
            labels_path,
            f"holds labels of shape {labels.shape} for the {len(images)} images of {images_path}",
        )
    return images, labels.astype(np.int64)


def _read_idx_array(path: Path) -> np.ndarray:
    with _reading(path):
        raw = gzip.decompress(path.read_bytes())
    n_axes = raw[3] if len(raw) >= 4 else 0
    header = 4 + 4 * n_axes
    if raw[:3] != bytes([0, 0, IDX_UINT8]) or n_axes == 0 or len(raw) < header:
        raise damaged(path, f"does not begin like an idx file of bytes (it begins {raw[:4].hex()})")
    shape = tuple(int(n) for n in np.frombuffer(raw, ">u4", count=n_axes, offset=4))
    if len(raw) - header != math.prod(shape):
        raise damaged(path, f"holds {len(raw) - header} values where shape {shape} is announced")
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def read_cifar(path: Path, members: Sequence[str], *, n_label_bytes: int) -> Arrays:
    """Read some batches, in the order given, of a binary CIFAR archive.

    A record is its label (CIFAR-100: the coarse one, then the fine one, which counts), then the
    red, the green and the blue pixels.
    """
    batches = {}
    with _reading(path), tarfile.open(path, "r:gz") as archive:
        for member in track(archive, f"reading {path.name}"):
            if member.isfile() and (name := PurePosixPath(member.name).name) in members:
                batches[name] = _content(archive, member)
    missing = [name for name in members if name not in batches]
    if missing:
        raise damaged(path, f"lacks {', '.join(missing)}")
    width = n_label_bytes + N_PIXELS
    for name, batch in batches.items():
        if not batch or len(batch) % width:
            raise damaged(
                path, f"holds {name} with {len(batch)} bytes, not whole {width}-byte records"
            )
    joined = b"".join(batches[name] for name in members)
    records = np.frombuffer(joined, np.uint8).reshape(-1, width)
    planes = records[:, n_label_bytes:].reshape(-1, 3, SIDE, SIDE)
    labels = records[:, n_label_bytes - 1].astype(np.int64)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def read_svhn(path: Path) -> Arrays:
    """Read one of SVHN's cropped-digit .mat files; its label 10 is the digit 0.

    Give it only files whose checksum is right: scipy can crash on others.
    """
    with _reading(path):
        content = scipy_io.loadmat(path, variable_names=("X", "y"))
    images, labels = content.get("X"), content.get("y")
    if images is None or labels is None:
        raise damaged(path, "lacks the arrays X and y")
    if images.dtype != np.uint8 or images.shape != (SIDE, SIDE, 3, labels.size):
        raise damaged(
            path,
            f"holds X of type {images.dtype} and shape {images.shape} for {labels.size} labels "
            f"instead of uint8, {(SIDE, SIDE, 3, labels.size)}",
        )
    if not np.isin(labels, range(1, 11)).all():
        raise damaged(path, "holds labels other than 1 to 10")
    digits = labels.ravel().astype(np.int64) % 10
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), digits


def read_cinic(path: Path, classes: Sequence[str]) -> dict[str, Arrays]:
    """Read CINIC-10's archive of PNG files in one pass: part (train, valid, test) -> arrays."""
    pixels: defaultdict[str, bytearray] = defaultdict(bytearray)
    labels: defaultdict[str, list[int]] = defaultdict(list)
    with _reading(path), tarfile.open(path, "r:gz") as archive:
        found = _cinic_images(archive)
        for part, label, png in track(found, f"reading {path.name}", total=N_CINIC):
            if label not in classes:
                raise damaged(path, f"holds images of an unknown class, {label!r}")
            pixels[part] += _decode(path, png)
            labels[part].append(classes.index(label))
    missing = [part for part in CINIC_PARTS if not labels[part]]
    if missing:
        raise damaged(path, f"holds no images in {', '.join(missing)}")
    return {
        part: (
            np.frombuffer(pixels[part], np.uint8).reshape(-1, SIDE, SIDE, 3),
            np.array(labels[part], dtype=np.int64),
        )
        for part in CINIC_PARTS
    }


def _cinic_images(archive: tarfile.TarFile) -> Iterator[tuple[str, str, bytes]]:
    """Yield part, class and content of every PART/CLASS/NAME.png, whatever folder they lie in."""
    for member in archive:
        places = PurePosixPath(member.name).parts[-3:]
        if member.isfile() and len(places) == 3 and places[2].endswith(".png"):
            yield places[0], places[1], _content(archive, member)


def _decode(path: Path, png: bytes) -> bytes:
    with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
        if image.size != (SIDE, SIDE):
            raise damaged(path, f"holds an image of {image.size} pixels, not {(SIDE, SIDE)}")
        return image.convert("RGB").tobytes()  # a few of the originals are grey


def read_digits_csv(path: Path) -> Arrays:
    """Read a gzipped table of 28 x 28 digits: 784 pixels, then the label, in each row."""
    with _reading(path):
        table = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
    if table.shape[1] != 785:
        raise damaged(path, f"has rows of {table.shape[1]} values instead of 785")
    return table[:, :-1].reshape(-1, 28, 28), table[:, -1].astype(np.int64)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None, "only regular files are asked for"
    return file.read()


def _reading(path: Path) -> AbstractContextManager[None]:
    """Turn what gzip, tar, PNG, MATLAB and text readers raise on a damaged file into one error."""
    return guarded(path, "remove it and fetch the official file again")
