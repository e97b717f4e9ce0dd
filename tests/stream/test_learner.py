"""Learners: each follows a stream in its own way, and all keep one contract."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from s2osc.baselines.cpe import CPE
from s2osc.baselines.isolation_forest import IsolationForest
from s2osc.baselines.post_hoc import MSP
from s2osc.baselines.senc_mas import SENCMaS
from s2osc.baselines.shared import TeacherRecipe
from s2osc.codec import to_plain
from s2osc.stream.learner import (
    Fitted,
    Incremental,
    Prototyping,
    Recognition,
    Refit,
    Sketching,
    Static,
)
from s2osc.stream.memory import MemorySettings, joined
from s2osc.stream.update import UpdateSettings
from s2osc.types import UNKNOWN, Labelled
from samples import SEEDED, TINY, make_blobs

INPUTS, LABELS = make_blobs(60)
RECIPE = TeacherRecipe(TINY.teacher, held_out=0.3)
UPDATE = UpdateSettings(training=replace(TINY.teacher.training, min_steps=25))
LEARNERS = {
    "ours": Incremental(SEEDED, UPDATE),
    "paper's form": Incremental(TINY, UPDATE),
    "refit": Refit(MSP(recipe=RECIPE)),
    "cpe": Prototyping(CPE(recipe=RECIPE)),
    "senc-mas": Sketching(SENCMaS(recipe=RECIPE)),
    "static": Static(IsolationForest(recipe=RECIPE)),
}
UPDATING = {name: learner for name, learner in LEARNERS.items() if learner.updates}


def part(classes, start: int, stop: int) -> Labelled:
    """The items of each class from one number to another."""
    rows = np.concatenate([np.flatnonzero(c == LABELS)[start:stop] for c in classes])
    return Labelled(INPUTS[rows], LABELS[rows])


KNOWN, WINDOW, ANSWERS = part((0, 1, 2), 0, 30), part(range(4), 30, 50), part((3,), 30, 50)
NEW = part(range(4), 50, 60)


def concluded(learner, state):
    """The state in which the learner has a model of what it learnt last."""
    return learner.recognise(state, WINDOW.inputs, seed=2).state if learner.needs_window else state


class Followed(NamedTuple):
    """A learner before a window, after it, and after its answers: states are values."""

    begun: Any
    recognition: Recognition
    learnt: Any

    @classmethod
    def by(cls, learner: Any) -> "Followed":
        begun = learner.begin(KNOWN, seed=0)
        recognition = learner.recognise(begun, WINDOW.inputs, seed=1)
        return cls(begun, recognition, learner.learn(recognition.state, ANSWERS, seed=1))


@cache
def followed(name: str) -> Followed:
    return Followed.by(LEARNERS[name])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_window_is_answered_for_every_item_by_known_classes_or_unknown(name):
    recognition = followed(name).recognition
    assert set(recognition.predictions.labels) <= {UNKNOWN, 0, 1, 2}
    assert len(recognition.predictions.labels) == len(recognition.embeddings) == len(WINDOW)
    assert recognition.groups is None or len(recognition.groups) == len(WINDOW)
    named = LEARNERS[name].name_known(recognition.state, NEW.inputs)
    assert set(named) <= {0, 1, 2}
    assert np.mean((named == NEW.labels)[NEW.labels < 3]) > 0.9


@pytest.mark.parametrize("name", UPDATING)
def test_a_new_class_is_learnt_and_old_ones_stay_known(name):
    learner, asked = LEARNERS[name], followed(name).recognition.state
    before = learner.name_known(asked, NEW.inputs)
    last = concluded(learner, learner.learn(asked, ANSWERS, seed=1))
    assert np.mean(learner.name_known(last, NEW.inputs) == NEW.labels) > 0.9
    # What was known before is as it was: a state is a value.
    np.testing.assert_array_equal(learner.name_known(asked, NEW.inputs), before)


@pytest.mark.parametrize("name", UPDATING)
def test_the_same_seed_learns_the_same(name):
    learner = LEARNERS[name]

    def found(followed):
        last = concluded(learner, followed.learnt)
        scores = followed.recognition.predictions.unknown_score
        return scores, learner.name_known(last, WINDOW.inputs)

    pairs = zip(found(followed(name)), found(Followed.by(learner)), strict=True)
    for first, again in pairs:
        np.testing.assert_array_equal(first, again)


def test_a_static_method_answers_as_it_did_at_the_beginning_whatever_it_is_told():
    learner = LEARNERS["static"]
    state, recognition, learnt = followed("static")
    assert not learner.updates
    assert learnt is recognition.state
    assert learner.learn(state, ANSWERS, seed=1) is state
    again = learner.recognise(state, WINDOW.inputs, seed=2)
    np.testing.assert_array_equal(again.predictions.labels, recognition.predictions.labels)


def test_a_refit_sees_the_memory_of_what_it_was_fitted_to_and_the_answers_after_it():
    learner = Refit(MSP(recipe=RECIPE), MemorySettings(size=12, seeds=0.0))
    state = learner.begin(KNOWN, seed=0)
    assert len(state.items) == len(KNOWN)
    recognition = learner.recognise(state, WINDOW.inputs, seed=1)
    later = learner.learn(recognition.state, ANSWERS, seed=1)
    assert len(later.memory.seeds) == 0
    counts = np.bincount(later.items.labels)
    assert counts.tolist() == [4, 4, 4, len(ANSWERS)]
    fitted = learner.recognise(later, WINDOW.inputs, seed=2)
    last = learner.learn(fitted.state, part((0,), 50, 55), seed=2)
    assert np.bincount(last.items.labels).tolist() == [3 + 5, 3, 3, 3]


def test_what_is_remembered_are_items_that_were_labelled():
    data = followed("refit").learnt
    assert isinstance(data, Fitted)
    known = {row.tobytes(): label for row, label in zip(KNOWN.inputs, KNOWN.labels, strict=True)}
    exemplars = data.memory.exemplars
    for row, label in zip(exemplars.inputs, exemplars.labels, strict=True):
        assert known[row.tobytes()] == label


def test_only_ours_tells_what_an_update_did():
    for name in ("ours", "refit"):
        learner = LEARNERS[name]
        assert learner.account(followed(name).begun) is None
        account = learner.account(followed(name).learnt)
        if name == "ours":
            assert (account.n_labels, account.n_new_classes) == (len(ANSWERS), 1)
            assert {"before", "after", "holds"} <= to_plain(account)["memory"].keys()
        else:
            assert account is None


def test_joined_items_keep_their_labels():
    both = joined(part((0,), 0, 2), part((3,), 0, 1))
    assert both.labels.tolist() == [0, 0, 3]
    np.testing.assert_array_equal(both.inputs[2], part((3,), 0, 1).inputs[0])
