"""CPE: its losses, how prototypes come and go, and what is too far from them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from s2osc.baselines.cpe import (
    CPE,
    Prototypes,
    assign,
    class_radius,
    distance_cross_entropy,
    extend_prototypes,
    no_prototypes,
    pairwise_loss,
    prune,
    settle,
    squares_to,
)
from s2osc.baselines.shared import IMAGES, VECTORS, hold_out
from s2osc.errors import SettingsError
from s2osc.metrics import auroc
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_images, open_set

# A threshold from a tenth of 120 items is a matter of luck.
RECIPE = replace(VECTORS, teacher=LEARNT.teacher, held_out=0.3)
OWN = CPE(recipe=RECIPE)
RECALL = replace(OWN, rule="recall")

TWO = Prototypes(
    torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([0, 1]), torch.tensor([1.0, 1.0])
)


def test_dce_is_small_for_the_prototype_an_item_lies_on_and_large_for_another():
    squares = squares_to(torch.zeros(2, 2), TWO.vectors)
    dce = distance_cross_entropy(squares, torch.tensor([0, 1]))
    assert dce.tolist() == pytest.approx([0.006715, 5.006715], abs=1e-6)


def test_dce_of_items_far_from_everything_is_finite():
    squares = squares_to(torch.full((1, 2), 1e3), TWO.vectors)
    assert torch.isfinite(distance_cross_entropy(squares, torch.tensor([0]))).all()


@pytest.mark.parametrize(
    ("square", "is_same", "loss"),
    [(0.0, True, 0.006715), (25.0, True, 20.0), (25.0, False, 4.54e-5)],
)
def test_pw_pulls_to_the_own_class_and_pushes_from_others(square, is_same, loss):
    value = pairwise_loss(torch.tensor([square]), torch.tensor([is_same]))
    assert value.item() == pytest.approx(loss, rel=1e-3)


def test_an_item_within_reach_moves_its_prototype_to_the_mean_of_all_that_joined():
    one = Prototypes(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([3.0]))
    moved, joined = assign(one, torch.tensor([[8.0, 0.0]]), torch.tensor([0]), reach=10)
    assert moved.vectors.tolist() == [[2.0, 0.0]]
    assert moved.weights.tolist() == [4.0]
    assert joined.tolist() == [0]


@pytest.mark.parametrize(("distance", "n_prototypes"), [(9.99, 1), (10.0, 2)])
def test_an_item_founds_a_prototype_from_a_distance_of_two_radii(distance, n_prototypes):
    one = Prototypes(torch.zeros(1, 1), torch.tensor([0]), torch.tensor([1.0]))
    grown, _ = assign(one, torch.tensor([[distance]]), torch.tensor([0]), reach=10)
    assert len(grown.labels) == n_prototypes


def test_a_prototype_of_another_class_is_never_joined():
    grown, joined = assign(TWO, torch.tensor([[0.0, 0.1]]), torch.tensor([2]), reach=10)
    assert grown.labels.tolist() == [0, 1, 2]
    assert joined.tolist() == [2]
    assert grown.vectors[2].tolist() == pytest.approx([0.0, 0.1])


def test_items_of_one_batch_join_the_prototype_that_one_of_them_founds():
    z = torch.tensor([[0.0], [1.0], [50.0], [2.0]])
    grown, joined = assign(no_prototypes(1), z, torch.tensor([0, 0, 0, 1]), reach=10)
    assert grown.labels.tolist() == [0, 1, 0]
    assert joined.tolist() == [0, 0, 2, 1]
    assert grown.vectors[:, 0].tolist() == [0.5, 2.0, 50.0]
    assert grown.weights.tolist() == [2.0, 1.0, 1.0]


def test_after_an_epoch_prototypes_of_one_item_go_and_the_others_lose_half_their_weight():
    three = Prototypes(
        torch.arange(3.0)[:, None], torch.tensor([0, 0, 0]), torch.tensor([1.0, 2.0, 3.0])
    )
    left = prune(three)
    assert left.weights.tolist() == [1.0, 2.0]
    assert left.vectors[:, 0].tolist() == [1.0, 2.0]


def test_settled_prototypes_are_means_of_their_items_and_every_class_keeps_one():
    old = Prototypes(
        torch.tensor([[0.0], [9.0], [30.0]]), torch.tensor([0, 0, 0]), torch.tensor([5.0, 5.0, 5.0])
    )
    z = torch.tensor([[1.0], [3.0], [8.0], [100.0]])
    settled = settle(old, z, torch.tensor([0, 0, 0, 1]))
    # 9 has one item and 30 none: both go; class 1 had no prototype and keeps that of its one item.
    assert settled.labels.tolist() == [0, 1]
    assert settled.vectors[:, 0].tolist() == [2.0, 100.0]
    assert settled.weights.tolist() == [2.0, 1.0]


def test_the_radius_has_the_scale_of_the_embedding():
    random = torch.Generator().manual_seed(0)
    z = torch.randn(300, 4, generator=random)
    labels = torch.arange(300) % 3
    assert class_radius(7 * z, labels) == pytest.approx(7 * class_radius(z, labels))


def test_a_radius_that_is_given_is_kept_and_a_measured_one_suits_the_items():
    assert replace(OWN, radius=5.0).fit(KNOWN, POOL, seed=0).radius == 5.0
    measured = fitted(OWN)
    assert 0.2 < measured.mean.mean() / measured.radius < 5


def test_a_single_step_is_enough_to_measure_the_radius():
    training = replace(RECIPE.teacher.training, min_steps=0, batch_size=1_000)
    teacher = replace(RECIPE.teacher, training=training)
    recogniser = replace(OWN, recipe=replace(RECIPE, teacher=teacher)).fit(KNOWN, POOL, seed=0)
    assert recogniser.radius > 0
    assert set(recogniser.labels) == {0, 1, 2}


def test_the_ensemble_is_far_smaller_than_the_training_set_and_holds_every_class():
    recogniser = fitted(OWN)
    assert set(recogniser.labels) == {0, 1, 2}
    assert len(recogniser.labels) < len(KNOWN) / 5
    assert recogniser.weights.sum() <= len(KNOWN)
    assert recogniser.vectors.shape == (len(recogniser.labels), recogniser.features(POOL).shape[1])


def test_the_own_rule_is_kappa_deviations_beyond_the_mean_distance_of_the_class():
    recogniser = fitted(OWN)
    z = recogniser.features(POOL).astype(float)
    distances = np.linalg.norm(z[:, None] - recogniser.vectors.astype(float), axis=2)
    c = recogniser.labels[distances.argmin(1)]
    too_far = distances.min(1) > recogniser.mean[c] + recogniser.deviation[c]
    predictions = recogniser.predict(POOL)
    np.testing.assert_array_equal(predictions.labels, np.where(too_far, UNKNOWN, c))
    np.testing.assert_array_equal(predictions.unknown_score > 1, too_far)
    assert auroc(TRUTH, predictions.unknown_score) > 0.95


def test_mean_and_deviation_are_of_the_training_items_outside_training():
    recogniser = fitted(OWN)
    training = hold_out(KNOWN, RECIPE.held_out, seed=0).training
    for c in range(3):
        z = recogniser.features(training.inputs[training.labels == c]).astype(float)
        own = recogniser.vectors[recogniser.labels == c].astype(float)
        distances = np.linalg.norm(z[:, None] - own, axis=2).min(1)
        assert recogniser.mean[c] == pytest.approx(distances.mean(), rel=1e-4)
        assert recogniser.deviation[c] == pytest.approx(distances.std(), rel=1e-4)


def test_a_larger_kappa_calls_fewer_items_unknown():
    counts = [
        (replace(OWN, kappa=kappa).fit(KNOWN, POOL, seed=0).predict(POOL).labels == UNKNOWN).sum()
        for kappa in (0.0, 1.0, 4.0)
    ]
    assert counts[0] > counts[1] > counts[2] > 0


def test_the_recall_rule_calls_that_share_of_held_out_items_known():
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    labels = fitted(RECALL).predict(held_out.inputs).labels
    assert np.mean(labels != UNKNOWN) == pytest.approx(0.95, abs=1 / len(held_out))


def test_taken_literally_the_nearest_prototype_attracts_whatever_its_class():
    literal = replace(OWN, literal=True, pairwise_weight=1.0)
    ours = replace(literal, literal=False)
    scores = [
        method.fit(KNOWN, POOL, seed=0).predict(POOL).unknown_score for method in (literal, ours)
    ]
    assert not np.allclose(*scores)


# Colour images come to the same networks by the same recipe as those of DTC's test do.
@pytest.mark.parametrize("colour", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_images_are_told_apart(colour):
    split = open_set(*make_images(60, colour=colour))
    # In half as many steps two seeds of six learn nothing of grey corners.
    training = replace(LEARNT.teacher.training, min_steps=160)
    # These classes are corners: mirrored, one is another.
    recipe = replace(
        IMAGES,
        teacher=replace(LEARNT.teacher, training=training),
        held_out=0.3,
        augmentation=AugmentSettings(flip=False),
    )
    method = replace(RECALL, recipe=recipe)
    predictions = method.fit(split.known, split.pool, seed=0).predict(split.pool)
    assert auroc(split.truth, predictions.unknown_score) > 0.9
    assert np.mean(predictions.labels == split.truth) > 0.7


def test_stacked_views_are_told_apart():
    random = np.random.default_rng(0)

    def stack(rows: np.ndarray) -> np.ndarray:
        noise = 0.1 * random.normal(size=(len(rows), 2, rows.shape[1]))
        return np.concatenate([rows[:, None], rows[:, None] + noise], axis=1).astype(np.float32)

    known, pool = Labelled(stack(KNOWN.inputs), KNOWN.labels), stack(POOL)
    predictions = RECALL.fit(known, pool, seed=0).predict(pool)
    assert auroc(TRUTH, predictions.unknown_score) > 0.9


@pytest.mark.parametrize(
    "setting",
    [
        {"radius": 0.0},
        {"pairwise_weight": -1.0},
        {"rule": "other"},
        {"kappa": math.nan},
        {"known_recall": 1.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        CPE(**setting)


# Streams


def test_a_model_that_learns_on_knows_the_new_class_and_the_old_ones():
    old = KNOWN.labels < 2
    model = OWN.fit(Labelled(KNOWN.inputs[old], KNOWN.labels[old]), POOL, seed=0)
    extended = extend_prototypes(model, KNOWN, OWN, seed=1)
    is_known = TRUTH != UNKNOWN
    said = extended.predict(POOL[is_known]).nearest
    assert np.mean(said == TRUTH[is_known]) > 0.9
    assert set(extended.labels) == {0, 1, 2}
    assert len(extended.mean) == len(extended.deviation) == 3


def test_learning_on_starts_from_the_network_and_leaves_it_as_it_was():
    model = OWN.fit(KNOWN, POOL, seed=0)
    before = {name: tensor.clone() for name, tensor in model.network.state_dict().items()}
    score = model.predict(POOL).unknown_score
    teacher = RECIPE.teacher
    still = replace(teacher, training=replace(teacher.training, learning_rate=1e-9))
    extended = extend_prototypes(
        model, KNOWN, replace(OWN, recipe=replace(RECIPE, teacher=still)), seed=0
    )
    for name, tensor in extended.network.named_parameters():
        torch.testing.assert_close(tensor.detach(), before[name], atol=1e-4, rtol=1e-4)
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(tensor, before[name])
    np.testing.assert_array_equal(model.predict(POOL).unknown_score, score)


def test_a_wider_head_has_the_old_outputs_first():
    old = KNOWN.labels < 2
    model = OWN.fit(Labelled(KNOWN.inputs[old], KNOWN.labels[old]), POOL, seed=0)
    teacher = RECIPE.teacher
    still = replace(teacher, training=replace(teacher.training, learning_rate=1e-9))
    wider = extend_prototypes(
        model, KNOWN, replace(OWN, recipe=replace(RECIPE, teacher=still)), seed=1
    )
    assert wider.network.head.out_features == 3
    torch.testing.assert_close(
        wider.network.head.weight[:2].detach(), model.network.head.weight.detach()
    )


def test_the_threshold_of_held_out_items_follows_the_model():
    model = RECALL.fit(KNOWN, POOL, seed=0)
    extended = extend_prototypes(model, KNOWN, RECALL, seed=1)
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=1).held_out
    scores = extended.predict(held_out.inputs).unknown_score
    assert np.mean(scores <= extended.threshold) >= RECALL.known_recall
    assert extended.threshold in scores
