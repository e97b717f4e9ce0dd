"""Write the labels of a finished run in the format of another tool."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from s2osc.app.corrections import NO_CORRECTIONS, Corrections, read_corrections
from s2osc.app.export.coco import coco_file
from s2osc.app.export.folders import category_folder, write_items
from s2osc.app.export.items import LabelledPool, open_source, read_labelled
from s2osc.app.export.known import known_file, open_next_known, write_class_folders
from s2osc.app.export.label_studio import CONFIG, TASKS, labelling_config, tasks
from s2osc.app.export.tables import json_lines, table_file
from s2osc.app.output import result_file, result_files
from s2osc.app.results_folder import read_results
from s2osc.data.inputs import MAX_MEGAPIXELS
from s2osc.errors import SettingsError
from s2osc.files import as_json

ENDINGS = {"csv": ".csv", "parquet": ".parquet", "jsonl": ".jsonl", "coco": ".json"}
"""Formats that are one file."""
FORMATS = ("folders", *ENDINGS, "label-studio", "known")


@dataclass(frozen=True)
class Exported:
    """What was written."""

    place: Path
    n_items: int
    n_by_person: int  # of them, labelled by people


@dataclass(frozen=True)
class Files:
    """Where the items of a run lie now, and how they are handed on."""

    known: Path | None = None  # None: where the run found them
    pool: Path | None = None
    link: bool = False  # links instead of copies
    max_megapixels: float = MAX_MEGAPIXELS


AS_FOUND = Files()


def export_results(
    results: Path,
    to: Path,
    kind: str,
    *,
    corrections: Path | Corrections = NO_CORRECTIONS,
    files: Files = AS_FOUND,
    force: bool = False,
) -> Exported:
    """Write the labels of the results in ``results`` to ``to``, in one of ``FORMATS``.

    ``corrections`` are what people say about items of the pool, or a file that says it.
    """
    if kind not in FORMATS:
        raise SettingsError(f"--format is {kind}; give one of {', '.join(FORMATS)}")
    if kind in ENDINGS and to.suffix.lower() != ENDINGS[kind]:
        raise SettingsError(f"--to is {to}; for {kind} give a file name ending in {ENDINGS[kind]}")
    if files.link and kind not in ("folders", "known"):
        raise SettingsError(f"--link is for folders of items, and --format is {kind}; leave it out")
    pool = read_results(results, read_labelled)
    if isinstance(corrections, Path):
        pool = pool.corrected(read_corrections(corrections), corrections)
    elif corrections:
        pool = pool.corrected(corrections, "the corrections")
    n_items = WRITERS[kind](pool, to, files, force)
    return Exported(to, n_items, sum(item.by_person for item in pool.items))


def _write_table(pool: LabelledPool, to: Path, files: Files, force: bool) -> int:
    suffix = to.suffix.lower()
    with result_file(to, force=force, wanted=suffix) as write:
        write(json_lines(pool) if suffix == ".jsonl" else table_file(pool, suffix))
    return len(pool.items)


def _write_coco(pool: LabelledPool, to: Path, files: Files, force: bool) -> int:
    with result_file(to, force=force, wanted=".json") as write:
        source = open_source(pool, files.pool)
        write(as_json(coco_file(pool, source, files.max_megapixels)))
    return len(pool.items)


def _write_folders(pool: LabelledPool, to: Path, files: Files, force: bool) -> int:
    with result_files(to, force=force) as stage:
        places = [category_folder(item.category_parts) for item in pool.items]
        write_items(stage, open_source(pool, files.pool), places, link=files.link)
    return len(pool.items)


def _write_label_studio(pool: LabelledPool, to: Path, files: Files, force: bool) -> int:
    with result_files(to, force=force) as stage:
        source = open_source(pool, files.pool)
        (stage / TASKS).write_bytes(as_json(tasks(pool, source, files.max_megapixels)))
        (stage / CONFIG).write_text(labelling_config(pool.labels(), source.kind), encoding="utf-8")
    return len(pool.items)


def _write_known(pool: LabelledPool, to: Path, files: Files, force: bool) -> int:
    found = open_next_known(pool, files.known, files.pool)
    found.check_place(to)
    if found.kind == "images":
        with result_files(to, force=force) as stage:
            write_class_folders(stage, found, link=files.link)
    else:
        with result_file(to, force=force, wanted=to.suffix) as write:
            write(known_file(found, to.suffix.lower()))
    return len(found.labels)


WRITERS: dict[str, Callable[[LabelledPool, Path, Files, bool], int]] = {
    "folders": _write_folders,
    "csv": _write_table,
    "parquet": _write_table,
    "jsonl": _write_table,
    "coco": _write_coco,
    "label-studio": _write_label_studio,
    "known": _write_known,
}
