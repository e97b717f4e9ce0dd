"""Pictures of items, by their row: made when they are first looked at, and kept.

Every picture is decoded and encoded anew. So no byte of a file leaves as it is, whatever a name or
a link leads to, and what is no image of a moderate size is not shown.
"""

import io
import sqlite3
import threading
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

from s2osc.data.images import FORMATS
from s2osc.data.inputs import Source
from s2osc.errors import DataError
from s2osc.files import guarded
from s2osc.report.pictures import is_small

Size = Literal["small", "large"]
SIDES: dict[Size, int] = {"small": 160, "large": 1_200}
QUALITY = 85
SCHEMA = "CREATE TABLE IF NOT EXISTS thumbnails (name TEXT PRIMARY KEY, picture BLOB NOT NULL)"


class Thumbnails:
    """Pictures of the items of one source; those of files are kept in a table on the disk."""

    def __init__(self, source: Source, cache: Path, *, max_megapixels: float) -> None:
        self._content, self._max_pixels = source.content, max_megapixels * 1e6
        self._mutex, self._cache = threading.Lock(), cache
        try:
            self._db = self._connect()
        except sqlite3.DatabaseError:
            self._db = self._connect_anew()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._cache, isolation_level=None, check_same_thread=False)
        try:
            # It can be made again, so nothing waits for the disk.
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=OFF")
            db.execute(SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _connect_anew(self) -> sqlite3.Connection:
        """In place of a damaged file: all in it can be made again."""
        with guarded(self._cache, "remove it: it is made again"):
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._cache}{suffix}").unlink(missing_ok=True)
            return self._connect()

    def _run(self, command: str, values: tuple[str | bytes, ...]) -> tuple[bytes] | None:
        """The first row that a command gives, if any."""
        with self._mutex:
            try:
                found: tuple[bytes] | None = self._db.execute(command, values).fetchone()
            except sqlite3.DatabaseError:
                self._db.close()
                self._db = self._connect_anew()
                found = self._db.execute(command, values).fetchone()
        return found

    def close(self) -> None:
        with self._mutex:
            self._db.close()

    def picture(self, place: int, size: Size) -> tuple[bytes, str]:
        """The picture of the item at a place of the source, and its type."""
        content = self._content
        if isinstance(content, np.ndarray):
            return encode(Image.fromarray(content[place]), size)
        assert isinstance(content, list), "tables have no pictures"
        path = content[place]
        with guarded(path, "mend or remove it"):
            key = f"{path}\n{path.stat().st_mtime_ns}"
        if size == "small" and (cached := self._cached(key)):
            return cached, _type_of(cached)
        made, media_type = encode(self._open(path, size), size)
        if size == "small":
            self._run("INSERT OR REPLACE INTO thumbnails VALUES (?, ?)", (key, made))
        return made, media_type

    def _cached(self, key: str) -> bytes | None:
        row = self._run("SELECT picture FROM thumbnails WHERE name = ?", (key,))
        return row[0] if row else None

    def _open(self, path: Path, size: Size) -> Image.Image:
        with (
            guarded(path, "mend or remove it"),
            path.open("rb") as file,
            Image.open(file, formats=FORMATS) as image,
        ):
            if image.width * image.height > self._max_pixels:
                raise DataError(f"{path.name} has more pixels than the run allowed")
            wanted = 2 * SIDES[size]
            image.draft(None, (wanted, wanted))
            image.load()
            return ImageOps.exif_transpose(image)


def encode(image: Image.Image, size: Size) -> tuple[bytes, str]:
    """A picture of at most that size: exact where it is small, as JPEG where it is a photo.

    >>> encode(Image.new("L", (8, 8)), "small")[1], encode(Image.new("RGB", (900, 9)), "small")[1]
    ('image/png', 'image/jpeg')
    """
    made, target = image, io.BytesIO()
    if max(image.size) > SIDES[size]:
        made = image.copy()
        made.thumbnail((SIDES[size], SIDES[size]), Image.Resampling.LANCZOS)
    if is_small(np.empty((made.height, made.width))):
        made.convert("RGBA" if made.has_transparency_data else made.mode).save(target, "PNG")
    else:
        flat = made.convert("RGBA") if made.has_transparency_data else made.convert("RGB")
        if flat.mode == "RGBA":
            flat = Image.alpha_composite(Image.new("RGBA", flat.size, "white"), flat).convert("RGB")
        flat.save(target, "JPEG", quality=QUALITY)
    picture = target.getvalue()
    return picture, _type_of(picture)


def _type_of(picture: bytes) -> str:
    return "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"
