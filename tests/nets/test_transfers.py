"""What goes between a device and the memory of the machine: a fixed number of transfers per step.

There is no GPU here. A device that counts stands for one: every way by which values of a tensor
leave it, and the one way by which items come to it.
"""

from collections import Counter

import numpy as np
import pytest
import torch

from s2osc.nets import training
from s2osc.pipeline import student, teacher
from s2osc.pipeline.teacher import train_teacher
from samples import SEEDED, make_blobs, open_set

LEAVING = ("cpu", "tolist", "item", "__bool__", "__float__", "__int__")
SPLIT = open_set(*make_blobs(60))


@pytest.fixture
def transfers(monkeypatch):
    """Counts what comes and leaves; a value that leaves is counted once, by the outermost call."""
    found, depth = Counter(), [0]

    def leaving(name):
        plain = getattr(torch.Tensor, name)

        def counted(tensor, *arguments, **options):
            depth[0] += 1
            try:
                if depth[0] == 1:
                    found["leaves"] += 1
                return plain(tensor, *arguments, **options)
            finally:
                depth[0] -= 1

        return counted

    for name in LEAVING:
        monkeypatch.setattr(torch.Tensor, name, leaving(name))
    for module in (training, teacher, student):
        coming = module.as_tensor

        def counted(inputs, device="cpu", coming=coming):
            found["comes"] += 1
            return coming(inputs, device)

        monkeypatch.setattr(module, "as_tensor", counted)
    return found


def teach(n_steps):
    settings = SEEDED.teacher
    steps = settings.training.__class__(**{**vars(settings.training), "min_steps": n_steps})
    changed = type(settings)(settings.network, steps, settings.augment)
    train_teacher(SPLIT.known, changed, SEEDED.augmentation, seed=0, device="cpu")


def test_a_step_of_f_takes_its_items_and_gives_one_number(transfers):
    teach(40)
    few = transfers.copy()
    transfers.clear()
    teach(60)
    more = Counter({name: transfers[name] - few[name] for name in transfers})
    # Whether the loss is finite is the one thing that is asked of the device.
    assert more["comes"] == 20
    assert more["leaves"] <= 20


def test_scores_leave_once_for_each_batch(transfers):
    taught = train_teacher(SPLIT.known, SEEDED.teacher, SEEDED.augmentation, seed=0, device="cpu")
    transfers.clear()
    items = np.repeat(SPLIT.pool, 10, axis=0)
    taught.teacher.outputs(items)
    n_batches = -(-len(items) // training.SCORING_BATCH)
    assert transfers["comes"] == n_batches
    assert transfers["leaves"] <= 2 * n_batches  # logits and embeddings
