"""Names are given once, and what inputs declare agrees with itself."""

from msgspec import structs

from stretto.plan.draft import EVERYWHERE, Draft
from stretto.plan.inputs import Misfit, convert
from stretto.recipe.model import Parallel
from stretto.vocabulary.names import is_id

_RESERVED = EVERYWHERE | {"inputs", "steps", "run"}


def check_names(draft: Draft) -> None:
    _check_step_ids(draft)
    _check_input_names(draft)
    _check_stored_names(draft)
    _check_output_keys(draft)


def _check_step_ids(draft: Draft) -> None:
    first: dict[str, int] = {}
    for position, step in enumerate(draft.recipe.steps, start=1):
        if step.id in first:
            message = f"two steps are called '{step.id}'"
            draft.problem_at(
                "RCP105", (*step.at, "id"), message, f"step {first[step.id]} is the other one"
            )
        first.setdefault(step.id, position)


def _check_input_names(draft: Draft) -> None:
    seen: set[str] = set()
    for declared in draft.recipe.inputs:
        if declared.name in seen:
            message = f"two inputs are called '{declared.name}'"
            draft.problem_at(
                "RCP105", (*declared.at, "name"), message, "rename or remove one of them"
            )
        seen.add(declared.name)


def _check_stored_names(draft: Draft) -> None:
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


def _check_output_keys(draft: Draft) -> None:
    for step in draft.recipe.steps:
        if not isinstance(step.work, Parallel):
            continue
        seen: set[str] = set()
        for branch, key in zip(step.work.branches, step.work.output_keys, strict=True):
            if key in seen:
                draft.problem_at(
                    "RCP117",
                    (*branch.at, "output_key"),
                    f"two branches have the output_key '{key}'",
                    "rename one of them",
                )
            seen.add(key)


def check_inputs(draft: Draft) -> None:
    for declared in draft.recipe.inputs:
        plain = structs.replace(declared, enum=())
        for position, option in enumerate(declared.enum):
            misfit = convert(plain, option)
            if isinstance(misfit, Misfit):
                draft.problem_at(
                    "RCP306", (*declared.at, "enum", position), misfit.message, misfit.hint
                )
        enum_at = (*declared.at, "enum")
        if draft.is_written(enum_at) and not declared.enum and not draft.has_problem_below(enum_at):
            draft.problem_at(
                "RCP306",
                enum_at,
                f"input '{declared.name}' allows no value at all",
                "list its values, or remove enum",
            )
        if declared.has_default:
            misfit = convert(declared, declared.default)
            if isinstance(misfit, Misfit):
                draft.problem_at(
                    "RCP306",
                    (*declared.at, "default"),
                    f"the default does not fit: {misfit.message}",
                    misfit.hint,
                )
