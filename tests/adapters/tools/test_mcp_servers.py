"""MCP servers, real ones: what they offer, and that nothing they do makes us wait or fall."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.mcp_servers import McpServers
from stretto.ports.tool import Tool, ToolOutcome
from stretto.vocabulary.json_value import Json

HERE = Path(__file__).parents[2] / "support"
ENVIRON = {"PATH": os.environ["PATH"], "SECRET": "s3cret", "TOKEN": "t0ken"}
# Written with the mcp package: takes a second or two to start.
BENCH = McpServer("bench", command=sys.executable, args=(str(HERE / "mcp_program.py"), "stdio"))
# Written by hand: takes none.
PLAIN = McpServer("plain", command=sys.executable, args=("-ISu", str(HERE / "plain_mcp.py")))

T = TypeVar("T")
Run = Callable[[Callable[[McpServers], Awaitable[T]]], T]


def serving(
    work: Callable[[McpServers], Awaitable[T]],
    server: McpServer = PLAIN,
    start_seconds: float = 60.0,
    call_seconds: float = 60.0,
) -> T:
    async def run() -> T:
        named = {server.name: server}
        servers = McpServers(named, ENVIRON, HERE, start_seconds, call_seconds)
        try:
            return await work(servers)
        finally:
            await servers.close()

    return asyncio.run(run())


def plain(**told: Json) -> McpServer:
    return replace(PLAIN, args=(*PLAIN.args, json.dumps(told)))


def script(code: str) -> McpServer:
    return replace(PLAIN, args=("-ISuc", code))


def calling(
    name: str, may_write: bool = False, **arguments: Json
) -> Callable[[McpServers], Awaitable[ToolOutcome]]:
    async def work(servers: McpServers) -> ToolOutcome:
        tools = await servers.offer([name], may_write)
        (tool,) = tools.values()
        return await tool.call(arguments, "k")

    return work


def listing(
    *names: str, may_write: bool = True
) -> Callable[[McpServers], Awaitable[dict[str, Tool]]]:
    return lambda servers: servers.offer(names, may_write)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def bench() -> Iterator[Run[ToolOutcome]]:
    """One server made with the mcp package, for all tests that need a real one."""
    servers = McpServers({"bench": BENCH}, ENVIRON, HERE, call_seconds=20)
    with asyncio.Runner() as runner:
        yield lambda work: runner.run(work(servers))  # type: ignore[arg-type]
        runner.run(servers.close())


def test_a_tool_of_a_real_server_is_called(bench: Run[ToolOutcome]) -> None:
    assert bench(calling("mcp__bench__add", a=2, b=3)) == ToolOutcome("5")


def test_a_real_server_describes_its_tools(bench: Run[dict[str, Tool]]) -> None:
    tools = bench(listing("mcp__bench__*"))
    spec = tools["mcp__bench__add"].spec
    assert spec.description == "Add two numbers."
    assert spec.parameters["required"] == ["a", "b"]
    assert (spec.changes_files, spec.recovery) == (False, "idempotent")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("fail", {}, "the tool's own words"),
        ("add", {"a": 1}, "Error"),
        ("add", {"a": "x", "b": []}, "Error"),
        ("add", {"a": "\ud800", "b": 2}, "lone surrogate"),
    ],
)
def test_an_error_of_a_tool_is_an_error_and_the_server_goes_on(
    bench: Run[ToolOutcome], tool: str, arguments: dict[str, Json], said: str
) -> None:
    pid = bench(calling("mcp__bench__pid"))
    told = bench(calling(f"mcp__bench__{tool}", False, **arguments))
    assert (told.verdict, said in told.text) == ("error", True), told.text
    assert bench(calling("mcp__bench__pid")) == pid


def test_a_large_answer_is_cut(bench: Run[ToolOutcome]) -> None:
    told = bench(calling("mcp__bench__flood", size=1_000_000))
    assert (told.verdict, told.size) == ("ok", 1_000_000)
    assert len(told.text) < 31_000


def test_a_call_can_be_cancelled_and_the_server_stays(bench: Run[ToolOutcome]) -> None:
    async def work(servers: McpServers) -> ToolOutcome:
        task = asyncio.ensure_future(calling("mcp__bench__sleep", seconds=0.8)(servers))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return await calling("mcp__bench__add", a=1, b=1)(servers)

    assert bench(work).text == "2"


def test_one_server_serves_all_attempts_and_is_gone_when_closed() -> None:
    async def work(servers: McpServers) -> set[str]:
        calls = [calling("mcp__plain__x")(servers) for _ in range(5)]
        return {told.text for told in await asyncio.gather(*calls)}

    (said,) = serving(work)
    assert not is_running(int(said.split()[1]))


def test_what_a_tool_does_not_say_of_itself_is_held_against_it() -> None:
    tools = serving(listing("mcp__plain__*"))
    says = {name: (tool.spec.changes_files, tool.spec.recovery) for name, tool in tools.items()}
    assert says["mcp__plain__x"] == (False, "idempotent")
    assert says["mcp__plain__note"] == (True, "in_doubt")
    # Idempotent, by its own word alone.
    assert says["mcp__plain__put"] == (True, "in_doubt")
    assert tools["mcp__plain__odd"].spec.parameters == {"type": "object"}


def test_all_tools_can_be_had_by_the_servers_name_as_far_as_its_allowlist_goes() -> None:
    everything = serving(listing("mcp__plain"))
    assert {"mcp__plain__x", "mcp__plain__with_dot_slash"} <= set(everything)
    assert serving(listing("mcp__plain__*")).keys() == everything.keys()
    allowed = serving(listing("mcp__plain"), replace(PLAIN, tools=("x", "put")))
    assert set(allowed) == {"mcp__plain__x", "mcp__plain__put"}


def test_a_tool_outside_the_allowlist_says_that_it_is() -> None:
    told = serving(calling("mcp__plain__note", True), replace(PLAIN, tools=("x",)))
    assert told.verdict == "error"
    assert "its allowlist leaves it out" in told.text


def test_a_tool_that_may_change_things_is_refused_in_a_read_only_step() -> None:
    told = serving(calling("mcp__plain__note", may_write=False))
    assert told.verdict == "refused"
    assert "mcp_servers.plain.read_only" in told.text
    assert serving(calling("mcp__plain__note", may_write=True)).verdict == "ok"
    vouched = replace(PLAIN, read_only=("note",))
    assert serving(calling("mcp__plain__note", may_write=False), vouched).verdict == "ok"
    assert serving(calling("mcp__plain__put", may_write=False), vouched).verdict == "refused"


def test_names_that_providers_do_not_take_are_made_fit() -> None:
    assert list(serving(listing("mcp__plain__with.dot/slash"))) == ["mcp__plain__with_dot_slash"]
    assert serving(calling("mcp__plain__with.dot/slash")).text.startswith("with.dot/slash ")


def test_an_unknown_server_is_named_with_those_there_are() -> None:
    assert serving(calling("mcp__gone")).text == (
        "Error: there is no MCP server 'gone' in the settings; there are: plain"
    )


def test_a_server_gets_what_its_env_names_and_no_other_secret() -> None:
    server = replace(PLAIN, env={"KEY": "<${TOKEN}>"})
    said = [serving(calling("mcp__plain__x", variable=n), server).text for n in ("KEY", "SECRET")]
    assert said == ["<t0ken>", "(not set)"]


def test_a_variable_that_is_not_set_is_named() -> None:
    told = serving(calling("mcp__plain__x"), replace(PLAIN, env={"A": "${NOT_THERE}"}))
    assert (told.verdict, "variable NOT_THERE is not set" in told.text) == ("error", True)


@pytest.mark.parametrize(
    ("result", "verdict", "said"),
    [
        ({}, "error", ""),
        ({"content": 3}, "error", ""),
        ("text", "error", "no message of the protocol"),
        ({"content": [{"type": "text", "text": t} for t in "ab"]}, "ok", "a\nb"),
        ({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}, "ok", "[image"),
        ({"content": [{"type": "resource_link", "uri": "x://y", "name": "n"}]}, "ok", "see x://y"),
        ({"content": [{"type": "resource", "resource": {"uri": "x://y", "text": "t"}}]}, "ok", "y:\nt"),
        ({"content": [], "structuredContent": {"a": [1]}}, "ok", '{"a": [1]}'),
        ({"content": []}, "ok", "returned nothing"),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, "error", "no"),
        ("!broken", "error", "a message that is not JSON"),
        ("!log", "ok", "after the log"),
        ("!die", "error", "went away during the call"),
        ("!die", "error", "dying words"),
        ("!flood", "error", "a line of more than 8,000,000 bytes"),
        ("!shout", "ok", "shouted"),
    ],
)  # fmt: skip
def test_whatever_a_server_answers_is_an_outcome(result: Json, verdict: str, said: str) -> None:
    async def work(servers: McpServers) -> tuple[ToolOutcome, ToolOutcome]:
        tool = (await servers.offer(["mcp__plain__x"], may_write=False))["mcp__plain__x"]
        told = await tool.call({}, "k")
        # It answers other calls after that: if it has to be, it is started again.
        return told, await tool.call({"variable": "TOKEN"}, "k")

    begin = time.monotonic()
    told, after = serving(work, plain(result=result))
    assert (told.verdict, said in told.text) == (verdict, True), told.text
    assert after.text == "(not set)"
    assert time.monotonic() - begin < 50


def test_a_call_without_an_answer_is_given_up() -> None:
    told = serving(calling("mcp__plain__x"), plain(result="!silent"), call_seconds=0.3)
    assert told.text == "Error: the MCP server 'plain' did not answer in 0.3 s"


@pytest.mark.parametrize(
    "tools", [{"tools": 3}, {"tools": [{"name": 3}]}, "nothing", {"tools": [], "nextCursor": "on"}]
)
def test_a_listing_that_makes_no_sense_is_an_error_and_no_hang(tools: Json) -> None:
    begin = time.monotonic()
    assert serving(calling("mcp__plain__x"), plain(tools=tools)).verdict == "error"
    assert time.monotonic() - begin < 50


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (replace(PLAIN, command="/no/such/program"), "No such file or directory"),
        (replace(PLAIN, cwd="no/such/folder"), "No such file or directory"),
        (script("import sys; sys.exit('no key given')"), "no key given"),
        (script("print('hello')"), "did not start"),
        (script("import sys\nwhile 1: sys.stdout.write('x' * 65536)"), "a line of more than"),
        (script("while 1: print('junk')"), "messages that were not requested"),
        (script('while 1: print(\'{"jsonrpc":"2.0","method":"x"}\')'), "were not requested"),
        (script("print('{\"a\":' * 20000)"), "nested too deep"),
        (McpServer("plain", url="http://127.0.0.1:9/mcp"), "did not start"),
    ],
)
def test_a_server_that_does_not_start_is_an_error_with_its_reason(
    server: McpServer, said: str
) -> None:
    begin = time.monotonic()
    told = serving(calling("mcp__plain__x"), server)
    assert (told.verdict, said in told.text) == ("error", True), told.text
    assert len(told.text) < 8_000
    assert time.monotonic() - begin < 50


def test_a_server_that_hangs_at_its_start_is_given_up_and_killed(tmp_path: Path) -> None:
    code = (
        "import os,signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(tmp_path / 'pid')!r},'w').write(str(os.getpid())); time.sleep(60)"
    )
    begin = time.monotonic()
    told = serving(calling("mcp__plain__x"), script(code), start_seconds=1.0)
    assert "it was not ready after 1 s" in told.text
    assert time.monotonic() - begin < 50
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_start_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        f"import os,time; open({str(tmp_path / 'pid')!r},'w').write(str(os.getpid()))\n"
        "time.sleep(60)"
    )

    async def work(servers: McpServers) -> None:
        task = asyncio.ensure_future(calling("mcp__plain__x")(servers))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        # On a busy machine a killed process is there for a moment more; left alone, for a minute.
        async with asyncio.timeout(30):
            while is_running(int((tmp_path / "pid").read_text())):
                await asyncio.sleep(0.02)

    serving(work, script(code))


@asynccontextmanager
async def over_http() -> AsyncIterator[tuple[McpServer, asyncio.subprocess.Process]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "mcp_program.py"), "http", str(port),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(400):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        yield McpServer("far", url=f"http://127.0.0.1:{port}/mcp"), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_a_server_over_http_is_used_like_any_other_and_may_go_away() -> None:
    async def run() -> None:
        async with over_http() as (server, process):
            servers = McpServers({"far": server}, ENVIRON, HERE)
            tools = await servers.offer(["mcp__far__add"], may_write=False)
            assert tools["mcp__far__add"].spec.needs_network
            add = calling("mcp__far__add", a=2, b=3)
            assert (await add(servers)).text == "5"
            failed = await calling("mcp__far__fail")(servers)
            assert (failed.verdict, "the tool's own words" in failed.text) == ("error", True)
            flood = await calling("mcp__far__flood", size=20_000_000)(servers)
            assert flood.verdict == "error"
            assert len(flood.text) < 5_000
            assert (await add(servers)).text == "5"
            process.kill()
            await process.wait()
            begin = time.monotonic()
            told = await tools["mcp__far__add"].call({"a": 2, "b": 3}, "k")
            assert told.verdict == "error"
            assert time.monotonic() - begin < 50
            await servers.close()

    asyncio.run(run())
