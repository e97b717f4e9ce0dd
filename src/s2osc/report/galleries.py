"""Choose the items a person should look at first."""

import numpy as np

from s2osc.types import Answer

GALLERY_ITEMS = 24
MANY_GROUPS = 8  # from here on each group shows fewer items


def most_distinct(answer: Answer) -> np.ndarray:
    """The items farthest from every known class, among those called unknown or filtered."""
    candidates = np.flatnonzero(answer.is_unknown | answer.filtered)
    order = np.argsort(-answer.distinctness[candidates], kind="stable")
    return candidates[order][:GALLERY_ITEMS]


def least_sure(answer: Answer) -> np.ndarray:
    """The items whose label is the closest call."""
    return np.argsort(answer.confidence, kind="stable")[:GALLERY_ITEMS]


def typical(answer: Answer, embeddings: np.ndarray) -> list[np.ndarray]:
    """For each group, the items nearest to its centre in the embedding."""
    n_groups = int(answer.groups.max()) + 1
    n_items = GALLERY_ITEMS // 2 if n_groups < MANY_GROUPS else GALLERY_ITEMS // 4
    chosen = []
    for group in range(n_groups):
        members = np.flatnonzero(answer.groups == group)
        vectors = embeddings[members].astype(np.float64)
        # The mean of an empty group is undefined; it has no typical items either.
        centre = vectors.mean(axis=0) if len(members) else 0.0
        distance = np.linalg.norm(vectors - centre, axis=1)
        chosen.append(members[np.argsort(distance, kind="stable")][:n_items])
    return chosen
