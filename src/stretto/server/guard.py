"""Stands before every route: Host and Origin, who asks, how long a body may be, headers of answers.

It is ASGI and not a route's dependency, so that nothing can be mounted beside it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stretto.problems.errors import StrettoError
from stretto.server.access import COOKIE, CSRF_HEADER, AccessControl, Caller
from stretto.server.answers import (
    BodyTooLarge,
    BodyTooSlow,
    BodyUnclear,
    TooMany,
    Unauthenticated,
    login_page,
    refuse,
)
from stretto.server.tokens import Identity

OPEN_PATHS = ("/healthz", "/login")
# Paths below these find out themselves who asks, as by the signature of a webhook.
OPEN_PREFIXES = ("/hooks/",)
BODY_SECONDS = 60.0  # for a whole body: whoever sends it slower holds a connection for nothing
_SAFE = ("GET", "HEAD", "OPTIONS")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: a form of our own page would then be sent with `Origin: null`.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_CUT_OFF = b'event: fault\ndata: {"message": "your token or session counts no longer"}\n\n'
_log = logging.getLogger("stretto.server.access")


class Guard:
    """`count`: is told the method, the status and the seconds of every request."""

    def __init__(
        self,
        app: ASGIApp,
        access: AccessControl,
        most_bytes: int,
        count: Callable[[str, int, float], None],
    ) -> None:
        self._app = app
        self._count = count
        self._access = access
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket is served
        answer, method = _Answer(scope, send, self._is_admitted), scope["method"]
        scope = _as_get(scope)
        try:
            self._admit(scope)
            # For streams: ASGI cannot send a last notice to a reader that does not read.
            cycle = getattr(send, "__self__", None)
            scope["state"]["flow"] = getattr(cycle, "flow", None)
            scope["state"]["transport"] = getattr(cycle, "transport", None)
        except StrettoError as error:
            await self._refusal(scope, error)(scope, receive, answer.send)
            await answer.end_head()
        else:
            body = _Body(receive, self._most_bytes, answer.cut_off)
            try:
                await self._app(scope, body.receive, answer.send)
            except HTTPException as error:  # of what is mounted, and does not answer it itself
                if not answer.has_begun:
                    refused = BodyTooLarge if error.status_code == 413 else BodyTooSlow
                    await refuse(refused(error.detail))(scope, receive, answer.send)
            except ClientDisconnect:
                pass  # it left before its request was whole: nobody is there to be answered
            await answer.end_head()
        finally:
            self._count(method, answer.status, answer.log())

    def _admit(self, scope: Scope) -> None:
        """Raises what `AccessControl` raises, BodyTooLarge and BodyUnclear."""
        headers = _headers(scope)
        asked = _read_caller(scope, headers)
        self._access.hosts.check(asked)
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may go by the one and this server by the other: then the rest is a second request.
            raise BodyUnclear("a body has Content-Length or Transfer-Encoding, and not both")
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > self._most_bytes):
            raise _too_large(self._most_bytes)
        if not is_open(scope["path"]):
            identity, session = self._access.identify(asked)
            scope["state"].update(identity=identity, session=session)
        scope["state"]["address"] = asked.address

    def _is_admitted(self, scope: Scope) -> bool:
        state = scope["state"]
        return is_open(scope["path"]) or self._access.is_admitted(
            state["identity"], state["session"]
        )

    def _refusal(self, scope: Scope, error: StrettoError) -> Response:
        wants_page = "text/html" in _headers(scope).get("accept", "")
        if isinstance(error, Unauthenticated) and wants_page and scope["method"] in ("GET", "HEAD"):
            page = login_page(error.message, _page_of(scope))
            return HTMLResponse(page, 401, {"WWW-Authenticate": "Bearer"})
        more = {"Retry-After": "60"} if isinstance(error, TooMany) else {}
        more |= {"Connection": "close"} if isinstance(error, BodyUnclear) else {}
        return refuse(error, more)


def _page_of(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return quote(scope["path"]) + (f"?{query}" if query else "")


def _as_get(scope: Scope) -> Scope:
    """HEAD asks what GET would say of itself, so the routes that know GET answer it. `is_head`: for the
    few of them that change something."""
    is_head = scope["method"] == "HEAD"
    scope.setdefault("state", {})["is_head"] = is_head
    return {**scope, "method": "GET"} if is_head else scope


def is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_PREFIXES)


def _headers(scope: Scope) -> Mapping[str, str]:
    # The first one counts: no honest client sends a second Host or Authorization.
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def _read_caller(scope: Scope, headers: Mapping[str, str]) -> Caller:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return Caller(
        host=headers.get("host", ""),
        origin=headers.get("origin"),
        site=headers.get("sec-fetch-site", ""),
        token=token.strip() if scheme.lower() == "bearer" else None,
        cookie=_cookie(headers.get("cookie", "")),
        csrf=headers.get(CSRF_HEADER, ""),
        address=scope["client"][0] if scope.get("client") else "",
        is_change=scope["method"] not in _SAFE,
    )


def _cookie(header: str) -> str | None:
    if COOKIE not in header:
        return None
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _too_large(most_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body has more than {most_bytes:,} bytes")


class _Body:
    """Counts what comes in, also where no Content-Length said how much it would be."""

    def __init__(self, receive: Receive, most_bytes: int, cut_off: asyncio.Event) -> None:
        """`cut_off`: set when the asker may read no more, which to the route is as if they left."""
        self._receive = receive
        self._most_bytes = most_bytes
        self._cut_off = cut_off
        self._bytes = 0
        self._is_read = False
        self._until = asyncio.get_running_loop().time() + BODY_SECONDS

    async def receive(self) -> Message:
        if self._is_read:
            return await self._disconnect()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            said = f"the body did not come within {BODY_SECONDS:.0f} seconds"
            raise HTTPException(408, said) from None
        if message["type"] == "http.request":
            self._is_read = not message.get("more_body", False)
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._most_bytes:
                raise HTTPException(413, _too_large(self._most_bytes).message)
        return message

    async def _disconnect(self) -> Message:
        gone = asyncio.ensure_future(self._receive())
        cut_off = asyncio.ensure_future(self._cut_off.wait())
        try:
            await asyncio.wait((gone, cut_off), return_when=asyncio.FIRST_COMPLETED)
            return gone.result() if gone.done() else {"type": "http.disconnect"}
        finally:
            gone.cancel()
            cut_off.cancel()


class _Answer:
    """Adds the headers that every answer has, and notes what was answered. A stream ends once its
    reader's token or session counts no longer, or was asked for its head alone."""

    def __init__(
        self,
        scope: Scope,
        send: Send,
        is_admitted: Callable[[Scope], bool],
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scope = scope
        self._send = send
        self._is_admitted = is_admitted
        self._is_stream = False
        self._is_head = scope["method"] == "HEAD"
        self.cut_off = asyncio.Event()
        self._tick = tick
        self._began_at = tick()
        self.status = 0  # nothing was answered yet

    @property
    def has_begun(self) -> bool:
        return self.status != 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            self._is_stream = any(
                name == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in headers
            )
            message = {**message, "headers": [*headers, *_missing(headers)]}
            if self._is_head:
                self.cut_off.set()
        elif self._is_head:
            return
        elif self._is_stream:
            if self.cut_off.is_set():
                return
            if message.get("more_body") and not self._is_admitted(self._scope):
                self.cut_off.set()
                message = {"type": "http.response.body", "body": _CUT_OFF}
        await self._send(message)

    async def end_head(self) -> None:
        if self._is_head and self.has_begun:
            await self._send({"type": "http.response.body", "body": b""})

    def log(self) -> float:
        """Gives the seconds since the request came."""
        seconds = self._tick() - self._began_at
        if not _log.isEnabledFor(logging.INFO):
            return seconds
        identity: Identity | None = self._scope.get("state", {}).get("identity")
        # Without the query: a login code stands in one.
        _log.info(
            "%s %s %s",
            self._scope["method"],
            self._scope["path"],
            self.status or "-",
            extra={
                "method": self._scope["method"],
                "path": self._scope["path"],
                "status": self.status,
                "seconds": round(seconds, 6),
                "by": identity.name if identity else "",
            },
        )
        return seconds


def _missing(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    known = {name.lower(): value for name, value in headers}
    more = [header for header in _HEADERS if header[0] not in known]
    if b"cache-control" not in known:
        more.append((b"cache-control", b"no-store"))
    if b"content-security-policy" not in known:
        is_page = known.get(b"content-type", b"").startswith(b"text/html")
        policy = _CSP if is_page else "default-src 'none'; frame-ancestors 'none'"
        more.append((b"content-security-policy", policy.encode()))
    return more
