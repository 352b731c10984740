"""Has a model written a tool call in its words, where nobody carries it out? In: its answer, the names of its tools.

Models know many forms of calls, and a server that does not know a model's own passes it on as text. What begins
or ends an answer in such a form is one; what names a tool in the middle of one is only talk about it.
"""

import json
import re
from collections.abc import Container, Iterable, Iterator

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


def looks_like_call(text: str, tools: Iterable[str]) -> bool:
    said = text.strip()
    if _BEGINS.match(said) or _ENDS.search(said[-_END:]):
        return True
    names = frozenset(tool.casefold() for tool in tools)
    return bool(names) and (
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
