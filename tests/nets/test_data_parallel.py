"""Several processes that train one network: the step is that of the whole batch."""

import multiprocessing

import numpy as np
import torch
from torch import distributed, nn

from s2osc.nets.data_parallel import average_gradients, share_of, trained_by, trainer


def make_step(place: str, rank: int) -> None:
    """One of two processes: its share of a batch, and the gradients that both then have."""
    distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
    torch.manual_seed(0)
    network, inputs = nn.Linear(3, 2), torch.randn(8, 3)
    unused = nn.Parameter(torch.ones(4))
    network(share_of(inputs)).square().mean().backward()
    average_gradients([*network.parameters(), unused])
    assert unused.grad is None
    torch.save([p.grad for p in network.parameters()], f"{place}-{rank}")
    distributed.destroy_process_group()


def test_two_processes_make_the_step_of_one(tmp_path):
    place = tmp_path / "group"
    forks = multiprocessing.get_context("fork")  # which have torch imported already
    running = [forks.Process(target=make_step, args=(str(place), rank)) for rank in (0, 1)]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0, 0]
    torch.manual_seed(0)
    network, inputs = nn.Linear(3, 2), torch.randn(8, 3)
    network(inputs).square().mean().backward()
    expected = [parameter.grad for parameter in network.parameters()]
    for rank in (0, 1):
        found = torch.load(f"{place}-{rank}", weights_only=True)
        for gradient, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(gradient, wanted)


def test_a_process_that_is_alone_has_the_whole_batch():
    rows, weight = np.arange(5), torch.nn.Parameter(torch.ones(2))
    assert share_of(rows) is rows
    weight.grad = torch.ones(2)
    average_gradients([weight])
    assert weight.grad.tolist() == [1, 1]


def test_networks_are_trained_by_whoever_is_named():
    called = []
    with trained_by(lambda fit, network, *facts, **more: called.append((fit, facts, more))):
        trainer()("fit", None, 1, seed=2)
    assert called == [("fit", (1,), {"seed": 2})]
    trainer()(called.append, "here")
    assert called[-1] == "here"
