"""CFO: its equations against answers worked out by hand, its three stages, and the contract."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch

from s2osc.baselines.cfo import (
    CFO,
    SearchSettings,
    find_counterfactuals,
    open_loss,
    search_codes,
    search_step,
    sigmoid_loss,
    with_open,
)
from s2osc.baselines.shared import TeacherRecipe, hold_out, threshold_at
from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.metrics import auroc
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.gan import Autoencoder, GanSettings
from s2osc.nets.networks import Network
from s2osc.pipeline.presets import PLAIN
from s2osc.testing import KNOWN, POOL
from s2osc.types import UNKNOWN, Labelled
from samples import TINY_NETWORK, make_blobs, make_images, open_set

# One layer, as for vectors by default, and wide: the unknown blob lies where few weights decide.
TINY_WIDE = replace(TINY_NETWORK, hidden=(128,))
TINY_TRAINING = replace(PLAIN.teacher.training, epochs=1, batch_size=32, min_steps=40)
TINY_GAN = GanSettings(
    width=8, hidden=32, n_groups=4, group_size=8, epochs=1, min_steps=60, batch_size=32
)
TINY = CFO(
    recipe=TeacherRecipe(
        replace(PLAIN.teacher, network=TINY_WIDE, training=TINY_TRAINING),
        AugmentSettings(flip=False),  # mirrored, an image of one class is one of another
    ),
    gan=TINY_GAN,
    counterfactuals=SearchSettings(n_items=100, distance_weight=0.1),
    open_epochs=12,
)
HASTY = replace(
    TINY,
    recipe=replace(
        TINY.recipe,
        teacher=replace(TINY.recipe.teacher, training=replace(TINY_TRAINING, min_steps=5)),
    ),
    gan=replace(TINY_GAN, min_steps=5),
    open_epochs=1,
)


# The equations


def test_with_all_logits_zero_every_class_and_the_open_one_are_as_likely():
    logits = torch.zeros(1, 5)
    np.testing.assert_allclose(with_open(logits).softmax(1), np.full((1, 6), 1 / 6), rtol=1e-6)
    assert open_loss(logits).item() == pytest.approx(log(6))


def test_the_open_loss_is_minus_the_log_of_the_open_probability():
    logits = torch.tensor([[log(2.0), log(5.0)], [-100.0, -100.0], [100.0, 0.0]])
    np.testing.assert_allclose(open_loss(logits), [log(8), 0, 100], atol=1e-5)


def test_each_sigmoid_is_asked_about_its_own_class_alone():
    # sigmoid(log 3) = 3/4: right with it for the item's class, wrong with it for another.
    logits = torch.tensor([[log(3), log(3)], [-log(3), -log(3)]])
    expected = [-log(3 / 4) - log(1 / 4), -log(3 / 4) - log(1 / 4)]
    np.testing.assert_allclose(sigmoid_loss(logits, torch.tensor([0, 1])), expected, rtol=1e-6)
    sure = torch.tensor([[20.0, -20.0]])
    assert sigmoid_loss(sure, torch.tensor([0])).item() < 1e-6
    assert sigmoid_loss(sure, torch.tensor([1])).item() == pytest.approx(40)


def test_a_step_of_the_search_goes_down_both_slopes():
    random = torch.Generator().manual_seed(0)
    jacobian = torch.randn(3, 4, generator=random)  # of a linear generator and classifier
    z, start = torch.randn(2, 5, 4, generator=random)
    stepped = search_step(z, start, lambda codes: codes @ jacobian.T, step=0.1, distance_weight=2.0)
    odds = (z @ jacobian.T).exp()
    p = odds / (1 + odds.sum(1, keepdim=True))
    expected = z - 0.1 * (2.0 * 2 * (z - start) + p @ jacobian)
    np.testing.assert_allclose(stepped, expected, atol=1e-5)


# The search


@pytest.fixture(scope="module")
def untrained():
    torch.manual_seed(0)
    coder = Autoencoder(TINY_GAN, (5,)).eval()
    return coder, Network(TINY_NETWORK, (5,), 3).eval()


def test_the_search_ends_on_the_spheres_and_nearer_to_the_open_class(untrained):
    coder, network = untrained
    start = coder.noise(20, torch.Generator().manual_seed(0))
    found = search_codes(start, coder, network, SearchSettings(n_steps=10))
    np.testing.assert_allclose(found.reshape(20, 4, 8).norm(dim=2), 1, atol=1e-6)

    def loss(codes):
        return open_loss(network(coder.decode(codes))).detach()

    assert (loss(found) < loss(start)).all()


def test_the_dearer_the_distance_the_nearer_the_counterfactual(untrained):
    coder, network = untrained
    start = coder.noise(20, torch.Generator().manual_seed(0))
    free, bound = (
        (search_codes(start, coder, network, SearchSettings(distance_weight=w)) - start).norm(dim=1)
        for w in (0.0, 2.0)
    )
    assert (bound < free).all()


# The method


@pytest.fixture(scope="module")
def on_images():
    split = open_set(*make_images(60))
    return split, TINY.fit(split.known, split.pool, seed=0)


def test_the_search_raises_the_open_probability(on_images):
    before, after = on_images[1].search
    assert before < 0.3
    assert after > before + 0.2


def test_counterfactuals_are_images_like_the_items(on_images):
    split, recogniser = on_images
    made = recogniser.counterfactuals
    assert made.dtype == np.uint8
    assert made.shape[1:] == split.known.inputs.shape[1:]
    assert len(made) == min(TINY.counterfactuals.n_items, 81), "one of each item learnt from"


def test_examples_are_triples_of_an_item_its_reconstruction_and_its_counterfactual(on_images):
    split, recogniser = on_images
    originals, reconstructions, counterfactuals = recogniser.examples
    assert originals.shape == reconstructions.shape == counterfactuals.shape == (64, 8, 8)
    known = {item.tobytes() for item in split.known.inputs}
    assert all(item.tobytes() in known for item in originals)
    np.testing.assert_array_equal(counterfactuals, recogniser.counterfactuals[:64])

    def distance(a, b):
        return np.abs(a.astype(float) - b).mean()

    assert distance(originals, reconstructions) < 0.5 * distance(originals, originals[::-1])
    assert (reconstructions != counterfactuals).any()


def test_images_of_an_unknown_class_are_told_apart(on_images):
    split, recogniser = on_images
    labels = recogniser.predict(split.pool).labels
    assert np.mean(labels == split.truth) > 0.8


def test_the_own_rule_is_the_argmax_of_the_known_classes_and_the_open_one(on_images):
    split, recogniser = on_images
    with torch.no_grad():
        logits = recogniser.network(torch.from_numpy(split.pool[:, None]))
    winner = with_open(logits).argmax(1).numpy()
    expected = np.where(winner == 3, UNKNOWN, winner)
    predictions = recogniser.predict(split.pool)
    np.testing.assert_array_equal(predictions.labels, expected)
    np.testing.assert_allclose(
        predictions.confidence, with_open(logits).softmax(1).amax(1), rtol=1e-4
    )


def test_the_other_rule_puts_the_threshold_where_held_out_known_items_say():
    own, other = (
        replace(HASTY, rule=rule, known_recall=0.5).fit(KNOWN, POOL, seed=0)
        for rule in ("own", "recall")
    )
    held_out = hold_out(KNOWN, TINY.recipe.held_out, seed=0).held_out.inputs
    assert own.threshold == 0
    assert other.threshold == threshold_at(own.predict(held_out).unknown_score, 0.5)
    predictions = other.predict(POOL)
    np.testing.assert_array_equal(
        predictions.labels == UNKNOWN, predictions.unknown_score > other.threshold
    )
    np.testing.assert_array_equal(predictions.unknown_score, own.predict(POOL).unknown_score)


def test_a_search_that_finds_nothing_open_is_told(on_images):
    images = on_images[0].known.inputs
    coder = Autoencoder(TINY_GAN, images.shape[1:]).eval()
    network = Network(TINY_NETWORK, images.shape[1:], 3).eval()
    settings = SearchSettings(n_items=20, n_steps=1, step=1e-9)
    with pytest.warns(S2OSCWarning, match=r"mean P\(open\) was .* they are no open items"):
        find_counterfactuals(network, coder, images, settings, seed=0)


@pytest.mark.slow  # grey ones are quick
def test_colour_images_are_told_apart():
    split = open_set(*make_images(60, colour=True))
    recogniser = TINY.fit(split.known, split.pool, seed=0)
    assert recogniser.counterfactuals.shape[1:] == (8, 8, 3)
    assert recogniser.search.after > recogniser.search.before
    predictions, is_known = recogniser.predict(split.pool), split.truth != UNKNOWN
    assert auroc(split.truth, predictions.unknown_score) > 0.95
    assert np.mean(predictions.labels[is_known] == split.truth[is_known]) > 0.95


def test_stacked_views_are_told_apart():
    vectors, labels = make_blobs(80)
    views = vectors[:, None] + 0.1 * np.random.default_rng(0).normal(size=(len(labels), 3, 8))
    views[:, 0] = vectors
    split = open_set(views.astype(np.float32), labels)
    recogniser = TINY.fit(split.known, split.pool, seed=0)
    assert recogniser.counterfactuals.shape[1:] == (8,)
    answers = recogniser.predict(split.pool).labels
    assert np.mean(answers == split.truth) > 0.8


def test_the_pool_teaches_nothing():
    split = open_set(*make_blobs(40))
    with_pool, without = (
        HASTY.fit(split.known, pool, seed=0).predict(split.pool).unknown_score
        for pool in (split.pool, split.pool[:0])
    )
    np.testing.assert_array_equal(with_pool, without)


def test_few_items_are_enough():
    inputs, labels = make_blobs(4, n_classes=2)
    recogniser = HASTY.fit(Labelled(inputs, labels), inputs[:0], seed=0)
    assert len(recogniser.counterfactuals) == len(recogniser.examples.originals) == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (lambda: CFO(rule="both"), "CFO.rule is 'both'; give 'own' or 'recall'"),
        (lambda: CFO(known_recall=1.1), "CFO.known_recall is 1.1; give the share of known items"),
        (lambda: CFO(open_epochs=0), "CFO.open_epochs is 0; give a number from 1"),
        (lambda: SearchSettings(n_items=0), "counterfactuals.n_items is 0"),
        (lambda: SearchSettings(n_steps=0), "n_steps is 0; give a number from 1"),
        (lambda: SearchSettings(step=0.0), "counterfactuals.step is 0.0"),
        (
            lambda: SearchSettings(distance_weight=-1.0),
            "weight is -1.0; give a number from 0",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        settings()
