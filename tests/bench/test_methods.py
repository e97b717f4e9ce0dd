"""Methods by name: ours, those we compare with, those of other packages; each set for its run."""

from dataclasses import dataclass, fields, replace
from functools import partial
from types import SimpleNamespace

import pytest

from s2osc.baselines.dtc import DTC
from s2osc.baselines.post_hoc import MSP
from s2osc.bench import methods
from s2osc.bench.methods import (
    ABLATED,
    COMPARED,
    DETECTORS,
    METHODS,
    NETWORKS,
    OURS,
    adapt,
    choose_methods,
    run_facts,
)
from s2osc.errors import SettingsError
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import ABLATIONS, FAST, HEADS, PAPER
from s2osc.settings import flatten

# Names


def test_every_method_differs_from_every_other():
    assert len(set(METHODS.values())) == len(METHODS)
    assert all(callable(method.fit) for method in METHODS.values())


def test_names_can_be_listed_with_commas_and_stand_in_file_names():
    assert not any(set(name) & set(' ,/\\:*?"<>|') for name in METHODS)


def test_a_table_compares_each_method_once_and_ours_without_ablations():
    assert set(COMPARED) <= METHODS.keys() - set(ABLATED) | {"s2osc-paper"}
    assert {"s2osc", "s2osc-paper", *DETECTORS} <= set(COMPARED)
    assert len(set(COMPARED)) == len(COMPARED)
    assert OURS == "s2osc"


def test_what_is_ours_is_what_its_name_says():
    assert METHODS["s2osc"] == FAST
    paper = METHODS["s2osc-paper"]
    differences = {name for name, value in flatten(PAPER).items() if flatten(paper)[name] != value}
    assert {name.partition(".")[0] for name in differences} <= {"teacher"}
    for letter, ablate in ABLATIONS.items():
        assert METHODS[f"s2osc-{letter.lower()}"] == ablate(paper)


# Methods of other packages


@dataclass(frozen=True)
class Stranger:
    """A method that some other package brings."""

    charm: float = 0.5

    def fit(self, known, pool, *, seed, device="cpu"):
        raise NotImplementedError


@pytest.fixture
def installed(monkeypatch) -> list:
    """Entry points of other packages, as (name, object); an error is what loading it gives."""
    brought = []

    def load(it):
        if isinstance(it, Exception):
            raise it
        return it

    def entry_points(*, group):
        assert group == "s2osc.methods"
        package = SimpleNamespace(name="charming")
        return [
            SimpleNamespace(name=name, load=partial(load, it), dist=package) for name, it in brought
        ]

    monkeypatch.setattr(methods, "entry_points", entry_points)
    return brought


def test_a_method_of_another_package_runs_by_its_name(installed):
    installed.append(("stranger", Stranger()))
    assert "stranger" not in METHODS
    chosen = choose_methods("msp,stranger", {"msp": METHODS["msp"]})
    assert chosen == {"msp": METHODS["msp"], "stranger": Stranger()}
    with pytest.raises(SettingsError, match=r"no method 'magic'; give msp or .* or stranger$"):
        choose_methods("magic", {"msp": METHODS["msp"]})


@pytest.mark.parametrize("own", [{}, {"msp": MSP(known_recall=0.5)}])
def test_a_name_that_is_taken_is_refused(installed, own):
    installed.append(("msp", Stranger()))
    with pytest.raises(SettingsError, match="package charming brings a method 'msp', which there"):
        choose_methods("msp", own)
    assert choose_methods("odin", own) == {"odin": METHODS["odin"]}


def test_two_packages_cannot_bring_the_same_name(installed):
    installed += [("stranger", Stranger()), ("stranger", Stranger(charm=1.0))]
    with pytest.raises(SettingsError, match="'stranger', which there is already"):
        choose_methods("stranger", {})


def test_a_broken_package_stops_nobody_who_does_not_ask_for_its_method(installed):
    installed.append(("stranger", ImportError("no module named 'charm'")))
    assert choose_methods("msp", {}) == {"msp": METHODS["msp"]}
    with pytest.raises(SettingsError, match="no method 'magic'"):
        choose_methods("magic", {})


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        (ImportError("no 'charm'"), r"cannot be loaded \(ImportError: no 'charm'\); mend that"),
        (Stranger, "names the class Stranger; name an instance of it instead"),
        ("Stranger", "names a str; name an instance of a frozen dataclass with `fit`"),
    ],
)
def test_what_is_no_method_is_refused_by_the_name_of_its_package(installed, brought, message):
    installed.append(("stranger", brought))
    where = "the entry point 'stranger' of the package charming"
    with pytest.raises(SettingsError, match=f"^{where} {message}"):
        choose_methods("stranger", {})


def test_a_method_that_declares_no_need_runs_as_it_is():
    for networks in (None, "tiny"):
        assert adapt(Stranger(), run_facts(networks, flip=True, n_unknown=3)) == Stranger()


# Choosing


def test_without_names_an_experiment_runs_its_own_methods(installed):
    own = {"quick": MSP()}
    assert choose_methods(None, own) == choose_methods("all", own) == own


def test_all_may_stand_beside_other_names(installed):
    installed.append(("stranger", Stranger()))
    own = {"quick": MSP(), "odin": METHODS["odin"]}
    assert list(choose_methods("all,stranger", own)) == ["quick", "odin", "stranger"]
    assert list(choose_methods("energy, odin, all", own)) == ["energy", "odin", "quick"]


@pytest.mark.parametrize("names", ["", " , "])
def test_no_name_at_all_is_refused(names):
    with pytest.raises(SettingsError, match=f"^--methods is '{names}'; give names with commas"):
        choose_methods(names, {"quick": MSP()})


def test_methods_are_chosen_in_the_order_they_are_named(installed):
    own = {"quick": MSP(known_recall=0.5), "odin": METHODS["odin"]}
    chosen = choose_methods(" energy,quick , odin,", own)
    assert list(chosen) == ["energy", "quick", "odin"]
    assert chosen["quick"] == own["quick"]


def test_an_experiment_s_own_form_of_a_method_is_the_one_that_runs():
    own = {"msp": replace(METHODS["msp"], known_recall=0.5)}
    assert choose_methods("msp", own) == own


def test_a_method_that_is_not_there_is_refused(installed):
    with pytest.raises(SettingsError, match="no method 'magic'; give quick or isolation-forest or"):
        choose_methods("msp,magic", {"quick": MSP()})


# The method for one run


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("networks", ["tiny", "plain", "heads", "paper"])
def test_deep_methods_get_the_networks_and_the_budget_of_the_run(name, networks):
    method = METHODS[name]
    adapted = adapt(method, run_facts(networks, flip=True, n_unknown=2))
    scale = NETWORKS[networks]
    assert type(adapted) is type(method)
    if isinstance(adapted, S2OSCMethod):
        assert adapted.teacher == scale.teacher
        student = adapted.student
        assert (student.network, student.training) == (
            scale.student.network,
            scale.student.training,
        )
        assert adapted.augmentation.flip is True
        unchanged = {
            field.name: getattr(method.student, field.name)
            for field in fields(student)
            if field.name not in ("network", "training", "labelled_batch")
        }
        assert {name: getattr(student, name) for name in unchanged} == unchanged
        judges = scale.seeds.judges if method.seeds.share else 0
        assert adapted.seeds == replace(method.seeds, judges=judges)
        untouched = ("filtering", "clusters", "decision")
        assert all(getattr(adapted, part) == getattr(method, part) for part in untouched)
    else:
        assert adapted.recipe.teacher == scale.teacher
        assert adapted.recipe.augmentation.flip is True
        assert adapted.recipe.held_out == method.recipe.held_out
        back = {"recipe": method.recipe}
        if hasattr(method, "n_unknown"):
            back["n_unknown"] = method.n_unknown
        if hasattr(method, "gan") and networks == "tiny":
            assert adapted.gan.n_steps(100) < 10
            back |= {"gan": method.gan, "counterfactuals": method.counterfactuals}
        assert replace(adapted, **back) == method


def test_without_networks_a_method_keeps_its_own():
    for flip in (False, True):
        theirs = adapt(MSP(known_recall=0.9), run_facts(None, flip=flip, n_unknown=1))
        assert replace(theirs, recipe=MSP().recipe) == MSP(known_recall=0.9)
        assert theirs.recipe.teacher == MSP().recipe.teacher
        ours = adapt(HEADS, run_facts(None, flip=flip, n_unknown=1))
        assert replace(ours, augmentation=HEADS.augmentation) == HEADS


def test_flips_follow_the_data():
    for flip in (False, True):
        for method in (MSP(), adapt(MSP(), run_facts(None, flip=not flip, n_unknown=1))):
            adapted = adapt(method, run_facts(None, flip=flip, n_unknown=1))
            assert adapted.recipe.augmentation.flip is flip


@pytest.mark.parametrize(("n_unknown", "given"), [(0, 1), (1, 1), (5, 5), (None, None)])
def test_methods_that_cluster_are_given_the_number_of_unknown_classes(n_unknown, given):
    adapted = adapt(DTC(n_unknown=2), run_facts(None, flip=False, n_unknown=n_unknown))
    assert adapted.n_unknown == given
