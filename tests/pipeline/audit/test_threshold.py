"""The operating point: thresholds, limits of single classes, what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s2osc.errors import SettingsError
from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.statistics import (
    conformal_threshold,
    operating_point,
    p_known,
)
from s2osc.pipeline.audit.threshold import (
    DecisionSettings,
    Thresholds,
    choose_threshold,
    choose_thresholds,
    number_classes,
    share_of_unknown,
    thresholds_for_new,
)
from s2osc.pipeline.audit.wording import tell
from s2osc.types import UNKNOWN
from samples import N_POOL, SEEDS, make_evidence

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


def far_out(n_judges_beyond=0):
    """The evidence where 40 items lie far out, and the tail tells where they begin."""
    found = make_evidence(pi=0.0)
    score, seed_score = found.score.copy(), found.seed_score.copy()
    score[:40] = 9 + np.arange(40) / 40
    seed_score[:n_judges_beyond] = 9.5
    tail = LongTail(
        n_items=40 + n_judges_beyond, n_regular=2.0, n_judges=n_judges_beyond, chance=0.02, start=6
    )
    is_judge = np.arange(len(score) + len(seed_score)) >= len(score)
    both = tail.levelled(np.append(score, seed_score), is_judge)
    return replace(
        found,
        score=both[~is_judge],
        seed_score=both[is_judge],
        p_value=tail.p_value,
        long_tail=tail,
    )


@pytest.mark.parametrize("n_judges_beyond", [0, 2])
def test_where_a_long_tail_begins_items_are_unknown_exactly_up_to_the_operating_point(
    n_judges_beyond,
):
    found = decide(far_out(n_judges_beyond), SEEDS, seed=0)
    assert np.flatnonzero(found.labels == UNKNOWN).tolist() == list(range(40))
    np.testing.assert_array_equal(
        found.labels == UNKNOWN, found.p_known <= found.audit.operating_point
    )


def test_the_limit_on_false_alarms_goes_before_where_a_long_tail_begins():
    evidence = far_out(n_judges_beyond=200)
    found = decide(evidence, replace(SEEDS, false_alarm=0.01), seed=0)
    assert np.mean(evidence.seed_score > found.thresholds.common) <= 0.01


def test_a_decision_by_g_alone_knows_nothing_of_where_a_long_tail_begins():
    found = far_out()
    odds = np.append(found.score, found.seed_score)
    assert found.by_odds(odds).long_tail.start is None


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
