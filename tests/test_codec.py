"""Dataclasses as JSON and back: what fits comes back as it was, anything else is one clear line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from s2osc.codec import from_plain, to_plain


class Span(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Leaf:
    name: str
    span: Span | None
    is_wide: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_wide", self.span is not None and self.span.high > 1)


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    counts: Mapping[str, int]
    height: float = 1.0


TREE = Tree((Leaf("a", Span(0, 2.5)), Leaf("b", None)), {"x": 3})
PLAIN = to_plain(TREE)


def test_a_value_comes_back_from_json_as_it_was():
    assert from_plain(Tree, json.loads(json.dumps(PLAIN)), "a tree") == TREE
    assert PLAIN["leaves"][0] == {"name": "a", "span": {"low": 0, "high": 2.5}, "is_wide": True}


def test_a_field_with_a_default_may_be_absent():
    assert from_plain(Tree, {"leaves": [], "counts": {}}, "a tree") == Tree((), {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"leaves": {}}, "a tree, leaves: {} is not a list"),
        ({"leaves": [{"name": "a"}]}, "a tree, leaves lacks 'span'"),
        ({"leaves": [{"name": 1, "span": None}]}, "a tree, leaves, name: 1 is not a text"),
        ({"counts": []}, r"a tree, counts: \[\] is not an object"),
        ({"counts": {"x": True}}, "a tree, counts, x: True is not a whole number"),
        ({"counts": {"x": 1.0}}, "a tree, counts, x: 1.0 is not a whole number"),
        ({"height": float("nan")}, "a tree, height: nan is not a number"),
        ({"height": None}, "a tree, height: None is not a number"),
        ({"run": "rm"}, "a tree has 'run', which is none of leaves, counts, height"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(changes, words):
    with pytest.raises(ValueError, match=words):
        from_plain(Tree, PLAIN | changes, "a tree")
