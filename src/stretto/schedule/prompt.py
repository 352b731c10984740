"""Make the command that starts the next attempt of a part, with its prompt and its whole request."""

from collections.abc import Iterable

from stretto.events.attempts import AttemptId, CheckPart, ItemPart, WholeStep
from stretto.plan.composed_prompt import (
    LearnedSkill,
    append_section,
    compose,
    describe_command,
    learned_skills,
    under_headings,
    with_rules,
)
from stretto.plan.model import PlannedAgent, PlannedCommand, PlannedMap
from stretto.ports.runner import AttemptRequest, CommandRequest, FunctionArguments
from stretto.recipe.model import NO_OUTPUT
from stretto.schedule.commands import StartAttempt
from stretto.schedule.places import answerers, key_of
from stretto.schedule.state import PartState, RunState, StepState
from stretto.templates.render import as_text, render
from stretto.templates.scope import MISSING, Scope
from stretto.templates.template import Reference, Template
from stretto.validation.combined_schema import combine_schemas
from stretto.vocabulary.json_value import loaded
from stretto.vocabulary.models import CLI_MODEL, LOCAL_MODEL, is_asked, is_function
from stretto.vocabulary.names import LOAD_PLAYBOOK
from stretto.vocabulary.statuses import StepStatus


def command_for(state: RunState, step: StepState, part: PartState) -> StartAttempt:
    request = _request(state, step, part)
    return StartAttempt(request, key_of(state, request))


def with_new_key(state: RunState, command: StartAttempt) -> StartAttempt:
    """The same command, for another setup."""
    return StartAttempt(command.request, key_of(state, command.request))


def _request(state: RunState, step: StepState, part: PartState) -> AttemptRequest:
    agent, planned = state.plan.agents[part.agent], step.planned
    model, rules = _model(state, part, agent), agent.validation.rules
    command, prompt, instructions = _texts(state, step, part, agent)
    given, loadable = _playbooks(state, part, agent, model) if state.plan.playbooks else ([], [])
    if given or loadable:
        instructions = append_section(instructions, learned_skills(given, loadable))
    calls_function = is_function(model)
    if rules and not calls_function:
        instructions = with_rules(instructions, rules)
    output = planned.output
    if output is not NO_OUTPUT and not _gives_output(step, part):
        output = NO_OUTPUT
    return AttemptRequest(
        run_id=state.run_id,
        attempt=AttemptId(step.id, len(part.attempts) + 1, part.id),
        agent=agent.id,
        instructions=instructions,
        prompt=prompt,
        model=model,
        tools=(*agent.tools, LOAD_PLAYBOOK) if loadable else agent.tools,
        max_turns=agent.max_turns,
        format=output.format,
        # Both that of the agent and that of the step hold.
        schema=combine_schemas(agent.validation.schema, output.schema),
        rules=rules,
        fallback_models=agent.fallback_models,
        max_output_tokens=planned.max_output_tokens or agent.max_output_tokens,
        # The validator of a loop is asked for a verdict, though its step's output is another.
        is_verdict=type(part.id) is CheckPart,
        workspace=state.workspace,
        may_write=planned.posture == "writer",
        read_set=planned.read_set,
        write_set=planned.write_set,
        arguments=_arguments(state, step, part) if calls_function else None,
        playbooks=tuple([each.name for each in given]) if given else (),
        loadable=_with_digests(state, loadable) if loadable else (),
        command=command,
        repeats=_find_interrupted(part) if part.attempts else None,
    )


def _texts(
    state: RunState, step: StepState, part: PartState, agent: PlannedAgent
) -> tuple[CommandRequest | None, str, str]:
    """The command, or None; the prompt; the instructions."""
    if part.brief.command is None:
        return None, *_compose(state, step, part, agent)
    command = _command(step, part, part.brief.command)
    return command, describe_command(command.run, command.env, command.stdin), ""


def _playbooks(
    state: RunState, part: PartState, agent: PlannedAgent, model: str | None
) -> tuple[list[LearnedSkill], list[LearnedSkill]]:
    """The playbooks that are given in full, and those that are only named."""
    brief, known = part.brief, state.plan.playbooks
    if not is_asked(model):
        return [], []
    given = [
        LearnedSkill(name, known[name].description, known[name].text) for name in brief.playbooks
    ]
    asked = answerers(state, model, agent.fallback_models)
    # Another program's agent has none of our tools, and a small model is better off without this one.
    if any(each.startswith((CLI_MODEL, LOCAL_MODEL)) for each in asked):
        return given, []
    return given, [LearnedSkill(name, known[name].description) for name in brief.loadable]


def _with_digests(state: RunState, skills: list[LearnedSkill]) -> tuple[tuple[str, str], ...]:
    return tuple([(each.name, state.plan.playbooks[each.name].digest) for each in skills])


def _command(step: StepState, part: PartState, planned: PlannedCommand) -> CommandRequest:
    scope = step.scope_with(part.local)
    stdin = ""
    if planned.stdin is not None:
        stdin = _fill(step, planned.stdin, scope)
    elif part.upstream is not MISSING:
        stdin = as_text(loaded(part.upstream))  # what it judges
    env = {name: _fill(step, value, scope) for name, value in planned.env.items()}
    return CommandRequest(planned.run, env, stdin)


def _find_interrupted(part: PartState) -> int | None:
    """The number of the attempt that the next one repeats, after any number of interruptions."""
    number = None
    for attempt in reversed(part.attempts):
        if attempt.outcome != "in_doubt" or attempt.agent != part.agent:
            break
        number = attempt.number
    return number


def _compose(
    state: RunState, step: StepState, part: PartState, agent: PlannedAgent
) -> tuple[str, str]:
    brief, scope = part.brief, step.scope_with(part.local)
    own = _fill(step, agent.prompt, scope)
    told = _fill(step, brief.instruction, scope) if brief.instruction is not None else None
    given = _default_input(step, part, agent) if told is None else None

    def results() -> str:
        return _results(state.steps[before] for before in step.planned.depends_on)

    composed = compose(brief.style, own, told, given, results)
    prompt = composed.prompt
    if step.edited_prompts is not None and part.name in step.edited_prompts:
        prompt = step.edited_prompts[part.name]
    elif told is not None and (not told or told.isspace()):
        step.warn("what it tells its agent is an empty text")
    if part.local and part.upstream is MISSING:
        prompt = _with_last_round(prompt, part, agent)
    if part.not_accepted:
        prompt = append_section(
            prompt, f"## Your last answer was not accepted\n\n{part.not_accepted}"
        )
    return prompt, composed.instructions


def _with_last_round(prompt: str, part: PartState, agent: PlannedAgent) -> str:
    """What a loop has so far, where no template of the agent or the step names it."""
    for heading, name in (("Your last candidate", "candidate"), ("Feedback", "feedback")):
        value = part.local.get(name)
        if value is not None and not _names(agent, part, name):
            prompt = append_section(prompt, f"## {heading}\n\n{as_text(value)}")
    return prompt


def _gives_output(step: StepState, part: PartState) -> bool:
    """Whether its answer is the step's output, or an element of it."""
    match part.id:
        case WholeStep():
            return True
        case CheckPart():
            return False
        case ItemPart(stage=stage):
            work = step.planned.work
            is_last = isinstance(work, PlannedMap) and stage + 1 == len(work.stages)
            return is_last and isinstance(work, PlannedMap) and work.reducer is None
        case _:
            return True


def _default_input(step: StepState, part: PartState, agent: PlannedAgent) -> str | None:
    """The input of an agent for which the step has no instruction of its own."""
    if part.brief.gets_all_prior:
        return _results(step.recipe.steps.values())
    # An agent whose own prompt names the item needs no input heading.
    if part.upstream is MISSING or ("item" in part.local and _uses(agent.prompt, "item")):
        return None
    return as_text(loaded(part.upstream))


def _results(steps: Iterable[StepState]) -> str:
    """The outputs of the steps that have ended and have one, under headings. That of a condition
    stands under the id of the step that it chose."""
    ended = (step for step in steps if step.ended_at is not None and step.kept_output is not None)
    return under_headings(
        (step.own_id, as_text(step.output)) for step in ended if step.choice is None
    )


def _fill(step: StepState, template: Template, scope: Scope) -> str:
    if len(template.parts) == 1 and isinstance(template.parts[0], str):
        return template.parts[0]
    rendered = render(template, scope)
    for reference in rendered.missing:
        if not _is_skipped(step, reference):
            step.warn(f"{{{{{reference.text}}}}} is not there and was left empty")
    return rendered.text


def _is_skipped(step: StepState, reference: Reference) -> bool:
    # A step that was routed away has no output, which is no reason for a warning.
    recipe = step.recipe
    named = reference.step or recipe.scope.stored.get(str(reference.path[0]))
    value = recipe.values.get(named) if named else None
    return value is not None and value.status == StepStatus.SKIPPED


def _names(agent: PlannedAgent, part: PartState, name: str) -> bool:
    return any(_uses(template, name) for template in (agent.prompt, part.brief.instruction))


def _uses(template: Template | None, name: str) -> bool:
    return template is not None and any(r.path[0] == name for r in template.references)


def _arguments(state: RunState, step: StepState, part: PartState) -> FunctionArguments:
    before = (state.steps[id] for id in step.planned.depends_on)
    results = {
        str(each.own_id): each.output
        for each in before
        if each.ended_at is not None and each.kept_output is not None
    }
    previous = None if part.upstream is MISSING else loaded(part.upstream)
    return FunctionArguments(dict(step.recipe.scope.inputs), results, dict(part.local), previous)


def _model(state: RunState, part: PartState, agent: PlannedAgent) -> str | None:
    if is_function(agent.model):
        return agent.model  # whatever model the step names, the function is called
    # The brief's model is the step's, or else that of the agent who was asked first.
    if part.has_fallen_back and part.brief.model == state.plan.agents[part.brief.agent].model:
        return agent.model
    return part.brief.model
