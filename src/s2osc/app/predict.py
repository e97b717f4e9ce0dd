"""Answer for new items with a saved model."""

from pathlib import Path

from s2osc.app.answer_tables import TABLE_WRITERS, skipped_note, table_bytes, texts_of
from s2osc.app.extract import NOTHING, Trusted, restore
from s2osc.app.output import result_file
from s2osc.app.results_folder import read_current
from s2osc.data.inputs import MAX_MEGAPIXELS, read_items
from s2osc.errors import SettingsError, collect_warnings
from s2osc.nets.training import resolve_device
from s2osc.pipeline.storage import load_model
from s2osc.progress import Stopwatch
from s2osc.types import Answer


def predict_files(
    model: Path,
    items: Path,
    out: Path,
    *,
    trusted: Trusted = NOTHING,
    device: str = "auto",
    max_megapixels: float = MAX_MEGAPIXELS,
    force: bool = False,
) -> tuple[Answer, list[str]]:
    """Write one table; return the answer, and what the user should know about it."""
    if out.suffix not in TABLE_WRITERS:
        raise SettingsError(f"--out is {out}; give a file name ending in .csv or .parquet")
    device = resolve_device(device)
    with result_file(out, force=force) as write:
        saved = read_current(model, lambda folder: load_model(folder, device))
        axes = saved.model.teacher.network.input_shape
        represented = restore(saved.preparation, axes, device, trusted)
        found = read_items(items, like=represented.shape, max_megapixels=max_megapixels)
        with collect_warnings() as notes:
            inputs = represented.inputs(found.inputs, Stopwatch())
        answer, nearest_confidence = saved.model.answer_fully(inputs)
        assert answer.nearest is not None, "f and g give every item its best known class"
        table = table_bytes(
            out.suffix,
            names=found.names,
            texts=texts_of(found.inputs) if represented.shape.kind == "texts" else None,
            answer=answer,
            nearest_confidence=nearest_confidence,
            operating_points=saved.model.operating_points(answer.nearest),
            classes=saved.classes,
        )
        write(table)
    return answer, [*notes, *skipped_note(found.skipped, "skipped items have no row")]
