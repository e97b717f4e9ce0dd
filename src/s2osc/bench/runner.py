"""An experiment -> one JSON record per run. What is recorded is not run again.

A record lies at ``results/<experiment>/<data>-<method>[-<size>]-p<partition>.json`` and holds
everything a table or figure needs: settings, seed, classes, versions, commit, seconds per step,
metrics. It is written whole after its run, so an experiment that was stopped, however it was, goes
on where it stopped. A run that fails is recorded with its error, and tried again the next time.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import torch
from rich.console import Console

from s2osc.bench.experiments.catalogue import experiments_named
from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.experiments.grid import parse_levels
from s2osc.bench.methods import choose_methods
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
from s2osc.bench.tasks.task import THROUGH, Trial
from s2osc.bench.terminal import Board
from s2osc.codec import JsonObject
from s2osc.data.datasets import Dataset, load_dataset
from s2osc.engine.ray_engine import RayEngine
from s2osc.errors import DataError, SettingsError
from s2osc.nets.backbones import EFFICIENTNET
from s2osc.progress import Stopwatch
from s2osc.settings import flatten
from s2osc.version import versions


def run_experiment(
    name: str,
    datasets: Sequence[str] | None,
    partitions: Sequence[int] | None,
    results: Path,
    *,
    methods: str | None = None,
    size: str | None = None,
    only: str | None = None,
    part: tuple[int, int] = (1, 1),
    device: str = "cpu",
    folder: Path | None = None,
    engine: RayEngine | None = None,
) -> list[Path]:
    """Run whatever has no record yet; ``part`` (i, n) is every n-th data set and partition.

    With an ``engine``, the runs on each split are one of its tasks.

    ``only`` names levels of a grid. Without ``partitions`` there are five, or all of a grid.
    """
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
            recorded_as,
            experiment,
            loaded,
            partitions,
            results,
            methods=methods,
            size=size,
            only=only,
        )
        marks = {data: fingerprint(dataset) for data, dataset in loaded.items()}
        check_plan([run for of in runs for run in of], experiment, marks)
        runs = [runs_of for i, runs_of in enumerate(runs) if i % part[1] == part[0] - 1]
        everything = [run for runs_of in runs for run in runs_of]
        with Board(each, everything) as board:
            for run in everything:
                if is_done(run.path):
                    board.done(run, read_record(run.path))
            todo = [[run for run in runs_of if not is_done(run.path)] for runs_of in runs]
            tasks = [
                SplitTask(of, Cell(experiment, loaded[of[0].data], marks[of[0].data], device))
                for of in todo
                if of
            ]
            if engine is None:
                for task in tasks:
                    _run_on_one_split(task.runs, task.cell, board)
            else:
                for number in engine.tasks(run_task, tasks):
                    for run in tasks[number].runs:
                        board.done(run, read_record(run.path))
        paths += [run.path for run in everything]
    failed = [path for path in paths if not is_done(path)]
    if failed:
        raise DataError(
            f"{len(failed)} of {len(paths)} runs failed, and their records say why (the first: "
            f"{failed[0]}); the rest is recorded; the same command tries them again"
        )
    return paths


def check_plan(runs: Sequence[Trial], experiment: Experiment, marks: Mapping[str, str]) -> None:
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
                run.path,
                run.method,
                run.protocol,
                data=marks[run.data],
                shows_groups=experiment.shows_groups,
            )


def plan(
    name: str,
    experiment: Experiment,
    datasets: dict[str, Dataset],
    partitions: Sequence[int] | None,
    results: Path,
    *,
    methods: str | None = None,
    size: str | None = None,
    only: str | None = None,
) -> list[list[Trial]]:
    """All runs, those on the same items together."""
    size, _ = experiment.sized(size)
    chosen = choose_methods(methods, experiment.methods)
    if only is not None and experiment.pools is None:
        raise SettingsError(f"{name} has no levels to choose from; leave --only away")
    wanted = parse_levels(only) if only is not None else {}
    return [
        [
            Trial(
                experiment=name,
                data=data,
                name=method,
                method=prepare(chosen[method], experiment, size, data, dataset),
                partition=partition,
                size=size,
                protocol=experiment.protocol_of(size, data, partition),
                path=record_path(results, name, data, method, size, partition),
                networks=networks_of(experiment, size, data),
                flip=dataset.flip,
                keeps_networks=experiment.keeps_networks,
                pictures=experiment.pictures,
            )
            for method in chosen
        ]
        for data, dataset in datasets.items()
        for partition in experiment.partitions(data, partitions)
        if wanted.items() <= asdict(experiment.protocol_of(size, data, partition)).items()
    ]


def prepare(
    method: Any, experiment: Experiment, size: str | None, data: str, dataset: Dataset
) -> Any:
    """The method as it is run on these data at this size."""
    networks = networks_of(experiment, size, data)
    return experiment.task.prepare(
        method, experiment.protocol, networks=networks, flip=dataset.flip
    )


def networks_of(experiment: Experiment, size: str | None, data: str) -> str | None:
    """The preset of the networks at this size; None: each method has its own."""
    if not size:
        return experiment.networks.get(data)
    chosen = experiment.sizes[size]
    return chosen.vectors if data.endswith(THROUGH) else chosen.images


class Cell(NamedTuple):
    """What runs on the same items have in common."""

    experiment: Experiment
    dataset: Dataset
    mark: str  # of the data set
    device: str


class SplitTask(NamedTuple):
    """The runs on one split, as a worker gets them."""

    runs: list[Trial]
    cell: Cell


def run_task(task: SplitTask) -> None:
    """Run and record what is on one split, silently: whoever gave the task shows its records."""
    _run_on_one_split(task.runs, task.cell, Board("", task.runs, Console(file=io.StringIO())))


def _run_on_one_split(runs: Sequence[Trial], cell: Cell, board: Board) -> None:
    """The runs that share their items: the split and its features are made once."""
    clock = Stopwatch()
    try:
        items, backbone = _make_items(runs[0], cell, clock)
    except Exception as error:  # other data sets and partitions go on
        for run in runs:
            _record(run, describe(run, cell) | _failure(error), board)
        return
    for run in runs:
        if is_done(run.path):  # by another process, meanwhile
            board.done(run, read_record(run.path))
            continue
        board.begin(run)
        facts = describe(run, cell) | cell.experiment.task.describe(items, cell.dataset)
        facts |= {"backbone": backbone, "seconds_features": clock.seconds.get("features")}
        _record(run, facts | _outcome(run, items, cell), board)


def _record(run: Trial, record: JsonObject, board: Board) -> None:
    write_record(run.path, record)
    board.done(run, record)


def _make_items(trial: Trial, cell: Cell, clock: Stopwatch) -> tuple[Any, str | None]:
    """The items of a trial, through the backbone there may be."""
    task = cell.experiment.task
    items = task.draw(cell.dataset, trial.protocol, trial.partition)
    backbone = EFFICIENTNET if trial.data.endswith(THROUGH) else cell.experiment.backbone
    if backbone:
        with clock("features"):
            items = task.through_backbone(items, backbone, flip=cell.dataset.flip)
    return items, backbone


def _outcome(trial: Trial, items: Any, cell: Cell) -> JsonObject:
    """What came out: figures and seconds, or the error of a run that failed."""
    try:
        return cell.experiment.task.run(items, trial, device=cell.device)
    except Exception as error:  # whatever a method dies of, the other methods go on
        return _failure(error)


def _failure(error: Exception) -> JsonObject:
    """An error as records keep it: where it came from by files and lines, without folders."""
    where = [f"{Path(at.filename).name}:{at.lineno}" for at in extract_tb(error.__traceback__)]
    return {"error": {"kind": type(error).__name__, "message": str(error), "where": where}}


def describe(run: Trial, cell: Cell) -> JsonObject:
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
