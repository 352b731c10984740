"""Run a probe as the command of a step. In: what the probe needs. Out: how its command ended.

Everything between the request and the sandbox is what a real step has: the runner of commands, and
the confinement that the toolbox makes of the request. Added are only the things that a probe needs in
order to be a probe: its interpreter, its limits, and the tokens of its scene.
"""

from dataclasses import dataclass, field, replace

from stretto.adapters.clock import SystemClock
from stretto.adapters.models.scripted import Script, ScriptedRunner
from stretto.adapters.tools.command_runner import CommandRunner
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.events.attempts import AttemptId
from stretto.events.model import Happening
from stretto.ports.runner import AttemptRequest, CommandRequest
from stretto.text.redaction import NOTHING_SECRET
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.models import COMMAND_MODEL
from stretto.vocabulary.names import COMMAND_AGENT, StepId
from stretto.workspaces.sandbox.confinement import CommandRefused, Confinement, Ran
from stretto.workspaces.sandbox.sandbox import Sandbox


@dataclass
class _ProbeShell:
    """The sandbox, which remembers how the command ended."""

    sandbox: Sandbox
    probe: Confinement
    ended: list[Ran | CommandRefused] = field(default_factory=list)

    async def run(self, command: str, confinement: Confinement) -> Ran | CommandRefused:
        confinement = replace(
            confinement,
            readable=self.probe.readable,
            limits=self.probe.limits,
            environment={**confinement.environment, **self.probe.environment},
            keeps_errors=False,  # a probe looks at all that was printed
        )
        self.ended.append(await self.sandbox.run(command, confinement))
        return self.ended[-1]


class _Witness:
    def now(self) -> float:
        return 0.0

    def note(self, event: Happening) -> None:
        pass

    async def record(self, event: Happening) -> None:
        pass

    async def confirm(self) -> None:
        pass

    def spend(self, usage: Usage) -> None:
        pass


async def run_step(sandbox: Sandbox, command: str, probe: Confinement) -> Ran | CommandRefused:
    shell = _ProbeShell(sandbox, probe)
    settings = ToolSettings(
        project=probe.workspace, protected=probe.protected.paths, hidden=probe.hidden
    )
    toolbox = StandardToolbox(settings, {}, find_shell=lambda: shell)
    others = ScriptedRunner(Script(), SystemClock())
    runner = CommandRunner(toolbox, others, NOTHING_SECRET, lambda: "")
    request = AttemptRequest(
        run_id="escape",
        attempt=AttemptId(StepId("probe"), 1),
        agent=COMMAND_AGENT,
        instructions="",
        prompt="",
        model=COMMAND_MODEL,
        tools=("Bash",),
        max_turns=None,
        format=None,
        schema=None,
        rules=(),
        workspace=str(probe.workspace),
        may_write=True,
        write_set=tuple(glob.text for glob in probe.writes),
        command=CommandRequest(command),
    )
    await runner.run(request, _Witness())
    return shell.ended[0]
