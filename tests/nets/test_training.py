"""The training loop, its learning rates and its batches."""

from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import SettingsError
from s2osc.nets import training
from s2osc.nets.networks import Network, NetworkSettings
from s2osc.nets.training import (
    AdamDescent,
    TrainSettings,
    learning_rates,
    outputs,
    resolve_device,
    shuffled,
    threads_for,
    train,
)
from samples import TINY_NETWORK, make_blobs, make_images

CONSTANT = TrainSettings(1, 4, 0.1, 0.0, schedule="constant")


# Batches


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 99))
def test_every_batch_is_full_and_no_pass_repeats_an_item(n_items, batch_size, seed):
    batch_size = min(batch_size, n_items)
    per_pass = n_items // batch_size
    batches = list(islice(shuffled(n_items, batch_size, np.random.default_rng(seed)), 3 * per_pass))
    assert {len(batch) for batch in batches} == {batch_size}
    for start in range(0, len(batches), per_pass):
        drawn = np.concatenate(batches[start : start + per_pass])
        assert len(set(drawn.tolist())) == len(drawn)
        assert set(drawn.tolist()) <= set(range(n_items))


def test_a_pass_that_divides_evenly_holds_every_item():
    batches = shuffled(12, 4, np.random.default_rng(0))
    for _ in range(3):
        assert sorted(np.concatenate([next(batches) for _ in range(3)])) == list(range(12))


def test_each_pass_comes_in_a_new_order():
    batches = shuffled(50, 50, np.random.default_rng(0))
    assert next(batches).tolist() != next(batches).tolist()


def test_a_batch_larger_than_the_data_is_all_of_the_data():
    assert sorted(next(shuffled(3, 64, np.random.default_rng(0)))) == [0, 1, 2]


# Learning rates


def test_a_constant_schedule_stays_where_it_is():
    assert learning_rates(CONSTANT, 5).tolist() == [0.1] * 5


def test_one_cycle_rises_over_a_quarter_and_falls_along_a_cosine():
    rates = learning_rates(TrainSettings(1, 2, 0.6, 0.0), 12)
    np.testing.assert_allclose(rates[:3], [0.2, 0.4, 0.6])
    np.testing.assert_allclose(rates[3:], 0.3 * (1 + np.cos(np.pi * np.arange(1, 10) / 10)))


@given(st.integers(1, 300))
def test_one_cycle_has_a_rate_above_zero_for_every_step_and_peaks_once(n_steps):
    rates = learning_rates(TrainSettings(1, 2, 0.4, 0.0), n_steps)
    assert len(rates) == n_steps
    assert rates.min() > 0
    assert rates.max() == pytest.approx(0.4)
    peak = rates.argmax()
    assert peak == max(1, n_steps // 4) - 1
    assert (np.diff(rates[: peak + 1]) > 0).all()
    assert (np.diff(rates[peak:]) < 0).all()


def test_steps_are_whole_passes_but_never_fewer_than_asked_for():
    settings = TrainSettings(3, 64, 0.1, 0.0, min_steps=50)
    assert settings.n_steps(64 * 20 + 1) == 3 * 21
    assert settings.n_steps(64) == 50


# The loop


def test_the_first_step_is_that_of_sgd_with_nesterov_momentum_and_weight_decay():
    network = Network(TINY_NETWORK, (3,), 2)
    with torch.no_grad():
        network.head.bias.copy_(torch.tensor([1.0, -2.0]))
    settings = TrainSettings(1, 2, 0.1, 0.5, schedule="constant")
    train(network, iter([None]), lambda _: network.head.bias.sum(), settings, n_steps=1, what="")
    # gradient 1 + decay 0.5 b; Nesterov's first step is 1 + 0.9 times the gradient
    np.testing.assert_allclose(
        network.head.bias.detach(), [1 - 0.19 * (1 + 0.5), -2 - 0.19 * (1 - 1.0)], rtol=1e-6
    )


def test_later_steps_remember_earlier_gradients():
    network = Network(TINY_NETWORK, (3,), 2)
    torch.nn.init.zeros_(network.head.bias)
    train(
        network, iter([None] * 2), lambda _: network.head.bias.sum(), CONSTANT, n_steps=2, what=""
    )
    # step 1: 1 + 0.9 * 1; step 2: velocity 1.9, so 1 + 0.9 * 1.9
    np.testing.assert_allclose(network.head.bias.detach(), -0.1 * (1.9 + 2.71), rtol=1e-6)


def test_steps_are_those_of_the_optimiser_of_torch():
    ours, theirs = Network(TINY_NETWORK, (3,), 2), Network(TINY_NETWORK, (3,), 2)
    theirs.load_state_dict(ours.state_dict())
    batches = [torch.randn(4, 3) for _ in range(5)]
    train(
        ours, iter(batches), lambda batch: ours(batch).square().mean(), CONSTANT, n_steps=5, what=""
    )
    optimiser = torch.optim.SGD(
        theirs.parameters(),
        CONSTANT.learning_rate,
        momentum=0.9,
        nesterov=True,
        weight_decay=CONSTANT.weight_decay,
    )
    for batch in batches:
        optimiser.zero_grad()
        theirs(batch).square().mean().backward()
        optimiser.step()
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, expected)


def test_steps_of_adam_are_those_of_torch_with_a_rate_for_each_parameter():
    ours, theirs = Network(TINY_NETWORK, (3,), 2), Network(TINY_NETWORK, (3,), 2)
    theirs.load_state_dict(ours.state_dict())
    factors = [0.5 ** (number % 3) for number, _ in enumerate(ours.parameters())]
    descent = AdamDescent(list(ours.parameters()), 0.1, factors)
    groups = [
        {"params": [parameter], "lr": 0.01 * factor}
        for parameter, factor in zip(theirs.parameters(), factors, strict=True)
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.1)
    for _ in range(4):
        batch = torch.randn(4, 3)
        for network, step in ((ours, lambda: descent.step(0.01)), (theirs, optimiser.step)):
            network.zero_grad()
            network(batch).square().mean().backward()
            step()
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, expected)


def test_the_optimiser_is_the_one_that_is_asked_for():
    network = Network(TINY_NETWORK, (3,), 2)
    torch.nn.init.zeros_(network.head.bias)
    settings = TrainSettings(1, 2, 0.1, 0.0, schedule="constant", optimiser="adam")
    train(
        network, iter([None]), lambda _: 7 * network.head.bias.sum(), settings, n_steps=1, what=""
    )
    # Adam's first step is the rate, whatever the gradient.
    np.testing.assert_allclose(network.head.bias.detach(), -0.1, rtol=1e-5)


def test_the_schedule_sets_the_rate_of_every_step():
    network = Network(TINY_NETWORK, (3,), 2)
    settings = TrainSettings(1, 2, 0.4, 0.0)
    seen = []

    def loss_of(_):
        seen.append(network.head.bias.detach().clone())
        return network.head.bias.sum()

    train(network, iter([None] * 4), loss_of, settings, n_steps=4, what="")
    moves = [float(before[0] - after[0]) for before, after in pairwise(seen)]
    velocities, velocity = [], 0.0
    for _ in range(3):
        velocity = 0.9 * velocity + 1
        velocities.append(1 + 0.9 * velocity)
    expected = learning_rates(settings, 4)[:3] * velocities
    np.testing.assert_allclose(moves, expected, rtol=1e-4)


def test_training_takes_just_as_many_steps_as_it_is_told():
    network = Network(TINY_NETWORK, (3,), 2)
    batches = iter(range(10))
    train(network, batches, lambda _: network.head.bias.sum(), CONSTANT, n_steps=7, what="")
    assert next(batches) == 7


def test_a_network_is_in_training_mode_while_it_learns_and_in_answering_mode_after():
    network = Network(TINY_NETWORK, (3,), 2).eval()
    modes = []

    def loss_of(_):
        modes.append(network.training)
        return network.head.bias.sum()

    train(network, iter([None]), loss_of, CONSTANT, n_steps=1, what="")
    assert modes == [True]
    assert not network.training


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_training_and_says_in_which_step(value):
    network = Network(TINY_NETWORK, (3,), 2)
    factors = iter([1.0, 1.0, value])
    with pytest.raises(SettingsError, match=f"training f: the loss is {value} in step 3 of 9"):
        train(
            network,
            factors,
            lambda factor: factor * network.head.bias.square().sum(),
            CONSTANT,
            n_steps=9,
            what="training f",
        )


# Outputs


@pytest.mark.parametrize("inputs", [make_blobs(9)[0], make_images(9)[0]], ids=["vectors", "images"])
@pytest.mark.parametrize("batch", [1, 5, 36, 100])
def test_outputs_do_not_depend_on_the_size_of_the_scoring_batch(inputs, batch, monkeypatch):
    torch.manual_seed(0)
    network = Network(TINY_NETWORK, inputs.shape[1:], 3)
    network.fit_normalisation(inputs)
    whole = outputs(network, inputs, what="")
    monkeypatch.setattr(training, "SCORING_BATCH", batch)
    parts = outputs(network, inputs, what="")
    np.testing.assert_allclose(parts.logits, whole.logits, atol=1e-5)
    np.testing.assert_allclose(parts.embeddings, whole.embeddings, atol=1e-5)


def test_outputs_are_logits_and_embeddings_of_a_network_that_answers():
    inputs = make_blobs(5)[0]
    network = Network(TINY_NETWORK, (8,), 3).train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    seen = outputs(network, inputs, what="")
    with torch.no_grad():
        expected = network.eval().embed(torch.from_numpy(inputs))
        np.testing.assert_allclose(seen.embeddings, expected, atol=1e-5)
        np.testing.assert_allclose(seen.logits, network.head(expected), atol=1e-5)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_stacked_views_have_one_row_of_outputs_for_each_item(monkeypatch):
    views = np.random.default_rng(0).normal(size=(10, 3, 8)).astype(np.float32)
    network = Network(TINY_NETWORK, (8,), 3)
    monkeypatch.setattr(training, "SCORING_BATCH", 4)
    seen = outputs(network, views, what="")
    each = [outputs(network, np.ascontiguousarray(views[:, v]), what="") for v in range(3)]
    mean = np.mean([one.embeddings for one in each], axis=0)
    np.testing.assert_allclose(seen.embeddings, mean, atol=1e-5)
    assert seen.logits.shape == (10, 3)


def test_no_items_have_no_outputs():
    network = Network(TINY_NETWORK, (8,), 3)
    seen = outputs(network, np.empty((0, 8), np.float32), what="")
    assert (seen.logits.shape, seen.embeddings.shape) == ((0, 3), (0, 16))


# Settings and devices


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epochs": 0}, "training.epochs is 0; give a number from 1"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"min_steps": -1}, "min_steps is -1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; give a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1"),
        ({"schedule": "cosine"}, "'one-cycle' or 'constant'"),
    ],
)
def test_training_that_cannot_be_done_is_refused(wrong, words):
    right = {"epochs": 1, "batch_size": 2, "learning_rate": 0.1, "weight_decay": 0.0}
    with pytest.raises(SettingsError, match=words):
        TrainSettings(**(right | wrong))


@pytest.mark.parametrize(("has_gpu", "device"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_a_gpu_where_there_is_one(has_gpu, device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    assert resolve_device("auto") == device
    assert resolve_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match="no GPU here; give cpu or auto"):
        resolve_device("cuda")
    with pytest.raises(SettingsError, match="give auto, cpu or cuda"):
        resolve_device("tpu")


# Threads


@pytest.mark.parametrize(
    ("shape", "hidden", "n_threads"),
    [((30,), (64,), 1), ((4_000,), (512,), 2), ((8, 8), (64,), 2)],
    ids=["few weights", "many weights", "images"],
)
def test_only_a_small_network_for_vectors_is_trained_in_one_thread(shape, hidden, n_threads):
    network, before = Network(NetworkSettings(hidden=hidden), shape, 3), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(network):
            assert torch.get_num_threads() == n_threads
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
