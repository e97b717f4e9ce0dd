"""What a user gives the estimator: items of any kind as arrays, settings, labels of a check."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.utils import _safe_indexing, check_random_state

from s2osc.data.columns import Table, TableEncoder, choose_columns, notes_on_columns
from s2osc.data.frames import table_in, texts_in
from s2osc.data.label_column import MISSING, rows_of_pool, without_missing
from s2osc.data.tables import column_values
from s2osc.errors import DataError, S2OSCWarning, SettingsError
from s2osc.files import reason
from s2osc.nets.text_features import compute_text_features
from s2osc.nets.text_models import load_text_model
from s2osc.pipeline.audit.check import Check
from s2osc.pipeline.grouping.typical import WordCounts
from s2osc.pipeline.model_description import EmbeddingEntry, Preparation
from s2osc.pipeline.sources.matched import RawItems
from s2osc.pipeline.text_preparation import restore_text_model
from s2osc.text import plural
from s2osc.types import IMAGE_NDIMS, check_inputs

AUTO = "auto"

CHECK_SEED = 0
"""Of the order in which rows of a pool are checked: the same for all fits of the same pool."""


def choose_preparation(
    X: Any, *, embedding: str, keep_columns: Sequence[str], device: str
) -> EmbeddingEntry | TableEncoder | None:
    """How texts or a table become vectors, with a warning for each note; None: not needed."""
    if texts_in(X) is not None:
        model = load_text_model(embedding, device)
        return EmbeddingEntry(model.name, model.version, column="text")
    table = table_in(X)
    if table is None:
        return None
    encoder = choose_columns(table, keep=keep_columns)
    for note in notes_on_columns(encoder, table):
        warnings.warn(note, S2OSCWarning, stacklevel=4)  # where `fit` is called
    return encoder


def require_rows(X: Any) -> None:
    """Refuse texts or a table without any row, before a transformer of another library does."""
    if hasattr(X, "__len__") and len(X) == 0:
        raise DataError("X has no rows; give at least one")


def checked_texts(X: Any) -> np.ndarray:
    """The texts that a model of texts is given, with a warning where some are empty."""
    texts = texts_in(X, may_be_empty=True)
    if texts is None:
        columns = list(getattr(X, "columns", ()))
        such_as = f", such as X[{columns[0]!r}]" if columns else ""
        raise DataError(f"the model was fitted on texts; give a list or series of strings{such_as}")
    n_empty = sum(not text.strip() for text in texts)
    if n_empty:
        warnings.warn(
            f"{plural(n_empty, 'text')} of {len(texts):,} {'is' if n_empty == 1 else 'are'} empty, "
            "and the answers there mean nothing; leave such rows out",
            S2OSCWarning,
            stacklevel=6,  # where `predict` is called
        )
    return texts


def vectors_of_texts(
    texts: np.ndarray, preparation: EmbeddingEntry, *, embedding: str, device: str
) -> np.ndarray:
    """(n, D) by the model of the fit, which ``embedding`` must allow."""
    model = restore_text_model(preparation, device, allowed=embedding)
    return compute_text_features(texts.tolist(), model)


def raw_texts(
    X: Any, in_pool: np.ndarray, preparation: Preparation | None, *, embedding: str, device: str
) -> RawItems | None:
    """The texts of labelled rows and pool, for what a writer does to them; None: no texts."""
    texts = texts_in(X)
    if texts is None or not isinstance(preparation, EmbeddingEntry):
        return None
    embed = partial(vectors_of_texts, preparation=preparation, embedding=embedding, device=device)
    return RawItems(texts[in_pool], texts[~in_pool], embed)


def vectors_of_rows(X: Any, encoder: TableEncoder, names: Sequence[str] | None) -> np.ndarray:
    """(n, D) of a data frame, or of plain rows whose columns are ``names``, those of the fit."""
    table = table_in(X)
    if table is None and names is not None:
        table = plain_rows(X, names)
    if table is None:
        raise DataError("the model was fitted on a table; give a data frame with its columns")
    return encoder.encode(table, "X")


def plain_rows(X: Any, names: Sequence[str]) -> Table:
    """Rows without names of columns, which may mix numbers and words."""
    columns = np.asarray(X, object).T
    try:
        arrays = [pa.array(column.tolist(), from_pandas=True) for column in columns]
    except pa.ArrowException as error:
        raise DataError(f"X cannot be read as a table ({reason(error)})") from error
    table = pa.table(arrays, list(names))
    return Table({name: column_values(table[name], name, "X") for name in names})


def items_to_compare(X: Any) -> WordCounts | Table | None:
    """What tells groups apart in words: the words of texts, or columns; None of other rows."""
    texts = texts_in(X)
    return table_in(X) if texts is None else WordCounts.of(texts)


def as_inputs(X: np.ndarray) -> np.ndarray:
    """Numbers of any kind as float vectors; images stay as they are."""
    if X.ndim not in IMAGE_NDIMS and X.dtype.kind in "OUS":
        try:
            X = np.asarray(X, dtype=np.float64)
        except ValueError as error:
            raise DataError(f"X cannot be read as numbers: {error}") from error
    return check_inputs(X, "X")


def check_item_shape(X: Any, fitted: tuple[int, ...]) -> None:
    """Refuse items of another shape than those of the fit, where these or those are images.

    Of vectors scikit-learn says itself how many features it wants.
    """
    shape = np.asarray(X).shape[1:]
    if (len(shape) > 1 or len(fitted) > 1) and shape != fitted:
        raise DataError(
            f"X holds items of shape {shape}; the model was fitted on items of shape {fitted}"
        )


def labelled_rows(X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, Any]:
    """Rows that can be scored; those of the pool have no label, and a warning counts them."""
    y, in_pool = np.asarray(without_missing(y)), rows_of_pool(y)
    if not np.any(in_pool):
        return X, y, sample_weight
    if np.all(in_pool):
        raise DataError("every row is of the pool; give labelled rows to score")
    warnings.warn(
        f"{int(in_pool.sum())} of {len(y)} rows are of the pool, whose label nobody knows; "
        "they are left out of the score",
        S2OSCWarning,
        stacklevel=3,  # where `score` is called
    )
    rows = np.flatnonzero(~in_pool)
    weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
    return _safe_indexing(X, rows), y[rows], weight


def settings_by_name(estimator: Any) -> dict[str, object]:
    """The hyper-parameters that the parameters of an estimator change."""
    named = {
        "student.unknown": estimator.unknown,
        "filtering.k": estimator.k,
        "clusters.n_groups": estimator.n_groups,
        "augmentation.flip": estimator.flip,
        "decision.false_alarm": estimator.false_alarm,
        "decision.false_alarm_of": estimator.false_alarm_of or {},
        "decision.guarantee": estimator.guarantee,
        "decision.aim": estimator.aim,
        "decision.unsure": estimator.unsure,
    }
    of_preset = {"seeds.share": estimator.seeds, "filtering.by": estimator.filter}
    named |= {name: value for name, value in of_preset.items() if value not in (AUTO, None)}
    return named | dict(estimator.settings or {})


def seed_of(random_state: Any) -> int:
    """A number as it is; else one drawn from the state or, for None, from the system."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise SettingsError(f"random_state is {random_state}; give a number from 0, or None")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    return int(check_random_state(random_state).randint(2**31))


def check_of_rows(rows: Any, labels: Any, pool: np.ndarray) -> Check:
    """A person's labels of rows; those of ``pool`` could be asked about."""
    place = {row: i for i, row in enumerate(pool.tolist())}
    texts = ["" if str(label) in MISSING else str(label) for label in labels]
    given = dict(zip(np.asarray(rows).tolist(), texts, strict=True))
    strangers = given.keys() - place.keys()
    if strangers or not any(given.values()):
        found = f"row {min(strangers)} is not in the pool" if strangers else "no row is labelled"
        raise DataError(f"{found}; label the rows that rows_to_check gives")
    check = Check().asked(len(pool), n_pool=len(pool), seed=CHECK_SEED)
    return check.labelled({place[row]: label for row, label in given.items()})
