"""Start a run over HTTP, once. In: a RunRequest, and perhaps an Idempotency-Key. Out: the run.

A key is kept with the id of the run before that run begins, and no two runs have one id. So a
request that is sent again finds the run, or, if the server died in between, begins exactly that one.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stretto.assembly.request import RunRequest
from stretto.assembly.surface import SurfaceRun
from stretto.execution.runs import new_run_id
from stretto.ports.journal import Leased
from stretto.problems.errors import InvalidUsage, RefusedToOverwrite, StrettoError
from stretto.server.answers import JsonAnswer, KeyConflict, answer_error
from stretto.server.bodies import RunBody, StrictRequest
from stretto.server.ledger import KeyedRequest, open_ledger
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.server.service import Service

_IS_JSON = (b"application/json", b"application/json; charset=utf-8")
KEEP_SECONDS = 7 * 86_400
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


def digest_of_body(route: str, body: Mapping[str, Any]) -> str:
    written = json.dumps([route, body], sort_keys=True, separators=(",", ":"), default=str)
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


async def start(
    service: "Service", request: RunRequest, key: str | None, content: str
) -> tuple[SurfaceRun, bool]:
    """The run, and whether an earlier request with the same key began it.

    Raises what `Surface.prepare` raises, InvalidUsage and KeyConflict.
    """
    with service.stretto.engine.start_line.accepting():
        return await _start(service, request, key, content)


async def _start(
    service: "Service", request: RunRequest, key: str | None, content: str
) -> tuple[SurfaceRun, bool]:
    if key is None:
        return await _begin(service, request), False
    if not _KEY.fullmatch(key):
        raise InvalidUsage("Idempotency-Key must be 1 to 200 printable ASCII letters")
    async with service.lock(f"{request.owner} {key}"):
        return await _begin_once(service, request, key, content)


async def _begin_once(
    service: "Service", request: RunRequest, key: str, content: str
) -> tuple[SurfaceRun, bool]:
    now = service.stretto.engine.now()
    asked = KeyedRequest(request.owner, key, content, new_run_id(), now)
    kept = await asyncio.to_thread(_keep, service, asked)
    if kept.content != content:
        hint = "use a new key for a new request"
        raise KeyConflict("this Idempotency-Key was used for another request", hint=hint)
    id, runs = RunId(kept.run_id), await service.stretto.engine.runs_of()
    if await runs.is_known(id):
        return service.stretto.open(id), True
    try:
        return await _begin(service, replace(request, run_id=id)), False
    except (Leased, RefusedToOverwrite):  # another server has begun it at this moment
        return service.stretto.open(id), True
    except StrettoError:
        # It can be sent again, with what was wrong put right. A key that an earlier request keeps is
        # left to it: that one may still begin its run.
        if kept.run_id == asked.run_id and not await runs.is_known(id):
            await asyncio.to_thread(_forget, service, asked)
        raise


async def _begin(service: "Service", request: RunRequest) -> SurfaceRun:
    service.check_serving()
    return await service.stretto.launch(await service.stretto.prepare(request))


def _keep(service: "Service", asked: KeyedRequest) -> KeyedRequest:
    with open_ledger(service.home) as ledger:
        return ledger.keep_request(asked, asked.at - KEEP_SECONDS)


def _forget(service: "Service", asked: KeyedRequest) -> None:
    with open_ledger(service.home) as ledger:
        ledger.forget_request(asked)


async def answer(
    service: "Service", run: SurfaceRun, wait: bool, was_begun: bool = False
) -> Response:
    """The report once the run has ended or waits for a person; or, without waiting, its id."""
    headers = {"Location": f"/api/runs/{run.id}"}
    if was_begun:
        headers["Idempotency-Replayed"] = "true"
    if wait and await service.until(run.wait()):
        return JsonAnswer((await run.report(wait=False)).json(), headers=headers)
    status = await run.status()
    return JsonAnswer({"ok": True, "run_id": run.id, "status": status}, 202, headers)


class StraightStart:
    """Before an application: the way of a JSON body to its declared route that starts a saved workflow,
    with the same answers.

    FastAPI's own way to it takes longer than all that the start itself does: it goes through five
    layers, matches the path with every route before it, and finds anew what the route needs. All
    other requests go that way.
    """

    def __init__(self, app: FastAPI, declared: APIRoute) -> None:
        self._app = app
        self._path = declared.path_regex
        self._answer = declared.endpoint
        self._needs = [each.dependency for each in declared.dependencies]
        self._body = TypeAdapter(RunBody)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._match(scope)
        if found is None:
            await self._app(scope, receive, send)
            return
        request = StrictRequest({**scope, "app": self._app}, receive)
        try:
            response = await self._start(request, **found)
        except ClientDisconnect:
            raise  # nobody is there to be answered
        except Exception as error:
            await answer_error(request, error, send)
        else:
            await response(scope, receive, send)

    def _match(self, scope: Scope) -> dict[str, str] | None:
        """The parts of the path."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        found = self._path.match(scope["path"])
        is_plain = found and _header(scope, b"content-type").lower() in _IS_JSON
        return found.groupdict() if found and is_plain else None

    async def _start(self, request: StrictRequest, **found: str) -> Response:
        has_body = bool(await request.body())
        written = await request.json() if has_body else None
        for need in self._needs:
            assert need is not None
            await need(request)
        if not has_body:
            raise RequestValidationError([_MISSING])
        try:
            body = self._body.validate_python(written, from_attributes=True)
        except ValidationError as error:
            faults = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
            raise RequestValidationError(faults) from error
        response: Response = await self._answer(
            **found,
            body=body,
            service=self._app.state.service,
            asker=request.state.identity,
            key=request.headers.get("idempotency-key"),
        )
        return response


_MISSING = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}


def _header(scope: Scope, name: bytes) -> bytes:
    """The first one of that name."""
    return next((value for known, value in scope["headers"] if known == name), b"")
