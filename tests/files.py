"""Small files for tests: images, arrays, tables and manifests. Each function returns its path."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def image(path: Path, value: int = 0, size: tuple[int, int] = (8, 8), mode: str = "L") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)
    return path


def broken_image(path: Path) -> Path:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:60])
    return path


def class_folders(root: Path, **n_images: int) -> Path:
    for name, count in n_images.items():
        for index in range(count):
            image(root / name / f"{index}.png", value=10 * index)
    return root


def vectors(n: int = 4, width: int = 3) -> np.ndarray:
    return np.arange(n * width, dtype=np.float32).reshape(n, width) / 8


def npz(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)
    return path


def npy(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def parquet(path: Path, /, **columns: object) -> Path:
    with path.open("wb") as file:
        pq.write_table(pa.table(columns), file)
    return path


def text(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def truncated(path: Path, n_bytes: int = 40) -> Path:
    """The file without its last bytes."""
    path.write_bytes(path.read_bytes()[:-n_bytes])
    return path


# Items of three classes that two epochs of a small network tell apart


BRIGHT_PART = {"left": np.s_[:, :, :3], "top": np.s_[:, :3, :], "corner": np.s_[:, 5:, 5:]}
KNOWN_CLASSES, NEW_CLASS = ("left", "top"), "corner"


def easy_images(labels: list[str], seed: int) -> np.ndarray:
    """8x8 images, each dark but for the part its class is named after."""
    images = np.random.default_rng(seed).integers(0, 50, (len(labels), 8, 8), dtype=np.uint8)
    for name, part in BRIGHT_PART.items():
        is_it = np.array(labels) == name
        of_class = images[is_it]
        of_class[part] += 200
        images[is_it] = of_class
    return images


def easy_vectors(labels: list[str], seed: int) -> np.ndarray:
    """Vectors of 8 numbers, large in the place of the class."""
    vectors = np.random.default_rng(seed).normal(0, 0.5, (len(labels), 8)).astype(np.float32)
    vectors[np.arange(len(labels)), [list(BRIGHT_PART).index(name) for name in labels]] += 6
    return vectors


def known_labels(n_each: int = 30) -> list[str]:
    return [name for name in KNOWN_CLASSES for _ in range(n_each)]


def pool_labels(n_each: int = 12) -> list[str]:
    return [*KNOWN_CLASSES, NEW_CLASS] * n_each


def pool_files(n_each: int = 12) -> list[str]:
    """Image files in two folders, one for each of ``pool_labels``, in the order they are read."""
    n = len(pool_labels(n_each))
    return [f"{'ab'[row >= n // 2]}/{row:03}.png" for row in range(n)]


def write_images(folder: Path, names: list[str], images: np.ndarray) -> Path:
    for name, pixels in zip(names, images, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder by its path: the bytes of files, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def visible(folder: Path) -> dict[str, bytes | None]:
    """The same without what lies in hidden folders."""
    return {
        name: held
        for name, held in snapshot(folder).items()
        if not any(part.startswith(".") for part in Path(name).parts)
    }


def arguments(folder: Path, out: Path, *more: str) -> list[str]:
    """Words for `classify` on the items of a folder."""
    sources = [f"--known={folder / 'known.npz'}", f"--pool={folder / 'pool.npz'}"]
    return ["classify", *sources, f"--out={out}", *more]
