"""One thing that did not happen, on every surface: a writer says that it has written, and wrote nothing.

In: a folder of the writer's own. Out: all that the surface says of it, and to whom.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stretto import Stretto
from support.cli import stretto, succeeded, write
from support.mcp_client import call, connected_here
from support.served import Served, served

SCRIBE = (
    "---\nname: scribe\ndescription: Writes files.\ntools: Write\n---\nWrite what you are told.\n"
)
RECIPE = "name: note\ninputs: [{name: evidence, default: x}]\nsteps: [{id: a, subagent: scribe, prompt: go}]\n"
OUTER = "name: outer\nsteps: [{id: o, workflow: note}]\n"
SAYS = "it is a writer, but"
MODEL = ("--model", "scripted:script.yaml")
TASK = {"agent": "scribe", "prompt": "go", "description": "note"}


def prepare(folder: Path) -> Path:
    write(folder, "home/agents/scribe.md", SCRIBE)
    write(folder, "workflows/note.yaml", RECIPE)
    write(folder, "workflows/outer.yaml", OUTER)
    write(folder, "script.yaml", "default: I have written it.\n")
    return folder


def _lead(folder: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    """A turn in which the lead agent calls that tool."""
    turn = {"calls": [{"tool": tool, "arguments": arguments}], "reply": "All is written."}
    script = {"default": "I have written it.", "replies": {"turn-1": turn}}
    write(folder, "script.yaml", json.dumps(script))
    return succeeded(stretto(folder, "chat", "--permission", "auto", "-p", "Go", "--json", *MODEL))


def _told_to_lead(tool: str, **arguments: Any) -> Callable[[Path], str]:
    async def results(folder: Path, chat: str) -> str:
        async with Stretto(folder, home=folder / "home") as opened:
            [turn] = await opened.chat(chat).turns()
        return "".join(each.result or "" for each in turn.calls)

    return lambda folder: asyncio.run(results(folder, _lead(folder, tool, **arguments)["chat"]))


def _told_to_person(tool: str, **arguments: Any) -> Callable[[Path], str]:
    def ask(folder: Path) -> str:
        return "\n".join(_lead(folder, tool, **arguments)["turn"]["warnings"])

    return ask


def _command(*words: str, stdin: str = "") -> Callable[[Path], str]:
    def ask(folder: Path) -> str:
        said = stretto(folder, *words, *MODEL, stdin=stdin)
        return said.out + said.err

    return ask


def _over_http(ask: Callable[[Served], str]) -> Callable[[Path], str]:
    def asked(folder: Path) -> str:
        model = f"scripted:{folder / 'script.yaml'}"
        with served(folder, env={"STRETTO_MODEL": model}) as server:
            return ask(server)

    return asked


def _posted(path: str, **body: Any) -> Callable[[Path], str]:
    return _over_http(lambda server: server.client().post(path, json=body).text)


def _by_mcp(tool: str, **arguments: Any) -> Callable[[Path], str]:
    async def main(folder: Path) -> str:
        async with connected_here(folder) as client:
            return json.dumps(await call(client, tool, **arguments))

    return lambda folder: asyncio.run(main(folder))


def _goal(*words: str) -> Callable[[Path], str]:
    def ask(folder: Path) -> str:
        goal = ("Write it", "--verify", "command:test -f made || ! touch made")
        limits = ("--max-iterations", "3", "--workflow", "note")
        stretto(folder, "goal", "set", *goal, *limits, *MODEL)
        assert stretto(folder, "goal", "show", "--json").json["goal"]["status"] == "achieved"
        return stretto(folder, "goal", "show", *words).out

    return ask


BATCH = json.dumps([TASK])
SURFACES: dict[str, Callable[[Path], str]] = {
    "run": _command("run", "note"),
    "run --json": _command("run", "note", "--json"),
    "a workflow step": _command("run", "outer"),
    "a workflow step, as JSON": _command("run", "outer", "--json"),
    "task": _command("task", "scribe", "go"),
    "task --json": _command("task", "scribe", "go", "--json"),
    "batch": _command("batch", "-", stdin=BATCH),
    "batch --json": _command("batch", "-", "--json", stdin=BATCH),
    "chat, /note": _command("chat", "-p", "/note"),
    "chat, /note, as JSON": _command("chat", "-p", "/note", "--json"),
    "the lead agent's task": _told_to_lead("task", **TASK),
    "the lead agent's task_batch": _told_to_lead("task_batch", tasks=[TASK]),
    "the lead agent's run_workflow": _told_to_lead("run_workflow", name="note"),
    "who chats, of a task": _told_to_person("task", **TASK),
    "who chats, of a batch": _told_to_person("task_batch", tasks=[TASK]),
    "who chats, of a workflow": _told_to_person("run_workflow", name="note"),
    "HTTP, a run": _posted("/api/workflows/note/run", inputs={}),
    "HTTP, a task": _posted("/api/tasks", agent="scribe", prompt="go"),
    "HTTP, a batch": _posted("/api/batches", tasks=[TASK]),
    "MCP, a run": _by_mcp("run_workflow", name="note"),
    "MCP, a task": _by_mcp("task", agent="scribe", prompt="go"),
    "MCP, a batch": _by_mcp("task_batch", tasks=[TASK]),
    "goal show": _goal(),
    "goal show --json": _goal("--json"),
}
