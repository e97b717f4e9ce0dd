"""Files: written whole or not at all, locked, and read with care.

    writing     ``write_whole`` a file, ``sync_tree`` a folder before it is pointed to, ``lock``
    reading     ``read_whole``, ``read_json`` and ``guarded``: whatever a stranger's file holds, its
                readers raise one of our errors
    caches      ``cache_folder``

Nothing is ever found by a pattern and removed: who tidies up keeps a list of what it wrote.
"""

import json
import math
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from s2osc.codec import JsonObject
from s2osc.errors import DataError, OutputError, S2OSCError

LARGEST_JSON = 256 * 2**20
"""Bytes. Summaries, models and states are far smaller; what is larger is not ours."""
DEEPEST_JSON = 40
LARGEST_NUMBER = 2**63


# --- writing ---------------------------------------------------------------------------------


def write_whole(path: Path, content: bytes | memoryview, *, mode: int = 0o666) -> None:
    """Write a file that is there with all of its content, also after a power cut, or not at all.

    The bytes gather beside ``path`` under the name ``part_of`` gives; what a killed process leaves
    there, the next write takes over. Processes that may write the same file hold a lock meanwhile.
    The file is made with the permissions of ``mode``, less what the user's mask takes away: with
    0o600 nobody else can open it at any moment.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    part.unlink(missing_ok=True)  # else the permissions would be those of whoever left it
    try:
        with open(part, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def part_of(path: Path) -> Path:
    """Where a file gathers before it takes its place."""
    return path.with_name(f".{path.name}.s2osc-part")


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    if os.name == "nt":  # where folders cannot be opened, and names are kept with files
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Put every file below a folder, and every name, on the disk."""
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            if os.path.islink(path):  # a name; what it leads to is not ours
                continue
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
        sync_folder(Path(place))


@contextmanager
def writing(place: Path, advice: str) -> Iterator[None]:
    """A disk that is full or refuses becomes one line; ``advice`` says how things stand."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot write to {place}: {error.strerror or error}; {advice}"
        ) from error


@contextmanager
def lock(path: Path, busy: str, *, seconds: float = 0, remove: bool = False) -> Iterator[None]:
    """Hold the lock file ``path``; refuse with the line ``busy`` where others hold it so long.

    With ``remove`` the file goes afterwards, while it is still held: filelock takes no lock on a
    file that was removed before it got it, but tries again.
    """
    held = FileLock(path, timeout=seconds)
    try:
        held.acquire()
    except Timeout as error:
        raise OutputError(busy) from error
    except OSError as error:
        raise OutputError(
            f"cannot write to {path.parent}: {error.strerror or error}; give a place where you may "
            "write"
        ) from error
    try:
        yield
    finally:
        if remove:
            with suppress(OSError):
                path.unlink()
        held.release()


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it, and put their names on the disk; those that were made."""
    folder = folder.absolute()
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in made:
            with suppress(PermissionError):  # where one may write and not read
                sync_folder(path.parent)
    except BaseException:
        _remove_empty(made)
        raise
    return made


def _remove_empty(folders: Iterable[Path]) -> None:
    for path in folders:
        with suppress(OSError):
            path.rmdir()


@contextmanager
def made_folders(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; afterwards those that were made and are empty go again."""
    with writing(folder.absolute(), "give a place where you may write"):
        made = make_folder(folder)
    try:
        yield
    finally:
        _remove_empty(made)


def check_folder(out: Path) -> None:
    """Refuse a place that cannot be a folder to write into."""
    if out.is_symlink() and not out.exists():
        raise OutputError(f"{out} is a link that leads nowhere; give a folder")
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file; give a folder")
    folder = out.absolute()
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise OutputError(f"{nearest} is a file, so {folder} cannot be made; give another place")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise OutputError(f"{nearest} may not be written to; give a place where you may write")


# --- reading ---------------------------------------------------------------------------------


@contextmanager
def guarded(path: Path, advice: str, error: type[S2OSCError] = DataError) -> Iterator[None]:
    """The one guard of every reader: what a file makes its reader raise becomes ``error``.

    A file from a stranger is data, and its parser may fail in any way: each of them is the file's
    fault, and the user's move. Our own errors pass unchanged.
    """
    try:
        yield
    except S2OSCError:
        raise
    except Exception as cause:  # any: the parsers of a dozen formats have no common ancestor
        raise error(f"{path} cannot be read ({reason(cause)}); {advice}") from cause


def reason(error: BaseException) -> str:
    """An error in at most one short line.

    >>> reason(ValueError("no\\nmore")), reason(KeyError("a")), reason(MemoryError())
    ('no', "'a' is missing", 'it needs more memory than there is')
    """
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error).strip().splitlines()
    if isinstance(error, KeyError) and text:
        return f"{text[0]} is missing"
    return text[0][:200] if text else type(error).__name__


def check_regular(path: Path, error: type[S2OSCError] = DataError) -> None:
    """Refuse what is not a plain file: reading from a pipe or a device may never end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as cause:
        raise error(f"{path} cannot be read: {reason(cause)}; give a file that is there") from cause
    if stat.S_ISDIR(mode):
        raise error(f"{path} is a folder; give a file")
    if not stat.S_ISREG(mode):
        raise error(f"{path} is a pipe or a device; give a plain file")


def read_whole(path: Path, *, largest: int, error: type[S2OSCError] = DataError) -> bytes:
    """The bytes of a plain file of at most ``largest`` bytes."""
    check_regular(path, error)
    size = path.stat().st_size
    if size > largest:
        raise error(
            f"{path} has {size:,} bytes, where at most {largest:,} are expected; "
            "give the file that s2osc wrote"
        )
    with guarded(path, "copy it again", error):
        return path.read_bytes()


def read_json(path: Path, advice: str, error: type[S2OSCError] = DataError) -> JsonObject:
    """The object in a JSON file: of moderate size and depth, numbers finite and text proper."""
    content = read_whole(path, largest=LARGEST_JSON, error=error)
    with guarded(path, advice, error):
        found = parse_json(content)
        _check_text(found)
        return found


def parse_json(content: bytes | str) -> JsonObject:
    """A JSON object whose numbers are finite and which is not nested deeply; else ValueError.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json('{"a": 1e400}')
    Traceback (most recent call last):
    ...
    ValueError: it holds the number 1e400
    """
    found = json.loads(
        content, parse_float=_finite, parse_int=_moderate, parse_constant=_refuse_constant
    )
    if not isinstance(found, dict):
        raise ValueError(f"it holds a {type(found).__name__}, not an object")
    _check_depth(found)
    return found


def _check_depth(found: JsonObject) -> None:
    level: list[Any] = [found]
    for _ in range(DEEPEST_JSON):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST_JSON} levels deep")


def _check_text(found: JsonObject) -> None:
    """Refuse half of a character, which an escape can stand for: it could not be written again."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds text that is no Unicode") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds the number {text}")
    return number


def _moderate(text: str) -> int:
    number = int(text)
    if abs(number) >= LARGEST_NUMBER:
        raise ValueError(f"it holds a number of {len(text)} digits")
    return number


def _refuse_constant(text: str) -> None:
    raise ValueError(f"it holds the number {text}")


def as_json(values: JsonObject | list[Any]) -> bytes:
    """JSON as we write it: readable, in UTF-8, without NaN."""
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


# --- caches ----------------------------------------------------------------------------------


def cache_folder(variable: str, *below: str) -> Path:
    """The folder that an environment variable names, else one in the user's cache."""
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser()
    return Path(platformdirs.user_cache_path("s2osc", appauthor=False), *below)
