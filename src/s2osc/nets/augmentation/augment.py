"""Phi(x): augmented views of a network's training batches, weak or strong, of images or vectors.

A view is taken before normalisation and has the type and memory format of its batch. Every item
gets its own random draw. Strong views of images are in ``ctaugment``.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from s2osc.errors import SettingsError
from s2osc.nets.augmentation.ctaugment import CTAugment
from s2osc.nets.augmentation.image_ops import rotate_by
from s2osc.nets.networks import Network
from s2osc.settings import require_choice

MAX_SHIFT = 0.125  # of the side, rounded down: 3 pixels of 28, 4 of 32
RELEASED_DEGREES = 10.0
STRONG_NOISE = 3.0  # times the noise of a weak view
MASKED_FEATURES = 0.2

WeakView = Literal["shift", "released"]


@dataclass(frozen=True)
class AugmentSettings:
    """The weak augmentation of images and vectors."""

    flip: bool | None = None  # mirror half of the images; None: only where they have colour
    noise: float = 0.1  # of each feature's standard deviation, for vectors
    weak: WeakView = "shift"  # "released": what the authors' code does instead of the paper's text

    def __post_init__(self) -> None:
        if self.flip not in (True, False, None):
            raise SettingsError(f"augmentation.flip is {self.flip!r}; give True, False or None")
        if not (self.noise >= 0 and math.isfinite(self.noise)):
            raise SettingsError(f"augmentation.noise is {self.noise}; give a number from 0")
        require_choice("augmentation.weak", self.weak, WeakView)

    def flips(self, n_channels: int) -> bool:
        """Whether images with this many channels are mirrored.

        Grey images are often digits, letters or scans, which mirroring would change.

        >>> AugmentSettings().flips(3), AugmentSettings().flips(1)
        (True, False)
        """
        return n_channels > 1 if self.flip is None else self.flip


def weak_view(images: Tensor, generator: torch.Generator, settings: AugmentSettings) -> Tensor:
    """A weak view of every image ``(n, C, H, W)`` uint8."""
    if settings.weak == "released":
        return released_images(images, generator)
    return weak_images(images, generator, flip=settings.flips(images.shape[1]))


def weak_images(images: Tensor, generator: torch.Generator, *, flip: bool) -> Tensor:
    """Shift every image by up to an eighth of each side; mirror half of them where ``flip``."""
    n, _, height, width = images.shape
    dy, dx, flipped = draw_shifts(n, height, width, generator, flip=flip)
    device = images.device
    return shift_and_flip(images, dy.to(device), dx.to(device), flipped.to(device))


def released_images(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror every image and rotate it by up to 10 degrees, as the authors' released code does."""
    draws = torch.rand(len(images), generator=generator, device=generator.device)
    degrees = (2 * draws - 1) * RELEASED_DEGREES
    return rotate_by(images.flip(3), degrees.to(images.device))


def draw_shifts(
    n: int, height: int, width: int, generator: torch.Generator, *, flip: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw for n images: pixels down, pixels right, both ``(n,)`` int64, and which to mirror."""
    device = generator.device
    dy, dx = (
        torch.randint(-reach, reach + 1, (n,), generator=generator, device=device)
        for reach in (int(MAX_SHIFT * height), int(MAX_SHIFT * width))
    )
    if not flip:
        return dy, dx, torch.zeros(n, dtype=torch.bool, device=device)
    return dy, dx, torch.rand(n, generator=generator, device=device) < 0.5


def shift_and_flip(images: Tensor, dy: Tensor, dx: Tensor, flipped: Tensor) -> Tensor:
    """Mirror the ``flipped`` images, then move each by dy down and dx right.

    Borders are filled by reflection. Shifts must be smaller than the sides.

    >>> row = torch.tensor([[[[1, 2, 3, 4]]]], dtype=torch.uint8)
    >>> zero, one = torch.tensor([0]), torch.tensor([1])
    >>> shift_and_flip(row, zero, one, torch.tensor([False])).flatten().tolist()
    [2, 1, 2, 3]
    >>> shift_and_flip(row, zero, one, torch.tensor([True])).flatten().tolist()
    [3, 4, 3, 2]
    """
    n, channels, height, width = images.shape
    if n == 0:
        return images.clone()
    if images.is_contiguous(memory_format=torch.channels_last):
        moved = _shift_and_flip_pixels(images.permute(0, 2, 3, 1), dy, dx, flipped)
        return moved.permute(0, 3, 1, 2)
    planes = images.reshape(n * channels, height, width, 1)
    draws = (draw.repeat_interleave(channels) for draw in (dy, dx, flipped))
    return _shift_and_flip_pixels(planes, *draws).view(images.shape)


def _shift_and_flip_pixels(pixels: Tensor, dy: Tensor, dx: Tensor, flipped: Tensor) -> Tensor:
    """The same for ``(n, H, W, C)``.

    Each row is padded with its reflections, so that every shifted or flipped row is contiguous in
    memory: copying such rows is several times faster than gathering pixels.
    """
    n, height, width, channels = pixels.shape
    reach = int(dx.abs().max())
    mirrored = pixels.flip(2)
    strips = torch.cat(
        [
            mirrored[:, :, width - 1 - reach : width - 1],
            pixels,
            mirrored[:, :, 1:],
            pixels[:, :, 1 : reach + 1],
        ],
        dim=2,
    )
    rows = _reflect(torch.arange(height, device=dy.device) - dy[:, None], height)
    rows = rows + height * torch.arange(n, device=dy.device)[:, None]
    columns = reach - dx + flipped * (width - 1)
    starts = (rows * strips.shape[2] + columns[:, None]) * channels
    length = width * channels
    stretches = strips.view(-1).as_strided((strips.numel() - length + 1, length), (1, 1))
    return stretches.index_select(0, starts.flatten()).view(n, height, width, channels)


def _reflect(positions: Tensor, size: int) -> Tensor:
    """Positions beyond 0 .. size-1 reflected at the ends, without repeating them."""
    return (size - 1) - ((size - 1) - positions.abs()).abs()


def weak_vectors(
    vectors: Tensor, generator: torch.Generator, *, noise: float, scale: Tensor
) -> Tensor:
    """Add Gaussian noise of ``noise`` times each feature's ``scale`` ``(D,)``."""
    draws = torch.randn(vectors.shape, generator=generator, device=generator.device)
    return torch.addcmul(vectors, draws.to(vectors.device), noise * scale)


def strong_vectors(
    vectors: Tensor, generator: torch.Generator, *, noise: float, scale: Tensor, mean: Tensor
) -> Tensor:
    """Add three times the noise, and replace a fifth of the features by ``mean`` ``(D,)``."""
    noisy = weak_vectors(vectors, generator, noise=STRONG_NOISE * noise, scale=scale)
    draws = torch.rand(vectors.shape, generator=generator, device=generator.device)
    return torch.where(draws.to(vectors.device) < MASKED_FEATURES, mean, noisy)


class Views:
    """Weak or strong views, of images or of vectors.

    Strong views of images come from CTAugment, which adapts its strength to the network: ``learn``
    updates it with labelled items.
    """

    def __init__(
        self,
        network: Network,
        strength: Literal["weak", "strong"],
        settings: AugmentSettings,
        generator: torch.Generator,
    ) -> None:
        self.network, self.settings, self.generator = network, settings, generator
        self.is_images = len(network.input_shape) > 1
        self.is_strong = strength == "strong"
        self.ctaugment = CTAugment() if self.is_strong and self.is_images else None

    def plain(self, items: Tensor) -> Tensor:
        """The items without augmentation: of stacked views the first, the item itself."""
        return items[:, 0] if items.ndim == 3 else items

    def weak(self, items: Tensor) -> Tensor:
        if self.is_images:
            return weak_view(items, self.generator, self.settings)
        if items.ndim == 3:
            return self._stacked(items)
        return weak_vectors(
            items, self.generator, noise=self.settings.noise, scale=self.network.scale
        )

    def _stacked(self, items: Tensor) -> Tensor:
        """A random one of each item's stacked views."""
        n, n_views, _ = items.shape
        device = items.device
        chosen = torch.randint(n_views, (n,), generator=self.generator, device=device)
        return items[torch.arange(n, device=device), chosen]

    def __call__(self, items: Tensor) -> Tensor:
        if not self.is_strong or items.ndim == 3:
            return self.weak(items)
        if self.ctaugment is not None:
            return self.ctaugment.augment(self.weak(items), self.generator)
        noise, scale, mean = self.settings.noise, self.network.scale, self.network.mean
        return strong_vectors(items, self.generator, noise=noise, scale=scale, mean=mean)

    def partly(self, items: Tensor, share: float) -> Tensor:
        """A batch in which the first ``share`` of the items are augmented, the others plain."""
        n_viewed = round(share * len(items))
        plain = self.plain(items[n_viewed:])
        return torch.cat([self(items[:n_viewed]), plain]) if n_viewed else plain

    def learn(self, items: Tensor, labels: Tensor) -> None:
        """Update CTAugment with the network's probabilities for distorted labelled items."""
        if self.ctaugment is None:
            return
        distorted, choices = self.ctaugment.probe(items, self.generator)
        self.network.eval()
        with torch.no_grad():
            p = self.network(distorted).softmax(1)
        self.network.train()
        self.ctaugment.update(choices, p.gather(1, labels[:, None])[:, 0])
