"""OpenStream: a stream in Python, from arrays to arrays."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from s2osc.codec import JsonObject
from s2osc.data.inputs import encode_labels
from s2osc.errors import DataError, OutputError, SettingsError
from s2osc.nets.training import resolve_device
from s2osc.pipeline.audit.wording import tell
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.progress import shown
from s2osc.settings import change
from s2osc.stream.learner import LEVEL, Incremental
from s2osc.stream.memory import MemorySettings
from s2osc.stream.names import IGNORE, NO_CLASS, as_meant, names_in_use
from s2osc.stream.queries import QuerySettings
from s2osc.stream.state import StreamFacts, StreamState
from s2osc.stream.status import class_statuses
from s2osc.stream.store import Version, holds_stream, open_store, read_current, read_pointer
from s2osc.stream.windows import (
    GroupOracle,
    ask_oracle,
    begin_stream,
    close_questions,
    open_questions,
    open_window,
    take_answers,
    take_items,
)
from s2osc.text import clean_name
from s2osc.types import UNKNOWN, UNSURE, Labelled, check_inputs

TWO_CLASSES = ("False", "True")
"""Names that the classes of a yes-or-no column have; answers never make a class of them."""


@dataclass(frozen=True, eq=False)
class WindowAnswer:
    """The answer for a window, and the items to ask a person about."""

    labels: np.ndarray  # (n,) a known class, -1 or "unknown", and -2 or "unsure" where asked for
    groups: np.ndarray  # (n,) group of an unknown item from 0, -1 elsewhere
    confidence: np.ndarray  # (n,)
    unknown_score: np.ndarray  # (n,)
    p_known: np.ndarray | None  # (n,) the share of known items at least as strange; None: no seeds
    queries: np.ndarray  # row numbers to ask a person about, the most informative first
    why: list[str]  # why each of them
    audit: JsonObject | None  # None without seeds


class OpenStream:
    """Windows come, classes arrive, labels are asked for, and nothing is forgotten.

    Parameters
    ----------
    X, y : labelled items of at least two classes: vectors (N x D) or images (N x H x W [x 3])
    budget : labels asked for per window
    queries : "representative", "unknown" or "random": which items are asked about
    memory : labelled items that are kept, of all classes together
    self_taught : groups of unknown items become classes at once, and nobody is asked
    preset, settings, random_state, device, verbose : as in ``S2OSC``

    >>> stream = OpenStream(X, y)                       # doctest: +SKIP
    >>> answer = stream.classify(window)                # doctest: +SKIP
    >>> stream.learn(answer.queries, labels)            # doctest: +SKIP
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        budget: int = 200,
        queries: str = "representative",
        memory: int = 2_000,
        self_taught: bool = False,
        preset: str = "auto",
        settings: Mapping[str, Any] | None = None,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        inputs = check_inputs(np.asarray(X), "X")
        cells = _cells(y)
        are_numbers = all(_is_numeric(cell) or _is_missing(cell) for cell in cells)
        names = [_as_name(cell, TWO_CLASSES, numbers=are_numbers) for cell in cells]
        labels, classes = encode_labels(names)
        known = Labelled(inputs, labels)
        _check_classes(classes, labels)
        where = resolve_device(device)
        chosen = choose_preset(preset, where, vectors=inputs.ndim == 2, n_labelled=len(known))
        learner = build_learner(chosen, settings or {}, memory)
        self._asking = _asking(budget, queries, self_taught=self_taught)
        self._self_taught, self._device, self._verbose = self_taught, where, verbose
        self._versions: dict[str, Version] = {}
        with self._bars():
            self._state = begin_stream(
                known,
                classes,
                learner,
                seed=random_state,
                device=where,
                facts=StreamFacts(labels_are_numbers=are_numbers),
            )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        budget: int = 200,
        queries: str = "representative",
        self_taught: bool = False,
        device: str = "auto",
        verbose: bool = False,
    ) -> Self:
        """The stream that was saved in ``folder``, by ``save`` or by ``s2osc stream``."""
        stream = cls.__new__(cls)
        stream._asking = _asking(budget, queries, self_taught=self_taught)
        stream._self_taught, stream._verbose = self_taught, verbose
        stream._device = resolve_device(device)
        pointer, stream._state = read_current(Path(folder), stream._device)
        stream._versions = {_place(folder): pointer.current}
        return stream

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the stream into ``folder``; what was saved there before can be had back by undo.

        A folder that holds another stream, or that has changed since this one was loaded from or
        saved in it, is refused, for that change would be lost; ``force`` writes all the same.
        """
        with open_store(Path(folder), make=True) as store:
            if not force:
                self._check_unmoved(store.folder)
            version = store.write(self._state, "save")
        self._versions = self._versions | {_place(folder): version}

    def _check_unmoved(self, folder: Path) -> None:
        """Refuse a folder whose current version this stream did not come from."""
        if not holds_stream(folder):
            return
        found, mine = read_pointer(folder).current, self._versions.get(_place(folder))
        if found == mine:
            return
        way_out = "save elsewhere, or give force=True to put this one on top"
        if mine is None:
            raise OutputError(f"{folder} holds another stream; {way_out}")
        raise OutputError(
            f"the stream in {folder} has changed since it was loaded or saved here (version "
            f"{found.number}: {found.what}); load it again, {way_out}"
        )

    @property
    def classes(self) -> list[Any]:
        """The classes known by now, in the order they arrived."""
        return [self._shown(name) for name in self._state.class_names]

    @property
    def history(self) -> tuple[JsonObject, ...]:
        """What every window brought, asked and taught."""
        return tuple(record.to_json() for record in self._state.history)

    @property
    def state(self) -> StreamState:
        """Everything the stream knows, as values."""
        return self._state

    def status(self) -> dict[str, JsonObject]:
        """Of each class: since when it is known, from how many labels, and how well."""
        return {each.known.name: each.to_json() for each in class_statuses(self._state)}

    def classify(self, window: Any) -> WindowAnswer:
        """A known class, or unknown and which new group, for every item of the next window."""
        inputs = check_inputs(np.asarray(window), "the window")
        names = [str(row) for row in range(len(inputs))]
        with self._bars():
            opened = open_window(self._state, inputs, names, self._asking, device=self._device)
        self._state, solution = opened.state, opened.recognition.solution
        answer, audit = solution.answer, solution.audit(self._state.class_names)
        found = WindowAnswer(
            labels=self._named(answer.labels),
            groups=answer.groups,
            confidence=answer.confidence,
            unknown_score=answer.unknown_score,
            p_known=answer.p_known,
            queries=opened.queries.rows,
            why=opened.queries.why,
            audit=tell(audit) if audit else None,
        )
        if self._self_taught:
            with self._bars():
                _, updated = ask_oracle(self._state, GroupOracle(), device=self._device)
            self._state = close_questions(updated.state)
        return found

    def learn(self, items: Any, labels: Any) -> list[str]:
        """Take labels in: of rows of the last window, or of items of one's own.

        ``items`` are row numbers of the window that was classified last, of items that were asked
        about or called unknown, or inputs like those of the window. A label is a class, known or
        new; "ignore" is for items that are not of interest; None, NaN and "" are no answer. Returns
        what the user should know.
        """
        known, numbers = names_in_use(self._state), self._numbers
        names = [_as_name(cell, known, numbers=numbers) for cell in _cells(labels)]
        items = np.asarray(items)
        if len(items) != len(names):
            raise DataError(f"{len(items)} items came with {len(names)} labels; give one for each")
        given = [i for i, name in enumerate(names) if name.strip()]
        if not given:
            return ["there is no new answer: nothing was learnt"]
        with self._bars():
            if items.ndim == 1 and items.dtype.kind in "iu":
                updated = take_answers(
                    self._state, self._answers(items, names), device=self._device
                )
            else:
                inputs, labels = check_inputs(items, "items")[given], [names[i] for i in given]
                updated = take_items(self._state, inputs, labels, device=self._device)
        self._state = updated.state
        return updated.notes

    def _answers(self, rows: np.ndarray, names: Sequence[str]) -> dict[str, str]:
        """The labels of rows of the last window, each of which may be labelled."""
        may_answer = set(open_questions(self._state).names)
        answers: dict[str, str] = {}
        for row, name in zip(rows.tolist(), names, strict=True):
            if str(row) not in may_answer:
                raise DataError(
                    f"row {row} of the last window was neither asked about nor called unknown; "
                    "give the item itself in place of its row"
                )
            if answers.setdefault(str(row), name) != name:
                raise DataError(
                    f"row {row} is labelled both {answers[str(row)]!r} and {name!r}; give one label"
                )
        return answers

    def _named(self, labels: np.ndarray) -> np.ndarray:
        marks = (UNSURE, UNKNOWN) if self._numbers else ("unsure", "unknown")
        names = np.array([*self.classes, *marks], dtype=None if self._numbers else object)
        return names[labels]

    @property
    def _numbers(self) -> bool:
        """Whether classes are numbers; a name among the answers makes names of all."""
        began_so = self._state.facts.labels_are_numbers
        return began_so and all(_is_number(name) for name in self._state.class_names)

    def _shown(self, name: str) -> Any:
        return int(name) if self._numbers else name

    def _bars(self) -> Any:
        return shown() if self._verbose else nullcontext()


def build_learner(preset: str, settings: Mapping[str, Any], memory: int) -> Incremental:
    """The learner of a preset: ``update.`` and ``memory.`` name its own settings."""
    own = {n: v for n, v in settings.items() if n.split(".")[0] in ("update", "memory")}
    of_method = {n: v for n, v in settings.items() if n not in own}
    method = build_method(preset, {"decision.level": LEVEL} | of_method)
    if method.teacher.network.is_pretrained:
        raise SettingsError(f"the preset {preset} is for one pool; give a stream another, as heads")
    learner = Incremental(method, memory=MemorySettings(size=memory))
    return change(learner, own)


def _asking(budget: int, queries: str, *, self_taught: bool) -> QuerySettings:
    """What is asked about a window: nothing where the stream teaches itself."""
    asking = QuerySettings(budget, queries)
    return replace(asking, budget=0) if self_taught else asking


def _place(folder: str | Path) -> str:
    """A folder by one name, however it is written."""
    return str(Path(folder).resolve())


def _cells(labels: Any) -> list[Any]:
    return np.asarray(labels, dtype=object).ravel().tolist()


def _as_name(cell: Any, known: Sequence[str], *, numbers: bool) -> str:
    """A label as text, a missing one as "".

    NumPy and pandas make floats of whole numbers when one of them is missing: where classes are
    numbers, such a float is the whole number again.

    >>> [_as_name(cell, (), numbers=True) for cell in (2, 2.0, float("nan"), "cat")]
    ['2', '2', '', 'cat']
    """
    if _is_missing(cell):
        return ""
    name = clean_name(str(cell))
    if name in known:
        return name
    if isinstance(cell, bool | np.bool_):
        raise DataError(f"a label is {name}; give a class by its number or its name")
    if isinstance(cell, float | np.floating):
        if not numbers:
            raise DataError(f"a label is {name}, but classes have names here; give a name")
        if not float(cell).is_integer():
            raise DataError(f"a label is {name}; give a whole number, or None for no answer")
        return str(int(cell))
    return name


def _is_numeric(cell: Any) -> bool:
    return isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)


def _is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, or what pandas has in their place."""
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _is_number(name: str) -> bool:
    return re.fullmatch("0|-?[1-9][0-9]*", name) is not None


def _check_classes(classes: Sequence[str], labels: np.ndarray) -> None:
    if "" in classes:
        raise DataError("some items have no label; label all items a stream begins with")
    if len(classes) < 2:
        raise DataError(f"y holds {len(classes)} class; label items of at least two classes")
    sizes = np.bincount(labels)
    if sizes.min() < 2:
        raise DataError(
            f"class {classes[int(sizes.argmin())]!r} has one labelled item; give two of each"
        )
    if taken := [name for name in classes if as_meant(name) in (IGNORE, *NO_CLASS)]:
        raise SettingsError(
            f"a class is called {taken[0]!r}, which has a meaning of its own; rename it"
        )
