"""One seed per run, one random stream per purpose."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from s2osc.seeding import derive, rng, torch_seed


@given(st.integers(0, 2**63), st.text(max_size=20))
def test_a_derived_seed_is_repeatable_and_fits_any_generator(seed, purpose):
    derived = derive(seed, purpose)
    assert derived == derive(seed, purpose)
    assert 0 <= derived < 2**32


def test_every_seed_and_purpose_has_a_stream_of_its_own():
    purposes = ("teacher", "student", "classes", "items", "D_in")
    derived = {derive(seed, purpose) for seed in range(200) for purpose in purposes}
    assert len(derived) == 1000


def test_derived_seeds_do_not_change_between_versions():
    # Numbers in records are only repeatable as long as these hold.
    assert [derive(0, "teacher"), derive(7, "items")] == [3_356_666_429, 1_533_129_011]


def test_generators_of_two_purposes_are_not_correlated():
    first, second = (rng(0, purpose).normal(size=5_000) for purpose in ("teacher", "student"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
    np.testing.assert_array_equal(first, rng(0, "teacher").normal(size=5_000))


def test_torch_draws_from_the_purpose_within_and_goes_on_as_before_after():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch_seed(0, "student"):
        inside = torch.rand(4)
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(99)
    with torch_seed(0, "student"):
        assert torch.equal(torch.rand(4), inside)
    with torch_seed(1, "student"):
        assert not torch.equal(torch.rand(4), inside)


def test_an_error_within_leaves_the_global_state_too():
    state = torch.get_rng_state()

    def fail():
        with torch_seed(0, "student"):
            torch.rand(4)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert torch.equal(torch.get_rng_state(), state)
