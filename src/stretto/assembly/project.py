"""One project as one user sees it: its settings, agents and recipes, and the plans made of them."""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, structs

from stretto.agents.agent_files import (
    AGENT_SUFFIXES,
    AgentFile,
    ListedAgent,
    list_agents,
    load_catalog,
)
from stretto.assembly.functions import Functions
from stretto.assembly.plugins import Plugins
from stretto.assembly.recipe_shelf import RecipeShelf, is_named_as_file
from stretto.config.settings import Settings, load_settings
from stretto.config.trust import TrustStore, describe_files
from stretto.plan.catalog import Catalog
from stretto.plan.check import Checked, Problems, check
from stretto.plan.inputs import bind
from stretto.problems import Problem
from stretto.problems.errors import (
    InvalidInputs,
    InvalidRecipe,
    InvalidUsage,
    NotFound,
    NotTrusted,
)
from stretto.problems.render import count
from stretto.recipe.model import Budget, Recipe
from stretto.recipe.read import read_recipe, read_recipe_file
from stretto.registry.folders import Folder, Stamp, once, stamp
from stretto.text.short import did_you_mean, kind_of, listed
from stretto.vocabulary.json_value import DEEPEST, Json, is_deeper
from stretto.vocabulary.models import ModelSelection, is_function
from stretto.vocabulary.names import COMMAND_AGENT, AgentId, tool_name

if TYPE_CHECKING:
    from stretto.adapters.tools.functions import AnyFunctionTool
    from stretto.execution.history import History
    from stretto.execution.runs import Start
    from stretto.plan.model import Plan
    from stretto.registry.workflows import Entry, Workflows
    from stretto.text.redaction import Redactor
from stretto.plan.inputs import FindFile, Misfit
from stretto.recipe.model import Input


def finder_in(workspace: Path) -> FindFile:
    """What `plan.inputs` asks for the file that an input of type file_path names."""
    return lambda declared, written: _find(declared, written, workspace.resolve())


def _find(declared: Input, written: str, root: Path) -> str | Misfit:
    try:
        found = (root / written).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return Misfit(
            "RCP305",
            f"input '{declared.name}': there is no file '{written[:200]}'",
            f"paths are relative to the workspace, {root}",
        )
    if not found.is_relative_to(root):
        return Misfit(
            "RCP305",
            f"input '{declared.name}': '{written[:200]}' is outside the workspace",
            f"paths are relative to the workspace, {root}",
        )
    if found.is_dir():
        return Misfit(
            "RCP305",
            f"input '{declared.name}': '{written[:200]}' is a folder",
            "name a file in it",
        )
    return found.relative_to(root).as_posix()


# A saved recipe's name, a file's path, the recipe's own text, or its content as plain values.
RecipeSource: TypeAlias = str | Path | Mapping[str, object] | Recipe
SCRIPTED = "scripted:"
NO_BUDGET = Budget()
_MOST_PLANS = 100  # that are kept for the next run of the same recipe
_A_RECIPE = "give the name of a saved one, a path, its text, or a dict"


class Project:
    """One project as one user sees it."""

    def __init__(
        self,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        tools: "Mapping[str, AnyFunctionTool] | None" = None,
        agents: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        """`settings`: used as they are, in place of what the files of the folder say. `tools` and
        `agents`: Python functions."""
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.settings = settings or load_settings(folder or _current_folder(), self.environ)
        self._catalog: tuple[Stamp, Catalog] | None = None
        self._plans: OrderedDict[int, _MadePlan] = OrderedDict()
        self.plugins = Plugins(self.settings)
        self.functions = Functions(tools or {}, agents or {}, self.plugins, self._own_agent)

    @cached_property
    def workflows(self) -> "Workflows":
        from stretto.registry.workflows import Workflows  # not for a recipe that is named as a file

        return Workflows(
            (
                Folder(self.settings.user_workflows_dir, "user"),
                Folder(self.settings.workflows_dir, "project", self._may_shadow),
            ),
            self.catalog,
            self.settings.limits,
            self.display_path,
        )

    @property
    def _may_shadow(self) -> bool:
        # A folder other than the usual one was named by the user or by trusted settings.
        is_users_choice = self.settings.workflows_dir != self.settings.project / "workflows"
        return self.settings.may_shadow or is_users_choice

    def catalog(self) -> Catalog:
        """The same one as long as no agent file changes."""
        return once(("agents", id(self)), self._catalog_now)

    def _catalog_now(self) -> Catalog:
        folders = (Folder(path, "") for path in self.settings.agents_dirs)
        now, known = stamp(folders, AGENT_SUFFIXES), self._catalog
        if known is not None and known[0] == now:
            return known[1]
        found = load_catalog(
            self.settings.agents_dirs, self.settings.project, self.functions.tool_names
        )
        catalog = structs.replace(self.functions.add_to(found), recipes=self._shelf)
        if now is not None:
            self._catalog = (now, catalog)
        return catalog

    @cached_property
    def _shelf(self) -> RecipeShelf:
        return RecipeShelf(self.settings, lambda: self.workflows, self.display_path)

    def agents(self) -> list[ListedAgent]:
        """Every agent file that counts or is shadowed here, broken ones too; and what packages add."""
        settings = self.settings
        layers = {
            settings.home / "agents": "user",
            settings.project / ".claude" / "agents": ".claude",
            settings.project / "agents": "project",
        }
        folders = (Folder(path, layers.get(path, "settings")) for path in settings.agents_dirs)
        found = list_agents(folders, settings.project, self.functions.tool_names)
        names, known = {each.name for each in found}, self.catalog().agents
        for id in map(AgentId, self.plugins.added("stretto.agents")):
            if id not in names:
                found.append(ListedAgent(AgentFile(id, "an installed one", known[id]), "package"))
        return sorted(found, key=lambda each: each.name)

    def display_path(self, file: Path) -> str:
        """A path as a person would type it here."""
        try:
            return str(file.resolve().relative_to(Path.cwd()))
        except (ValueError, FileNotFoundError):
            return str(file)

    def read(self, source: RecipeSource | None) -> tuple[Recipe, tuple[str, ...]]:
        """The recipe, its problems inside it; and what the user should know about the choice."""
        if isinstance(source, str | Path) and not str(source).strip(". "):
            raise InvalidUsage("the recipe is empty", hint=_A_RECIPE)
        if isinstance(source, Recipe):
            return source, ()
        if isinstance(source, Path):
            return read_recipe_file(source, self.settings.limits, str(source)), ()
        if isinstance(source, Mapping):
            return self.recipe_from_text(dump_values(source, "the recipe")), ()
        if not isinstance(source, str):
            raise InvalidUsage(f"a recipe cannot be {kind_of(source)}", hint=_A_RECIPE)
        if "\n" in source or source.lstrip().startswith("{"):
            return self.recipe_from_text(source), ()
        return self.read_named(source)

    def read_named(self, name_or_file: str) -> tuple[Recipe, tuple[str, ...]]:
        """A saved recipe by its name, or any file. Raises NotFound."""
        if (entry := self.saved(name_or_file)) is not None:
            return entry.recipe, self.notices_about(entry)
        path = Path(name_or_file)
        if is_named_as_file(name_or_file) or _is_there(path):
            return read_recipe_file(path, self.settings.limits, name_or_file), ()
        raise self.unknown_workflow(name_or_file)

    def unknown_workflow(self, name: str) -> NotFound:
        known = list(dict.fromkeys(each.name for each in self.workflows.entries()))
        hint = did_you_mean(name, known) or f"stretto list shows them: {listed(known)}"
        return NotFound(f"there is no workflow and no file '{name}'", hint=hint)

    def notices_about(self, entry: "Entry") -> tuple[str, ...]:
        """Whether the folder has a recipe of this name that is not used."""
        if entry.passed_over is None:
            return ()
        return (
            f"{self.display_path(entry.passed_over)} is not used: '{entry.name}' means the {entry.layer} "
            "recipe until you trust this folder (stretto trust), or name the file",
        )

    def open_plan(self, source: RecipeSource | None) -> "tuple[Plan, tuple[str, ...]]":
        """Raises InvalidRecipe and NotFound."""
        recipe, notices = self.read(source)
        plan = self.plan(recipe)
        named = {*plan.agents, *(tool_name(t) for each in plan.agents.values() for t in each.tools)}
        return plan, (*notices, *self.plugins.unused(named))

    def saved(self, name: str) -> "Entry | None":
        """The saved recipe of that name, if it is a name."""
        return None if is_named_as_file(name) else self.workflows.get(name)

    def recipe_from_text(self, text: str | bytes, shown_as: str = "") -> Recipe:
        return read_recipe(text, shown_as, self.settings.limits)

    def check(self, recipe: Recipe) -> Checked | Problems:
        return check(recipe, self.catalog(), self.settings.limits)

    def plan(self, recipe: Recipe) -> "Plan":
        # Imported on use: checking needs none of what a plan is made of.
        from stretto.plan.build import build
        from stretto.plan.model import PlannedWorkflow
        from stretto.plan.prepare import RunPolicy, prepare

        catalog = self.catalog()
        if (made := self._plans.get(id(recipe))) is not None and made.is_for(recipe, catalog):
            return made.plan
        limits, width = self.settings.limits, self.settings.max_concurrency
        built = build(recipe, catalog, limits, width)
        if isinstance(built, Problems):
            message = (
                f"{recipe.source.file or recipe.name or 'the recipe'} has {count(built.problems)}"
            )
            raise InvalidRecipe(message, built.problems)
        plan = prepare(built, RunPolicy(budget=self.settings.budget))
        if not any(isinstance(step.work, PlannedWorkflow) for step in plan.steps):
            # Those that it would use are files of their own, and may change by themselves.
            self._plans[id(recipe)] = _MadePlan(recipe, catalog, plan)
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        return plan

    def problems_of(self, text: str, shown_as: str = "") -> tuple[Problem, ...]:
        """All that keeps a text from being a recipe that can run here."""
        try:
            self.plan(self.recipe_from_text(text, shown_as))
        except InvalidRecipe as error:
            return error.problems
        return ()

    def _own_agent(self, name: str) -> Callable[..., object] | None:
        from stretto.lead.drafts import CHECKER, checker

        return (
            checker(partial(self.problems_of, shown_as="draft.yaml")) if name == CHECKER else None
        )

    def with_copy_warnings(self, plan: "Plan", model: str | None) -> "Plan":
        """The plan, with a warning for what the copies of its writers will leave out."""
        if not self.workspace(model, plan):
            return plan

        from stretto.assembly.copies import LEFT_OUT, copy_warnings

        # A stored plan still has the warnings of its first run.
        before = (each for each in plan.warnings if each.code != LEFT_OUT)
        warnings = copy_warnings(plan, self.settings, model)
        return structs.replace(plan, warnings=(*before, *warnings))

    def readmit(self, history: "History", permission: str | None = None) -> str:
        """Check that the rest of a recorded run may go on with the permission and trust of today.

        Gives the permission with which the run goes on. Raises PermissionDenied and NotTrusted.
        """

        from stretto.plan.prepare import RunPolicy, prepare

        self.check_trust(history)
        state = history.state
        left = [step for step in state.plan.steps if state.steps[step.id].ended_at is None]
        permission = permission or self.settings.permission
        prepare(structs.replace(state.plan, steps=tuple(left)), RunPolicy(permission))
        return permission

    def check_trust(self, history: "History") -> None:
        """Raises NotTrusted when a run began with what this folder brought and is no longer trusted."""
        if history.started.trusted and not self.settings.is_trusted:
            raise NotTrusted(
                f"run {history.started.run_id} began with the settings and agents of "
                f"{self.settings.project}, which changed since you trusted them",
                hint=f"read them, then: stretto trust {self.settings.project}",
            )

    def model(self, named: str | None) -> str | None:
        """The model that overrides those of all agents, as the journal keeps it: the path of a
        script is absolute, so that it means the same wherever the run is resumed.

        A script overrides also where the settings name it; any other model of the settings is only
        for agents that name none.
        """
        model = named or self.settings.model
        if model is not None and model.startswith(SCRIPTED):
            script = Path(model.removeprefix(SCRIPTED))
            return once(("script", script), lambda: f"{SCRIPTED}{script.resolve()}")
        return named

    def named_models(self, override: str | None) -> ModelSelection:
        """The models that are named, without looking which of them can be asked."""
        from stretto.adapters.models.local.catalog import is_tiny

        settings = self.settings
        return ModelSelection(settings.model or "", override, settings.judge, is_too_small=is_tiny)

    @property
    def trust_notice(self) -> str:
        """What the folder brings along and is not used, as long as the user does not trust it."""
        settings = self.settings
        if settings.is_trusted:
            return ""
        is_known = TrustStore(settings.home).was_trusted(settings.project)
        why = ": changed since you trusted it" if is_known else " until you trust it"
        brings = describe_files(settings.steering, settings.project)
        return f"{brings} in {settings.project}: not used{why}"

    def offers(self) -> tuple[str, ...]:
        """What the folder would bring if it were trusted: programs that start, and agents."""
        offered = self.settings.offered
        if offered is None:
            return ()
        used = self.settings
        servers = (each for each in offered.mcp_servers if each not in used.mcp_servers)
        commands = (each for each in offered.cli_commands if each not in used.cli_commands)
        agents = self._offered_agents()
        return (
            *(
                f"starts MCP server '{name}': {_start_of(offered.mcp_servers[name])}"
                for name in servers
            ),
            *(f"lets agents start the command: {each}" for each in commands),
            *([f"agents: {listed(agents, 20)}"] if agents else []),
        )

    def _offered_agents(self) -> tuple[str, ...]:
        offered = self.settings.offered
        if offered is None:
            return ()
        dirs = (each for each in offered.agents_dirs if each not in self.settings.agents_dirs)
        found = list_agents(
            (Folder(path, "offered") for path in dirs),
            self.settings.project,
            self.functions.tool_names,
        )
        return tuple(each.name for each in found if each.layer == "offered")

    def check_namesakes(self, plan: "Plan") -> None:
        """Raises NotTrusted where an agent of this folder is not used, and another one of its name
        would be in its place."""
        # Agents that recipes define themselves are not the folder's: neither this recipe's own nor
        # those of a recipe that a workflow step uses.
        used = {each.id for each in plan.agents.values() if not each.is_local}
        meant = [id for id in self._offered_agents() if id in used]
        if meant:
            raise NotTrusted(
                f"this folder has its own {listed(meant)}, and is not trusted: another agent of "
                "that name would work in its place",
                hint="read it, then: stretto trust (--trust for one run); or rename it",
            )

    @cached_property
    def redactor(self) -> "Redactor":
        from stretto.text.redaction import Redactor

        return Redactor(self.environ)

    def start(self, plan: "Plan", inputs: Mapping[str, Json], model: str | None) -> "Start":
        """What a new run of a prepared plan begins with, without the secrets of the environment."""
        from stretto.execution.runs import Start

        self._check_folder()
        kept, given = self.without_secrets(plan, inputs)
        return Start(
            kept,
            given,
            model=model,
            workspace=self.workspace(model, plan),
            project=str(self.settings.project),
            trusted=self.settings.digest if self.settings.is_trusted else "",
        )

    def _check_folder(self) -> None:
        """Raises InvalidUsage where a journal, which is UTF-8, could not name the folder."""
        try:
            str(self.settings.project).encode()
        except UnicodeEncodeError:
            raise InvalidUsage(
                f"no run can start in {str(self.settings.project)!a}: the name is not UTF-8",
                hint="rename the folder",
            ) from None

    def refuse_secrets(self, what: str, texts: Mapping[str, object]) -> None:
        """For what is kept as it is given, and begins runs later. Raises InvalidInputs."""
        for part, value in texts.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)  # fmt: skip
            if names := self.redactor.named(text):
                said = f"{part} must not hold the value of {listed(names)}: {what} is kept"
                raise InvalidInputs(said, hint="leave it out")

    def tell_of_secrets(
        self, plan: "Plan", inputs: Mapping[str, Json], kept: Collection[str] = ()
    ) -> "Plan":
        """The plan, with a warning for each secret that the run would be given. `kept`: inputs with
        the values of an earlier run. Raises InvalidInputs where a program would need the secret."""
        if not (kept or self.redactor.has_secrets):
            return plan
        from stretto.assembly.replaced_secrets import tell_of_secrets

        return tell_of_secrets(plan, inputs, self.redactor, kept)

    def without_secrets(
        self, plan: "Plan", inputs: Mapping[str, Json]
    ) -> "tuple[Plan, dict[str, Json]]":
        """As a run keeps them."""
        given = {name: self.redactor.json(value) for name, value in inputs.items()}
        return self._without_secrets(plan), given

    def _without_secrets(self, plan: "Plan") -> "Plan":
        from msgspec import Raw

        from stretto.plan.model import decode_plan, encode_plan

        text = bytes(encode_plan(plan)).decode()
        if not self.redactor.named_in_plan(text):
            return plan
        return decode_plan(Raw(self.redactor.text(text)))

    def workspace(self, model: str | None, plan: "Plan") -> str:
        """The folder that a run works on. A scripted model touches nothing, so it needs none;
        commands and functions run whatever model is named."""
        is_scripted = model is not None and model.startswith(SCRIPTED)
        runs_code = COMMAND_AGENT in plan.agents or any(
            is_function(agent.model) for agent in plan.agents.values()
        )
        return str(self.settings.project) if runs_code or not is_scripted else ""

    def prepare(
        self,
        plan: "Plan",
        model: str | None,
        permission: str | None = None,
        workspace: str | None = None,
        budget: Budget = NO_BUDGET,
    ) -> "Plan":
        """The plan exactly as it will run here: with the user's permission and budget, and with
        the links of its workspace. Raises PermissionDenied.

        `workspace`: None for the project's own folder, empty where no step works on files.
        """
        from stretto.plan.prepare import RunPolicy, claimed_sets, lesser, prepare
        from stretto.workspaces.links import aliases_of_sets

        folder = self.workspace(model, plan) if workspace is None else workspace
        permission = permission or self.settings.permission
        policy = RunPolicy(permission, lesser(self.settings.budget, budget))
        links = aliases_of_sets(Path(folder), claimed_sets(plan)) if folder else None
        prepared = prepare(plan, policy, links)
        return self.with_copy_warnings(prepared, model) if folder else prepared

    def bind(
        self, plan: "Plan", inputs: Mapping[str, Json], workspace: str | None = None
    ) -> "Plan":
        """The plan with the sets and timeouts that its inputs say, and with what its sets mean in
        the workspace. Raises InvalidInputs. `workspace`: as in `prepare`."""
        from stretto.plan.bound_sets import bind_plan
        from stretto.plan.prepare import add_globs
        from stretto.workspaces.paths import globs_below

        bound, problems = bind_plan(plan, inputs, finder_in(self.settings.project))
        if problems:
            words = "; ".join(problem.message for problem in problems)
            raise InvalidInputs(f"{plan.name}: {words}", problems)
        folder = self.settings.project if workspace is None else Path(workspace)
        return bound if workspace == "" else add_globs(bound, partial(globs_below, folder))

    def inputs(self, plan: "Plan", given: Mapping[str, Json]) -> dict[str, Json]:
        given = {name: _copy_input(plan.name, name, value) for name, value in given.items()}
        values, problems = bind(plan.inputs, given, finder_in(self.settings.project))
        if problems:
            words = "; ".join(problem.message for problem in problems)
            raise InvalidInputs(f"{plan.name}: {words}", problems)
        return values


class _MadePlan(Struct, frozen=True):
    """A plan that was made before, and what it was made of: values that never change."""

    recipe: Recipe
    catalog: Catalog
    plan: "Plan"

    def is_for(self, recipe: Recipe, catalog: Catalog) -> bool:
        return self.recipe is recipe and self.catalog is catalog


def _start_of(server: Json) -> str:
    """How an MCP server is started, as it is written."""
    if not isinstance(server, dict):
        return "?"
    words = [server.get("command") or server.get("url"), *_words(server.get("args"))]
    return " ".join(map(str, words))


def _words(written: Json) -> list[Json]:
    return written if isinstance(written, list) else []


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        hint = "go to a folder that exists; in Python, name one: Stretto(folder)"
        raise NotFound("the current folder does not exist any more", hint=hint) from None


def dump_values(content: Mapping[str, object], what: str) -> str:
    """A recipe or a script given as plain values, on lines that its problems can point to."""
    try:
        return json.dumps(dict(content), indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "use text, numbers, true, false, None, lists and dicts only"
        raise InvalidUsage(f"{what} holds a value that is not JSON: {error}", hint=hint) from error


def _copy_input(workflow: str, name: str, value: Json) -> Json:
    """A copy of plain JSON, so that what the caller changes later does not reach the run."""
    try:
        copied: Json = json.loads(json.dumps(value))
        is_too_deep = is_deeper(copied)
    except RecursionError:
        is_too_deep = True
    except (TypeError, ValueError) as error:
        raise InvalidInputs(f"{workflow}: input '{name}' is not JSON: {error}") from error
    if is_too_deep:
        raise InvalidInputs(f"{workflow}: input '{name}' is nested more than {DEEPEST} levels deep")
    return copied


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False
