"""What follows from acts: labels, undo, disagreements, groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import DataError
from s2osc.page.acts import Act
from s2osc.page.ledger import Ledger, class_target, kappa
from s2osc.pipeline.group_tree import GroupTree

TREE = GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 5))


class Acts:
    """Acts in the order they are done."""

    def __init__(self, fit: str = "f") -> None:
        self.fit, self.ledger, self.n = fit, Ledger(fit=fit), 0

    def do(self, kind, target="", rows=(), by="Ada", undoes=None, fit=None) -> int:
        self.n += 1
        act = Act(
            *(self.n, str(self.n), float(self.n), by, kind, "p", fit or self.fit, target),
            np.array(rows, np.int32),
            undoes,
        )
        self.ledger.add(act)
        return self.n

    def label(self, target, *rows, by="Ada"):
        return self.do("label", target, rows, by)

    def undo(self, by="Ada"):
        return self.do("undo", by=by, undoes=self.ledger.to_undo(by).id)

    def redo(self, by="Ada"):
        return self.do("redo", by=by, undoes=self.ledger.to_redo(by).id)

    def targets(self):
        return {row: label.target for row, label in self.ledger.labelled()}


def test_the_last_label_of_an_item_counts():
    acts = Acts()
    acts.label("class cat", 1, 2)
    acts.label("class owl", 2)
    assert acts.targets() == {1: "class cat", 2: "class owl"}


def test_undo_goes_back_act_by_act_and_redo_forward_again():
    acts = Acts()
    acts.label("class cat", 1)
    acts.label("class owl", 1)
    acts.undo()
    assert acts.targets() == {1: "class cat"}
    acts.undo()
    assert acts.targets() == {}
    assert acts.ledger.to_undo("Ada") is None
    acts.redo()
    acts.redo()
    assert acts.targets() == {1: "class owl"}
    assert acts.ledger.to_redo("Ada") is None


def test_a_new_act_ends_what_can_be_redone():
    acts = Acts()
    acts.label("class cat", 1)
    acts.undo()
    acts.label("class owl", 1)
    assert acts.ledger.to_redo("Ada") is None


def test_undo_takes_back_what_its_person_did_and_no_one_else():
    acts = Acts()
    acts.label("class cat", 1, by="Ada")
    acts.label("class owl", 2, by="Bob")
    acts.undo(by="Ada")
    assert acts.targets() == {2: "class owl"}


@given(st.lists(st.sampled_from(["label", "undo", "redo"]), max_size=30))
def test_any_course_of_undo_and_redo_is_that_of_an_editor(course):
    acts, done, undone = Acts(), [], []
    for number, kind in enumerate(course):
        if kind == "label":
            acts.label(f"class {number}", 0)
            done.append(f"class {number}")
            undone = []
        elif kind == "undo" and done:
            acts.undo()
            undone.append(done.pop())
        elif kind == "redo" and undone:
            acts.redo()
            done.append(undone.pop())
        assert (acts.ledger.to_undo("Ada") is None) == (not done)
        assert (acts.ledger.to_redo("Ada") is None) == (not undone)
    label = acts.ledger.label_of(0)
    assert (label.target if label else None) == (done[-1] if done else None)


def test_a_browser_is_told_what_changed_since_it_looked():
    acts = Acts()
    seen = acts.label("class cat", 1, 2)
    acts.label("class owl", 2, by="Bob")
    assert acts.ledger.changes_since(seen) == [(2, "class owl", True)]
    seen = acts.ledger.last
    acts.undo(by="Bob")
    assert acts.ledger.changes_since(seen) == [(2, "class cat", False)]


def test_taking_a_label_away_leaves_none():
    acts = Acts()
    acts.label("class cat", 1)
    acts.label("none", 1)
    assert acts.targets() == {}
    assert acts.ledger.changes_since(1) == [(1, "none", False)]


def test_people_disagree_where_their_last_labels_differ():
    acts = Acts()
    acts.label("class cat", 1, 2, by="Ada")
    acts.label("class owl", 1, by="Bob")
    acts.label("class cat", 2, by="Bob")
    assert [acts.ledger.is_disputed(row) for row in (1, 2)] == [True, False]
    found = acts.ledger.agreement()
    assert (found.n_items, found.n_disputed) == (2, 1)
    acts.label("class cat", 1, by="Bob")
    assert not acts.ledger.is_disputed(1)
    assert acts.ledger.agreement().kappa == {"class cat": 1.0}


def test_kappa_is_zero_where_people_agree_no_more_than_by_chance():
    pairs = [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert kappa(pairs, "a") == 0


def test_merged_and_split_groups_follow_in_order_and_go_back():
    acts = Acts()
    acts.do("merge", "0,2")
    assert acts.ledger.regrouped(TREE, (0, 1, 2)) == (0, 1, 0)
    acts.do("split", "0")
    assert len(set(acts.ledger.regrouped(TREE, (0, 1, 2)))) == 3
    acts.undo()
    acts.undo()
    assert acts.ledger.regrouped(TREE, (0, 1, 2)) == (0, 1, 2)


def test_groups_and_operating_point_of_another_fit_do_not_count():
    acts = Acts(fit="new")
    acts.do("merge", "0,2", fit="old")
    acts.do("decide", "0.1", fit="old")
    acts.do("label", "leaf 1", [4], fit="old")
    assert acts.ledger.regrouped(TREE, (0, 1, 2)) == (0, 1, 2)
    assert acts.ledger.operating_point() is None
    assert acts.targets() == {4: "unknown"}


def test_a_check_counts_for_the_fit_it_was_drawn_for_and_is_a_label_in_any():
    acts = Acts(fit="new")
    acts.do("check", "class cat", [1], fit="old")
    acts.do("check", "class cat", [2])
    assert list(acts.ledger.checked()) == [2]
    assert list(acts.targets()) == [1, 2]


@pytest.mark.parametrize("word", ["unsure", "-1", "None", " "])
def test_words_that_are_no_classes_are_refused_as_names(word):
    with pytest.raises(DataError):
        class_target(word, ["cat"])
