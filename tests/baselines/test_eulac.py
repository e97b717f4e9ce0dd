"""EULAC: the unbiased risk, the known share of the pool, and the method."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from s2osc.baselines.eulac import (
    EULAC,
    LOSSES,
    Risk,
    best_bin_estimate,
    estimate_known_share,
    estimate_risk,
    one_vs_rest,
    penalise,
    predict_from_logits,
)
from s2osc.baselines.shared import IMAGES, VECTORS, hold_out, threshold_at
from s2osc.errors import DataError, SettingsError
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_images, open_set

# A tenth of 120 items tells no share.
RECIPE = replace(VECTORS, teacher=LEARNT.teacher, held_out=0.3)
METHODS = {
    "softmax": EULAC(recipe=RECIPE),
    "recall": EULAC(rule="recall", recipe=RECIPE),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_risk_of_a_pool_whose_known_items_are_the_labelled_ones_is_the_supervised_one(loss):
    generator = torch.Generator().manual_seed(0)
    known, unknown = (
        5 * torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (70, 30)
    )
    labels = torch.randint(3, (70,), generator=generator)
    pool = torch.cat([known, unknown])
    risk = estimate_risk(known, labels, pool, 0.7, loss)
    truth = torch.cat([labels, torch.full((30,), 3)])
    supervised = LOSSES[loss](pool, truth).mean()
    torch.testing.assert_close(risk.known + risk.unknown, supervised)
    torch.testing.assert_close(penalise(risk, 1.0, 1), supervised)
    on_unknown = LOSSES[loss](unknown, torch.full((30,), 3)).mean()
    torch.testing.assert_close(risk.unknown, 0.3 * on_unknown)


def test_with_the_logistic_loss_only_outputs_of_known_items_remain():
    # psi(z) - psi(-z) = -z, so R = theta E_known[f_C' - f_y] + E_pool[l(x, C')].
    logits = torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.2, -1.0]], dtype=torch.float64)
    labels, pool = torch.tensor([0, 1]), torch.zeros(3, 3, dtype=torch.float64)
    risk = estimate_risk(logits, labels, pool, 0.6, "one-vs-rest")
    difference = ((0.5 - 1.0) + (-1.0 - 0.2)) / 2
    expected = 0.6 * difference + 3 * np.log(2)
    assert (risk.known + risk.unknown).item() == pytest.approx(expected)


def test_one_vs_rest_adds_a_logistic_loss_for_each_output():
    logits, labels = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([2])
    expected = F.softplus(torch.tensor(2.0)) + F.softplus(torch.tensor(-1.0))
    expected = expected + F.softplus(torch.tensor(-0.5))
    torch.testing.assert_close(one_vs_rest(logits, labels), expected[None])


@pytest.mark.parametrize(
    ("unknown", "penalty", "exponent", "total"),
    [
        (0.5, 1.0, 1, 1.5),
        (-0.5, 1.0, 1, 1.0),
        (-0.5, 0.0, 1, 0.5),
        (-0.5, 2.0, 1, 1.5),
        (-0.5, 1.0, 2, 0.75),
        (-0.5, 4.0, 3, 1.0),
    ],
)
def test_a_negative_risk_of_the_unknown_class_is_penalised(unknown, penalty, exponent, total):
    risk = Risk(torch.tensor(1.0), torch.tensor(unknown))
    assert penalise(risk, penalty, exponent).item() == pytest.approx(total)


def test_a_risk_cut_off_at_zero_has_no_gradient():
    unknown = torch.tensor(-0.5, requires_grad=True)
    penalise(Risk(torch.tensor(1.0), unknown), 1.0, 1).backward()
    assert unknown.grad == 0


@pytest.mark.parametrize(
    "n_known",
    [300, pytest.param(600, marks=pytest.mark.slow), pytest.param(900, marks=pytest.mark.slow)],
)
def test_the_known_share_is_told_from_embeddings(n_known):
    random = np.random.default_rng(0)
    shares = []
    for _ in range(7):
        held_out, pool = random.normal(size=(500, 6)), random.normal(size=(1_000, 6))
        pool[n_known:] += 4
        shares.append(estimate_known_share(held_out, pool, seed=0))
    assert np.median(shares) == pytest.approx(n_known / 1_000, abs=0.04)


def test_the_known_share_stays_within_its_limits():
    random = np.random.default_rng(0)
    known, far = random.normal(size=(300, 2)), random.normal(size=(300, 2)) + 50
    assert estimate_known_share(known, far, seed=0) == 0.05
    assert estimate_known_share(known, known, seed=0) <= 0.99


def test_the_known_share_of_easy_blobs_is_about_right():
    truth = np.mean(TRUTH != UNKNOWN)
    assert fitted(METHODS["softmax"]).known_share == pytest.approx(truth, abs=0.1)


def test_too_few_items_for_a_share_are_refused():
    with pytest.raises(DataError, match="1 held-out known items and 9 pool items"):
        estimate_known_share(np.zeros((1, 2)), np.zeros((9, 2)), seed=0)


def test_the_largest_output_is_the_label_and_its_probability_the_confidence():
    logits = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]])
    predictions = predict_from_logits(logits, 0.0, "softmax")
    assert predictions.labels.tolist() == [0, UNKNOWN]
    assert predictions.unknown_score.tolist() == [-1, 2]
    e = np.exp(logits)
    expected = [e[0, 0] / e[0].sum(), e[1, 2] / e[1].sum()]
    np.testing.assert_allclose(predictions.confidence, expected)
    one = predict_from_logits(logits, 0.0, "one-vs-rest").confidence
    np.testing.assert_allclose(one, 1 / (1 + np.exp([-2.0, -3.0])))


def test_a_threshold_moves_where_unknown_begins():
    logits = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]])
    assert predict_from_logits(logits, -1.5, "softmax").labels.tolist() == [UNKNOWN, UNKNOWN]
    assert predict_from_logits(logits, 2.5, "softmax").labels.tolist() == [0, 1]


def test_the_recall_rule_takes_its_threshold_from_held_out_items():
    classifier = fitted(METHODS["recall"])
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    scores = classifier.predict(held_out.inputs).unknown_score
    assert classifier.threshold == threshold_at(scores, 0.95)


# Colour images come to the same networks by the same recipe as those of DTC's test do.
@pytest.mark.parametrize(
    "colour",
    [pytest.param(False, id="grey"), pytest.param(True, id="colour", marks=pytest.mark.slow)],
)
def test_images_are_recognised(colour):
    split = open_set(*make_images(80, colour=colour))
    recipe = replace(IMAGES, teacher=LEARNT.teacher, held_out=0.3)
    classifier = EULAC(recipe=recipe).fit(split.known, split.pool, seed=0)
    assert np.mean(classifier.predict(split.pool).labels == split.truth) > 0.8
    assert classifier.features(split.pool).shape == (len(split.pool), 16)
    assert classifier.features(split.pool[:0]).shape == (0, 16)


def test_stacked_views_are_recognised():
    def stack(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows, rows + 0.2, rows - 0.2], axis=1).astype(np.float32)

    known = Labelled(stack(KNOWN.inputs), KNOWN.labels)
    classifier = METHODS["softmax"].fit(known, stack(POOL), seed=0)
    assert np.mean(classifier.predict(stack(POOL)).labels == TRUTH) > 0.9


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "hinge"},
        {"rule": "best"},
        {"known_recall": 0.0},
        {"penalty": -1.0},
        {"exponent": 4},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(SettingsError, match=f"EULAC.{next(iter(settings))} is "):
        EULAC(**settings)


# Best bin estimation


POSITIVES = np.linspace(0.8, 1, 1_002)[1:-1]


def test_a_pool_with_sixty_percent_positives_is_told():
    pool = np.concatenate([np.linspace(0.8, 1, 602)[1:-1], np.zeros(400)])
    assert best_bin_estimate(POSITIVES, pool) == pytest.approx(0.6, abs=0.02)


def test_a_pool_like_the_positives_is_all_positive():
    assert best_bin_estimate(POSITIVES, POSITIVES) == 1


@pytest.mark.parametrize("pool", [np.zeros(500), np.linspace(0, 0.7, 500)], ids=["one", "many"])
def test_a_pool_below_all_positives_holds_none(pool):
    assert best_bin_estimate(POSITIVES, pool) == pytest.approx(0, abs=1e-9)


def test_a_pool_above_all_positives_is_not_more_than_all_positive():
    assert best_bin_estimate(POSITIVES, POSITIVES + 1) == 1


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_overlapping_scores_give_about_the_share(share):
    random = np.random.default_rng(0)
    positives, n_known = random.normal(3, 1, 3_000), int(share * 4_000)
    pool = np.concatenate([random.normal(3, 1, n_known), random.normal(0, 1, 4_000 - n_known)])
    assert best_bin_estimate(positives, pool) == pytest.approx(share, abs=0.05)


def test_the_scale_of_the_scores_does_not_matter():
    random = np.random.default_rng(0)
    positives, pool = random.normal(2, 1, 500), random.normal(0, 2, 500)
    share = best_bin_estimate(positives, pool)
    assert best_bin_estimate(np.exp(positives), np.exp(pool)) == pytest.approx(share)


def test_bins_of_few_positives_are_not_trusted():
    # Above 0.95 there are 2 of 200 positives and no pool item at all, which is luck.
    positives = np.concatenate([np.full(198, 0.9), np.full(2, 0.99)])
    pool = np.concatenate([np.full(100, 0.9), np.full(100, 0.1)])
    assert best_bin_estimate(positives, pool) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("n_p", "n_u"), [(0, 5), (5, 0)])
def test_no_scores_are_refused(n_p, n_u):
    with pytest.raises(DataError, match=f"{n_p} positive and {n_u} unlabelled"):
        best_bin_estimate(np.ones(n_p), np.ones(n_u))
