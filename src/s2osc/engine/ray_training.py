"""Training on a Ray cluster: workers of Ray Train, joined by torch, train one network together.

The network and what it learns from are put into the object store once. Where a worker dies, all
begin anew, with the same random numbers.
"""

import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, distributed

from s2osc.engine.ray_cluster import connected
from s2osc.errors import S2OSCError
from s2osc.nets.networks import Network, is_gpu

MOST_FAILURES = 3


@dataclass(frozen=True)
class RayTrainer:
    """Trains networks by as many workers as are wanted."""

    address: str | None = None  # None: Ray is started here
    n_workers: int | None = None  # None: one for every CPU of the cluster, or GPU

    def __call__(
        self, fit: Callable[..., None], network: Network, *facts: Any, **more: Any
    ) -> None:
        with connected(self.address, self.n_workers) as ray:
            on_gpu = is_gpu(network.device)
            n_there = int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 1))
            n_workers = min(self.n_workers or n_there, n_there)
            if n_workers == 1:
                fit(network, *facts, **more)
                return
            device = network.device
            sent = ray.put((fit, network.to("cpu"), facts, more))
            weights = _train(ray, [sent], n_workers, on_gpu=on_gpu)
            network.load_state_dict(weights)
            network.to(device).eval()


def _train(ray: Any, work: list[Any], n_workers: int, *, on_gpu: bool) -> dict[str, Tensor]:
    """The weights that workers come to; ``work`` holds a reference to what they do."""
    from ray import train  # noqa: PLC0415  (an extra, and slow to import)
    from ray.train.torch import TorchConfig, TorchTrainer  # noqa: PLC0415

    logging.getLogger("ray.train").setLevel(logging.ERROR)
    found = ray.remote(num_cpus=0)(Place).remote()
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            work_together,
            train_loop_config={"work": work, "found": found},
            scaling_config=train.ScalingConfig(num_workers=n_workers, use_gpu=on_gpu),
            torch_config=TorchConfig(backend="nccl" if on_gpu else "gloo"),
            run_config=train.RunConfig(
                storage_path=folder,
                failure_config=train.FailureConfig(max_failures=MOST_FAILURES),
            ),
        )
        try:
            trainer.fit()
        except Exception as error:
            if reason := _reason(error):
                raise reason from error
            raise
    weights: dict[str, Tensor] = ray.get(found.take.remote())
    return weights


def work_together(config: dict[str, Any]) -> None:
    """What each worker does; torch has joined them before."""
    import ray  # noqa: PLC0415

    fit, network, facts, more = ray.get(config["work"][0])
    network.to(more["device"])
    fit(network, *facts, **more)
    if distributed.get_rank() == 0:
        weights = {name: values.cpu() for name, values in network.state_dict().items()}
        ray.get(config["found"].put.remote(weights))


class Place:
    """Holds the weights of a trained network until they are fetched."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}

    def put(self, weights: dict[str, Tensor]) -> None:
        self.weights = weights

    def take(self) -> dict[str, Tensor]:
        return self.weights


def _reason(error: BaseException) -> S2OSCError | None:
    """What a worker said went wrong, if that is one of our errors."""
    failures = getattr(error, "worker_failures", {}).values()
    for failure in (error, error.__cause__, *failures):
        for each in (failure, getattr(failure, "cause", None)):
            if isinstance(each, S2OSCError):
                return each
    return None
