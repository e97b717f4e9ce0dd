"""Streams: what comes when, and what nobody sees."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.data.datasets import Dataset
from s2osc.data.streams import Stream, StreamProtocol, draw_stream
from s2osc.errors import DataError, SettingsError

SINGLE = StreamProtocol(held_out=5)
SMALL = StreamProtocol(sizes=(12, 4), held_out=5)
PARTS = StreamProtocol(arrival="parts", absent=0.3, sizes=(12, 4), held_out=5)


def make_numbered(n_per_class: int = 100, n_classes: int = 10) -> Dataset:
    """Images of one pixel row that tell which item of the data set they are."""
    n = n_per_class * n_classes
    inputs = np.stack([np.arange(n) // 256, np.arange(n) % 256], 1).astype(np.uint8)[:, None]
    names = tuple("abcdefghijklmnopqrst"[:n_classes])
    return Dataset("numbered", inputs, np.arange(n) % n_classes, names, n_train=n, flip=False)


def items_of(inputs: np.ndarray) -> list[int]:
    return [int(a) * 256 + int(b) for a, b in inputs[:, 0]]


def everything(stream: Stream) -> list[int]:
    parts = [stream.known.inputs, *(w.inputs for w in stream.windows), stream.test.inputs]
    return [item for part in parts for item in items_of(part)]


@pytest.mark.parametrize("protocol", [SINGLE, SMALL, PARTS], ids=["all", "sized", "parts"])
@pytest.mark.parametrize("seed", range(4))
def test_no_item_comes_twice_and_every_item_is_of_the_class_it_is_called(protocol, seed):
    dataset = make_numbered()
    stream = draw_stream(dataset, protocol, seed)
    drawn = everything(stream)
    assert len(set(drawn)) == len(drawn)
    numbers = np.array(stream.class_numbers)
    for inputs, labels in (
        (stream.known.inputs, stream.known.labels),
        *stream.windows,
        stream.test,
    ):
        np.testing.assert_array_equal(dataset.labels[items_of(inputs)], numbers[labels])


def test_half_of_the_classes_are_known_and_one_more_comes_with_every_window():
    stream = draw_stream(make_numbered(), SINGLE, seed=3)
    assert stream.known.n_classes == 5
    assert stream.emerges.tolist() == [0, 0, 0, 0, 0, 1, 2, 3, 4, 5]
    assert sorted(stream.class_numbers) == list(range(10))
    assert [stream.n_known_before(window) for window in range(1, 7)] == [5, 6, 7, 8, 9, 10]
    for number, window in enumerate(stream.windows, 1):
        assert np.unique(window.truth).tolist() == list(range(5 + number))


def test_of_a_known_class_half_is_labelled_and_the_rest_streams_evenly_to_the_end():
    """Of 100 items 5 are for the test; 48 are labelled, and 47 come in five windows."""
    stream = draw_stream(make_numbered(), SINGLE, seed=0)
    assert np.bincount(stream.known.labels).tolist() == [48] * 5
    assert (stream.timeline[:5] == 9).all()
    assert stream.timeline[7].tolist() == [0, 0, 31, 31, 31]  # all 95 of a class that emerges
    assert np.bincount(stream.test.truth).tolist() == [5] * 10


def test_sizes_are_those_asked_for():
    stream = draw_stream(make_numbered(), SMALL, seed=0)
    assert np.bincount(stream.known.labels).tolist() == [12] * 5
    assert set(stream.timeline.ravel().tolist()) == {0, 4}


def test_a_class_with_too_few_items_shrinks_in_proportion():
    stream = draw_stream(make_numbered(60), replace(SMALL, sizes=(600, 300)), seed=0)
    n_training, rate = np.bincount(stream.known.labels)[0], stream.timeline[0, 0]
    assert (n_training, rate) == (15, 7)  # of 55 where 2,100 were asked for
    assert stream.timeline[9].tolist() == [0, 0, 0, 0, 7]  # as many as of any other


def test_the_same_seed_draws_the_same_stream_and_another_one_does_not():
    first, again, other = (draw_stream(make_numbered(), PARTS, seed) for seed in (1, 1, 2))
    assert everything(first) == everything(again)
    assert first.class_numbers == again.class_numbers
    assert everything(first) != everything(other)


def test_windows_mix_their_classes():
    truth = draw_stream(make_numbered(), SINGLE, seed=0).windows[4].truth
    assert (np.diff(truth) < 0).sum() > 10


def test_parts_of_the_new_classes_are_not_empty_and_there_are_one_to_five():
    streams = [draw_stream(make_numbered(), PARTS, seed) for seed in range(30)]
    for stream in streams:
        arriving = [np.sum(stream.emerges == t + 1) for t in range(len(stream.windows))]
        assert min(arriving) >= 1
        assert sum(arriving) == 5
    assert {len(stream.windows) for stream in streams} == {1, 2, 3, 4, 5}


def test_known_classes_may_stay_away_but_never_all_and_new_ones_never():
    absences = 0
    for seed in range(20):
        stream = draw_stream(make_numbered(), replace(PARTS, absent=0.8), seed)
        for number, window in enumerate(stream.windows, 1):
            there = np.unique(window.truth)
            n_known = stream.n_known_before(number)
            assert np.sum(there < n_known) >= 2
            assert set(np.flatnonzero(stream.emerges == number)) <= set(there)
            absences += n_known - np.sum(there < n_known)
    assert absences > 50


def test_a_long_stream_has_new_classes_every_few_windows_and_old_ones_all_along():
    protocol = StreamProtocol(every=4, n_windows=20, sizes=(10, 2), held_out=5)
    stream = draw_stream(make_numbered(), protocol, seed=0)
    assert len(stream.windows) == 20
    assert stream.emerges.tolist() == [0] * 5 + [1, 5, 9, 13, 17]
    assert (stream.timeline[:5] == 2).all()


def test_a_short_stream_leaves_later_classes_out():
    stream = draw_stream(make_numbered(), replace(SMALL, n_windows=2), seed=0)
    assert stream.n_classes == 7
    assert stream.test.truth.max() == 6


def test_classes_with_next_to_nothing_are_refused_by_name():
    with pytest.raises(
        DataError, match=r"class . of numbered has 7 items, too few for a stream of"
    ):
        draw_stream(make_numbered(7), SINGLE, seed=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"arrival": "two"}, "the arrival is 'two'"),
        ({"every": 0}, "every 0 windows"),
        ({"n_windows": 0}, "0 windows; give 1 or more"),
        ({"absent": 1.0}, "absent is 1.0"),
        ({"training_share": 0.0}, "training_share 0.0"),
    ],
)
def test_a_protocol_that_cannot_be_drawn_is_refused(wrong, message):
    with pytest.raises(SettingsError, match=message):
        StreamProtocol(**wrong)


@pytest.mark.parametrize("n_known", [1, 10])
def test_there_is_something_known_and_something_to_emerge(n_known):
    with pytest.raises(SettingsError, match=f"{n_known} of 10 classes are known"):
        draw_stream(make_numbered(), replace(SINGLE, n_known=n_known), seed=0)


@pytest.mark.parametrize("seed", range(8))
def test_classes_that_come_in_parts_come_in_no_more_windows_than_there_are(seed):
    protocol = StreamProtocol(arrival="parts", n_windows=2)
    arrivals = protocol.draw_arrivals([5, 6, 7, 8, 9], seed=seed)
    assert len(arrivals) == 2
    assert sorted(c for window in arrivals for c in window) == [5, 6, 7, 8, 9]
