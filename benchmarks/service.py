"""How quick is `s2osc serve`, and what does it do over load?

    python benchmarks/service.py --model results/model [--rate 100] [--seconds 60] [--to FILE.json]

Starts the service on 127.0.0.1 and asks it for one random vector at a time, at a fixed rate, for a
fixed time. Printed are the times that 50, 95 and 99 % of the answers took, every status, and what
the server took of a core, which other work on the machine hardly changes. The
exit code is 1 where 95 % took longer than 50 ms, or any answer was an error.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from processes import cpu_seconds

from s2osc.version import versions

LONGEST = 0.05
N_THREADS = 8


@dataclass(frozen=True)
class Load:
    """What a load came to."""

    rate: float  # requests a second
    seconds: float
    n: int
    statuses: dict[str, int]
    milliseconds: dict[str, float]  # by percentile
    cpu_milliseconds: float = 0.0  # of the server, for each request
    machine_load: float = 0.0  # of the machine, after it

    @property
    def holds(self) -> bool:
        return self.statuses == {"200": self.n} and self.milliseconds["95"] <= 1_000 * LONGEST


def ask_at_rate(port: int, width: int, rate: float, seconds: float) -> Load:
    """One vector in each request, over a few connections that stay open."""
    n = int(rate * seconds)
    times, statuses = np.zeros(n), [""] * n
    vectors = np.random.default_rng(0).normal(size=(64, width)).round(4)
    bodies = [json.dumps({"vectors": [row.tolist()]}) for row in vectors]
    started = time.perf_counter() + 0.5

    def work(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for number in range(first, n, N_THREADS):
            due = started + number / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.request(
                "POST", "/predict", bodies[number % 64], {"content-type": "application/json"}
            )
            answer = connection.getresponse()
            answer.read()
            # From when it was due: a client that comes too late counts, too.
            times[number], statuses[number] = time.perf_counter() - due, str(answer.status)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    percentiles = {str(p): round(1_000 * float(np.percentile(times, p)), 2) for p in (50, 95, 99)}
    return Load(rate, seconds, n, dict(Counter(statuses)), percentiles)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    command = [sys.executable, "-m", "s2osc", "serve", "--model", str(options.model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            port = int(address.split(":")[2].split("/")[0])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            for _ in range(100):
                try:
                    connection.request("GET", "/health")
                    break
                except ConnectionError:
                    time.sleep(0.1)
            width = json.loads(connection.getresponse().read())["shape"][0]
            before = cpu_seconds(server.pid)
            load = ask_at_rate(port, width, options.rate, options.seconds)
            cpu = 1_000 * (cpu_seconds(server.pid) - before) / load.n
            load = replace(
                load, cpu_milliseconds=round(cpu, 2), machine_load=round(os.getloadavg()[0], 1)
            )
        finally:
            server.terminate()
    print(f"{load.n:,} requests at {load.rate:g} a second: {load.statuses}")
    for share, value in load.milliseconds.items():
        print(f"  {share} % within {value:.1f} ms")
    print(f"  {load.cpu_milliseconds:.1f} ms of a core each; load {load.machine_load}")
    if options.to:
        record = {"service": asdict(load), "versions": versions()}
        options.to.write_text(json.dumps(record, indent=2) + "\n")
    return 0 if load.holds else 1


if __name__ == "__main__":
    sys.exit(main())
