"""What is done with one part of a pool: strangeness, the rows of a sample, answers."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from s2osc.app.answer_tables import answer_table, texts_of
from s2osc.app.extract import Representation
from s2osc.app.run_folder import GOES_ON, RunFolder, written_table
from s2osc.app.summary import LabelCounts
from s2osc.codec import JsonObject
from s2osc.data.inputs import MAX_MEGAPIXELS, Items, Skipped, items_like
from s2osc.data.parts import Part, PartedPool
from s2osc.files import writing
from s2osc.pipeline.sampling import SKIPPED, Strangeness
from s2osc.progress import Stopwatch
from s2osc.types import Answer


class Batch(NamedTuple):
    """Items of a pool that could be read, and their rows in it."""

    rows: np.ndarray
    items: Items


@dataclass(frozen=True)
class PartReader:
    """Reads the items of a part as the networks get them."""

    pool: PartedPool
    represented: Representation
    max_megapixels: float = MAX_MEGAPIXELS

    def batches(self, part: Part, wanted: np.ndarray | None = None) -> Iterator[Batch]:
        """The items of a part; ``wanted`` rows of the pool, sorted: those of it alone."""
        left = np.arange(part.first, part.first + part.n) if wanted is None else wanted
        for source in self.pool.batches(part, wanted):
            rows, left = left[: len(source.names)], left[len(source.names) :]
            items = items_like(source, self.represented.shape, max_megapixels=self.max_megapixels)
            if items.skipped:  # names are those of one item each
                left_out = {each.name for each in items.skipped}
                rows = rows[[name not in left_out for name in source.names]]
            yield Batch(rows, items)

    def inputs(self, items: Items) -> np.ndarray:
        return self.represented.inputs(items.inputs, Stopwatch())


@dataclass(frozen=True)
class StrataWorker:
    """Writes the strata of a part, and those of its items that judge the fit.

    Which rows judge is drawn before anything is read, so they take no pass of their own.
    """

    reader: PartReader
    strangeness: Strangeness
    judged: np.ndarray  # rows of the pool, sorted
    folder: RunFolder

    def __call__(self, part: Part) -> int:
        strata, mark = np.full(part.n, SKIPPED, np.uint8), self.reader.pool.mark(part)
        wanted, rows, judged = rows_in(self.judged, part), [], []
        for batch in self.reader.batches(part):
            if not len(batch.rows):
                continue
            inputs = self.reader.inputs(batch.items)
            strata[batch.rows - part.first] = self.strangeness.strata(inputs)
            chosen = np.isin(batch.rows, wanted, assume_unique=True)
            if chosen.any():
                rows.append(batch.rows[chosen])
                judged.append(inputs[chosen])
        self.folder.save_drawn("judged", part.number, mark, rows, judged)
        self.folder.save_strata(part.number, mark, strata)  # last: then the part is done
        return part.n


def rows_in(rows: np.ndarray, part: Part) -> np.ndarray:
    """Those of sorted rows of the pool that are in a part."""
    low, high = np.searchsorted(rows, [part.first, part.first + part.n])
    return rows[low:high]


@dataclass(frozen=True)
class SampleWorker:
    """Writes the inputs of some rows of a part."""

    reader: PartReader
    rows: np.ndarray  # of the pool, sorted
    folder: RunFolder

    def __call__(self, part: Part) -> int:
        found, inputs = [], []
        for batch in self.reader.batches(part, rows_in(self.rows, part)):
            found.append(batch.rows)
            inputs.append(self.reader.inputs(batch.items))
        self.folder.save_drawn("sample", part.number, self.reader.pool.mark(), found, inputs)
        return part.n


class Answered(NamedTuple):
    """The answer for a batch, ready for its table."""

    answer: Answer
    nearest_confidence: np.ndarray
    operating_points: np.ndarray | None


class PartCounts(NamedTuple):
    """What a part came to."""

    labels: Counter[str]  # items of each known class
    groups: Counter[str]
    n_unknown: int
    n_unsure: int
    n_rows: int
    skipped: tuple[Skipped, ...]

    def joined(self, other: "PartCounts") -> "PartCounts":
        """What two parts came to together."""
        return PartCounts(
            labels=self.labels + other.labels,
            groups=self.groups + other.groups,
            n_unknown=self.n_unknown + other.n_unknown,
            n_unsure=self.n_unsure + other.n_unsure,
            n_rows=self.n_rows + other.n_rows,
            skipped=self.skipped + other.skipped,
        )

    def to_json(self) -> JsonObject:
        return {
            "labels": dict(self.labels),
            "groups": dict(self.groups),
            "n_unknown": self.n_unknown,
            "n_unsure": self.n_unsure,
            "n_rows": self.n_rows,
            "skipped": [list(each) for each in ((s.name, s.reason) for s in self.skipped)],
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> "PartCounts":
        return cls(
            labels=Counter(record["labels"]),
            groups=Counter(record["groups"]),
            n_unknown=int(record["n_unknown"]),
            n_unsure=int(record["n_unsure"]),
            n_rows=int(record["n_rows"]),
            skipped=tuple(Skipped(name, why) for name, why in record["skipped"]),
        )


NOTHING = PartCounts(Counter(), Counter(), 0, 0, 0, ())


@dataclass(frozen=True)
class AnswerWorker:
    """Writes the answers of a part."""

    reader: PartReader
    answer: Callable[[np.ndarray], Answered]
    classes: Sequence[str]
    folder: RunFolder

    def __call__(self, part: Part) -> int:
        counts = NOTHING
        with (
            writing(self.folder.out, GOES_ON),
            written_table(self.folder.predictions(part.number)) as table,
        ):
            for batch in self.reader.batches(part):
                counts = counts.joined(self._write(batch, table.write))
        with writing(self.folder.out, GOES_ON):
            mark = self.reader.pool.mark()
            self.folder.save_json(self.folder.counts(part.number, mark), counts.to_json())
        return part.n

    def _write(self, batch: Batch, write: Callable[[Any], None]) -> PartCounts:
        items, is_text = batch.items, self.reader.represented.shape.kind == "texts"
        if not len(items):
            return NOTHING._replace(skipped=tuple(items.skipped))
        answer, nearest_confidence, operating_points = self.answer(self.reader.inputs(items))
        write(
            answer_table(
                names=items.names,
                texts=texts_of(items.inputs) if is_text else None,
                answer=answer,
                nearest_confidence=nearest_confidence,
                operating_points=operating_points,
                classes=self.classes,
            )
        )
        found = LabelCounts.of_answer(answer, self.classes)
        return PartCounts(
            labels=Counter(found.known),
            groups=Counter(found.groups),
            n_unknown=found.unknown or 0,
            n_unsure=found.unsure,
            n_rows=len(items),
            skipped=tuple(items.skipped),
        )
