"""Gemini CLI: `cli:gemini`, `cli:gemini:gemini-2.5-flash`. Read from version 0.61.

A policy file of this attempt alone denies every tool but those its agent lists; a reader gets none
that writes. Without a terminal, what the policy would ask about is denied too. Its plan mode is not
used: that makes it write plans instead of answers.

It works only in folders it trusts, and then obeys what they hold (`.gemini`, `.env`), programs to
run included. So it is told to trust a workspace that holds none of that; else the user must.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from stretto.adapters.models.cli.cli_spec import (
    Cli,
    CliLaunch,
    LaunchRequest,
    at,
    count_at,
    dropped_tools,
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
    ModelNamed,
    TextDelta,
    UsageTotal,
    failure,
)
from stretto.ports.runner import Failure
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

_LOGIN = "run `gemini` and log in, or set GEMINI_API_KEY"
_EDITS = ("write_file", "replace")
_TOOLS = {
    "Read": ("read_file", "list_directory"),
    "Glob": ("glob", "list_directory"),
    "Grep": ("grep_search",),
    "Write": _EDITS,
    "Edit": _EDITS,
    "MultiEdit": _EDITS,
    "Bash": ("run_shell_command",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("google_web_search",),
}
_OF_THE_PROJECT = (".gemini", ".env")


def _launch(order: LaunchRequest) -> CliLaunch:
    # Its own filters for commands are not ours: then rather no shell at all.
    given = {k: v for k, v in _TOOLS.items() if k != "Bash" or not order.bash_filters}
    tools = sorted({name for each in order.tools & given.keys() for name in given[each]})
    mode = "auto_edit" if order.request.may_write else "default"
    words = ["--acp"] if order.speaks_acp else ["--output-format", "stream-json"]
    words += ["--extensions", "none", "--approval-mode", mode]
    words += ["--admin-policy", str(order.private / "policy.toml")]
    if order.trusts_project or not _holds_settings(Path(order.request.workspace)):
        words += ["--skip-trust"]
    if order.model:
        words += ["--model", order.model]
    files = {"policy.toml": _policy(tools)}
    warnings = dropped_tools(order, given)
    return CliLaunch(tuple(words), order.whole_prompt, files=files, warnings=warnings)


def _policy(tools: list[str]) -> str:
    denied = '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 900\n'
    allowed = f'[[rule]]\ntoolName = {json.dumps(tools)}\ndecision = "allow"\npriority = 950\n'
    return f"{denied}\n{allowed}" if tools else denied


def _holds_settings(workspace: Path) -> bool:
    return any((workspace / name).exists() for name in _OF_THE_PROJECT)


def _read(line: Mapping[str, Json]) -> Iterator[AgentEvent]:
    event = dict(line)
    match text_at(event, "type"):
        case "init":
            yield ModelNamed(text_at(event, "model"))
        case "message" if text_at(event, "role") == "assistant":
            yield TextDelta(text_at(event, "content"))
        case "tool_use":
            tool, arguments = text_at(event, "tool_name"), object_at(event, "parameters")
            yield CallStarted(text_at(event, "tool_id"), tool, arguments)
        case "tool_result":
            is_ok = text_at(event, "status") != "error"
            said = "" if is_ok else text_at(event, "error", "message")
            yield CallEnded(text_at(event, "tool_id"), is_ok, size_of(at(event, "output")), said)
        case "result":
            stats = object_at(event, "stats")
            tokens_in, tokens_out = (
                count_at(stats, "input_tokens"),
                count_at(stats, "output_tokens"),
            )
            yield UsageTotal(Usage(tokens_in, tokens_out))
            yield Finished()
            if text_at(event, "status") == "error":
                yield AgentFailed(failure("gemini", text_at(event, "error", "message"), _LOGIN))


_NOT_TRUSTED = (
    "gemini does not trust this folder, which has settings of its own (.gemini or .env): "
    "look at them, run `gemini` there once and trust it"
)

CLI = Cli(
    name="gemini",
    install="npm install -g @google/gemini-cli",
    login=_LOGIN,
    passes=("GEMINI_*", "GOOGLE_*"),
    launch=_launch,
    read=_read,
    speaks_acp=True,
    exit_codes={
        41: Failure("permanent", f"gemini is not logged in ({_LOGIN})"),
        53: Failure("error", "gemini reached the turn limit of its own settings"),
        55: Failure("refused", _NOT_TRUSTED),
    },
)
