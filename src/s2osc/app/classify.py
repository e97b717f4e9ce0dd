"""The main jobs from files to files: classify a pool, predict with a saved model, the demo."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2osc.app.extract import (
    ADVICE,
    AUTO,
    FeatureExtractor,
    are_photos,
    is_installed,
    largest_side,
    make_extractor,
    named_backbone,
    restore_extractor,
)
from s2osc.app.folder import (
    MODEL,
    SKIPPED,
    ResultsFolder,
    read_current,
    result_file,
    results_folder,
)
from s2osc.app.report import describe_results, save_unfinished
from s2osc.app.result import (
    TABLE_WRITERS,
    Measured,
    Nearest,
    count_labels,
    judge,
    summarise_warnings,
    table_bytes,
    write_measured,
    write_skipped,
    write_summary,
    write_tables,
)
from s2osc.data.datasets import load_dataset
from s2osc.data.images import InputShape
from s2osc.data.inputs import (
    MAX_MEGAPIXELS,
    Items,
    OpenKnown,
    OpenSources,
    Skipped,
    encode_labels,
    open_known_and_pool,
    read_items,
)
from s2osc.data.splits import Protocol, split_dataset
from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.nets.backbones import EFFICIENTNET, Backbone, load_backbone
from s2osc.nets.training import resolve_device
from s2osc.pipeline.filter.score import squash
from s2osc.pipeline.method import S2OSCMethod, Solution
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.pipeline.storage import load_model, save_model
from s2osc.progress import Stopwatch
from s2osc.report.drawing import Question
from s2osc.report.page import ReportInputs
from s2osc.settings import flatten
from s2osc.types import Answer, Labelled
from s2osc.version import versions

DEMO = Protocol(known_classes=tuple(range(6)), unknown_classes=(6, 7), sizes=(300, 200, 1_000))
NEED_SEEDS = ("decision.false_alarm", "decision.aim", "decision.unsure")
IMAGE_PRESETS = ("fast", "large", "plain", "paper")
"""Presets that are about networks for images: who names one wants those, not a backbone."""


@dataclass(frozen=True)
class Run:
    """What a run is asked for beside its data."""

    preset: str = "auto"
    changes: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters by name
    seed: int = 0
    device: str = "auto"
    title: str = "Open set classification"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingsError(f"the seed is {self.seed}; give a whole number from 0")


class Recipe(NamedTuple):
    """A method and where its hyper-parameters started from."""

    preset: str
    method: S2OSCMethod


class Plan(NamedTuple):
    """What a run comes to on this machine, whatever kind its items turn out to be."""

    run: Run
    device: str
    for_images: Recipe
    for_vectors: Recipe


@dataclass(frozen=True)
class Finding:
    """What was found, for whoever asked."""

    solution: Solution
    classes: tuple[str, ...]
    summary: dict[str, Any]


def classify_files(
    known: Path,
    pool: Path,
    out: Path,
    run: Run,
    *,
    side: int | None = None,
    backbone: str = AUTO,
    max_megapixels: float = MAX_MEGAPIXELS,
    force: bool = False,
) -> Finding:
    """Labelled files and a pool of files in, a folder of results out."""
    plan, clock = make_plan(run), Stopwatch()
    with results_folder(out, force=force) as folder:
        named = named_backbone(backbone, plan.device)
        with clock("read"), noted() as notes:
            opened = open_known_and_pool(known, pool, max_megapixels=max_megapixels)
            shape, extractor = choose_representation(
                opened, plan, named, side=side, backbone=backbone
            )
            items = opened.read(shape)
        return classify_items(*items, shape, folder, plan, clock, notes, extractor=extractor)


def choose_representation(
    opened: OpenSources | OpenKnown,
    plan: Plan,
    named: Backbone | None,
    *,
    side: int | None,
    backbone: str,
) -> tuple[InputShape, FeatureExtractor | None]:
    """The shape items are brought to, and what they are seen by; None: as they are."""
    shape = opened.shape(side)
    check_kind(shape, side, named)
    if backbone == AUTO and plan.run.preset not in IMAGE_PRESETS:
        named = usual_backbone(shape, plan.device)
    if named is None:
        return shape, None
    extractor = choose_extractor(named, opened, side, plan)
    return extractor.shape, extractor


def check_kind(shape: InputShape, side: int | None, backbone: Backbone | None) -> None:
    """Refuse what is for images where the items are vectors."""
    given = {"--side": side is not None, "--backbone": backbone is not None}
    for option, is_given in given.items():
        if is_given and shape.kind == "vectors":
            raise SettingsError(f"{option} is for images, but the items are vectors; leave it out")


def usual_backbone(shape: InputShape, device: str) -> Backbone | None:
    """What items of a shape are seen by where the user leaves it open; None: as they are."""
    if not are_photos(shape):
        return None
    if not is_installed():
        warnings.warn(ADVICE, S2OSCWarning, stacklevel=2)
        return None
    return load_backbone(EFFICIENTNET, device)


def choose_extractor(
    backbone: Backbone, opened: OpenSources | OpenKnown, side: int | None, plan: Plan
) -> FeatureExtractor:
    """The backbone for the images of a run, which it sees larger than small networks would."""
    shape = opened.shape(side, largest=largest_side(backbone))
    flip = plan.for_vectors.method.augmentation.flips(shape.channels)
    return make_extractor(backbone, shape, flip=flip)


def demo(out: Path, run: Run, *, force: bool = False) -> Finding:
    """The main job on 5,000 handwritten digits: 0-5 are known, 6 and 7 are in the pool only."""
    plan, clock = make_plan(run), Stopwatch()
    with results_folder(out, force=force) as folder:
        with clock("read"):
            known, pool, shape = read_demo(run.seed)
        return classify_items(known, pool, shape, folder, plan, clock)


def read_demo(seed: int) -> tuple[Items, Items, InputShape]:
    """Known items and a pool of digits."""
    digits = load_dataset("mnist5k")
    split = split_dataset(digits, DEMO, seed)
    known_names = [digits.classes[split.known_classes[label]] for label in split.known.labels]
    pool_names = [digits.classes[label] for label in split.truth_classes]
    known = Items(_numbered(len(known_names)), split.known.inputs, known_names)
    pool = Items(_numbered(len(pool_names)), split.pool, pool_names)
    height, width = digits.inputs.shape[1:3]
    note = f"{len(known) + len(pool):,} digits of {height}x{width} in grey, as they come"
    return known, pool, InputShape("images", height, width, 1, note=note)


def _numbered(n: int) -> list[str]:
    return [f"digit {number}" for number in range(n)]


def make_plan(run: Run) -> Plan:
    """Device, presets and methods of a run, or one line on the setting that cannot be used."""
    device = resolve_device(run.device)
    return Plan(run, device, *(make_recipe(run, device, vectors=v) for v in (False, True)))


def make_recipe(run: Run, device: str, *, vectors: bool) -> Recipe:
    """The method of a run for items of one kind."""
    preset = choose_preset(run.preset, device, vectors=vectors)
    method = build_method(preset, run.changes)
    check_decision(preset, method, run.changes)
    return Recipe(preset, method)


def check_decision(preset: str, method: S2OSCMethod, changes: Mapping[str, Any]) -> None:
    """Refuse an operating point where no seeds are there to set it."""
    unused = [name for name in NEED_SEEDS if name in changes]
    if unused and method.decision.rule == "argmax":
        raise SettingsError(
            f"{unused[0]} is for decisions by seeds, but the preset {preset} calls unknown what "
            "g's largest output is for; leave it out, or give another preset, such as fast"
        )


@contextmanager
def noted() -> Iterator[list[str]]:
    """Gather what warnings say to the user, who reads it with the results."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", S2OSCWarning)
        yield notes
    notes += [str(w.message) for w in caught if issubclass(w.category, S2OSCWarning)]


def classify_items(
    known: Items,
    pool: Items,
    shape: InputShape,
    folder: ResultsFolder,
    plan: Plan,
    clock: Stopwatch,
    notes: Sequence[str] = (),
    *,
    extractor: FeatureExtractor | None = None,
) -> Finding:
    """Fit, answer, and publish everything at once."""
    run = plan.run
    recipe = choose_recipe(plan, shape, extractor)
    labels, classes = encode_labels(known.labels or [])
    with noted() as said:
        known_inputs, pool_inputs = known.inputs, pool.inputs
        if extractor:
            with clock("features"):
                known_inputs, pool_inputs = (
                    extractor.features(known.inputs),
                    extractor.features(pool.inputs),
                )
        solution = recipe.method.fit(
            Labelled(known_inputs, labels), pool_inputs, seed=run.seed, device=plan.device
        )
    clock.seconds.update(solution.seconds)
    skipped = [*known.skipped, *pool.skipped]
    notes = [*notes, *said, *tell_skipped(skipped, "see skipped.csv")]
    outcome = Outcome(solution, recipe, classes, pool, pool_inputs, shape, extractor, skipped)
    summary = {
        "title": run.title,
        "items": {"known": len(known), "pool": len(pool), "skipped": len(skipped)},
        **describe_run(outcome, notes, seed=run.seed, device=plan.device),
        "seconds": clock.seconds,
    }
    with published_answer(folder, outcome, summary) as (_, report):
        pass
    return Finding(solution, classes, describe_results(folder, report, clock))


def choose_recipe(plan: Plan, shape: InputShape, extractor: FeatureExtractor | None) -> Recipe:
    """What items that are brought to a shape, and perhaps seen by a backbone, are learnt with."""
    return plan.for_vectors if extractor or shape.kind == "vectors" else plan.for_images


@dataclass(frozen=True, eq=False)
class Outcome:
    """An answer for a pool, with all that its files are written from."""

    solution: Solution
    recipe: Recipe
    classes: tuple[str, ...]
    pool: Items
    inputs: np.ndarray  # (n, ...) of the pool, as the networks see them
    shape: InputShape
    extractor: FeatureExtractor | None
    skipped: list[Skipped]


def describe_run(
    outcome: Outcome, notes: Sequence[str], *, seed: int, device: str
) -> dict[str, Any]:
    """The part of the summary that every answer for a pool has."""
    return {
        **summarise(outcome.solution, outcome.recipe, outcome.classes, outcome.pool.labels, notes),
        "shape": outcome.shape.note,
        "backbone": outcome.extractor.backbone.name if outcome.extractor else None,
        "seed": seed,
        "device": device,
        "versions": versions(),
    }


@contextmanager
def published_answer(
    folder: ResultsFolder,
    outcome: Outcome,
    summary: dict[str, Any],
    questions: Sequence[Question] = (),
    plain: Sequence[str] = (),
) -> Iterator[tuple[Path, ReportInputs]]:
    """Publish the answer and the model when the block ends well, without words and page.

    Yields the folder they lie in until then, for files of the caller's own, and what
    ``describe_results`` makes the page from.
    """
    solution, pool, classes, extractor = (
        outcome.solution,
        outcome.pool,
        outcome.classes,
        outcome.extractor,
    )
    measured = measure(solution, pool, classes)
    nearest = (
        measured.nearest if measured else Nearest.of(solution.model.probabilities(outcome.inputs))
    )
    report = ReportInputs(
        title=summary["title"],
        answer=solution.answer,
        classes=classes,
        names=pool.names,
        embeddings=solution.embeddings,
        images=pool.inputs if outcome.shape.kind == "images" else None,
        audit=solution.audit(classes),
        summary=summary,
        truth=pool.labels,
        seed_scores=squash(measured.evidence.seed_score) if measured else None,
        folder=str(folder.out),
        questions=tuple(questions),
    )
    with folder.publish(plain=plain) as stage:
        write_tables(stage, pool.names, solution.answer, nearest, classes)
        if outcome.skipped:
            write_skipped(stage / SKIPPED, outcome.skipped)
        save_model(
            stage / MODEL, solution.model, classes, extractor.describe() if extractor else None
        )
        if measured:
            write_measured(stage, measured)
        save_unfinished(stage, report)
        write_summary(stage, summary)
        yield stage, report


def summarise(
    solution: Solution,
    recipe: Recipe,
    classes: tuple[str, ...],
    truth: list[str] | None,
    notes: Sequence[str],
) -> dict[str, Any]:
    """What was found, how far it can be trusted, and how it came about."""
    audit, method = solution.audit(classes), recipe.method
    metrics = judge(solution.answer, classes, truth)
    return {
        "audit": audit.to_json() if audit else None,
        "counts": count_labels(solution.answer, classes),
        **({"metrics": metrics} if metrics else {}),
        **summarise_warnings(notes, []),
        "k": solution.k,
        "steps": solution.n_steps,
        "preset": recipe.preset,
        "settings": flatten(method),
    }


def measure(solution: Solution, pool: Items, classes: tuple[str, ...]) -> Measured | None:
    """What another decision on the same pool needs; None without seeds."""
    trust = solution.trust
    return trust and Measured(
        names=pool.names,
        truth=pool.labels,
        classes=classes,
        evidence=trust.evidence,
        odds=trust.odds,
        groups=trust.groups,
        distinctness=solution.answer.distinctness,
        filtered=solution.answer.filtered,
    )


class Predicted(NamedTuple):
    """The answer for new items, and what the user should know about it."""

    answer: Answer
    notes: list[str]


def predict_files(
    model: Path,
    items: Path,
    out: Path,
    *,
    backbone: str | None = None,
    device: str = "auto",
    max_megapixels: float = MAX_MEGAPIXELS,
    force: bool = False,
) -> Predicted:
    """Answer for new items with a saved model; one table out."""
    if out.suffix not in TABLE_WRITERS:
        raise SettingsError(f"--out is {out}; give a file name ending in .csv or .parquet")
    device = resolve_device(device)
    with result_file(out, force=force) as write:
        saved = read_current(model, lambda folder: load_model(folder, device))
        extractor = None
        if saved.backbone:
            extractor = restore_extractor(saved.backbone, device, allowed=backbone)
        like = extractor.shape if extractor else shape_of(saved.model.teacher.network.input_shape)
        found = read_items(items, like=like, max_megapixels=max_megapixels)
        with noted() as notes:
            inputs = extractor.features(found.inputs) if extractor else found.inputs
        answer, nearest = saved.model.answer(inputs), Nearest.of(saved.model.probabilities(inputs))
        write(table_bytes(out.suffix, found.names, answer, nearest, saved.classes))
    return Predicted(answer, notes + tell_skipped(found.skipped, "skipped items have no row"))


def shape_of(axes: tuple[int, ...]) -> InputShape:
    """The shape items must have for a network of such inputs.

    >>> shape_of((28, 28)).channels, shape_of((512,)).n_features
    (1, 512)
    """
    if len(axes) == 1:
        return InputShape("vectors", n_features=axes[0])
    return InputShape("images", axes[0], axes[1], channels=3 if len(axes) == 3 else 1)


def tell_skipped(skipped: Sequence[Skipped], where: str) -> list[str]:
    """One sentence on items that were left out, or none."""
    if not skipped:
        return []
    items = "1 item was" if len(skipped) == 1 else f"{len(skipped):,} items were"
    return [f"{items} skipped (first: {skipped[0].name}, {skipped[0].reason}); {where}"]
