"""Data sets -> simulated streams: labelled items first, then windows in which classes emerge."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from s2osc.errors import DataError, SettingsError
from s2osc.seeding import rng
from s2osc.settings import require_choice
from s2osc.types import Labelled

MOST_WINDOWS = 5
"""Where new classes come in parts, there are 1 to 5 windows, as in the paper."""
FEWEST_PRESENT = 2
"""Known classes that no window is without."""


@dataclass(frozen=True)
class StreamProtocol:
    """Which classes emerge when, and how many items of each come."""

    arrival: Literal["one", "parts"] = "one"  # a new class at a time, or random parts of them all
    every: int = 1  # windows from one new class to the next
    n_windows: int | None = None  # None: until every class has emerged
    n_known: int | None = None  # at the beginning; None: half of the classes
    absent: float = 0.0  # chance of a known class to be missing from a window
    training_share: float = 0.5  # of the items of a class known at the beginning
    n_items: int | None = None  # of each class, in all; None: all there are
    sizes: tuple[int, int] | None = None  # training; of each class in a window, new or not
    held_out: int = 0  # of each class, a tenth of it at most, that no learner gets

    def __post_init__(self) -> None:
        require_choice("the arrival", self.arrival, ("one", "parts"))
        if self.every < 1 or (self.n_windows is not None and self.n_windows < 1):
            raise SettingsError(
                f"a new class every {self.every} windows, {self.n_windows} windows; give 1 or more"
            )
        if not 0 <= self.absent < 1 or not 0 < self.training_share < 1:
            raise SettingsError(
                f"absent is {self.absent} and training_share {self.training_share}; give shares "
                "below 1"
            )

    def draw_known(self, n_classes: int, seed: int) -> tuple[list[int], list[int]]:
        """The classes known at the beginning, sorted, and the others in random order."""
        order = [int(c) for c in rng(seed, "classes").permutation(n_classes)]
        n_known = self.n_known or n_classes // 2
        if not FEWEST_PRESENT <= n_known < n_classes:
            raise SettingsError(
                f"{n_known} of {n_classes} classes are known; give at least {FEWEST_PRESENT}, and "
                "leave one to emerge"
            )
        return sorted(order[:n_known]), order[n_known:]

    def draw_arrivals(self, new: list[int], seed: int) -> list[list[int]]:
        """The classes that emerge in each window; in some it may be none.

        >>> StreamProtocol(every=2).draw_arrivals([7, 5, 6], seed=0)
        [[7], [], [5], [], [6]]
        """
        if self.arrival == "one":
            n_windows = self.n_windows or self.every * (len(new) - 1) + 1
            arriving = [list(new[t // self.every :][:1]) for t in range(n_windows)]
            return [classes if t % self.every == 0 else [] for t, classes in enumerate(arriving)]
        random = rng(seed, "arrivals")
        most = min(MOST_WINDOWS, len(new), self.n_windows or len(new))
        n_parts = int(random.integers(1, most + 1))
        cuts = np.sort(random.choice(np.arange(1, len(new)), n_parts - 1, replace=False))
        parts = [sorted(part.tolist()) for part in np.split(np.array(new), cuts)]
        return parts + [[] for _ in range((self.n_windows or n_parts) - n_parts)]


class LabelledSet(Protocol):
    """What a stream is drawn from: a data set, or labelled items of any other kind."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> np.ndarray: ...  # (n, ...)

    @property
    def labels(self) -> np.ndarray: ...  # (n,) int, 0 .. C-1

    @property
    def classes(self) -> tuple[str, ...]: ...


class LabelledWindow(NamedTuple):
    """Items that come together, and what they truly are."""

    inputs: np.ndarray  # (n, ...)
    truth: np.ndarray  # (n,) class, in order of appearance


@dataclass(frozen=True, eq=False)
class Stream:
    """The windows a learner gets one after another, and the truth it is judged by.

    Classes are numbered in the order in which they appear: first those known at the beginning.
    """

    known: Labelled
    windows: tuple[LabelledWindow, ...]
    emerges: np.ndarray  # (C,) the window in which each class emerges, from 1; 0: the beginning
    class_numbers: tuple[int, ...]  # (C,) in the data set
    test: LabelledWindow  # items of every class that no learner gets

    @property
    def n_classes(self) -> int:
        return len(self.class_numbers)

    def n_known_before(self, window: int) -> int:
        """How many classes have emerged before a window, the first of which is 1."""
        return int(np.sum(self.emerges < window))

    @property
    def timeline(self) -> np.ndarray:
        """(C, windows) how many items of each class come in each window."""
        counts = [np.bincount(w.truth, minlength=self.n_classes) for w in self.windows]
        return np.stack(counts, axis=1)


def draw_stream(dataset: LabelledSet, protocol: StreamProtocol, seed: int) -> Stream:
    """Draw one stream of a data set: every class comes in random order, evenly till the end."""
    first, new = protocol.draw_known(len(dataset.classes), seed)
    arrivals = protocol.draw_arrivals(new, seed)
    numbers = first + [c for classes in arrivals for c in classes]
    emerges = np.array([0] * len(first) + [t for t, a in enumerate(arrivals, 1) for _ in a])
    items, present = rng(seed, "items"), rng(seed, "present")
    is_there = draw_presence(emerges, len(arrivals), protocol.absent, present)
    training, test = [], []
    coming: list[list[np.ndarray]] = [[] for _ in arrivals]
    for c, number in enumerate(numbers):
        rows = items.permutation(np.flatnonzero(dataset.labels == number))
        n_test = min(protocol.held_out, len(rows) // 10)
        test.append(rows[len(rows) - n_test :])
        rows = rows[: len(rows) - n_test]
        n_training, rate = rates(
            n_items=len(rows),
            emerges=int(emerges[c]),
            n_windows=len(arrivals),
            protocol=protocol,
            what=f"class {dataset.classes[number]} of {dataset.name}",
        )
        training.append(rows[:n_training])
        for n_before, window in enumerate(np.flatnonzero(is_there[c])):
            start = n_training + n_before * rate
            coming[window].append(rows[start : start + rate])
    label_of = np.full(len(dataset.classes), -1)
    label_of[numbers] = np.arange(len(numbers))

    def gather(rows: np.ndarray) -> LabelledWindow:
        return LabelledWindow(dataset.inputs[rows], label_of[dataset.labels[rows]])

    return Stream(
        known=Labelled(*gather(np.concatenate(training))),
        windows=tuple(gather(items.permutation(np.concatenate(rows))) for rows in coming),
        emerges=emerges,
        class_numbers=tuple(numbers),
        test=gather(np.concatenate(test)),
    )


def draw_presence(
    emerges: np.ndarray, n_windows: int, absent: float, random: np.random.Generator
) -> np.ndarray:
    """(C, windows) bool: a class stays from the window it emerges in, but for those it misses.

    >>> draw_presence(np.array([0, 0, 2]), 3, 0.0, np.random.default_rng(0)).astype(int).tolist()
    [[1, 1, 1], [1, 1, 1], [0, 1, 1]]
    """
    windows = np.arange(1, n_windows + 1)
    is_there = np.maximum(emerges, 1)[:, None] <= windows
    for t in windows:
        known = random.permutation(np.flatnonzero(emerges < t))
        leaves = known[random.random(len(known)) < absent]
        is_there[leaves[: len(known) - FEWEST_PRESENT], t - 1] = False
    return is_there


def rates(
    n_items: int, emerges: int, n_windows: int, protocol: StreamProtocol, what: str = "a class"
) -> tuple[int, int]:
    """Items of a class to learn from, and in each window from the one it ``emerges`` in.

    All that is not learnt from streams, evenly until the end: of a new class, everything. Where the
    protocol has sizes, a window brings as much of a new class as of any; a class with fewer items
    than they ask for shrinks in proportion.

    >>> rates(1000, 0, 5, StreamProtocol()), rates(1000, 4, 5, StreamProtocol())
    ((500, 100), (0, 500))
    >>> rates(210, 0, 5, StreamProtocol(sizes=(600, 300)))
    (60, 30)
    """
    is_known = emerges == 0
    if protocol.sizes:
        n_training, rate = protocol.sizes
        wanted = n_training + n_windows * rate
        if n_items < wanted:
            n_training, rate = n_training * n_items // wanted, rate * n_items // wanted
        n_training *= is_known
    else:
        n_items = min(n_items, protocol.n_items or n_items)
        n_training = round(protocol.training_share * n_items) if is_known else 0
        rate = (n_items - n_training) // (n_windows - max(emerges, 1) + 1)
    if rate < 1 or (is_known and n_training < 2):
        raise DataError(
            f"{what} has {n_items} items, too few for a stream of {n_windows} windows; "
            "give more items or fewer windows"
        )
    return n_training, rate
