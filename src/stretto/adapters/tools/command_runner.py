"""Run the commands of recipes: steps with `run:`, and commands that judge for a loop.

    AttemptRequest ─ shell, in the sandbox and with the limits of Bash ─→ Success | Failure

Exit code 0 succeeds, and stdout is the output. A command that judges succeeds whatever its exit
code: that is its verdict. All values are text in the environment or on stdin, and no part of the
command.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import cast

from msgspec import structs

from stretto.adapters.tools.bash import (
    MOST_SECONDS,
    confine,
    open_shell,
    overreaches,
)
from stretto.adapters.tools.outcomes import CallRefused
from stretto.adapters.tools.toolbox import StandardToolbox
from stretto.agents.acceptance import Answer
from stretto.agents.functions import AnsweringRunner
from stretto.events.model import CommandEnded
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    CommandRequest,
    Failure,
    Success,
    Witness,
    is_identified,
)
from stretto.processes.watchdog import LimitName
from stretto.text.redaction import MASK, Redactor
from stretto.text.short import cut_middle, listed, shorten
from stretto.text.visible import one_line
from stretto.validation.blank import is_blank, says_nothing
from stretto.validation.program_output import why_gave_up, why_idle
from stretto.validation.test_output import why_failed, why_not_run, why_untested
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import COMMAND_MODEL, Setup
from stretto.workspaces.sandbox.confinement import CommandRefused, Confinement, Ran

MOST_OUTPUT_BYTES = 4 * 1024 * 1024
MOST_STDERR = 10_000  # characters of stderr in the journal
MOST_ERROR = 4_000  # characters of what a failed command said
MOST_FEEDBACK = 30_000  # characters that a loop hands back
# The kernel takes no longer text in one variable (128 KiB with its name), nor more in all.
MOST_VARIABLE_BYTES = 128 * 1024 - 1
MOST_ENVIRONMENT_BYTES = 1024 * 1024
_MOST_WHY = 200  # characters of a printed line that a warning quotes
MODEL = "command"  # who answered, as reports say it
# A command is stopped so much before its timeout: what it had printed then comes into the journal.
_LEAST_MARGIN_SECONDS, _MOST_MARGIN_SECONDS = 0.1, 1.0
_MOST_WAIT_SECONDS = 5.0  # for the timer of the step or the run, once a command is out of time
_LARGE = 100_000  # characters; more are searched for secrets in a thread
_NOT_RUNNABLE = (126, 127)  # what a shell says of a program that is not there


class CommandRunner:
    """`others` does the work of agents."""

    def __init__(
        self,
        toolbox: StandardToolbox,
        others: AnsweringRunner,
        redactor: Redactor,
        identify_shell: Callable[[], str],
        warning: str = "",
    ) -> None:
        """`warning`: what the report of every command must say, because the sandbox is off."""
        self._toolbox = toolbox
        self._others = others
        self._redactor = redactor
        self._identify_shell = identify_shell
        self._warnings = (warning,) if warning else ()
        self.acceptance = others.acceptance

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        if not is_identified(self._others):
            raise TypeError(f"{type(self._others).__name__} cannot say who answers")
        setup = self._others.identify([name for name in models if name != COMMAND_MODEL], tools)
        if COMMAND_MODEL not in models:
            return setup
        return structs.replace(
            setup,
            models={**setup.models, COMMAND_MODEL: "a command"},
            tools={**setup.tools, "Bash": self._identify_shell()},
        )

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        command = request.command
        if command is None:
            return await self._others.run(request, witness)
        if fault := _why_unusable(command, request, self._redactor):
            return Failure("refused", fault, model=MODEL)
        reach = self._toolbox.reach(request)
        settings = self._toolbox.shell_settings(request)
        try:
            shell = await open_shell(settings)
        except CallRefused as refused:
            return Failure("refused", str(refused), model=MODEL)
        confinement = _confine(confine(reach, settings, _seconds(request)), command)
        await witness.confirm()
        ran = await shell.run(command.run, confinement)
        if isinstance(ran, CommandRefused):
            return Failure("refused", f"{ran.says}. {ran.fix}".strip(), model=MODEL)
        told = await self._without_secrets(ran)
        witness.note(_event(request, witness, told))
        if _is_out_of_time(ran, request):
            # The timer ends the step. A failure here would start a retry for the last moment.
            await asyncio.sleep(_MOST_WAIT_SECONDS)
        warnings = (*self._warnings, *_warn_of_masks(command), *overreaches(ran, reach))
        if ran.exit_code == 0 and ran.limit_hit is None:
            warnings += tuple(_doubts(_join_output(told)))
            if request.format is None and request.schema is None and _is_placeholder(ran.output):
                warnings += (
                    f"exit code 0, but it printed only '{one_line(told.output, _MOST_WHY)}'",
                )
        result = await self._result(ran, told, request, witness)
        return structs.replace(result, warnings=(*result.warnings, *warnings), model=MODEL)

    async def _without_secrets(self, ran: Ran) -> Ran:
        """Before it is cut for a message: half of a secret would not be found."""

        def hide() -> Ran:
            text = self._redactor.text
            return replace(ran, output=text(ran.output), errors=text(ran.errors))

        is_short = len(ran.output) + len(ran.errors) < _LARGE
        return hide() if is_short else await asyncio.to_thread(hide)

    async def _result(
        self, ran: Ran, told: Ran, request: AttemptRequest, witness: Witness
    ) -> AttemptResult:
        """`told`: the same without secrets."""
        if request.is_verdict:
            return _verdict(told)
        if ran.limit_hit is not None or ran.exit_code:
            return Failure("timeout" if ran.limit_hit == LimitName.WALL else "error", _says(told))
        cut_short: tuple[str, ...] = ()
        if ran.dropped_bytes:
            most = f"{MOST_OUTPUT_BYTES:,} bytes are the most"
            if request.format == "json" or request.schema:
                return Failure("refused", f"its output is too long: {most}")
            cut_short = (f"{ran.dropped_bytes:,} bytes of its output were left out: {most}",)
        output = ran.output.removesuffix("\n")
        if is_blank(output) and request.format != "json" and not request.schema:
            # A command that prints nothing has succeeded too.
            return Success(output, warnings=cut_short)
        return await self.acceptance.check(
            Answer(output, Usage(), MODEL, cut_short), request, witness
        )


def _why_unusable(command: CommandRequest, request: AttemptRequest, redactor: Redactor) -> str:
    if not request.workspace:
        return "this run has no workspace, and a command needs one"
    size = 0
    for name, value in command.env.items():
        if "\0" in value:
            return f"the value of {name} holds a NUL character, which no environment variable can"
        length = len(name) + 1 + len(value.encode(errors="replace"))
        size += length
        if length > MOST_VARIABLE_BYTES:
            most = f"{MOST_VARIABLE_BYTES:,} are the most for an environment variable"
            return f"the value of {name} has {length:,} bytes, and {most}; give it by stdin"
    if size > MOST_ENVIRONMENT_BYTES:
        most = f"{MOST_ENVIRONMENT_BYTES:,} are the most"
        return f"its environment has {size:,} bytes, and {most}; give long values by stdin"
    # As for any tool: secrets of the user are for the programs of the user.
    if names := redactor.named("\n".join((*command.env.values(), command.stdin))):
        return f"its values hold the value of {listed(names)}, which no command is given"
    return ""


def _warn_of_masks(command: CommandRequest) -> tuple[str, ...]:
    """A warning where an earlier step printed a secret: secrets are masked, so the command gets the mask."""
    if not any(MASK in each for each in (*command.env.values(), command.stdin)):
        return ()
    return (f"its values hold {MASK}: a secret was taken out of what it was given",)


def _seconds(request: AttemptRequest) -> float:
    """As long as its timeouts allow; without one, as long as Bash may take at the most."""
    left = request.seconds_left
    if left is None:
        return MOST_SECONDS
    margin = min(max(_LEAST_MARGIN_SECONDS, left / 20), _MOST_MARGIN_SECONDS)
    return max(0.1, left - margin)


def _is_out_of_time(ran: Ran, request: AttemptRequest) -> bool:
    return ran.limit_hit == LimitName.WALL and request.seconds_left is not None


def _confine(confinement: Confinement, command: CommandRequest) -> Confinement:
    env = {name: value.encode(errors="replace").decode() for name, value in command.env.items()}
    return replace(
        confinement,
        environment={**confinement.environment, **env},
        limits=replace(confinement.limits, output_bytes=MOST_OUTPUT_BYTES),
        stdin=command.stdin,
        keeps_errors=True,
    )


def _event(request: AttemptRequest, witness: Witness, ran: Ran) -> CommandEnded:
    limit = str(ran.limit_hit) if ran.limit_hit is not None else ""
    # What is out of time has neither an output nor an error text that would hold its stdout.
    said = _join_output(ran)[-MOST_STDERR:] if _is_out_of_time(ran, request) else ran.errors.strip()
    stderr = cut_middle(said, MOST_STDERR)
    return CommandEnded(
        witness.now(), request.attempt, ran.exit_code, stderr, ran.duration_seconds, limit
    )


def _says(ran: Ran, most: int = MOST_ERROR) -> str:
    """How a command failed, with what it printed: the end of it says why."""
    how = f"exit code {ran.exit_code}"
    if ran.limit_hit is not None:
        how = f"it was stopped at its limit: {ran.limit_hit}"
    said = _join_output(ran)
    if len(said) > most:
        said = f"[… {len(said) - most:,} characters left out …]\n{said[-most:]}"
    return f"{how}\n{said}" if said else how


def _is_placeholder(output: str) -> bool:
    # An empty list is how a program says that it has found nothing.
    return not output.lstrip().startswith(("[", "{")) and says_nothing(output)


def _join_output(ran: Ran) -> str:
    return "\n".join(text for text in (ran.output.strip(), ran.errors.strip()) if text)


def _doubts(printed: str) -> Iterator[str]:
    """What speaks against exit code 0."""
    if failed := why_failed(printed):
        yield f"exit code 0, but a test failed: {shorten(failed, _MOST_WHY)}"
    elif untested := why_untested(printed):
        yield f"exit code 0, but no test ran: {shorten(untested, _MOST_WHY)}"
    if lost := why_not_run(printed):
        yield f"exit code 0, but a part of it did not run: {shorten(lost, _MOST_WHY)}"
    elif not failed and (why := why_gave_up(printed)):
        yield f"exit code 0, but a part of it failed: {shorten(why, _MOST_WHY)}"
    if idle := why_idle(printed):
        yield f"exit code 0, but it had no file to work on: {shorten(idle, _MOST_WHY)}"


def _verdict(ran: Ran) -> AttemptResult:
    if ran.exit_code in _NOT_RUNNABLE and ran.limit_hit is None:
        # The candidate is not at fault: another try would cost money and end the same way.
        return Failure("error", f"the validator cannot run: {_says(ran)}")
    passed = ran.exit_code == 0 and ran.limit_hit is None
    feedback = cut_middle(_join_output(ran), MOST_FEEDBACK) if passed else _says(ran, MOST_FEEDBACK)
    verdict: dict[str, Json] = {"passed": passed, "feedback": feedback, "exit_code": ran.exit_code}
    return Success(cast(Json, verdict))
