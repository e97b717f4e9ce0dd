"""What labelled items are for where a pool is too large to fit on: to teach, or to judge."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from s2osc.pipeline.audit.held_back import SeedSettings, hold_back
from s2osc.pipeline.sampling import N_REFERENCES
from s2osc.seeding import rng
from s2osc.types import Labelled

MOST_JUDGES = 3_000
"""Calibration items of each class: rare classes need many, and the fit does not see them."""


class Roles(NamedTuple):
    """The labelled items by what they are for."""

    training: Labelled  # all that f learns from; references among them
    references: np.ndarray  # rows of the training items that strangeness is measured from
    held_back: Labelled  # spies and calibration items of the sample
    calibration: Labelled  # of the whole pool
    held_back_weights: np.ndarray  # (C,) labelled items over held-back ones, relatively
    calibration_weights: np.ndarray  # (C,)

    @property
    def everyone(self) -> Labelled:
        """All labelled items."""
        parts = (self.training, self.held_back, self.calibration)
        return Labelled(
            np.concatenate([part.inputs for part in parts]),
            np.concatenate([part.labels for part in parts]),
        )

    @property
    def others(self) -> Labelled:
        """All but the references: to strangeness they are as items of the pool."""
        is_other = np.ones(len(self.everyone), bool)
        is_other[self.references] = False
        return Labelled(self.everyone.inputs[is_other], self.everyone.labels[is_other])


def assign_roles(known: Labelled, settings: SeedSettings, *, seed: int) -> Roles:
    """Hold items back twice: those that judge the whole pool, then those of the sample."""
    of_pool = replace(settings, per_class=max(settings.per_class, MOST_JUDGES))
    rest, calibration, calibration_weights = _held(known, of_pool, seed, "calibration of all")
    training, held_back, held_back_weights = _held(rest, settings, seed, "seeds")
    n = min(N_REFERENCES, len(training) // 2)
    references = np.sort(rng(seed, "references").permutation(len(training))[:n])
    return Roles(
        training, references, held_back, calibration, held_back_weights, calibration_weights
    )


def _held(
    items: Labelled, settings: SeedSettings, seed: int, purpose: str
) -> tuple[Labelled, Labelled, np.ndarray]:
    """What stays, what is held back, and how many items each held-back one stands for."""
    rows = hold_back(items.labels, settings, rng(seed, purpose))
    stays = np.ones(len(items), bool)
    stays[rows] = False
    n_of_class = np.bincount(items.labels)
    n_held = np.bincount(items.labels[rows], minlength=len(n_of_class))
    weights = n_of_class / np.maximum(n_held, 1)
    return (
        Labelled(items.inputs[stays], items.labels[stays]),
        Labelled(items.inputs[rows], items.labels[rows]),
        weights / weights.min(),
    )
