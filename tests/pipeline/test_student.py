"""g: its loss against a slow reference, its lesson, its batches, its start."""

from copy import deepcopy
from dataclasses import replace
from itertools import islice
from math import exp, log

import numpy as np
import pytest
import torch
from torch import nn

from s2osc.errors import SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.networks import Network
from s2osc.pipeline.audit.confidence import known_confidence
from s2osc.pipeline.filter.distinctness import Partition
from s2osc.pipeline.student import (
    Lesson,
    Student,
    StudentBatch,
    predict_pseudo_labels,
    prepare_lesson,
    start_student,
    student_batches,
    student_loss,
    train_student,
    weigh_vote,
)
from s2osc.pipeline.teacher import Teacher, class_centres
from s2osc.types import Labelled
from samples import TINY, TINY_NETWORK, make_blobs, open_set

N_CLASSES, N_FEATURES = 3, 4
SETTINGS = replace(TINY.student, tau=0.6, alpha=0.3, lambda_u=0.2, temperature=3.0)


# A slow reference: the formulas as the paper prints them, one item at a time.


def softmax(logits):
    powers = [exp(value - max(logits)) for value in logits]
    return [power / sum(powers) for power in powers]


def sharpen(probabilities, temperature):
    raised = [p ** (1 / temperature) for p in probabilities]
    return [value / sum(raised) for value in raised]


def divergence(p, q):
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def slow_psi(taught):
    f = softmax(taught)
    loss = -sum(p * log(p) for p in f) / log(len(f))
    return [1 - loss, loss]


def slow_kl(logits, taught, settings):
    if settings.unknown == "many":
        target, answer = slow_psi(taught), softmax(logits)
    else:
        g = softmax(logits)
        target, answer = softmax(taught), [p / (1 - g[-1]) for p in g[:-1]]
    return divergence(sharpen(target, settings.temperature), sharpen(answer, settings.temperature))


def slow_supervised(plain, viewed, labels, taught, settings):
    total = 0.0
    for g_plain, g_viewed, y, f in zip(plain, viewed, labels, taught, strict=True):
        g = softmax(g_plain)
        h = -log(g[y])
        if settings.gate_unknown and y == len(g) - 1 and max(g) < settings.tau:
            h = 0.0
        total += h + settings.alpha * slow_kl(g_viewed, f, settings)
    return total / (2 * len(labels))


def slow_unsupervised(pseudo, viewed, taught, settings):
    total = 0.0
    for g_now, g_viewed, f in zip(pseudo, viewed, taught, strict=True):
        q = softmax(g_now)
        if max(q) >= settings.tau:
            h = -log(softmax(g_viewed)[q.index(max(q))])
            total += h + settings.alpha * slow_kl(g_viewed, f, settings)
    return total / (2 * len(taught))


# A network and views simple enough to follow with pencil and paper.


class LinearNetwork(nn.Module):
    """Two linear maps. While it learns its answers differ, as with batch normalisation."""

    def __init__(self, n_outputs, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.Linear(N_FEATURES, 5, bias=False, dtype=torch.float64)
        self.head = nn.Linear(5, n_outputs, dtype=torch.float64)

    def embed(self, inputs):
        return self.body(inputs) * (1.0 if self.training else 2.0)

    def forward(self, inputs):
        return self.head(self.embed(inputs))

    def by_hand(self, inputs, factor=1.0):
        body, head, bias = (
            p.detach().numpy() for p in (self.body.weight, self.head.weight, self.head.bias)
        )
        return factor * inputs.numpy() @ body.T @ head.T + bias


class ShiftingViews:
    """Views that differ: weak ones add 0.5, the chosen strength multiplies by 1.5."""

    def plain(self, items):
        return items

    def weak(self, items):
        return items + 0.5

    def __call__(self, items):
        return items * 1.5


def make_step(settings, seed=0, n_labelled=17, n_unlabelled=14):
    random = np.random.default_rng(seed)
    n_outputs = 2 if settings.unknown == "many" else N_CLASSES + 1

    def draw(*shape):
        return torch.from_numpy(random.normal(size=shape))

    labels = torch.from_numpy(np.arange(n_labelled) % n_outputs)
    unknown_probability = (
        torch.from_numpy(random.random(n_unlabelled)) if settings.seed_weight else None
    )
    return n_outputs, StudentBatch(
        4 * draw(n_labelled, N_FEATURES),
        labels,
        3 * draw(n_labelled, N_CLASSES),
        2 * draw(n_unlabelled, N_FEATURES),
        3 * draw(n_unlabelled, N_CLASSES),
        unknown_probability,
    )


def slow_student_loss(network, step, settings):
    weak = step.labelled + 0.5
    plain = network.by_hand(weak if settings.augment_labelled else step.labelled)
    # The supplement's KL is of g(Phi(x)); Eq. 3 has g(x) throughout.
    is_viewed = settings.augment_labelled or settings.unknown == "many"
    viewed = network.by_hand(weak if is_viewed else step.labelled)
    supervised = slow_supervised(plain, viewed, step.labels, step.labelled_teacher_logits, settings)
    unsupervised = slow_unsupervised(
        network.by_hand(step.unlabelled, factor=2.0),
        network.by_hand(step.unlabelled * 1.5),
        step.unlabelled_teacher_logits,
        settings,
    )
    loss = supervised + settings.lambda_u * unsupervised
    if step.unlabelled_unknown is None:
        return loss
    answers = [softmax(row) for row in network.by_hand(step.unlabelled * 1.5)]
    by_seeds = [
        -p * log(g[-1]) - (1 - p) * log(1 - g[-1])
        for g, p in zip(answers, step.unlabelled_unknown.tolist(), strict=True)
    ]
    return loss + settings.seed_weight * sum(by_seeds) / len(by_seeds)


CASES = {
    "as the fast preset": {},
    "labelled items as they are": {"augment_labelled": False},
    "with the gate": {"gate_unknown": True},
    "the paper's letter": {"gate_unknown": True, "augment_labelled": False, "tau": 0.85},
    "without L_u": {"lambda_u": 0.0},
    "without the teacher": {"alpha": 0.0},
    "large weights": {"alpha": 2.0, "lambda_u": 5.0, "temperature": 0.7},
    "no pseudo-label": {"tau": 1.5},
    "every pseudo-label": {"tau": 0.0},
    "as the seeds say": {"seed_weight": 0.5},
    "as the seeds say, without L_u": {"seed_weight": 2.0, "lambda_u": 0.0},
    "as the seeds say, labelled items as they are": {"seed_weight": 1.0, "augment_labelled": False},
}


@pytest.mark.parametrize("unknown", ["one", "many"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_loss_of_a_step_is_what_the_formulas_say(case, unknown):
    settings = replace(SETTINGS, unknown=unknown, **case)
    for seed in range(3):
        n_outputs, step = make_step(settings, seed)
        network = LinearNetwork(n_outputs, seed)
        loss = student_loss(network, step, settings, ShiftingViews()).item()
        assert loss == pytest.approx(slow_student_loss(network, step, settings), rel=1e-6)


@pytest.mark.parametrize("unknown", ["one", "many"])
def test_the_examples_hold_kept_and_dropped_gated_and_open_items(unknown):
    # Otherwise the comparison above could pass without ever meeting the masks.
    n_outputs, step = make_step(replace(SETTINGS, unknown=unknown))
    network = LinearNetwork(n_outputs)
    d_out = (step.labelled + 0.5)[step.labels == n_outputs - 1]
    for logits in (network.by_hand(step.unlabelled, factor=2.0), network.by_hand(d_out)):
        confident = [max(softmax(row)) >= SETTINGS.tau for row in logits]
        assert 0 < sum(confident) < len(confident)


@pytest.mark.parametrize("seed_weight", [0.0, 0.5])
@pytest.mark.parametrize("unknown", ["one", "many"])
def test_the_gradient_is_that_of_the_slow_reference_and_none_reaches_the_teacher(
    unknown, seed_weight
):
    settings = replace(SETTINGS, unknown=unknown, seed_weight=seed_weight)
    n_outputs, step = make_step(settings)
    network = LinearNetwork(n_outputs)
    step.labelled_teacher_logits.requires_grad_()
    step.unlabelled_teacher_logits.requires_grad_()
    student_loss(network, step, settings, ShiftingViews()).backward()
    assert step.labelled_teacher_logits.grad is None
    assert step.unlabelled_teacher_logits.grad is None

    step = step._replace(
        labelled_teacher_logits=step.labelled_teacher_logits.detach(),
        unlabelled_teacher_logits=step.unlabelled_teacher_logits.detach(),
    )
    for parameter in network.parameters():
        found, values = parameter.grad.flatten(), parameter.data.view(-1)
        for place in range(0, len(values), 3):
            value = values[place].item()
            around = []
            for offset in (1e-5, -1e-5):
                values[place] = value + offset
                around.append(slow_student_loss(network, step, settings))
            values[place] = value
            slope = (around[0] - around[1]) / 2e-5
            assert found[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_labelled_and_unlabelled_items_are_normalised_together():
    settings = replace(SETTINGS, augment_labelled=False, lambda_u=1.0, tau=0.3)
    _, step = make_step(settings)
    torch.manual_seed(0)
    network = Network(replace(TINY_NETWORK, hidden=(5,)), (N_FEATURES,), N_CLASSES + 1).double()
    linear, norm, _ = network.body
    inputs = torch.cat([step.labelled, step.unlabelled * 1.5]).numpy()
    sums = inputs @ linear.weight.detach().numpy().T

    def finish(normalised):
        head = network.head
        return (
            np.maximum(normalised, 0) @ head.weight.detach().numpy().T + head.bias.detach().numpy()
        )

    learning = finish((sums - sums.mean(0)) / np.sqrt(sums.var(0) + norm.eps))
    # Pseudo-labels come from g as it answers now: a fresh norm remembers mean 0 and variance 1.
    plain = step.unlabelled.numpy() @ linear.weight.detach().numpy().T
    answering = finish(plain / np.sqrt(1 + norm.eps))

    class Network64(type(network)):  # embed() casts to single precision, too coarse to compare
        def embed(self, items):
            return self.body(items)

    network.__class__ = Network64
    loss = student_loss(network.train(), step, settings, ShiftingViews()).item()
    n = len(step.labels)
    expected = slow_supervised(
        learning[:n], learning[:n], step.labels, step.labelled_teacher_logits, settings
    ) + slow_unsupervised(answering, learning[n:], step.unlabelled_teacher_logits, settings)
    assert loss == pytest.approx(expected, rel=1e-6)
    assert norm.num_batches_tracked == 1


def test_pseudo_labels_come_from_the_answering_network_and_carry_no_gradient():
    _, step = make_step(SETTINGS)
    network = LinearNetwork(N_CLASSES + 1).train()
    pseudo = predict_pseudo_labels(network, step.unlabelled, 0.6)
    by_hand = network.by_hand(step.unlabelled, factor=2.0)
    np.testing.assert_array_equal(pseudo.labels, by_hand.argmax(1))
    np.testing.assert_array_equal(pseudo.keep, [max(softmax(row)) >= 0.6 for row in by_hand])
    assert not pseudo.keep.requires_grad
    assert network.training


class FirstOfTwo(ShiftingViews):
    """The same of stacked views, whose first one is the item itself."""

    def plain(self, items):
        return items[:, 0]

    def weak(self, items):
        return super().weak(items[:, 0])

    def __call__(self, items):
        return super().__call__(items[:, 0])


def test_a_pseudo_label_is_that_of_the_item_not_of_its_views():
    n_outputs, step = make_step(SETTINGS)
    network = LinearNetwork(n_outputs)
    stacked = step._replace(
        labelled=torch.stack([step.labelled, -step.labelled], dim=1),
        unlabelled=torch.stack([step.unlabelled, -step.unlabelled], dim=1),
    )
    found = student_loss(network, stacked, SETTINGS, FirstOfTwo())
    assert found.item() == student_loss(network, step, SETTINGS, ShiftingViews()).item()


def test_without_unlabelled_loss_the_unlabelled_items_are_not_looked_at():
    settings = replace(SETTINGS, lambda_u=0.0)
    n_outputs, step = make_step(settings)
    network = LinearNetwork(n_outputs)
    broken = step._replace(unlabelled=torch.full_like(step.unlabelled, torch.nan))
    loss = student_loss(network, broken, settings, ShiftingViews())
    assert loss.item() == student_loss(network, step, settings, ShiftingViews()).item()


# S2OSC-LM


def slow_triplets(embeddings, labels):
    """At unit length, with a margin of 0.5."""
    losses = []
    embeddings = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    for i, mine in enumerate(embeddings):
        gaps = [np.linalg.norm(mine - other) for other in embeddings]
        same = [d for j, d in enumerate(gaps) if j != i and labels[j] == labels[i]]
        others = [d for j, d in enumerate(gaps) if labels[j] != labels[i]]
        losses.append(max(0.0, 0.5 + max(same) - min(others)) if same and others else 0.0)
    return losses


def test_with_triplets_the_hard_loss_is_theirs_and_the_head_reads_the_embedding_off():
    settings = replace(SETTINGS, hard_loss="triplet", lambda_u=0.0, alpha=0.0)
    n_outputs, step = make_step(settings)
    network = LinearNetwork(n_outputs)
    loss = student_loss(network, step, settings, ShiftingViews())
    embeddings = (step.labelled + 0.5).numpy() @ network.body.weight.detach().numpy().T
    triplets = slow_triplets(embeddings, step.labels)
    read_off = [
        -log(softmax(g)[y])
        for g, y in zip(network.by_hand(step.labelled + 0.5), step.labels, strict=True)
    ]
    assert loss.item() == pytest.approx((sum(triplets) + sum(read_off)) / (2 * len(step.labels)))


def test_with_triplets_the_cross_entropy_does_not_shape_the_embedding():
    settings = replace(SETTINGS, hard_loss="triplet", lambda_u=0.0, alpha=0.0)
    n_outputs, step = make_step(settings)
    network = LinearNetwork(n_outputs)
    one_class = step._replace(labels=torch.ones_like(step.labels))  # no triplets
    student_loss(network, one_class, settings, ShiftingViews()).backward()
    assert network.head.weight.grad.abs().max() > 0
    assert network.body.weight.grad is None or network.body.weight.grad.abs().max() == 0


@pytest.mark.parametrize("tau", [0.0, 0.6, 1.5])
def test_triplets_are_formed_among_kept_pseudo_labels_also_if_there_are_none(tau):
    settings = replace(SETTINGS, hard_loss="triplet", alpha=0.0, lambda_u=1.0, tau=tau)
    n_outputs, step = make_step(settings)
    network = LinearNetwork(n_outputs)
    loss = student_loss(network, step, settings, ShiftingViews())
    supervised = student_loss(network, step, replace(settings, lambda_u=0.0), ShiftingViews())

    pseudo = [softmax(row) for row in network.by_hand(step.unlabelled, factor=2.0)]
    confident = [row for row, q in enumerate(pseudo) if max(q) >= tau]
    labels = [int(np.argmax(pseudo[row])) for row in confident]
    viewed = step.unlabelled[confident] * 1.5
    triplets = slow_triplets(viewed.numpy() @ network.body.weight.detach().numpy().T, labels)
    read_off = [-log(softmax(g)[y]) for g, y in zip(network.by_hand(viewed), labels, strict=True)]
    unsupervised = (sum(triplets) + sum(read_off)) / (2 * len(step.unlabelled))
    assert (loss - supervised).item() == pytest.approx(unsupervised, abs=1e-9)


# The lesson


@pytest.fixture(scope="module")
def teacher():
    torch.manual_seed(0)
    network = Network(TINY_NETWORK, (8,), N_CLASSES).eval()
    known = open_set(*make_blobs(20)).known
    network.fit_normalisation(known.inputs)
    with torch.no_grad():
        embeddings = network.embed(torch.from_numpy(known.inputs)).numpy()
    return Teacher(network, class_centres(embeddings, known.labels))


def lesson_of(teacher, known, pool, parts, k, settings, **options):
    taught = [teacher.outputs(inputs).logits for inputs in (known.inputs, pool)]
    return prepare_lesson(known, taught[0], pool, taught[1], parts, k, settings, seed=0, **options)


def make_lesson(teacher, settings, k=6):
    split = open_set(*make_blobs(20))
    n_pool = len(split.pool)
    parts = Partition(
        np.arange(0, 2 * k, 2), np.setdiff1d(np.arange(n_pool), np.arange(0, 2 * k, 2))
    )
    lesson = lesson_of(teacher, split.known, split.pool, parts, k, settings)
    return split, parts, lesson


def rows_of(inputs, among):
    """Where each item stands among others; every item is unlike any other."""
    return [int(np.flatnonzero((among == item).all(1))[0]) for item in inputs]


def test_the_lesson_holds_k_items_of_each_class_and_d_out_as_one_more_class(teacher):
    split, parts, lesson = make_lesson(teacher, SETTINGS)
    assert np.bincount(lesson.labels).tolist() == [6, 6, 6, 6]
    rows = rows_of(lesson.inputs[:18], split.known.inputs)
    assert len(set(rows)) == 18
    np.testing.assert_array_equal(lesson.labels[:18], split.known.labels[rows])
    np.testing.assert_array_equal(lesson.inputs[18:], split.pool[parts.unknown])
    np.testing.assert_array_equal(lesson.undecided, parts.undecided)


def test_the_lesson_of_the_binary_variant_holds_k_known_items_in_all(teacher):
    split, parts, lesson = make_lesson(teacher, replace(SETTINGS, unknown="many"))
    assert lesson.labels.tolist() == [0] * 6 + [1] * 6
    rows = rows_of(lesson.inputs[:6], split.known.inputs)
    assert np.bincount(split.known.labels[rows]).tolist() == [2, 2, 2]
    np.testing.assert_array_equal(lesson.inputs[6:], split.pool[parts.unknown])


@pytest.mark.parametrize("unknown", ["one", "many"])
def test_what_f_says_stands_beside_every_item_of_the_lesson(teacher, unknown):
    _, _, lesson = make_lesson(teacher, replace(SETTINGS, unknown=unknown))
    np.testing.assert_allclose(
        lesson.teacher_logits, teacher.outputs(lesson.inputs).logits, atol=1e-5
    )
    np.testing.assert_allclose(
        lesson.pool_teacher_logits, teacher.outputs(lesson.pool).logits, atol=1e-5
    )


@pytest.mark.parametrize("unknown", ["one", "many"])
def test_the_lesson_may_hold_every_labelled_item(teacher, unknown):
    settings = replace(SETTINGS, unknown=unknown, known_items="all")
    split, parts, lesson = make_lesson(teacher, settings)
    n = len(split.known)
    assert lesson.n_known == n
    np.testing.assert_array_equal(lesson.inputs[:n], split.known.inputs)
    np.testing.assert_array_equal(lesson.inputs[n:], split.pool[parts.unknown])
    labels = split.known.labels if unknown == "one" else np.zeros(n)
    np.testing.assert_array_equal(lesson.labels[:n], labels)
    np.testing.assert_array_equal(lesson.labels[n:], 3 if unknown == "one" else 1)


def test_what_the_seeds_say_is_in_the_lesson_only_where_it_weighs(teacher):
    split = open_set(*make_blobs(20))
    probabilities = np.linspace(0, 1, len(split.pool))
    parts = Partition(np.arange(5), np.arange(5, len(split.pool)))
    for weight, expected in ((0.5, probabilities), (0.0, None)):
        settings = replace(SETTINGS, seed_weight=weight)
        lesson = lesson_of(
            teacher, split.known, split.pool, parts, 5, settings, pool_unknown=probabilities
        )
        assert lesson.pool_unknown is expected


# The batches


def numbered_lesson(n_labelled=10, n_pool=30):
    """Items that carry their own number, and f says that number of them."""
    labelled = 1000 + np.arange(n_labelled, dtype=np.float32)[:, None]
    pool = np.arange(n_pool, dtype=np.float32)[:, None]
    undecided = np.arange(0, n_pool, 2)  # the odd ones are in D_out
    labels = np.arange(n_labelled) % 4
    return Lesson(labelled, labels, labelled, pool, undecided, pool, n_known=n_labelled - 3)


def take(settings, n, lesson=None):
    return list(
        islice(student_batches(lesson or numbered_lesson(), settings, seed=0, device="cpu"), n)
    )


def with_batches(n_labelled, n_unlabelled, unknown="one"):
    training = replace(SETTINGS.training, batch_size=n_unlabelled)
    return replace(SETTINGS, training=training, labelled_batch=n_labelled, unknown=unknown)


def test_a_pass_of_unlabelled_batches_is_the_undecided_part_of_the_pool():
    drawn = torch.cat([step.unlabelled for step in take(with_batches(4, 5), 3)])
    assert sorted(drawn.flatten().tolist()) == list(range(0, 30, 2))


def test_labelled_items_join_the_unlabelled_ones_in_the_binary_variant():
    drawn = torch.cat([step.unlabelled for step in take(with_batches(4, 5, "many"), 5)])
    assert sorted(drawn.flatten().tolist()) == [*range(0, 30, 2), *range(1000, 1010)]


@pytest.mark.parametrize("unknown", ["one", "many"])
def test_every_step_is_full_and_pairs_each_item_with_what_f_says_of_it(unknown):
    for step in take(with_batches(4, 5, unknown), 20):
        assert (len(step.labelled), len(step.unlabelled)) == (4, 5)
        assert torch.equal(step.labelled, step.labelled_teacher_logits)
        assert torch.equal(step.unlabelled, step.unlabelled_teacher_logits)
        assert torch.equal(step.labels, (step.labelled[:, 0].long() - 1000) % 4)


@pytest.mark.parametrize("unknown", ["one", "many"])
def test_each_unlabelled_item_is_paired_with_what_the_seeds_say_of_it(unknown):
    lesson = numbered_lesson()._replace(pool_unknown=np.arange(30) / 100)
    labelled_told = (lesson.labels == 3).astype(float)  # D_out is unknown, D_in is not
    for step in take(with_batches(4, 5, unknown), 10, lesson):
        for item, p in zip(step.unlabelled[:, 0], step.unlabelled_unknown, strict=True):
            number = int(item)
            expected = number / 100 if number < 1000 else labelled_told[number - 1000]
            assert p.item() == pytest.approx(expected)


def test_without_seeds_nothing_is_said():
    assert all(step.unlabelled_unknown is None for step in take(with_batches(4, 5), 3))


@pytest.mark.parametrize(("batch", "of_unknown"), [(8, 2), (6, 1), (3, 1), (2, 1)])
def test_with_all_labelled_items_a_quarter_of_a_batch_is_from_d_out(batch, of_unknown):
    settings = replace(with_batches(batch, 5), known_items="all")
    drawn = [(step.labelled[:, 0].long() - 1000).tolist() for step in take(settings, 12)]
    for rows in drawn:
        assert len(rows) == len(set(rows)) == min(batch, 7 + of_unknown)
        assert sum(row >= 7 for row in rows) == of_unknown  # the last three are D_out
    assert {row for rows in drawn for row in rows} == set(range(10))


# The start and the training of g


def test_a_fresh_g_has_one_more_class_than_f_and_weights_of_its_own(teacher):
    _, _, lesson = make_lesson(teacher, SETTINGS)
    network = start_student(teacher, lesson, SETTINGS)
    assert network.head.out_features == N_CLASSES + 1
    assert not torch.equal(network.body[0].weight, teacher.network.body[0].weight)
    np.testing.assert_allclose(network.mean, lesson.inputs.mean(0), rtol=1e-4)
    binary = start_student(teacher, lesson, replace(SETTINGS, unknown="many"))
    assert binary.head.out_features == 2


def test_s2osc_fn_starts_from_the_weights_of_f(teacher):
    _, _, lesson = make_lesson(teacher, SETTINGS)
    network = start_student(teacher, lesson, replace(SETTINGS, start="teacher"))
    mine, theirs = network.state_dict(), teacher.network.state_dict()
    for name in theirs.keys() - {"head.weight", "head.bias"}:
        assert torch.equal(mine[name], theirs[name]), name
    assert torch.equal(network.head.weight[:-1], teacher.network.head.weight)
    assert torch.equal(network.head.bias[:-1], teacher.network.head.bias)
    assert network.head.weight.shape[0] == N_CLASSES + 1


@pytest.mark.parametrize("start", ["scratch", "teacher"])
def test_training_g_leaves_f_and_the_lesson_as_they_were(teacher, start):
    _, _, lesson = make_lesson(teacher, SETTINGS)
    before = {name: tensor.clone() for name, tensor in teacher.network.state_dict().items()}
    arrays = deepcopy(lesson)
    settings = replace(SETTINGS, start=start)
    train_student(teacher, lesson, settings, AugmentSettings(), seed=0, device="cpu")
    for name, tensor in teacher.network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    for array, copy in zip(lesson, arrays, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("unknown", ["one", "many"])
def test_g_learns_what_d_out_looks_like(teacher, unknown):
    settings = replace(SETTINGS, unknown=unknown)
    split = open_set(*make_blobs())
    is_unknown = np.flatnonzero(split.truth < 0)
    parts = Partition(is_unknown[:15], np.setdiff1d(np.arange(len(split.pool)), is_unknown[:15]))
    lesson = lesson_of(teacher, split.known, split.pool, parts, 15, settings)
    student = train_student(teacher, lesson, settings, AugmentSettings(), seed=0, device="cpu")
    is_unknown = student.predicts_unknown(student.outputs(split.pool).logits)
    assert np.mean(is_unknown == (split.truth < 0)) > 0.95


# The answer of g


def test_with_one_unknown_class_the_probabilities_are_those_of_g():
    student = Student(LinearNetwork(4), "one", vote=False)
    logits = np.array([[0.0, log(2), 0.0, log(4)]])
    np.testing.assert_allclose(
        student.probabilities(logits, np.zeros((1, 3))), [[1 / 8, 2 / 8, 1 / 8, 4 / 8]]
    )
    assert student.predicts_unknown(logits).tolist() == [True]


def test_by_vote_f_and_g_divide_the_known_together_and_leave_the_unknown_to_g():
    student = Student(LinearNetwork(4), "one", vote=True)
    logits, taught = np.array([[log(2), log(3), 0.0, log(6)]]), np.array([[log(6), 0.0, 0.0]])
    # g: 2 : 3 : 1 : 6, half unknown; f: 6 : 1 : 1; the products 12 : 3 : 1 share the other half
    p = student.probabilities(logits, taught)
    np.testing.assert_allclose(p, [[12 / 32, 3 / 32, 1 / 32, 1 / 2]])
    assert student.predicts_unknown(logits).tolist() == [True]


def test_an_item_that_is_surely_unknown_still_has_its_nearest_class():
    student = Student(LinearNetwork(4), "one", vote=True)
    logits, taught = np.float32([[0, 0, 0, 40]]), np.float32([[0, 5, 0]])
    p = student.probabilities(logits, taught)
    assert p[0, :-1].argmax() == 1
    assert known_confidence(p[:, :-1])[0] == pytest.approx(np.exp(5) / (np.exp(5) + 2), rel=1e-4)


@pytest.mark.parametrize(("vote_weight", "named"), [(0.5, 0), (0.0, 1)])
def test_the_vote_weight_of_g_says_how_much_it_counts_beside_f(vote_weight, named):
    student = Student(LinearNetwork(3), "one", vote=True, vote_weight=vote_weight)
    logits, taught = np.array([[log(16), 0.0, 0.0]]), np.array([[0.0, log(2)]])
    # g: 16 to the power of its vote weight, 4 or 1, against 2
    p = student.probabilities(logits, taught)[0, :-1]
    assert p.argmax() == named
    assert p[0] / p[1] == pytest.approx(16**vote_weight / 2)


@pytest.mark.parametrize(
    ("g", "f", "vote_weight"),
    [((5, 1), (2, 0), 1.0), ((-5, 1), (2, 0), 0.0), ((-3, 1), (2, 0), 0.5)],
)
def test_g_has_the_vote_weight_that_names_most_seeds_rightly(g, f, vote_weight):
    # Two seeds of class 0; g and f lead for it by so much. With -3 and 2 half a vote is enough.
    student = Student(LinearNetwork(3), "one", vote=True)
    logits = np.array([[lead, 0.0, 0.0] for lead in g], float)
    taught = np.array([[lead, 0.0] for lead in f], float)
    weighed = weigh_vote(student, logits, taught, np.zeros(2, int))
    assert weighed.vote_weight == vote_weight
    assert weighed.network is student.network


@pytest.mark.parametrize("vote", [False, True])
def test_with_many_unknown_classes_f_divides_what_g_calls_known(vote):
    student = Student(LinearNetwork(2), "many", vote=vote)
    logits, taught = np.array([[log(3), 0.0]]), np.array([[log(2), 0.0, 0.0]])
    # g: 3/4 known; f: 1/2, 1/4, 1/4 of it
    np.testing.assert_allclose(
        student.probabilities(logits, taught), [[3 / 8, 3 / 16, 3 / 16, 1 / 4]]
    )
    assert student.predicts_unknown(logits).tolist() == [False]


def test_the_log_odds_of_g_tell_apart_what_probabilities_cannot():
    student = Student(LinearNetwork(4), "one", vote=False)
    logits = np.array([[0.0, 0.0, 0.0, log(6)], [0.0, 0.0, 0.0, 900.0], [0.0, 0.0, 0.0, 950.0]])
    np.testing.assert_allclose(student.log_odds(logits), [log(2), 900 - log(3), 950 - log(3)])


# Settings


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"unknown": "two"}, "student.unknown is 'two'; give one of one, many"),
        ({"augmentation": "none"}, "weak, strong"),
        ({"hard_loss": "hinge"}, "cross-entropy, triplet"),
        ({"start": "imagenet"}, "scratch, teacher"),
        ({"labelled_batch": 1}, "student.labelled_batch is 1"),
        ({"alpha": -0.1}, "student.alpha is -0.1"),
        ({"lambda_u": -1.0}, "student.lambda_u is -1.0"),
        ({"tau": -0.5}, "student.tau is -0.5"),
        ({"tau": float("nan")}, "student.tau is nan"),
        ({"temperature": 0.0}, "student.temperature is 0.0"),
        ({"seed_weight": -1.0}, "student.seed_weight is -1.0"),
        ({"known_items": "some"}, "student.known_items is 'some'; give one of k, all"),
        ({"temperature": float("nan")}, "student.temperature is nan"),
    ],
)
def test_a_student_that_cannot_be_trained_is_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        replace(SETTINGS, **wrong)


def test_labels_of_any_whole_kind_can_be_taught(teacher):
    split = open_set(*make_blobs(20))
    parts = Partition(np.arange(5), np.arange(5, len(split.pool)))
    known = Labelled(split.known.inputs, split.known.labels.astype(np.uint8))
    lesson = lesson_of(teacher, known, split.pool, parts, 5, SETTINGS)
    step = next(student_batches(lesson, SETTINGS, seed=0, device="cpu"))
    loss = student_loss(start_student(teacher, lesson, SETTINGS), step, SETTINGS, ShiftingViews())
    assert loss.isfinite()
