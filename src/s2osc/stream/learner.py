"""Learners: recipes that recognise what is new in a window and learn from the answers to it.

    Incremental   I-S2OSC: f is fine-tuned, a g of its own is trained for each window
    Refit         any method, fitted anew for each window to a memory and what was answered last
    Prototyping   CPE, whose network and prototypes go on learning
    Sketching     SENC-MaS, whose sketches take in what was answered
    Static        any method, fitted once and never updated

The contract is that of a method: a learner is a frozen recipe, and what it has learnt is a state
that is never changed in place. Its classes are numbered in the order in which it came to know them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from s2osc.baselines import cpe, senc_mas
from s2osc.baselines.cpe import CPE, PrototypeRecogniser
from s2osc.baselines.senc_mas import SENCMaS, Sketches
from s2osc.pipeline.method import S2OSCMethod, Solution
from s2osc.seeding import rng
from s2osc.stream.incremental import IncrementalS2OSC, Knowledge
from s2osc.stream.memory import Memory, MemorySettings, joined, remember
from s2osc.stream.update import Account, UpdateSettings
from s2osc.types import Answer, Labelled, Method, Predictions, Recogniser

EXEMPLARS = MemorySettings(seeds=0.0)
"""The memory of methods that know no seeds."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What was recognised in a window."""

    answer: Predictions
    embeddings: np.ndarray  # (n, d) of the window, to choose questions in
    groups: np.ndarray | None  # (n,) -1 where an item is called known; None: the method has none
    recogniser: Recogniser  # that answered


class Learner(Protocol):
    """What every learner promises. ``state`` is its own affair, made by ``begin`` and ``learn``."""

    @property
    def method(self) -> Any:
        """The method for single pools behind it."""

    @property
    def updates(self) -> bool:
        """Whether it learns anything after the beginning."""

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Any: ...

    def recognise(
        self, state: Any, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Seen: ...

    def learn(
        self, state: Any, seen: Seen, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Any:
        """``seen`` is the window the answers are about; new classes take the next numbers."""

    def conclude(
        self, state: Any, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Seen | None:
        """The model after the last window, where it takes a pool to fit one; else None."""

    def name_known(self, state: Any, seen: Seen | None, inputs: np.ndarray) -> np.ndarray:
        """(n,) the class each item would be if it were of a known one."""

    def account(self, state: Any) -> dict[str, Any] | None:
        """What the last update did, where that is known."""


def look(recogniser: Recogniser, window: np.ndarray) -> Seen:
    """What a fitted method sees in a window."""
    answer = recogniser.answer if isinstance(recogniser, Solution) else recogniser.predict(window)
    return Seen(
        answer,
        recogniser.embeddings if isinstance(recogniser, Solution) else recogniser.features(window),
        answer.groups if isinstance(answer, Answer) else None,
        recogniser,
    )


def nearest_known(recogniser: Recogniser, inputs: np.ndarray) -> np.ndarray:
    """The best known class of each item; a method that has none for some says so, and is wrong."""
    said = recogniser.predict(inputs)
    return said.labels if said.nearest is None else said.nearest


# Ours


class Learnt(NamedTuple):
    """Knowledge, and what the last update did to it."""

    knowledge: Knowledge
    account: Account | None = None


@dataclass(frozen=True)
class Incremental:
    """I-S2OSC, with seeds or in the paper's form."""

    method: S2OSCMethod
    update: UpdateSettings = UpdateSettings()
    memory: MemorySettings = MemorySettings()

    @property
    def updates(self) -> bool:
        return True

    @property
    def ours(self) -> IncrementalS2OSC:
        return IncrementalS2OSC(self.method, self.update, self.memory)

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Learnt:
        return Learnt(self.ours.begin(known, seed=seed, device=device))

    def recognise(
        self, state: Learnt, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Seen:
        return look(self.ours.recognise(state.knowledge, window, seed=seed, device=device), window)

    def learn(
        self, state: Learnt, seen: Seen, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Learnt:
        return Learnt(*self.ours.learn(state.knowledge, answers, seed=seed, device=device))

    def conclude(
        self, state: Learnt, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> None:
        """f is there without a window."""

    def name_known(self, state: Learnt, seen: Seen | None, inputs: np.ndarray) -> np.ndarray:
        return state.knowledge.name_known(inputs)

    def account(self, state: Learnt) -> dict[str, Any] | None:
        return state.account.as_dict() if state.account else None


# Methods for single pools


class Kept(NamedTuple):
    """What a method is fitted to next: what is remembered, and what has just come."""

    memory: Memory | None
    fresh: Labelled

    @property
    def items(self) -> Labelled:
        return self.fresh if self.memory is None else joined(self.memory.exemplars, self.fresh)


def remembered(kept: Kept, recogniser: Recogniser, settings: MemorySettings, seed: int) -> Memory:
    """The memory with what has just been learnt in it, as the recogniser sees it."""
    nothing = Labelled(kept.fresh.inputs[:0], kept.fresh.labels[:0])
    features = recogniser.features(kept.fresh.inputs)
    return remember(kept.memory, kept.fresh, features, nothing, settings, rng(seed, "memory"))


@dataclass(frozen=True)
class Refit:
    """A method fitted anew for each window, to the memory and to what was answered last."""

    method: Method
    memory: MemorySettings = EXEMPLARS

    @property
    def updates(self) -> bool:
        return True

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Kept:
        return Kept(None, known)

    def recognise(self, state: Kept, window: np.ndarray, *, seed: int, device: str = "cpu") -> Seen:
        return look(self.method.fit(state.items, window, seed=seed, device=device), window)

    def learn(
        self, state: Kept, seen: Seen, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Kept:
        return Kept(remembered(state, seen.recogniser, self.memory, seed), answers)

    def conclude(self, state: Kept, window: np.ndarray, *, seed: int, device: str = "cpu") -> Seen:
        """One more fit, for which the last window is the pool."""
        return self.recognise(state, window, seed=seed, device=device)

    def name_known(self, state: Kept, seen: Seen | None, inputs: np.ndarray) -> np.ndarray:
        assert seen is not None, "a method is fitted to a window before it is asked"
        return nearest_known(seen.recogniser, inputs)

    def account(self, state: Kept) -> None:
        """Nothing is measured while a method is fitted anew."""


class Prototyped(NamedTuple):
    """CPE as it is, and what it remembers."""

    model: PrototypeRecogniser
    memory: Memory


@dataclass(frozen=True)
class Prototyping:
    """CPE: the network learns on from memory and answers, and its prototypes with it."""

    method: CPE
    memory: MemorySettings = EXEMPLARS

    @property
    def updates(self) -> bool:
        return True

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Prototyped:
        model = self.method.fit(known, known.inputs[:0], seed=seed, device=device)
        return Prototyped(model, remembered(Kept(None, known), model, self.memory, seed))

    def recognise(
        self, state: Prototyped, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Seen:
        return look(state.model, window)

    def learn(
        self, state: Prototyped, seen: Seen, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Prototyped:
        kept = Kept(state.memory, answers)
        model = cpe.extend_prototypes(
            state.model, kept.items, self.method, seed=seed, device=device
        )
        return Prototyped(model, remembered(kept, model, self.memory, seed))

    def conclude(
        self, state: Prototyped, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> None:
        """The network is there without a window."""

    def name_known(self, state: Prototyped, seen: Seen | None, inputs: np.ndarray) -> np.ndarray:
        return nearest_known(state.model, inputs)

    def account(self, state: Prototyped) -> None:
        """Nothing is measured while the network learns on."""


@dataclass(frozen=True)
class Sketching:
    """SENC-MaS: sketches take in what was answered, and need no memory."""

    method: SENCMaS

    @property
    def updates(self) -> bool:
        return True

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Sketches:
        return self.method.fit(known, known.inputs[:0], seed=seed, device=device)

    def recognise(
        self, state: Sketches, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Seen:
        return look(state, window)

    def learn(
        self, state: Sketches, seen: Seen, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Sketches:
        return senc_mas.extend_sketches(state, answers.inputs, answers.labels, seed=seed)

    def conclude(
        self, state: Sketches, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> None:
        """The sketches are there without a window."""

    def name_known(self, state: Sketches, seen: Seen | None, inputs: np.ndarray) -> np.ndarray:
        return nearest_known(state, inputs)

    def account(self, state: Sketches) -> None:
        """Nothing is measured while sketches grow."""


@dataclass(frozen=True)
class Static:
    """A method that is fitted once, to labelled items alone, and answers every window alike."""

    method: Method

    @property
    def updates(self) -> bool:
        return False

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Recogniser:
        return self.method.fit(known, known.inputs[:0], seed=seed, device=device)

    def recognise(
        self, state: Recogniser, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Seen:
        return look(state, window)

    def learn(
        self, state: Recogniser, seen: Seen, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Recogniser:
        return state

    def conclude(
        self, state: Recogniser, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> None:
        """Nothing has changed."""

    def name_known(self, state: Recogniser, seen: Seen | None, inputs: np.ndarray) -> np.ndarray:
        return nearest_known(state, inputs)

    def account(self, state: Recogniser) -> None:
        """Nothing was updated."""
