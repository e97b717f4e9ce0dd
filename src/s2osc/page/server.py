"""The page over HTTP: words into acts, values into JSON; decides nothing."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from s2osc.errors import OutputError, S2OSCError
from s2osc.page.acts import LONGEST_KEY, LONGEST_NAME, LONGEST_TARGET, Kind
from s2osc.page.project import Project
from s2osc.page.project import Request as ActRequest
from s2osc.page.security import LOCAL, Guard
from s2osc.page.thumbnails import Size

TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
MOST_ROWS = 2_000_000
MOST_BRIEFS = 500
LARGEST_BODY = 32 * 2**20
FOREVER = "private, max-age=31536000, immutable"
N_PORTS = 20
"""Ports that are tried from the first one on."""


class ActBody(BaseModel):
    """An act as a browser sends it."""

    key: str = Field(min_length=8, max_length=LONGEST_KEY)
    by: str = Field(min_length=1, max_length=LONGEST_NAME)
    kind: Kind
    target: str = Field("", max_length=LONGEST_TARGET)
    rows: list[int] = Field([], max_length=MOST_ROWS)
    since: int = Field(0, ge=0)


def make_app(project: Project) -> FastAPI:
    """The page of a project. ``Guard`` stands before it."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    assets = _assets()

    @app.exception_handler(S2OSCError)
    async def refuse(_: Request, error: S2OSCError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    @app.get("/")
    async def index() -> Response:
        return Response(assets["index.html"], media_type="text/html")

    @app.get("/static/{name}")
    async def asset(name: str) -> Response:
        content = assets.get(name)
        if content is None:
            return Response(status_code=404)
        return Response(content, media_type=TYPES[Path(name).suffix])

    @app.get("/api/project")
    def describe() -> dict[str, Any]:
        return project.describe()

    @app.get("/api/columns")
    def columns() -> Response:
        return _binary(project.opened.columns())

    @app.get("/api/map")
    def points() -> Response:
        return _binary(project.opened.map())

    @app.get("/api/changes")
    def changes(since: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
        return project.changes(since)

    @app.post("/api/acts")
    def act(body: ActBody) -> dict[str, Any]:
        done = project.act(ActRequest(body.key, body.by, body.kind, body.target, tuple(body.rows)))
        about = project.ledger.about(done)
        n = len(about.rows)
        return project.changes(body.since) | {
            "done": {"id": done.id, "kind": done.kind, "about": about.kind, "n": n}
        }

    @app.get("/api/items")
    def briefs(rows: str) -> list[dict[str, Any]]:
        pool = project.opened
        return [pool.brief(row) for row in _rows(rows, pool.n)]

    @app.get("/api/items/{row}")
    def details(row: int) -> dict[str, Any]:
        return project.item(row)

    @app.get("/api/search")
    def search(words: Annotated[str, Query(max_length=200)]) -> list[int]:
        return project.opened.search(words)

    @app.get("/pictures/{pool}/{row}/{size}")
    async def picture(pool: str, row: int, size: Size) -> Response:
        opened = project.opened
        if pool != opened.key or not 0 <= row < opened.n:
            return Response(status_code=404)
        content, media_type = await run_in_threadpool(opened.picture, row, size)
        return Response(content, media_type=media_type, headers={"cache-control": FOREVER})

    return app


def _rows(text: str, n: int) -> list[int]:
    """Numbers of items in a list such as 3,4; those that there are not are left out."""
    given = text.split(",")[:MOST_BRIEFS]
    found = (int(row) for row in given if row.isdecimal() and len(row) < 10)
    return [row for row in found if row < n]


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _assets() -> dict[str, bytes]:
    """The files of the page, by their names: nothing else can be asked for."""
    folder = files("s2osc.page").joinpath("static")
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if "." in entry.name}


class LimitedBody:
    """Refuses requests that say, or turn out, to be larger than any of ours."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        length = headers.get(b"content-length", b"0")
        upload = scope["type"] == "http" and scope["path"].startswith("/api/uploads/")
        if scope["type"] == "http" and not upload:
            if (
                not length.isdigit()
                or int(length) > LARGEST_BODY
                or b"transfer-encoding" in headers
            ):
                await Response("That is too large.\n", 413)(scope, receive, send)
                return
        await self.app(scope, receive, send)


@contextmanager
def bound_socket(host: str, port: int | None, first: int) -> Iterator[socket.socket]:
    """A socket on the port that is asked for, or on the first that is free."""
    ports = [port] if port is not None else list(range(first, first + N_PORTS))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for each in ports:
            try:
                bound.bind((host, each))
            except OSError as error:
                if each == ports[-1]:
                    raise OutputError(
                        f"port {each} of {host} cannot be used: {error.strerror}; give another "
                        "with --port"
                    ) from error
                continue
            break
        yield bound


def serve(project: Project, bound: socket.socket, *, token: str, hosts: tuple[str, ...]) -> None:
    """Answer requests until the process is ended."""
    port = bound.getsockname()[1]
    guarded = Guard(LimitedBody(make_app(project)), token=token, hosts=hosts or LOCAL, port=port)
    config = uvicorn.Config(guarded, log_level="error", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[bound])
