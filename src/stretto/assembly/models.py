"""Which models a run asks, and the runner that asks them.

Whatever would keep a run from working is found out here, before it starts: a function that is not
given, a model that cannot be asked, a tool that cannot be used.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stretto.assembly.identity import MachineIdentities
from stretto.assembly.project import SCRIPTED, Project
from stretto.assembly.subagents import tool_settings
from stretto.problems import Problem
from stretto.problems.errors import NotReady
from stretto.problems.render import count
from stretto.registry.folders import once
from stretto.text.short import listed
from stretto.vocabulary.models import COMMAND_MODEL, ModelSelection
from stretto.vocabulary.names import COMMAND_AGENT, AgentId

if TYPE_CHECKING:
    from stretto.adapters.tools.command_runner import CommandRunner
    from stretto.agents.functions import AnsweringRunner
    from stretto.assembly.project import Project
    from stretto.plan.model import Plan
    from stretto.ports.runner import AttemptRequest, AttemptResult, Identified, Witness
    from stretto.vocabulary.models import Setup
    from stretto.workspaces.sandbox.sandbox import Setting

SANDBOX_OFF = "the sandbox is off: the command ran with all the rights of this user"


class WithCommands:
    """A runner that runs commands, and leaves all else to `others`. What runs them is made for the
    first of them: few recipes have any."""

    def __init__(self, project: "Project", others: "AnsweringRunner") -> None:
        self._project = project
        self._others = others
        self.acceptance = others.acceptance

    def identify(self, models: Collection[str], tools: Collection[str]) -> "Setup":
        asked = self._commands if COMMAND_MODEL in models else cast("Identified", self._others)
        return asked.identify(models, tools)

    async def run(self, request: "AttemptRequest", witness: "Witness") -> "AttemptResult":
        runner = self._others if request.command is None else self._commands
        return await runner.run(request, witness)

    @cached_property
    def _commands(self) -> "CommandRunner":
        from stretto.adapters.tools.command_runner import CommandRunner
        from stretto.adapters.tools.toolbox import StandardToolbox

        settings, environ = self._project.settings, self._project.environ
        return CommandRunner(
            StandardToolbox(tool_settings(settings), environ),
            self._others,
            self._project.redactor,
            lambda: MachineIdentities(settings, environ).of_tool("Bash"),
            SANDBOX_OFF if settings.sandbox == "off" else "",
        )


def command_problems(plan: "Plan", project: "Project") -> tuple[Problem, ...]:
    """Why the commands of a plan cannot run here: found out before anything starts."""
    if COMMAND_AGENT not in plan.agents:
        return ()
    return tuple(_problems(plan, project))


def _problems(plan: "Plan", project: "Project") -> list[Problem]:
    steps = listed([step.id for step in plan.steps if step.runs_command])
    return place_problems(project, steps)


def place_problems(project: "Project", whose: str) -> list[Problem]:
    """Why no command may run here. `whose`: the steps that would run one."""
    from stretto.workspaces.sandbox.sandbox import NoSandbox, find_sandbox

    settings = project.settings
    found = []
    if settings.is_in_home:
        found.append(
            Problem(
                "RUN008",
                f"a command ({whose}) would work on your home folder, and so on all your files",
                hint="go to the folder that the run is about, or make one: mkdir work && cd work",
            )
        )
    if settings.sandbox == "off":
        return found
    sandbox = find_sandbox(cast("Setting", settings.sandbox), settings.steps_write)
    if isinstance(sandbox, NoSandbox):
        hint = "; or ".join(each.fix for each in sandbox.missing)
        said = str(sandbox).replace("so Bash is refused", f"so commands are refused ({whose})", 1)
        found.append(Problem("RUN007", said, hint=hint))
    return found


# For a user who has nothing set up: each line is a way, and the command for it.
_CHOICES = """no key is set, Ollama does not answer, no model is here. The choices:
      export OPENAI_API_KEY=…            or the key of another provider{package}
      stretto models pull qwen2.5-coder  on this machine, 1.1 GB
      stretto models pull smollm2        the same, tiny: 98 MB, for a look
      --model cli:claude                 or codex, gemini, opencode, goose
      --model scripted:FILE              no model: answers from a file
    stretto doctor shows what is here."""
_PACKAGE = """
      pip install 'stretto[local]'       for local models; then one of these:"""

if TYPE_CHECKING:
    from stretto.agents.conversation import LeadTurn
    from stretto.plan.model import Plan
    from stretto.ports.runner import Runner


def choose_script(
    project: Project, plan: "Plan", model: str | None, is_delegated: bool = False
) -> ModelSelection | None:
    """What `choose_models` finds without asking any model. None: the plan is not answered by a script.

    Raises NotReady.
    """
    if missing := project.functions.problems(plan) or command_problems(plan, project):
        raise _not_ready(plan, missing)
    if model is None or not model.startswith(SCRIPTED):
        return None
    _check_script(_script_of(model), plan, is_delegated)
    return ModelSelection(model, model)


async def choose_models(
    project: Project,
    plan: "Plan",
    model: str | None,
    is_delegated: bool = False,
    tell: Callable[[str], None] | None = None,
) -> ModelSelection:
    """Raises NotReady with all that would keep the plan from running."""
    if (scripted := choose_script(project, plan, model, is_delegated)) is not None:
        return scripted
    from stretto.adapters.models.local.catalog import EMBEDDED, SMOLLM2, TINY_NOTICE
    from stretto.assembly.readiness import needs_default

    name, why = model or project.settings.model, ""
    is_asked = name is not None or needs_default(plan, project.environ)
    if not is_asked:
        name = EMBEDDED  # any name does, since no agent asks this model
    elif name is None:
        found = await default_model(project)
        name, why = found.default, " ".join(found.notes)
    assert name is not None
    problems, warnings = await _look(project, plan, name, model, tell)
    if problems:
        if why and {each.path for each in problems} == {SMOLLM2.name}:
            # Nobody has named a model, and not even the tiny one is here.
            raise _not_ready(plan, [replace(each, hint="") for each in problems], _choices())
        raise _not_ready(plan, problems)
    lines = (why, TINY_NOTICE if is_asked and name == EMBEDDED else "", *warnings)
    return ModelSelection(name, model, notes=tuple(filter(None, lines)))


def _choices() -> str:
    return _CHOICES.format(package="" if find_spec("xllamacpp") else _PACKAGE)


def _not_ready(plan: "Plan", problems: Sequence[Problem], hint: str = "") -> NotReady:
    return NotReady(f"{plan.name} cannot run here: {count(problems)}", problems, hint=hint)


@lru_cache(maxsize=16)  # making a path takes longer than asking whether its file has changed
def _script_of(model: str) -> Path:
    return Path(model.removeprefix(SCRIPTED))


def _check_script(file: Path, plan: "Plan", is_delegated: bool) -> None:
    from stretto.adapters.models.scripted import check_names, read_script

    if not once(("script is there", file), file.exists):
        hint = "a script holds the answers, such as: default: An answer."
        raise _not_ready(plan, [Problem("RUN001", f"there is no script {file}", hint=hint)])
    script = read_script(file)
    if not is_delegated:
        check_names(script, plan)


async def _look(
    project: Project,
    plan: "Plan",
    default: str,
    override: str | None,
    tell: Callable[[str], None] | None,
) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """What would keep the plan from working, and what its agents go without. What takes time is
    looked at only where nothing else is wrong."""
    from stretto.assembly.readiness import first_models, readiness
    from stretto.assembly.tool_check import check_tools

    ready = readiness(plan, default, override, project)
    if ready.problems:
        return ready.problems, ready.warnings
    models = first_models(plan, default, override, project.environ)
    tools = await check_tools(plan, models, project, tell)
    problems = tools.problems or tuple([each async for each in _absent_servers(models, project)])
    return problems, (*ready.warnings, *tools.warnings)


async def _absent_servers(
    models: Mapping[AgentId, str], project: Project
) -> AsyncIterator[Problem]:
    """Ollama runs on the user's own machine, so asking it costs nothing."""
    from stretto.adapters.models.default_model import ollama_fault

    for model in dict.fromkeys(models.values()):
        if not model.startswith("ollama:"):
            continue
        fault = await ollama_fault(model, project.environ)
        if fault is not None:
            yield Problem("RUN001", fault.says, hint=fault.hint)


async def default_model(project: Project) -> ModelSelection:
    """The model for agents that name none, and why it is that one.

    Raises InvalidConfig when OPENAI_BASE_URL is set and does not say what it serves.
    """
    from stretto.adapters.models.default_model import find_default_model
    from stretto.adapters.models.local.catalog import QWEN_CODER, Shelf, models_folder

    def pulled() -> str | None:
        shelf = Shelf(models_folder(project.settings.home, project.environ))
        return None if shelf.state(QWEN_CODER) == "absent" else QWEN_CODER.model

    if (named := project.settings.model) is not None:
        return ModelSelection(
            named, notes=(f"using {named}: the settings or STRETTO_MODEL name it",)
        )
    return await find_default_model(project.environ, pulled=pulled)


@asynccontextmanager
async def open_runner(
    project: Project, chosen: ModelSelection, lead: "LeadTurn | None" = None
) -> AsyncIterator["Runner"]:
    """What does the work of agents, while it is open."""
    from stretto.agents.redacted import RedactedRunner
    from stretto.assembly.playbook_choice import CountedRunner

    functions, redactor = project.functions, project.redactor
    if chosen.default.startswith(SCRIPTED):
        from stretto.adapters.clock import SystemClock
        from stretto.adapters.models.scripted import ScriptedRunner, read_script

        script = read_script(_script_of(chosen.default))
        scripted = ScriptedRunner(script, SystemClock(), lead, redactor)
        runner = WithCommands(project, scripted)
        yield CountedRunner(RedactedRunner(functions.run_by(runner), redactor), project.settings)
        return
    from stretto.assembly.subagents import open_subagents

    async with open_subagents(chosen, project, lead=lead) as subagents:
        runner = WithCommands(project, subagents)
        yield CountedRunner(RedactedRunner(functions.run_by(runner), redactor), project.settings)
