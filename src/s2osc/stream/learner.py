"""Learners: recipes that recognise what is new in a window and learn from the answers to it.

    Incremental   I-S2OSC: f is fine-tuned, a g of its own is trained for each window
    Refit         any method, fitted anew for each window to a memory and what was answered last
    Prototyping   CPE, whose network and prototypes go on learning
    Sketching     SENC-MaS, whose sketches take in what was answered
    Static        any method, fitted once and never updated

The contract is that of a method: a learner is a frozen recipe, and what it has learnt is a state
that is never changed in place. Its classes are numbered in the order in which it came to know them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from s2osc.baselines import cpe, senc_mas
from s2osc.baselines.cpe import CPE, PrototypeRecogniser
from s2osc.baselines.senc_mas import SENCMaS, Sketches
from s2osc.nets.training import outputs
from s2osc.pipeline.audit.held_back import Pool, hold_back, join_held_back
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import KnownOnlyModel
from s2osc.pipeline.presets import FAST
from s2osc.pipeline.scaling import UNSCALED, Scaling, fit_scaling
from s2osc.pipeline.solution import Solution
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.teacher import Teacher, TeacherOutputs, train_teacher
from s2osc.progress import Stopwatch
from s2osc.seeding import rng
from s2osc.settings import change
from s2osc.stream.memory import Memory, MemorySettings, first_of_each, joined, remember
from s2osc.stream.update import Account, UpdateSettings, update_teacher
from s2osc.types import Answer, Labelled, Method, Predictions, Recogniser

LEVEL = 0.05
"""Of the test whether a window holds anything unknown. In a single pool it is stricter: here a
class that is missed stays among the known ones, and a needless question costs a person little."""
EXEMPLARS = MemorySettings(seeds=0.0)
"""The memory of methods that know no seeds."""
UNEVEN = 1.5
"""How much more of one class than of another may speak for the known items of a window."""
FEWEST_SEEDS, FEWEST_EXEMPLARS = 60, 140
"""Of each class; a class that has fewer does not silence the others."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """What a learner recognises in a window."""

    predictions: Predictions
    embeddings: np.ndarray  # (n, d) of the window, to choose questions in
    groups: np.ndarray | None  # (n,) -1 where an item is called known; None: the method has none
    recogniser: Recogniser  # that predicted
    state: Any  # of the learner after the window

    @property
    def solution(self) -> Solution:
        """The answer of our own method, with its audit."""
        assert isinstance(self.recogniser, Solution)
        return self.recogniser


class Learner(Protocol):
    """What every learner promises. ``state`` is its own affair, made by ``begin`` and ``learn``."""

    @property
    def method(self) -> Any:
        """The method for single pools behind it."""

    @property
    def updates(self) -> bool:
        """Whether it learns anything after the beginning."""

    @property
    def needs_window(self) -> bool:
        """Whether it takes a window to make a model of what was learnt."""

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Any: ...

    def recognise(
        self, state: Any, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recognition: ...

    def learn(self, state: Any, answers: Labelled, *, seed: int, device: str = "cpu") -> Any:
        """The state after answers to the window recognised last; new classes follow the old."""

    def name_known(self, state: Any, inputs: np.ndarray) -> np.ndarray:
        """(n,) the class each item would be if it were of a known one."""

    def account(self, state: Any) -> Account | None:
        """What the last update did, where that is known."""


def recognition_by(recogniser: Recogniser, window: np.ndarray, state: Any) -> Recognition:
    """What a fitted method recognises in a window."""
    if isinstance(recogniser, Solution):
        recogniser = _with_scattered(recogniser, window)
        answer = recogniser.answer
        return Recognition(answer, recogniser.embeddings, answer.groups, recogniser, state)
    predictions = recogniser.predict(window)
    groups = predictions.groups if isinstance(predictions, Answer) else None
    return Recognition(predictions, recogniser.features(window), groups, recogniser, state)


def _with_scattered(solution: Solution, window: np.ndarray) -> Solution:
    """With scattered items in the groups nearest to them: a person is asked to name groups."""
    answer, model = solution.answer, solution.model
    if isinstance(model, KnownOnlyModel):
        return solution
    rows = np.flatnonzero(solution.leaves == model.grouping.tree.n_leaves)
    if not len(rows):
        return solution
    leaves = solution.leaves.copy()
    whole = replace(model, grouping=model.grouping.with_scattered())
    leaves[rows] = whole.leaves_of(model.scaling.transform(window[rows]))
    groups = np.where(answer.groups >= 0, model.grouping.group_of_leaf[leaves], -1)
    return replace(solution, leaves=leaves, answer=replace(answer, groups=groups))


# --- ours ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that lasts from one window to the next, and what the last update did to it."""

    teacher: Teacher
    memory: Memory  # of items as they come, not scaled
    account: Account | None = None
    scaling: Scaling = UNSCALED

    def outputs(self, inputs: np.ndarray) -> TeacherOutputs:
        """Those of f for items as they come."""
        return self.teacher.outputs(self.scaling.transform(inputs))

    def name_known(self, inputs: np.ndarray) -> np.ndarray:
        """(n,) the known class that f gives each item."""
        return self.outputs(inputs).logits.argmax(1)


@dataclass(frozen=True)
class Incremental:
    """I-S2OSC, with seeds or in the paper's form: f and the memory follow the answers."""

    method: S2OSCMethod = FAST
    update: UpdateSettings = UpdateSettings()
    memory: MemorySettings = MemorySettings()

    updates: ClassVar[bool] = True
    needs_window: ClassVar[bool] = False

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Knowledge:
        """f of the first labelled items (Eq. 1), and what is remembered of them."""
        training, seeds = self._hold_back(known, seed=seed)
        method, scaling = self.method, fit_scaling(training.inputs)
        teacher, _ = train_teacher(
            scaling.transform_items(training),
            method.teacher,
            method.augmentation,
            seed=seed,
            device=device,
        )
        memory = self._remember(None, teacher, scaling, training, seeds, seed=seed)
        return Knowledge(teacher, memory, scaling=scaling)

    def recognise(
        self, state: Knowledge, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recognition:
        """The answer for a window: a g of its own is trained, f stays as it is."""
        return self.recognise_by(state, window, *self.speaking(state), seed=seed, device=device)

    def speaking(self, state: Knowledge) -> tuple[Labelled, Labelled]:
        """The exemplars and the seeds that speak for the known items of a window."""
        return (
            even_out(state.memory.exemplars, FEWEST_EXEMPLARS),
            even_out(state.memory.seeds, FEWEST_SEEDS),
        )

    def recognise_by(
        self,
        state: Knowledge,
        window: np.ndarray,
        exemplars: Labelled,
        seeds: Labelled,
        *,
        by_raw: Matched | None = None,
        suspected: Callable[[Scaling], Iterator[Matched]] | None = None,
        seed: int,
        device: str,
    ) -> Recognition:
        """The same by these items, which were matched as photos or texts (``by_raw``), or not.

        ``suspected`` are matches by changes of photos or texts that the window may show.
        """
        scaling = state.scaling.completed(window)
        held_back = scaling.transform_items(seeds)
        clock = Stopwatch()
        # Exemplars are chosen to stand for their class, and lie nearer to its middle.
        pooled = hide_in_window(
            scaling.transform(window), held_back, exemplars.n_classes, seed=seed
        )
        with clock("sources"):
            matched = self.method.match(
                scaling.transform_items(exemplars), pooled, scaling, seed=seed
            )
            if by_raw is not None:
                matched = matched.after(by_raw)
        with clock("teacher"):
            of_training = state.teacher.outputs(matched.training.inputs)
        solution = self.method.solve(
            state.teacher,
            of_training,
            matched,
            clock,
            suspected_raw=suspected and partial(suspected, scaling),
            seed=seed,
            device=device,
        )
        return recognition_by(solution.with_scaling(scaling), window, state)

    def learn(
        self, state: Knowledge, answers: Labelled, *, seed: int, device: str = "cpu"
    ) -> Knowledge:
        """What is known after a person has labelled some items; new classes follow the old."""
        training, seeds = self._hold_back(answers, seed=seed)
        scaling = state.scaling.completed(training.inputs)
        teacher, account = update_teacher(
            state.teacher,
            state.memory.scaled(scaling),
            scaling.transform_items(training),
            self.update,
            self.method.augmentation,
            seed=seed,
            device=device,
        )
        memory = self._remember(state.memory, teacher, scaling, training, seeds, seed=seed)
        return Knowledge(teacher, memory, replace(account, n_labels=len(answers)), scaling)

    def name_known(self, state: Knowledge, inputs: np.ndarray) -> np.ndarray:
        return state.name_known(inputs)

    def account(self, state: Knowledge) -> Account | None:
        return state.account

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
        scaling: Scaling,
        training: Labelled,
        seeds: Labelled,
        *,
        seed: int,
    ) -> Memory:
        settings = self.memory
        if not self.method.seeds.share:
            settings = replace(settings, seeds=0.0)
        inputs = scaling.transform(training.inputs)
        features = outputs(teacher.network, inputs, what="choosing exemplars").embeddings
        return remember(old, training, features, seeds, settings, rng(seed, "memory"))


def even_out(items: Labelled, fewest: int) -> Labelled:
    """The first items of each class, so many that none outnumbers another by much.

    The memory does not mirror the mix of a window. If it were taken to, most items of a class that
    joined with few labels would seem unknown.

    >>> labels = np.repeat([0, 1], [400, 100])
    >>> np.bincount(even_out(Labelled(np.zeros((500, 1)), labels), 60).labels).tolist()
    [150, 100]
    """
    if not len(items):
        return items
    smallest = np.bincount(items.labels).min()
    return first_of_each(items, max(fewest, int(UNEVEN * smallest)))


def hide_in_window(window: np.ndarray, seeds: Labelled, n_classes: int, *, seed: int) -> Pool:
    """A window with the seeds after it; each class weighs the same, however few seeds it has.

    How many a class has says how long it is known, not how often it comes. A class that has just
    joined has few, and is the one that is answered worst.

    >>> seeds = Labelled(np.zeros((4, 1)), np.array([0, 0, 0, 1]))
    >>> hide_in_window(np.zeros((5, 1)), seeds, 3, seed=0).class_weights.tolist()
    [1.0, 3.0, 1.0]
    """
    n_seeds = np.bincount(seeds.labels, minlength=n_classes) if len(seeds) else np.zeros(n_classes)
    weights = np.where(n_seeds > 0, n_seeds.max(initial=1) / np.maximum(n_seeds, 1), 1.0)
    return join_held_back(window, seeds, weights, training_is_random=False, seed=seed)


def for_streams(method: S2OSCMethod) -> S2OSCMethod:
    """The method with the level of the test that streams have."""
    changed: S2OSCMethod = change(method, {"decision.level": LEVEL})
    return changed


# --- methods for single pools ----------------------------------------------------------------


class Fitted(NamedTuple):
    """What lasts of a method: its model, and the items it was fitted to, or is to be fitted to."""

    model: Recogniser | None  # None: it is fitted when a window comes
    memory: Memory | None = None
    fresh: Labelled | None = None  # what has just come

    @property
    def items(self) -> Labelled:
        """What is remembered, and what has just come."""
        assert self.fresh is not None
        return self.fresh if self.memory is None else joined(self.memory.exemplars, self.fresh)

    @property
    def fitted(self) -> Recogniser:
        assert self.model is not None, "a method is fitted to a window before it is asked"
        return self.model

    def remember(self, settings: MemorySettings, seed: int) -> Memory:
        """The memory with what has just been learnt in it, in the features of the model."""
        fresh = self.fresh
        assert fresh is not None
        nothing = Labelled(fresh.inputs[:0], fresh.labels[:0])
        features = self.fitted.features(fresh.inputs)
        return remember(self.memory, fresh, features, nothing, settings, rng(seed, "memory"))


class ModelLearner:
    """What learners share that answer by a fitted model, without a pool."""

    method: Method
    updates: ClassVar[bool] = True
    needs_window: ClassVar[bool] = False

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        return Fitted(self.method.fit(known, known.inputs[:0], seed=seed, device=device))

    def recognise(
        self, state: Fitted, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recognition:
        return recognition_by(state.fitted, window, state)

    def name_known(self, state: Fitted, inputs: np.ndarray) -> np.ndarray:
        """The best known class of each item; UNKNOWN where a method names none."""
        predictions = state.fitted.predict(inputs)
        return predictions.labels if predictions.nearest is None else predictions.nearest

    def account(self, state: Fitted) -> Account | None:
        return None


@dataclass(frozen=True)
class Refit(ModelLearner):
    """A method fitted anew for each window, to the memory and to what was answered last."""

    method: Method
    memory: MemorySettings = EXEMPLARS
    needs_window: ClassVar[bool] = True

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        return Fitted(None, fresh=known)

    def recognise(
        self, state: Fitted, window: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recognition:
        model = self.method.fit(state.items, window, seed=seed, device=device)
        return recognition_by(model, window, state._replace(model=model))

    def learn(self, state: Fitted, answers: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        return Fitted(None, state.remember(self.memory, seed), answers)


@dataclass(frozen=True)
class Prototyping(ModelLearner):
    """CPE: the network learns on from memory and answers, and its prototypes with it."""

    method: CPE
    memory: MemorySettings = EXEMPLARS

    def begin(self, known: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        state = super().begin(known, seed=seed, device=device)._replace(fresh=known)
        return Fitted(state.model, state.remember(self.memory, seed))

    def learn(self, state: Fitted, answers: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        old, items = state.model, state._replace(fresh=answers).items
        assert isinstance(old, PrototypeRecogniser)
        model = cpe.extend_prototypes(old, items, self.method, seed=seed, device=device)
        return Fitted(model, Fitted(model, state.memory, answers).remember(self.memory, seed))


@dataclass(frozen=True)
class Sketching(ModelLearner):
    """SENC-MaS: sketches take in what was answered, and need no memory."""

    method: SENCMaS

    def learn(self, state: Fitted, answers: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        assert isinstance(state.model, Sketches)
        return Fitted(
            senc_mas.extend_sketches(state.model, answers.inputs, answers.labels, seed=seed)
        )


@dataclass(frozen=True)
class Static(ModelLearner):
    """A method that is fitted once, to labelled items alone, and answers every window alike."""

    method: Method
    updates: ClassVar[bool] = False

    def learn(self, state: Fitted, answers: Labelled, *, seed: int, device: str = "cpu") -> Fitted:
        return state
