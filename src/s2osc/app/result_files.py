"""The files of a result folder: a result written to them, and read back, checked.

    predictions.csv, .parquet    the answer, one row per item (``answer_tables.py``)
    summary.json                 counts, audit, metrics, settings, seconds
    scores.parquet               what was measured about each item of the pool, and
    seeds.parquet                about each seed: no decision changes either
    checked.parquet              items of the pool that a person was asked about, and their labels
    corrections.csv              labels that people gave items of the pool before the fit
    items.parquet                the texts of the pool, or the columns used; none of other items
    report.html                  the page, and in report.safetensors what it was drawn from
    model/                       the model (``pipeline/storage.py``)

Nothing here needs torch, but saving a model: deciding anew is a matter of a second.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from safetensors.numpy import load, save

from s2osc.app.answer_tables import TABLE_WRITERS, UNNAMED, table_bytes, write_skipped
from s2osc.app.corrections import NO_CORRECTIONS, corrections_table, read_corrections
from s2osc.app.result import Result
from s2osc.app.results_folder import (
    CHECKED,
    CORRECTIONS,
    ITEMS,
    MODEL,
    SCORES,
    SEEDS,
    SKIPPED,
    SUMMARY,
    TABLES,
    UNFINISHED,
    check_summary,
)
from s2osc.app.summary import Summary
from s2osc.codec import JsonObject
from s2osc.data.columns import Table
from s2osc.data.tables import TEXT, read_table
from s2osc.errors import DataError
from s2osc.files import check_regular, guarded, parse_json, read_json, read_whole
from s2osc.pipeline.audit.check import Check
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.threshold import Evidence, number_classes
from s2osc.report.drawing import Question
from s2osc.settings import change
from s2osc.types import UNSURE, Answer

COPY_AGAIN = "copy the result folder again or classify anew"
LARGEST = 2**36  # bytes of what the page is drawn from
COLUMNS = ("labels", "unknown_score", "confidence", "groups", "distinctness", "filtered", "nearest")


# --- writing ---------------------------------------------------------------------------------


def save_result(result: Result, folder: Path) -> None:
    """Write a new fit, without words and page; ``UNFINISHED`` has what these need."""
    write_summary(folder, result.summary.to_json(words=False))
    write_tables(folder, result)
    write_measured(folder, result)
    write_unfinished(folder, result)
    write_items(folder / ITEMS, result)
    if result.corrections:
        (folder / CORRECTIONS).write_bytes(corrections_table(result.corrections))
    if result.skipped:
        write_skipped(folder / SKIPPED, result.skipped)
    if result.model is not None:
        from s2osc.pipeline.storage import save_model  # noqa: PLC0415  (it loads torch)

        save_model(folder / MODEL, result.model, result.classes, result.preparation)


def write_summary(folder: Path, summary: JsonObject) -> None:
    text = json.dumps(summary, indent=2, ensure_ascii=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")


def write_tables(folder: Path, result: Result) -> None:
    """The answer in both forms."""
    nearest, points = result.answer.nearest, None
    if result.audit and nearest is not None:
        points = result.audit.operating_points(nearest, result.classes)
    for suffix in TABLE_WRITERS:
        content = table_bytes(
            suffix,
            names=result.names,
            texts=None if isinstance(result.items, Table) else result.texts,
            answer=result.answer,
            nearest_confidence=result.nearest_confidence,
            operating_points=points,
            classes=result.classes,
            corrections=result.corrections,
        )
        (folder / f"predictions{suffix}").write_bytes(content)


def write_measured(folder: Path, result: Result) -> None:
    """Scores of pool and seeds, exactly as they are; nothing without seeds."""
    evidence, leaves, n = result.evidence, result.leaves, len(result.names)
    if evidence is None or leaves is None:
        return
    class_names = np.array(result.classes, object)
    pool: dict[str, Any] = {
        "item": result.names,
        "score": evidence.score,
        "nearest": class_names[evidence.nearest],
        "nearest_confidence": evidence.nearest_confidence,
        "leaf_if_unknown": pa.array(leaves, mask=leaves < 0),
        "distinctness": result.answer.distinctness,
        "filtered": result.answer.filtered,
    }
    seeds: dict[str, Any] = {
        "label": class_names[evidence.seed_label],
        "nearest": class_names[evidence.seed_nearest],
        "score": evidence.seed_score,
        "weight": evidence.seed_weight,
    }
    if result.odds is not None:
        pool["odds"], seeds["odds"] = result.odds[:n], result.odds[n:]
    if result.truth is not None:
        pool["truth"] = result.truth
    write_parquet(pool, folder / SCORES)
    write_parquet(seeds, folder / SEEDS)


def write_parquet(columns: Mapping[str, Any], path: Path) -> None:
    # As a file of Python's, here and in ``read_columns``: Arrow opens no name that is not UTF-8.
    with path.open("wb") as file:
        pyarrow.parquet.write_table(pa.table(columns), file)


def write_check(folder: Path, result: Result) -> None:
    """The items a person was asked about, in the order they were drawn in."""
    items = [result.names[row] for row in result.check.rows]
    columns = {"item": items, "label": list(result.check.labels)}
    write_parquet(columns, folder / CHECKED)


def write_items(path: Path, result: Result) -> None:
    """Texts as they are, or the columns used; nothing of other items."""
    items = result.items
    if items is None:
        return
    columns = items.columns if isinstance(items, Table) else {TEXT: items}
    arrays = {name: pa.array(values) for name, values in columns.items()}
    write_parquet(arrays, path)


def write_unfinished(folder: Path, result: Result) -> None:
    """The answer exactly as it is, and what the page is drawn from."""
    arrays = {name: getattr(result.answer, name) for name in (*COLUMNS, "p_known")} | {
        name: getattr(result, name) for name in ("nearest_confidence", "embeddings", "images")
    }
    texts = {"names": result.names, "truth": result.truth, "questions": result.questions}
    arrays["texts"] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    content = {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
    (folder / UNFINISHED).write_bytes(save(content))


# --- reading ---------------------------------------------------------------------------------


def load_result(folder: Path, changes: Mapping[str, Any] | None = None) -> Result:
    """What a run left in ``folder``, checked, or one line on what is wrong with it.

    ``changes`` are settings of the decision; those that are not named stay as they were.
    """
    result, changes = read_result(folder), changes or {}
    if (folder / UNFINISHED).is_file() and not changes:
        return result
    with guarded(folder, COPY_AGAIN):
        settings = change(result.decision, number_classes(changes, result.classes))
        return result.decided(settings)


def load_as_decided(folder: Path) -> Result:
    """The same with the answer that the tables hold: nothing is decided, so it is quick."""
    result = read_result(folder)
    if (folder / UNFINISHED).is_file():
        return result
    return replace(result, answer=read_answer(folder / TABLES[1], result))


def read_result(folder: Path) -> Result:
    """What was measured; where the page is made, all items have their nearest class as yet."""
    check_summary(folder, folder)
    summary, unfinished = read_summary(folder), folder / UNFINISHED
    if not summary.audit and not unfinished.is_file():
        raise DataError(
            f"these are the finished results of a run without seeds (preset {summary.run.preset}), "
            "which keep nothing to decide or draw anew from; classify anew, and with seeds, as "
            "with --preset auto, to decide anew later"
        )
    measured = read_measured(folder, summary.classes, summary.audit) if summary.audit else None
    if unfinished.is_file():
        measured = read_unfinished(unfinished, len(summary.classes), measured)
    assert measured is not None, "one of the two is there"
    names = measured.names
    if len(names) != summary.n_pool:
        raise DataError(
            f"{folder} holds scores of {len(names)} items, but its {SUMMARY} is about "
            f"{summary.n_pool}; {COPY_AGAIN}"
        )
    corrections = NO_CORRECTIONS
    if (folder / CORRECTIONS).exists():
        corrections = read_corrections(folder / CORRECTIONS)
    return Result(
        run=summary.run,
        classes=summary.classes,
        audit=summary.audit,
        **vars(measured),
        check=read_check(folder / CHECKED, names),
        items=read_items(folder / ITEMS, len(names)),
        corrections=corrections,
    )


def read_summary(folder: Path) -> Summary:
    """What the summary in a folder of results says, checked."""
    path = folder / SUMMARY
    record = read_json(path, COPY_AGAIN)
    with guarded(path, COPY_AGAIN):
        return Summary.from_json(record)


@dataclass(frozen=True)
class Measured:
    """The fields of a result that are about its items, one by one."""

    names: list[str]
    truth: list[str] | None
    answer: Answer
    nearest_confidence: np.ndarray
    evidence: Evidence | None = None
    leaves: np.ndarray | None = None
    odds: np.ndarray | None = None
    embeddings: np.ndarray | None = None
    images: np.ndarray | None = None
    questions: tuple[Question, ...] = ()


def read_measured(folder: Path, classes: tuple[str, ...], audit: Audit) -> Measured:
    """What ``write_measured`` wrote; all of the pool are known as yet."""
    pool, seeds = read_columns(folder / SCORES), read_columns(folder / SEEDS)
    with guarded(folder / SEEDS, COPY_AGAIN):
        seed_score, seed_weight = _numbers(seeds["score"]), _weights(seeds["weight"])
        seed_label = _labels(seeds["label"], classes)
        seed_nearest = _labels(seeds["nearest"], classes)
        seed_odds = _numbers(seeds["odds"]) if "odds" in seeds else None
    with guarded(folder / SCORES, COPY_AGAIN):
        evidence = Evidence(
            score=_numbers(pool["score"]),
            nearest=_labels(pool["nearest"], classes),
            nearest_confidence=_numbers(pool["nearest_confidence"]),
            p_value=audit.test.p_value,
            long_tail=audit.test.long_tail,
            sources_differ=audit.sources_remain_apart,
            seed_score=seed_score,
            seed_label=seed_label,
            seed_nearest=seed_nearest,
            seed_weight=seed_weight,
        )
        n = len(evidence.score)
        leaves = _leaves(pool["leaf_if_unknown"], audit)
        if ("odds" in pool) != (seed_odds is not None):
            raise ValueError(f"it has odds where {SEEDS} has none, or the other way round")
        odds = None
        if seed_odds is not None:
            odds = np.concatenate([_numbers(pool["odds"]), seed_odds])
        return Measured(
            names=_texts(pool["item"]),
            truth=_texts(pool["truth"]) if "truth" in pool else None,
            answer=Answer(
                labels=evidence.nearest,
                unknown_score=np.zeros(n),
                confidence=evidence.nearest_confidence,
                groups=np.full(n, -1),
                distinctness=_numbers(pool["distinctness"]),
                filtered=_array(pool["filtered"].cast(pa.uint8())).astype(bool),
                nearest=evidence.nearest,
            ),
            nearest_confidence=evidence.nearest_confidence,
            evidence=evidence,
            leaves=leaves,
            odds=odds,
        )


def read_answer(path: Path, result: Result) -> Answer:
    """The answer in the tables that ``write_tables`` wrote; items that were learnt follow it."""
    table, n = read_columns(path), len(result.names)
    with guarded(path, COPY_AGAIN):
        columns = {name: values.slice(0, n) for name, values in table.items()}
        if _texts(columns["item"]) != result.names:
            raise ValueError("it is not about the items that were measured")
        labels = _labels(columns["label"], (*result.classes, *UNNAMED))
        n_classes = len(result.classes)
        groups = _array(columns["group"], missing=-1).astype(np.int64)
        if (
            groups.min() < -1
            or groups.max() >= n
            or ((labels == n_classes + 1) != (groups >= 0)).any()
        ):
            raise ValueError("it has groups of items that are not unknown, or none of unknown ones")
        return replace(
            result.answer,
            labels=np.where(labels >= n_classes, labels - n_classes + UNSURE, labels),
            unknown_score=_numbers(columns["unknown_score"]),
            confidence=_numbers(columns["confidence"]),
            p_known=_numbers(columns["p_known"]),
            groups=groups,
        )


def read_unfinished(path: Path, n_classes: int, measured: Measured | None) -> Measured:
    """What ``write_unfinished`` wrote, beside what was measured by seeds."""
    content = read_whole(path, largest=LARGEST)
    with guarded(path, COPY_AGAIN):
        arrays = load(content)
        texts = parse_json(arrays.pop("texts").tobytes())
        names, truth = texts["names"], texts["truth"]
        n = len(names)
        columns = [*arrays.values(), *([truth] if truth is not None else [])]
        if any(len(values) != n for values in columns):
            raise ValueError(f"it is not about the {n} items of the pool")
        if not all(np.isfinite(values).all() for values in arrays.values()):
            raise ValueError("it holds values that are no numbers")
        answer = Answer(**{name: arrays[name] for name in COLUMNS}, p_known=arrays.get("p_known"))
        limits = (("labels", UNSURE, n_classes), ("nearest", 0, n_classes), ("groups", -1, n))
        for name, least, end in limits:
            if arrays[name].min() < least or arrays[name].max() >= end:
                raise ValueError(f"its {name} are not from {least} to {end - 1}")
        return Measured(
            names=names,
            truth=truth,
            answer=answer,
            nearest_confidence=arrays["nearest_confidence"],
            evidence=measured.evidence if measured else None,
            leaves=measured.leaves if measured else None,
            odds=measured.odds if measured else None,
            embeddings=arrays["embeddings"],
            images=arrays.get("images"),
            questions=tuple(
                Question(int(item), str(suggested), str(why))
                for item, suggested, why in texts["questions"]
            ),
        )


def read_check(path: Path, names: list[str]) -> Check:
    """What ``write_check`` wrote; nobody was asked where there is no such file."""
    if not path.exists():
        return Check()
    table = read_columns(path)
    with guarded(path, COPY_AGAIN):
        items, labels = _texts(table["item"]), _texts(table["label"])
        row_of = {name: row for row, name in enumerate(names)}
        if len(set(items)) < len(items) or not row_of.keys() >= set(items):
            raise ValueError("it is not about items of the pool, each of them once")
        return Check(tuple(row_of[item] for item in items), tuple(labels))


def read_items(path: Path, n: int) -> np.ndarray | Table | None:
    """What ``write_items`` wrote; None where there is no such file."""
    if not path.exists():
        return None
    found = read_table(path)
    if not isinstance(found.content, np.ndarray | Table) or len(found.names) != n:
        raise DataError(f"{path} holds no texts or rows of {n} items; {COPY_AGAIN}")
    return found.content


def read_columns(path: Path) -> dict[str, pa.ChunkedArray]:
    """The columns of a table with at least one row."""
    check_regular(path)
    with guarded(path, COPY_AGAIN):
        with path.open("rb") as file, pyarrow.parquet.ParquetFile(file) as parquet:
            table = parquet.read()
        if not len(table):
            raise ValueError("it holds no scores")
        return {name: table[name] for name in table.column_names}


def _array(column: pa.ChunkedArray, missing: int | None = None) -> np.ndarray:
    """The numbers of a column. Its ``to_numpy`` would import pandas, if that is installed."""
    if missing is not None and column.null_count:
        return np.array([missing if value is None else value for value in column.to_pylist()])
    return np.from_dlpack(column.combine_chunks())


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values = _array(column)
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError("it holds values that are no numbers")
    return values


def _weights(column: pa.ChunkedArray) -> np.ndarray:
    values = _numbers(column)
    # Wider than any that are measured, and narrow enough for the sum of their squares.
    if values.min() < 1e-9 or values.max() > 1e9:
        raise ValueError("it holds weights that are not from 1e-9 to 1e9")
    return values


def _leaves(column: pa.ChunkedArray, audit: Audit) -> np.ndarray:
    """Leaves of the tree of groups, or one more for scattered items; -1 without groups."""
    values = _array(column, missing=-1)
    least, most = (0, audit.groups.tree.n_leaves) if audit.groups else (-1, -1)
    if values.dtype.kind not in "iu" or values.min() < least or values.max() > most:
        raise ValueError(f"it holds leaves that are not from {least} to {most}")
    return values.astype(np.int64)


def _texts(column: pa.ChunkedArray) -> list[str]:
    values = column.to_pylist()
    if not all(isinstance(value, str) for value in values):
        raise ValueError("it holds names that are no texts")
    return values


def _labels(column: pa.ChunkedArray, classes: tuple[str, ...]) -> np.ndarray:
    number = {name: c for c, name in enumerate(classes)}
    return np.array([number[name] for name in column.to_pylist()], np.int64)
