"""A chat turn, or runs, become a workflow, for one project. In: ids of chats and runs. Out: CapturedWorkflow.

    ids ─delegations→ CaptureSource ─capture→ CapturedRecipe ─check, replay→ CapturedWorkflow

The recipe is replayed once: it runs by the same engine, in memory, and every delegation is answered with what
was recorded. The replay shows that the same steps wait for each other and that the same prompts are asked.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stretto.assembly.engine import Engine
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.recipe_files import known_recipes
from stretto.assembly.request import RunRequest
from stretto.assembly.run import Run
from stretto.events.model import AttemptSucceeded
from stretto.lead.captures import (
    CapturedRecipe,
    CaptureSource,
    RecordedDelegation,
    capture,
    differences,
    says_same,
    stands_in,
)
from stretto.lead.chats import ChatFile, ChatStore, KeptCall, KeptTurn
from stretto.lead.drafts import DRAFT, is_draft
from stretto.lead.tasks import BATCH, TASK_NAME
from stretto.plan.model import PlannedDelegation
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.problems import Problem
from stretto.problems.errors import InvalidRecipe, InvalidUsage, StrettoError
from stretto.registry.saved_recipe import twin_of
from stretto.schedule.outputs import output_of
from stretto.templates.render import as_text
from stretto.vocabulary.json_value import Json, loaded
from stretto.vocabulary.models import Setup, is_asked
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import StepStatus

if TYPE_CHECKING:
    from stretto.execution.history import History
    from stretto.plan.model import Plan
    from stretto.recipe.model import Recipe
    from stretto.schedule.state import StepState

_MOST_SOURCES = 50


@dataclass(frozen=True, slots=True)
class CapturedWorkflow:
    """A recipe made of delegations that worked. It is only text: nothing is saved."""

    name: str
    recipe: str  # YAML
    inputs: Mapping[str, str]  # what became an input, with the value that was found
    diagram: str = ""  # as `stretto graph` draws it
    notes: tuple[str, ...] = ()  # what was decided that a reader may doubt
    differences: tuple[str, ...] = ()  # between the replay and what was recorded
    problems: tuple[Problem, ...] = ()
    same_as: str = ""  # a saved recipe that does the same already

    @property
    def is_proven(self) -> bool:
        """The recipe has no problems, and its replay asked what the delegations were asked."""
        return not self.problems and not self.differences


async def capture_workflow(
    engine: Engine, ids: Sequence[str], name: str, given: Mapping[str, str]
) -> CapturedWorkflow:
    """Raises NotFound and InvalidUsage."""
    if not 0 < len(ids) <= _MOST_SOURCES:
        raise InvalidUsage(f"name a chat or runs, {_MOST_SOURCES} at the most")
    if (
        len(ids) == 1
        and not given
        and (drafted := await _of_draft(engine, *await _find_draft(engine, ids[0])))
    ):
        return drafted
    source = await _source(engine, ids, given)
    captured = await asyncio.to_thread(capture, source, name)
    return await _proven(engine, captured)


async def _source(engine: Engine, ids: Sequence[str], given: Mapping[str, str]) -> CaptureSource:
    done: list[RecordedDelegation] = []
    words: list[str] = []
    answer, known = "", dict[str, str]()
    for id in dict.fromkeys(ids):
        turns = await _turns(engine, id, len(ids) == 1)
        if turns is None:
            history = await _read_ended(engine, id)
            if len(ids) > 1 and _is_saved(engine.project, history):
                done.append(_workflow(history))
                continue
            done += _delegations(history)
            known |= _named_inputs(history, done)
            continue
        for turn, calls in turns:
            if turn.status == "complete":
                words.append(turn.said)
                answer = turn.answer
                if turn.kind == "workflow":
                    done.append(_workflow(await _read_ended(engine, turn.run_id)))
                for call in calls:
                    done += await _of_call(engine, call)
    return CaptureSource(tuple(done), "\n".join(words), answer, {**known, **given})


def _named_inputs(history: "History", done: Sequence[RecordedDelegation]) -> dict[str, str]:
    """Of a run of a recipe: its inputs that stand in prompts. A task has its prompt as the input."""
    if history.state.plan.name in (TASK_NAME, BATCH):
        return {}
    inputs = history.started.inputs.items()
    return {
        name: value
        for name, value in inputs
        if isinstance(value, str)
        and len(value) > 1
        and any(stands_in(value, e.prompt) for e in done)
    }


async def _find_draft(engine: Engine, id: str) -> tuple[str, str]:
    """The run that a draft became, and the draft; empty where there is none. A chat in which nothing
    but one draft was run stands for that run."""
    turns = await _turns(engine, id, is_alone=True)
    if turns is None:
        if not await _is_known(engine, id):
            return "", ""
        word, _, draft_id = (await engine.history(id)).started.trigger.partition(" ")
        return (id, draft_id) if word == DRAFT else ("", "")
    calls = [call for _, calls in turns for call in calls if call.is_ok and call.run_id]
    ran = [call for call in calls if call.tool != "draft_workflow"]
    if len(ran) != 1 or ran[0].tool != "run_draft":
        return "", ""
    return ran[0].run_id, str(ran[0].arguments.get("draft"))


async def _of_draft(engine: Engine, run_id: str, draft_id: str) -> CapturedWorkflow | None:
    """The recipe of a run that a draft became, as it was drafted; None: it is none, or it was edited."""
    if not (await _is_known(engine, run_id) and await _is_known(engine, draft_id)):
        return None
    history = await engine.history(run_id)
    from stretto.assembly.drafts import read_draft
    from stretto.report.report import report_of

    project = engine.project
    draft = await read_draft(project, report_of((await engine.history(draft_id)).state))
    recipe = project.recipe_from_text(draft.recipe, "draft.yaml")
    if recipe.source.digest != history.started.digest:
        return None
    await _read_ended(engine, run_id)
    return await _proven_draft(engine, recipe, history)


async def _turns(
    engine: Engine, id: str, is_alone: bool
) -> "list[tuple[KeptTurn, list[KeptCall]]] | None":
    """The turns of a chat, or the one turn that is this run; None: it is another run. One task of a turn
    that is named alone stands for its turn, since by itself it is no workflow."""
    file = ChatFile(engine.project.settings.home)
    if not file.is_there:
        return None

    def read(store: ChatStore) -> "list[tuple[KeptTurn, list[KeptCall]]] | None":
        turn = store.turn_of(id)
        is_meant = turn is not None and turn.kind == "lead" and (is_alone or turn.run_id == id)
        found = store.turns(id) or ([turn] if turn is not None and is_meant else [])
        return [(each, store.calls(each.run_id)) for each in found] or None

    return await file.use(read)


async def _of_call(engine: Engine, call: KeptCall) -> list[RecordedDelegation]:
    """What of it worked: of a batch with a failure, the rest."""
    if not call.run_id or call.result is None or not await _is_known(engine, call.run_id):
        return []
    if call.tool == "draft_workflow":
        return []  # what it drafted is captured where it was run
    history = await _read_ended(engine, call.run_id)
    if call.tool == "run_workflow":
        return [_workflow(history)] if call.is_ok else []
    return _delegations(history, str(call.arguments.get("description") or ""))


def _is_saved(project: Project, history: "History") -> bool:
    """Whether the run was of a recipe that is saved under its name, as it is now."""
    entry = project.saved(history.state.plan.name)
    return entry is not None and entry.recipe.source.digest == history.started.digest


def _workflow(history: "History") -> RecordedDelegation:
    """A run of a saved recipe, as a step that runs it. With the inputs that were not the defaults."""
    plan, given = history.state.plan, history.started.inputs
    defaults = {str(each.name): each.default for each in plan.inputs}
    inputs = {name: value for name, value in given.items() if defaults.get(name) != value}
    prompts, outputs = _read_record(history)
    inside = {key: (prompts.get(key, ""), output) for key, output in outputs.items()}
    return RecordedDelegation(
        "", "", as_text(output_of(history.state)), history.started.at,
        history.state.ended_at or 0.0, workflow=str(plan.name), inputs=inputs, inside=inside,
    )  # fmt: skip


async def _is_known(engine: Engine, run_id: str) -> bool:
    return await (await engine.runs_of()).is_known(RunId(run_id))


async def _read_ended(engine: Engine, run_id: str) -> "History":
    """Raises NotFound, and InvalidUsage for a run that is no example to follow yet."""
    history = await engine.history(run_id)
    if is_draft(history.state.plan):
        hint = f"run it first: stretto draft --resume {run_id}"
        raise InvalidUsage(f"run {run_id} drafted a recipe, and nothing of it has run", hint=hint)
    if not history.state.has_ended:
        hint = f"stretto resume {run_id} goes on"
        raise InvalidUsage(f"run {run_id} has not ended", hint=hint)
    return history


def _delegations(history: "History", title: str = "") -> list[RecordedDelegation]:
    """The delegations of a run that worked. Raises InvalidUsage for a run with steps of other kinds."""
    state, (prompts, _) = history.state, _read_record(history)
    batch = str(state.run_id) if state.plan.name == BATCH else ""
    found = []
    for number, step in enumerate(state.order):
        if step.status == StepStatus.SUCCEEDED:
            agent, prompt = _agent(state.plan, step), prompts.get(str(step.id), "")
            started, ended = step.started_at or 0.0, step.ended_at or 0.0
            named = title or _title(history, number, step)
            found.append(
                RecordedDelegation(
                    agent, prompt, as_text(step.output), started, ended, named, batch=batch
                )
            )
    return found


def _agent(plan: "Plan", step: "StepState") -> str:
    work = step.planned.work
    if isinstance(work, PlannedDelegation) and is_asked(plan.agents[work.brief.agent].model):
        return str(work.brief.agent)
    hint = "it is a recipe already: save its file in workflows/"
    raise InvalidUsage(f"step '{step.id}' of {plan.name} is not one plain delegation", hint=hint)


def _title(history: "History", number: int, step: "StepState") -> str:
    """A few words for a step: its id, or the description of a task of a batch; empty: none."""
    plan, tasks = history.state.plan, history.started.inputs.get("tasks")
    if plan.name == TASK_NAME:
        return ""
    if plan.name != BATCH or not isinstance(tasks, list):
        return str(step.id)
    task = tasks[number] if number < len(tasks) else None
    described = not str(step.id).startswith("task-")
    return str(task.get("title", "")) if isinstance(task, dict) and described else ""


async def _proven(engine: Engine, captured: CapturedRecipe) -> CapturedWorkflow:
    project = engine.project
    found = CapturedWorkflow(
        captured.name, captured.recipe, dict(captured.inputs), notes=captured.notes
    )
    recipe = project.recipe_from_text(captured.recipe, f"{captured.name}.yaml")
    try:
        plan = await asyncio.to_thread(project.plan, recipe)
    except InvalidRecipe as error:
        return replace(found, problems=error.problems)
    outputs = {
        _key(each.id, part): output
        for each in captured.steps
        for part, (_, output) in each.done.parts.items()
    }
    asked = await _replay(project, recipe, {}, outputs)
    edges = {str(step.id): [str(id) for id in step.edges] for step in plan.steps}
    return await _describe(
        project, replace(found, differences=differences(captured, asked, edges)), plan
    )


async def _proven_draft(engine: Engine, recipe: "Recipe", history: "History") -> CapturedWorkflow:
    project, text = engine.project, recipe.source.text
    given = {name: as_text(value) for name, value in history.started.inputs.items()}
    found = CapturedWorkflow(recipe.name, text, given)
    try:
        plan = await asyncio.to_thread(project.plan, recipe)
    except InvalidRecipe as error:  # an agent that it names is gone
        return replace(found, problems=error.problems)
    prompts, outputs = _read_record(history)
    asked = await _replay(project, recipe, history.started.inputs, outputs)
    differs = [key for key in outputs if not says_same(asked.get(key, ""), prompts.get(key, ""))]
    said = tuple(f"'{key}' was asked something else" for key in differs)
    return await _describe(project, replace(found, differences=said), plan)


async def _describe(project: Project, found: CapturedWorkflow, plan: "Plan") -> CapturedWorkflow:
    from stretto.report.diagrams import draw

    twin = await asyncio.to_thread(lambda: twin_of(plan, known_recipes(project), ""))
    diagram = draw(plan, "ascii").rstrip("\n")
    return replace(found, diagram=diagram, same_as=twin.name if twin else "")


def _read_record(history: "History") -> tuple[dict[str, str], dict[str, Json]]:
    """What each part of a run was asked, and what it gave; both by its last attempt."""
    from stretto.report.transcript import Log

    log, prompts, outputs = Log(history.state.plan), dict[str, str](), dict[str, Json]()
    for event in history.events:
        for entry in log.read(event):
            if entry.kind == "prompt":
                prompts[_key(entry.step, entry.part)] = entry.text
        if isinstance(event, AttemptSucceeded):
            part = _key(event.step, event.attempt.part.text)
            outputs[part] = loaded(event.output)
    return prompts, outputs


def _key(step: str, part: str) -> str:
    return f"{step}/{part}" if part else step


async def _replay(
    project: Project, recipe: "Recipe", inputs: Mapping[str, Json], outputs: Mapping[str, Json]
) -> dict[str, str]:
    """The prompt of each part, where every part before it answers as it did. It runs in memory."""
    from stretto.adapters.clock import SystemClock
    from stretto.adapters.stores.memory import MemoryJournal

    clock, runner = SystemClock(), _Recorded(outputs)
    ports = Ports(MemoryJournal(clock.now), clock, runner, has_workspaces=False)
    engine = Engine(lambda folder: project, None, ports)
    try:
        prepared = await engine.prepare(RunRequest(recipe, inputs, permission="auto"))
        run = Run(engine, prepared.run_id)
        await run._drive(prepared)
        await run.wait()
    except StrettoError as error:
        raise InvalidUsage(f"the captured recipe cannot be replayed: {error.with_hint}") from error
    finally:
        await engine.close()
    return runner.asked


@dataclass(slots=True)
class _Recorded:
    """A runner that answers each part with what was recorded, and remembers what it was asked."""

    outputs: Mapping[str, Json]
    asked: dict[str, str] = field(default_factory=dict)

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        return Setup(dict.fromkeys(models, "recorded"))

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        part = _key(request.step, request.attempt.part.text)
        self.asked[part] = request.prompt
        if part not in self.outputs:
            return Failure("permanent", "nothing is recorded")
        return Success(self.outputs[part])
