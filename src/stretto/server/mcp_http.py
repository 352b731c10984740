"""The MCP server over streamable HTTP, at `/mcp`. In: a server that runs. Out: an ASGI application.

Token, Host and Origin are checked by the Guard before a request comes here. What a token may do is
asked for each call, by the role that the same thing needs over HTTP.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send

from stretto.server.mcp_calls import ClientCall, McpOptions
from stretto.server.mcp_catalog import OfferedTool
from stretto.server.mcp_server import McpEndpoint
from stretto.server.service import MOST_BODY_BYTES, Service, require_role
from stretto.server.tokens import AccessRole, Identity

_MOST_SESSIONS = 1_000
_AUTHORS = ("save_workflow", "task", "task_batch")
_OF_RUNS = ("approve", "reject", "cancel_run")  # for whoever started the run


@asynccontextmanager
async def open_mcp(service: Service) -> AsyncIterator[ASGIApp]:
    async def admit(
        ctx: ServerRequestContext[Any, Any], tool: OfferedTool | None, call: ClientCall
    ) -> str:
        identity: Identity = ctx.request.scope["state"]["identity"]  # type: ignore[union-attr]
        if tool is not None and tool.changes:
            is_author = tool.name in _AUTHORS
            require_role(identity, AccessRole.AUTHOR if is_author else AccessRole.OPERATOR)
            service.check_serving()
            run_id = call.arguments.get("run_id")
            if tool.name in _OF_RUNS and isinstance(run_id, str):
                await service.own_run(run_id, identity)
        return identity.name

    endpoint = McpEndpoint(service.stretto, McpOptions(transport="http"), admit)
    # A request of a session may come to another worker, which does not know it: then there is none,
    # and each request stands by itself.
    manager = StreamableHTTPSessionManager(
        endpoint.server,
        stateless=service.is_one_of_many,
        max_request_body_size=MOST_BODY_BYTES,
        max_sessions=_MOST_SESSIONS,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # A session belongs to the token that has opened it.
        identity: Identity = scope["state"]["identity"]
        token = AccessToken(token="", client_id=identity.credential, scopes=[])
        await manager.handle_request({**scope, "user": AuthenticatedUser(token)}, receive, send)

    async with manager.run():
        yield app
