"""How many groups there are: what is learnt from episodes."""

import numpy as np
import pytest

from s2osc.pipeline.grouping.classes import usual_class, walks_within
from s2osc.pipeline.grouping.evidence import (
    MEASURES,
    MOST_GROUPS,
    PRIOR,
    find_parts,
    measure_numbers,
)
from s2osc.pipeline.grouping.number import (
    DEFAULT,
    EPISODES,
    Choice,
    NumberModel,
    fit_weights,
    learn_number,
    try_episodes,
)
from s2osc.pipeline.grouping.space import Placed
from samples import make_blobs

pytestmark = pytest.mark.usefixtures("just_as_users_get_it")
BLOBS, CLASSES = make_blobs(60, 5, distance=9.0)


def random():
    return np.random.default_rng(0)


WALKS = walks_within(BLOBS, CLASSES, random())


def chances(model, items):
    parts = find_parts(items, MOST_GROUPS, random())
    usual = usual_class(BLOBS, CLASSES, WALKS)
    return model.chances(measure_numbers(Placed(items, items), parts, usual))


def test_the_number_of_blobs_is_found_and_its_chances_add_up_to_one():
    model = learn_number(BLOBS, CLASSES, WALKS, random())
    assert model.n_episodes == 18
    for n in (1, 3):
        found = chances(model, make_blobs(60, n, distance=9.0, seed=5)[0])
        assert found.sum() == pytest.approx(1)
        assert found.argmax() + 1 == n


def test_mistaken_items_are_no_group_of_an_episode():
    choices = try_episodes(*make_blobs(60, 5, distance=12.0), WALKS, EPISODES, random())
    several = [choice for choice in choices if choice.right > 1]
    silhouettes = list(MEASURES).index("silhouette in the modes")
    found = [1 + choice.measures[:, silhouettes].argmax() for choice in several]
    assert found == [choice.right for choice in several]


def test_without_episodes_the_weights_are_the_default_ones():
    model = learn_number(BLOBS[:10], CLASSES[:10], WALKS, random())
    assert model.n_episodes == 0
    np.testing.assert_array_equal(model.weights, DEFAULT)
    found = chances(model, make_blobs(60, 3, distance=9.0, seed=5)[0])
    assert found.argmax() + 1 == 3


def test_how_many_classes_episodes_hide_does_not_change_how_likely_a_number_is_beforehand():
    model = learn_number(BLOBS, CLASSES, WALKS, random())
    held = [name in PRIOR for name in MEASURES]
    np.testing.assert_array_equal(model.weights[held], DEFAULT[held])
    assert (model.weights != DEFAULT).any()


def test_weights_follow_what_tells_the_right_number():
    """Where the first measure is highest at the right number, it alone gets a weight."""
    choices = [Choice(np.eye(3, len(MEASURES)), 1)] * 20
    weights = fit_weights(choices, np.zeros(len(MEASURES)), 1.0)
    assert weights[0] > 1
    assert weights[0] > weights[1:].max()
    assert NumberModel(weights).chances(choices[0].measures).argmax() == 0


def test_weights_stay_at_the_default_ones_where_little_speaks_against_them():
    choices = [Choice(np.eye(3, len(MEASURES)), 1)]
    weights = fit_weights(choices, DEFAULT, 1e6)
    np.testing.assert_allclose(weights, DEFAULT, atol=1e-4)
