"""A loop: produce, judge, produce again with the feedback, until it passes or time is up."""

from stretto.plan.model import PlannedLoop
from stretto.schedule.outcomes import fail, policy_for, succeed
from stretto.schedule.parts import start_part
from stretto.schedule.state import PartState, StepState
from stretto.schedule.turn import Turn
from stretto.templates.evaluate import Undecided, decide
from stretto.templates.json_text import find_json
from stretto.templates.operators import truth
from stretto.templates.reference import PathPart, Reference
from stretto.templates.scope import Scope, resolve
from stretto.templates.value import MISSING
from stretto.vocabulary.values import Json

MAX_ITERATIONS_REACHED = "max iterations reached"


def begin(turn: Turn, step: StepState, work: PlannedLoop) -> None:
    _produce(turn, step, work, feedback=None)


def end_part(turn: Turn, step: StepState, work: PlannedLoop, part: PartState) -> None:
    if part.failure is not None:
        # A judge that fails leaves as little to go by as a producer that does.
        fail(turn, step, part.failure, policy_for(step, part))
    elif part.brief is work.validator:
        _hear_verdict(turn, step, work, part.output)
    elif work.validator is not None:
        step.kept_output = part.kept_output
        check = f"check.{step.iteration}"
        start_part(turn, step, check, work.validator, dict(part.local), handed=part.output)
    else:
        step.kept_output = part.kept_output
        _go_on(turn, step, work, _is_done(turn, step, work, part), feedback=None)


def _produce(turn: Turn, step: StepState, work: PlannedLoop, feedback: Json) -> None:
    step.iteration += 1
    local: dict[str, Json] = {"feedback": feedback, "iteration": step.iteration}
    start_part(turn, step, f"try.{step.iteration}", work.producer, local)


def _go_on(turn: Turn, step: StepState, work: PlannedLoop, is_done: bool, feedback: Json) -> None:
    if not is_done and step.iteration < work.max_iterations:
        _produce(turn, step, work, feedback)
        return
    if not is_done:
        step.warnings[MAX_ITERATIONS_REACHED] = None
    succeed(turn, step, step.kept_output)


def _is_done(turn: Turn, step: StepState, work: PlannedLoop, part: PartState) -> bool:
    if work.until is None:
        return True
    scope = turn.state.scope_with(part.local, candidate=(step.id, part.output))
    claim = decide(work.until, scope)
    if isinstance(claim, Undecided):
        step.warnings[f"'until' is undecided and counts as false: {claim.reason}"] = None
        return False
    return claim


def _hear_verdict(turn: Turn, step: StepState, work: PlannedLoop, said: Json) -> None:
    found = find_json(said) if isinstance(said, str) else said
    verdict = said if found is MISSING else found
    step.validation = verdict
    passed = truth(verdict.get("passed")) if isinstance(verdict, dict) else Undecided("no object")
    if isinstance(passed, Undecided):
        step.warnings["a verdict does not say `passed` and counts as not passed"] = None
    is_done = passed is True
    _go_on(turn, step, work, is_done, None if is_done else _feedback(step, work, verdict))


def _feedback(step: StepState, work: PlannedLoop, verdict: Json) -> Json:
    paths: list[tuple[PathPart, ...]] = [("feedback",)]
    if work.feedback is not None:
        path = work.feedback.path
        # Inside the loop, the step's own output means the verdict.
        paths.insert(0, path[3:] if path[:2] == ("steps", step.id) else path)
    for path in paths:
        value = resolve(Reference("", ("verdict", *path), 0), Scope(local={"verdict": verdict}))
        if value is not MISSING and value is not None:
            return value
    return verdict
