import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.report.charts import AxisScale, CutLine, band, line, step_outline

finite = st.floats(-1e6, 1e6)


def test_ticks_are_few_round_and_on_the_axis():
    for low, high in [(0, 1), (-3, 40), (1.001, 1.002), (0, 1e7)]:
        ticks = AxisScale(low, high).ticks()
        assert 3 <= len(ticks) <= 8
        assert low <= ticks[0] < ticks[-1] <= high
    for low, high in [(1, 30), (1e-9, 1e9), (0.5, 800)]:
        ticks = AxisScale(low, high, is_log=True).ticks()
        assert 3 <= len(ticks) <= 10
        assert low <= ticks[0] < ticks[-1] <= high


@given(finite, finite.filter(bool), finite)
def test_every_value_is_placed_within_the_box(low, width, value):
    scale = AxisScale(low, low + max(abs(width), 1e-3))
    assert 0 <= scale.place(value) <= 100
    assert (scale.place(scale.low), scale.place(scale.high)) == (0, 100)


def test_equal_factors_are_equal_steps_of_a_log_scale():
    scale = AxisScale(0.001, 1, is_log=True)
    places = [scale.place(rate) for rate in (0.001, 0.01, 0.1, 1)]
    assert np.diff(places) == pytest.approx(np.full(3, 100 / 3), abs=0.01)
    assert scale.place(0) == 0


def test_a_line_rises_towards_the_top_of_the_page():
    assert line([(0, 0), (25, 50), (100, 100)]) == "M0 100L25 50L100 0"


def test_a_band_goes_along_its_top_and_back_along_its_bottom():
    assert band([0, 100], [10, 20], [30, 40]) == "M0 70L100 60L100 80L0 90Z"


def test_bars_stand_side_by_side_on_the_floor():
    assert step_outline([0, 100, 50, 0]) == (
        "M0 100L0 100L25 100L25 0L50 0L50 50L75 50L75 100L100 100L100 100"
    )


def test_the_name_of_a_cut_stands_where_there_is_room():
    assert not CutLine("left", 20).is_right
    assert CutLine("right", 90).is_right
