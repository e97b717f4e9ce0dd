"""The main job for a pool that is read in parts: never more than a few batches are in memory.

    strata      how strange every item is (``pipeline/sampling.py``), part by part
    fit         on a sample, with the judges of the whole pool (``pipeline/large_pool``)
    answer      part by part, each written as it comes

A run that was stopped goes on at the part where it was.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from s2osc.app.answer_tables import skipped_note, write_skipped
from s2osc.app.extract import Representation, named_backbone
from s2osc.app.part_work import (
    NOTHING,
    Answered,
    AnswerWorker,
    PartCounts,
    PartReader,
    SampleWorker,
    StrataWorker,
    rows_in,
)
from s2osc.app.representation import choose_representation
from s2osc.app.request import Request, check_request, choose_method
from s2osc.app.result_files import write_summary
from s2osc.app.run_folder import GOES_ON, RunFolder, Use, run_folder
from s2osc.app.run_record import RunRecord
from s2osc.app.summary import LabelCounts, PartFacts, Summary
from s2osc.codec import JsonObject
from s2osc.data.columns import Table
from s2osc.data.inputs import Items, OpenKnown, encode_labels, open_known_beside
from s2osc.data.parts import Part, PartedPool, count_rows, is_parted, open_parts
from s2osc.engine.engine import Engine, LocalEngine, Recipe
from s2osc.errors import collect_warnings
from s2osc.files import guarded, read_json, writing
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.threshold import DecisionSettings
from s2osc.pipeline.large_pool.answer import LargeFit, answer_items
from s2osc.pipeline.large_pool.fit import fit_sample
from s2osc.pipeline.large_pool.plan import (
    N_JUDGED,
    Plan,
    Sample,
    draw_compared,
    draw_judged,
    draw_sample,
    plan_fit,
)
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model_description import read_thresholds, write_thresholds
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.storage import load_model, save_model
from s2osc.progress import Stopwatch, counting, track
from s2osc.settings import flatten
from s2osc.text import clean_text
from s2osc.types import Labelled
from s2osc.version import versions

SKIPPED_NAMED = 1_000
"""Items that could not be read and are named in ``skipped.csv``."""
MOST_JUDGED_BYTES = 2**28
"""Of the items, drawn evenly, that judge the fit: with wide vectors there are fewer of them."""


def parts_of_pool(pool: Path | str, request: Request) -> PartedPool | None:
    """The pool in parts, if it has such a form or is large; None: it is read into memory."""
    if is_parted(pool):
        return open_parts(pool, request.text_column)
    path = Path(pool)
    if path.exists() and count_rows(path) > N_JUDGED:
        return open_parts(pool, request.text_column)
    return None


@dataclass(frozen=True)
class LargeRun:
    """One run on a pool in parts: what it is of, and where it works."""

    pool: PartedPool
    method: S2OSCMethod
    preset: str
    request: Request
    device: str
    represented: Representation
    labelled: np.ndarray | Table  # items as they were read
    known: Labelled  # the same as the networks get them
    classes: tuple[str, ...]
    folder: RunFolder
    engine: Engine
    clock: Stopwatch

    @property
    def reader(self) -> PartReader:
        return PartReader(self.pool, self.represented, self.request.max_megapixels)

    def over_parts(self, step: str, recipe: Recipe, todo: Sequence[Part]) -> None:
        """Let workers work on parts; those that are not to do count as done."""
        n_done = self.pool.n - sum(part.n for part in todo)
        with self.clock(step):
            if todo:
                with counting(step, self.pool.n, n_done) as advance:
                    for n_rows in self.engine.run(recipe, todo):
                        advance(n_rows)
        self.clock.count(step, self.pool.n - n_done)

    def fit(self) -> LargeFit:
        """The fit that a stopped run left, or a new one."""
        if not self.folder.decision(self.pool.mark()).is_file():
            by_raw, facts = self.match_raw(), self.request
            known = self.known if by_raw is None else by_raw.training
            plan = plan_fit(known, self.method.seeds, fit_on=facts.fit_on, seed=facts.seed)
            self.save(self.fit_plan(plan, by_raw))
        return self.load()

    def match_raw(self) -> Matched | None:
        """Photos or texts compared as such, before they become features; None of other items."""
        if not self.represented.has_raw or not isinstance(self.labelled, np.ndarray):
            return None
        seed, items = self.request.seed, list[Items]()
        with self.clock("sources"):
            rows = draw_compared(self.pool.n, self.labelled[:1].nbytes, seed=seed)
            for part in track(self.pool.parts, "reading items to compare"):
                if len(wanted := rows_in(rows, part)):
                    found = self.reader.batches(part, wanted)
                    items += [batch.items for batch in found if len(batch.items)]
            if not items:
                return None
            some = np.concatenate([np.asarray(each.inputs) for each in items])
            raw = self.represented.raw(self.labelled, some)
            features = self.represented.inputs(some, Stopwatch())
            return self.method.match_raw(self.known, features, raw, seed=seed)

    def fit_plan(self, plan: Plan, by_raw: Matched | None) -> LargeFit:
        """Strangeness of all, then the sample, then the fit."""
        parts, item_bytes = self.pool.parts, self.known.inputs[:1].nbytes
        judged = draw_judged(plan, self.pool.n, min(N_JUDGED, MOST_JUDGED_BYTES // item_bytes))
        worker = StrataWorker(self.reader, plan.strangeness, judged, self.folder)
        places = [self.folder.strata(part.number, self.pool.mark(part)) for part in parts]
        todo = [part for part, place in zip(parts, places, strict=True) if not place.is_file()]
        self.over_parts("strangeness", lambda: worker, todo)
        strata = np.concatenate(
            [self.folder.read_strata(part.number, self.pool.mark(part)) for part in parts]
        )
        sample = draw_sample(plan, strata, judged)
        self.gather(np.setdiff1d(sample.pool, sample.judged, assume_unique=True))
        sampled, of_judged = self.read_drawn(sample)
        with self.engine.training():
            return fit_sample(
                self.method,
                plan,
                sample,
                sampled,
                of_judged,
                self.clock,
                by_raw=by_raw,
                device=self.device,
            )

    def gather(self, rows: np.ndarray) -> None:
        """Write the items of the sample that do not judge as well, which are written already."""
        worker, mark = SampleWorker(self.reader, rows, self.folder), self.pool.mark()
        todo = [
            part
            for part in self.pool.parts
            if len(rows_in(rows, part))
            and not self.folder.drawn("sample", part.number, mark).is_file()
        ]
        self.over_parts("sample", lambda: worker, todo)

    def places_of_drawn(self) -> Iterator[tuple[Use, int, str]]:
        """The use, the part and the mark under which drawn items are written."""
        for part in self.pool.parts:
            yield "judged", part.number, self.pool.mark(part)
            yield "sample", part.number, self.pool.mark()

    def read_drawn(self, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
        """The items of the sample, and those that judge."""
        like, wanted = self.known.inputs, (sample.pool, sample.judged)
        sampled, judged = (np.empty((len(each), *like.shape[1:]), like.dtype) for each in wanted)
        for place in self.places_of_drawn():
            if (found := self.folder.read_drawn(*place)) is None:
                continue
            for inputs, chosen in ((sampled, sample.pool), (judged, sample.judged)):
                is_in = np.isin(found[0], chosen, assume_unique=True)
                inputs[np.searchsorted(chosen, found[0][is_in])] = found[1][is_in]
        return sampled, judged

    def save(self, fit: LargeFit) -> None:
        """Put the model and the decision on the disk."""
        with writing(self.folder.out, GOES_ON):
            save_model(self.folder.model, fit.model, self.classes, self.represented.preparation)
            decision = {
                **write_thresholds(fit.thresholds),
                "sure_known_below": fit.sure_known_below,
                "audit": fit.audit and fit.audit.named(self.classes).to_json(),
                "k": fit.k,
                "n_steps": fit.n_steps,
                "seconds": self.clock.seconds,
                "rows": self.clock.rows,
            }
            self.folder.save_json(self.folder.decision(self.pool.mark()), decision)
        for place in self.places_of_drawn():
            self.folder.remove_drawn(*place)

    def load(self) -> LargeFit:
        """What ``save`` wrote."""
        path = self.folder.decision(self.pool.mark())
        advice = "run the same command with --force"
        found = read_json(path, advice)
        saved = load_model(self.folder.model, self.device)
        with guarded(path, advice):
            self.clock.seconds = found["seconds"] | self.clock.seconds
            self.clock.rows = found["rows"] | self.clock.rows
            return LargeFit(
                model=saved.model,
                thresholds=read_thresholds(found, n_classes=len(self.classes)),
                sure_known_below=found["sure_known_below"],
                audit=Audit.from_json(found["audit"]) if found["audit"] else None,
                evidence=None,
                k=int(found["k"]),
                n_steps=dict(found["n_steps"]),
            )

    def answer(self, fit: LargeFit) -> PartCounts:
        """Answer every part that has no answer yet; what all of them came to."""
        answerer = PoolAnswerer(fit, self.method.decision, self.classes)
        worker = AnswerWorker(self.reader, answerer, self.classes, self.folder)
        parts = self.pool.parts
        places = [self.folder.counts(part.number, self.pool.mark()) for part in parts]
        todo = [part for part, place in zip(parts, places, strict=True) if not place.is_file()]
        self.over_parts("answer", lambda: worker, todo)
        counts = NOTHING
        for path in places:
            record = read_json(path, "run the same command with --force")
            counts = counts.joined(PartCounts.from_json(record))
        return counts


@dataclass(frozen=True)
class PoolAnswerer:
    """Answers for items of the pool of a fit."""

    fit: LargeFit
    settings: DecisionSettings
    classes: tuple[str, ...]

    def __call__(self, inputs: np.ndarray) -> Answered:
        answer, named, _ = answer_items(self.fit, inputs, self.settings)
        points, audit = None, self.fit.audit
        if audit is not None and answer.nearest is not None:
            points = audit.operating_points(answer.nearest, self.classes)
        return Answered(answer, named, points)


def classify_parts(
    known: Path,
    pool: PartedPool,
    out: Path,
    request: Request,
    *,
    engine: Engine | None = None,
    force: bool = False,
    clock: Stopwatch | None = None,
) -> Summary:
    """Labelled files and a pool in parts in, a data set of answers out."""
    device, clock = check_request(request), clock or Stopwatch()
    with run_folder(out, facts_of(known, pool, request), n_parts=len(pool.parts), force=force) as f:
        with clock("read"), collect_warnings() as notes:
            opened = open_known_beside(
                known,
                pool.first_batch(),
                max_megapixels=request.max_megapixels,
                text_column=request.text_column,
            )
            named = named_backbone(request.backbone, device)
            represented = choose_representation(opened, request, device=device, named=named)
            items = OpenKnown(opened.known, opened.headers, opened.n_of_class).read(
                represented.shape
            )
            labels, classes = encode_labels(items.labels or [])
            inputs = represented.inputs(items.inputs, clock)
        preset, method = choose_method(
            request,
            device,
            vectors=represented.is_vectors,
            classes=classes,
            n_labelled=len(labels),
        )
        run = LargeRun(
            pool=pool,
            method=method,
            preset=preset,
            request=request,
            device=device,
            represented=represented,
            labelled=items.inputs,
            known=Labelled(inputs, labels),
            classes=classes,
            folder=f,
            engine=engine or LocalEngine(),
            clock=clock,
        )
        with run.engine.started(clock), collect_warnings() as warned:
            fit = run.fit()
            counts = run.answer(fit)
        summary = summarise(run, fit, counts, [*notes, *warned])
        with writing(out, GOES_ON):
            if counts.skipped:
                write_skipped(out / "skipped.csv", counts.skipped[:SKIPPED_NAMED])
            write_summary(out, summary.to_json())
        f.finish()
        return summary


def facts_of(known: Path, pool: PartedPool, request: Request) -> JsonObject:
    """What a run is of: another one does not go on with its parts."""
    return {
        "known": [os.path.abspath(known), _stamp(str(known))],
        "pool": pool.address,
        "n_files": len(pool.files),
        "n_rows": pool.n,
        "n_parts": len(pool.parts),
        "preset": request.preset,
        "changes": {name: str(value) for name, value in request.changes.items()},
        "seed": request.seed,
        "fit_on": request.fit_on,
        "side": request.side,
        "backbone": request.backbone,
        "embedding": request.embedding,
        "text_column": request.text_column,
        "keep_columns": list(request.keep_columns),
    }


def _stamp(name: str) -> float:
    """When a file here was changed last; 0 of others."""
    try:
        return os.path.getmtime(name)
    except OSError:
        return 0.0


def summarise(run: LargeRun, fit: LargeFit, counts: PartCounts, notes: Sequence[str]) -> Summary:
    """As that of a pool in memory, and the rows of each step."""
    record = RunRecord(
        title=run.request.title,
        n_known=len(run.known),
        n_skipped=len(counts.skipped),
        notes=(*notes, *skipped_note(counts.skipped, "see skipped.csv")),
        k=fit.k,
        steps=fit.n_steps,
        preset=run.preset,
        settings=flatten(run.method),
        shape=clean_text(f"{run.represented.shape.kind}, read in {len(run.pool.parts)} parts"),
        backbone=run.represented.backbone,
        seed=run.request.seed,
        device=run.device,
        versions=versions(),
        seconds=run.clock.seconds,
    )
    return Summary(
        run=record,
        n_pool=counts.n_rows,
        audit=fit.audit,
        counts=LabelCounts(
            known={name: counts.labels.get(name, 0) for name in run.classes},
            unknown=counts.n_unknown,
            groups=dict(sorted(counts.groups.items(), key=lambda pair: int(pair[0]))),
            unsure=counts.n_unsure,
        ),
        parts=PartFacts(
            fit_on=run.request.fit_on,
            engine=run.engine.name,
            written=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=run.clock.rows,
        ),
    )
