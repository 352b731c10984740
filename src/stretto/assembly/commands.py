"""Commands of recipes: whether they can run here, and the runner that runs them."""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, cast

from stretto.assembly.identity import MachineIdentities
from stretto.assembly.subagents import tool_settings
from stretto.problems import Problem
from stretto.text.short import listed
from stretto.vocabulary.ids import COMMAND_AGENT
from stretto.vocabulary.models import COMMAND_MODEL

if TYPE_CHECKING:
    from stretto.adapters.tools.command_runner import CommandRunner
    from stretto.agents.functions import AnsweringRunner
    from stretto.assembly.project import Project
    from stretto.plan.model import Plan
    from stretto.ports.runner import AttemptRequest, AttemptResult, Identified, Witness
    from stretto.vocabulary.setup import Setup
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
                f"a command ({whose}) would work on your home folder, with all that you own",
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
