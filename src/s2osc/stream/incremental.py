"""I-S2OSC: per window the open-set answer with f as it is, then f and the memory grow."""

from dataclasses import dataclass, replace

import numpy as np

from s2osc.nets.training import outputs
from s2osc.pipeline.audit.calibration import hold_back
from s2osc.pipeline.method import S2OSCMethod, Solution, join_seeds
from s2osc.pipeline.presets import FAST
from s2osc.pipeline.teacher import Teacher, train_teacher
from s2osc.progress import Stopwatch
from s2osc.seeding import rng
from s2osc.stream.memory import Memory, MemorySettings, first_of_each, remember
from s2osc.stream.update import Account, UpdateSettings, update_teacher
from s2osc.types import Labelled

UNEVEN = 1.5
"""How much more of one class than of another may speak for the known items of a window."""
FEWEST_SEEDS, FEWEST_EXEMPLARS = 60, 140
"""Of each class; a class that has fewer does not silence the others."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that lasts from one window to the next."""

    teacher: Teacher
    memory: Memory

    @property
    def n_classes(self) -> int:
        return self.teacher.n_classes

    def name_known(self, inputs: np.ndarray) -> np.ndarray:
        """(n,) the known class that f gives each item."""
        return self.teacher.outputs(inputs).logits.argmax(1)


@dataclass(frozen=True)
class IncrementalS2OSC:
    """The method for single pools, and how f and the memory follow the answers.

    Nothing is changed in place: ``learn`` makes new knowledge of the old, which stays whole.
    """

    method: S2OSCMethod = FAST
    update: UpdateSettings = UpdateSettings()
    memory: MemorySettings = MemorySettings()

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Knowledge:
        """f of the first labelled items (Eq. 1), and what is remembered of them."""
        training, seeds = self._hold_back(known, seed=seed)
        method = self.method
        teacher = train_teacher(
            training, method.teacher, method.augmentation, seed=seed, device=device
        )
        return Knowledge(teacher, self._remember(None, teacher, training, seeds, seed=seed))

    def recognise(
        self, knowledge: Knowledge, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Solution:
        """The answer for a window: a g of its own is trained, f stays as it is."""
        exemplars = even_out(knowledge.memory.exemplars, FEWEST_EXEMPLARS)
        pooled = join_seeds(window, even_out(knowledge.memory.seeds, FEWEST_SEEDS))
        return self.method.solve(
            knowledge.teacher, exemplars, pooled, Stopwatch(), seed=seed, device=device
        )

    def learn(
        self, knowledge: Knowledge, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> tuple[Knowledge, Account]:
        """What is known after a person has labelled some items; new classes follow the old."""
        training, seeds = self._hold_back(answers, seed=seed)
        teacher, account = update_teacher(
            *(knowledge.teacher, knowledge.memory, training),
            *(self.update, self.method.augmentation),
            seed=seed,
            device=device,
        )
        memory = self._remember(knowledge.memory, teacher, training, seeds, seed=seed)
        return Knowledge(teacher, memory), replace(account, n_labels=len(answers))

    def _hold_back(self, items: Labelled, *, seed: int) -> tuple[Labelled, Labelled]:
        """Items to learn from, and seeds: of every class the share that the memory has of them."""
        seeds = self.method.seeds
        if seeds.share:
            _, room = self.memory.shares(items.n_classes)
            seeds = replace(seeds, share=self.memory.seeds, per_class=max(1, room))
        held = hold_back(items.labels, seeds, rng(seed, "seeds"))
        stays = np.ones(len(items), bool)
        stays[held] = False
        return (
            Labelled(items.inputs[stays], items.labels[stays]),
            Labelled(items.inputs[held], items.labels[held]),
        )

    def _remember(
        self,
        old: Memory | None,
        teacher: Teacher,
        training: Labelled,
        seeds: Labelled,
        *,
        seed: int,
    ) -> Memory:
        settings = self.memory
        if not self.method.seeds.share:
            settings = replace(settings, seeds=0.0)
        features = outputs(teacher.network, training.inputs, what="choosing exemplars").embeddings
        return remember(old, training, features, seeds, settings, rng(seed, "memory"))


def even_out(items: Labelled, fewest: int) -> Labelled:
    """The first items of each class, so many that none outnumbers another by much.

    How many of a class are remembered says nothing about how many come: a class that joined with
    few labels would look as if most of its items in the window were unknown.

    >>> labels = np.repeat([0, 1], [400, 100])
    >>> np.bincount(even_out(Labelled(np.zeros((500, 1)), labels), 60).labels).tolist()
    [150, 100]
    """
    if not len(items):
        return items
    smallest = np.bincount(items.labels).min()
    return first_of_each(items, max(fewest, int(UNEVEN * smallest)))
