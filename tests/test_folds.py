"""Folds for cross-validation: labelled rows are judged, those of the pool are learnt from."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score

import s2osc
from s2osc.errors import DataError

X = np.arange(30.0)[:, None]


@pytest.mark.parametrize(
    "y",
    [
        np.repeat([0, 1, -1], 10),
        ["a"] * 10 + ["b"] * 10 + [None] * 10,
        np.repeat(["a", "b", ""], 10),
    ],
    ids=["numbers", "missing", "strings"],
)
def test_every_labelled_row_is_judged_once_and_the_pool_is_always_learnt_from(y):
    folds = list(s2osc.LabelledFolds(5).split(X, y))
    assert sorted(np.concatenate([judged for _, judged in folds])) == list(range(20))
    for training, judged in folds:
        assert set(range(20, 30)) <= set(training)
        assert not set(training) & set(judged)
        assert len(judged) == 4
        assert (judged < 10).sum() == 2


def test_any_scoring_counts_labelled_rows_alone():
    y = np.repeat([0, -1], [10, 20])
    says_nought = DummyClassifier(strategy="constant", constant=0)
    scores = cross_val_score(says_nought, X, y, cv=s2osc.LabelledFolds(2), scoring="accuracy")
    assert scores.tolist() == [1, 1]


def test_folds_need_labels():
    with pytest.raises(DataError, match="every row is of the pool"):
        next(s2osc.LabelledFolds(2).split(X, np.full(30, -1)))
    with pytest.raises(DataError, match="y is missing"):
        next(s2osc.LabelledFolds(2).split(X))
