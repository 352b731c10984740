"""Logging in and out, and whether the server is there."""

from time import time
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Query, Request
from pydantic import BaseModel
from starlette.responses import HTMLResponse, Response

from stretto.problems.errors import InvalidUsage
from stretto.server.access import COOKIE, SESSION_SECONDS, Session
from stretto.server.answers import JsonAnswer, Unauthenticated, login_page, welcome_page
from stretto.server.bodies import new_router
from stretto.server.service import VIEWER, Asker, TheService
from stretto.vocabulary.version import VERSION

router = new_router("session")
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 10


class Health(BaseModel):
    ok: bool = True
    version: str = VERSION


class OpenSession(BaseModel):
    """Who asks. `csrf`: what a session by cookie sends as X-CSRF-Token; null for a bearer token."""

    ok: bool = True
    name: str
    role: str
    csrf: str | None
    expires_at: float | None


class LoggedOut(BaseModel):
    ok: bool = True
    sessions: int  # that have ended


class LoginLink(BaseModel):
    ok: bool = True
    path: str


@router.get("/healthz")
async def health() -> Health:
    """Whether the server answers. Needs no token, and says nothing else."""
    return Health()


@router.get("/api/openapi.json", dependencies=[VIEWER], include_in_schema=False)
async def show_schema(request: Request) -> JsonAnswer:
    """What all routes take and give, as OpenAPI."""
    return JsonAnswer(request.app.openapi())


@router.get("/login", response_class=HTMLResponse, include_in_schema=False)
async def log_in_by_link(request: Request, service: TheService, code: str = "") -> Response:
    if not code:
        return HTMLResponse(login_page("A token is needed."), 401)
    if request.state.is_head:  # a messenger that previews the link must not use it up
        return HTMLResponse(welcome_page())
    return _logged_in(request, *service.access.open_by_link(code, request.state.address))


@router.post("/login", response_class=HTMLResponse, include_in_schema=False)
async def log_in_by_token(request: Request, service: TheService) -> Response:
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != _FORM:
        raise Unauthenticated(f"the token is sent as a form: {_FORM}")
    written = (await request.body()).decode("utf-8", "replace")
    try:
        sent = parse_qs(written, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise InvalidUsage(f"the form has more than {_MOST_FIELDS} fields") from error
    token, then = sent.get("token", [""])[0].strip(), sent.get("then", ["/"])[0]
    try:
        opened = service.access.open_by_token(token, request.state.address)
    except Unauthenticated as error:
        return HTMLResponse(login_page(error.message, then), 401)
    return _logged_in(request, *opened, then)


def _logged_in(request: Request, secret: str, session: Session, then: str = "/") -> Response:
    page = HTMLResponse(welcome_page(then))
    is_secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
    seconds = min(SESSION_SECONDS, max(1, int(session.expires_at - time())))
    page.set_cookie(COOKIE, secret, seconds, httponly=True, samesite="strict", secure=is_secure)
    return page


@router.get("/api/session", dependencies=[VIEWER])
async def show_session(request: Request, asker: Asker) -> OpenSession:
    """Who asks, and with which role."""
    session: Session | None = request.state.session
    return OpenSession(
        name=asker.name,
        role=asker.role.word,
        csrf=session.csrf if session else None,
        expires_at=session.expires_at if session else None,
    )


@router.delete("/api/session", dependencies=[VIEWER])
async def log_out(
    request: Request,
    service: TheService,
    asker: Asker,
    response: Response,
    everywhere: Annotated[bool, Query(description="all sessions of the caller")] = False,
) -> LoggedOut:
    """End the session of the cookie; or, everywhere, those of all browsers of whoever asks."""
    session: Session | None = request.state.session
    if everywhere:
        count = service.access.close_sessions(asker)
    elif session is None:
        hint = "it is for sessions by cookie; everywhere=true ends all of yours"
        raise InvalidUsage("a token has no session", hint=hint)
    else:
        service.access.close_session(session)
        count = 1
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return LoggedOut(sessions=count)


@router.post("/api/session/link", dependencies=[VIEWER])
async def make_link(service: TheService, asker: Asker) -> LoginLink:
    """A path that opens a session for whoever asks, once, within ten minutes."""
    return LoginLink(path=f"/login?code={service.access.make_link(asker)}")
