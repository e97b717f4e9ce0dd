"""Strings and data frames as users of Python give them."""

import numpy as np
import pytest

from s2osc.data.frames import table_in, texts_in
from s2osc.errors import DataError

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, lambda x: np.array(x, object), pd.Series, pd.Index]
)
def test_strings_in_any_row_are_texts(make):
    assert texts_in(make(["one", "two"])).tolist() == ["one", "two"]


def test_missing_texts_are_empty():
    assert texts_in(pd.Series(["one", None])).tolist() == ["one", ""]
    assert texts_in(["one", float("nan"), None]).tolist() == ["one", "", ""]


@pytest.mark.parametrize(
    "X", [[1, 2], np.zeros((2, 2)), [["a"], ["b"]], pd.DataFrame({"a": ["x"]})]
)
def test_anything_else_is_no_text(X):
    assert texts_in(X) is None


def test_what_is_nearly_texts_is_refused():
    with pytest.raises(DataError, match="X is one string; give a list of texts"):
        texts_in("a text")
    with pytest.raises(DataError, match="X mixes texts with 3; give strings throughout"):
        texts_in(["one", 3])


def test_a_data_frame_is_a_table_of_its_columns():
    frame = pd.DataFrame(
        {
            "width": [1.5, None],
            "colour": pd.Categorical(["red", None]),
            "is_new": [True, False],
            "day": pd.to_datetime(["2024-05-06", None]),
        },
        index=[7, 9],
    )
    columns = table_in(frame).columns
    assert list(columns) == ["width", "colour", "is_new", "day"]
    assert (columns["colour"].tolist(), columns["is_new"].tolist()) == (["red", ""], [1, 0])
    assert np.isnan(columns["width"][1])
    assert np.isnat(columns["day"][1])


@pytest.mark.parametrize("X", [np.zeros((2, 2)), pd.DataFrame(np.zeros((2, 2))), [[1, 2]]])
def test_columns_without_names_are_no_table(X):
    assert table_in(X) is None


def test_a_data_frame_of_anything_is_refused_in_one_line():
    with pytest.raises(DataError, match="X cannot be read as a table") as caught:
        table_in(pd.DataFrame({"a": [object(), object()]}))
    assert "\n" not in str(caught.value)
