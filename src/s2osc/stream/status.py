"""How a stream on disk stands: what it knows and how well, its windows, questions and memory."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from s2osc.codec import JsonObject, fields_to_plain
from s2osc.stream.history import SeedAccuracy, WindowRecord
from s2osc.stream.state import KnownClass, StreamFacts, StreamState, audit_classes
from s2osc.stream.store import read_current


@dataclass(frozen=True)
class ClassStatus:
    """A class: since when it is known, from how many labels, and how well."""

    known: KnownClass
    seeds: SeedAccuracy

    def to_json(self) -> JsonObject:
        known = self.known
        return {"since": known.since, "labels": known.n_labels, **self.seeds.to_json()}


@dataclass(frozen=True)
class OpenQuestions:
    """How many questions there are about a window."""

    window: int
    asked: int
    open: int  # without an answer
    groups: int


@dataclass(frozen=True)
class MemoryUse:
    """How full the memory is."""

    size: int  # items it may hold
    exemplars: int
    seeds: int
    megabytes: float


@dataclass(frozen=True)
class StreamStatus:
    """What ``s2osc stream status`` shows."""

    version: int
    last_change: str
    can_undo: bool
    classes: tuple[ClassStatus, ...]
    windows: tuple[WindowRecord, ...]
    questions: OpenQuestions | None
    waiting: dict[str, int]  # labels of classes that have too few to be learnt
    memory: MemoryUse
    ignored: int
    facts: StreamFacts

    def to_json(self) -> JsonObject:
        """Every field; classes by their names."""
        by_name = {each.known.name: each.to_json() for each in self.classes}
        return fields_to_plain(self) | {"classes": by_name}


def class_statuses(state: StreamState) -> tuple[ClassStatus, ...]:
    audited = audit_classes(state.knowledge, state.class_names)
    return tuple(ClassStatus(known, audited[known.name]) for known in state.classes)


def read_status(folder: Path) -> StreamStatus:
    """The status of the stream in a folder, which another process may work on."""
    pointer, state = read_current(folder)
    memory, questions, asked = state.knowledge.memory, state.questions, None
    if questions:
        n_groups = len(questions.group_sizes())
        asked = OpenQuestions(state.n_windows, questions.n_asked, questions.n_open, n_groups)
    return StreamStatus(
        version=pointer.current.number,
        last_change=pointer.current.what,
        can_undo=pointer.previous is not None,
        classes=class_statuses(state),
        windows=state.history,
        questions=asked,
        waiting=dict(Counter(state.waiting.labels)),
        memory=MemoryUse(
            size=state.incremental.memory.size,
            exemplars=len(memory.exemplars),
            seeds=len(memory.seeds),
            megabytes=(memory.exemplars.inputs.nbytes + memory.seeds.inputs.nbytes) / 1e6,
        ),
        ignored=len(state.ignored),
        facts=state.facts,
    )
