"""The words and the page of results whose answer and model are saved already.

A run publishes its answer first, with ``UNFINISHED``: what the page needs and no other file holds.
Then the results are described in a second version, which has the page in its place. Whatever fails
on the way costs the page and nothing else; `s2osc report` makes it later.
"""

from dataclasses import replace
from pathlib import Path
from shlex import quote

from s2osc.app.result import Result
from s2osc.app.result_files import COPY_AGAIN, load_result, write_check, write_summary, write_tables
from s2osc.app.results_folder import (
    CHECKED,
    DRAWING,
    MODEL,
    REPORT,
    RESULTS,
    SUMMARY,
    TABLES,
    UNFINISHED,
    ResultsFolder,
    results_folder,
)
from s2osc.errors import DataError, ReportError
from s2osc.files import as_json, guarded, reason
from s2osc.pipeline.audit.threshold import thresholds_for_new
from s2osc.pipeline.filter.unknown_probability import squash
from s2osc.pipeline.model_description import (
    DESCRIPTION,
    read_description,
    with_check,
    with_groups,
    with_thresholds,
)
from s2osc.progress import Stopwatch
from s2osc.report.drawing import Drawing, load_drawing, save_drawing
from s2osc.report.page import ReportInputs, write_report


def write_page(path: Path, result: Result, out: Path, drawing: Drawing | None = None) -> Drawing:
    """Write the page of a result; returns what was drawn, for another page on the same pool."""
    page = ReportInputs(
        title=result.run.title,
        answer=result.answer,
        classes=result.classes,
        names=result.names,
        embeddings=result.embeddings,
        images=result.images,
        texts=result.texts,
        profiles=result.profiles,
        profile=result.profile,
        audit=result.audit,
        summary=result.summary.to_json(),
        truth=result.truth,
        seed_scores=squash(result.evidence.seed_score) if result.evidence else None,
        folder=str(out),
        questions=result.questions,
        leaves=result.leaves,
    )
    return write_report(path, page, seed=result.run.seed, drawing=drawing)


def describe_result(folder: ResultsFolder, result: Result) -> Result:
    """Publish a second version of saved results, with words and page."""
    clock = Stopwatch(result.run.seconds)
    keep = folder.files() - {SUMMARY, REPORT, DRAWING, UNFINISHED}
    try:
        with folder.publish(keep=keep) as stage:
            with clock("report"):
                drawing = write_page(stage / REPORT, result, folder.out)
                if result.evidence:  # another decision draws from it again
                    save_drawing(stage / DRAWING, drawing)
            result = replace(result, run=replace(result.run, seconds=clock.seconds))
            write_summary(stage, result.summary.to_json())
    except Exception as error:
        raise ReportError(
            f"the page could not be made ({reason(error)}); the answer is in {folder.out}, and "
            f"`s2osc report --out {quote(str(folder.out))}` makes the page"
        ) from error
    return result


def check_described(folder: ResultsFolder) -> None:
    """Refuse results whose page was never made."""
    if not (folder.version / DRAWING).is_file():
        raise DataError(
            f"{folder.out} has no page yet: {DRAWING} is not there; "
            f"run `s2osc report --out {quote(str(folder.out))}` first"
        )


def rewrite_results(folder: ResultsFolder, result: Result) -> None:
    """Publish tables, words and page of results that were described before, and the threshold."""
    version, out = folder.version, folder.out
    check_described(folder)
    drawing = load_drawing(version / DRAWING, len(result.names))
    rewritten = {SUMMARY, REPORT, CHECKED, *TABLES, f"{MODEL}/{DESCRIPTION}"}
    checked = result.audit.checked if result.audit else None
    description = with_check(read_description(version / MODEL), checked)
    if result.evidence and result.odds is not None:
        thresholds = thresholds_for_new(result.evidence, result.odds, result.decision)
        description = with_thresholds(description, thresholds)
    if result.audit and result.audit.groups:
        description = with_groups(description, result.audit.groups.groups)
    keep = {name for name in RESULTS if name not in rewritten and (version / name).is_file()}
    with folder.publish(keep=keep) as stage:
        write_tables(stage, result)
        if result.check.rows:
            write_check(stage, result)
        write_page(stage / REPORT, result, out, drawing)
        (stage / MODEL).mkdir(exist_ok=True)
        (stage / MODEL / DESCRIPTION).write_bytes(as_json(description))
        write_summary(stage, result.summary.to_json())


def report_files(out: Path) -> Result:
    """Make the page and the words of results that lack them, or make them anew."""
    with results_folder(out, update=True) as folder:
        result = load_result(folder.version)
        if (folder.version / UNFINISHED).is_file():
            return describe_result(folder, result)
        with guarded(out, COPY_AGAIN):
            rewrite_results(folder, result)
        return result
