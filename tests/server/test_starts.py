"""The straight way to a start, in front of an application that takes the long one."""

import asyncio
import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Scope

from stretto.assembly.project import Project
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.assembly.surface import Surface
from stretto.problems.errors import InvalidUsage, NotFound
from stretto.server.answers import answer_errors
from stretto.server.bodies import RunBody
from stretto.server.service import Closing, Service
from stretto.server.starts import StraightStart, start
from stretto.server.tokens import AccessRole, Identity
from support.cli import environment

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


class SlowSurface(Surface):
    """Prepares once it is let."""

    def __init__(self, folder: Path) -> None:
        environ = environment(folder, {"STRETTO_MODEL": f"scripted:{folder / 'script.yaml'}"})
        super().__init__(lambda place: Project(place or folder, environ))
        self.is_preparing, self.may_prepare = asyncio.Event(), asyncio.Event()

    async def prepare(self, request: RunRequest) -> PreparedRun:
        self.is_preparing.set()
        await self.may_prepare.wait()
        return await super().prepare(request)


def test_a_key_stays_with_the_request_that_prepares_while_another_server_refuses_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "script.yaml").write_text("default: Hello!\n")
    recipe = "name: hello\nsteps: [{id: a, subagent: writer, prompt: x}]\n"
    request = RunRequest(recipe, owner="ann", trigger="http")

    async def story() -> None:
        async with SlowSurface(tmp_path) as stretto:
            services = [Service(stretto, *[None] * 3) for _ in range(3)]  # type: ignore[arg-type]
            first = asyncio.create_task(start(services[0], request, "tea", "content"))
            await stretto.is_preparing.wait()
            services[1].closing.set()
            with pytest.raises(Closing):
                await start(services[1], request, "tea", "content")
            stretto.may_prepare.set()
            third, _ = await start(services[2], request, "tea", "content")
            assert (await first)[0].id == third.id

    asyncio.run(story())
