"""Read what an agent tells of its work over ACP. In: session/update. Out: Said."""

from collections.abc import Callable, Iterator

from stretto.adapters.models.cli.picking import (
    at,
    count_at,
    list_at,
    object_at,
    size_of,
    text_at,
    words_of,
)
from stretto.adapters.models.cli.said import CallBegan, CallEnded, Said, Spoke
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import Json


class Updates:
    """Calls are told in pieces: what one piece leaves out, an earlier one said."""

    def __init__(self, hears: Callable[[str], Said] = Spoke) -> None:
        self._hears = hears
        self._tools: dict[str, str] = {}

    def read(self, update: dict[str, Json]) -> Iterator[Said]:
        match text_at(update, "sessionUpdate"):
            case "agent_message_chunk":
                if text := words_of(at(update, "content")):
                    yield self._hears(text)
            case "tool_call" | "tool_call_update":
                yield from self.read_call(update)

    def read_call(self, call: dict[str, Json]) -> Iterator[Said]:
        id, status = text_at(call, "toolCallId"), text_at(call, "status")
        is_known = id in self._tools
        tool = self._tools.get(id) or _tool(call)
        arguments = object_at(call, "rawInput")
        if not is_known or (arguments and status not in ("completed", "failed")):
            self._tools[id] = tool
            title = text_at(call, "title")
            yield CallBegan(id, tool, arguments or ({"title": title} if title else {}))
        if status in ("completed", "failed"):
            said = _content(call)
            is_ok = status == "completed"
            yield CallEnded(id, is_ok, size_of(said), "" if is_ok else said)


def usage_of(reply: dict[str, Json]) -> Usage:
    """Agents agree on no place for it yet."""
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
