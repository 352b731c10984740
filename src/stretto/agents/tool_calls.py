"""Carry out the tool calls of a model.

Every call ends in one ToolEnded event, also one that is refused; only a cancelled attempt leaves
calls without one. A call that a crash would leave in doubt is journaled before it is made.
"""

import asyncio
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby

from stretto.agents.live_events import telling_phase
from stretto.events.model import ToolEnded, ToolStarted
from stretto.ports.model import RequestedCall
from stretto.ports.runner import AttemptRequest, Witness
from stretto.ports.tool import Tool, ToolOutcome
from stretto.text.redaction import Redactor
from stretto.text.short import describe_call, listed, shorten, shorten_arguments
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import DELEGATING_ALIASES, DELEGATING_TOOLS

_LONGEST_MESSAGE = 500
_LONGEST_RESULT = 1_000  # in the journal; the model is told all of it
_MOST_CALLS_AT_ONCE = 16


# How models write a call that their server does not recognise.
_LONGEST_CALL = 100_000  # characters; nobody writes a longer one as text
_END = 2_000
# A tag, a token or a fence that speaks of tools, whatever the form is otherwise.
_TAG = r"<\|?/?(?:[\w-]{1,40}:)?(?:tools?|tool[_-][\w-]{1,40}|invoke|function(?:[_-]calls?)?|arg_key)(?:[ =][^<>]{0,200})?\|?>"
_TOKEN = r"<[|｜][^<>|｜\n]{0,40}(?:tool|action|python_tag)[^<>|｜\n]{0,40}[|｜]>"
_BRACKETS = r"\[/?(?:END_)?TOOL_[A-Z]+\]"
_BEGINS = re.compile(
    rf"(?:```\w*\s*)?(?:{_TAG}|{_TOKEN}|{_BRACKETS}|functools\[|<\|channel\|>commentary to=)|```tool_\w+",
    re.IGNORECASE,
)
_ENDS = re.compile(rf"(?:{_TAG}|{_TOKEN}|{_BRACKETS})\s*(?:```\s*)?\Z", re.IGNORECASE)
# Read(file_path='x'), functions.Read:0 {…}, to=functions.Read {…}: a line of its own
_SYNTAX = re.compile(
    r"\W{0,20}(?:(?:tool call|to|call)\s*[:=]\s*|print\(|await )?(?:functions\.|tools\.)?"
    r"([A-Za-z_]\w{0,100})(?:\.call|:\d{1,4})?\s*(?:\(.*\)|\{.*\})\W{0,10}",
    re.IGNORECASE,
)
# Action: Read
_LABELLED = re.compile(
    r"^\W{0,10}(?:action|tool(?:[ _](?:call|name))?|function)\W{0,5}:\W{0,5}([A-Za-z_]\w{0,100})\W{0,5}"
    r"(?:\[.*\]|\(.*\)|\{.*\})?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSED = re.compile(r"</([A-Za-z_][\w-]{0,100})>\s*\Z")
# How other programs call the tools of a coding agent: models write what they were trained with.
_OF_OTHERS = frozenset(
    (
        "apply_diff",
        "apply_patch",
        "create_file",
        "edit_file",
        "execute_command",
        "list_dir",
        "list_directory",
        "list_files",
        "read_file",
        "replace_in_file",
        "run_command",
        "run_shell_command",
        "run_terminal_cmd",
        "search_files",
        "str_replace_based_edit_tool",
        "str_replace_editor",
        "view_file",
        "write_file",
        "write_to_file",
    )
)
_NAMED = ("name", "tool", "function", "tool_name", "recipient_name", "action")
_GIVEN = frozenset(
    (
        "arguments",
        "parameters",
        "args",
        "input",
        "action_input",
        "tool_input",
        "tool_args",
        "kwargs",
    )
)
_AROUND = ("tool_calls", "tool_call", "function_call", "function")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What the model is told about its call."""

    call: RequestedCall
    outcome: ToolOutcome


class ToolCaller:
    """The calls of one attempt, numbered through."""

    def __init__(
        self,
        request: AttemptRequest,
        witness: Witness,
        tools: Mapping[str, Tool],
        redactor: Redactor,
    ) -> None:
        self._request = request
        self._witness = witness
        self._tools = tools
        self._redactor = redactor
        self._made = 0

    async def carry_out(self, calls: Sequence[RequestedCall]) -> list[CallOutcome]:
        """In the model's order; side by side those that do not get in each other's way."""
        outcomes: list[CallOutcome] = []
        for runs_beside, group in groupby(calls, self._runs_beside):
            at_once = _MOST_CALLS_AT_ONCE if runs_beside else 1
            some = list(group)
            for first in range(0, len(some), at_once):
                batch = some[first : first + at_once]
                outcomes += await asyncio.gather(*map(self._carry_out_one, batch))
        return outcomes

    def refuse(self, calls: Sequence[RequestedCall], why: str) -> None:
        for call in calls:
            self._end(call, self._number(), ToolOutcome(why, "refused"), self._witness.now())

    async def _carry_out_one(self, call: RequestedCall) -> CallOutcome:
        number, began = self._number(), self._witness.now()
        outcome = self._refusal(call) or await self._make(call, number)
        outcome = ToolOutcome(
            self._redactor.text(outcome.text), outcome.verdict, outcome.result_bytes
        )
        self._end(call, number, outcome, began)
        return CallOutcome(call, outcome)

    async def _make(self, call: RequestedCall, number: int) -> ToolOutcome:
        tool, request = self._tools[call.tool], self._request
        arguments = dict(call.arguments or {})
        if tool.spec.recovery != "idempotent":
            started = ToolStarted(
                self._witness.now(),
                request.attempt,
                number,
                call.tool,
                self._journaled_arguments(call),
                tool.spec.recovery,
            )
            await self._witness.record(started)
        await self._witness.confirm()
        try:
            with self._telling(call):
                return await tool.call(arguments, f"{request.name}/{number}")
        except Exception as error:  # a bug in a tool is the tool's failure, not the run's
            return ToolOutcome(f"{type(error).__name__}: {error}", "error")

    def _telling(self, call: RequestedCall) -> AbstractContextManager[object]:
        said = describe_call(call.tool, self._journaled_arguments(call))
        return telling_phase(self._request.attempt, self._witness, f"calls {said}")

    def _refusal(self, call: RequestedCall) -> ToolOutcome | None:
        # The toolbox makes none of these: only assembly adds them, to a turn of the lead agent.
        is_delegating = call.tool in DELEGATING_TOOLS or call.tool in DELEGATING_ALIASES
        if is_delegating and not self._tools.keys() & DELEGATING_TOOLS:
            return ToolOutcome(f"{call.tool}: a subagent cannot delegate", "refused")
        if call.tool not in self._tools:
            known = listed(sorted(self._tools), 20) if self._tools else "none"
            return ToolOutcome(f"you have no tool '{call.tool}'; your tools: {known}", "refused")
        if call.arguments is None:
            return ToolOutcome(f"the arguments of {call.tool} are not a JSON object", "error")
        # A tool takes its arguments to files, commands, servers and hosts.
        if names := self._redactor.named(json.dumps(dict(call.arguments))):
            said = f"the arguments of {call.tool} hold the value of {listed(names)}"
            return ToolOutcome(f"{said}, which no tool is given; write its name instead", "refused")
        return None

    def _runs_beside(self, call: RequestedCall) -> bool:
        tool = self._tools.get(call.tool)
        if tool is None:
            return True
        if tool.spec.runs_beside is not None:
            return tool.spec.runs_beside(call.arguments or {})
        return tool.spec.recovery == "idempotent" and not tool.spec.changes_files

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _end(self, call: RequestedCall, number: int, outcome: ToolOutcome, began: float) -> None:
        request, now = self._request, self._witness.now()
        is_ok = outcome.verdict == "ok"
        self._witness.note(
            ToolEnded(
                now,
                request.attempt,
                number,
                call.tool,
                self._journaled_arguments(call),
                outcome.verdict,
                outcome.size,
                now - began,
                "" if is_ok else shorten(outcome.text, _LONGEST_MESSAGE),
                shorten(outcome.text, _LONGEST_RESULT) if is_ok else "",
            )
        )

    def _journaled_arguments(self, call: RequestedCall) -> dict[str, Json]:
        # First redacted, then shortened: half a secret would not be known as one.
        redacted = self._redactor.arguments(call.arguments or {})
        return shorten_arguments(redacted)


def looks_like_call(text: str, tools: Iterable[str]) -> bool:
    """Whether a model has written a tool call in its words, where nobody carries it out. What begins or ends
    an answer in the form of one is one; what names a tool in the middle of it is only talk about it."""
    said = text.strip()
    if _BEGINS.match(said) or _ENDS.search(said[-_END:]):
        return True
    own = frozenset(tool.casefold() for tool in tools)
    names = own | _OF_OTHERS
    return bool(own) and (
        any(_is_call(value, names) for value in _json_in(said)) or _names_one(said, names)
    )


def _names_one(said: str, names: Container[str]) -> bool:
    end = said[-_END:].removesuffix("```").rstrip()
    last = end[end.rfind("\n") + 1 :]
    found = [_SYNTAX.fullmatch(last), _CLOSED.search(end), *_LABELLED.finditer(end)]
    return any(match is not None and match[1].casefold() in names for match in found)


def _json_in(said: str) -> Iterator[object]:
    """What stands as JSON at the beginning of the answer, or on a line behind its words."""
    starts = {0}
    for mark in ("\n{", "\n["):
        starts |= {said.find(mark) + 1, said.rfind(mark) + 1}
    for start in sorted(starts):
        written = said[start:]
        if written.startswith("```"):
            written = written.partition("\n")[2].lstrip()
        if written.startswith(("{", "[")) and len(written) <= _LONGEST_CALL:
            try:
                yield json.JSONDecoder().raw_decode(written)[0]
            except (ValueError, RecursionError):
                continue


def _is_call(value: object, names: Container[str]) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_call(each, names) for each in value)
    if not isinstance(value, dict):
        return False
    if any(
        isinstance(value.get(key), dict | list) and _is_call(value[key], names) for key in _AROUND
    ):
        return True
    name = next((value[key] for key in _NAMED if isinstance(value.get(key), str)), "")
    return name.removeprefix("functions.").casefold() in names and not _GIVEN.isdisjoint(value)
