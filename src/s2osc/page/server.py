"""The page over HTTP: words into acts, values into JSON; decides nothing."""

import os
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from s2osc.codec import JsonObject
from s2osc.errors import DataError, S2OSCError
from s2osc.page.acts import LONGEST_KEY, LONGEST_NAME, LONGEST_TARGET, Kind
from s2osc.page.exports import describe_forms, write_export
from s2osc.page.pool import Pool
from s2osc.page.project import ActRequest, Project
from s2osc.page.security import LOCAL, Guard
from s2osc.page.thumbnails import Size
from s2osc.page.uploads import LARGEST_FILE, Upload, check_picture
from s2osc.page.work import StreamWork, Work

TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
BINARY = "application/octet-stream"
PICTURE_HEAD = "<II"
N_ENCODERS = 2
"""Threads that make the pictures of one request."""
PICTURES_EVERY = 0.02
"""Seconds after which pictures are sent that are made: those of large files take long."""
MOST_ROWS = 2_000_000
MOST_BRIEFS = 500
LARGEST_BODY = 32 * 2**20
FOREVER = "private, max-age=31536000, immutable"
PATIENCE = 2
"""Seconds that open requests have to end in, when the server is ended."""

Person = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class ActBody(BaseModel):
    """An act as a browser sends it."""

    key: str = Field(min_length=8, max_length=LONGEST_KEY)
    by: Person
    kind: Kind
    target: str = Field("", max_length=LONGEST_TARGET)
    rows: list[int] = Field([], max_length=MOST_ROWS)
    pool: str = Field("", max_length=64)  # that the page showed; "": whichever is open
    since: int = Field(0, ge=0)


class LearnBody(BaseModel):
    by: Person


class BackBody(BaseModel):
    to: int


class ExportBody(BaseModel):
    form: str = Field(max_length=50)


class UploadBody(BaseModel):
    n: int


class WindowBody(BaseModel):
    """A new window: files that were dropped, or a path on this machine."""

    by: Person
    upload: str = Field("", max_length=64)
    path: str = Field("", max_length=4_000)
    budget: int = Field(100, ge=0, le=100_000)


def make_app(work: Work) -> FastAPI:
    """The page of a project. ``Guard`` stands before it."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.exception_handler(S2OSCError)
    async def refuse(_: Request, error: S2OSCError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    _add_files(app)
    _add_pool(app, work.project)
    _add_acts(app, work)
    _add_work(app, work)
    _add_exports(app, work.project)
    if isinstance(work, StreamWork):
        _add_windows(app, work)
    return app


def _add_files(app: FastAPI) -> None:
    folder = files("s2osc.page").joinpath("static")
    # By their names in this list alone: nothing else can be asked for.
    assets = {entry.name: entry.read_bytes() for entry in folder.iterdir() if "." in entry.name}

    @app.get("/")
    async def index() -> Response:
        return Response(assets["index.html"], media_type="text/html")

    @app.get("/static/{name}")
    async def asset(name: str) -> Response:
        if name not in assets:
            return Response(status_code=404)
        return Response(assets[name], media_type=TYPES[Path(name).suffix])


def _add_pool(app: FastAPI, project: Project) -> None:
    @app.get("/api/project")
    def describe() -> JsonObject:
        return project.describe()

    @app.get("/api/columns")
    def columns() -> Response:
        return _binary(project.opened.columns)

    @app.get("/api/map")
    def points() -> Response:
        return _binary(project.opened.map())

    @app.get("/api/items")
    def briefs(rows: str) -> list[JsonObject]:
        pool = project.opened
        return [pool.brief(row) for row in _rows(rows, pool.n)]

    @app.get("/api/items/{row}")
    def details(row: int) -> JsonObject:
        return project.item(row)

    @app.get("/api/search")
    def search(words: Annotated[str, Query(max_length=200)]) -> list[int]:
        return project.opened.search(words)

    @app.get("/api/check")
    def check(n: Annotated[int, Query(ge=1, le=10_000)] = 30) -> JsonObject:
        return project.check(n)

    @app.get("/api/people")
    def people() -> JsonObject:
        return project.agreement()

    @app.get("/pictures/{pool}")
    def pictures(pool: str, rows: str) -> Response:
        opened = project.opened
        if pool != opened.key:
            return Response(status_code=404)
        return StreamingResponse(_small_pictures(opened, _rows(rows, opened.n)), media_type=BINARY)

    @app.get("/pictures/{pool}/{row}/{size}")
    def picture(pool: str, row: int, size: Size) -> Response:
        opened = project.opened
        if pool != opened.key or not 0 <= row < opened.n:
            return Response(status_code=404)
        content, media_type = opened.picture(row, size)
        return Response(content, media_type=media_type, headers={"cache-control": FOREVER})


def _add_acts(app: FastAPI, work: Work) -> None:
    project = work.project

    @app.get("/api/changes")
    def changes(since: Annotated[int, Query(ge=0)] = 0) -> JsonObject:
        job = work.jobs.current
        return project.changes(since) | {"job": job.describe() if job else None}

    @app.post("/api/acts")
    def act(body: ActBody) -> JsonObject:
        request = ActRequest(body.key, body.by, body.kind, body.target, tuple(body.rows), body.pool)
        done = project.act(request)
        about = project.ledger.about(done)
        summary = {"id": done.id, "kind": done.kind, "about": about.kind, "n": len(about.rows)}
        return project.changes(body.since) | {"done": summary}


def _add_work(app: FastAPI, work: Work) -> None:
    @app.get("/api/learning")
    def learning() -> JsonObject:
        return work.describe()

    @app.post("/api/learn")
    def learn(body: LearnBody) -> JsonObject:
        return work.learn(body.by).describe()

    @app.post("/api/jobs/cancel")
    def cancel() -> JsonObject:
        work.jobs.cancel()
        return {}

    @app.post("/api/back")
    def back(body: BackBody) -> JsonObject:
        work.back(body.to)
        return work.jobs.current.describe() if work.jobs.current else {}


def _add_exports(app: FastAPI, project: Project) -> None:
    @app.get("/api/exports")
    def forms() -> list[JsonObject]:
        return describe_forms(project)

    @app.post("/api/exports")
    def export(body: ExportBody) -> JsonObject:
        return {"place": str(write_export(project, body.form))}


def _add_windows(app: FastAPI, work: StreamWork) -> None:
    @app.post("/api/uploads")
    def begin(body: UploadBody) -> JsonObject:
        return {"id": work.uploads.begin(body.n)}

    @app.put("/api/uploads/{upload}/{number}")
    async def receive(upload: str, number: int, name: str, request: Request) -> JsonObject:
        await _receive_file(work.uploads.find(upload), number, name, request)
        return {}

    @app.post("/api/windows")
    def window(body: WindowBody) -> JsonObject:
        if bool(body.upload) == bool(body.path):
            raise DataError("drop files, or give the path of a folder or file")
        pool = work.uploads.find(body.upload).pool() if body.upload else Path(body.path)
        return work.window(pool.expanduser(), body.budget).describe()


async def _receive_file(upload: Upload, number: int, name: str, request: Request) -> None:
    """Write what comes into a new file, which goes again where it is too large or no image."""
    handle, path = upload.create(number, name)
    try:
        with os.fdopen(handle, "wb") as file:
            size = 0
            async for part in request.stream():
                size += len(part)
                if size > LARGEST_FILE:
                    raise DataError(f"{path.name} has more than {LARGEST_FILE / 2**20:.0f} MB")
                upload.count(len(part))
                file.write(part)
        await run_in_threadpool(check_picture, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _rows(text: str, n: int) -> list[int]:
    """Numbers of items in a list such as 3,4; those that there are not are left out."""
    given = text.split(",")[:MOST_BRIEFS]
    found = (int(row) for row in given if row.isdecimal() and len(row) < 10)
    return [row for row in found if row < n]


def _small_pictures(pool: Pool, rows: list[int]) -> Iterator[bytes]:
    """Pictures as they are made, each behind its row and its size; size 0: there is none."""

    def pack_picture(row: int) -> bytes:
        try:
            content, _ = pool.picture(row, "small")
        except S2OSCError:
            content = b""
        return struct.pack(PICTURE_HEAD, row, len(content)) + content

    with ThreadPoolExecutor(N_ENCODERS) as encoders:
        made, since = bytearray(), time.monotonic()
        for packed in encoders.map(pack_picture, rows):
            made += packed
            if time.monotonic() - since > PICTURES_EVERY:
                yield bytes(made)
                made, since = bytearray(), time.monotonic()
        yield bytes(made)


def _binary(content: bytes) -> Response:
    return Response(content, media_type=BINARY)


class LimitedBody:
    """Refuses requests larger than any of ours; files have limits of their own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/api/uploads/"):
            headers = dict(scope["headers"])
            length = headers.get(b"content-length", b"0")
            is_open = b"transfer-encoding" in headers
            if is_open or not length.isdigit() or int(length) > LARGEST_BODY:
                await Response("That is too large.\n", 413)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def guarded_app(work: Work, *, token: str, port: int, hosts: tuple[str, ...] = LOCAL) -> ASGIApp:
    """The page behind all that guards it."""
    return Guard(LimitedBody(make_app(work)), token=token, hosts=hosts, port=port)


def serve(work: Work, bound: socket.socket, *, token: str, hosts: tuple[str, ...]) -> None:
    """Answer requests until the process is ended."""
    app = guarded_app(work, token=token, port=bound.getsockname()[1], hosts=hosts)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=PATIENCE,
    )
    uvicorn.Server(config).run(sockets=[bound])
