"""What tests of the page share."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import uvicorn

from s2osc.page.server import guarded_app
from s2osc.page.work import Work
from s2osc.sockets import bound_socket

TOKEN = "a-token-that-nobody-would-guess-0123456789"
PORT = 8421
HOST = f"127.0.0.1:{PORT}"

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
OPTIONS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-first-run"]
ELSEWHERE = "page.example"
"""A name under which a browser finds this machine as it finds others: what it grants to its own
machine alone, it grants not here."""


def act(**changes: Any) -> dict[str, Any]:
    """An act as a browser sends it."""
    body = {
        "key": uuid.uuid4().hex,
        "by": "Ada",
        "kind": "label",
        "target": "class owl",
        "rows": [0],
    }
    return body | changes


class Visited:
    """A server that runs: a browser that was let in, without the browser."""

    host: str
    port: int
    token: str

    @property
    def link(self) -> str:
        return f"http://{self.host}/?token={self.token}"

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        request = urllib.request.Request(
            f"http://{self.host}{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "cookie": f"s2osc-{self.port}={self.token}",
                "origin": f"http://{self.host}",
                "content-type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def wait_for_job(self, seconds: float = 300) -> dict[str, Any]:
        """How the work ended that is going on."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            job = self.ask("/api/changes?since=0")["job"]
            if job and job["state"] != "running":
                return job
            time.sleep(0.2)
        raise AssertionError(f"the work did not end: {job}")


class Live(Visited):
    """A page that a thread of the test serves."""

    def __init__(self, work: Work, name: str = "127.0.0.1") -> None:
        self.opened = bound_socket("127.0.0.1", 0, first=0)
        self.bound = self.opened.__enter__()
        self.port, self.token = self.bound.getsockname()[1], TOKEN
        self.host = f"{name}:{self.port}"
        app = guarded_app(work, token=TOKEN, port=self.port, hosts=(name,))
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.bound],))

    def __enter__(self) -> "Live":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.opened.__exit__(None, None, None)


class Server(Visited):
    """`s2osc page` in a process of its own, as a user starts it."""

    def __init__(self, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "s2osc", "page", *options, f"--port={port}"]
        self.process = subprocess.Popen(
            [*command, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1:(\d+))/\?token=(\S+)", line)
        if not found:
            self.process.wait()
            assert self.process.stderr is not None
            raise AssertionError(line + self.process.stderr.read())
        self.host, self.port, self.token = found[1], int(found[2]), found[3]

    def kill(self) -> None:
        """As kill -9 does."""
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)


def folder_of_axe() -> Path | None:
    """Where axe-core lies, if somebody installed it: `npm install axe-core` in a folder."""
    places = (os.environ.get("S2OSC_AXE"), "node_modules/axe-core")
    return next((Path(p) for p in places if p and (Path(p) / "axe.min.js").is_file()), None)
