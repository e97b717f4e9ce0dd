"""What items are features of: found by the features, and only what is needed."""

import numpy as np
import pytest

from s2osc.stream.originals import Originals

FEATURES = np.arange(12, dtype=np.float32).reshape(4, 3)
PHOTOS = np.arange(4 * 2 * 2 * 3, dtype=np.uint8).reshape(4, 2, 2, 3)


@pytest.mark.parametrize("items", [PHOTOS, np.array(["a", "b", "c", "d"], object)])
def test_items_are_found_by_their_features_in_any_order(items):
    originals = Originals.of(FEATURES, items)
    order = [2, 0, 2]
    np.testing.assert_array_equal(originals.find(FEATURES[order].copy()), items[order])


def test_where_one_is_not_known_nothing_is_found():
    originals = Originals.of(FEATURES[:3], PHOTOS[:3])
    assert originals.find(FEATURES) is None
    assert originals.find(FEATURES[:3] + 1e-6) is None


def test_only_what_is_needed_stays_and_each_once():
    originals = Originals.of(FEATURES, PHOTOS).followed_by(Originals.of(FEATURES[:1], PHOTOS[:1]))
    few = originals.only(FEATURES[[1, 3]], FEATURES[[3]], FEATURES[:0], FEATURES[:1] + 5)
    assert len(few.items) == 2
    np.testing.assert_array_equal(few.find(FEATURES[[3, 1]]), PHOTOS[[3, 1]])


@pytest.mark.parametrize(
    ("keys", "items"),
    [
        (np.zeros((3, 16), np.uint8), PHOTOS),
        (np.zeros((4, 16), np.float32), PHOTOS),
        (np.zeros((4, 16), np.uint8), PHOTOS.reshape(4, -1)),
    ],
    ids=["too few", "no bytes", "no photos"],
)
def test_what_does_not_fit_together_is_refused(keys, items):
    with pytest.raises(ValueError, match="shape"):
        Originals.restored(keys, items)
