"""I-S2OSC: what f learns, what it never sees, and what is remembered."""

import copy
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from s2osc.arrays import unit_rows
from s2osc.nets.training import TrainSettings, outputs
from s2osc.pipeline.audit import outcome
from s2osc.stream.learner import Incremental, Knowledge, even_out, hide_in_window
from s2osc.stream.memory import MemorySettings, herd
from s2osc.stream.update import UpdateSettings
from s2osc.types import UNKNOWN, Labelled
from samples import SEEDED, TINY, make_blobs, make_images

UPDATE = UpdateSettings(TrainSettings(1, 32, 0.02, 5e-4, min_steps=25))
LEARNER = Incremental(SEEDED, UPDATE, MemorySettings(size=120))
SHORT = replace(LEARNER, update=replace(UPDATE, training=replace(UPDATE.training, min_steps=8)))
INPUTS, LABELS = make_blobs(60, 5)
LATER_INPUTS, LATER_LABELS = make_blobs(60, 5, seed=7)


def of(*classes, inputs=INPUTS, labels=LABELS):
    rows = np.isin(labels, classes)
    return Labelled(inputs[rows], labels[rows])


def rows_of(items):
    return {row.tobytes() for row in items.inputs}


def weights(knowledge):
    network = knowledge.teacher.network
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def assert_same(a, b):
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name])


def replaced(items, seeds):
    """The same items with others in place of those that were held back as ``seeds``."""
    held = rows_of(seeds)
    is_held = np.array([row.tobytes() in held for row in items.inputs])
    assert is_held.any()
    return Labelled(np.where(is_held[:, None], -items.inputs, items.inputs), items.labels)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Intervals from fewer resamples: what they are worth has its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcome, "N_RESAMPLED", 5)
        yield


@pytest.fixture(scope="module")
def begun() -> Knowledge:
    return LEARNER.begin(of(0, 1, 2), seed=0)


def test_seeds_are_held_back_from_the_beginning(begun):
    memory = begun.memory
    assert rows_of(memory.exemplars) | rows_of(memory.seeds) <= rows_of(of(0, 1, 2))
    assert not rows_of(memory.exemplars) & rows_of(memory.seeds)
    assert np.bincount(memory.seeds.labels).tolist() == [12, 12, 12]
    assert np.bincount(memory.exemplars.labels).tolist() == [28, 28, 28]


def test_f_never_learns_from_seeds(begun):
    changed = replaced(of(0, 1, 2), begun.memory.seeds)
    assert_same(weights(begun), weights(LEARNER.begin(changed, seed=0)))


def test_f_never_learns_from_seeds_of_new_classes(begun):
    once = SHORT.learn(begun, of(3), seed=0)
    fresh = once.memory.seeds.inputs[once.memory.seeds.labels == 3]
    assert len(fresh) == 9
    changed = replaced(of(3), Labelled(fresh, np.full(len(fresh), 3)))
    again = SHORT.learn(begun, changed, seed=0)
    assert_same(weights(once), weights(again))


def test_seeds_are_never_among_exemplars_after_many_updates(begun):
    knowledge, ever_seeds, ever_exemplars = begun, set(), set()
    for step, classes in enumerate([(3,), (0, 3), (4,), (1, 2)]):
        items = of(*classes, inputs=INPUTS + 0.01 * (step + 1))
        knowledge = SHORT.learn(knowledge, items, seed=step)
        ever_seeds |= rows_of(knowledge.memory.seeds)
        ever_exemplars |= rows_of(knowledge.memory.exemplars)
        assert len(knowledge.memory) <= 120
        assert knowledge.memory.n_classes == knowledge.teacher.n_classes
    assert not ever_seeds & ever_exemplars
    assert set(np.bincount(knowledge.memory.exemplars.labels)) == {17}
    assert set(np.bincount(knowledge.memory.seeds.labels)) == {7}


def test_exemplars_are_herded_by_the_features_of_f_as_it_is_afterwards(begun):
    knowledge = LEARNER.learn(begun, of(3), seed=0)
    memory, network = knowledge.memory, knowledge.teacher.network
    held = rows_of(memory.seeds)
    # More were held back than stay: those are neither exemplars nor seeds.
    exemplars = memory.exemplars.inputs[memory.exemplars.labels == 3]
    training, _ = LEARNER._hold_back(of(3), seed=0)
    assert not rows_of(training) & held
    scaled = knowledge.scaling.transform(training.inputs)
    features = unit_rows(outputs(network, scaled, what="f").embeddings)
    np.testing.assert_array_equal(exemplars, training.inputs[herd(features, len(exemplars))])
    before = unit_rows(outputs(begun.teacher.network, scaled, what="f").embeddings)
    assert not np.array_equal(exemplars, training.inputs[herd(before, len(exemplars))])


def test_exemplars_of_old_classes_keep_their_order(begun):
    knowledge = SHORT.learn(begun, of(3), seed=0)
    for c in range(3):
        before, after = (
            k.memory.exemplars.inputs[k.memory.exemplars.labels == c] for k in (begun, knowledge)
        )
        assert len(after) == 21
        np.testing.assert_array_equal(after, before[:21])


def test_a_stream_learns_classes_one_after_another_and_forgets_none(begun):
    knowledge = begun
    for c in (3, 4):
        knowledge = LEARNER.learn(knowledge, of(c), seed=c)
        account = knowledge.account
        assert (account.n_labels, account.n_new_classes) == (60, 1)
        known = of(*range(c + 1), inputs=LATER_INPUTS, labels=LATER_LABELS)
        right = knowledge.name_known(known.inputs) == known.labels
        assert min(right[known.labels == k].mean() for k in range(c + 1)) > 0.95


def test_a_window_is_answered_with_f_as_it_is(begun):
    before, random = weights(begun), torch.get_rng_state()
    window = of(0, 1, 2, 3, inputs=LATER_INPUTS, labels=LATER_LABELS)
    truth = np.where(window.labels == 3, UNKNOWN, window.labels)
    found = [LEARNER.recognise(begun, window.inputs, seed=seed).solution for seed in range(2)]
    # The limit on false alarms, 5 %, holds on average.
    assert np.mean([solution.answer.labels == truth for solution in found]) > 0.95
    solution = found[0]
    # Half of the seeds judge what g says, all of them what the inputs say.
    n_seeds = len(begun.memory.seeds)
    assert solution.trust.audit.n_seeds in (n_seeds // 2, n_seeds)
    assert_same(weights(begun), before)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_class_that_was_learnt_is_unknown_no_longer(begun):
    knowledge = LEARNER.learn(begun, of(3), seed=0)
    window = of(0, 1, 2, 3, inputs=LATER_INPUTS, labels=LATER_LABELS)
    answer = LEARNER.recognise(knowledge, window.inputs, seed=0).predictions
    assert np.mean(answer.labels == window.labels) > 0.95


def test_learning_leaves_old_knowledge_as_it_was(begun):
    before, memory = weights(begun), copy.deepcopy(begun.memory)
    centres = begun.teacher.centres.copy()
    later = SHORT.learn(begun, of(3), seed=0)
    assert_same(weights(begun), before)
    np.testing.assert_array_equal(begun.teacher.centres, centres)
    for part in ("exemplars", "seeds"):
        np.testing.assert_array_equal(
            getattr(begun.memory, part).inputs, getattr(memory, part).inputs
        )
    assert (begun.teacher.n_classes, later.teacher.n_classes) == (3, 4)


def test_the_same_seed_learns_the_same(begun):
    a, b = (SHORT.learn(begun, of(3), seed=0) for _ in range(2))
    account, again = a.account, b.account
    assert_same(weights(a), weights(b))
    assert account == again
    np.testing.assert_array_equal(a.memory.exemplars.inputs, b.memory.exemplars.inputs)
    np.testing.assert_array_equal(a.memory.seeds.inputs, b.memory.seeds.inputs)


def test_a_learner_stays_as_it_is(begun):
    before = asdict(SHORT)
    SHORT.learn(begun, of(3), seed=0)
    assert asdict(SHORT) == before


def test_without_seeds_the_memory_is_all_exemplars():
    learner = replace(SHORT, method=TINY)
    knowledge = learner.begin(of(0, 1), seed=0)
    assert len(knowledge.memory.seeds) == 0
    assert np.bincount(knowledge.memory.exemplars.labels).tolist() == [60, 60]
    later = learner.learn(knowledge, of(2), seed=0)
    assert later.account.seeds is None
    assert np.bincount(later.memory.exemplars.labels).tolist() == [40, 40, 40]


def test_images_are_learnt_like_vectors():
    inputs, labels = make_images(30)
    knowledge = SHORT.begin(of(0, 1, 2, inputs=inputs, labels=labels), seed=0)
    later = SHORT.learn(knowledge, of(3, inputs=inputs, labels=labels), seed=0)
    assert later.teacher.n_classes == 4
    assert later.memory.exemplars.inputs.dtype == np.uint8
    # Stored as they came, never augmented.
    assert rows_of(later.memory.exemplars) <= rows_of(Labelled(inputs, labels))


def test_a_class_with_few_labels_holds_back_the_share_of_the_memory(begun):
    few = of(3)
    later = SHORT.learn(begun, Labelled(few.inputs[:10], few.labels[:10]), seed=0)
    assert int(np.sum(later.memory.seeds.labels == 3)) == 3
    assert int(np.sum(later.memory.exemplars.labels == 3)) == 7


def test_no_class_speaks_much_louder_than_another_for_the_known_items():
    labels = np.repeat([0, 1, 2], [300, 100, 120])
    items = Labelled(np.arange(520)[:, None], labels)
    even = even_out(items, 60)
    assert np.bincount(even.labels).tolist() == [150, 100, 120]
    assert even.inputs[:150, 0].tolist() == list(range(150))  # the first, the most important
    # One that has hardly any does not silence the others.
    assert np.bincount(even_out(items, 130).labels).tolist() == [150, 100, 120]
    assert np.bincount(even_out(items, 200).labels).tolist() == [200, 100, 120]
    assert len(even_out(Labelled(items.inputs[:0], labels[:0]), 60)) == 0


def test_a_class_with_few_seeds_speaks_for_as_many_items_of_a_window_as_any_other():
    seeds = Labelled(INPUTS[:23], np.repeat([0, 1, 2], [12, 9, 2]))
    pooled = hide_in_window(INPUTS[50:], seeds, 4, seed=0)
    n_seeds = np.bincount(pooled.held_back_labels, minlength=4)
    np.testing.assert_allclose(pooled.class_weights * n_seeds, [12, 12, 12, 0])
    assert not pooled.training_is_random


def test_a_window_is_answered_where_the_last_class_has_no_seeds(begun):
    known = SHORT.learn(begun, Labelled(of(3).inputs[:2], np.array([3, 3])), seed=0)
    assert known.memory.seeds.labels.max() == 2
    window = of(0, 1, 2, 3, 4, inputs=LATER_INPUTS, labels=LATER_LABELS)
    found = SHORT.recognise(known, window.inputs, seed=0)
    called = found.predictions.labels == UNKNOWN
    assert called[window.labels == 4].mean() > 0.5
