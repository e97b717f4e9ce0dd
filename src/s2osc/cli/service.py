"""The command that serves a saved model to programs."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from s2osc.cli.address import add_address, check_address
from s2osc.cli.options import add_command, add_device, add_engine, add_trusted, ray_of, trusted_of
from s2osc.cli.printing import printer
from s2osc.errors import SettingsError

FIRST_PORT = 8521
RISK = "anybody may ask"


def add_serve(commands: Any) -> None:
    parser = add_command(
        commands,
        "serve",
        serve,
        help="answer for new items over HTTP, with a saved model",
        description="Answer POST /predict for vectors, images or texts with labels, p-values and "
        "groups, until it is ended. GET /health says what the model takes, /docs shows both. Needs "
        "`pip install 's2osc[page]'`.",
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="the folder `model` that classify wrote"
    )
    add_address(parser, first_port=FIRST_PORT, risk=RISK)
    parser.add_argument(
        "--max-body", type=float, default=16, metavar="MB", help="of a request (default: 16)"
    )
    parser.add_argument(
        "--timeout", type=float, default=10, metavar="SECONDS", help="per request (default: 10)"
    )
    add_engine(
        parser, what="where requests are answered", workers="replicas of the model (default: 1)"
    )
    add_trusted(parser)
    add_device(parser)


def serve(options: argparse.Namespace) -> None:
    check_address(options, risk=RISK)
    if not 0 < options.max_body <= 1_024 or not 0 < options.timeout <= 3_600:
        raise SettingsError("give --max-body from 0 to 1024 MB, and --timeout from 0 to 3600 s")
    try:
        from s2osc.service.server import Limits
        from s2osc.service.server import serve as run_server
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise SettingsError(
            f"serving needs {error.name}, which is not installed; run `pip install 's2osc[page]'`"
        ) from error
    from s2osc.service.answering import load_service
    from s2osc.sockets import bound_socket

    ray, limits = ray_of(options), Limits(int(options.max_body * 2**20), options.timeout)
    folder, trusted = options.model.absolute(), trusted_of(options)
    load = partial(load_service, folder, device=options.device, trusted=trusted)
    service = load()  # on Ray, too: what is wrong with a model is said here
    with bound_socket(options.host, options.port, FIRST_PORT) as bound:
        port = bound.getsockname()[1]
        if ray is None:
            say_ready(options, port)
            run_server(service, bound, limits)
            return
    from s2osc.service.ray_server import serve_on_ray

    ready = partial(say_ready, options, port)
    serve_on_ray(load, ray, limits, host=options.host, port=port, ready=ready)


def say_ready(options: argparse.Namespace, port: int) -> None:
    name = f"[{options.host}]" if ":" in options.host else options.host
    printer()(f"Serving {options.model} at http://{name}:{port}/docs")
    sys.stdout.flush()
