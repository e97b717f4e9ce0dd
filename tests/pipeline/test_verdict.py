"""Which score decides: that of g and the filter together, or of g alone."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.pipeline.audit.held_back import join_held_back
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence
from s2osc.pipeline.filter.distinctness import Units
from s2osc.pipeline.filter.screening import Filtered
from s2osc.pipeline.teacher import TeacherOutputs
from s2osc.pipeline.verdict import finds_more_alone, joint_score
from s2osc.types import Labelled

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


def filtered_by(score: np.ndarray) -> Filtered:
    nothing = np.zeros((len(score), 1))
    outputs = TeacherOutputs(nothing, score, score, nothing)
    return Filtered(outputs, outputs, Units(1.0, 1.0), w=score, score=score)


def joint(by_filter: np.ndarray, odds: np.ndarray, skill: float = 1.0) -> np.ndarray:
    labelled = Labelled(np.zeros((0, 1)), np.zeros(0, int))
    pooled = join_held_back(np.zeros((len(odds), 1)), labelled, seed=0)
    return joint_score(odds, replace(filtered_by(by_filter), skill=skill), pooled)


def test_the_joint_score_is_the_mean_log_odds_of_both_ranks_g_twice():
    # ranks 1/4, 2/4, 3/4: log-odds -log 3, 0, log 3
    found = joint(np.array([1.0, 2.0, 3.0]), np.array([7.0, 9.0, 8.0]))
    log_3 = np.log(3)
    assert found == pytest.approx([-log_3, (0 + 2 * log_3) / 3, (log_3 + 0) / 3])


def test_the_filter_counts_by_the_square_of_what_the_inputs_know():
    found = joint(np.array([1.0, 2.0, 3.0]), np.array([7.0, 9.0, 8.0]), skill=0.5)
    log_3 = np.log(3)
    assert found == pytest.approx([-log_3, (0 + 2 * log_3) / 2.25, (0.25 * log_3 + 0) / 2.25])
    by_g = joint(np.array([1.0, 2.0, 3.0]), np.array([7.0, 9.0, 8.0]), skill=0.0)
    assert by_g == pytest.approx([-log_3, log_3, 0])


def test_what_g_ranks_above_nearly_all_stands_above_what_is_a_little_strange_to_both():
    by_filter = odds = np.arange(10_000.0)
    found = joint(np.append(by_filter, [9_500.5, 9_700.5]), np.append(odds, [9_990.5, 9_700.5]))
    strange_to_g, strange_to_both = found[-2:]
    assert strange_to_g > strange_to_both  # mean ranks of 2 : 1 would have it the other way round
