"""Ask an agent over the Agent Client Protocol, version 1: JSON-RPC over its stdin and stdout.

We offer the agent neither files nor terminals: it uses its own, in its working folder. It asks before it
does what it finds risky, and is answered by what the step may do: allowed is what the step's agent
lists, once, and never for always. Where it offers a mode that only reads, a reader is put into it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from stretto.adapters.models.cli.cli_spec import (
    at,
    count_at,
    json_line,
    list_at,
    object_at,
    size_of,
    text_at,
    words_of,
)
from stretto.adapters.models.cli.transcript import (
    AgentEvent,
    CallEnded,
    CallStarted,
    Finished,
    LimitReached,
    TextDelta,
    TranscriptRecorder,
    UsageTotal,
    failure,
)
from stretto.ports.runner import Failure
from stretto.processes.guarded import GuardedProgram, TooMuchOutput, run_guarded
from stretto.processes.programs import ProgramStart
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.version import VERSION

_VERSION = 1
_NOT_LOGGED_IN = -32000
_READING_MODES = ("plan", "read-only", "read_only", "readonly", "ask")
_LIMIT = "the model's limit of tokens reached"
_KINDS = {
    "read": {"Read"},
    "search": {"Glob", "Grep"},
    "edit": {"Edit", "Write", "MultiEdit"},
    "delete": {"Edit", "Write"},
    "move": {"Edit", "Write"},
    "execute": {"Bash"},
    "fetch": {"WebFetch", "WebSearch"},
}
_HARMLESS = frozenset({"think"})
_NAMES = {
    **dict.fromkeys(("read", "read_file", "view", "list", "list_directory", "tree"), "read"),
    **dict.fromkeys(("glob", "grep", "search"), "search"),
    **dict.fromkeys(("write", "edit", "write_file", "replace", "text_editor"), "edit"),
    **dict.fromkeys(("shell", "bash", "execute"), "execute"),
    **dict.fromkeys(("fetch", "webfetch", "web_fetch"), "fetch"),
}
_CHANGING = frozenset({"edit", "delete", "move", "execute"})
_PATH_ARGUMENTS = (
    "path", "file_path", "filePath", "filepath", "file", "filename", "abs_path", "absolute_path",
    "absolutePath", "source", "destination", "new_path", "newPath", "old_path", "target", "to",
)  # fmt: skip
_FIRST_WORD = re.compile(r"[\w-]+")
NO_SUCH_METHOD = -32601
# Answers a request of the agent; None: there is no such method here.
RequestHandler: TypeAlias = Callable[[str, dict[str, Json]], dict[str, Json] | None]
NotificationHandler: TypeAlias = Callable[[str, dict[str, Json]], None]


class RpcFailed(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionEnded(Exception):
    """The agent ended before it answered."""


class JsonRpc:
    def __init__(
        self, child: GuardedProgram, serve: RequestHandler, hear: NotificationHandler
    ) -> None:
        self._child = child
        self._serve = serve
        self._hear = hear
        self._lines = child.lines()
        self._asked = 0

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """One request at a time; what else comes in meanwhile is served as it comes."""
        self._asked += 1
        await self._send({"id": self._asked, "method": method, "params": dict(params)})
        async for line in self._lines:
            message = json_line(line)
            if message is None:
                continue
            if text_at(message, "method"):
                await self._serve_one(message)
            elif at(message, "id") == self._asked:
                return _result(message)
        raise ConnectionEnded

    async def _serve_one(self, message: dict[str, Json]) -> None:
        method, params = text_at(message, "method"), object_at(message, "params")
        if "id" not in message:
            self._hear(method, params)
            return
        result = self._serve(method, params)
        if result is not None:
            await self._send({"id": message["id"], "result": result})
        else:
            refused: Json = {"code": NO_SUCH_METHOD, "message": f"no method {method[:100]} here"}
            await self._send({"id": message["id"], "error": refused})

    async def _send(self, message: dict[str, Json]) -> None:
        await self._child.write_line(json.dumps({"jsonrpc": "2.0", **message}).encode())


def _result(message: dict[str, Json]) -> dict[str, Json]:
    if "error" in message:
        error = object_at(message, "error")
        code = at(error, "code")
        says = text_at(error, "data", "details") or text_at(error, "message")
        raise RpcFailed(code if isinstance(code, int) else 0, says or "it gave no reason")
    return object_at(message, "result")


class AcpAgent:
    def __init__(
        self,
        who: str,
        login: str,
        tools: frozenset[str],
        may_write: bool,
        read_text: Callable[[str], AgentEvent] = TextDelta,
    ) -> None:
        self._who = who
        self._login = login
        self._tools = tools
        self._may_write = may_write
        self._read_text = read_text
        # Whether a mode of the agent keeps a reader from writing.
        self.is_read_only_enforced = may_write

    async def ask(
        self, start: ProgramStart, prompt: str, recorder: TranscriptRecorder, sets_mode: bool
    ) -> None:
        try:
            async with run_guarded(start) as child:
                try:
                    await self._converse(child, start.folder, prompt, recorder, sets_mode)
                except ConnectionEnded:
                    await self._explain_end(child, recorder)
        except RpcFailed as error:
            status = 401 if error.code == _NOT_LOGGED_IN else None
            recorder.failure = failure(self._who, str(error), self._login, status)
        except TooMuchOutput as flood:
            recorder.failure = Failure("error", f"{self._who}: {flood}")
        except _Enough:
            pass  # the recorder knows why
        finally:
            recorder.close()

    async def _converse(
        self,
        child: GuardedProgram,
        folder: Path,
        prompt: str,
        recorder: TranscriptRecorder,
        sets_mode: bool,
    ) -> None:
        updates = Updates(self._read_text)

        def serve(method: str, params: dict[str, Json]) -> dict[str, Json] | None:
            if method != "session/request_permission":
                return None
            for said in updates.read_call(object_at(params, "toolCall")):
                recorder.record(said)
            return answer_permission(params, self._tools, folder)

        def hear(method: str, params: dict[str, Json]) -> None:
            if method == "session/update":
                for said in updates.read(object_at(params, "update")):
                    recorder.record(said)
            if recorder.is_over:
                raise _Enough

        wire = JsonRpc(child, serve, hear)
        await _introduce(wire)
        session = await wire.ask("session/new", {"cwd": str(folder), "mcpServers": []})
        id = text_at(session, "sessionId")
        if sets_mode and not self._may_write:
            await self._set_reading_mode(wire, id, object_at(session, "modes"))
        block: Json = {"type": "text", "text": prompt}
        reply = await wire.ask("session/prompt", {"sessionId": id, "prompt": [block]})
        recorder.record(UsageTotal(usage_of(reply)))
        recorder.record(Finished())
        self._record_stop(text_at(reply, "stopReason"), recorder)

    async def _set_reading_mode(self, wire: JsonRpc, id: str, modes: dict[str, Json]) -> None:
        offered = {text_at(mode, "id") for mode in list_at(modes, "availableModes")}
        reading = next((mode for mode in _READING_MODES if mode in offered), None)
        if reading is not None:
            await wire.ask("session/set_mode", {"sessionId": id, "modeId": reading})
            self.is_read_only_enforced = True

    def _record_stop(self, reason: str, recorder: TranscriptRecorder) -> None:
        if reason == "max_turn_requests":
            recorder.record(LimitReached("max turns reached"))
        elif reason == "max_tokens":
            recorder.record(LimitReached(_LIMIT, is_truncated=True))
        elif reason == "refusal":
            recorder.failure = Failure("error", f"{self._who} refused to go on")
        elif reason == "cancelled":
            recorder.failure = Failure("error", f"{self._who} stopped by itself")

    async def _explain_end(self, child: GuardedProgram, recorder: TranscriptRecorder) -> None:
        code, errors = await child.exit_code(), await child.last_errors()
        words = f"ended with exit code {code} before it answered: {errors}"
        recorder.failure = failure(self._who, words, self._login)


async def _introduce(wire: JsonRpc) -> None:
    no_files: Json = {"readTextFile": False, "writeTextFile": False}
    us: Json = {"name": "stretto", "version": VERSION}
    able: Json = {"fs": no_files, "terminal": False}
    hello = await wire.ask(
        "initialize",
        {"protocolVersion": _VERSION, "clientCapabilities": able, "clientInfo": us},
    )
    if hello.get("protocolVersion") != _VERSION:
        raise RpcFailed(0, f"it speaks another version of ACP than {_VERSION}")


class _Enough(Exception):
    """The recorder needs nothing more of the agent."""


class Updates:
    """Reads session/update. Calls come in pieces: what one leaves out, an earlier one has said."""

    def __init__(self, read_text: Callable[[str], AgentEvent] = TextDelta) -> None:
        self._read_text = read_text
        self._tools: dict[str, str] = {}

    def read(self, update: dict[str, Json]) -> Iterator[AgentEvent]:
        match text_at(update, "sessionUpdate"):
            case "agent_message_chunk":
                if text := words_of(at(update, "content")):
                    yield self._read_text(text)
            case "tool_call" | "tool_call_update":
                yield from self.read_call(update)

    def read_call(self, call: dict[str, Json]) -> Iterator[AgentEvent]:
        id, status = text_at(call, "toolCallId"), text_at(call, "status")
        is_known = id in self._tools
        tool = self._tools.get(id) or _tool(call)
        arguments = object_at(call, "rawInput")
        if not is_known or (arguments and status not in ("completed", "failed")):
            self._tools[id] = tool
            title = text_at(call, "title")
            yield CallStarted(id, tool, arguments or ({"title": title} if title else {}))
        if status in ("completed", "failed"):
            said = _content(call)
            is_ok = status == "completed"
            yield CallEnded(id, is_ok, size_of(said), "" if is_ok else said)


def usage_of(reply: dict[str, Json]) -> Usage:
    """Agents do not agree yet on where they report it."""
    usage = object_at(reply, "usage")
    if usage:
        return Usage(count_at(usage, "inputTokens"), count_at(usage, "outputTokens"))
    counted = object_at(reply, "_meta", "quota", "token_count")
    return Usage(count_at(counted, "input_tokens"), count_at(counted, "output_tokens"))


def _tool(call: dict[str, Json]) -> str:
    kind = text_at(call, "kind")
    own = text_at(call, "name") or text_at(call, "_meta", "goose", "toolCall", "toolName")
    return own or (kind if kind and kind != "other" else text_at(call, "title"))


def _content(call: dict[str, Json]) -> str:
    blocks = list_at(call, "content")
    said = [words_of(at(block, "content")) or text_at(block, "newText") for block in blocks]
    return "\n".join(filter(None, said))


def answer_permission(
    params: dict[str, Json], tools: frozenset[str], workspace: Path
) -> dict[str, Json]:
    call = object_at(params, "toolCall")
    wanted = "allow_once" if _is_allowed(call, tools, workspace) else "reject_once"
    for option in list_at(params, "options"):
        if text_at(option, "kind") == wanted:
            return {"outcome": {"outcome": "selected", "optionId": text_at(option, "optionId")}}
    return {"outcome": {"outcome": "cancelled"}}


def _is_allowed(call: dict[str, Json], tools: frozenset[str], workspace: Path) -> bool:
    kind = text_at(call, "kind")
    if kind not in _KINDS and kind not in _HARMLESS:
        word = _FIRST_WORD.match(text_at(call, "name") or text_at(call, "title"))
        kind = _NAMES.get(word[0].lower(), "") if word else ""
    if kind in _HARMLESS:
        return True
    if not _KINDS.get(kind, set()) & tools:
        return False
    return kind not in _CHANGING or all(_is_within(each, workspace) for each in _paths(call))


def _paths(call: dict[str, Json]) -> list[str]:
    places = [*list_at(call, "locations"), *list_at(call, "content")]
    found = [text_at(place, "path") for place in places]
    # Some agents name the file only among the arguments of the tool itself.
    found += [text_at(call, "rawInput", name) for name in _PATH_ARGUMENTS]
    return [path for path in found if path]


def _is_within(path: str, workspace: Path) -> bool:
    root = workspace.resolve()
    try:
        return (root / path).resolve().is_relative_to(root)
    except (OSError, ValueError, RuntimeError):
        return False
