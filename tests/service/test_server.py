"""A saved model over HTTP: its answers, its limits, and what it refuses."""

import base64
import http.client
import io
import json
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("fastapi")

import uvicorn
from PIL import Image

from files import easy_images, easy_vectors, known_labels, pool_labels, write_images
from s2osc.cli.main import main
from s2osc.service import batching
from s2osc.service.answering import load_service
from s2osc.service.server import Limits, make_app
from s2osc.sockets import bound_socket


class Client:
    """Asks one server, each time over a connection of its own."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        usual = {"content-type": "application/json"}
        connection.request(method, path, content, usual | (headers or {}))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        is_json = "json" in answer.headers.get("content-type", "")
        return answer.status, json.loads(text) if is_json else text

    def predict(self, **body):
        return self.ask("POST", "/predict", body)


@contextmanager
def served(service, limits=None):
    with bound_socket("127.0.0.1", 0, first=0) as bound:
        config = uvicorn.Config(make_app(service, limits), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Client(bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def service(finished):
    return load_service(finished / "out" / "model", device="cpu")


@pytest.fixture(scope="module")
def client(service):
    with served(service) as client:
        yield client


def test_vectors_get_the_answers_of_predict(client, finished, tmp_path):
    vectors = easy_vectors(pool_labels(5), seed=7)
    np.save(tmp_path / "new.npy", vectors)
    model, out = finished / "out" / "model", tmp_path / "new.parquet"
    items = f"--items={tmp_path / 'new.npy'}"
    assert main(["predict", f"--model={model}", items, f"--out={out}"]) == 0
    expected = pq.read_table(out)
    status, found = client.predict(vectors=vectors.tolist())
    assert status == 200
    for name in ("label", "group", "nearest", "p_known", "operating_point"):
        assert [row[name] for row in found["predictions"]] == expected[name].to_pylist(), name
    confidence = [row["confidence"] for row in found["predictions"]]
    np.testing.assert_allclose(confidence, expected["confidence"], rtol=1e-5)


def test_health_tells_what_the_model_takes(client):
    status, found = client.ask("GET", "/health")
    assert status == 200
    assert found["status"] == "ready"
    assert (found["kind"], found["shape"]) == ("vectors", [8])
    assert found["classes"] == ["left", "top"]


def test_there_is_a_page_for_people_and_one_for_programs(client):
    status, page = client.ask("GET", "/docs")
    page = page.decode()
    assert status == 200
    for words in (
        "POST /predict",
        "GET /health",
        "p_known",
        "503",
        "left, top",
        "&#34;vectors&#34;",
    ):
        assert words in page
    # It is whole without a network: nothing is loaded from elsewhere.
    assert not re.findall(r"<script|<link|src=|@import|url\(", page)
    status, found = client.ask("GET", "/openapi.json")
    assert status == 200
    assert found["paths"].keys() == {"/predict", "/health"}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 422, "JSON"),
        (b"\xff\xfe", 422, ""),
        ({}, 422, "give one of vectors, images and texts"),
        ({"vectors": []}, 422, "at least one item"),
        ({"vectors": [[1, 2]], "texts": ["a"]}, 422, "give one of"),
        ({"vectors": [["a"] * 8]}, 422, "number"),
        ({"vectors": [[1.0] * 7]}, 400, "vector 0 has 7 numbers; the model was trained on 8"),
        ({"vectors": [[1e300] * 8]}, 400, "the request holds"),
        (b'{"vectors": [[NaN, 0, 0, 0, 0, 0, 0, 0]]}', 400, "NaN or infinite"),
        ({"texts": ["a cat"]}, 400, "the request holds texts, the model was trained on vectors"),
        ({"images": ["AAAA"]}, 400, "the request holds images"),
        (b'{"texts": ["\\ud800"]}', 422, "body.texts.0"),
        (b'{"vectors": NaN}', 422, "body.vectors"),
        (b'{"vectors": ' + 100_000 * b"[", 400, "parsing the body"),
        (b'"' + 100_000 * b"a" + b'"', 422, "body"),
    ],
)
def test_malformed_bodies_are_refused(client, body, status, words):
    found = client.ask("POST", "/predict", body)
    assert found[0] == status
    assert words in found[1]["error"]
    assert len(found[1]["error"]) < 300, "what was sent is not sent back"
    assert client.predict(vectors=[[0.0] * 8])[0] == 200


def test_a_body_that_is_too_large_is_not_read(service):
    with served(service, Limits(body=1_000)) as client:
        assert client.predict(vectors=[[0.5] * 8] * 100)[0] == 413
        assert client.ask("POST", "/predict", b"", {"content-length": "x"})[0] in (400, 411)
        assert client.predict(vectors=[[0.5] * 8])[0] == 200


def test_requests_at_the_same_time_are_answered_as_one_batch(service, monkeypatch):
    sizes, answer = [], type(service).answer

    def counted(self, items):
        sizes.append(len(items))
        time.sleep(0.05)
        return answer(self, items)

    monkeypatch.setattr(type(service), "answer", counted)
    vectors = easy_vectors(pool_labels(10), seed=3)
    with served(service) as client, ThreadPoolExecutor(30) as threads:
        found = list(threads.map(lambda v: client.predict(vectors=[v.tolist()]), vectors))
    assert {status for status, _ in found} == {200}
    assert sum(sizes) == len(vectors)
    assert len(sizes) < len(vectors) / 2
    labels = [body["predictions"][0]["label"] for _, body in found]
    assert labels == [each.label for each in answer(service, vectors)]


def test_over_load_requests_are_refused_and_nothing_piles_up(service, monkeypatch):
    answer = type(service).answer

    def slow(self, items):
        time.sleep(0.1)
        return answer(self, items)

    monkeypatch.setattr(type(service), "answer", slow)
    monkeypatch.setattr(batching, "LARGEST_BATCH", 2)
    with served(service, Limits(waiting=4)) as client, ThreadPoolExecutor(40) as threads:
        asked = [[0.0] * 8]
        started = time.perf_counter()
        found = list(threads.map(lambda _: client.predict(vectors=asked)[0], range(40)))
        assert time.perf_counter() - started < 10
        assert set(found) == {200, 503}
        assert client.ask("GET", "/health")[1]["waiting"] == 0
        assert client.predict(vectors=asked)[0] == 200


def test_an_answer_that_takes_too_long_is_given_up(service, monkeypatch):
    answer = type(service).answer

    def slow(self, items):
        time.sleep(0.5)
        return answer(self, items)

    monkeypatch.setattr(type(service), "answer", slow)
    with served(service, Limits(seconds=0.05)) as client:
        status, found = client.predict(vectors=[[0.0] * 8])
        assert (status, found) == (503, {"error": "it took longer than 0.05 s"})


def test_images_are_sent_as_files(tmp_path, quick):
    known, pool = known_labels(40), pool_labels(20)
    names = [f"{label}/{row:03}.png" for row, label in enumerate(known)]
    write_images(tmp_path / "known", names, easy_images(known, seed=0))
    files = [f"{row:03}.png" for row in range(len(pool))]
    write_images(tmp_path / "pool", files, easy_images(pool, seed=1))
    paths = [f"--{name}={tmp_path / name}" for name in ("known", "pool", "out")]
    assert main(["classify", *paths, *quick]) == 0
    service = load_service(tmp_path / "out" / "model", device="cpu")
    content = io.BytesIO()
    Image.fromarray(easy_images(["left"], seed=5)[0]).save(content, "PNG")
    with served(service) as client:
        encoded = base64.b64encode(content.getvalue()).decode()
        status, found = client.predict(images=[encoded])
        assert status == 200
        assert found["predictions"][0]["nearest"] == "left"
        assert client.predict(images=["no base64"])[0] == 400
        broken = base64.b64encode(b"no image").decode()
        assert client.predict(images=[broken])[0] == 400


def test_other_machines_are_let_in_only_where_that_is_meant(finished, capsys):
    model = f"--model={finished / 'out' / 'model'}"
    assert main(["serve", model, "--host=0.0.0.0"]) == 2
    assert "give --i-know if that is meant" in capsys.readouterr().err


def test_a_folder_without_a_model_is_one_line(tmp_path, capsys):
    assert main(["serve", f"--model={tmp_path}"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@contextmanager
def served_on_ray(model, *options):
    """`s2osc serve --engine ray`, as a user starts it."""
    command = [sys.executable, "-m", "s2osc", "serve", f"--model={model}", "--engine=ray"]
    server = subprocess.Popen(
        [*command, "--device=cpu", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        lines = iter(server.stdout.readline, "")
        port = next(found[1] for line in lines if (found := re.search(r":(\d+)/docs", line)))
        yield Client(int(port))
    finally:
        server.terminate()
        server.communicate(timeout=60)
        assert server.returncode == 0, "it did not end what it had started"


@pytest.mark.slow
def test_replicas_of_ray_answer_and_refuse_as_one_process_does(service, finished):
    pytest.importorskip("ray")
    vectors = easy_vectors(pool_labels(5), seed=7)
    expected = [answer._asdict() for answer in service.answer(service.vectors(vectors.tolist()))]
    with served_on_ray(finished / "out" / "model", "--workers=2", "--max-body=0.01") as client:
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(client.predict, vectors=vectors.tolist()) for _ in range(40)]
        for each in asked:
            status, found = each.result()
            assert status == 200
            for row, wanted in zip(found["predictions"], expected, strict=True):
                numbers = {name for name, value in wanted.items() if isinstance(value, float)}
                assert {k: v for k, v in row.items() if k not in numbers} == {
                    k: v for k, v in wanted.items() if k not in numbers
                }
                for name in numbers:
                    assert row[name] == pytest.approx(wanted[name], abs=1e-5)
        assert client.ask("GET", "/health")[1]["kind"] == "vectors"
        assert client.ask("POST", "/predict", b"{")[0] == 422
        assert client.predict(vectors=[[1.0] * 7])[0] == 400
        assert client.predict(vectors=[[1.0] * 8] * 1_000)[0] == 413
