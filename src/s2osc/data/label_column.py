"""Labels as a column in Python, in which rows of the pool are marked."""

from typing import Any

import numpy as np

from s2osc.errors import DataError
from s2osc.types import UNKNOWN, UNSURE

POOL = -1
"""Marks a row of the pool among numeric labels, and an unknown item in the answer."""
POOL_TEXT, UNKNOWN_TEXT, UNSURE_TEXT = "", "unknown", "unsure"
"""The same among string labels: a row of the pool is empty, an unknown item is called so."""
MISSING = ("None", "nan", "<NA>")
"""How None, NaN and the NA of data frames print: they are empty, too."""


def rows_of_pool(y: Any) -> np.ndarray:
    """(n,) whether a row is of the pool, by its label.

    >>> rows_of_pool(["cat", None]).tolist(), rows_of_pool([3, -1]).tolist()
    ([False, True], [False, True])
    """
    y = np.asarray(without_missing(y))
    return np.asarray(y == (POOL_TEXT if y.dtype.kind in "UOT" else POOL))


def without_missing(y: Any) -> Any:
    """Missing values among string labels (None, NaN, NA) as the empty string.

    >>> without_missing(["cat", None, float("nan")]).tolist()
    ['cat', '', '']
    """
    # As objects first: numpy would make the text "nan" of a NaN in a list with strings.
    cells = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if cells.dtype != object or not any(isinstance(cell, str) for cell in cells.flat):
        return y
    missing = [not isinstance(cell, str) and str(cell) in MISSING for cell in cells.flat]
    labels = np.where(np.reshape(missing, cells.shape), POOL_TEXT, cells)
    for label in labels.flat:
        if not isinstance(label, str):
            raise DataError(f"y mixes strings with {label!r}; give strings, or numbers, throughout")
    return labels


def check_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The known classes, rising, and the number of the class of each labelled row."""
    classes, labels = np.unique(y[~rows_of_pool(y)], return_inverse=True)
    check_classes(classes.tolist(), np.bincount(labels), len(y))
    return classes, labels


def check_classes(classes: list[Any], sizes: np.ndarray, n_rows: int) -> None:
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no class"
        raise DataError(
            f"y holds {found} beside the pool (n_samples = {n_rows}); "
            "label rows of at least two classes"
        )
    if str(POOL) in classes:
        raise DataError(
            f"y holds the string {str(POOL)!r}; among strings the pool is marked by {POOL_TEXT!r}, "
            f"among numbers by {POOL}"
        )
    check_free(classes, UNKNOWN_TEXT)
    if sizes.min() < 2:
        raise DataError(
            f"class {classes[sizes.argmin()]!r} has one labelled row; give at least two of each"
        )


def check_free(classes: list[Any], mark: Any) -> None:
    if mark in classes:
        what = "unknown" if mark == UNKNOWN_TEXT else "unsure"
        raise DataError(
            f"a class is called {mark!r}, which is the answer for {what} items; rename it"
        )


def marks_of(classes: np.ndarray) -> dict[int, Any]:
    """What an unknown and an unsure item are called among these classes."""
    if classes.dtype.kind in "UO":
        return {UNKNOWN: UNKNOWN_TEXT, UNSURE: UNSURE_TEXT}
    return {UNKNOWN: POOL, UNSURE: UNSURE}


def names_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The classes that labels stand for, and marks.

    >>> names_of(np.array([1, -1]), np.array(["cat", "dog", "unknown"])).tolist()
    ['dog', 'unknown']
    """
    names = classes[np.maximum(labels, 0)]
    for label, mark in marks_of(classes).items():
        if (labels == label).any():
            names[labels == label] = mark
    return names


def numbers_of(names: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The labels that ``names_of`` named."""
    marks = {mark: label for label, mark in marks_of(classes).items()}
    place = {name: row for row, name in enumerate(classes.tolist())} | marks
    return np.array([place[name] for name in names.tolist()], np.int64)
