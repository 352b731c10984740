"""The straight way to a start, in front of an application that takes the long one."""

import asyncio
import errno
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Scope

from stretto.problems.errors import InvalidUsage, NotFound
from stretto.server.answers import answer_errors
from stretto.server.bodies import RunBody
from stretto.server.starts import StraightStart
from stretto.server.tokens import AccessRole, Identity

ERRORS = (
    NotFound("there is no workflow 'x'"),
    InvalidUsage("no", hint="yes"),
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EIO, "Input/output error"),
    HTTPException(413, "too long"),
    RuntimeError("a secret path"),
)


def failing(error: Exception) -> tuple[FastAPI, StraightStart]:
    """An application whose start fails, alone and behind the straight way."""
    app = FastAPI()
    answer_errors(app)

    @app.post("/api/workflows/{name}/run")
    async def run(name: str, body: RunBody) -> None:
        raise error

    declared = next(each for each in app.routes if isinstance(each, APIRoute))
    app.state.service = None

    async def straight(**given: Any) -> None:
        raise error

    straightened = SimpleNamespace(
        path_regex=declared.path_regex, endpoint=straight, dependencies=[]
    )
    return app, StraightStart(app, straightened)  # type: ignore[arg-type]


def asked(app: Any, content: bytes = b"{}") -> tuple[list[Message], BaseException | None]:
    """What was sent, and what was raised."""
    sent: list[Message] = []
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/workflows/x/run",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "state": {"identity": Identity("ann", AccessRole.ADMIN, "")},
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": content}

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        asyncio.run(app(scope, receive, send))
    except Exception as error:
        return sent, error
    return sent, None


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_start_that_fails_is_answered_and_logged_alike_by_both_ways(error: Exception) -> None:
    alone, straight = failing(error)
    assert asked(straight) == asked(alone)


def test_what_is_no_refusal_is_raised_again_for_the_log() -> None:
    _, straight = failing(ERRORS[-1])
    sent, raised = asked(straight)
    assert sent[0]["status"] == 500
    assert b"secret" not in sent[1]["body"]
    assert raised is ERRORS[-1]


def test_who_leaves_within_a_body_is_answered_nothing() -> None:
    _, straight = failing(ERRORS[0])
    sent: list[Message] = []

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "POST", "path": "/api/workflows/x/run"}
    scope["headers"] = [(b"content-type", b"application/json")]
    with pytest.raises(ClientDisconnect):
        asyncio.run(straight(scope, gone, send))
    assert sent == []
