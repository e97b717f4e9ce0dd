"""What an audit states is tested with as many draws as users get."""

import pytest

from s2osc.pipeline.audit.outcome import decide
from samples import SEEDS, make_evidence


@pytest.fixture(scope="module", autouse=True)
def _as_users_get_it(as_users_get_it) -> None:
    """Of all tests of this folder."""


@pytest.fixture(scope="module")
def evidence():
    return make_evidence()


@pytest.fixture(scope="module")
def decision(evidence, as_users_get_it):
    return decide(evidence, SEEDS, seed=0)
