from dataclasses import replace

import numpy as np
import pytest

from s2osc.report.histogram import distribution


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
