"""Every method keeps the contract."""

from dataclasses import replace

import pytest

from contract import CHECKS
from s2osc.pipeline.grouping.clusters import ClusterSettings
from s2osc.pipeline.presets import ABLATIONS
from samples import MANY, SEEDED, SEEDED_MANY, TINY

METHODS = {
    "plain": TINY,
    **{f"S2OSC-{letter}": ablate(TINY) for letter, ablate in ABLATIONS.items()},
    "many": MANY,
    "with seeds": SEEDED,
    "many, with seeds": SEEDED_MANY,
}
# How many groups there are has its own tests, and takes as long as all the rest.
METHODS = {
    name: replace(method, clusters=ClusterSettings(n_groups=2)) for name, method in METHODS.items()
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(method, check):
    check(method)
