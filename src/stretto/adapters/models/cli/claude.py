"""Claude Code: `cli:claude`, `cli:claude:opus`. Read from version 2.1.

A reader gets only tools that read, and mode `dontAsk`, in which whatever is not allowed is denied.
A writer gets `acceptEdits`; Bash only if its agent lists it. Settings, hooks and MCP servers of the
workspace do not count unless it is trusted.
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
    guard_prompt,
    list_at,
    number_at,
    object_at,
    size_of,
    text_at,
    words_of,
)
from stretto.adapters.models.cli.transcript import (
    AgentEvent,
    AgentFailed,
    CallEnded,
    CallStarted,
    FinalAnswer,
    Finished,
    LimitReached,
    ModelNamed,
    TextDelta,
    UsageDelta,
    UsageTotal,
    failure,
)
from stretto.ports.runner import AttemptRequest
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

_LOGIN = "run `claude` and then /login, or set ANTHROPIC_API_KEY"
# One word of a command line holds 128 KB on Linux.
_LONGEST_SCHEMA = 60_000
_SAME_NAME = ("Read", "Glob", "Grep", "Write", "Edit", "NotebookEdit", "Bash", "WebFetch")
_TOOLS = {**{name: name for name in _SAME_NAME}, "WebSearch": "WebSearch", "MultiEdit": "Edit"}
_CAPS = {"error_max_turns": "max turns reached", "error_max_budget_usd": "budget reached"}


def _launch(order: LaunchRequest) -> CliLaunch:
    request = order.request
    names = sorted({_TOOLS[name] for name in order.tools & _TOOLS.keys()})
    words = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
    words += ["--no-session-persistence", "--disable-slash-commands", "--tools", ",".join(names)]
    words += ["--permission-mode", "acceptEdits" if request.may_write else "dontAsk"]
    allowed = [n for n in names if n in ("Read", "Glob", "Grep", "WebFetch", "WebSearch")]
    if "Bash" in names:
        allowed += order.bash_filters or ("Bash",)
    if allowed:
        words += ["--allowedTools", ",".join(allowed)]
    if not order.trusts_project:
        words += ["--setting-sources", "user", "--strict-mcp-config"]
    if order.model:
        words += ["--model", order.model]
    if request.max_turns is not None:
        words += ["--max-turns", str(request.max_turns)]
    if order.max_usd is not None:
        words += ["--max-budget-usd", f"{order.max_usd:.4f}"]
    if schema := _schema(request):
        words += ["--json-schema", schema]
    files = {}
    if request.instructions.strip():
        files["instructions.md"] = request.instructions
        words += ["--append-system-prompt-file", str(order.private / "instructions.md")]
    warnings = dropped_tools(order, _TOOLS)
    return CliLaunch(tuple(words), guard_prompt(request.prompt), files=files, warnings=warnings)


def _schema(request: AttemptRequest) -> str:
    """The schema as a word of the command line; "" where claude would not take it. The prompt holds
    it as well."""
    if request.schema is None or request.schema.get("type") != "object":
        return ""
    text = json.dumps(request.schema)
    return text if len(text) <= _LONGEST_SCHEMA else ""


def _read(line: Mapping[str, Json]) -> Iterator[AgentEvent]:
    event = dict(line)
    match text_at(event, "type"):
        case "system":
            yield from _read_system(event)
        case "stream_event" if at(event, "parent_tool_use_id") is None:
            yield from _read_stream(object_at(event, "event"))
        case "assistant":
            for block in list_at(event, "message", "content"):
                if text_at(block, "type") == "tool_use":
                    arguments = object_at(block, "input")
                    yield CallStarted(text_at(block, "id"), text_at(block, "name"), arguments)
        case "user":
            yield from _read_results(list_at(event, "message", "content"))
        case "result":
            yield from _read_result(event)


def _read_system(event: dict[str, Json]) -> Iterator[AgentEvent]:
    if text_at(event, "subtype") == "init" and (model := text_at(event, "model")):
        yield ModelNamed(model)
    is_retry = text_at(event, "subtype") == "api_retry" and count_at(event, "attempt") > 1
    if is_retry and text_at(event, "error") == "authentication_failed":
        # claude would try ten times, for minutes.
        yield AgentFailed(failure("claude", "the key was not accepted", _LOGIN, 401), is_last=True)


def _read_stream(event: dict[str, Json]) -> Iterator[AgentEvent]:
    match text_at(event, "type"):
        case "message_start":
            tokens = _input_tokens(object_at(event, "message", "usage"))
            yield UsageDelta(Usage(input_tokens=tokens, model_calls=1))
        case "content_block_delta" if text_at(event, "delta", "type") == "text_delta":
            yield TextDelta(text_at(event, "delta", "text"))
        case "message_delta":
            yield UsageDelta(Usage(output_tokens=count_at(event, "usage", "output_tokens")))
            if text_at(event, "delta", "stop_reason") == "max_tokens":
                yield LimitReached("the model's limit of tokens reached", is_truncated=True)


def _read_results(blocks: list[Json]) -> Iterator[AgentEvent]:
    for block in blocks:
        if text_at(block, "type") == "tool_result":
            content = at(block, "content")
            is_ok = at(block, "is_error") is not True
            said = "" if is_ok else words_of(content)
            yield CallEnded(text_at(block, "tool_use_id"), is_ok, size_of(content), said)


def _read_result(event: dict[str, Json]) -> Iterator[AgentEvent]:
    yield UsageTotal(_usage(event))
    yield Finished()
    subtype, said = text_at(event, "subtype"), text_at(event, "result")
    if subtype in _CAPS:
        yield LimitReached(_CAPS[subtype])
    elif at(event, "is_error") is True:
        words = said or words_of(list_at(event, "errors")) or subtype
        status = count_at(event, "api_error_status") or None
        yield AgentFailed(failure("claude", words, _LOGIN, status))
    elif structured := at(event, "structured_output"):
        yield FinalAnswer(json.dumps(structured, ensure_ascii=False))
    else:
        yield FinalAnswer(said)


def _usage(event: dict[str, Json]) -> Usage:
    # The sum over `modelUsage`: the field `usage` leaves out the small model that helps, and a last
    # turn that was cut off.
    models = list(object_at(event, "modelUsage").values())
    calls_in = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    tokens_in = sum(count_at(each, name) for each in models for name in calls_in)
    tokens_out = sum(count_at(each, "outputTokens") for each in models)
    return Usage(tokens_in, tokens_out, number_at(event, "total_cost_usd"))


def _input_tokens(usage: dict[str, Json]) -> int:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(count_at(usage, name) for name in names)


CLI = Cli(
    name="claude",
    install="npm install -g @anthropic-ai/claude-code",
    login=_LOGIN,
    passes=("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "VERTEX_REGION_*", "CLOUD_ML_REGION"),
    launch=_launch,
    read=_read,
    caps_turns=True,
)
