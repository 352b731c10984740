"""`/mcp` of a server, as the official client of the protocol meets it over streamable HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from support.benchmarks import load_benchmark
from support.cli import stretto
from support.mcp_client import MODES, call, refused
from support.served import Served

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def connected(
    server: Any, token: str | None = None, mode: str = "legacy"
) -> AsyncIterator[Client]:
    """`server`: has a `url` and a `token`."""
    headers = {"Authorization": f"Bearer {token or server.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode, cache=None) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
def test_a_client_runs_and_approves_over_http(server: Served, mode: str) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async def main() -> None:
        async with connected(server, mode=mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert {"run_workflow", "greet", "gated", "approve"} <= tools
            result = await client.call_tool("greet", {"whom": "Ada"}, progress_callback=hear)
            assert result.structured_content is not None
            assert result.structured_content["output"] == "Hello!"
            waiting = await call(client, "gated")
            assert waiting["status"] == "waiting"
            run = waiting["run_id"]
            assert (await call(client, "approve", run_id=run, step="act"))["status"] == "complete"
            whole = await call(client, "get_run", run_id=run)
            assert whole["trigger"] == "mcp http"
            assert (await refused(client, "greet"))["kind"] == "invalid_inputs"

    asyncio.run(main())
    assert told == sorted(set(told))
    assert told


def test_a_token_may_do_what_its_role_may(server: Served) -> None:
    tokens = {
        role: server.client_of(f"mcp-{role}", role).headers["authorization"][7:]
        for role in ("viewer", "operator", "author")
    }

    async def main() -> None:
        async with connected(server) as own:
            run = (await call(own, "gated"))["run_id"]
        async with connected(server, tokens["viewer"]) as viewer:
            assert (await call(viewer, "list_workflows"))["ok"]
            assert (await refused(viewer, "greet", whom="x"))["kind"] == "permission_denied"
        async with connected(server, tokens["operator"]) as operator:
            assert (await call(operator, "greet", whom="x"))["ok"]
            # Neither what only authors may do, nor another's run.
            task = {"agent": "writer", "prompt": "x"}
            assert (await refused(operator, "task", **task))["kind"] == "permission_denied"
            decide = {"run_id": run, "step": "act"}
            assert (await refused(operator, "approve", **decide))["kind"] == "permission_denied"
        async with connected(server, tokens["author"]) as author:
            assert (await call(author, "task", agent="writer", prompt="x"))["ok"]

    asyncio.run(main())


def test_without_a_token_or_from_a_strange_page_nothing_is_served(server: Served) -> None:
    assert server.stranger().post("/mcp", json=PING, headers=ACCEPT).status_code == 401
    assert server.stranger().get("/mcp").status_code == 401
    client = server.client()
    for strange in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        assert client.post("/mcp", json=PING, headers={**ACCEPT, **strange}).status_code in (
            403,
            421,
        )
    assert client.post("/mcp", content=b"[" * 100_000, headers=ACCEPT).status_code == 400


GATED = """\
name: gated
steps:
  - {id: act, subagent: writer, gate: human, prompt: Act.}
"""


def test_the_next_server_goes_on_with_a_run_of_a_terminal_that_was_approved_here(
    tmp_path: Path,
) -> None:
    bench = load_benchmark("server_kills").Bench(tmp_path)
    (tmp_path / "workflows" / "gated.yaml").write_text(GATED)
    (tmp_path / "script.yaml").write_text("default: {reply: Done., delay: 3s}\n")
    env = {"STRETTO_HOME": str(tmp_path / "home")}
    model = f"scripted:{tmp_path / 'script.yaml'}"
    assert stretto(tmp_path, "run", "gated", "--model", model, env=env).code == 3
    run = stretto(tmp_path, "runs", "--json", env=env).json["runs"][0]["run_id"]
    bench.start()
    try:

        async def main() -> None:
            async with connected(bench) as client:
                await call(client, "approve", run_id=run, step="act", wait=False)

        asyncio.run(main())
        bench.kill()
        bench.start()
        give_up_at = time.monotonic() + 30
        while (status := bench.ask("GET", f"/api/runs/{run}")["status"]) != "complete":
            assert time.monotonic() < give_up_at, status
            time.sleep(0.1)
    finally:
        bench.kill()
