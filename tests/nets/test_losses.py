"""Each equation against an answer worked out by hand."""

from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from s2osc.nets.losses import (
    cross_entropy,
    distil_binary,
    distil_known,
    gate_unknown,
    normalised_entropy,
    pseudo_labels,
    psi,
    supervised_loss,
    triplet_loss,
    unknown_cross_entropy,
    unsupervised_loss,
)


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


def logit_rows(n_columns, n_rows=4):
    values = st.floats(-20, 20, width=32)
    return arrays(np.float64, (n_rows, n_columns), elements=values).map(torch.from_numpy)


# H


def test_cross_entropy_is_minus_the_log_of_the_probability_of_the_label():
    logits = rows((log(3), 0.0), (0.0, 0.0))  # probabilities 3/4, 1/4 and 1/2, 1/2
    h = cross_entropy(logits, torch.tensor([1, 0]))
    np.testing.assert_allclose(h, [log(4), log(2)])


# The gate of l_s1


@pytest.mark.parametrize(
    ("logits", "is_unknown", "counts"),
    [
        ((0.0, 0.0, 0.0), True, False),  # max g = 1/3
        ((0.0, 0.0, 5.0), True, True),  # sure of C'
        ((5.0, 0.0, 0.0), True, True),  # sure of a known class: max g is over every output
        ((0.0, 0.0, 0.0), False, True),  # H_in has no gate
    ],
)
def test_the_gate_drops_only_items_of_d_out_that_g_is_not_sure_about(logits, is_unknown, counts):
    h = gate_unknown(rows(7.0)[:1], rows(logits), torch.tensor([is_unknown]), tau=0.85)
    assert h.tolist() == [7.0 if counts else 0.0]


def test_an_item_exactly_at_tau_passes_the_gate():
    h = gate_unknown(rows(7.0), rows((0.0, 0.0)), torch.tensor([True]), tau=0.5)
    assert h.tolist() == [7.0]


def test_no_gradient_flows_through_the_gate_or_to_a_gated_item():
    logits = rows((0.0, 0.0, 1.0), (0.0, 0.0, 5.0)).requires_grad_()
    h = cross_entropy(logits, torch.tensor([2, 2]))
    gate_unknown(h, logits, torch.tensor([True, True]), tau=0.85).sum().backward()
    assert logits.grad[0].tolist() == [0.0, 0.0, 0.0]
    p = logits.detach()[1].softmax(0)
    np.testing.assert_allclose(logits.grad[1], p - rows(0.0, 0.0, 1.0))


# KL(f || g without C')


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_divergence_with_temperature_has_its_closed_form(temperature):
    taught = rows((temperature * log(3), 0.0))  # at this temperature f = 3/4, 1/4
    logits = rows((5.0, 5.0, -2.0))  # without C': 1/2, 1/2
    expected = 0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5)
    np.testing.assert_allclose(distil_known(logits, taught, temperature), [expected])


def test_the_teacher_is_the_first_argument_of_the_divergence():
    even, uneven = rows((0.0, 0.0)), rows((log(3), 0.0, 0.0))
    expected = 0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25)
    np.testing.assert_allclose(distil_known(uneven, even, 1.0), [expected])


@given(logit_rows(4), logit_rows(3))
def test_leaving_c_out_and_softmax_again_is_conditioning_on_the_known_classes(logits, taught):
    g, f = logits.softmax(1), taught.softmax(1)
    conditional = g[:, :-1] / g[:, :-1].sum(1, keepdim=True)
    expected = (f * (f.log() - conditional.log())).sum(1)
    np.testing.assert_allclose(distil_known(logits, taught, 1.0), expected, atol=1e-9)


@given(logit_rows(4), logit_rows(3), st.sampled_from([0.5, 2.0, 3.0]))
def test_temperature_raises_probabilities_to_the_power_one_over_t(logits, taught, temperature):
    def sharpened(p):
        raised = p ** (1 / temperature)
        return raised / raised.sum(1, keepdim=True)

    f, g = sharpened(taught.softmax(1)), sharpened(logits[:, :-1].softmax(1))
    expected = (f * (f.log() - g.log())).sum(1)
    np.testing.assert_allclose(distil_known(logits, taught, temperature), expected, atol=1e-9)


@given(logit_rows(4), st.floats(-20, 20), st.floats(-20, 20))
def test_the_divergence_is_zero_where_g_repeats_f_whatever_it_says_of_c(logits, shift, unknown):
    taught = logits[:, :-1] + shift
    logits = torch.cat([logits[:, :-1], torch.full((len(logits), 1), unknown)], 1)
    np.testing.assert_allclose(distil_known(logits, taught, 3.0), 0.0, atol=1e-9)


def test_no_gradient_reaches_the_teacher():
    logits, taught = rows((1.0, 0.0, 2.0)).requires_grad_(), rows((0.0, 3.0)).requires_grad_()
    distil_known(logits, taught, 3.0).sum().backward()
    assert taught.grad is None
    assert logits.grad[0, :2].abs().min() > 0
    assert logits.grad[0, 2] == 0


# psi


def test_psi_says_known_of_a_one_hot_teacher_and_unknown_of_a_uniform_one():
    np.testing.assert_allclose(psi(rows((500.0, 0.0, 0.0))), [[1.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(psi(rows((2.0, 2.0, 2.0))), [[0.0, 1.0]], atol=1e-6)


def test_two_even_classes_of_four_are_half_of_the_largest_entropy():
    assert normalised_entropy(rows((0.0, 0.0, -500.0, -500.0))).item() == pytest.approx(0.5)


@given(logit_rows(5))
def test_psi_sums_to_one_and_stays_between_zero_and_one(taught):
    values = psi(taught)
    np.testing.assert_allclose(values.sum(1), 1.0)
    assert values.min() >= -1e-6
    assert values.max() <= 1 + 1e-6


def test_the_binary_divergence_has_its_closed_form():
    # At temperature 3 the cube roots of 8/9 and 1/9 stand as 2 to 1.
    loss = distil_binary(rows((4.0, 4.0)), rows((8 / 9, 1 / 9)), 3.0)
    np.testing.assert_allclose(loss, [2 / 3 * log(4 / 3) + 1 / 3 * log(2 / 3)])


def test_the_binary_divergence_is_finite_where_psi_is_zero():
    loss = distil_binary(rows((0.0, 0.0), (0.0, 0.0)), rows((1.0, 0.0), (0.0, 1.0)), 1.0)
    np.testing.assert_allclose(loss, [log(2), log(2)], atol=1e-6)


def test_no_gradient_reaches_the_teacher_through_psi():
    logits, taught = rows((1.0, 0.0)).requires_grad_(), rows((0.0, 3.0, 1.0)).requires_grad_()
    distil_binary(logits, psi(taught), 3.0).sum().backward()
    assert taught.grad is None
    assert logits.grad.abs().min() > 0


# Pseudo-labels


def test_a_sure_answer_is_kept_as_a_pseudo_label():
    # softmax(10, 0) = 0.99995
    believed = pseudo_labels(rows((10.0, 0.0), (0.0, 10.0), (0.0, 1.0)), tau=0.95)
    assert believed.labels.tolist() == [0, 1, 1]
    assert believed.keep.tolist() == [1.0, 1.0, 0.0]


def test_an_answer_exactly_at_tau_is_kept():
    assert pseudo_labels(rows((0.0, 0.0)), tau=0.5).keep.tolist() == [1.0]


def test_with_tau_above_one_nothing_is_kept_and_the_unsupervised_loss_is_zero():
    logits = rows((50.0, 0.0), (0.0, 50.0))
    believed = pseudo_labels(logits, tau=1.01)
    assert believed.keep.tolist() == [0.0, 0.0]
    h = kl = rows(3.0, 4.0)
    assert unsupervised_loss(h, kl, believed.keep, alpha=1.0).item() == 0.0


def test_pseudo_labels_carry_no_gradient():
    believed = pseudo_labels(rows((10.0, 0.0)).requires_grad_(), tau=0.95)
    assert not believed.labels.requires_grad
    assert not believed.keep.requires_grad


# L_s and L_u


def test_the_supervised_loss_is_half_the_mean():
    # ((1 + 0.5 * 2) + (3 + 0.5 * 4)) / (2 * 2)
    assert supervised_loss(rows(1.0, 3.0), rows(2.0, 4.0), alpha=0.5).item() == 1.75


def test_the_unsupervised_loss_is_half_the_sum_of_kept_items_over_all_items():
    # (2 + 0.5 * 1) / (2 * 4): three of four items are dropped, and still counted.
    h, kl = rows(2.0, 40.0, 50.0, 60.0), rows(1.0, 9.0, 9.0, 9.0)
    keep = rows(1.0, 0.0, 0.0, 0.0)
    assert unsupervised_loss(h, kl, keep, alpha=0.5).item() == 0.3125


def test_a_dropped_item_loses_the_teachers_signal_too():
    assert unsupervised_loss(rows(1.0), rows(1.0), rows(0.0), alpha=1.0).item() == 0.0


# P(unknown) as a target


def test_the_unknown_cross_entropy_is_a_binary_cross_entropy_by_hand():
    # g: 1/8, 2/8, 1/8 and 4/8 for C'; then 1/2 of two outputs
    logits = rows((0.0, log(2), 0.0, log(4)), (0.0, log(2), 0.0, log(4)))
    loss = unknown_cross_entropy(logits, rows(0.25, 1.0))
    np.testing.assert_allclose(loss, [log(2), log(2)])
    binary = unknown_cross_entropy(rows((0.0, log(3))), rows(0.2))
    np.testing.assert_allclose(binary, [-0.2 * log(3 / 4) - 0.8 * log(1 / 4)])


@given(logit_rows(4), arrays(np.float64, 4, elements=st.floats(0, 1)).map(torch.from_numpy))
def test_the_unknown_cross_entropy_is_the_binary_cross_entropy_of_the_log_odds(logits, p):
    odds = logits[:, -1] - logits[:, :-1].logsumexp(1)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(odds, p, reduction="none")
    np.testing.assert_allclose(unknown_cross_entropy(logits, p), expected, atol=1e-9)


def test_the_unknown_cross_entropy_leaves_the_known_classes_among_themselves():
    logits = rows((1.0, 0.0, 2.0)).requires_grad_()
    unknown_cross_entropy(logits, rows(0.7)).sum().backward()
    g = logits.detach().softmax(1)[0]
    among = g[:2] / g[:2].sum()
    # The gradient moves both known classes in proportion to what they have.
    np.testing.assert_allclose(logits.grad[0, :2] / logits.grad[0, :2].sum(), among)
    np.testing.assert_allclose(logits.grad[0, 2], g[2] - 0.7)


def test_the_unknown_cross_entropy_is_finite_where_g_is_sure():
    loss = unknown_cross_entropy(rows((0.0, 0.0, 900.0), (900.0, 0.0, 0.0)), rows(0.5, 0.5))
    np.testing.assert_allclose(loss, [450 - 0.5 * log(2), 450.0], rtol=1e-6)


# The triplet loss of S2OSC-LM


def test_the_triplet_loss_of_four_points_on_a_line():
    embeddings, labels = rows((0.0,), (3.0,), (1.0,), (5.0,)), torch.tensor([0, 0, 1, 1])
    # margin + farthest positive - nearest negative: 1+3-1, 1+3-2, 1+4-1, 1+4-2
    np.testing.assert_allclose(triplet_loss(embeddings, labels), [3.0, 2.0, 4.0, 3.0])


def test_classes_farther_apart_than_the_margin_cost_nothing():
    embeddings, labels = rows((0.0,), (0.1,), (9.0,), (9.1,)), torch.tensor([0, 0, 1, 1])
    assert triplet_loss(embeddings, labels).tolist() == [0.0, 0.0, 0.0, 0.0]


def test_an_item_alone_in_its_class_has_no_triplet():
    embeddings = rows((0.0,), (2.0,), (1.0,))
    np.testing.assert_allclose(triplet_loss(embeddings, torch.tensor([0, 0, 1])), [2.0, 2.0, 0.0])


def test_a_batch_of_one_class_costs_nothing_and_has_a_gradient_of_zero():
    embeddings = rows((0.0, 0.0), (2.0, 0.0)).requires_grad_()
    loss = triplet_loss(embeddings, torch.tensor([3, 3])).sum()
    loss.backward()
    assert loss.item() == 0.0
    assert embeddings.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_items_in_the_same_place_have_a_finite_gradient():
    embeddings = rows((1.0, 1.0), (1.0, 1.0), (1.0, 1.0)).requires_grad_()
    triplet_loss(embeddings, torch.tensor([0, 0, 1])).sum().backward()
    assert embeddings.grad.isfinite().all()


def test_the_triplet_loss_of_no_items_is_empty():
    # A fresh g is sure of nothing: the first batches of S2OSC-LM keep no pseudo-label.
    loss = triplet_loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))
    assert loss.shape == (0,)


@given(
    arrays(np.float64, (7, 2), elements=st.integers(-9, 9).map(float)),
    arrays(np.int64, 7, elements=st.integers(0, 2)),
)
def test_the_triplet_loss_equals_a_slow_search_for_triplets(embeddings, labels):
    expected = []
    for i in range(7):
        distances = [float(np.linalg.norm(embeddings[i] - other)) for other in embeddings]
        positives = [distances[j] for j in range(7) if j != i and labels[j] == labels[i]]
        negatives = [distances[j] for j in range(7) if labels[j] != labels[i]]
        triplet = bool(positives and negatives)
        expected.append(max(0.0, 0.5 + max(positives) - min(negatives)) if triplet else 0.0)
    found = triplet_loss(torch.from_numpy(embeddings), torch.from_numpy(labels), margin=0.5)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_gate_at_the_papers_tau_needs_a_lead_of_the_right_size():
    # With two outputs max g >= 0.85 means a lead of log(0.85 / 0.15) between the logits.
    lead = log(0.85 / 0.15)
    logits = rows((0.0, lead - 1e-6), (0.0, lead + 1e-6))
    h = gate_unknown(rows(1.0, 1.0), logits, torch.tensor([True, True]), tau=0.85)
    assert h.tolist() == [0.0, 1.0]
    assert exp(lead) == pytest.approx(17 / 3)
