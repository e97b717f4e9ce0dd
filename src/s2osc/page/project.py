"""A project: results, or a stream and its last window, and what people did with them."""

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from s2osc.app.report import rewrite_results
from s2osc.app.result import Result
from s2osc.app.result_files import load_result
from s2osc.app.results_folder import results_folder, version_of
from s2osc.codec import JsonObject
from s2osc.errors import DataError
from s2osc.files import lock, writing
from s2osc.page.acts import Act, ActStore, Kind
from s2osc.page.ledger import (
    CLASS,
    IGNORE,
    LEAF,
    NONE,
    UNKNOWN,
    Ledger,
    class_target,
    leaves_in,
    regroup,
)
from s2osc.page.operating import LARGEST_RATE, is_called_unknown
from s2osc.page.pool import Pool
from s2osc.pipeline.audit.check import Check, check_order
from s2osc.pipeline.audit.record import CheckedAudit, GroupsAudit
from s2osc.pipeline.audit.wording import cautions, sentence
from s2osc.report.words import groups_in_words, headline
from s2osc.types import UNKNOWN as UNKNOWN_LABEL

FOLDER = ".s2osc-page"
ACTS, THUMBNAILS, TOKEN, LOCK = "acts.sqlite", "thumbnails.sqlite", "token", "lock"


@contextmanager
def page_folder(place: Path) -> Iterator[Path]:
    """The folder of a page beside its results or in its stream, held by one server."""
    folder = place / FOLDER
    with writing(folder, "give results in a place where you may write"):
        folder.mkdir(exist_ok=True)
    busy = f"another page is open on {place}; use that one, or end it first"
    with lock(folder / LOCK, busy):
        yield folder


@dataclass(frozen=True)
class ActRequest:
    """An act that a browser sends."""

    key: str
    by: str
    kind: Kind
    target: str = ""
    rows: tuple[int, ...] = ()
    pool: str = ""  # the key of the pool that was shown; "": whichever is open


class Project:
    """What the page shows and changes. Its methods may be called from any thread."""

    def __init__(self, folder: Path, out: Path | None) -> None:
        self.folder, self.out = folder, out
        self.mutex = threading.RLock()
        self.store = ActStore(folder / ACTS)
        self.pool: Pool | None = None
        self.ledger = Ledger()
        self.open_pool(out)

    def open_pool(self, out: Path | None) -> None:
        """Show the results in a folder as they are now; none: a stream without a window yet."""
        with self.mutex:
            pool = Pool.open(version_of(out), self.folder / THUMBNAILS) if out else None
            if pool:
                pool.prepare()
            if self.pool:
                self.pool.close()
            self.out, self.pool = out, pool
            acts = self.store.read()
            mine = (act for act in acts if pool and act.pool == pool.key)
            self.ledger = Ledger(mine, pool.fit if pool else "")

    def close(self) -> None:
        with self.mutex:
            if self.pool:
                self.pool.close()
            self.store.close()

    @property
    def shown(self) -> str:
        """What a browser must have loaded: another pool or another fit has another value."""
        return f"{self.pool.key}-{self.pool.fit}" if self.pool else ""

    @property
    def opened(self) -> Pool:
        if self.pool is None:
            raise DataError("there is no window yet; drop files onto the page, or give a folder")
        return self.pool

    # --- what is there ---------------------------------------------------------------------------

    def describe(self) -> JsonObject:
        """All that stays as it is until the model learns."""
        with self.mutex:
            pool = self.opened
            result, audit = pool.result, pool.result.audit
            assert audit is not None
            groups = groups_in_words(result.answer, audit)
            return {
                "title": result.run.title,
                "kind": pool.kind,
                "n": pool.n,
                "classes": list(result.classes),
                "pool": pool.key,
                "shown": self.shown,
                "headline": headline(result.answer, groups),
                "sentence": sentence(audit),
                "warnings": [*result.run.notes, *(caution.text for caution in cautions(audit))],
                "nothing_unknown": audit.nothing_unknown,
                "operating_point": audit.operating_point,
                "points": asdict(pool.points),
                "profiles": [asdict(profile) for profile in result.profiles],
                "is_crisp": pool.drawing.is_crisp,
                "map": pool.drawing.map.method,
                "missing": pool.why_missing,
                "folder": str(self.out),
            }

    def structure(self) -> JsonObject:
        """Groups and operating point, which acts may change."""
        found = self.groups()
        return {
            "group_of_leaf": found.group_of_leaf.tolist() if found else [],
            "n_groups": found.number if found else 0,
            "certainty": [round(each, 3) for each in found.certainty] if found else [],
            "operating_point": self.ledger.operating_point(),
        }

    def groups(self) -> GroupsAudit | None:
        """The groups after all that was merged and split."""
        audit = self.opened.result.audit
        found = audit.groups if audit else None
        if found is None:
            return None
        return replace(found, groups=self.ledger.regrouped(found.tree, found.groups))

    def changes(self, since: int) -> JsonObject:
        """What acts after one have changed, for a browser that knows all acts up to it."""
        with self.mutex:
            if self.pool is None:
                return {"act": 0, "shown": "", "people": []}
            changed = self.ledger.changes_since(since)
            targets = list(dict.fromkeys(change.target for change in changed))
            number = {target: place for place, target in enumerate(targets)}
            return {
                "act": self.ledger.last,
                "shown": self.shown,
                "rows": [change.row for change in changed],
                "targets": targets,
                "target": [number[change.target] for change in changed],
                "disputed": [change.row for change in changed if change.disputed],
                "structure": self.structure()
                if since == 0 or self.ledger.touches_groups_since(since)
                else None,
                "people": self.ledger.people(),
            }

    def item(self, row: int) -> JsonObject:
        """An item in full, with the label of each person."""
        with self.mutex:
            if not 0 <= row < self.opened.n:
                raise DataError(f"there is no item {row}")
            labels = [label._asdict() for label in self.ledger.labels_of(row).values()]
            return self.opened.details(row, self.answered()[0] >= 0) | {"labels": labels}

    # --- what people do --------------------------------------------------------------------------

    def act(self, request: ActRequest) -> Act:
        """Do what a person asks for. It is on the disk when this returns; twice counts once."""
        with self.mutex:
            if before := self.store.find(request.key):
                return before
            if request.pool not in ("", self.opened.key):
                raise DataError("that was about other items than those that are open now")
            undoes, target = None, request.target
            if request.kind in ("undo", "redo"):
                undoes = self._to_take_back(request).id
            else:
                target = self._checked_target(request)
            act = self.store.append(
                key=request.key,
                by=request.by,
                kind=request.kind,
                pool=self.opened.key,
                fit=self.opened.fit,
                target=target,
                rows=self._checked_rows(request.rows),
                undoes=undoes,
            )
            self.ledger.add(act)
            return act

    def note_learning(self, by: str, rows: Sequence[int]) -> None:
        """Note that the model learnt from the labels of these items."""
        with self.mutex:
            act = self.store.append(
                key=uuid.uuid4().hex,
                by=by,
                kind="learn",
                pool=self.opened.key,
                fit=self.opened.fit,
                rows=np.array(rows),
            )
            self.ledger.add(act)

    def _to_take_back(self, request: ActRequest) -> Act:
        find = self.ledger.to_undo if request.kind == "undo" else self.ledger.to_redo
        found = find(request.by)
        if found is None:
            raise DataError(f"there is nothing to {request.kind}")
        return found

    def _checked_rows(self, rows: Sequence[int]) -> np.ndarray:
        array = np.array(rows, np.int64)
        if len(array) and (array.min() < 0 or array.max() >= self.opened.n):
            raise DataError(f"there are items from 0 to {self.opened.n - 1} alone")
        return array

    def _checked_target(self, request: ActRequest) -> str:
        """The target as it is stored, or one line on what is wrong with it."""
        kind, target = request.kind, request.target
        if kind == "decide":
            return self._checked_rate(target)
        if kind in ("merge", "split"):
            found = self.groups()
            if found is None:
                raise DataError("there are no groups to change")
            regroup(found.tree, found.groups, kind, leaves_in(target))  # or say why not
            return target
        if not request.rows:
            raise DataError("select at least one item")
        if target.startswith(CLASS):
            return class_target(target.removeprefix(CLASS), self.class_names())
        if target.startswith(LEAF):
            found = self.groups()
            leaf = target.removeprefix(LEAF)
            if found is None or not leaf.isdecimal() or int(leaf) >= len(found.group_of_leaf):
                raise DataError(f"there is no group with the leaf {leaf!r:.20}")
            return target
        if target not in (UNKNOWN, IGNORE, NONE):
            raise DataError(f"items cannot become {target!r:.50}")
        return target

    def _checked_rate(self, target: str) -> str:
        try:
            rate = float(target)
        except ValueError:
            rate = -1.0
        if not 0 < rate <= LARGEST_RATE:
            raise DataError(f"the operating point is {target!r:.20}; give a share up to 0.5")
        return repr(rate)

    def class_names(self) -> list[str]:
        """Known classes, then new ones in the order they were named in."""
        found = dict.fromkeys(self.opened.result.classes)
        for _, label in self.ledger.labelled():
            if label.target.startswith(CLASS):
                found.setdefault(label.target.removeprefix(CLASS))
        return list(found)

    def check(self, n: int) -> JsonObject:
        """The first ``n`` items of the random check, their labels, and what these say so far."""
        with self.mutex:
            pool, checked = self.opened, self.check_labels()
            labels = {int(pool.answered[row]): label for row, label in checked.items()}
            check = asked_about(pool.result, labels).labelled(labels)
            answers = self.answered()[0][pool.rows]
            measured = check.measure(answers, pool.result.classes)
            rows = pool.check_rows(max(n, len(check.rows)))
            return {
                "rows": rows,
                "labels": {row: label for row, label in checked.items() if row in set(rows)},
                "figures": figures_of(measured) if measured else [],
            }

    def agreement(self) -> JsonObject:
        """How people agree, class by class."""
        with self.mutex:
            found = self.ledger.agreement()
            kappa = [[target.removeprefix(CLASS), value] for target, value in found.kappa.items()]
            return {"n_items": found.n_items, "n_disputed": found.n_disputed, "kappa": kappa}

    # --- into the results ------------------------------------------------------------------------

    def write_results(self) -> Result:
        """Bring the results on the disk to the operating point, groups and checks of the page."""
        with self.mutex:
            assert self.out is not None
            rate, found = self.ledger.operating_point(), self.groups()
            changes = {"rule": "seeds", "aim": "recall", "false_alarm": rate} if rate else {}
            checked = self.check_labels()
            with results_folder(self.out, update=True) as folder:
                result = load_result(folder.version, changes)
                answered = self.opened.answered
                labels = {int(answered[row]): label for row, label in checked.items()}
                check = asked_about(result, labels).labelled(labels)
                result = replace(result, check=check)
                if found and result.audit:
                    result = replace(result, audit=replace(result.audit, groups=found))
                result = result.decided(result.decision)
                rewrite_results(folder, result)
            return result

    def check_labels(self) -> dict[int, str]:
        """The labels that people gave to random items, by row."""
        return {
            row: UNKNOWN if label.target.startswith(LEAF) else label.target.removeprefix(CLASS)
            for row, label in self.ledger.checked().items()
        }

    def answered(self) -> tuple[np.ndarray, np.ndarray]:
        """(N,) labels of the model at the operating point of the page, and groups."""
        pool, rate, found = self.opened, self.ledger.operating_point(), self.groups()
        labels = pool.decided
        if rate is not None:
            labels = np.where(is_called_unknown(pool.p_known, rate), UNKNOWN_LABEL, pool.nearest)
        if found is None:
            return labels, np.full(len(labels), -1)
        return labels, np.where(labels == UNKNOWN_LABEL, found.group_of_leaf[pool.leaf], -1)


def asked_about(result: Result, labels: Mapping[int, str]) -> Check:
    """The check of a result, long enough to hold these rows, as far as they were drawn."""
    order = check_order(len(result.names), result.run.seed).tolist()
    needed = max((order.index(row) + 1 for row in labels), default=0)
    n_more = max(0, needed - len(result.check.rows))
    return result.check.asked(n_more, n_pool=len(order), seed=result.run.seed)


FIGURES = {
    "accuracy": "right answers",
    "unknown_share": "unknown share of the pool",
    "false_alarm": "known items called unknown",
    "unknown_recall": "unknown items found",
}


def figures_of(measured: CheckedAudit) -> list[JsonObject]:
    """What random labels say, each with its interval."""
    estimates = {words: getattr(measured, name) for name, words in FIGURES.items()}
    return [
        {"name": words} | estimate._asdict() for words, estimate in estimates.items() if estimate
    ]
