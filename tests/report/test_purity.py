from s2osc.report.purity import purity_chart

CURVE = [{"k": 100, "purity": 1.0, "low": 0.9}, {"k": 200, "purity": 0.75, "low": 0.5}]


def test_the_line_and_its_lower_bound_lie_where_the_figures_say():
    chart = purity_chart({"k": 150, "estimate": 0.93, "curve": CURVE})
    assert chart.line == "M50 0L100 50"
    assert chart.band == "M50 0L100 50L100 100L50 20Z"
    assert (chart.chosen.name, chart.chosen.left) == ("K = 150", 75)
    assert [tick.text for tick in chart.y_ticks] == ["50%", "60%", "70%", "80%", "90%", "100%"]
    assert chart.caption.startswith("Of the K = 150 most distinct items, about 93.0%")


def test_low_purity_is_drawn_from_zero():
    chart = purity_chart({"curve": [*CURVE, {"k": 400, "purity": 0.5, "low": 0.2}]})
    assert chart.line == "M25 0L50 25L100 50"
    assert chart.chosen is None


def test_k_beyond_the_curve_is_still_on_the_axis():
    assert purity_chart({"k": 400, "curve": CURVE}).line == "M25 0L50 50"


def test_a_missing_lower_bound_leaves_the_line_alone():
    chart = purity_chart({"curve": [{"k": 1, "purity": 0.5, "low": None}]})
    assert chart.band == "M100 100L100 100Z"


def test_purity_that_was_not_estimated_is_not_drawn():
    assert purity_chart({}) is None
    assert purity_chart({"k": 3, "curve": [{"k": 3, "purity": None}]}) is None
