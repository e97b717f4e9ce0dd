"""The groups of the unknown items of a pool, compared with known items."""

import numpy as np

from s2osc.arrays import in_one_thread
from s2osc.nets.networks import one_vector
from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.audit.record import GroupsAudit
from s2osc.pipeline.grouping.clusters import ClusterSettings, Grouping, group_unknown
from s2osc.pipeline.grouping.space import GroupingSpace, fit_space
from s2osc.seeding import rng
from s2osc.types import Labelled

N_COMPARED = 2_000
"""Labelled items that tell what a class looks like."""


@in_one_thread
def group_pool(
    training: Labelled,
    pooled: Pool,
    is_unknown: np.ndarray,
    settings: ClusterSettings,
    *,
    seed: int,
) -> tuple[GroupingSpace, Grouping]:
    """Group the unknown items; all labelled items, held back or not, tell what a class is."""
    labels = np.concatenate([training.labels, pooled.held_back_labels])
    rows = rng(seed, "compared").permutation(len(labels))[:N_COMPARED]
    is_training = rows < len(training)
    known = np.concatenate(
        [
            one_vector(training.inputs[rows[is_training]]),
            one_vector(pooled.of_held_back(pooled.inputs)[rows[~is_training] - len(training)]),
        ]
    )
    labels = np.concatenate([labels[rows[is_training]], labels[rows[~is_training]]])
    unknown = one_vector(pooled.of_pool(pooled.inputs)[is_unknown])
    space = fit_space(known, labels, unknown, seed=seed)
    grouping = group_unknown(
        unknown=space.place(unknown),
        known=space.place(known),
        labels=labels,
        settings=settings,
        seed=seed,
    )
    return space, grouping


def audit_groups(grouping: Grouping) -> GroupsAudit:
    """What the audit says about the groups."""
    spreads = tuple(round(float(value), 3) for value in grouping.spreads)
    return GroupsAudit(
        grouping.tree, grouping.groups, spreads, grouping.n_episodes, grouping.evidence
    )
