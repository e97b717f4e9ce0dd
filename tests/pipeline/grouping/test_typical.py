"""What is typical of groups: words of texts, columns of tables, the nearest known class."""

import numpy as np
import pytest
from scipy import stats

from s2osc.data.columns import Table
from s2osc.pipeline.grouping.typical import (
    WordCounts,
    as_many,
    class_tf_idf,
    cliffs_delta,
    profile_groups,
    typical_columns,
)
from s2osc.types import UNKNOWN, Answer
from texts import WORDS, easy_texts

FRUIT = list(enumerate(["apple", "pear", "plum", "fig"] * 10))


def answer_of(labels: list[int], groups: list[int], nearest: list[int]) -> Answer:
    n = len(labels)
    return Answer(
        labels=np.array(labels),
        unknown_score=np.zeros(n),
        confidence=np.ones(n),
        groups=np.array(groups),
        distinctness=np.zeros(n),
        filtered=np.zeros(n, bool),
        nearest=np.array(nearest),
    )


def test_c_tf_idf_is_as_published():
    counts = np.array([[3, 1], [1, 3]])
    wanted = np.array([[3 / 4, 1 / 4], [1 / 4, 3 / 4]]) * np.log(1 + 4 / 4)
    np.testing.assert_allclose(class_tf_idf(counts), wanted)


def test_a_word_that_no_class_has_says_nothing():
    assert class_tf_idf(np.array([[1, 0], [1, 0]]))[:, 1].tolist() == [0, 0]


def test_words_of_a_group_are_its_own_and_none_that_all_have():
    labels = ["fruit"] * 30 + ["tools"] * 30
    texts = np.array(easy_texts(labels, seed=0), object)
    answer = answer_of([0] * 30 + [UNKNOWN] * 30, [-1] * 30 + [0] * 30, [0] * 60)
    (profile,) = profile_groups(answer, ("fruit",), WordCounts.of(texts))
    assert set(profile.typical) == set(profile.differs) == set(WORDS["tools"])
    assert (profile.items, profile.nearest, profile.nearest_share) == (30, "fruit", 1.0)


def test_one_text_does_not_speak_for_its_group():
    texts = np.array(["plum", *["the drill"] * 9, *["the apple"] * 90], object)
    answer = answer_of([UNKNOWN] * 10 + [0] * 90, [0] * 10 + [-1] * 90, [0] * 100)
    assert profile_groups(answer, ("fruit",), WordCounts.of(texts))[0].typical == ("drill",)


def test_a_word_that_long_texts_have_more_often_is_not_typical_of_them():
    short = [f"the {fruit}" if i % 4 == 0 else f"{fruit} {fruit}" for i, fruit in FRUIT]
    long = [f"the drill and {fruit} or {fruit} and {fruit} {fruit}" for _, fruit in FRUIT]
    labels, groups = [UNKNOWN] * 40 + [0] * 40, [0] * 40 + [-1] * 40
    answer = answer_of(labels, groups, [0] * 80)
    (profile,) = profile_groups(answer, ("fruit",), WordCounts.of([*long, *short]))
    assert "drill" in profile.typical
    assert "the" not in profile.typical


def test_texts_without_words_have_none_that_are_typical():
    texts = np.array(["?", "!", "...", "-"], object)
    (profile,) = profile_groups(
        answer_of([-1, -1, 0, 0], [0, 0, -1, -1], [0] * 4), ("a",), WordCounts.of(texts)
    )
    assert profile.typical == ()


@pytest.mark.parametrize("shift", [-2.0, 0.0, 0.7])
def test_cliffs_delta_counts_pairs(shift):
    random = np.random.default_rng(0)
    mine, theirs = random.normal(size=40).round(1) + shift, random.normal(size=30).round(1)
    pairs = np.sign(mine[:, None] - theirs[None])
    assert cliffs_delta(mine, theirs) == pytest.approx(pairs.mean())


def test_columns_that_set_a_group_apart_come_first_and_in_words():
    random = np.random.default_rng(0)
    inside = np.arange(100) < 20
    table = Table(
        {
            "noise": random.normal(size=100),
            "width": np.where(inside, 9.0, 1.0),
            "colour": np.where(inside, "red", "blue").astype(object),
            "day": np.datetime64("2024-01-01", "s") + 86_400 * np.where(inside, 0, 31),
        }
    )
    assert typical_columns(table, inside, ~inside) == (
        "width higher: 9, elsewhere 1",
        "colour is red: 100%, elsewhere 0%",
        "day lower: 2024-01-01, elsewhere 2024-02-01",
    )
    assert typical_columns(table, inside, np.zeros(100, bool)) == ()


def test_images_have_a_nearest_class_and_no_words():
    (profile,) = profile_groups(answer_of([-1, -1, -1], [0, 0, 0], [1, 1, 0]), ("a", "b"), None)
    assert (profile.nearest, profile.nearest_share) == ("b", 0.6667)
    assert profile.typical == profile.differs == ()


def test_the_chance_of_many_hits_is_the_binomial_one():
    hits, p = np.array([0, 1, 3, 10]), np.array([0.2, 0.2, 0.9, 0.5])
    np.testing.assert_allclose(as_many(hits, 10, p), stats.binom.sf(hits - 1, 10, p))


def test_words_are_those_of_two_letters_or_more_in_small_letters():
    found = WordCounts.of(["The a The", "Ärger über-all", "?"])
    assert found.words.tolist() == ["all", "the", "ärger", "über"]
    assert (found.text.tolist(), found.count.tolist()) == ([0, 1, 1, 1], [2, 1, 1, 1])
