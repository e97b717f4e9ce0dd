import re

import numpy as np
import pytest

from s2osc.report.scores import N_BINS, choose_axis, is_crowded, score_chart, shares

RANDOM = np.random.default_rng(0)


def heights(outline):
    """The tops of the bars, as shares of the highest."""
    corners = [tuple(map(float, point.split())) for point in re.split("[ML]", outline)[1:]]
    return np.array([100 - y for _, y in corners[1:-1:2]])


def test_seeds_and_pool_are_drawn_as_shares_on_one_scale():
    chart = score_chart(np.r_[np.zeros(300), np.ones(100)], np.zeros(10), None, None)
    pool, seeds = heights(chart.pool), heights(chart.seeds)
    assert len(pool) == len(seeds) == N_BINS
    assert (seeds[0], seeds[-1]) == (100, 0)
    assert (pool[0], pool[-1]) == pytest.approx((75, 25), abs=0.01)


def test_the_threshold_stands_at_its_score_and_the_caption_counts_what_lies_above():
    pool, seeds = np.linspace(0, 10, 1001), np.linspace(0, 8, 100)
    chart = score_chart(pool, seeds, 7.5, 2.5)
    scale = choose_axis(np.concatenate([pool, seeds]), [7.5, 2.5]).scale
    assert chart.threshold.left == pytest.approx(
        100 * (7.5 - scale.low) / (scale.high - scale.low), abs=0.01
    )
    assert chart.threshold.name == "unknown above 7.5"
    assert chart.sure_known.name == "known below 2.5"
    assert chart.sure_known.left < chart.threshold.left
    assert chart.caption.startswith("7.0% of the seeds and 25.0% of the pool lie above")


def test_probabilities_at_the_ends_are_pulled_apart():
    logits = RANDOM.normal(-5, 1, 1000)
    chances = 1 / (1 + np.exp(-logits))
    axis = choose_axis(chances, [0.5])
    assert axis.is_stretched
    assert (shares(chances, axis) > 0).sum() > N_BINS / 2
    assert [tick.text for tick in axis.ticks()][:2] == ["0.001", "0.01"]
    assert axis.place(0.5) == 100
    assert "stretched" in score_chart(chances, chances, 0.5, None).caption


def test_real_numbers_and_spread_probabilities_keep_a_plain_axis():
    assert not is_crowded(RANDOM.normal(size=100))
    assert not is_crowded(RANDOM.random(100))
    assert is_crowded(np.r_[np.zeros(60), RANDOM.random(40)])


def test_a_few_far_scores_do_not_flatten_the_rest():
    scores = np.r_[RANDOM.normal(size=1000), 1e6, -1e6]
    axis = choose_axis(scores, [])
    assert -4 < axis.scale.low < axis.scale.high < 4
    assert shares(scores, axis).sum() == pytest.approx(1)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_scores_that_are_all_alike_are_drawn(value):
    chart = score_chart(np.full(5, value), np.full(3, value), value, None)
    assert heights(chart.pool).max() == 100
    assert 0 <= chart.threshold.left <= 100


def test_nothing_is_drawn_without_finite_scores():
    some, none = np.arange(3.0), np.full(3, np.nan)
    assert score_chart(some, None, 1.0, None) is None
    assert score_chart(some, none, 1.0, None) is None
    assert score_chart(none, some, 1.0, None) is None
    assert score_chart(some, some[:0], 1.0, None) is None
