"""A results folder that changes in one step.

    OUT/predictions.csv, ...      links to .s2osc/current/predictions.csv, ...
    OUT/.s2osc/current            a link to one of the versions
    OUT/.s2osc/versions/N/        complete versions
    OUT/.s2osc/manifest.json      every version with the digests of its files
    OUT/.s2osc/lock               held while somebody writes here

A new version is written beside the current one and put on the disk. Names that are new get a link,
which leads nowhere yet. Then ``current`` is replaced by one rename, and links and versions that are
no longer wanted are removed. Whenever a process is killed, the folder holds the old version or the
new one; who opens it next tidies up. Only what the manifest lists is ever removed, and it is listed
before it is made.

Each file is a link of its own, also those of ``model``: what a user puts into that folder is not
part of a version, and stays.

Where no links can be made, ``current`` is a text file that names the version, and the files in OUT
are copies, each replaced after the switch. Readers of ours go through ``version_of``.

A file in OUT whose content we did not write is the user's: it is replaced with ``force`` alone.

Who publishes what, and when:

    classify, demo    the answer, the scores and the model, as soon as the fit is done; then, with
                      the words of the summary and the page, the same as a second version
    report            that second version, where an error or a kill left the first alone
    decide            answer, summary, page and the model's threshold, for another operating point
    check             the items a person is asked about; then their labels, summary and page
    stream window     as classify, with ``queries.csv``; the stream confirms the window in between
    stream simulate   its tables and figures, once, at the end
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeVar

from s2osc.errors import DataError, OutputError, S2OSCError
from s2osc.files import (
    as_json,
    check_folder,
    guarded,
    lock,
    made_folders,
    read_json,
    sync_folder,
    sync_tree,
    write_whole,
    writing,
)

T = TypeVar("T")
SUMMARY, SCORES, SEEDS = "summary.json", "scores.parquet", "seeds.parquet"
TABLES = ("predictions.csv", "predictions.parquet")
REPORT, DRAWING, SKIPPED = "report.html", "report.safetensors", "skipped.csv"
ITEMS = "items.parquet"
"""The texts of the pool, or the columns of its table that were used."""
CORRECTIONS = "corrections.csv"
"""Labels that people gave items of the pool before this fit."""
CHECKED = "checked.parquet"
"""The items of the pool that a person was asked about, and their labels."""
UNFINISHED = ".unfinished.safetensors"
"""What the page needs and no other file holds, until the page is made."""
MODEL = "model"
RESULTS = (
    *(*TABLES, SUMMARY, REPORT, SKIPPED, SCORES, SEEDS, ITEMS, DRAWING, CHECKED, CORRECTIONS),
    *(f"{MODEL}/model.json", f"{MODEL}/weights.safetensors"),
)
"""The files of a result. Names that begin with a dot have no place in OUT."""

STORE, CURRENT, VERSIONS, MANIFEST = ".s2osc", "current", "versions", "manifest.json"
LOCK, PART = "lock", "part"
"""Of the store; a link or a copy is ``part`` until it takes its place."""
FORMAT = 1


def version_of(out: Path) -> Path:
    """The folder that holds the current version of the results in ``out``.

    That is ``out`` itself where the files lie there as they are, as in a copy made without links.
    """
    number = _current_number(out / STORE)
    return out / STORE / VERSIONS / str(number) if number else out


def read_current(model: Path, read: Callable[[Path], T]) -> T:
    """Read a folder that may be part of results, from one version, also while they change."""
    return _read_from(lambda: _current_place(model), read)


def read_results(out: Path, read: Callable[[Path], T]) -> T:
    """Read the results in ``out`` from one version, also while they change."""

    def place() -> Path:
        version = version_of(out)
        check_summary(version, out)
        return version

    return _read_from(place, read)


def _read_from(place: Callable[[], Path], read: Callable[[Path], T]) -> T:
    while True:
        before = place()
        try:
            return read(before)
        except S2OSCError:
            if place() == before:
                raise


def _current_place(folder: Path) -> Path:
    """Where ``folder`` lies in the current version, unless a user put other files there."""
    version = version_of(folder.parent)
    names = [path.name for path in (version / folder.name).glob("*")]
    if version == folder.parent or not names:
        return folder
    linked = (folder.parent / STORE / CURRENT).is_symlink()
    is_ours = all((folder / name).is_symlink() == linked for name in names)
    return version / folder.name if is_ours else folder


def _current_number(store: Path) -> int | None:
    path = store / CURRENT
    try:
        target = os.readlink(path) if path.is_symlink() else path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    found = re.fullmatch(rf"{VERSIONS}/([0-9]{{1,9}})\n?", target.replace(os.sep, "/"))
    if not found or not (store / VERSIONS / found[1]).is_dir():
        return None
    return int(found[1])


@dataclass(frozen=True)
class Manifest:
    """What we wrote: the files of each version with their digests."""

    versions: dict[int, dict[str, str]] = field(default_factory=dict)
    plain: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Files of a version that go to OUT as they are, until they are there."""

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        if not path.exists():
            return cls()
        advice = "give another folder, or remove this one"
        content = read_json(path, advice, OutputError)
        with guarded(path, advice, OutputError):
            return cls(
                {int(n): _checked(dict(files)) for n, files in content["versions"].items()},
                {int(n): tuple(_checked(names)) for n, names in content["plain"].items()},
            )

    def write(self, path: Path) -> None:
        content = {"format": FORMAT, "versions": self.versions, "plain": self.plain}
        write_whole(path, as_json(content))

    def lists(self, name: str, digest: str) -> bool:
        return any(files.get(name) == digest for files in self.versions.values())


Names = TypeVar("Names", dict[str, str], list[str])


def _checked(names: Names) -> Names:
    """Names below a folder; those that lead elsewhere are refused."""
    for name in names:
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or {"..", STORE} & set(parts):
            raise ValueError(f"it lists {name!r}")
    return names


@contextmanager
def results_folder(
    out: Path,
    *,
    names: Iterable[str] = RESULTS,
    force: bool = False,
    update: bool = False,
    replaces: Callable[[Path], bool] = lambda version: False,
) -> Iterator["ResultsFolder"]:
    """Hold a folder for results, from the first check to the last rename.

    Results that are there are refused, unless ``force`` or ``replaces``, which gets their folder,
    replaces them, or ``update`` makes another version of them. Where nothing is published, no
    folder is left that was not there before.
    """
    if update and not (out / STORE).is_dir():
        check_summary(out, out)
    check_folder(out)
    busy = f"another process writes to {out}; wait until it is done, or give another folder"
    with made_folders(out / STORE), lock(out / STORE / LOCK, busy):
        folder = ResultsFolder(out, tuple(names), force=force)
        try:
            with writing(out, "give another folder"):
                folder.recover()
                folder.tidy()
                if update:
                    check_summary(folder.version, out)
                else:
                    folder.force = folder.force or replaces(folder.version)
                    folder.refuse_results()
            yield folder
        finally:
            folder.leave()


def check_summary(version: Path, out: Path) -> None:
    """Refuse a folder without results."""
    if not (version / SUMMARY).is_file():
        raise DataError(
            f"{out} holds no results: {SUMMARY} is not there; "
            "give the folder that `s2osc classify --out` wrote"
        )


class ResultsFolder:
    """A folder that is held; ``results_folder`` makes it."""

    def __init__(self, out: Path, names: tuple[str, ...], *, force: bool) -> None:
        self.out, self.names, self.force = out, names, force
        self.store = out / STORE
        self.manifest = Manifest.read(self.store / MANIFEST)

    @property
    def version(self) -> Path:
        """The folder of the current version, to read from."""
        return version_of(self.out)

    def files(self) -> set[str]:
        """The names of the files of the current version."""
        return set(self.manifest.versions.get(_current_number(self.store) or 0, {}))

    def refuse_results(self) -> None:
        """Refuse a folder that holds results, unless forced."""
        held = [name for name in self.names if (self.out / name).exists()]
        if held and not self.force:
            raise OutputError(
                f"{self.out} holds results already ({', '.join(held)}); "
                "give another folder, or --force to replace them"
            )
        self._check_places(self.names)

    @contextmanager
    def publish(self, *, keep: Iterable[str] = (), plain: Iterable[str] = ()) -> Iterator[Path]:
        """A folder to write a whole new version into; it becomes the current one at the end.

        The files ``keep`` are taken from the current version. The files ``plain``, which a user
        writes into, are placed in ``out`` as they are, and no later version removes them.
        """
        with writing(self.out, "make room, or give another place"):
            self._adopt()
            keep, plain = set(keep), set(plain)
            stage = self._begin()
            try:
                for name in keep:
                    link_or_copy(self.version / name, stage / name)
                yield stage
                files = {name: _digest(stage / name) for name in _files_in(stage) - plain}
                self._check_places(files.keys() - keep)
                self._complete(stage, files, plain)
                if self._may_link():
                    self._place_links(files)
                self._point_to(stage)
            except BaseException:
                if self.version != stage:  # it is not whole, and does not stay
                    self.manifest.versions[int(stage.name)] = {}
                with suppress(OSError):
                    self.tidy()
                raise
            self.tidy()

    def _begin(self) -> Path:
        """The folder of a new version, listed before it is made."""
        versions = self.store / VERSIONS
        there = [int(path.name) for path in versions.glob("*") if path.name.isdigit()]
        stage = versions / str(max([0, *there, *self.manifest.versions]) + 1)
        self._list(stage, {})
        stage.mkdir(parents=True)
        return stage

    def _list(self, stage: Path, files: dict[str, str], plain: Collection[str] = ()) -> None:
        number, manifest = int(stage.name), self.manifest
        to_place = {number: tuple(plain)} if plain else {}
        manifest = Manifest(manifest.versions | {number: files}, manifest.plain | to_place)
        manifest.write(self.store / MANIFEST)
        self.manifest = manifest

    def _complete(self, stage: Path, files: dict[str, str], plain: Collection[str] = ()) -> None:
        """List the files of a version, and put all of it on the disk."""
        self._list(stage, files, plain)
        sync_tree(stage)
        sync_folder(stage.parent)

    def _adopt(self) -> None:
        """Make a version of results that lie in ``out`` as they are.

        A program before versions wrote them, or they were copied without links.
        """
        if _current_number(self.store) is not None:
            return
        if (self.store / CURRENT).is_dir():  # a copy of what the link led to
            os.rename(self.store / CURRENT, self._begin() / CURRENT)
        names = [name for name in self.names if (self.out / name).is_file()]
        if names:
            stage = self._begin()
            for name in names:
                link_or_copy(self.out / name, stage / name)
            self._complete(stage, {name: _digest(stage / name) for name in names})
            self._point_to(stage)
            if self._may_link():
                self._place_links(names)

    def _check_places(self, names: Iterable[str]) -> None:
        """Refuse to put a file where something of the user's lies."""
        for name in names:
            place = self.out / name
            if place.parent.exists() and (place.parent.is_symlink() and place.parent != self.out):
                raise OutputError(f"{place.parent} is a link; move it elsewhere")
            if os.path.lexists(place.parent) and not place.parent.is_dir():
                raise OutputError(f"{place.parent} is a file; move it elsewhere")
            if place.is_dir():
                raise OutputError(f"{place} is a folder; move it elsewhere")
            if self.force or not os.path.lexists(place) or self._is_ours(name):
                continue
            raise OutputError(
                f"{place} is not as s2osc wrote it; copy it elsewhere, then remove it here"
            )

    def _is_ours(self, name: str) -> bool:
        """Whether a place holds what we wrote, or a link of ours that leads nowhere yet."""
        place = self.out / name
        if not place.exists():
            return self._is_link(name)
        return place.is_file() and self.manifest.lists(name, _digest(place))

    def _is_link(self, name: str) -> bool:
        place = self.out / name
        return place.is_symlink() and os.readlink(place) == str(_target(name))

    def _may_link(self) -> bool:
        """Whether files in ``out`` are links: where they can be made, and are not copies already.

        Not on Windows, where few users may make them and links to folders cannot be replaced.
        """
        current = self.store / CURRENT
        if os.name == "nt" or (current.is_file() and not current.is_symlink()):
            return False
        try:
            self._make_link(Path(VERSIONS))
        except OSError:
            return False
        return True

    def _make_link(self, target: Path) -> Path:
        part = self.store / PART
        part.unlink(missing_ok=True)
        os.symlink(target, part)
        return part

    def _place_links(self, names: Iterable[str]) -> None:
        for name in names:
            if not _is_hidden(name) and not self._is_link(name):
                self._place(self._make_link(_target(name)), name)

    def _place(self, part: Path, name: str) -> None:
        place = self.out / name
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, place)
        sync_folder(place.parent)

    def _place_copy(self, source: Path, name: str) -> None:
        part = self.store / PART
        part.unlink(missing_ok=True)
        write_whole(part, source.read_bytes())
        self._place(part, name)

    def _point_to(self, stage: Path) -> None:
        """Make a complete version the current one."""
        target, current = Path(VERSIONS, stage.name), self.store / CURRENT
        if self._may_link():
            os.replace(self._make_link(target), current)
            sync_folder(self.store)
        else:
            write_whole(current, f"{target.as_posix()}\n".encode())

    def recover(self) -> None:
        """Make a whole version current that nothing points to, where there is nothing else.

        Its process was killed before it could; or the folder was copied and links were left out.
        """
        if os.path.lexists(self.store / CURRENT) or (self.out / SUMMARY).exists():
            return
        for number, files in sorted(self.manifest.versions.items(), reverse=True):
            stage = self.store / VERSIONS / str(number)
            if files and all(
                (stage / n).is_file() and _digest(stage / n) == d for n, d in files.items()
            ):
                self._point_to(stage)
                if self._may_link():
                    self._place_links(files)
                return

    def tidy(self) -> None:
        """Bring to its end what was done halfway, and remove what is not current.

        Where nothing is current, whole versions stay: they may be all that is left of the results.
        """
        number, manifest = _current_number(self.store), self.manifest
        current = manifest.versions.get(number or 0, {})
        others = {
            n: files
            for n, files in manifest.versions.items()
            if n != number and (number or not files)
        }
        if number and not (self.store / CURRENT).is_symlink():
            for name in current:
                self._bring_up_to_date(name)
        for name in {name for files in others.values() for name in files} - current.keys():
            self._remove(name)
        for name in manifest.plain.get(number or 0, ()):
            self._place_copy(self.version / name, name)
        for other in others:
            with suppress(FileNotFoundError):
                shutil.rmtree(self.store / VERSIONS / str(other))
        (self.store / PART).unlink(missing_ok=True)
        if others or manifest.plain:
            left = {n: f for n, f in manifest.versions.items() if n not in others}
            self.manifest = Manifest(left)
            self.manifest.write(self.store / MANIFEST)

    def _bring_up_to_date(self, name: str) -> None:
        """Replace a copy in ``out`` by the file of the current version, unless it is a user's."""
        source, place = self.version / name, self.out / name
        if _is_hidden(name) or (place.is_file() and _digest(place) == _digest(source)):
            return
        if self.force or not os.path.lexists(place) or self._is_ours(name):
            self._place_copy(source, name)

    def _remove(self, name: str) -> None:
        """Remove the place of a file that the current version lacks, unless it is a user's."""
        place = self.out / name
        if self._is_link(name) or self._is_ours(name):
            place.unlink()
            if place.parent != self.out:
                with suppress(OSError):  # what a user put there stays
                    place.parent.rmdir()

    def leave(self) -> None:
        """Leave no trace where nothing was published."""
        if _current_number(self.store) is not None or self.manifest.versions:
            return
        for name in (MANIFEST, PART):
            with suppress(OSError):
                (self.store / name).unlink()
        with suppress(OSError):
            (self.store / VERSIONS).rmdir()
        if {path.name for path in self.store.glob("*")} == {LOCK}:
            with suppress(OSError):
                (self.store / LOCK).unlink()
                self.store.rmdir()


def _target(name: str) -> Path:
    """Where the link of a name leads, relative to the link."""
    return Path(*[".."] * (len(PurePosixPath(name).parts) - 1), STORE, CURRENT, name)


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link_or_copy(source: Path, place: Path) -> None:
    """The same file under a second name where the disk can do that, else a copy."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), place)
    except OSError:
        shutil.copyfile(source, place)
