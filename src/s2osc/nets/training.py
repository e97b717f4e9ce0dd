"""The one training loop, and a network's outputs in batches."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from s2osc.arrays import chunks
from s2osc.errors import SettingsError
from s2osc.nets.data_parallel import average_gradients, share_of
from s2osc.nets.networks import Network, as_tensor, is_gpu
from s2osc.progress import track
from s2osc.settings import require_choice, require_least, require_positive, require_range

Batch = TypeVar("Batch")
SCORING_BATCH = 512
PRETRAINED_BATCH = 64  # with maps of a few views each, which stay in the processor's cache
FEW_WEIGHTS = 1_000_000
"""Of a network for vectors. A step with fewer takes a few milliseconds: dividing it among threads
saves nothing, and where other work keeps them from running together, it takes several times longer.
"""
MOMENTUM = 0.9
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam


@dataclass(frozen=True)
class TrainSettings:
    """How one network is trained: SGD with Nesterov momentum 0.9, or Adam for pretrained ones."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    min_steps: int = 0  # small data sets get at least this many steps
    optimiser: Literal["sgd", "adam"] = "sgd"
    layer_decay: float = 1.0  # of the rate, for each block of a pretrained network further down

    def __post_init__(self) -> None:
        require_least("training.epochs", self.epochs, 1)
        require_least("training.batch_size", self.batch_size, 2)
        require_least("training.min_steps", self.min_steps, 0)
        require_positive("training.learning_rate", self.learning_rate)
        require_least("training.weight_decay", self.weight_decay, 0)
        require_choice("training.schedule", self.schedule, ("one-cycle", "constant"))
        require_choice("training.optimiser", self.optimiser, ("sgd", "adam"))
        require_range("training.layer_decay", self.layer_decay, 0, 1)

    def n_steps(self, n_items: int) -> int:
        """Steps that ``epochs`` passes over ``n_items`` take.

        >>> TrainSettings(2, 64, 0.1, 0.0).n_steps(640)
        20
        """
        return max(self.min_steps, self.epochs * ceil(n_items / self.batch_size))


def resolve_device(name: str) -> str:
    """The device that ``auto``, ``cpu`` or ``cuda`` stands for here.

    >>> resolve_device("cpu")
    'cpu'
    """
    has_cuda = torch.cuda.is_available()
    if name == "auto":
        return "cuda" if has_cuda else "cpu"
    if name not in ("cpu", "cuda"):
        raise SettingsError(f"the device is {name!r}; give auto, cpu or cuda")
    if name == "cuda" and not has_cuda:
        raise SettingsError("the device is cuda, but torch finds no GPU here; give cpu or auto")
    return name


def shuffled(n_items: int, batch_size: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Endless full batches of row numbers, each epoch in a new random order.

    Rows left over at the end of an epoch are dropped.

    >>> batches = shuffled(5, 2, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(batches), next(batches)]).tolist())[0] in range(5)
    True
    """
    batch_size = min(batch_size, n_items)
    while True:
        order = random.permutation(n_items)
        for start in range(0, n_items - batch_size + 1, batch_size):
            yield order[start : start + batch_size]


def train(
    network: Network,
    batches: Iterator[Batch],
    loss_of: Callable[[Batch], Tensor],
    settings: TrainSettings,
    *,
    n_steps: int,
    what: str,
) -> None:
    """Minimise ``loss_of(batch)``, the one thing in which f, g and baselines differ.

    Of several processes that train a network together, each goes through its share of a batch.
    """
    parameters = list(network.parameters())
    factors = network.rate_factors(settings.layer_decay)
    kind = AdamDescent if settings.optimiser == "adam" else NesterovDescent
    descent = kind(parameters, settings.weight_decay, factors)
    rates, on_gpu = learning_rates(settings, n_steps), is_gpu(network.device)
    network.train()
    with threads_for(network):
        for step in track(range(n_steps), what, total=n_steps):
            for parameter in parameters:
                parameter.grad = None
            with torch.autocast("cuda", torch.bfloat16) if on_gpu else nullcontext():
                loss = loss_of(share_of(next(batches)))
            if not torch.isfinite(loss):
                raise SettingsError(
                    f"{what}: the loss is {loss.item()} in step {step + 1} of {n_steps}; give a "
                    "lower learning rate, or inputs of ordinary size"
                )
            loss.backward()
            average_gradients(parameters)
            descent.step(rates[step])
    network.eval()


@contextmanager
def threads_for(network: Network) -> Iterator[None]:
    """As many threads as there are, but one for the small steps of a network for vectors."""
    n_threads, n_weights = torch.get_num_threads(), sum(p.numel() for p in network.parameters())
    takes_vectors = len(network.input_shape) == 1 and not network.settings.is_pretrained
    torch.set_num_threads(1 if takes_vectors and n_weights <= FEW_WEIGHTS else n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


class NesterovDescent:
    """SGD with Nesterov momentum and weight decay, in the steps of ``torch.optim.SGD``.

    Making one of torch's optimisers imports its compiler, 1.4 s of a run that may take ten.
    """

    def __init__(
        self, parameters: list[nn.Parameter], weight_decay: float, factors: Sequence[float]
    ) -> None:
        self.parameters, self.weight_decay, self.factors = parameters, weight_decay, factors
        self.velocities = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Each parameter by the rate times its factor."""
        each = zip(self.parameters, self.velocities, self.factors, strict=True)
        for parameter, velocity, factor in each:
            if parameter.grad is None:  # no loss reaches it
                continue
            gradient = parameter.grad.add(parameter, alpha=self.weight_decay)
            velocity.mul_(MOMENTUM).add_(gradient)
            parameter.add_(gradient.add_(velocity, alpha=MOMENTUM), alpha=-rate * factor)


class AdamDescent:
    """Adam with decoupled weight decay, in the steps of ``torch.optim.AdamW``."""

    def __init__(
        self, parameters: list[nn.Parameter], weight_decay: float, factors: Sequence[float]
    ) -> None:
        self.parameters, self.weight_decay, self.factors = parameters, weight_decay, factors
        self.means = [torch.zeros_like(parameter) for parameter in parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in parameters]
        self.n_steps = 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Each parameter by the rate times its factor."""
        self.n_steps += 1
        mean_weight, square_weight = (1 - beta**self.n_steps for beta in BETAS)
        each = zip(self.parameters, self.means, self.squares, self.factors, strict=True)
        for parameter, mean, square, factor in each:
            if parameter.grad is None:  # no loss reaches it
                continue
            mean.lerp_(parameter.grad, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(parameter.grad, parameter.grad, value=1 - BETAS[1])
            parameter.mul_(1 - rate * factor * self.weight_decay)
            spread = square.sqrt().div_(square_weight**0.5).add_(EPSILON)
            parameter.addcdiv_(mean, spread, value=-rate * factor / mean_weight)


def learning_rates(settings: TrainSettings, n_steps: int) -> np.ndarray:
    """The rate of each step: constant, or up over the first quarter and down to nearly 0.

    >>> learning_rates(TrainSettings(1, 2, 0.4, 0.0), 8).round(2).tolist()
    [0.2, 0.4, 0.38, 0.32, 0.24, 0.16, 0.08, 0.02]
    """
    if settings.schedule == "constant":
        return np.full(n_steps, settings.learning_rate)
    n_up = max(1, n_steps // 4)
    up = np.arange(1, n_up + 1) / n_up
    down = (1 + np.cos(np.pi * np.arange(1, n_steps - n_up + 1) / (n_steps - n_up + 1))) / 2
    return settings.learning_rate * np.concatenate([up, down])


class Outputs(NamedTuple):
    """Logits and embeddings of n items."""

    logits: np.ndarray  # (n, n_outputs) float32
    embeddings: np.ndarray  # (n, d) float32


def in_batches(
    network: Network, inputs: np.ndarray, what: str
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield (rows, logits, embeddings) of one forward pass, batch by batch, without gradients."""
    network.eval()
    at_once = PRETRAINED_BATCH if network.settings.is_pretrained else SCORING_BATCH
    batches = chunks(len(inputs), at_once)
    for rows in track(batches, what, total=len(batches)):
        with torch.inference_mode():
            embeddings = network.embed(as_tensor(inputs[rows], network.device))
            logits = network.head(embeddings)
        yield rows, logits, embeddings


def outputs(network: Network, inputs: np.ndarray, *, what: str) -> Outputs:
    """Logits and embeddings of every item, from one forward pass."""
    logits = np.empty((len(inputs), network.head.out_features), np.float32)
    embeddings = np.empty((len(inputs), network.head.in_features), np.float32)
    for rows, batch_logits, batch_embeddings in in_batches(network, inputs, what):
        logits[rows] = batch_logits.cpu().numpy()
        embeddings[rows] = batch_embeddings.cpu().numpy()
    return Outputs(logits, embeddings)
