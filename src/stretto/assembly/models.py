"""Which models a run asks, and the runner that asks them.

Whatever would keep a run from working is found out here, before it starts: a function that is not
given, a model that cannot be asked, a tool that cannot be used.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.assembly.project import SCRIPTED, Project
from stretto.problems.errors import NotReady
from stretto.problems.render import count
from stretto.vocabulary.models import ModelSelection

if TYPE_CHECKING:
    from stretto.plan.model import Plan
    from stretto.ports.runner import Runner


async def choose_models(project: Project, plan: "Plan", model: str | None) -> ModelSelection:
    """Raises NotReady with all that would keep the plan from running."""
    missing = project.functions.problems(plan)
    if missing:
        raise NotReady(f"{plan.name} cannot run here: {count(missing)}", missing)
    from stretto.assembly.commands import command_problems

    if missing := command_problems(plan, project):
        raise NotReady(f"{plan.name} cannot run here: {count(missing)}", missing)
    if model is not None and model.startswith(SCRIPTED):
        from stretto.adapters.models.scripted import check_names, read_script

        check_names(read_script(Path(model.removeprefix(SCRIPTED))), plan)
        return ModelSelection(model, model)
    from stretto.adapters.models.local.catalog import EMBEDDED, TINY_NOTICE
    from stretto.assembly.readiness import first_models, needs_default, readiness
    from stretto.assembly.tool_check import check_tools

    name, why = model or project.settings.model, ""
    is_asked = name is not None or needs_default(plan, project.environ)
    if not is_asked:
        name = EMBEDDED  # any name does, since no agent asks this model
    elif name is None:
        found = await default_model(project)
        name, why = found.default, " ".join(found.notes)
    assert name is not None
    ready = readiness(plan, name, model, project)
    problems, warnings = ready.problems, ready.warnings
    if not problems:
        models = first_models(plan, name, model, project.environ)
        tools = await check_tools(plan, models, project)
        problems, warnings = tools.problems, (*warnings, *tools.warnings)
    if problems:
        raise NotReady(f"{plan.name} cannot run here: {count(problems)}", problems)
    lines = (why, TINY_NOTICE if is_asked and name == EMBEDDED else "", *warnings)
    return ModelSelection(name, model, notes=tuple(filter(None, lines)))


async def default_model(project: Project) -> ModelSelection:
    """The model for agents that name none, and why it is that one.

    Raises InvalidConfig when OPENAI_BASE_URL is set and does not say what it serves.
    """
    from stretto.adapters.models.default_model import find_default_model
    from stretto.adapters.models.local.catalog import QWEN_CODER
    from stretto.adapters.models.local.shelf import Shelf, models_folder

    def pulled() -> str | None:
        shelf = Shelf(models_folder(project.settings.home, project.environ))
        return None if shelf.state(QWEN_CODER) == "absent" else QWEN_CODER.model

    if (named := project.settings.model) is not None:
        return ModelSelection(
            named, notes=(f"using {named}: the settings or STRETTO_MODEL name it",)
        )
    return await find_default_model(project.environ, pulled=pulled)


@asynccontextmanager
async def open_runner(project: Project, chosen: ModelSelection) -> AsyncIterator["Runner"]:
    """What does the work of agents, while it is open."""
    from stretto.agents.redacted import RedactedRunner
    from stretto.assembly.commands import WithCommands

    functions, redactor = project.functions, project.redactor
    if chosen.default.startswith(SCRIPTED):
        from stretto.adapters.clock import SystemClock
        from stretto.adapters.models.scripted import ScriptedRunner, read_script

        script = read_script(Path(chosen.default.removeprefix(SCRIPTED)))
        scripted = ScriptedRunner(script, SystemClock())
        runner = WithCommands(project, scripted)
        yield _counted(RedactedRunner(functions.run_by(runner), redactor), project)
        return
    from stretto.assembly.subagents import open_subagents

    async with open_subagents(chosen, project) as subagents:
        runner = WithCommands(project, subagents)
        yield _counted(RedactedRunner(functions.run_by(runner), redactor), project)


def _counted(runner: "Runner", project: Project) -> "Runner":
    from stretto.assembly.playbooks import CountedRunner, has_playbooks

    settings = project.settings
    return CountedRunner(runner, settings) if has_playbooks(settings) else runner
