"""From a request to a run that may start.

    RunRequest ─prepare→ PreparedRun ─Stretto.launch→ Run

Every surface makes a RunRequest: the command line, Python, and whatever is attached later. What
a run needs is found out in `prepare`: nothing is journaled and no model is asked before it returns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from stretto.assembly.playbook_choice import equip_plan
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project, RecipeSource
from stretto.assembly.recipe_files import unread_doubts
from stretto.events.attempts import BranchPart, ItemPart, Part
from stretto.execution.reuse import downstream, reusable
from stretto.execution.runs import Resume, Start, new_run_id
from stretto.execution.start_line import ThreadHop
from stretto.plan.prepare import ask_before, ask_to_start
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Budget, Recipe
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.names import RunId, StepId

if TYPE_CHECKING:
    from stretto.agents.conversation import LeadTurn
    from stretto.execution.history import History
    from stretto.plan.model import Plan
    from stretto.problems import Problem


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A new run of `recipe`; or, where `of` names a recorded run, that run resumed or run again.

    Running again without a `recipe` takes the plan that the recorded run has stored.
    """

    # A function is called in the thread that prepares the rest, so one hop is enough.
    recipe: RecipeSource | Callable[[], Recipe] | None = None
    inputs: Mapping[str, Json] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()  # inputs that were on record, without their secrets
    of: RunId | None = None
    is_resumed: bool = False  # False: `of` is run again, as a new run
    from_step: str | None = None  # running again: this step and all that depends on it is done anew
    # Of that step, only this branch or element: `2`, `item.2.stage.0`, a key.
    part: str | None = None
    model: str | None = None  # overrides the model of every agent
    permission: str | None = None
    budget: Budget = Budget()
    run_id: RunId | None = None  # of the new run; None: a new id
    seed: int | None = None
    accepted: frozenset[str] = frozenset()  # fingerprints of stored plans that the user has read
    owner: str = ""  # who starts it, where that is not the user at a terminal
    trigger: str = ""  # and by what: http, mcp, schedule NAME, chat ID, goal ID
    is_delegated: bool = False  # of a chat or a goal: one script serves all its runs
    is_folder_asked: bool = False  # a person was asked whether the folder is trusted
    is_start_asked: bool = False  # with the permission ask, a person allows the first steps too
    is_read: bool = False  # a person has read what it would do to the machine, whoever wrote it
    # Hears what its preparation does that may take long: `starting the MCP server notes`.
    tell: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that may start: its plan is final, its inputs are bound and its models can be asked."""

    project: Project
    plan: "Plan"
    beginning: Start | Resume
    models: ModelSelection
    permission: str  # with which it goes on after a person has decided
    notices: tuple[str, ...] = ()  # for the user: which model was chosen and why, what is missing
    accepted: frozenset[str] = frozenset()
    lead: "LeadTurn | None" = None  # None: no step of it is a turn of the lead agent

    @property
    def run_id(self) -> RunId:
        assert self.beginning.run_id is not None  # `prepare` gives every new run its id
        return self.beginning.run_id

    @property
    def warnings(self) -> "tuple[Problem, ...]":
        return self.plan.warnings

    def resumed(self) -> "PreparedRun":
        """The same run, to go on after a person has decided about a step of it."""
        return replace(self, beginning=Resume(self.run_id, self.permission))


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The run that a request is about. `doubt`: why what it began with must not be used again."""

    history: "History"
    doubt: str = ""


async def prepare(
    request: RunRequest,
    project: Project,
    ports: Ports,
    hop: ThreadHop,
    recorded: RecordedRun | None = None,
) -> PreparedRun:
    """`project`: whose settings count; for a recorded run, the one in which it began.

    Raises InvalidRecipe, InvalidInputs, PermissionDenied, NotTrusted, NotReady and InvalidUsage.
    """
    if recorded is not None and request.is_resumed:
        return await _prepare_resumed(request, project, ports, recorded.history)
    # At one go: each way to a thread and back waits for all that the loop does.
    start, notices, chosen = await hop.run(partial(_make_start, request, project, ports, recorded))
    if chosen is None:
        chosen = await ports.choose(
            project, start.plan, start.model, request.is_delegated, request.tell
        )
    notices = (*notices, *chosen.notes)
    return PreparedRun(project, start.plan, start, chosen, "auto", notices, request.accepted)


def _make_start(
    request: RunRequest, project: Project, ports: Ports, recorded: RecordedRun | None
) -> tuple[Start, tuple[str, ...], ModelSelection | None]:
    if callable(request.recipe):
        request = replace(request, recipe=request.recipe())
    if recorded is None:
        plan, notices = project.open_plan(_source(request))
        given: Mapping[str, Json] = request.inputs
        model = project.model(request.model)
    else:
        plan, notices = _plan_again(request, project, recorded)
        given = _inputs_again(request, plan, recorded)
        earlier = None if recorded.doubt else recorded.history.started.model
        model = project.model(request.model) or earlier
    if request.recipe is not None and not request.is_folder_asked:
        project.check_namesakes(plan)
    inputs = project.inputs(plan, given)
    workspace = _workspace(ports, recorded)
    plan = project.bind(plan, inputs, workspace)
    kept = (given.keys() - request.inputs.keys()) | request.kept
    plan = project.tell_of_secrets(plan, inputs, kept)
    plan, asked = _permit(plan, request, project, model, workspace)
    plan, more = equip_plan(plan, inputs, project.settings, ports.open_clock().now)
    start = _as_asked(project.start(plan, inputs, model), request, workspace)
    if recorded is not None:
        start = _run_again(start, request, plan, recorded)
    chosen = ports.choose_at_once(project, start.plan, start.model, request.is_delegated)
    return start, (*notices, *asked, *more), chosen


def _source(request: RunRequest) -> RecipeSource | None:
    assert not callable(request.recipe)  # it was called when the preparation began
    return request.recipe


def _permit(
    plan: "Plan", request: RunRequest, project: Project, model: str | None, workspace: str | None
) -> "tuple[Plan, tuple[str, ...]]":
    """The plan with the steps that a person allows, and why."""
    plan = project.prepare(plan, model, request.permission, workspace, request.budget)
    permission = request.permission or project.settings.permission
    if request.is_start_asked and permission == "ask":
        plan = ask_to_start(plan)
    unread = () if request.is_read else unread_doubts(project, plan)
    notices = tuple(
        f"{each.says}; a model wrote this and no person has read it, so a person is asked"
        for each in unread
    )
    if unread:
        plan = ask_before(plan, {id for each in unread for id in each.steps})
    return plan, notices


def _as_asked(start: Start, request: RunRequest, workspace: str | None) -> Start:
    return replace(
        start,
        run_id=request.run_id or new_run_id(),
        seed=request.seed,
        owner=request.owner,
        trigger=request.trigger,
        workspace=start.workspace if workspace is None else workspace,
    )


async def _prepare_resumed(
    request: RunRequest, project: Project, ports: Ports, history: "History"
) -> PreparedRun:
    started, plan = history.started, history.state.plan
    permission = "auto"
    if not history.state.has_ended:
        permission = project.readmit(history, request.permission)
    model = project.model(request.model) if request.model else started.model
    chosen = await ports.choose(project, plan, model, request.is_delegated, request.tell)
    beginning = Resume(RunId(started.run_id), permission)
    return PreparedRun(project, plan, beginning, chosen, permission, chosen.notes, request.accepted)


def _plan_again(
    request: RunRequest, project: Project, recorded: RecordedRun
) -> "tuple[Plan, tuple[str, ...]]":
    notices = (recorded.doubt,) if recorded.doubt else ()
    if request.recipe is not None:
        plan, more = project.open_plan(_source(request))
        notices = (*notices, *more)
    else:
        project.check_trust(recorded.history)
        plan = recorded.history.state.plan
    step = request.from_step
    if step is not None and step not in {each.id for each in plan.steps}:
        known = [each.id for each in plan.steps]
        hint = did_you_mean(step, known) or f"its steps: {listed(known)}"
        raise InvalidUsage(f"{plan.name} has no step '{step}'", hint=hint)
    if request.part is not None:
        _part_again(request, plan, recorded)  # raises InvalidUsage
    return plan, notices


def _part_again(request: RunRequest, plan: "Plan", recorded: RecordedRun) -> Part | None:
    """The branch or element that is done anew, where the rest of its step is not. Raises InvalidUsage."""
    written, step = request.part, request.from_step
    if written is None:
        return None
    if step is None:
        raise InvalidUsage("a part is one of a step: say of which", hint="from_step, --from STEP")
    found = recorded.history.state.steps.get(StepId(step))
    parts = [id for id in (found.parts if found else ()) if isinstance(id, BranchPart | ItemPart)]
    if not parts:
        hint = f"retry it as a whole: --from {step}"
        raise InvalidUsage(f"step '{step}' has no branches or elements", hint=hint)
    if any(each.id == step and each.posture == "writer" for each in plan.steps):
        hint = f"its parts share one copy of the files; retry it as a whole: --from {step}"
        raise InvalidUsage(f"step '{step}' writes files, so no part of it is done alone", hint=hint)
    for id in parts:
        if written == id.text or (isinstance(id, ItemPart) and written == str(id.index)):
            return id
    names = list(
        dict.fromkeys(str(id.index) if isinstance(id, ItemPart) else id.key for id in parts)
    )
    hint = did_you_mean(written, names) or f"its parts: {listed(names[:20])}"
    raise InvalidUsage(f"step '{step}' has no part '{written}'", hint=hint)


def _inputs_again(request: RunRequest, plan: "Plan", recorded: RecordedRun) -> dict[str, Json]:
    declared = {each.name for each in plan.inputs}
    stored = {} if recorded.doubt else recorded.history.started.inputs
    before = {name: value for name, value in stored.items() if name in declared}
    return {**before, **request.inputs}


def _run_again(start: Start, request: RunRequest, plan: "Plan", recorded: RecordedRun) -> Start:
    history = recorded.history
    step = StepId(request.from_step) if request.from_step else None
    anew = downstream(plan, step) if step else frozenset()
    part = _part_again(request, plan, recorded)
    if step is not None and part is not None:
        anew -= {step}
    before = reusable(history.state, anew, step, part)
    if recorded.doubt:  # then its approvals do not count either
        before = replace(before, approved={})
    return replace(start, parent=history.started.run_id, reusable=before)


def _workspace(ports: Ports, recorded: RecordedRun | None) -> str | None:
    """Empty: no step works on files. None: the project's own folder."""
    if not ports.has_workspaces:
        return ""
    if recorded is None or recorded.doubt:
        return None
    return recorded.history.started.workspace or None
