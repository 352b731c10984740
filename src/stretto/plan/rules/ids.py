"""Names are given once: steps, inputs, stored names, output keys."""

from stretto.plan.branch_keys import branch_keys
from stretto.plan.draft import EVERYWHERE, Draft
from stretto.recipe.model import Parallel
from stretto.vocabulary.ids import is_id

_RESERVED = EVERYWHERE | {"inputs", "steps", "run"}


def check(draft: Draft) -> None:
    _steps(draft)
    _inputs(draft)
    _stored_names(draft)
    _output_keys(draft)


def _steps(draft: Draft) -> None:
    first: dict[str, int] = {}
    for position, step in enumerate(draft.recipe.steps, start=1):
        if step.id in first:
            message = f"two steps are called '{step.id}'"
            draft.problem_at(
                "RCP105", (*step.at, "id"), message, f"step {first[step.id]} is the other one"
            )
        first.setdefault(step.id, position)


def _inputs(draft: Draft) -> None:
    seen: set[str] = set()
    for declared in draft.recipe.inputs:
        if declared.name in seen:
            message = f"two inputs are called '{declared.name}'"
            draft.problem_at(
                "RCP105", (*declared.at, "name"), message, "rename or remove one of them"
            )
        seen.add(declared.name)


def _stored_names(draft: Draft) -> None:
    inputs = {declared.name for declared in draft.recipe.inputs}
    taken: dict[str, str] = {}
    for step in draft.recipe.steps:
        name = step.output.store_as
        if name is None:
            continue
        at = (*step.at, "output", "store_as")
        if not is_id(name):
            draft.problem_at(
                "RCP107",
                at,
                f"'{name[:60]}' is not a name that templates can use",
                "use letters, digits, '-' and '_'",
            )
        elif name in _RESERVED:
            draft.problem_at(
                "RCP117", at, f"'{name}' means something else in templates", "rename it"
            )
        elif name in inputs:
            draft.problem_at(
                "RCP117",
                at,
                f"'{name}' is an input already",
                f"{{{{{name}}}}} could mean either; rename one of them",
            )
        elif name in taken:
            draft.problem_at(
                "RCP117",
                at,
                f"step '{taken[name]}' stores its output as '{name}' already",
                f"{{{{{name}}}}} could mean either; rename one of them",
            )
        taken.setdefault(name, step.id)


def _output_keys(draft: Draft) -> None:
    for step in draft.recipe.steps:
        if not isinstance(step.work, Parallel):
            continue
        seen: set[str] = set()
        for branch, key in zip(step.work.branches, branch_keys(step.work), strict=True):
            if key in seen:
                draft.problem_at(
                    "RCP117",
                    (*branch.at, "output_key"),
                    f"two branches have the output_key '{key}'",
                    "rename one of them",
                )
            seen.add(key)
