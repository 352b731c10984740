"""What somebody asks of a goal, checked before anything is kept.

In: GoalRequest. Out: GoalSpec, which goes on record; or GoalLimits, of a goal that goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import structs

from stretto.assembly.arguments import (
    check_budget,
    check_number,
    check_optional_text,
    check_permission,
    check_text,
    is_number,
)
from stretto.assembly.project import Project, RecipeSource
from stretto.assembly.run import user_name
from stretto.goals.goal import GoalLimits, GoalSpec, GoalStanding
from stretto.goals.prompts import evidence_input_of, goal_input_of, inputs_of
from stretto.goals.verifier import Verifier, read_verifier
from stretto.problems.errors import InvalidUsage, PermissionDenied
from stretto.text.short import shorten
from stretto.vocabulary.amounts import parse_duration
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from stretto.recipe.model import Recipe

AskedBy: TypeAlias = Literal["person", "model"]
_MOST_ITERATIONS = 10_000
_LONGEST_TEXT = 50_000


@dataclass(frozen=True, slots=True)
class GoalRequest:
    """What somebody wants to reach, and how.

    `verify`: KIND:SPEC, such as "command:make check". `workflow`: what one iteration runs, with
    `inputs`; without it, a turn of an agent. `evidence_input`: the input that gets the evidence of
    the last check; by default `evidence`, `feedback`, or below the text that the workflow is given.
    `limits`: of all runs together, and of the time at work.

    `asked_by`: "model" where a model has chosen the verifier. One that runs a command then needs a
    person's `consent`: the very text of `verify` that the person was shown.
    """

    text: str
    verify: str
    workflow: RecipeSource | None = None
    inputs: Mapping[str, Json] = field(default_factory=dict)
    evidence_input: str | None = None
    limits: GoalLimits = GoalLimits()
    model: str | None = None
    permission: str | None = None
    asked_by: AskedBy = "person"
    consent: str | None = None


def goal_spec(project: Project, request: GoalRequest) -> GoalSpec:
    """What goes on record. Raises InvalidUsage, InvalidRecipe, InvalidInputs, NotFound and
    PermissionDenied."""
    check_text(text=request.text, verify=request.verify)
    check_optional_text(
        model=request.model, evidence_input=request.evidence_input, consent=request.consent
    )
    if not request.text.strip():
        raise InvalidUsage(
            "the text of the goal is empty", hint='stretto goal set "All tests pass" …'
        )
    if len(request.text) > _LONGEST_TEXT:
        hint = "put the rest into a file of the workspace, and name that"
        raise InvalidUsage(f"a goal has at most {_LONGEST_TEXT:,} characters", hint=hint)
    given = {"the goal's text": request.text, "its verifier": request.verify}
    project.refuse_secrets("a goal", {**given, "its inputs": request.inputs})
    verifier = _check_permitted(read_verifier(request.verify), request.asked_by, request.consent)
    spec = GoalSpec(
        request.text.strip(),
        str(verifier),
        str(project.settings.project),
        model=project.model(request.model) or request.model,
        permission=check_permission(request.permission),
        limits=request.limits,
        asked_by=request.asked_by,
        by=user_name(),
    )
    if request.workflow is not None:
        return _with_workflow(project, spec, request)
    if request.inputs or request.evidence_input is not None:
        raise InvalidUsage("inputs are for a workflow, and none is named", hint="--workflow NAME")
    return spec


def _check_permitted(verifier: Verifier, asked_by: AskedBy, consent: str | None) -> Verifier:
    if asked_by not in ("person", "model"):
        raise InvalidUsage(f"asked_by is '{asked_by}'; it must be person or model")
    if asked_by == "person" or not verifier.runs_command:
        return verifier
    if consent is not None and str(read_verifier(consent)) == str(verifier):
        return verifier
    raise PermissionDenied(
        f"a model chose the verifier '{shorten(str(verifier), 200)}', which runs a command, and "
        "no person has agreed to it",
        hint="read it, then set the goal yourself: stretto goal set … --verify …",
    )


def _with_workflow(project: Project, spec: GoalSpec, request: GoalRequest) -> GoalSpec:
    """Checked as far as that goes without a model: the recipe, its inputs."""
    recipe: Recipe
    recipe, _ = project.read(request.workflow)
    plan = project.plan(recipe)
    project.check_namesakes(plan)
    given = request.inputs
    goal_input = goal_input_of(recipe, given)
    name, is_appended = evidence_input_of(recipe, request.evidence_input, given, goal_input)
    spec = structs.replace(
        spec,
        workflow=recipe.name,
        recipe=recipe.source.text,
        inputs=dict(given),
        goal_input=goal_input,
        evidence_input=name,
        is_appended=is_appended,
    )
    trial = inputs_of(GoalStanding("", spec, 0.0, spec.limits))
    if name and not is_appended:
        trial[name] = "what the last check said"
    project.inputs(plan, trial)
    project.prepare(plan, spec.model, spec.permission, workspace="")  # raises PermissionDenied
    return spec


def read_limits(
    before: GoalLimits,
    iterations: int | None,
    budget: Mapping[str, float] | None,
    timeout: str | float | None,
    verify_timeout: str | float | None,
    stall_after: int | None,
) -> GoalLimits:
    changes: dict[str, object] = {}
    if iterations is not None:
        check_number("max_iterations", iterations, 1, _MOST_ITERATIONS)
        changes["iterations"] = iterations
    if stall_after is not None:
        check_number("stall_after", stall_after, 0, _MOST_ITERATIONS)
        changes["stall_after"] = stall_after
    given = check_budget(budget)
    if given.agents is not None:
        raise InvalidUsage(
            "a goal's budget is {'tokens', 'usd'}; its runs are counted by max_iterations"
        )
    if given.tokens is not None:
        changes["tokens"] = given.tokens
    if given.usd is not None:
        changes["usd"] = given.usd
    if timeout is not None:
        changes["seconds"] = _seconds("timeout", timeout)
    if verify_timeout is not None:
        changes["check_seconds"] = _seconds("verify_timeout", verify_timeout)
    return structs.replace(before, **changes)


def _seconds(name: str, written: object) -> float:
    if not isinstance(written, str) and not is_number(written):
        raise InvalidUsage(f"{name} must be a duration, such as '30m' or a number of seconds")
    found = parse_duration(written)
    if found is None:
        raise InvalidUsage(f"{name} is '{shorten(str(written), 40)}', which is no duration", hint="90s, 1h30m")  # fmt: skip
    return found
