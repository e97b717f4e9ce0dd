"""A sample of a large pool to fit on: more of the strange, at known rates.

Every item of the pool gets its strangeness, the distance to a few labelled items. Strata of it are
sampled at rates of their own, so that a rare class, which is strange, is found in a sample whose
size does not grow with the pool. A known item of a stratum is drawn as often as the rate says, so
labelled items that stand for known ones are weighed by the rates.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from s2osc.arrays import chunks
from s2osc.nets.networks import one_vector
from s2osc.pipeline.scaling import Scaling, fit_scaling
from s2osc.seeding import derive, rng
from s2osc.types import Labelled

N_REFERENCES = 1_000
"""Labelled items that strangeness is the distance to: the cost of the first pass is in proportion
to them, and the nearest of a thousand is near enough to rank by."""
STRATA_ENDS = (0.9, 0.99)
"""Quantiles of the strangeness of known items. What lies beyond 99 % of them is a hundredth of the
known items and nearly all of a class that is apart."""
EVEN_SHARE = 0.5
"""Of the sample: shared evenly among the strata; the rest is in proportion to their sizes."""
SKIPPED = 255
"""In place of the stratum of an item that cannot be read."""
ROWS_AT_ONCE = 1_024
KEYS_AT_ONCE = 2**20
LARGEST_SIDE = 16  # pixels a side of the small images that are compared


class NearestReference(NamedTuple):
    """Of each item the nearest reference item."""

    distances: np.ndarray  # (n,) float32
    names: np.ndarray  # (n,) its class


@dataclass(frozen=True, eq=False)
class Strangeness:
    """How far items lie from labelled ones, and the strata of it."""

    scaling: Scaling
    references: np.ndarray  # (r, d) float32
    labels: np.ndarray  # (r,) their classes
    ends: np.ndarray  # (s - 1,) between the strata, rising

    @property
    def n_strata(self) -> int:
        return len(self.ends) + 1

    def measure(self, inputs: np.ndarray) -> NearestReference:
        """The distance to the nearest reference item of each, and its class.

        Always so many rows at once, so that no item depends on what it is measured with.
        """
        distances, names = np.empty(len(inputs), np.float32), np.empty(len(inputs), np.int64)
        half_squares = (self.references**2).sum(1) / 2
        for rows in chunks(len(inputs), ROWS_AT_ONCE):
            vectors = as_vectors(self.scaling.transform(inputs[rows]))
            n = len(vectors)
            padded = np.pad(vectors, ((0, ROWS_AT_ONCE - n), (0, 0)))
            closeness = (padded @ self.references.T - half_squares)[:n]
            nearest = closeness.argmax(1)
            squares = (vectors**2).sum(1) - 2 * closeness[np.arange(n), nearest]
            distances[rows] = np.sqrt(np.maximum(squares, 0))
            names[rows] = self.labels[nearest]
        return NearestReference(distances, names)

    def strata(self, inputs: np.ndarray) -> np.ndarray:
        """(n,) uint8: the stratum of each item; the last holds the strangest."""
        found = np.searchsorted(self.ends, self.measure(inputs).distances, side="left")
        return found.astype(np.uint8)


def as_vectors(inputs: np.ndarray) -> np.ndarray:
    """(n, d) float32: vectors as they are, the mean of views, or the pixels of small images.

    >>> as_vectors(np.zeros((2, 28, 28, 3), np.uint8)).shape
    (2, 588)
    """
    if inputs.dtype == np.uint8:
        step = -(-max(inputs.shape[1:3]) // LARGEST_SIDE)
        inputs = inputs[:, ::step, ::step].astype(np.float32) / 255
        return np.ascontiguousarray(inputs.reshape(len(inputs), -1))
    return np.ascontiguousarray(one_vector(inputs), dtype=np.float32)


def fit_strangeness(references: Labelled, others: np.ndarray) -> Strangeness:
    """The scale and the strata, from labelled items alone.

    ``others`` are labelled items that are no references; they tell how strange known items are.
    """
    scaling = fit_scaling(references.inputs)
    vectors = as_vectors(scaling.transform(references.inputs))
    found = Strangeness(scaling, vectors, references.labels, np.empty(0))
    ends = np.quantile(found.measure(others).distances, STRATA_ENDS)
    return replace(found, ends=ends.astype(np.float32))


def keys(rows: np.ndarray, seed: int, purpose: str) -> np.ndarray:
    """(n,) uint64: a random number for each row, the same wherever and with whatever it is read.

    Splitmix64, a generator whose states are counted: row numbers are its states.
    """
    with np.errstate(over="ignore"):
        state = rows.astype(np.uint64) + np.uint64(derive(seed, purpose)) * np.uint64(2**32 + 1)
        state = (state + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def first_by_keys(is_one: np.ndarray, n: int, *, seed: int, purpose: str) -> np.ndarray:
    """The ``n`` rows with the smallest keys among those that are one, by rising keys.

    However many rows there are, no more than a few times ``n`` and a chunk are in memory.
    """
    best, best_keys = np.empty(0, np.int64), np.empty(0, np.uint64)
    for part in chunks(len(is_one), KEYS_AT_ONCE):
        rows = np.concatenate([best, part.start + np.flatnonzero(is_one[part])])
        key = np.concatenate([best_keys, keys(rows[len(best) :], seed, purpose)])
        chosen = np.argpartition(key, n)[:n] if len(key) > n else np.arange(len(key))
        best, best_keys = rows[chosen], key[chosen]
    return best[np.argsort(best_keys)]


class Drawn(NamedTuple):
    """Rows that were drawn, sorted, and the share of each stratum that they are."""

    rows: np.ndarray
    rates: np.ndarray  # (s,) from 0 to 1
    is_even: np.ndarray  # of each row: without the others, all strata have the smallest rate

    def weights(self, strata: np.ndarray) -> np.ndarray:
        """(n,) how often items of these strata are in the sample, relative to the first stratum."""
        first = self.rates[self.rates > 0][0]
        # A stratum without an item of the pool has no rate, and stands for as few as possible.
        return (
            np.where(self.rates > 0, self.rates, self.rates[self.rates > 0].min())[strata] / first
        )


def share_out(sizes: np.ndarray, n: int) -> np.ndarray:
    """How many of ``n`` items are drawn from strata of these sizes.

    Half in proportion, half evenly; what a small stratum cannot give goes to the others.

    >>> share_out(np.array([9_000, 900, 100]), 1_000).tolist()
    [667, 233, 100]
    """
    n, quota = min(n, int(sizes.sum())), np.zeros(len(sizes))
    is_open = sizes > 0
    while (left := n - quota.sum()) >= 0.5 and is_open.any():
        even = is_open / is_open.sum()
        proportional = np.where(is_open, sizes, 0) / sizes[is_open].sum()
        quota = quota + left * (EVEN_SHARE * even + (1 - EVEN_SHARE) * proportional)
        quota = np.minimum(quota, sizes)
        is_open = quota < sizes
    whole = np.floor(quota + 1e-9).astype(int)
    whole[np.argsort(-(quota - whole), kind="stable")[: n - whole.sum()]] += 1
    return np.minimum(whole, sizes)


def draw_strata(strata: np.ndarray, n_strata: int, n: int, *, seed: int) -> Drawn:
    """``n`` rows, more of the strange: of each stratum those with the smallest keys.

    Rows of no stratum, such as ``SKIPPED``, are not drawn.
    """
    sizes = np.bincount(strata, minlength=n_strata)[:n_strata]
    wanted = share_out(sizes, n)
    rates = wanted / np.maximum(sizes, 1)
    least = rates[rates > 0].min()
    drawn, is_even = [], []
    for stratum in np.flatnonzero(wanted):
        first = first_by_keys(strata == stratum, wanted[stratum], seed=seed, purpose="sample")
        drawn.append(first)
        is_even.append(np.arange(len(first)) < round(least * sizes[stratum]))
    order = np.argsort(np.concatenate(drawn))
    return Drawn(np.concatenate(drawn)[order], rates, np.concatenate(is_even)[order])


def draw_at_rates(strata: np.ndarray, rates: np.ndarray, *, seed: int) -> Drawn:
    """Rows of these strata, each as often as an item of its stratum in a sample of these rates.

    >>> draw_at_rates(np.array([0, 1, 1, 0]), np.array([0.0, 1.0]), seed=0).rows.tolist()
    [1, 2]
    """
    places = rng(seed, "at rates").random(len(strata))
    rows = np.flatnonzero(places < rates[strata])
    return Drawn(rows, rates, places[rows] < rates[rates > 0].min())


def draw_evenly(n_rows: int, n: int, *, seed: int) -> np.ndarray:
    """``n`` rows of all, sorted, each as likely as any other; all, where there are no more.

    >>> draw_evenly(3, 5, seed=0).tolist()
    [0, 1, 2]
    """
    if n >= n_rows:
        return np.arange(n_rows)
    return np.sort(first_by_keys(np.ones(n_rows, bool), n, seed=seed, purpose="judged"))
