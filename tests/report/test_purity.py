from s2osc.pipeline.audit.record import PurityAudit, PurityPoint
from s2osc.report.purity import purity_chart

CURVE = (PurityPoint(100, 1.0, 0.9), PurityPoint(200, 0.75, 0.5))


def test_the_line_and_its_lower_bound_lie_where_the_figures_say():
    chart = purity_chart(PurityAudit(150, 0.93, CURVE))
    assert chart.line == "M50 0L100 50"
    assert chart.band == "M50 0L100 50L100 100L50 20Z"
    assert (chart.chosen.name, chart.chosen.left) == ("K = 150", 75)
    assert [tick.text for tick in chart.y_ticks] == ["50%", "60%", "70%", "80%", "90%", "100%"]
    assert chart.caption.startswith("Of the K = 150 most distinct items, about 93.0%")


def test_low_purity_is_drawn_from_zero():
    chart = purity_chart(PurityAudit(0, None, (*CURVE, PurityPoint(400, 0.5, 0.2))))
    assert chart.line == "M25 0L50 25L100 50"
    assert chart.chosen is None
    assert chart.caption.startswith("The line is")


def test_k_beyond_the_curve_is_still_on_the_axis():
    assert purity_chart(PurityAudit(400, 0.5, CURVE)).line == "M25 0L50 50"
