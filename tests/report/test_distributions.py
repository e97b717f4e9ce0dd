import re
from dataclasses import replace

import numpy as np
import pytest

from s2osc.report.distributions import (
    N_SCORE_BINS,
    choose_score_axis,
    distribution,
    is_crowded,
    score_chart,
    shares,
)


def with_w(inputs, w):
    return replace(inputs.answer, distinctness=np.asarray(w, dtype=float))


def counted(panel):
    return sum(bar.count for bar in panel.bars)


@pytest.mark.parametrize(
    "w",
    [
        np.linspace(0, 1, 60),
        np.linspace(-5, 5, 60),
        np.geomspace(1e-6, 1e6, 60),
        np.r_[np.zeros(20), np.geomspace(1, 1e5, 40)],
        np.r_[np.ones(59), 1000.0],
        np.full(60, 3.0),
        np.zeros(60),
    ],
    ids=["even", "negative", "long tail", "zeros and a tail", "one outlier", "constant", "zero"],
)
def test_every_item_is_counted_once_whatever_the_shape_of_w(pool, w):
    inputs = pool()
    shown = distribution(with_w(inputs, w))
    n_unknown = int(inputs.answer.is_unknown.sum())
    assert (counted(shown.known), counted(shown.unknown)) == (60 - n_unknown, n_unknown)
    assert max(bar.height for bar in shown.known.bars) == 100
    assert all(0 <= tick.left <= 100 for tick in shown.ticks)
    assert len(shown.ticks) >= 2


def test_a_long_tail_gets_a_log_axis_and_the_reader_is_told(pool):
    assert "logarithmic" in distribution(with_w(pool(), np.geomspace(1e-3, 1e3, 60))).notes[0]
    assert distribution(with_w(pool(), np.linspace(1, 2, 60))).notes == []


def test_clipped_values_are_owned_up_to(pool):
    w = np.r_[np.linspace(1, 2, 399), 15.0]
    notes = distribution(with_w(pool(n=400), w)).notes
    assert notes == ["The 2 largest values, up to 15, are counted in the last bar."]


def test_the_line_stands_at_the_smallest_filtered_w(pool):
    inputs = pool()
    answer = replace(with_w(inputs, np.linspace(0, 10, 60)), filtered=np.arange(60) >= 30)
    threshold = distribution(answer).threshold
    assert float(threshold.text) == pytest.approx(10 * 30 / 59, rel=1e-3)
    assert threshold.left == pytest.approx(100 * 30 / 59, abs=0.01)
    assert distribution(replace(answer, filtered=np.zeros(60, dtype=bool))).threshold is None


def test_no_finite_w_means_no_picture(pool):
    assert distribution(with_w(pool(), np.full(60, np.nan))) is None


def test_unsure_items_have_a_panel_of_their_own(pool, unsure):
    shown = distribution(unsure(pool(), n_unsure=6).answer)
    assert counted(shown.unsure) == shown.unsure.count == 6
    assert counted(shown.known) + counted(shown.unknown) == 54
    assert distribution(pool().answer).unsure is None


# Scores of seeds and pool

RANDOM = np.random.default_rng(0)


def heights(outline):
    """The tops of the bars, as shares of the highest."""
    corners = [tuple(map(float, point.split())) for point in re.split("[ML]", outline)[1:]]
    return np.array([100 - y for _, y in corners[1:-1:2]])


def test_seeds_and_pool_are_drawn_as_shares_on_one_scale():
    chart = score_chart(np.r_[np.zeros(300), np.ones(100)], np.zeros(10), None, None)
    pool, seeds = heights(chart.pool), heights(chart.seeds)
    assert len(pool) == len(seeds) == N_SCORE_BINS
    assert (seeds[0], seeds[-1]) == (100, 0)
    assert (pool[0], pool[-1]) == pytest.approx((75, 25), abs=0.01)


def test_the_threshold_stands_at_its_score_and_the_caption_counts_what_lies_above():
    pool, seeds = np.linspace(0, 10, 1001), np.linspace(0, 8, 100)
    chart = score_chart(pool, seeds, 7.5, 2.5)
    scale = choose_score_axis(np.concatenate([pool, seeds]), [7.5, 2.5]).scale
    assert chart.threshold.left == pytest.approx(
        100 * (7.5 - scale.low) / (scale.high - scale.low), abs=0.01
    )
    assert chart.threshold.name == "unknown above 7.5"
    assert chart.sure_known.name == "known below 2.5"
    assert chart.sure_known.left < chart.threshold.left
    assert chart.caption.startswith("7.0% of the held-back items and 25.0% of the pool lie above")


def test_probabilities_at_the_ends_are_pulled_apart():
    logits = RANDOM.normal(-5, 1, 1000)
    chances = 1 / (1 + np.exp(-logits))
    axis = choose_score_axis(chances, [0.5])
    assert axis.is_stretched
    assert (shares(chances, axis) > 0).sum() > N_SCORE_BINS / 2
    assert [tick.text for tick in axis.ticks()][:2] == ["0.001", "0.01"]
    assert axis.place(0.5) == 100
    assert "stretched" in score_chart(chances, chances, 0.5, None).caption


def test_real_numbers_and_spread_probabilities_keep_a_plain_axis():
    assert not is_crowded(RANDOM.normal(size=100))
    assert not is_crowded(RANDOM.random(100))
    assert is_crowded(np.r_[np.zeros(60), RANDOM.random(40)])


def test_a_few_far_scores_do_not_flatten_the_rest():
    scores = np.r_[RANDOM.normal(size=1000), 1e6, -1e6]
    axis = choose_score_axis(scores, [])
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
