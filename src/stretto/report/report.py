"""What a run did. In: RunState. Out: Report. Nothing is in it that the journal does not hold."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from stretto.plan.composed_prompt import describe_command
from stretto.plan.model import Brief, Plan, PlannedStep, PlannedWorkflow, briefs
from stretto.report.critical_path import critical_path
from stretto.report.issues import issues_of
from stretto.report.json_form import report_as_json, report_as_json_text
from stretto.report.model import (
    AttemptReport,
    AttemptStatus,
    CallsReport,
    ChangesReport,
    ChangeStanding,
    Delegated,
    Issue,
    Report,
    StepReport,
    StepReports,
)
from stretto.schedule.outputs import output_of
from stretto.schedule.state import AttemptState, Changes, PartState, RunState, StepState
from stretto.schedule.status import is_overdue, run_word, step_word
from stretto.templates.template import Reference
from stretto.text.visible import visible
from stretto.vocabulary.names import COMMAND_AGENT, StepId

__all__ = ["Issue", "Report", "StepReport", "report_as_json", "report_as_json_text", "report_of"]


def report_of(state: RunState, *, is_interrupted: bool = False, now: float | None = None) -> Report:
    """`is_interrupted`: the run has not ended, and no process drives it. `now`: by which to tell that a
    deadline has passed meanwhile; None: nobody asks.
    """
    seen_at = now if is_interrupted and not state.has_ended else None
    steps = StepReports(_step(state, step, is_interrupted, seen_at) for step in state.order)
    return Report(
        run_id=state.run_id,
        workflow=state.plan.name,
        status=run_word(state, not is_interrupted, seen_at),
        output=output_of(state),
        inputs=dict(state.inputs),
        steps=steps,
        issues=tuple(issues_of(state, steps)),
        agents_deployed=sum(_was_deployed(each) for step in steps for each in step.attempts),
        usage=state.usage,
        started_at=state.started_at,
        ended_at=state.ended_at,
        as_of=state.now,
        paused_seconds=state.paused_seconds(state.started_at or 0.0, state.ended_at or state.now),
        resumed_at=tuple(each.resumed_at for each in state.resumptions),
        parent=state.parent,
        trigger=state.trigger,
        critical_path=critical_path(state),
        recipe_warnings=state.plan.warnings,
    )


def _was_deployed(attempt: AttemptReport) -> bool:
    is_subagent = attempt.agent != COMMAND_AGENT
    return is_subagent and attempt.started_at is not None and attempt.status != "reused"


def _step(state: RunState, step: StepState, is_interrupted: bool, now: float | None) -> StepReport:
    plan = state.plan
    ended = state.now if step.ended_at is None else step.ended_at
    started = ended if step.started_at is None else step.started_at
    attempts = tuple(
        _attempt(part, attempt, is_interrupted)
        for part in step.parts.values()
        for attempt in part.attempts
    )
    asked = [attempt.agent for attempt in attempts]
    delegations = tuple(
        _describe_delegation(plan, step.planned, brief) for brief in briefs(step.planned.work)
    )
    return StepReport(
        id=step.id,
        type=step.planned.type,
        depends_on=step.planned.depends_on,
        agents=tuple(dict.fromkeys(asked or [each.agent for each in delegations])),
        status=step_word(step, is_interrupted, is_overdue=is_overdue(state, step.id, now)),
        kept_output=step.kept_output,
        kept_outputs=step.kept_outputs,
        validation=step.validation,
        reason=step.reason,
        error=step.error,
        warnings=step.all_warnings,
        started_at=step.started_at,
        ended_at=step.ended_at,
        attempts=attempts,
        usage=step.usage,
        delegations=delegations,
        calls=_calls(step),
        paused_seconds=state.paused_seconds(started, ended),
        changes=_changes(step),
    )


def _calls(step: StepState) -> CallsReport:
    calls = step.calls
    return CallsReport(calls.made, calls.refused, calls.failed) if calls else CallsReport()


def _changes(step: StepState) -> ChangesReport | None:
    found = step.changes
    if found is None or not found.artifact:
        return None
    return ChangesReport(
        found.files,
        found.insertions,
        found.deletions,
        found.is_merged,
        found.conflicts,
        found.artifact,
        _standing(step, found),
        found.applied_by,
    )


def _standing(step: StepState, found: Changes) -> ChangeStanding:
    if found.is_merged:
        return "merged" if found.applied_by is None else "applied"
    if step.is_merge_held:
        return "held"
    if found.is_refused:
        return "refused"
    if not found.files and not found.conflicts:  # older journals do not count what conflicts
        return "nothing to apply"
    if step.planned.merge_back == "never":
        return "kept"
    if not found.is_whole:
        return "unfinished"
    if step.question and not step.is_merge_allowed:
        return "removals"
    return "conflict" if found.conflicts else "to apply"


def _attempt(part: PartState, attempt: AttemptState, is_interrupted: bool) -> AttemptReport:
    failure = attempt.failure
    return AttemptReport(
        part=part.name,
        number=attempt.number,
        agent=attempt.agent,
        key=attempt.key,
        status=_status(attempt, is_interrupted),
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        failure=failure.kind if failure else "",
        error=failure.error if failure else "",
        usage=attempt.usage,
        model=attempt.model,
        reused_from=attempt.reused_from,
        provider_retries=attempt.provider_retries,
        playbooks=attempt.playbooks,
        exit_code=attempt.ended_command.exit_code if attempt.ended_command else None,
        stderr=attempt.ended_command.stderr if attempt.ended_command else "",
    )


def _status(attempt: AttemptState, is_interrupted: bool) -> AttemptStatus:
    match attempt.outcome:
        case None if attempt.stage == "planned":
            return "planned"
        case None:
            return "interrupted" if is_interrupted else "running"
        case "in_doubt":
            return "in doubt"
        case "succeeded" if attempt.reused_from is not None:
            return "reused"
        case _:
            return attempt.outcome


def _describe_delegation(plan: Plan, step: PlannedStep, brief: Brief) -> Delegated:
    agent, output = plan.agents[brief.agent], step.output
    validation = agent.validation
    templates = [agent.prompt, *((brief.instruction,) if brief.instruction else ())]
    prompt = brief.instruction.text if brief.instruction else ""
    if (command := brief.command) is not None:
        templates += command.templates
        env = {name: template.text for name, template in command.env.items()}
        prompt = describe_command(command.run, env, command.stdin.text if command.stdin else "")
    held_to = [output.format, output.schema, validation.schema, validation.rules]
    return Delegated(
        agent=brief.agent,
        prompt=prompt,
        instructions=agent.prompt.text,
        reads=_unique(
            read
            for template in templates
            for each in template.references
            for read in _reads(plan, step.inside, each)
        ),
        tools=tuple(sorted(agent.tools)),
        model=brief.model or "",
        held_to=json.dumps(held_to, sort_keys=True, default=dict),
    )


def _reads(plan: Plan, inside: StepId | None, reference: Reference) -> Iterator[str]:
    """As the run's own recipe would say it: an input of an inner recipe is what that is given."""
    if inside is None:
        yield reference.text
        return
    holder = plan.step(inside)
    if reference.step is not None:
        yield f"steps.{inside}/{reference.text.removeprefix('steps.')}"
    elif isinstance(holder.work, PlannedWorkflow):
        is_named = reference.path[0] == "inputs" and len(reference.path) > 1
        given = holder.work.given.get(str(reference.path[1 if is_named else 0]))
        for each in given.references if given else ():
            yield from _reads(plan, holder.inside, each)


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


_MOST_LINES = 200


def with_patches(report: Report, read: Callable[[str], bytes | None]) -> Report:
    """`read`: the patch of a step, None where it is gone."""
    return replace(report, steps=StepReports(_with_patch(step, read) for step in report.steps))


def _with_patch(step: StepReport, read: Callable[[str], bytes | None]) -> StepReport:
    if step.changes is None or not step.changes.files:
        return step
    patch = read(step.id)
    if patch is None:
        return step
    return replace(step, changes=replace(step.changes, patch=_show_patch(patch)))


def _show_patch(patch: bytes) -> str:
    # A patch is a writer's bytes: nothing in it may move the cursor of whoever reads the report.
    lines = visible(patch.decode("utf-8", "replace")).split("\n")
    if len(lines) <= _MOST_LINES:
        return "\n".join(lines).rstrip("\n")
    left = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], f"… {left} lines more: stretto diff shows them"])
