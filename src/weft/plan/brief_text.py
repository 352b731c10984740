"""What a subagent is told, word for word. In: a Brief and its agent. Out: Telling (RECIPES §1).

`say` renders a template: with real values in a run, with what is known in a dry run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.plan.model import Brief, PlannedAgent
from weft.templates.template import Template

Section: TypeAlias = tuple[str, str]  # a step's id and its output as text


@dataclass(frozen=True, slots=True)
class Telling:
    instructions: str  # the agent's own prompt, where it stands apart
    prompt: str


def compose(
    brief: Brief,
    agent: PlannedAgent,
    say: Callable[[Template], str],
    results: Callable[[], Sequence[Section]],
) -> Telling:
    """`results`: all prior context, or what the direct dependencies found."""
    own = say(agent.prompt)
    told = say(brief.told) if brief.told is not None else ""
    if brief.gets_all_prior:
        told = under_headings(results())
    match brief.style:
        case "prompt":
            return Telling(own, told)
        case "input":
            return Telling("", under_input(own, told))
        case "task":
            found = under_headings(results())
            return Telling(own, f"{told}\n\n## Results so far\n\n{found}" if found else told)


def under_input(own: str, told: str) -> str:
    """The agent's own prompt, then what it is given under an "Input" heading."""
    if not told.strip():
        return own
    return f"{own.rstrip()}\n\n## Input\n\n{told}" if own.strip() else f"## Input\n\n{told}"


def under_headings(sections: Sequence[Section]) -> str:
    return "\n\n".join(f"### {id}\n\n{text}" for id, text in sections)
