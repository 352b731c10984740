"""Declarations of inputs agree with themselves: defaults and enums fit their type."""

from dataclasses import replace

from stretto.plan.draft import Draft
from stretto.plan.inputs import Misfit, convert


def check(draft: Draft) -> None:
    for declared in draft.recipe.inputs:
        plain = replace(declared, enum=())
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
