"""Which score decides: that of g and the filter together, or of g alone."""

import numpy as np
import pytest

from s2osc.pipeline.audit.decision import DecisionSettings, Evidence
from s2osc.pipeline.verdict import finds_more_alone

SETTINGS = DecisionSettings(rule="seeds")


def scores(gap: float, n_calibration: int, seed: int) -> np.ndarray:
    """Of 700 known and 300 unknown items of a pool, which lie a gap above, then of known ones."""
    found = np.random.default_rng(seed).standard_normal(1_000 + n_calibration)
    found[700:1_000] += gap
    return found


def evidence(score: np.ndarray, p_value: float = 1e-6) -> Evidence:
    m = len(score) - 1_000
    return Evidence(
        score=score[:1_000],
        nearest=np.zeros(1_000, int),
        nearest_confidence=np.ones(1_000),
        seed_score=score[1_000:],
        seed_label=np.zeros(m, int),
        seed_nearest=np.zeros(m, int),
        seed_weight=np.ones(m),
        p_value=p_value,
    )


@pytest.mark.parametrize("seed", range(5))
def test_g_decides_alone_where_it_finds_clearly_more(seed):
    odds, both = scores(4.0, 500, seed), scores(2.0, 500, seed + 100)
    assert finds_more_alone(odds, evidence(both), SETTINGS, seed=0)
    assert not finds_more_alone(both, evidence(odds), SETTINGS, seed=0)


def test_g_hardly_ever_decides_alone_by_chance():
    alone = [
        finds_more_alone(
            scores(2.0, 500, seed), evidence(scores(2.0, 500, seed + 100)), SETTINGS, seed=0
        )
        for seed in range(40)
    ]
    assert sum(alone) <= 5


def test_the_same_score_is_no_better():
    both = scores(2.0, 100, 0)
    assert not finds_more_alone(both, evidence(both), SETTINGS, seed=0)


def test_few_calibration_items_do_not_tell():
    odds, both = scores(2.5, 20, 0), scores(2.0, 20, 100)
    assert not finds_more_alone(odds, evidence(both), SETTINGS, seed=0)


def test_where_nothing_is_found_nothing_is_better():
    odds, both = scores(4.0, 500, 0), scores(2.0, 500, 100)
    assert not finds_more_alone(odds, evidence(both, p_value=0.5), SETTINGS, seed=0)
