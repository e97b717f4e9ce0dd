"""Arrays of rows: in chunks, at unit length, their distances, and reduced to few dimensions."""

import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from s2osc.lazy import lazily
from s2osc.seeding import derive

decomposition = lazily("sklearn.decomposition")
extmath = lazily("sklearn.utils.extmath")
threadpoolctl = lazily("threadpoolctl")

Given = ParamSpec("Given")
Found = TypeVar("Found")
MANY_COLUMNS = 800
"""Of which the axes of all cost more than the few that are wanted."""


def in_one_thread(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """The function, with the linear algebra of numpy and scipy in one thread.

    On matrices as small as ours, threads that wait for each other take two to three times as long,
    and much longer where other work keeps one of them from running.
    """

    @wraps(function)
    def limited(*given: Given.args, **more: Given.kwargs) -> Found:
        with _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
            return function(*given, **more)

    return limited


@lru_cache(maxsize=1)
def _thread_pools(_n_modules: int) -> Any:
    """Those of all libraries that are loaded, searched for anew when another module is imported."""
    return threadpoolctl.ThreadpoolController()


def chunks(n: int, size: int = 4_096) -> list[slice]:
    """The slices of at most ``size`` rows that make up ``n``.

    >>> chunks(5, 3)
    [slice(0, 3, None), slice(3, 6, None)]
    """
    return [slice(start, start + size) for start in range(0, n, size)]


def in_chunks(
    of: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    n_columns: int | None = None,
    *,
    size: int = 2_048,
) -> np.ndarray:
    """(n, n_columns) or (n,) float64: ``of`` a chunk of rows at a time, so that memory stays flat.

    >>> in_chunks(lambda part: part.sum(1), np.ones((3, 5))).tolist()
    [5.0, 5.0, 5.0]
    """
    values = np.empty(len(rows) if n_columns is None else (len(rows), n_columns))
    for part in chunks(len(rows), size):
        values[part] = of(rows[part])
    return values


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Each row at length one; a row of zeros stays one.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def squared_distances(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(n, m) float64, so that results do not depend on the batch.

    >>> squared_distances(np.zeros((1, 2)), np.array([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [[0.0, 25.0]]
    """
    rows, centres = rows.astype(np.float64), centres.astype(np.float64)
    squares = (rows**2).sum(1, keepdims=True) + (centres**2).sum(1) - 2 * rows @ centres.T
    return np.maximum(squares, 0)


def nearest_rows(rows: np.ndarray, among: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) distances and (n, k) places of the nearest of a few hundred others, nearest first.

    What scikit-learn finds as well, for those who would import it for nothing else.

    >>> away, places = nearest_rows(np.array([[0.0], [9.0]]), np.array([[1.0], [7.0], [2.0]]), 2)
    >>> away.tolist(), places.tolist()
    ([[1.0, 2.0], [2.0, 7.0]], [[0, 2], [1, 2]])
    """
    squares = squared_distances(rows, among)
    places = np.argpartition(squares, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(squares, places, axis=1), axis=1, kind="stable")
    places = np.take_along_axis(places, order, axis=1)
    return np.sqrt(np.take_along_axis(squares, places, axis=1)), places


def principal_axes(rows: np.ndarray, n: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, columns) directions in which centred rows are longest, and (n,) how long they are in all.

    They are exact where the covariance of the columns is a small matrix, which is many times
    quicker, too; of many columns or few rows they come from a random start of columns.

    >>> axes, lengths = principal_axes(np.array([[0.0, 3.0], [0.0, -4.0], [0.1, 0.0]]), 1, seed=0)
    >>> abs(axes).round(3).tolist(), lengths.round(3).tolist()
    ([[0.0, 1.0]], [5.0])
    """
    if rows.shape[1] <= min(len(rows), MANY_COLUMNS):
        squares, axes = np.linalg.eigh(rows.T @ rows)
        return axes[:, ::-1][:, :n].T, np.sqrt(np.maximum(squares[::-1][:n], 0))
    _, lengths, axes = extmath.randomized_svd(rows, n, transpose=False, random_state=seed)
    return axes, lengths


def leading_components(rows: np.ndarray, most: int, *, of: np.ndarray | None = None) -> np.ndarray:
    """(n, k) float64: the leading components, from 2 to ``most``; zeros where no row differs.

    They are found by ``rows``, and are those of the rows ``of``, if such are given.
    """
    rows = rows.astype(np.float64)
    if len(rows) < 2 or not np.ptp(rows, axis=0).any():
        return np.zeros((len(rows if of is None else of), 2))
    n_components, centre = min(most, rows.shape[1], len(rows) - 1), rows.mean(axis=0)
    # Of many rows the covariance of the columns is the smaller matrix, several times quicker.
    solver = "covariance_eigh" if len(rows) > rows.shape[1] else "full"
    pca = decomposition.PCA(n_components, svd_solver=solver)
    components = pca.fit_transform(rows - centre)
    if of is not None:
        components = in_chunks(lambda part: pca.transform(part - centre), of, n_components)
    return np.pad(components, ((0, 0), (0, max(0, 2 - n_components))))


def tsne(rows: np.ndarray, *, seed: int, **options: Any) -> np.ndarray:
    """(n, 2): t-SNE of rows; ``options`` are openTSNE's."""
    from openTSNE import TSNE  # noqa: PLC0415  (slow to import, and most runs draw nothing)

    reduce = TSNE(
        perplexity=min(30, (len(rows) - 1) / 3),
        neighbors="exact",
        negative_gradient_method="bh",
        n_jobs=1,
        random_state=derive(seed, "t-SNE"),
        **options,
    )
    return np.asarray(reduce.fit(rows))
