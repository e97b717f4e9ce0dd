"""Which items groups are found with."""

import numpy as np

from s2osc.pipeline.grouping.item_selection import MISTAKEN, mistaken_rows
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
