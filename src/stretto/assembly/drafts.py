"""Words become a recipe, for one project. In: words, or the run that drafted. Out: DraftedRecipe.

    draft_request ─prepare_draft→ PreparedRun ─launch→ Run ─read_draft→ DraftedRecipe

Drafting is a run (`lead.drafts`), so a draft is known by the id of that run, for as long as the run is kept.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.assembly.project import Project
from stretto.assembly.recipe_files import known_recipes
from stretto.assembly.request import PreparedRun, RunRequest
from stretto.lead.drafts import DRAFTER, DraftOrder, check_words, doubts, draft_recipe, is_draft
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage, PermissionDenied, StrettoError
from stretto.recipe.model import Budget
from stretto.registry.saved_recipe import dropped_gates
from stretto.vocabulary.models import is_local
from stretto.vocabulary.names import AgentId

if TYPE_CHECKING:
    from stretto.assembly.engine import Engine
    from stretto.plan.model import Plan
    from stretto.recipe.model import Agent
    from stretto.report.model import Report

_DRAFTER_FILE = Path(__file__).parent.parent / "bundled" / "drafter.md"


@dataclass(frozen=True, slots=True)
class DraftedRecipe:
    """A recipe that a model wrote. It is only text: nothing of it has run, and nothing is saved."""

    id: str  # of the run that drafted it
    words: str
    recipe: str  # YAML; empty: the model answered without one
    problems: tuple[Problem, ...] = ()  # what is left of them: with any, it cannot run
    rounds: int = 1  # how often the model was asked
    to_read: tuple[str, ...] = ()  # what a person should have read before it runs
    diagram: str = ""  # as `stretto graph` draws it

    @property
    def is_sound(self) -> bool:
        return bool(self.recipe) and not self.problems

    def check_read(self) -> None:
        """Raises PermissionDenied for a draft that a person must read first, and has not read."""
        if self.to_read:
            raise PermissionDenied(
                f"a person must read this draft before it runs: {'; '.join(self.to_read)}",
                hint=f"stretto draft --resume {self.id} shows it and asks; --allow-commands runs it unread",
            )


def draft_request(
    project: Project,
    words: str,
    max_repairs: int,
    *,
    model: str | None = None,
    budget: Budget | None = None,
    is_constrained: bool = False,
) -> RunRequest:
    """Raises InvalidUsage."""
    check_words(words, max_repairs)
    agents = project.catalog().agents
    order = DraftOrder(words, _drafter(project), agents, max_repairs, is_constrained)
    return RunRequest(
        draft_recipe(order),
        {"words": words},
        model=model,
        # It reads nothing and writes nothing, whatever its drafter may do elsewhere.
        permission="read_only",
        budget=budget or Budget(),
    )


def _drafter(project: Project) -> "Agent":
    """The user's own agent of that name, else the one that is bundled."""
    from stretto.agents.agent_files import read_agent_file

    own = project.catalog().agents.get(AgentId(DRAFTER))
    found = own or read_agent_file(_DRAFTER_FILE).agent
    assert found is not None  # a test reads the bundled one
    return found


async def prepare_draft(engine: "Engine", request: RunRequest) -> PreparedRun:
    """A local model is held to a schema: it seldom writes sound YAML by itself. Raises as `prepare` does."""
    prepared = await engine.prepare(request)
    again = constrain(engine.project, request, prepared)
    return prepared if again is None else await engine.prepare(again)


def constrain(project: Project, request: RunRequest, prepared: PreparedRun) -> RunRequest | None:
    """The same request with a schema for the answer, where the model needs one."""
    drafter = prepared.plan.agents[AgentId(DRAFTER)]
    names = prepared.models.names_for(drafter.model, drafter.fallback_models)
    if not any(is_local(name) for name in names):
        return None
    loop = prepared.plan.steps[0].work
    rounds = getattr(loop, "max_iterations", 1)
    words = str(request.inputs["words"])
    order = DraftOrder(words, _drafter(project), project.catalog().agents, rounds - 1, True)
    return replace(request, recipe=draft_recipe(order))


def check_is_draft(plan: "Plan", run_id: str) -> None:
    """Raises InvalidUsage for a run of something else."""
    if not is_draft(plan):
        hint = "stretto draft gives the id of its draft"
        raise InvalidUsage(f"run {run_id} is no draft, but the workflow {plan.name}", hint=hint)


async def read_draft(project: Project, report: "Report") -> DraftedRecipe:
    """What the run of a draft gave. Raises StrettoError for one without an answer."""
    step = report.steps[0]
    if not report.is_ok:
        why = step.error or step.reason or report.status
        hint = f"stretto draft --resume {report.run_id} goes on"
        if report.ended_at is not None:
            hint = f"stretto report {report.run_id} shows what happened"
        raise StrettoError(f"no recipe was drafted: {why}", hint=hint)
    verdict = step.validation if isinstance(step.validation, dict) else {}
    text = str(verdict.get("recipe") or "")
    words = str(report.inputs.get("words", ""))
    rounds = sum(each.agent == DRAFTER for each in step.attempts if each.number == 1)
    found = DraftedRecipe(report.run_id, words, text, rounds=rounds)
    return await asyncio.to_thread(examine_draft, project, found, text)


def examine_draft(project: Project, draft: DraftedRecipe, text: str) -> DraftedRecipe:
    """The draft with this text, checked as any recipe is. Whatever its run says, this decides."""
    recipe = project.recipe_from_text(text, "draft.yaml")
    problems = project.problems_of(text, "draft.yaml") if text else ()
    if problems or not text:
        return replace(draft, recipe=text, problems=problems, to_read=(), diagram="")
    from stretto.report.diagrams import draw

    plan = project.plan(recipe)
    to_read = (*(each.says for each in doubts(plan)), *_gates(project, plan))
    return replace(
        draft, recipe=text, problems=(), to_read=to_read, diagram=draw(plan, "ascii").rstrip("\n")
    )


def _gates(project: Project, plan: "Plan") -> tuple[str, ...]:
    """Gates of saved recipes that this one would go around."""
    with suppress(StrettoError):  # a registry that cannot be read has said so elsewhere
        return tuple(each.says for each in dropped_gates(plan, known_recipes(project)))
    return ()
