"""A step of branches that run together, until as many have succeeded as it waits for."""

from stretto.plan.model import PlannedParallel
from stretto.schedule.outcomes import fail, stand_in, succeed
from stretto.schedule.parts import start_part
from stretto.schedule.state import Failure, PartState, StepState
from stretto.schedule.turn import Turn
from stretto.vocabulary.large import Gathered, Large
from stretto.vocabulary.names import listed
from stretto.vocabulary.values import Json


def begin(turn: Turn, step: StepState, work: PlannedParallel) -> None:
    step.kept_outputs = {}
    for branch in work.branches:
        start_part(turn, step, branch.key, branch.brief)


def end_part(turn: Turn, step: StepState, work: PlannedParallel, part: PartState) -> None:
    if part.failure is not None:
        step.warnings[f"branch {part.name} failed: {part.failure.error}"] = None
    step.kept_outputs = _outputs(step)
    parts = step.parts.values()
    succeeded = sum(part.status == "succeeded" for part in parts)
    under_way = sum(part.status not in ("succeeded", "failed") for part in parts)
    if work.wait == "all":
        # The others finish even if one has failed: what they find is kept.
        if under_way == 0:
            _end_all(turn, step)
    elif succeeded >= work.needed:
        if lost := [each.name for each in parts if each.status not in ("succeeded", "failed")]:
            enough = f"{work.needed} of {len(parts)} had succeeded"
            step.warnings[f"stopped once {enough}: {listed(lost, 16)}"] = None
        succeed(turn, step, Gathered(step.kept_outputs))
    elif succeeded + under_way < work.needed:
        fail(turn, step, _failure(step), step.planned.on_failure)


def _end_all(turn: Turn, step: StepState) -> None:
    outputs, parts = step.kept_outputs or {}, list(step.parts.values())
    if len(outputs) < len(parts):
        fail(turn, step, _failure(step), step.planned.on_failure)
        return
    if all(part.status == "failed" for part in parts):
        # Each branch may fail, and with all of them the step has nothing to give.
        policy = parts[0].brief.on_failure or step.planned.on_failure
        fail(turn, step, _failure(step), policy)
        return
    if any(part.failure for part in parts):
        turn.state.is_partial = True
    succeed(turn, step, Gathered(outputs))


def _outputs(step: StepState) -> dict[str, Json | Large]:
    """In the order of the branches, not of their endings: a prompt may show all of it."""
    outputs: dict[str, Json | Large] = {}
    for part in step.parts.values():
        if part.status == "succeeded":
            outputs[part.name] = part.kept_output
        elif part.status == "failed" and part.failure is not None:
            who = f"branch {part.name}"
            instead = stand_in(part.brief.on_failure, step, who, part.failure)
            if instead is not None:
                outputs[part.name] = instead.output
    return outputs


def _failure(step: StepState) -> Failure:
    failed = [part for part in step.parts.values() if part.failure and part.status == "failed"]
    errors = "; ".join(f"{part.name}: {part.failure.error}" for part in failed if part.failure)
    kind = failed[0].failure.kind if failed and failed[0].failure else "error"
    return Failure(kind, f"{len(failed)} of {len(step.parts)} branches failed: {errors}")
