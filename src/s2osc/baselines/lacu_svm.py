"""LACU-SVM: one-vs-rest SVMs pushed towards their class by the pool; the rest is unknown.

For each known class, with y = +1 for its labelled items and -1 for the others,

    min over f  |w|^2 / 2 + C sum_labelled H_1(y f(x)) + C* sum_pool [R_s(f(x)) + R_s(-f(x))]
    H_a(z) = max(0, a - z),  R_s(z) = H_1(z) - H_s(z): a ramp, so that f avoids dense regions
    balance:  max(-0.9, eta ybar) <= mean of f over the pool <= ybar, the mean of y
    push:     f(x) <= -m for each labelled negative;  m = lambda + the least f of a positive item,
              if that is above 0, else 0.5

R_s is not convex. Each round of the concave-convex procedure (CCCP) sets m, replaces -H_s by its
tangent at the current f, and solves the convex problem. d_k(x) is f_k(x), or the value of the plain
SVM f0_k(x) where f_k(x) > 0. The score is -max_k d_k(x); an item that no class accepts is unknown.

Reference: Q. Da, Y. Yu, Z.-H. Zhou, "Learning with Augmented Class by Exploiting Unlabeled Data",
AAAI 2014. Objective, constraints and numbers are those of the authors' demo.

What differs: f is linear in Nystroem features of the RBF kernel, or (as in the demo) in principal
components, because a kernel matrix over thousands of pool items is too large. RBF is the default: a
hyperplane cannot enclose a class. Rows are scaled to a mean variance of 1, so that C and the kernel
width suit any input. The method assumes that a class has less than half of the labels; else the
lower bound of the balance is -0.9, because eta ybar would reverse the push. The balance interval is
never empty (with more than 20 classes ybar is below -0.9), and m is at most what a constant f can
satisfy together with the balance, or the constraints could contradict each other. Held-out known
items can set the threshold (``rule="recall"``).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, softmax
from sklearn.metrics.pairwise import rbf_kernel

from s2osc.arrays import in_chunks
from s2osc.baselines.shared import (
    Baseline,
    Components,
    at_recall,
    check_several_classes,
    fit_components,
    hold_out,
    label_items,
)
from s2osc.errors import DataError, SettingsError
from s2osc.progress import track
from s2osc.seeding import rng
from s2osc.settings import require_choice, require_least, require_positive
from s2osc.types import Labelled, Predictions

Kernel = Literal["linear", "rbf"]
Rule = Literal["sign", "recall"]

LEAST_BALANCE = -0.9
FIRST_PUSH = 0.5


class Terms(NamedTuple):
    """The loss up H_1(z) + down H_1(-z) + slope z of the values z of f, for low <= z <= high."""

    up: np.ndarray  # (n,)
    down: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def nearest(self, v: np.ndarray, stiffness: float) -> tuple[np.ndarray, np.ndarray]:
        """argmin over z of the loss + stiffness / 2 (z - v)^2, and where z does not move with v.

        The loss is piecewise linear with corners at -1 and 1: z lies on one of the three lines, at
        a corner or at a bound.
        """
        left = v + (self.up - self.slope) / stiffness
        middle = left - self.down / stiffness
        right = middle - self.up / stiffness
        z = np.minimum(left, np.maximum(-1, np.maximum(right, np.minimum(middle, 1))))
        z = np.clip(z, self.low, self.high)
        return z, (z != left) & (z != middle) & (z != right)


class SvmSolution(NamedTuple):
    """The minimum of a convex problem, and the state for a warm start."""

    weights: np.ndarray  # (d + 1,), the last is b
    pull: np.ndarray  # (n,) multipliers of z = rows @ weights
    stiffness: float
    is_found: bool  # False where the bounds contradict each other


def minimise(
    rows: np.ndarray,
    terms: Terms,
    start: SvmSolution | None = None,
    *,
    tolerance: float = 2e-4,
    max_rounds: int = 30,
) -> SvmSolution:
    """min |w|^2 / 2 + terms of (rows @ weights), by an augmented Lagrangian and Newton's method.

    The constraint is z = rows @ weights. Minimised over z, the Lagrangian is a smooth function of
    the weights, whose curvature comes only from the rows at a corner or a bound.
    """
    if start is None:
        start = SvmSolution(np.zeros(rows.shape[1]), np.zeros(len(rows)), 0.1, False)
    weights, pull, stiffness, _ = start
    apart = 1.0
    for _ in range(max_rounds):
        loose = max(tolerance, min(0.1, 0.1 * apart))
        weights, pull, now_apart = minimise_lagrangian(rows, terms, weights, pull, stiffness, loose)
        is_found = now_apart < tolerance
        if is_found and loose == tolerance:
            break
        if now_apart > apart / 4:
            stiffness = min(4 * stiffness, 1e6)
        apart = now_apart
    # A softer start for the next, similar problem.
    return SvmSolution(weights, pull, max(0.1, stiffness / 16), is_found)


def minimise_lagrangian(
    rows: np.ndarray,
    terms: Terms,
    weights: np.ndarray,
    pull: np.ndarray,
    stiffness: float,
    tolerance: float,
    max_steps: int = 100,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Minimise the Lagrangian: the weights, the next multipliers, and max |rows @ weights - z|."""
    is_penalised = np.append(np.ones(len(weights) - 1), 0)
    # Without a row at a corner or a bound, b would be undetermined.
    ridge = np.append(np.ones(len(weights) - 1), 1e-3 * stiffness)
    v = rows @ weights + pull / stiffness
    z, at_rest = terms.nearest(v, stiffness)
    for _ in range(max_steps):
        gradient = is_penalised * weights + stiffness * rows.T @ (v - z)
        if np.abs(gradient).max() < tolerance * max(1, np.abs(weights[:-1]).max(initial=0)):
            break
        resting = rows[at_rest]
        curvature = stiffness * resting.T @ resting
        curvature[np.diag_indices_from(curvature)] += ridge
        step = -cho_solve(cho_factor(curvature), gradient)
        moved, penalised = rows @ step, is_penalised * step
        line = Line(v, moved, terms, stiffness, penalised @ weights, penalised @ step)
        length = line_search(line, float(gradient @ step))
        weights, v = weights + length * step, v + length * moved
        z, at_rest = terms.nearest(v, stiffness)
    return weights, stiffness * (v - z), float(np.abs(v - pull / stiffness - z).max())


class Line(NamedTuple):
    """The Lagrangian along one step."""

    v: np.ndarray  # (n,)
    moved: np.ndarray  # (n,) rows @ step
    terms: Terms
    stiffness: float
    slope: float  # of |w|^2 / 2
    curvature: float

    def slope_at(self, length: float) -> float:
        v = self.v + length * self.moved
        force = self.stiffness * (v - self.terms.nearest(v, self.stiffness)[0])
        return float(self.slope + length * self.curvature + force @ self.moved)


def line_search(line: Line, slope: float, *, max_trials: int = 30) -> float:
    """A length at which most of the slope of a convex function, ``slope`` at 0, is gone."""
    (low, low_slope), high, length = (0.0, slope), None, 1.0
    for _ in range(max_trials):
        now = line.slope_at(length)
        if abs(now) <= 0.3 * abs(slope):
            break
        if now < 0:
            low, low_slope = length, now
        else:
            high, high_slope = length, now
        if high is None:
            length *= 4
        else:
            share = low_slope / (low_slope - high_slope)
            length = low + (high - low) * min(max(share, 0.1), 0.9)
    return length


class Problem(NamedTuple):
    """One class against the rest. The last column of all rows is 1, for b."""

    labelled: np.ndarray  # (L, d + 1)
    signs: np.ndarray  # (L,) +1 for the class, -1 for the others
    pool: np.ndarray  # (U, d + 1)
    cost: float  # C
    pool_cost: float  # C*
    clip: float  # s
    balance: tuple[float, float]  # bounds of the mean of f over the pool

    def rows(self) -> np.ndarray:
        """Labelled items, pool, and the mean of the pool with the weight of all of it."""
        return np.concatenate([self.labelled, self.pool, self._mean_weight * self._mean])

    @property
    def _mean(self) -> np.ndarray:
        return self.pool.mean(0, keepdims=True)

    @property
    def _mean_weight(self) -> float:
        return float(np.sqrt(len(self.pool)))

    def tangent(self, weights: np.ndarray, push: float) -> Terms:
        """The convex problem of one round: -H_s of both signs replaced by its tangent."""
        n_pool, is_positive = len(self.pool), self.signs > 0
        f = self.pool @ weights
        # H_s(f) has slope -1 below s, H_s(-f) slope 1 above -s; each enters with a minus.
        slope = self.pool_cost * ((f < self.clip).astype(float) - (f > -self.clip))
        pool_cost, free = np.full(n_pool, self.pool_cost), np.full(n_pool, np.inf)
        low, high = self._mean_weight * np.array(self.balance)
        return Terms(
            up=np.concatenate([self.cost * is_positive, pool_cost, [0.0]]),
            down=np.concatenate([self.cost * ~is_positive, pool_cost, [0.0]]),
            slope=np.concatenate([np.zeros(len(self.signs)), slope, [0.0]]),
            low=np.concatenate([np.full(len(self.signs), -np.inf), -free, [low]]),
            high=np.concatenate([np.where(is_positive, np.inf, -push), free, [high]]),
        )


def balance_bounds(signs: np.ndarray, eta: float) -> tuple[float, float]:
    """The bounds of the mean of f over the pool.

    For a class with half of the labels or more, the lower bound is fixed: it limits the push, and
    would else be above 0.

    >>> low, high = balance_bounds(np.array([1, -1, -1, -1, -1]), 1.3)
    >>> round(low, 2), round(high, 2)
    (-0.78, -0.6)
    """
    mean = float(signs.mean())
    return min(max(LEAST_BALANCE, eta * mean) if mean < 0 else LEAST_BALANCE, mean), mean


def plain_svm(rows: np.ndarray, signs: np.ndarray, cost: float) -> np.ndarray:
    """f0: the SVM of the labelled items alone."""
    free = np.full(len(signs), np.inf)
    terms = Terms(cost * (signs > 0), cost * (signs < 0), np.zeros(len(signs)), -free, free)
    return minimise(rows, terms).weights


def push_of(problem: Problem, weights: np.ndarray, push_step: float) -> float:
    """m: how far below zero f must be for labelled negatives."""
    least = float((problem.labelled @ weights)[problem.signs > 0].min())
    push = FIRST_PUSH if least <= 0 else least + push_step
    # A constant f satisfies this push and the balance. With a larger one, the two may contradict
    # each other, or positives and push may grow in turn without end.
    return min(push, -problem.balance[0])


def tighten(
    problem: Problem, weights: np.ndarray, *, push_step: float, n_rounds: int
) -> np.ndarray:
    """f: the rounds of CCCP, starting from the plain SVM."""
    rows, solution = problem.rows(), None
    for _ in range(n_rounds):
        push = push_of(problem, weights, push_step)
        solution = minimise(rows, problem.tangent(weights, push), solution)
        weights = solution.weights
    return weights


@dataclass(frozen=True, eq=False)
class LinearSpace:
    """The rows in which f is linear, with a mean variance of 1, without the column for b."""

    components: Components
    scale: float
    landmarks: np.ndarray | None  # (m, k); None: the kernel is linear
    mixing: np.ndarray  # (m, d) the inverse root of the kernel between landmarks

    @property
    def n_columns(self) -> int:
        return self.components.n_components if self.landmarks is None else self.mixing.shape[1]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        rows = self.components(inputs).astype(np.float64) / self.scale
        if self.landmarks is None:
            return rows
        return rbf_kernel(rows, self.landmarks) @ self.mixing


def find_space(
    inputs: np.ndarray, kernel: Kernel, n_components: int, n_landmarks: int, *, seed: int
) -> LinearSpace:
    """Principal components of all items; for the RBF kernel, Nystroem features of them."""
    components = fit_components(inputs, n_components, whiten=False, seed=seed)
    rows = components(inputs)
    scale = float(np.sqrt(rows.var(0, dtype=np.float64).mean()))
    if kernel == "linear":
        return LinearSpace(components, scale, None, np.zeros((0, 0)))
    chosen = rng(seed, "landmarks").permutation(len(rows))[:n_landmarks]
    landmarks = rows[chosen].astype(np.float64) / scale
    values, vectors = np.linalg.eigh(rbf_kernel(landmarks))
    is_real = values > 1e-10 * values[-1]
    return LinearSpace(components, scale, landmarks, vectors[:, is_real] / np.sqrt(values[is_real]))


@dataclass(frozen=True)
class LACUSVM(Baseline):
    """Large-margin classifiers that leave room for unknown classes where the pool is dense."""

    kernel: Kernel = "rbf"
    cost: float = 1.0  # C
    pool_cost: float | None = None  # C*; None: C times labelled items over pool items
    clip: float = -0.3  # s
    eta: float = 1.3
    push_step: float = 0.1  # lambda
    n_rounds: int = 10
    n_components: int = 100
    n_landmarks: int = 300  # of the RBF kernel
    rule: Rule = "sign"  # "recall": the threshold comes from held-out known items

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("LACUSVM.kernel", self.kernel, Kernel)
        require_choice("LACUSVM.rule", self.rule, Rule)
        for name in ("n_rounds", "n_components", "n_landmarks"):
            require_least(f"LACUSVM.{name}", getattr(self, name), 1)
        require_positive("LACUSVM.cost", self.cost)
        require_least("LACUSVM.pool_cost", self.pool_cost, 0)
        require_least("LACUSVM.eta", self.eta, 1)
        require_least("LACUSVM.push_step", self.push_step, 0)
        if not -1 < self.clip <= 0:
            raise SettingsError(f"LACUSVM.clip is {self.clip}; give a number above -1, at most 0")

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "Separators":
        """Fit f0 and f of each class to labelled items and pool."""
        check_several_classes(known)
        if not len(pool):
            raise DataError("the pool has no items; LACUSVM needs some to find dense regions")
        training, held_out = hold_out(known, self.recipe.held_out, seed=seed)
        items = np.concatenate([training.inputs, pool])
        space = find_space(items, self.kernel, self.n_components, self.n_landmarks, seed=seed)
        rows = with_one(space(items))
        labelled, unlabelled = rows[: len(training)], rows[len(training) :]
        n_classes = training.n_classes
        plain, tight = np.zeros((2, rows.shape[1], n_classes))
        for c in track(range(n_classes), "separating classes", total=n_classes):
            problem = self._one_against_rest(labelled, training.labels == c, unlabelled)
            plain[:, c] = plain_svm(labelled, problem.signs, self.cost)
            tight[:, c] = tighten(
                problem, plain[:, c], push_step=self.push_step, n_rounds=self.n_rounds
            )
        separators = Separators(space, plain, tight, threshold=0.0)
        if self.rule == "sign":
            return separators
        return at_recall(separators, held_out, self.known_recall)

    def _one_against_rest(
        self, labelled: np.ndarray, is_class: np.ndarray, pool: np.ndarray
    ) -> Problem:
        signs = np.where(is_class, 1.0, -1.0)
        pool_cost = self.pool_cost
        if pool_cost is None:
            pool_cost = self.cost * len(labelled) / len(pool)
        bounds = balance_bounds(signs, self.eta)
        return Problem(labelled, signs, pool, self.cost, pool_cost, self.clip, bounds)


@dataclass(frozen=True, eq=False)
class Separators:
    """f and the plain SVM f0 of each class, linear in a space."""

    space: LinearSpace
    plain: np.ndarray  # (d + 1, C)
    tight: np.ndarray  # (d + 1, C)
    threshold: float  # of the score

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The accepted class with the largest f0, or unknown."""
        n_classes = self.tight.shape[1]
        weights = np.concatenate([self.plain, self.tight], axis=1)
        values = in_chunks(lambda part: with_one(self.space(part)) @ weights, inputs, 2 * n_classes)
        return predict_from_values(values[:, n_classes:], values[:, :n_classes], self.threshold)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The rows in which f is linear."""
        return in_chunks(self.space, inputs, self.space.n_columns).astype(np.float32)


def predict_from_values(tight: np.ndarray, plain: np.ndarray, threshold: float) -> Predictions:
    """Labels from f and f0: f0_k(x) replaces f_k(x) where that is positive.

    The score is minus the largest value. For the confidence, a margin of 1 counts as odds of e^2.

    >>> f, f0 = np.array([[0.5, 0.2], [-0.1, -2.0]]), np.array([[0.3, 0.9], [1.0, 0.0]])
    >>> predict_from_values(f, f0, 0.0).labels.tolist()
    [1, -1]
    """
    values = np.where(tight > 0, plain, tight)
    score = -values.max(1)
    p_unknown = expit(2 * (score - threshold))
    p_class = (1 - p_unknown) * softmax(2 * values, axis=1).max(1)
    return label_items(
        score > threshold, score, nearest=values.argmax(1), p_known=p_class, p_unknown=p_unknown
    )


def with_one(rows: np.ndarray) -> np.ndarray:
    """The rows with a last column of ones, for b."""
    return np.column_stack([rows, np.ones(len(rows))])
