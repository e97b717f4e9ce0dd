"""Records: one JSON file per run, written whole, compared before anything is added to them."""

import json
import os
import subprocess
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from s2osc.data.splits import Protocol
from s2osc.data.streams import StreamProtocol
from s2osc.errors import DataError
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import PLAIN
from s2osc.pipeline.settings import flatten

DEFAULTS = S2OSCMethod(PLAIN.teacher, PLAIN.student)
"""Every later step as the paper has it."""
REMOVED = ("clusters.one_group_below",)
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


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a record: {error}; remove it and run again") from error
    return record


def read_records(results: Path, experiment: str) -> list[dict[str, Any]]:
    """All records of an experiment, those of failed runs among them."""
    return [read_record(path) for path in sorted((results / experiment).glob("*.json"))]


def is_done(path: Path) -> bool:
    """Whether there is a record of a run that did not fail: a failed one is run again."""
    return path.exists() and not read_record(path).get("error")


def check_same_settings(
    path: Path,
    method: Any,
    protocol: Protocol | StreamProtocol | None = None,
    *,
    shows_groups: bool = True,
) -> None:
    """Refuse to mix records of different settings, or of different pools, in one table.

    How unknown items are grouped matters only where a table shows groups.
    """
    record = read_record(path)
    try:
        recorded: dict[str, Any] = dict(record["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} names no settings; remove it and run again") from error
    now = _as_json(flatten(method))
    if isinstance(method, S2OSCMethod):
        # A setting that came later was at its default before: defaults are the paper's reading.
        recorded = _as_json(flatten(DEFAULTS)) | recorded
        recorded = {key: value for key, value in recorded.items() if key not in REMOVED}
    different = [key for key in now | recorded if recorded.get(key, ...) != now.get(key, ...)]
    if not shows_groups:
        different = [key for key in different if not key.startswith("clusters.")]
    pools = record.get("protocol")
    if protocol is not None and pools is not None:
        defaults = _as_json(asdict(type(protocol)()))
        wanted = defaults | _as_json(asdict(protocol))
        pools = defaults | pools
        different += [f"protocol.{key}" for key in wanted if pools.get(key) != wanted[key]]
    if different:
        raise DataError(
            f"{path} was recorded with other settings ({', '.join(different)}); "
            "move the old records away or give another --results"
        )


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    as_written: dict[str, Any] = json.loads(json.dumps(values))
    return as_written


@cache
def commit() -> str | None:
    """The commit of the code that runs, with a + where files have changed since; None: unknown."""
    folder = Path(__file__).parent

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    found = git("rev-parse", "--short=12", "HEAD")
    return found and found + ("+" if git("status", "--porcelain", "--", ".") else "")
