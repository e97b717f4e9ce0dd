"""Folds for cross-validation in which rows of the pool are learnt from and never judged."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from s2osc.data.label_column import rows_of_pool
from s2osc.errors import DataError


class LabelledFolds(StratifiedKFold):
    """Stratified folds of the labelled rows; every row of the pool is in every training part.

    With these, any ``scoring`` counts labelled rows alone, which nobody else can see to:

        cross_val_score(S2OSC(), X, y, cv=LabelledFolds(5), scoring="f1_macro")
    """

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to fit with and labelled rows to judge by, once for each fold."""
        if y is None:
            raise DataError("y is missing; its labels say which rows are of the pool")
        labels = np.asarray(y)
        in_pool = rows_of_pool(y)
        labelled, pool = np.flatnonzero(~in_pool), np.flatnonzero(in_pool)
        if not len(labelled):
            raise DataError("every row is of the pool; give labelled rows to judge by")
        for training, judged in super().split(labelled[:, None], labels[labelled]):
            yield np.concatenate([labelled[training], pool]), labelled[judged]
