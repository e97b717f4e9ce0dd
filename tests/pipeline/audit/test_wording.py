"""What an audit says in words."""

from dataclasses import replace

import pytest

from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.record import CheckedAudit, ClassAudit, SourcesAudit, UnknownTest
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.audit.wording import cautions, limit, sentence, tell, verdict
from samples import make_audit


def test_the_sentence_counts_false_alarms_and_estimates_the_unknown_share():
    assert sentence(make_audit()) == (
        "About 4 in 100 known items are called unknown (2 to 6); "
        "an estimated 40% of this pool is of no known class (rough range 31% to 45%)."
    )


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((0.012, 0.004, 0.03), "About 1 in 100 known items is called unknown (0 to 3); "),
        ((0.0084, 0.004, 0.03), "About 8 in 1,000 known items are called unknown (4 to 30); "),
        ((0.0012, 0.0, 0.004), "About 1 in 1,000 known items is called unknown (0 to 4); "),
        ((0.0, 0.0, 0.0021), "At most 3 in 1,000 known items are called unknown; "),
        ((0.0001, 0.0, 0.0004), "At most 1 in 1,000 known items is called unknown; "),
        ((0.0, 0.0, 0.114), "At most 12 in 100 known items are called unknown; "),
        ((1.0, 0.9, 1.0), "About 100 in 100 known items are called unknown (90 to 100); "),
    ],
)
def test_a_rate_is_told_in_whole_items(figures, words):
    assert sentence(make_audit(false_alarm=Estimate(*figures))).startswith(words)


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((0.05, 0.0123, 0.1), "; an estimated 5% {} (rough range 1.2% to 10%)."),
        ((0.02, 0.0, 0.0512), "; an estimated 2% {} (rough range 0% to 5.2%)."),
        ((0.0, 0.0, 0.03), "; an estimated 0% {} (rough range 0% to 3%)."),
    ],
)
def test_the_unknown_share_has_one_figure_and_a_range_rounded_outwards(figures, words):
    words = words.format("of this pool is of no known class")
    assert sentence(make_audit(unknown_share=Estimate(*figures))).endswith(words)


NOTHING = make_audit(
    test=UnknownTest(p_value=0.4, level=0.01),
    nothing_unknown=True,
    unknown_share=Estimate(0.0, 0.0, 0.021),
    known_accuracy=Estimate(0.98, 0.97, 0.99),
)


def test_where_nothing_is_unknown_the_sentence_says_so_and_how_often_a_class_is_wrong():
    assert sentence(NOTHING) == (
        "As far as 1,500 labelled test items can tell, nothing in this pool is unknown; "
        "about 2 in 100 answers name the wrong class (1 to 3)."
    )
    perfect = replace(NOTHING, known_accuracy=Estimate(1.0, 0.9976, 1.0), n_seeds=1)
    assert sentence(perfect) == (
        "As far as 1 labelled test item can tell, nothing in this pool is unknown; "
        "at most 3 in 1,000 answers name the wrong class."
    )
    unjudged = replace(NOTHING, known_accuracy=None)
    assert sentence(unjudged).endswith("can tell, nothing in this pool is unknown.")


@pytest.mark.parametrize(
    ("share", "words"), [(0.0036, "0.4%"), (0.02, "2%"), (0.0312, "3.2%"), (0.1, "10%")]
)
def test_where_nothing_is_found_the_sentence_says_what_would_have_been(share, words):
    assert sentence(replace(NOTHING, findable_share=share)).startswith(
        "As far as 1,500 labelled test items can tell, nothing in this pool is unknown (a class "
        f"that stands apart would be found from {words} of the pool on); about 2 in 100 answers"
    )


@pytest.mark.parametrize(("accuracy", "tells"), [(0.7, True), (0.5, False)])
def test_where_classes_are_hardly_told_apart_nothing_is_concluded_from_finding_none(
    accuracy, tells
):
    classes = tuple(ClassAudit(name, 10, 1.0, None, None) for name in "abcde")
    right = Estimate(accuracy, accuracy - 0.1, accuracy + 0.1)
    audit = replace(NOTHING, known_accuracy=right, classes=classes).as_sources_allow()
    assert sentence(audit).startswith("As far as" if tells else "Cannot tell")
    assert ("hardly told from each other" in sentence(audit)) != tells
    assert audit.unknown_share.high == (0.021 if tells else 1.0)


def test_where_only_a_large_class_would_be_found_nothing_is_concluded():
    told = sentence(replace(NOTHING, findable_share=0.79, n_seeds=5))
    assert told == (
        "Cannot tell whether anything in this pool is unknown: with 5 labelled test items, only a "
        "class of at least 79% of the pool would be found; label more items of the known classes, "
        "or check a few of the pool."
    )
    assert "nothing in this pool" not in told


@pytest.mark.parametrize(("p_value", "tells"), [(0.032, False), (0.1, False), (0.11, True)])
def test_a_small_p_value_that_is_no_discovery_is_no_reason_to_say_nothing(p_value, tells):
    told = sentence(replace(NOTHING, test=UnknownTest(p_value=p_value, level=0.01)))
    assert told.startswith("As far as" if tells else "Cannot tell")
    assert (f"(p = {p_value}; tested at the 1% level)" in told) != tells
    assert ("nothing in this pool" in told) == tells


def test_where_something_is_found_it_does_not_matter_how_little_could_have_been():
    assert sentence(make_audit(findable_share=0.79)) == sentence(make_audit())


OTHER = SourcesAudit(
    p_value=0.002, level=0.01, n_pool=80, n_labelled=31, differ=True, signs=("w", "entropy of f")
)


@pytest.mark.parametrize(
    "audit",
    [make_audit(), NOTHING, replace(NOTHING, findable_share=0.5)],
    ids=["something", "nothing", "cannot tell"],
)
def test_another_source_is_told_first(audit):
    told = sentence(replace(audit, sources=OTHER))
    assert told.startswith(
        "This pool seems to come from another source than the labelled items, so labelled items "
        "cannot tell how often the answer is wrong. "
    )
    rest = told.partition("is wrong. ")[2]
    if audit.nothing_unknown:
        assert rest.startswith("Cannot tell whether anything in it is unknown")
    else:
        assert rest.startswith("An estimated ")
        assert "or as known items that look different in this source" in rest
    assert limit(replace(audit, sources=OTHER)) is None
    first, *others = cautions(replace(audit, sources=OTHER))
    assert first.code == "sources_differ"
    assert "(p = 0.002; 80 surely known items compared)" in first.text
    assert "label about 30 random items of the pool" in first.text
    assert others == cautions(audit)


def test_a_source_that_is_only_suspected_is_no_caution_but_leaves_the_answer_open():
    suspected = replace(
        OTHER, differ=False, changes=("noise of about 4 of 255",), is_suspected=True
    )
    told = sentence(replace(NOTHING, sources=suspected))
    assert told.startswith("Cannot tell whether anything in this pool is unknown")
    assert "noise of about 4 of 255" in told
    assert cautions(replace(NOTHING, sources=suspected)) == cautions(NOTHING)
    assert replace(NOTHING, sources=suspected).with_missed().unknown_share.high == 1


def test_a_source_that_a_small_change_explains_is_told_with_the_change():
    matched = replace(OTHER, changes=("noise of about 12 of 255",), still_differ=False)
    for audit in (make_audit(), NOTHING):
        told = sentence(replace(audit, sources=matched))
        assert told == (
            "This pool seems to come from another source than the labelled items, as if with noise "
            f"of about 12 of 255; the labelled items were given the same. {sentence(audit)}"
        )
        (caution, *_) = cautions(replace(audit, sources=matched))
        assert "with noise of about 12 of 255, which the labelled items were given" in caution.text
        assert "no error rates are stated" not in caution.text
    apart = replace(matched, still_differ=True)
    assert "cannot tell how often the answer is wrong" in sentence(make_audit(sources=apart))
    assert "no error rates are stated" in cautions(make_audit(sources=apart))[0].text


def test_the_same_source_is_no_caution():
    same = replace(OTHER, p_value=0.3, differ=False, signs=())
    audit = make_audit(sources=same)
    assert sentence(audit) == sentence(make_audit())
    assert cautions(audit) == []


@pytest.mark.parametrize(
    ("p_value", "level", "words"),
    [
        (0.0, 0.01, "Something in this pool is unknown (p < 1e-9; tested at the 1% level)."),
        (0.00064, 0.05, "Something in this pool is unknown (p = 0.00064; tested at the 5% level)."),
        (0.4, 0.01, "No sign of anything unknown in this pool (p = 0.4; tested at the 1% level)."),
        (1.0, 0.001, "No sign of anything unknown in this pool (p = 1; tested at the 0.1% level)."),
    ],
)
def test_the_verdict_names_the_test(p_value, level, words):
    assert verdict(UnknownTest(p_value, level)) == words


def test_what_is_told_opens_with_the_sentence_and_closes_with_the_cautions():
    audit = make_audit(is_shifted=True)
    record = tell(audit)
    assert next(iter(record)) == "sentence"
    assert record["sentence"] == sentence(audit)
    assert record["test"]["verdict"] == verdict(audit.test)
    (caution,) = cautions(audit)
    assert record["cautions"] == [{"code": "class_shift", "text": caution.text}]


def test_an_audit_without_limits_has_no_caution():
    assert cautions(make_audit()) == []


def test_the_limit_on_false_alarms_says_in_which_sense_it_holds():
    audit = make_audit(rule="seeds", wanted_false_alarm=0.05, smallest_false_alarm=0.01)
    assert limit(audit) == (
        "At most 5% of the known items are called unknown, on average over pools like this one."
    )
    in_pool = replace(audit, guarantee="pool", smallest_false_alarm=0.062)
    assert limit(in_pool) == (
        "At most 6.2% of the known items are called unknown, with 95% confidence in this pool."
    )
    (caution,) = cautions(in_pool)
    assert "at best, not 5%, with 95% confidence in this pool: label more" in caution.text
    assert limit(replace(audit, nothing_unknown=True)) is None
    assert limit(replace(audit, rule="argmax")) is None


def test_too_few_seeds_for_the_wanted_rate_are_a_caution():
    few = make_audit(n_seeds=30, smallest_false_alarm=1 / 31, wanted_false_alarm=0.01)
    (caution,) = cautions(few)
    assert caution.code == "few_seeds"
    assert caution.text == (
        "30 seeds can promise a false-alarm rate of 3.3% at best, not 1%: label more items of the "
        "known classes, or give a higher --false-alarm"
    )
    # Where no promise was made, or nothing is called unknown, none can be broken.
    assert cautions(replace(few, rule="argmax")) == []
    assert cautions(replace(few, nothing_unknown=True)) == []


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"cat": 1, "dog": 0.1}, "fewer items of dog than"),
        ({"cat": 1, "dog": 0.1, "fox": 3}, "fewer items of dog and more of fox than"),
        ({"cat": 1, "a": 9, "b": 9, "c": 9, "d": 9}, "more items of a, b, c, d than"),
        (
            {"cat": 1} | dict.fromkeys("abcde", 9),
            "more items of a, b, c and 2 others than",
        ),
        # Most classes stay away: the middle one is among them, and weights are relative to it.
        ({"boot": 25, "cat": 25, "dog": 25, "badger": 900}, "fewer items of boot, cat, dog than"),
        (
            {"boot": 25, "cat": 25, "dog": 25, "elk": 25, "badger": 900, "fox": 800, "ox": 3000},
            "fewer items of boot, cat, dog, elk and more of ox than",
        ),
        (dict.fromkeys("abc", 25), "fewer items of the known classes than"),
        ({"a": 1.5, "b": 0.7}, "other shares of the known classes than"),
    ],
)
def test_a_shifted_pool_is_a_caution_that_names_the_classes(weights, words):
    classes = tuple(
        ClassAudit(name, n_seeds=9, weight=weight, false_alarm=None, known_accuracy=None)
        for name, weight in weights.items()
    )
    (caution,) = cautions(make_audit(is_shifted=True, classes=classes, rule="argmax"))
    assert caution.code == "class_shift"
    assert caution.text.startswith(f"the pool holds {words} the labelled items suggest: ")
    assert caution.text.endswith("the figures are re-weighted for that, and less certain")


CHECKED = CheckedAudit(
    n_items=30,
    n_skipped=0,
    n_unknown=12,
    n_known=18,
    n_alarms=1,
    n_right=27,
    unknown_share=Estimate(0.4, 0.229, 0.592),
    accuracy=Estimate(0.9, 0.737, 0.979),
    false_alarm=Estimate(0.056, 0.0014, 0.273),
    known_accuracy=Estimate(0.9, 0.7, 0.98),
    unknown_recall=Estimate(0.83, 0.5, 0.98),
)


def test_what_a_person_measured_is_the_sentence_in_place_of_estimates():
    assert sentence(make_audit(checked=CHECKED)) == (
        "Of 30 random items checked by a person, 27 are answered right (73% to 98% of this pool, "
        "with 95% confidence), 12 are of no known class (22% to 60%), and 1 of 18 known ones is "
        "called unknown (0.1% to 28%)."
    )
    assert tell(make_audit(checked=CHECKED))["checked"]["n_right"] == 27


def test_one_item_is_told_of_as_one():
    one = replace(CHECKED, n_items=1, n_unknown=1, n_right=0, false_alarm=None)
    assert sentence(make_audit(checked=one)) == (
        "Of 1 random item checked by a person, 0 are answered right (73% to 98% of this pool, with "
        "95% confidence), and 1 is of no known class (22% to 60%)."
    )
    unsure = replace(one, accuracy=None)
    assert sentence(make_audit(checked=unsure)) == (
        "Of 1 random item checked by a person, 1 is of no known class (22% to 60% of this pool, "
        "with 95% confidence)."
    )


def test_estimates_that_a_person_contradicts_are_cautioned_against():
    assert cautions(make_audit(checked=CHECKED)) == []
    (caution,) = cautions(make_audit(checked=CHECKED, unknown_share=Estimate(0.99, 0.98, 1.0)))
    assert caution.code == "check_disagrees"
    assert caution.text.startswith(
        "a person's labels contradict the estimated unknown share (98% to 100% estimated, 22% to "
        "60% measured): "
    )


@pytest.mark.parametrize(("findable", "n_cautions"), [(None, 1), (0.05, 1), (0.3, 0)])
def test_nothing_unknown_is_contradicted_by_more_than_could_have_been_missed(findable, n_cautions):
    audit = make_audit(
        nothing_unknown=True,
        unknown_share=Estimate(0.0, 0.0, 0.0),
        unknown_recall=None,
        findable_share=findable,
        checked=CHECKED,
    )
    assert len(cautions(audit)) == n_cautions


def test_items_without_a_label_among_the_checked_are_told_of():
    (caution,) = cautions(make_audit(checked=replace(CHECKED, n_skipped=2)))
    assert caution.code == "check_skipped"
    assert caution.text.startswith("2 of the first 32 items to check have no label")


def test_the_verdict_says_where_it_rests_on_a_tail():
    tail = LongTail(n_items=94, n_regular=43.4, n_judges=2, chance=0.024, start=2.5)
    assert verdict(UnknownTest(0.0024, 0.01, tail)) == (
        "Something in this pool is unknown: 94 items lie farther out than all but 2 of the "
        "labelled ones, where distances that thin out as they do nearer in would leave 44 at most "
        "(p = 0.024 by the labelled items alone; tested at the 1% level)."
    )
    told = verdict(UnknownTest(0.0024, 0.001, tail))
    assert told == "No sign of anything unknown in this pool (p = 0.024; tested at the 0.1% level)."
