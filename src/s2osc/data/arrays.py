"""Arrays in .npy and .npz files, measured by their headers before memory is taken for them."""

import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from s2osc.errors import DataError
from s2osc.files import check_regular, guarded
from s2osc.text import listed

KINDS = "buifUSM"  # numbers, text and dates: nothing that would be run or unpickled
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # as np.savez and np.savez_compressed write
ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
ADVICE = "save plain arrays, without Python objects, by np.save or np.savez"


def load_arrays(path: Path, names: Sequence[str], advice: str = ADVICE) -> dict[str, np.ndarray]:
    """Those of the named arrays that a .npz file holds; the one array of a .npy file is the first.

    The first must be there.
    """
    check_regular(path)
    with guarded(path, advice), path.open("rb") as file:
        is_archive = file.read(4) in ZIP_BEGINNINGS
        file.seek(0)
        if not is_archive:
            return {names[0]: _read_array(file, path.stat().st_size)}
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if names[0] not in members:
                raise DataError(
                    f"{path} has no array `{names[0]}`; found: {listed(list(members))}; {advice}"
                )
            return {name: _read_member(archive, members[name]) for name in names if name in members}


def check_memory(n_bytes: int) -> None:
    """Refuse what would not fit into this machine's memory, before any of it is taken."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # where the system does not report it
        return
    if n_bytes > memory:
        raise ValueError(f"it announces {n_bytes:,} bytes, and this machine has {memory:,}")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type not in METHODS:
        raise ValueError(f"{info.filename} is compressed by a method that np.savez does not use")
    check_memory(info.file_size)
    with archive.open(info) as file:
        return _read_array(file, info.file_size)


def _read_array(file: IO[bytes], n_bytes: int) -> np.ndarray:
    """One array from a file of so many bytes."""
    read_header = HEADER_READERS.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError("its header is of a version for arrays of several fields")
    shape, _, dtype = read_header(file)
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"it holds values of type {dtype}, which are neither numbers nor text")
    if any(length < 0 for length in shape):
        raise ValueError(f"its header gives the shape {shape}")
    announced, there = math.prod(shape) * dtype.itemsize, n_bytes - file.tell()
    if announced > there:
        raise ValueError(
            f"its header announces {announced:,} bytes of values, and it has {there:,}"
        )
    check_memory(announced)
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
