"""Who gets in: a token that becomes a cookie, and requests from this page alone.

Host      must be the address we serve under: a name that leads here by DNS is refused; where we
          serve under every address of the machine, any address will do, and no name
cookie    strict same-site, of a random token that stands in the first address alone
Origin    of whatever changes something must be that host: no other site can post here
answers   a policy without inline script, nothing from outside, no frames
"""

import hmac
import re
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from s2osc.files import write_whole, writing

LOCAL = ("127.0.0.1", "localhost", "[::1]")
EVERY = ("0.0.0.0", "[::]")
"""Stand for all addresses of a machine."""
DEFAULT_PORTS = {"http": 80}
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
TOKEN_FORM = re.compile("[A-Za-z0-9_-]{32,128}")
OWNER_ALONE, EVERYBODY_ELSE = 0o600, 0o077  # permissions of files
NO_TOKEN = "Open the address that `s2osc page` printed: it holds the key to this page.\n"


def read_token(path: Path) -> str:
    """The token of a project, made once: a page that is open survives a restart of its server.

    A token that others could have read, or that is not as we make them, is replaced.
    """
    if path.is_file() and not path.stat().st_mode & EVERYBODY_ELSE:
        token = path.read_text(encoding="ascii", errors="replace")
        if TOKEN_FORM.fullmatch(token):
            return token
    token = secrets.token_urlsafe(32)
    with writing(path, "remove what is there"):
        write_whole(path, token.encode(), mode=OWNER_ALONE)
    return token


class Guard:
    """Lets requests through to the page, or answers them itself."""

    def __init__(
        self, app: ASGIApp, *, token: str, hosts: Iterable[str], port: int, scheme: str = "http"
    ) -> None:
        self.app, self.token = app, token
        self.cookie = f"s2osc-{port}"
        self.scheme, self.names = scheme, frozenset(hosts)
        self.on_every_address = not self.names.isdisjoint(EVERY)
        self.ports = ("", f":{port}") if port == DEFAULT_PORTS.get(scheme) else (f":{port}",)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there is nothing else on this page
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        answer = self.app if refusal is None else refusal
        await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """What is answered in place of the page; None: the request may pass."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return PlainTextResponse("This page is not served under that name.\n", 421)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and (
            scope["method"] not in SAFE or scope["path"] != "/"
        ):
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        if scope["method"] not in SAFE and headers.get("origin") != f"{self.scheme}://{host}":
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        if scope["path"] == "/" and scope["method"] == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
            if given and self._is_token(given[0]):
                return self._let_in()
        if not self._is_token(self._cookie_in(headers)):
            return PlainTextResponse(NO_TOKEN, 403)
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether we serve under a host, which may have a port."""
        ending = next((port for port in reversed(self.ports) if host.endswith(port)), None)
        if ending is None:
            return False
        name = host.removesuffix(ending)
        return name in self.names or (
            self.on_every_address and (name in LOCAL or _is_address(name))
        )

    def _let_in(self) -> Response:
        """The token leaves the address, where it could be seen, and becomes a cookie."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self.cookie, self.token, httponly=True, samesite="strict", max_age=60 * 60 * 24 * 365
        )
        return answer

    def _cookie_in(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _is_address(name: str) -> bool:
    """Whether it is a number, which no name server can lead elsewhere."""
    try:
        ip_address(name[1:-1] if name.startswith("[") and name.endswith("]") else name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_with_headers
