"""Tasks for agents, without a recipe. In: a list of tasks, or its text. Out: a recipe, and results.

    - {agent: researcher, prompt: "What does Acme sell?", description: products}
    - {agent: writer, prompt: "Write a greeting."}

One task is a run of one step, a batch is a run of one step a task. So both are checked, journaled,
bounded, reported and resumed as every run is. The prompts are inputs of that run, because braces
in a prompt are no template.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from stretto.documents.document import Document, read_text
from stretto.documents.kinds import Identifier, Text
from stretto.documents.node import ListNode, Node, describe
from stretto.documents.shapes import Key, Reading, Shape
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.problems.render import count
from stretto.report.model import Report, StepReport
from stretto.text.short import did_you_mean, shorten
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.statuses import StepStatus

TASK_NAME = "task"  # the name of the recipe that a task runs as
BATCH = "batch"  # the name of the recipe that a batch runs as
_LONGEST_ID = 40
_LONGEST_TITLE = 80
TASK = Shape("a task", "What one agent is to do.", (
    Key("agent", Identifier(), "who does it", is_required=True),
    Key("prompt", Text("what to do", may_be_blank=False), "what to do", is_required=True),
    Key("description", Text(), "a few words, for people who watch the run"),
), words={"subagent": "agent", "task": "prompt"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class AgentTask:
    agent: str
    prompt: str
    description: str = ""

    @property
    def title(self) -> str:
        words = " ".join((self.description or self.prompt).split())
        return shorten(words, _LONGEST_TITLE)


_Read: TypeAlias = tuple[tuple[AgentTask, ...], Sequence[Problem]]


def read_tasks(
    text: str, shown_as: str, agents: Collection[str], limits: Limits = DEFAULT_LIMITS
) -> tuple[AgentTask, ...]:
    """A YAML or JSON list, or one JSON object a line. Raises InvalidUsage with all problems."""
    lines = _json_lines(text)
    tasks, problems = (
        _read_list(text, shown_as, agents, limits)
        if lines is None
        else _read_lines(lines, shown_as, agents, limits)
    )
    if problems:
        named = shown_as or "the list of tasks"
        raise InvalidUsage(f"{named} has {count(problems)}", problems)
    if not tasks:
        raise InvalidUsage("there is no task in it", hint="- {agent: writer, prompt: Say hello.}")
    if len(tasks) > limits.steps:
        said = f"a batch has {limits.steps:,} tasks at the most, and this one has {len(tasks):,}"
        raise InvalidUsage(said, hint="split it, or raise limits.steps in your settings")
    return tasks


def _json_lines(text: str) -> list[tuple[int, str]] | None:
    """The lines that are written, with their numbers, where each line is a task of its own."""
    # Other line breaks, such as U+2028, may stand within a text of JSON.
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    written = [(number, line) for number, line in lines if line.strip()]
    if not written or not written[0][1].lstrip().startswith("{"):
        return None
    is_each = all(line.lstrip().startswith("{") for _, line in written)
    return written if is_each or _is_object(written[0][1]) else None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read_lines(
    lines: Sequence[tuple[int, str]], shown_as: str, agents: Collection[str], limits: Limits
) -> _Read:
    """Each by itself: a line that is broken hides nothing of the others."""
    tasks: list[AgentTask] = []
    problems: list[Problem] = []
    size = sum(len(line.encode("utf-8", "surrogatepass")) + 1 for _, line in lines)
    if size > limits.text_bytes:
        return (), read_text("\n".join(line for _, line in lines), shown_as, limits).problems
    for place, (number, line) in enumerate(lines):
        document = read_text(line, shown_as, limits)
        reading = Reading(document.source, list(document.problems))
        root = document.root
        task = None if root is None else _task(root, place, reading, agents)
        tasks += () if task is None else (task,)
        problems += (_in_line(each, number) for each in reading.problems)
    return tuple(tasks), problems


def _in_line(problem: Problem, number: int) -> Problem:
    place = problem.place
    return problem if place is None else replace(problem, place=replace(place, line=number))


def _read_list(text: str, shown_as: str, agents: Collection[str], limits: Limits) -> _Read:
    document = read_text(text if text.strip() else "[]", shown_as, limits)
    reading = Reading(document.source, list(document.problems))
    return _tasks(document, reading, agents), reading.problems


def _tasks(document: Document, reading: Reading, agents: Collection[str]) -> tuple[AgentTask, ...]:
    root = document.root
    if root is None:
        return ()
    if not isinstance(root, ListNode):
        said = f"a batch must be a list of tasks, not {describe(root)}"
        reading.problem_at("RCP103", root, (), said, "- {agent: writer, prompt: Say hello.}")
        return ()
    read = (_task(node, number, reading, agents) for number, node in enumerate(root.items))
    return tuple(task for task in read if task is not None)


def _task(node: Node, number: int, reading: Reading, agents: Collection[str]) -> AgentTask | None:
    fields = TASK.read(node, (number,), reading)
    if fields is None:
        return None
    agent, prompt = fields.get("agent", str), fields.get("prompt", str)
    if agent is not None and agent not in agents:
        hint = did_you_mean(agent, agents) or "stretto agents lists them"
        said = f"task {number + 1}: agent '{agent}' is not registered"
        at = fields.node.entries["agent"]
        reading.problem_at("RCP108", at, fields.path("agent"), said, hint)
    if agent is None or prompt is None:
        return None
    return AgentTask(agent, prompt, fields.get("description", str) or "")


def task_recipe(agent: str) -> dict[str, Json]:
    """A run of one step, whose prompt is the input `prompt`."""
    step: dict[str, Json] = {"id": "task", "subagent": agent, "prompt": "{{inputs.prompt}}"}
    declared: dict[str, Json] = {"prompt": {"type": "string"}}
    return {"name": TASK_NAME, "inputs": declared, "steps": [step]}


def batch_recipe(tasks: Sequence[AgentTask]) -> dict[str, Json]:
    """A run of one step a task, none of which waits for another; its input is `tasks`."""
    steps: list[Json] = [
        {
            "id": id,
            "subagent": task.agent,
            "prompt": f"{{{{inputs.tasks[{number}].prompt}}}}",
            "on_failure": "inline",
        }
        for number, (id, task) in enumerate(zip(step_ids(tasks), tasks, strict=True))
    ]
    sections = [
        f"## {number + 1}. {{{{inputs.tasks[{number}].title}}}}\n\n{{{{steps.{id}.output}}}}{{{{steps.{id}.error}}}}"
        for number, id in enumerate(step_ids(tasks))
    ]
    declared: dict[str, Json] = {"tasks": {"type": "json"}}
    output = "\n\n".join(sections)
    return {"name": BATCH, "inputs": declared, "steps": steps, "output": output}


def batch_inputs(tasks: Sequence[AgentTask]) -> dict[str, Json]:
    return {
        "tasks": [
            {"agent": each.agent, "prompt": each.prompt, "title": each.title} for each in tasks
        ]
    }


def written_prompt(recipe: str, inputs: Mapping[str, Json], number: int) -> str:
    """What a person wrote for this step of a task or a batch; empty for a recipe of another name."""
    if recipe == TASK_NAME:
        return str(inputs.get("prompt") or "")
    tasks = inputs.get("tasks")
    if recipe != BATCH or not isinstance(tasks, list) or number >= len(tasks):
        return ""
    task = tasks[number]
    return str(task.get("prompt") or "") if isinstance(task, dict) else ""


def step_ids(tasks: Sequence[AgentTask]) -> list[str]:
    """What whoever watches sees on the cards: `1-products`, or `task-2` without a description."""
    return [_step_id(number, task.description) for number, task in enumerate(tasks, 1)]


def _step_id(number: int, description: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", description.lower()).strip("-")[:_LONGEST_ID].rstrip("-")
    return f"{number}-{words}" if words else f"task-{number}"


def batch_as_json(report: Report) -> dict[str, object]:
    return {
        "ok": report.is_ok,
        "run_id": report.run_id,
        "results": results_of(report),
        "warnings": list(report.warnings),
    }


def results_of(report: Report) -> list[dict[str, Json]]:
    """One entry a task, in the order in which they were given, whatever became of each."""
    return [_result(index, step) for index, step in enumerate(report.steps)]


def _result(index: int, step: StepReport) -> dict[str, Json]:
    # The output of a failed step is its error, for steps that depend on it.
    is_done = step.status == StepStatus.SUCCEEDED
    usage: Mapping[str, Json] = {
        "input_tokens": step.usage.input_tokens,
        "output_tokens": step.usage.output_tokens,
        "usd": step.usage.usd,
        "model_calls": step.usage.model_calls,
    }
    return {
        "index": index,
        "status": step.status,
        "output": step.output if is_done else None,
        "error": None if is_done else step.error or step.reason or None,
        "usage": dict(usage),
    }
