"""The MCP server. In: an open Stretto. Out: a server of the `mcp` package, for stdio and for HTTP.

A request that the client cancels (notifications/cancelled) cancels the run that it started. A client
that goes away cancels nothing: over HTTP its runs go on here, on stdio they are stopped and can be
resumed.
"""

import asyncio
import json
import os
import stat
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, BinaryIO, cast

import mcp_types as types
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

from stretto.assembly.surface import Surface, SurfaceRun
from stretto.problems.errors import StrettoError
from stretto.problems.render import error_as_json
from stretto.server.mcp_calls import ClientCall, GoOn, McpCalls, McpOptions, go_on_here
from stretto.server.mcp_catalog import OfferedTool, prompt_text, workflow_tools
from stretto.server.service import MOST_BODY_BYTES, Service, require_role
from stretto.server.tokens import AccessRole, Identity
from stretto.text.visible import visible
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.version import VERSION

MOST_BYTES = 16_000_000  # of one message
_ALONE = "alone"
_MOST_SESSIONS = 1_000  # that are told of changes
_MOST_CALLS = 10_000  # that may still be cancelled
_CANCEL_SECONDS = 5.0  # in which what has cancelled a call can be heard
_LOOK_SECONDS = 2.0  # between looks at the folders of recipes
_INSTRUCTIONS = (
    "Stretto runs agents as workflows. list_workflows shows the saved ones, run_workflow runs one "
    "(dry_run first shows what it would do), task and task_batch give work to agents without one. "
    "A run that waits for a person says so; the user decides, and approve or reject passes that on."
)

# Who calls, by the token of an HTTP request: raises PermissionDenied where that token may not call
# this tool. Gives whose token it is; empty for the user's own.
Admission = Callable[
    [ServerRequestContext[Any, Any], OfferedTool | None, ClientCall], Awaitable[str]
]


async def _admit_user(
    ctx: ServerRequestContext[Any, Any], tool: OfferedTool | None, call: ClientCall
) -> str:
    return ""


class _ChangingServer(Server[Any]):
    """A server whose lists change, and which says so to clients of every version."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(True, tools_changed=True)
        return super().create_initialization_options(
            changing, experimental_capabilities, extensions
        )


class McpEndpoint:
    """One MCP server over one Stretto. `server` is what a transport serves."""

    def __init__(
        self,
        stretto: Surface,
        options: McpOptions,
        admit: Admission = _admit_user,
        go_on: GoOn = go_on_here,
    ) -> None:
        self._stretto = stretto
        self._calls = McpCalls(stretto, options, go_on)
        self._admit = admit
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._open: OrderedDict[tuple[str, str], ClientCall] = OrderedDict()
        self._offered: object = None
        self.server = _ChangingServer(
            "stretto",
            version=VERSION,
            title="Stretto",
            instructions=_INSTRUCTIONS,
            lifespan=self._watched,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listen,
        )
        self.server.add_notification_handler(
            "notifications/cancelled", types.CancelledNotificationParams, self._on_cancelled
        )

    async def _list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self._remember(ctx)
        tools = [_as_tool(each) for each in await self._calls.tools()]
        return types.ListToolsResult(tools=tools)

    async def _list_prompts(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        self._remember(ctx)
        return types.ListPromptsResult(
            prompts=[_as_prompt(each) for each in workflow_tools(await self._calls.recipes())]
        )

    async def _get_prompt(
        self, ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        found = {each.name: each for each in workflow_tools(await self._calls.recipes())}
        tool = found.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt '{params.name[:200]}'")
        given = params.arguments or {}
        properties = cast(dict[str, Json], tool.schema["properties"])
        missing = [name for name in cast(list[str], tool.schema["required"]) if name not in given]
        unknown = [name for name in given if name not in properties]
        if missing or unknown:
            lacks = f"missing: {', '.join(missing)}" if missing else ""
            extra = f"unknown: {', '.join(unknown)}"[:500] if unknown else ""
            said = "; ".join(filter(None, (lacks, extra)))
            raise MCPError(types.INVALID_PARAMS, f"the inputs of {tool.workflow}: {said}")
        text = prompt_text(tool.workflow, given)
        content = types.TextContent(type="text", text=text)
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=tool.description, messages=[message])

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self._remember(ctx)
        client = ctx.session.client_params
        name = visible(client.client_info.name)[:80] if client else ""
        progress = _Progress(ctx.session)
        call = ClientCall(params.name, params.arguments or {}, name, tell=progress.tell)
        sender = asyncio.create_task(progress.send())
        try:
            with self._open_call((_session_of(ctx), str(ctx.request_id)), call):
                offered = {each.name: each for each in await self._calls.tools()}
                call.by = await self._admit(ctx, offered.get(call.name), call)
                answer = await self._calls.answer(call)
        except StrettoError as error:
            answer = cast(dict[str, Json], error_as_json(error))
        finally:
            progress.end()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([sender], timeout=1)
            sender.cancel()
        if call.name == "save_workflow":
            await self._tell_changes()
        # In a thread, because the output of a run may have megabytes.
        return await asyncio.to_thread(self._result, answer)

    @contextmanager
    def _open_call(self, key: tuple[str, str], call: ClientCall) -> Iterator[None]:
        """Keep a call for `_on_cancelled` as long as it is answered."""
        self._open[key] = call
        while len(self._open) > _MOST_CALLS:
            self._open.popitem(last=False)
        seconds = 0.0
        try:
            yield
        except asyncio.CancelledError:
            # The client has gone, or has cancelled: then the call ends before it is looked for.
            seconds = _CANCEL_SECONDS
            raise
        finally:
            call.arguments = {}  # which may be long; a run that it has started keeps the call
            if seconds:
                asyncio.get_running_loop().call_later(seconds, self._forget, key, call)
            else:
                self._forget(key, call)

    def _forget(self, key: tuple[str, str], call: ClientCall) -> None:
        if self._open.get(key) is call:  # and not a later one with the same number
            del self._open[key]

    def _result(self, answer: dict[str, Json]) -> types.CallToolResult:
        shown = self._stretto.project.redactor.json(answer)
        text = json.dumps(shown, ensure_ascii=False)
        # Half of a surrogate pair cannot be sent.
        text = text.encode("utf-8", "replace").decode()
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=json.loads(text),
            is_error="error" in answer,
        )

    async def _on_cancelled(
        self, ctx: ServerRequestContext[Any, Any], params: types.CancelledNotificationParams
    ) -> None:
        call = self._open.pop((_session_of(ctx), str(params.request_id)), None)
        if call is not None:
            await self._calls.cancel(call)

    def _remember(self, ctx: ServerRequestContext[Any, Any]) -> None:
        if _session_of(ctx).startswith(_ALONE):  # no message reaches it after its answer
            return
        self._sessions[_session_of(ctx)] = ctx.session
        self._sessions.move_to_end(_session_of(ctx))
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    @asynccontextmanager
    async def _watched(self, server: Server[Any]) -> AsyncIterator[None]:
        watch = asyncio.create_task(self._watch())
        try:
            yield None
        finally:
            watch.cancel()
            self._listen.close()

    async def _watch(self) -> None:
        while True:
            with suppress(StrettoError, OSError):
                await self._tell_changes()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _tell_changes(self) -> None:
        """Say that the lists have changed, if they have since the last look."""
        before, self._offered = self._offered, await self._calls.tools()
        if before is None or before == self._offered:
            return
        await self._bus.publish(ToolsListChanged())
        await self._bus.publish(PromptsListChanged())
        for id, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
                await session.send_prompt_list_changed()
            except Exception:  # mcp and anyio raise their own for a client that has gone
                self._sessions.pop(id, None)


class _Progress:
    """Progress of a run, told to the client; only the newest while the client is slow."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._newest: tuple[float, float, str] | None = None
        self._news = asyncio.Event()
        self._has_ended = False

    def tell(self, done: float, total: float, said: str) -> None:
        self._newest = (done, total, said)
        self._news.set()

    def end(self) -> None:
        self._has_ended = True
        self._news.set()

    async def send(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            newest, self._newest = self._newest, None
            if newest is not None:
                try:
                    await self._session.report_progress(*newest)
                except Exception:  # of a client that has gone; its call ends by itself
                    return
            if self._has_ended:
                return


def _session_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """The session of an HTTP client; empty on stdio, where there is one client. A request without a
    session stands alone: what another client sends must not mean it."""
    headers = getattr(ctx.request, "headers", None)
    if headers is None:
        return ""
    return str(headers.get("mcp-session-id", "")) or f"{_ALONE} {id(ctx.session)}"


def _as_tool(offered: OfferedTool) -> types.Tool:
    return types.Tool(
        name=offered.name,
        title=offered.title or None,
        description=offered.description,
        input_schema=dict(offered.schema),
        annotations=types.ToolAnnotations(
            read_only_hint=not offered.changes, destructive_hint=offered.changes
        ),
    )


def _as_prompt(offered: OfferedTool) -> types.Prompt:
    properties = cast(dict[str, dict[str, Json]], offered.schema["properties"])
    required = cast(list[Json], offered.schema["required"])
    return types.Prompt(
        name=offered.name,
        title=offered.title or None,
        description=offered.description,
        arguments=[
            types.PromptArgument(
                name=name,
                description=cast(str | None, each.get("description")),
                required=name in required,
            )
            for name, each in properties.items()
        ],
    )


async def serve_stdio(endpoint: McpEndpoint) -> None:
    """Serve one client on stdin and stdout until it closes stdin. Nothing else reaches stdout: what
    code or a child prints goes to stderr."""
    with _wire() as (incoming, outgoing):
        reader = await _open_reader(incoming)
        streams = stdio_server(cast(Any, _Lines(reader)), cast(Any, _Out(outgoing)))
        async with streams as (read, write):
            options = endpoint.server.create_initialization_options()
            await endpoint.server.run(read, write, options)


@contextmanager
def _wire() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The two streams of the protocol, alone: stdin and stdout themselves lead elsewhere meanwhile."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    # Left open: a thread may still be writing to a client that does not read.
    yield os.fdopen(incoming, "rb", 0, closefd=False), os.fdopen(outgoing, "wb", 0, closefd=False)


async def _open_reader(stream: BinaryIO) -> asyncio.StreamReader:
    """Without a thread, which a signal could not interrupt."""
    reader = asyncio.StreamReader(limit=MOST_BYTES)
    kind = os.fstat(stream.fileno()).st_mode
    if stat.S_ISREG(kind) or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stream.isatty()):
        reader.feed_data(await asyncio.to_thread(stream.read, MOST_BYTES) or b"")
        reader.feed_eof()
        return reader
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stream)
    return reader


class _Lines:
    """Lines of text, as `stdio_server` reads them. One that is too long ends the connection."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        try:
            line = await self._reader.readline()
        except ValueError:
            said = f"stretto mcp: the client sent a message of more than {MOST_BYTES:,} bytes"
            print(said, file=sys.stderr)
            raise StopAsyncIteration from None
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


class _Out:
    """What `stdio_server` writes to. A client that has gone ends nothing: its stdin ends too."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    async def write(self, text: str) -> None:
        await asyncio.to_thread(self._write, text.encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        with suppress(BrokenPipeError):
            view = memoryview(data)
            while view:
                view = view[self._stream.write(view) :]

    async def flush(self) -> None: ...


_MOST_HTTP_SESSIONS = 1_000
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

    async def go_on(run: SurfaceRun) -> None:
        await service.resume(run.id)  # so that the next server goes on with it, too

    endpoint = McpEndpoint(service.stretto, McpOptions(transport="http"), admit, go_on)
    # A request of a session may come to another worker, which does not know it: then there is none,
    # and each request stands by itself.
    manager = StreamableHTTPSessionManager(
        endpoint.server,
        stateless=service.is_one_of_many,
        max_request_body_size=MOST_BODY_BYTES,
        max_sessions=_MOST_HTTP_SESSIONS,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # A session belongs to the token that has opened it.
        identity: Identity = scope["state"]["identity"]
        token = AccessToken(token="", client_id=identity.credential, scopes=[])
        await manager.handle_request({**scope, "user": AuthenticatedUser(token)}, receive, send)

    async with manager.run():
        yield app
