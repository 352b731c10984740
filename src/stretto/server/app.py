"""The application. In: a Surface and who may use it. Out: an ASGI application.

Routes are added in ROUTERS, each with the role that it needs among its dependencies (`service.VIEWER`
and so on); a route without one is refused when the application is made. What is not made of FastAPI's
routes, such as MCP, is added in MOUNTS with its role. All stand behind the Guard, which asks for a token.
What the server does unasked is added in CHORES.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from stretto.problems.errors import NotReady, PermissionDenied
from stretto.server import (
    approvals,
    catalog,
    console_files,
    lead,
    metrics,
    news,
    recipes,
    runs,
    schedules,
    session,
    steps,
    streams,
    workflows,
)
from stretto.server.access import AccessControl
from stretto.server.answers import Refused, answer_errors, refuse
from stretto.server.guard import Guard, is_open
from stretto.server.service import MOST_BODY_BYTES, Service, require_role, role_of
from stretto.server.starts import StraightStart
from stretto.server.tokens import AccessRole
from stretto.server.upkeep import Upkeep
from stretto.vocabulary.version import VERSION

ROUTERS: tuple[APIRouter, ...] = (
    session.router,
    workflows.router,
    recipes.router,
    runs.router,
    approvals.router,  # before steps, whose path takes whatever follows
    steps.router,
    streams.router,
    news.router,
    catalog.router,
    lead.router,
    metrics.router,
    schedules.router,
    console_files.router,  # last: its path takes whatever is left
)


@dataclass(frozen=True, slots=True)
class MountedApp:
    """An application below a path. `open` makes it when the server starts, and closes it at the end."""

    path: str
    open: "Callable[[Service], AbstractAsyncContextManager[ASGIApp]]"
    role: AccessRole


@asynccontextmanager
async def _open_mcp(service: Service) -> AsyncIterator[ASGIApp]:
    try:
        from stretto.server.mcp_server import open_mcp
    except ImportError:  # of the package mcp, which is an extra
        yield _without_mcp
    else:
        async with open_mcp(service) as app:
            yield app


async def _without_mcp(scope: Scope, receive: Receive, send: Send) -> None:
    error = NotReady("the package mcp is not installed", hint="pip install 'stretto[mcp]'")
    await refuse(error)(scope, receive, send)


MOUNTS: tuple[MountedApp, ...] = (MountedApp("/mcp", _open_mcp, AccessRole.VIEWER),)
Count = Callable[[str, int, float], None]
OpenService = Callable[[], AbstractAsyncContextManager[Service]]


def make_app(open_service: OpenService, access: AccessControl, count: Count) -> ASGIApp:
    """`open_service`: opens what the routes share when the server starts, and closes it at its end."""

    mounts = [_Mounted(each) for each in MOUNTS]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service() as service:
            app.state.service = service
            async with AsyncExitStack() as opened, _chores(service):
                for mounted in mounts:
                    await opened.enter_async_context(mounted.opened(service))
                yield

    app = FastAPI(
        title="Stretto",
        version=VERSION,
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        telemetry={"tracing": False},
        responses={"4XX": {"model": Refused, "description": "What was refused, and why"}},
    )
    answer_errors(app)
    for mounted in mounts:
        app.router.routes.append(Route(mounted.path, mounted))  # without a slash after it, too
        app.mount(mounted.path, mounted)
    for router in ROUTERS:
        _check_roles(router)
        app.include_router(router)
    return Guard(StraightStart(app, runs.declared_start()), access, MOST_BODY_BYTES, count)


class _Mounted:
    def __init__(self, mount: MountedApp) -> None:
        self.path = mount.path
        self._mount = mount
        self._app: ASGIApp | None = None

    @asynccontextmanager
    async def opened(self, service: Service) -> AsyncIterator[None]:
        async with self._mount.open(service) as app:
            self._app = app
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app is not None
        try:
            require_role(scope["state"]["identity"], self._mount.role)
        except PermissionDenied as error:
            await refuse(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@asynccontextmanager
async def _chores(service: Service) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(chore(service)) for chore in CHORES]
    try:
        yield
    finally:
        service.closing.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_runs(service: Service) -> None:
    await Upkeep(service).keep()


async def _share_metrics(service: Service) -> None:
    if service.is_one_of_many:
        await service.metrics.share(service)


async def _wake_streams(service: Service) -> None:
    await service.closing.wait()
    for feed in tuple(service.feeds.values()):
        feed.wake()


# Each runs beside the requests, and is cancelled when the server ends.
CHORES: tuple[Callable[[Service], Coroutine[Any, Any, None]], ...] = (
    _keep_runs,
    _wake_streams,
    schedules.fire_triggers,
    _share_metrics,
)


def _check_roles(router: APIRouter) -> None:
    for route in router.routes:
        assert isinstance(route, APIRoute), f"{route} cannot say which role it needs"
        roles = list(filter(None, (role_of(each.dependency) for each in route.dependencies)))
        assert roles or is_open(route.path), f"{route.path} says no role that it needs"
        if roles:
            route.openapi_extra = {**(route.openapi_extra or {}), "x-role": max(roles).word}
