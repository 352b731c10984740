"""A recipe on its way to a plan: the draft that the rules read.

Templates, expressions and agents are parsed and looked up once, here. What cannot be parsed is a
problem, and the draft goes on without it, so that one mistake does not hide another.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from stretto.documents.node import ListNode, Path, ScalarNode, find, find_key, spell
from stretto.plan.catalog import Catalog, posture_of
from stretto.problems import Place, Problem
from stretto.recipe.model import (
    Agent,
    Condition,
    Delegation,
    Loop,
    Map,
    Parallel,
    Posture,
    Recipe,
    RecipeUse,
    ShellCommand,
    Step,
    Switch,
    is_all_prior,
)
from stretto.templates.template import Fault, Reference, Template, parse_template
from stretto.vocabulary.amounts import Limits
from stretto.vocabulary.names import AgentId, StepId

if TYPE_CHECKING:
    from stretto.templates.check import KnownStep
    from stretto.templates.expression import Expression

IN_MAP = frozenset({"item", "index"})
IN_LOOP = frozenset({"candidate", "feedback", "iteration"})
NOWHERE: frozenset[str] = frozenset()
_AN_INPUT = re.compile(r"(?:workflow\.)?(?:inputs|parameters)(?:\[\d+\])?(?:\.name)?")
EVERYWHERE = IN_MAP | IN_LOOP


class TemplateSite(NamedTuple):
    """A template or an expression, where it stands, and which loop variables it may use."""

    at: Path
    parsed: "Template | Expression"
    local: frozenset[str] = NOWHERE
    may_name_itself: bool = False  # `until` and `feedback_path` look at their own step

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.parsed.references

    @property
    def located(self) -> tuple[Reference, ...]:
        """The references with their offsets in the text."""
        return self.parsed.located


class Use(NamedTuple):
    """An agent that a step names, and the part of the file that names it."""

    at: Path
    agent: AgentId
    local: frozenset[str] = NOWHERE


class DraftStep(Struct):
    step: Step
    id: StepId
    uses: list[Use]
    agents: list[Agent]  # who does its work, and who takes over; unknown ones are left out
    sites: list[TemplateSite]  # its own texts, and the prompts of the recipe's agents in it
    targets: list[tuple[Path, str]]
    later: list[TemplateSite]  # decided once the step has ended
    early: list[TemplateSite]  # filled in before the run: sets and timeout
    posture: Posture


class Draft(Struct):
    recipe: Recipe
    catalog: Catalog
    limits: Limits
    steps: list[DraftStep] = field(default_factory=list)
    by_id: dict[StepId, DraftStep] = field(default_factory=dict)
    prompts: dict[AgentId, Template] = field(default_factory=dict)  # of the recipe's own agents
    output: TemplateSite | None = None
    inner_outputs: "dict[StepId, KnownStep]" = field(default_factory=dict)  # by workflow step
    early: list[TemplateSite] = field(default_factory=list)  # timeouts of the run and of agents
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    parsed: "dict[Path, Template | Expression]" = field(default_factory=dict)
    _agents: dict[AgentId, Agent | None] = field(default_factory=dict)  # as they were found
    _writers: dict[AgentId, bool] = field(default_factory=dict)

    def agent(self, id: AgentId) -> Agent | None:
        """The recipe's own agent, or a registered one: the recipe's shadow the others."""
        if id not in self._agents:
            self._agents[id] = self.recipe.agents.get(id) or self.catalog.agents.get(id)
        return self._agents[id]

    def is_writer(self, agent: Agent) -> bool:
        if agent.id not in self._writers:
            self._writers[agent.id] = posture_of(agent, self.catalog.changing_tools) == "writer"
        return self._writers[agent.id]

    def agent_ids(self) -> list[str]:
        return [
            *self.recipe.agents,
            *(a for a in self.catalog.agents if a not in self.recipe.agents),
        ]

    def step_ids(self) -> list[StepId]:
        return [id for id in self.by_id if not id.startswith("#")]

    @property
    def has_nameless_step(self) -> bool:
        return any(id.startswith("#") for id in self.by_id)

    @property
    def has_nameless_input(self) -> bool:
        return any(_AN_INPUT.fullmatch(problem.path) for problem in self.recipe.problems)

    def problem_at(self, code: str, at: Path, message: str, hint: str | None = "") -> None:
        self._add(self._problem(code, self.place_of(at), at, message, hint), at)

    def warning_at(self, code: str, at: Path, message: str, hint: str | None = "") -> None:
        self.warnings.append(self._problem(code, self.place_of(at), at, message, hint))

    def problem_at_word(
        self, code: str, at: Path, position: int, word: str, message: str, hint: str
    ) -> None:
        """A word of a list, however the list is written."""
        many = find(self.recipe.root, at) if self.recipe.root else None
        if isinstance(many, ScalarNode):  # `tools: Read, Bash`
            place = self.recipe.source.place_inside_list(many, word)
            self._add(self._problem(code, place, at, message, hint), at)
        else:
            self.problem_at(code, self.element(at, position, word), message, hint)

    def problem_inside(self, at: Path, text: str, fault: Fault) -> None:
        """A fault within a text: at the very words, wherever the file has them."""
        self._add(self._inside(at, text, fault), at)

    def warning_inside(self, at: Path, text: str, fault: Fault) -> None:
        self.warnings.append(self._inside(at, text, fault))

    def _inside(self, at: Path, text: str, fault: Fault) -> Problem:
        place = self.place_of(at)
        if self.recipe.root is not None:
            node = find(self.recipe.root, at)
            piece = text[fault.offset : fault.offset + fault.width]
            if isinstance(node, ScalarNode) and piece.strip():
                place = self.recipe.source.place_inside(node, text, fault.offset, fault.width)
        return self._problem(fault.code, place, at, fault.message, fault.hint)

    def _add(self, problem: Problem, at: Path) -> None:
        # What stands behind a guessed key may be meant for another one: the key alone is told.
        guessed = self.recipe.guessed
        if not guessed or guessed.isdisjoint(at[:end] for end in range(1, len(at) + 1)):
            self.problems.append(problem)

    def element(self, at: Path, position: int, text: str) -> Path:
        """The path of a list's element; one before it may have been unreadable and left out."""
        many = find(self.recipe.root, at) if self.recipe.root else None
        if isinstance(many, ListNode):
            for index, item in enumerate(many.items[position:], start=position):
                if isinstance(item, ScalarNode) and item.written == text:
                    return (*at, index)
        return (*at, position)

    def has_problem_below(self, *paths: Path) -> bool:
        """Has something at or below one of these been told already? Then say no more."""
        told = [problem.path for problem in (*self.recipe.problems, *self.problems)]
        spelt = tuple(spell(path) for path in paths)
        return any(path.startswith(spelt) for path in told)

    def has_told(self, at: Path) -> bool:
        """Has a problem of exactly this place been told already?"""
        return any(problem.path == spell(at) for problem in self.recipe.problems)

    def has_warning_below(self, at: Path, code: str) -> bool:
        start = f"{spell(at)}."
        return any(each.code == code and each.path.startswith(start) for each in self.warnings)

    def has_unknown_key(self, at: Path) -> bool:
        """Has the part itself an unknown key? It may be the one that is missing."""
        start = f"{spell(at)}."
        return any(
            problem.code == "RCP101"
            and problem.path.startswith(start)
            and "." not in problem.path[len(start) :]
            for problem in self.recipe.problems
        )

    def timeout_template(self, at: Path) -> Template | None:
        """The timeout of this part, if it names inputs."""
        parsed = self.parsed.get((*at, "timeout"))
        return parsed if isinstance(parsed, Template) else None

    def is_written(self, at: Path) -> bool:
        return self.recipe.root is not None and find_key(self.recipe.root, at) is not None

    def place_of(self, at: Path) -> Place | None:
        if self.recipe.root is None:
            return None
        return self.recipe.source.place_of(find(self.recipe.root, at))

    def _problem(
        self, code: str, place: Place | None, at: Path, message: str, hint: str | None
    ) -> Problem:
        return self.recipe.source.problem(code, place, message, hint, at)


def make_draft(recipe: Recipe, catalog: Catalog, limits: Limits) -> Draft:
    draft = Draft(recipe, catalog, limits)
    for agent in recipe.agents.values():
        draft.prompts[agent.id] = _template(draft, (*agent.at, "prompt"), agent.prompt)
        draft.early.extend(_timeout_site(draft, agent.at, agent.timeout_template))
    for step in recipe.steps:
        drafted = _draft_step(draft, step)
        draft.steps.append(drafted)
        draft.by_id.setdefault(step.id, drafted)
    if recipe.output is not None:
        at = (*recipe.at, "output")
        draft.output = TemplateSite(at, _template(draft, at, recipe.output))
    draft.early.extend(_timeout_site(draft, recipe.at, recipe.timeout_template))
    return draft


def _draft_step(draft: Draft, step: Step) -> DraftStep:
    uses = list(_uses(draft, step))
    agents, sites = list[Agent](), list(_sites(draft, step))
    for use in uses:
        for id in (use.agent, fallback_of(step, draft.agent(use.agent))):
            agent = draft.agent(id) if id else None
            if agent is not None:
                agents.append(agent)
            if id in draft.prompts:
                at = (*draft.recipe.agents[id].at, "prompt")
                sites.append(TemplateSite(at, draft.prompts[id], use.local))
    # A command can do whatever Bash can.
    is_writer = command_of(step) is not None or any(map(draft.is_writer, agents))
    return DraftStep(
        step=step,
        id=step.id,
        uses=uses,
        agents=agents,
        sites=sites,
        targets=list(_targets(step)),
        later=list(_decisions(draft, (*step.at, "merge_when"), step.merge_when)),
        early=list(_early_sites(draft, step)),
        posture=step.posture or ("writer" if is_writer else "read_only"),
    )


def command_of(step: Step) -> ShellCommand | None:
    """The command that a step runs: its work, or what judges its loop."""
    if isinstance(step.work, ShellCommand):
        return step.work
    return step.work.command if isinstance(step.work, Loop) else None


def fallback_of(step: Step, agent: Agent | None) -> AgentId | None:
    """Who takes over when this agent fails in this step: the nearest `on_failure` says."""
    written = (
        step.on_failure or step.retry.on_failure or (agent.retry.on_failure if agent else None)
    )
    return written.fallback if written else None


def _template(draft: Draft, at: Path, text: str) -> Template:
    template, faults = parse_template(text)
    for fault in faults:
        draft.problem_inside(at, text, fault)
    draft.parsed[at] = template
    return template


def _expression(draft: Draft, at: Path, text: str | None) -> "Iterator[Expression]":
    if text is None:
        return
    # Imported on use: most recipes have templates, and few have expressions.
    from stretto.templates.expression import parse_expression

    expression = parse_expression(text)
    if isinstance(expression, Fault):
        draft.problem_inside(at, text, expression)
    else:
        draft.parsed[at] = expression
        yield expression


def _uses(draft: Draft, step: Step) -> Iterator[Use]:
    at = step.at
    match step.work:
        case Delegation(agent):
            named = agent or draft.recipe.dialect.default_agent
            if named:
                yield Use(at, named)
        case Parallel(branches):
            for branch in branches:
                if branch.agent:
                    yield Use(branch.at, branch.agent)
        case Loop():
            if step.work.agent:
                yield Use((*at, "loop", "agent"), step.work.agent, IN_LOOP)
            if step.work.validator:
                yield Use((*at, "loop", "validator"), step.work.validator, IN_LOOP)
        case Map():
            if step.work.agent:
                yield Use((*at, "map", "agent"), step.work.agent, IN_MAP)
            for stage in step.work.stages:
                if stage.agent:
                    yield Use(stage.at, stage.agent, IN_MAP)
            if step.work.reduce:
                yield Use((*at, "map", "reduce"), step.work.reduce)
        case Condition() | Switch():
            for target_at, name in _targets(step):
                # A step's id wins over an agent's: steps are what conditions are for.
                if name not in {s.id for s in draft.recipe.steps} and draft.agent(AgentId(name)):
                    yield Use(target_at, AgentId(name))


def _sites(draft: Draft, step: Step) -> Iterator[TemplateSite]:
    at, work = step.at, step.work
    local = IN_LOOP if isinstance(work, Loop) else IN_MAP if isinstance(work, Map) else NOWHERE
    yield from _instruction_site(draft, step.instruction, step.instruction_at, local)
    for expression in _expression(draft, (*at, "when"), step.when):
        yield TemplateSite((*at, "when"), expression)
    if (command := command_of(step)) is not None:
        yield from _command_sites(draft, command, local)
    match work:
        case Parallel(branches):
            for branch in branches:
                yield from _instruction_site(
                    draft, branch.instruction, branch.instruction_at, NOWHERE
                )
        case Condition():
            yield from _decisions(draft, (*at, "condition", "eval"), work.eval)
        case Switch():
            yield from _decisions(draft, (*at, "switch", "value"), work.value)
        case Loop():
            until = (*at, "loop", "until")
            for expression in _expression(draft, until, work.until):
                yield TemplateSite(until, expression, IN_LOOP, may_name_itself=True)
            path = (*at, "loop", "feedback_path")
            if work.feedback_path is not None and "{{" in work.feedback_path:
                yield TemplateSite(path, _template(draft, path, work.feedback_path), IN_LOOP, True)
        case Map():
            over = (*at, "map", "over")
            if work.over is not None:
                yield TemplateSite(over, _template(draft, over, work.over))
            yield from _instruction_site(draft, work.instruction, work.instruction_at, IN_MAP)
            for stage in work.stages:
                yield from _instruction_site(draft, stage.instruction, stage.instruction_at, IN_MAP)
        case RecipeUse():
            for name, value in work.inputs.items():
                if isinstance(value, str):
                    given = (*at, "inputs", name)
                    yield TemplateSite(given, _template(draft, given, value))


def _command_sites(
    draft: Draft, command: ShellCommand, local: frozenset[str]
) -> Iterator[TemplateSite]:
    for name, text in command.env.items():
        at = (*command.at, "env", name)
        yield TemplateSite(at, _template(draft, at, text), local)
    if command.stdin is not None:
        at = (*command.at, "stdin")
        yield TemplateSite(at, _template(draft, at, command.stdin), local)


def _early_sites(draft: Draft, step: Step) -> Iterator[TemplateSite]:
    for key, texts in (("read_set", step.read_set), ("write_set", step.write_set)):
        for position, text in enumerate(texts or ()):
            if "{{" in text:
                at = draft.element((*step.at, key), position, text)
                yield TemplateSite(at, _template(draft, at, text))
    yield from _timeout_site(draft, step.at, step.timeout_template)


def _timeout_site(draft: Draft, at: Path, text: str | None) -> Iterator[TemplateSite]:
    if text is not None:
        yield TemplateSite((*at, "timeout"), _template(draft, (*at, "timeout"), text))


def _decisions(draft: Draft, at: Path, text: str | None) -> Iterator[TemplateSite]:
    return (TemplateSite(at, expression) for expression in _expression(draft, at, text))


def _instruction_site(
    draft: Draft, text: str | None, at: Path, local: frozenset[str]
) -> Iterator[TemplateSite]:
    if text is not None and not is_all_prior(text):
        yield TemplateSite(at, _template(draft, at, text), local)


def _targets(step: Step) -> Iterator[tuple[Path, str]]:
    match step.work:
        case Condition():
            for key, name in (("true", step.work.if_true), ("false", step.work.if_false)):
                if name is not None:
                    yield (*step.at, "condition", key), name
        case Switch():
            for case, name in step.work.cases.items():
                yield (*step.at, "switch", "cases", case), name
            if step.work.default is not None:
                yield (*step.at, "switch", "default"), step.work.default
        case _:
            return


def asks_for_all_prior(step: Step) -> Path | None:
    """Where it says `all prior context`: the step itself, a branch, a map or one of its stages."""
    said = [(step.instruction, step.instruction_at)]
    match step.work:
        case Delegation():
            pass
        case Parallel(branches):
            said += [(branch.instruction, branch.instruction_at) for branch in branches]
        case Map():
            said.append((step.work.instruction, step.work.instruction_at))
            said += [(stage.instruction, stage.instruction_at) for stage in step.work.stages]
        case _:
            pass
    return next((at for text, at in said if text and is_all_prior(text)), None)
