"""Virtual-logit matching."""

import numpy as np
import pytest
from scipy.special import logsumexp

from s2osc.baselines.shared import TeacherRecipe
from s2osc.baselines.vim import ViM, fit_virtual, residual_basis, zero_logits
from s2osc.errors import SettingsError
from s2osc.nets.training import Outputs
from s2osc.testing import KNOWN, POOL
from samples import TINY


@pytest.fixture
def head():
    random = np.random.default_rng(0)
    return random.normal(size=(3, 6)), random.normal(size=3)


def seen(embeddings, head):
    weight, bias = head
    return Outputs(embeddings @ weight.T + bias, embeddings)


def spread(head, n=200):
    """Embeddings around u that vary ever less from one axis to the next."""
    scales = np.array([8.0, 6.0, 4.0, 0.3, 0.2, 0.1])
    random = np.random.default_rng(1)
    return zero_logits(*head) + scales * random.normal(size=(n, 6))


def test_the_origin_has_no_logits(head):
    weight, bias = head
    np.testing.assert_allclose(weight @ zero_logits(weight, bias) + bias, 0, atol=1e-12)


def test_the_residual_is_what_lies_outside_the_leading_directions():
    centred = np.diag([5.0, 1.0, 3.0, 2.0])
    basis = residual_basis(centred, n_principal=2)
    assert basis.shape == (4, 2)
    np.testing.assert_allclose(np.linalg.norm(np.eye(4) @ basis, axis=1), [0, 1, 0, 1], atol=1e-12)


def test_no_mean_is_taken_off_before_the_directions_are_found():
    centred = np.array([[10.0, 1.0], [10.0, -1.0]])
    np.testing.assert_allclose(np.abs(residual_basis(centred, 1)), [[0], [1]], atol=1e-12)


def test_an_item_in_the_leading_space_scores_its_energy(head):
    training = seen(spread(head), head)
    virtual = fit_virtual(training, *head, n_principal=3)
    _, vectors = np.linalg.eigh(
        (training.embeddings - virtual.origin).T @ (training.embeddings - virtual.origin)
    )
    inside = seen(virtual.origin + 5 * vectors[:, -3:].T, head)
    np.testing.assert_allclose(virtual.residual(inside.embeddings), 0, atol=1e-9)
    np.testing.assert_allclose(virtual.score(inside), -logsumexp(inside.logits, axis=1), atol=1e-8)


def test_alpha_makes_the_virtual_logit_as_large_as_the_largest(head):
    training = seen(spread(head), head)
    virtual = fit_virtual(training, *head, n_principal=3)
    mean_virtual = (virtual.alpha * virtual.residual(training.embeddings)).mean()
    np.testing.assert_allclose(mean_virtual, training.logits.max(1).mean())


def test_an_item_off_the_leading_space_scores_higher(head):
    virtual = fit_virtual(seen(spread(head), head), *head, n_principal=3)
    step = 3 * virtual.basis[:, 0]
    along, off = virtual.residual(np.stack([virtual.origin, virtual.origin + step]))
    assert (along, off) == pytest.approx((0, 3))


def test_half_of_the_dimensions_are_leading_by_default(head):
    assert fit_virtual(seen(spread(head), head), *head).basis.shape == (6, 3)


def test_training_items_without_a_residual_give_a_finite_scale(head):
    embeddings = zero_logits(*head) + np.outer(np.linspace(1, 9, 50), np.eye(6)[0])
    virtual = fit_virtual(seen(embeddings, head), *head, n_principal=3)
    assert np.isfinite(virtual.alpha)
    assert np.abs(virtual.score(seen(embeddings, head))).max() < 100


def test_more_leading_directions_than_there_are_is_refused():
    with pytest.raises(SettingsError, match="16 dimensions"):
        ViM(n_principal=16, recipe=TeacherRecipe(TINY.teacher)).fit(KNOWN, POOL, seed=0)
    with pytest.raises(SettingsError, match="n_principal is 0"):
        ViM(n_principal=0)
