"""A learner and a stream -> figures of every window. The truth enters here, and as an oracle."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from s2osc.baselines.cpe import CPE
from s2osc.baselines.isolation_forest import IsolationForest
from s2osc.baselines.senc_mas import SENCMaS
from s2osc.bench.methods import NETWORKS, adapt, run_facts
from s2osc.bench.tasks.task import COMPARED_SIDE, Trial, cached_networks
from s2osc.codec import JsonObject, to_plain
from s2osc.data.datasets import Dataset
from s2osc.data.streams import (
    LabelledSet,
    LabelledWindow,
    Stream,
    StreamProtocol,
    draw_stream,
)
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
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.solution import Solution
from s2osc.pipeline.teacher import TeacherSettings, train_teacher
from s2osc.progress import track
from s2osc.seeding import derive
from s2osc.stream.learner import (
    Incremental,
    Learner,
    Prototyping,
    Recognition,
    Refit,
    Sketching,
    Static,
    for_streams,
)
from s2osc.stream.queries import QuerySettings
from s2osc.stream.state import StreamState
from s2osc.stream.windows import (
    TruthOracle,
    first_state,
    follow,
    window_seed,
)
from s2osc.types import UNKNOWN, Labelled, Method, Predictions

try:
    import resource
except ImportError:  # not every system counts what a process takes
    resource = None  # type: ignore[assignment]


@dataclass(frozen=True)
class StreamMethod:
    """A learner, and which items of each window are labelled for it."""

    learner: Learner
    queries: Literal["representative", "unknown", "random"] = "unknown"
    budget: int = 200  # labels per window

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise SettingsError(f"the budget is {self.budget}; give a number of labels from 0")


def as_learner(method: Method) -> Learner:
    """How a method for single pools follows a stream: by its own update, where it has one."""
    if isinstance(method, S2OSCMethod):
        return Incremental(for_streams(method) if method.seeds.share else method)
    if isinstance(method, CPE):
        return Prototyping(method)
    if isinstance(method, SENCMaS):
        return Sketching(method)
    return Static(method) if isinstance(method, IsolationForest) else Refit(method)


def as_stream_method(method: Any) -> StreamMethod:
    """With the questions of its kind: ours asks for representatives, others what is unknown."""
    if isinstance(method, StreamMethod):
        return method
    has_seeds = isinstance(method, S2OSCMethod) and method.seeds.share > 0
    return StreamMethod(as_learner(method), "representative" if has_seeds else "unknown")


class Charges:
    """Seconds of steps, with those that a network from the cache took when it was trained."""

    def __init__(self, cache: NetworkCache | None) -> None:
        self.cache = cache
        self.seconds: dict[str, float] = {}
        self.last: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started, saved = time.perf_counter(), self._saved()
        yield
        self.last[step] = round(time.perf_counter() - started + self._saved() - saved, 3)
        self.seconds[step] = round(self.seconds.get(step, 0.0) + self.last[step], 3)

    def _saved(self) -> float:
        return self.cache.seconds_saved if self.cache else 0.0


def follow_stream(
    stream: Stream,
    method: StreamMethod,
    *,
    seed: int,
    joint_accuracy: float,
    cache: NetworkCache | None = None,
    device: str = "cpu",
) -> JsonObject:
    """Follow a stream, with the truth for a person, and judge every window."""
    learner, clock = method.learner, Charges(cache)
    with clock("begin"):
        knowledge = learner.begin(stream.known, seed=seed, device=device)
    names = [class_word(c) for c in range(stream.n_classes)]
    state = first_state(
        stream.known, names[: stream.known.n_classes], learner, knowledge, seed=seed
    )
    results = follow(
        track(
            [window.inputs for window in stream.windows],
            "windows of the stream",
            total=len(stream.windows),
        ),
        state,
        TruthOracle([[names[c] for c in window.truth] for window in stream.windows]),
        # A learner that never learns asks nothing.
        QuerySettings(method.budget if learner.updates else 0, method.queries),
        device=device,
        clock=clock,
        seed_of=lambda state: window_seed(state, state.n_windows),
    )
    windows, stages = [], []
    for number, result in enumerate(results, 1):
        before, recognition = result.before, result.window.recognition
        named = learner.name_known(recognition.state, stream.test.inputs)
        stages.append(stage_accuracies(stream, number, in_stream(before, named)))
        rows, new = result.window.queries.rows, np.flatnonzero(stream.emerges == number)
        state, account = result.updated.state, result.updated.account
        windows.append(
            judge_window(stream, number, before, recognition, seed=window_seed(state, number))
            | {
                "labels": len(rows),
                "n_new": len(new),
                "n_found": len(np.intersect1d(new, stream.windows[number - 1].truth[rows])),
                "update": to_plain(account),
                "seconds": {step: clock.last[step] for step in ("recognise", "learn")},
                "peak_memory_mb": peak_memory(),
            }
        )
    last, final = derive(seed, "after the last window"), state.knowledge
    with clock("conclude"):
        if learner.needs_window:  # one more fit, for which the last window is the pool
            pool = stream.windows[-1].inputs
            final = learner.recognise(final, pool, seed=last, device=device).state
    named = learner.name_known(final, stream.test.inputs)
    stages.append(stage_accuracies(stream, len(windows) + 1, in_stream(state, named)))
    return {
        "metrics": _averages(windows)
        | judge_stages(stages, joint_accuracy, updates=learner.updates),
        "windows": windows,
        "stages": stages,
        "joint_accuracy": joint_accuracy,
        "seconds": clock.seconds,
        "seconds_total": round(sum(clock.seconds.values()), 1),
    }


def class_word(number: int) -> str:
    """The name of a class of the stream: names sort as their numbers do.

    >>> class_word(7)
    '00007'
    """
    return f"{number:05}"


def in_stream(state: StreamState, labels: np.ndarray) -> np.ndarray:
    """A learner's labels in the stream's numbers; UNKNOWN stays what it is."""
    numbers = np.array([int(name) for name in state.class_names])
    return np.where(labels >= 0, numbers[labels], labels)


def judge_window(
    stream: Stream, number: int, state: StreamState, recognition: Recognition, *, seed: int
) -> JsonObject:
    """The figures of a window: known are the classes that emerged before it, for every learner.

    Groups of a learner that has none are k-means' of what it calls unknown, with their true number.
    """
    classes = stream.windows[number - 1].truth
    truth = np.where(classes < stream.n_known_before(number), classes, UNKNOWN)
    found, recogniser = recognition.predictions, recognition.recogniser
    nearest = None if found.nearest is None else in_stream(state, found.nearest)
    labels = in_stream(state, found.labels)
    predictions = Predictions(labels, found.unknown_score, found.confidence, nearest=nearest)
    groups = recognition.groups
    if groups is None:
        groups, unknown = np.full(len(truth), -1), labels == UNKNOWN
        n_new = max(1, len(np.unique(classes[truth == UNKNOWN])))
        groups[unknown] = kmeans_groups(recognition.embeddings[unknown], n_new, seed)
    return {
        "window": number,
        "n_items": len(truth),
        "n_known": stream.n_known_before(number),
        "k": recogniser.k if isinstance(recogniser, Solution) else None,
        "metrics": evaluate(truth, predictions) | evaluate_classes(truth, classes, labels, groups),
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
    stages: Sequence[Sequence[float]], joint_accuracy: float | None = None, *, updates: bool = True
) -> dict[str, float]:
    """What is known by now of classes of the beginning and of later ones, and what was forgotten.

    A learner that never updates forgets nothing; ``joint_accuracy`` is A*, where there is one.

    >>> judge_stages([[0.9], [0.8, 0.7]])
    {'old_accuracy': 0.8, 'new_accuracy': 0.7, 'chaudhry_forgetting': 0.1}
    """
    if not all(stages):
        return {}
    old, *new = stages[-1]
    figures = {"old_accuracy": old}
    if new:
        figures["new_accuracy"] = float(np.mean(new))
    if updates and joint_accuracy:
        figures["forgetting"] = forgetting(stages, joint_accuracy)
    if updates:
        figures["chaudhry_forgetting"] = chaudhry_forgetting(stages)
    return {name: round(value, 5) for name, value in figures.items()}


def mean_figures(windows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The plain mean of each figure over the windows that have it."""
    figures: dict[str, list[float]] = {}
    for window in windows:
        for name, value in window["metrics"].items():
            figures.setdefault(name, []).append(value)
    return {name: round(float(np.mean(values)), 5) for name, values in figures.items()}


def _averages(windows: Sequence[JsonObject]) -> dict[str, float]:
    """The means over windows, and labels in all."""
    averages = mean_figures(windows)
    n_new = sum(window["n_new"] for window in windows)
    averages["labels"] = sum(window["labels"] for window in windows)
    averages["found"] = round(sum(window["n_found"] for window in windows) / n_new, 5)
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
    teacher, _ = train_teacher(everything, settings, augmentation, seed=seed, device=device)
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


def describe_stream(stream: Stream, dataset: LabelledSet) -> JsonObject:
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


class StreamTask:
    """Labelled items of known classes, then windows in which new ones emerge."""

    def prepare(
        self, method: Any, protocol: StreamProtocol, *, networks: str | None, flip: bool
    ) -> StreamMethod:
        streamed = as_stream_method(method)
        learner = streamed.learner
        n_unknown = None if protocol.arrival == "parts" else 1  # of a window
        run = run_facts(networks, flip=flip, n_unknown=n_unknown)
        learner = replace(learner, method=adapt(learner.method, run))  # type: ignore[type-var]
        if networks == "tiny" and isinstance(learner, Incremental):
            training = NETWORKS[networks].teacher.training
            learner = replace(learner, update=replace(learner.update, training=training))
        return replace(streamed, learner=learner)

    def draw(self, dataset: Dataset, protocol: StreamProtocol, partition: int) -> Stream:
        dataset.require_numbers()
        stream = draw_stream(dataset, protocol, partition)
        check_test_items(stream, dataset)
        return stream

    def through_backbone(self, items: Stream, name: str, *, flip: bool) -> Stream:
        parts = [items.known.inputs, *(w.inputs for w in items.windows), items.test.inputs]
        backbone = load_backbone(name, side=COMPARED_SIDE)
        features = compute_features(np.concatenate(parts), backbone, flip=flip)
        known, *windows, test = np.split(features, np.cumsum([len(part) for part in parts])[:-1])
        return replace(
            items,
            known=Labelled(known, items.known.labels),
            windows=tuple(map(LabelledWindow, windows, (w.truth for w in items.windows))),
            test=LabelledWindow(test, items.test.truth),
        )

    def describe(self, items: Stream, dataset: Dataset) -> JsonObject:
        return describe_stream(items, dataset)

    def run(self, items: Stream, trial: Trial, *, device: str) -> JsonObject:
        """A* is of one f for all learners, so that they are measured by the same."""
        networks = NETWORKS[trial.networks or "plain"]
        flip = replace(networks.augmentation, flip=trial.flip)
        seed = trial.partition
        with cached_networks(True):
            best = joint_accuracy(items, networks.teacher, flip, seed=seed, device=device)
        with cached_networks(trial.keeps_networks) as cache:
            return follow_stream(
                items, trial.method, seed=seed, joint_accuracy=best, cache=cache, device=device
            )
