"""What an audit states is tested with as many draws as users get."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _as_users_get_it(all_draws) -> None:
    """Of all tests of this folder."""
