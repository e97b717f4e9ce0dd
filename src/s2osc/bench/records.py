"""Records: one JSON file per run, written whole, compared before anything is added to them."""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from s2osc.codec import JsonObject
from s2osc.data.datasets import Dataset
from s2osc.data.splits import Protocol
from s2osc.data.streams import StreamProtocol
from s2osc.errors import DataError, OutputError
from s2osc.files import lock, read_json, write_whole, writing
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import PLAIN
from s2osc.settings import flatten

LOCK = ".records.lock"
Record = Mapping[str, Any]
WHEN_DONE: dict[str, tuple[Any, str]] = {
    "metrics": (dict, "figures by name"),
    "seconds_total": (int | float, "a number"),
    "known_classes": (list, "names"),
    "unknown_classes": (list, "names"),
}
WHEN_FAILED: dict[str, tuple[Any, str]] = {"error": (dict, "kind and message")}
"""What a record holds, with its type."""
DEFAULTS = S2OSCMethod(PLAIN.teacher, PLAIN.student)
"""Every later step as the paper has it."""
LATER = {
    "guarantee": "average",
    "false_alarm_of": [],
    "pretrained": "none",
    "first_stage": 5,
    "grey_map": None,
    "optimiser": "sgd",
    "layer_decay": 1.0,
    "rounds": 1,
}
"""Settings of methods and learners that came later, as they were before."""
JUDGES = "seeds.judges"
REMOVED = tuple(
    f"clusters.{name}"
    for name in (
        "one_group_below",
        "first_cut",
        "each_more",
        "most_cut",
        "next_cuts",
        "smallest_share",
        "n_resamples",
    )
)
"""Settings that are no more. The groups followed from them, and no other figure of a record."""


def record_path(
    results: Path, experiment: str, data: str, method: str, size: str | None, partition: int
) -> Path:
    """Where the record of a run lies.

    >>> record_path(Path("results"), "table1", "mnist", "odin", "cpu", 0).as_posix()
    'results/table1/mnist-odin-cpu-p0.json'
    """
    parts = [data, method.replace(" ", "_"), *([size] if size else []), f"p{partition}"]
    return results / experiment / f"{'-'.join(parts)}.json"


def partition_of(record: Record) -> int:
    """Records made before partitions had numbers name it as their seed."""
    return int(record["partition"] if "partition" in record else record["seed"])


def write_record(path: Path, record: Record) -> None:
    """Whole or not at all, whoever else writes. Of two that record one run the later one counts."""
    content = (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()
    make_folder(path.parent)
    busy = f"other processes keep writing records into {path.parent}; run the same command again"
    with (
        lock(path.parent.parent / LOCK, busy, seconds=60),
        writing(path, "make room, or give another --results"),
    ):
        write_whole(path, content)


def make_folder(folder: Path) -> None:
    """A folder that records can be written into, before anything is run for them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"records cannot be written into {folder}: {error.strerror}; give another --results"
        ) from error
    if not os.access(folder, os.W_OK):
        raise OutputError(f"records cannot be written into {folder}; give another --results")


def fingerprint(dataset: Dataset) -> str:
    """A short mark of a data set: the same for the same items, labels and names of classes."""
    digest = hashlib.sha256("\0".join(dataset.classes).encode())
    for values in (dataset.inputs, dataset.labels):
        digest.update(str((values.dtype.str, values.shape)).encode())
        digest.update(np.ascontiguousarray(values).view(np.uint8).data)
    return digest.hexdigest()[:16]


def read_record(path: Path) -> JsonObject:
    return read_json(path, "it is not a record: remove it and run again")


def read_records(results: Path, experiment: str) -> list[Record]:
    """All records of an experiment, those of failed runs among them, none of another kind."""
    paths = sorted((results / experiment).glob("*.json"))
    records: list[Record] = [read_record(path) for path in paths]
    for path, record in zip(paths, records, strict=True):
        _check_name(path, record)
    _check_alike(paths, records)
    return records


def _check_name(path: Path, record: Record) -> None:
    """Refuse what is no record of a run, or that of another run than its name says."""
    try:
        cell = record["dataset"], record["method"], record.get("size")
        expected = record_path(Path(), "", *cell, partition_of(record))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is not a record of a run; move it elsewhere") from error
    if expected.name != path.name:
        raise DataError(f"{path} holds the record that {expected.name} should; move it elsewhere")


def check_complete(path: Path, record: Record) -> None:
    """Refuse a record that lacks what tables and figures show, or has it in another form."""
    kinds = WHEN_FAILED if record.get("error") else WHEN_DONE
    for name, (kind, wanted) in kinds.items():
        if not isinstance(record.get(name), kind):
            raise DataError(f"{path} has no {name} ({wanted}); remove it and run again")
    for part in ("metrics", "held_out", "paper_mode"):
        for name, value in (record.get(part) or {}).items():
            if not isinstance(value, int | float):
                raise DataError(
                    f"{path} has {value!r} as {part}.{name}; give a number, or remove the record"
                )


def _check_alike(paths: Sequence[Path], records: Sequence[Record]) -> None:
    """Refuse partitions of one cell with different settings, and two contents of one data set.

    A setting that only one of two records has came later, and groups follow their own.
    """
    first: dict[tuple[str, ...], tuple[Path, JsonObject]] = {}
    for path, record in zip(paths, records, strict=True):
        settings = {
            key: value
            for key, value in (record.get("settings") or {}).items()
            if not key.startswith("clusters.")
        }
        data = {"data": record["data"]} if record.get("data") else {}
        size = record.get("size") or ""
        for key, facts in (
            ((record["dataset"], record["method"], size), settings),
            ((record["dataset"],), data),
        ):
            if not facts:
                continue
            before, others = first.setdefault(key, (path, facts))
            different = [n for n in facts.keys() & others.keys() if facts[n] != others[n]]
            if different:
                raise DataError(
                    f"{before} and {path} have different {', '.join(sorted(different))}; "
                    "move the records of one of them away"
                )


def is_done(path: Path) -> bool:
    """Whether there is a record of a run that did not fail: a failed one is run again."""
    return path.exists() and not read_record(path).get("error")


def check_same_settings(
    path: Path,
    method: Any,
    protocol: Protocol | StreamProtocol | None = None,
    *,
    data: str | None = None,
    shows_groups: bool = True,
) -> None:
    """Refuse to mix records of different settings, pools or data, by ``fingerprint``, in one table.

    How unknown items are grouped matters only where a table shows groups.
    """
    record = read_record(path)
    try:
        recorded: JsonObject = dict(record["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} names no settings; remove it and run again") from error
    now = _as_json(flatten(method))
    if isinstance(method, S2OSCMethod):
        # A setting that came later was at its default before: defaults are the paper's reading.
        recorded = _as_json(flatten(DEFAULTS)) | recorded
    recorded = {key: value for key, value in recorded.items() if not key.endswith(REMOVED)}
    later = {key: LATER[key.rpartition(".")[2]] for key in now if key.rpartition(".")[2] in LATER}
    recorded = later | recorded
    different = [key for key in now | recorded if recorded.get(key, ...) != now.get(key, ...)]
    if not shows_groups:
        different = [key for key in different if not key.startswith("clusters.")]
    if not _is_judged_in_folds(record, now):
        different = [key for key in different if not key.endswith(JUDGES)]
    pools = record.get("protocol")
    if protocol is not None and pools is not None:
        defaults = _as_json(asdict(type(protocol)()))
        wanted = defaults | _as_json(asdict(protocol))
        pools = defaults | pools
        different += [f"protocol.{key}" for key in wanted if pools.get(key) != wanted[key]]
    if data and record.get("data") not in (None, data):
        different.append("the data set itself")
    if different:
        raise DataError(
            f"{path} was recorded with other settings ({', '.join(different)}); "
            "move the old records away or give another --results"
        )


def _is_judged_in_folds(record: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether a run has so few labelled items that folds are made of them; never in a stream.

    Half of those that are held back judge.
    """
    n_labelled, n_wanted = record.get("n_training"), settings.get(JUDGES, 0)
    share = settings.get("seeds.share", 0.0)
    return isinstance(n_labelled, int) and n_labelled * share / 2 < n_wanted


def _as_json(values: JsonObject) -> JsonObject:
    as_written: JsonObject = json.loads(json.dumps(values))
    return as_written


@cache
def commit() -> str | None:
    """The commit of the code that runs, with a + where files have changed since; None: unknown.

    A package that lies in the folder of another project is not of that project's commit.
    """
    file = Path(__file__)
    folder = file.parents[1]

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    if git("ls-files", "--error-unmatch", str(file)) is None:
        return None
    found = git("rev-parse", "--short=12", "HEAD")
    return found and found + ("+" if git("status", "--porcelain", "--", ".") else "")
