"""DTC: its distributions, where its clusters start, and what they find."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from s2osc.baselines.dtc import (
    DTC,
    ClusterHead,
    cluster_loss,
    log_student_t,
    principal_projection,
    ramp,
    start_head,
    steps,
    target_distribution,
    update_steps,
)
from s2osc.baselines.recipe import IMAGES, VECTORS, hold_out, train_closed
from s2osc.errors import DataError, SettingsError
from s2osc.metrics import auroc, matched_accuracy
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import TINY, make_blobs, make_images, open_set

RECIPE = replace(VECTORS, teacher=TINY.teacher, held_out=0.3)
METHOD = DTC(recipe=RECIPE)


def test_squared_distances_of_0_1_and_3_share_an_item_as_4_to_2_to_1():
    centres = torch.tensor([[0.0, 0.0], [0.0, 1.0], [math.sqrt(3), 0.0]])
    q = log_student_t(torch.zeros(1, 2), centres).exp()
    assert q[0].tolist() == pytest.approx([4 / 7, 2 / 7, 1 / 7])


def test_targets_are_sharper_than_q_and_make_up_for_the_size_of_a_cluster():
    p = target_distribution(np.array([[0.8, 0.2], [0.6, 0.4]]))
    np.testing.assert_allclose(p, [[0.87273, 0.12727], [0.49091, 0.50909]], atol=5e-6)


def test_where_every_item_is_wholly_of_one_cluster_the_targets_are_q():
    q = np.eye(3)[[0, 1, 1]]
    np.testing.assert_array_equal(target_distribution(q), q)


def test_the_weight_of_consistency_rises_over_five_epochs():
    found = [ramp(t, 5) for t in (0, 1, 2, 3, 4, 5, 99)]
    assert found == pytest.approx([0.0067, 0.0408, 0.1653, 0.4493, 0.8187, 1, 1], abs=5e-5)


def test_the_loss_is_the_sum_of_its_three_terms():
    log_q = torch.tensor([[0.5, 0.5], [0.8, 0.2]]).log()
    again = torch.tensor([[0.7, 0.3], [0.8, 0.2]]).log()
    targets = torch.tensor([[0.9, 0.1], [0.8, 0.2]])
    named = torch.tensor([[0.25, 0.75]]).log()
    loss = cluster_loss(named, log_q, again, torch.tensor([1]), targets, 10.0)
    kl = (0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)) / 2
    assert loss.item() == pytest.approx(-math.log(0.75) + kl + 10 * (2 * 0.2**2) / 4, rel=1e-5)


def test_the_targets_are_computed_first_and_evenly_after_the_warm_up():
    assert sorted(update_steps(100, 20, 4)) == [0, 20, 40, 60, 80]


def test_every_step_pairs_half_a_batch_of_labelled_items_with_half_a_batch_of_the_pool():
    step = next(steps(50, 100, 32, seed=0))
    assert (len(step.labelled), len(step.pool)) == (16, 16)


def test_the_projection_starts_at_the_principal_axes():
    rows = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 5.0, 2.0] + [7.0, 8.0, 9.0]
    weight, bias = principal_projection(rows, 2)
    z = rows @ weight.T + bias
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(np.abs(weight).argmax(1), [1, 2])
    np.testing.assert_allclose(weight @ weight.T, np.eye(2), atol=1e-9)


def test_axes_that_an_embedding_has_not_are_nought():
    weight, bias = principal_projection(np.random.default_rng(0).normal(size=(9, 2)), 4)
    assert weight.shape == (4, 2)
    assert not weight[2:].any()
    assert bias.shape == (4,)


def test_the_head_gives_the_logarithm_of_shares_and_trains_projection_and_centres():
    head = ClusterHead(np.eye(2, 3), np.zeros(2), np.array([[0.0, 0.0], [1.0, 0.0]]))
    log_q = head(torch.zeros(1, 3))
    assert log_q.exp()[0].tolist() == pytest.approx([2 / 3, 1 / 3])
    F.nll_loss(log_q, torch.tensor([1])).backward()
    assert {name for name, p in head.named_parameters() if p.grad is not None} == {
        "weight",
        "bias",
        "centres",
    }


def test_the_first_centres_start_at_the_known_classes_and_the_last_at_unknown_items():
    closed = train_closed(KNOWN, RECIPE, seed=0, device="cpu")
    head = start_head(closed.teacher.network, closed.training, POOL, 1, seed=0)
    with torch.no_grad():
        embeddings = torch.from_numpy(closed.teacher.outputs(POOL).embeddings)
        labels = head(embeddings).argmax(1).numpy()
    assert np.mean(labels == np.where(TRUTH == UNKNOWN, 3, TRUTH)) > 0.9


def test_training_makes_the_clusters_clearer():
    closed = train_closed(KNOWN, RECIPE, seed=0, device="cpu")
    head = start_head(closed.teacher.network, closed.training, POOL, 1, seed=0)
    with torch.no_grad():
        before = head(torch.from_numpy(closed.teacher.outputs(POOL).embeddings)).exp().amax(1)
    training = replace(RECIPE.teacher.training, min_steps=150)
    longer = replace(RECIPE, teacher=replace(RECIPE.teacher, training=training))
    after = replace(METHOD, recipe=longer).fit(KNOWN, POOL, seed=0).shares(POOL).max(1)
    assert after.mean() > before.mean().item() + 0.05


def test_the_confidence_is_the_share_of_the_answer_given():
    recogniser = fitted(METHOD)
    q, predictions = recogniser.shares(POOL), recogniser.predict(POOL)
    np.testing.assert_allclose(q.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(predictions.unknown_score, q[:, 3])
    np.testing.assert_allclose(predictions.confidence, q.max(1))


def test_several_unknown_classes_are_told_from_each_other():
    split = open_set(*make_blobs(80, 6))
    recogniser = replace(METHOD, n_unknown=3).fit(split.known, split.pool, seed=0)
    groups, labels = recogniser.groups(split.pool), recogniser.predict(split.pool).labels
    is_unknown = split.truth == UNKNOWN
    assert recogniser.n_unknown == 3
    assert matched_accuracy(split.truth_classes[is_unknown], groups[is_unknown]) > 0.9
    np.testing.assert_array_equal(groups >= 0, labels == UNKNOWN)
    assert groups.min() == -1


def test_the_number_of_unknown_classes_is_estimated_where_none_is_given():
    split = open_set(*make_blobs(60, 5))
    estimating = replace(METHOD, n_unknown=None)
    assert estimating.fit(split.known, split.pool, seed=0).n_unknown == 2


def test_the_recall_rule_calls_that_share_of_held_out_items_known():
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    labels = replace(METHOD, rule="recall").fit(KNOWN, POOL, seed=0).predict(held_out.inputs).labels
    assert np.mean(labels != UNKNOWN) == pytest.approx(0.95, abs=1 / len(held_out))


@pytest.mark.parametrize("colour", [False, True])
def test_images_are_told_apart(colour):
    split = open_set(*make_images(60, colour=colour))
    # These classes are corners: mirrored, one is another.
    recipe = replace(
        IMAGES, teacher=TINY.teacher, held_out=0.3, augmentation=AugmentSettings(flip=False)
    )
    method = replace(METHOD, recipe=recipe)
    predictions = method.fit(split.known, split.pool, seed=0).predict(split.pool)
    assert np.mean(predictions.labels == split.truth) > 0.9


def test_stacked_views_are_told_apart():
    random = np.random.default_rng(0)

    def stack(rows: np.ndarray) -> np.ndarray:
        noise = 0.1 * random.normal(size=(len(rows), 2, rows.shape[1]))
        return np.concatenate([rows[:, None], rows[:, None] + noise], axis=1).astype(np.float32)

    known, pool = Labelled(stack(KNOWN.inputs), KNOWN.labels), stack(POOL)
    predictions = METHOD.fit(known, pool, seed=0).predict(pool)
    assert auroc(TRUTH, predictions.unknown_score) > 0.95


def test_a_pool_too_small_to_cluster_is_refused():
    with pytest.raises(DataError, match="1 items"):
        METHOD.fit(KNOWN, POOL[:1], seed=0)


@pytest.mark.parametrize(
    "setting",
    [
        {"n_unknown": 0},
        {"n_updates": 0},
        {"consistency": -1.0},
        {"learning_rate": 0.0},
        {"rule": "other"},
        {"warm_up": 0.0},
        {"ramp_up": 1.0},
        {"known_recall": 1.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        DTC(**setting)
