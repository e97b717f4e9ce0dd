"""Are the post-hoc scores at least as quick as the plain way to compute them?

    python benchmarks/post_hoc.py [--rounds 3] [--items 100000]

Energy, KNN and Mahalanobis of 100,000 items (10 classes, embeddings of 512 numbers; a bank of 5,000
items) against what one writes first: scipy's ``logsumexp``, scikit-learn's ``NearestNeighbors`` by
brute force, and a loop over classes with the precision of scikit-learn's ``EmpiricalCovariance``
(whose own ``mahalanobis`` takes minutes). Both start from the same logits and embeddings, and their
scores differ by at most 1e-4.

Rounds alternate, and the median of their ratios is at least 1. Everything runs in one thread and
counts the processor's time, so that other work on the machine matters little. The exit
code is 1 where a score is slower than its reference, or differs from it.
"""

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import logsumexp
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from s2osc.baselines.post_hoc import Bank, energy, fit_gaussians

AT_LEAST = 1.0
TOLERANCE = 1e-4
N_ITEMS, N_BANK, N_DIMENSIONS, N_CLASSES, K = 100_000, 5_000, 512, 10, 50
RIDGE = 1e-9  # next to nothing: the reference has none

Scores = Callable[[], np.ndarray]


class Items(NamedTuple):
    """What f says about training items and about those to be scored."""

    training: np.ndarray  # (m, d)
    labels: np.ndarray  # (m,)
    embeddings: np.ndarray  # (n, d)
    logits: np.ndarray  # (n, C)


class Pair(NamedTuple):
    """Our way to a score, and the plain one."""

    ours: Scores
    reference: Scores


class Result(NamedTuple):
    """Seconds of both, how often ours fits into the reference's, and by how much they differ."""

    ours: float
    reference: float
    ratio: float
    difference: float

    @property
    def holds(self) -> bool:
        return self.ratio >= AT_LEAST and self.difference <= TOLERANCE


def prepare(
    n_items: int = N_ITEMS,
    n_bank: int = N_BANK,
    n_dimensions: int = N_DIMENSIONS,
    n_classes: int = N_CLASSES,
) -> Items:
    """Rectified Gaussian classes: embeddings, and logits of a random last layer."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((n_classes, n_dimensions), dtype=np.float32)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(n) % n_classes
        rows = random.standard_normal((n, n_dimensions), dtype=np.float32)
        rows += centres[labels]
        return np.maximum(rows, 0, out=rows), labels

    (training, labels), (embeddings, _) = draw(n_bank), draw(n_items)
    head = random.standard_normal((n_dimensions, n_classes), dtype=np.float32)
    return Items(training, labels, embeddings, embeddings @ head / n_dimensions**0.5)


def pairs(items: Items, k: int = K) -> dict[str, Pair]:
    """Both ways to every score; what is fitted to training items is fitted here."""
    bank = Bank.of(items.training)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(unit(items.training))
    classes = fit_gaussians(items.training, items.labels, RIDGE)
    means = np.stack(
        [items.training[items.labels == c].mean(0) for c in range(items.logits.shape[1])]
    )
    shared = EmpiricalCovariance(assume_centered=True)
    shared.fit((items.training - means[items.labels]).astype(np.float64))

    def nearest_class() -> np.ndarray:
        squares = []
        for mean in means:
            around = items.embeddings - mean
            squares.append((around @ shared.precision_ * around).sum(1))
        return np.sqrt(np.min(squares, axis=0))

    return {
        "Energy": Pair(lambda: energy(items.logits), lambda: -logsumexp(items.logits, axis=1)),
        "KNN": Pair(
            lambda: bank.distance(items.embeddings, k),
            lambda: search.kneighbors(unit(items.embeddings))[0][:, -1],
        ),
        "Mahalanobis": Pair(lambda: classes.distance(items.embeddings), nearest_class),
    }


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure(pair: Pair, rounds: int) -> Result:
    """Time both in turn, and compare what they say."""
    difference = 0.0
    seconds = []
    for _ in range(rounds):
        (mine, ours), (theirs, reference) = timed(pair.ours), timed(pair.reference)
        seconds.append((mine, theirs))
        difference = max(difference, float(np.abs(ours - reference).max()))
    return Result(
        ours=median(mine for mine, _ in seconds),
        reference=median(theirs for _, theirs in seconds),
        ratio=median(theirs / mine for mine, theirs in seconds),
        difference=difference,
    )


def timed(scores: Scores) -> tuple[float, np.ndarray]:
    started = time.process_time()
    found = scores()
    return time.process_time() - started, found


def main() -> int:
    parser = argparse.ArgumentParser(description="The post-hoc scores against the plain way.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items", type=int, default=N_ITEMS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        results = {
            name: measure(pair, asked.rounds) for name, pair in pairs(prepare(asked.items)).items()
        }
    print(f"Scores of {asked.items:,} items: {asked.rounds} rounds, 1 thread")
    print(f"  {'':12} {'ours':>9} {'reference':>11} {'ratio':>7}  difference")
    for name, result in results.items():
        print(
            f"  {name:12} {result.ours:7.3f} s {result.reference:9.3f} s {result.ratio:7.2f}"
            f"  {result.difference:.1e}"
        )
    print(f"Wanted: ratios of at least {AT_LEAST}, differences of at most {TOLERANCE}.")
    holds = all(result.holds for result in results.values())
    print("All bounds hold." if holds else "A BOUND IS BROKEN.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
