"""The nouns check what enters."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from s2osc.errors import DataError, ModelError, OutputError, S2OSCError, SettingsError
from s2osc.types import LARGEST_INPUT, UNKNOWN, Answer, Labelled, check_inputs


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 3)])
def test_images_pass_as_they_are(shape):
    images = np.zeros(shape, np.uint8)
    assert check_inputs(images, "the pool") is images


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.float16, bool])
def test_vectors_of_any_number_become_single_precision(kind):
    vectors = check_inputs(np.ones((2, 3), kind), "the pool")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1.0] * 3] * 2


def test_vectors_in_any_memory_order_become_contiguous():
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3).T
    checked = check_inputs(vectors, "the pool")
    assert checked.flags.c_contiguous
    np.testing.assert_array_equal(checked, vectors)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (np.zeros((2, 4, 4)), "the pool holds images of type float64; give uint8"),
        (np.zeros((2, 4, 4, 4), np.uint8), "images with 4 channels"),
        (np.zeros(5), "the pool has 1 axes"),
        (np.zeros((1, 2, 3, 4, 5)), "the pool has 5 axes"),
        (np.array([[0, 1], [np.nan, 1]]), r"NaN or infinite values in 1 of 2 vectors .*row 1"),
        (np.array([[np.inf, 1], [0, np.inf]]), r"in 2 of 2 vectors .*row 0"),
        (np.array([[np.inf, -np.inf]]), "in 1 of 1 vectors"),
    ],
)
def test_inputs_that_cannot_be_used_are_described(inputs, words):
    with pytest.raises(DataError, match=words):
        check_inputs(inputs, "the pool")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_value_whose_square_would_overflow_is_named_with_its_place(kind):
    vectors = np.zeros((4, 7), kind)
    vectors[2, 5] = 3e38
    words = r"beyond 1e\+15 in 1 of 4 vectors \(first: row 2, column 5, 3e\+38\); bring that column"
    with pytest.raises(DataError, match=words):
        check_inputs(vectors, "the pool")


def test_a_value_too_large_for_single_precision_is_not_called_infinite():
    with pytest.raises(DataError, match=r"row 0, column 1, -1e\+300"):
        check_inputs(np.array([[0, -1e300]]), "the pool")


def test_the_largest_values_that_pass_have_finite_squared_distances():
    vectors = np.full((2, 10_000), LARGEST_INPUT, np.float32) * np.float32([[1], [-1]])
    passed = check_inputs(vectors, "the pool")
    assert np.isfinite(np.sum((passed[0] - passed[1]) ** 2, dtype=np.float32))


@pytest.mark.parametrize("kind", [complex, "U3", "S3", "datetime64[s]", "timedelta64[s]", "V4"])
def test_what_is_no_number_is_refused_by_its_type(kind):
    with pytest.raises(DataError, match=r"the pool holds values of type .*; give numbers"):
        check_inputs(np.zeros((2, 3), kind), "the pool")


def test_objects_are_taken_where_each_is_a_number():
    assert check_inputs(np.array([[1, 2.5]], object), "X").tolist() == [[1.0, 2.5]]


@pytest.mark.parametrize("value", ["a", None, [1], {}, 10**400])
def test_objects_that_are_no_numbers_are_refused(value):
    cells = np.zeros((1, 2), object)
    cells[0, 1] = value
    with pytest.raises(DataError, match=r"X (cannot be read as numbers|holds NaN)"):
        check_inputs(cells, "X")


def test_no_vectors_at_all_pass_as_none():
    assert check_inputs(np.zeros((0, 3)), "the window").shape == (0, 3)


def test_there_is_exactly_one_label_per_item():
    with pytest.raises(DataError, match="58 items came with 60 labels; give exactly one label"):
        Labelled(np.zeros((58, 2)), np.zeros(60, int))


def test_labelled_items_know_their_number_and_classes():
    labelled = Labelled(np.zeros((4, 2)), np.array([0, 2, 1, 2]))
    assert (len(labelled), labelled.n_classes) == (4, 3)
    with pytest.raises(FrozenInstanceError):
        labelled.labels = np.zeros(4, int)


def test_an_answer_says_which_items_are_unknown():
    zeros = np.zeros(3)
    answer = Answer(np.array([0, UNKNOWN, 2]), zeros, zeros, zeros - 1, zeros, zeros > 0)
    assert answer.is_unknown.tolist() == [False, True, False]


@pytest.mark.parametrize("error", [SettingsError, DataError, ModelError])
def test_errors_a_user_can_mend_are_value_errors_too(error):
    assert issubclass(error, S2OSCError)
    assert issubclass(error, ValueError)
    assert issubclass(OutputError, S2OSCError)
