"""The answer at an operating point, and the account the seeds give of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2osc.pipeline.audit import outcome
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.record import Audit, UnknownTest
from s2osc.pipeline.audit.statistics import (
    Estimate,
    exact_interval,
    smallest_promise,
)
from s2osc.pipeline.audit.threshold import (
    DecisionSettings,
    Evidence,
)
from s2osc.pipeline.audit.wording import sentence, tell
from s2osc.types import UNKNOWN, UNSURE
from samples import N_POOL, N_SEEDS, SEEDS, make_evidence

# The answer


def test_items_above_the_threshold_are_unknown_and_others_of_their_nearest_class(
    evidence, decision
):
    above = evidence.score > decision.thresholds.common
    np.testing.assert_array_equal(decision.labels == UNKNOWN, above)
    np.testing.assert_array_equal(decision.labels[~above], evidence.nearest[~above])
    assert np.mean((decision.labels == UNKNOWN) == (np.arange(N_POOL) < 300)) > 0.95


def test_scores_lie_between_nought_and_one_on_the_same_sides_of_the_threshold(evidence, decision):
    assert decision.unknown_score.min() >= 0
    assert decision.unknown_score.max() <= 1
    np.testing.assert_array_equal(
        decision.unknown_score > decision.audit.threshold, decision.labels == UNKNOWN
    )
    np.testing.assert_array_equal(
        np.argsort(decision.unknown_score, kind="stable"), np.argsort(evidence.score, kind="stable")
    )


def test_the_confidence_is_the_probability_of_the_label_given(decision):
    unknown = decision.labels == UNKNOWN
    assert decision.confidence[unknown].mean() == pytest.approx(
        np.mean(np.flatnonzero(unknown) < 300), abs=0.05
    )
    # of the known: P(known) times 0.9
    assert decision.confidence[~unknown].max() <= 0.9
    assert decision.confidence[~unknown].mean() == pytest.approx(0.9, abs=0.05)


def test_where_the_test_finds_nothing_nothing_is_unknown():
    evidence = make_evidence(0.0, p_value=0.4)
    decision = decide(evidence, SEEDS, seed=0)
    np.testing.assert_array_equal(decision.labels, evidence.nearest)
    assert decision.thresholds.common == np.inf
    assert decision.audit.nothing_unknown
    assert decision.audit.threshold is None
    assert decision.audit.unknown_recall is None
    assert decision.audit.curve == ()
    assert decision.audit.unknown_share.estimate == 0
    assert decision.audit.false_alarm.estimate == 0
    assert decision.audit.known_accuracy.estimate == pytest.approx(0.9)


@pytest.mark.parametrize(("p_value", "nothing"), [(0.02, True), (0.005, False)])
def test_the_level_of_the_test_decides(p_value, nothing):
    decision = decide(make_evidence(p_value=p_value), SEEDS, seed=0)
    assert decision.audit.nothing_unknown == nothing
    other = decide(make_evidence(p_value=p_value), replace(SEEDS, level=0.001), seed=0)
    assert other.audit.nothing_unknown


def test_by_the_papers_rule_the_seeds_only_watch():
    evidence = make_evidence(p_value=0.9)
    decision = decide(evidence, DecisionSettings(false_alarm=0.01), seed=0)
    np.testing.assert_array_equal(decision.labels == UNKNOWN, evidence.score > 0)
    assert decision.thresholds.common == 0
    assert decision.audit.threshold == 0.5
    assert not decision.audit.nothing_unknown
    assert decision.audit.false_alarm.estimate == np.mean(evidence.seed_score > 0)


# Close calls


def test_close_calls_are_left_open_where_asked():
    evidence = make_evidence(shift=2.0)
    plain = decide(evidence, SEEDS, seed=0)
    unsure = decide(evidence, replace(SEEDS, unsure=True), seed=0)
    open_calls = unsure.labels == UNSURE
    assert 0.02 < open_calls.mean() < 0.8
    np.testing.assert_array_equal(unsure.labels[~open_calls], plain.labels[~open_calls])
    # Between the two thresholds, all of them.
    scores, account = unsure.unknown_score, unsure.audit
    assert account.sure_known_below < account.threshold
    np.testing.assert_array_equal(
        open_calls, (scores > account.sure_known_below) & (scores <= account.threshold)
    )
    # Of the unknown items few are called surely known.
    assert np.mean(unsure.labels[:300] >= 0) < 0.5 * np.mean(plain.labels[:300] >= 0)


def test_without_close_calls_none_is_left_open(decision):
    assert (decision.labels != UNSURE).all()
    assert decision.audit.sure_known_below is None
    apart = decide(make_evidence(shift=12.0), replace(SEEDS, unsure=True), seed=0)
    assert np.mean(apart.labels == UNSURE) < 0.02


# The account


def test_every_figure_of_the_account_lies_in_its_interval(decision):
    for name in ("unknown_share", "unknown_recall", "false_alarm", "known_accuracy"):
        figure = getattr(decision.audit, name)
        assert 0 <= figure.low <= figure.estimate <= figure.high <= 1, name


def test_the_figures_of_the_account_are_those_of_the_seeds(evidence):
    account = decide(evidence, DecisionSettings(), seed=0).audit
    alarms = evidence.seed_score > 0
    n_known = round(N_POOL * (1 - account.unknown_share.estimate))
    assert account.false_alarm == exact_interval(int(alarms.sum()), N_SEEDS, n_known)
    right = ~alarms & (evidence.seed_nearest == evidence.seed_label)
    assert account.known_accuracy.estimate == pytest.approx(right.mean())
    assert account.n_seeds == N_SEEDS
    assert [(each.name, each.n_seeds) for each in account.classes] == [("0", 150), ("1", 150)]
    assert account.smallest_false_alarm == smallest_promise(np.ones(N_SEEDS))
    assert account.test == UnknownTest(p_value=1e-9, level=0.01)
    assert (account.rule, account.aim, account.wanted_false_alarm) == ("argmax", "balance", 0.05)
    assert not account.is_shifted
    assert [each.weight for each in account.classes] == [1.0, 1.0]


@pytest.mark.parametrize("n_pools", [10, pytest.param(30, marks=pytest.mark.slow)])
def test_each_seed_judges_a_threshold_that_was_chosen_without_it(n_pools, monkeypatch):
    # With few seeds the best threshold is the one at which they happen to do well.
    monkeypatch.setattr(outcome, "N_RESAMPLED", 2)
    judged, by_its_own_seeds, true = [], [], []
    for seed in range(n_pools):
        evidence = make_evidence(shift=2.0, n_seeds=60, seed=seed)
        found = decide(evidence, replace(SEEDS, false_alarm=0.2), seed=seed)
        judged.append(found.audit.false_alarm.estimate)
        by_its_own_seeds.append(np.mean(evidence.seed_score > found.thresholds.common))
        true.append(np.mean(found.labels[300:] == UNKNOWN))
    assert np.mean(by_its_own_seeds) < np.mean(judged)
    assert np.mean(judged) == pytest.approx(np.mean(true), abs=0.03)


def test_each_class_has_figures_of_its_own(decision):
    wrong, right = decision.audit.classes
    # The wrong seeds are the even ones, all of class 0: 30 of its 150.
    assert wrong.known_accuracy.estimate == pytest.approx(0.8, abs=0.03)
    assert right.known_accuracy.estimate == pytest.approx(1.0, abs=0.03)
    for figure in (wrong.known_accuracy, right.known_accuracy):
        assert figure.low <= figure.estimate <= figure.high


def test_a_class_without_seeds_has_no_figures():
    only_one = replace(make_evidence(), seed_label=np.ones(N_SEEDS, int))
    assert [each.name for each in decide(only_one, SEEDS, seed=0).audit.classes] == ["1"]


@pytest.mark.parametrize("n_pools", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_the_true_share_recall_and_rates_lie_in_their_intervals(n_pools, monkeypatch):
    monkeypatch.setattr(outcome, "N_RESAMPLED", 60)
    inside = {"unknown_share": 0, "unknown_recall": 0, "false_alarm": 0}
    for seed in range(n_pools):
        evidence = make_evidence(seed=seed)
        decision = decide(evidence, SEEDS, seed=seed)
        called = decision.labels == UNKNOWN
        truth = {
            "unknown_share": 0.3,
            "unknown_recall": called[:300].mean(),
            "false_alarm": called[300:].mean(),
        }
        for name, value in truth.items():
            figure = getattr(decision.audit, name)
            inside[name] += figure.low - 1e-9 <= value <= figure.high + 1e-9
    assert min(inside.values()) >= 0.8 * n_pools


def test_the_curve_rises_and_says_what_each_rate_would_find(evidence, decision, monkeypatch):
    monkeypatch.setattr(outcome, "N_RESAMPLED", 2)  # of what is compared with the curve
    curve = decision.audit.curve
    rates = [point.false_alarm for point in curve]
    assert rates == sorted(rates)
    assert rates[0] >= smallest_promise(np.ones(N_SEEDS))
    for values in ([p.recall.estimate for p in curve], [p.n_unknown for p in curve]):
        assert values == sorted(values)
    for point in curve:
        _, low, high = point.recall
        assert low <= point.recall.estimate <= high
        recall = replace(SEEDS, aim="recall", false_alarm=point.false_alarm)
        again = decide(evidence, recall, seed=0)
        assert again.audit.threshold == pytest.approx(point.threshold)
        assert (again.labels == UNKNOWN).sum() == point.n_unknown
        assert low - 0.02 <= np.mean(again.labels[:300] == UNKNOWN) <= high + 0.02


def test_few_seeds_promise_no_small_rates():
    curve = decide(make_evidence(n_seeds=24), SEEDS, seed=0).audit.curve
    assert curve[0].false_alarm == 0.05  # 1 / 25 is the least they can promise


def test_seeds_of_a_frequent_class_have_more_to_say():
    evidence = make_evidence()
    weights = np.where(evidence.seed_label == 0, 0.5, 3.0)
    plain, weighted = (
        decide(each, SEEDS, seed=0).audit.known_accuracy.estimate
        for each in (evidence, replace(evidence, seed_weight=weights))
    )
    # A fifth of class 0 is taken for class 1, which is always right itself.
    assert weighted - plain == pytest.approx(0.2 * (1 / 2 - 1 / 7), abs=0.02)


def test_the_same_seed_gives_the_same_account(evidence, decision):
    assert decide(evidence, SEEDS, seed=0).audit == decision.audit


# Pools at the edge of what can be estimated


def check_account(evidence, settings):
    """Every figure lies within its interval, or is absent; words and files can be made of it."""
    account = decide(evidence, settings, seed=0).audit
    figures = [account.unknown_share, account.unknown_recall]
    for rates in (account, *account.classes):
        figures += [rates.false_alarm, rates.known_accuracy]
    for figure in (*figures, *(point.recall for point in account.curve)):
        assert figure is None or 0 <= figure.low <= figure.estimate <= figure.high <= 1
    named = account.named([f"class {c}" for c in range(evidence.n_classes)])
    assert sentence(named).endswith(".")
    text = json.dumps(tell(named), allow_nan=False)
    assert "nan" not in text
    assert Audit.from_json(json.loads(text)) == named
    return account


@st.composite
def extreme_evidence(draw):
    """Few items, few seeds, weights and scores far apart: anything from all known to none."""
    n_pool, n_seeds = draw(st.integers(2, 30)), draw(st.integers(1, 25))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    n_unknown = draw(st.sampled_from([0, 1, n_pool // 2, n_pool - 1, n_pool]))
    shift = np.where(np.arange(n_pool) < n_unknown, draw(st.sampled_from([0.0, 3.0, 1e6])), 0)
    n_classes = draw(st.integers(1, 3))
    labels = random.integers(0, n_classes, n_seeds)
    weights = draw(st.sampled_from([(1.0,), (1.0, 3.0), (1e-3, 1.0, 1e3)]))
    digits = draw(st.sampled_from([0, 6]))  # many equal scores, or none
    return Evidence(
        score=(random.normal(size=n_pool) + shift).round(digits),
        nearest=random.integers(0, n_classes, n_pool),
        nearest_confidence=random.random(n_pool),
        seed_score=random.normal(size=n_seeds).round(digits),
        seed_label=labels,
        seed_nearest=random.integers(0, n_classes, n_seeds),
        seed_weight=np.resize(weights, n_classes)[labels],
        p_value=draw(st.sampled_from([0.0, 1e-9, 0.5, 1.0])),
    )


@settings(max_examples=25, deadline=None)
@given(
    extreme_evidence(),
    st.sampled_from(["argmax", "seeds"]),
    st.sampled_from(["balance", "recall"]),
    st.booleans(),
)
def test_every_figure_lies_in_its_interval_or_is_absent(evidence, rule, aim, unsure):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcome, "N_RESAMPLED", 5)
        check_account(evidence, DecisionSettings(rule=rule, aim=aim, unsure=unsure))


def test_where_no_item_of_the_pool_is_known_rates_among_known_items_are_absent():
    n = 40
    evidence = Evidence(
        score=np.full(n, 50.0),
        nearest=np.zeros(n, int),
        nearest_confidence=np.ones(n),
        seed_score=np.linspace(0, 1, 400),
        seed_label=np.arange(400) % 2,
        seed_nearest=np.arange(400) % 2,
        seed_weight=np.where(np.arange(400) % 2, 0.5, 3.0),
        p_value=1e-9,
    )
    for weights in (evidence.seed_weight, np.ones(400)):
        account = check_account(replace(evidence, seed_weight=weights), SEEDS)
        for rates in (account, *account.classes):
            assert rates.false_alarm is rates.known_accuracy is None
        assert account.unknown_share.low > 0.9
        assert sentence(account).startswith(
            "Too few items of this pool are known to estimate how many of those are called "
            "unknown; an estimated 100%"
        )


def test_the_high_end_of_recall_supposes_as_few_unknown_items_as_the_share_may_have(evidence):
    threshold = float(np.quantile(evidence.score[:300], 0.5))  # half of them are found
    share, drawn = Estimate(0.3, 0.2, 0.4), outcome._resampled(evidence, 0)
    recall = outcome._recall(evidence, threshold, share, drawn)
    assert recall.estimate == pytest.approx(0.5, abs=0.05)
    assert recall.high == pytest.approx(0.15 / 0.2, abs=0.02)
