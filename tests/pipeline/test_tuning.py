"""Tuning: pools made of known classes, a race of settings, and what must hold on fresh tasks."""

from itertools import count

import numpy as np
import pytest

from s2osc.errors import DataError, SettingsError
from s2osc.pipeline.presets import FAST, HEADS
from s2osc.pipeline.tuning import (
    DIALS,
    FEWEST_TASKS,
    Candidate,
    TuningTask,
    candidates_of,
    draw_tasks,
    is_ahead,
    race,
    tune,
)
from s2osc.settings import change, flatten
from s2osc.testing import make_blobs
from s2osc.types import UNKNOWN, Labelled

TINY = change(
    HEADS,
    {
        f"{role}.{name}": value
        for role in ("teacher", "student")
        for name, value in {
            "training.epochs": 1,
            "training.min_steps": 12,
            "network.hidden": (16,),
        }.items()
    }
    | {"clusters.n_groups": 1, "seeds.judges": 0},
)


def labelled_blobs(n_per_class: int = 40, n_classes: int = 5) -> Labelled:
    return Labelled(*make_blobs(n_per_class, n_classes))


def no_task() -> TuningTask:
    return TuningTask(labelled_blobs(5, 2), np.zeros((2, 2)), np.zeros(2, int))


def test_every_dial_is_a_setting_and_moves():
    for method, vectors in ((FAST, False), (HEADS, True)):
        now, candidates = flatten(method), candidates_of(method, vectors=vectors)
        for candidate in candidates:
            changed = flatten(change(method, candidate.changes))
            assert {name for name in now if changed[name] != now[name]} == set(candidate.changes)
        moved = {name for candidate in candidates for name in candidate.changes}
        assert moved == set(DIALS) - (set() if vectors else {"augmentation.noise"})


def test_a_task_hides_classes_and_keeps_the_others_apart():
    labelled = labelled_blobs()
    tasks = [task for task, _ in zip(draw_tasks(labelled, seed=0), range(8), strict=False)]
    n_hidden = set()
    for task in tasks:
        n_hidden.add(labelled.n_classes - task.known.n_classes)
        assert 0.3 < np.mean(task.truth == UNKNOWN) < 0.8
        assert set(task.truth) <= {UNKNOWN, *range(task.known.n_classes)}
        in_pool = {row.tobytes() for row in task.pool}
        assert not in_pool & {row.tobytes() for row in task.known.inputs}
    assert n_hidden == {1, 2}  # at most half


def test_known_items_of_a_task_have_the_class_they_had():
    labelled = labelled_blobs()
    label_of = {
        row.tobytes(): label for row, label in zip(labelled.inputs, labelled.labels, strict=True)
    }
    task = next(draw_tasks(labelled, seed=1))
    of_known = {
        (label_of[row.tobytes()], number)
        for row, number in zip(task.known.inputs, task.known.labels, strict=True)
    }
    of_pool = {
        (label_of[row.tobytes()], number)
        for row, number in zip(task.pool, task.truth, strict=True)
        if number != UNKNOWN
    }
    assert len(of_known) == task.known.n_classes
    assert of_pool <= of_known


def test_who_falls_behind_is_dropped_and_others_go_on():
    base, worse, better = Candidate({}), Candidate({"a": 1}), Candidate({"b": 1})
    level = {(): 0.5, ("a",): 0.3, ("b",): 0.6}
    noise = np.random.default_rng(0)

    def score(candidate, task):
        candidate.scores.append(level[tuple(candidate.changes)] + 0.01 * noise.random())

    tasks = iter([no_task() for _ in range(12)])
    race(base, [worse, better], tasks, score, lambda: False)
    assert len(base.scores) == len(better.scores) == 12
    assert len(worse.scores) == FEWEST_TASKS
    assert is_ahead(better.gains(base), 2)
    assert not is_ahead(worse.gains(base), 2)


def test_a_race_ends_when_time_is_up_and_compares_tasks_both_have_answered():
    base, other, left = Candidate({}), Candidate({"a": 1}), count()

    def score(candidate, task):
        next(left)
        candidate.scores.append(1.0)

    race(base, [other], iter([no_task()] * 9), score, lambda: next(left) > 6)
    assert len(other.scores) <= len(base.scores)
    assert len(other.gains(base)) == len(other.scores)


class Clock:
    """A clock on which every look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_where_nothing_is_better_the_preset_is_kept():
    found = tune(
        labelled_blobs(), TINY, minutes=0.2, vectors=True, seed=0, device="cpu", clock=Clock()
    )
    assert found.changes == {}  # easy classes: everything is right already
    assert found.before == found.after > 0.9
    assert found.tried[0].n_tasks >= 1


def test_too_little_time_is_one_line():
    with pytest.raises(SettingsError, match="give at least --minutes"):
        tune(
            labelled_blobs(), TINY, minutes=0.05, vectors=True, seed=0, device="cpu", clock=Clock()
        )


def test_too_few_classes_are_one_line():
    with pytest.raises(DataError, match="at least three classes"):
        tune(labelled_blobs(30, 2), TINY, minutes=1, vectors=True, seed=0, device="cpu")
