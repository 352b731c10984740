"""The files that the commands of one run may read: what they were, and whether they still are.

What a command says is about files. So its answer, and the approval that it was given, count again
only where these files are as they were. What the run itself changed afterwards is no reason to run
it again: those changes are repeated together with it.
"""

from collections.abc import Iterable
from pathlib import Path

from stretto.events.attempts import AttemptId, Part
from stretto.execution.reuse import EarlierCommand
from stretto.plan.model import PlannedWorkflow, briefs
from stretto.plan.workflow_steps import inner_steps
from stretto.ports.workspace import FilesToRead, Workspaces
from stretto.schedule.changes import is_isolated, writes_here
from stretto.schedule.commands import StartAttempt
from stretto.schedule.state import RunState
from stretto.vocabulary.names import StepId


class CommandFiles:
    def __init__(self, state: RunState, workspaces: Workspaces | None) -> None:
        self._state = state
        self._port = workspaces
        works = [step.work for step in state.plan.steps]
        inner = [work.file for work in works if isinstance(work, PlannedWorkflow)]
        self._recipes = tuple(dict.fromkeys(filter(None, (state.plan.file, *inner))))
        self._digests: dict[AttemptId, str] = {}  # what each has read, as far as that is certain
        self._wanted: set[AttemptId] = set()  # an earlier run has an answer for them
        self._warned: dict[AttemptId, str] = {}

    @property
    def _workspaces(self) -> Workspaces | None:
        return self._port if self._state.workspace else None

    async def look(self, command: StartAttempt) -> str:
        """Remember the files as they are now. Out: their digest; empty where they cannot be
        compared."""
        if self._workspaces is None:
            return ""
        looked = await self._workspaces.look(self._files(command.step, command.attempt.part))
        if not looked.digest and self._is_wanted(command):
            self._warned[command.attempt] = looked.why_not
        return looked.digest

    async def note(self, command: StartAttempt) -> None:
        """Keep for later runs what `look` saw, now that the command has ended."""
        if self._workspaces is not None:
            files = self._files(command.step, command.attempt.part)
            if digest := await self._workspaces.note_read(files):
                self._digests[command.attempt] = digest

    def digest(self, attempt: AttemptId) -> str:
        """What it has read; empty where it is not known."""
        return self._digests.get(attempt, "")

    def warnings(self, command: StartAttempt) -> tuple[str, ...]:
        said = self._warned.get(command.attempt)
        return (said,) if said else ()

    async def are_alike(self, command: StartAttempt, then: EarlierCommand | None) -> bool:
        """Whether it would read now what it has read then."""
        return await self._are_alike(command.step, command.attempt.part, then)

    async def is_approved_still(self, step: StepId, earlier: Iterable[EarlierCommand]) -> bool:
        """Whether the approval of the step is for the files of now. Of an agent only its words count;
        of a command, a validator and those in a workflow step all that they have read in the earlier
        run. One that did not run there would read files that nobody has compared."""
        plan = self._state.plan
        approved = (self._state.steps[step].planned, *inner_steps(plan, step))
        asking = {each.id for each in approved if any(brief.command for brief in briefs(each.work))}
        ran = [command for command in earlier if command.step in asking]
        if asking != {command.step for command in ran}:
            return False
        for command in ran:
            if not await self._are_alike(command.step, command.part, command):
                return False
        return True

    async def _are_alike(self, step: StepId, part: Part, then: EarlierCommand | None) -> bool:
        if self._workspaces is None or then is None:
            return False
        return await self._workspaces.can_reuse_read(
            self._files(step, part), then.run_id, then.step, then.part.text, then.later
        )

    def _is_wanted(self, command: StartAttempt) -> bool:
        return command.attempt in self._wanted or self._state.steps[command.step].planned.is_cached

    def want(self, command: StartAttempt) -> None:
        """The earlier run has an answer: if it cannot be compared, the report says so."""
        self._wanted.add(command.attempt)

    def _files(self, step: StepId, part: Part) -> FilesToRead:
        state, planned = self._state, self._state.steps[step].planned
        each = state.steps[step]
        is_shared_writer = writes_here(state, each) and not is_isolated(state, each)
        writes = (*planned.write_set, *planned.write_aliases) if is_shared_writer else ()
        folder, reads = Path(state.workspace), planned.read_set
        return FilesToRead(state.run_id, step, part.text, folder, reads, writes, self._recipes)
