"""Classify a pool again from where its results say it came from, with a person's corrections."""

from pathlib import Path

from s2osc.app.classify import classify_files, demo
from s2osc.app.corrections import Corrections
from s2osc.app.extract import AUTO, SCRATCH
from s2osc.app.request import Request
from s2osc.app.result import Result
from s2osc.app.result_files import load_result
from s2osc.app.results_folder import version_of
from s2osc.data.parts import is_parted, open_parts
from s2osc.errors import DataError, SettingsError
from s2osc.nets.backbones import EFFICIENTNET


def refit_results(out: Path, corrections: Corrections) -> Result:
    """Replace the results in ``out`` by those of a new fit."""
    before = load_result(version_of(out))
    origin = before.run.origin
    if origin is None or (origin.known is None) != origin.is_demo:
        raise DataError(
            f"{out} does not say which files it was made of; run `s2osc classify --known KNOWN "
            "--pool POOL --corrections FILE` with the corrections of an export"
        )
    # A file chooses nothing that is loaded: other networks need a user who names them.
    for option, name, usual in (
        ("--backbone", origin.backbone, (AUTO, SCRATCH, EFFICIENTNET)),
        ("--embedding", origin.embedding, (AUTO,)),
    ):
        if name not in usual:
            raise SettingsError(
                f"these results were made with {option} {name}, which is not loaded by itself; "
                f"run `s2osc classify {option} {name} --corrections FILE` if you trust it"
            )
    request = Request(
        preset=before.run.preset,
        changes=origin.changes,
        seed=before.run.seed,
        title=before.run.title,
        side=origin.side,
        backbone=origin.backbone,
        embedding=origin.embedding,
        text_column=origin.text_column,
        keep_columns=origin.keep_columns,
        max_megapixels=origin.max_megapixels,
        fit_on=origin.fit_on,
    )
    if origin.known is None or origin.pool is None:
        return demo(out, request, corrections=corrections, force=True)
    return classify_files(
        Path(origin.known),
        open_parts(origin.pool, origin.text_column)
        if is_parted(origin.pool)
        else Path(origin.pool),
        out,
        request,
        corrections=corrections,
        force=True,
    )
