"""The labels of a pool: what the program says, and over it what people say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from s2osc.app.answer_tables import PERSON, PROGRAM
from s2osc.app.corrections import Corrections
from s2osc.app.origin import Origin
from s2osc.app.result_files import COPY_AGAIN, read_columns, read_summary
from s2osc.app.results_folder import MODEL
from s2osc.data.images import Header
from s2osc.data.inputs import UNKNOWN_NAME, Source, measure_items, open_items
from s2osc.errors import DataError
from s2osc.files import guarded
from s2osc.pipeline.model_description import EmbeddingEntry, read_description, read_preparation
from s2osc.text import clean_name

PREDICTIONS = "predictions.parquet"
UNGROUPED = "ungrouped"
"""Where unknown items are that a person found, and no group holds."""


@dataclass(frozen=True)
class LabelledItem:
    """One item, what it is called, and who says so."""

    item: str
    label: str  # a class, "unknown" or "unsure"
    group: int | None  # of an unknown item; None: no group
    confidence: float | None  # the probability that the label is right
    nearest: str | None  # the best known class
    p_known: float | None  # the share of known items at least as strange
    by: str
    at: str  # "" where nobody says
    by_person: bool

    @property
    def category(self) -> str:
        """The label, with the group of an unknown item.

        >>> LabelledItem("a", "unknown", 2, None, None, None, "s2osc", "", False).category
        'unknown/group-2'
        """
        return "/".join(self.category_parts)

    @property
    def category_parts(self) -> tuple[str, ...]:
        if self.label != UNKNOWN_NAME:
            return (self.label,)
        return UNKNOWN_NAME, UNGROUPED if self.group is None else f"group-{self.group}"


@dataclass(frozen=True)
class LabelledPool:
    """All items of a pool in their order, and where they came from."""

    title: str
    classes: tuple[str, ...]  # that the program knows
    program: str  # with its version
    origin: Origin | None
    seed: int  # of the run
    text_column: str | None  # that items have their texts in
    items: tuple[LabelledItem, ...]

    @property
    def names(self) -> list[str]:
        return [item.item for item in self.items]

    def labels(self) -> list[str]:
        """What items may be called: the known classes, those that people added, unknown."""
        given = {item.label for item in self.items if item.by_person} - {UNKNOWN_NAME}
        return [*self.classes, *sorted(given.difference(self.classes)), UNKNOWN_NAME]

    def categories(self) -> list[str]:
        """The labels with the groups of unknown items; groups and what is unsure only if used."""
        used = {item.category for item in self.items}
        known = self.labels()[:-1]
        return [*known, *sorted(used.difference(known), key=_by_number)]

    def corrected(self, corrections: Corrections, where: object) -> "LabelledPool":
        """The same with what people say."""
        corrected_as = corrections.matched(self.names, where).of_items()

        def correct(item: LabelledItem) -> LabelledItem:
            row = corrected_as.get(item.item)
            if row is None:
                return item
            group = item.group if row.is_unknown else None
            corrected = replace(item, label=row.label, group=group, confidence=1.0)
            return replace(corrected, by=row.by or PERSON, at=row.at, by_person=True)

        return replace(self, items=tuple(correct(item) for item in self.items))


def _by_number(category: str) -> tuple[str, int, str]:
    """group-10 comes after group-9.

    >>> sorted(["unknown/group-10", "unknown/group-9", "unsure"], key=_by_number)
    ['unknown/group-9', 'unknown/group-10', 'unsure']
    """
    beginning, _, number = category.rpartition("-")
    return (beginning, int(number), "") if number.isdecimal() else (category, 0, "")


def read_labelled(version: Path) -> LabelledPool:
    """The labels in a version of results, checked."""
    summary = read_summary(version)
    program = f"{PROGRAM} {summary.run.versions.get('s2osc', '')}".strip()
    at = summary.run.origin.at if summary.run.origin else ""
    columns = read_columns(version / PREDICTIONS)
    with guarded(version / PREDICTIONS, COPY_AGAIN):
        cells = {name: column.to_pylist() for name, column in columns.items()}
        rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        items = tuple(_item(row, program, at) for row in rows)
    return LabelledPool(
        title=summary.run.title,
        classes=summary.classes,
        program=program,
        origin=summary.run.origin,
        seed=summary.run.seed,
        text_column=_text_column(version),
        items=items,
    )


def _item(row: dict[str, Any], program: str, at: str) -> LabelledItem:
    """A row of predictions; a ValueError where it is none."""
    name, group, nearest = _text(row["item"]), row["group"], row["nearest"]
    if group is not None and (type(group) is not int or group < 0):
        raise ValueError(f"item {name!r:.100} is in group {group!r:.100}")
    by = _text(row.get("labelled_by") or PROGRAM)
    by_person = by != PROGRAM
    return LabelledItem(
        item=name,
        label=clean_name(_text(row["label"])),
        group=group,
        confidence=_share(row["confidence"]),
        nearest=None if nearest is None else _text(nearest),
        p_known=_share(row["p_known"]),
        by=by if by_person else program,
        at=_text(row.get("labelled_at") or "") if by_person else at,
        by_person=by_person,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"it holds {value!r:.100} where a text should be")
    return value


def _share(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise ValueError(f"it holds {value!r:.100} where a share should be")
    return value


def _text_column(version: Path) -> str | None:
    folder = version / MODEL
    if not folder.is_dir():
        return None
    with guarded(folder, COPY_AGAIN):
        preparation = read_preparation(read_description(folder))
    return preparation.column if isinstance(preparation, EmbeddingEntry) else None


def open_source(pool: LabelledPool, path: Path | None, option: str = "--pool") -> Source:
    """The items themselves, in the order of the labels, from where the run found them."""
    if path is None:
        if pool.origin is None:
            raise DataError(
                f"these results do not say where their items lie; give the pool with {option}"
            )
        if pool.origin.pool is None:
            digits = pool.origin.open_pool(pool.seed)
            return digits.keep(rows_of(pool.names, digits.names, digits.path, option))
        path = Path(pool.origin.pool)
    if not path.exists():
        raise DataError(f"there is no {path} any more; give the pool with {option}")
    source = open_items(path, pool.text_column)
    return source.keep(rows_of(pool.names, source.names, path, option))


def headers_of(source: Source, max_megapixels: float) -> list[Header]:
    """The size of every image, all of which must be readable still."""
    measured, headers = measure_items(source, max_megapixels)
    if measured.skipped:
        name, reason = measured.skipped[0].name, measured.skipped[0].reason
        raise DataError(f"the image {name} of {source.path} cannot be read any more ({reason})")
    return headers


def rows_of(
    names: Sequence[str], there: Sequence[str], path: Path, option: str = "--pool"
) -> list[int]:
    """Where items are in a source."""
    row_of = {name: row for row, name in enumerate(there)}
    for name in names:
        if name not in row_of:
            raise DataError(
                f"item {name!r} of the results is not in {path}; give the pool they were made of "
                f"with {option}"
            )
    return [row_of[name] for name in names]
