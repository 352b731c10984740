"""Name what a plan leaves to the machine: which model a name stands for, how a tool is configured.

An answer is reused only where these texts are the same. They are part of the journal, so a value
that may hold a secret is digested.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from stretto.assembly.functions import Functions
from stretto.config.settings import Settings
from stretto.problems.errors import StrettoError
from stretto.processes.programs import find_command
from stretto.text.redaction import Redactor
from stretto.vocabulary.json_value import Json

# Variables from which the libraries of other providers take the address of their server.
_PLACES = ("_BASE_URL", "_ENDPOINT", "_HOST", "_REGION", "_API_VERSION", "_PROJECT", "_LOCATION")


class MachineIdentities:
    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        functions: Functions | None = None,
    ) -> None:
        self._settings = settings
        self._functions = functions
        self._environ = environ

    def of_model(self, name: str) -> str:
        from stretto.adapters.models.local.catalog import is_local

        if name.startswith("cli:"):
            return self._of_command(name)
        if is_local(name):
            return self._of_weights(name)
        return self._of_provider(name)

    def of_tool(self, name: str) -> str:
        """Empty for a tool that has no settings."""
        settings = self._settings
        if name.startswith("mcp__"):
            return self._of_server(settings.mcp_servers.get(name.split("__")[1]))
        if name == "Bash":
            given = self._variables(settings.bash.environment)
            return _digest(
                [settings.sandbox, given, settings.bash.network, *settings.workspace.carry]
            )
        if name == "WebSearch" and settings.search is not None:
            return _digest([settings.search.url, settings.search.kind])
        if name == "WebFetch" and settings.web_allow_private:
            return _digest(sorted(settings.web_allow_private))
        return self._functions.identity_of(name) if self._functions else ""

    def _of_server(self, written: Json) -> str:
        entry = written if isinstance(written, dict) else {}
        args = entry.get("args")
        words = [entry.get("command"), *(args if isinstance(args, list) else ())]
        texts = [word for word in words if isinstance(word, str)]
        return _digest([entry, self._variables(_named_variables(entry)), *self._stamps(texts)])

    def _variables(self, names: Iterable[str]) -> list[tuple[str, str | None]]:
        """What a program is given of the environment. Of a secret only that there is one: a key that
        was renewed asks for the same."""
        values = {name: self._environ.get(name) for name in sorted(names)}
        if not any(values.values()):
            return list(values.items())
        hide = Redactor(self._environ).text
        return [(name, hide(value) if value else value) for name, value in values.items()]

    def _stamps(self, words: Sequence[str]) -> list[str]:
        """Of the program and of any file among its words: `python answer.py`."""
        if not words:
            return []
        path, writable = self._environ.get("PATH"), self._settings.steps_write
        program = find_command(words[0], Path.cwd(), path, writable) or words[0]
        files = [Path(program), *(self._settings.project / word for word in words[1:])]
        return [program, *map(_stamp, files)]

    def _of_provider(self, name: str) -> str:
        from stretto.adapters.models.endpoint import endpoint_of
        from stretto.adapters.models.model_names import ModelName, resolve_name
        from stretto.adapters.models.provider_table import BY_NAME

        meant = resolve_name(name, self._environ)
        full = (meant.name or name) if isinstance(meant, ModelName) else name
        provider = BY_NAME.get(full.partition(":")[0])
        if provider is None:
            return full
        if not provider.is_lean:
            return f"{full} at {_digest(self._places())}"
        try:
            return f"{full} at {endpoint_of(provider, self._environ).base_url}"
        except StrettoError:  # the run cannot ask it either, and says so
            return full

    def _places(self) -> list[tuple[str, str]]:
        return sorted((k, v) for k, v in self._environ.items() if k.upper().endswith(_PLACES))

    def _of_weights(self, name: str) -> str:
        from stretto.adapters.models.local.catalog import PREFIX, is_own_file, weights_named

        if is_own_file(name):
            path = Path(name.removeprefix(PREFIX)).expanduser().resolve()
            return f"{PREFIX}{path} {_stamp(path)}"
        try:
            weights = weights_named(name)
        except StrettoError:
            return name
        return f"{weights.model} {weights.sha256}"

    def _of_command(self, name: str) -> str:
        from stretto.adapters.models.cli.names import NamedCommand, read_name

        asked = read_name(name)
        if isinstance(asked, str):
            return name
        words = asked.words if isinstance(asked, NamedCommand) else (asked.cli.name,)
        given = self._variables(self._settings.bash.environment)
        return f"{name} {_digest([*self._stamps(words), given])}"


def _named_variables(entry: Mapping[str, Json]) -> set[str]:
    """Those that a server is started with: `${NAME}` in its settings."""
    from stretto.adapters.tools.mcp_config import VARIABLE

    return set(VARIABLE.findall(json.dumps([entry.get("env"), entry.get("headers")])))


def _stamp(path: Path) -> str:
    """Whether a file is still the one it was, without reading gigabytes."""
    try:
        stat = path.stat()
    except (OSError, ValueError):  # a word that is no path
        return ""
    return f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ctime_ns}-{stat.st_ino}"


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]
