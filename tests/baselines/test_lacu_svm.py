"""LACU-SVM: the convex solver, the rounds around it, and the method."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from s2osc.baselines.lacu_svm import (
    LACUSVM,
    Problem,
    Terms,
    balance_bounds,
    minimise,
    plain_svm,
    predict_from_values,
    push_of,
    tighten,
    with_one,
)
from s2osc.baselines.shared import VECTORS
from s2osc.errors import DataError, SettingsError
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import make_images, open_set

# A threshold from a tenth of 120 items is a matter of luck.
RBF = LACUSVM(n_landmarks=50, recipe=replace(VECTORS, held_out=0.3))
METHODS = {"rbf": RBF, "recall": replace(RBF, rule="recall")}
FREE = (-np.inf, np.inf)


def hinge(a, z):
    return np.maximum(0, a - z)


def objective(problem: Problem, weights: np.ndarray) -> float:
    """What CCCP minimises: margins on labelled items, ramps on the pool."""
    z, f = problem.signs * (problem.labelled @ weights), problem.pool @ weights
    ramps = sum((hinge(1, side) - hinge(problem.clip, side)).sum() for side in (f, -f))
    margin = (weights[:-1] ** 2).sum() / 2
    return float(margin + problem.cost * hinge(1, z).sum() + problem.pool_cost * ramps)


def make_problem(seed: int = 0, n: int = 30, n_pool: int = 25, *, apart: float = 2.0) -> Problem:
    """One class of five against the others, all overlapping, and a pool with a sixth class."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % 5
    labelled = random.normal(size=(n, 6)) + apart * np.eye(6)[labels]
    pool = random.normal(size=(n_pool, 6)) + apart * np.eye(6)[np.arange(n_pool) % 6]
    signs = np.where(labels == 0, 1.0, -1.0)
    bounds = balance_bounds(signs, 1.3)
    return Problem(with_one(labelled), signs, with_one(pool), 1.0, 1.2, -0.3, bounds)


def convex_objective(rows: np.ndarray, terms: Terms, weights: np.ndarray) -> float:
    z = rows @ weights
    loss = terms.up * hinge(1, z) + terms.down * hinge(1, -z) + terms.slope * z
    return float((weights[:-1] ** 2).sum() / 2 + loss.sum())


def solve_by_slsqp(rows: np.ndarray, terms: Terms) -> np.ndarray:
    """The same problem as a quadratic programme in the weights and one slack per hinge."""
    d, n = rows.shape[1], len(rows)
    extractor, none = np.eye(n), np.zeros((n, n))
    over, under = np.isfinite(terms.high), np.isfinite(terms.low)
    matrix = np.concatenate(
        [
            np.hstack([rows, extractor, none]),  # first slack >= 1 - z
            np.hstack([-rows, none, extractor]),  # second slack >= 1 + z
            np.hstack([-rows[over], none[over], none[over]]),
            np.hstack([rows[under], none[under], none[under]]),
        ]
    )
    right = np.concatenate([np.ones(2 * n), -terms.high[over], terms.low[under]])
    linear = np.concatenate([rows.T @ terms.slope, terms.up, terms.down])
    quadratic = np.append(np.ones(d - 1), np.zeros(1 + 2 * n))
    found = minimize(
        lambda x: (quadratic * x * x).sum() / 2 + linear @ x,
        np.concatenate([np.zeros(d), np.ones(2 * n)]),
        jac=lambda x: quadratic * x + linear,
        constraints={"type": "ineq", "fun": lambda x: matrix @ x - right, "jac": lambda x: matrix},
        bounds=[(None, None)] * d + [(0, None)] * (2 * n),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert found.success, found.message
    return found.x[:d]


@pytest.mark.parametrize("seed", range(3))
def test_the_solver_finds_what_a_generic_solver_finds(seed):
    problem = make_problem(seed)
    plain = plain_svm(problem.labelled, problem.signs, problem.cost)
    rows, terms = problem.rows(), problem.tangent(plain, 0.5)
    generic, ours = solve_by_slsqp(rows, terms), minimise(rows, terms)
    assert ours.is_found
    np.testing.assert_allclose(rows @ ours.weights, rows @ generic, atol=1e-3)
    best = convex_objective(rows, terms, generic)
    assert convex_objective(rows, terms, ours.weights) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("stiffness", [0.3, 1.0, 7.0])
def test_the_nearest_value_is_the_best_of_a_fine_grid(stiffness):
    random = np.random.default_rng(0)
    n, grid = 200, np.linspace(-6, 6, 24_001)
    up, down = random.choice([0.0, 0.7, 2.0], (2, n))
    slope, low = random.normal(size=n), random.choice([-np.inf, -0.5], n)
    terms = Terms(up, down, slope, low, random.choice([np.inf, 0.8], n))
    v = random.normal(0, 2, n)
    z, at_rest = terms.nearest(v, stiffness)
    for i in range(n):
        inside = grid[(grid >= terms.low[i]) & (grid <= terms.high[i])]
        cost = up[i] * hinge(1, inside) + down[i] * hinge(1, -inside) + slope[i] * inside
        best = inside[np.argmin(cost + stiffness / 2 * (inside - v[i]) ** 2)]
        assert z[i] == pytest.approx(np.clip(best, -6, 6), abs=1e-3) or abs(z[i]) > 6
    moved, _ = terms.nearest(v + 1e-7, stiffness)
    np.testing.assert_array_equal(at_rest, np.abs(moved - z) < 1e-9)


def test_without_a_pool_it_is_the_ordinary_svm():
    problem = make_problem(n=90)._replace(pool_cost=0.0, balance=FREE)
    plain = plain_svm(problem.labelled, problem.signs, 1.0)
    ordinary = SVC(kernel="linear", C=1.0, tol=1e-6).fit(problem.labelled[:, :-1], problem.signs)
    f0 = ordinary.decision_function(problem.labelled[:, :-1])
    np.testing.assert_allclose(problem.labelled @ plain, f0, atol=1e-3)
    # A push of minus infinity is none.
    tight = minimise(problem.rows(), problem.tangent(plain, -np.inf)).weights
    np.testing.assert_allclose(problem.labelled @ tight, f0, atol=1e-3)


def test_the_boundary_leaves_a_dense_block_and_moves_towards_the_class():
    labelled = np.repeat([2.0, -2.0], 20)[:, None]
    block = np.linspace(-0.5, 0.5, 41)[:, None]
    pool = np.concatenate([block, np.repeat([2.0, -2.0], 10)[:, None]])
    signs = np.sign(labelled[:, 0])
    problem = Problem(with_one(labelled), signs, with_one(pool), 1.0, 20.0, -0.3, FREE)
    plain = plain_svm(problem.labelled, signs, 1.0)
    assert -plain[1] / plain[0] == pytest.approx(0, abs=1e-2)
    tight = tighten(problem, plain, push_step=0.1, n_rounds=30)
    assert np.abs(with_one(block) @ tight).min() > 1 - 1e-2
    assert 0.5 < -tight[1] / tight[0] < 2


@pytest.mark.parametrize("seed", range(3))
def test_rounds_never_raise_the_objective_while_the_push_stays(seed):
    problem = make_problem(seed, 90, 120)
    rows, weights = problem.rows(), plain_svm(problem.labelled, problem.signs, 1.0)
    objectives = []
    for _ in range(8):
        weights = minimise(rows, problem.tangent(weights, 0.5)).weights
        objectives.append(objective(problem, weights))
    assert np.all(np.diff(objectives) <= 1e-3)
    assert objectives[-1] < objectives[0]


def test_a_round_minimises_a_bound_that_touches_the_objective_where_it_starts():
    problem = make_problem()
    weights = np.array([0.5, -1.0, 0.3, 0.1, -0.4, 0.2, -0.2])
    rows, terms = problem.rows(), problem.tangent(weights, 0.5)
    gap = convex_objective(rows, terms, weights) - objective(problem, weights)
    for other in np.random.default_rng(0).normal(size=(50, 7)):
        above = convex_objective(rows, terms, other) - objective(problem, other)
        assert above >= gap - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_balance_and_push_are_kept(seed):
    problem = make_problem(seed, 90, 120)
    weights = plain_svm(problem.labelled, problem.signs, 1.0)
    before = tighten(problem, weights, push_step=0.1, n_rounds=4)
    push = push_of(problem, before, 0.1)
    after = tighten(problem, weights, push_step=0.1, n_rounds=5)
    assert (problem.labelled @ after)[problem.signs < 0].max() <= -push + 1e-2
    low, high = problem.balance
    assert low - 1e-2 <= (problem.pool @ after).mean() <= high + 1e-2


def test_constraints_that_contradict_each_other_are_told():
    # All rows are one point, so f is constant, and -0.78 is the least that the balance allows.
    ones, signs = np.ones((10, 2)), np.array([1.0, 1, -1, -1, -1, -1, -1, -1, -1, -1])
    problem = Problem(ones, signs, ones, 1.0, 1.0, -0.3, balance_bounds(signs, 1.3))
    assert not minimise(problem.rows(), problem.tangent(np.zeros(2), 2.0)).is_found


def test_the_push_is_never_more_than_the_balance_allows():
    ones, signs = np.ones((10, 2)), np.array([1.0, 1, -1, -1, -1, -1, -1, -1, -1, -1])
    problem = Problem(ones, signs, ones, 1.0, 1.0, -0.3, balance_bounds(signs, 1.3))
    assert push_of(problem, np.array([0.0, 5.0]), 0.1) == pytest.approx(0.78)
    weights = tighten(problem, np.array([0.0, 5.0]), push_step=0.1, n_rounds=2)
    assert (ones @ weights)[0] == pytest.approx(-0.78, abs=1e-2)


@pytest.mark.parametrize(
    ("least", "push"), [(-0.4, 0.5), (0.0, 0.5), (0.2, 0.3), (1.0, 1.1)], ids=str
)
def test_the_push_follows_the_nearest_positive(least, push):
    labelled = with_one(np.array([[least], [least + 1], [-5.0]]))
    problem = Problem(labelled, np.array([1.0, 1, -1]), labelled, 1.0, 1.0, -0.3, FREE)
    assert push_of(problem, np.array([1.0, 0.0]), 0.1) == pytest.approx(push)


@pytest.mark.parametrize(
    ("n_classes", "bounds"), [(2, (-0.9, 0)), (5, (-0.78, -0.6)), (10, (-0.9, -0.8))], ids=str
)
def test_the_balance_follows_the_number_of_classes(n_classes, bounds):
    signs = np.append(1, -np.ones(n_classes - 1))
    assert balance_bounds(signs, 1.3) == pytest.approx(bounds)


@pytest.mark.parametrize("share", [0.5, 0.6, 0.9])
def test_a_class_with_half_of_the_labels_still_pushes_the_others_away(share):
    signs = np.repeat([1, -1], [round(10 * share), round(10 * (1 - share))])
    low, high = balance_bounds(signs, 1.3)
    assert (low, high) == (-0.9, pytest.approx(2 * share - 1))


def test_one_known_class_is_refused():
    with pytest.raises(DataError, match="one known class"):
        LACUSVM().fit(Labelled(POOL[:9], np.zeros(9, int)), POOL, seed=0)


def test_the_balance_of_very_many_classes_can_be_kept():
    low, high = balance_bounds(np.append(1, -np.ones(49)), 1.3)
    assert low == high == pytest.approx(-0.96)


def test_the_plain_svm_ranks_what_f_accepts():
    f = np.array([[0.9, 0.2, -1.0], [0.5, -0.1, -1.0], [-0.1, -0.2, -0.3]])
    f0 = np.array([[0.3, 0.8, 2.0], [-0.2, 3.0, 3.0], [1.0, 1.0, 1.0]])
    predictions = predict_from_values(f, f0, 0.0)
    assert predictions.labels.tolist() == [1, UNKNOWN, UNKNOWN]
    np.testing.assert_allclose(predictions.unknown_score, [-0.8, 0.1, 0.1])
    assert predict_from_values(f, f0, 0.2).labels.tolist() == [1, 1, 0]


def test_the_pool_cost_makes_the_pool_weigh_as_much_as_the_labelled_items():
    pool_cost = 0.7 * len(KNOWN) / len(POOL)
    same = replace(RBF, pool_cost=pool_cost).fit(KNOWN, POOL, seed=0)
    np.testing.assert_allclose(same.tight, fitted(METHODS["rbf"]).tight)


def test_most_held_out_items_pass_the_threshold_at_a_recall():
    strict = replace(METHODS["recall"], known_recall=0.5).fit(KNOWN, POOL, seed=0)
    is_known = TRUTH != UNKNOWN
    shares = [
        np.mean(r.predict(POOL[is_known]).labels == UNKNOWN)
        for r in (fitted(METHODS["recall"]), strict)
    ]
    assert shares[0] < 0.2 < shares[1] < 0.8


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
def test_images_are_recognised(kernel, colour):
    split = open_set(*make_images(colour=colour))
    separators = replace(RBF, kernel=kernel).fit(split.known, split.pool, seed=0)
    assert np.mean(separators.predict(split.pool).labels == split.truth) > 0.8
    features = separators.features(split.pool)
    assert features.dtype == np.float32
    assert features.shape[1] == separators.tight.shape[0] - 1
    assert len(separators.features(split.pool[:0])) == 0


def test_stacked_views_count_as_their_mean():
    def stack(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows + 1, rows - 1], axis=1)

    known = Labelled(stack(KNOWN.inputs), KNOWN.labels)
    stacked = METHODS["rbf"].fit(known, stack(POOL), seed=0).predict(stack(POOL))
    plain = fitted(METHODS["rbf"]).predict(POOL)
    np.testing.assert_allclose(stacked.unknown_score, plain.unknown_score, atol=1e-2)


def test_an_empty_pool_is_refused():
    with pytest.raises(DataError, match="the pool has no items"):
        LACUSVM().fit(KNOWN, POOL[:0], seed=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "poly"},
        {"rule": "best"},
        {"known_recall": 1.1},
        {"n_rounds": 0},
        {"n_components": 0},
        {"n_landmarks": 0},
        {"cost": 0.0},
        {"pool_cost": -1.0},
        {"clip": 0.5},
        {"eta": 0.5},
        {"push_step": -0.1},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(SettingsError, match=f"LACUSVM.{next(iter(settings))} is "):
        LACUSVM(**settings)
