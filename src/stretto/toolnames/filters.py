"""Read and judge the tools that an agent lists, such as `Read`, `Bash(git diff:*)`, `mcp__x__y`.

`validate`, `agents check`, `doctor`, `run` and the toolbox all ask this module, so a filter that is
accepted before the run can be used during it. A filter that cannot be used is a fault and never
ignored: its author wrote it to forbid something.

A shell command is split into its simple commands, each a list of words. Only words, quotes and the
operators between commands are read. Variables, substitutions, most braces, redirections (except
`2>&1`) and groups are NotPlain, because they could run or write what no filter has checked.
Patterns such as `*` are kept as they are written.
"""

import re
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, structs

from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.names import (
    DELEGATING_ALIASES,
    DELEGATING_TOOLS,
    KNOWN_TOOLS,
    tool_name,
)

if TYPE_CHECKING:
    from stretto.globs.glob import Glob

_BETWEEN = re.compile(r"&&|\|\||[;|&\n]")
_STDERR_TOO = re.compile(r"2>&1(?=[\s;|&]|\Z)")
# `HEAD@{1}` and `{}` are words. Other braces can expand to several words, and those may be options.
_PLAIN_BRACES = re.compile(r"\{(?:(?!\.\.)[\w.+:/-])*\}")
_QUOTED_ESCAPES = frozenset('"\\$`\n')
_WHY = {
    "$": "it expands a variable or runs a command inside ($)",
    "`": "it runs a command inside (`)",
    "<": "it redirects (<)",
    ">": "it redirects (>)",
    "(": "it has a subshell or a function",
    ")": "it has a subshell or a function",
}
_MOST_CHARACTERS = 20_000


class NotPlain(Exception):
    """The command cannot be checked. The text says why."""


def split_commands(text: str) -> list[list[str]]:
    """The commands between `;`, `&&`, `||`, `|`, `&` and line ends. Raises NotPlain."""
    if len(text) > _MOST_CHARACTERS:
        raise NotPlain(f"it has {len(text):,} characters; {_MOST_CHARACTERS:,} is the most")
    if any(ord(letter) < 32 and letter not in "\t\n" for letter in text):
        raise NotPlain("it holds a control character")
    reader = _Reader(text)
    reader.read()
    commands = [words for words in reader.commands if words]
    if not commands:
        raise NotPlain("it is empty")
    return commands


class _Reader:
    def __init__(self, text: str) -> None:
        self.commands: list[list[str]] = [[]]
        self._text = text
        self._at = 0
        self._word: str | None = None  # None between words: '' is a word too

    def read(self) -> None:
        while self._at < len(self._text):
            letter = self._text[self._at]
            if match := self._word is None and _STDERR_TOO.match(self._text, self._at):
                self._at = match.end()
            elif match := _BETWEEN.match(self._text, self._at):
                self._end_word()
                self.commands.append([])
                self._at = match.end()
            elif letter in " \t":
                self._end_word()
                self._at += 1
            elif letter == "#" and self._word is None:
                self._at = (self._text + "\n").index("\n", self._at)
            elif self._text.startswith("\\\n", self._at):
                self._at += 2  # a continued line: the word, if one has begun, goes on
            else:
                self._add(self._read_piece(letter))
        self._end_word()

    def _read_piece(self, letter: str) -> str:
        if letter in _WHY:
            raise NotPlain(_WHY[letter])
        if letter == "{" and not _PLAIN_BRACES.match(self._text, self._at):
            raise NotPlain("it expands braces ({)")
        if letter == "'":
            end = self._text.find("'", self._at + 1)
            if end < 0:
                raise NotPlain("a quote is not closed")
            piece, self._at = self._text[self._at + 1 : end], end + 1
            return piece
        if letter == '"':
            return self._read_double_quoted()
        if letter == "\\":
            return self._read_escaped()
        self._at += 1
        return letter

    def _read_double_quoted(self) -> str:
        self._at += 1
        piece: list[str] = []
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == '"':
                self._at += 1
                return "".join(piece)
            if letter in "$`":
                raise NotPlain(_WHY[letter])
            follows = self._text[self._at + 1 : self._at + 2]
            if letter == "\\" and follows in _QUOTED_ESCAPES:
                piece.append(self._read_escaped())
            else:
                piece.append(letter)
                self._at += 1
        raise NotPlain("a quote is not closed")

    def _read_escaped(self) -> str:
        follows = self._text[self._at + 1 : self._at + 2]
        if not follows:
            raise NotPlain("it ends with a backslash")
        self._at += 2
        return "" if follows == "\n" else follows

    def _add(self, piece: str) -> None:
        self._word = (self._word or "") + piece

    def _end_word(self) -> None:
        if self._word is not None:
            self.commands[-1].append(self._word)
            self._word = None


_DELEGATING = frozenset(name.casefold() for name in DELEGATING_TOOLS | DELEGATING_ALIASES)
_FILE_TOOLS = KNOWN_TOOLS - {"Bash", "WebFetch", "WebSearch"}
_HOST = re.compile(r"\w[\w.-]{0,252}")


class ToolFault(Struct, frozen=True):
    code: str
    message: str
    hint: str


class CommandFilter(Struct, frozen=True):
    """`words:*` is every command that begins with these words; `words` is that one command."""

    text: str  # as written
    words: tuple[str, ...]
    is_prefix: bool

    def allows(self, command: list[str]) -> bool:
        begins = tuple(command[: len(self.words)]) == self.words
        return begins and (self.is_prefix or len(command) == len(self.words))


class DomainFilter(Struct, frozen=True):
    domain: str  # this site, and those below it

    def allows(self, host: str) -> bool:
        return host == self.domain or host.endswith(f".{self.domain}")


ToolFilter: TypeAlias = "CommandFilter | DomainFilter | Glob"


class ListedTool(Struct, frozen=True):
    name: str
    filters: tuple[ToolFilter, ...] = ()  # one has to allow a call; (): every call is allowed
    fault: ToolFault | None = None  # a filter that cannot be used


def is_delegating(name: str) -> bool:
    """Whether it starts other agents. Other programs write such names in other cases."""
    return name.casefold() in _DELEGATING


def tool_fault(written: str, known: Set[str] = KNOWN_TOOLS) -> ToolFault | None:
    """Why a subagent cannot have this tool, as it is written."""
    name = tool_name(written)
    if is_delegating(name):
        hint = "only the lead agent delegates; make it a step instead"
        return ToolFault("RCP125", f"a subagent cannot be given '{name}'", hint)
    # What an MCP server offers is known only once it is asked.
    if name not in known and not name.startswith("mcp__"):
        hint = did_you_mean(name, known) or f"tools: {listed(sorted(known), 12)}"
        return ToolFault("RCP126", f"there is no tool '{name}'", hint)
    return _read_tool(written).fault


def read_listed(written: Iterable[str]) -> tuple[ListedTool, ...]:
    """Each name once. A tool that is listed both with a filter and without one has no filter. Tools
    that delegate are left out, whatever the list says: delegation is one level deep."""
    found: dict[str, ListedTool] = {}
    for each in map(_read_tool, written):
        before = found.get(each.name)
        if not each.name or is_delegating(each.name):
            continue
        if before is None:
            found[each.name] = each
        elif each.fault or before.fault:
            found[each.name] = structs.replace(before, fault=before.fault or each.fault)
        else:
            is_narrow = before.filters and each.filters
            filters = (*before.filters, *each.filters) if is_narrow else ()
            found[each.name] = structs.replace(before, filters=filters)
    return tuple(found.values())


def _read_tool(written: str) -> ListedTool:
    name, bracket, rest = written.partition("(")
    name, rest = name.strip(), rest.strip()
    if not bracket:
        return ListedTool(name)
    if not rest.endswith(")"):
        return _unusable(name, written, "its bracket is not closed", f"write {name}(…)")
    return _read_filter(name, rest[:-1].strip(), written)


def _read_filter(name: str, text: str, written: str) -> ListedTool:
    if name == "Bash":
        return _read_command(name, text, written)
    if name == "WebFetch":
        return _read_domain(name, text, written)
    if name in _FILE_TOOLS:
        return _read_glob(name, text, written)
    return _unusable(name, written, f"{name} has no filters", f"write {name}")


def _read_command(name: str, text: str, written: str) -> ListedTool:
    hint = "write a command such as Bash(git diff:*)"
    is_prefix = text.endswith((":*", " *")) or text == "*"
    bare = text.removesuffix("*").removesuffix(":") if is_prefix else text
    if is_prefix and not bare.strip():
        return ListedTool(name, (CommandFilter(text, (), True),))
    try:
        commands = split_commands(bare)
    except NotPlain as why:
        return _unusable(name, written, str(why), hint)
    if len(commands) > 1:
        return _unusable(name, written, "it is several commands", "list Bash(…) once for each")
    return ListedTool(name, (CommandFilter(text, tuple(commands[0]), is_prefix),))


def _read_domain(name: str, text: str, written: str) -> ListedTool:
    prefix, colon, rest = text.rpartition(":")
    host = _host(rest)
    if prefix.strip() == "domain" and host:
        return ListedTool(name, (DomainFilter(host),))
    is_bare = not colon and "." in host
    hint = f"write WebFetch(domain:{host if is_bare else 'example.com'})"
    return _unusable(name, written, "it does not name a site as domain:NAME", hint)


def _host(text: str) -> str:
    """In ASCII, as hosts are compared and asked for; '' if it is no host name."""
    host = text.strip().lower().strip(".")
    try:
        return host.encode("idna").decode() if _HOST.fullmatch(host) else ""
    except UnicodeError:
        return ""


def _read_glob(name: str, text: str, written: str) -> ListedTool:
    from stretto.globs.glob import GlobFault, parse_glob

    glob = parse_glob(text, names_no_file=True)
    if isinstance(glob, GlobFault):
        hint = glob.hint or f"write a path of the workspace, such as {name}(src/**)"
        return _unusable(name, written, glob.message, hint)
    return ListedTool(name, (glob,))


def _unusable(name: str, written: str, why: str, hint: str) -> ListedTool:
    shown = written if len(written) <= 80 else f"{written[:79]}…"
    message = f"the filter of '{shown}' cannot be used: {why}"
    return ListedTool(name, fault=ToolFault("RCP128", message, hint))
