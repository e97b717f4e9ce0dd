"""An autoencoder trained as a generative adversarial network: encoder E, generator G, critic D.

Codes lie on a product of unit spheres, one per group of numbers, so that any code can be decoded:
E(x), noise, or the result of a search. Codes of images are maps of about 4 x 4; codes of vectors
are rows of numbers.

    E and G   mean |x - G(E(x))| - w mean D(G(z))
    D         mean D(G(z)) - mean D(x) + 10 mean (||grad D(x')||_2 - 1)^2

This is the Wasserstein loss with gradient penalty. Half of the codes z are E(x), half are noise on
the spheres; x' is a random point between an item and a generated one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.errors import SettingsError
from s2osc.nets.networks import MIN_WIDTH, as_tensor, count_channels
from s2osc.nets.training import shuffled
from s2osc.progress import track
from s2osc.seeding import derive, rng, torch_seed
from s2osc.settings import require_least, require_positive

CODE_SIDE = 4
SLOPE = 0.2  # of the leaky rectifiers
NORM_CHANNELS = 8  # channels that are normalised together

Shape = tuple[int, ...]


@dataclass(frozen=True)
class GanSettings:
    """The size of E, G and D, and how Adam trains them: one step of D and one of E, G per batch."""

    width: int = 16  # images: channels of E and D after one halving, doubled to 4 x; G has 2 x
    hidden: int = 256  # vectors: width of each layer
    n_groups: int = 16  # unit spheres of a code; of images, each is one map
    group_size: int = 16  # vectors: numbers in each group
    epochs: int = 14
    min_steps: int = 600
    batch_size: int = 64
    learning_rate: float = 2e-3
    critic_weight: float = 0.05  # w
    penalty: float = 10.0

    def __post_init__(self) -> None:
        smallest = {"width": MIN_WIDTH, "hidden": 1, "n_groups": 1, "group_size": 2}
        smallest |= {"epochs": 1, "min_steps": 0, "batch_size": 2, "critic_weight": 0, "penalty": 0}
        for name, least in smallest.items():
            require_least(f"gan.{name}", getattr(self, name), least)
        require_positive("gan.learning_rate", self.learning_rate)

    def n_steps(self, n_items: int) -> int:
        """Steps that ``epochs`` passes over ``n_items`` take, or ``min_steps``.

        >>> GanSettings(epochs=20, min_steps=600).n_steps(6400)
        2000
        """
        return max(self.min_steps, self.epochs * ceil(n_items / self.batch_size))


# The equations


def to_spheres(codes: Tensor, n_groups: int) -> Tensor:
    """Codes (n, L) with each of their ``n_groups`` groups scaled to length 1.

    >>> to_spheres(torch.tensor([[3.0, 4.0, 0.0, -2.0]]), n_groups=2)
    tensor([[ 0.6000,  0.8000,  0.0000, -1.0000]])
    """
    return F.normalize(codes.unflatten(1, (n_groups, -1)), dim=2).flatten(1)


def critic_loss(on_items: Tensor, on_generated: Tensor) -> Tensor:
    """mean D(G(z)) - mean D(x)."""
    return on_generated.mean() - on_items.mean()


def generator_loss(
    items: Tensor, reconstructions: Tensor, on_generated: Tensor, *, critic_weight: float
) -> Tensor:
    """mean |x - G(E(x))| - w mean D(G(z))."""
    return F.l1_loss(reconstructions, items) - critic_weight * on_generated.mean()


def gradient_penalty(critic: Callable[[Tensor], Tensor], items: Tensor, *, weight: float) -> Tensor:
    """``weight`` * mean (||grad D(x)||_2 - 1)^2."""
    items = items.detach().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(items).sum(), items, create_graph=True)
    return weight * ((slopes.flatten(1).norm(dim=1) - 1) ** 2).mean()


def between(items: Tensor, generated: Tensor, generator: torch.Generator) -> Tensor:
    """A random point on the line from each item to a generated one."""
    share = torch.rand(len(items), generator=generator, device=items.device)
    share = share.reshape(-1, *[1] * (items.ndim - 1))
    return share * items + (1 - share) * generated


# The networks


class Autoencoder(nn.Module):
    """E and G between normalised inputs and codes on the spheres.

    Normalised pixels lie between 0 and 1; normalised features have mean 0 and deviation 1.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, settings: GanSettings, input_shape: Shape) -> None:
        """For inputs of ``input_shape``: (H, W), (H, W, 3) or (D,)."""
        super().__init__()
        self.n_groups = settings.n_groups
        if len(input_shape) == 1:
            self.encoder, self.generator = vector_coders(settings, input_shape[0])
            self.n_code = settings.n_groups * settings.group_size
            offset, scale = torch.zeros(input_shape), torch.ones(input_shape)
        else:
            self.encoder, self.generator = image_coders(settings, input_shape)
            height, width = halvings(input_shape[:2])[-1]
            self.n_code = settings.n_groups * height * width
            offset, scale = torch.zeros(1), torch.full((1,), 255.0)
        self.register_buffer("offset", offset)
        self.register_buffer("scale", scale)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def fit_normalisation(self, vectors: np.ndarray) -> None:
        """Store mean and deviation of each feature; a constant feature keeps its scale."""
        mean, deviation = vectors.mean(0, np.float64), vectors.std(0, np.float64)
        self.offset.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(np.where(deviation < 1e-6, 1.0, deviation)))

    def normalise(self, inputs: Tensor) -> Tensor:
        return (inputs.float() - self.offset) / self.scale

    def restore(self, normalised: Tensor) -> Tensor:
        return normalised * self.scale + self.offset

    def encode(self, normalised: Tensor) -> Tensor:
        """E(x): (n, n_code), each group of unit length."""
        return to_spheres(self.encoder(normalised), self.n_groups)

    def decode(self, codes: Tensor) -> Tensor:
        """G(z), normalised."""
        return self.generator(codes)

    def noise(self, n: int, generator: torch.Generator) -> Tensor:
        """Codes spread evenly over the spheres."""
        draws = torch.randn((n, self.n_code), generator=generator, device=generator.device)
        return to_spheres(draws, self.n_groups)


def halvings(shape: Shape) -> list[Shape]:
    """The sides of an image, halved (and rounded up) down to those of a code.

    >>> halvings((28, 28))
    [(28, 28), (14, 14), (7, 7), (4, 4)]
    >>> halvings((8, 11))
    [(8, 11), (4, 6), (2, 3)]
    """
    shapes = [shape]
    while max(shapes[-1]) > CODE_SIDE or len(shapes) == 1:
        shapes.append(tuple((side + 1) // 2 for side in shapes[-1]))
    return shapes


def kernel(shape: Shape) -> tuple[int, int]:
    """The kernel that halves these sides (or doubles to them) with stride 2 and padding 1.

    >>> kernel((28, 7))
    (4, 3)
    """
    height, width = (4 if side % 2 == 0 else 3 for side in shape)
    return height, width


def channel_counts(width: int, n_halvings: int) -> list[int]:
    """Channels after each halving.

    >>> channel_counts(16, 4)
    [16, 32, 64, 64]
    """
    return [width * min(2**i, 4) for i in range(n_halvings)]


def normed(layer: nn.Module, n_out: int) -> list[nn.Module]:
    """A layer, group normalisation (batches mix E(x) and noise) and a rectifier."""
    n_groups = n_out // NORM_CHANNELS if n_out % NORM_CHANNELS == 0 else 1
    return [layer, nn.GroupNorm(n_groups, n_out), nn.LeakyReLU(SLOPE)]


def image_coders(settings: GanSettings, input_shape: Shape) -> tuple[nn.Sequential, nn.Sequential]:
    """E and G: strided convolutions down to the sides of a code, and back."""
    shapes, n_in = halvings(input_shape[:2]), count_channels(input_shape)
    counts = channel_counts(settings.width, len(shapes) - 1)
    encoder: list[nn.Module] = []
    for shape, (a, b) in zip(shapes, pairwise([n_in, *counts]), strict=False):
        encoder += normed(nn.Conv2d(a, b, kernel(shape), 2, 1), b)
    encoder += [nn.Conv2d(counts[-1], settings.n_groups, 3, 1, 1), nn.Flatten()]

    wide = [2 * count for count in counts]
    generator: list[nn.Module] = [nn.Unflatten(1, (settings.n_groups, *shapes[-1]))]
    generator += normed(nn.Conv2d(settings.n_groups, wide[-1], 3, 1, 1), wide[-1])
    for shape, (a, b) in zip(shapes[-2:0:-1], pairwise(wide[::-1]), strict=True):
        generator += normed(nn.ConvTranspose2d(a, b, kernel(shape), 2, 1), b)
    generator += [nn.ConvTranspose2d(wide[0], n_in, kernel(shapes[0]), 2, 1), nn.Sigmoid()]
    return nn.Sequential(*encoder), nn.Sequential(*generator)


def vector_coders(settings: GanSettings, n_features: int) -> tuple[nn.Sequential, nn.Sequential]:
    """E and G: two hidden layers each."""
    hidden, n_code = settings.hidden, settings.n_groups * settings.group_size

    def coder(n_in: int, n_out: int) -> nn.Sequential:
        return nn.Sequential(
            *normed(nn.Linear(n_in, hidden), hidden),
            *normed(nn.Linear(hidden, hidden), hidden),
            nn.Linear(hidden, n_out),
        )

    return coder(n_features, n_code), coder(n_code, n_features)


def build_critic(settings: GanSettings, input_shape: Shape) -> nn.Sequential:
    """D: one number per item. No layer mixes items, so that gradients are per item."""
    layers: list[nn.Module] = []
    if len(input_shape) == 1:
        for a, b in pairwise([input_shape[0], settings.hidden, settings.hidden]):
            layers += [nn.Linear(a, b), nn.LeakyReLU(SLOPE)]
        return nn.Sequential(*layers, nn.Linear(settings.hidden, 1))
    shapes = halvings(input_shape[:2])
    counts = [count_channels(input_shape), *channel_counts(settings.width, len(shapes) - 1)]
    for shape, (a, b) in zip(shapes, pairwise(counts), strict=False):
        layers += [nn.Conv2d(a, b, kernel(shape), 2, 1), nn.LeakyReLU(SLOPE)]
    height, width = shapes[-1]
    critic = nn.Sequential(*layers, nn.Flatten(), nn.Linear(counts[-1] * height * width, 1))
    return critic.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


# The training


def train_gan(
    inputs: np.ndarray, settings: GanSettings, *, seed: int, device: str, what: str
) -> Autoencoder:
    """Train E and G with a critic D on ``inputs``, images or vectors."""
    with torch_seed(seed, "gan"):
        coder = Autoencoder(settings, inputs.shape[1:])
        critic = build_critic(settings, inputs.shape[1:])
    if inputs.ndim == 2:
        coder.fit_normalisation(inputs)
    coder.to(device)
    critic.to(device)
    coder_steps, critic_steps = adam(coder, settings), adam(critic, settings)
    batches = shuffled(len(inputs), settings.batch_size, rng(seed, "gan batches"))
    generator = torch.Generator(device).manual_seed(derive(seed, "gan noise"))
    n_steps = settings.n_steps(len(inputs))
    for step in track(range(n_steps), what, total=n_steps):
        for optimiser in (coder_steps, critic_steps):
            optimiser.param_groups[0]["lr"] = settings.learning_rate * rate_factor(step, n_steps)
        items = coder.normalise(as_tensor(inputs[next(batches)], device))
        half = len(items) // 2
        noise = coder.noise(len(items) - half, generator)
        reconstructions, from_noise = generate(coder, items, noise)
        generated = torch.cat([reconstructions[:half], from_noise])

        fixed = generated.detach()
        loss = critic_loss(critic(items), critic(fixed)) + gradient_penalty(
            critic, between(items, fixed, generator), weight=settings.penalty
        )
        gradient_step(critic_steps, loss, what)
        loss = generator_loss(
            items, reconstructions, critic(generated), critic_weight=settings.critic_weight
        )
        gradient_step(coder_steps, loss, what)
    return coder.eval()


def generate(coder: Autoencoder, items: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """G(E(x)) and G(noise), in one forward pass."""
    images = coder.decode(torch.cat([coder.encode(items), noise]))
    return images[: len(items)], images[len(items) :]


def adam(module: nn.Module, settings: GanSettings) -> torch.optim.Adam:
    return torch.optim.Adam(module.parameters(), settings.learning_rate, betas=(0.5, 0.999))


def rate_factor(step: int, n_steps: int) -> float:
    """The factor of the learning rate: 1 in the first half of the steps, then down to 0.

    >>> [rate_factor(step, 8) for step in range(8)]
    [1.0, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    return min(1.0, 2 * (1 - step / n_steps))


def gradient_step(optimiser: torch.optim.Optimizer, loss: Tensor, what: str) -> None:
    """One step of an optimiser; refuse a loss that is not finite."""
    if not torch.isfinite(loss):
        raise SettingsError(
            f"{what}: the loss is {loss.item()}; give a lower gan.learning_rate, "
            "or inputs of ordinary size"
        )
    optimiser.zero_grad()
    loss.backward(inputs=optimiser.param_groups[0]["params"])
    optimiser.step()
