"""The groups of the unknown items of a pool, compared with known items."""

import numpy as np

from s2osc.nets.networks import one_vector
from s2osc.nets.training import outputs
from s2osc.pipeline.audit.calibration import Pool
from s2osc.pipeline.audit.record import GroupsAudit
from s2osc.pipeline.grouping.clusters import ClusterSettings, Grouping, group_unknown
from s2osc.pipeline.grouping.rotation import Pictures
from s2osc.pipeline.grouping.space import GroupingSpace, fit_space
from s2osc.pipeline.teacher import Teacher, TeacherOutputs
from s2osc.seeding import rng
from s2osc.types import Labelled

N_COMPARED = 2_000
"""Known items that calibrate the grouping, where none were held back."""


def group_pool(
    teacher: Teacher,
    training: Labelled,
    pooled: Pool,
    teacher_outputs: TeacherOutputs,
    is_unknown: np.ndarray,
    settings: ClusterSettings,
    *,
    seed: int,
) -> tuple[GroupingSpace, Grouping]:
    """Group the unknown items, compared with held-back items or with training items of f."""
    if pooled.is_calibrated:
        labels = pooled.held_back_labels
        known = (
            one_vector(pooled.of_held_back(pooled.inputs)),
            pooled.of_held_back(teacher_outputs.embeddings),
        )
    else:
        rows = rng(seed, "compared").permutation(len(training))[:N_COMPARED]
        labels = training.labels[rows]
        inputs = training.inputs[rows]
        of_known = outputs(teacher.network, inputs, what="f answers")
        known = one_vector(inputs), of_known.embeddings
    rows = np.flatnonzero(is_unknown)
    unknown = one_vector(pooled.inputs[rows]), teacher_outputs.embeddings[rows]
    space = fit_space(known, labels, unknown, seed=seed)
    pictures = None
    if unknown[0].ndim > 2:
        pictures = Pictures(unknown[0], space, seed), Pictures(known[0], space, seed)
    grouping = group_unknown(
        unknown=space.transform(*unknown),
        known=space.transform(*known),
        labels=labels,
        settings=settings,
        seed=seed,
        pictures=pictures,
    )
    return space, grouping


def audit_groups(grouping: Grouping) -> GroupsAudit:
    """What the audit says about the groups."""
    return GroupsAudit(
        number=grouping.n_groups,
        low=grouping.n_low,
        high=grouping.n_high,
        stability=tuple(round(float(value), 3) for value in grouping.stability),
        tightness=tuple(round(float(value), 3) for value in grouping.tightness),
    )
