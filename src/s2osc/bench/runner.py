"""An experiment -> one JSON record per run. What is recorded is not run again.

A record lies at ``results/<experiment>/<data>-<method>[-<size>]-p<partition>.json`` and holds
everything a table or figure needs: settings, seed, classes, versions, commit, seconds per step,
metrics. It is written whole after its run, so an experiment that was stopped, however it was, goes
on where it stopped. A run that fails is recorded with its error, and tried again the next time.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np
import torch

from s2osc.bench.experiments.catalogue import experiments_named
from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.experiments.streams import adapt_stream
from s2osc.bench.figures.pictures import pictures_of
from s2osc.bench.live import Board
from s2osc.bench.methods import DETECTORS, NETWORKS, adapt, choose_methods, run_facts
from s2osc.bench.records import (
    check_same_settings,
    commit,
    fingerprint,
    is_done,
    make_folder,
    read_record,
    record_path,
    write_record,
)
from s2osc.bench.tasks.pool import judge
from s2osc.bench.tasks.stream import (
    check_test_items,
    describe_stream,
    follow,
    joint_accuracy,
    stream_through_backbone,
)
from s2osc.data.datasets import Dataset, load_dataset
from s2osc.data.splits import Protocol, split_dataset
from s2osc.data.streams import Stream, StreamProtocol, draw_stream
from s2osc.errors import DataError, SettingsError
from s2osc.nets.backbones import EFFICIENTNET, load_backbone
from s2osc.nets.features import compute_features, default_folder
from s2osc.nets.network_cache import NetworkCache, networks_cached_in
from s2osc.pipeline.method import Solution
from s2osc.progress import Stopwatch
from s2osc.settings import flatten
from s2osc.types import UNKNOWN, Labelled, Method, Split
from s2osc.version import versions

THROUGH = "-features"
"""A data set with this after its name goes through the backbone first."""


@dataclass(frozen=True)
class Run:
    """One data set, one partition, one method, and where its record goes."""

    experiment: str
    data: str
    name: str  # of the method
    method: Any  # as it is run: a method, or a learner with its questions
    partition: int
    size: str | None
    protocol: Protocol | StreamProtocol
    path: Path
    flip: bool = True  # an image keeps its meaning in a mirror


def run_experiment(
    name: str,
    datasets: Sequence[str] | None,
    partitions: Sequence[int],
    results: Path,
    *,
    methods: str | None = None,
    size: str | None = None,
    part: tuple[int, int] = (1, 1),
    device: str = "cpu",
    folder: Path | None = None,
) -> list[Path]:
    """Run whatever has no record yet; ``part`` (i, n) is every n-th data set and partition."""
    paths = []
    for each, experiment in experiments_named(name).items():
        experiment.sized(size)
        choose_methods(methods, experiment.methods)  # a wrong word is refused before data load
        loaded = {
            data: load_dataset(data.removesuffix(THROUGH), folder)
            for data in datasets or experiment.data
        }
        recorded_as = experiment.records or each
        runs = plan(
            *(recorded_as, experiment, loaded, partitions, results), methods=methods, size=size
        )
        marks = {data: fingerprint(dataset) for data, dataset in loaded.items()}
        check_plan([run for of in runs for run in of], experiment, marks)
        runs = [runs_of for i, runs_of in enumerate(runs) if i % part[1] == part[0] - 1]
        everything = [run for runs_of in runs for run in runs_of]
        with Board(each, everything) as board:
            for run in everything:
                if is_done(run.path):
                    board.done(run, read_record(run.path))
            for runs_of in runs:
                todo = [run for run in runs_of if not is_done(run.path)]
                if todo:
                    cell = Cell(experiment, loaded[todo[0].data], marks[todo[0].data], device)
                    _run_on_one_split(todo, cell, board)
        paths += [run.path for run in everything]
    failed = [path for path in paths if not is_done(path)]
    if failed:
        raise DataError(
            f"{len(failed)} of {len(paths)} runs failed, and their records say why (the first: "
            f"{failed[0]}); the rest is recorded; the same command tries them again"
        )
    return paths


def check_plan(runs: Sequence[Run], experiment: Experiment, marks: Mapping[str, str]) -> None:
    """Refuse what would fail after hours, or be mixed with other records, in whatever part."""
    for run in runs:
        make_folder(run.path.parent)
        try:
            json.dumps(flatten(run.method))
        except TypeError as error:
            raise SettingsError(
                f"the settings of {run.name} cannot be recorded ({error}); give it fields that are "
                "numbers, texts, or dataclasses of them"
            ) from error
        if is_done(run.path):
            check_same_settings(
                *(run.path, run.method, run.protocol),
                data=marks[run.data],
                shows_groups=experiment.shows_groups,
            )


def plan(
    name: str,
    experiment: Experiment,
    datasets: dict[str, Dataset],
    partitions: Sequence[int],
    results: Path,
    *,
    methods: str | None = None,
    size: str | None = None,
) -> list[list[Run]]:
    """All runs, those on the same items together."""
    size, protocol = experiment.sized(size)
    chosen = choose_methods(methods, experiment.methods)
    return [
        [
            Run(
                *(name, data, method, prepare(chosen[method], experiment, size, data, dataset)),
                *(partition, size, protocol),
                record_path(results, name, data, method, size, partition),
                flip=dataset.flip,
            )
            for method in chosen
        ]
        for data, dataset in datasets.items()
        for partition in partitions
    ]


def prepare(
    method: Any, experiment: Experiment, size: str | None, data: str, dataset: Dataset
) -> Any:
    """The method as it is run on these data at this size."""
    networks = networks_of(experiment, size, data)
    protocol = experiment.protocol
    if isinstance(protocol, StreamProtocol):
        return adapt_stream(method, protocol, networks=networks, flip=dataset.flip)
    n_unknown = len(protocol.unknown_classes or ()) or protocol.n_unknown
    return adapt(method, run_facts(networks, flip=dataset.flip, n_unknown=n_unknown))


def networks_of(experiment: Experiment, size: str | None, data: str) -> str | None:
    """The preset of the networks at this size; None: each method has its own."""
    if not size:
        return None
    scale = experiment.sizes[size]
    return scale.vectors if data.endswith(THROUGH) else scale.images


class Cell(NamedTuple):
    """What runs on the same items have in common."""

    experiment: Experiment
    dataset: Dataset
    mark: str  # of the data set
    device: str


def _run_on_one_split(runs: Sequence[Run], cell: Cell, board: Board) -> None:
    """The runs that share their items: the split and its features are made once."""
    clock = Stopwatch()
    try:
        split, backbone = _make_items(runs[0], cell, clock)
    except Exception as error:  # other data sets and partitions go on
        for run in runs:
            _record(run, describe(run, cell) | _failure(error), board)
        return
    for run in runs:
        if is_done(run.path):  # by another process, meanwhile
            board.done(run, read_record(run.path))
            continue
        board.begin(run)
        facts = describe(run, cell) | describe_items(split, cell.dataset)
        facts |= {"backbone": backbone, "seconds_features": clock.seconds.get("features")}
        _record(run, facts | _outcome(run, split, cell.experiment, device=cell.device), board)


def _record(run: Run, record: dict[str, Any], board: Board) -> None:
    write_record(run.path, record)
    board.done(run, record)


def _make_items(run: Run, cell: Cell, clock: Stopwatch) -> tuple[Split | Stream, str | None]:
    """The pool or stream of a run, through the backbone there may be."""
    items = draw_items(cell.dataset, run.protocol, run.partition)
    backbone = EFFICIENTNET if run.data.endswith(THROUGH) else cell.experiment.backbone
    if backbone:
        with clock("features"):
            if isinstance(items, Stream):
                items = stream_through_backbone(items, backbone, flip=cell.dataset.flip)
            else:
                items = through_backbone(items, backbone, flip=cell.dataset.flip)
    return items, backbone


def draw_items(
    dataset: Dataset, protocol: Protocol | StreamProtocol, partition: int
) -> Split | Stream:
    """The pool of a partition, or its stream."""
    if isinstance(protocol, Protocol):
        return split_dataset(dataset, protocol, partition)
    stream = draw_stream(dataset, protocol, partition)
    check_test_items(stream, dataset)
    return stream


def _outcome(
    run: Run, split: Split | Stream, experiment: Experiment, *, device: str
) -> dict[str, Any]:
    """What came out: figures and seconds, or the error of a run that failed."""
    try:
        if isinstance(split, Stream):
            return run_stream(run, split, experiment, device=device)
        return run_once(
            split,
            run.method,
            seed=run.partition,
            detects_only=run.name in DETECTORS,
            pictures=experiment.pictures,
            keep=experiment.keeps_networks and run.size is not None,
            device=device,
        )
    except Exception as error:  # whatever a method dies of, the other methods go on
        return _failure(error)


def _failure(error: Exception) -> dict[str, Any]:
    """An error as records keep it: where it came from by files and lines, without folders."""
    where = [f"{Path(at.filename).name}:{at.lineno}" for at in extract_tb(error.__traceback__)]
    return {"error": {"kind": type(error).__name__, "message": str(error), "where": where}}


def run_once(
    split: Split,
    method: Method,
    *,
    seed: int,
    detects_only: bool = False,
    pictures: Sequence[str] = (),
    keep: bool = False,
    device: str = "cpu",
) -> dict[str, Any]:
    """Fit, judge. Seconds are those a method takes by itself, also where f was kept."""
    clock = Stopwatch()
    with _kept(keep) as kept:
        with clock("fit"):
            fitted = method.fit(split.known, split.pool, seed=seed, device=device)
        with clock("predict"):
            said = fitted.answer if isinstance(fitted, Solution) else fitted.predict(split.pool)
        judged = judge(split, fitted, said, detects_only=detects_only, seed=seed)
    seconds = seconds_per_step(fitted, clock.seconds, kept)
    record: dict[str, Any] = {
        "metrics": judged.metrics,
        "held_out": judged.held_out,
        "paper_mode": judged.paper_mode,
        "seconds": seconds,
        "seconds_total": round(sum(seconds.values()), 1),
    }
    if isinstance(fitted, Solution):
        record |= {"k": fitted.k, "steps": fitted.n_steps}
    if pictures:
        record["pictures"] = pictures_of(pictures, split, fitted, said, seed=seed)
    return record


def run_stream(run: Run, stream: Stream, experiment: Experiment, *, device: str) -> dict[str, Any]:
    """Follow a stream. A* is of one f for all learners, so that they are measured by the same."""
    networks = NETWORKS[networks_of(experiment, run.size, run.data) or "plain"]
    flip = replace(networks.augmentation, flip=run.flip)
    with _kept(True):
        best = joint_accuracy(stream, networks.teacher, flip, seed=run.partition, device=device)
    with _kept(experiment.keeps_networks) as kept:
        return follow(
            stream,
            run.method,
            seed=run.partition,
            joint_accuracy=best,
            kept=kept,
            device=device,
        )


@contextmanager
def _kept(keep: bool) -> Iterator[NetworkCache | None]:
    with networks_cached_in(default_folder() / "networks") if keep else nullcontext() as kept:
        yield kept


def seconds_per_step(
    fitted: Any, measured: dict[str, float], kept: NetworkCache | None
) -> dict[str, float]:
    """Seconds of each step, with those that a kept f took when it was trained."""
    steps = dict(fitted.seconds) if isinstance(fitted, Solution) else dict(measured)
    if kept is not None and kept.seconds_saved:
        steps["teacher"] = round(steps.get("teacher", 0.0) + kept.seconds_saved, 3)
    return steps


def describe(run: Run, cell: Cell) -> dict[str, Any]:
    """The facts of a run, known before it begins."""
    return {
        "experiment": run.experiment,
        "method": run.name,
        "dataset": run.data,
        "size": run.size,
        "protocol": asdict(run.protocol),
        "partition": run.partition,
        "seed": run.partition,
        "data": cell.mark,
        "settings": flatten(run.method),
        "machine": {"threads": torch.get_num_threads(), "device": cell.device},
        "versions": versions(),
        "commit": commit(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def describe_items(items: Split | Stream, dataset: Dataset) -> dict[str, Any]:
    """The facts of a pool or a stream."""
    if isinstance(items, Stream):
        return describe_stream(items, dataset)
    return describe_split(items, dataset)


def describe_split(split: Split, dataset: Dataset) -> dict[str, Any]:
    """The facts of a pool."""
    return {
        "unknown_share": round(float(np.mean(split.truth == UNKNOWN)), 4),
        "known_classes": [dataset.classes[c] for c in split.known_classes],
        "unknown_classes": [dataset.classes[c] for c in split.unknown_classes],
        "n_training": len(split.known),
        "n_pool": len(split.pool),
        "n_held_out": len(split.held_out),
    }


def through_backbone(split: Split, name: str, *, flip: bool) -> Split:
    """The split with features of its images, and of a few views of them, in their place."""
    backbone = load_backbone(name, source=split.pool.shape[1:3])
    known, pool, held_out = (
        compute_features(images, backbone, flip=flip) if len(images) else images
        for images in (split.known.inputs, split.pool, split.held_out)
    )
    return replace(split, known=Labelled(known, split.known.labels), pool=pool, held_out=held_out)


def parse_part(text: str) -> tuple[int, int]:
    """``1/2``: the first of two parts.

    >>> parse_part("2/4")
    (2, 4)
    """
    try:
        which, of = (int(number) for number in text.split("/"))
    except ValueError:
        which, of = 0, 0
    if not 1 <= which <= of:
        raise SettingsError(f"the part is {text!r}; give which of how many, such as 1/2")
    return which, of
