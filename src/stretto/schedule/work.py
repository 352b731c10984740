"""The kinds of work a step can have, and what each does with the parts it is made of."""

from collections.abc import Mapping
from heapq import heappush
from typing import assert_never

from stretto.events.attempts import (
    REDUCE,
    WHOLE_STEP,
    BranchPart,
    CheckPart,
    ItemPart,
    StepTimer,
    TryPart,
)
from stretto.events.model import FailureKind
from stretto.plan.model import (
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
    PlannedWorkflow,
    Target,
)
from stretto.plan.workflow_steps import inner_inputs
from stretto.schedule.attempts import start_part
from stretto.schedule.changes import writes_here
from stretto.schedule.outcomes import fail, policy_for, stand_in, succeed
from stretto.schedule.outputs import (
    doubts_about_output,
    lack_of_output,
    nobody_answered,
    recipe_output,
)
from stretto.schedule.state import FailureReason, MapItems, PartState, StepState
from stretto.schedule.transition import Transition, close_run, end_step
from stretto.templates.evaluate import Undecided, decide, evaluate
from stretto.templates.json_text import find_json, kind_of
from stretto.templates.likeness import same, truth
from stretto.templates.render import TooLong, whole_json
from stretto.templates.scope import MISSING, Missing, Scope, resolve
from stretto.templates.template import PathPart, Reference
from stretto.text.short import listed, show_json
from stretto.vocabulary.json_value import Gathered, Json, Large
from stretto.vocabulary.statuses import RunStatus, StepStatus


def begin_work(transition: Transition, step: StepState) -> None:
    work = step.planned.work
    match work:
        case PlannedDelegation():
            _begin_delegation(transition, step, work)
        case PlannedParallel():
            _begin_parallel(transition, step, work)
        case PlannedCondition() | PlannedSwitch():
            _begin_condition(transition, step, work)
        case PlannedLoop():
            _begin_loop(transition, step, work)
        case PlannedMap():
            _begin_map(transition, step, work)
        case PlannedWorkflow():
            _begin_workflow(transition, step, work)
        case _:
            assert_never(work)


def end_part(transition: Transition, step: StepState, part: PartState) -> None:
    work = step.planned.work
    if part.failure is not None and part.failure.kind == "permanent":
        # Whatever the policy says, dependents would meet the same error.
        fail(transition, step, part.failure, "abort")
        return
    if part.failure is not None and part.failure.kind == "budget":
        # Nothing new starts. Attempts that run have reserved their budget, and go on.
        close_run(transition, RunStatus.FAILED, part.failure.error)
    match work:
        case PlannedDelegation() | PlannedCondition() | PlannedSwitch():
            _end_delegation(transition, step, part)
        case PlannedParallel():
            _end_branch(transition, step, work, part)
        case PlannedLoop():
            _end_loop_part(transition, step, work, part)
        case PlannedMap():
            _end_map_part(transition, step, work, part)
        case PlannedWorkflow():
            raise AssertionError("a workflow step has no parts")
        case _:
            assert_never(work)


def _begin_delegation(transition: Transition, step: StepState, work: PlannedDelegation) -> None:
    start_part(transition, step, WHOLE_STEP, work.brief)


def _end_delegation(transition: Transition, step: StepState, part: PartState) -> None:
    """The part is the only one, or reduces a map: its outcome is the step's."""
    if part.failure is None:
        succeed(transition, step, part.kept_output)
    else:
        fail(transition, step, part.failure, policy_for(step, part))


def _begin_parallel(transition: Transition, step: StepState, work: PlannedParallel) -> None:
    step.kept_outputs = {}
    for branch in work.branches:
        start_part(transition, step, BranchPart(branch.key), branch.brief)


def _end_branch(
    transition: Transition, step: StepState, work: PlannedParallel, part: PartState
) -> None:
    if part.failure is not None:
        step.warn(f"branch {part.name} failed: {part.failure.error}")
    step.kept_outputs = _branch_outputs(step)
    parts = step.parts.values()
    succeeded = sum(part.status == "succeeded" for part in parts)
    under_way = sum(part.status not in ("succeeded", "failed") for part in parts)
    if work.wait == "all":
        # The other branches finish even if one has failed: their outputs are kept.
        if under_way == 0:
            _end_branches(transition, step, work)
    elif succeeded >= work.needed:
        if lost := [each.name for each in parts if each.status not in ("succeeded", "failed")]:
            enough = f"{work.needed} of {len(parts)} had succeeded"
            step.warn(f"stopped once {enough}: {listed(lost, 16)}")
        succeed(transition, step, Gathered(step.kept_outputs))
    elif under_way == 0 and len(step.kept_outputs) >= work.needed:
        # Too few succeeded, but those that failed may: the step goes on as if it waited for all.
        _end_branches(transition, step, work)
    elif len(step.kept_outputs) + under_way < work.needed:
        fail(transition, step, _branches_failure(step), step.planned.on_failure)


def _end_branches(transition: Transition, step: StepState, work: PlannedParallel) -> None:
    """All branches have ended."""
    outputs, parts = step.kept_outputs or {}, list(step.parts.values())
    if work.wait == "all" and len(outputs) < len(parts):
        fail(transition, step, _branches_failure(step), step.planned.on_failure)
        return
    if all(part.status == "failed" for part in parts):
        # Each branch may fail, but when all of them do, the step has no output.
        policy = parts[0].brief.on_failure or step.planned.on_failure
        fail(transition, step, _branches_failure(step), policy)
        return
    if any(part.failure for part in parts):
        transition.state.is_partial = True
    succeed(transition, step, Gathered(outputs))


def _branch_outputs(step: StepState) -> dict[str, Json | Large]:
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


def _branches_failure(step: StepState) -> FailureReason:
    failed = [part for part in step.parts.values() if part.failure and part.status == "failed"]
    errors = "; ".join(f"{part.name}: {part.failure.error}" for part in failed if part.failure)
    kind = failed[0].failure.kind if failed and failed[0].failure else "error"
    return FailureReason(kind, f"{len(failed)} of {len(step.parts)} branches failed: {errors}")


def _begin_condition(
    transition: Transition, step: StepState, work: PlannedCondition | PlannedSwitch
) -> None:
    target = target_of(step, work, step.recipe.scope)
    step.chosen = _chosen_name(transition, target)
    if target is not None and target.brief is not None:
        start_part(transition, step, WHOLE_STEP, target.brief)
        return
    step.choice = target.step if target else None
    succeed(transition, step, None)


def _chosen_name(transition: Transition, target: Target | None) -> str | None:
    """As the recipe calls it."""
    if target is None or target.step is None:
        return target.name if target else None
    return transition.state.steps[target.step].own_id


def target_of(
    step: StepState, work: PlannedCondition | PlannedSwitch, scope: Scope
) -> Target | None:
    return (
        _decide_condition(step, work, scope)
        if isinstance(work, PlannedCondition)
        else _match_case(step, work, scope)
    )


def _decide_condition(step: StepState, work: PlannedCondition, scope: Scope) -> Target | None:
    claim = decide(work.condition, scope)
    if isinstance(claim, Undecided):
        step.warn(f"the condition is undecided and counts as false: {claim.reason}")
        return work.if_false
    return work.if_true if claim else work.if_false


def _match_case(step: StepState, work: PlannedSwitch, scope: Scope) -> Target | None:
    value = evaluate(work.value, scope)
    if value is None:
        value = Undecided(f"{work.value.text} is null")
    elif isinstance(value, list | dict):
        value = Undecided(f"{work.value.text} is {kind_of(value)}")
    if isinstance(value, Undecided):
        step.warn(f"the value is undecided, so the default is taken: {value.reason}")
        return work.default
    near = ""
    for case, target in work.cases:
        likeness = same(case, value)
        if likeness is True:
            return target
        if isinstance(likeness, Undecided) and isinstance(value, str):
            near = near or likeness.reason
    if near:
        step.warn(f"no case fits, so the default is taken: {near}")
    elif work.default is None:
        step.warn(f"no case is {show_json(value, 60)} and there is no default: nothing was chosen")
    return work.default


MAX_ITERATIONS_REACHED = "max iterations reached"
# What the producer of a loop is given besides its text, before there is anything to fix.
FIRST_ROUND: Mapping[str, Json] = {"candidate": None, "feedback": None, "iteration": 1}


def _begin_loop(transition: Transition, step: StepState, work: PlannedLoop) -> None:
    _produce(transition, step, work, feedback=None)


def _end_loop_part(
    transition: Transition, step: StepState, work: PlannedLoop, part: PartState
) -> None:
    if part.failure is not None:
        # Without a verdict the loop cannot go on, as little as without a candidate.
        fail(transition, step, part.failure, policy_for(step, part))
    elif part.brief is work.validator:
        _apply_verdict(transition, step, work, part.output)
    elif work.validator is not None:
        step.kept_output = part.kept_output
        check = CheckPart(step.iteration)
        start_part(transition, step, check, work.validator, dict(part.local), upstream=part.output)
    else:
        step.kept_output = part.kept_output
        _continue_loop(
            transition, step, work, _is_loop_done(transition, step, work, part), feedback=None
        )


def _produce(transition: Transition, step: StepState, work: PlannedLoop, feedback: Json) -> None:
    step.iteration += 1
    local: dict[str, Json] = dict(FIRST_ROUND)
    if step.iteration > 1:
        local = {"candidate": step.output, "feedback": feedback, "iteration": step.iteration}
    start_part(transition, step, TryPart(step.iteration), work.producer, local)


def _continue_loop(
    transition: Transition, step: StepState, work: PlannedLoop, is_done: bool, feedback: Json
) -> None:
    if not is_done and step.iteration < work.max_iterations:
        _produce(transition, step, work, feedback)
        return
    if not is_done:
        step.warn(MAX_ITERATIONS_REACHED)
        if work.validator is not None and work.validator.command is not None:
            _keep_back(transition, step)
    succeed(transition, step, step.kept_output)


def _keep_back(transition: Transition, step: StepState) -> None:
    """A command never passed the files: only what passed is merged."""
    transition.state.is_partial = step.is_not_passed = True
    if writes_here(transition.state, step):
        step.warn("its change was not merged: the command never passed")


def _is_loop_done(
    transition: Transition, step: StepState, work: PlannedLoop, part: PartState
) -> bool:
    if work.until is None:
        return True
    scope = step.scope_with(part.local, candidate=(step.own_id, part.output))
    claim = decide(work.until, scope)
    if isinstance(claim, Undecided):
        step.warn(f"'until' is undecided and counts as false: {claim.reason}")
        return False
    return claim


def _apply_verdict(transition: Transition, step: StepState, work: PlannedLoop, said: Json) -> None:
    found = find_json(said) if isinstance(said, str) else said
    verdict = said if found is MISSING else found
    step.validation = verdict
    said_passed = verdict.get("passed", MISSING) if isinstance(verdict, dict) else MISSING
    passed = None if said_passed is MISSING else truth(said_passed)
    if passed is None:
        step.warn("a verdict does not say `passed` and counts as not passed")
    elif isinstance(passed, Undecided):
        step.warn(f"`passed` of a verdict is undecided and counts as false: {passed.reason}")
    is_done = passed is True
    _continue_loop(
        transition, step, work, is_done, None if is_done else _feedback(step, work, verdict)
    )


def _feedback(step: StepState, work: PlannedLoop, verdict: Json) -> Json:
    paths: list[tuple[PathPart, ...]] = [("feedback",)]
    if work.feedback is not None:
        path = work.feedback.path
        # Inside the loop, the step's own output means the verdict.
        paths.insert(0, path[3:] if path[:2] == ("steps", step.own_id) else path)
    for path in paths:
        value = resolve(Reference("", ("verdict", *path), 0), Scope(local={"verdict": verdict}))
        if value is not MISSING and value is not None:
            return value
    return verdict


# As many equal failures in a row mean that the cause is not in the elements.
MOST_EQUAL_FAILURES = 5


def _begin_map(transition: Transition, step: StepState, work: PlannedMap) -> None:
    values = whole_json(work.over, step.recipe.scope)
    if not isinstance(values, list):
        _fail_map(transition, step, f"{work.over.text} is {_describe(values)}, not a list")
    elif len(values) > work.max_items:
        _fail_map(
            transition,
            step,
            f"{len(values):,} elements are more than max_items ({work.max_items:,})",
        )
    else:
        if not values:
            step.warn(f"{work.over.text} has no elements: no agent was asked")
        step.items = MapItems(values, [None] * len(values))
        _continue_map(transition, step, work, step.items)


def _end_map_part(
    transition: Transition, step: StepState, work: PlannedMap, part: PartState
) -> None:
    items = step.items
    assert items is not None, "only a list that was read has parts"
    if part.brief is work.reducer:
        _end_delegation(transition, step, part)
        return
    assert isinstance(part.id, ItemPart), "a map has elements and a reducer"
    index, stage = part.id.index, part.id.stage
    if part.failure is not None:
        _fail_item(transition, step, work, items, part, index)
        return
    items.last_failure, items.repeats = None, 0
    if stage + 1 < len(work.stages):
        _enter_stage(transition, step, work, index, stage + 1, part.output)
    else:
        items.results[index] = part.kept_output
        items.ended += 1
        _continue_map(transition, step, work, items)


def _continue_map(
    transition: Transition, step: StepState, work: PlannedMap, items: MapItems
) -> None:
    closing = transition.state.closing_reason
    while not closing and _has_room(items, work):
        index = items.entered
        items.entered += 1
        _enter_stage(transition, step, work, index, 0, items.values[index])
    if items.ended < items.entered:
        return
    if items.ended < len(items.values):
        _fail_map(
            transition, step, f"{items.ended} of {len(items.values)} items were begun: {closing}"
        )
    elif len(items.failures) > len(items.excused):
        _fail_map(transition, step, _item_failures(items))
    elif items.values and len(items.excused) == len(items.values):
        # Each element may fail, but when all of them do, the step has no output.
        fail(transition, step, FailureReason("error", _item_failures(items)), items.excused[0])
    elif work.reducer is not None:
        start_part(transition, step, REDUCE, work.reducer, upstream=Gathered(items.results))
    else:
        succeed(transition, step, Gathered(items.results))


def _has_room(items: MapItems, work: PlannedMap) -> bool:
    is_left = items.entered < len(items.values)
    return is_left and items.entered - items.ended < work.batch_size


def _enter_stage(
    transition: Transition, step: StepState, work: PlannedMap, index: int, stage: int, item: Json
) -> None:
    local: dict[str, Json] = {"item": item, "index": index}
    start_part(transition, step, ItemPart(index, stage), work.stages[stage], local, upstream=item)


def _fail_item(
    transition: Transition,
    step: StepState,
    work: PlannedMap,
    items: MapItems,
    part: PartState,
    index: int,
) -> None:
    failure = part.failure
    assert failure is not None
    step.warn(f"item {index} failed: {failure.error}")
    items.ended += 1
    items.repeats = items.repeats + 1 if failure == items.last_failure else 1
    items.last_failure = failure
    policy = work.on_item_failure or part.brief.on_failure
    if items.repeats >= MOST_EQUAL_FAILURES:
        _fail_map(
            transition, step, f"stopped after {items.repeats} equal failures: {failure.error}"
        )
        return
    if policy == "abort":
        _fail_map(transition, step, f"item {index} failed: {failure.error}", failure.kind)
        return
    items.failures[index] = failure.error
    instead = stand_in(policy, step, f"item {index}", failure)
    if instead is not None and policy is not None:
        items.excused[index] = policy
        items.results[index] = instead.output
        transition.state.is_partial = True
    _continue_map(transition, step, work, items)


def _fail_map(
    transition: Transition, step: StepState, error: str, kind: FailureKind = "error"
) -> None:
    fail(transition, step, FailureReason(kind, error), step.planned.on_failure)


def _item_failures(items: MapItems) -> str:
    # In the order of the elements, since which of them fails first is chance.
    failed, most = sorted(items.failures), 5
    shown = "; ".join(f"item {index}: {items.failures[index]}" for index in failed[:most])
    rest = f" and {len(failed) - most} more" if len(failed) > most else ""
    return f"{len(failed)} of {len(items.values)} items failed: {shown}{rest}"


def _describe(value: Json | Missing) -> str:
    if isinstance(value, str):
        # Nearly always the answer of a step that was not asked for JSON.
        return f"text without a JSON list in it ({show_json(value, 60)})"
    return "missing" if value is MISSING else kind_of(value)


def _begin_workflow(transition: Transition, step: StepState, work: PlannedWorkflow) -> None:
    """The steps inside a workflow step may start as soon as its inputs fit."""
    inner = step.inner
    assert inner is not None
    inputs = given_inputs(step, work)
    if isinstance(inputs, str):
        error = f"workflow '{work.name}' cannot start: {inputs}"
        fail(transition, step, FailureReason("refused", error), step.planned.on_failure)
        return
    inner.scope.inputs, inner.scope.run_id = inputs, transition.state.run_id
    if work.timeout_seconds is not None:
        due_at, timer = transition.at + work.timeout_seconds, StepTimer(step.id)
        transition.set_timer(timer, min(due_at, transition.state.timers.get(timer, due_at)))
    for each in inner.steps.values():
        each.unmet -= 1
        if not each.unmet:
            heappush(transition.state.arrived, each.index)


def given_inputs(step: StepState, work: PlannedWorkflow) -> dict[str, Json] | str:
    """The inputs of a workflow step as they are now, or in words why they do not fit."""
    try:
        inputs, problems = inner_inputs(work, step.recipe.scope)
    except TooLong as error:
        return str(error)
    return "; ".join(each.message for each in problems) if problems else inputs


def end_workflow(transition: Transition, step: StepState) -> None:
    """All steps in it have ended."""
    inner = step.inner
    if inner is None or step.status is not StepStatus.RUNNING:
        return
    cut_off = [each for each in inner.steps.values() if each.status is StepStatus.CANCELLED]
    if cut_off:  # no recipe cancels its own steps without failing: the run is closing
        step.reason = transition.state.closing_reason or cut_off[0].reason
        end_step(transition, step, StepStatus.CANCELLED)
    elif lack := lack_of_output(inner):
        failed = [each for each in inner.steps.values() if each.error]
        error = f"step '{failed[0].id}' failed: {failed[0].error}" if failed else lack
        error = f"workflow '{_name_of(step)}' gave no output: {error}"
        fail(transition, step, FailureReason("error", error), step.planned.on_failure)
    else:
        name = _name_of(step)
        step.warn(*doubts_about_output(inner, f"the output of workflow '{name}'"))
        if nobody_answered(inner):
            step.warn(f"no agent was asked anything in workflow '{name}'")
        succeed(transition, step, recipe_output(inner))


def _name_of(step: StepState) -> str:
    return step.planned.work.name if isinstance(step.planned.work, PlannedWorkflow) else step.id
