"""The nouns check what enters."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from s2osc.errors import DataError, ModelError, OutputError, S2OSCError, SettingsError
from s2osc.types import UNKNOWN, Answer, Labelled, check_inputs


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


def test_large_values_are_not_taken_for_infinite_ones():
    vectors = np.full((2, 500), 3e38, np.float32)
    np.testing.assert_array_equal(check_inputs(vectors, "the pool"), vectors)


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
