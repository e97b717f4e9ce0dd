import math

import pytest

from s2osc.report.intervals import Interval, read_interval


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"estimate": 0.04, "low": 0.021, "high": 0.063}, "4.0% (2.1% to 6.3%)"),
        ({"estimate": 0.0, "low": 0.0, "high": 0.0004}, "0% (0% to <0.1%)"),
        ({"estimate": 0.4, "low": 0.31, "high": None}, "40.0% (at least 31.0%)"),
        ({"estimate": 0.4, "high": 0.5}, "40.0% (at most 50.0%)"),
        ({"estimate": 0.4}, "40.0%"),
        ({"estimate": None, "low": 0.31}, "at least 31.0%"),
        ({"high": 0.1}, "at most 10.0%"),
        ({"estimate": math.nan, "low": None, "high": math.inf}, "not estimated"),
        ({}, "not estimated"),
        (None, "not estimated"),
    ],
)
def test_an_interval_in_words_says_what_is_known_and_no_more(figures, text):
    assert read_interval(figures).text == text


def test_whiskers_reach_the_end_of_the_scale_where_a_bound_is_open():
    assert Interval(0.4, 0.3, 0.5).whiskers == (0.3, 0.5)
    assert Interval(0.4, high=0.5).whiskers == (0.0, 0.5)
    assert Interval(0.4).whiskers is None


def test_a_bar_without_an_estimate_ends_at_its_bound():
    assert Interval(0.4, 0.3).bar == 0.4
    assert Interval(low=0.3).bar == 0.3
    assert Interval().bar == 0
