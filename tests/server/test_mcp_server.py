"""The calls of MCP clients that a server keeps."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stretto.server import mcp_server
from stretto.server.mcp_calls import ClientCall, McpCalls, McpOptions
from stretto.server.mcp_server import McpEndpoint


async def asked(endpoint: McpEndpoint, number: int) -> None:
    request = SimpleNamespace(headers={"mcp-session-id": "s"})
    session = SimpleNamespace(client_params=None)
    ctx: Any = SimpleNamespace(request=request, request_id=number, session=session)
    params: Any = SimpleNamespace(name="task", arguments={"prompt": "long"})
    await endpoint._call_tool(ctx, params)


def endpoint_of(monkeypatch: pytest.MonkeyPatch, answer: Any) -> McpEndpoint:
    monkeypatch.setattr(McpCalls, "answer", answer)
    settings = SimpleNamespace(permission="ask", are_workflows_served=False)
    stretto: Any = SimpleNamespace(project=SimpleNamespace(settings=settings))
    return McpEndpoint(stretto, McpOptions(transport="http"))


def test_a_call_whose_client_has_gone_is_forgotten_soon_and_its_arguments_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp_server, "_CANCEL_SECONDS", 0.05)

    async def never(calls: McpCalls, call: ClientCall) -> Any:
        await asyncio.Event().wait()

    async def story() -> None:
        endpoint = endpoint_of(monkeypatch, never)
        work = [asyncio.create_task(asked(endpoint, number)) for number in range(3)]
        await asyncio.sleep(0.01)
        for each in work:
            each.cancel()
        await asyncio.wait(work)
        # A cancellation comes through the same loop, and may be handled after the call has ended.
        assert [call.arguments for call in endpoint._open.values()] == [{}, {}, {}]
        await asyncio.sleep(0.1)
        assert not endpoint._open

    asyncio.run(story())


def test_a_call_that_fails_by_our_fault_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(calls: McpCalls, call: ClientCall) -> Any:
        raise RuntimeError("a fault of ours")

    async def story() -> None:
        endpoint = endpoint_of(monkeypatch, fail)
        with pytest.raises(RuntimeError):
            await asked(endpoint, 1)
        assert not endpoint._open

    asyncio.run(story())
