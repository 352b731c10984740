"""What a subagent is told, word for word (RECIPES §1). One composer for runs and dry runs.

prompt   what the step says; the agent's own prompt is its instructions
input    the agent's own prompt, then what it gets under "Input"
task     what the step says, then what the steps before it found
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from stretto.plan.model import BriefStyle


class Telling(NamedTuple):
    instructions: str  # the agent's own prompt, where it stands apart
    prompt: str


def compose(
    style: BriefStyle,
    own: str,
    told: str | None,
    given: str | None,
    results: Callable[[], str],
) -> Telling:
    """`told`: what the step says. `given`: what it gets if the step says nothing itself.
    `results`: what its direct dependencies found."""
    if told is None or style == "input":
        gets = told if told is not None else given
        is_given = gets is not None and gets.strip()
        return Telling("", joined(own, f"## Input\n\n{gets}") if is_given else own)
    if style == "task" and (found := results()):
        return Telling(own, joined(told, f"## Results so far\n\n{found}"))
    return Telling(own, told)


def under_headings(sections: Iterable[tuple[str, str]]) -> str:
    """Outputs by the ids of their steps."""
    return "\n\n".join(f"### {id}\n{text}" for id, text in sections)


def joined(text: str, section: str) -> str:
    before = text.rstrip("\n")
    return f"{before}\n\n{section}" if before.strip() else section
