"""The same service as replicas of a Ray Serve deployment, each with a model of its own.

Ray's proxy takes requests and gives each to a replica, which merges, bounds and answers those it
has as the service of one process does. A replica that dies is replaced.
"""

import signal
import threading
from collections.abc import Callable

from starlette.types import ASGIApp

from s2osc.engine.ray_cluster import connected
from s2osc.engine.ray_engine import RayEngine
from s2osc.service.answering import ModelService
from s2osc.service.server import MOST_CONNECTIONS, Limits, make_app

NAME = "s2osc"


def serve_on_ray(
    load: Callable[[], ModelService],
    engine: RayEngine,
    limits: Limits,
    *,
    host: str,
    port: int,
    ready: Callable[[], None],
) -> None:
    """Answer requests until the process is ended; ``load`` is called by every replica."""
    with connected(engine.address, engine.n_workers):
        from ray import serve  # noqa: PLC0415  (an extra, and slow to import)

        def build() -> ASGIApp:
            return make_app(load(), limits)

        deployed = serve.deployment(
            name=NAME,
            num_replicas=engine.n_workers or 1,
            max_ongoing_requests=MOST_CONNECTIONS,
            max_queued_requests=MOST_CONNECTIONS,
            ray_actor_options={"num_cpus": 1},
        )(serve.ingress(build)())
        serve.start(http_options={"host": host, "port": port})
        try:
            serve.run(deployed.bind(), name=NAME)
            ended = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
            ready()
            ended.wait()
        finally:
            serve.shutdown()
