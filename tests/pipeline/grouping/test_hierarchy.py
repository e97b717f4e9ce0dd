"""Trees of some items, freely or around groups."""

import itertools

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from s2osc.pipeline.grouping.hierarchy import merges_around, top_of_tree
from samples import make_blobs

BLOBS, CLASSES = make_blobs(60, 4, distance=9.0)


def cuts(merges, n_leaves=9):
    tree, leaves = top_of_tree(merges, n_leaves)
    return [np.array(tree.cut(n))[leaves] for n in range(1, n_leaves + 1)]


def test_the_cuts_of_the_tree_are_those_of_the_hierarchy():
    merges = linkage(BLOBS, "ward")
    for n, own in enumerate(cuts(merges), start=1):
        assert adjusted_rand_score(own, fcluster(merges, n, "maxclust")) == 1


def test_a_tree_around_its_own_groups_is_the_tree():
    merges = linkage(BLOBS, "ward")
    around = merges_around(BLOBS, fcluster(merges, 4, "maxclust") - 1)
    for own, again in zip(cuts(merges), cuts(around), strict=True):
        assert adjusted_rand_score(own, again) == 1


def test_given_groups_are_a_cut_and_all_cuts_are_nested():
    given = np.arange(len(BLOBS)) % 3
    found = cuts(merges_around(BLOBS, given))
    assert adjusted_rand_score(found[2], given) == 1
    for n, (coarse, fine) in enumerate(itertools.pairwise(found), start=1):
        assert len(np.unique(coarse)) == n
        assert len(np.unique(np.stack([coarse, fine]), axis=1).T) == n + 1
