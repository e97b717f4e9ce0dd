"""How far groups are apart."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from s2osc.pipeline.grouping.separation import k_means, number_by_silhouette, silhouettes
from samples import make_blobs

BLOBS, CLASSES = make_blobs(60, 4, distance=9.0)


@pytest.mark.parametrize("n", [2, 5])
def test_silhouettes_are_those_of_scikit_learn(n):
    rows = BLOBS[::5].astype(np.float64)
    groups = np.arange(len(rows)) % n
    groups[-1] = n  # the last item alone
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    np.testing.assert_allclose(silhouettes(distances, groups), silhouette_samples(rows, groups))


def test_k_means_finds_blobs_from_groups_that_mix_a_few_of_them():
    groups = CLASSES.copy()
    groups[::7] = (groups[::7] + 1) % 4
    assert adjusted_rand_score(k_means(BLOBS, groups), CLASSES) == 1


@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_silhouette_has_the_number_of_blobs(n):
    assert number_by_silhouette(make_blobs(40, n, distance=9.0)[0], most=15) == n


def test_items_that_are_all_the_same_are_one_group_by_silhouette():
    assert number_by_silhouette(np.ones((9, 3)), most=1) == 1
