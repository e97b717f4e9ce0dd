"""The words and the page of results whose answer and model are saved already.

A run publishes its answer first, with ``UNFINISHED``: what the page needs and no other file holds.
Then the results are described in a second version, which has the page in its place. Whatever fails
on the way costs the page and nothing else; `s2osc report` makes it later.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from s2osc.app.decide import publish_decision
from s2osc.app.folder import DRAWING, REPORT, SEEDS, SUMMARY, ResultsFolder, results_folder
from s2osc.app.result import (
    COPY_AGAIN,
    read_summary,
    summarise_warnings,
    warnings_of_run,
    write_summary,
)
from s2osc.errors import DataError, ReportError
from s2osc.files import guarded, parse_json, read_whole, reason
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import cautions, tell
from s2osc.progress import Stopwatch
from s2osc.report.drawing import Question, save_drawing
from s2osc.report.page import ReportInputs, write_report
from s2osc.types import Answer

UNFINISHED = ".unfinished.safetensors"
LARGEST = 2**36  # bytes
ANSWER = ("labels", "unknown_score", "confidence", "groups", "distinctness", "filtered", "nearest")


def save_unfinished(folder: Path, report: ReportInputs) -> None:
    """Write what the page needs beside the summary."""
    arrays = {name: getattr(report.answer, name) for name in ANSWER}
    arrays |= {"embeddings": report.embeddings, "images": report.images}
    arrays |= {"seed_scores": report.seed_scores}
    texts = {
        "names": report.names,
        "classes": report.classes,
        "truth": report.truth,
        "questions": report.questions,
    }
    arrays["texts"] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    content = {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
    (folder / UNFINISHED).write_bytes(save(content))


def load_unfinished(folder: Path, summary: Mapping[str, Any], out: Path) -> ReportInputs:
    """What ``save_unfinished`` wrote, or one line on what is wrong with it."""
    path = folder / UNFINISHED
    content = read_whole(path, largest=LARGEST)
    with guarded(path, COPY_AGAIN):
        arrays = load(content)
        texts = parse_json(arrays["texts"].tobytes())
        n = len(texts["names"])
        answer = Answer(**{name: arrays[name] for name in ANSWER if name in arrays})
        if any(len(values) != n for values in vars(answer).values() if values is not None):
            raise ValueError(f"it is not about the {n} items of the pool")
        return ReportInputs(
            title=str(summary["title"]),
            answer=answer,
            classes=tuple(texts["classes"]),
            names=texts["names"],
            embeddings=arrays["embeddings"],
            images=arrays.get("images"),
            audit=Audit.from_json(summary["audit"]) if summary["audit"] else None,
            summary=dict(summary),
            truth=texts["truth"],
            seed_scores=arrays.get("seed_scores"),
            folder=str(out),
            questions=tuple(Question(*question) for question in texts["questions"]),
        )


def describe_results(
    folder: ResultsFolder, report: ReportInputs, clock: Stopwatch
) -> dict[str, Any]:
    """Publish a second version of results, with words and page; return its summary."""
    try:
        return _publish_description(folder, report, clock)
    except Exception as error:
        raise ReportError(
            f"the page could not be made ({reason(error)}); the answer is in {folder.out}, and "
            f"`s2osc report --out {quote(str(folder.out))}` makes the page"
        ) from error


def _publish_description(
    folder: ResultsFolder, report: ReportInputs, clock: Stopwatch
) -> dict[str, Any]:
    version, summary = folder.version, report.summary
    audit, notes = report.audit, warnings_of_run(summary)
    if audit:
        summary = summary | {"audit": tell(audit)} | summarise_warnings(notes, cautions(audit))
    keep = folder.files() - {SUMMARY, REPORT, DRAWING, UNFINISHED}
    with folder.publish(keep=keep) as stage:
        with clock("report"):
            described = replace(report, summary=summary | {"seconds": dict(clock.seconds)})
            drawing = write_report(stage / REPORT, described, seed=summary["seed"])
        if (version / SEEDS).is_file():  # another decision draws from it again
            save_drawing(stage / DRAWING, drawing)
        summary = summary | {"seconds": dict(clock.seconds)}
        write_summary(stage, summary)
    return summary


def report_files(out: Path) -> dict[str, Any]:
    """Make the page and the words of results that lack them, or make them anew."""
    with results_folder(out, update=True) as folder:
        summary = read_summary(folder.version)
        if not (folder.version / UNFINISHED).is_file():
            return publish_decision(folder, {})
        clock = Stopwatch()
        with guarded(folder.version / SUMMARY, COPY_AGAIN, DataError):
            clock.seconds.update({str(k): float(v) for k, v in summary["seconds"].items()})
        return describe_results(folder, load_unfinished(folder.version, summary, out), clock)
