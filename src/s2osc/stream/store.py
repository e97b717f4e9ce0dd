"""A stream on disk: every confirmed change is a version, and the last one can be undone.

    stream.json                    which version is current, and which was before it
    versions/<number>.json         one state: classes, settings, history, questions, its objects
    objects/<sha256>.safetensors   arrays of states, by their content
    .lock                          held by the process that works on the stream

Only ``stream.json`` is ever replaced, at once, after all that it leads to lies on the disk. So a
process that is killed leaves the version before or the one after, whole. Nothing here is ever run:
arrays are plain tensors, everything else is JSON.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from s2osc.errors import DataError, ModelError, OutputError
from s2osc.pipeline.storage import as_tensors, describe_network, network_tensors, read_network
from s2osc.pipeline.teacher import Teacher
from s2osc.settings import change, flatten
from s2osc.stream.incremental import IncrementalS2OSC, Knowledge
from s2osc.stream.memory import Memory
from s2osc.stream.state import Asked, KnownClass, StreamState, Waiting
from s2osc.types import Labelled
from s2osc.version import __version__

FORMAT = 1
POINTER, VERSIONS, OBJECTS, LOCK = "stream.json", "versions", "objects", ".lock"
UNREADABLE = (
    *(AttributeError, LookupError, TypeError, ValueError, ArithmeticError),
    *(RuntimeError, RecursionError, SafetensorError),
)
"""Whatever a file that is not as it was written makes its readers raise."""
COPY_AGAIN = "copy the stream's folder again"


class Version(NamedTuple):
    """One confirmed state, and the change that led to it."""

    number: int
    sha256: str
    what: str


class Pointer(NamedTuple):
    """What ``stream.json`` says."""

    current: Version
    previous: Version | None  # None: there is nothing to undo
    last: int  # the highest number given so far: none is given twice


@dataclass(frozen=True)
class Store:
    """A stream's folder while its lock is held."""

    folder: Path

    @property
    def next_number(self) -> int:
        """The number of the version that is written next."""
        return read_pointer(self.folder).last + 1 if holds_stream(self.folder) else 1

    def read(self, device: str = "cpu") -> StreamState:
        return read_state(self.folder, device)

    def write(self, state: StreamState, what: str) -> Version:
        """Make ``state`` the current one; ``what`` says what changed."""
        version = self.prepare(state, what)
        self.confirm(version)
        return version

    def prepare(self, state: StreamState, what: str) -> Version:
        """Put a state on the disk without making it the current one."""
        number = self.next_number
        with _writing(self.folder):
            objects = {}
            for role, tensors in _tensors(state).items():
                content = save_tensors(tensors)
                objects[role] = hashlib.sha256(content).hexdigest()
                _write_whole(_object_path(self.folder, objects[role]), content)
            content = _as_json(_describe(state, objects) | {"version": number, "what": what})
            _write_whole(_version_path(self.folder, number), content)
        return Version(number, hashlib.sha256(content).hexdigest(), what)

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
        _read_version(self.folder, pointer.previous, "cpu")  # or say that it is damaged
        self._point(Pointer(pointer.previous, None, pointer.last))
        return pointer.current.what

    def _point(self, pointer: Pointer) -> None:
        told = {
            "format": FORMAT,
            "s2osc": __version__,
            "current": pointer.current._asdict(),
            "previous": pointer.previous and pointer.previous._asdict(),
            "last": pointer.last,
        }
        with _writing(self.folder):
            _write_whole(self.folder / POINTER, _as_json(told))
        _tidy(self.folder)


@contextmanager
def open_store(folder: Path, *, make: bool = False) -> Iterator[Store]:
    """The stream in ``folder``, to be worked on by this process alone."""
    if not make:
        read_pointer(folder)  # or say what is wrong with the folder, before a lock lies in it
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise OutputError(
            f"another process works on the stream in {folder}; wait until it is done"
        ) from error
    except OSError as error:
        raise OutputError(
            f"cannot write to {folder}: {error.strerror}; give a folder you may write to"
        ) from error
    try:
        yield Store(folder)
    finally:
        _tidy(folder)
        lock.release()


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
    try:
        told = json.loads(path.read_bytes())
        found = int(told["format"])
        if found > FORMAT:
            raise ModelError(
                f"the stream in {folder} is of format {found}, written by s2osc "
                f"{told.get('s2osc', '?')}; this is {__version__}, which reads up to format "
                f"{FORMAT}: install a newer s2osc"
            )
        current, previous = _version_of(told["current"]), told["previous"]
        return Pointer(current, previous and _version_of(previous), int(told["last"]))
    except ModelError:
        raise
    except (OSError, *UNREADABLE) as error:
        raise ModelError(f"{path} is damaged ({_reason(error)}); {COPY_AGAIN}") from error


def _version_of(told: dict[str, Any]) -> Version:
    return Version(int(told["number"]), str(told["sha256"]), str(told["what"]))


# --- writing ---------------------------------------------------------------------------------


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot write to {folder}: {error.strerror or error}; "
            "the stream is as it was: make room, or mend the folder"
        ) from error


def _write_whole(path: Path, content: bytes) -> None:
    """A file that is there with all of its content, also after a power cut, or not at all."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(exist_ok=True)
    part = _part(path)
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # where folders cannot be opened, and names are kept with files
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _tidy(folder: Path) -> None:
    """Remove versions and objects that nothing leads to, those of killed processes among them."""
    kept: set[Path] = set()
    if holds_stream(folder):
        try:
            pointer = read_pointer(folder)
            for version in filter(None, (pointer.current, pointer.previous)):
                told = _read_description(folder, version)
                kept.add(_version_path(folder, version.number))
                kept |= {_object_path(folder, sha256) for sha256 in told["objects"].values()}
        except (ModelError, *UNREADABLE):
            return  # what is damaged may still be mended with what lies here
    parts = [path for place in ("", OBJECTS, VERSIONS) for path in (folder / place).glob(".*.part")]
    ours = [
        *(folder / OBJECTS).glob(f"{'[0-9a-f]' * 64}.safetensors"),
        *(folder / VERSIONS).glob("[0-9]*.json"),
    ]
    for path in [*parts, *(path for path in ours if path not in kept)]:
        with suppress(OSError):
            path.unlink()


def _as_json(told: dict[str, Any]) -> bytes:
    return (json.dumps(told, indent=1) + "\n").encode()


def _describe(state: StreamState, objects: dict[str, str]) -> dict[str, Any]:
    asked = state.asked
    return {
        "s2osc": __version__,
        "seed": state.seed,
        "classes": [asdict(known) for known in state.classes],
        "settings": flatten(state.learner),
        "networks": {"teacher": describe_network(state.knowledge.teacher.network)},
        "waiting": state.waiting.labels,
        "asked": asked and {"names": asked.names, "why": asked.why, "answers": asked.answers},
        "history": state.history,
        "facts": state.facts,
        "former": state.former,
        "objects": objects,
    }


def _tensors(state: StreamState) -> dict[str, dict[str, torch.Tensor]]:
    """Every array of a state: those that change together lie in one object."""
    teacher, memory, asked = state.knowledge.teacher, state.knowledge.memory, state.asked
    found = {
        "teacher": as_tensors({"centres": teacher.centres})
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
    if asked is not None:
        arrays = {name: getattr(asked, name) for name in ("inputs", "groups", "suggested")}
        found["asked"] = as_tensors({f"asked.{name}": array for name, array in arrays.items()})
    return found


# --- reading ---------------------------------------------------------------------------------


def _version_path(folder: Path, number: int) -> Path:
    return folder / VERSIONS / f"{number}.json"


def _object_path(folder: Path, sha256: str) -> Path:
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(f"an object is called {sha256!r}")
    return folder / OBJECTS / f"{sha256}.safetensors"


def _read_checked(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}; {COPY_AGAIN}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelError(
            f"{path} is damaged: its checksum is not the one it was written with; {COPY_AGAIN}"
        )
    return content


def _read_description(folder: Path, version: Version) -> dict[str, Any]:
    told = json.loads(_read_checked(_version_path(folder, version.number), version.sha256))
    if not isinstance(told, dict):
        raise TypeError("it holds no state")
    return told


def _read_version(folder: Path, version: Version, device: str) -> StreamState:
    try:
        told = _read_description(folder, version)
        tensors: dict[str, torch.Tensor] = {}
        for sha256 in told["objects"].values():
            tensors |= load_tensors(_read_checked(_object_path(folder, sha256), sha256))
        return _assemble(told, tensors, device)
    except ModelError:
        raise
    except UNREADABLE as error:
        path = _version_path(folder, version.number)
        raise ModelError(
            f"{path} does not tell of a stream ({_reason(error)}); {COPY_AGAIN}"
        ) from error


def _reason(error: Exception) -> str:
    if type(error) is RuntimeError:  # torch then lists every tensor
        return "the network has other sizes"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _assemble(told: dict[str, Any], tensors: dict[str, torch.Tensor], device: str) -> StreamState:
    def array(name: str) -> np.ndarray:
        return tensors[name].numpy()

    teacher = Teacher(read_network("teacher", told, tensors, device), array("centres"))
    memory = Memory(
        Labelled(array("exemplars.inputs"), array("exemplars.labels")),
        Labelled(array("seeds.inputs"), array("seeds.labels")),
    )
    asked = told["asked"]
    state = StreamState(
        learner=change(IncrementalS2OSC(), told["settings"]),
        knowledge=Knowledge(teacher, memory),
        classes=tuple(
            KnownClass(str(known["name"]), int(known["since"]), int(known["n_labels"]))
            for known in told["classes"]
        ),
        seed=int(told["seed"]),
        waiting=Waiting(array("waiting"), tuple(told["waiting"])),
        ignored=array("ignored"),
        history=tuple(dict(entry) for entry in told["history"]),
        asked=asked
        and Asked(
            names=tuple(asked["names"]),
            inputs=array("asked.inputs"),
            groups=array("asked.groups"),
            suggested=array("asked.suggested"),
            why=tuple(asked["why"]),
            answers=tuple(asked["answers"]),
        ),
        facts=dict(told["facts"]),
        former={str(name): str(now) for name, now in told.get("former", {}).items()},
    )
    _check_fit(state)
    return state


def _check_fit(state: StreamState) -> None:
    """Refuse parts of different states put together."""
    knowledge, waiting, asked = state.knowledge, state.waiting, state.asked
    n_classes = knowledge.teacher.n_classes
    pairs = [
        ("class names", len(state.classes), n_classes),
        ("outputs", knowledge.teacher.network.head.out_features, n_classes),
        ("classes in memory", knowledge.memory.n_classes, n_classes),
        ("labels that wait", len(waiting.labels), len(waiting.inputs)),
    ]
    if asked:
        parts = (asked.names, asked.why, asked.answers, asked.groups, asked.suggested)
        pairs += [("questions", len(part), len(asked.inputs)) for part in parts]
    for what, found, wanted in pairs:
        if found != wanted:
            raise ValueError(f"{found} {what} where there should be {wanted}")
