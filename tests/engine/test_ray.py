"""Work on a Ray cluster: the same answers, also where workers and nodes die."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray")

import ray
import torch
from ray import cloudpickle
from ray.cluster_utils import Cluster
from torch import distributed

from files import easy_vectors, known_labels, npz, pool_labels
from s2osc.app.large_pool import classify_parts
from s2osc.app.part_work import AnswerWorker
from s2osc.app.request import Request
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.records import read_record
from s2osc.bench.runner import run_experiment
from s2osc.data import parts
from s2osc.data.parts import Part, open_parts
from s2osc.data.splits import Protocol
from s2osc.engine.engine import LocalEngine
from s2osc.engine.ray_cluster import N_STARTS, connected
from s2osc.engine.ray_engine import RayEngine
from s2osc.engine.ray_training import RayTrainer
from s2osc.errors import SettingsError
from s2osc.estimator import S2OSC
from s2osc.nets.networks import Network
from s2osc.pipeline.presets import PLAIN
from samples import TINY_NETWORK, make_images, shrink

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
N_EACH = 240
SETTINGS = {
    f"{role}.{name}": value
    for role in ("teacher", "student")
    for name, value in {
        "training.epochs": 1,
        "training.min_steps": 20,
        "network.widths": (8, 8, 8),
        "network.hidden": (16, 16),
    }.items()
} | {"clusters.n_groups": 1}
REQUEST = Request(changes=SETTINGS, fit_on=500, device="cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    known, pool = known_labels(200), pool_labels(N_EACH)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    rows = easy_vectors(pool, seed=1)
    (folder / "pool").mkdir()
    column = pa.array(rows.tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"v": column}), folder / "pool" / "0.parquet", row_group_size=60)
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "ROWS_OF_PART", dict.fromkeys(parts.ROWS_OF_PART, 60))


def run(data, out, engine):
    classify_parts(data / "known.npz", open_parts(data / "pool"), out, REQUEST, engine=engine)
    table = pq.read_table(out / "predictions")
    assert table["item"].to_pylist() == [str(row) for row in range(3 * N_EACH)]
    return table


@pytest.fixture(scope="module")
def local(data, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "ROWS_OF_PART", dict.fromkeys(parts.ROWS_OF_PART, 60))
        return run(data, tmp_path_factory.mktemp("local") / "out", LocalEngine())


def assert_same(found, expected):
    for name in ("item", "label", "group", "nearest"):
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    for name in ("unknown_score", "confidence", "p_known"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


class DyingWorker:
    """Ends its process in the middle of one part, once."""

    def __init__(self, worker: AnswerWorker, number: int) -> None:
        self.worker, self.number = worker, number
        self.mark = worker.folder.work / "died"

    def __call__(self, part: Part) -> int:
        if part.number == self.number and not self.mark.exists():
            self.mark.touch()
            os._exit(1)
        return self.worker(part)


class SlowWorker:
    """Takes its time, so that a node can be lost meanwhile."""

    def __init__(self, worker: AnswerWorker) -> None:
        self.worker = worker

    def __call__(self, part: Part) -> int:
        time.sleep(1.0)
        return self.worker(part)


class ScoringEngine(RayEngine):
    """Trains in this process, so that every answer must be the same."""

    training = LocalEngine.training


class WrappedEngine:
    """Gives the workers that answer another behaviour; all others are as they are."""

    name = "ray"

    def __init__(self, engine, wrap):
        self.engine, self.wrap = engine, wrap

    def run(self, recipe, todo):
        worker, wrap = recipe(), self.wrap
        if isinstance(worker, AnswerWorker):
            worker = wrap(worker)
        yield from self.engine.run(lambda: worker, todo)

    def started(self, clock):
        return self.engine.started(clock)

    def training(self):
        return self.engine.training()


def children_of(pid):
    """Processes that a process started, by the names of their programs."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        if int(rest.split()[1]) == pid:
            found[int(path.parent.name)] = name
    return found


@pytest.fixture
def started():
    with connected(n_workers=2):
        yield


@contextmanager
def cluster_of_two():
    """Two machines, as far as Ray can tell; what was started ends, also where it takes too long."""
    before, cluster = children_of(os.getpid()), Cluster()
    try:
        cluster.add_node(num_cpus=1, include_dashboard=False)
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes(timeout=120)
        with connected(cluster.address):
            yield cluster
    finally:
        cluster.shutdown()
        for pid in children_of(os.getpid()).keys() - before.keys():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def two_nodes():
    """On a busy machine Ray gives up after 30 s; then it is tried again."""
    with ExitStack() as stack:
        for n_left in reversed(range(N_STARTS)):
            try:
                cluster = stack.enter_context(cluster_of_two())
                break
            except Exception:  # Ray says by a plain one that it took too long
                if not n_left:
                    raise
        yield cluster


@pytest.mark.usefixtures("started")
def test_answers_are_those_without_ray(data, tmp_path, local):
    assert_same(run(data, tmp_path / "out", RayEngine()), local)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["engine"] == "ray"
    assert summary["rows"]["answer"] == 3 * N_EACH


@pytest.mark.usefixtures("started")
def test_a_worker_that_is_killed_loses_and_doubles_no_row(data, tmp_path, local):
    engine = WrappedEngine(RayEngine(), lambda worker: DyingWorker(worker, number=3))
    assert_same(run(data, tmp_path / "out", engine), local)


def test_a_node_that_is_lost_loses_and_doubles_no_row(data, tmp_path, local, two_nodes):
    (lost,) = two_nodes.worker_nodes

    class LosingEngine(WrappedEngine):
        def run(self, recipe, todo):
            is_answer = isinstance(recipe(), AnswerWorker)
            for number, n_rows in enumerate(super().run(recipe, todo)):
                if is_answer and number == 1:
                    two_nodes.remove_node(lost, allow_graceful=False)
                yield n_rows

    assert_same(run(data, tmp_path / "out", LosingEngine(ScoringEngine(), SlowWorker)), local)


AGREEMENT = 0.97
"""Share of equal labels, on one machine and on two that train together: normalisation by half of a
batch and other noise make it another network."""


@pytest.mark.usefixtures("two_nodes")
def test_machines_that_train_together_come_to_nearly_the_same_answers(data, tmp_path, local):
    found = run(data, tmp_path / "out", RayEngine())
    labels = [np.array(table["label"].to_pylist()) for table in (found, local)]
    assert np.mean(labels[0] == labels[1]) >= AGREEMENT
    scores = [np.array(table["unknown_score"]) for table in (found, local)]
    assert not np.array_equal(*scores), "nobody else has trained"


def counted_and_wrong(network, place, **more):
    """Leaves a mark for each time it is tried; one of two workers refuses, the other waits."""
    rank = distributed.get_rank()
    (place / f"{rank}-{time.time_ns()}").touch()
    if rank == 1:
        raise SettingsError("give another setting")
    distributed.all_reduce(torch.ones(1))


@pytest.mark.usefixtures("two_nodes")
def test_a_setting_that_is_wrong_is_tried_once(tmp_path):
    """Also where the other worker waits for a gradient that never comes."""
    network = Network(TINY_NETWORK, (3,), 2)
    with pytest.raises(SettingsError, match="give another setting"):
        RayTrainer()(counted_and_wrong, network, tmp_path, device="cpu")
    assert sorted(mark.name[0] for mark in tmp_path.iterdir()) == ["0", "1"]


@pytest.mark.usefixtures("two_nodes")
def test_why_training_fails_is_said_in_one_line(data, tmp_path):
    changes = SETTINGS | {"teacher.training.learning_rate": 1e30}
    with pytest.raises(SettingsError, match="give a lower learning rate"):
        classify_parts(
            data / "known.npz",
            open_parts(data / "pool"),
            tmp_path / "out",
            replace(REQUEST, changes=changes),
            engine=RayEngine(),
        )


def test_the_engine_starts_once_and_that_is_told_apart(data, tmp_path, monkeypatch):
    starts, init = [], ray.init
    monkeypatch.setattr(ray, "init", lambda **facts: starts.append(facts) or init(**facts))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")  # of one that nobody asked for
    run(data, tmp_path / "out", RayEngine(n_workers=1))
    assert len(starts) == 1
    assert not ray.is_initialized()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["seconds"]["engine"] > 0


def fitted(engine):
    known, pool = known_labels(200), pool_labels(N_EACH)
    rows = np.concatenate([easy_vectors(known, seed=0), easy_vectors(pool, seed=1)])
    labels = np.array([*known, *[""] * len(pool)])
    facts = {"settings": SETTINGS, "device": "cpu", "random_state": 0}
    return S2OSC(fit_on=500, engine=engine, **facts).fit(rows, labels)


@pytest.mark.usefixtures("started")
def test_an_estimator_answers_alike():
    here, there = fitted("local"), fitted("ray")
    np.testing.assert_array_equal(here.transduction_, there.transduction_)
    np.testing.assert_allclose(here.p_known_, there.p_known_, atol=1e-5)


@pytest.mark.usefixtures("two_nodes")
def test_an_estimator_is_trained_by_all_machines():
    here, there = fitted("local"), fitted("ray")
    assert np.mean(here.transduction_ == there.transduction_) >= AGREEMENT
    weights = [each.model_.student.network.state_dict().values() for each in (here, there)]
    pairs = zip(*weights, strict=True)
    assert any(not (a == b).all() for a, b in pairs), "nobody else has trained"


@pytest.mark.usefixtures("started")
def test_splits_of_an_experiment_are_tasks(tmp_path, monkeypatch):
    images, labels = make_images(12)
    np.savez(tmp_path / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    protocol = Protocol(known_classes=(0, 1), unknown_classes=(2,))
    quick = Experiment("Small", protocol, {"quick": shrink(PLAIN, n_steps=8, k=5)})
    monkeypatch.setitem(EXPERIMENTS, "small", quick)
    records = []
    for name, engine in (("here", None), ("ray", RayEngine())):
        paths = run_experiment(
            "small", ["tiny"], [0, 1], tmp_path / name, folder=tmp_path, engine=engine
        )
        records.append([read_record(path)["metrics"] for path in paths])
    assert len(records[0]) == 2
    assert records[0] == records[1]


def test_a_head_that_is_killed_leaves_a_run_that_goes_on(data, tmp_path):
    """The parts that are done stay; the same command does the others, here without Ray."""
    pool, out = tmp_path / "pool", tmp_path / "out"
    pool.mkdir()
    vectors = pq.read_table(data / "pool")["v"]
    for number in range(60):  # each file is a part
        rows = pa.table({"v": vectors.slice(12 * number, 12)})
        pq.write_table(rows, pool / f"{number:02}.parquet")
    settings = [f"--set={name}={str(value).strip('()')}" for name, value in SETTINGS.items()]
    paths = [f"--known={data / 'known.npz'}", f"--pool={pool}", f"--out={out}"]
    command = [sys.executable, "-m", "s2osc", "classify", *paths, "--fit-on=500", *settings]
    process = subprocess.Popen([*command, "--engine=ray", "--workers=1"], stderr=subprocess.PIPE)
    try:
        end = time.time() + 600
        while not (n_done := len(list(out.glob("work/counts-*")))) and time.time() < end:
            time.sleep(0.02)
        assert n_done
        heads = [pid for pid, name in children_of(process.pid).items() if "gcs" in name]
        assert heads
        os.kill(heads[0], signal.SIGKILL)
        try:
            assert process.wait(240) != 0
        except subprocess.TimeoutExpired:
            process.kill()
    finally:
        process.kill()
        process.wait(10)
    assert not (out / "summary.json").exists()
    assert subprocess.run(command, check=False).returncode == 0
    table = pq.read_table(out / "predictions")
    assert table["item"].to_pylist() == [str(row) for row in range(3 * N_EACH)]
