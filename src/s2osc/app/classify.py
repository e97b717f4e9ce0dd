"""The main job from files to files: classify a pool; and the same on digits, as a demo."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from s2osc.app.answer_tables import skipped_note
from s2osc.app.corrections import (
    NO_CORRECTIONS,
    Corrections,
    join_labelled,
    read_corrections,
)
from s2osc.app.extract import (
    ADVICE,
    AUTO,
    SCRATCH,
    Representation,
    TableExtractor,
    TextExtractor,
    are_photos,
    largest_side,
    make_extractor,
    named_backbone,
)
from s2osc.app.origin import Origin, demo_items
from s2osc.app.report import describe_result
from s2osc.app.result import Result
from s2osc.app.result_files import save_result
from s2osc.app.results_folder import ResultsFolder, results_folder
from s2osc.app.run_record import RunRecord
from s2osc.data.columns import Table, choose_columns, notes_on_columns
from s2osc.data.images import InputShape
from s2osc.data.inputs import (
    MAX_MEGAPIXELS,
    Items,
    OpenKnown,
    OpenSources,
    Skipped,
    encode_labels,
    open_items,
    open_known,
    open_known_beside,
)
from s2osc.data.parts import PartedPool
from s2osc.errors import S2OSCWarning, SettingsError, collect_warnings
from s2osc.nets.backbones import (
    EFFICIENTNET,
    EFFICIENTNETS,
    Backbone,
    is_installed,
    load_backbone,
)
from s2osc.nets.text_models import load_text_model
from s2osc.nets.training import resolve_device
from s2osc.pipeline.audit.decision import number_classes
from s2osc.pipeline.large_pool.plan import check_fit_on
from s2osc.pipeline.large_pool.whole import fit_large_pool
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.photo_preparation import load_start, measure_cost
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.pipeline.solution import Solution
from s2osc.progress import Stopwatch, say
from s2osc.settings import FIT_ON, NamedSettings, flatten, require_positive
from s2osc.text import plural
from s2osc.types import Labelled
from s2osc.version import versions

NEED_SEEDS = (
    "decision.false_alarm",
    "decision.false_alarm_of",
    "decision.guarantee",
    "decision.aim",
    "decision.unsure",
)
TUNED = "tuned"
IMAGE_PRESETS = ("fast", "quick", "large", "plain", "paper")
"""Presets of networks for images: with one of them no backbone is chosen for the user."""


@dataclass(frozen=True)
class Request:
    """What a user asks for beside the data."""

    preset: str = "auto"
    changes: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters by name
    seed: int = 0
    device: str = "auto"
    title: str = "Open set classification"
    side: int | None = None  # pixels that images are brought to; None: chosen
    backbone: str = AUTO  # that images go through
    embedding: str = AUTO  # that texts go through
    text_column: str | None = None  # where tables have texts; None: in `text`, if there is one
    keep_columns: Sequence[str] = ()  # of a table, used in any case
    max_megapixels: float = MAX_MEGAPIXELS  # of an image; larger ones are refused
    fit_on: int = FIT_ON  # items of the pool; of a larger one, a sample is fitted on
    minutes: float | None = None  # that a run may take, for the choice between heads and tuned

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingsError(f"the seed is {self.seed}; give a whole number from 0")
        check_fit_on(self.fit_on)
        require_positive("--minutes", self.minutes)
        if self.minutes is not None and self.preset != AUTO:
            raise SettingsError(
                f"--minutes is for --preset auto, but the preset is {self.preset}; give one of both"
            )


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
        with clock("read"), collect_warnings() as notes:
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
            request = choose_by_time(opened, request, device)
            represented = choose_representation(opened, request, device=device, named=named)
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
            corrections=given.matched(pool_items.names, where),
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


# --- the method ------------------------------------------------------------------------------


def check_request(request: Request) -> str:
    """The device, or one line on what cannot be used, whatever kind the items turn out to be."""
    device = resolve_device(request.device)
    for vectors in (False, True):
        choose_method(request, device, vectors=vectors)
    return device


def choose_method(
    request: Request,
    device: str,
    *,
    vectors: bool,
    classes: Sequence[str] | None = None,
    n_labelled: int | None = None,
) -> tuple[str, S2OSCMethod]:
    """The method for items of one kind, and the preset its hyper-parameters start from.

    Limits of single classes need the names of the ``classes``.
    """
    preset = choose_preset(request.preset, device, vectors=vectors, n_labelled=n_labelled)
    changes = number_classes(request.changes, classes)
    if preset == TUNED and request.backbone != AUTO:
        changes = pretrained_as(request.backbone) | dict(changes)
    method = build_method(preset, changes)
    check_decision(preset, method, request.changes)
    return preset, method


def pretrained_as(backbone: str) -> NamedSettings:
    """The changes that make f and g start from a backbone."""
    if backbone not in EFFICIENTNETS:
        raise SettingsError(
            f"--backbone is {backbone!r}, but the preset {TUNED} trains an EfficientNet-Lite; "
            f"give {' or '.join(EFFICIENTNETS)}, or another preset"
        )
    return {f"{which}.network.pretrained": backbone for which in ("teacher", "student")}


def check_decision(preset: str, method: S2OSCMethod, changes: Mapping[str, Any]) -> None:
    """Refuse an operating point where no seeds are there to set it."""
    unused = [name for name in NEED_SEEDS if name in changes]
    if unused and method.decision.rule == "argmax":
        raise SettingsError(
            f"{unused[0]} is for decisions by seeds, but the preset {preset} calls unknown what "
            "g's largest output is for; leave it out, or give another preset, such as fast"
        )


# --- images, vectors, texts or tables --------------------------------------------------------


def read_known(path: Path, request: Request, device: str) -> tuple[Items, Representation]:
    """Labelled files alone, read as those of `s2osc classify` are."""
    named = named_backbone(request.backbone, device)
    opened = open_known(
        path, max_megapixels=request.max_megapixels, text_column=request.text_column
    )
    represented = choose_representation(opened, request, device=device, named=named)
    return opened.read(represented.shape), represented


def choose_representation(
    opened: OpenSources | OpenKnown, request: Request, *, device: str, named: Backbone | None
) -> Representation:
    """Images as they are, through the backbone that the user named, or through the usual one.

    Texts go through a model of texts, and tables by their columns.
    """
    shape = opened.shape(request.side)
    check_kind(shape.kind, request)
    if shape.kind == "texts":
        model = load_text_model(request.embedding, device)
        return Representation(shape, TextExtractor(model, shape.text_column))
    if shape.kind == "tables":
        return represent_tables(opened, shape, request.keep_columns)
    if request.preset == TUNED:
        named = tuned_backbone(shape, request, device)
    elif request.backbone == AUTO and request.preset not in IMAGE_PRESETS:
        named = usual_backbone(shape, device)
    if named is None:
        return Representation(shape)
    # A backbone takes larger images than small networks do.
    shape = opened.shape(request.side, largest=largest_side(named))
    _, method = choose_method(request, device, vectors=True)
    extractor = make_extractor(named, shape, flip=method.augmentation.flips(shape.channels))
    return Representation(shape, extractor)


def choose_by_time(opened: OpenSources, request: Request, device: str) -> Request:
    """With the preset tuned where photos are trained on within the minutes there are.

    What an image costs is measured here and now, and shown.
    """
    shape = opened.shape(request.side)
    if shape.kind != "images" or not (request.preset == TUNED or may_be_tuned(shape, request)):
        return request
    tuned = replace(request, preset=TUNED, minutes=None)
    _, method = choose_method(tuned, device, vectors=True)
    source = shape.height, shape.width
    cost = measure_cost(method, load_start(method, device, source=source))
    n_labelled = sum(opened.n_of_class.values())
    minutes = cost.seconds(method, n_labelled, len(opened.pool.names)) / 60
    fits = request.minutes is None or minutes <= request.minutes
    chosen = TUNED if fits else "heads"
    say(f"{cost.in_words()}: the preset tuned takes about {minutes:.1f} min; {chosen} is taken")
    return tuned if fits else replace(request, minutes=None)


def may_be_tuned(shape: InputShape, request: Request) -> bool:
    """Whether it is a matter of time alone to train the backbone on these images."""
    if request.minutes is None:
        return False
    if request.backbone == AUTO:
        return are_photos(shape) and is_installed()
    return request.backbone in EFFICIENTNETS


def check_kind(kind: str, request: Request) -> None:
    """Refuse what is for items of another kind."""
    given = (
        ("--side", "images", request.side is not None),
        ("--backbone", "images", request.backbone not in (AUTO, SCRATCH)),
        ("--embedding", "texts", request.embedding != AUTO),
        ("--text-column", "texts", request.text_column is not None),
        ("--keep-column", "tables", bool(request.keep_columns)),
    )
    for option, meant, is_given in given:
        if is_given and kind != meant:
            raise SettingsError(f"{option} is for {meant}, but the items are {kind}; leave it out")


def represent_tables(
    opened: OpenSources | OpenKnown, shape: InputShape, keep: Sequence[str]
) -> Representation:
    """The columns that are used, with a warning on those that are not, or not complete."""
    tables = [source.content for source in opened.sources if isinstance(source.content, Table)]
    encoder = choose_columns(*tables, keep=keep)
    for text in notes_on_columns(encoder, *tables):
        warnings.warn(text, S2OSCWarning, stacklevel=2)
    note = f"{shape.note}, {plural(len(encoder.names), 'column')} used"
    return Representation(replace(shape, note=note), TableExtractor(encoder))


def tuned_backbone(shape: InputShape, request: Request, device: str) -> Backbone:
    """The backbone that f and g start from, with maps of the stage they start at."""
    if shape.kind != "images":
        raise SettingsError(
            f"the preset {TUNED} is for images, but the items are {shape.kind}; leave it out"
        )
    _, method = choose_method(request, device, vectors=True)
    return load_start(method, device)


def usual_backbone(shape: InputShape, device: str) -> Backbone | None:
    """The backbone for items of a shape where the user leaves it open; None: none."""
    if not are_photos(shape):
        return None
    if not is_installed():
        warnings.warn(ADVICE, S2OSCWarning, stacklevel=2)
        return None
    return load_backbone(EFFICIENTNET, device)


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
