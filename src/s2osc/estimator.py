"""S2OSC as a scikit-learn estimator: a thin face over the pipeline."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from s2osc.errors import DataError, SettingsError
from s2osc.nets.training import resolve_device
from s2osc.pipeline.method import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.pipeline.storage import save_model
from s2osc.progress import shown
from s2osc.types import IMAGE_NDIMS, UNKNOWN, Labelled, check_inputs

POOL = -1
"""Marks a row of the pool among numeric labels, and an unknown item in the answer."""
POOL_TEXT, UNKNOWN_TEXT = "", "unknown"
"""The same among string labels: a row of the pool is empty, an unknown item is called so."""
MISSING = ("None", "nan", "<NA>")
"""How None, NaN and the NA of data frames print: they are empty, too."""


class S2OSC(ClassifierMixin, BaseEstimator):
    """Known class, or unknown and which group, for every item of a pool.

    ``fit(X, y)`` takes labelled items and the pool together: ``y`` is the class of a labelled row
    and ``-1`` for a row of the pool. With string labels a row of the pool is marked by ``""`` (or
    a missing value), and the answer for an unknown item is ``"unknown"``. ``X`` holds images,
    (n, H, W) or (n, H, W, 3) uint8, or vectors, (n, D).

    Parameters
    ----------
    preset : "auto", "fast" or "paper"
        Where the hyper-parameters start from; "auto" is "fast" on a CPU, "paper" on a GPU.
    unknown : "one" or "many"
        The student learns the known classes and one unknown one; or, for several unknown
        classes, known against unknown, and the teacher sub-divides the known.
    k : int or None
        Items taken as distinct unknowns, and labelled items of each class the student sees;
        None is 300, or as many as a small pool allows.
    n_groups : int or None
        Groups among the unknown items; None chooses.
    flip : bool or None
        Whether a mirrored image still means the same; None says so of colour images only.
    settings : mapping or None
        Any other hyper-parameter by name, such as ``{"student.tau": 0.9}``.
    random_state : int, RandomState or None
        None draws a new seed for every fit, and leaves numpy's global state as it was.
    device : "auto", "cpu" or "cuda"
    verbose : bool
        Show progress bars on a terminal.

    Attributes
    ----------
    classes_ : what ``predict`` may answer, sorted: the known classes, and the mark of an unknown
        item where there was a pool. Columns of ``predict_proba`` follow it.
    known_classes_ : the known classes, sorted.
    transduction_ : (n,) label of every row of ``X``, ``-1`` (or "unknown") where it is unknown.
    groups_ : (n,) group of every unknown row from 0, -1 elsewhere.
    model_ : the fitted model.

    Without a row of the pool there is nothing unknown to learn: the teacher answers alone.

    Of scikit-learn's checks of an estimator, one cannot pass: ``check_classifiers_classes`` takes
    -1 for a class, which here marks the pool, as it does in scikit-learn's semi-supervised
    classifiers.
    """

    def __init__(
        self,
        *,
        preset: str = "auto",
        unknown: str = "one",
        k: int | None = None,
        n_groups: int | None = None,
        flip: bool | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.preset = preset
        self.unknown = unknown
        self.k = k
        self.n_groups = n_groups
        self.flip = flip
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the known classes and the pool's unknown ones, and answer for the pool."""
        y = _without_missing(y)
        X, y = validate_data(self, X, y, dtype=None, allow_nd=True, ensure_all_finite=False)
        check_classification_targets(y)
        X = _as_inputs(X)
        self.input_shape_ = X.shape[1:]
        in_pool = y == (POOL_TEXT if y.dtype.kind in "UO" else POOL)
        self.known_classes_, labels = np.unique(y[~in_pool], return_inverse=True)
        _check_classes(self.known_classes_.tolist(), np.bincount(labels), len(y))

        device = resolve_device(self.device)
        method = build_method(choose_preset(self.preset, device), self._changes())
        seed = self._seed()
        known = Labelled(X[~in_pool], labels)
        self.groups_ = np.full(len(y), -1)
        self.model_: OpenSetModel | KnownOnlyModel
        with shown() if self.verbose else nullcontext():
            if in_pool.any():
                solution = method.fit(known, X[in_pool], seed=seed, device=device)
                self.model_ = solution.model
                self.groups_[in_pool] = solution.answer.groups
            else:
                self.model_ = method.fit_known_only(known, seed=seed, device=device)
        self.classes_ = self.known_classes_
        self.transduction_ = y.copy()
        if in_pool.any():
            self.classes_ = np.unique(np.append(self.known_classes_, [self._unknown_mark()]))
            self.transduction_ = self.transduction_.astype(self.classes_.dtype)
            self.transduction_[in_pool] = self._names(solution.answer.labels)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """A known class, or the mark of an unknown item, for every row."""
        inputs = self._check(X)
        return self._names(self.model_.predict(inputs).labels)

    def predict_proba(self, X: Any) -> np.ndarray:
        """One column per entry of ``classes_``.

        An item that is probably known, but of no class in particular, may have its largest
        probability in the unknown column: ``predict`` weighs known against unknown first.
        """
        inputs = self._check(X)
        p = self.model_.probabilities(inputs)
        if len(self.classes_) == len(self.known_classes_):
            return p[:, :-1]
        columns = np.append(self.known_classes_.astype(self.classes_.dtype), [self._unknown_mark()])
        return p[:, np.argsort(columns, kind="stable")]

    def unknown_score(self, X: Any) -> np.ndarray:
        """Rises with the belief that a row is of no known class."""
        inputs = self._check(X)
        return self.model_.predict(inputs).unknown_score

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder that ``s2osc predict --model`` reads."""
        check_is_fitted(self)
        if not isinstance(self.model_, OpenSetModel):
            raise SettingsError("a model fitted without a pool has no student; fit it with one")
        save_model(Path(folder), self.model_, tuple(str(name) for name in self.known_classes_))

    def _changes(self) -> dict[str, Any]:
        named = {
            "student.unknown": self.unknown,
            "filtering.k": self.k,
            "clusters.n_groups": self.n_groups,
            "augmentation.flip": self.flip,
        }
        return named | dict(self.settings or {})

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            if self.random_state < 0:
                raise SettingsError(
                    f"random_state is {self.random_state}; give a number from 0, or None"
                )
            return int(self.random_state)
        if self.random_state is None:
            return int(np.random.default_rng().integers(2**31))
        return int(check_random_state(self.random_state).randint(2**31))

    def _check(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        item_shape = np.asarray(X).shape[1:]
        # Of vectors scikit-learn says itself how many features it wants; images have none.
        has_images = len(item_shape) > 1 or len(self.input_shape_) > 1
        if has_images and item_shape != self.input_shape_:
            raise DataError(
                f"X holds items of shape {item_shape}; the model was fitted on items of "
                f"shape {self.input_shape_}"
            )
        X = validate_data(self, X, dtype=None, allow_nd=True, ensure_all_finite=False, reset=False)
        return _as_inputs(X)

    def _unknown_mark(self) -> Any:
        return UNKNOWN_TEXT if self.known_classes_.dtype.kind in "UO" else POOL

    def _names(self, labels: np.ndarray) -> np.ndarray:
        names = self.known_classes_.astype(self.classes_.dtype)[labels]
        if (labels == UNKNOWN).any():
            names[labels == UNKNOWN] = self._unknown_mark()
        return names


def _as_inputs(X: np.ndarray) -> np.ndarray:
    """Numbers of any kind as float vectors; images stay as they are."""
    # Infinities, also those of numbers too large for a float, are reported by ``check_inputs``.
    with np.errstate(over="ignore", invalid="ignore"):
        if X.ndim not in IMAGE_NDIMS:
            try:
                X = np.asarray(X, dtype=np.float32)
            except ValueError as error:
                raise DataError(f"X cannot be read as numbers: {error}") from error
        return check_inputs(X, "X")


def _without_missing(y: Any) -> Any:
    """Missing values among string labels (None, NaN, NA) as the empty string.

    >>> _without_missing(["cat", None, float("nan")]).tolist()
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


def _check_classes(classes: list[Any], sizes: np.ndarray, n_rows: int) -> None:
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no class"
        raise DataError(
            f"y holds {found} beside the pool (n_samples = {n_rows}); "
            "label rows of at least two classes"
        )
    if UNKNOWN_TEXT in classes:
        raise DataError(
            f"a class is called {UNKNOWN_TEXT!r}, which is the answer for unknown items; rename it"
        )
    if sizes.min() < 2:
        raise DataError(
            f"class {classes[sizes.argmin()]!r} has one labelled row; give at least two of each"
        )
