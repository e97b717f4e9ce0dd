"""A graph of nearest neighbours, and how many of its links a cut loses."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh


class GraphCut(NamedTuple):
    """A cut of some items in two parts."""

    value: float  # the normalised cut
    sides: np.ndarray  # (n,) 0 or 1


def nearest_others(rows: np.ndarray, k: int, copies: np.ndarray | None = None) -> np.ndarray:
    """(..., n, k): the nearest other rows of each row, or of its copy, in each set of rows."""
    mean = rows.mean(-2, keepdims=True)  # centred: large values would round small differences away
    rows = rows - mean
    of = rows if copies is None else copies - mean
    # Without the own square: same order.
    distances = (rows**2).sum(-1)[..., None, :] - 2 * of @ rows.swapaxes(-1, -2)
    n = rows.shape[-2]
    distances[..., np.arange(n), np.arange(n)] = np.inf
    k = min(k, n - 1)
    return np.argpartition(distances, k - 1, axis=-1)[..., :k]


def n_neighbours(n: int) -> int:
    """The number of neighbours in the graph of n items."""
    return min(max(n // 40, 3), 10)


def slowest_modes(nearest: np.ndarray, n_modes: int, random: np.random.Generator) -> np.ndarray:
    """(n, n_modes): the slowest modes of a walk from neighbour to neighbour, slowest first."""
    n, k = nearest.shape
    # Weak random links keep the graph connected, so that outliers form no groups.
    ends = np.concatenate([nearest, random.integers(0, n, (n, 4))], axis=1)
    weights = np.tile(np.repeat([0.5, 0.01], [k, 4]), n)
    graph = sparse.csr_array(
        (weights, (np.repeat(np.arange(n), k + 4), ends.ravel())), shape=(n, n)
    )
    graph = graph + graph.T
    scale = sparse.diags_array(1 / np.sqrt(graph.sum(1)))
    values, vectors = eigsh(
        scale @ graph @ scale, k=n_modes, which="LA", v0=random.random(n), tol=1e-4
    )
    return scale @ vectors[:, np.argsort(-values)]


def cuts(nearest: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(n_groups, n_groups): the normalised cut between each two groups, ignoring all others.

    The share of a group's links within the pair that lead to the other group, summed over both.

    >>> pairs = np.array([[1], [0], [3], [0]])
    >>> cuts(pairs, np.array([0, 0, 1, 1]))[0, 1].round(3).item()
    0.533
    """
    linked = links(nearest, groups)
    share = linked / np.maximum(np.diag(linked)[:, None] + linked, 1)
    return np.where(np.eye(len(linked), dtype=bool), 0.0, share + share.T)


def links(nearest: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(n_groups, n_groups): how often items of two groups are neighbours."""
    n_groups = groups.max() + 1
    pairs = groups[:, None] * n_groups + groups[nearest]
    linked = np.bincount(pairs.ravel(), minlength=n_groups**2).reshape(n_groups, n_groups)
    return linked + linked.T


def best_cut(rows: np.ndarray, random: np.random.Generator) -> GraphCut:
    """The least normalised cut along the slowest mode, with a tenth of the rows on each side."""
    nearest = nearest_others(rows, n_neighbours(len(rows)))
    rank = np.argsort(np.argsort(slowest_modes(nearest, 2, random)[:, 1], kind="stable"))
    places = np.unique(np.linspace(0.1, 0.9, 81) * len(rows)).astype(int)
    values = cuts_by_rank(nearest, rank)[places]
    best = int(values.argmin())
    return GraphCut(float(values[best]), (rank >= places[best]).astype(int))


def cut_at(nearest: np.ndarray, place: int) -> np.ndarray:
    """(...): the normalised cut between the rows before a place and the others, in each set.

    >>> cut_at(np.array([[1], [0], [3], [0]]), 2).round(3).item()
    0.533
    """
    within = (nearest[..., :place, :] < place).sum((-2, -1))
    outside = (nearest[..., place:, :] >= place).sum((-2, -1))
    return _normalised(within, outside, nearest.shape[-2] * nearest.shape[-1])


def cuts_by_rank(nearest: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """(n,) for each p the normalised cut between the p rows of lowest rank and the others.

    >>> cuts_by_rank(np.array([[1], [0], [3], [0]]), np.array([0, 1, 2, 3]))[2].round(3).item()
    0.533
    """
    own, other = np.broadcast_to(rank[:, None], nearest.shape), rank[nearest]
    within = _count_below(np.maximum(own, other), len(rank))
    touching = _count_below(np.minimum(own, other), len(rank))
    return _normalised(within, nearest.size - touching, nearest.size)


def _count_below(numbers: np.ndarray, n: int) -> np.ndarray:
    """(n,) how many of the numbers are below 0, 1, ..., n - 1."""
    counts = np.bincount(numbers.ravel(), minlength=n)
    return np.cumsum(counts) - counts


def _normalised(within: np.ndarray, outside: np.ndarray, n_links: int) -> np.ndarray:
    """The normalised cut between two parts with so many links within each."""
    crossing = n_links - within - outside
    # A link within a part has both ends there.
    first, second = (np.maximum(2 * inner + crossing, 1) for inner in (within, outside))
    return crossing / first + crossing / second
