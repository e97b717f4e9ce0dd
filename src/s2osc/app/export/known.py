"""Labelled items for the next run: those of the last one, and those that people named since."""

import io
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from s2osc.app.answer_tables import TABLE_WRITERS
from s2osc.app.export.folders import category_folder, folder_name, write_items
from s2osc.app.export.items import LabelledPool, rows_of
from s2osc.app.origin import demo_sources
from s2osc.data.columns import Table
from s2osc.data.inputs import UNKNOWN_NAME, Source, open_known_and_pool
from s2osc.data.tables import TEXT
from s2osc.errors import DataError, SettingsError

ENDINGS = {"images": (), "arrays": (".npz",), "tables": (".csv", ".parquet", ".jsonl")}
"""How names of files end for each kind of labelled items; images are a folder."""


@dataclass(frozen=True, eq=False)
class NextKnown:
    """Labelled items of two sources, one after the other."""

    known: Source
    added: Source
    labels: list[str]  # of both

    @property
    def names(self) -> list[str]:
        return [*self.known.names, *self.added.names]

    @property
    def kind(self) -> str:
        """A key of ``ENDINGS``."""
        if isinstance(self.known.content, list):
            return "images"
        return "tables" if self.known.kind in ("texts", "tables") else "arrays"

    def check_place(self, to: Path) -> None:
        """Refuse a name of a file for a folder, or the other way round."""
        suffix, endings = to.suffix.lower(), ENDINGS[self.kind]
        wanted = f"a file name ending in {' or '.join(endings)}" if endings else "a folder"
        if (suffix in endings) if endings else all(suffix not in each for each in ENDINGS.values()):
            return
        raise SettingsError(f"--to is {to}; for these labelled items give {wanted}")


def open_next_known(pool: LabelledPool, known: Path | None, items: Path | None) -> NextKnown:
    """The labelled items of the run and the named items of its pool."""
    named = [i for i in pool.items if i.by_person and i.label != UNKNOWN_NAME]
    before, there = open_sources(pool, known, items)
    if not named:
        raise DataError(
            "no item of the pool was given a class by a person, so there is nothing to add to the "
            "labelled items; give --corrections"
        )
    rows = rows_of([item.item for item in named], there.names, there.path)
    return NextKnown(
        known=before,
        added=there.keep(rows),
        labels=[*(before.labels or []), *(item.label for item in named)],
    )


def open_sources(
    pool: LabelledPool, known: Path | None, items: Path | None
) -> tuple[Source, Source]:
    """The labelled items and the pool of a run, from where they lie."""
    origin = pool.origin
    if origin and origin.is_demo and known is None and items is None:
        return demo_sources(pool.seed)
    places = []
    for option, given, found in (
        ("--known", known, origin and origin.known),
        ("--pool", items, origin and origin.pool),
    ):
        place = given or (Path(found) if found else None)
        if place is None or not place.exists():
            gone = f"there is no {place} any more" if place else "these results name no files"
            raise DataError(f"{gone}; give {option}")
        places.append(place)
    opened = open_known_and_pool(*places, text_column=pool.text_column)
    return opened.known, opened.pool


def write_class_folders(stage: Path, found: NextKnown, *, link: bool) -> None:
    """A folder per class, as ``--known`` takes it."""
    for label in dict.fromkeys(found.labels):
        if folder_name(label) != label:
            raise DataError(f"the class {label!r} cannot be the name of a folder; rename it")
    assert isinstance(found.known.content, list)
    assert isinstance(found.added.content, list)
    # In class folders an item is named after its class already.
    own = [PurePosixPath(name).name for name in found.known.names]
    whole = Source(
        path=found.known.path,
        names=[*own, *found.added.names],
        content=[*found.known.content, *found.added.content],
    )
    write_items(stage, whole, [category_folder([label]) for label in found.labels], link=link)


def known_file(found: NextKnown, suffix: str) -> bytes:
    """The content of one file of arrays, texts or columns, as ``--known`` takes it."""
    content = io.BytesIO()
    if found.kind == "arrays":
        parts = (found.known.content, found.added.content)
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        np.savez_compressed(content, x=np.concatenate(arrays), y=np.array(found.labels))
        return content.getvalue()
    table = pa.table({"item": found.names, **_columns(found), "label": found.labels})
    if suffix == ".jsonl":
        lines = (json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist())
        return "".join(f"{line}\n" for line in lines).encode()
    TABLE_WRITERS[suffix](table, content)
    return content.getvalue()


def _columns(found: NextKnown) -> dict[str, Any]:
    """Texts, or the columns that both have."""
    first, second = found.known.content, found.added.content
    if isinstance(first, Table) and isinstance(second, Table):
        return {
            name: pa.array(np.concatenate([values, second.columns[name]]), from_pandas=True)
            for name, values in first.columns.items()
        }
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    return {found.known.text_column or TEXT: pa.array([*first, *second], pa.string())}
