"""Tasks in a real Label Studio: installed by pip in an environment of its own, and started."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from s2osc.app.corrections import Correction, Corrections
from s2osc.app.export.items import read_labelled
from s2osc.app.export.job import export_results
from s2osc.app.results_folder import version_of

INSTALLED = "S2OSC_LABEL_STUDIO"
"""The program, where it is installed already; else pip installs it, a gigabyte."""
LONGEST_START = 600  # seconds, most of them migrations of an empty database

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    if INSTALLED in os.environ:
        return Path(os.environ[INSTALLED])
    folder = tmp_path_factory.mktemp("label-studio")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", "label-studio"], check=True)
    return folder / "bin" / "label-studio"


@pytest.fixture(scope="module")
def call(program, tmp_path_factory) -> Iterator[Call]:
    """Ask the API of a Label Studio that runs meanwhile."""
    folder, token = tmp_path_factory.mktemp("data"), secrets.token_hex(20)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = ["--username=a@b.example", f"--password={token}", f"--user-token={token}"]
    words = [program, "start", "--no-browser", f"--port={port}", f"--data-dir={folder}", *user]
    quiet = {"LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "COLLECT_ANALYTICS": "false"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*words, "--enable-legacy-api-token"],
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | quiet,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    def ask(method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Token {token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    try:
        wait_for(server, lambda: ask("GET", "projects"), folder / "log")
        yield ask
    finally:
        server.terminate()
        server.wait(60)


def wait_for(server: subprocess.Popen, ready: Callable[[], Any], log: Path) -> None:
    end = time.monotonic() + LONGEST_START
    while time.monotonic() < end:
        try:
            ready()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(1)
        else:
            return
    raise AssertionError(log.read_text()[-2000:])


@pytest.mark.slow
def test_a_real_label_studio_imports_tasks_predictions_and_annotations(photos, call, tmp_path):
    pool = read_labelled(version_of(photos / "out"))
    corrections = Corrections((Correction(pool.items[0].item, "red fox & <b>", "Ann"),))
    export_results(photos / "out", tmp_path / "to", "label-studio", corrections=corrections)
    config = (tmp_path / "to" / "labelling.xml").read_text()
    tasks = json.loads((tmp_path / "to" / "tasks.json").read_text())

    project = call("POST", "projects", {"title": "s2osc", "label_config": config})["id"]
    done = call("POST", f"projects/{project}/import", tasks)
    assert done["task_count"] == len(pool.items)
    assert done["annotation_count"] == 1
    assert done["prediction_count"] == len(pool.items) - 1

    found = call("GET", f"tasks?project={project}&fields=all&page_size=1000")["tasks"]
    by_item = {task["data"]["item"]: task for task in found}
    assert list(by_item) == pool.names
    for item in pool.items[1:]:
        (prediction,) = by_item[item.item]["predictions"]
        assert prediction["result"][0]["value"]["choices"] == [item.label]
        assert prediction["score"] == pytest.approx(item.confidence)
        assert prediction["model_version"] == pool.program
    (annotation,) = by_item[pool.names[0]]["annotations"]
    assert annotation["result"][0]["value"]["choices"] == ["red fox & <b>"]
