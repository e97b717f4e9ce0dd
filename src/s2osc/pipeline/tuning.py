"""Hyper-parameters chosen on the known classes alone: hide some of them, is the pool sorted right?

A task is a pool made of labelled items (``episodes``): items of hidden classes among items of the
others, whose remaining items are labelled. Every setting answers the same tasks, so that what makes
one task harder than another cancels out. Settings that fall behind are dropped, as in a race. What
is ahead beyond chance at the end must also be ahead on fresh tasks, because the best of many looks
better than it is. Most often nothing is: then the preset stays as it is.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from s2osc.errors import DataError, SettingsError
from s2osc.lazy import lazily
from s2osc.metrics import evaluate
from s2osc.pipeline.episodes import EpisodeSettings, draw_episodes
from s2osc.pipeline.method import S2OSCMethod
from s2osc.progress import say
from s2osc.seeding import derive, rng
from s2osc.settings import NamedSettings, change, flatten
from s2osc.types import UNKNOWN, Labelled

stats = lazily("scipy.stats")

TASKS = EpisodeSettings(n_episodes=400, most_items=400, mistaken=1.0, most_hidden=0.5)
"""Half of a pool is of hidden classes, and at most half of the classes are hidden."""
FEWEST_LABELLED = 5
"""Of a class that stays known in a task: one trains f, others are held back."""
FEWEST_TASKS = 4
"""That a setting is tried on before it is dropped, or called better: fewer have no spread."""
LEVEL = 0.05
"""At which a setting is ahead, divided by the number of those that were tried."""
FOR_FRESH_TASKS = 0.3
"""Of the time: kept for the comparison on tasks that had no part in the choice."""

Clock = Callable[[], float]


def halved_and_doubled(value: float) -> tuple[float, float]:
    return value / 2, value * 2


def rest_halved_and_doubled(value: float) -> tuple[float, float]:
    """Of a share near 1, it is the rest that matters.

    >>> rest_halved_and_doubled(0.75)
    (0.875, 0.5)
    """
    return 1 - (1 - value) / 2, 1 - min(2 * (1 - value), 1.0)


def both_ends(value: float) -> tuple[float, ...]:
    """None and all of a share, whichever it is not."""
    return tuple(end for end in (0.0, 1.0) if end != value)


def other_start(value: str) -> tuple[str, ...]:
    return ("scratch",) if value == "teacher" else ("teacher",)


DIALS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "student.seed_weight": halved_and_doubled,
    "student.start": other_start,
    "student.alpha": halved_and_doubled,
    "student.tau": rest_halved_and_doubled,
    "student.lambda_u": halved_and_doubled,
    "teacher.augment": both_ends,
    "teacher.training.learning_rate": halved_and_doubled,
    "student.training.learning_rate": halved_and_doubled,
    "teacher.training.weight_decay": halved_and_doubled,
    "student.training.weight_decay": halved_and_doubled,
    "student.temperature": halved_and_doubled,
    "augmentation.noise": halved_and_doubled,
}
"""What is tried, those first that move answers most (docs/constants.md), and how each is moved: by
a factor that makes a difference, not by values that were found on some data set."""


class TuningTask(NamedTuple):
    """Labelled items and a pool with classes that are hidden; what each item of it is."""

    known: Labelled
    pool: np.ndarray
    truth: np.ndarray


@dataclass
class Candidate:
    """Settings that differ from the preset, and what they reached in each task so far."""

    changes: NamedSettings
    scores: list[float] = field(default_factory=list)

    def gains(self, base: "Candidate") -> np.ndarray:
        """What they are better by, in the tasks that both have answered."""
        n = min(len(self.scores), len(base.scores))
        return np.subtract(self.scores[:n], base.scores[:n])


@dataclass(frozen=True)
class Tried:
    """What became of one candidate."""

    changes: NamedSettings
    n_tasks: int
    gain: float  # of F1, in the mean
    error: float  # the standard error of that
    is_ahead: bool


@dataclass(frozen=True)
class Tuned:
    """Settings that are better than the preset on fresh tasks, or none, and what was tried."""

    changes: NamedSettings  # empty: the preset stays as it is
    tried: tuple[Tried, ...]
    n_fresh: int  # tasks on which the choice was compared again; 0: nothing was ahead
    before: float  # F1 of the preset, on the fresh tasks if there are any
    after: float


def candidates_of(method: S2OSCMethod, *, vectors: bool) -> list[Candidate]:
    """Each dial moved to each side, the others as they are."""
    now, found = flatten(method), []
    for name, moved in DIALS.items():
        if name == "augmentation.noise" and not vectors:
            continue
        for value in moved(now[name]):
            if value != now[name]:
                found.append(Candidate({name: value}))
    return found


def draw_tasks(labelled: Labelled, *, seed: int) -> Iterator[TuningTask]:
    """Pools made of the labelled items, one after another."""
    for episode in draw_episodes(labelled.labels, TASKS, rng(seed, "tasks")):
        names, labels = np.unique(labelled.labels[episode.others], return_inverse=True)
        if len(names) < 2 or np.bincount(labels).min() < FEWEST_LABELLED:
            continue
        number = np.full(labelled.n_classes, UNKNOWN)
        number[names] = np.arange(len(names))
        known = Labelled(labelled.inputs[episode.others], labels)
        truth = number[labelled.labels[episode.hidden]]
        yield TuningTask(known, labelled.inputs[episode.hidden], truth)


def has_fallen_behind(gains: np.ndarray) -> bool:
    """Whether a candidate is worse by more than a standard error.

    >>> has_fallen_behind(np.array([-0.1, -0.2, -0.1, -0.2])), has_fallen_behind(np.zeros(4))
    (True, False)
    """
    return len(gains) >= FEWEST_TASKS and bool(gains.mean() + standard_error(gains) < 0)


def is_ahead(gains: np.ndarray, n_candidates: int) -> bool:
    """Whether a candidate is better beyond chance, as the best of so many (Student, Bonferroni).

    >>> gains = np.array([0.02, 0.03, 0.01, 0.02])
    >>> is_ahead(gains, 1), is_ahead(gains, 100)
    (True, False)
    """
    error = standard_error(gains)
    if len(gains) < FEWEST_TASKS or gains.mean() <= 0:
        return False
    chance = stats.t.sf(gains.mean() / max(error, 1e-12), len(gains) - 1)
    return bool(chance <= LEVEL / n_candidates)


def holds_again(gains: np.ndarray) -> bool:
    """Whether what was chosen is better on fresh tasks, too, by more than a standard error.

    >>> holds_again(np.array([0.02, 0.03, 0.01, 0.02])), holds_again(np.array([0.3, -0.2, 0.1, 0]))
    (True, False)
    """
    return len(gains) >= FEWEST_TASKS and bool(gains.mean() > standard_error(gains))


def standard_error(gains: np.ndarray) -> float:
    return float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.inf


def tune(
    labelled: Labelled,
    method: S2OSCMethod,
    *,
    minutes: float,
    vectors: bool,
    seed: int,
    device: str,
    clock: Clock = time.monotonic,
) -> Tuned:
    """Try what the dials give within so many minutes."""
    tasks = draw_tasks(labelled, seed=seed)
    started, base = clock(), Candidate({})
    end = started + 60 * minutes

    def score(candidate: Candidate, task: TuningTask) -> None:
        own = derive(seed, f"task {len(candidate.scores)}")
        solution = change(method, candidate.changes).fit(
            task.known, task.pool, seed=own, device=device
        )
        candidate.scores.append(evaluate(task.truth, solution.answer)["f1"])

    first = next(tasks, None)
    if first is None:
        raise DataError(
            f"{len(labelled):,} labelled items of {labelled.n_classes} classes make no pool with a "
            "hidden class; give at least three classes with ten items each"
        )
    score(base, first)
    seconds = clock() - started
    candidates = affordable(candidates_of(method, vectors=vectors), minutes, seconds)
    say(f"a run takes {seconds:.1f} s: {len(candidates)} changes of settings are tried")
    until = end - FOR_FRESH_TASKS * (end - started)
    race(base, candidates, tasks, score, lambda: clock() + seconds > until, first=first)
    tried = [report(candidate, base, len(candidates)) for candidate in candidates]
    better = [each for each in tried if each.is_ahead]
    if not better:
        mean = float(np.mean(base.scores))
        return Tuned({}, tuple(tried), 0, mean, mean)
    joined = Candidate(join([each.changes for each in better], [each.gain for each in better]))
    again = Candidate({})
    race(again, [joined], tasks, score, lambda: clock() + seconds > end)
    gains = joined.gains(again)
    before, after = (float(np.mean(each.scores[: len(gains)])) for each in (again, joined))
    confirmed = joined.changes if holds_again(gains) else {}
    return Tuned(confirmed, tuple(tried), len(gains), before, after)


def affordable(
    candidates: Sequence[Candidate], minutes: float, seconds: float
) -> Sequence[Candidate]:
    """As many of the first candidates as there is time to try on the fewest tasks.

    >>> len(affordable([Candidate({})] * 20, minutes=10, seconds=10))
    9
    """
    n_runs = (1 - FOR_FRESH_TASKS) * 60 * minutes / max(seconds, 1e-9)
    n = int(n_runs / FEWEST_TASKS) - 1
    if n < 1:
        needed = 2 * FEWEST_TASKS * seconds / 60 / (1 - FOR_FRESH_TASKS)
        raise SettingsError(
            f"--minutes is {minutes:g}, but a run on these items takes {seconds:.0f} s, so that "
            f"nothing could be compared; give at least --minutes {np.ceil(needed):.0f}"
        )
    return candidates[:n]


def race(
    base: Candidate,
    candidates: Sequence[Candidate],
    tasks: Iterator[TuningTask],
    score: Callable[[Candidate, TuningTask], None],
    is_over: Callable[[], bool],
    *,
    first: TuningTask | None = None,
) -> None:
    """Let all that have not fallen behind answer one task after another, until time is up.

    ``first`` is a task that the base has answered already.
    """
    running = list(candidates)
    while running and not is_over():
        task, first, answered = first or next(tasks, None), None, first is not None
        if task is None:
            return
        for candidate in running if answered else [base, *running]:
            if is_over():
                return
            score(candidate, task)
        running = [each for each in running if not has_fallen_behind(each.gains(base))]
        left = f"{len(running)} of {len(candidates)} changes are left"
        say(f"task {len(base.scores)}: F1 {base.scores[-1]:.3f} as it is; {left}")


def report(candidate: Candidate, base: Candidate, n_candidates: int) -> Tried:
    gains = candidate.gains(base)
    return Tried(
        candidate.changes,
        len(gains),
        float(gains.mean()) if len(gains) else 0.0,
        standard_error(gains),
        is_ahead(gains, n_candidates),
    )


def join(changes: Sequence[NamedSettings], gains: Sequence[float]) -> NamedSettings:
    """All changes together; of two to the same dial, the one with the larger gain.

    >>> join([{"a": 1}, {"a": 2}, {"b": 3}], [0.1, 0.2, 0.1])
    {'a': 2, 'b': 3}
    """
    joined: NamedSettings = {}
    for place in np.argsort(gains, kind="stable"):
        joined |= changes[place]
    return joined
