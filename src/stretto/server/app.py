"""The application. In: a Surface and who may use it. Out: an ASGI application.

Routes are added in ROUTERS, each with the role that it needs among its dependencies (`service.VIEWER`
and so on); a route without one is refused when the application is made. Something that is not made of
FastAPI's routes is mounted with `mount`. Both stand behind the Guard, which asks for a token.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from stretto.server import runs, session, workflows
from stretto.server.access import AccessControl
from stretto.server.answers import Refused, answer_errors
from stretto.server.guard import Guard, is_open
from stretto.server.service import MOST_BODY_BYTES, Service, role_of
from stretto.vocabulary.version import VERSION

ROUTERS: tuple[APIRouter, ...] = (session.router, workflows.router, runs.router)

OpenService = Callable[[], AbstractAsyncContextManager[Service]]


def make_app(open_service: OpenService, access: AccessControl) -> ASGIApp:
    """`open_service`: opens what the routes share when the server starts, and closes it at its end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service() as service:
            app.state.service = service
            yield

    app = FastAPI(
        title="Stretto",
        version=VERSION,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        telemetry={"tracing": False},
        responses={"4XX": {"model": Refused, "description": "What was refused, and why"}},
    )
    answer_errors(app)
    for router in ROUTERS:
        _check_roles(router)
        app.include_router(router)
    return Guard(app, access, MOST_BODY_BYTES)


def _check_roles(router: APIRouter) -> None:
    for route in router.routes:
        assert isinstance(route, APIRoute), f"{route} cannot say which role it needs"
        roles = [role_of(each.dependency) for each in route.dependencies]
        assert any(roles) or is_open(route.path), f"{route.path} says no role that it needs"
