"""Answer for new items with a saved model."""

from pathlib import Path

from s2osc.app.extract import restore_extractor, shape_of
from s2osc.app.result import (
    TABLE_WRITERS,
    collect_warnings,
    known_confidence,
    skipped_note,
    table_bytes,
)
from s2osc.app.results_folder import read_current, result_file
from s2osc.data.inputs import MAX_MEGAPIXELS, read_items
from s2osc.errors import SettingsError
from s2osc.nets.training import resolve_device
from s2osc.pipeline.storage import load_model
from s2osc.types import Answer


def predict_files(
    model: Path,
    items: Path,
    out: Path,
    *,
    backbone: str | None = None,
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
        extractor = None
        if saved.backbone:
            extractor = restore_extractor(saved.backbone, device, allowed=backbone)
        like = extractor.shape if extractor else shape_of(saved.model.teacher.network.input_shape)
        found = read_items(items, like=like, max_megapixels=max_megapixels)
        with collect_warnings() as notes:
            inputs = extractor.features(found.inputs) if extractor else found.inputs
        answer = saved.model.answer(inputs)
        table = table_bytes(
            out.suffix,
            names=found.names,
            answer=answer,
            nearest_confidence=known_confidence(saved.model.probabilities(inputs)),
            classes=saved.classes,
        )
        write(table)
    return answer, [*notes, *skipped_note(found.skipped, "skipped items have no row")]
