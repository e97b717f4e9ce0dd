"""The cache of networks: trained once for the same items, settings and seed, and for no others."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from s2osc.errors import S2OSCWarning
from s2osc.files import lock
from s2osc.nets import network_cache
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.network_cache import networks_cached_in, train_once
from s2osc.nets.networks import Network
from s2osc.pipeline import teacher
from s2osc.pipeline.teacher import train_teacher
from s2osc.types import Labelled
from samples import TINY, TINY_NETWORK, make_blobs

SETTINGS = replace(TINY.teacher, training=replace(TINY.teacher.training, min_steps=6))
KNOWN = Labelled(*make_blobs(20))


@pytest.fixture
def trained(monkeypatch) -> list[int]:
    """The list grows by the number of steps whenever f is really trained."""
    steps, train = [], teacher.train

    def counted(*words, n_steps, **options):
        steps.append(n_steps)
        return train(*words, n_steps=n_steps, **options)

    monkeypatch.setattr(teacher, "train", counted)
    return steps


def f_of(known=KNOWN, settings=SETTINGS, *, seed=0, augmentation=AugmentSettings()):  # noqa: B008
    return train_teacher(known, settings, augmentation, seed=seed, device="cpu").teacher


def weights(f):
    return torch.cat([value.flatten().float() for value in f.network.state_dict().values()])


def test_nothing_is_cached_unless_asked_for(tmp_path, trained):
    with networks_cached_in(tmp_path / "cache"):
        pass
    f_of(), f_of()
    assert len(trained) == 2
    assert not list(tmp_path.iterdir())


def test_a_network_is_trained_once_and_then_read(tmp_path, trained):
    alone = f_of()
    with networks_cached_in(tmp_path / "cache") as first:
        made = f_of()
    assert first.seconds_saved == 0
    with networks_cached_in(tmp_path / "cache") as second:
        read = f_of()
    assert len(trained) == 2  # the one without a cache, and the first with one
    for other in (made, read):
        torch.testing.assert_close(weights(other), weights(alone), rtol=0, atol=0)
        np.testing.assert_array_equal(other.centres, alone.centres)
        assert not other.network.training
    np.testing.assert_array_equal(
        read.outputs(KNOWN.inputs).logits, alone.outputs(KNOWN.inputs).logits
    )
    assert second.seconds_saved > 0
    [file] = (tmp_path / "cache").iterdir()
    assert file.suffix == ".safetensors"


def test_saved_seconds_add_up(tmp_path, monkeypatch):
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(network_cache, "time", SimpleNamespace(perf_counter=clock.__next__))
    network = Network(TINY_NETWORK, (8,), 3)
    call = {"items": (np.zeros(3),), "facts": [1]}
    with networks_cached_in(tmp_path) as folder:
        train_once(network, lambda: None, **call)
        assert folder.seconds_saved == 0
        for expected in (2.5, 5.0):
            train_once(network, lambda: pytest.fail("trained again"), **call)
            assert folder.seconds_saved == expected


def test_another_seed_other_items_or_other_settings_train_anew(tmp_path, trained):
    vectors, labels = KNOWN.inputs.copy(), KNOWN.labels.copy()
    vectors[7, 3] += 1e-3
    labels[0] = 1
    steps = replace(SETTINGS, training=replace(SETTINGS.training, min_steps=7))
    others = [
        {"seed": 1},
        {"known": Labelled(vectors, KNOWN.labels)},
        {"known": Labelled(KNOWN.inputs, labels)},
        {"known": Labelled(KNOWN.inputs[::-1], KNOWN.labels[::-1])},
        {"known": Labelled(KNOWN.inputs[1:], KNOWN.labels[1:])},
        {"settings": steps},
        {"settings": replace(SETTINGS, augment=0.25)},
        {"settings": replace(SETTINGS, network=replace(TINY_NETWORK, hidden=(16, 8)))},
        {"augmentation": AugmentSettings(flip=True)},
    ]
    with networks_cached_in(tmp_path) as folder:
        for number, other in enumerate([{}, *others], start=1):
            f_of(**other)
            assert len(trained) == number, other
        assert folder.seconds_saved == 0
        for other in [{}, *others]:
            f_of(**other)
    assert len(trained) == 1 + len(others) == len(list(tmp_path.iterdir()))


def test_another_number_of_classes_trains_anew(tmp_path):
    made = []
    with networks_cached_in(tmp_path):
        for n_classes in (3, 4, 3):
            network = Network(TINY_NETWORK, (8,), n_classes)
            note = lambda n=n_classes: made.append(n)  # noqa: E731
            train_once(network, note, items=(np.zeros(2),), facts=[])
    assert made == [3, 4]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def fill_with_noise(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(2_000))


def forget_seconds(path: Path) -> None:
    save_file(load_file(path), path)


def write_no_number(path: Path) -> None:
    save_file(load_file(path), path, metadata={"seconds": "long"})


def scramble_all_but_one(path: Path) -> None:
    """Weights of another network, one of which is missing."""
    tensors = {name: torch.zeros_like(tensor) for name, tensor in load_file(path).items()}
    tensors.popitem()
    save_file(tensors, path, metadata={"seconds": "3"})


@pytest.mark.parametrize(
    "damage",
    [truncate, empty, fill_with_noise, forget_seconds, write_no_number, scramble_all_but_one],
    ids=lambda damage: damage.__name__,
)
def test_a_damaged_file_is_replaced_by_training_again(tmp_path, trained, damage):
    with networks_cached_in(tmp_path):
        whole = f_of()
        [path] = tmp_path.iterdir()
        good = load_file(path)
        damage(path)
        again = f_of()
        assert len(trained) == 2
        torch.testing.assert_close(weights(again), weights(whole), rtol=0, atol=0)
        assert load_file(path).keys() == good.keys()
        f_of()
    assert len(trained) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_interrupted_training_caches_nothing(tmp_path):
    def stopped():
        raise KeyboardInterrupt

    network = Network(TINY_NETWORK, (8,), 3)
    with pytest.raises(KeyboardInterrupt), networks_cached_in(tmp_path):
        train_once(network, stopped, items=(), facts=[])
    assert not list(tmp_path.iterdir())


def test_of_two_nested_caches_the_inner_one_is_used(tmp_path):
    network = Network(TINY_NETWORK, (8,), 3)
    call = {"items": (), "facts": []}
    with networks_cached_in(tmp_path / "outer"):
        with networks_cached_in(tmp_path / "inner"):
            train_once(network, lambda: None, **call)
        assert not (tmp_path / "outer").exists()
        train_once(network, lambda: None, **call)
    assert len(list((tmp_path / "outer").iterdir())) == 1
    assert len(list((tmp_path / "inner").iterdir())) == 1


def test_a_cache_that_cannot_be_written_warns_and_the_training_counts(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    trained = []
    network = Network(TINY_NETWORK, (8,), 3)
    with (
        networks_cached_in(blocked / "cache"),
        pytest.warns(S2OSCWarning, match=r"cannot be cached in .*set \$S2OSC_CACHE"),
    ):
        train_once(network, lambda: trained.append(1), items=(), facts=[])
    assert trained == [1]


def test_processes_that_write_at_once_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(network_cache, "PATIENCE", 0.0)
    network = Network(TINY_NETWORK, (8,), 3)
    with (
        lock(tmp_path / "cache.lock", "busy"),
        networks_cached_in(tmp_path / "cache"),
        pytest.warns(S2OSCWarning, match="another process is writing"),
    ):
        train_once(network, lambda: None, items=(), facts=[])
    assert not list((tmp_path / "cache").iterdir())
