"""Decide a pool anew, for another operating point, from what a run has measured.

Nothing is trained and no network is loaded: scores of pool and seeds lie in the result folder.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from s2osc.app.folder import (
    DRAWING,
    MODEL,
    REPORT,
    SCORES,
    SEEDS,
    SKIPPED,
    SUMMARY,
    ResultsFolder,
    results_folder,
)
from s2osc.app.result import (
    COPY_AGAIN,
    count_labels,
    judge,
    read_measured,
    read_summary,
    summarise_warnings,
    warnings_of_run,
    write_summary,
    write_tables,
)
from s2osc.errors import DataError
from s2osc.files import guarded
from s2osc.pipeline.audit.decision import DecisionSettings, decide, threshold_for_new
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import cautions, tell
from s2osc.pipeline.description import DESCRIPTION, replace_threshold
from s2osc.pipeline.filter.score import squash
from s2osc.report.drawing import load_drawing
from s2osc.report.page import ReportInputs, write_report
from s2osc.settings import change, flatten

PREFIX = "decision."


def redecide(out: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Rewrite the answer in a result folder; return its summary.

    ``changes`` are settings of the decision by name (``false_alarm``, ``aim``, ``unsure``); those
    that are not named stay as they were decided last.
    """
    change(DecisionSettings(), changes)  # what cannot be used is refused before anything is read
    # Figures of an edited summary or table go through all that follows.
    damaged = guarded(out, "copy the result folder again or classify anew")
    with results_folder(out, update=True) as folder, damaged:
        return publish_decision(folder, changes)


def publish_decision(folder: ResultsFolder, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Publish the results of a folder with another decision; return its summary."""
    out = folder.version
    summary = read_summary(out)
    measured = read_measured(out, summary)
    with guarded(out / SUMMARY, COPY_AGAIN):
        earlier = Audit.from_json(summary["audit"])
    settings, seed = read_settings(out, summary, changes)
    if not (out / DRAWING).is_file():
        raise DataError(
            f"{folder.out} has no page yet: {DRAWING} is not there; "
            f"run `s2osc report --out {quote(str(folder.out))}` first"
        )
    drawing = load_drawing(out / DRAWING, len(measured.names))
    evidence = measured.evidence
    decision = decide(evidence, settings, seed=seed)
    answer = measured.answer(decision)
    audit = replace(
        decision.audit.named(measured.classes), purity=earlier.purity, groups=earlier.groups
    )
    metrics = judge(answer, measured.classes, measured.truth)
    summary = summary | {
        "audit": tell(audit),
        "counts": count_labels(answer, measured.classes),
        **summarise_warnings(warnings_of_run(summary), cautions(audit)),
        "settings": summary["settings"]
        | {PREFIX + name: value for name, value in flatten(settings).items()},
    }
    if metrics:
        summary["metrics"] = metrics
    keep = {SCORES, SEEDS, DRAWING, SKIPPED, f"{MODEL}/weights.safetensors"}
    if measured.odds is None:
        keep.add(f"{MODEL}/{DESCRIPTION}")
    keep = {name for name in keep if (out / name).is_file()}
    with folder.publish(keep=keep) as stage:
        write_tables(stage, measured.names, answer, measured.nearest, measured.classes)
        report = ReportInputs(
            title=summary["title"],
            answer=answer,
            classes=measured.classes,
            names=measured.names,
            embeddings=None,
            images=None,
            audit=audit,
            summary=summary,
            truth=measured.truth,
            seed_scores=squash(evidence.seed_score),
            folder=str(folder.out),
        )
        write_report(stage / REPORT, report, seed=seed, drawing=drawing)
        if measured.odds is not None:
            threshold = threshold_for_new(evidence, measured.odds, settings)
            (stage / MODEL).mkdir(exist_ok=True)
            (stage / MODEL / DESCRIPTION).write_bytes(replace_threshold(out / MODEL, threshold))
        write_summary(stage, summary)
    return summary


def read_settings(
    out: Path, summary: dict[str, Any], changes: Mapping[str, Any]
) -> tuple[DecisionSettings, int]:
    """The settings of the last decision with some changed, and the seed of the run."""
    try:
        recorded = {
            name.removeprefix(PREFIX): value
            for name, value in summary["settings"].items()
            if name.startswith(PREFIX)
        }
        seed = int(summary["seed"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{out / SUMMARY} does not tell how the pool was decided; classify anew"
        ) from error
    # To ask for an operating point is to leave the decision to the seeds.
    rule = {"rule": "seeds"} if changes else {}
    return change(DecisionSettings(), recorded | rule | dict(changes)), seed
