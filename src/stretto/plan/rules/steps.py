"""What a step asks for can be had: branches, files, schemas, and no more than the limits allow."""

import re
from collections.abc import Mapping, Sequence

from stretto.documents.node import ListNode, Path, find
from stretto.plan.catalog import has_means_to_write
from stretto.plan.draft import Draft, DraftStep
from stretto.recipe.model import Agent, Map, Parallel
from stretto.text.short import listed
from stretto.validation.schema import schema_faults
from stretto.vocabulary.json_value import Json


def check_waits(draft: Draft) -> None:
    for step in draft.recipe.steps:
        if not isinstance(step.work, Parallel):
            continue
        count = len(step.work.branches)
        at = (*step.at, "parallel")
        if count == 0 and not draft.has_problem_below(at):
            draft.problem_at("RCP112", at, f"step '{step.id}' has no branches", "list at least one")
        if isinstance(step.work.wait, int) and step.work.wait > count > 0:
            draft.problem_at(
                "RCP112",
                (*step.at, "wait"),
                f"it waits for {step.work.wait} branches and has {count}",
                f"write all, any, or a number from 1 to {count}",
            )


_RAISE = "only your own ~/.stretto/stretto.yaml may raise it, under limits:"


def check_limits(draft: Draft) -> None:
    recipe, limits = draft.recipe, draft.limits
    steps_at = (*recipe.at, "steps")
    steps = find(recipe.root, steps_at) if recipe.root else None
    if isinstance(steps, ListNode) and not steps.items:
        draft.problem_at(
            "RCP119", steps_at, "a recipe needs at least one step", "add one under steps:"
        )
    if len(recipe.steps) > limits.steps:
        draft.problem_at(
            "RCP118",
            (*steps_at, limits.steps),
            f"the recipe has {len(recipe.steps):,} steps; at most {limits.steps:,} are allowed",
            _RAISE,
        )
    for step in recipe.steps:
        if isinstance(step.work, Parallel) and len(step.work.branches) > limits.branches:
            draft.problem_at(
                "RCP118",
                (*step.at, "parallel"),
                f"{len(step.work.branches)} branches; at most {limits.branches} are allowed",
                f"use map: for many alike, or {_RAISE}",
            )
        if isinstance(step.work, Map) and (step.work.max_items or 0) > limits.map_items_ceiling:
            draft.problem_at(
                "RCP118",
                (*step.at, "map", "max_items"),
                f"max_items is {step.work.max_items:,}; "
                f"at most {limits.map_items_ceiling:,} are allowed",
                _RAISE,
            )


def warn_empty(draft: Draft) -> None:
    """`gate:` with nothing behind it holds nothing back, which its author may not expect."""
    for step in draft.recipe.steps:
        for key, is_given in (("when", step.when is not None), ("gate", step.is_gated)):
            at = (*step.at, key)
            if not is_given and draft.is_written(at):
                message = f"'{key}:' is empty, so step '{step.id}' starts without it"
                draft.warning_at("RCP906", at, message, "write what it needs, or remove it")


_REFERENCE = re.compile(r"\{\{.*?\}\}")


def check_sets(draft: Draft) -> None:
    for drafted in draft.steps:
        step = drafted.step
        for key, texts in (("read_set", step.read_set), ("write_set", step.write_set)):
            if texts:
                _check_globs(draft, (*step.at, key), texts)
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
                f"no agent of step '{step.id}' has a tool that writes ({_agent_names(agents)}), "
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
            f"step '{step.id}' is a writer, and none of its agents ({_agent_names(agents)}) has a tool "
            "that writes",
            "give an agent Write, Edit or Bash, or write posture: read_only",
        )


def _agent_names(agents: Sequence[Agent]) -> str:
    return listed(dict.fromkeys(agent.id for agent in agents))


def _check_globs(draft: Draft, at: Path, texts: Sequence[str]) -> None:
    from stretto.globs.glob import set_faults  # on use: most recipes have no sets

    # What stands for a reference is known later, and is a path or a part of one.
    later = [_REFERENCE.sub("…", text) for text in texts]
    for position, (text, filled) in enumerate(zip(texts, later, strict=True)):
        if filled != text and "[" in filled:
            message = f"'{text}' has a reference beside a '[', which may become a part of it"
            here = draft.element(at, position, text)
            draft.problem_at("RCP122", here, message, "write it without '['")
            later[position] = "x"
    for where, fault in set_faults(later):
        here = at if where is None else draft.element(at, where, texts[where])
        draft.problem_at(fault.code, here, fault.message, fault.hint)


def check_schemas(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        if agent.validation.schema is not None:
            _check_schema(draft, agent.validation.schema, (*agent.at, "validation", "schema"))
    for step in draft.recipe.steps:
        if step.output.schema is not None:
            _check_schema(draft, step.output.schema, (*step.at, "output", "schema"))


def _check_schema(draft: Draft, schema: Mapping[str, Json], at: Path) -> None:
    for fault in schema_faults(schema):
        draft.problem_at("RCP124", (*at, *fault.path), fault.message, fault.hint)
