"""Words become a recipe. In: words, and the agents that there are. Out: a recipe that drafts, verdicts.

Drafting is a run like any other: a loop of the agent `drafter` and a checker, which is a function. The checker
reads what the drafter answered with the checker of all recipes, and its problems are the feedback of the next
round. So a draft is journaled, bounded and resumed as every run is, and its output is the recipe's text.

What a model writes is a stranger's: `doubts` lists what a person has to read before it runs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import dedent
from typing import Any

from stretto.documents.yaml_form import yaml_form
from stretto.plan.composed_prompt import command_line
from stretto.plan.model import Plan, PlannedAgent, briefs
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.problems.render import as_text
from stretto.recipe.model import Agent
from stretto.templates.json_text import FENCE, MISSING, find_json
from stretto.text.short import listed
from stretto.text.visible import one_line
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import CLI_MODEL, FUNCTION_MODEL
from stretto.vocabulary.names import CHANGING_TOOLS, KNOWN_TOOLS, AgentId, StepId, tool_name

DRAFT = "draft"  # the name of the recipe that drafts, and of its step
DRAFTER = "drafter"
CHECKER = "recipe-checker"  # the function that reads what the drafter answered
MAX_REPAIRS = 3
MOST_REPAIRS = 20
_MOST_WORDS = 100_000  # characters
_MOST_PROBLEMS = 10  # that one round is told
_MOST_FENCES = 20
_LONGEST_ROLE = 200
_LONGEST_COMMAND = 200
# For models on this machine, which read slowly and follow a schema better than a language.
_SHORT_GUIDE = """\
You plan work for agents. Answer with JSON: a short name, and the steps in the order in which they are done.
For each step choose the agent that fits, and say in one sentence what that agent is to do. Name in it what the
work is about. Each agent is told what the one before it gave."""
_OPEN_FENCE = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\n")
_BEGINNING = re.compile(r"(?m)^(?:name|workflow|description|version|inputs|agents|steps):")
_KEYS = ("steps", "workflow")
_READERS = KNOWN_TOOLS - CHANGING_TOOLS
_WRAPPERS = ("recipe", "yaml", "workflow", "draft")


@dataclass(frozen=True, slots=True)
class DraftOrder:
    """What is to be drafted, and from what."""

    words: str
    drafter: Agent
    agents: Mapping[AgentId, Agent]
    max_repairs: int = MAX_REPAIRS
    is_constrained: bool = False  # by a schema, for models that write no sound YAML


def check_words(words: str, max_repairs: int) -> None:
    """Raises InvalidUsage."""
    if not words.strip():
        hint = 'stretto draft "first research the company, then write a brief"'
        raise InvalidUsage("the words are empty: say what is to be done", hint=hint)
    if len(words) > _MOST_WORDS:
        raise InvalidUsage(
            f"the words have {len(words):,} characters, and {_MOST_WORDS:,} are the most",
            hint="say what is to be done in fewer; long material belongs into an input",
        )
    if not 0 <= max_repairs <= MOST_REPAIRS:
        raise InvalidUsage(f"max_repairs must be from 0 to {MOST_REPAIRS}, not {max_repairs}")


def draft_recipe(order: DraftOrder) -> dict[str, Json]:
    """A run of one step, a loop, whose output is the text of the drafted recipe."""
    known = {id: agent for id, agent in order.agents.items() if id != DRAFTER}
    told = _SHORT_GUIDE if order.is_constrained else order.drafter.prompt.rstrip()
    guide = f"{told}\n\n## The agents\n\n{_list_agents(known)}"
    drafter: dict[str, Json] = {
        "role": order.drafter.role or "turns words into a recipe",
        # Braces of the guide are what recipes look like: none of them is filled in here.
        "prompt": guide.replace("{{", "\\{{"),
    }
    if order.drafter.model:
        drafter["model"] = order.drafter.model
    checker: Json = {"role": "checks a recipe", "model": f"{FUNCTION_MODEL}{CHECKER}"}
    step: dict[str, Json] = {
        "id": DRAFT,
        "loop": {
            "agent": DRAFTER,
            "validator": "checker",
            "max_iterations": order.max_repairs + 1,
        },
        "prompt": "Turn these words into a recipe:\n\n{{inputs.words}}",
        "on_failure": "abort",
    }
    if order.is_constrained:
        step["output"] = {"format": "json", "schema": _schema(sorted(known))}
    return {
        "name": DRAFT,
        "description": "Words become a recipe.",
        "inputs": {"words": {"type": "string"}},
        "agents": {DRAFTER: drafter, "checker": checker},
        "steps": [step],
        "output": f"{{{{steps.{DRAFT}.validation.recipe}}}}",
    }


def is_draft(plan: Plan) -> bool:
    """Whether it drafts a recipe. The name alone does not say so: anybody may call a recipe `draft`."""
    models = {agent.model for agent in plan.agents.values()}
    return plan.name == DRAFT and f"{FUNCTION_MODEL}{CHECKER}" in models


def _list_agents(agents: Mapping[AgentId, Agent]) -> str:
    lines = []
    for id, agent in agents.items():
        tools = ", ".join(sorted({tool_name(tool) for tool in agent.tools}))
        has = f" (has {tools})" if tools else ""
        lines.append(f"- {id}: {one_line(agent.role, _LONGEST_ROLE)}{has}")
    return "\n".join(lines)


def _schema(agents: Sequence[str]) -> Json:
    """What a small model can say without mistakes: who does what, one after another."""
    does: Json = {"type": "string", "minLength": 12, "maxLength": 300}
    step: Json = {
        "type": "object",
        "properties": {"agent": {"enum": list(agents)}, "does": does},
        "required": ["agent", "does"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 40},
            "steps": {"type": "array", "items": step, "minItems": 1, "maxItems": 5},
        },
        "required": ["name", "steps"],
        "additionalProperties": False,
    }


def _chain(answer: Mapping[str, Json]) -> dict[str, Json] | None:
    """The recipe of an answer that follows the schema: each step is told what the one before it gave."""
    written = answer.get("steps")
    if not isinstance(written, list):
        return None
    steps: list[Json] = []
    before = ""
    for number, each in enumerate(written, 1):
        if not isinstance(each, dict) or set(each) != {"agent", "does"}:
            return None
        prompt = str(each["does"]).replace("{{", "\\{{")
        prompt += f"\n\nThis was done before:\n\n{{{{steps.{before}.output}}}}" if before else ""
        before = f"{number}-{each['agent']}"
        steps.append({"id": before, "subagent": each["agent"], "prompt": prompt})
    words = re.findall(r"[a-z0-9]+", str(answer.get("name", "")).lower())
    return {"name": "-".join(words)[:40].strip("-") or DRAFT, "steps": steps}


def checker(problems_of: Callable[[str], Sequence[Problem]]) -> Callable[..., object]:
    """The function that works as the validator of the loop."""

    def check_draft(context: Any) -> dict[str, Json]:
        """Checks a recipe that a model wrote."""
        return verdict_on(context.previous, problems_of)

    return check_draft


def verdict_on(answer: Json, problems_of: Callable[[str], Sequence[Problem]]) -> dict[str, Json]:
    text = recipe_text(answer)
    if not text:
        said = "the answer holds no recipe: give one ```yaml block with name, inputs and steps"
        return {"passed": False, "recipe": "", "feedback": said}
    problems = problems_of(text)
    if not problems:
        return {"passed": True, "recipe": text, "feedback": ""}
    told = [as_text(each) for each in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        told.append(f"… and {len(problems) - _MOST_PROBLEMS} more")
    return {"passed": False, "recipe": text, "feedback": "\n\n".join(told)}


def recipe_text(answer: Json) -> str:
    """The recipe in an answer, as YAML; empty: there is none. A model may put it into a fence, among prose,
    into a field of an object, or write JSON."""
    if isinstance(answer, dict):
        inner = [answer[key] for key in _WRAPPERS if key in answer]
        if "steps" not in answer and len(inner) == 1 and isinstance(inner[0], str):
            return recipe_text(inner[0])
        if "steps" not in answer and "recipe" in answer and isinstance(answer["recipe"], dict):
            return recipe_text(answer["recipe"])
        if chain := _chain(answer):
            return yaml_form(chain)
        return yaml_form(answer) if any(key in answer for key in _KEYS) else ""
    if not isinstance(answer, str):
        return ""
    for body in _bodies(answer):
        if body.lstrip().startswith("{"):
            found = find_json(body)
            if found is not MISSING and isinstance(found, dict) and (text := recipe_text(found)):
                return text
        if _BEGINNING.search(body) and ("steps:" in body or "workflow:" in body):
            return body.strip("\n") + "\n"
    return ""


def _bodies(answer: str) -> Iterator[str]:
    """Where a recipe may be: in a fence, else in all of it, else from its first key on."""
    answer = answer.replace("\r\n", "\n")
    # A fence may stand in a list, where all of its lines are indented.
    yield from (dedent(fence[2]) for fence in islice(FENCE.finditer(answer), _MOST_FENCES))
    # The last fence of an answer that was cut off is never closed.
    whole = _OPEN_FENCE.sub("", answer)
    if whole.lstrip().startswith("{"):
        yield whole
    if start := _BEGINNING.search(whole):
        yield whole[start.start() :]


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a person has to read before a recipe that a model wrote may run, and the steps that would do it."""

    says: str
    steps: tuple[StepId, ...]


def doubts(plan: Plan) -> Iterator[Doubt]:
    """Of the agents, those that a recipe defines itself: the registered ones are the user's own choice."""
    users: dict[AgentId, list[StepId]] = {}
    for step in plan.steps:
        for brief in briefs(step.work):
            users.setdefault(brief.agent, []).append(step.id)
            users.setdefault(brief.fallback or brief.agent, []).append(step.id)
            if brief.command is not None:
                command = one_line(command_line(brief.command.run), _LONGEST_COMMAND)
                yield Doubt(f"step '{step.id}' runs a command: {command}", (step.id,))
            elif _is_program(brief.model) and brief.model != plan.agents[brief.agent].model:
                program = one_line(brief.model or "", _LONGEST_COMMAND)
                yield Doubt(f"step '{step.id}' asks another program: {program}", (step.id,))
    for agent in plan.agents.values():
        steps = tuple(dict.fromkeys(users.get(agent.id, ())))
        if agent.is_local:
            yield from (Doubt(f"agent '{agent.id}' {each}", steps) for each in _powers(agent))


def _is_program(model: str | None) -> bool:
    return model is not None and model.startswith(CLI_MODEL)


def _powers(agent: PlannedAgent) -> Iterator[str]:
    programs = [name for name in (agent.model or "", *agent.fallback_models) if _is_program(name)]
    if programs:
        yield f"is another program: {one_line(listed(programs), 200)}"
    # A tool that changes something, or that is not Stretto's own.
    powers = {tool_name(tool) for tool in agent.tools} - _READERS
    if powers:
        yield f"gives itself {one_line(listed(sorted(powers)), 200)}"
