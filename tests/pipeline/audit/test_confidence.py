import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from s2osc.codec import from_plain, to_plain
from s2osc.pipeline.audit.confidence import (
    Confidence,
    Curve,
    calibration_error,
    cross_fitted,
    fit_names,
    fit_unknown,
    log_odds,
    mean_deviation,
    reliability,
)


def simulate_names(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Softmax values that are far too sure, whether each name is right, and the truth."""
    random = np.random.default_rng(seed)
    truth = expit(random.normal(1.5, 1.2, n))
    softmax = expit(3 * log_odds(truth))
    return softmax, random.random(n) < truth, truth


@pytest.mark.parametrize("n", [100, 2_000])  # by a temperature, and by isotonic regression
def test_calibrated_confidence_is_right_to_within_sampling_error(n):
    softmax, is_right, _ = simulate_names(n, seed=0)
    assert min(is_right.sum(), (~is_right).sum()) >= 20 or n == 100

    curve = fit_names(softmax, is_right, np.ones(n))

    new, new_right, truth = simulate_names(20_000, seed=1)
    stated = curve(log_odds(new))
    assert calibration_error(new, new_right) > 0.12
    assert calibration_error(stated, new_right) < 2 / np.sqrt(n)
    assert np.mean(np.abs(stated - truth)) < 2 / np.sqrt(n)


def test_items_of_more_weight_count_for_more():
    softmax, is_right = np.full(400, 0.9), np.arange(400) < 200
    curve = fit_names(softmax, is_right, np.where(is_right, 3.0, 1.0))
    assert curve(log_odds(np.array([0.9])))[0] == pytest.approx(0.75, abs=0.01)


def test_items_without_an_error_do_not_show_that_there_are_none():
    curve = fit_names(np.full(48, 0.999), np.ones(48, bool), np.ones(48))
    assert curve(log_odds(np.array([0.999])))[0] == pytest.approx(48.5 / 49, abs=1e-3)


def test_no_item_judges_its_own_confidence():
    softmax, is_right, _ = simulate_names(300, seed=2)
    stated = cross_fitted(softmax, is_right, np.ones(300), seed=0)
    flipped = is_right.copy()
    flipped[7] = ~flipped[7]
    again = cross_fitted(softmax, flipped, np.ones(300), seed=0)
    assert stated[7] == again[7]
    assert not np.array_equal(stated, again)


def test_reliability_counts_bins_and_knows_what_chance_does():
    random = np.random.default_rng(0)
    stated = random.uniform(0.5, 1, 1_000)
    found = reliability(stated, random.random(1_000) < stated)
    assert [each.n for each in found.bins] == [100] * 10
    assert found.n_items == 1_000
    covered = [each.right.low <= each.stated <= each.right.high for each in found.bins]
    assert sum(covered) >= 9
    assert 0.3 < found.error / found.error_by_chance < 2
    overconfident = reliability(stated, random.random(1_000) < stated - 0.2)
    assert overconfident.error > 4 * overconfident.error_by_chance


def test_chance_of_a_large_sample_is_that_of_a_normal_number():
    p, n = 0.7, 4_000
    assert mean_deviation(n, p) == pytest.approx(np.sqrt(2 / np.pi * p * (1 - p) / n), rel=1e-2)


def test_unknown_probability_follows_the_densities():
    random, share = np.random.default_rng(0), 0.4
    pool = np.append(random.normal(0, 1, 6_000), random.normal(3, 1, 4_000))
    curve = fit_unknown(pool, random.normal(0, 1, 3_000), np.ones(3_000), share, seed=0)
    at = np.linspace(-1, 4, 21)
    known, unknown = (1 - share) * norm.pdf(at), share * norm.pdf(at, 3)
    np.testing.assert_allclose(curve(at), unknown / (known + unknown), atol=0.09)


def test_nothing_is_surely_unknown_a_hair_above_the_highest_seed():
    random = np.random.default_rng(0)
    pool = np.append(random.normal(0, 1, 600), random.normal(3, 1, 400))
    seeds = random.normal(0, 1, 150)
    curve = fit_unknown(pool, seeds, np.ones(150), 0.4, seed=0)
    just_above, far = curve(np.array([seeds.max() + 1e-6, pool.max()]))
    assert just_above < far < 1
    assert far > 0.97


def test_confidence_of_answers_joins_both_parts_and_survives_a_file():
    confidence = Confidence(Curve((0.0, 10.0), (0.5, 0.9)), Curve((-1.0, 1.0), (0.0, 0.8)))
    read = from_plain(Confidence, to_plain(confidence), "confidence")
    assert read == confidence
    stated = read.of_answers(np.array([True, False]), np.array([0.5, 0.5]), np.array([2.0, 0.0]))
    np.testing.assert_allclose(stated, [0.8, 0.6 * 0.5])
    assert Confidence(confidence.named).of_answers(
        np.array([False]), np.array([0.5]), np.array([9.0])
    ) == pytest.approx([0.5])


@pytest.mark.parametrize(
    "damaged",
    [
        {"places": [0.0, 1.0], "values": [0.9, 0.1]},
        {"places": [0.0], "values": [0.9, 1.0]},
        {"places": [], "values": []},
        {"places": [0.0], "values": [1.1]},
    ],
)
def test_a_curve_of_a_file_must_rise_from_0_to_1(damaged):
    with pytest.raises(ValueError, match="its curve"):
        from_plain(Curve, damaged, "its curve")
