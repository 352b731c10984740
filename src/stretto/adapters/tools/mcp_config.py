"""Read the setting `mcp_servers`: which MCP servers there are.

Secrets are named, never written: `${NAME}` in a value of `env` or `headers` is taken from the
environment when the server is started.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import is_id

_STDIO_KEYS = ("command", "args", "env", "cwd")
_HTTP_KEYS = ("url", "headers")
_COMMON_KEYS = ("tools", "read_only")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class McpServer:
    name: str
    command: str = ""  # stdio, when there is one
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""  # relative to the project
    url: str = ""  # streamable HTTP, when there is one
    headers: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] | None = None  # None: all that it has
    # Tools that change nothing, according to the user, where the server does not say so itself.
    read_only: tuple[str, ...] = ()
    # Asked at every start: whether its files are still those that were trusted.
    is_unchanged: Callable[[], bool] = lambda: True

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools


@dataclass(frozen=True, slots=True)
class McpServerFault:
    server: str
    message: str
    hint: str = ""


def read_servers(
    written: Mapping[str, Json],
) -> tuple[dict[str, McpServer], tuple[McpServerFault, ...]]:
    """All that can be used, and all that is wrong with the others."""
    servers: dict[str, McpServer] = {}
    faults: list[McpServerFault] = []
    for name, entry in written.items():
        found = _faults(name, entry)
        faults += found
        if not found and isinstance(entry, dict):
            servers[name] = _make_server(name, entry)
    return servers, tuple(faults)


def fill_variables(text: str, environ: Mapping[str, str]) -> str:
    """Replace each `${NAME}`. Raises KeyError with the name that is not set."""
    return VARIABLE.sub(lambda match: environ[match[1]], text)


def _make_server(name: str, entry: Mapping[str, Json]) -> McpServer:
    return McpServer(
        name,
        command=_text(entry.get("command")),
        args=_texts(entry.get("args")),
        env=_pairs(entry.get("env")),
        cwd=_text(entry.get("cwd")),
        url=_text(entry.get("url")),
        headers=_pairs(entry.get("headers")),
        tools=_texts(entry["tools"]) if entry.get("tools") is not None else None,
        read_only=_texts(entry.get("read_only")),
    )


def _faults(name: str, entry: Json) -> list[McpServerFault]:
    def fault(message: str, hint: str = "") -> McpServerFault:
        return McpServerFault(name, f"MCP server '{name}': {message}", hint)

    if not is_id(name) or "__" in name:
        return [fault("its name must be an id without '__'", "tools are called mcp__server__tool")]
    if not isinstance(entry, dict):
        return [fault("must be a mapping", "with 'command' or with 'url'")]
    if ("command" in entry) == ("url" in entry):
        return [fault("must have either 'command' or 'url'")]
    keys = (*(_STDIO_KEYS if "command" in entry else _HTTP_KEYS), *_COMMON_KEYS)
    found: list[McpServerFault] = []
    for key, value in entry.items():
        if key not in keys:
            hint = did_you_mean(key, keys) or f"keys: {listed(keys, 9)}"
            found.append(fault(f"there is no key '{key}'", hint))
        elif wrong := _value_fault(key, value):
            found.append(fault(f"'{key}' {wrong}"))
    return found


def _value_fault(key: str, value: Json) -> str | None:
    if key in ("command", "url", "cwd"):
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            return "must be text"
        return _url_fault(value) if key == "url" else None
    if key in ("args", "tools", "read_only"):
        is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return None if is_list else "must be a list of texts"
    is_mapping = isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    return None if is_mapping else "must be a mapping of names to texts"


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "is not a URL"
    is_http = parts.scheme in ("http", "https") and bool(parts.hostname)
    return None if is_http else "must be an http:// or https:// URL"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _pairs(value: Json) -> dict[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: each for key, each in pairs if isinstance(each, str)}
