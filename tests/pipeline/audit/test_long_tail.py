"""Items too far out for a regular tail: found where there are some, and hardly ever else."""

import numpy as np
import pytest

from s2osc.pipeline.audit.long_tail import LongTail, find_long_tail, measure_tail

N, N_JUDGES = 20_000, 1_000
IS_JUDGE = np.arange(N) < N_JUDGES


def random(seed=0):
    return np.random.default_rng(seed)


def found_in(scores, is_judge=IS_JUDGE):
    return find_long_tail(scores, np.zeros(len(scores), int), is_judge)


REGULAR = {
    "Gaussian": lambda draw, n: draw.normal(size=n),
    "exponential": lambda draw, n: draw.exponential(size=n),
    "log-normal": lambda draw, n: draw.lognormal(size=n),
    "t with 2 degrees of freedom": lambda draw, n: np.abs(draw.standard_t(2, size=n)),
    "t with 1 degree of freedom": lambda draw, n: np.abs(draw.standard_t(1, size=n)),
    "uniform": lambda draw, n: draw.random(n),
}


@pytest.mark.parametrize("draw", REGULAR.values(), ids=REGULAR.keys())
@pytest.mark.parametrize("n", [600, N])
def test_a_regular_tail_is_none_that_is_too_long(draw, n):
    found = [found_in(draw(random(seed), n), np.arange(n) < n // 20) for seed in range(20)]
    assert found == [None] * len(found)


@pytest.mark.parametrize("name", ["Gaussian", "exponential"])
def test_a_lump_far_out_is_found_and_begins_where_regular_items_end(name):
    scores = REGULAR[name](random(), N)
    is_lump = np.arange(N) >= N - 80
    scores[is_lump] = 14 + random(1).normal(size=80)
    found = found_in(scores)
    assert found.n_judges == (IS_JUDGE & (scores > found.start)).sum()
    assert (scores[is_lump] > found.start).all()
    assert (scores[~is_lump] > found.start).sum() <= 20
    assert found.n_items == (scores > found.start).sum()
    assert found.n_regular <= found.n_items / 2


def test_the_chance_of_no_judge_is_exact_and_the_p_value_a_tenth_of_it():
    scores = random().normal(size=N)
    scores[-60:] = 9.0 + random(1).random(60)
    found = found_in(scores)
    n = np.arange(found.n_items)
    assert found.chance == pytest.approx(np.prod((N - N_JUDGES - n) / (N - n)))
    assert found.p_value == pytest.approx(found.chance / 10)


def test_judges_that_lie_as_far_out_speak_against_it():
    scores = random().normal(size=N)
    is_far = np.arange(N) % 200 == 0  # as many of the judges as of the others
    scores[is_far] += 12
    found = found_in(scores)
    assert found.n_judges >= 4
    assert found.chance > 0.2


@pytest.mark.parametrize("scores", [np.zeros(N), np.arange(N) % 2, np.arange(100.0)])
def test_equal_or_few_scores_have_no_tail(scores):
    is_judge = np.arange(len(scores)) < len(scores) // 20
    assert found_in(scores, is_judge) is None


def test_the_tail_of_an_exponential_distribution_is_expected_as_it_is():
    falling = -np.log((np.arange(N) + 0.5) / N)  # its quantiles
    tail = measure_tail(falling)
    assert tail.n == 400
    expected = tail.expected(falling[[399, 99]])
    assert expected[0] == pytest.approx(400)
    assert 100 <= expected[1] <= 120  # a little more, to be cautious


def test_what_the_tail_explains_is_no_stranger_than_the_strangest_judge():
    found = LongTail(n_items=2, n_regular=0.5, n_judges=1, chance=0.02, start=7.0)
    scores, is_judge = np.array([5.0, 8.0, 6.0, 9.0, 1.0]), np.array([1, 1, 0, 0, 0], bool)
    np.testing.assert_array_equal(found.levelled(scores, is_judge), [5.0, 8.0, 5.0, 9.0, 1.0])
