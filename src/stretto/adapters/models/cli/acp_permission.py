"""May an agent do what it asks about? In: its question over ACP. Out: one of the answers it offers.

It is asked of the kind of call that the agent names, or of the tool's own name; what is neither is
not allowed. Allowed is what the step's agent lists, once, and never for always.
"""

import re
from pathlib import Path

from stretto.adapters.models.cli.picking import list_at, object_at, text_at
from stretto.vocabulary.values import Json

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
_FIRST_WORD = re.compile(r"[\w-]+")


def answer(params: dict[str, Json], tools: frozenset[str], workspace: Path) -> dict[str, Json]:
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
    return [path for place in places if (path := text_at(place, "path"))]


def _is_within(path: str, workspace: Path) -> bool:
    root = workspace.resolve()
    try:
        return (root / path).resolve().is_relative_to(root)
    except (OSError, ValueError, RuntimeError):
        return False
