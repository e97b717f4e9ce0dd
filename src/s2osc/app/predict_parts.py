"""Answer for new items that are read in parts, with a saved model."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from s2osc.app.answer_tables import skipped_note
from s2osc.app.extract import NOTHING, Trusted, restore
from s2osc.app.part_work import NOTHING as NO_COUNTS
from s2osc.app.part_work import Answered, AnswerWorker, PartCounts, PartReader
from s2osc.app.result_files import write_summary
from s2osc.app.results_folder import read_current
from s2osc.app.run_folder import GOES_ON, run_folder
from s2osc.data.inputs import MAX_MEGAPIXELS
from s2osc.data.parts import PartedPool
from s2osc.engine.engine import Engine, LocalEngine
from s2osc.files import read_json, writing
from s2osc.nets.training import resolve_device
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.storage import load_model
from s2osc.progress import Stopwatch, counting
from s2osc.version import versions


@dataclass(frozen=True)
class NewItemsAnswerer:
    """Answers for new items by a model."""

    model: OpenSetModel | KnownOnlyModel

    def __call__(self, inputs: np.ndarray) -> Answered:
        answer, nearest_confidence = self.model.answer_fully(inputs)
        assert answer.nearest is not None, "f and g give every item its best known class"
        points = self.model.operating_points(answer.nearest)
        return Answered(answer, nearest_confidence, points)


def predict_parts(
    model: Path,
    items: PartedPool,
    out: Path,
    *,
    trusted: Trusted = NOTHING,
    device: str = "auto",
    max_megapixels: float = MAX_MEGAPIXELS,
    engine: Engine | None = None,
    force: bool = False,
) -> tuple[PartCounts, list[str]]:
    """Write a data set of answers; return what they came to, and what the user should know."""
    device, engine, clock = resolve_device(device), engine or LocalEngine(), Stopwatch()
    saved = read_current(model, lambda folder: load_model(folder, device))
    axes = saved.model.teacher.network.input_shape
    represented = restore(saved.preparation, axes, device, trusted)
    facts = {
        "model": os.path.abspath(model),
        "weights": read_current(model, lambda folder: os.path.getmtime(folder / "model.json")),
        "items": items.address,
        "n_rows": items.n,
        "n_parts": len(items.parts),
    }
    with run_folder(out, facts, n_parts=len(items.parts), force=force) as folder:
        reader = PartReader(items, represented, max_megapixels)
        worker = AnswerWorker(reader, NewItemsAnswerer(saved.model), saved.classes, folder)
        places = [folder.counts(part.number, items.mark()) for part in items.parts]
        pairs = zip(items.parts, places, strict=True)
        todo = [part for part, place in pairs if not place.is_file()]
        n_todo = sum(part.n for part in todo)
        with (
            engine.started(clock),
            clock("answer"),
            counting("answer", items.n, items.n - n_todo) as advance,
        ):
            for n_rows in engine.run(lambda: worker, todo):
                advance(n_rows)
        counts = NO_COUNTS
        for place in places:
            record = read_json(place, "run the same command with --force")
            counts = counts.joined(PartCounts.from_json(record))
        summary = {
            "items": {"rows": counts.n_rows, "skipped": len(counts.skipped)},
            "counts": counts.to_json(),
            "engine": engine.name,
            "versions": versions(),
            "seconds": clock.seconds,
            "rows": {"answer": n_todo},
        }
        with writing(out, GOES_ON):
            write_summary(out, summary)
        folder.finish()
    return counts, skipped_note(counts.skipped, "skipped items have no row")
