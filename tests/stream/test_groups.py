"""Groups that come again in the next window of a stream keep their numbers."""

import numpy as np
import pytest

from s2osc.stream.groups import number_groups


@pytest.mark.parametrize(
    ("before", "now", "numbers"),
    [
        ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0], (1, 0)),  # the sizes of groups do not matter
        ([0, 0, 0, 1], [0, 0, 1, 2], (0, 2, 1)),  # most of a group is the group
        ([0, 0, 1, 1], [0, 1, 0, 1], (0, 1)),  # halves are none
        ([0, 0, 0, 1, 1], [0, 0, 0, 0, 0], (0,)),  # two that are one now: the larger
        ([0, 0, 2, 2], [1, 1, 0, 0], (1, 0)),  # number 2 would leave a gap
        ([], [], (0, 1)),
    ],
)
def test_a_group_has_the_number_of_the_earlier_one_that_it_is(before, now, numbers):
    found = number_groups(np.array(before, int), np.array(now, int), len(numbers))
    assert found.numbers == numbers


def test_what_was_kept_is_told_and_nothing_where_nothing_was():
    found = number_groups(np.array([0, 0, 2, 2]), np.array([0, 0, 1, 1]), 3)
    assert found.in_words() == [
        "Of the groups without a name in the window before: groups 0, 2 are the same again; "
        "group 1 is new"
    ]
    moved = number_groups(np.array([0, 2]), np.array([0, 1]), 2)
    assert moved.in_words()[0].endswith("group 0 is the same again; group 1 was 2")
    assert number_groups(np.array([], int), np.array([], int), 2).in_words() == []
