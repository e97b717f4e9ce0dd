"""Which items groups are found with: not those among known ones, nor those without company."""

import numpy as np

from s2osc.lazy import lazily

neighbors = lazily("sklearn.neighbors")

N_FITTED = 800
"""Items to find the groups with; all others join their neighbours. Time and memory grow with the
square of it; a group of 2 % still has 16 items."""
N_VOTES = 5
NEIGHBOURHOOD = 10
"""Items around an item, itself among them, most of which are known where it is surrounded."""
N_OF_CLASS = 40
MISTAKEN = 0.05
"""Of known items: the usual limit of false alarms."""
ROUGHLY = 0.15  # of all ranks: how far the order of mistaken items differs from that by distance
LONELY = 2.0
"""Times the loneliest known item: the tail of a class whose items are farther apart than those of
any known class is not yet scattered."""


def choose_items(
    unknown: np.ndarray, known: np.ndarray, labels: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Rows of the items that groups are found with, and the radius beyond which one is scattered.

    A radius that most items lie beyond is none: known classes are far narrower there, and do not
    tell which items are lonely.
    """
    rows = np.sort(random.permutation(len(unknown))[:N_FITTED])
    rows = rows[apart_from_known(unknown[rows], known)]
    radius = _loneliest(known, labels, random)
    if len(rows) <= N_VOTES or not np.isfinite(radius):
        return rows, radius
    has_company = _fifth_neighbour(unknown[rows]) <= radius
    return (rows[has_company], radius) if 2 * has_company.sum() >= len(rows) else (rows, np.inf)


def mistaken_rows(known: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows of known items as a run calls unknown by mistake: they lie far from other known ones.

    They are as many as a usual limit of false alarms allows, and roughly the farthest, since no
    run ranks items by this distance alone.
    """
    if len(known) <= N_VOTES:
        return np.zeros(0, int)
    search = neighbors.NearestNeighbors(n_neighbors=N_VOTES, algorithm="brute").fit(known)
    rank = search.kneighbors()[0].mean(1).argsort().argsort() / len(known)
    order = np.argsort(-(rank + random.normal(0, ROUGHLY, len(known))), kind="stable")
    return order[: round(MISTAKEN * len(known))]


def apart_from_known(items: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(n,) whether an item is not surrounded by known ones, which would bridge the groups.

    Most of its neighbours would be known if there were no more known items than others: where there
    are four times as many, a new class would be surrounded wherever it lies near a known one.
    """
    everyone = np.ones(len(items), bool)
    n_neighbours = min(NEIGHBOURHOOD, len(items))
    most = n_neighbours // 2 + 1
    n_others = n_neighbours - most
    n_known = round(most * max(1.0, len(known) / max(len(items), 1)))
    if len(known) < n_known or n_others == 0:
        return everyone
    is_apart = _nth_neighbour(items, items, n_others + 1) <= _nth_neighbour(items, known, n_known)
    return is_apart if 2 * is_apart.sum() >= len(items) else everyone


def _loneliest(known: np.ndarray, labels: np.ndarray, random: np.random.Generator) -> float:
    """Twice the largest distance of a known item to its fifth neighbour in its class.

    Of each class a few items are drawn, about as many as a small group has among those fitted: the
    fewer there are, the farther are neighbours.
    """
    classes = [random.permutation(known[labels == c])[:N_OF_CLASS] for c in np.unique(labels)]
    farthest = [_fifth_neighbour(rows).max() for rows in classes if len(rows) > 4 * N_VOTES]
    return LONELY * float(max(farthest)) if farthest else np.inf


def _fifth_neighbour(rows: np.ndarray) -> np.ndarray:
    search = neighbors.NearestNeighbors(n_neighbors=N_VOTES, algorithm="brute").fit(rows)
    return np.asarray(search.kneighbors()[0][:, -1])


def _nth_neighbour(rows: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    search = neighbors.NearestNeighbors(n_neighbors=n, algorithm="brute").fit(others)
    return np.asarray(search.kneighbors(rows)[0][:, -1])
