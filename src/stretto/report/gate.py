"""What a person is asked to approve. In: a run that waits, and a step. Out: Gate, as text or JSON.

Everything that would run, and on what grounds: prompts as they are rendered, agents, the models
that would really answer, tools, sets, and what the steps before have given.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stretto.plan.model import PlannedWorkflow
from stretto.plan.workflow_steps import inner_steps
from stretto.report.prose import where_it_writes
from stretto.report.text import show
from stretto.schedule.approvals import question_of
from stretto.schedule.commands import StartAttempt
from stretto.schedule.places import answerers
from stretto.schedule.state import RunState, StepState
from stretto.schedule.work import given_inputs
from stretto.text.visible import visible
from stretto.vocabulary.json_value import Json

# A person needs no more of a script's or a file's digest; the JSON form has all of it.
_DIGEST = re.compile(r"([0-9a-f]{12})[0-9a-f]{20,}")
_ABOUT = {
    "start": "it has not started yet",
    "again": "it was interrupted, its effects are unknown, and it would run again",
    "merge": "it is done, and its change would be merged",
}


@dataclass(frozen=True, slots=True)
class GatePart:
    part: str  # which delegation of the step; empty where it is the only one
    agent: str
    models: tuple[str, ...]  # who answers, and who is asked next if that fails
    tools: tuple[str, ...]
    instructions: str
    prompt: str
    is_command: bool = False  # the prompt shows what runs, and cannot be edited
    when: str = ""  # it does not start at once: when it does, in words


@dataclass(frozen=True, slots=True)
class Ground:
    step: str
    status: str
    output: Json


@dataclass(frozen=True, slots=True)
class Gate:
    run_id: str
    workflow: str
    step: str
    about: str  # start | again | merge
    question: str
    key: str
    posture: str
    read_set: tuple[str, ...]
    write_set: tuple[str, ...]
    where: str  # of a writer: in the workspace or in a copy, and what becomes of its change
    workspace: str
    parts: tuple[GatePart, ...]
    grounds: tuple[Ground, ...]
    used: "UsedRecipe | None" = None  # of a workflow step
    later: tuple[GatePart, ...] = ()  # what else the step may start


@dataclass(frozen=True, slots=True)
class UsedRecipe:
    """What starts with a workflow step: the recipe, what it is given, and its steps."""

    name: str
    file: str
    digest: str
    inputs: Mapping[str, Json] | str  # in words why they do not fit
    steps: tuple[str, ...]


def gate_of(state: RunState, step: StepState) -> Gate:
    question, planned = question_of(state, step), step.planned
    befores = [state.steps[before] for before in planned.depends_on]
    return Gate(
        run_id=state.run_id,
        workflow=state.plan.name,
        step=step.id,
        about=question.about,
        question=step.question if question.about == "merge" else "",
        key=step.asked_key or question.key,
        posture=planned.posture,
        read_set=planned.read_set,
        write_set=planned.write_set,
        where=where_it_writes(planned) if planned.is_writer else "",
        workspace=state.workspace,
        parts=tuple(_part(state, command) for command in question.commands),
        grounds=tuple(Ground(each.id, each.status.value, each.output) for each in befores),
        used=_used_recipe(state, step),
        later=(
            *(_part(state, command, "later") for command in question.later),
            *(_part(state, command, "if it fails") for command in question.fallbacks),
        ),
    )


def _used_recipe(state: RunState, step: StepState) -> UsedRecipe | None:
    work = step.planned.work
    if not isinstance(work, PlannedWorkflow):
        return None
    steps = tuple(each.id for each in inner_steps(state.plan, step.id))
    return UsedRecipe(work.name, work.file, work.digest, given_inputs(step, work), steps)


def _part(state: RunState, command: StartAttempt, when: str = "") -> GatePart:
    request = command.request
    return GatePart(
        part=request.attempt.part.text,
        agent=request.agent,
        models=answerers(state, request.model, request.fallback_models),
        tools=request.tools,
        instructions=request.instructions,
        prompt=request.prompt,
        is_command=request.command is not None,
        when=when,
    )


def gate_as_json(gate: Gate) -> dict[str, Json]:
    grounds: list[Json] = [
        {"step": each.step, "status": each.status, "output": each.output} for each in gate.grounds
    ]
    return {
        "ok": True,
        "run_id": gate.run_id,
        "workflow": gate.workflow,
        "step": gate.step,
        "status": "awaiting approval",
        "about": gate.about,
        "question": gate.question,
        "key": gate.key,
        "posture": gate.posture,
        "read_set": list(gate.read_set),
        "write_set": list(gate.write_set),
        "where": gate.where,
        "workspace": gate.workspace,
        "parts": [_part_as_json(each) for each in gate.parts],
        "later": [{**_part_as_json(each), "when": each.when} for each in gate.later],
        "grounds": grounds,
        **({"uses": _used_as_json(gate.used)} if gate.used else {}),
    }


def _part_as_json(part: GatePart) -> dict[str, Json]:
    return {
        "part": part.part,
        "agent": part.agent,
        "models": list(part.models),
        "tools": list(part.tools),
        "instructions": part.instructions,
        "prompt": part.prompt,
    }


def _used_as_json(used: UsedRecipe) -> dict[str, Json]:
    inputs: Json = used.inputs if isinstance(used.inputs, str) else dict(used.inputs)
    return {
        "name": used.name, "file": used.file, "digest": used.digest, "inputs": inputs,
        "steps": list(used.steps),
    }  # fmt: skip


def gate_as_text(gate: Gate, most_lines: int = 0) -> str:
    """`most_lines`: of each text; 0: all of it."""
    return visible("\n".join(_lines(gate, most_lines)))


def _lines(gate: Gate, most: int) -> Iterator[str]:
    yield f"Step '{gate.step}' of {gate.workflow} awaits approval: {_ABOUT[gate.about]}."
    if gate.question:
        yield f"  but {gate.question}"
    if gate.about == "merge":
        yield f"  its change: stretto diff {gate.run_id} {gate.step}"
    if gate.posture == "writer":
        yield f"  writes  {', '.join(gate.write_set)} ({gate.where})"
    if gate.used is not None:
        yield from _used_lines(gate.used, most)
    else:
        yield f"  reads   {', '.join(gate.read_set)}"
    shown_parts = gate.parts[:most] if most else gate.parts
    for part in shown_parts:
        yield from _part_lines(part, most)
    if left := len(gate.parts) - len(shown_parts):
        yield f"  … and {left} more prompts"
    for part in gate.later:
        yield from _part_lines(part, most)
    for ground in gate.grounds:
        yield f"\n  {ground.step} ({ground.status}) gave:"
        yield from _indent(show(ground.output), most)


def _used_lines(used: UsedRecipe, most: int) -> Iterator[str]:
    yield f"  recipe  {used.name} ({used.file or 'given as text'}, digest {used.digest[:12]})"
    yield f"  steps   {', '.join(used.steps)}"
    if isinstance(used.inputs, str):
        yield f"  its inputs do not fit: {used.inputs}"
        return
    for name, value in used.inputs.items():
        yield f"  input {name}:"
        yield from _indent(show(value), most)


def _part_lines(part: GatePart, most: int) -> Iterator[str]:
    name = "".join(f"{each}: " for each in (part.when, part.part) if each)
    models = ", then ".join(_DIGEST.sub(r"\1…", model) for model in part.models)
    if part.is_command:
        yield f"\n  {name}command:"
        yield from _indent(part.prompt, most)
        return
    yield f"\n  {name}agent {part.agent}, model {models}"
    yield f"  tools   {', '.join(part.tools) or 'none'}"
    if part.instructions:
        yield "  instructions:"
        yield from _indent(part.instructions, most)
    yield "  prompt:"
    yield from _indent(part.prompt, most)


def _indent(text: str, most: int) -> Iterator[str]:
    lines = text.splitlines() or [""]
    kept = lines[:most] if most else lines
    yield from (f"    | {line}" for line in kept)
    if len(lines) > len(kept):
        yield f"    … and {len(lines) - len(kept)} more lines"
