"""What lists and commands show, as JSON: one form on every surface."""

from typing import TYPE_CHECKING

from stretto.plan.catalog import posture_of, tools_of
from stretto.problems.render import as_json as problem_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from stretto.agents.agent_files import ListedAgent
    from stretto.assembly.changes import AppliedChange, StepChange
    from stretto.assembly.doctor import Finding
    from stretto.assembly.drafts import DraftedRecipe
    from stretto.assembly.local_models import ShelvedWeights, Trial
    from stretto.assembly.project import Project
    from stretto.playbooks.playbook import Playbook
    from stretto.recipe.model import Recipe
    from stretto.registry.versions import RecipeVersion
    from stretto.registry.workflows import Entry


def inputs_as_json(recipe: "Recipe") -> list[dict[str, object]]:
    return [
        {
            "name": each.name,
            "type": each.type,
            "required": each.is_required,
            "default": each.default,
            "description": each.description,
            "enum": list(each.enum),
        }
        for each in recipe.inputs
    ]


def workflow_as_json(project: "Project", entry: "Entry", origin: str) -> dict[str, object]:
    return {
        "name": entry.name,
        "layer": entry.layer,
        "file": project.display_path(entry.file),
        "title": entry.recipe.title,
        "description": entry.recipe.description.strip(),
        "version": entry.recipe.version,
        "ok": not entry.problems,
        "used": not entry.is_passed_over,
        "shadows": entry.shadows or None,
        "steps": len(entry.recipe.steps),
        "inputs": inputs_as_json(entry.recipe),
        "problems": [problem_as_json(problem) for problem in entry.problems],
        "origin": origin,
    }


def agent_as_json(
    each: "ListedAgent", agents: "Sequence[ListedAgent]", changing: "Set[str]"
) -> dict[str, object]:
    """`agents`: all of them, for those that it shadows. `changing`: the tools that change files."""
    agent = each.read.agent
    shadows = [
        {"layer": other.layer, "file": other.read.file}
        for other in agents
        if other.name == each.name and other.shadowed_by == each.read.file
    ]
    shown: dict[str, object] = {
        "name": each.name,
        "layer": each.layer,
        "file": each.read.file,
        "ok": agent is not None,
        "shadows": shadows,
        "problems": [problem_as_json(problem) for problem in each.read.problems],
    }
    if agent is None:
        return shown
    return shown | {
        "description": agent.role.strip(),
        "posture": posture_of(agent, changing),
        "tools": list(tools_of(agent)),
        "model": agent.model,
        "fallback_models": list(agent.fallback_models),
        "max_turns": agent.max_turns,
        "max_output_tokens": agent.max_output_tokens,
        "timeout_seconds": agent.timeout_seconds,
    }


def playbook_as_json(each: "Playbook") -> dict[str, object]:
    return {
        "name": each.name,
        "description": each.description,
        "source": each.source,
        "layer": each.layer,
        "folder": each.folder or None,
        "pinned": each.is_pinned,
        "confidence": round(each.confidence, 3),
        "uses": each.uses,
        "last_used_at": each.last_used_at,
        "digest": each.digest,
        "fault": each.fault or None,
    }


def version_as_json(each: "RecipeVersion") -> dict[str, object]:
    return {
        "version": each.number,
        "at": each.at,
        "by": each.by,
        "origin": each.origin,
        "why": each.why,
        "digest": each.digest,
        "current": each.is_current,
    }


def weights_as_json(model: "ShelvedWeights") -> dict[str, object]:
    weights = model.weights
    return {
        "name": weights.name,
        "model": weights.model,
        "title": weights.title,
        "state": model.state,
        "size_bytes": weights.size_bytes,
        "licence": weights.licence,
        "sha256": weights.sha256,
        "file": model.file,
        "about": weights.about,
    }


def trial_as_json(trial: "Trial") -> dict[str, object]:
    return {
        "what": trial.what,
        "ok": trial.is_ok,
        "says": trial.says,
        "output_tokens": trial.tokens,
        "first_seconds": round(trial.first_seconds, 3),
        "seconds": round(trial.seconds, 3),
        "tokens_per_second": round(trial.tokens_per_second, 1),
    }


def finding_as_json(each: "Finding") -> dict[str, object]:
    return {
        "name": each.name,
        "status": each.status,
        "says": each.says,
        "fix": each.fix if each.status != "ok" else "",
        "essential": each.is_essential,
    }


def change_as_json(change: "StepChange") -> dict[str, object]:
    return {
        "ok": True,
        "run_id": change.run_id,
        "step": change.step,
        "files": list(change.files),
        "insertions": change.insertions,
        "deletions": change.deletions,
        "refused": [{"path": each.path, "why": each.why} for each in change.refused],
        "patch": change.text,
    }


def applied_as_json(applied: "AppliedChange") -> dict[str, object]:
    return {
        "ok": True,
        "run_id": applied.run_id,
        "step": applied.step,
        "dry_run": applied.is_dry_run,
        "was_merged": applied.was_merged,
        "files": list(applied.files),
        "left": [{"path": each.path, "why": each.why} for each in applied.left],
        "refused": list(applied.refused),
    }


def draft_as_json(draft: "DraftedRecipe") -> dict[str, object]:
    return {
        "id": draft.id,
        "words": draft.words,
        "recipe": draft.recipe,
        "diagram": draft.diagram,
        "rounds": draft.rounds,
        "to_read": list(draft.to_read),
        "problems": [problem_as_json(each) for each in draft.problems],
    }
