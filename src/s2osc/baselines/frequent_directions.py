"""Frequent directions: a few rows that stand for the second moments of many.

The sketch B of A keeps fewer than l rows. Rows are taken in until 2 l are there; then, with
U S V' the singular value decomposition, every squared singular value gives up delta = S_l^2, the
l-th largest, and B = sqrt(max(S^2 - delta, 0)) V'. Each of these steps takes at least l delta of
the squared length of the rows, so that for any rows and any order

    0 <= A'A - B'B <= |A|_F^2 / l.

Sketches of two sets, one below the other, sketch to a sketch of both that keeps the same promise.

Reference: E. Liberty, "Simple and Deterministic Matrix Sketching", KDD 2013.
"""

import numpy as np

from s2osc.errors import SettingsError


def sketch(rows: np.ndarray, n_directions: int) -> np.ndarray:
    """B: fewer than ``n_directions`` orthogonal rows (l above), the longest first, float64.

    >>> np.abs(sketch(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 1.0]]), 3)).round(6).tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """
    if n_directions < 2:
        raise SettingsError(
            f"a sketch of {n_directions} directions keeps nothing; give a number from 2"
        )
    kept, start = np.empty((0, rows.shape[1])), 0
    while start < len(rows):
        end = start + 2 * n_directions - len(kept)
        kept, start = shrink(np.vstack([kept, rows[start:end]]), n_directions), end
    return kept


def merge(first: np.ndarray, second: np.ndarray, n_directions: int) -> np.ndarray:
    """A sketch of the rows behind both; either side may be a sketch or rows."""
    return sketch(np.vstack([first, second]), n_directions)


def shrink(rows: np.ndarray, n_directions: int) -> np.ndarray:
    """Take the l-th largest squared singular value from all of them; rows left at zero go.

    >>> (shrink(np.diag([3.0, 2.0, 1.0]), 2) ** 2).round(6).tolist()
    [[5.0, 0.0, 0.0]]
    """
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    squares = values**2
    if len(squares) >= n_directions:
        squares = np.maximum(squares - squares[n_directions - 1], 0)
    # What a rank-deficient set leaves beyond its rank is rounding.
    is_left = squares > np.finfo(np.float64).eps * squares.max(initial=0) * len(squares)
    return np.sqrt(squares[is_left])[:, None] * directions[is_left]
