"""The operating point, the answer there, and the account the seeds give of it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2osc.errors import SettingsError
from s2osc.pipeline.audit import decision as decision_module
from s2osc.pipeline.audit.decision import (
    DecisionSettings,
    Evidence,
    Thresholds,
    choose_threshold,
    choose_thresholds,
    decide,
    number_classes,
    share_of_unknown,
    thresholds_for_new,
)
from s2osc.pipeline.audit.record import Audit, UnknownTest
from s2osc.pipeline.audit.statistics import (
    conformal_threshold,
    exact_interval,
    operating_point,
    p_known,
    smallest_promise,
)
from s2osc.pipeline.audit.wording import sentence, tell
from s2osc.types import UNKNOWN, UNSURE

SEEDS = DecisionSettings(rule="seeds")
N_POOL, N_SEEDS = 1_000, 300


def make_evidence(pi=0.3, shift=4.0, *, n_seeds=N_SEEDS, p_value=1e-9, seed=0):
    """Scores of two known classes, and of unknown items, which come first in the pool."""
    random = np.random.default_rng(seed)
    score = random.normal(size=N_POOL)
    score[: round(pi * N_POOL)] += shift
    seed_label = np.arange(n_seeds) % 2
    # Every tenth seed is taken for the other class.
    seed_nearest = np.where(np.arange(n_seeds) % 10 == 0, 1 - seed_label, seed_label)
    return Evidence(
        score=score,
        nearest=np.arange(N_POOL) % 2,
        nearest_confidence=np.full(N_POOL, 0.9),
        seed_score=random.normal(size=n_seeds),
        seed_label=seed_label,
        seed_nearest=seed_nearest,
        seed_weight=np.ones(n_seeds),
        p_value=p_value,
    )


@pytest.fixture(scope="module")
def evidence():
    return make_evidence()


@pytest.fixture(scope="module")
def decision(evidence):
    return decide(evidence, SEEDS, seed=0)


# The threshold


@pytest.mark.parametrize("aim", ["balance", "recall"])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("shift", [1.0, 3.0])
def test_the_limit_on_false_alarms_is_kept(rate, aim, shift):
    evidence = make_evidence(shift=shift)
    settings = replace(SEEDS, false_alarm=rate, aim=aim)
    threshold = choose_threshold(evidence, 0.3, settings)
    assert np.mean(evidence.seed_score > threshold) <= rate
    assert threshold >= conformal_threshold(evidence.seed_score, evidence.seed_weight, rate)


def test_for_recall_the_limit_is_used_up(evidence):
    settings = replace(SEEDS, false_alarm=0.2, aim="recall")
    threshold = choose_threshold(evidence, 0.3, settings)
    assert threshold == conformal_threshold(evidence.seed_score, evidence.seed_weight, 0.2)
    assert np.mean(evidence.seed_score > threshold) == pytest.approx(0.2, abs=0.01)


def test_for_balance_the_best_f_out_is_looked_for(evidence):
    settings = replace(SEEDS, false_alarm=0.2)
    threshold = choose_threshold(evidence, 0.3, settings)
    is_unknown = np.arange(N_POOL) < 300

    def f_out(at):
        called = evidence.score > at
        return 2 * (called & is_unknown).sum() / (called.sum() + is_unknown.sum())

    assert f_out(threshold) > max(f_out(at) for at in evidence.score) - 0.02
    assert f_out(threshold) > f_out(
        choose_threshold(evidence, 0.3, replace(settings, aim="recall"))
    )


def test_alarms_in_the_pool_are_as_rare_as_promised():
    settings = replace(SEEDS, aim="recall", false_alarm=0.1)
    rates = []
    for seed in range(40):
        evidence = make_evidence(seed=seed)
        rates.append(np.mean(evidence.score[300:] > choose_threshold(evidence, 0.3, settings)))
    assert np.mean(rates) == pytest.approx(0.1, abs=0.01)


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_values=st.integers(2, 400),
    n_seeds=st.integers(2, 60),
    aim=st.sampled_from(["balance", "recall"]),
    weighted=st.booleans(),
)
def test_above_the_threshold_are_exactly_the_p_values_up_to_the_operating_point(
    seed, n_values, n_seeds, aim, weighted
):
    evidence, random = make_evidence(n_seeds=n_seeds, seed=seed), np.random.default_rng(seed)
    weights = random.uniform(0.2, 3, n_seeds) if weighted else np.ones(n_seeds)
    # The fewer values, the more scores are equal.
    pool, seeds = (
        np.round(scores * n_values / 8) for scores in (evidence.score, evidence.seed_score)
    )
    tied = replace(evidence, score=pool, seed_score=seeds, seed_weight=weights)
    threshold = choose_threshold(tied, share_of_unknown(tied).estimate, replace(SEEDS, aim=aim))
    np.testing.assert_array_equal(
        pool > threshold,
        p_known(pool, seeds, weights) <= operating_point(seeds, weights, threshold),
    )


@pytest.mark.parametrize("unsure", [False, True])
def test_unknown_are_exactly_the_items_with_a_p_value_up_to_the_operating_point(evidence, unsure):
    found = decide(evidence, replace(SEEDS, unsure=unsure), seed=0)
    assert ((found.p_known > 0) & (found.p_known <= 1)).all()
    np.testing.assert_array_equal(
        found.labels == UNKNOWN, found.p_known <= found.audit.operating_point
    )


def test_a_guarantee_for_this_pool_allows_fewer_false_alarms(evidence):
    settings = replace(SEEDS, aim="recall")
    average, in_pool = (
        decide(evidence, replace(settings, guarantee=guarantee), seed=0)
        for guarantee in ("average", "pool")
    )
    assert in_pool.audit.guarantee == "pool"
    assert in_pool.thresholds.common > average.thresholds.common
    assert in_pool.audit.smallest_false_alarm > average.audit.smallest_false_alarm
    np.testing.assert_array_equal(
        in_pool.labels == UNKNOWN, in_pool.p_known <= in_pool.audit.operating_point
    )


def test_where_nothing_is_unknown_the_operating_point_is_0(evidence):
    found = decide(replace(evidence, p_value=0.5), SEEDS, seed=0)
    assert found.audit.operating_point == 0
    assert (found.p_known > 0).all()


def test_where_g_decides_there_is_no_operating_point(evidence):
    assert decide(evidence, DecisionSettings(), seed=0).audit.operating_point is None


def test_where_no_threshold_finds_more_than_false_alarms_nothing_is_called_unknown():
    evidence = make_evidence(pi=0.0, n_seeds=5)
    few = replace(evidence, seed_score=np.full(5, np.sort(evidence.score)[-3]))
    found = decide(few, SEEDS, seed=0)
    assert not (found.labels == UNKNOWN).any()
    assert not found.audit.nothing_unknown
    assert found.audit.operating_point == 0


def test_new_items_are_told_by_the_odds_at_the_same_operating_point(evidence):
    odds = np.concatenate([evidence.score, evidence.seed_score]) * 3 - 7
    by_score = choose_threshold(evidence, share_of_unknown(evidence).estimate, SEEDS)
    thresholds = thresholds_for_new(evidence, odds, SEEDS)
    np.testing.assert_array_equal(evidence.score > by_score, odds[:N_POOL] > thresholds.common)
    assert thresholds.common in odds[N_POOL:]  # between a seed and the next item new ones may come


def test_new_items_are_left_to_g_by_the_papers_rule_and_are_known_if_nothing_is_unknown(evidence):
    odds = np.concatenate([evidence.score, evidence.seed_score])
    assert thresholds_for_new(evidence, odds, DecisionSettings()) is None
    nothing = replace(evidence, p_value=0.5)
    assert thresholds_for_new(nothing, odds, SEEDS) == Thresholds(np.inf)


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


def test_each_seed_judges_a_threshold_that_was_chosen_without_it(monkeypatch):
    # With few seeds the best threshold is the one at which they happen to do well.
    monkeypatch.setattr(decision_module, "N_RESAMPLED", 2)
    judged, by_its_own_seeds, true = [], [], []
    for seed in range(30):
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


def test_the_true_share_recall_and_rates_lie_in_their_intervals(monkeypatch):
    monkeypatch.setattr(decision_module, "N_RESAMPLED", 60)
    inside = {"unknown_share": 0, "unknown_recall": 0, "false_alarm": 0}
    for seed in range(20):
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
    assert min(inside.values()) >= 17


def test_the_curve_rises_and_says_what_each_rate_would_find(evidence, decision, monkeypatch):
    monkeypatch.setattr(decision_module, "N_RESAMPLED", 2)  # of what is compared with the curve
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


@settings(max_examples=60, deadline=None)
@given(
    extreme_evidence(),
    st.sampled_from(["argmax", "seeds"]),
    st.sampled_from(["balance", "recall"]),
    st.booleans(),
)
def test_every_figure_lies_in_its_interval_or_is_absent(evidence, rule, aim, unsure):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision_module, "N_RESAMPLED", 5)
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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rule": "vote"}, "decision.rule is 'vote'; give 'argmax' or 'seeds'"),
        ({"aim": "fame"}, "the aim is 'fame'; give 'balance' or 'recall'"),
        ({"false_alarm": 0.0}, "false-alarm is 0.0; give a share between 0 and 1"),
        ({"false_alarm": float("nan")}, "false-alarm is nan"),
        ({"level": 1.0}, "level is 1.0"),
    ],
)
def test_a_decision_that_cannot_be_taken_is_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        DecisionSettings(**wrong)


# Limits of single classes


def test_a_class_keeps_its_own_limit_on_average_over_pools():
    settings = replace(SEEDS, aim="recall", false_alarm_of=(0.0, 0.02))
    rates = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        evidence = make_evidence(n_seeds=200, seed=seed)
        # Items of the second class look stranger, known or not.
        strange = replace(
            evidence,
            score=evidence.score + evidence.nearest,
            seed_score=evidence.seed_score + evidence.seed_nearest,
        )
        thresholds = choose_thresholds(strange, 0.3, settings)
        assert thresholds.of_class.keys() == {1}
        fresh = random.normal(size=2_000)
        rates.append(
            [np.mean(fresh > thresholds.common - 1), np.mean(fresh > thresholds.of_class[1] - 1)]
        )
    common, own = np.mean(rates, axis=0)
    assert common > 0.07  # the common limit is no promise for a single class
    assert own == pytest.approx(2 / 121, abs=0.005)  # 120 seeds are given the class


def test_items_are_unknown_exactly_up_to_the_operating_point_of_their_class():
    evidence = make_evidence(shift=2.0)
    found = decide(evidence, replace(SEEDS, false_alarm_of=(0.01, 0.2), aim="recall"), seed=0)
    audit = found.audit.named(["cat", "dog"])
    points = audit.operating_points(evidence.nearest, ["cat", "dog"])
    assert len(np.unique(points)) == 2
    np.testing.assert_array_equal(found.p_known <= points, found.labels == UNKNOWN)
    strict, lax = audit.class_limits
    assert (strict.name, strict.wanted_false_alarm) == ("cat", 0.01)
    assert strict.operating_point < lax.operating_point
    named_cat = evidence.seed_nearest == 0
    alarms = found.thresholds.are_passed(evidence.seed_score, evidence.seed_nearest)
    assert alarms[named_cat].mean() <= 0.01
    assert 0.1 < alarms[~named_cat].mean() <= 0.2
    assert tell(audit)["limit"] == (
        "At most 1% of the known items that are given the class cat, 20% of the known items that "
        "are given the class dog and 5% of the others are called unknown, on average over pools "
        "like this one."
    )
    assert Audit.from_json(audit.to_json()) == audit


def test_too_few_seeds_of_a_class_are_told():
    evidence = make_evidence(n_seeds=100)
    rates = (0.001, 0.05, 0.05)  # no seed is given the third class
    audit = decide(evidence, replace(SEEDS, false_alarm_of=rates), seed=0).audit
    told = [each["text"] for each in tell(audit.named(["cat", "dog", "emu"]))["cautions"]]
    assert told == [
        "40 seeds are given the class cat and can promise a false-alarm rate of 2.5% at best "
        "there, not 0.1%: label more items of it, or give a higher --false-alarm-of",
        "no seed is given the class emu, so nothing can be promised for it: label more items of it",
    ]


def test_without_limits_of_single_classes_nothing_changes(evidence, decision):
    same = decide(evidence, replace(SEEDS, false_alarm_of=(0.0, 0.0)), seed=0)
    np.testing.assert_array_equal(same.labels, decision.labels)
    assert same.audit == decision.audit


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"cot": 0.01}, "false-alarm-of names 'cot', which is no known class; did you mean 'cat'?"),
        ({"zebra": 0.01}, "which is no known class; there is cat, dog"),
        ({"cat": 1.5}, "false-alarm-of cat is 1.5; give a share between 0 and 1, such as 0.01"),
        ({"cat": "few"}, "false-alarm-of cat is few; give a share between 0 and 1"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused_in_one_line(limits, words):
    with pytest.raises(SettingsError, match=re.escape(words)):
        number_classes({"decision.false_alarm_of": limits}, ["cat", "dog"])
