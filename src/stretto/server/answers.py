"""Errors as HTTP answers: one shape, the kinds of the other surfaces, and a status for each kind.

And the two small pages of logging in, without a script; what they show of others is escaped.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import Send

from stretto.config.database import is_full
from stretto.problems.errors import DiskFull, InvalidUsage, StrettoError
from stretto.problems.render import error_as_json
from stretto.text.short import shorten

_MOST_FAULTS = 20
_MOST_LETTERS = 300
# What a client can fix is 4xx. 5xx is left for what is wrong with the server itself.
STATUSES = {
    "malformed": 400,
    "usage": 422,
    "invalid_recipe": 422,
    "invalid_inputs": 422,
    "invalid_config": 500,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_trusted": 403,
    "not_found": 404,
    "not_allowed": 405,
    "exists": 409,
    "conflict": 409,
    "leased": 409,
    "fenced": 409,
    "plan_not_accepted": 409,
    "already_decided": 409,
    "in_use": 409,
    "changed": 412,
    "too_slow": 408,
    "too_large": 413,
    "not_ready": 424,
    "too_many": 429,
    "closing": 503,
    "journal_full": 507,
    "disk_full": 507,
}
_KINDS = {
    400: "usage",
    404: "not_found",
    405: "not_allowed",
    406: "usage",
    408: "too_slow",
    411: "usage",
    413: "too_large",
    415: "usage",
    422: "usage",
    429: "too_many",
}


class JsonAnswer(JSONResponse):
    """JSON in ASCII: a name of a file may hold bytes that are no text, and is told all the same."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class ErrorBody(BaseModel):
    kind: str
    message: str
    details: dict[str, Any]


class Refused(BaseModel):
    """What every error looks like, here and on every other surface."""

    ok: bool = False
    error: ErrorBody


class Unauthenticated(StrettoError):
    kind = "unauthenticated"


class TooMany(StrettoError):
    kind = "too_many"


class BodyTooLarge(StrettoError):
    kind = "too_large"


class BodyTooSlow(StrettoError):
    kind = "too_slow"


class BodyUnclear(StrettoError):
    kind = "malformed"


class KeyConflict(StrettoError):
    kind = "conflict"


def status_of(error: StrettoError) -> int:
    return STATUSES.get(error.kind, 500)


def refuse(
    error: StrettoError, headers: Mapping[str, str] | None = None, status: int | None = None
) -> JsonAnswer:
    more = dict(headers or {})
    if isinstance(error, Unauthenticated):
        more.setdefault("WWW-Authenticate", "Bearer")
    return JsonAnswer(error_as_json(error), status or status_of(error), more)


def answer_errors(app: FastAPI) -> None:
    """Every error of every route in the one shape."""
    for kind, handle in _refusals().items():
        app.add_exception_handler(kind, handle)
    app.add_exception_handler(Exception, _refuse_unknown)


async def answer_error(request: Request, error: Exception, send: Send) -> None:
    """Answer an error outside the application as `answer_errors` would inside it. An error that is
    no refusal is raised again once it is answered, so that the log has it."""
    known = _refusals()
    handle = next((known[kind] for kind in type(error).__mro__ if kind in known), _refuse_unknown)
    fault: Exception | None = error if handle is _refuse_unknown else None
    try:
        response = await handle(request, error)
    except Exception as other:
        fault, response = other, await _refuse_unknown(request, other)
    await response(request.scope, request.receive, send)
    if fault is not None:
        raise fault


def _refusals() -> dict[type[Exception], Callable[[Request, Exception], Awaitable[JsonAnswer]]]:
    return {
        StrettoError: _refuse_ours,
        RequestValidationError: _refuse_body,
        HTTPException: _refuse_http,
        OSError: _refuse_system,
    }


async def _refuse_ours(request: Request, error: Exception) -> JsonAnswer:
    assert isinstance(error, StrettoError)
    return refuse(error)


async def _refuse_body(request: Request, error: Exception) -> JsonAnswer:
    assert isinstance(error, RequestValidationError)
    faults = [_fault(each) for each in error.errors()[:_MOST_FAULTS]]
    said = "; ".join(f"{each['where']}: {each['message']}" for each in faults)
    told = error_as_json(InvalidUsage(shorten(said, _MOST_LETTERS)))
    shown: Any = told["error"]
    shown["details"] = {"faults": faults}
    return JsonAnswer(told, 422)


def _fault(each: Mapping[str, Any]) -> dict[str, str]:
    where = ".".join(shorten(str(part), 60) for part in each.get("loc", ()))
    return {"where": where, "message": shorten(str(each.get("msg", "")), _MOST_LETTERS)}


async def _refuse_http(request: Request, error: Exception) -> JsonAnswer:
    assert isinstance(error, HTTPException)
    said = {
        404: f"there is nothing at {shorten(request.url.path, 100)}",
        405: f"{request.method} is not possible at {shorten(request.url.path, 100)}",
    }.get(error.status_code, str(error.detail))
    told = error_as_json(StrettoError(said))
    shown: Any = told["error"]
    shown["kind"] = _KINDS.get(error.status_code, "error")
    return JsonAnswer(told, error.status_code, dict(error.headers or {}))


async def _refuse_system(request: Request, error: Exception) -> JsonAnswer:
    if is_full(error):
        said = "there is no room on the server's disk; nothing was written"
        return refuse(DiskFull(said))
    raise error


async def _refuse_unknown(request: Request, error: Exception) -> JsonAnswer:
    # The traceback goes to the log: it may name what an HTTP client should not see.
    return refuse(StrettoError("something went wrong in the server; its log says what"), status=500)


# Only a path of this server: neither `//host`, which names another one, nor a character that
# browsers read as `/`.
_PAGE_OF_CONSOLE = re.compile(
    r"/(?:[A-Za-z0-9_.~%-][A-Za-z0-9_.~%/-]*)?(?:\?[A-Za-z0-9_.~%/=&+:-]*)?"
)
_PAGE_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stretto</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{more}</head><body>
"""


def login_page(said: str, then: str = "/") -> str:
    """Asks for a token; `said`: why, `then`: the page that was asked for."""
    return (
        _PAGE_HEAD.format(more="")
        + f"""<h1>Stretto</h1>
<p>{escape(said)}</p>
<p>Open the login link that <code>stretto serve</code> printed (<code>stretto serve link</code> prints
a new one), or give your token:</p>
<form method="post" action="/login"><input type="hidden" name="then" value="{escape(then)}">
<p><label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Log in</button></p>
</form>
</body></html>
"""
    )


def welcome_page(then: str = "/") -> str:
    """Leads on to the console. By a page and not by a redirect: a browser that came here by a link
    elsewhere sends a SameSite=Strict cookie only from the next page on."""
    to = then if _PAGE_OF_CONSOLE.fullmatch(then) else "/"
    more = f'<meta http-equiv="refresh" content="0; url={escape(to)}">'
    return (
        _PAGE_HEAD.format(more=more)
        + f'<p>Logged in. <a href="{escape(to)}">Go on</a></p>\n</body></html>\n'
    )
