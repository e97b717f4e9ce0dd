"""kill -9 of the server at random moments: what was confirmed is there."""

import random
import threading
import time
import urllib.error

import pytest

from page_helpers import Server, act


def work_until_killed(server: Server, confirmed: list[str], started: threading.Event) -> None:
    """Send acts as quickly as they are answered, and note the keys of those that were."""
    while True:
        body = act(rows=[len(confirmed) % 40], target=f"class {len(confirmed) % 7}")
        try:
            server.ask("/api/acts", body)
        except (OSError, urllib.error.URLError):
            return
        confirmed.append(body["key"])
        started.set()


@pytest.mark.parametrize("n", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_every_act_that_was_confirmed_survives_kill_9(out, n):
    chance, confirmed = random.Random(0), []
    port = 0
    for _ in range(n):
        server = Server(f"--results={out}", port=port)
        port, started = server.port, threading.Event()
        worker = threading.Thread(target=work_until_killed, args=(server, confirmed, started))
        worker.start()
        started.wait(10)
        time.sleep(chance.uniform(0, 0.4))
        server.kill()
        worker.join()
    with Server(f"--results={out}", port=port) as server:
        told = server.ask("/api/changes?since=0")
        assert told["act"] >= len(confirmed) >= n
        before = told["act"]
        # A key that was confirmed is known: sent again, nothing is added.
        for key in confirmed[:: max(1, len(confirmed) // 20)]:
            server.ask("/api/acts", act(key=key))
        assert server.ask("/api/changes?since=0")["act"] == before
