"""OpenStream: a stream from arrays to arrays."""

import json

import numpy as np
import pytest

from s2osc.errors import DataError, OutputError, SettingsError
from s2osc.pipeline.audit import outcome
from s2osc.stream.open_stream import OpenStream, build_learner
from s2osc.stream.store import open_store, read_pointer, read_state
from s2osc.types import UNKNOWN
from samples import make_blobs, make_images

STEPS = {"epochs": 1, "batch_size": 32, "min_steps": 25}
SETTINGS = {
    **{f"{role}.training.{k}": v for role in ("teacher", "student") for k, v in STEPS.items()},
    **{f"{role}.network.hidden": (16, 16) for role in ("teacher", "student")},
    "student.labelled_batch": 32,
    **{f"update.training.{name}": value for name, value in STEPS.items()},
}
INPUTS, LABELS = make_blobs(40, 4)
WINDOW, TRUTH = make_blobs(30, 4, seed=5)
IS_KNOWN = LABELS < 2
WORDS = np.array(["ant", "bee", "cat", "dog"])


def begin(y, **options):
    return OpenStream(
        INPUTS[IS_KNOWN], y, settings=SETTINGS, **{"budget": 20, "memory": 80, **options}
    )


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Intervals from fewer resamples: what they are worth has its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcome, "N_RESAMPLED", 5)
        yield


@pytest.fixture(scope="module")
def opened():
    stream = begin(LABELS[IS_KNOWN])
    return stream, stream.classify(WINDOW)


@pytest.fixture
def stream(opened):
    """A stream whose questions are open, to be changed by one test alone."""
    made = OpenStream.__new__(OpenStream)
    made.__dict__.update(opened[0].__dict__)
    return made


@pytest.fixture
def answer(opened):
    return opened[1]


def unknown_of(stream, answer):
    """Rows called unknown, or asked about."""
    return np.union1d(answer.queries, np.flatnonzero(answer.groups >= 0))


# Numbers and names


def test_a_stream_of_numbers_answers_and_learns_numbers(stream, answer):
    assert stream.classes == [0, 1]
    assert answer.labels.dtype.kind == "i"
    expected = np.where(TRUTH < 2, TRUTH, UNKNOWN)
    assert np.mean(answer.labels == expected) > 0.9
    assert set(answer.groups[answer.labels == UNKNOWN]) == {0, 1}
    assert (answer.groups[answer.labels != UNKNOWN] == -1).all()
    assert len(answer.queries) == len(answer.why) == 20
    assert answer.audit["sentence"]
    rows = unknown_of(stream, answer)
    assert stream.learn(rows, TRUTH[rows]) == []
    assert sorted(stream.classes) == [0, 1, 2, 3]
    later, truth = make_blobs(30, 4, seed=6)
    assert np.mean(stream.classify(later).labels == truth) > 0.9


def test_a_stream_of_names_answers_and_learns_names():
    stream = begin(WORDS[LABELS[IS_KNOWN]], queries="unknown", budget=15)
    answer = stream.classify(WINDOW)
    assert set(answer.labels) == {"ant", "bee", "unknown"}
    assert set(answer.why) == {"called unknown"}
    assert len(answer.queries) == 15
    named = [WORDS[TRUTH[row]] if TRUTH[row] != 3 else None for row in answer.queries]
    assert stream.learn(answer.queries, named) == []
    assert stream.classes == ["ant", "bee", "cat"]


def test_a_name_among_numbers_makes_names_of_all(stream):
    stream.learn(WINDOW[TRUTH == 2], ["cat"] * 30)
    assert stream.classes == ["0", "1", "cat"]
    assert set(stream.classify(WINDOW[TRUTH < 2]).labels) == {"0", "1"}


class NAType:
    """As pandas marks a missing number."""


@pytest.mark.parametrize("missing", [np.nan, None, np.float32("nan"), NAType()])
def test_whole_numbers_that_a_missing_one_made_floats_are_the_same_classes(stream, missing):
    stream.learn(WINDOW[TRUTH == 2][:5], [2.0, 2.0, np.float32(2), 2, missing])
    assert stream.classes == [0, 1, 2]
    assert stream.status()["2"]["labels"] == 4
    stream.learn(WINDOW[TRUTH == 0][:3], np.array([0, 0, np.nan]))
    assert stream.classes == [0, 1, 2]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (2.5, "a label is 2.5; give a whole number, or None for no answer"),
        (np.inf, "a label is inf; give a whole number"),
        (True, "a label is True; give a class by its number or its name"),
        (np.False_, "a label is False; give a class by its number or its name"),
        ("1.0", "a label is '1.0', but the class is called '1'; write it so"),
    ],
)
def test_labels_that_are_no_classes_are_refused(stream, label, words):
    with pytest.raises(DataError, match=words):
        stream.learn(WINDOW[:2], [label, 0])
    assert stream.classes == [0, 1]


def test_a_number_among_names_is_refused_where_it_is_a_float(stream):
    stream.learn(WINDOW[TRUTH == 2], ["cat"] * 30)
    with pytest.raises(
        DataError, match=r"a label is 2.0, but classes have names here; give a name"
    ):
        stream.learn(WINDOW[:1], [2.0])


def test_a_stream_begins_with_floats_as_with_whole_numbers():
    assert begin(LABELS[IS_KNOWN].astype(float)).classes == [0, 1]
    yes_or_no = begin(LABELS[IS_KNOWN] == 1)
    assert yes_or_no.classes == ["False", "True"]
    yes_or_no.learn(WINDOW[TRUTH == 1][:2], [True, True])
    assert yes_or_no.status()["True"]["labels"] == 42


# Learning


def test_rows_that_were_asked_about_are_learnt(stream, answer):
    rows = answer.queries[TRUTH[answer.queries] == 2]
    stream.learn(rows, [2] * len(rows))
    assert stream.classes == [0, 1, 2]
    assert stream.status()["2"]["labels"] == len(rows)
    assert stream.history[-1]["answered"] == len(rows)
    assert stream.learn(rows, [2] * len(rows)) == ["there is no new answer: nothing was learnt"]


def test_items_of_ones_own_are_learnt(stream):
    stream.learn(WINDOW[TRUTH == 3], [9] * 30)
    assert stream.classes == [0, 1, 9]
    assert stream.status()["9"]["since"] == 1


def test_some_items_of_ones_own_may_have_no_label_or_be_of_no_interest(stream):
    stream.learn(WINDOW[:4], [0, None, "", "ignore"])
    assert stream.status()["0"]["labels"] == 41
    assert len(stream.state.ignored) == 1
    assert stream.classes == [0, 1]


def test_a_single_item_of_a_new_class_waits(stream, answer):
    (note,) = stream.learn(answer.queries[:1], [7])
    assert note.startswith("too few items to learn '7' yet")
    assert stream.classes == [0, 1]


@pytest.mark.parametrize("items", [[], np.empty(0, int), np.empty((0, 8), np.float32)])
def test_learning_nothing_is_no_failure(stream, items):
    assert stream.learn(items, []) == ["there is no new answer: nothing was learnt"]


def test_learning_nothing_is_no_failure_before_the_first_window():
    assert begin(LABELS[IS_KNOWN]).learn([], []) == ["there is no new answer: nothing was learnt"]


def test_what_cannot_be_learnt_is_refused(stream, answer):
    calm = np.flatnonzero(~np.isin(np.arange(len(WINDOW)), unknown_of(stream, answer)))[0]
    refused = {
        "2 items came with 1 labels; give one for each": ([1, 2], [0]),
        f"row {calm} of the last window was neither asked about nor called": ([calm], [0]),
        "row 5000 of the last window was neither": ([5000], [0]),
        "row -1 of the last window was neither": ([-1], [0]),
        r"row \d+ is labelled both '0' and '1'; give one label": (answer.queries[[0, 0]], [0, 1]),
        "a label is '-1', which is no class": (answer.queries[:1], [-1]),
        "a label is 'unknown', which is no class": (WINDOW[:1], ["unknown"]),
        r"labels for items of shape \(5,\)": (WINDOW[:2, :5], [0, 1]),
        "items holds NaN": (np.full((1, 8), np.nan), [0]),
    }
    for words, (items, labels) in refused.items():
        with pytest.raises(DataError, match=words):
            stream.learn(items, labels)
    assert stream.classes == [0, 1]


def test_rows_before_the_first_window_are_refused():
    with pytest.raises(DataError, match="no questions are open"):
        begin(LABELS[IS_KNOWN]).learn([0], [1])


def test_a_window_of_another_shape_is_refused(stream):
    with pytest.raises(DataError, match=r"the window holds items of shape \(5,\)"):
        stream.classify(WINDOW[:, :5])
    with pytest.raises(DataError, match="the window is empty"):
        stream.classify(WINDOW[:0])


# What it tells


def test_the_status_tells_of_every_class(stream, answer):
    status = stream.status()
    assert list(status) == ["0", "1"]
    assert status["0"] == {
        **{"since": 0, "labels": 40, "n": 12},
        **{"estimate": 1.0, "low": pytest.approx(0.735, abs=1e-3), "high": 1.0},
    }
    rows = answer.queries[TRUTH[answer.queries] == 2]
    stream.learn(rows, [2] * len(rows))
    assert stream.status()["2"]["since"] == 1


def test_the_history_is_plain(stream):
    assert json.loads(json.dumps(stream.history)) == list(stream.history)


@pytest.mark.usefixtures("fits_anew")
def test_the_same_random_state_gives_the_same_stream_and_leaves_the_inputs_alone(opened, answer):
    window = WINDOW.copy()
    again = begin(LABELS[IS_KNOWN]).classify(window)
    np.testing.assert_array_equal(window, WINDOW)
    np.testing.assert_array_equal(again.labels, answer.labels)
    np.testing.assert_array_equal(again.queries, answer.queries)
    np.testing.assert_array_equal(again.unknown_score, answer.unknown_score)


# Self-taught


@pytest.mark.parametrize("budget", [20, 0])
def test_a_self_taught_stream_names_its_groups(budget):
    stream = begin(WORDS[LABELS[IS_KNOWN]], self_taught=True, budget=budget)
    answer = stream.classify(WINDOW)
    assert "unknown" in answer.labels  # as it was when the window came
    assert stream.classes == ["ant", "bee", "new 1", "new 2"]
    later, truth = make_blobs(30, 4, seed=6)
    labels = stream.classify(later).labels
    for c in (2, 3):
        names, counts = np.unique(labels[truth == c].astype(str), return_counts=True)
        assert names[counts.argmax()].startswith("new ")
        assert counts.max() > 20


def test_a_self_taught_stream_asks_nothing_and_leaves_no_question_open():
    stream = begin(LABELS[IS_KNOWN], self_taught=True)
    answer = stream.classify(WINDOW)
    assert (len(answer.queries), answer.why) == (0, [])
    assert stream.state.questions is None
    assert (stream.history[-1]["asked"], stream.history[-1]["answered"]) == (0, 0)
    stream.classify(WINDOW[TRUTH < 2])
    assert stream.state.questions is None


def test_a_self_taught_stream_learns_nothing_where_nothing_is_unknown():
    stream = begin(LABELS[IS_KNOWN], self_taught=True)
    stream.classify(WINDOW[TRUTH < 2])
    assert stream.classes == [0, 1]
    assert stream.history[-1]["updates"] == []


# Keeping


def test_a_stream_is_saved_with_its_open_questions(stream, answer, tmp_path):
    stream.save(tmp_path / "state")
    loaded = OpenStream.load(tmp_path / "state", budget=20)
    assert loaded.classes == [0, 1]
    assert loaded.history == stream.history
    assert loaded.status() == stream.status()
    rows = answer.queries[TRUTH[answer.queries] == 2]
    for one in (stream, loaded):
        one.learn(rows, [2] * len(rows))
    later, _ = make_blobs(30, 4, seed=6)
    a, b = (one.classify(later) for one in (stream, loaded))
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.queries, b.queries)
    np.testing.assert_array_equal(a.unknown_score, b.unknown_score)


def test_changes_that_others_confirmed_meanwhile_are_not_saved_over(stream, tmp_path):
    folder = tmp_path / "state"
    stream.save(folder)
    loaded = OpenStream.load(folder)
    other = OpenStream.load(folder)
    other.learn(WINDOW[TRUTH == 2], [2] * 30)
    other.save(folder)
    for one in (loaded, stream):
        with pytest.raises(OutputError, match=r"has changed since .* \(version 2: save\); load it"):
            one.save(folder)
    assert read_state(folder).class_names == ("0", "1", "2")
    loaded.save(tmp_path / "elsewhere")
    loaded.save(folder, force=True)
    assert read_state(folder).class_names == ("0", "1")
    loaded.save(folder)
    assert read_pointer(folder).current.number == 4


def test_a_change_that_was_undone_meanwhile_is_not_brought_back_by_a_save(stream, tmp_path):
    stream.save(tmp_path)
    stream.save(tmp_path)
    with open_store(tmp_path) as store:
        store.undo()
    with pytest.raises(OutputError, match="has changed since it was loaded or saved here"):
        stream.save(tmp_path)


def test_another_stream_is_not_saved_over(stream, tmp_path):
    begin(WORDS[LABELS[IS_KNOWN]]).save(tmp_path / "state")
    with pytest.raises(OutputError, match="holds another stream; save elsewhere, or give force"):
        stream.save(tmp_path / "state")
    assert OpenStream.load(tmp_path / "state").classes == ["ant", "bee"]
    stream.save(tmp_path / "state", force=True)
    assert OpenStream.load(tmp_path / "state").classes == [0, 1]


# Beginning


@pytest.mark.parametrize(
    ("y", "error", "words"),
    [
        (np.zeros(80, int), DataError, "y holds 1 class; label items of at least two"),
        ([0] * 79 + [1], DataError, "class '1' has one labelled item; give two of each"),
        ([0] * 40 + [1] * 39 + [None], DataError, "some items have no label"),
        (["a"] * 40 + ["unknown"] * 40, SettingsError, "called 'unknown', which has a meaning"),
        (["a"] * 40 + ["ignore"] * 40, SettingsError, "called 'ignore', which has a meaning"),
        (["a"] * 40 + ["Not of interest"] * 40, SettingsError, "called 'Not of interest', which"),
        ([0.5] * 40 + [1.0] * 40, DataError, "a label is 0.5; give a whole number"),
        ([0] * 40 + [-1] * 40, SettingsError, "called '-1', which has a meaning"),
        ([0, 1], DataError, "80 items came with 2 labels"),
    ],
)
def test_labels_a_stream_cannot_begin_with_are_refused(y, error, words):
    with pytest.raises(error, match=words):
        begin(y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "best"}, "the preset is 'best'"),
        ({"memory": 2}, "memory.size is 2; give a number from 4"),
        ({"device": "abacus"}, "the device is 'abacus'"),
        ({"budget": -5}, "the budget is -5; give a number of labels from 0"),
        ({"queries": "best"}, "the strategy is 'best'; give representative or unknown or random"),
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(options, words):
    with pytest.raises(SettingsError, match=words):
        begin(LABELS[IS_KNOWN], **options)


def test_settings_of_update_and_memory_go_by_their_names():
    learner = build_learner("fast", {"update.distillation": "0.5", "memory.seeds": 0.2}, 500)
    assert learner.update.distillation == 0.5
    assert (learner.memory.size, learner.memory.seeds) == (500, 0.2)
    changed = build_learner("fast", {"student.tau": 0.9}, 500)
    assert changed.method.student.tau == 0.9
    with pytest.raises(SettingsError, match=r"no setting 'update\.distilation'; did you mean"):
        build_learner("fast", {"update.distilation": 1}, 500)


def test_images_make_a_stream_as_vectors_do():
    images, labels = make_images(20)
    widths = {f"{role}.network.widths": (8, 8, 8) for role in ("teacher", "student")}
    stream = OpenStream(
        *(images[labels < 3], labels[labels < 3]),
        settings={**SETTINGS, **widths, "update.training.min_steps": 5},
        budget=10,
        memory=40,
    )
    answer = stream.classify(images[labels < 3])
    assert answer.labels.shape == (60,)
    stream.learn(images[labels == 3], [3] * 20)
    assert stream.classes == [0, 1, 2, 3]
