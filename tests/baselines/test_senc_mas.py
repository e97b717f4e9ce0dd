"""SENC-MaS: similarities to sketches, and sketches that grow with newly labelled items."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.arrays import unit_rows
from s2osc.baselines.senc_mas import (
    SENCMaS,
    Sketch,
    extend_sketches,
    merge,
    shrink_rows,
    similarity,
    sketch,
)
from s2osc.baselines.shared import VECTORS, hold_out
from s2osc.errors import DataError, SettingsError
from s2osc.metrics import auroc
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import make_images, open_set

# A threshold from a tenth of 120 items is a matter of luck.
RECIPE = replace(VECTORS, held_out=0.3)
METHODS = {
    "plain": SENCMaS(recipe=RECIPE),
    "centred": SENCMaS(center=True, recipe=RECIPE),
    "energy": SENCMaS(n_directions=4, similarity="energy", recipe=RECIPE),
}


def axes(labels: list[int], n_features: int = 4) -> np.ndarray:
    """One row along one axis each, of different lengths and signs."""
    lengths = np.resize([1.0, -2.0, 3.0], len(labels))
    return (np.eye(n_features)[labels] * lengths[:, None]).astype(np.float32)


AXES = Labelled(axes([0] * 20 + [1] * 40), np.repeat([0, 1], [20, 40]))


@pytest.mark.parametrize("kind", ["mean square", "energy"])
def test_a_direction_no_class_has_is_unknown_and_others_are_named(kind):
    model = SENCMaS(similarity=kind).fit(AXES, AXES.inputs, seed=0)
    predictions = model.predict(axes([2, 0, 1]))
    assert predictions.unknown_score[0] == pytest.approx(0, abs=1e-12)
    assert predictions.labels.tolist() == [UNKNOWN, 0, 1]
    assert predictions.confidence[1:].tolist() == pytest.approx([1, 1])


def test_the_similarity_is_the_mean_squared_cosine():
    random = np.random.default_rng(0)
    rows, queries = (unit_rows(random.normal(size=(n, 6))) for n in (40, 5))
    exact = Sketch(np.empty((0, 6)), 0).merged_with(rows, 50)
    np.testing.assert_allclose(
        similarity(queries, exact, "mean square"), ((queries @ rows.T) ** 2).mean(1)
    )


def test_the_energy_is_the_share_within_the_directions_of_the_sketch():
    plane = Sketch(np.array([[5.0, 0, 0], [0, 0.1, 0]]), 7)
    queries = np.array([[1.0, 0, 0], [0, 0.6, 0.8], [0, 0, 1]])
    np.testing.assert_allclose(similarity(queries, plane, "energy"), [1, 0.36, 0], atol=1e-12)


def test_the_number_of_items_behind_a_class_does_not_favour_it():
    angles = np.linspace(0.6, 0.9, 10)
    rare = np.column_stack([np.cos(angles), np.sin(angles)])
    frequent = np.tile([[1.0, 0.1], [1.0, -0.1]], (300, 1))
    known = Labelled(
        np.concatenate([rare, frequent]).astype(np.float32), np.repeat([0, 1], [10, 600])
    )
    model = SENCMaS().fit(known, known.inputs, seed=0)
    assert model.similarities(rare)[:, 1:].argmax(1).tolist() == [0] * 10


def test_the_threshold_lets_the_asked_share_of_held_out_items_pass():
    model = SENCMaS(known_recall=0.5, recipe=RECIPE).fit(KNOWN, POOL, seed=0)
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    assert np.mean(model.predict(held_out.inputs).labels != UNKNOWN) == 0.5


def test_the_other_threshold_is_the_mean_less_one_deviation_of_similarities():
    model = SENCMaS(rule="mean - std", recipe=RECIPE).fit(KNOWN, POOL, seed=0)
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    similarities = -model.predict(held_out.inputs).unknown_score
    assert -model.threshold == pytest.approx(similarities.mean() - similarities.std(), abs=1e-6)


def test_centring_takes_the_mean_of_training_items_away():
    moved = Labelled(KNOWN.inputs + 50, KNOWN.labels)
    method = METHODS["centred"]
    there = method.fit(moved, POOL + 50, seed=0).predict(POOL + 50)
    here = fitted(method).predict(POOL)
    np.testing.assert_allclose(there.unknown_score, here.unknown_score, atol=1e-4)
    # Without it, all items of a far-off cloud point the same way.
    blind = METHODS["plain"].fit(moved, POOL + 50, seed=0).predict(POOL + 50)
    assert np.ptp(blind.unknown_score) < 0.1 * np.ptp(there.unknown_score)


def test_an_empty_image_has_no_direction_and_a_finite_score():
    predictions = fitted(METHODS["plain"]).predict(np.zeros((1, 8), np.float32))
    assert predictions.labels.tolist() == [UNKNOWN]
    assert predictions.unknown_score.tolist() == [0]


def test_features_are_the_unit_rows_within_the_directions_of_all_items():
    model = fitted(METHODS["energy"])
    features = model.features(POOL)
    assert features.shape == (len(POOL), 3)
    np.testing.assert_allclose((features**2).sum(1), -model.predict(POOL).unknown_score, atol=1e-6)


def test_a_new_class_is_recognised_once_its_items_are_merged_in():
    model, is_new = fitted(METHODS["plain"]), np.flatnonzero(TRUTH == UNKNOWN)
    taught, asked = is_new[::2], is_new[1::2]
    assert np.mean(model.predict(POOL[asked]).labels == UNKNOWN) > 0.9
    wider = extend_sketches(model, POOL[taught], np.full(len(taught), 3))
    assert wider.n_classes == 4
    assert np.mean(wider.predict(POOL[asked]).labels == 3) > 0.9
    is_old = TRUTH != UNKNOWN
    assert np.mean(wider.predict(POOL[is_old]).labels == TRUTH[is_old]) > 0.85
    assert model.n_classes == 3


def test_merged_sketches_are_those_of_all_items_and_the_threshold_follows():
    model = fitted(METHODS["plain"])
    new = POOL[TRUTH == UNKNOWN]
    wider = extend_sketches(model, new, np.full(len(new), 3), seed=5)
    # 8 features are fewer than the directions, so nothing is forgotten.
    n_held_out = len(wider.held_out) - len(model.held_out)
    assert n_held_out == round(0.3 * len(new))
    assert wider.whole.n_items == model.whole.n_items + len(new) - n_held_out
    assert wider.local[3].n_items == len(new) - n_held_out
    moments = model.whole.rows.T @ model.whole.rows + wider.local[3].rows.T @ wider.local[3].rows
    np.testing.assert_allclose(wider.whole.rows.T @ wider.whole.rows, moments, atol=1e-4)
    scores = -similarity(wider.held_out, wider.whole, "mean square")
    assert wider.threshold == np.quantile(scores, 0.95, method="inverted_cdf")
    assert wider.threshold != model.threshold


def test_items_of_old_classes_update_their_own_sketch_alone():
    model = fitted(METHODS["plain"])
    wider = extend_sketches(model, KNOWN.inputs[:1], np.array([1]))
    assert [sketch.n_items for sketch in wider.local] == [28, 29, 28]
    np.testing.assert_allclose(np.abs(wider.local[0].rows), np.abs(model.local[0].rows))
    assert len(wider.held_out) == len(model.held_out)


def test_nothing_new_changes_nothing():
    model = fitted(METHODS["plain"])
    assert extend_sketches(model, POOL[:0], np.zeros(0, int)) is model


@pytest.mark.parametrize("labels", [[4, 4], [-1, 3], [3, 5]])
def test_new_classes_with_gaps_or_skipped_answers_are_refused(labels):
    with pytest.raises(DataError, match="number new ones from 3 on without gaps"):
        extend_sketches(fitted(METHODS["plain"]), POOL[:2], np.array(labels))


@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
def test_images_are_recognised(colour):
    split = open_set(*make_images(100, colour=colour))
    model = SENCMaS(center=True, n_directions=10).fit(split.known, split.pool, seed=0)
    predictions = model.predict(split.pool)
    assert auroc(split.truth, predictions.unknown_score) > 0.95
    assert np.mean(predictions.labels == split.truth) > 0.9
    assert model.features(split.pool).shape == (len(split.pool), 9)
    assert len(model.predict(split.pool[:0]).labels) == len(model.features(split.pool[:0])) == 0


def test_stacked_views_are_seen_as_their_mean():
    def stack(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows + 1, rows - 1], axis=1)

    known = Labelled(stack(KNOWN.inputs), KNOWN.labels)
    stacked = METHODS["plain"].fit(known, stack(POOL), seed=0)
    taught = stack(POOL[TRUTH == UNKNOWN])
    assert extend_sketches(stacked, taught, np.full(len(taught), 3)).n_classes == 4
    np.testing.assert_allclose(
        stacked.predict(stack(POOL)).unknown_score,
        fitted(METHODS["plain"]).predict(POOL).unknown_score,
        atol=1e-5,
    )


def test_energy_that_leaves_no_direction_out_is_refused():
    with pytest.raises(SettingsError, match="leaves no direction of the 8 features out"):
        SENCMaS(similarity="energy").fit(KNOWN, POOL, seed=0)


def test_items_without_any_direction_are_refused():
    same = Labelled(np.ones((6, 3), np.float32), np.repeat([0, 1], 3))
    with pytest.raises(DataError, match="all zero, or all the same"):
        SENCMaS(center=True).fit(same, same.inputs, seed=0)


@pytest.mark.parametrize(
    "settings",
    [{"n_directions": 1}, {"similarity": "cosine"}, {"rule": "mean"}, {"known_recall": 0.0}],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(SettingsError, match=f"SENCMaS.{next(iter(settings))} is "):
        replace(SENCMaS(), **settings)


# Frequent directions


def assert_within_bound(rows: np.ndarray, sketched: np.ndarray, n_directions: int) -> None:
    """0 <= A'A - B'B <= |A|^2 / l, up to rounding."""
    errors = np.linalg.eigvalsh(rows.T @ rows - sketched.T @ sketched)
    mass = (rows**2).sum()
    assert errors.min() >= -1e-9 * mass
    assert errors.max() <= mass / n_directions + 1e-9 * mass


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 500),
    d=st.integers(1, 20),
    n_directions=st.integers(2, 30),
)
def test_the_error_stays_within_the_bound(seed, n, d, n_directions):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, d)) * random.exponential(size=d) + random.normal(size=d)
    sketched = sketch(rows, n_directions)
    assert len(sketched) < n_directions
    assert_within_bound(rows, sketched, n_directions)


def test_a_sketch_that_has_to_forget_does():
    rows = np.random.default_rng(0).normal(size=(500, 20))
    sketched = sketch(rows, 10)
    assert sketched.shape == (9, 20)
    assert_within_bound(rows, sketched, 10)
    assert (sketched**2).sum() < 0.9 * (rows**2).sum()


def test_rows_of_low_rank_are_kept_exactly():
    random = np.random.default_rng(0)
    rows = random.normal(size=(500, 4)) @ random.normal(size=(4, 20))
    sketched = sketch(rows, 5)
    assert len(sketched) == 4
    np.testing.assert_allclose(sketched.T @ sketched, rows.T @ rows, rtol=1e-8, atol=1e-8)


def test_merged_sketches_keep_the_bound_of_all_rows():
    random = np.random.default_rng(0)
    first, second = random.normal(size=(300, 20)), 2 * random.normal(size=(200, 20)) + 1
    both = np.vstack([first, second])
    assert_within_bound(both, merge(sketch(first, 10), sketch(second, 10), 10), 10)
    assert_within_bound(both, merge(sketch(first, 10), second, 10), 10)


def test_shrinking_takes_the_square_of_the_last_value_kept_from_all():
    squares = (shrink_rows(np.diag([3.0, 2.0, 1.0, 1.0]), 3) ** 2).round(9)
    assert squares.tolist() == [[8, 0, 0, 0], [0, 3, 0, 0]]


def test_rows_of_a_sketch_are_orthogonal_and_fall_in_length():
    sketched = sketch(np.random.default_rng(0).normal(size=(100, 12)), 8)
    products = sketched @ sketched.T
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)
    assert (np.diff(np.diag(products)) <= 0).all()


def test_no_rows_and_rows_of_zeros_leave_an_empty_sketch():
    assert sketch(np.empty((0, 3)), 4).shape == (0, 3)
    assert sketch(np.zeros((9, 3)), 4).shape == (0, 3)


def test_rows_are_left_as_they_were():
    rows = np.random.default_rng(0).normal(size=(50, 5))
    before = rows.copy()
    sketch(rows, 3)
    np.testing.assert_array_equal(rows, before)


def test_a_sketch_of_one_direction_is_refused():
    with pytest.raises(SettingsError, match="1 directions keeps nothing"):
        sketch(np.ones((3, 3)), 1)
