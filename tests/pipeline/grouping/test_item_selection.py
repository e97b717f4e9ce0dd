"""Which items groups are found with."""

import numpy as np

from s2osc.pipeline.grouping.item_selection import MISTAKEN, apart_from_known, mistaken_rows
from samples import make_blobs


def test_known_items_taken_for_unknown_lie_farther_out_than_others():
    known, _ = make_blobs(200, 3, distance=9.0)
    centres = known.reshape(3, 200, -1).mean(1).repeat(200, axis=0)
    far = np.linalg.norm(known - centres, axis=1)
    rows = mistaken_rows(known, np.random.default_rng(0))
    assert len(np.unique(rows)) == len(rows) == MISTAKEN * len(known)
    assert far[rows].mean() > 1.2 * far.mean()


def test_of_a_handful_of_known_items_none_is_mistaken():
    assert len(mistaken_rows(np.ones((5, 2)), np.random.default_rng(0))) == 0


def test_a_new_class_is_not_surrounded_only_because_a_known_one_has_more_items():
    random = np.random.default_rng(0)
    known = random.normal(size=(400, 20)).astype(np.float32)
    beside = random.normal(size=(60, 20)).astype(np.float32)
    beside[:, 0] += 3
    far = random.normal(size=(60, 20)).astype(np.float32)
    far[:, 0] -= 12
    is_apart = apart_from_known(np.concatenate([beside, far]), known)
    assert is_apart[:60].mean() > 0.8
    assert is_apart[60:].all()


def test_an_item_among_known_ones_is_not_apart_from_them():
    random = np.random.default_rng(0)
    known = random.normal(size=(400, 5)).astype(np.float32)
    items = random.normal(size=(100, 5)).astype(np.float32)
    items[10:, 0] += 30
    is_apart = apart_from_known(items, known)
    assert not is_apart[:10].any()
    assert is_apart[10:].all()
