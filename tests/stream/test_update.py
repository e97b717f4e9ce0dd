"""f is fine-tuned: the wider head, the batches, the two sums of the loss, and the account."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from s2osc.codec import from_plain, to_plain
from s2osc.errors import SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.losses import distil_previous
from s2osc.nets.training import TrainSettings, outputs
from s2osc.pipeline.teacher import Teacher, train_teacher
from s2osc.stream import update as update_module
from s2osc.stream.memory import Memory
from s2osc.stream.update import (
    Account,
    Losses,
    UpdateSettings,
    balanced,
    halves,
    mean_loss,
    update_teacher,
    widen,
)
from s2osc.types import Labelled
from samples import TINY, make_blobs

TRAINING = TrainSettings(1, 32, 0.02, 5e-4, min_steps=40)
QUICK = UpdateSettings(TRAINING)
HARD = 3.5  # blobs that overlap a little: what is forgotten shows


def blobs(classes, n=40, *, distance=HARD, seed=0):
    inputs, labels = make_blobs(n, 6, distance=distance, seed=seed)
    rows = np.isin(labels, classes)
    return Labelled(inputs[rows], labels[rows])


def first(items, n):
    """The first ``n`` of each class."""
    rows = np.concatenate([np.flatnonzero(items.labels == c)[:n] for c in np.unique(items.labels)])
    return Labelled(items.inputs[rows], items.labels[rows])


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    known = blobs([0, 1, 2])
    return train_teacher(known, TINY.teacher, TINY.augmentation, seed=0, device="cpu").teacher


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory(first(blobs([0, 1, 2]), 15), first(blobs([0, 1, 2], seed=1), 10))


NEW = blobs([3])


def updated(teacher, memory, answers=NEW, settings=QUICK, seed=0):
    return update_teacher(
        teacher, memory, answers, settings, AugmentSettings(), seed=seed, device="cpu"
    )


def weights(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def accuracy(teacher, items):
    return np.mean(teacher.outputs(items.inputs).logits.argmax(1) == items.labels)


# The wider head


def test_a_wider_head_keeps_the_old_outputs_exactly(teacher):
    wider = widen(teacher.network, 5, seed=0)
    inputs = blobs([0, 1, 2, 3]).inputs
    before = outputs(teacher.network, inputs, what="f")
    after = outputs(wider, inputs, what="f")
    assert after.logits.shape == (160, 5)
    # The product of a larger matrix may round otherwise; the weights are the same bits.
    np.testing.assert_allclose(after.logits[:, :3], before.logits, rtol=1e-5, atol=1e-5)
    assert torch.equal(wider.head.weight[:3], teacher.network.head.weight)
    assert torch.equal(wider.head.bias[:3], teacher.network.head.bias)
    np.testing.assert_array_equal(after.embeddings, before.embeddings)
    assert teacher.network.head.out_features == 3


def test_new_outputs_come_from_the_seed(teacher):
    first_, again, other = (widen(teacher.network, 5, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first_.head.weight, again.head.weight)
    assert not torch.equal(first_.head.weight[3:], other.head.weight[3:])


def test_without_new_classes_the_head_is_a_copy(teacher):
    wider = widen(teacher.network, 3, seed=0)
    assert same(weights(wider), weights(teacher.network))
    assert wider.head.weight is not teacher.network.head.weight


# Batches


def test_every_class_is_equally_frequent_in_a_balanced_batch():
    labels = np.array([0] * 200 + [1] * 7 + [2] * 30)
    batches = balanced(labels, 30, np.random.default_rng(0))
    drawn = [next(batches) for _ in range(30)]
    assert all(np.bincount(labels[batch]).tolist() == [10, 10, 10] for batch in drawn)
    often = np.bincount(np.concatenate(drawn), minlength=len(labels))
    assert often[:200].min() == 1  # no item is left out
    assert often[:200].max() == 2
    assert set(often[200:207].tolist()) <= {42, 43}


def test_classes_take_turns_where_a_batch_is_smaller_than_their_number():
    labels = np.array([0, 1, 2, 3, 4])
    batches = balanced(labels, 2, np.random.default_rng(0))
    assert [labels[next(batches)].tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 0]]


@pytest.mark.parametrize("n_new", [3, 100])
def test_half_of_a_batch_is_new_also_where_little_is_new(n_new):
    batches = halves(50, n_new, 20, np.random.default_rng(0))
    drawn = [next(batches) for _ in range(20)]
    assert all(np.sum(batch >= 50) == 10 for batch in drawn)
    assert set(np.concatenate(drawn).tolist()) == set(range(50 + n_new))


def test_new_and_remembered_items_are_mixed_so_that_both_are_augmented():
    batches = halves(50, 50, 20, np.random.default_rng(0))
    is_new = np.array([next(batches) >= 50 for _ in range(400)])
    np.testing.assert_allclose(is_new.mean(0), 0.5, atol=0.12)


# The loss


def test_distillation_is_at_its_least_where_old_outputs_are_as_they_were():
    previous = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    logits = torch.cat([previous, torch.full((6, 2), 4.0)], 1).requires_grad_()
    distil_previous(logits, previous).sum().backward()
    torch.testing.assert_close(logits.grad, torch.zeros(6, 5), atol=1e-6, rtol=0)


def test_distillation_leaves_new_outputs_free():
    random = torch.Generator().manual_seed(0)
    previous = torch.randn(6, 3, generator=random)
    logits = torch.randn(6, 5, generator=random).requires_grad_()
    distil_previous(logits, previous).sum().backward()
    assert torch.equal(logits.grad[:, 3:], torch.zeros(6, 2))
    assert (logits.grad[:, :3].abs().sum(1) > 0).all()


def test_distillation_is_the_cross_entropy_of_its_equation():
    previous, logits = np.array([[0.0, 1.0]]), np.array([[2.0, -1.0, 9.0]])
    expected = -(softmax(previous, 1) * log_softmax(logits[:, :2], 1)).sum(1)
    found = distil_previous(torch.tensor(logits), torch.tensor(previous))
    np.testing.assert_allclose(found.numpy(), expected)


def test_no_gradient_reaches_what_f_said_before():
    previous = torch.randn(2, 3).requires_grad_()
    distil_previous(torch.randn(2, 4, requires_grad=True), previous).sum().backward()
    assert previous.grad is None


def test_q_is_what_the_old_f_says_in_earnest_before_anything_is_trained(
    teacher, memory, monkeypatch
):
    calls = []

    def watched(logits, previous):
        calls.append((logits.shape[1], previous.clone()))
        return distil_previous(logits, previous)

    monkeypatch.setattr(update_module, "distil_previous", watched)
    updated(teacher, memory)
    expected = outputs(teacher.network, memory.exemplars.inputs, what="f").logits
    rows = {row.tobytes() for row in expected}
    assert len(calls) == TRAINING.min_steps
    for n_outputs, previous in calls:
        assert n_outputs == 4
        assert len(previous) == 24  # of 32, three classes of four being old
        assert all(row.tobytes() in rows for row in previous.numpy())


def test_without_a_weight_nothing_is_distilled(teacher, memory, monkeypatch):
    monkeypatch.setattr(update_module, "distil_previous", None)
    updated(teacher, memory, settings=replace(QUICK, distillation=0.0))


# An update


@pytest.mark.parametrize(("batches", "costs"), [("classes", 0.06), ("halves", 0.15)])
def test_a_new_class_is_learnt_and_old_ones_are_not_forgotten(teacher, memory, batches, costs):
    later, _ = updated(teacher, memory, settings=replace(QUICK, batches=batches))
    old, new = blobs([0, 1, 2], seed=9), blobs([3], seed=9)
    assert later.n_classes == 4
    assert accuracy(later, new) > 0.9
    assert accuracy(later, old) > accuracy(teacher, old) - costs


def test_with_hardly_a_memory_more_is_forgotten(teacher, memory):
    old = blobs([0, 1, 2], 80, seed=9)
    hardly = replace(memory, exemplars=first(memory.exemplars, 1))
    answers = blobs([3, 4, 5])
    rehearsed, forgot = (updated(teacher, m, answers)[0] for m in (memory, hardly))
    assert accuracy(rehearsed, old) > accuracy(forgot, old) + 0.08


def test_without_distillation_f_drifts_further_from_what_it_said(teacher, memory):
    old = blobs([0, 1, 2], 80, seed=9).inputs
    before = log_softmax(teacher.outputs(old).logits, 1)

    def drift(distillation):
        later, _ = updated(teacher, memory, settings=replace(QUICK, distillation=distillation))
        after = log_softmax(later.outputs(old).logits[:, :3], 1)
        return float(np.mean((np.exp(before) * (before - after)).sum(1)))

    assert drift(3.0) < drift(1.0) < drift(0.0)


def test_f_learns_more_of_a_class_it_knows_without_a_wider_head(teacher, memory):
    later, account = updated(teacher, memory, blobs([1], seed=3))
    assert later.n_classes == 3
    assert account.n_new_classes == 0


def test_one_labelled_item_is_enough_for_an_update(teacher, memory):
    for batches in ("classes", "halves"):
        one = Labelled(NEW.inputs[:1], np.array([0]))
        later, account = updated(teacher, memory, one, replace(QUICK, batches=batches))
        assert account.n_labels == 1
        assert later.n_classes == 3


def test_the_old_f_and_the_random_state_stay_as_they_were(teacher, memory):
    before, centres = weights(teacher.network), teacher.centres.copy()
    items = copy.deepcopy(memory)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    later, _ = updated(teacher, memory)
    assert same(weights(teacher.network), before)
    np.testing.assert_array_equal(teacher.centres, centres)
    np.testing.assert_array_equal(memory.exemplars.inputs, items.exemplars.inputs)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert not later.network.training


def test_the_same_seed_gives_the_same_f(teacher, memory):
    (a, account), (b, again), (c, _) = (updated(teacher, memory, seed=seed) for seed in (0, 0, 1))
    assert same(weights(a.network), weights(b.network))
    assert account == again
    assert not same(weights(a.network), weights(c.network))


def test_f_is_the_same_whatever_the_seeds_are(teacher, memory):
    others = Memory(memory.exemplars, Labelled(-memory.seeds.inputs, memory.seeds.labels))
    (a, account), (b, other) = updated(teacher, memory), updated(teacher, others)
    assert same(weights(a.network), weights(b.network))
    assert account.memory == other.memory
    assert account.seeds != other.seeds


def test_centres_are_those_of_all_that_was_learnt(teacher, memory):
    later, _ = updated(teacher, memory)
    embeddings = outputs(later.network, NEW.inputs, what="f").embeddings
    np.testing.assert_allclose(later.centres[3], embeddings.mean(0), rtol=1e-4, atol=1e-5)
    mine = memory.exemplars.inputs[memory.exemplars.labels == 1]
    old = outputs(later.network, mine, what="f").embeddings
    np.testing.assert_allclose(later.centres[1], old.mean(0), rtol=1e-4, atol=1e-5)


# The account


def test_the_account_holds_the_losses_of_both_models_on_the_same_items(teacher, memory):
    later, account = updated(teacher, memory)
    for losses, items in ((account.memory, memory.exemplars), (account.seeds, memory.seeds)):
        for value, model in ((losses.before, teacher), (losses.after, later)):
            p = softmax(model.outputs(items.inputs).logits, 1)[np.arange(len(items)), items.labels]
            assert value == pytest.approx(-np.log(p).mean(), rel=1e-4)
    assert (account.n_labels, account.n_new_classes) == (40, 1)


@pytest.mark.parametrize(
    ("before", "after", "holds"), [(1, 0.5, True), (1, 1, True), (1, 2, False)]
)
def test_the_constraint_is_that_the_loss_does_not_rise(before, after, holds):
    losses = Losses(before, after)
    assert losses.holds is holds
    account = Account(3, 1, losses, None)
    record = to_plain(account)
    assert record["memory"] == {"before": before, "after": after, "holds": holds}
    assert record["seeds"] is None
    assert from_plain(Account, record, "an update") == account


def test_the_constraint_is_measured_as_broken_and_as_kept(teacher, memory):
    # f knows its exemplars by heart: making room for a class costs it some of that.
    _, broken = updated(teacher, memory)
    assert not broken.memory.holds
    # More of what it learns already makes it surer.
    _, steady = updated(teacher, memory, first(blobs([0, 1, 2]), 15))
    assert steady.memory.holds
    assert from_plain(Account, to_plain(steady), "an update") == steady


def test_without_seeds_there_is_no_account_of_them(teacher, memory):
    none = Labelled(memory.seeds.inputs[:0], memory.seeds.labels[:0])
    _, account = updated(teacher, Memory(memory.exemplars, none))
    assert account.seeds is None


def test_the_mean_loss_of_certainty_is_nothing():
    assert mean_loss(np.array([[90.0, 0.0], [0.0, 90.0]]), np.array([0, 1])) == pytest.approx(0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"distillation": -1.0}, "update.distillation is -1.0; give a weight from 0"),
        ({"augment": 1.5}, "update.augment is 1.5; give a share from 0 to 1"),
        ({"batches": "thirds"}, "update.batches is 'thirds'; give 'classes' or 'halves'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        UpdateSettings(**wrong)
