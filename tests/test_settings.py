"""Hyper-parameters: by name, and checked."""

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import SettingsError
from s2osc.pipeline.presets import ABLATIONS, FAST, PAPER, PRESETS
from s2osc.settings import (
    change,
    convert,
    flatten,
    require_choice,
    require_least,
    require_positive,
    require_range,
    require_share,
)
from samples import MANY, TINY


@dataclass(frozen=True)
class Inner:
    size: int = 3
    sides: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Outer:
    inner: Inner = Inner()
    rate: float = 0.5
    most: int | None = None


def test_every_hyper_parameter_has_its_dotted_name():
    assert flatten(Outer()) == {
        "inner.size": 3,
        "inner.sides": (1, 2),
        "rate": 0.5,
        "most": None,
    }


def test_the_table_of_a_method_holds_the_papers_hyper_parameters():
    table = flatten(PAPER)
    assert table["student.alpha"] == 0.3
    assert table["filtering.distance_weight"] == 1.0
    assert table["teacher.training.epochs"] == 20


def test_a_change_makes_a_copy_with_one_value_changed():
    assert change(Outer(), {"inner.size": 7}) == Outer(Inner(size=7))
    assert Outer().inner.size == 3


@pytest.mark.parametrize(
    "method", [*PRESETS.values(), TINY, MANY, *(ablate(FAST) for ablate in ABLATIONS.values())]
)
def test_a_method_changed_by_its_own_table_is_itself(method):
    assert change(method, flatten(method)) == method


def test_one_preset_changed_by_the_table_of_another_is_the_other():
    assert change(FAST, flatten(PAPER)) == PAPER
    assert change(PAPER, flatten(FAST)) == FAST


def test_settings_that_belong_together_can_be_changed_together():
    changes = {"student.network.widths": "8,16", "student.network.blocks": "1,2"}
    network = change(FAST, changes).student.network
    assert (network.widths, network.blocks) == ((8, 16), (1, 2))


def test_values_given_as_text_become_what_the_field_declares():
    changed = change(
        FAST,
        {
            "filtering.k": "50",
            "student.tau": "0.9",
            "student.gate_unknown": "True",
            "student.unknown": "many",
            "teacher.network.hidden": "64,32",
            "clusters.n_groups": "none",
            "augmentation.flip": "false",
            "teacher.training.epochs": "1e1",
            "seeds.share": "0.3",
            "decision.aim": "recall",
            "decision.unsure": "true",
        },
    )
    assert changed.filtering.k == 50
    assert changed.student.tau == 0.9
    assert changed.student.gate_unknown is True
    assert changed.student.unknown == "many"
    assert changed.teacher.network.hidden == (64, 32)
    assert changed.clusters.n_groups is None
    assert changed.augmentation.flip is False
    assert changed.teacher.training.epochs == 10
    assert (changed.seeds.share, changed.decision.aim) == (0.3, "recall")
    assert changed.decision.unsure is True
    assert isinstance(changed.teacher.training.epochs, int)


@given(st.integers(-10_000, 10_000), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_survive_being_written_as_text(whole, number):
    assert convert("n", str(whole), int) == whole
    assert convert("x", repr(number), float) == number


@pytest.mark.parametrize("text", ["none", "None", "auto"])
def test_a_setting_that_may_be_left_open_can_be_said_so_in_text(text):
    assert convert("k", text, int | None) is None


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("student.tua", "student.tau"),
        ("filtering.K", "filtering.k"),
        ("student.lambda", "student.lambda_u"),
        ("teacher.epochs", "teacher.training.epochs"),
    ],
)
def test_an_unknown_name_suggests_a_near_one(name, near):
    with pytest.raises(SettingsError, match=f"there is no setting '{name}'; did you mean") as error:
        change(FAST, {name: 1})
    assert near in str(error.value)


def test_a_name_like_no_other_lists_what_there_is():
    with pytest.raises(SettingsError, match=r"there is inner\.size, inner\.sides, rate, most"):
        change(Outer(), {"qqqqqqqq": 1})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("filtering.k", "many", "filtering.k is 'many'; give a whole number"),
        ("filtering.k", 2.5, "filtering.k is 2.5; give a whole number"),
        ("filtering.k", "nan", "filtering.k is 'nan'; give a whole number"),
        ("student.tau", "high", "student.tau is 'high'; give a number"),
        ("student.tau", None, "student.tau is None; give a number"),
        ("student.gate_unknown", "maybe", "student.gate_unknown is 'maybe'; give true or false"),
        ("student.unknown", "few", "student.unknown is 'few'; give one of one, many"),
        ("student.network.hidden", "64,x", "student.network.hidden is 'x'; give a whole number"),
        ("student.network.hidden", 64, "student.network.hidden is 64; give"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_what_is_wanted(name, value, words):
    with pytest.raises(SettingsError, match=words):
        change(FAST, {name: value})


def test_a_value_out_of_range_is_refused_where_it_is_read():
    with pytest.raises(SettingsError, match="K is 0"):
        change(FAST, {"filtering.k": "0"})


@pytest.mark.parametrize("name", ["student.tau", "student.alpha", "filtering.distance_weight"])
def test_a_value_that_is_no_number_is_refused(name):
    with pytest.raises(SettingsError, match="nan"):
        change(FAST, {name: "nan"})


def test_settings_that_need_seeds_are_changed_together_with_them():
    with pytest.raises(SettingsError, match=r"filtering\.by needs seeds, but seeds\.share is 0"):
        change(FAST, {"seeds.share": "0"})
    without = {
        "seeds.share": "0",
        "filtering.by": "paper",
        "decision.rule": "argmax",
        "student.seed_weight": "0",
    }
    assert change(FAST, without).seeds.share == 0


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: require_least("a.b", 1, 2), "a.b is 1; give a number from 2"),
        (lambda: require_positive("a.b", 0.0), "a.b is 0.0; give a number above 0"),
        (lambda: require_share("a.b", 1.0), "a.b is 1.0; give a share between 0 and 1"),
        (lambda: require_range("a.b", -0.1, 0, 0.5), "a.b is -0.1; give a share from 0 to 0.5"),
        (lambda: require_choice("a.b", "c", ("d", "e")), "a.b is 'c'; give 'd' or 'e'"),
        (lambda: require_choice("a.b", "c", Literal["d"]), "a.b is 'c'; give 'd'"),
    ],
)
def test_a_check_names_the_setting_the_value_and_what_is_wanted(check, words):
    with pytest.raises(SettingsError, match=f"^{words}$"):
        check()


def test_checks_let_pass_what_lies_on_the_border_or_was_left_open():
    require_least("a", 2, 2)
    require_range("a", 0.5, 0, 0.5)
    require_choice("a", "d", ("d", "e"))
    for check in (require_positive, require_share):
        check("a", None)


@pytest.mark.parametrize("check", [require_positive, require_share])
def test_no_check_lets_nan_pass(check):
    with pytest.raises(SettingsError, match="a is nan"):
        check("a", float("nan"))
    with pytest.raises(SettingsError, match="a is nan"):
        require_least("a", float("nan"), 0)
    with pytest.raises(SettingsError, match="a is nan"):
        require_range("a", float("nan"), 0, 1)
