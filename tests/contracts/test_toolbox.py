"""What every tool and every toolbox must do, whatever the tools are made of."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import jsonschema
import pytest

from adapters.tools.test_mcp_servers import BENCH, ENVIRON, over_http
from adapters.tools.test_toolbox import request
from stretto.adapters.tools.functions import tool
from stretto.adapters.tools.outcomes import MOST_CHARACTERS
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.ports.tool import Tool, Toolbox, ToolOutcome
from stretto.vocabulary.json_value import Json

PORTS = (Tool, Toolbox)

T = TypeVar("T")
Call = tuple[str, dict[str, Json]]  # a tool, and what it is given
_LINES = 1_000


@dataclass(frozen=True)
class Kind:
    """One kind of tool, with calls that end in each of the ways in which a call can end."""

    works: Call
    says: str
    fails: Call
    is_long: Call
    is_slow: Call
    changes_files: str


@tool(effect="idempotent", read_only=True)
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@tool(effect="idempotent", read_only=True)
def fail() -> str:
    """Fail."""
    raise RuntimeError("the function's own words")


@tool(effect="idempotent", read_only=True)
def flood(size: int) -> str:
    """Return a long text."""
    return "x" * size


@tool(effect="idempotent", read_only=True)
async def sleep(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


@tool
def note(text: str) -> str:
    """Keep a note."""
    return text


FUNCTIONS = {each.name: each for each in (add, fail, flood, sleep, note)}


def remote(prefix: str) -> Kind:
    return Kind(
        works=(f"{prefix}add", {"a": 2, "b": 3}),
        says="5",
        fails=(f"{prefix}fail", {}),
        is_long=(f"{prefix}flood", {"size": 100_000}),
        is_slow=(f"{prefix}sleep", {"seconds": 1.0}),
        changes_files=f"{prefix}note",
    )


STANDARD = Kind(
    works=("Read", {"file_path": "a.txt"}),
    says="hello",
    fails=("Read", {"file_path": "missing.txt"}),
    is_long=("Grep", {"pattern": "x", "output_mode": "content", "head_limit": _LINES}),
    is_slow=("WebFetch", {"url": "http://localhost:PORT/"}),
    changes_files="Write",
)
KINDS = {
    "standard tools": STANDARD,
    "MCP over stdio": remote("mcp__bench__"),
    "MCP over HTTP": remote("mcp__far__"),
    "Python functions": remote(""),
}


@dataclass
class Bench:
    """One toolbox with tools of every kind, and a loop that its servers live on."""

    toolbox: Toolbox
    workspace: Path
    silent_port: int
    runner: asyncio.Runner
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)

    def using(
        self,
        listed: tuple[str, ...],
        work: Callable[[Mapping[str, Tool]], Awaitable[T]],
        may_write: bool = False,
    ) -> T:
        async def run() -> T:
            asked = request(listed, self.workspace, may_write, ("**",) if may_write else ())
            async with asyncio.timeout(60), self.toolbox.open(asked) as tools:
                return await work(tools)

        return self.runner.run(run())

    def call(self, call: Call, may_write: bool = False) -> ToolOutcome:
        name, arguments = self.filled(call)
        return self.using((name,), lambda tools: tools[name].call(arguments, "k"), may_write)

    def filled(self, call: Call) -> Call:
        text = json.dumps(call[1]).replace("PORT", str(self.silent_port))
        return call[0], json.loads(text)


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client goes away
        writer.close()

    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def open_bench(workspace: Path, runner: asyncio.Runner) -> Bench:
    closing = AsyncExitStack()
    far, _ = await closing.enter_async_context(over_http())
    port = await closing.enter_async_context(silent_server())
    settings = ToolSettings(
        workspace,
        mcp_servers={"bench": BENCH, "far": far},
        allow_private=frozenset({f"localhost:{port}"}),
        mcp_start_seconds=60.0,
    )
    toolbox = StandardToolbox(settings, ENVIRON, functions=FUNCTIONS)
    closing.push_async_callback(toolbox.close)
    return Bench(toolbox, workspace, port, runner, closing)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "a.txt").write_text("hello\n")
    (workspace / "long.txt").write_text(("x" * 400 + "\n") * _LINES)
    with asyncio.Runner() as runner:
        made = runner.run(open_bench(workspace, runner))
        yield made
        runner.run(made.closing.aclose())


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def all_tools(kind: Kind) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            (kind.works[0], kind.fails[0], kind.is_long[0], kind.is_slow[0], kind.changes_files)
        )
    )


def test_an_attempt_has_the_tools_that_its_agent_lists_and_no_others(
    bench: Bench, kind: Kind
) -> None:
    async def names(tools: Mapping[str, Tool]) -> dict[str, str]:
        return {name: each.spec.name for name, each in tools.items()}

    one = kind.works[0]
    assert bench.using((one, "task", "Agent", "nothing"), names) == {one: one}
    listed = all_tools(kind)
    assert set(bench.using(listed, names, may_write=True)) == set(listed)


def test_a_tool_describes_itself_for_every_provider(bench: Bench, kind: Kind) -> None:
    async def check(tools: Mapping[str, Tool]) -> None:
        for each in tools.values():
            spec = each.spec
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", spec.name)
            assert spec.description
            assert spec.fault == ""
            assert spec.parameters["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(dict(spec.parameters))
            json.dumps(dict(spec.parameters))
            assert spec.recovery in ("idempotent", "keyed", "in_doubt")

    bench.using(all_tools(kind), check, may_write=True)


def test_a_call_that_works_gives_its_result(bench: Bench, kind: Kind) -> None:
    outcome = bench.call(kind.works)
    assert (outcome.verdict, kind.says in outcome.text) == ("ok", True), outcome.text
    assert outcome.size == len(outcome.text.encode())


def test_a_call_that_fails_is_an_outcome_with_its_reason(bench: Bench, kind: Kind) -> None:
    outcome = bench.call(kind.fails)
    assert outcome.verdict == "error"
    assert outcome.text.strip()
    assert "Traceback" not in outcome.text


@pytest.mark.parametrize(
    "wrong", [{"nothing": 1}, {"a": None, "file_path": [1]}, {"a": {"b": [{}]}}, {"\ud800": "\ud800"}]
)  # fmt: skip
def test_wrong_arguments_are_an_outcome_and_the_tool_goes_on(
    bench: Bench, kind: Kind, wrong: dict[str, Json]
) -> None:
    outcome = bench.call((kind.works[0], wrong))
    assert outcome.verdict == "error"
    outcome.text.encode()
    assert bench.call(kind.works).verdict == "ok"


def test_a_long_result_is_cut_and_its_size_is_told(bench: Bench, kind: Kind) -> None:
    outcome = bench.call(kind.is_long)
    assert outcome.verdict == "ok"
    assert len(outcome.text) <= MOST_CHARACTERS + 100
    assert "characters left out" in outcome.text
    assert outcome.size >= 100_000


def test_a_call_can_be_cancelled_and_the_tool_can_be_used_again(bench: Bench, kind: Kind) -> None:
    name, arguments = bench.filled(kind.is_slow)

    async def cancel(tools: Mapping[str, Tool]) -> None:
        running = asyncio.create_task(tools[name].call(arguments, "k"))
        done, _ = await asyncio.wait([running], timeout=0.2)
        assert not done
        running.cancel()
        await asyncio.wait([running], timeout=10)
        assert running.cancelled()

    bench.using((name,), cancel)
    assert bench.call(kind.works).verdict == "ok"


def test_calls_may_run_side_by_side(bench: Bench, kind: Kind) -> None:
    name, arguments = kind.works

    async def several(tools: Mapping[str, Tool]) -> list[ToolOutcome]:
        return await asyncio.gather(*(tools[name].call(arguments, f"k{n}") for n in range(8)))

    assert {each.verdict for each in bench.using((name,), several)} == {"ok"}


def test_a_step_that_does_not_write_cannot_change_files_by_a_tool(bench: Bench, kind: Kind) -> None:
    name = kind.changes_files

    async def spec(tools: Mapping[str, Tool]) -> bool:
        return tools[name].spec.changes_files

    async def usable(tools: Mapping[str, Tool]) -> bool:
        return name in tools and not tools[name].spec.fault

    assert bench.using((name,), spec, may_write=True)
    assert not bench.using((name,), usable, may_write=False)


def test_a_filter_that_cannot_be_used_leaves_a_tool_that_says_why(bench: Bench, kind: Kind) -> None:
    name = kind.works[0]
    arguments = kind.works[1]
    outcome = bench.using((f"{name}([)",), lambda tools: tools[name].call(arguments, "k"))
    assert outcome.verdict == "refused"
    assert f"the filter of '{name}([)' cannot be used" in outcome.text
