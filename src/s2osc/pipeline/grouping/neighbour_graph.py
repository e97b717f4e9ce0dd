"""A graph of nearest neighbours, and the slowest modes of a walk on it."""

import numpy as np
from scipy import sparse

from s2osc.lazy import lazily

sparse_linalg = lazily("scipy.sparse.linalg")

N_MODES = 15
SEVENTH = 7


def slowest_coordinates(
    rows: np.ndarray, k: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(n, m), (m,): places in which what hangs together by its k neighbours lies together.

    They are the slowest modes, each scaled by how slow it is, as in a walk's commute time; with
    them, how much of each is left after a step.
    """
    n_modes = min(N_MODES + 1, len(rows) // 2)
    nearest = nearest_others(rows, k)
    values, modes = slowest_modes(nearest, closeness(rows, nearest), n_modes, random)
    steady = modes[:, :1]
    flat = np.where(np.abs(steady) < 1e-12, 1e-12, steady)
    places = modes[:, 1:] / flat / np.sqrt(np.maximum(1 - values[1:], 0.02))
    return np.asarray(places), values[1:]


def nearest_others(rows: np.ndarray, k: int) -> np.ndarray:
    """(n, k): the nearest other rows of each row."""
    rows = rows - rows.mean(0)  # centred: large values would round small differences away
    distances = (rows**2).sum(1) - 2 * rows @ rows.T  # without the own square: same order
    np.fill_diagonal(distances, np.inf)
    k = min(k, len(rows) - 1)
    return np.argpartition(distances, k - 1, axis=1)[:, :k]


def closeness(rows: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """(n, k) from 0 to 1: how close each neighbour is, for where the two items lie.

    Distances are measured by those to the seventh neighbours of both (Zelnik-Manor and Perona,
    2004): a small class has fewer items than an item has neighbours, and the others are far.
    """
    squares = ((rows[:, None] - rows[nearest]) ** 2).sum(2, dtype=np.float64)
    place = min(SEVENTH, nearest.shape[1]) - 1
    usual = np.sqrt(np.partition(squares, place, axis=1)[:, place])
    return np.exp(-squares / np.maximum(usual[:, None] * usual[nearest], 1e-12))


def slowest_modes(
    nearest: np.ndarray, closeness: np.ndarray, n_modes: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(n_modes,), (n, n_modes): the slowest modes of a walk from neighbour to neighbour.

    How much of a mode is left after a step, and the mode; the slowest comes first. The closer a
    neighbour is, the more often it is the next one.
    """
    n, k = nearest.shape
    # Weak random links keep the graph connected, so that outliers form no groups.
    ends = np.concatenate([nearest, random.integers(0, n, (n, 4))], axis=1)
    weights = np.concatenate([closeness / 2, np.full((n, 4), 0.01)], axis=1)
    graph = sparse.csr_array(
        (weights.ravel(), (np.repeat(np.arange(n), k + 4), ends.ravel())), shape=(n, n)
    )
    graph = graph + graph.T
    scale = sparse.diags_array(1 / np.sqrt(graph.sum(1)))
    values, vectors = sparse_linalg.eigsh(
        scale @ graph @ scale, k=n_modes, which="LA", v0=random.random(n), tol=1e-4
    )
    order = np.argsort(-values)
    return values[order], scale @ vectors[:, order]
