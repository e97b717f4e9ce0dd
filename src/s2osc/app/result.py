"""What was found about a pool: one value, and the files of a result folder it is saved in.

    predictions.csv, .parquet    the answer, one row per item
    summary.json                 counts, audit, metrics, settings, seconds
    scores.parquet               what was measured about each item of the pool, and
    seeds.parquet                about each seed: no decision changes either
    checked.parquet              items of the pool that a person was asked about, and their labels
    corrections.csv              what a person said about items of the pool before the fit
    items.parquet                the texts of the pool, or the columns used; none of other items
    report.html                  the page, and in report.safetensors what it was drawn from
    model/                       the model (``pipeline/storage.py``)

Nothing here needs torch, but saving a model: deciding anew is a matter of a second.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from safetensors.numpy import load, save

from s2osc.app.corrections import (
    NO_CORRECTIONS,
    Corrections,
    corrections_table,
    read_corrections,
)
from s2osc.app.origin import Origin
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
from s2osc.codec import from_plain, to_plain
from s2osc.data.columns import Columns, Table
from s2osc.data.inputs import UNKNOWN_NAME, UNSURE_NAME, Skipped
from s2osc.data.tables import TEXT, read_table
from s2osc.errors import DataError
from s2osc.files import check_regular, guarded, parse_json, read_json, read_whole
from s2osc.metrics import evaluate_by_name
from s2osc.pipeline.audit.check import Check
from s2osc.pipeline.audit.decision import DecisionSettings, Evidence, decide, number_classes
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import cautions, tell
from s2osc.pipeline.grouping.typical import GroupProfile, profile_groups
from s2osc.pipeline.model_description import Preparation
from s2osc.report.drawing import Question
from s2osc.settings import change, flatten
from s2osc.text import clean_text, csv_cell, shortened
from s2osc.types import UNKNOWN, UNSURE, Answer

if TYPE_CHECKING:
    from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel

UNNAMED = (UNSURE_NAME, UNKNOWN_NAME)
"""What -2 and -1 are called: read backwards from the names of the known classes."""
DECISION = "decision."
"""How the names of settings begin that another decision may change."""
COPY_AGAIN = "copy the result folder again or classify anew"
LARGEST = 2**36  # bytes of what the page is drawn from
PROGRAM, PERSON = "s2osc", "a person"
"""Who labelled an item, where nobody says more."""
LONGEST_TEXT = 1_000
"""Characters of a text that tables and pages show."""
ASKED_BEFORE = (
    "The groups were changed after the window was answered. The stream and the questions in "
    "queries.csv have them as they were found."
)
COLUMNS = ("labels", "unknown_score", "confidence", "groups", "distinctness", "filtered", "nearest")
FACTS: dict[str, Any] = {
    "title": str,
    "k": int,
    "steps": dict[str, int],
    "preset": str,
    "settings": dict[str, Any],
    "shape": str,
    "backbone": str | None,
    "seed": int,
    "device": str,
    "versions": dict[str, str],
    "seconds": dict[str, float],
}
"""The fields of a result that stand in its summary as they are, and their types."""


@dataclass(frozen=True, eq=False)
class Result:
    """All that was found about a pool of n items by m seeds, and how it came about."""

    title: str
    names: list[str]  # (n,)
    truth: list[str] | None  # (n,) the class of each item, "" where it came with none
    classes: tuple[str, ...]
    answer: Answer
    nearest_confidence: np.ndarray  # (n,) of ``answer.nearest``, given that the item is known
    evidence: Evidence | None  # of every decision; None without seeds, as are the next three
    leaves: np.ndarray | None  # (n,) of the tree of groups, were it unknown; -1: no groups
    audit: Audit | None  # its classes named
    odds: np.ndarray | None  # (n + m,) log-odds of g for pool and seeds; None: no student
    n_known: int
    n_skipped: int
    notes: tuple[str, ...]  # warnings about the run; those about the audit come from the audit
    k: int
    steps: dict[str, int]  # of training
    preset: str
    settings: dict[str, Any]  # hyper-parameters by name
    shape: str  # of the items, in words
    backbone: str | None
    seed: int
    device: str
    versions: dict[str, str]
    seconds: dict[str, float]
    embedding: str | None = None  # that texts went through
    columns: Columns | None = None  # of a table
    stream: dict[str, Any] | None = None  # where in a stream this is
    origin: Origin | None = None  # None: of an earlier version
    corrections: Corrections = NO_CORRECTIONS  # what a person said before the fit
    check: Check = Check()  # what a person was asked about, and said
    items: np.ndarray | Table | None = None  # (n,) texts, or rows; None for images and vectors
    # What the page is drawn from, until it is.
    embeddings: np.ndarray | None = None  # (n, d)
    images: np.ndarray | None = None  # (n, H, W[, 3]) uint8; None for vectors
    questions: tuple[Question, ...] = ()
    # Of a new fit alone.
    model: "OpenSetModel | KnownOnlyModel | None" = None
    preparation: Preparation | None = None  # of the model's items
    skipped: tuple[Skipped, ...] = ()

    @property
    def decision(self) -> DecisionSettings:
        """The settings that the pool was decided by."""
        own = {n: v for n, v in self.settings.items() if n.startswith(DECISION)}
        return change(DecisionSettings(), {n.removeprefix(DECISION): v for n, v in own.items()})

    @cached_property
    def texts(self) -> list[str] | None:
        """What a person reads of each item; None where there are pictures, or only numbers."""
        return texts_of(self.items)

    @cached_property
    def profiles(self) -> tuple[GroupProfile, ...]:
        """What is typical of each group."""
        return profile_groups(self.answer, self.classes, self.items)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The answer against the truth that the pool came with; empty without."""
        return evaluate_by_name(self.answer, self.classes, self.truth)

    def decided(self, settings: DecisionSettings) -> "Result":
        """The result of another operating point. Nothing is trained."""
        if self.evidence is None or self.audit is None or self.leaves is None:
            raise DataError(
                f"these are the results of a run without seeds (preset {self.preset}), so there is "
                "nothing to decide anew from; classify with seeds, such as with --preset auto"
            )
        decision = decide(self.evidence, settings, seed=self.seed)
        answer = replace(
            self.answer,
            labels=decision.labels,
            unknown_score=decision.unknown_score,
            confidence=decision.confidence,
            p_known=decision.p_known,
            groups=np.where(decision.labels == UNKNOWN, self._groups_if_unknown(), -1),
        )
        answer = self.as_corrected(answer)
        audit = decision.audit.named(self.classes).of_same_fit(self.audit)
        return replace(
            self,
            answer=answer,
            audit=replace(audit, checked=self.check.measure(answer.labels, self.classes)),
            settings=self.settings
            | {DECISION + n: to_plain(v) for n, v in flatten(settings).items()},
        )

    def as_corrected(self, answer: Answer) -> Answer:
        """The answer with the items unknown that a person calls so, each in its nearest group.

        Where there are no groups to be near to, they are one of their own.
        """
        sure = self.corrections.is_unknown(self.names)
        if not sure.any():
            return answer
        groups = np.where(sure & (answer.groups < 0), self._groups_if_unknown(), answer.groups)
        new_group = int(groups.max()) + 1
        return replace(
            answer,
            labels=np.where(sure, UNKNOWN, answer.labels),
            confidence=np.where(sure, 1.0, answer.confidence),
            groups=np.where(sure & (groups < 0), new_group, groups),
        )

    def _groups_if_unknown(self) -> np.ndarray:
        """(n,) the group of each item, were it unknown; -1: no groups."""
        if self.audit is None or self.audit.groups is None or self.leaves is None:
            return np.full(len(self.names), -1)
        return self.audit.groups.group_of_leaf[self.leaves]

    def regrouped(
        self, n: int | None = None, *, merge: Sequence[int] = (), split: int | None = None
    ) -> "Result":
        """The result with other groups. Nothing is trained, and nothing else changes."""
        found = self.audit.groups if self.audit else None
        if self.audit is None or found is None:
            raise DataError(
                "there is nothing to group in these results: nothing is unknown in them, or they "
                f"are of a run without seeds (preset {self.preset})"
            )
        groups = found.tree.regroup(found.groups, n, merge=merge, split=split)
        audit = replace(self.audit, groups=replace(found, groups=groups))
        asked = (ASKED_BEFORE,) if self.stream and ASKED_BEFORE not in self.notes else ()
        return replace(self, audit=audit, notes=self.notes + asked).decided(self.decision)

    def summary(self, *, words: bool = True) -> dict[str, Any]:
        """What ``summary.json`` holds; without ``words`` the audit has figures alone."""
        audit = self.audit
        limits = cautions(audit) if audit and words else []
        counts = {"known": self.n_known, "pool": len(self.names), "skipped": self.n_skipped}
        return {
            "title": self.title,
            "items": counts,
            "audit": audit and (tell(audit) if words else audit.to_json()),
            "counts": count_labels(self.answer, self.classes),
            **({"groups": to_plain(self.profiles)} if self.profiles and words else {}),
            **({"metrics": self.metrics} if self.metrics else {}),
            "warnings": [*self.notes, *(caution.text for caution in limits)],
            "warning_codes": [*[None] * len(self.notes), *(caution.code for caution in limits)],
            **{name: getattr(self, name) for name in FACTS if name not in ("title", "seconds")},
            **({"embedding": self.embedding} if self.embedding else {}),
            **({"columns": to_plain(self.columns)} if self.columns else {}),
            **({"stream": self.stream} if self.stream else {}),
            **({"origin": to_plain(self.origin)} if self.origin else {}),
            **({"corrections": self._corrections_in_numbers()} if self.corrections else {}),
            "seconds": self.seconds,
        }

    def _corrections_in_numbers(self) -> dict[str, Any]:
        named = self.corrections.sizes()
        return {"labelled": named, "unknown": len(self.corrections.rows) - sum(named.values())}

    def save(self, folder: Path) -> None:
        """Write a new fit, without words and page; ``UNFINISHED`` has what these need."""
        write_summary(folder, self.summary(words=False))
        write_tables(folder, self)
        write_measured(folder, self)
        write_unfinished(folder, self)
        write_items(folder / ITEMS, self)
        if self.corrections:
            (folder / CORRECTIONS).write_bytes(corrections_table(self.corrections))
        if self.skipped:
            write_skipped(folder / SKIPPED, self.skipped)
        if self.model is not None:
            from s2osc.pipeline.storage import save_model  # noqa: PLC0415  (it loads torch)

            save_model(folder / MODEL, self.model, self.classes, self.preparation)

    @classmethod
    def load(cls, folder: Path, changes: Mapping[str, Any] | None = None) -> "Result":
        """What a run left in ``folder``, checked, or one line on what is wrong with it.

        ``changes`` are settings of the decision; those that are not named stay as they were.
        """
        result, changes = cls._measured(folder), changes or {}
        if (folder / UNFINISHED).is_file() and not changes:
            return result
        with guarded(folder, COPY_AGAIN):
            settings = change(result.decision, number_classes(changes, result.classes))
            return result.decided(settings)

    @classmethod
    def load_as_decided(cls, folder: Path) -> "Result":
        """The same with the answer that the tables hold: nothing is decided, so it is quick."""
        result = cls._measured(folder)
        if (folder / UNFINISHED).is_file():
            return result
        return replace(result, answer=read_answer(folder / TABLES[1], result))

    @classmethod
    def _measured(cls, folder: Path) -> "Result":
        """What was measured; where the page is made, all items have their nearest class as yet."""
        check_summary(folder, folder)
        summary, unfinished = read_json(folder / SUMMARY, COPY_AGAIN), folder / UNFINISHED
        with guarded(folder / SUMMARY, COPY_AGAIN):
            facts = read_facts(summary)
            audit, classes = facts["audit"], facts["classes"]
        if not audit and not unfinished.is_file():
            raise DataError(
                f"these are the finished results of a run without seeds (preset {facts['preset']}),"
                " which keep nothing to decide or draw anew from; classify anew, and with seeds, "
                "such as with --preset auto, to decide anew later"
            )
        measured: dict[str, Any] = {"evidence": None, "leaves": None, "odds": None}
        if audit:
            measured = read_measured(folder, classes, audit)
        if unfinished.is_file():
            measured |= read_unfinished(unfinished, len(classes))
        if len(measured["names"]) != summary["items"]["pool"]:
            raise DataError(
                f"{folder} holds scores of {len(measured['names'])} items, but its {SUMMARY} is "
                f"about {summary['items']['pool']}; {COPY_AGAIN}"
            )
        check = read_check(folder / CHECKED, measured["names"])
        items = read_items(folder / ITEMS, len(measured["names"]))
        corrections = NO_CORRECTIONS
        if (folder / CORRECTIONS).exists():
            corrections = read_corrections(folder / CORRECTIONS)
        return cls(**facts, **measured, check=check, items=items, corrections=corrections)


def skipped_note(skipped: Sequence[Skipped], where: str) -> list[str]:
    """One sentence on items that were left out, or none."""
    if not skipped:
        return []
    items = "1 item was" if len(skipped) == 1 else f"{len(skipped):,} items were"
    return [f"{items} skipped (first: {skipped[0].name}, {skipped[0].reason}); {where}"]


def texts_of(items: np.ndarray | Table | None) -> list[str] | None:
    """Texts, each on one line and not too long, or rows of a table in words; None of others."""
    if items is None:
        return None
    if isinstance(items, Table):
        return items.in_words()
    return [clean_text(shortened(text, LONGEST_TEXT)) for text in items]


def count_labels(answer: Answer, classes: Sequence[str]) -> dict[str, Any]:
    """Items per known class, unknown ones, those per group, and unsure ones."""
    groups = np.bincount(answer.groups[answer.is_unknown])
    return {
        "known": {name: int(np.sum(answer.labels == c)) for c, name in enumerate(classes)},
        "unknown": int(answer.is_unknown.sum()),
        "groups": {str(group): int(count) for group, count in enumerate(groups)},
        "unsure": int(answer.is_unsure.sum()),
    }


# --- writing ---------------------------------------------------------------------------------


def write_csv(table: pa.Table, target: Any) -> None:
    """Write a table whose texts no spreadsheet takes for formulas."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(name).type):
            cells = [text and csv_cell(text) for text in table[name].to_pylist()]
            table = table.set_column(place, name, pa.array(cells, pa.string()))
    pyarrow.csv.write_csv(table, target)


TABLE_WRITERS = {
    ".csv": write_csv,
    ".parquet": pyarrow.parquet.write_table,
}


def table_bytes(
    suffix: str,
    *,
    names: list[str],
    texts: list[str] | None = None,
    answer: Answer,
    nearest_confidence: np.ndarray,
    operating_points: np.ndarray | None,
    classes: Sequence[str],
    corrections: Corrections = NO_CORRECTIONS,
) -> bytes:
    """One row per item, as the content of a .csv or .parquet file.

    An item is unknown where ``p_known`` is at most ``operating_point``, so neither is rounded.
    The operating point differs where known classes have limits of their own. Where a person gave
    corrections, items that joined the labelled ones follow, and it is said who labelled each item.
    """
    n = len(names)
    label_names = np.array([*classes, *UNNAMED], object)
    columns: dict[str, Any] = {
        "item": names,
        **({"text": texts} if texts is not None else {}),
        "label": label_names[answer.labels],
        "group": pa.array(answer.groups, mask=answer.groups < 0),
        "confidence": answer.confidence.astype(np.float32),
        "nearest": label_names[answer.nearest],
        "nearest_confidence": nearest_confidence.astype(np.float32),
        "p_known": pa.nulls(n, pa.float64()) if answer.p_known is None else answer.p_known,
        "operating_point": pa.nulls(n, pa.float64())
        if operating_points is None
        else operating_points,
        "unknown_score": answer.unknown_score.astype(np.float32),
        "distinctness": answer.distinctness.astype(np.float32),
        "filtered": answer.filtered,
    }
    table = pa.table(columns)
    if corrections:
        table = with_corrections(table, corrections)
    content = io.BytesIO()
    TABLE_WRITERS[suffix](table, content)
    return content.getvalue()


def with_corrections(table: pa.Table, corrections: Corrections) -> pa.Table:
    """A table of answers with the items that a person gave a class, and who labelled each item."""
    by_item, named = corrections.of_items(), corrections.named
    given: dict[str, list[Any]] = {
        "item": [row.item for row in named],
        "label": [row.label for row in named],
        "confidence": [1.0] * len(named),
        "nearest": [row.label for row in named],
    }
    types = {name: table.schema.field(name).type for name in given}
    more = pa.table({name: pa.array(cells, types[name]) for name, cells in given.items()})
    whole = pa.concat_tables([table, more], promote_options="default")
    said = [by_item.get(name) for name in whole["item"].to_pylist()]
    by = [PROGRAM if row is None else row.by or PERSON for row in said]
    at = [None if row is None else row.at or None for row in said]
    return whole.append_column("labelled_by", pa.array(by)).append_column(
        "labelled_at", pa.array(at, pa.string())
    )


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


def write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    columns = {"item": [s.name for s in skipped], "reason": [s.reason for s in skipped]}
    write_csv(pa.table(columns), path)


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    text = json.dumps(summary, indent=2, ensure_ascii=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")


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
    pyarrow.parquet.write_table(pa.table(pool), folder / SCORES)
    pyarrow.parquet.write_table(pa.table(seeds), folder / SEEDS)


def write_check(folder: Path, result: Result) -> None:
    """The items a person was asked about, in the order they were drawn in."""
    items = [result.names[row] for row in result.check.rows]
    columns = {"item": items, "label": list(result.check.labels)}
    pyarrow.parquet.write_table(pa.table(columns), folder / CHECKED)


def write_items(path: Path, result: Result) -> None:
    """Texts as they are, or the columns used; nothing of other items."""
    items = result.items
    if items is None:
        return
    columns = items.columns if isinstance(items, Table) else {TEXT: items}
    arrays = {name: pa.array(values) for name, values in columns.items()}
    pyarrow.parquet.write_table(pa.table(arrays), path)


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


def read_facts(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result that its summary holds; a ValueError where it does not."""
    texts = from_plain(tuple[str, ...], summary["warnings"], "warnings")
    items = from_plain(dict[str, int], summary["items"], "items")
    classes = tuple(summary["counts"]["known"])
    if len(classes) < 1:
        raise ValueError("it counts no known class")
    codes = summary.get("warning_codes", [])[: len(texts)]
    return {
        **{name: from_plain(kind, summary[name], name) for name, kind in FACTS.items()},
        "n_known": items["known"],
        "n_skipped": items["skipped"],
        "classes": classes,
        "audit": Audit.from_json(summary["audit"]) if summary["audit"] else None,
        "notes": tuple(text for text, code in zip_longest(texts, codes) if code is None),
        "embedding": from_plain(str | None, summary.get("embedding"), "embedding"),
        "columns": from_plain(Columns | None, summary.get("columns"), "columns"),
        "stream": from_plain(dict[str, Any] | None, summary.get("stream"), "stream"),
        "origin": from_plain(Origin | None, summary.get("origin"), "origin"),
    }


def read_measured(folder: Path, classes: tuple[str, ...], audit: Audit) -> dict[str, Any]:
    """What ``write_measured`` wrote, as fields of a result; all of the pool are known as yet."""
    pool, seeds = read_columns(folder / SCORES), read_columns(folder / SEEDS)
    with guarded(folder / SEEDS, COPY_AGAIN):
        of_seeds: dict[str, Any] = {
            "seed_score": _numbers(seeds["score"]),
            "seed_label": _labels(seeds["label"], classes),
            "seed_nearest": _labels(seeds["nearest"], classes),
            "seed_weight": _weights(seeds["weight"]),
        }
        seed_odds = _numbers(seeds["odds"]) if "odds" in seeds else None
    with guarded(folder / SCORES, COPY_AGAIN):
        evidence = Evidence(
            score=_numbers(pool["score"]),
            nearest=_labels(pool["nearest"], classes),
            nearest_confidence=_numbers(pool["nearest_confidence"]),
            p_value=audit.test.p_value,
            sources_differ=audit.sources_remain_apart,
            **of_seeds,
        )
        n = len(evidence.score)
        leaves = _leaves(pool["leaf_if_unknown"].fill_null(-1), audit)
        if ("odds" in pool) != (seed_odds is not None):
            raise ValueError(f"it has odds where {SEEDS} has none, or the other way round")
        return {
            "names": _texts(pool["item"]),
            "truth": _texts(pool["truth"]) if "truth" in pool else None,
            "answer": Answer(
                labels=evidence.nearest,
                unknown_score=np.zeros(n),
                confidence=evidence.nearest_confidence,
                groups=np.full(n, -1),
                distinctness=_numbers(pool["distinctness"]),
                filtered=pool["filtered"].to_numpy().astype(bool),
                nearest=evidence.nearest,
            ),
            "nearest_confidence": evidence.nearest_confidence,
            "evidence": evidence,
            "leaves": leaves,
            "odds": None
            if seed_odds is None
            else np.concatenate([_numbers(pool["odds"]), seed_odds]),
        }


def read_answer(path: Path, result: Result) -> Answer:
    """The answer in the tables that ``write_tables`` wrote; items that were learnt follow it."""
    table, n = read_columns(path), len(result.names)
    with guarded(path, COPY_AGAIN):
        columns = {name: values.slice(0, n) for name, values in table.items()}
        if _texts(columns["item"]) != result.names:
            raise ValueError("it is not about the items that were measured")
        labels = _labels(columns["label"], (*result.classes, *UNNAMED))
        n_classes = len(result.classes)
        groups = columns["group"].fill_null(-1).to_numpy().astype(np.int64)
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


def read_unfinished(path: Path, n_classes: int) -> dict[str, Any]:
    """What ``write_unfinished`` wrote, as fields of a result."""
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
        return {
            "names": names,
            "truth": truth,
            "answer": answer,
            "nearest_confidence": arrays["nearest_confidence"],
            "embeddings": arrays["embeddings"],
            "images": arrays.get("images"),
            "questions": tuple(
                Question(int(item), str(suggested), str(why))
                for item, suggested, why in texts["questions"]
            ),
        }


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
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
        if not len(table):
            raise ValueError("it holds no scores")
        return {name: table[name] for name in table.column_names}


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values = column.to_numpy()
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
    values = column.to_numpy()
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
