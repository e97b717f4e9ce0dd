"""kill -9 of the server at random moments: what was confirmed is there."""

import random
import subprocess
import sys
import threading
import time
import urllib.error

import pytest

from page_helpers import Server, act
from s2osc.page.acts import ActStore

N_KILLS = 30


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


WRITER = """
import sys
import numpy as np
from pathlib import Path
from s2osc.page.acts import ActStore
store = ActStore(Path(sys.argv[1]))
for number in range(10**6):
    act = store.append(
        key=f"{sys.argv[2]}-{number}", by="Ada", kind="label", pool="p", fit="f", rows=np.arange(50)
    )
    print(act.key, flush=True)
"""


def test_what_the_store_confirmed_survives_kill_9(tmp_path):
    chance, confirmed = random.Random(0), []
    for turn in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "acts.sqlite"), str(turn)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        confirmed.append(writer.stdout.readline().strip())
        time.sleep(chance.uniform(0, 0.1))
        writer.kill()
        *whole, _cut = writer.communicate()[0].split("\n")
        confirmed += whole
    kept = {act.key: act.rows.tolist() for act in ActStore(tmp_path / "acts.sqlite").read()}
    assert len(confirmed) >= 3
    assert all(kept[key] == list(range(50)) for key in confirmed)


@pytest.mark.slow
def test_every_act_that_a_browser_saw_confirmed_survives_30_times_kill_9(out):
    chance, confirmed = random.Random(0), []
    port = 0
    for _ in range(N_KILLS):
        server = Server(f"--results={out}", port=port)
        port, started = server.port, threading.Event()
        worker = threading.Thread(target=work_until_killed, args=(server, confirmed, started))
        worker.start()
        started.wait(10)
        time.sleep(chance.uniform(0, 0.4))
        server.kill()
        worker.join()
    with Server(f"--results={out}", port=port) as server:
        changes = server.ask("/api/changes?since=0")
        assert changes["act"] >= len(confirmed) >= N_KILLS
        before = changes["act"]
        # A key that was confirmed is known: sent again, nothing is added.
        for key in confirmed[:: max(1, len(confirmed) // 20)]:
            server.ask("/api/acts", act(key=key))
        assert server.ask("/api/changes?since=0")["act"] == before
