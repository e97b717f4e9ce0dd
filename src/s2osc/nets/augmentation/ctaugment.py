"""Strong views of images: CTAugment learns the strength of each operation (Berthelot et al. 2020).

Each parameter of each operation is divided into bins, and each bin has a rate. Labelled images
distorted at random (``probe``) show how well the network recognises images of a bin (``update``); a
strong view (``augment``) draws only from bins with a high rate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from s2osc.nets.augmentation import image_ops
from s2osc.settings import require_least, require_share


@dataclass(frozen=True)
class Op:
    """An operation, and how many bins each of its parameters has."""

    function: Callable[..., Tensor]  # of images and one level (n,) per parameter
    bins: tuple[int, ...] = (17,)


OPS = {
    "autocontrast": Op(image_ops.autocontrast),
    "blur": Op(image_ops.blur),
    "brightness": Op(image_ops.brightness),
    "color": Op(image_ops.color),
    "contrast": Op(image_ops.contrast),
    "cutout": Op(image_ops.cutout, (17, 1, 1)),  # one bin: the place is uniform, not learnt
    "equalize": Op(image_ops.equalize),
    "identity": Op(image_ops.identity, ()),
    "invert": Op(image_ops.invert),
    "posterize": Op(image_ops.posterize, (8,)),
    "rescale": Op(image_ops.rescale, (17, 6)),
    "rotate": Op(image_ops.rotate),
    "sharpness": Op(image_ops.sharpness),
    "shear_x": Op(image_ops.shear_x),
    "shear_y": Op(image_ops.shear_y),
    "smooth": Op(image_ops.smooth),
    "solarize": Op(image_ops.solarize),
    "translate_x": Op(image_ops.translate_x),
    "translate_y": Op(image_ops.translate_y),
}
# Every operation gets three parameters, to draw a batch at once; missing ones have one bin.
N_BINS = torch.tensor(list(zip_longest(*(op.bins for op in OPS.values()), fillvalue=1))).T


@dataclass(frozen=True)
class CTAugmentSettings:
    """The number of operations per view, and how their rates are learnt and used."""

    depth: int = 2  # operations per view
    decay: float = 0.99  # weight of the old rate in an update
    threshold: float = 0.8  # bins below this share of the best one are not drawn; ReMixMatch: 0.85

    def __post_init__(self) -> None:
        require_least("CTAugmentSettings.depth", self.depth, 1)
        require_share("CTAugmentSettings.decay", self.decay)
        require_share("CTAugmentSettings.threshold", self.threshold)


@dataclass(frozen=True)
class Choices:
    """The operations drawn for n images, and their strengths."""

    ops: Tensor  # (n, depth) int64: an index into OPS
    levels: Tensor  # (n, depth, 3) float, 0 .. 1


def rate_update(rate: Tensor, match: Tensor, *, decay: float, times: Tensor | int = 1) -> Tensor:
    """Move a rate towards ``match``, ``times`` times.

    >>> round(float(rate_update(torch.tensor(1.0), torch.tensor(0.2), decay=0.99)), 6)
    0.992
    """
    old_weight = decay**times
    return old_weight * rate + (1 - old_weight) * match


def bin_probabilities(rates: Tensor, *, decay: float, threshold: float) -> Tensor:
    """Weights of a parameter's bins (last axis): 1 for the best, 0 for those below the threshold.

    >>> rates = torch.tensor([1.0, 0.992, 0.5])
    >>> [round(p, 5) for p in bin_probabilities(rates, decay=0.99, threshold=0.8).tolist()]
    [1.0, 0.99208, 0.0]
    """
    weights = rates + (1 - decay)  # never all zero
    weights = weights / weights.amax(-1, keepdim=True)
    return weights.where(weights >= threshold, 0)


class CTAugment:
    """Distortions as strong as the network can recognise, learnt during its training."""

    def __init__(self, settings: CTAugmentSettings | None = None) -> None:
        self.settings = settings or CTAugmentSettings()
        self._exists = torch.arange(int(N_BINS.max())) < N_BINS[:, :, None]
        self.rates = self._exists.double()  # (operations, 3, bins), 0 where there is no such bin

    def probe(self, images: Tensor, generator: torch.Generator) -> tuple[Tensor, Choices]:
        """Distort labelled images with random operations at random levels."""
        choices = self.draw_probe(len(images), generator)
        return apply_choices(images, choices), choices

    def augment(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Distort images as far as the rates allow, then cut out a square of half the side.

        In FixMatch, ``images`` are weak views.
        """
        distorted = apply_choices(images, self.draw_policy(len(images), generator))
        places = torch.rand(2, len(images), generator=generator, device=generator.device)
        row, column = places.to(images.device)
        return image_ops.cutout(distorted, torch.ones_like(row), row, column)

    def update(self, choices: Choices, match: Tensor) -> None:
        """Update the rates; ``match`` ``(n,)`` is the network's probability of the true class.

        Several images in one bin count as as many updates with their mean, whatever their order.
        """
        n_bins = N_BINS[choices.ops]
        bins = (choices.levels * n_bins).long().minimum(n_bins - 1)
        cells = self._first_cells(choices.ops) + bins
        matches = match.detach().to("cpu", torch.float64)[:, None, None].expand(cells.shape)
        times = torch.bincount(cells.flatten(), minlength=self.rates.numel())
        total = torch.bincount(cells.flatten(), matches.flatten(), minlength=self.rates.numel())
        updated = rate_update(
            self.rates.flatten(),
            total / times.clamp(min=1),
            decay=self.settings.decay,
            times=times.double(),
        )
        self.rates = updated.view(self.rates.shape)

    def draw_probe(self, n: int, generator: torch.Generator) -> Choices:
        """Operations and levels for n images, all equally likely."""
        shape, device = (n, self.settings.depth), generator.device
        ops = torch.randint(len(OPS), shape, generator=generator, device=device)
        levels = torch.rand(*shape, N_BINS.shape[1], generator=generator, device=device)
        return Choices(ops.cpu(), levels.cpu())

    def draw_policy(self, n: int, generator: torch.Generator) -> Choices:
        """Operations for n images, all equally likely, and levels within bins the rates allow."""
        uniform = self.draw_probe(n, generator)
        if n == 0:  # multinomial takes no empty tensor
            return uniform
        weights = bin_probabilities(
            self.rates, decay=self.settings.decay, threshold=self.settings.threshold
        )
        weights = (weights * self._exists)[uniform.ops].to(generator.device)
        bins = torch.multinomial(weights.flatten(0, 2), 1, generator=generator).cpu()
        levels = (bins.view(uniform.levels.shape) + uniform.levels) / N_BINS[uniform.ops]
        return Choices(uniform.ops, levels)

    def _first_cells(self, ops: Tensor) -> Tensor:
        """The index of each parameter's first bin in the flattened rates, ``(n, depth, 3)``."""
        _, n_parameters, n_bins = self.rates.shape
        return (ops[:, :, None] * n_parameters + torch.arange(n_parameters)) * n_bins


def apply_choices(images: Tensor, choices: Choices) -> Tensor:
    """Apply its operations to each image, one after the other."""
    levels = choices.levels.to(images.device)
    for step in range(choices.ops.shape[1]):
        images = _apply_step(images, choices.ops[:, step], levels[:, step])
    return images


def _apply_step(images: Tensor, ops: Tensor, levels: Tensor) -> Tensor:
    """Apply its operation to each image; each operation runs once, on all its images."""
    applied = torch.empty_like(images)
    for number in ops.unique().tolist():
        op = list(OPS.values())[number]
        of = (ops == number).nonzero().squeeze(1).to(images.device)
        applied[of] = op.function(images[of], *levels[of, : len(op.bins)].unbind(1))
    return applied
