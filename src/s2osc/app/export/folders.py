"""Items in a folder for each label: copies, or links to where they lie.

Names of classes and items come from files. Whatever could lead out of the folder, or means
something to a file system, is written as in web addresses: ``a/b`` is the folder ``a%2Fb``.
"""

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from s2osc.data.columns import Table
from s2osc.data.inputs import Source
from s2osc.errors import DataError, OutputError
from s2osc.files import check_regular
from s2osc.text import clean_text

UNSAFE = re.compile(r'[%/\\<>:"|?*\x00-\x1f\x7f]|^[.\s]|[.\s]$')
"""Characters that no name has, and those that none begins or ends with."""
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that mean something else on Windows."""
LONGEST_NAME = 200  # bytes: disks have 255, and numbers may follow


def folder_name(name: str) -> str:
    """The name of a folder or file, whatever a class or item is called.

    >>> [folder_name(name) for name in ("red fox", "../a", "..", "50%", "con")]
    ['red fox', '%2E.%2Fa', '%2E%2E', '50%25', '%63on']
    """
    text = UNSAFE.sub(_quoted, clean_text(name))
    if DEVICES.fullmatch(text):
        text = f"%{ord(text[0]):02X}{text[1:]}"
    encoded = text.encode()
    if len(encoded) <= LONGEST_NAME:
        return text or "%"
    stem, suffix = os.path.splitext(text)
    suffix = suffix if len(suffix.encode()) <= 20 else ""
    start = stem.encode()[: LONGEST_NAME - len(suffix.encode())].decode(errors="ignore")
    return start + suffix


def _quoted(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def place_items(folders: Sequence[PurePosixPath], names: Sequence[str]) -> list[PurePosixPath]:
    """A place for each item in its folder, each of them once.

    >>> where = [PurePosixPath("cat")] * 2
    >>> [str(path) for path in place_items(where, ["a/1.png", "../A/1.png"])]
    ['cat/a/1.png', 'cat/A/1 (2).png']
    """
    taken: set[str] = set()
    places = []
    for folder, name in zip(folders, names, strict=True):
        parts = [part for part in PurePosixPath(name).parts if part not in ("..", ".", "/")]
        place = folder.joinpath(*(folder_name(part) for part in parts or ["item"]))
        unique, number = place, 1
        # Many disks do not tell capitals from small letters.
        while str(unique).casefold() in taken:
            number += 1
            unique = place.with_name(f"{place.stem} ({number}){place.suffix}")
        taken.add(str(unique).casefold())
        places.append(unique)
    return places


def category_folder(category: Iterable[str]) -> PurePosixPath:
    return PurePosixPath(*(folder_name(part) for part in category))


def write_items(
    stage: Path, source: Source, folders: Sequence[PurePosixPath], *, link: bool
) -> None:
    """Put each item of a source into its folder below ``stage``."""
    content = source.content
    if isinstance(content, Table) or source.kind == "vectors":
        raise DataError(
            f"{source.path} holds {'rows of a table' if source.kind == 'tables' else 'vectors'}, "
            "which have no files; export images or texts as folders, and these as csv, parquet or "
            "jsonl"
        )
    if link and isinstance(content, np.ndarray):
        raise DataError(f"{source.path} is one file, so there is nothing to link to; leave --link")
    ending = "" if isinstance(content, list) else ".txt" if source.kind == "texts" else ".png"
    places = place_items(folders, [f"{name}{ending}" for name in source.names])
    for item, place in zip(content, places, strict=True):
        path = stage / place
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_item(item, path, link=link)


def _write_item(item: Path | np.ndarray | str, path: Path, *, link: bool) -> None:
    if isinstance(item, str):
        path.write_bytes(item.encode(errors="backslashreplace"))
    elif isinstance(item, np.ndarray):
        Image.fromarray(item).save(path)
    elif link:
        try:
            os.symlink(item.absolute(), path)
        except OSError as error:
            raise OutputError(
                f"links cannot be made here ({error.strerror or error}); leave out --link for "
                "copies"
            ) from error
    else:
        check_regular(item)
        shutil.copyfile(item, path)
