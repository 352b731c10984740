"""The folders that the writers of one run work in, and what becomes of their changes.

A step that is one delegation gets a new copy for every attempt: a retry never sees the half-done
work of the attempt before, which may not even have stopped yet. The parts of a parallel step, a
loop or a map share one copy, since they work on one thing.
"""

from pathlib import Path
from typing import TypeAlias, assert_never

from stretto.events.attempts import AttemptId
from stretto.events.model import ChangesCollected, MergeFailed, MergeHeld
from stretto.execution.reuse import downstream
from stretto.plan.model import PlannedCondition, PlannedDelegation, PlannedSwitch
from stretto.ports.clock import Clock
from stretto.ports.workspace import (
    Collected,
    Held,
    MergeTerms,
    NotMerged,
    SharedWorkspace,
    UndeclaredChanges,
    WorkspaceCopy,
    Workspaces,
)
from stretto.problems.errors import StrettoError
from stretto.schedule.changes import is_isolated, writes_here
from stretto.schedule.commands import CollectChanges, StartAttempt
from stretto.schedule.state import AttemptState, RunState, StepState
from stretto.text.short import listed
from stretto.vocabulary.models import CLI_MODEL, works_unseen
from stretto.vocabulary.names import StepId

CollectionEvent: TypeAlias = ChangesCollected | MergeFailed | MergeHeld


_MOST_NAMED = 20


class WriterCopies:
    def __init__(self, state: RunState, workspaces: Workspaces | None) -> None:
        self._state = state
        self._workspaces = workspaces

    def is_writer(self, step: StepId) -> bool:
        return writes_here(self._state, self._state.steps[step])

    async def open(self, command: StartAttempt) -> str:
        """The folder that the attempt works in."""
        copy = self._copy(command.attempt)
        if is_isolated(self._state, self._state.steps[command.step]):
            return str(await self._port.open(copy))
        await self._port.watch(self._shared_workspace(command.step))
        return self._state.workspace

    async def collect(self, command: CollectChanges, clock: Clock) -> CollectionEvent:
        step = self._state.steps[command.step]
        if not is_isolated(self._state, step):
            return await self._find_undeclared(step, clock)
        try:
            terms = self._terms(step, command)
            collected = await self._port.collect(self._last_copy(step), terms)
        except Exception as error:  # a full disk, say: the step fails, the run does not hang
            said = error.with_hint if isinstance(error, StrettoError) else str(error)
            return MergeFailed(clock.now(), step.id, "", f"its changes could not be kept: {said}")
        if isinstance(collected, Held) and step.pending is None:
            # It is merged for a step that comes later, which cannot be put to a person.
            flag = "--allow-removals" if collected.is_whole else "--unfinished"
            held = f"{collected.question}; stretto apply {self._state.run_id} {step.id} {flag} merges it"
            collected = NotMerged(
                collected.artifact, held, (), collected.files,
                is_whole=collected.is_whole, warnings=collected.warnings,
            )  # fmt: skip
        return _event_of(step.id, collected, clock.now())

    def _describe_half_done(self, step: StepState) -> str:
        """Which parts of a step that has succeeded may have left half-done files, in words."""
        if _is_one_delegation(step) or _how_it_fails(step):
            return ""
        left = [
            part.name
            for part in step.parts.values()
            if part.status in ("failed", "cancelled")
            and any(map(self._may_have_written, part.attempts))
        ]
        return f"half-done files of {listed(left)}, which did not succeed" if left else ""

    def _may_have_written(self, attempt: AttemptState) -> bool:
        """Whether a tool call is on record, or whoever worked makes none: a program, a function."""
        agent = self._state.plan.agents[attempt.agent]
        answering = self._state.setup.models.values() if self._state.setup else ()
        is_unseen = works_unseen(attempt.model) or works_unseen(agent.model or "")
        is_unseen |= any(name.startswith(CLI_MODEL) for name in answering)
        return attempt.started_at is not None and (is_unseen or attempt.tool_calls > 0)

    async def can_reuse(self, command: StartAttempt, run_id: str) -> bool:
        """The answer of a writer is reused only together with the files that it describes.

        What a shared writer wrote is kept nowhere: it must be there still. The parts of a parallel
        step, a loop or a map worked on one copy: what one of them did to it cannot be told from the
        rest, so they work anew. A command after a writer that worked anew does so too: what it
        says, such as that tests pass, is about the files.
        """
        step = self._state.steps[command.step]
        if command.request.command is not None and self.follows_new_files(step.id):
            return False
        if not writes_here(self._state, step):
            return True
        if not is_isolated(self._state, step):
            return await self._port.can_reuse_shared(self._shared_workspace(step.id), run_id)
        if not _is_one_delegation(step):
            return False
        planned = step.planned
        is_merged = planned.merge_back == "auto"
        terms = MergeTerms(planned.write_set, is_merged, key=command.key, reused_from=run_id)
        return await self._port.can_reuse(self._copy(command.attempt), terms)

    def follows_new_files(self, id: StepId) -> bool:
        """Whether a writer that the step waits for, however far, has worked in this run."""
        return any(
            step.id != id and id in downstream(self._state.plan, step.id)
            for step in self._state.order
            if writes_here(self._state, step)
            and any(each.started_at is not None and not each.reused_from for each in step.attempts)
        )

    def _terms(self, step: StepState, command: CollectChanges) -> MergeTerms:
        last = max(step.attempts, key=lambda each: each.number, default=None)
        is_one = _is_one_delegation(step)
        half_done = "" if command.is_allowed else self._describe_half_done(step)
        return MergeTerms(
            step.planned.write_set,
            command.is_merged,
            command.is_allowed or step.may_have_removed,
            last.key if last is not None and is_one else "",
            last.reused_from if last is not None and is_one else None,
            any(attempt.outcome == "succeeded" for attempt in step.attempts),
            f"its change may hold {half_done}" if half_done else "",
        )

    async def discard(self, answer: CollectionEvent) -> None:
        """The copy of a step whose answer is on record."""
        step = self._state.steps[answer.step]
        if is_isolated(self._state, step) and answer.artifact:
            await self._port.discard(self._last_copy(step))

    async def _find_undeclared(self, step: StepState, clock: Clock) -> ChangesCollected:
        declared = [
            glob
            for each in self._state.order
            if each.started_at is not None
            and (each.ended_at is None or each.ended_at >= (step.started_at or 0.0))
            for glob in (*each.planned.write_set, *each.planned.write_aliases)
        ]
        try:
            found = await self._port.undeclared_changes(self._shared_workspace(step.id), declared)
            said = self._describe(step, found)
        except Exception as error:  # whatever it is, the run must not hang
            found, said = UndeclaredChanges(()), [f"what it wrote could not be looked at: {error}"]
        is_unchanged = found.is_unchanged and not found.paths
        return ChangesCollected(
            clock.now(), step.id, "", len(found.own), 0, 0,
            is_merged=False, warnings=tuple(said), is_unchanged=is_unchanged,
        )  # fmt: skip

    def _describe(self, step: StepState, found: UndeclaredChanges) -> list[str]:
        said = []
        if found.paths:
            paths = listed(found.paths)
            said.append(f"files changed that no step had declared: {paths}")
        if found.repositories:
            made = listed(found.repositories)
            said.append(f"no step makes a repository; these were renamed to *.kept-out: {made}")
        own = listed(found.own, _MOST_NAMED)
        if own and (misfortune := _how_it_fails(step)):
            said.append(f"it {misfortune}, and what it had written stays in the workspace: {own}")
        elif own and (half_done := self._describe_half_done(step)):
            said.append(f"what it wrote in the workspace may hold {half_done}: {own}")
        return said

    @property
    def _port(self) -> Workspaces:
        if self._workspaces is None:
            raise StrettoError("this run has isolated writers, and nothing here can isolate them")
        return self._workspaces

    def _last_copy(self, step: StepState) -> WorkspaceCopy:
        last = max((each.number for each in step.attempts), default=1)
        return self._copy(AttemptId(step.id, last))

    def _shared_workspace(self, id: StepId) -> SharedWorkspace:
        state, planned = self._state, self._state.steps[id].planned
        write_set = (*planned.write_set, *planned.write_aliases)
        return SharedWorkspace(state.run_id, id, Path(state.workspace), write_set)

    def _copy(self, attempt: AttemptId) -> WorkspaceCopy:
        state, id = self._state, attempt.step
        number = str(attempt.number) if _is_one_delegation(state.steps[id]) else "all"
        planned = state.steps[id].planned
        return WorkspaceCopy(
            state.run_id, id, number, Path(state.workspace), planned.write_set, planned.read_set
        )


def _how_it_fails(step: StepState) -> str:
    """How the step is about to fail, in words; empty if it is about to succeed."""
    if step.pending is None or step.pending.is_success:
        return ""
    return "was cancelled" if step.pending.is_cancelled else "failed"


def _is_one_delegation(step: StepState) -> bool:
    return isinstance(step.planned.work, PlannedDelegation | PlannedCondition | PlannedSwitch)


def _event_of(step: StepId, collected: Collected | NotMerged | Held, now: float) -> CollectionEvent:
    figures = {
        "files": collected.files,
        "insertions": collected.insertions,
        "deletions": collected.deletions,
    }
    is_whole, warnings = collected.is_whole, collected.warnings
    match collected:
        case Collected(artifact):
            return ChangesCollected(
                now,
                step,
                artifact,
                is_merged=collected.is_merged,
                warnings=warnings,
                question=collected.question,
                is_unchanged=bool(artifact) and not collected.files,
                diff=collected.diff,
                changed=collected.changed,
                is_whole=is_whole,
                **figures,
            )
        case NotMerged(artifact, error, paths, is_refused=is_refused):
            return MergeFailed(
                now, step, artifact, error, paths,
                is_refused=is_refused, diff=collected.diff, changed=collected.changed,
                is_whole=is_whole, warnings=warnings, **figures,
            )  # fmt: skip
        case Held(artifact, question):
            return MergeHeld(
                now, step, artifact, question, is_whole=is_whole, warnings=warnings, **figures
            )
        case _:
            assert_never(collected)
