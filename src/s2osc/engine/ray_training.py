"""Training on a Ray cluster: workers of Ray Train, joined by torch, train one network together.

The network and what it learns from are put into the object store once. Where a worker dies, all
begin anew, with the same random numbers. What one of our errors says would be so again: it ends the
training at once.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

from s2osc.engine.ray_cluster import connected
from s2osc.errors import S2OSCError
from s2osc.nets.networks import Network, is_gpu

MOST_FAILURES = 3


@dataclass(frozen=True)
class RayTrainer:
    """Trains networks by a worker for every machine of a cluster, or for every GPU.

    The cores of a machine are threads of one worker, which have nothing to send to each other. So
    on one machine without GPUs this process trains, and comes to the same network as without Ray.
    """

    address: str | None = None  # None: Ray is started here
    n_workers: int | None = None  # at most; None: one for every place to train

    def __call__(
        self, fit: Callable[..., None], network: Network, *facts: Any, **more: Any
    ) -> None:
        with connected(self.address, self.n_workers) as ray:
            on_gpu = is_gpu(network.device)
            places = places_to_train(ray.nodes(), on_gpu=on_gpu)[: self.n_workers]
            if len(places) <= 1:
                fit(network, *facts, **more)
                return
            device = network.device
            sent = ray.put((fit, network.to("cpu"), facts, more))
            weights = _train(ray, [sent], places, on_gpu=on_gpu)
            network.load_state_dict(weights)
            network.to(device).eval()


def places_to_train(nodes: Sequence[Mapping[str, Any]], *, on_gpu: bool) -> list[int]:
    """The cores of every place where a worker can train: a machine, or one core for each GPU.

    >>> machine, gone = {"CPU": 8.0, "GPU": 2.0}, {"Alive": False, "Resources": {"CPU": 8.0}}
    >>> nodes = [{"Alive": True, "Resources": machine}, gone]
    >>> places_to_train(nodes, on_gpu=False), places_to_train(nodes, on_gpu=True)
    ([8], [1, 1])
    """
    found = [node["Resources"] for node in nodes if node["Alive"]]
    if on_gpu:
        return [1] * int(sum(each.get("GPU", 0) for each in found))
    return [int(each["CPU"]) for each in found if each.get("CPU", 0) >= 1]


def _train(ray: Any, work: list[Any], places: list[int], *, on_gpu: bool) -> dict[str, Tensor]:
    """The weights that workers come to; ``work`` holds a reference to what they do."""
    from ray import train  # noqa: PLC0415  (an extra, and slow to import)
    from ray.train.torch import TorchConfig, TorchTrainer  # noqa: PLC0415

    logging.getLogger("ray.train").setLevel(logging.ERROR)
    found, n_cores = ray.remote(num_cpus=0)(Place).remote(), min(places)
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            work_together,
            train_loop_config={"work": work, "found": found, "n_cores": n_cores},
            scaling_config=train.ScalingConfig(
                num_workers=len(places),
                use_gpu=on_gpu,
                resources_per_worker={"CPU": n_cores} | ({"GPU": 1} if on_gpu else {}),
                placement_strategy="SPREAD",
            ),
            torch_config=TorchConfig(backend="nccl" if on_gpu else "gloo"),
            run_config=train.RunConfig(
                storage_path=folder,
                failure_config=train.FailureConfig(max_failures=MOST_FAILURES),
            ),
        )
        trainer.fit()
    outcome: Outcome = ray.get(found.take.remote())
    if isinstance(outcome, S2OSCError):
        raise outcome
    return outcome


def work_together(config: dict[str, Any]) -> None:
    """What each worker does; torch has joined them before."""
    import ray  # noqa: PLC0415

    torch.set_num_threads(config["n_cores"])
    fit, network, facts, more = ray.get(config["work"][0])
    found = config["found"]
    try:
        network.to(more["device"])
        fit(network, *facts, **more)
    except Exception as error:
        if isinstance(error, S2OSCError):
            ray.get(found.put.remote(error))
        elif not isinstance(ray.get(found.take.remote()), S2OSCError):
            raise  # else it is what leaving the group does to those who wait for a gradient
        distributed.destroy_process_group()
        return
    if distributed.get_rank() == 0:
        weights = {name: values.cpu() for name, values in network.state_dict().items()}
        ray.get(found.put.remote(weights))


Outcome = dict[str, Tensor] | S2OSCError
"""The weights of a trained network, or why there are none."""


class Place:
    """Holds what training came to until it is fetched; what went wrong stays."""

    def __init__(self) -> None:
        self.outcome: Outcome = {}

    def put(self, outcome: Outcome) -> None:
        if not isinstance(self.outcome, S2OSCError):
            self.outcome = outcome

    def take(self) -> Outcome:
        return self.outcome
