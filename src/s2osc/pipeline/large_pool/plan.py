"""What is fixed before a large pool is fitted on: roles of labelled items, and rows of the pool."""

from typing import NamedTuple

import numpy as np

from s2osc.errors import SettingsError
from s2osc.pipeline.audit.held_back import SeedSettings
from s2osc.pipeline.large_pool.roles import Roles, assign_roles
from s2osc.pipeline.sampling import (
    SKIPPED,
    Drawn,
    Strangeness,
    draw_at_rates,
    draw_evenly,
    draw_strata,
    fit_strangeness,
)
from s2osc.settings import FIT_ON
from s2osc.types import Labelled

FEWEST_FIT = 500
N_JUDGED = 200_000
"""Items of the pool, drawn evenly, that threshold and audit rest on: a share of one in a thousand
is then known to a fifteenth of it, and the audit's resampling takes seconds."""
MOST_COMPARED, MOST_COMPARED_BYTES = 2_000, 2**27
"""Photos or texts of the pool, drawn evenly, that labelled ones are compared with as such."""


def check_fit_on(fit_on: int) -> int:
    if fit_on < FEWEST_FIT:
        raise SettingsError(
            f"fit-on is {fit_on}; give a number of items from {FEWEST_FIT}, such as {FIT_ON}"
        )
    return fit_on


class Plan(NamedTuple):
    """What is fixed before the pool is read."""

    roles: Roles
    strangeness: Strangeness
    calibration_strata: np.ndarray
    fit_on: int
    seed: int


def plan_fit(known: Labelled, settings: SeedSettings, *, fit_on: int, seed: int) -> Plan:
    """The roles of the labelled items, and how strangeness is measured."""
    roles = assign_roles(known, settings, seed=seed)
    training = roles.training
    references = Labelled(training.inputs[roles.references], training.labels[roles.references])
    strangeness = fit_strangeness(references, roles.others.inputs)
    strata = strangeness.strata(roles.calibration.inputs)
    return Plan(roles, strangeness, strata, check_fit_on(fit_on), seed)


class Sample(NamedTuple):
    """Rows of the pool and of the calibration items that the method is fitted on."""

    strangeness: Strangeness  # by which it was drawn
    drawn: Drawn  # rows of the pool, then calibration items
    n_pool: int
    pool: np.ndarray  # rows of the pool, sorted
    calibration: np.ndarray  # rows of the calibration items
    judged: np.ndarray  # rows of the pool, drawn evenly, sorted

    def weights(self, items: Labelled) -> np.ndarray:
        """(n,) how often items that are as strange as these are in the sample."""
        return self.drawn.weights(self.strangeness.strata(items.inputs))

    def with_calibration(self, calibration: Labelled, *, seed: int) -> "Sample":
        """The same rows of the pool; of these items as many as of items that are as strange."""
        n, drawn = len(self.pool), self.drawn
        strata = self.strangeness.strata(calibration.inputs)
        again = draw_at_rates(strata, drawn.rates, seed=seed)
        rows, is_even = (
            np.append(of_pool[:n], of_calibration)
            for of_pool, of_calibration in (
                (drawn.rows, self.n_pool + again.rows),
                (drawn.is_even, again.is_even),
            )
        )
        return self._replace(
            drawn=drawn._replace(rows=rows, is_even=is_even), calibration=again.rows
        )


def draw_compared(n_rows: int, item_bytes: int, *, seed: int) -> np.ndarray:
    """Rows of the pool, drawn evenly, whose photos or texts tell what its source is like."""
    return draw_evenly(n_rows, min(MOST_COMPARED, MOST_COMPARED_BYTES // item_bytes), seed=seed)


def draw_judged(plan: Plan, n_rows: int, n: int = N_JUDGED) -> np.ndarray:
    """Rows of the pool, drawn evenly, that are to judge the fit: known before any is read."""
    return draw_evenly(n_rows, n, seed=plan.seed)


def draw_sample(plan: Plan, strata: np.ndarray, judged: np.ndarray | None = None) -> Sample:
    """From the stratum of each item of the pool; calibration items stand after it.

    ``judged`` are rows that were drawn before, among them some that cannot be read.
    """
    everyone = np.concatenate([strata, plan.calibration_strata])
    drawn = draw_strata(everyone, plan.strangeness.n_strata, plan.fit_on, seed=plan.seed)
    is_pool = drawn.rows < len(strata)
    judged = draw_judged(plan, len(strata)) if judged is None else judged
    return Sample(
        strangeness=plan.strangeness,
        drawn=drawn,
        n_pool=len(strata),
        pool=drawn.rows[is_pool],
        calibration=drawn.rows[~is_pool] - len(strata),
        judged=judged[strata[judged] != SKIPPED],
    )
