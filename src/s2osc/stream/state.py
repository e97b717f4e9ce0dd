"""Everything a stream is between two steps, as values: nothing here is ever changed in place."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from s2osc.codec import JsonObject, fields_from_plain
from s2osc.lazy import lazily
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.model_description import (
    PREPARATIONS,
    Preparation,
    describe_preparation,
    read_preparation,
)
from s2osc.stream.history import SeedAccuracy, WindowRecord
from s2osc.stream.learner import Incremental, Knowledge, Learner
from s2osc.stream.originals import Originals
from s2osc.types import Labelled

stats = lazily("scipy.stats")


@dataclass(frozen=True)
class KnownClass:
    """A class the model knows."""

    name: str
    since: int  # the window after which it joined; 0: known from the beginning
    n_labels: int  # items of it that came with a label so far


@dataclass(frozen=True, eq=False)
class Questions:
    """Of the last window: what may be answered, and what has been."""

    names: tuple[str, ...]  # items asked about, and all others that are in a group
    inputs: np.ndarray  # (m, ...)
    groups: np.ndarray  # (m,) -1: in none
    suggested: np.ndarray  # (m,) the known class the model would give, UNKNOWN: none
    why: tuple[str, ...]  # "" where an item is not asked about, only its group
    answers: tuple[str, ...]  # "" where there is none yet
    texts: tuple[str, ...] | None = None  # what a person reads of each; None: images, vectors

    @property
    def n_asked(self) -> int:
        return sum(1 for why in self.why if why)

    @property
    def n_open(self) -> int:
        """Items asked about that have no answer."""
        pairs = zip(self.why, self.answers, strict=True)
        return sum(1 for why, answer in pairs if why and not answer)

    def group_sizes(self) -> dict[int, int]:
        """Items of each group."""
        sizes = np.bincount(self.groups[self.groups >= 0])
        return {group: int(n) for group, n in enumerate(sizes) if n}


@dataclass(frozen=True, eq=False)
class Waiting:
    """Labelled items of classes that have too few of them to be learnt yet."""

    inputs: np.ndarray  # (n, ...)
    labels: tuple[str, ...]


@dataclass(frozen=True)
class StreamFacts:
    """What the first items were: of files, or of Python."""

    preset: str | None = None  # None: the stream began in Python
    shape: str | None = None  # in words
    preparation: Preparation | None = None
    labels_are_numbers: bool = False  # in Python alone

    def to_json(self) -> JsonObject:
        if self.preset is None:
            return {"labels_are_numbers": self.labels_are_numbers}
        prepared = describe_preparation(self.preparation)
        return {"preset": self.preset, "shape": self.shape, **prepared}

    @classmethod
    def from_json(cls, value: Any, what: str) -> "StreamFacts":
        others = {n: v for n, v in dict(value).items() if n not in PREPARATIONS}
        found = fields_from_plain(cls, others, what)
        return replace(found, preparation=read_preparation({"backbone": None} | value, f"{what},"))


@dataclass(frozen=True, eq=False)
class StreamState:
    """What a stream knows, what its windows brought, and what it has asked."""

    learner: Learner
    knowledge: Any  # the state of the learner; ours is a ``Knowledge``
    classes: tuple[KnownClass, ...]
    seed: int
    waiting: Waiting
    ignored: np.ndarray  # (n, ...) items a person is not interested in
    history: tuple[WindowRecord, ...] = ()
    questions: Questions | None = None  # that are open
    facts: StreamFacts = StreamFacts()
    former: dict[str, str] = field(default_factory=dict)  # names before a renaming -> today's
    originals: Originals | None = None  # photos or texts that items are features of; None: no such

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(known.name for known in self.classes)

    @property
    def incremental(self) -> Incremental:
        """The learner, which is ours in every stream but those of comparisons."""
        assert isinstance(self.learner, Incremental)
        return self.learner

    @property
    def n_windows(self) -> int:
        return len(self.history)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Of an item as it comes: views of stacked vectors among it."""
        return self.ignored.shape[1:]


def audit_classes(knowledge: Knowledge, names: tuple[str, ...]) -> dict[str, SeedAccuracy]:
    """How well f knows each class, by seeds it has never learnt from, with an exact interval."""
    seeds: Labelled = knowledge.memory.seeds
    named = knowledge.name_known(seeds.inputs) if len(seeds) else np.empty(0, int)
    found = {}
    for c, name in enumerate(names):
        mine = seeds.labels == c
        n, right = int(mine.sum()), int(np.sum(named[mine] == c))
        accuracy = None
        if n:  # the interval is about all items still to come: Clopper and Pearson's
            low, high = stats.binomtest(right, n).proportion_ci(method="exact")
            accuracy = Estimate(*(round(float(value), 4) for value in (right / n, low, high)))
        found[name] = SeedAccuracy(n, accuracy)
    return found
