"""The contract that every method keeps, as checks that take a method; for any package.

    from s2osc.testing import CHECKS, quick

    for check in CHECKS:
        check(quick(my_method))

A check raises an ``AssertionError``. The items are easy blobs: three known classes and one unknown.
"""

import random
from collections.abc import Hashable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from s2osc.metrics import auroc
from s2osc.nets.networks import NetworkSettings
from s2osc.pipeline.presets import PLAIN
from s2osc.pipeline.run_facts import Adaptable, RunFacts
from s2osc.settings import change, flatten
from s2osc.types import UNKNOWN, Labelled, Method, Recogniser, Split

N_KNOWN = 3
_STEPS = replace(PLAIN.teacher.training, epochs=1, batch_size=32, min_steps=40)
_NETWORK = NetworkSettings(widths=(8, 16), blocks=(1, 1), first_map=8, hidden=(32,))
SMALL_RUN = RunFacts(
    n_unknown=1,
    teacher=replace(PLAIN.teacher, network=_NETWORK, training=_STEPS),
    student=replace(PLAIN.student, network=_NETWORK, training=_STEPS, labelled_batch=32),
)
"""Networks that learn the blobs in a fraction of a second."""


def quick(method: Method) -> Any:
    """The method for ``SMALL_RUN``; a threshold takes more than a tenth of 120 items."""
    small = method.for_run(SMALL_RUN) if isinstance(method, Adaptable) else method
    share = "recipe.held_out"
    return change(small, {share: 0.3}) if share in flatten(small) else small


def make_blobs(
    n_per_class: int = 80, n_classes: int = N_KNOWN + 1, *, distance: float = 8.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian blobs in 8 dimensions, one per class; the larger the distance, the easier."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), n_per_class)
    # Corners of a simplex: every pair of classes is equally far apart.
    vectors = distance * np.eye(8)[labels] + random.normal(size=(len(labels), 8))
    return vectors.astype(np.float32), labels


def open_set(inputs: np.ndarray, labels: np.ndarray, n_known: int = N_KNOWN) -> Split:
    """Every other item of the first classes is labelled; the rest, and all others, are the pool.

    Every ninth item of the pool stands for those nobody has seen.
    """
    is_training = (labels < n_known) & (np.arange(len(labels)) % 2 == 0)
    truth_classes = labels[~is_training]
    new = slice(None, None, 9)
    return Split(
        known=Labelled(inputs[is_training], labels[is_training]),
        pool=inputs[~is_training],
        truth=np.where(truth_classes < n_known, truth_classes, UNKNOWN),
        truth_classes=truth_classes,
        known_classes=tuple(range(n_known)),
        unknown_classes=tuple(range(n_known, labels.max() + 1)),
        held_out=inputs[~is_training][new],
        held_out_truth=np.where(truth_classes < n_known, truth_classes, UNKNOWN)[new],
        held_out_classes=truth_classes[new],
    )


SPLIT = open_set(*make_blobs(80))
KNOWN, POOL, TRUTH = SPLIT.known, SPLIT.pool, SPLIT.truth


class _FirstFit(NamedTuple):
    recogniser: Recogniser
    changed: list[str]  # what the fit and its answer changed and should have left


@cache
def _fit_once(method: Any) -> _FirstFit:
    known, pool = Labelled(KNOWN.inputs.copy(), KNOWN.labels.copy()), POOL.copy()
    settings, state = flatten(method), global_random_state()
    recogniser = method.fit(known, pool, seed=0)
    recogniser.predict(pool)
    is_as_it_was = {
        "the global random state": global_random_state() == state,
        "the method": flatten(method) == settings,
        "the pool": np.array_equal(pool, POOL),
        "the labelled items": np.array_equal(known.inputs, KNOWN.inputs),
        "their labels": np.array_equal(known.labels, KNOWN.labels),
    }
    return _FirstFit(recogniser, [what for what, is_same in is_as_it_was.items() if not is_same])


def fitted(method: Method) -> Recogniser:
    """The method fitted once for all checks of the result alone."""
    return _fit_once(cast(Hashable, method)).recogniser


def global_random_state() -> list[str]:
    return [
        repr(random.getstate()),
        repr([str(np.asarray(part).tolist()) for part in np.random.get_state(legacy=True)]),  # noqa: NPY002
        repr(torch.get_rng_state().tolist()),
    ]


def check_most_answers_are_right(method: Method) -> None:
    right = np.mean(fitted(method).predict(POOL).labels == TRUTH)
    assert right > 0.9, f"{right:.0%} of the pool has its true label"


def check_labels_are_known_or_unknown(method: Method) -> None:
    labels = fitted(method).predict(POOL).labels
    assert labels.shape == (len(POOL),)
    assert set(labels) <= {UNKNOWN, *range(N_KNOWN)}


def check_scores_are_finite_and_confidences_are_probabilities(method: Method) -> None:
    predictions = fitted(method).predict(POOL)
    assert predictions.unknown_score.shape == predictions.confidence.shape == (len(POOL),)
    assert np.isfinite(predictions.unknown_score).all()
    assert predictions.confidence.min() >= 0
    assert predictions.confidence.max() <= 1 + 1e-6


def check_every_item_has_a_nearest_known_class_which_is_its_label_where_that_is_known(
    method: Method,
) -> None:
    predictions = fitted(method).predict(POOL)
    assert predictions.nearest is not None
    assert set(predictions.nearest) <= set(range(N_KNOWN))
    named = predictions.labels != UNKNOWN
    np.testing.assert_array_equal(predictions.nearest[named], predictions.labels[named])


def check_features_are_one_finite_row_per_item(method: Method) -> None:
    features = fitted(method).features(POOL)
    assert features.ndim == 2
    assert len(features) == len(POOL)
    assert np.isfinite(features).all()


def check_no_items_give_no_answers(method: Method) -> None:
    predictions = fitted(method).predict(POOL[:0])
    assert predictions.labels.shape == predictions.unknown_score.shape == (0,)


def check_the_score_rises_with_unknownness(method: Method) -> None:
    assert auroc(TRUTH, fitted(method).predict(POOL).unknown_score) > 0.95


def check_predict_does_not_depend_on_the_batch(method: Method) -> None:
    recogniser = fitted(method)
    whole = recogniser.predict(POOL)
    parts = [recogniser.predict(part) for part in np.array_split(POOL, 7)]
    np.testing.assert_array_equal(whole.labels, np.concatenate([part.labels for part in parts]))
    scores = np.concatenate([part.unknown_score for part in parts])
    np.testing.assert_allclose(whole.unknown_score, scores, atol=1e-5)


def check_the_same_seed_gives_the_same_answer(method: Method) -> None:
    first, again = fitted(method).predict(POOL), method.fit(KNOWN, POOL, seed=0).predict(POOL)
    for name in ("labels", "unknown_score", "confidence"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name), name)


def check_another_seed_gives_another_answer(method: Method) -> None:
    first, other = fitted(method).predict(POOL), method.fit(KNOWN, POOL, seed=1).predict(POOL)
    assert not np.array_equal(first.unknown_score, other.unknown_score)


def check_inputs_method_and_global_random_state_are_left_as_they_were(method: Method) -> None:
    changed = _fit_once(cast(Hashable, method)).changed
    assert not changed, f"changed: {', '.join(changed)}"


def check_a_pool_without_unknown_items_works(method: Method) -> None:
    is_known = TRUTH != UNKNOWN
    labels = method.fit(KNOWN, POOL[is_known], seed=0).predict(POOL[is_known]).labels
    # Without seeds, K items are called unknown whether they are or not; most of the rest must be
    # right.
    named = labels != UNKNOWN
    assert named.mean() > 0.3
    assert np.mean(labels[named] == TRUTH[is_known][named]) > 0.9


def check_the_order_of_the_pool_decides_no_label_alone(method: Method) -> None:
    order = np.random.default_rng(0).permutation(len(POOL))
    labels = method.fit(KNOWN, POOL[order], seed=0).predict(POOL).labels
    assert np.mean(labels == TRUTH) > 0.9


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]
