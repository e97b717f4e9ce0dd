"""Of the changes that are tried, the one that is no better by chance alone."""

import numpy as np
import pytest

from s2osc.pipeline.filter.signs import InputSigns
from s2osc.pipeline.sources.best_change import by_chance, find_change
from s2osc.pipeline.sources.changes import ColumnChange, KindChange

DEVIATIONS = np.array([1.0, 2.0, 0.0, 4.0])


def test_every_offset_that_is_fitted_takes_its_share_of_the_misfit():
    def taken(offset):
        return by_chance(ColumnChange(np.array(offset), 0.1, DEVIATIONS))

    assert taken([0.0, 0.0, 0.0, 0.0]) == 0
    assert taken([0.1, 0.2, 0.0, 0.4]) == pytest.approx(2 / 4)
    assert taken([0.1, 0.2, 0.0, 0.3]) == 2
    assert by_chance(KindChange("noise", 8)) == 0


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_columns_that_moved_alike_are_not_given_offsets_of_their_own(share):
    random = np.random.default_rng(0)
    scales = np.linspace(1, 5, 12)
    items = random.normal(size=(600, 12)) * scales
    side = np.repeat(["pool", "judge", "spy"], 200)
    items[side == "pool"] += share * scales
    free = InputSigns(None, np.zeros(600, int), side == "spy", side == "judge")
    change, left = find_change(lambda rows: items[rows], free, np.ones(600, bool), seed=0)
    moved = change.offset / change.deviations
    np.testing.assert_allclose(moved, moved.mean(), atol=1e-9)
    assert moved.mean() == pytest.approx(share, abs=0.05)
    assert left < 0.5 or not share
