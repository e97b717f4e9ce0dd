"""What one class looks like by itself."""

import numpy as np
import pytest

from s2osc.pipeline.grouping.classes import (
    REACHES,
    USUAL_WALK,
    class_spread,
    usual_class,
    walks_within,
)
from samples import make_blobs

pytestmark = pytest.mark.usefixtures("as_users_get_it")
BLOBS, CLASSES = make_blobs(60, 3, distance=9.0)


def random():
    return np.random.default_rng(0)


def test_the_spread_of_classes_is_the_mean_squared_distance_to_their_centres():
    rows = np.array([[0.0], [2.0], [10.0], [16.0]])
    assert class_spread(rows, np.array([0, 0, 1, 1])) == (1 + 9) / 2


def test_a_walk_with_a_longer_reach_is_faster():
    for walk in walks_within(BLOBS, CLASSES, random()).values():
        assert len(walk) == len(REACHES)
        assert (np.diff(walk) < 0).all()


def test_a_class_of_two_parts_is_slower_than_a_class_of_one():
    of_two = np.where(CLASSES == 2, 1, CLASSES)
    one, two = walks_within(BLOBS, of_two, random()).values()
    assert (two > one).all()


def test_classes_that_are_too_small_or_hidden_tell_nothing():
    assert walks_within(BLOBS[:10], CLASSES[:10], random()) == {}
    walks = walks_within(BLOBS, CLASSES, random())
    rest = usual_class(BLOBS[CLASSES > 0], CLASSES[CLASSES > 0], walks)
    np.testing.assert_allclose(rest.walk, (walks[1] + walks[2]) / 2)
    assert usual_class(BLOBS, CLASSES, {}).walk.tolist() == list(USUAL_WALK)


def test_the_walk_is_interpolated_between_reaches():
    usual = usual_class(BLOBS, CLASSES, {})
    assert usual.walk_at(REACHES[1]) == USUAL_WALK[1]
    assert USUAL_WALK[1] < usual.walk_at(0.07) < USUAL_WALK[0]
    assert usual.walk_at(1.0) == USUAL_WALK[-1]
