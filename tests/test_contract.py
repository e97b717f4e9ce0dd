"""Every method keeps the contract, in each of its forms."""

from dataclasses import replace

import pytest

from s2osc.baselines.cfo import SearchSettings
from s2osc.bench.methods import METHODS
from s2osc.nets.gan import GanSettings
from s2osc.settings import change
from s2osc.testing import CHECKS, quick
from samples import SEEDED, TINY, several

# How many groups there are has its own tests, and takes as long as all the rest.
TWO_GROUPS = {"clusters.n_groups": 2}
TINY_GAN = GanSettings(
    width=8, hidden=32, n_groups=4, group_size=8, epochs=1, min_steps=40, batch_size=32
)
SMALL_CHANGES = {
    **{name: TWO_GROUPS | {"filtering.k": 15} for name in METHODS if name.startswith("s2osc-")},
    "s2osc": TWO_GROUPS,
    "cpe": {"rule": "recall"},
    "lacu-svm": {"n_landmarks": 50},
}
"""What a method cannot learn from 120 items in 40 steps without."""
FORMS = {
    "isolation-forest": ({"space": "pca"}, {"space": "f"}),
    "one-class-svm": ({"whiten": True}, {"variant": "overall"}, {"space": "f"}),
    "lacu-svm": ({"rule": "recall"},),
    "senc-mas": ({"center": True}, {"n_directions": 4, "similarity": "energy"}),
    "eulac": ({"loss": "one-vs-rest"}, {"rule": "recall"}),
    "openmax": ({"rule": "own"},),
}
"""Settings that lead through other code than the defaults."""
RIGHT_ANSWERS = (
    "check_most_answers_are_right",
    "check_the_score_rises_with_unknownness",
    "check_the_order_of_the_pool_decides_no_label_alone",
)
EXCEPTIONS = {
    "isolation-forest": (
        RIGHT_ANSWERS,
        "along the axes of these blobs a known item stands as far out as an unknown one",
    ),
}


def _forms():
    for name, method in METHODS.items():
        small = change(quick(method), SMALL_CHANGES.get(name, {}))
        if name == "cfo":
            small = replace(
                small,
                gan=TINY_GAN,
                counterfactuals=SearchSettings(n_items=100, distance_weight=0.1),
                open_epochs=12,
            )
        yield name, small
        for changes in FORMS.get(name, ()):
            words = ", ".join(f"{setting}={value}" for setting, value in changes.items())
            yield f"{name}, {words}", change(small, changes)
    for name, method in {"s2osc-paper": TINY, "s2osc": SEEDED}.items():
        yield f"{name}, unknown=many", change(several(method), TWO_GROUPS)


SMALL = dict(_forms())
FIT_AGAIN = (
    "check_the_same_seed_gives_the_same_answer",
    "check_another_seed_gives_another_answer",
    "check_a_pool_without_unknown_items_works",
    "check_the_order_of_the_pool_decides_no_label_alone",
)
"""Quick for the defaults of each method; other forms are fitted once for all other checks."""
FORMS_OF_OURS = tuple(n for n in METHODS if n.startswith("s2osc-") and n != "s2osc-paper")
"""The paper's method without one of its parts."""


def _checks_of_forms():
    for check in CHECKS:
        for name in SMALL:
            is_form = name not in METHODS or name in FORMS_OF_OURS
            is_slow = is_form and check.__name__ in FIT_AGAIN
            marks = pytest.mark.slow if is_slow else ()
            yield pytest.param(name, check, id=f"{check.__name__}-{name}", marks=marks)


@pytest.mark.parametrize(("name", "check"), list(_checks_of_forms()))
def test_contract(name, check):
    checks, reason = EXCEPTIONS.get(name, ((), ""))
    if check.__name__ in checks:
        pytest.skip(reason)
    check(SMALL[name])
