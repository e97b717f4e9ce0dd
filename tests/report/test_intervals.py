import pytest

from s2osc.pipeline.audit.statistics import Estimate
from s2osc.report.intervals import Interval


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Estimate(0.04, 0.021, 0.063), "4.0% (2.1% to 6.3%)"),
        (Estimate(0.0, 0.0, 0.0004), "0% (0% to <0.1%)"),
        (None, "not estimated"),
    ],
)
def test_an_interval_in_words_says_what_is_known_and_no_more(figure, text):
    assert Interval(figure).text == text
