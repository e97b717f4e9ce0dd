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
    draw_centres,
    estimate_n_new,
    initial_head,
    log_student_t,
    mean_silhouette,
    principal_projection,
    ramp,
    semi_supervised_kmeans,
    target_distribution,
    update_steps,
)
from s2osc.baselines.shared import IMAGES, VECTORS, hold_out, train_closed
from s2osc.errors import DataError, SettingsError
from s2osc.metrics import auroc, matched_accuracy
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_blobs, make_images, open_set

RECIPE = replace(VECTORS, teacher=LEARNT.teacher, held_out=0.3)
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
    head = initial_head(closed.teacher.network, closed.training, POOL, 1, seed=0)
    with torch.no_grad():
        embeddings = torch.from_numpy(closed.teacher.outputs(POOL).embeddings)
        labels = head(embeddings).argmax(1).numpy()
    assert np.mean(labels == np.where(TRUTH == UNKNOWN, 3, TRUTH)) > 0.9


def test_training_makes_the_clusters_clearer():
    closed = train_closed(KNOWN, RECIPE, seed=0, device="cpu")
    head = initial_head(closed.teacher.network, closed.training, POOL, 1, seed=0)
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


# Grey images come to the same networks by the same recipe as those of CPE's test do.
@pytest.mark.parametrize("colour", [pytest.param(False, marks=pytest.mark.slow), True])
def test_images_are_told_apart(colour):
    split = open_set(*make_images(60, colour=colour))
    # These classes are corners: mirrored, one is another.
    recipe = replace(
        IMAGES, teacher=LEARNT.teacher, held_out=0.3, augmentation=AugmentSettings(flip=False)
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
        {"known_recall": 1.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        DTC(**setting)


# Semi-supervised k-means


def blobs(n_classes, n_each=40, seed=0):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), n_each)
    return 12 * np.eye(8)[labels] + random.normal(size=(len(labels), 8)), labels


def test_labelled_classes_keep_their_number_and_new_ones_follow():
    rows, labels = blobs(4)
    labelled = (labels < 2) & (np.arange(len(labels)) % 2 == 0)
    found = semi_supervised_kmeans(rows[labelled], labels[labelled], rows, 2, seed=0)
    assert found.centres.shape == (4, 8)
    np.testing.assert_array_equal(found.nearest[labels < 2], labels[labels < 2])
    assert len(set(found.nearest[labels == 2])) == len(set(found.nearest[labels == 3])) == 1
    assert set(found.nearest[labels >= 2]) == {2, 3}


def test_a_labelled_item_pulls_its_own_centre_wherever_it_lies():
    labelled, labels = np.array([[0.0], [10.0], [12.0]]), np.array([0, 0, 1])
    found = semi_supervised_kmeans(labelled, labels, np.array([[11.0]]), 0, seed=0)
    np.testing.assert_allclose(found.centres, [[5.0], [11.5]])
    assert found.nearest.tolist() == [1]
    assert found.inertia == pytest.approx(25 + 25 + 0.25 + 0.25)


def test_the_start_with_the_least_inertia_wins():
    rows, labels = blobs(6, 12)
    known = labels < 2
    runs = [
        semi_supervised_kmeans(rows[known], labels[known], rows, 4, seed=0, n_starts=n).inertia
        for n in (1, 20)
    ]
    assert runs[1] <= runs[0]
    spread = sum(((rows[labels == c] - rows[labels == c].mean(0)) ** 2).sum() for c in range(6))
    both = spread + sum(
        ((rows[labels == c] - rows[labels == c].mean(0)) ** 2).sum() for c in range(2)
    )
    assert runs[1] == pytest.approx(both)


def test_the_input_is_left_as_it_was():
    rows, labels = blobs(3)
    before = rows.copy()
    semi_supervised_kmeans(rows[:40], labels[:40], rows, 2, seed=0)
    np.testing.assert_array_equal(rows, before)


def test_an_item_on_a_centre_is_never_drawn_and_a_far_one_nearly_always():
    rows = np.array([[0.0], [0.1], [10.0]])
    random = np.random.default_rng(0)
    drawn = [draw_centres(rows, np.zeros((1, 1)), 1, random)[0, 0] for _ in range(200)]
    assert 0.0 not in drawn
    assert np.mean(np.array(drawn) == 10) > 0.95


def test_identical_items_can_still_be_drawn():
    rows = np.ones((3, 2))
    drawn = draw_centres(rows, np.ones((1, 2)), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, np.ones((2, 2)))


def test_three_blobs_of_which_one_is_labelled_add_two():
    rows, labels = blobs(3)
    assert estimate_n_new(rows[labels == 0], np.zeros(40, int), rows, seed=0) == 2


def test_the_silhouette_of_two_points_taken_twice_is_one_and_of_one_group_the_worst():
    rows = np.array([[0.0], [0.0], [1.0], [1.0]])
    assert mean_silhouette(rows, np.array([0, 0, 1, 1])) == 1
    assert mean_silhouette(rows, np.zeros(4, int)) == -1


@pytest.mark.parametrize("n_new", [1, 2, 3])
def test_the_number_of_new_classes_beside_several_known_ones_is_found(n_new):
    rows, labels = blobs(3 + n_new)
    known = (labels < 3) & (np.arange(len(labels)) % 2 == 0)
    assert estimate_n_new(rows[known], labels[known], rows[~known], seed=0) == n_new


def test_one_new_class_is_the_least_answer():
    rows, labels = blobs(2)
    assert estimate_n_new(rows, labels, rows[:3], seed=0) == 1


@pytest.mark.parametrize(
    "n_new", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(3, marks=pytest.mark.slow)]
)
def test_lengths_of_items_are_no_classes(n_new):
    random = np.random.default_rng(0)
    directions = np.abs(random.normal(size=(5 + n_new, 32))) ** 3
    labels = np.repeat(np.arange(5 + n_new), 120)
    rows = directions[labels] + 0.2 * np.abs(random.normal(size=(len(labels), 32)))
    rows *= random.lognormal(0, 0.8, size=(len(rows), 1))
    is_labelled = (labels < 5) & (random.random(len(labels)) < 0.5)
    found = estimate_n_new(rows[is_labelled], labels[is_labelled], rows[~is_labelled], seed=0)
    assert found == n_new


def test_new_classes_are_counted_in_a_part_of_many_items(monkeypatch):
    sizes = []

    def count(labelled, labels, unlabelled, n_new, *, seed):
        sizes.append((len(labelled), np.unique(labels).tolist(), len(unlabelled)))
        return semi_supervised_kmeans(labelled, labels, unlabelled, n_new, seed=seed, n_starts=1)

    monkeypatch.setattr("s2osc.baselines.dtc.N_COUNTED", 40)
    monkeypatch.setattr("s2osc.baselines.dtc.semi_supervised_kmeans", count)
    rows = np.random.default_rng(0).normal(size=(300, 4))
    labels = np.repeat([0, 1], [90, 10])
    estimate_n_new(rows[:100], labels, rows[100:], seed=0)
    assert set(map(str, sizes)) == {str((30, [0, 1], 40))}
