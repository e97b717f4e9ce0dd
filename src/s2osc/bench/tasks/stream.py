"""A learner and a stream -> figures of every window. The truth enters here, and as an oracle."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from s2osc.data.datasets import Dataset
from s2osc.data.streams import LabelledSet, Stream, Window
from s2osc.errors import DataError, SettingsError
from s2osc.metrics import (
    chaudhry_forgetting,
    evaluate,
    evaluate_classes,
    forgetting,
    kmeans_groups,
)
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.backbones import load_backbone
from s2osc.nets.features import compute_features
from s2osc.nets.network_cache import NetworkCache
from s2osc.pipeline.method import Solution
from s2osc.pipeline.teacher import TeacherSettings, train_teacher
from s2osc.progress import track
from s2osc.seeding import derive
from s2osc.stream.learner import Learner, Seen
from s2osc.stream.memory import joined
from s2osc.stream.queries import choose_queries
from s2osc.types import UNKNOWN, Labelled, Predictions

try:
    import resource
except ImportError:  # not every system counts what a process takes
    resource = None  # type: ignore[assignment]

FEWEST_LABELS = 2
"""Of a new class, before it is learnt: one to learn from and one for a threshold."""


@dataclass(frozen=True)
class StreamMethod:
    """A learner, and which items of each window are labelled for it."""

    learner: Learner
    queries: Literal["representative", "unknown", "random"] = "unknown"
    budget: int = 200  # labels per window

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise SettingsError(f"the budget is {self.budget}; give a number of labels from 0")


class Acquainted(NamedTuple):
    """The classes a learner knows by its own numbers, and labelled items of others that wait."""

    classes: tuple[int, ...]  # the stream's number of each
    waiting: Labelled  # numbered as in the stream

    def in_stream(self, labels: np.ndarray) -> np.ndarray:
        """The learner's labels in the stream's numbers; UNKNOWN stays what it is.

        >>> nothing = Labelled(np.empty((0, 1)), np.empty(0, int))
        >>> Acquainted((0, 1, 4, 3), nothing).in_stream(np.array([2, -1, 0])).tolist()
        [4, -1, 0]
        """
        return np.where(labels >= 0, np.array(self.classes)[labels], labels)

    def take(self, answers: Labelled) -> tuple[Labelled, "Acquainted"]:
        """What can be learnt of the answers and of those that waited, in the learner's numbers."""
        items = joined(self.waiting, answers)
        found, counts = np.unique(items.labels, return_counts=True)
        new = [int(c) for c in found[counts >= FEWEST_LABELS] if c not in self.classes]
        classes = (*self.classes, *new)
        own = {c: place for place, c in enumerate(classes)}
        usable = np.isin(items.labels, classes)
        return (
            Labelled(
                items.inputs[usable], np.array([own[c] for c in items.labels[usable].tolist()], int)
            ),
            Acquainted(classes, Labelled(items.inputs[~usable], items.labels[~usable])),
        )


class Charges:
    """Seconds of steps, with those that a kept network took when it was trained."""

    def __init__(self, kept: NetworkCache | None) -> None:
        self.kept = kept
        self.seconds: dict[str, float] = {}
        self.last: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started, saved = time.perf_counter(), self._saved()
        yield
        self.last[step] = round(time.perf_counter() - started + self._saved() - saved, 3)
        self.seconds[step] = round(self.seconds.get(step, 0.0) + self.last[step], 3)

    def _saved(self) -> float:
        return self.kept.seconds_saved if self.kept else 0.0


def follow(
    stream: Stream,
    method: StreamMethod,
    *,
    seed: int,
    joint_accuracy: float,
    kept: NetworkCache | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Every window in turn: recognise, judge, ask, learn. A label comes after the answer to it."""
    learner, clock = method.learner, Charges(kept)
    with clock("begin"):
        state = learner.begin(stream.known, seed=seed, device=device)
    nothing = Labelled(stream.known.inputs[:0], stream.known.labels[:0])
    acquainted = Acquainted(tuple(range(stream.known.n_classes)), nothing)
    windows, stages = [], []
    for number, window in track(
        list(enumerate(stream.windows, 1)), "windows of the stream", total=len(stream.windows)
    ):
        own_seed = derive(seed, f"window {number}")
        with clock("recognise"):
            seen = learner.recognise(state, window.inputs, seed=own_seed, device=device)
        named = learner.name_known(state, seen, stream.test.inputs)
        stages.append(stage_accuracies(stream, number, acquainted.in_stream(named)))
        told = judge_window(stream, number, seen, acquainted, seed=own_seed)
        rows = _ask(method, seen, seed=own_seed)
        answers, acquainted_now = acquainted.take(Labelled(window.inputs[rows], window.truth[rows]))
        with clock("learn"):
            # Answers about classes of which there is too little leave everything as it is.
            if len(answers):
                state = learner.learn(state, seen, answers, seed=own_seed, device=device)
        acquainted = acquainted_now
        new = np.flatnonzero(stream.emerges == number)
        windows.append(
            told
            | {
                "labels": len(rows),
                "n_new": len(new),
                "n_found": len(np.intersect1d(new, window.truth[rows])),
                "update": learner.account(state) if len(answers) else None,
                "seconds": {step: clock.last[step] for step in ("recognise", "learn")},
                "peak_memory_mb": peak_memory(),
            }
        )
    last = derive(seed, "after the last window")
    with clock("conclude"):
        seen_last = learner.conclude(state, stream.windows[-1].inputs, seed=last, device=device)
    named = learner.name_known(state, seen_last, stream.test.inputs)
    stages.append(stage_accuracies(stream, len(windows) + 1, acquainted.in_stream(named)))
    return {
        "metrics": _averages(windows)
        | judge_stages(stages, joint_accuracy if learner.updates else None),
        "windows": windows,
        "stages": stages,
        "joint_accuracy": joint_accuracy,
        "seconds": clock.seconds,
        "seconds_total": round(sum(clock.seconds.values()), 1),
    }


def _ask(method: StreamMethod, seen: Seen, *, seed: int) -> np.ndarray:
    """Rows of the window that are labelled; a learner that never learns asks nothing."""
    if not method.learner.updates:
        return np.empty(0, int)
    return choose_queries(
        *(method.queries, seen.answer, seen.embeddings, method.budget),
        groups=seen.groups,
        seed=seed,
    ).rows


def judge_window(
    stream: Stream, number: int, seen: Seen, acquainted: Acquainted, *, seed: int
) -> dict[str, Any]:
    """The figures of a window: known are the classes that emerged before it, for every learner.

    Groups of a learner that has none are k-means' of what it calls unknown, told their true number.
    """
    classes = stream.windows[number - 1].truth
    truth = np.where(classes < stream.n_known_before(number), classes, UNKNOWN)
    said = seen.answer
    nearest = None if said.nearest is None else acquainted.in_stream(said.nearest)
    labels = acquainted.in_stream(said.labels)
    answer = Predictions(labels, said.unknown_score, said.confidence, nearest=nearest)
    groups = seen.groups
    if groups is None:
        groups, unknown = np.full(len(truth), -1), labels == UNKNOWN
        n_new = max(1, len(np.unique(classes[truth == UNKNOWN])))
        groups[unknown] = kmeans_groups(seen.embeddings[unknown], n_new, seed)
    return {
        "window": number,
        "n_items": len(truth),
        "n_known": stream.n_known_before(number),
        "k": seen.recogniser.k if isinstance(seen.recogniser, Solution) else None,
        "metrics": evaluate(truth, answer) | evaluate_classes(truth, classes, labels, groups),
    }


def stage_accuracies(stream: Stream, stage: int, named: np.ndarray) -> list[float]:
    """acc_{k,j} of stage k: accuracy on test items of the classes that came with each arrival.

    The first arrival is the beginning; stage k is before window k.
    """
    right = named == stream.test.truth
    arrived = stream.emerges[stream.test.truth]
    arrivals = np.unique(stream.emerges[stream.emerges < stage])
    return [round(float(np.mean(right[arrived == j])), 5) for j in arrivals]


def judge_stages(
    stages: Sequence[Sequence[float]], joint_accuracy: float | None
) -> dict[str, float]:
    """What is known in the end of old and of new classes; forgetting, unless there is no A*."""
    old, *new = stages[-1]
    figures = {"old_accuracy": old}
    if new:
        figures["new_accuracy"] = float(np.mean(new))
    if joint_accuracy:
        figures["forgetting"] = forgetting(stages, joint_accuracy)
        figures["chaudhry_forgetting"] = chaudhry_forgetting(stages)
    return {name: round(value, 5) for name, value in figures.items()}


def _averages(windows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The plain mean of each figure over the windows that have it, and labels in all."""
    figures: dict[str, list[float]] = {}
    for told in windows:
        for name, value in told["metrics"].items():
            figures.setdefault(name, []).append(value)
    averages: dict[str, float] = {n: round(float(np.mean(v)), 5) for n, v in figures.items()}
    n_new = sum(told["n_new"] for told in windows)
    averages["labels"] = sum(told["labels"] for told in windows)
    averages["found"] = round(sum(told["n_found"] for told in windows) / n_new, 5)
    return averages


def peak_memory() -> float | None:
    """Megabytes that the process took at most so far; None where the system does not tell."""
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def joint_accuracy(
    stream: Stream,
    settings: TeacherSettings,
    augmentation: AugmentSettings,
    *,
    seed: int,
    device: str,
) -> float:
    """A*: the accuracy on test items of an f that learnt all items of all classes at once."""
    everything = Labelled(
        np.concatenate([stream.known.inputs, *(w.inputs for w in stream.windows)]),
        np.concatenate([stream.known.labels, *(w.truth for w in stream.windows)]),
    )
    teacher = train_teacher(everything, settings, augmentation, seed=seed, device=device)
    named = teacher.outputs(stream.test.inputs).logits.argmax(1)
    return round(float(np.mean(named == stream.test.truth)), 5)


def check_test_items(stream: Stream, dataset: Dataset) -> None:
    """Refuse a stream in which some class has no items to judge what is remembered of it."""
    counts = np.bincount(stream.test.truth, minlength=stream.n_classes)
    for number in np.array(stream.class_numbers)[counts == 0]:
        raise DataError(
            f"class {dataset.classes[number]} of {dataset.name} has no test items, which takes "
            "ten items of it at least; give more"
        )


def stream_through_backbone(stream: Stream, name: str, *, flip: bool) -> Stream:
    """The stream with features of its images, and of a few views of them, in their place."""
    parts = [stream.known.inputs, *(w.inputs for w in stream.windows), stream.test.inputs]
    backbone = load_backbone(name, source=stream.known.inputs.shape[1:3])
    features = compute_features(np.concatenate(parts), backbone, flip=flip)
    known, *windows, test = np.split(features, np.cumsum([len(part) for part in parts])[:-1])
    return replace(
        stream,
        known=Labelled(known, stream.known.labels),
        windows=tuple(
            Window(inputs, window.truth)
            for inputs, window in zip(windows, stream.windows, strict=True)
        ),
        test=Window(test, stream.test.truth),
    )


def describe_stream(stream: Stream, dataset: LabelledSet) -> dict[str, Any]:
    """The facts of a stream, known before a run begins."""
    names = [dataset.classes[c] for c in stream.class_numbers]
    n_first = stream.known.n_classes
    return {
        "known_classes": names[:n_first],
        "unknown_classes": names[n_first:],
        "emerges": stream.emerges.tolist(),
        "timeline": stream.timeline.tolist(),
        "n_training": len(stream.known),
        "n_pool": sum(len(window.truth) for window in stream.windows),
        "n_held_out": len(stream.test.truth),
    }
