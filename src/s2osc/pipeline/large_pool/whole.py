"""The method for a pool in memory of any size."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from s2osc.pipeline.filter.distinctness import Partition
from s2osc.pipeline.large_pool.answer import answer_items, join_answers
from s2osc.pipeline.large_pool.fit import fit_sample
from s2osc.pipeline.large_pool.plan import check_fit_on, draw_compared, draw_sample, plan_fit
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import OpenSetModel
from s2osc.pipeline.solution import Solution, Trust
from s2osc.pipeline.sources.matched import RawItems
from s2osc.progress import Stopwatch
from s2osc.types import Labelled

T = TypeVar("T")


class OverRows(Protocol):
    """Works on the items of a pool in chunks, and gives what comes of each, in order."""

    def __call__(self, work: Callable[[np.ndarray], T], inputs: np.ndarray) -> list[T]: ...


def at_once(work: Callable[[np.ndarray], T], inputs: np.ndarray) -> list[T]:
    """Work on all items here, as one chunk."""
    return [work(inputs)]


def fit_large_pool(
    method: S2OSCMethod,
    known: Labelled,
    pool: np.ndarray,
    *,
    fit_on: int,
    seed: int,
    device: str = "cpu",
    over_rows: OverRows = at_once,
    raw: RawItems | None = None,
) -> Solution:
    """The method for a pool in memory, fitted on a sample of it if it has more items than that.

    ``over_rows`` does what is done with every item, chunk by chunk, here or elsewhere. ``raw``
    are the photos or texts that the items are features of; of a large pool some are compared.
    """
    check_fit_on(fit_on)
    if len(pool) <= fit_on:
        return method.fit(known, pool, seed=seed, device=device, raw=raw)
    clock, by_raw = Stopwatch(), None
    if raw is not None:
        with clock("sources"):
            rows = draw_compared(len(pool), raw.pool[:1].nbytes, seed=seed)
            some = raw._replace(pool=raw.pool[rows])
            by_raw = method.match_raw(known, pool[rows], some, seed=seed)
            known = known if by_raw is None else by_raw.training
    with clock("sample"):
        plan = plan_fit(known, method.seeds, fit_on=fit_on, seed=seed)
        sample = draw_sample(plan, np.concatenate(over_rows(plan.strangeness.strata, pool)))
    fit = fit_sample(
        method,
        plan,
        sample,
        pool[sample.pool],
        pool[sample.judged],
        clock,
        by_raw=by_raw,
        device=device,
    )
    with clock("answer"):
        parts = over_rows(partial(answer_items, fit, settings=method.decision), pool)
        answer, named, scores = join_answers(parts)
    model = fit.model
    leaves = np.full(len(pool), -1)
    if isinstance(model, OpenSetModel):
        with clock("groups"):
            leaves = model.leaves_of(model.scaling.transform(pool))
    trust = None
    if fit.audit is not None and fit.evidence is not None:
        evidence = replace(
            fit.evidence, score=scores.score, nearest=scores.nearest, nearest_confidence=named
        )
        is_g = isinstance(model, OpenSetModel)
        odds = np.concatenate([evidence.score, evidence.seed_score]) if is_g else None
        trust = Trust(evidence, fit.audit, odds)
    return Solution(
        model=model,
        answer=answer,
        partition=Partition(np.empty(0, int), np.arange(len(pool))),
        embeddings=scores.embeddings,
        nearest_confidence=named,
        leaves=leaves,
        k=fit.k,
        n_steps=fit.n_steps,
        seconds=clock.seconds,
        trust=trust,
    )
