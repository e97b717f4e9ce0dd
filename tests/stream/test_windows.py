"""The loop: windows, questions, answers in every form, and what the state keeps of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from s2osc.errors import DataError, SettingsError
from s2osc.nets.training import TrainSettings
from s2osc.pipeline.audit import outcome
from s2osc.stream.answers import resolve_answers
from s2osc.stream.history import SeedAccuracy, UpdateRecord, WindowRecord
from s2osc.stream.learner import Incremental
from s2osc.stream.memory import MemorySettings
from s2osc.stream.names import (
    check_labels,
    name_groups,
    names_ever,
    names_in_use,
    rename_class,
    with_new_classes,
)
from s2osc.stream.queries import QuerySettings
from s2osc.stream.state import Questions, StreamFacts, StreamState, audit_classes
from s2osc.stream.update import UpdateSettings
from s2osc.stream.windows import (
    MOST_IGNORED,
    GroupOracle,
    ask_oracle,
    begin_stream,
    close_questions,
    is_ignored,
    open_window,
    sample_ignored,
    take_answers,
    take_items,
)
from s2osc.types import UNKNOWN, Labelled
from samples import SEEDED, TINY, make_blobs

LEARNER = Incremental(
    SEEDED, UpdateSettings(TrainSettings(1, 32, 0.02, 5e-4, min_steps=8)), MemorySettings(80)
)
INPUTS, LABELS = make_blobs(40, 4)
WINDOW, TRUTH = make_blobs(30, 4, seed=5)
NAMES = [f"{'abcd'[label]}{row}.png" for row, label in enumerate(TRUTH)]
FACTS = StreamFacts(labels_are_numbers=True)
ASKING = QuerySettings(20)


def known(n_classes=2):
    rows = n_classes > LABELS
    return Labelled(INPUTS[rows], LABELS[rows])


def opened(state, rows=slice(None), asking=ASKING):
    return open_window(state, WINDOW[rows], NAMES[rows], asking, device="cpu")


def answered(state, answers):
    return take_answers(state, answers, device="cpu")


def given(state, inputs, labels):
    return take_items(state, inputs, labels, device="cpu")


def taught_by_itself(state):
    return ask_oracle(state, GroupOracle(), device="cpu")[1]


def asked_of(state, letter, n=None):
    """Items of a class that were asked about, the first ``n``."""
    asked = [a for a, why in zip(state.questions.names, state.questions.why, strict=True) if why]
    return [name for name in asked if name[0] == letter][:n]


def group_of(state, letter):
    """The group most of a class is in."""
    mine = [
        g
        for n, g in zip(state.questions.names, state.questions.groups, strict=True)
        if n[0] == letter
    ]
    return f"group {np.bincount(np.array(mine)[np.array(mine) >= 0]).argmax()}"


def answers_by_name(state):
    return dict(zip(state.questions.names, state.questions.answers, strict=True))


def labels_of(state):
    return {known.name: known.n_labels for known in state.classes}


def weights(state):
    network = state.knowledge.teacher.network
    return torch.cat([value.flatten().float() for value in network.state_dict().values()])


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Intervals from fewer resamples: what they are worth has its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcome, "N_RESAMPLED", 5)
        yield


@pytest.fixture(scope="module")
def begun() -> StreamState:
    return begin_stream(known(), ["a", "b"], LEARNER, seed=0, device="cpu", facts=FACTS)


@pytest.fixture(scope="module")
def window(begun):
    return opened(begun)


@pytest.fixture
def state(window) -> StreamState:
    return window.state


# Beginning


def test_a_stream_begins_with_its_classes_and_nothing_else(begun):
    assert begun.class_names == ("a", "b")
    assert labels_of(begun) == {"a": 40, "b": 40}
    assert {known.since for known in begun.classes} == {0}
    assert (begun.history, begun.questions, begun.facts) == ((), None, FACTS)
    assert begun.n_windows == len(begun.ignored) == len(begun.waiting.labels) == 0
    assert begun.item_shape == (8,)


def test_answers_before_any_window_are_refused(begun):
    with pytest.raises(DataError, match=r"no questions are open: .* feed a window first"):
        answered(begun, {"a": "b"})


# Windows


def test_a_window_is_answered_and_asked_about(window):
    answer = window.recognition.solution.answer
    assert np.mean((answer.labels == UNKNOWN) == (TRUTH >= 2)) > 0.9
    assert len(window.queries.rows) == 20
    asked = window.state.questions
    assert asked.n_asked == 20
    assert list(asked.names[:20]) == [NAMES[row] for row in window.queries.rows]
    assert asked.why[:20] == tuple(window.queries.why)
    # After those asked about come the others that are in a group, so that groups can be named.
    assert sum(asked.group_sizes().values()) == int(answer.is_unknown.sum())
    assert set(asked.why[20:]) == {""}
    assert set(asked.answers) == {""}


def test_questions_hold_the_items_themselves(window):
    asked = window.state.questions
    row_of = {name: row for row, name in enumerate(NAMES)}
    rows = [row_of[name] for name in asked.names]
    np.testing.assert_array_equal(asked.inputs, WINDOW[rows])
    np.testing.assert_array_equal(asked.groups, window.recognition.solution.answer.groups[rows])
    np.testing.assert_array_equal(asked.suggested, window.recognition.solution.answer.labels[rows])


def test_a_window_leaves_the_state_before_it_whole(begun, window):
    assert (begun.n_windows, window.state.n_windows) == (0, 1)
    assert window.state.knowledge is begun.knowledge


def test_the_same_window_is_answered_the_same(begun, window):
    again = opened(begun)
    np.testing.assert_array_equal(
        again.recognition.solution.answer.labels, window.recognition.solution.answer.labels
    )
    np.testing.assert_array_equal(again.queries.rows, window.queries.rows)


def test_an_entry_of_the_history_is_small_and_plain(window):
    (entry,) = window.state.history
    assert (entry.window, entry.items, entry.asked) == (1, 120, 20)
    assert (entry.answered, entry.ignored) == (0, 0)
    assert entry.unknown == int(window.recognition.solution.answer.is_unknown.sum())
    assert entry.groups == len(window.state.questions.group_sizes())
    assert (entry.new_classes, entry.updates) == ((), ())
    # Classes go by their names, so that it reads the same when it comes back from a file.
    assert set(entry.audit.false_alarm.per_class) == {"a", "b"}
    assert WindowRecord.from_json(json.loads(json.dumps(entry.to_json()))) == entry
    assert len(json.dumps(entry.to_json())) < 2_000


def test_a_window_with_nothing_unknown_costs_little(begun):
    rows = np.flatnonzero(TRUTH < 2)
    made = open_window(begun, WINDOW[rows], [NAMES[r] for r in rows], ASKING, device="cpu")
    assert made.state.history[-1].unknown == 0
    assert made.state.history[-1].audit.nothing_unknown is True
    assert made.state.questions.n_asked == len(made.queries.rows) == 6
    assert made.state.questions.group_sizes() == {}
    assert name_groups(made.state.questions, ["a"]) == {}


def test_a_window_of_unknown_items_alone_is_called_so(begun):
    rows = np.flatnonzero(TRUTH >= 2)
    made = open_window(begun, WINDOW[rows], [NAMES[r] for r in rows], ASKING, device="cpu")
    assert made.recognition.solution.answer.is_unknown.mean() > 0.95
    assert len(made.queries.rows) == 20


def test_without_a_budget_nothing_is_asked_but_groups_can_be_named(begun):
    made = opened(begun, asking=QuerySettings(0))
    assert made.state.history[-1].asked == 0
    assert made.state.questions.n_asked == 0
    learnt = answered(made.state, {group_of(made.state, "c"): "c"})
    assert learnt.state.class_names == ("a", "b", "c")


def test_without_a_budget_and_anything_unknown_no_questions_are_open(begun):
    rows = np.flatnonzero(TRUTH < 2)
    names = [NAMES[row] for row in rows]
    made = open_window(begun, WINDOW[rows], names, QuerySettings(0), device="cpu")
    assert made.state.questions is None
    with pytest.raises(DataError, match="the last window asked about nothing"):
        answered(made.state, {names[0]: "a"})


def test_a_group_that_comes_again_keeps_its_number(state):
    letters = [letter for letter in "cd" if any(n[0] == letter for n in state.questions.names)]
    before = {letter: group_of(state, letter) for letter in letters}
    largest = next(letter for letter in letters if before[letter] == "group 0")
    of_largest = [row for row, name in enumerate(NAMES) if name[0] == largest]
    # No known ones, which this small network may take for a group of their own.
    fewer = np.setdiff1d(np.flatnonzero(TRUTH >= 2), of_largest[15:])
    later = open_window(state, WINDOW[fewer], [NAMES[row] for row in fewer], ASKING, device="cpu")
    assert {letter: group_of(later.state, letter) for letter in letters} == before
    assert later.notes == [
        "Of the groups without a name in the window before: groups 0, 1 are the same again"
    ]
    solution = later.recognition.solution
    assert solution.audit(["a", "b"]).groups.groups == solution.model.grouping.groups


def test_the_next_window_closes_the_questions_of_the_last(state):
    later = opened(state, slice(0, 60))
    assert later.state.n_windows == 2
    with pytest.raises(DataError, match=r"item 'd.*' was not asked about in the last window"):
        answered(later.state, {asked_of(state, "d")[0]: "d"})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (WINDOW[:0], "the window is empty; give at least two items"),
        (WINDOW[:1], "the window has one item; give at least two items"),
        (WINDOW[:, :5], r"the window holds items of shape \(5,\) \(float32\); the stream began"),
        (WINDOW.astype(np.float64), r"of shape \(8,\) \(float64\); .* \(float32\); give such"),
        (np.zeros((9, 8, 8), np.uint8), r"items of shape \(8, 8\) \(uint8\)"),
    ],
)
def test_a_window_that_cannot_be_is_refused(begun, wrong, words):
    with pytest.raises(DataError, match=words):
        open_window(begun, wrong, [str(row) for row in range(len(wrong))], ASKING, device="cpu")


def test_two_items_of_one_name_are_refused(begun):
    with pytest.raises(
        DataError, match="two items of the window are called 'x'; give each its own"
    ):
        open_window(begun, WINDOW[:3], ["x", "y", "x"], ASKING, device="cpu")


def test_a_strategy_that_is_not_there_is_refused(begun):
    with pytest.raises(SettingsError, match="the strategy is 'best'"):
        opened(begun, asking=QuerySettings(5, "best"))


# Answers


def test_a_new_class_joins_by_answers_for_items(state):
    items = asked_of(state, "c")
    learnt = answered(state, dict.fromkeys(items, "c"))
    assert learnt.state.class_names == ("a", "b", "c")
    assert learnt.state.knowledge.teacher.n_classes == 3
    assert learnt.state.classes[2].since == 1
    assert labels_of(learnt.state)["c"] == len(items) == learnt.account.n_labels
    assert (learnt.account.n_new_classes, learnt.notes) == (1, [])
    assert {n for n, label in answers_by_name(learnt.state).items() if label == "c"} == set(items)


def test_a_whole_group_is_named_at_once(state):
    group = group_of(state, "c")
    size = state.questions.group_sizes()[int(group.split()[1])]
    learnt = answered(state, {group: "c"})
    assert labels_of(learnt.state)["c"] == size > len(asked_of(state, "c"))


def test_the_label_of_an_item_stands_against_that_of_its_group(state):
    group, (one, two) = group_of(state, "c"), asked_of(state, "c", 2)
    learnt = answered(state, {one: "a", group: "c", two: "ignore"})
    answers = answers_by_name(learnt.state)
    assert (answers[one], answers[two]) == ("a", "ignore")
    assert labels_of(learnt.state)["a"] == 41
    assert len(learnt.state.ignored) == 1


def test_what_was_said_of_an_item_stands_when_its_group_is_named_later(state):
    group, (one,) = group_of(state, "c"), asked_of(state, "c", 1)
    first = answered(state, {one: "a"}).state
    then = answered(first, {group: "c"}).state
    assert answers_by_name(then)[one] == "a"
    assert labels_of(then)["a"] == 41


def test_an_empty_answer_is_none(state):
    learnt = answered(
        state, dict.fromkeys(state.questions.names, "") | {state.questions.names[0]: "  "}
    )
    assert learnt.state is state
    assert learnt.account is None
    assert learnt.notes == ["there is no new answer: nothing was learnt"]


def test_the_same_answer_twice_teaches_once(state):
    items = dict.fromkeys(asked_of(state, "c"), "c")
    once = answered(state, items).state
    twice = answered(once, items)
    assert twice.state is once
    assert twice.account is None
    more = answered(once, items | dict.fromkeys(asked_of(state, "d"), "d"))
    assert labels_of(more.state)["c"] == len(items)
    assert more.account.n_labels == len(asked_of(state, "d"))


def test_another_answer_for_the_same_item_is_refused(state):
    (one,) = asked_of(state, "c", 1)
    once = answered(state, {one: "a"}).state
    with pytest.raises(DataError, match=f"item '{one}' was labelled 'a' before and 'b' now"):
        answered(once, {one: "b"})


def test_the_label_of_an_item_never_asked_about_is_refused(state):
    missing = next(name for name in NAMES if name not in state.questions.names)
    for name in (missing, "elsewhere.png", "group 99"):
        with pytest.raises(DataError, match=f"item '{name}' was not asked about"):
            answered(state, {name: "a"})


def test_an_item_of_a_group_may_be_answered_though_it_was_not_asked_about(state):
    name = next(
        n for n, why in zip(state.questions.names, state.questions.why, strict=True) if not why
    )
    assert labels_of(answered(state, {name: "a"}).state)["a"] == 41


def test_a_refused_answer_changes_nothing(state):
    before = weights(state)
    with pytest.raises(DataError):
        answered(state, {asked_of(state, "c")[0]: "c", "elsewhere.png": "c"})
    assert torch.equal(weights(state), before)
    assert set(state.questions.answers) == {""}


def test_answers_learnt_at_once_or_one_after_another_teach_the_same_classes(state):
    c, d = (dict.fromkeys(asked_of(state, x), x) for x in "cd")
    at_once = answered(state, c | d).state
    in_turn = answered(answered(state, c).state, d).state
    assert labels_of(at_once) == labels_of(in_turn)
    assert at_once.questions.answers == in_turn.questions.answers


def test_the_same_answers_give_the_same_f(state):
    items = dict.fromkeys(asked_of(state, "c"), "c")
    a, b = (answered(state, items).state for _ in range(2))
    assert torch.equal(weights(a), weights(b))


# Classes with too few items


def test_a_class_of_one_item_waits_for_more(state):
    one, two = asked_of(state, "c", 2)
    first = answered(state, {one: "c"})
    assert first.state.class_names == ("a", "b")
    assert first.account is None
    assert first.state.waiting.labels == ("c",)
    assert first.notes == ["too few items to learn 'c' yet: kept until there are 2 of a class"]
    assert torch.equal(weights(first.state), weights(state))
    then = answered(first.state, {two: "c"})
    assert then.state.class_names == ("a", "b", "c")
    assert (then.account.n_labels, then.notes) == (2, [])
    assert labels_of(then.state)["c"] == 2
    assert then.state.waiting.labels == ()
    assert then.state.history[-1].answered == 2


def test_a_waiting_class_joins_in_a_later_window(state):
    first = answered(state, {asked_of(state, "c")[0]: "c"}).state
    second = opened(first).state
    then = answered(second, {asked_of(second, "c")[0]: "c"}).state
    assert then.class_names == ("a", "b", "c")
    assert then.classes[2].since == 2
    assert [entry.new_classes for entry in then.history] == [(), ("c",)]


def test_others_are_learnt_while_one_waits(state):
    answers = dict.fromkeys(asked_of(state, "c"), "c") | {asked_of(state, "d")[0]: "d"}
    learnt = answered(state, answers)
    assert learnt.state.class_names == ("a", "b", "c")
    assert learnt.state.waiting.labels == ("d",)
    assert len(learnt.state.waiting.inputs) == 1


def test_classes_that_join_together_are_numbered_by_their_names():
    assert with_new_classes(["z", "y", "a", "y", "z", "x"], ["a", "b"]) == ("a", "b", "y", "z")


# Names


def test_a_known_class_written_in_another_way_is_refused():
    classes = ["Ankle boot", "b"]
    for label in ("ankle boot", "Ankle-Boot", "ankle_boot ", "ANKLE BOOT"):
        with pytest.raises(DataError, match="but the class is called 'Ankle boot'; write it so"):
            check_labels([label], classes)
    check_labels(["Ankle boot", "boot", "ignore"], classes)


def test_a_new_class_written_in_two_ways_is_refused(state):
    one, two = asked_of(state, "c", 2)
    with pytest.raises(DataError, match="a label is 'C', but the class is called 'c'"):
        answered(state, {one: "c", two: "C"})
    waiting = answered(state, {one: "c"}).state
    with pytest.raises(DataError, match="a label is 'C', but the class is called 'c'"):
        answered(waiting, {two: "C"})


def test_names_that_differ_by_a_sign_are_two():
    check_labels(["A-", "+1"], ["A", "1"])


@pytest.mark.parametrize("label", ["unknown", "Unknown", "unsure", " UNSURE ", "-1", "-2"])
def test_a_label_that_is_no_class_is_refused(state, label):
    with pytest.raises(DataError, match="which is no class; leave it empty, or write 'ignore'"):
        answered(state, {state.questions.names[0]: label})


def test_ignore_is_written_in_one_way(state):
    with pytest.raises(DataError, match="a label is 'Ignore'; write 'ignore'"):
        answered(state, {state.questions.names[0]: "Ignore"})


def test_a_new_class_that_looks_like_a_known_one_is_remarked_upon(state):
    asked = replace(state.questions, suggested=np.zeros_like(state.questions.suggested))
    items = dict.fromkeys(asked_of(state, "c"), "c")
    learnt = answered(replace(state, questions=asked), items)
    (note,) = learnt.notes
    n = len(items)
    assert note.startswith(f"{n} of {n} items of the new class 'c' look like 'a'; if that is its")
    assert "c" in learnt.state.class_names


def test_a_class_can_be_renamed(state):
    learnt = answered(state, dict.fromkeys(asked_of(state, "c", 3), "c")).state
    renamed = rename_class(learnt, "c", "cat")
    assert renamed.class_names == ("a", "b", "cat")
    assert labels_of(renamed)["cat"] == 3
    assert renamed.knowledge is learnt.knowledge
    assert learnt.class_names == ("a", "b", "c")


def test_answers_given_before_a_class_was_renamed_follow_it(state):
    items = asked_of(state, "c", 3)
    renamed = rename_class(answered(state, dict.fromkeys(items, "c")).state, "c", "cat")
    again = answered(renamed, dict.fromkeys(items, "cat"))
    assert again.account is None
    assert again.state.class_names == ("a", "b", "cat")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x", "y", "there is no class 'x'; there is a, b"),
        ("a", "a", "the class is called 'a' already"),
        ("a", "b", "there is a class 'b' already"),
        ("a", " b ", "there is a class 'b' already"),
        ("a", "B", "there is a class 'b' already"),
        ("a", "  ", "the new name of the class is empty; give another name"),
        ("a", "ignore", "a class cannot be called 'ignore', which has a meaning of its own"),
        ("a", "Not of interest", "a class cannot be called 'Not of interest'"),
        ("a", "unknown", "a class cannot be called 'unknown', which has a meaning of its own"),
    ],
)
def test_a_name_that_cannot_be_is_refused(begun, old, new, words):
    with pytest.raises(DataError, match=words):
        rename_class(begun, old, new)


def test_a_class_can_be_written_with_a_capital_later(begun):
    assert rename_class(begun, "a", "A").class_names == ("A", "b")


def test_a_new_name_is_kept_without_the_spaces_around_it(begun):
    assert rename_class(begun, "a", " lynx ").class_names == ("lynx", "b")


def test_a_former_name_makes_no_second_class(state):
    items = asked_of(state, "c", 4)
    renamed = rename_class(answered(state, dict.fromkeys(items[:2], "c")).state, "c", "lynx")
    now = "a label is '.', but the class 'c' is called 'lynx' now; write that, or choose another"
    for label in ("c", "C"):
        with pytest.raises(DataError, match=now):
            answered(renamed, {items[2]: label})
    with pytest.raises(DataError, match="'lynx' now"):
        given(renamed, WINDOW[:2], ["c", "c"])
    again = rename_class(renamed, "lynx", "bobcat")
    with pytest.raises(DataError, match="the class 'c' is called 'bobcat' now"):
        answered(again, {items[2]: "c"})
    assert rename_class(again, "bobcat", "c").former == {"lynx": "c", "bobcat": "c"}


def test_a_whole_group_answered_by_a_former_name_is_told_the_new_one(state):
    group = group_of(state, "c")
    renamed = rename_class(answered(state, {group: "c"}).state, "c", "lynx")
    with pytest.raises(DataError, match="is called 'lynx' now; write that"):
        answered(renamed, {group: "c"})


def test_two_classes_can_change_names(begun):
    swapped = rename_class(rename_class(rename_class(begun, "a", "x"), "b", "a"), "x", "b")
    assert swapped.class_names == ("b", "a")
    assert not set(swapped.former) & {"a", "b"}


def test_the_history_calls_a_class_by_its_new_name(state):
    learnt = answered(state, dict.fromkeys(asked_of(state, "c", 3), "c")).state
    (entry,) = rename_class(rename_class(learnt, "c", "lynx"), "a", "ant").history
    assert entry.new_classes == ("lynx",)
    assert list(entry.classes) == ["ant", "b", "lynx"]
    assert set(entry.audit.false_alarm.per_class) == {"ant", "b"}
    assert learnt.history[0].new_classes == ("c",)


def test_a_class_that_waits_has_a_name_that_is_taken_and_can_be_changed(state):
    first, second = asked_of(state, "c", 2)
    waiting = answered(state, {first: "rare"}).state
    with pytest.raises(DataError, match="there is a class 'rare' already"):
        rename_class(waiting, "a", "Rare")
    renamed = rename_class(waiting, "rare", "lynx")
    assert names_in_use(renamed) == ("a", "b", "lynx")
    assert "lynx" in answered(renamed, {second: "lynx"}).state.class_names


# Items that are not of interest


def test_ignored_items_are_never_learnt(state):
    learnt = answered(state, dict.fromkeys(asked_of(state, "c"), "ignore"))
    assert learnt.account is None
    assert learnt.state.class_names == ("a", "b")
    assert torch.equal(weights(learnt.state), weights(state))
    n = len(asked_of(state, "c"))
    assert (learnt.state.history[-1].answered, learnt.state.history[-1].ignored) == (n, n)


@pytest.mark.parametrize("label", ["not of interest", "Not_Of-Interest", " NOT  OF INTEREST "])
def test_not_of_interest_is_ignore_in_words(state, label):
    learnt = answered(state, dict.fromkeys(asked_of(state, "c"), label))
    assert learnt.account is None
    assert names_in_use(learnt.state) == ("a", "b")
    assert len(learnt.state.ignored) == len(asked_of(state, "c"))
    own = given(state, WINDOW[:2], [label] * 2).state
    assert (names_in_use(own), len(own.ignored)) == (("a", "b"), 2)


def test_a_class_that_was_called_not_of_interest_before_stays_one(begun):
    name = "not of interest"
    classes = (*begun.classes[:1], replace(begun.classes[1], name=name))
    learnt = given(replace(begun, classes=classes), WINDOW[:2], [name] * 2).state
    assert (labels_of(learnt)[name], len(learnt.ignored)) == (42, 0)


def test_items_like_ignored_ones_are_not_asked_about_again(state):
    of_no_interest = [name for name in state.questions.names if name[0] == "d"]
    ignoring = answered(state, dict.fromkeys(of_no_interest, "ignore")).state
    again = is_ignored(ignoring, WINDOW)
    # The very same items are all found; of others like them those within the usual distance.
    assert again[TRUTH == 3].mean() > 0.9
    inputs, labels = make_blobs(200, 4, seed=8)
    others = is_ignored(ignoring, inputs)
    assert others[labels == 3].mean() > 0.3
    assert others[labels != 3].mean() < 0.01
    rows = opened(ignoring).queries.rows
    assert not is_ignored(ignoring, WINDOW)[rows].any()


def test_one_or_two_ignored_items_say_nothing_of_others(state):
    ignoring = answered(state, dict.fromkeys(asked_of(state, "d", 2), "ignore")).state
    assert len(ignoring.ignored) == 2
    assert not is_ignored(ignoring, WINDOW).any()


def test_only_so_many_ignored_items_are_kept(begun):
    crowd = replace(begun, ignored=np.zeros((MOST_IGNORED, 8), np.float32))
    sample = sample_ignored(crowd, np.ones((MOST_IGNORED, 8), np.float32))
    assert len(sample) == MOST_IGNORED
    assert 0.35 < sample.mean() < 0.65  # old and new ones alike
    np.testing.assert_array_equal(sample_ignored(crowd, WINDOW[:0]), crowd.ignored)


# Items nobody asked about


def test_items_of_ones_own_are_learnt(begun):
    learnt = given(begun, WINDOW[TRUTH == 2], ["c"] * 30)
    assert learnt.state.class_names == ("a", "b", "c")
    assert learnt.state.classes[2].since == 0
    assert learnt.state.history == ()


def test_items_of_ones_own_follow_the_same_rules(begun):
    learnt = given(begun, WINDOW[:3], ["a", "ignore", "new"])
    assert len(learnt.state.ignored) == 1
    assert learnt.state.waiting.labels == ("new",)
    assert labels_of(learnt.state) == {"a": 41, "b": 40}
    with pytest.raises(DataError, match="a label is 'unknown'"):
        given(begun, WINDOW[:1], ["unknown"])
    with pytest.raises(DataError, match=r"there are labels for items of shape \(5,\)"):
        given(begun, WINDOW[:2, :5], ["a", "b"])


# History and size


def test_an_update_is_written_into_the_entry_of_its_window(state):
    learnt = answered(state, dict.fromkeys(asked_of(state, "c"), "c"))
    (entry,) = learnt.state.history
    n = len(asked_of(state, "c"))
    assert (entry.answered, entry.new_classes) == (n, ("c",))
    (update,) = entry.updates
    assert update.n_labels == n
    assert update == UpdateRecord(**vars(learnt.account), seconds=update.seconds)
    assert update.seconds >= 0
    assert set(entry.classes) == {"a", "b", "c"}
    assert WindowRecord.from_json(json.loads(json.dumps(entry.to_json()))) == entry
    assert state.history[0].answered == 0
    assert entry.labelled == n
    more = answered(learnt.state, dict.fromkeys(asked_of(state, "d"), "d")).state.history[0]
    assert len(more.updates) == 2
    assert more.new_classes == ("c", "d")


def test_classes_are_audited_by_their_seeds(begun):
    found = audit_classes(begun.knowledge, ("a", "b"))
    assert {name: seeds.n for name, seeds in found.items()} == {"a": 12, "b": 12}
    assert found["a"].accuracy.estimate == 1
    # 12 of 12 right: Clopper and Pearson's lower end is 0.025 ** (1 / 12).
    assert found["a"].accuracy.low == pytest.approx(0.025 ** (1 / 12), abs=1e-3)


def test_a_class_without_seeds_has_no_figures(begun):
    assert audit_classes(begun.knowledge, ("a", "b", "c"))["c"] == SeedAccuracy(0, None)


def test_a_stream_stays_the_same_size_over_many_windows(begun):
    state, sizes = begun, []
    rows = np.flatnonzero(TRUTH < 2)
    for _ in range(10):
        names = [NAMES[row] for row in rows]
        state = open_window(state, WINDOW[rows], names, ASKING, device="cpu").state
        state = answered(state, {n: n[0] for n in state.questions.names}).state
        arrays = (state.knowledge.memory.exemplars.inputs, state.knowledge.memory.seeds.inputs)
        entry = len(json.dumps(state.history[-1].to_json()))
        sizes.append((sum(map(len, arrays)), len(state.questions.names), len(state.waiting.labels)))
        assert entry < 2_500
    assert state.n_windows == 10
    assert [entry.window for entry in state.history] == list(range(1, 11))
    assert sizes[1:] == [sizes[1]] * 9
    assert sizes[0][0] <= LEARNER.memory.size


def test_a_stream_without_seeds_goes_through_the_same_loop():
    learner = replace(LEARNER, method=TINY)
    state = begin_stream(known(), ["a", "b"], learner, seed=0, device="cpu")
    made = opened(state)
    assert made.state.history[0].audit is None
    learnt = answered(made.state, {group_of(made.state, "c"): "c"})
    assert learnt.state.history[0].updates[0].seeds is None
    assert learnt.state.history[0].classes["a"] == SeedAccuracy(0, None)


def test_a_named_group_is_one_answer_for_many_items(state):
    group = group_of(state, "c")
    n = state.questions.group_sizes()[int(group.removeprefix("group "))]
    (entry,) = answered(state, {group: "c"}).state.history
    assert (entry.answered, entry.labelled) == (1, n)
    item = asked_of(state, "d")[0]
    place = state.questions.groups[state.questions.names.index(item)]
    n_more = int(f"group {place}" != group)  # both classes may be in one group
    (entry,) = answered(state, {group: "c", item: "d", asked_of(state, "d")[1]: ""}).state.history
    assert (entry.answered, entry.labelled) == (2, n + n_more)
    (entry,) = answered(answered(state, {item: "d"}).state, {item: "d", group: "c"}).state.history
    assert (entry.answered, entry.labelled) == (2, n + n_more)


def test_entries_of_older_versions_count_on(state):
    old = {key: value for key, value in state.history[0].to_json().items() if key != "labelled"}
    before = replace(state, history=(WindowRecord.from_json(old | {"answered": 5}),))
    (entry,) = answered(before, dict.fromkeys(asked_of(state, "c", 2), "c")).state.history
    assert (entry.answered, entry.labelled) == (7, 7)


# Self-taught


def test_what_a_stream_tells_itself_is_no_answer_of_a_person(begun):
    made = opened(begun, asking=QuerySettings(0)).state
    learnt = taught_by_itself(made)
    (entry,) = learnt.state.history
    assert (entry.asked, entry.answered) == (0, 0)
    assert entry.labelled == entry.unknown
    assert close_questions(learnt.state).questions is None


def test_self_taught_names_leave_out_what_a_class_was_called_before(state):
    taught = taught_by_itself(state).state
    last = taught.class_names[-1]
    renamed = rename_class(taught, last, "lynx")
    assert last in names_ever(renamed)
    again = taught_by_itself(replace(renamed, questions=state.questions)).state
    assert len(again.classes) > len(taught.classes)
    assert last not in again.class_names


def test_self_taught_groups_are_numbered_on():
    asked = Questions(
        ("x", "y", "z"), WINDOW[:3], np.array([0, 1, -1]), np.zeros(3), ("",) * 3, ("",) * 3
    )
    assert name_groups(asked, ["a"]) == {"group 0": "new 1", "group 1": "new 2"}
    assert name_groups(asked, ["new 1", "newt"]) == {"group 0": "new 2", "group 1": "new 3"}


def test_self_taught_names_are_never_given_to_a_second_class(state):
    asked = state.questions
    n_groups = len(set(asked.groups[asked.groups >= 0]))
    # One was given a better name since; another still waits for a second item.
    names = {f"new {3 + number}" for number in range(n_groups)}
    assert set(name_groups(asked, ["cat", "new 2"]).values()) == names
    waiting = answered(state, {asked_of(state, "c")[0]: "new 1"}).state
    assert names_in_use(waiting) == ("a", "b", "new 1")
    assert "new 1" not in name_groups(waiting.questions, names_in_use(waiting)).values()


def test_answers_are_resolved_row_by_row():
    asked = Questions(
        ("x", "y", "group 1"), WINDOW[:3], np.array([0, 0, 1]), np.zeros(3), ("",) * 3, ("",) * 3
    )
    assert resolve_answers(asked, {"group 0": "c", "y": "d"}) == {0: "c", 1: "d"}
    # An item that is called like a group is meant itself.
    assert resolve_answers(asked, {"group 1": "e"}) == {2: "e"}


def test_a_group_that_was_answered_cannot_be_called_otherwise(state):
    group = group_of(state, "c")
    learnt = answered(state, {group: "c"}).state
    with pytest.raises(DataError, match=f"'{group}' is called 'other' now, but .* 'c' before"):
        answered(learnt, {group: "other"})
    assert "nothing was learnt" in answered(learnt, {group: "c"}).notes[0]
