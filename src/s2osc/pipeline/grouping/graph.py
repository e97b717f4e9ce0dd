"""A graph of nearest neighbours, and the slowest modes of a walk on it."""

import numpy as np
from scipy import sparse

from s2osc.lazy import lazily

sparse_linalg = lazily("scipy.sparse.linalg")


def nearest_others(rows: np.ndarray, k: int) -> np.ndarray:
    """(n, k): the nearest other rows of each row."""
    rows = rows - rows.mean(0)  # centred: large values would round small differences away
    distances = (rows**2).sum(1) - 2 * rows @ rows.T  # without the own square: same order
    np.fill_diagonal(distances, np.inf)
    k = min(k, len(rows) - 1)
    return np.argpartition(distances, k - 1, axis=1)[:, :k]


def slowest_modes(
    nearest: np.ndarray, n_modes: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(n_modes,), (n, n_modes): the slowest modes of a walk from neighbour to neighbour.

    How much of a mode is left after a step, and the mode; the slowest comes first.
    """
    n, k = nearest.shape
    # Weak random links keep the graph connected, so that outliers form no groups.
    ends = np.concatenate([nearest, random.integers(0, n, (n, 4))], axis=1)
    weights = np.tile(np.repeat([0.5, 0.01], [k, 4]), n)
    graph = sparse.csr_array(
        (weights, (np.repeat(np.arange(n), k + 4), ends.ravel())), shape=(n, n)
    )
    graph = graph + graph.T
    scale = sparse.diags_array(1 / np.sqrt(graph.sum(1)))
    values, vectors = sparse_linalg.eigsh(
        scale @ graph @ scale, k=n_modes, which="LA", v0=random.random(n), tol=1e-4
    )
    order = np.argsort(-values)
    return values[order], scale @ vectors[:, order]
