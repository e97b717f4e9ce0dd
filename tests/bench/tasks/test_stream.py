"""Following a stream: what is judged when, what is asked, and what is remembered of it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from s2osc.bench.tasks import stream as stream_runs
from s2osc.bench.tasks.stream import (
    Charges,
    StreamMethod,
    StreamTask,
    check_test_items,
    describe_stream,
    follow_stream,
    joint_accuracy,
    judge_stages,
    peak_memory,
    stage_accuracies,
)
from s2osc.bench.tasks.task import COMPARED_SIDE
from s2osc.data.datasets import Dataset
from s2osc.data.streams import LabelledWindow, Stream, StreamProtocol, draw_stream
from s2osc.errors import DataError, SettingsError
from s2osc.metrics import evaluate, evaluate_classes
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.backbones import Backbone
from s2osc.nets.features import compute_features
from s2osc.nets.network_cache import NetworkCache
from s2osc.stream.learner import Incremental, Recognition
from s2osc.stream.update import UpdateSettings
from s2osc.types import UNKNOWN, Labelled, Predictions
from samples import SEEDED, TINY, make_blobs, make_dataset

RADIUS = 6.0


@dataclass(frozen=True)
class Means:
    """The mean of each class; what is far from every mean is unknown. Blobs are easy for it."""

    updates: bool = True
    needs_window: bool = False
    method: None = None

    def begin(self, known, *, seed, device="cpu"):
        return tuple(known.inputs[known.labels == c].mean(0) for c in range(known.n_classes))

    def recognise(self, state, window, *, seed, device="cpu"):
        distances = self.distances(state, window)
        labels = np.where(distances.min(1) > RADIUS, UNKNOWN, distances.argmin(1))
        score = distances.min(1)
        answers = Predictions(labels, score, np.ones(len(window)), nearest=distances.argmin(1))
        return Recognition(answers, window, None, recogniser=None, state=state)

    def learn(self, state, answers, *, seed, device="cpu"):
        assert set(range(len(state), answers.n_classes)) <= set(answers.labels)
        new = range(len(state), answers.n_classes)
        return (*state, *(answers.inputs[answers.labels == c].mean(0) for c in new))

    def name_known(self, state, inputs):
        return self.distances(state, inputs).argmin(1)

    def account(self, state):
        return None

    @staticmethod
    def distances(state, inputs):
        return np.stack([np.linalg.norm(inputs - mean, axis=1) for mean in state], axis=1)


def make_stream(arrivals=(1, 2), n: int = 20) -> Stream:
    """Two known blobs, and more that emerge; ``n`` items of each class in a part."""
    n_windows, n_classes = max(arrivals), 2 + len(arrivals)
    inputs, labels = make_blobs(n * (n_windows + 2), n_classes, distance=20.0)
    emerges = np.array([0, 0, *arrivals])

    def part(place: int, classes) -> LabelledWindow:
        rows = [np.flatnonzero(labels == c)[place * n : (place + 1) * n] for c in classes]
        return LabelledWindow(inputs[np.concatenate(rows)], labels[np.concatenate(rows)])

    there = [np.flatnonzero(emerges <= t) for t in range(n_windows + 1)]
    return Stream(
        known=Labelled(*part(0, there[0])),
        windows=tuple(part(t, there[t]) for t in range(1, n_windows + 1)),
        emerges=emerges,
        class_numbers=tuple(range(n_classes)),
        test=part(n_windows + 1, range(n_classes)),
    )


def test_a_learner_that_is_always_right_has_perfect_figures():
    outcome = follow_stream(make_stream(), StreamMethod(Means()), seed=0, joint_accuracy=1.0)
    assert outcome["stages"] == [[1.0], [1.0, 1.0], [1.0, 1.0, 1.0]]
    figures = outcome["metrics"]
    for name in ("accuracy", "f1", "f_out", "known_accuracy", "unknown_recall", "found"):
        assert figures[name] == 1.0
    assert figures["forgetting"] == figures["chaudhry_forgetting"] == 0.0
    assert figures["old_accuracy"] == figures["new_accuracy"] == 1.0
    assert figures["labels"] == 40
    assert [w["n_known"] for w in outcome["windows"]] == [2, 3]
    assert [(w["labels"], w["n_new"], w["n_found"]) for w in outcome["windows"]] == [(20, 1, 1)] * 2


def test_without_labels_nothing_new_is_learnt_and_that_counts_as_forgotten():
    """A_k is 1, 1/2 and 1/3; in the second window a third class comes as unknown once more."""
    outcome = follow_stream(
        make_stream(), StreamMethod(Means(), budget=0), seed=0, joint_accuracy=1.0
    )
    assert outcome["stages"] == [[1.0], [1.0, 0.0], [1.0, 0.0, 0.0]]
    figures = outcome["metrics"]
    assert figures["forgetting"] == pytest.approx(1 - (1 + 1 / 2 + 1 / 3) / 3, abs=1e-5)
    assert (figures["labels"], figures["found"], figures["new_accuracy"]) == (0, 0.0, 0.0)
    # A class that emerged in the window before counts as known, whoever has learnt it.
    assert [w["metrics"]["accuracy"] for w in outcome["windows"]] == [1.0, 0.75]


def test_a_learner_that_never_learns_is_asked_no_labels_and_forgets_nothing():
    outcome = follow_stream(
        make_stream(), StreamMethod(Means(updates=False)), seed=0, joint_accuracy=1.0
    )
    assert outcome["metrics"]["labels"] == 0
    assert not {"forgetting", "chaudhry_forgetting"} & outcome["metrics"].keys()
    assert len(outcome["stages"]) == 3


def test_several_classes_may_emerge_in_one_window_and_in_some_none():
    outcome = follow_stream(
        make_stream((1, 1, 3)), StreamMethod(Means()), seed=0, joint_accuracy=1.0
    )
    assert outcome["stages"] == [[1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0, 1.0]]
    assert [w["n_new"] for w in outcome["windows"]] == [2, 0, 1]
    assert "f_out" not in outcome["windows"][1]["metrics"]
    assert outcome["metrics"]["f_out"] == 1.0


def test_the_figures_of_a_window_are_those_of_its_answer_before_the_labels():
    stream = make_stream()
    window = stream.windows[0]
    learner = Means()
    state = learner.begin(stream.known, seed=0)
    truth = np.where(window.truth < 2, window.truth, UNKNOWN)
    answers = learner.recognise(state, window.inputs, seed=0).predictions
    groups = np.where(answers.labels == UNKNOWN, 0, -1)  # one new class, one group
    expected = evaluate(truth, answers)
    expected |= evaluate_classes(truth, window.truth, answers.labels, groups)
    outcome = follow_stream(stream, StreamMethod(learner), seed=0, joint_accuracy=1.0)
    assert outcome["windows"][0]["metrics"] == expected


def test_new_classes_count_by_themselves_also_for_a_learner_without_groups():
    outcome = follow_stream(make_stream((1, 1)), StreamMethod(Means()), seed=0, joint_accuracy=1.0)
    figures = outcome["windows"][0]["metrics"]
    assert figures["accuracy"] == figures["class_accuracy"] == 1
    assert outcome["metrics"]["class_f1"] == 1


@pytest.mark.parametrize(
    ("queries", "n"), [("representative", 10), ("unknown", 10), ("random", 10)]
)
def test_no_more_is_asked_than_the_budget_allows(queries, n):
    method = StreamMethod(Means(), queries, budget=n)
    outcome = follow_stream(make_stream(), method, seed=0, joint_accuracy=1.0)
    assert all(0 < window["labels"] <= n for window in outcome["windows"])


def test_a_budget_below_nothing_is_refused():
    with pytest.raises(SettingsError, match="the budget is -1"):
        StreamMethod(Means(), budget=-1)


def test_ours_tells_k_and_what_each_update_did():
    update = UpdateSettings(training=replace(TINY.teacher.training, min_steps=20))
    learner = Incremental(SEEDED, update)
    outcome = follow_stream(
        make_stream((1,), n=60), StreamMethod(learner), seed=0, joint_accuracy=1.0
    )
    [window] = outcome["windows"]
    assert window["k"] > 0
    assert window["update"]["n_new_classes"] == 1
    assert window["update"]["n_labels"] == window["labels"] > 0
    assert outcome["seconds_total"] == pytest.approx(sum(outcome["seconds"].values()), abs=0.06)
    assert window["seconds"].keys() == {"recognise", "learn"}


# Who is known by which number


def test_answers_that_teach_nothing_leave_the_learner_as_it_is():
    outcome = follow_stream(
        make_stream((1,)), StreamMethod(Means(), budget=1), seed=0, joint_accuracy=1.0
    )
    assert outcome["stages"][-1] == [1.0, 0.0]
    assert (outcome["windows"][0]["labels"], outcome["windows"][0]["n_found"]) == (1, 1)


def test_classes_learnt_in_another_order_than_they_came_are_told_apart():
    """One label in the first window, the other in the second: class 2 follows class 3."""

    @dataclass(frozen=True)
    class Late(Means):
        def recognise(self, state, window, *, seed, device="cpu"):
            recognition = super().recognise(state, window, seed=seed)
            hide = (
                (recognition.predictions.labels == UNKNOWN)
                & (len(state) == 2)
                & (window[:, 2] > 10)
            )
            labels = np.where(hide, 0, recognition.predictions.labels)
            return replace(recognition, predictions=replace(recognition.predictions, labels=labels))

    outcome = follow_stream(
        make_stream((1, 2, 3)), StreamMethod(Late()), seed=0, joint_accuracy=1.0
    )
    # Class 2 is taken for a known one until class 3 is learnt in window 2, then it is found.
    assert outcome["stages"] == [[1.0], [1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    assert outcome["metrics"]["found"] == pytest.approx(2 / 3, abs=1e-5)


# Stages


def test_a_stage_is_judged_on_test_items_by_arrival():
    stream = make_stream((1, 1), n=4)
    named = stream.test.truth.copy()
    named[stream.test.truth == 3] = 0
    assert stage_accuracies(stream, 1, named) == [1.0]
    assert stage_accuracies(stream, 2, named) == [1.0, 0.5]


def test_stages_tell_old_from_new_and_what_was_forgotten():
    stages = [[0.9], [0.8, 0.9], [0.7, 0.8, 0.9]]
    assert judge_stages(stages, 0.95) == {
        "old_accuracy": 0.7,
        "new_accuracy": 0.85,
        "forgetting": 0.10526,
        "chaudhry_forgetting": 0.15,
    }
    assert judge_stages(stages, updates=False) == {"old_accuracy": 0.7, "new_accuracy": 0.85}


def test_one_model_of_all_data_knows_every_class():
    stream = make_stream(n=30)
    best = joint_accuracy(stream, TINY.teacher, AugmentSettings(), seed=0, device="cpu")
    assert best > 0.95


def test_a_class_without_test_items_is_refused_by_name():
    stream = draw_stream(make_dataset(30), StreamProtocol(), seed=0)
    with pytest.raises(DataError, match=r"class . of tiny has no test items"):
        check_test_items(stream, make_dataset(30))
    check_test_items(draw_stream(make_dataset(30), StreamProtocol(held_out=2), 0), make_dataset(30))


# What a run is charged, and what it is made of


def test_seconds_of_a_cached_network_are_charged_to_the_step_that_used_it(tmp_path):
    cache = NetworkCache(tmp_path)
    clock = Charges(cache)
    for seconds in (100.0, 50.0):
        with clock("recognise"):
            cache.seconds_saved += seconds
        assert clock.last["recognise"] == pytest.approx(seconds, abs=1)
    assert clock.seconds["recognise"] == pytest.approx(150, abs=1)


def test_peak_memory_is_that_of_the_process_and_unknown_where_nobody_counts(monkeypatch):
    assert 20 < peak_memory() < 100_000
    monkeypatch.setattr(stream_runs, "resource", None)
    assert peak_memory() is None


def test_everything_of_a_stream_goes_through_the_backbone(monkeypatch, tmp_path):
    statistics = (100.0,) * 3, (50.0,) * 3

    def load_brightness(name, *, side):
        assert side == COMPARED_SIDE
        return Backbone(name, "1", 8, 3, *statistics, lambda batch: batch.mean((2, 3)))

    def compute(images, backbone, *, flip):
        return compute_features(images, backbone, flip=flip, folder=tmp_path)

    monkeypatch.setattr(stream_runs, "load_backbone", load_brightness)
    monkeypatch.setattr(stream_runs, "compute_features", compute)
    stream = draw_stream(make_dataset(30), StreamProtocol(held_out=2), seed=0)
    through = StreamTask().through_backbone(stream, "brightness", flip=False)
    for before, after in (
        (stream.known, through.known),
        *zip(stream.windows, through.windows, strict=True),
        (stream.test, through.test),
    ):
        assert after.inputs.shape == (len(before.inputs), 3, 3)
        expected = (before.inputs.mean((1, 2)) - 100) / 50
        np.testing.assert_allclose(after.inputs[:, 0, 0], expected, atol=2e-3)
    np.testing.assert_array_equal(through.windows[0].truth, stream.windows[0].truth)


def test_a_record_tells_which_classes_came_when():
    images, labels = np.zeros((120, 2, 2), np.uint8), np.arange(120) % 4
    dataset = Dataset("own", images, labels, tuple("abcd"), 120, flip=False)
    stream = draw_stream(dataset, StreamProtocol(sizes=(6, 4), held_out=2), seed=1)
    outcome = describe_stream(stream, dataset)
    assert sorted([*outcome["known_classes"], *outcome["unknown_classes"]]) == list("abcd")
    assert outcome["emerges"] == [0, 0, 1, 2]
    assert outcome["timeline"] == [[4, 4], [4, 4], [4, 4], [0, 4]]
    assert (outcome["n_training"], outcome["n_pool"], outcome["n_held_out"]) == (12, 28, 8)
