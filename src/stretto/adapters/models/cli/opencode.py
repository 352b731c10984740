"""opencode: `cli:opencode`, `cli:opencode/anthropic/claude-sonnet-4`. Read from version 1.18.

It is given an agent of ours whose permissions deny everything but what the step's agent lists. What
a person would have to allow is denied, because no person is there. The workspace's own settings do not count
unless it is trusted.
"""

import json
from collections.abc import Iterator, Mapping

from stretto.adapters.models.cli.cli_spec import (
    Cli,
    CliLaunch,
    LaunchRequest,
    at,
    count_at,
    dropped_tools,
    number_at,
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
    LimitReached,
    TextDelta,
    UsageDelta,
    failure,
)
from stretto.ports.runner import Failure
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

_LOGIN = "run `opencode auth login`, or set the key of its provider"
_AGENT = "stretto"
_TOOLS = {
    "Read": "read",
    "Glob": "glob",
    "Grep": "grep",
    "Write": "edit",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Bash": "bash",
    "WebFetch": "webfetch",
    "WebSearch": "websearch",
}


def _launch(order: LaunchRequest) -> CliLaunch:
    # Its own filters for commands are not ours: then rather no shell at all.
    given = {k: v for k, v in _TOOLS.items() if k != "Bash" or not order.bash_filters}
    permission: dict[str, Json] = {"*": "deny"}
    permission |= {given[name]: "allow" for name in sorted(order.tools & given.keys())}
    agent: dict[str, Json] = {"mode": "primary", "description": "A step", "permission": permission}
    if order.request.max_turns is not None:
        # It asks the model for an answer then. Should the model go on, we stop it.
        agent["steps"] = order.request.max_turns
    settings: dict[str, Json] = {"agent": {_AGENT: agent}, "default_agent": _AGENT}
    if order.model and order.speaks_acp:
        settings["model"] = order.model
    words = ["acp"] if order.speaks_acp else ["run", "--format", "json", "--agent", _AGENT]
    if order.model and not order.speaks_acp:
        words += ["--model", order.model]
    variables = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    if not order.trusts_project:
        variables["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    return CliLaunch(
        tuple(words), order.whole_prompt, variables, warnings=dropped_tools(order, given)
    )


def _read(line: Mapping[str, Json]) -> Iterator[AgentEvent]:
    event = dict(line)
    part = object_at(event, "part")
    match text_at(event, "type"):
        case "text":
            yield TextDelta(text_at(part, "text"))
        case "tool_use":
            yield from _read_call(text_at(part, "callID"), text_at(part, "tool"), part)
        case "step_finish":
            yield UsageDelta(_usage(part))
            reason = text_at(part, "reason")
            if reason == "length":
                yield LimitReached("the model's limit of tokens reached", is_truncated=True)
            elif reason != "tool-calls":
                yield Finished()
        case "error":
            yield AgentFailed(_failure(object_at(event, "error")))


def _read_call(id: str, tool: str, part: dict[str, Json]) -> Iterator[AgentEvent]:
    """opencode reports a tool call once the call has ended."""
    state = object_at(part, "state")
    yield CallStarted(id, tool, object_at(state, "input"))
    is_ok = text_at(state, "status") != "error"
    yield CallEnded(id, is_ok, size_of(at(state, "output")), text_at(state, "error"))


def _usage(part: dict[str, Json]) -> Usage:
    tokens = object_at(part, "tokens")
    cached = count_at(tokens, "cache", "read") + count_at(tokens, "cache", "write")
    return Usage(
        count_at(tokens, "input") + cached,
        count_at(tokens, "output") + count_at(tokens, "reasoning"),
        number_at(part, "cost"),
        1,
    )


def _failure(error: dict[str, Json]) -> Failure:
    words = text_at(error, "data", "message") or text_at(error, "name")
    status = count_at(error, "data", "statusCode") or None
    later = text_at(error, "data", "responseHeaders", "retry-after")
    seconds = float(later) if later.isascii() and later.isdigit() else None
    return failure("opencode", words, _LOGIN, status, seconds)


CLI = Cli(
    name="opencode",
    install="npm install -g opencode-ai",
    login=_LOGIN,
    passes=(
        "OPENCODE_*",
        "ANTHROPIC_*",
        "OPENAI_*",
        "GEMINI_*",
        "GOOGLE_*",
        "OPENROUTER_*",
        "GROQ_*",
        "MISTRAL_*",
        "DEEPSEEK_*",
        "XAI_*",
    ),
    launch=_launch,
    read=_read,
    speaks_acp=True,
)
