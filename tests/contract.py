"""What every method promises, as checks that take a method."""

import random
from dataclasses import asdict
from functools import cache

import numpy as np
import torch

from s2osc.metrics import auroc
from s2osc.types import UNKNOWN, Labelled, Method, Recogniser
from samples import N_KNOWN, make_blobs, open_set

SPLIT = open_set(*make_blobs(80))
KNOWN, POOL, TRUTH = SPLIT.known, SPLIT.pool, SPLIT.truth


@cache
def fitted(method: Method) -> Recogniser:
    """The method fitted once for all checks that only look at the result."""
    return method.fit(KNOWN, POOL, seed=0)


def global_random_state() -> list[str]:
    return [
        repr(random.getstate()),
        repr([str(np.asarray(part).tolist()) for part in np.random.get_state(legacy=True)]),  # noqa: NPY002
        repr(torch.get_rng_state().tolist()),
    ]


def check_most_answers_are_right(method: Method) -> None:
    assert np.mean(fitted(method).predict(POOL).labels == TRUTH) > 0.9


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
    known, pool = Labelled(KNOWN.inputs.copy(), KNOWN.labels.copy()), POOL.copy()
    settings, state = asdict(method), global_random_state()
    method.fit(known, pool, seed=0).predict(pool)
    assert global_random_state() == state
    assert asdict(method) == settings
    np.testing.assert_array_equal(pool, POOL)
    np.testing.assert_array_equal(known.inputs, KNOWN.inputs)
    np.testing.assert_array_equal(known.labels, KNOWN.labels)


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
