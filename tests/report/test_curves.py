import shlex
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.pipeline.audit.record import OperatingPoint, PurityAudit, PurityPoint
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.report.curves import decide_command, operating_curve, purity_chart


@pytest.fixture
def curve_of(pool, seeded):
    def make(**changes):
        inputs = seeded(pool(), **changes)
        return operating_curve(inputs.audit, inputs.answer, folder="results")

    return make


def point_at(rate):
    return OperatingPoint(rate, Estimate(0.5, 0.4, 0.6), threshold=0.9, n_unknown=3)


def test_points_run_from_few_false_alarms_to_many_with_the_present_one_among_them(curve_of):
    points = curve_of().points
    assert [point.is_now for point in points] == [False, False, True, False]
    assert [point.left for point in points] == sorted(point.left for point in points)
    assert points[0].left == 0
    assert points[-1].left == 100
    assert [point.bottom for point in points] == [50, 70, 80, 90]


def test_a_point_says_its_figures(curve_of):
    point = curve_of().points[1]
    assert point.name == "2.0% false alarms, 70.0% recall"
    assert point.figures == [
        ("False alarms", "2.0%"),
        ("Estimated recall", "70.0% (60.0% to 80.0%)"),
        ("Called unknown", "2 of 60"),
        ("Threshold", "0.98"),
    ]
    assert point.command == "s2osc decide --out results --false-alarm 0.02 --aim recall"


def test_the_present_point_says_how_the_pool_is_decided(curve_of):
    now = curve_of().now
    assert now.name == "now: 4.0% false alarms, 80.0% recall"
    assert ("Called unknown", "24 of 60") in now.figures
    assert ("Threshold", "0.8") in now.figures
    assert now.command == ""


def test_the_curve_and_its_band_lie_where_the_figures_say(curve_of):
    curve = curve_of()
    assert curve.line == "M0 50L30.103 30L100 10"
    assert curve.band == "M0 40L30.103 20L100 0L100 20L30.103 40L0 60Z"
    assert [tick.text for tick in curve.x_ticks] == ["1%", "2%", "5%", "10%"]


def test_without_an_estimate_of_recall_there_is_no_present_point(curve_of):
    curve = curve_of(unknown_recall=None)
    assert curve.now is None
    assert len(curve.points) == 3


def test_points_too_near_to_be_told_apart_are_thinned_out(curve_of):
    curve = curve_of(curve=tuple(point_at(rate / 1000) for rate in range(1, 1001)))
    lefts = [point.left for point in curve.points if not point.is_now]
    assert 20 <= len(lefts) <= 30
    assert min(right - left for left, right in pairwise(lefts)) >= 3.5
    assert curve.line.count("L") == 999


def test_no_false_alarm_at_all_has_a_place_on_the_axis(curve_of):
    curve = curve_of(curve=(point_at(0.0),), unknown_recall=None)
    assert curve.points[0].left == 0
    assert "--false-alarm 0.0001 " in curve.points[0].command


def test_a_curve_that_was_not_estimated_is_not_drawn(curve_of):
    assert curve_of(curve=()) is None


@given(st.floats(1e-4, 1), st.text(min_size=1).filter(lambda folder: "\0" not in folder))
def test_the_command_allows_its_own_point_and_keeps_the_folder_in_one_piece(rate, folder):
    words = shlex.split(decide_command(folder, rate))
    assert words[:3] == ["s2osc", "decide", "--out"]
    assert words[3] == folder
    assert rate <= float(words[5]) * (1 + 1e-5)
    assert float(words[5]) <= rate + 1e-4 + 1e-9


# Purity

CURVE = (PurityPoint(100, 1.0, 0.9), PurityPoint(200, 0.75, 0.5))


def test_the_line_and_its_lower_bound_lie_where_the_figures_say():
    chart = purity_chart(PurityAudit(150, 0.93, CURVE))
    assert chart.line == "M50 0L100 50"
    assert chart.band == "M50 0L100 50L100 100L50 20Z"
    assert (chart.chosen.name, chart.chosen.left) == ("150 taken", 75)
    assert [tick.text for tick in chart.y_ticks] == ["50%", "60%", "70%", "80%", "90%", "100%"]
    assert chart.caption.startswith("Of the 150 most distinct items, about 93.0%")


def test_low_purity_is_drawn_from_zero():
    chart = purity_chart(PurityAudit(0, None, (*CURVE, PurityPoint(400, 0.5, 0.2))))
    assert chart.line == "M25 0L50 25L100 50"
    assert chart.chosen is None
    assert chart.caption.startswith("The line is")


def test_k_beyond_the_curve_is_still_on_the_axis():
    assert purity_chart(PurityAudit(400, 0.5, CURVE)).line == "M25 0L50 50"
