"""Read and write sets are globs inside the workspace, and a step that writes can write."""

import re
from collections.abc import Sequence

from stretto.documents.node import Path
from stretto.plan.draft import Draft, DraftStep
from stretto.plan.postures import has_means_to_write
from stretto.recipe.model import Agent
from stretto.vocabulary.names import listed

MOST_GLOBS = 256
# As in a .gitignore (`!path`), and as in shells that can do more than we: `{!a,b}`, `!(a)`.
_EXCLUDES = re.compile(r"^\s*!|[{,]\s*!|!\(")


def check(draft: Draft) -> None:
    for drafted in draft.steps:
        step = drafted.step
        for key, texts in (("read_set", step.read_set), ("write_set", step.write_set)):
            if texts:
                _check(draft, (*step.at, key), texts)
        if step.posture == "read_only" and step.write_set:
            draft.warning_at(
                "RCP902",
                (*step.at, "write_set"),
                f"step '{step.id}' is read_only, so its write_set is not used",
                "remove it, or write posture: writer",
            )
        elif drafted.uses:
            _check_means(draft, drafted)


def _check_means(draft: Draft, drafted: DraftStep) -> None:
    """Whether those who do a writer's work can write at all."""
    step, agents = drafted.step, drafted.agents
    if step.posture is None and drafted.posture == "read_only":
        if step.write_set:
            draft.warning_at(
                "RCP902",
                (*step.at, "write_set"),
                f"no agent of step '{step.id}' has a tool that writes ({_names(agents)}), "
                "so its write_set is not used",
                "give an agent Write, Edit or Bash, or remove it",
            )
        return
    if step.posture == "read_only" or not agents:
        return
    if not any(
        has_means_to_write(agent, step.model, draft.catalog.changing_tools) for agent in agents
    ):
        draft.warning_at(
            "RCP904",
            (*step.at, "posture") if step.posture else step.at,
            f"step '{step.id}' is a writer, and none of its agents ({_names(agents)}) has a tool "
            "that writes",
            "give an agent Write, Edit or Bash, or write posture: read_only",
        )


def _names(agents: Sequence[Agent]) -> str:
    return listed(dict.fromkeys(agent.id for agent in agents))


def _check(draft: Draft, at: Path, texts: Sequence[str]) -> None:
    from stretto.globs.glob import GlobFault, parse_glob  # on use: most recipes have no sets

    count = 0
    for position, text in enumerate(texts):
        glob = parse_glob(text)
        if _EXCLUDES.search(text):
            message = f"'{text}' would exclude something, and a set only says what is in it"
            hint = "list what the step touches; a file whose name begins with '!' is './!name'"
            draft.problem_at("RCP122", draft.element(at, position, text), message, hint)
        elif isinstance(glob, GlobFault):
            draft.problem_at(glob.code, draft.element(at, position, text), glob.message, glob.hint)
        else:
            count += len(glob.patterns)
    # Every glob of a step may have to be compared with every one of another.
    if count > MOST_GLOBS:
        message = f"the {at[-1]} stands for {count:,} globs; at most {MOST_GLOBS} are allowed"
        draft.problem_at("RCP118", at, message, "name folders instead of files")
