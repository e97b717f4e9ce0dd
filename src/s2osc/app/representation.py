"""How items go into the networks: as they are, through a pretrained network, or as columns."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from s2osc.app.extract import (
    ADVICE,
    AUTO,
    SCRATCH,
    Representation,
    TableExtractor,
    TextExtractor,
    are_photos,
    fitted_to,
    is_in_colour,
    largest_side,
    make_extractor,
    named_backbone,
)
from s2osc.app.request import TUNED, Request, choose_method
from s2osc.data.columns import Table, choose_columns, notes_on_columns
from s2osc.data.images import InputShape
from s2osc.data.inputs import (
    Items,
    OpenKnown,
    OpenSources,
    encode_labels,
    open_known,
    read_source,
)
from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.nets.backbones import (
    EFFICIENTNET,
    EFFICIENTNETS,
    Backbone,
    is_installed,
    load_backbone,
)
from s2osc.nets.text_models import load_text_model
from s2osc.pipeline.photo_preparation import load_start, measure_cost
from s2osc.pipeline.pixels_or_features import compare_pixels_with_features, draw_labelled
from s2osc.progress import say
from s2osc.seeding import rng
from s2osc.text import plural
from s2osc.types import Labelled

IMAGE_PRESETS = ("fast", "quick", "large", "plain", "paper")
"""Presets of networks for images: with one of them no backbone is chosen for the user."""


def read_known(path: Path, request: Request, device: str) -> tuple[Items, Representation]:
    """Labelled files alone, read as those of `s2osc classify` are."""
    named = named_backbone(request.backbone, device)
    opened = open_known(
        path, max_megapixels=request.max_megapixels, text_column=request.text_column
    )
    represented = choose_representation(opened, request, device=device, named=named)
    return opened.read(represented.shape), represented


def choose_representation(
    opened: OpenSources | OpenKnown,
    request: Request,
    *,
    device: str,
    named: Backbone | None,
    n_items: int | None = None,
) -> Representation:
    """Images as they are, through the backbone that the user named, or through the usual one.

    Texts go through a model of texts, and tables by their columns. ``n_items`` are all there will
    be; None: nobody knows, as in a stream.
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
        named = usual_backbone(opened, shape, request, device)
    if named is None:
        return Representation(shape)
    if n_items is not None:
        named = fitted_to(named, n_items)
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


def usual_backbone(
    opened: OpenSources | OpenKnown, shape: InputShape, request: Request, device: str
) -> Backbone | None:
    """The backbone for items of a shape where the user leaves it open; None: none."""
    if not are_photos(shape):
        may_gain = is_in_colour(shape) and request.preset == AUTO and is_installed()
        return better_backbone(opened, shape, request, device) if may_gain else None
    if not is_installed():
        warnings.warn(ADVICE, S2OSCWarning, stacklevel=2)
        return None
    return load_backbone(EFFICIENTNET, device)


def better_backbone(
    opened: OpenSources | OpenKnown, shape: InputShape, request: Request, device: str
) -> Backbone | None:
    """The usual backbone if f names labelled images better through it than by their pixels."""
    labels, _ = encode_labels(opened.known.labels or [])
    rows = draw_labelled(labels, rng(request.seed, "compared"))
    images = read_source(opened.known.keep(rows), shape)
    labels, _ = encode_labels(images.labels or [])
    assert isinstance(images.inputs, np.ndarray)
    backbone = load_backbone(EFFICIENTNET, device)
    n_labelled = sum(opened.n_of_class.values())
    _, by_pixels = choose_method(request, device, vectors=False, n_labelled=n_labelled)
    _, by_features = choose_method(request, device, vectors=True)
    flip = by_features.augmentation.flips(shape.channels)
    features = make_extractor(backbone, shape, flip=flip).features(images.inputs)
    found = compare_pixels_with_features(
        Labelled(images.inputs, labels),
        Labelled(features, labels),
        by_pixels,
        by_features,
        seed=request.seed,
        device=device,
    )
    say(found.in_words(backbone.name))
    return backbone if found.prefer_features else None
