"""ODIN: softened confidence, the step that raises it, and how known items choose both."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import nn

from s2osc.baselines.odin import (
    ODIN,
    choose_eps,
    choose_temperature,
    confidence,
    perturb,
    perturbed_logits,
    unknownness,
)
from s2osc.baselines.shared import IMAGES, VECTORS, hold_out
from s2osc.errors import SettingsError
from s2osc.metrics import auroc
from s2osc.nets.networks import Network, NetworkSettings, as_tensor
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_images, open_set

# A threshold from a tenth of 120 items is a matter of luck.
RECIPE = replace(VECTORS, teacher=LEARNT.teacher, held_out=0.3)
METHOD = ODIN(recipe=RECIPE)


def linear(weights: np.ndarray, shape: tuple[int, ...]) -> Network:
    """A network whose logits are weights times the flattened inputs, normalised first."""
    network = Network(NetworkSettings(), shape, len(weights))
    network.body = nn.Sequential(nn.Flatten())
    network.head = nn.Linear(weights.shape[1], len(weights), bias=False)
    with torch.no_grad():
        network.head.weight.copy_(torch.from_numpy(weights))
    return network.eval()


WEIGHTS = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)


def test_at_a_high_temperature_confidence_tells_the_gap_to_the_mean_logit():
    logits = np.array([[3.0, 1.0, 0.0]])
    assert confidence(logits, 1000)[0] == pytest.approx(0.333889, abs=5e-7)
    assert confidence(logits, 1000)[0] == pytest.approx((1 + (3 - 4 / 3) / 1000) / 3, abs=1e-6)
    assert unknownness(logits, 1000)[0] == pytest.approx(-(3 - 4 / 3), abs=2e-3)


def test_the_score_orders_items_as_confidence_does():
    logits = np.random.default_rng(0).normal(size=(200, 5))
    for temperature in (1, 10, 1000):
        np.testing.assert_array_equal(
            np.argsort(unknownness(logits, temperature)),
            np.argsort(-confidence(logits, temperature)),
        )


def test_the_score_keeps_an_order_that_single_precision_would_lose_in_confidence():
    logits = np.column_stack([np.linspace(5, 5.01, 1_000), np.zeros(1_000)])
    assert len(np.unique(confidence(logits, 1000).astype(np.float32))) < 100
    assert len(np.unique(unknownness(logits, 1000).astype(np.float32))) == 1_000


def test_without_step_and_at_temperature_one_it_is_the_largest_probability():
    model = replace(METHOD, temperature=1.0, eps=0.0).fit(KNOWN, POOL, seed=0)
    p = softmax(model.teacher.outputs(POOL).logits.astype(float), axis=1)
    scores = model.predict(POOL).unknown_score
    np.testing.assert_allclose(np.exp(-scores) / 3, p.max(1), rtol=1e-6)


def gap(network: Network, batch: torch.Tensor, label: int) -> float:
    """l_label less the mean logit."""
    with torch.no_grad():
        logits = network(batch)[0]
    return float(logits[label] - logits.mean())


def test_a_step_raises_the_gap_of_a_linear_model_by_eps_times_the_length_of_the_weights():
    network, eps = linear(WEIGHTS, (16,)), 0.01
    network.scale.copy_(torch.linspace(0.5, 3, 16))
    batch = torch.from_numpy(np.random.default_rng(1).normal(size=(1, 16)).astype(np.float32))
    label = int(network(batch).argmax())
    after = perturb(network, batch, eps, 1e6)
    # In units of each feature's deviation, so that the scale cancels.
    rise = eps * np.abs(WEIGHTS[label] - WEIGHTS.mean(0)).sum()
    assert gap(network, after, label) - gap(network, batch, label) == pytest.approx(rise, rel=1e-3)
    np.testing.assert_allclose(
        np.abs((after - batch).numpy()[0]), eps * network.scale.numpy(), rtol=1e-3
    )


@pytest.mark.parametrize("shape", [(4, 4), (2, 2, 3)], ids=["grey", "colour"])
def test_a_step_on_images_is_in_units_of_pixels_from_0_to_1(shape):
    image = np.random.default_rng(1).integers(0, 256, (1, *shape)).astype(np.uint8)
    network = linear(WEIGHTS[:, : image.size], shape)
    network.scale.fill_(60.0)
    batch = as_tensor(image)
    after = perturb(network, batch, 0.002, 1000)
    np.testing.assert_allclose(np.abs((after - batch.float()).numpy()), 0.002 * 255, rtol=1e-3)
    label = int(network(batch).argmax())
    assert gap(network, after, label) > gap(network, batch, label)


def test_where_there_is_no_slope_the_step_goes_down():
    network, batch = linear(np.zeros((3, 4), np.float32), (4,)), torch.zeros(1, 4)
    assert perturb(network, batch, 0.1, 1000).tolist() == [pytest.approx([-0.1] * 4)]


def test_the_step_keeps_its_direction_where_f_is_very_sure():
    network, batch = linear(40 * WEIGHTS, (16,)), torch.ones(1, 16)
    likeliest = int(network(batch).argmax())
    gap_before = gap(network, batch, likeliest)
    # In single precision 1 - S is 0 here, and so is the slope of log S.
    assert confidence(network(batch).detach().numpy(), 1.0).astype(np.float32)[0] == 1
    assert gap(network, perturb(network, batch, 0.01, 1.0), likeliest) > gap_before
    runner_up = int(network(batch)[0].topk(2).indices[1])
    toward = np.sign(WEIGHTS[likeliest] - WEIGHTS[runner_up])
    moved = np.sign((perturb(network, batch, 0.01, 1.0) - batch).numpy()[0])
    np.testing.assert_array_equal(moved, toward)


def test_perturbing_leaves_network_and_items_as_they_were():
    network, inputs = linear(WEIGHTS, (16,)), np.ones((3, 16), np.float32)
    perturbed_logits(network, inputs, 0.1, 1000)
    batch = torch.from_numpy(inputs)
    assert not perturb(network, batch, 0.1, 1000).requires_grad
    assert not batch.requires_grad
    assert network.head.weight.grad is None
    np.testing.assert_array_equal(inputs, 1)
    np.testing.assert_array_equal(network.head.weight.detach().numpy(), WEIGHTS)


def test_the_step_chosen_makes_f_surest_of_known_items():
    network = linear(WEIGHTS, (16,))
    inputs = np.random.default_rng(2).normal(size=(50, 16)).astype(np.float32)
    assert choose_eps(network, inputs, (0.3, 0.0, 0.1), 1000) == 0.3
    # Of a model that never changes its mind no step is better than none.
    assert choose_eps(linear(0 * WEIGHTS, (16,)), inputs, (0.3, 0.0, 0.1), 1000) == 0


def test_the_temperature_chosen_makes_f_as_sure_as_it_is_right():
    sure = np.tile([[6.0, 0.0]], (10, 1))
    labels = np.array([0] * 9 + [1])
    temperature = choose_temperature(sure, labels)
    assert temperature == pytest.approx(6 / np.log(9), rel=1e-3)
    assert confidence(sure, temperature)[0] == pytest.approx(0.9, abs=1e-3)


def test_the_temperature_stays_between_one_and_the_published_one():
    sure = np.tile([[6.0, 0.0]], (10, 1))
    assert choose_temperature(sure, np.zeros(10, int)) == 1
    assert choose_temperature(sure, np.ones(10, int)) == pytest.approx(1_000, rel=1e-2)


def test_a_given_temperature_is_kept_and_another_is_chosen_by_items_held_out():
    assert replace(METHOD, temperature=1000.0).fit(KNOWN, POOL, seed=0).temperature == 1000
    model = fitted(METHOD)
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    logits = model.teacher.outputs(held_out.inputs).logits
    assert model.temperature == choose_temperature(logits, held_out.labels)


def test_a_given_step_is_taken_and_another_is_from_the_grid():
    assert replace(METHOD, eps=0.02).fit(KNOWN, POOL, seed=0).eps == 0.02
    assert fitted(METHOD).eps in METHOD.grid


def test_the_threshold_lets_the_asked_share_of_perturbed_held_out_items_pass():
    model = replace(METHOD, known_recall=0.5, eps=0.1).fit(KNOWN, POOL, seed=0)
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    assert np.mean(model.predict(held_out.inputs).labels != UNKNOWN) == 0.5


def test_known_items_are_named_by_f():
    model = fitted(METHOD)
    predictions, sight = model.predict(POOL), model.teacher.outputs(POOL)
    named = predictions.labels != UNKNOWN
    np.testing.assert_array_equal(predictions.labels[named], sight.logits.argmax(1)[named])
    np.testing.assert_array_equal(model.features(POOL), sight.embeddings)


@pytest.mark.parametrize(
    "colour",
    [pytest.param(False, id="grey"), pytest.param(True, id="colour", marks=pytest.mark.slow)],
)
def test_images_are_recognised(colour):
    split = open_set(*make_images(colour=colour))
    model = ODIN(recipe=replace(IMAGES, teacher=LEARNT.teacher)).fit(
        split.known, split.pool, seed=0
    )
    predictions = model.predict(split.pool)
    # f is too sure of the unknown ones in colour, before and after the step.
    assert colour or auroc(split.truth, predictions.unknown_score) > 0.9
    named = (predictions.labels != UNKNOWN) & (split.truth != UNKNOWN)
    assert np.mean(predictions.labels[named] == split.truth[named]) > 0.95
    assert len(model.predict(split.pool[:0]).labels) == len(model.features(split.pool[:0])) == 0


def test_stacked_views_are_recognised():
    def stack(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows, rows + 0.1], axis=1)

    known = Labelled(stack(KNOWN.inputs), KNOWN.labels)
    predictions = METHOD.fit(known, stack(POOL), seed=0).predict(stack(POOL))
    assert auroc(TRUTH, predictions.unknown_score) > 0.9


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.0},
        {"eps": -0.1},
        {"grid": ()},
        {"grid": (0.1, -0.1)},
        {"known_recall": 1.5},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(SettingsError, match=f"ODIN.{next(iter(settings))} is "):
        ODIN(**settings)
