"""The service over HTTP: bodies into arrays, answers into JSON; decides nothing.

    POST /predict    {"vectors": [[...]]}, {"images": ["base64 of a file"]} or {"texts": ["..."]}
    GET  /health     what the model takes, and how much is waiting
    GET  /docs       the same for people; /openapi.json for programs

400 and 422: the body cannot be used. 413: it is too large. 503: too much is waiting, or it took too
long; the same request may be sent again later.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from s2osc.errors import S2OSCError
from s2osc.service.answering import ModelService
from s2osc.service.batching import Batcher, BusyError
from s2osc.service.docs_page import docs_page
from s2osc.version import __version__

MOST_ITEMS = 4_096
LONGEST_TEXT = 100_000
MOST_CONNECTIONS = 1_000


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    body: int = 16 * 2**20  # bytes
    seconds: float = 10.0  # until its answer
    waiting: int = 4_096  # items of all requests


Text = Annotated[str, Field(max_length=LONGEST_TEXT)]


class PredictBody(BaseModel):
    """Items of one kind, that of the model."""

    vectors: list[list[float]] | None = Field(None, max_length=MOST_ITEMS)
    images: list[str] | None = Field(None, max_length=MOST_ITEMS)
    texts: list[Text] | None = Field(None, max_length=MOST_ITEMS)

    @model_validator(mode="after")
    def one_kind(self) -> "PredictBody":
        given = [each for each in (self.vectors, self.images, self.texts) if each is not None]
        if len(given) != 1 or not given[0]:
            raise ValueError("give one of vectors, images and texts, with at least one item")
        return self


class Prediction(BaseModel):
    """The answer for one item."""

    label: str  # a known class, or unknown
    group: int | None  # of an unknown item
    confidence: float
    nearest: str  # the best known class
    p_known: float | None  # the share of known items at least as strange
    operating_point: float | None  # unknown where p_known is at most this


class PredictAnswer(BaseModel):
    predictions: list[Prediction]


class Health(BaseModel):
    status: str
    version: str
    kind: str  # of the items that the model takes
    shape: list[int]  # of one item
    classes: list[str]
    waiting: int  # items


class Refusal(BaseModel):
    error: str


def make_app(service: ModelService, limits: Limits | None = None) -> ASGIApp:
    """The service of one model, behind its limit on sizes."""
    limits = limits or Limits()
    batcher = Batcher(service.answer, most_waiting=limits.waiting)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()

    app = FastAPI(
        title="s2osc", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )

    @app.exception_handler(S2OSCError)
    async def refuse(_: Request, error: S2OSCError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(RequestValidationError)
    async def unusable(_: Request, error: RequestValidationError) -> JSONResponse:
        # Not what was sent: it may be as large as a body can be, or no text at all.
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        return JSONResponse({"error": f"{where}: {first['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    async def unheard(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> JSONResponse:
        later = {"retry-after": "1"}
        return JSONResponse({"error": "too much is waiting; try again later"}, 503, later)

    @app.exception_handler(TimeoutError)
    async def too_long(_: Request, error: TimeoutError) -> JSONResponse:
        return JSONResponse({"error": f"it took longer than {limits.seconds:g} s"}, 503)

    @app.get("/health")
    async def health() -> Health:
        """What the model takes, and how much is waiting."""
        return Health(
            status="ready",
            version=__version__,
            kind=service.kind,
            shape=list(service.item_shape),
            classes=list(service.classes),
            waiting=batcher.n_waiting,
        )

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(docs_page(service, app.openapi(), request.url.netloc))

    refusals: dict[int | str, dict[str, object]] = {
        400: {"model": Refusal},
        413: {"model": Refusal},
        422: {"model": Refusal},
        503: {"model": Refusal},
    }

    @app.post("/predict", responses=refusals)
    async def predict(body: PredictBody) -> PredictAnswer:
        """For each item a known class, or unknown and which group."""
        if body.vectors is not None:
            items = service.vectors(body.vectors)
        elif body.images is not None:
            items = await run_in_threadpool(service.images, body.images)
        else:
            items = service.texts(body.texts or [])
        async with asyncio.timeout(limits.seconds):
            found = await batcher.answer(items)
        return PredictAnswer(predictions=[Prediction(**each._asdict()) for each in found])

    return LimitedBody(app, limits.body)


class LimitedBody:
    """Refuses a body that is too large, or does not say how large it is."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self.app, self.largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            headers = dict(scope["headers"])
            length = headers.get(b"content-length", b"")
            if not length.isdigit():
                answer: Response = JSONResponse({"error": "give a content-length"}, 411)
                await answer(scope, receive, send)
                return
            if int(length) > self.largest:
                text = f"the body has {int(length):,} bytes, above the limit of {self.largest:,}"
                await JSONResponse({"error": text}, 413)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def serve(service: ModelService, bound: socket.socket, limits: Limits | None = None) -> None:
    """Answer requests until the process is ended."""
    config = uvicorn.Config(
        make_app(service, limits),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=2,
        limit_concurrency=MOST_CONNECTIONS,
    )
    uvicorn.Server(config).run(sockets=[bound])
