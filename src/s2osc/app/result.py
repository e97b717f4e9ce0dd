"""The files of a result folder: what a run writes, and what a later decision reads again.

    predictions.csv, .parquet    the answer, one row per item
    summary.json                 counts, audit, metrics, settings, seconds
    scores.parquet               what was measured about each item of the pool, and
    seeds.parquet                about each seed: no decision changes either
    report.html                  the page, and in report.safetensors what it was drawn from
    model/                       the model (``pipeline/storage.py``)

Nothing here needs torch: deciding anew is a matter of a second.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from s2osc.app.folder import SCORES, SEEDS, SUMMARY
from s2osc.data.inputs import Skipped
from s2osc.errors import DataError
from s2osc.files import check_regular, guarded, read_json
from s2osc.metrics import evaluate, matched_accuracy
from s2osc.pipeline.audit.decision import Decision, Evidence
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import Caution
from s2osc.text import csv_cell
from s2osc.types import UNKNOWN, Answer

UNNAMED = ("unsure", "unknown")
"""What -2 and -1 are called: read backwards from the names of the known classes."""
DAMAGED = (
    *(OSError, LookupError, TypeError, ValueError, AttributeError, OverflowError),
    *(RecursionError, MemoryError, NotImplementedError, pa.ArrowException),
)


def write_csv(table: pa.Table, target: Any) -> None:
    """Write a table whose texts no spreadsheet takes for formulas."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(name).type):
            cells = [csv_cell(text) for text in table[name].to_pylist()]
            table = table.set_column(place, name, pa.array(cells, pa.string()))
    pyarrow.csv.write_csv(table, target)


TABLE_WRITERS = {
    ".csv": write_csv,
    ".parquet": pyarrow.parquet.write_table,
}


class Nearest(NamedTuple):
    """The best known class of each item, also of those that are called something else."""

    labels: np.ndarray  # (n,) int
    confidence: np.ndarray  # (n,) its probability, given that the item is known

    @classmethod
    def of(cls, probabilities: np.ndarray) -> "Nearest":
        """From the probabilities of the known classes and, last, of unknown.

        >>> Nearest.of(np.array([[0.3, 0.1, 0.6]])).confidence.round(2).tolist()
        [0.75]
        """
        known = probabilities[:, :-1]
        return cls(known.argmax(1), known.max(1) / np.maximum(known.sum(1), 1e-12))


@dataclass(frozen=True, eq=False)
class Measured:
    """All that is known about a pool before anyone decides who is unknown."""

    names: list[str]
    truth: list[str] | None
    classes: tuple[str, ...]
    evidence: Evidence
    odds: np.ndarray | None  # (n + m,) log-odds of g for pool and seeds; None: no student
    groups: np.ndarray  # (n,) the group of each item, were it unknown; -1: no groups
    distinctness: np.ndarray  # (n,)
    filtered: np.ndarray  # (n,) bool

    @property
    def nearest(self) -> Nearest:
        return Nearest(self.evidence.nearest, self.evidence.nearest_confidence)

    def answer(self, decision: Decision) -> Answer:
        """The answer that a decision gives."""
        return Answer(
            labels=decision.labels,
            unknown_score=decision.unknown_score,
            confidence=decision.confidence,
            groups=np.where(decision.labels == UNKNOWN, self.groups, -1),
            distinctness=self.distinctness,
            filtered=self.filtered,
            nearest=self.evidence.nearest,
        )


def count_labels(answer: Answer, classes: Sequence[str]) -> dict[str, Any]:
    """Items per known class, unknown ones, those per group, and unsure ones."""
    groups = np.bincount(answer.groups[answer.is_unknown])
    return {
        "known": {name: int(np.sum(answer.labels == c)) for c, name in enumerate(classes)},
        "unknown": int(answer.is_unknown.sum()),
        "groups": {str(group): int(count) for group, count in enumerate(groups)},
        "unsure": int(answer.is_unsure.sum()),
    }


def judge(
    answer: Answer, classes: tuple[str, ...], truth_names: list[str] | None
) -> dict[str, float]:
    """Metrics over the items that came with truth; none without.

    Items left unsure are judged as neither right nor wrong: ``decided`` is the share of the rest.
    """
    has_truth = np.array([bool(name) for name in truth_names or []])
    if not has_truth.any():
        return {}
    is_judged = has_truth & ~answer.is_unsure
    decided = {"decided": round(float(is_judged.sum() / has_truth.sum()), 5)}
    if not is_judged.any():
        return decided
    names = np.array(truth_names)[is_judged]
    label_of = {name: label for label, name in enumerate(classes)}
    truth = np.array([label_of.get(name, UNKNOWN) for name in names])
    fields = {name: values for name, values in vars(answer).items() if values is not None}
    part = replace(answer, **{name: values[is_judged] for name, values in fields.items()})
    figures = evaluate(truth, part)
    of_unknown = truth == UNKNOWN
    if of_unknown.any():
        matched = matched_accuracy(names[of_unknown], part.groups[of_unknown])
        figures["group_accuracy"] = round(matched, 5)
    return figures | decided if answer.is_unsure.any() else figures


# --- tables ----------------------------------------------------------------------------------


def table_bytes(
    suffix: str, names: list[str], answer: Answer, nearest: Nearest, classes: Sequence[str]
) -> bytes:
    """One row per item, as the content of a .csv or .parquet file."""
    label_names = np.array([*classes, *UNNAMED], object)
    columns: dict[str, Any] = {
        "item": names,
        "label": label_names[answer.labels],
        "group": pa.array(answer.groups, mask=answer.groups < 0),
        "confidence": answer.confidence.astype(np.float32),
        "nearest": label_names[nearest.labels],
        "nearest_confidence": nearest.confidence.astype(np.float32),
        "unknown_score": answer.unknown_score.astype(np.float32),
        "distinctness": answer.distinctness.astype(np.float32),
        "filtered": answer.filtered,
    }
    table = io.BytesIO()
    TABLE_WRITERS[suffix](pa.table(columns), table)
    return table.getvalue()


def write_tables(
    folder: Path, names: list[str], answer: Answer, nearest: Nearest, classes: Sequence[str]
) -> None:
    """The answer in both forms."""
    for suffix in TABLE_WRITERS:
        content = table_bytes(suffix, names, answer, nearest, classes)
        (folder / f"predictions{suffix}").write_bytes(content)


def write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    columns = {"item": [s.name for s in skipped], "reason": [s.reason for s in skipped]}
    write_csv(pa.table(columns), path)


# --- the summary -----------------------------------------------------------------------------


def summarise_warnings(notes: Sequence[str], limits: Sequence[Caution]) -> dict[str, Any]:
    """The warnings of a summary: about the run, which have no code, and about its audit."""
    return {
        "warnings": [*notes, *(caution.text for caution in limits)],
        "warning_codes": [*[None] * len(notes), *(caution.code for caution in limits)],
    }


def warnings_of_run(summary: Mapping[str, Any]) -> list[str]:
    """The warnings of a summary that no decision changes."""
    texts, codes = summary["warnings"], summary.get("warning_codes", [])
    return [text for text, code in zip_longest(texts, codes[: len(texts)]) if code is None]


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    text = json.dumps(summary, indent=2, ensure_ascii=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of the run that left its results in ``folder``."""
    path = folder / SUMMARY
    if not path.is_file():
        raise DataError(
            f"{folder} holds no results: {SUMMARY} is not there; "
            "give the folder that `s2osc classify --out` wrote"
        )
    summary = read_json(path, COPY_AGAIN)
    with guarded(path, COPY_AGAIN):
        for name, kind in FIELDS.items():
            if type(summary[name]) is not kind:
                raise ValueError(f"{name} is {summary[name]!r:.100}")
        if not all(isinstance(text, str) for text in summary["warnings"]):
            raise ValueError("its warnings are not texts")
        if type(summary["items"]["pool"]) is not int:
            raise ValueError("it does not count the items of the pool")
    return summary


COPY_AGAIN = "copy the result folder again or classify anew"
FIELDS = {
    **{"title": str, "preset": str, "seed": int, "warnings": list},
    **{"items": dict, "counts": dict, "settings": dict, "seconds": dict},
}
"""What a summary has at least, and of which type."""


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(f"{path} is damaged ({reason}); {COPY_AGAIN}")


# --- what was measured -----------------------------------------------------------------------


def write_measured(folder: Path, measured: Measured) -> None:
    """Scores of pool and seeds, exactly as they are."""
    evidence, n = measured.evidence, len(measured.names)
    class_names = np.array(measured.classes, object)
    pool: dict[str, Any] = {
        "item": measured.names,
        "score": evidence.score,
        "nearest": class_names[evidence.nearest],
        "nearest_confidence": evidence.nearest_confidence,
        "group_if_unknown": pa.array(measured.groups, mask=measured.groups < 0),
        "distinctness": measured.distinctness,
        "filtered": measured.filtered,
    }
    seeds: dict[str, Any] = {
        "label": class_names[evidence.seed_label],
        "nearest": class_names[evidence.seed_nearest],
        "score": evidence.seed_score,
        "weight": evidence.seed_weight,
    }
    if measured.odds is not None:
        pool["odds"], seeds["odds"] = measured.odds[:n], measured.odds[n:]
    if measured.truth is not None:
        pool["truth"] = measured.truth
    pyarrow.parquet.write_table(pa.table(pool), folder / SCORES)
    pyarrow.parquet.write_table(pa.table(seeds), folder / SEEDS)


def read_measured(folder: Path, summary: dict[str, Any]) -> Measured:
    """What ``write_measured`` wrote, or one line on what is wrong with it."""
    if not summary.get("audit"):
        raise DataError(
            f"{folder} holds the results of a run without seeds "
            f"(preset {summary.get('preset', '?')}), so there is nothing to decide anew from; "
            "classify with seeds, such as with --preset auto"
        )
    try:
        classes = tuple(summary["counts"]["known"])
        p_value = Audit.from_json(summary["audit"]).test.p_value
    except DAMAGED as error:
        raise _damaged(folder / SUMMARY, error) from error
    pool, seeds = _read_columns(folder / SCORES), _read_columns(folder / SEEDS)
    try:
        return _assemble(pool, seeds, classes, p_value)
    except DAMAGED as error:
        raise _damaged(folder / SCORES, error) from error


def _read_columns(path: Path) -> dict[str, Any]:
    """Numbers as arrays, texts as lists."""
    try:
        check_regular(path)
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
        return {name: _column(table[name]) for name in table.column_names}
    except DAMAGED as error:
        raise _damaged(path, error) from error


def _column(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        return column.to_pylist()
    if column.null_count:
        column = column.fill_null(-1)
    return column.to_numpy()


def _assemble(
    pool: dict[str, Any], seeds: dict[str, Any], classes: tuple[str, ...], p_value: float
) -> Measured:
    number = {name: c for c, name in enumerate(classes)}
    nearest, seed_label, seed_nearest = (
        np.array([number[name] for name in names], np.int64)
        for names in (pool["nearest"], seeds["label"], seeds["nearest"])
    )
    evidence = Evidence(
        score=_finite(pool["score"]),
        nearest=nearest,
        nearest_confidence=_finite(pool["nearest_confidence"]),
        seed_score=_finite(seeds["score"]),
        seed_label=seed_label,
        seed_nearest=seed_nearest,
        seed_weight=_finite(seeds["weight"]),
        p_value=p_value,
    )
    if not len(evidence.score) or not len(evidence.seed_score):
        raise ValueError("it holds no scores")
    return Measured(
        names=pool["item"],
        truth=pool.get("truth"),
        classes=classes,
        evidence=evidence,
        odds=np.concatenate([_finite(pool["odds"]), _finite(seeds["odds"])])
        if "odds" in pool
        else None,
        groups=pool["group_if_unknown"].astype(np.int64),
        distinctness=pool["distinctness"],
        filtered=pool["filtered"].astype(bool),
    )


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise ValueError("it holds values that are no numbers")
    return values
