"""Files that are dropped onto the page: limited, images or tables, in a folder of our own."""

import os
import re
import secrets
from pathlib import Path

from PIL import Image

from s2osc.data.images import FORMATS, IMAGE_SUFFIXES
from s2osc.data.inputs import MAX_MEGAPIXELS
from s2osc.data.tables import ARRAY_SUFFIXES, TABLE_SUFFIXES
from s2osc.errors import DataError
from s2osc.files import guarded

FOLDER = "uploads"
MOST_FILES = 20_000
LARGEST_FILE = 512 * 2**20
LARGEST_IN_ALL = 8 * 2**30
LONGEST_NAME = 120


class Upload:
    """One drop: a folder that only this names."""

    def __init__(self, folder: Path, n_files: int) -> None:
        self.folder, self.n_files = folder, n_files
        self.n_bytes = 0

    def create(self, number: int, name: str) -> tuple[int, Path]:
        """A new file to write into, and where it is."""
        if not 0 <= number < self.n_files:
            raise DataError(f"file {number} is not one of the {self.n_files} that were announced")
        path = self.folder / safe_name(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            return os.open(path, flags, 0o600), path
        except FileExistsError:
            path = self.folder / f"{number}-{path.name}"
            return os.open(path, flags, 0o600), path

    def count(self, n_bytes: int) -> None:
        self.n_bytes += n_bytes
        if self.n_bytes > LARGEST_IN_ALL:
            raise DataError(f"the files have more than {LARGEST_IN_ALL / 2**30:.0f} GB in all")

    def pool(self) -> Path:
        """What was dropped, as a source of items: a folder of images, or one table."""
        files = sorted(path for path in self.folder.iterdir() if path.is_file())
        tables = [path for path in files if path.suffix.lower() not in IMAGE_SUFFIXES]
        if not files or (tables and len(files) > 1):
            raise DataError("drop images, or one table or array; not both")
        return tables[0] if tables else self.folder


class Uploads:
    """The drops of a page that is open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self._open: dict[str, Upload] = {}

    def begin(self, n_files: int) -> str:
        if not 1 <= n_files <= MOST_FILES:
            raise DataError(f"{n_files:,} files were dropped; drop from 1 to {MOST_FILES:,}")
        name = secrets.token_hex(8)
        place = self.folder / name
        place.mkdir(parents=True)
        self._open[name] = Upload(place, n_files)
        return name

    def find(self, name: str) -> Upload:
        if name not in self._open:
            raise DataError("these files were dropped onto another page; drop them again")
        return self._open[name]


def safe_name(name: str) -> str:
    """The name of a file without any way out of its folder.

    >>> [safe_name(name) for name in ("../../a b.png", "C:\\\\x\\\\é.JPG", ".hidden.csv")]
    ['a b.png', 'é.JPG', 'hidden.csv']
    """
    base = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^\w .()+-]", "_", base).strip(" .")
    stem, suffix = os.path.splitext(plain)
    if suffix.lower() not in {*IMAGE_SUFFIXES, *ARRAY_SUFFIXES, *TABLE_SUFFIXES}:
        raise DataError(f"{name!r:.100} is neither an image nor a table")
    return stem[:LONGEST_NAME] + suffix


def check_picture(path: Path) -> None:
    """Refuse an image that is none, or has too many pixels; nothing is decoded."""
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        return
    with (
        guarded(path, "drop another"),
        path.open("rb") as file,
        Image.open(file, formats=FORMATS) as image,
    ):
        megapixels = image.width * image.height / 1e6
    if megapixels > MAX_MEGAPIXELS:
        raise DataError(
            f"{path.name} has {megapixels:,.0f} megapixels; at most {MAX_MEGAPIXELS:g} are taken"
        )
