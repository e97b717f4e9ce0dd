"""What an audit says in words."""

import pytest

from s2osc.pipeline.audit.wording import cautions, sentence, tell, verdict


def interval(estimate: float, low: float, high: float) -> dict[str, float]:
    return {"estimate": estimate, "low": low, "high": high}


def audit_of(**changes: object) -> dict:
    audit = {
        "nothing_unknown": False,
        "seeds": {"number": 1500},
        "false_alarm": interval(0.04, 0.02, 0.06),
        "known_accuracy": interval(0.98, 0.97, 0.99),
        "unknown_share": interval(0.4, 0.318, 0.5),
        "wanted_false_alarm": 0.05,
        "smallest_false_alarm": 1 / 1501,
        "test": {"p_value": 1e-12, "level": 0.01},
        "prior_shift": {"found": False, "weights": {}},
    }
    return audit | changes


def test_the_sentence_counts_false_alarms_and_bounds_the_unknown_share():
    assert sentence(audit_of()) == (
        "About 4 in 100 known items are called unknown (2 to 6); "
        "at least 31% of this pool is of no known class."
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
    assert sentence(audit_of(false_alarm=interval(*figures))).startswith(words)


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((0.05, 0.0123, 0.1), "; at least 1.2% of this pool is of no known class."),
        (
            (0.02, 0.0, 0.0512),
            "; about 2% of this pool is of no known class, perhaps none and at most 5.2%.",
        ),
        ((0.0, 0.0, 0.03), "; at most 3% of this pool is of no known class."),
    ],
)
def test_the_unknown_share_is_bounded_from_the_safe_side(figures, words):
    assert sentence(audit_of(unknown_share=interval(*figures))).endswith(words)


def test_where_nothing_is_unknown_the_sentence_says_so_and_how_often_a_class_is_wrong():
    audit = audit_of(nothing_unknown=True, unknown_share=interval(0.0, 0.0, 0.021))
    assert sentence(audit) == (
        "As far as 1,500 labelled test items can tell, nothing in this pool is unknown (at most "
        "2.1% could be); about 2 in 100 answers name the wrong class (1 to 3)."
    )
    unbounded = audit | {"unknown_share": interval(0.0, 0.0, 0.0)}
    assert "nothing in this pool is unknown; about 2 in 100" in sentence(unbounded)
    perfect = audit | {"known_accuracy": interval(1.0, 0.9976, 1.0), "seeds": {"number": 1}}
    assert sentence(perfect) == (
        "As far as 1 labelled test item can tell, nothing in this pool is unknown (at most "
        "2.1% could be); at most 3 in 1,000 answers name the wrong class."
    )


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
    assert verdict(audit_of(test={"p_value": p_value, "level": level})) == words


def test_telling_names_the_classes_and_changes_nothing_it_was_given():
    account = audit_of(false_alarm=interval(0.04, 0.02, 0.06) | {"per_class": {0: 1, 1: 2}})
    before = str(account)
    told = tell(account, ["cat", "dog"])
    assert told["false_alarm"]["per_class"] == {"cat": 1, "dog": 2}
    assert next(iter(told)) == "sentence"
    assert told["test"]["verdict"] == verdict(account)
    assert str(account) == before


def test_an_audit_without_limits_has_no_caution():
    assert cautions(audit_of(), rule="seeds") == []


def test_too_few_seeds_for_the_wanted_rate_are_a_caution():
    few = audit_of(seeds={"number": 30}, smallest_false_alarm=1 / 31, wanted_false_alarm=0.01)
    (caution,) = cautions(few, rule="seeds")
    assert caution == (
        "30 seeds can promise a false-alarm rate of 3.3% at best, not 1%: label more items of the "
        "known classes, or give a higher --false-alarm"
    )
    # Where no promise was made, or nothing is called unknown, none can be broken.
    assert cautions(few, rule="argmax") == cautions(few | {"nothing_unknown": True}, rule="seeds")
    assert cautions(few, rule="argmax") == []


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
    audit = audit_of(prior_shift={"found": True, "weights": weights})
    (caution,) = cautions(audit, rule="argmax")
    assert caution.startswith(f"the pool holds {words} the labelled items suggest: ")
    assert caution.endswith("the figures are re-weighted for that, and less certain")
