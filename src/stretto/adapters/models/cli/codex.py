"""Codex: `cli:codex`, `cli:codex:gpt-5.1-codex`. Read from version 0.166.

Its own sandbox holds it: `read-only` for a reader, `workspace-write` (no network) for a writer, and
what the sandbox forbids is never asked for. It has a shell and no list of tools. MCP servers of the
user's settings run outside that sandbox, so they are switched off.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from stretto.adapters.models.cli.cli_spec import (
    Cli,
    CliLaunch,
    LaunchRequest,
    at,
    count_at,
    list_at,
    object_at,
    size_of,
    text_at,
)
from stretto.adapters.models.cli.transcript import (
    AgentEvent,
    AgentFailed,
    CallEnded,
    CallStarted,
    Finished,
    TextDelta,
    UsageTotal,
    failure,
)
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

_LOGIN = "run `codex login`, or set OPENAI_API_KEY"
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
# What each kind of item does, and which of its fields say so.
_CALLS = {
    "command_execution": ("shell", ("command",)),
    "file_change": ("apply_patch", ("changes",)),
    "mcp_tool_call": ("mcp", ("server", "tool", "arguments")),
    "web_search": ("web_search", ("query",)),
}


def _launch(order: LaunchRequest) -> CliLaunch:
    request = order.request
    words = ["exec", "--json", "--skip-git-repo-check", "--ephemeral", "--color", "never"]
    words += ["--sandbox", "workspace-write" if request.may_write else "read-only"]
    words += ["-c", 'approval_policy="never"', *_without_servers(order.environ)]
    if not order.tools & {"WebSearch", "WebFetch"}:
        words += ["-c", 'web_search="disabled"']
    if order.model:
        words += ["--model", order.model]
    files = {}
    if request.schema is not None and _is_strict(dict(request.schema)):
        files["schema.json"] = json.dumps(request.schema)
        words += ["--output-schema", str(order.private / "schema.json")]
    return CliLaunch((*words, "-"), order.whole_prompt, files=files)


def _without_servers(environ: Mapping[str, str]) -> list[str]:
    """An empty table in an option is merged into the user's and removes nothing."""
    home = Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/")) / ".codex")
    try:
        settings: dict[str, Json] = tomllib.loads((home / "config.toml").read_text())
    except (OSError, ValueError):
        return []
    names = list(object_at(settings, "mcp_servers"))
    if all(map(_PLAIN.fullmatch, names)):
        return [word for name in names for word in ("-c", f"mcp_servers.{name}.enabled=false")]
    return ["--ignore-user-config"]  # a name that an option cannot spell


def _is_strict(schema: Json) -> bool:
    """The only kind that its API takes: every object closed, every property required."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        properties = object_at(schema, "properties")
        is_closed = schema.get("additionalProperties") is False
        if not is_closed or {*properties} != {str(name) for name in list_at(schema, "required")}:
            return False
    return all(_is_strict(each) for each in schema.values())


def _read(line: Mapping[str, Json]) -> Iterator[AgentEvent]:
    event = dict(line)
    match text_at(event, "type"):
        case "item.started":
            yield from _read_began(object_at(event, "item"))
        case "item.completed":
            yield from _read_ended(object_at(event, "item"))
        case "turn.completed":
            usage = object_at(event, "usage")
            tokens_in, tokens_out = (
                count_at(usage, "input_tokens"),
                count_at(usage, "output_tokens"),
            )
            yield UsageTotal(Usage(tokens_in, tokens_out))
            yield Finished()
        case "turn.failed":
            yield AgentFailed(failure("codex", text_at(event, "error", "message"), _LOGIN))


def _read_began(item: dict[str, Json]) -> Iterator[AgentEvent]:
    if (call := _CALLS.get(text_at(item, "type"))) is not None:
        tool, fields = call
        shown = {name: item[name] for name in fields if name in item}
        yield CallStarted(text_at(item, "id"), tool, shown)


def _read_ended(item: dict[str, Json]) -> Iterator[AgentEvent]:
    kind = text_at(item, "type")
    if kind == "agent_message":
        yield TextDelta(text_at(item, "text"))
    elif kind in _CALLS:
        yield from _read_began(item)  # some kinds have no beginning; a second one changes nothing
        is_ok = text_at(item, "status") not in ("failed", "declined")
        output = at(item, "aggregated_output") or at(item, "result")
        said = (
            "" if is_ok else text_at(item, "aggregated_output") or text_at(item, "error", "message")
        )
        yield CallEnded(text_at(item, "id"), is_ok, size_of(output), said)


CLI = Cli(
    name="codex",
    install="npm install -g @openai/codex",
    login=_LOGIN,
    passes=("OPENAI_*", "CODEX_*"),
    launch=_launch,
    read=_read,
)
