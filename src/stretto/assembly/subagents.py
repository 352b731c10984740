"""Open the runner of subagents: models, tools, and agents that are other programs."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import structs

from stretto.assembly.identity import MachineIdentities
from stretto.assembly.playbook_choice import make_load_tool
from stretto.config.settings import Settings, is_true
from stretto.problems.errors import InvalidConfig, StrettoError
from stretto.text.short import kind_of
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.names import tool_name

if TYPE_CHECKING:
    from stretto.adapters.models.named import Maker, NamedModels
    from stretto.adapters.tools.mcp_config import McpServer
    from stretto.adapters.tools.search_endpoint import SearchEndpoint
    from stretto.adapters.tools.toolbox import ToolSettings
    from stretto.agents.conversation import LeadTurn
    from stretto.agents.functions import AnsweringRunner
    from stretto.assembly.plugins import Plugins
    from stretto.assembly.project import Project
    from stretto.ports.model import Model
    from stretto.ports.runner import AttemptRequest, AttemptResult, Runner, Witness
    from stretto.workspaces.sandbox.sandbox import Setting


# Asks the user whether weights may be fetched.
Ask: TypeAlias = Callable[[str], bool]
_in_use: list[asyncio.AbstractEventLoop] = []  # one entry for each runner that is open


@asynccontextmanager
async def open_subagents(
    chosen: ModelSelection,
    project: "Project",
    ask: Ask | None = None,
    lead: "LeadTurn | None" = None,
) -> AsyncIterator["AnsweringRunner"]:
    from stretto.adapters.models.local.catalog import is_tiny
    from stretto.adapters.models.model_names import ModelName, resolve_name
    from stretto.adapters.tools.toolbox import StandardToolbox
    from stretto.agents.subagent import Subagents

    settings, environ = project.settings, project.environ

    def full_name(name: str) -> str | None:
        meant = resolve_name(name, environ)
        return meant.name if isinstance(meant, ModelName) else name

    toolbox = StandardToolbox(
        tool_settings(settings),
        environ,
        functions=project.functions.tools,
        load_playbook=partial(make_load_tool, settings),
    )
    async with open_models(chosen, project, ask) as models:
        try:
            yield Subagents(
                structs.replace(
                    chosen, judge=settings.judge, resolve_name=full_name, is_too_small=is_tiny
                ),
                models,
                toolbox,
                _OnUse(partial(_open_cli, chosen, project)),
                project.redactor,
                partial(_attempt_warnings, project),
                retries=settings.model_retries,
                identities=MachineIdentities(settings, environ, project.functions),
                lead=lead,
            )
        finally:
            await toolbox.close()


def _open_cli(chosen: ModelSelection, project: "Project") -> "Runner":
    from stretto.adapters.models.cli.runner import CliRunner

    settings, environ = project.settings, project.environ
    return CliRunner(
        lambda words: may_run_command(words, chosen, settings, environ),
        environ,
        passes=settings.bash.environment,
        trusts_project=settings.is_trusted,
        redactor=project.redactor,
        writable=settings.steps_write,
    )


def _attempt_warnings(project: "Project", request: "AttemptRequest", model: str) -> Iterator[str]:
    """What the report of an attempt must say, because it cannot be seen in its answer."""
    from stretto.adapters.tools.search_endpoint import search_fault

    settings = project.settings
    names = {tool_name(tool) for tool in request.tools}
    if "Bash" in names and settings.sandbox == "off":
        yield "the sandbox is off: Bash ran with all the rights of this user"
    if "WebSearch" in names:
        fault = search_fault(model, search_endpoint(settings), project.environ)
        if fault:
            yield f"WebSearch cannot be used: {fault}"


class _OnUse:
    """A runner that is made when it is first used: few runs ask another program."""

    def __init__(self, make: "Callable[[], Runner]") -> None:
        self._make = make
        self._runner: Runner | None = None

    async def run(self, request: "AttemptRequest", witness: "Witness") -> "AttemptResult":
        self._runner = self._runner or self._make()
        return await self._runner.run(request, witness)


@asynccontextmanager
async def open_models(
    chosen: ModelSelection, project: "Project", ask: Ask | None = None
) -> AsyncIterator["NamedModels"]:
    from stretto.adapters.models.http_client import close_clients

    loop = asyncio.get_running_loop()
    _in_use.append(loop)
    try:
        yield named_models(chosen, project, ask)
    finally:
        # Connections belong to the event loop, local models to the process: who is last closes them.
        _in_use.remove(loop)
        if loop not in _in_use:
            await close_clients()
        if not _in_use:
            _close_local()


def named_models(
    chosen: ModelSelection, project: "Project", ask: Ask | None = None
) -> "NamedModels":
    from stretto.adapters.models.named import NamedModels
    from stretto.adapters.models.prices import PriceList

    settings, environ = project.settings, project.environ

    async def local(name: str) -> "Model":
        # A path is the user's to name; a recipe names models, not files on this machine.
        is_users_own = name in (chosen.override, chosen.default, settings.judge)
        return await asyncio.to_thread(_local_model, name, settings, environ, is_users_own, ask)

    own = {"embedded": local, "local": local}
    prices = PriceList(settings.home / "prices.json")
    return NamedModels(environ, _Makers(own, project.plugins, environ), prices)


class _Makers(Mapping[str, "Maker"]):
    """Who makes a model, by what its name begins with: this package, or an installed one."""

    def __init__(
        self, own: "Mapping[str, Maker]", plugins: "Plugins", environ: Mapping[str, str]
    ) -> None:
        self._own = own
        self._plugins = plugins
        self._environ = environ

    def __getitem__(self, head: str) -> "Maker":
        if head in self._own:
            return self._own[head]
        if not self._plugins.has("stretto.models", head):
            raise KeyError(head)
        return self._make

    async def _make(self, name: str) -> "Model":
        return make_installed(name, self._plugins, self._environ)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._plugins.names("stretto.models")))

    def __len__(self) -> int:
        return len(list(iter(self)))


def make_installed(name: str, plugins: "Plugins", environ: Mapping[str, str]) -> "Model":
    """The model that an entry point makes. Raises InvalidConfig."""
    make = plugins.load("stretto.models", name.partition(":")[0])
    try:
        made = make(name, environ)
    except StrettoError:
        raise
    except (Exception, SystemExit) as error:  # whatever a stranger's package does
        said = f"the model {name} cannot be made: {type(error).__name__}: {error}"
        raise InvalidConfig(said) from error
    theirs = sys.modules.get("pydantic_ai.models")  # not loaded: it is no model of theirs
    if theirs is not None and isinstance(made, theirs.Model):
        from stretto.adapters.models.pydantic_model import PydanticAIModel

        return PydanticAIModel(made)
    if not callable(getattr(made, "ask", None)):
        said = f"it gave {kind_of(made)}, which is no model"
        raise InvalidConfig(f"the model {name} cannot be made: {said}")
    return cast("Model", made)


def may_run_command(
    words: tuple[str, ...], chosen: ModelSelection, settings: Settings, environ: Mapping[str, str]
) -> bool:
    """Whether the model `cli:COMMAND` may start its command. The command is not confined, and a recipe
    may come from somebody else. So the user must have named it, in a flag or in the settings, or
    must trust all that is here."""
    from shlex import join

    if is_true(environ.get("STRETTO_TRUST")):
        return True
    named = (chosen.override, chosen.default, settings.judge)
    if any(name and name.startswith("cli:") and _command_words(name) == words for name in named):
        return True
    return join(words) in settings.cli_commands or words[0] in settings.cli_commands


def is_for_the_user_to_name(model: str, settings: Settings) -> bool:
    """Whether this is a command or a file of this machine that the settings do not name."""
    from shlex import join

    from stretto.adapters.models.local.catalog import is_own_file

    if model in (settings.model, settings.judge):
        return False
    words = _command_words(model) if model.startswith("cli:") else ()
    if words:
        return join(words) not in settings.cli_commands and words[0] not in settings.cli_commands
    return is_own_file(model)


def tool_settings(settings: Settings) -> "ToolSettings":
    from stretto.adapters.tools.mcp_config import read_servers
    from stretto.adapters.tools.toolbox import ToolSettings

    servers, faults = read_servers(settings.mcp_servers)
    if faults:
        said = "; ".join(f"mcp_servers.{fault.server}: {fault.message}" for fault in faults)
        raise InvalidConfig(said, hint=faults[0].hint)
    servers = {name: _guard_server(server, settings) for name, server in servers.items()}
    return ToolSettings(
        project=settings.project,
        protected=settings.protected,
        hidden=settings.hidden,
        writable=settings.steps_write,
        search=search_endpoint(settings),
        mcp_servers=servers,
        allow_private=frozenset(settings.web_allow_private),
        bash_environment=settings.bash.environment,
        bash_network=settings.bash.network,
        sandbox=cast("Setting", settings.sandbox),
        carry=settings.workspace.carry,
    )


def _guard_server(server: "McpServer", settings: Settings) -> "McpServer":
    """The same server, refused as soon as its files differ from those that were trusted."""
    programs = settings.programs
    if programs is None or server.name not in programs.places:
        return server
    trusted = programs.digest(server.name)
    return replace(server, is_unchanged=lambda: programs.digest(server.name) == trusted)


def search_endpoint(settings: Settings) -> "SearchEndpoint | None":
    from stretto.adapters.tools.search_endpoint import SearchEndpoint, SearchKind

    search = settings.search
    if search is None:
        return None
    return SearchEndpoint(search.url, cast(SearchKind, search.kind), search.key_variable)


def _local_model(
    name: str,
    settings: Settings,
    environ: Mapping[str, str],
    is_users_own: bool,
    ask: Ask | None,
) -> "Model":
    from stretto.adapters.models.local.catalog import Shelf, models_folder
    from stretto.adapters.models.local.model import LocalModel
    from stretto.adapters.models.local.pull import ensure_weights

    shelf = Shelf(models_folder(settings.home, environ))
    loadable = ensure_weights(
        name, shelf, may_ask=ask is not None, may_name_a_file=is_users_own, ask=ask
    )
    return LocalModel(loadable)


def _close_local() -> None:
    # A local model was used only if its module is loaded; importing it now would cost time.
    if (process := sys.modules.get("stretto.adapters.models.local.process")) is not None:
        process.close_all()


def _command_words(name: str) -> tuple[str, ...]:
    from stretto.adapters.models.cli.names import NamedCommand, read_name

    asked = read_name(name)
    return asked.words if isinstance(asked, NamedCommand) else ()
