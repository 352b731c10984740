"""A plan in words: each step, who does it, what it gets, what happens when it fails."""

import textwrap
from collections.abc import Iterator

from stretto.plan.composed_prompt import command_line
from stretto.plan.model import (
    Brief,
    Plan,
    PlannedCommand,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    PlannedWorkflow,
    Target,
)
from stretto.templates.template import Template
from stretto.text.short import listed, show_json
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import COMMAND_AGENT

_POLICIES = {
    "inline": "its error text stands in for its output and the run goes on",
    "skip": "its output is null and the run goes on",
    "block": "whatever depends on it is held back, the rest goes on",
    "abort": "the run stops",
}


def explain(plan: Plan, width: int = 80, drawing: str = "") -> str:
    blocks = [_title(plan)]
    if plan.title:
        blocks.append(_wrap(plan.title.strip(), width))
    if plan.description:
        blocks.append(_wrap(plan.description.strip(), width))
    if drawing:
        blocks.append(drawing)
    if plan.inputs:
        blocks.append("Inputs\n" + "\n".join(_inputs(plan, width)))
    steps = [_wrap(_step(plan, step), width, "   ", f"{step.index + 1}. ") for step in plan.steps]
    blocks.append("Steps\n" + "\n".join(steps))
    if agents := list(_agents(plan, width)):
        blocks.append("Agents\n" + "\n".join(agents))
    blocks.append(_wrap(_ending(plan), width))
    return "\n\n".join(blocks)


def _title(plan: Plan) -> str:
    return f"{plan.name}, version {plan.version}" if plan.version else plan.name


def _wrap(text: str, width: int, indent: str = "", first: str | None = None) -> str:
    one_line = " ".join(text.split())
    start = indent if first is None else first
    return textwrap.fill(
        one_line, width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False
    )


def _inputs(plan: Plan, width: int) -> Iterator[str]:
    for each in plan.inputs:
        need = "required" if each.is_required and not each.has_default else "optional"
        if each.has_default:
            need = (
                f"default {show_json(each.default)}" if each.default != "" else "empty by default"
            )
        about = f": {each.description}" if each.description else ""
        yield _wrap(f"{each.name} ({each.type}, {need}){about}", width, "      ", "   ")


def _agents(plan: Plan, width: int) -> Iterator[str]:
    for id, agent in plan.agents.items():
        if agent.id == COMMAND_AGENT:
            continue  # each command stands at its step
        name = f" ({agent.name})" if agent.name != agent.id else ""
        tools = f" Tools: {', '.join(agent.tools)}." if agent.tools else " No tools."
        role = f": {agent.role.rstrip('.')}." if agent.role else "."
        yield _wrap(f"{id}{name}{role}{tools}", width, "      ", "   ")


def _step(plan: Plan, step: PlannedStep) -> str:
    sentences = [f"{step.id}: {_work(plan, step)}", *_conditions(step), _failure(plan, step)]
    return " ".join(sentence for sentence in sentences if sentence)


def _work(plan: Plan, step: PlannedStep) -> str:
    work = step.work
    match work:
        case PlannedDelegation(brief) if brief.command is not None:
            return f"{_runs(brief.command)}."
        case PlannedDelegation(brief):
            return f"{_who(plan, brief)} {_gets(brief)}."
        case PlannedParallel():
            who = ", ".join(f"{_who(plan, b.brief)} (as {b.key})" for b in work.branches)
            until = {"all": "all of them", "any": "the first of them"}.get(
                str(work.wait), f"{work.wait} of them"
            )
            return f"{len(work.branches)} start together: {who}. It waits for {until}."
        case PlannedCondition():
            return (
                f"if {work.condition.text.strip()}, then {_target(work.if_true)}, "
                f"otherwise {_target(work.if_false)}."
            )
        case PlannedSwitch():
            cases = "; ".join(f"'{case}' → {_target(target)}" for case, target in work.cases)
            return f"by {work.value.text.strip()}: {cases}; otherwise {_target(work.default)}."
        case PlannedLoop():
            return _loop(plan, work)
        case PlannedMap():
            return _map(plan, work)
        case PlannedWorkflow():
            return _workflow(plan, step, work)


def _workflow(plan: Plan, step: PlannedStep, work: PlannedWorkflow) -> str:
    inside = [each.id for each in plan.steps if each.inside == step.id]
    given = [f"{name} = {template.text.strip()}" for name, template in work.given.items()]
    given += [f"{name} = {show_json(value, 40)}" for name, value in work.constants.items()]
    file = f" ({work.file})" if work.file else ""
    told = f", with {listed(given, 6)}" if given else ""
    return f"the workflow {work.name}{file}{told}. Its steps: {listed(inside, 12)}."


def _loop(plan: Plan, work: PlannedLoop) -> str:
    most = f"at most {work.max_iterations} times"
    if work.validator is not None:
        judge = work.validator
        who = _runs(judge.command) if judge.command else f"{_who(plan, judge)} judges it"
        ends = f"{who}, until it passes, {most}"
    else:
        ends = f"again until {work.until.text.strip() if work.until else ''}, {most}"
    return f"{_who(plan, work.producer)} {_gets(work.producer)}; {ends}."


def _map(plan: Plan, work: PlannedMap) -> str:
    stages = ", then ".join(_who(plan, stage) for stage in work.stages)
    over = _references(work.over) or work.over.text.strip()
    reduced = f" {_who(plan, work.reducer)} then gets all results." if work.reducer else ""
    return f"for each element of {over}: {stages}, {work.batch_size} at once.{reduced}"


def _runs(command: PlannedCommand) -> str:
    given = dict.fromkeys(
        each.text for template in command.templates for each in template.references
    )
    gets = f" with {listed(given, 6)}" if given else ""
    return f"the command `{command_line(command.run)}` runs{gets}"


def _who(plan: Plan, brief: Brief) -> str:
    agent = plan.agents[brief.agent]
    model = f" on {brief.model}" if brief.model else ""
    # Two recipes may have an agent of one name each: the plan tells them apart by its own key.
    return f"{brief.agent if agent.name == agent.id else agent.name}{model}"


def _gets(brief: Brief) -> str:
    if brief.gets_all_prior:
        return "gets everything that ended before"
    if brief.instruction is None:
        return "follows its own prompt"
    sources = _references(brief.instruction)
    return f"gets {sources}" if sources else "is told what to do"


def _references(template: Template) -> str:
    return listed(dict.fromkeys(reference.text for reference in template.references), 6)


def _target(target: Target | None) -> str:
    if target is None:
        return "nothing"
    return f"step {target.step}" if target.step else f"agent {target.name}, in place"


def _conditions(step: PlannedStep) -> Iterator[str]:
    if step.depends_on:
        yield f"Waits for {listed(step.depends_on, 12)}."
    if step.is_routed:
        yield "Runs only if it is chosen."
    if step.when is not None:
        yield f"Runs only when {step.when.text.strip()}."
    if step.is_gated:
        yield "A person must allow it first."
    if step.timeout_seconds:
        yield f"May take {format_duration(step.timeout_seconds)}."
    if step.posture == "writer":
        yield f"May write {listed(step.write_set)} {where_it_writes(step)}."


def where_it_writes(step: PlannedStep) -> str:
    """Of a writer, in words: in the workspace or in a copy, and what becomes of the copy's change."""
    if not step.is_isolated:
        return "in place"
    if step.merge_back == "after":
        condition = f" if {step.merge_when.text.strip()}" if step.merge_when else ""
        return f"in its own copy, merged after {step.merge_after}{condition}"
    fates = {"auto": "merged back", "manual": "merged by stretto apply", "never": "never merged"}
    return f"in its own copy, {fates[step.merge_back]}"


def _failure(plan: Plan, step: PlannedStep) -> str:
    work = step.work
    brief = work.brief if isinstance(work, PlannedDelegation) else None
    words = []
    if brief is not None and brief.retry.max_attempts > 1:
        words.append(f"it is tried {brief.retry.max_attempts} times")
    if brief is not None and brief.fallback:
        words.append(f"{plan.agents[brief.fallback].name} takes over")
    is_inner_end = step.on_failure == "abort" and step.inside is not None
    words.append(f"{step.inside} fails" if is_inner_end else _POLICIES[step.on_failure])
    return f"If it fails, {', then '.join(words)}."


def _ending(plan: Plan) -> str:
    if plan.output is not None:
        result = f"The result is {_references(plan.output) or 'a fixed text'}."
    elif plan.dialect == "structural":
        result = "The result is every step's summary."
    else:
        last = [step.id for step in plan.steps if step.inside is None][-1]
        result = f"The result is the output of {last}, or of the last step before it that ran."
    limit = (
        f" The whole run may take {format_duration(plan.timeout_seconds)}."
        if plan.timeout_seconds
        else ""
    )
    return f"{result} At most {plan.width} subagents work at once.{limit}"
