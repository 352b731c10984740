"""`stretto mcp` as the official client of the protocol meets it, on stdio."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from stretto import Run
from stretto.assembly.project import Project
from stretto.assembly.surface import Surface
from stretto.server.mcp_calls import ClientCall, McpCalls, McpOptions
from support.cli import environment, stretto, write
from support.mcp_client import (
    MODES,
    STUCK,
    call,
    connected,
    connected_here,
    refused,
    until,
    write_project,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path)


async def _tools(client: Client) -> dict[str, Any]:
    return {tool.name: tool for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("mode", MODES)
def test_a_client_lists_runs_saves_and_reads(folder: Path, mode: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def main() -> None:
        async with connected(folder, mode=mode) as client:
            await _check_tools(client)
            listed = await call(client, "list_workflows")
            found = {each["name"]: each for each in listed["workflows"]}
            assert found["brief"]["inputs"]["required"] == ["topic"]
            assert (found["broken"]["problems"], found["broken"]["tool"]) == (1, None)
            planned = await call(
                client, "run_workflow", name="brief", inputs={"topic": "tea"}, dry_run=True
            )
            assert planned["waves"] == [["look"], ["write"]]
            arguments = {"name": "brief", "inputs": {"topic": "tea"}}
            result = await client.call_tool("run_workflow", arguments, progress_callback=hear)
            answer = result.structured_content
            assert (answer["ok"], answer["status"], answer["output"]) == (True, "complete", "ok")
            whole = await call(client, "get_run", run_id=answer["run_id"])
            assert whole["steps"]["write"]["output"] == "ok"
            assert whole["trigger"].startswith("mcp")
            assert (await call(client, "brief", topic="tea", tone="formal"))["output"] == "ok"
            assert (await call(client, "task", agent="writer", prompt="Hello"))["output"] == "ok"
            tasks = [{"agent": "writer", "prompt": "one"}, {"agent": "writer", "prompt": "two"}]
            batch = await call(client, "task_batch", tasks=tasks)
            assert [each["output"] for each in batch["results"]] == ["ok", "ok"]
            recipe = {
                "name": "mine",
                "steps": [{"id": "a", "subagent": "writer", "prompt": "of its own"}],
            }
            saved = await call(client, "save_workflow", recipe=recipe)
            assert saved["name"] == "mine"
            assert "mine" in await _tools(client)

    asyncio.run(main())
    assert told
    assert [each[0] for each in told] == sorted({each[0] for each in told})
    assert told[-1][:2] == (2.0, 2.0)
    # Not by the user, and not without a trace.
    assert "mine" in stretto(folder, "list").out
    assert '"trigger": "mcp' in stretto(folder, "runs", "--json").out


async def _check_tools(client: Client) -> None:
    tools = await _tools(client)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in tools)
    # A workflow whose name is taken by a tool of ours.
    assert {"task", "workflow-task", "brief", "gated"} <= set(tools)
    assert "broken" not in tools
    schema = tools["brief"].input_schema
    assert schema["required"] == ["topic"]
    assert schema["properties"]["tone"] == {
        "type": "string",
        "enum": ["plain", "formal"],
        "default": "plain",
    }
    assert schema["properties"]["count"] == {"type": "number", "default": 3}
    assert schema["properties"]["extra"] == {}
    assert tools["list_workflows"].annotations.read_only_hint is True
    assert tools["run_workflow"].annotations.read_only_hint is False
    prompts = {each.name: each for each in (await client.list_prompts()).prompts}
    assert [each.required for each in prompts["brief"].arguments] == [True, False, False, False]
    prompt = await client.get_prompt("brief", {"topic": "tea"})
    assert '{"name": "brief", "inputs": {"topic": "tea"}}' in prompt.messages[0].content.text
    with pytest.raises(Exception, match="missing: topic"):
        await client.get_prompt("brief", {})


def test_errors_have_the_one_shape_and_say_what_to_do(folder: Path) -> None:
    async def main() -> None:
        async with connected_here(folder) as client:
            error = await refused(client, "run_workflow", name="brif", inputs={})
            assert (error["kind"], "brief" in error["details"]["hint"]) == ("not_found", True)
            assert (await refused(client, "brief"))["kind"] == "invalid_inputs"
            assert (await refused(client, "brief", topic="x", tone="rude"))[
                "kind"
            ] == "invalid_inputs"
            assert (await refused(client, "brief", topic="x", other=1))["kind"] == "invalid_inputs"
            assert (await refused(client, "run_workflow"))["kind"] == "usage"
            assert (await refused(client, "run_workflow", name=7))["kind"] == "usage"
            assert (await refused(client, "get_run", run_id="nope"))["kind"] == "not_found"
            assert (await refused(client, "nothing"))["kind"] == "not_found"
            assert (await refused(client, "task", agent="nobody", prompt="x"))[
                "kind"
            ] == "not_found"
            assert (await refused(client, "task_batch", tasks=[]))["kind"] == "usage"
            # Neither a path nor a text is the name of a saved workflow.
            path = str(folder / "workflows" / "brief.yaml")
            assert (await refused(client, "run_workflow", name=path))["kind"] == "not_found"
            bad = "name: x\nsteps: [{id: a, subagent: nobody, prompt: x}]"
            error = await refused(client, "save_workflow", recipe=bad)
            assert error["kind"] == "invalid_recipe"
            assert error["details"]["problems"]
            # What a person has written is not replaced.
            again = "name: brief\nsteps: [{id: a, subagent: writer, prompt: x}]"
            assert (await refused(client, "save_workflow", recipe=again))["kind"] == "exists"
            write(
                folder,
                "workflows/failing.yaml",
                "name: failing\nsteps: [{id: b, subagent: writer, prompt: x}]",
            )
            write(folder, "script.yaml", "replies: {b: {fail: no}}")
            error = await refused(client, "failing")
            assert error["kind"] == "run_failed"
            assert error["details"]["steps"] == {"b": "no"}

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_request_cancels_its_run(folder: Path, mode: str) -> None:
    write(folder, "script.yaml", STUCK)

    async def main() -> None:
        async with connected(folder, mode=mode) as client:
            begun = asyncio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                begun.set()

            work = asyncio.create_task(client.call_tool("slow", {}, progress_callback=hear))
            await asyncio.wait_for(begun.wait(), 120)
            work.cancel()
            await asyncio.wait([work])
            await until(lambda: _is_status(folder, "cancelled"))

    asyncio.run(main())


async def _has_status(run: Run, status: str) -> bool:
    return await run.status() == status


async def _is_status(folder: Path, status: str) -> bool:
    said = await asyncio.to_thread(stretto, folder, "runs", "--json")
    return [each["status"] for each in said.json["runs"]] == [status]


DECIDED = """\
name: decided
steps:
  - {id: g, subagent: writer, gate: human, on_failure: skip, prompt: x}
  - {id: after, subagent: writer, depends_on: [g], prompt: y}
"""


@pytest.mark.parametrize(
    ("decision", "slow"), [("approve", "g"), ("reject", "after")], ids=["approve", "reject"]
)
def test_a_cancelled_decision_leaves_the_run_that_another_request_started(
    tmp_path: Path, decision: str, slow: str
) -> None:
    script = f"default: ok\nreplies: {{{slow}: {{reply: late, delay: 10m}}}}\n"
    folder = write_project(tmp_path, script)
    write(folder, "workflows/decided.yaml", DECIDED)
    options = McpOptions(model=f"scripted:{folder / 'script.yaml'}")

    async def main() -> None:
        async with Surface(lambda place: Project(place or folder, environment(folder))) as stretto:
            calls = McpCalls(stretto, options)
            run = str((await calls.answer(ClientCall("decided", {})))["run_id"])
            deciding = ClientCall(decision, {"run_id": run, "step": "g"})
            work = asyncio.create_task(calls.answer(deciding))
            await until(lambda: _has_status(stretto.open(run), "running"))
            await until(stretto.open(run).is_driven)
            await calls.cancel(deciding)
            work.cancel()
            assert await stretto.open(run).status() == "running"

    asyncio.run(main())


def test_a_client_that_goes_away_leaves_its_run_to_be_resumed(folder: Path) -> None:
    write(folder, "script.yaml", STUCK)

    async def main() -> None:
        async with connected(folder) as client:
            answer = await call(client, "run_workflow", name="slow", wait=False)
            assert answer["status"] == "running"

    asyncio.run(main())
    runs = stretto(folder, "runs", "--json").json["runs"]
    assert [each["status"] for each in runs] == ["interrupted"]


def test_approvals_are_listed_given_and_given_once(folder: Path) -> None:
    async def main() -> None:
        async with connected_here(folder) as client:
            waiting = await call(client, "gated")
            assert waiting["status"] == "waiting"
            run = waiting["run_id"]
            listed = (await call(client, "list_approvals"))["approvals"]
            assert [(each["run_id"], each["step"]) for each in listed] == [(run, "g")]
            assert listed[0]["parts"][0]["prompt"] == "ok"
            error = await refused(client, "approve", run_id=run, step="g", key="another")
            assert error["kind"] == "usage"
            done = await call(client, "approve", run_id=run, step="g", key=listed[0]["key"])
            assert done["status"] == "complete"
            again = await refused(client, "approve", run_id=run, step="g")
            assert again["kind"] == "already_decided"
            second = (await call(client, "gated"))["run_id"]
            error = await refused(client, "reject", run_id=second, step="g", key="another")
            assert error["kind"] == "usage"
            key = (await call(client, "list_approvals", run_id=second))["approvals"][0]["key"]
            given = {"run_id": second, "step": "g", "reason": "too broad", "key": key}
            said = await call(client, "reject", **given)
            assert (said["ok"], said["status"], said["steps"]["g"]) == (False, "partial", "failed")
            events = await asyncio.to_thread(stretto, folder, "events", run)
            assert re.search(r'"approved".* by mcp', events.out)

    asyncio.run(main())


def test_the_permission_counts_for_all_that_starts_work(folder: Path) -> None:
    async def read_only() -> None:
        async with connected_here(folder, McpOptions("read_only")) as client:
            for tool, arguments in (
                ("run_workflow", {"name": "brief", "inputs": {"topic": "x"}}),
                ("brief", {"topic": "x"}),
                ("task", {"agent": "writer", "prompt": "x"}),
                ("task_batch", {"tasks": [{"agent": "writer", "prompt": "x"}]}),
                (
                    "save_workflow",
                    {"recipe": "name: y\nsteps: [{id: a, subagent: writer, prompt: x}]"},
                ),
            ):
                assert (await refused(client, tool, **arguments))["kind"] == "permission_denied"
            planned = {"name": "brief", "inputs": {"topic": "x"}, "dry_run": True}
            assert (await call(client, "run_workflow", **planned))["ok"]

    async def ask() -> None:
        async with connected_here(folder, McpOptions("ask")) as client:
            waiting = await call(client, "brief", topic="tea")
            assert (waiting["status"], waiting["steps"]["look"]) == ("waiting", "awaiting approval")
            run = waiting["run_id"]
            assert waiting["usage"]["model_calls"] == 0
            done = await call(client, "approve", run_id=run, step="look")
            assert done["status"] == "complete"
        async with connected_here(folder, McpOptions(has_approvals=False)) as client:
            assert not {"approve", "reject"} & set(await _tools(client))

    asyncio.run(read_only())
    asyncio.run(ask())


TIDY = "\ufeffname: tidy\nsteps:\n  - {id: look, subagent: researcher, prompt: ok}\n  - {id: clean, run: echo cleaned, depends_on: [look]}\n"


def test_a_command_that_a_client_saved_is_asked_for_until_a_person_has_read_it(
    folder: Path,
) -> None:
    write(folder, "workflows/around.yaml", "name: around\nsteps: [{id: all, workflow: tidy}]\n")

    async def of_the_client() -> str:
        async with connected_here(folder) as client:
            assert (await call(client, "save_workflow", recipe=TIDY))["name"] == "tidy"
            for name, step in (("around", "all/clean"), ("tidy", "clean")):
                waiting = await call(client, "run_workflow", name=name)
                assert (waiting["status"], waiting["steps"][step]) == (
                    "waiting", "awaiting approval",
                )  # fmt: skip
                gate = waiting["approvals"][0]
                assert "echo cleaned" in json.dumps(gate)
                asked = {"run_id": waiting["run_id"], "step": step, "key": gate["key"]}
                error = await refused(client, "approve", **asked)
                assert (error["kind"], "no person has read it" in error["message"]) == (
                    "permission_denied", True,
                )  # fmt: skip
            return str(waiting["run_id"])

    run = asyncio.run(of_the_client())
    said = stretto(folder, "run", "tidy", "--model", "scripted:script.yaml")
    assert (said.code, "no person has read it" in said.err) == (3, True)
    assert stretto(folder, "run", "around", "--model", "scripted:script.yaml").code == 3
    assert stretto(folder, "approve", run, "clean", "--model", "scripted:script.yaml").code == 0
    assert stretto(folder, "restore", "tidy", "--version", "1").code == 0
    for name in ("tidy", "around"):
        said = stretto(folder, "run", name, "--model", "scripted:script.yaml")
        assert (said.code, "cleaned" in said.out) == (0, True)


def test_a_change_of_the_saved_workflows_is_told(folder: Path) -> None:
    told: list[str] = []

    async def hear(message: Any) -> None:
        told.append(getattr(message, "method", ""))

    async def main() -> None:
        async with connected_here(folder, message_handler=hear) as client:
            await client.list_tools()
            write(
                folder,
                "workflows/new.yaml",
                "name: new\nsteps: [{id: a, subagent: writer, prompt: x}]",
            )

            async def is_told() -> bool:
                return "notifications/tools/list_changed" in told

            await until(is_told)
            assert "new" in await _tools(client)
        write(folder, "stretto.yaml", "workflows: {enabled: false}\n")
        async with connected_here(folder) as client:
            assert not {"run_workflow", "brief", "list_workflows"} & set(await _tools(client))

    asyncio.run(main())


def test_stdout_carries_the_protocol_and_nothing_else(folder: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    }
    sent = ["not JSON", "", "[" * 100_000, '{"jsonrpc": "2.0", "id": 5}', json.dumps(hello)]
    done = subprocess.run(
        [sys.executable, "-m", "stretto", "mcp"],
        input="\n".join(sent) + "\n",
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(each["jsonrpc"] == "2.0" for each in said)
    assert [each["result"]["serverInfo"]["name"] for each in said if each.get("id") == 1] == [
        "stretto"
    ]
    assert "Traceback" not in done.stderr


def test_a_signal_ends_the_server_while_its_client_is_silent(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "stretto", "mcp"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        child.stdin.write(ping)
        child.stdin.flush()
        assert child.stdout.readline()  # it serves
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 130
