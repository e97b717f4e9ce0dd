"""Covering designs: every pair that can be there is there, and few rows are needed for it."""

from collections import Counter
from itertools import combinations, product

import pytest

from s2osc.bench.experiments.covering import cover_pairs

FACTORS = {"share": (0, 0.1, 1), "source": ("same", "noise", "blur"), "units": ("own", "wild")}
ALL = [dict(zip(FACTORS, levels, strict=True)) for levels in product(*FACTORS.values())]
SOME = [each for each in ALL if not (each["source"] == "blur" and each["units"] == "wild")]


def pairs_of(candidate):
    return [((a, candidate[a]), (b, candidate[b])) for a, b in combinations(sorted(candidate), 2)]


def count_pairs(candidates, rows):
    return Counter(pair for row in rows for pair in pairs_of(candidates[row]))


@pytest.mark.parametrize("candidates", [ALL, SOME], ids=["all", "some"])
@pytest.mark.parametrize("times", [1, 3, 20])
def test_every_pair_that_can_go_together_comes_often_enough_and_no_other(candidates, times):
    counts = count_pairs(candidates, cover_pairs(candidates, times))
    possible = {pair for each in candidates for pair in pairs_of(each)}
    assert counts.keys() == possible
    assert min(counts.values()) >= times


def test_a_design_needs_hardly_more_rows_than_its_two_largest_factors():
    assert 9 * 20 <= len(cover_pairs(ALL, 20)) <= 1.1 * 9 * 20


def test_the_design_for_fewer_times_is_the_beginning_of_that_for_more():
    longer = cover_pairs(SOME, 5)
    for times in range(1, 5):
        shorter = cover_pairs(SOME, times)
        assert longer[: len(shorter)] == shorter


def test_two_factors_take_each_combination_once():
    candidates = [{"a": a, "b": b} for a in range(4) for b in range(5)]
    assert sorted(cover_pairs(candidates, 1)) == list(range(20))
