"""Phi(x): augmented views of a network's training batches."""

from typing import Literal

import torch
from torch import Tensor

from s2osc.nets.augmentation.augment import AugmentSettings, strong_vectors, weak_vectors, weak_view
from s2osc.nets.augmentation.ctaugment import CTAugment
from s2osc.nets.networks import Network


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
