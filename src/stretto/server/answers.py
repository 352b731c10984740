"""Errors as HTTP answers: one shape, the kinds of the other surfaces, and a status for each kind."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.problems.render import error_as_json
from stretto.text.short import shorten

_MOST_FAULTS = 20
_MOST_LETTERS = 300
# What a client can mend is 4xx. 5xx is left for what is wrong with the server itself.
STATUSES = {
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
    "changed": 412,
    "too_large": 413,
    "not_ready": 424,
    "too_many": 429,
    "journal_full": 507,
}
_KINDS = {
    400: "usage",
    404: "not_found",
    405: "not_allowed",
    406: "usage",
    411: "usage",
    413: "too_large",
    415: "usage",
    429: "too_many",
}


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


class Changed(StrettoError):
    """What the client saw before is not what is there now."""

    kind = "changed"


class KeyConflict(StrettoError):
    kind = "conflict"


def status_of(error: StrettoError) -> int:
    return STATUSES.get(error.kind, 500)


def refuse(
    error: StrettoError, headers: Mapping[str, str] | None = None, status: int | None = None
) -> JSONResponse:
    more = dict(headers or {})
    if isinstance(error, Unauthenticated):
        more.setdefault("WWW-Authenticate", "Bearer")
    return JSONResponse(error_as_json(error), status or status_of(error), more)


def answer_errors(app: FastAPI) -> None:
    """Every error of every route in the one shape."""
    app.add_exception_handler(StrettoError, _refuse_ours)
    app.add_exception_handler(RequestValidationError, _refuse_body)
    app.add_exception_handler(HTTPException, _refuse_http)
    app.add_exception_handler(Exception, _refuse_unknown)


async def _refuse_ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StrettoError)
    return refuse(error)


async def _refuse_body(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = [_fault(each) for each in error.errors()[:_MOST_FAULTS]]
    said = "; ".join(f"{each['where']}: {each['message']}" for each in faults)
    told = error_as_json(InvalidUsage(shorten(said, _MOST_LETTERS)))
    shown: Any = told["error"]
    shown["details"] = {"faults": faults}
    return JSONResponse(told, 422)


def _fault(each: Mapping[str, Any]) -> dict[str, str]:
    where = ".".join(shorten(str(part), 60) for part in each.get("loc", ()))
    return {"where": where, "message": shorten(str(each.get("msg", "")), _MOST_LETTERS)}


async def _refuse_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said = {
        404: f"there is nothing at {shorten(request.url.path, 100)}",
        405: f"{request.method} is not possible at {shorten(request.url.path, 100)}",
    }.get(error.status_code, str(error.detail))
    told = error_as_json(StrettoError(said))
    shown: Any = told["error"]
    shown["kind"] = _KINDS.get(error.status_code, "error")
    return JSONResponse(told, error.status_code, dict(error.headers or {}))


async def _refuse_unknown(request: Request, error: Exception) -> JSONResponse:
    # The traceback goes to the log; what it says may be nobody's business who asks over HTTP.
    return refuse(StrettoError("something went wrong in the server; its log says what"), status=500)
