"""`map.over` names a list, and `feedback_path` one place in the verdict."""

import json

from stretto.documents.node import Path
from stretto.plan.draft import Draft
from stretto.recipe.model import Loop, Map
from stretto.templates.fault import Fault
from stretto.templates.reference import Reference, parse_reference
from stretto.templates.template import Template


def check(draft: Draft) -> None:
    for step in draft.recipe.steps:
        match step.work:
            case Map():
                at = (*step.at, "map", "over")
                parsed = draft.parsed.get(at)
                if isinstance(parsed, Template) and not _is_list(parsed, draft, at):
                    draft.problem_at(
                        "RCP212",
                        at,
                        "'over' must be one reference to a list",
                        'for example "{{steps.split.output.chunks}}"',
                    )
            case Loop(feedback_path=str() as path):
                at = (*step.at, "loop", "feedback_path")
                if feedback_reference(path) is None and not draft.has_problem_below(at):
                    draft.problem_at(
                        "RCP212",
                        at,
                        "'feedback_path' must be one reference",
                        f'for example "{{{{steps.{step.id}.output.feedback}}}}"',
                    )
            case _:
                pass


def _is_list(template: Template, draft: Draft, at: Path) -> bool:
    if len(template.references) == 1:
        words = [part for part in template.parts if isinstance(part, str)]
        return not "".join(words).strip()
    if not template.is_literal or draft.has_problem_below(at):
        return draft.has_problem_below(at)
    try:
        return isinstance(json.loads(template.text), list)
    except (ValueError, RecursionError):
        return False


def feedback_reference(written: str) -> Reference | None:
    """The path inside the braces, or a bare one: `feedback` is the verdict's field."""
    text = written.strip()
    if text.startswith("{{") and text.endswith("}}"):
        text = text[2:-2].strip()
    reference = parse_reference(text)
    return None if isinstance(reference, Fault) else reference
