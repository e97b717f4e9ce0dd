"""The main job from files to files: classify a pool; and the same on digits, as a demo."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from s2osc.app.answer_tables import skipped_note
from s2osc.app.corrections import (
    NO_CORRECTIONS,
    Corrections,
    join_labelled,
    read_corrections,
)
from s2osc.app.extract import Representation, named_backbone
from s2osc.app.origin import Origin, demo_items
from s2osc.app.report import describe_result
from s2osc.app.representation import choose_by_time, choose_representation
from s2osc.app.request import Request, check_request, choose_method
from s2osc.app.result import Result
from s2osc.app.result_files import save_result
from s2osc.app.results_folder import ResultsFolder, results_folder
from s2osc.app.run_record import RunRecord
from s2osc.data.images import InputShape
from s2osc.data.inputs import (
    Items,
    Skipped,
    encode_labels,
    open_items,
    open_known_beside,
)
from s2osc.data.parts import PartedPool
from s2osc.errors import collect_warnings
from s2osc.pipeline.large_pool.whole import fit_large_pool
from s2osc.pipeline.solution import Solution
from s2osc.progress import Stopwatch
from s2osc.settings import NamedSettings, flatten
from s2osc.types import Labelled
from s2osc.version import versions


def classify_files(
    known: Path,
    pool: Path | PartedPool,
    out: Path,
    request: Request,
    *,
    corrections: Path | Corrections = NO_CORRECTIONS,
    force: bool = False,
    clock: Stopwatch | None = None,
) -> Result:
    """Labelled files and a pool of files in, a folder of results out.

    ``corrections`` are what a person says about items of the pool, or a file that says it;
    ``clock`` holds the seconds that passed before.
    """
    device, clock = check_request(request), clock or Stopwatch()
    given = read_corrections(corrections) if isinstance(corrections, Path) else corrections
    with results_folder(out, force=force) as folder:
        named = named_backbone(request.backbone, device)
        with collect_warnings() as notes:
            with clock("read"):
                source = (
                    pool.whole()
                    if isinstance(pool, PartedPool)
                    else open_items(Path(pool), request.text_column)
                )
                opened = open_known_beside(
                    Path(known),
                    source,
                    max_megapixels=request.max_megapixels,
                    text_column=request.text_column,
                )
            with clock("representation"):
                request = choose_by_time(opened, request, device)
                represented = choose_representation(
                    opened, request, device=device, named=named, n_items=opened.n_items
                )
            with clock("read"):
                known_items, pool_items = opened.read(represented.shape)
        where = corrections if isinstance(corrections, Path) else "the corrections"
        result = classify_items(
            known_items,
            pool_items,
            request,
            represented=represented,
            device=device,
            clock=clock,
            notes=notes,
            corrections=given.matched(pool_items.names, where, known_items.labels or ()),
        )
        place = Path(pool.address) if isinstance(pool, PartedPool) else pool
        run = replace(result.run, origin=origin_of(request, known, place))
        return publish_result(folder, replace(result, run=run))


def demo(
    out: Path,
    request: Request,
    *,
    corrections: Corrections = NO_CORRECTIONS,
    force: bool = False,
    clock: Stopwatch | None = None,
) -> Result:
    """The main job on 5,000 handwritten digits: 0-5 are known, 6 and 7 are in the pool only."""
    device, clock = check_request(request), clock or Stopwatch()
    with results_folder(out, force=force) as folder:
        with clock("read"):
            known, pool, represented = read_demo(request.seed)
        result = classify_items(
            known,
            pool,
            request,
            represented=represented,
            device=device,
            clock=clock,
            corrections=corrections.matched(pool.names, "the corrections"),
        )
        run = replace(result.run, origin=origin_of(request))
        return publish_result(folder, replace(result, run=run))


def origin_of(request: Request, known: Path | None = None, pool: Path | None = None) -> Origin:
    """Where the items come from, for those who show them or run it again; no paths: the demo."""
    return Origin.now(
        known,
        pool,
        side=request.side,
        backbone=request.backbone,
        embedding=request.embedding,
        text_column=request.text_column,
        keep_columns=tuple(request.keep_columns),
        max_megapixels=request.max_megapixels,
        fit_on=request.fit_on,
        changes=dict(request.changes),
    )


def publish_result(folder: ResultsFolder, result: Result) -> Result:
    """The answer and the model first, then the same with words and page."""
    clock = Stopwatch(result.run.seconds)
    with clock("save"), folder.publish() as stage:
        save_result(result, stage)
    run = replace(result.run, seconds=clock.seconds)
    return describe_result(folder, replace(result, run=run))


def read_demo(seed: int) -> tuple[Items, Items, Representation]:
    """Known items and a pool of digits."""
    known, pool = demo_items(seed)
    assert isinstance(pool.inputs, np.ndarray)
    height, width = pool.inputs.shape[1:3]
    note = f"{len(known) + len(pool):,} digits of {height}x{width} in grey, as they come"
    return known, pool, Representation(InputShape("images", height, width, 1, note=note))


# --- the result ------------------------------------------------------------------------------


def classify_items(
    known: Items,
    pool: Items,
    request: Request,
    *,
    represented: Representation,
    device: str,
    clock: Stopwatch,
    notes: Sequence[str] = (),
    corrections: Corrections = NO_CORRECTIONS,
) -> Result:
    """Fit and answer; corrections are by the names of the pool."""
    given = [row.label for row in corrections.named]
    _, classes = encode_labels([*(known.labels or []), *given])
    preset, method = choose_method(
        request,
        device,
        vectors=represented.is_vectors,
        classes=classes,
        n_labelled=len(known.labels or []),
    )
    with collect_warnings() as warned:
        joined = join_labelled(
            known,
            pool,
            corrections,
            known_inputs=represented.inputs(known.inputs, clock),
            pool_inputs=represented.inputs(pool.inputs, clock),
        )
        labels, _ = encode_labels(joined.known_labels)
        solution = fit_large_pool(
            method,
            Labelled(joined.known_inputs, labels),
            joined.pool_inputs,
            fit_on=request.fit_on,
            seed=request.seed,
            device=device,
            # Items of the pool that a person named are labelled ones of the other source.
            raw=None if corrections.named else represented.raw(known.inputs, pool.inputs),
        )
    if corrections:
        notes = [*notes, corrections.in_words(known.labels or [])]
    result = make_result(
        solution,
        joined.pool,
        classes=classes,
        title=request.title,
        represented=represented,
        preset=preset,
        settings=flatten(method),
        seed=request.seed,
        device=device,
        n_known=len(labels),
        skipped=[*known.skipped, *pool.skipped],
        notes=[*notes, *warned],
        seconds=clock.seconds,
    )
    result = replace(result, corrections=corrections)
    return replace(result, answer=result.as_corrected(result.answer))


def make_result(
    solution: Solution,
    pool: Items,
    *,
    classes: tuple[str, ...],
    title: str,
    represented: Representation,
    preset: str,
    settings: NamedSettings,
    seed: int,
    device: str,
    n_known: int,
    skipped: Sequence[Skipped],
    notes: Sequence[str],
    seconds: dict[str, float],
) -> Result:
    """The result of a method's solution for a pool."""
    trust = solution.trust
    run = RunRecord(
        title=title,
        n_known=n_known,
        n_skipped=len(skipped),
        notes=(*notes, *skipped_note(skipped, "see skipped.csv")),
        k=solution.k,
        steps=solution.n_steps,
        preset=preset,
        settings=settings,
        shape=represented.shape.note,
        backbone=represented.backbone,
        embedding=represented.embedding,
        columns=represented.columns,
        seed=seed,
        device=device,
        versions=versions(),
        seconds=seconds | solution.seconds,
    )
    return Result(
        run=run,
        names=pool.names,
        truth=pool.labels,
        classes=classes,
        answer=solution.answer,
        nearest_confidence=solution.nearest_confidence,
        evidence=trust.evidence if trust else None,
        leaves=solution.leaves if trust else None,
        audit=solution.audit(classes),
        odds=trust.odds if trust else None,
        embeddings=solution.embeddings,
        images=represented.pictures(pool.inputs),
        items=represented.readable(pool.inputs),
        model=solution.model,
        preparation=represented.preparation,
        skipped=tuple(skipped),
    )
