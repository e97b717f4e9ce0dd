"""A stream on disk: every confirmed change is a version, and the last one can be undone.

    stream.json                    which version is current, and which was before it
    manifest.json                  the files below that this store wrote; nothing else is removed
    versions/<number>.json         one state: classes, settings, history, questions, its objects
    objects/<sha256>.safetensors   arrays of states, by their content
    .lock                          held by the process that works on the stream

Only ``stream.json`` is ever replaced, at once, after all that it leads to lies on the disk. So a
process that is killed leaves the version before or the one after, whole. Nothing here is ever run:
arrays are plain tensors, everything else is JSON.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from s2osc import files
from s2osc.codec import JsonObject, fields_from_plain, from_plain, to_plain
from s2osc.errors import DataError, ModelError, OutputError, SettingsError
from s2osc.pipeline.storage import (
    as_tensors,
    describe_network,
    network_tensors,
    read_network,
    read_scaling,
    scaling_arrays,
)
from s2osc.pipeline.teacher import Teacher
from s2osc.settings import change, flatten
from s2osc.stream.history import WindowRecord
from s2osc.stream.learner import Incremental, Knowledge
from s2osc.stream.memory import Memory
from s2osc.stream.originals import Originals
from s2osc.stream.state import KnownClass, Questions, StreamFacts, StreamState, Waiting
from s2osc.types import UNSURE, Labelled
from s2osc.version import __version__

FORMAT = 2
POINTER, MANIFEST, LOCK = "stream.json", "manifest.json", ".lock"
OBJECT, VERSION = "objects/{}.safetensors", "versions/{}.json"
OURS = re.compile(r"objects/[0-9a-f]{64}\.safetensors|versions/[0-9]+\.json")
LARGEST_OBJECT = 2**40
ASKED = ("names", "why", "answers", "texts")
"""Of the questions, what a description holds."""
COPY_AGAIN = "copy the stream's folder again"
AS_IT_WAS = "the stream is as it was: make room, or mend the folder"


class Version(NamedTuple):
    """One confirmed state, and the change that led to it."""

    number: int
    sha256: str
    what: str


class Pointer(NamedTuple):
    """The content of ``stream.json``."""

    current: Version
    previous: Version | None  # None: there is nothing to undo
    last: int  # the highest number given so far: none is given twice


class OwnedFiles(NamedTuple):
    """The files that a store wrote, and whether any version was ever confirmed."""

    names: frozenset[str]
    confirmed: bool


@dataclass(frozen=True)
class Store:
    """A stream's folder while its lock is held."""

    folder: Path

    @property
    def next_number(self) -> int:
        """The number of the version that is written next: one whose place is free, or ours."""
        number = read_pointer(self.folder).last + 1 if holds_stream(self.folder) else 1
        listed = _manifest(self.folder).names
        while (name := VERSION.format(number)) not in listed and (self.folder / name).exists():
            number += 1
        return number

    def read(self, device: str = "cpu") -> StreamState:
        return read_state(self.folder, device)

    def write(self, state: StreamState, what: str) -> Version:
        """Make ``state`` the current one; ``what`` names the change."""
        version = self.prepare(state, what)
        self.confirm(version)
        return version

    def prepare(self, state: StreamState, what: str) -> Version:
        """Put a state on the disk without making it the current one."""
        number, objects, contents = self.next_number, {}, {}
        for role, tensors in _tensors(state).items():
            content = save_tensors(tensors)
            objects[role] = hashlib.sha256(content).hexdigest()
            contents[OBJECT.format(objects[role])] = content
        described = _as_json(_describe(state, objects) | {"version": number, "what": what})
        contents[VERSION.format(number)] = described
        with files.writing(self.folder, AS_IT_WAS):
            # First the list, so that leftovers of a killed process are known as ours.
            _list_files(self.folder, _manifest(self.folder), contents)
            for name, content in contents.items():
                _put(self.folder / name, content)
        return Version(number, hashlib.sha256(described).hexdigest(), what)

    def confirm(self, version: Version) -> None:
        """Make a prepared version the current one."""
        before = read_pointer(self.folder).current if holds_stream(self.folder) else None
        self._point(Pointer(version, before, version.number))

    def undo(self) -> str:
        """Go back to the version before the current one; return what was undone."""
        pointer = read_pointer(self.folder)
        if pointer.previous is None:
            raise DataError(
                f"there is nothing more to undo in {self.folder}: "
                "only the last change can be taken back"
            )
        _read_version(self.folder, pointer.previous, "cpu")  # or raise that it is damaged
        self._point(Pointer(pointer.previous, None, pointer.last))
        return pointer.current.what

    def _point(self, pointer: Pointer) -> None:
        values = {
            "format": FORMAT,
            "s2osc": __version__,
            **to_plain(pointer),
        }
        with files.writing(self.folder, AS_IT_WAS):
            files.write_whole(self.folder / POINTER, _as_json(values))
        _tidy(self.folder)


@contextmanager
def open_store(folder: Path, *, make: bool = False) -> Iterator[Store]:
    """The stream in ``folder``, to be worked on by this process alone."""
    is_new = make and not folder.exists()
    if make:
        check_may_begin(folder)
        with files.writing(folder, "give a folder you may write to"):
            files.make_folder(folder)
    else:
        read_pointer(folder)  # raises before a lock file is made
    busy = f"another process works on the stream in {folder}; wait until it is done"
    try:
        with files.lock(folder / LOCK, busy):
            try:
                yield Store(folder)
            finally:
                _tidy(folder)
    except BaseException:
        if make and not holds_stream(folder):
            _leave(folder, remove=is_new)
        raise


def check_may_begin(folder: Path) -> None:
    """Refuse a folder that holds anything but a stream, or what a killed ``init`` left."""
    if holds_stream(folder) or not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder} is a file; give a new or empty folder")
    manifest = _read_manifest(folder)
    if manifest and manifest.confirmed:
        raise OutputError(
            f"{folder} holds a stream whose {POINTER} is missing; put that file back from a copy, "
            "or give another folder"
        )
    names = [MANIFEST, POINTER, *(manifest.names if manifest else ())]
    ours = {folder / name for name in names} | {files.part_of(folder / name) for name in names}
    for path in sorted(folder.rglob("*")):
        is_lock = path == folder / LOCK and path.is_file() and not path.stat().st_size
        if path not in ours and not is_lock and not (manifest and path.is_dir()):
            raise OutputError(
                f"{folder} is not empty: it holds {path.name!r}; give a new or empty folder"
            )


def _leave(folder: Path, *, remove: bool) -> None:
    """Take away what a stream that never began has left in its folder."""
    with suppress(OSError):
        for name in (MANIFEST, LOCK):
            (folder / name).unlink(missing_ok=True)
        for name in ("objects", "versions"):
            if (folder / name).is_dir():
                (folder / name).rmdir()
        if remove:
            folder.rmdir()


def holds_stream(folder: Path) -> bool:
    return (folder / POINTER).is_file()


def read_state(folder: Path, device: str = "cpu") -> StreamState:
    """The current state, read without the lock."""
    return read_current(folder, device)[1]


def read_current(folder: Path, device: str = "cpu") -> tuple[Pointer, StreamState]:
    """The versions there are, and the current state.

    No lock is needed: a version may vanish while it is read, since another process goes on; then
    the next is read.
    """
    while True:
        pointer = read_pointer(folder)
        try:
            return pointer, _read_version(folder, pointer.current, device)
        except ModelError:
            if read_pointer(folder) == pointer:
                raise


def read_pointer(folder: Path) -> Pointer:
    """Which versions there are, or one line on what is wrong with the folder."""
    path = folder / POINTER
    if not path.is_file():
        raise ModelError(
            f"{folder} holds no stream: {POINTER} is not there; "
            "give the folder that `s2osc stream init --state` made"
        )
    values = files.read_json(path, COPY_AGAIN, ModelError)
    with files.guarded(path, COPY_AGAIN, ModelError):
        wanted = int(values["format"])
        if wanted > FORMAT:
            raise ModelError(
                f"the stream in {folder} is of format {wanted}, written by s2osc "
                f"{values.get('s2osc', '?')}; this is {__version__}, which reads up to format "
                f"{FORMAT}: install a newer s2osc"
            )
        found = {name: values[name] for name in Pointer._fields}
        return fields_from_plain(Pointer, found, "it")


# --- writing ---------------------------------------------------------------------------------


def _put(path: Path, content: bytes) -> None:
    """Write a file unless it is there as it should be."""
    if not (path.is_file() and path.read_bytes() == content):
        files.write_whole(path, content)


def _read_manifest(folder: Path) -> OwnedFiles | None:
    """The list of files that the store wrote; None: there is none that can be read."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        values = files.read_json(path, COPY_AGAIN, ModelError)
        names = [str(name) for name in values["files"]]
    except (ModelError, LookupError, TypeError):
        return None
    # Names of any other form are not ours, whoever put them there.
    ours = frozenset(name for name in names if OURS.fullmatch(name))
    return OwnedFiles(ours, confirmed=bool(values.get("confirmed", True)))


def _manifest(folder: Path) -> OwnedFiles:
    """The same; a stream that has none owns what its versions lead to."""
    found = _read_manifest(folder)
    if found is None and holds_stream(folder):
        return OwnedFiles(frozenset(_reachable(folder)), confirmed=True)
    return found or OwnedFiles(frozenset(), confirmed=False)


def _list_files(folder: Path, before: OwnedFiles, names: Iterable[str]) -> None:
    """Note that files are ours, before they are written."""
    taken = [name for name in names if name not in before.names and (folder / name).exists()]
    for name in taken:
        if OBJECT.format(_sha256_of(folder / name)) != name:
            raise OutputError(f"{folder / name} is no file of this stream; move it elsewhere")
    _write_manifest(folder, OwnedFiles(before.names.union(names), before.confirmed))


def _write_manifest(folder: Path, manifest: OwnedFiles) -> None:
    values = {"files": sorted(manifest.names), "confirmed": manifest.confirmed}
    _put(folder / MANIFEST, files.as_json(values))


def _reachable(folder: Path) -> set[str]:
    """The files that the current version and the one before it lead to."""
    pointer, names = read_pointer(folder), set()
    for version in filter(None, (pointer.current, pointer.previous)):
        described = _read_description(folder, version)
        names |= {VERSION.format(version.number), *_object_names(described)}
    return names


def _tidy(folder: Path) -> None:
    """Remove our own versions and objects that nothing leads to."""
    manifest, is_there = _read_manifest(folder), holds_stream(folder)
    if manifest is None or (manifest.confirmed and not is_there):
        return
    try:
        keep = _reachable(folder) if is_there else set()
    except ModelError:
        return  # what is damaged may still be mended with what lies here
    with suppress(OSError):
        for name in manifest.names:
            left = [files.part_of(folder / name), *([] if name in keep else [folder / name])]
            for path in filter(Path.exists, left):
                path.unlink()
        _write_manifest(folder, OwnedFiles(manifest.names & keep, confirmed=is_there))


def _as_json(values: JsonObject) -> bytes:
    return (json.dumps(values, indent=1) + "\n").encode()


def _describe(state: StreamState, objects: dict[str, str]) -> JsonObject:
    questions = state.questions
    return {
        "s2osc": __version__,
        "seed": state.seed,
        "classes": to_plain(state.classes),
        "settings": flatten(state.learner),
        "networks": {"teacher": describe_network(state.knowledge.teacher.network)},
        "waiting": state.waiting.labels,
        "asked": questions and {name: getattr(questions, name) for name in ASKED},
        "history": to_plain(state.history),
        "facts": to_plain(state.facts),
        "former": state.former,
        "originals": state.originals and state.originals.texts,
        "objects": objects,
    }


def _tensors(state: StreamState) -> dict[str, dict[str, torch.Tensor]]:
    """Every array of a state: those that change together lie in one object."""
    teacher, memory = state.knowledge.teacher, state.knowledge.memory
    scaling = scaling_arrays(state.knowledge.scaling)
    found = {
        "teacher": as_tensors({"centres": teacher.centres} | scaling)
        | network_tensors("teacher", teacher.network),
        "memory": as_tensors(
            {
                "exemplars.inputs": memory.exemplars.inputs,
                "exemplars.labels": memory.exemplars.labels,
                "seeds.inputs": memory.seeds.inputs,
                "seeds.labels": memory.seeds.labels,
            }
        ),
        "aside": as_tensors({"waiting": state.waiting.inputs, "ignored": state.ignored}),
    }
    if state.questions is not None:
        arrays = {
            name: getattr(state.questions, name) for name in ("inputs", "groups", "suggested")
        }
        found["asked"] = as_tensors({f"asked.{name}": array for name, array in arrays.items()})
    if state.originals is not None:
        arrays = {"originals.keys": state.originals.keys}
        if state.originals.texts is None:
            arrays["originals.items"] = state.originals.items
        found["originals"] = as_tensors(arrays)
    return found


# --- reading ---------------------------------------------------------------------------------


def _object_names(described: JsonObject) -> list[str]:
    names = [OBJECT.format(sha256) for sha256 in described["objects"].values()]
    for name in names:
        if not OURS.fullmatch(name):
            raise ValueError(f"an object is called {name!r}")
    return names


def _sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_checked(path: Path, sha256: str) -> bytes:
    content = files.read_whole(path, largest=LARGEST_OBJECT, error=ModelError)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelError(
            f"{path} is damaged: its checksum is not the one it was written with; {COPY_AGAIN}"
        )
    return content


def _read_description(folder: Path, version: Version) -> JsonObject:
    path = folder / VERSION.format(version.number)
    content = _read_checked(path, version.sha256)
    with files.guarded(path, COPY_AGAIN, ModelError):
        described = files.parse_json(content)
        _object_names(described)  # raises where they are not those of objects
        return described


def _read_version(folder: Path, version: Version, device: str) -> StreamState:
    described = _read_description(folder, version)
    with files.guarded(folder / VERSION.format(version.number), COPY_AGAIN, ModelError):
        tensors: dict[str, torch.Tensor] = {}
        for name in _object_names(described):
            path = folder / name
            tensors |= load_tensors(_read_checked(path, path.stem))
        try:
            return _assemble(described, tensors, device)
        except (SettingsError, DataError) as error:  # no fault of the user's own settings or items
            raise ValueError(str(error)) from error


def _assemble(values: JsonObject, tensors: dict[str, torch.Tensor], device: str) -> StreamState:
    def array(name: str) -> np.ndarray:
        return tensors[name].numpy()

    def texts(found: JsonObject, name: str) -> tuple[str, ...]:
        return from_plain(tuple[str, ...], found[name], name)

    teacher = Teacher(read_network("teacher", values, tensors, device), array("centres"))
    memory = Memory(
        Labelled(array("exemplars.inputs"), array("exemplars.labels")),
        Labelled(array("seeds.inputs"), array("seeds.labels")),
    )
    asked = values["asked"]
    state = StreamState(
        learner=change(Incremental(), values["settings"]),
        knowledge=Knowledge(teacher, memory, scaling=read_scaling(tensors, teacher.network)),
        classes=from_plain(tuple[KnownClass, ...], values["classes"], "a class"),
        seed=int(values["seed"]),
        waiting=Waiting(array("waiting"), texts(values, "waiting")),
        ignored=array("ignored"),
        history=from_plain(tuple[WindowRecord, ...], values["history"], "a window of the history"),
        questions=asked
        and Questions(
            names=texts(asked, "names"),
            inputs=array("asked.inputs"),
            groups=array("asked.groups"),
            suggested=array("asked.suggested"),
            why=texts(asked, "why"),
            answers=texts(asked, "answers"),
            texts=texts(asked, "texts") if asked.get("texts") is not None else None,
        ),
        facts=from_plain(StreamFacts, values["facts"], "its facts"),
        former=from_plain(dict[str, str], values.get("former", {}), "its former names"),
        originals=_read_originals(values, tensors),
    )
    _check_fit(state)
    return state


def _read_originals(values: JsonObject, tensors: dict[str, torch.Tensor]) -> Originals | None:
    """None also in streams of earlier versions, which have none."""
    if "originals.keys" not in tensors:
        return None
    if "originals.items" in tensors:
        items = tensors["originals.items"].numpy()
    else:
        texts = from_plain(tuple[str, ...], values["originals"], "the texts of a stream")
        items = np.array(texts, object)
    return Originals.restored(tensors["originals.keys"].numpy(), items)


def _check_classes(what: str, labels: np.ndarray, n_classes: int, *, lowest: int = 0) -> None:
    """Refuse labels that are no classes of the stream."""
    is_whole = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not is_whole or np.any((labels < lowest) | (labels >= n_classes)):
        raise ValueError(f"{what} have labels other than {lowest} to {n_classes - 1}")


def _check_fit(state: StreamState) -> None:
    """Refuse parts of different states put together."""
    knowledge, waiting, questions = state.knowledge, state.waiting, state.questions
    n_classes = knowledge.teacher.n_classes
    _check_classes("exemplars", knowledge.memory.exemplars.labels, n_classes)
    _check_classes("seeds", knowledge.memory.seeds.labels, n_classes)
    if questions:
        _check_classes("questions", questions.suggested, n_classes, lowest=UNSURE)
        _check_classes("groups", questions.groups, len(questions.inputs), lowest=-1)
    pairs = [
        ("class names", len(state.classes), n_classes),
        ("outputs", knowledge.teacher.network.head.out_features, n_classes),
        ("classes in memory", knowledge.memory.n_classes, n_classes),
        ("labels that wait", len(waiting.labels), len(waiting.inputs)),
    ]
    if questions:
        parts = (
            questions.names,
            questions.why,
            questions.answers,
            questions.groups,
            questions.suggested,
            *([] if questions.texts is None else [questions.texts]),
        )
        pairs += [("questions", len(part), len(questions.inputs)) for part in parts]
    for what, found, wanted in pairs:
        if found != wanted:
            raise ValueError(f"{found} {what} where there should be {wanted}")
