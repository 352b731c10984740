"""Put the plan together from a draft without problems: defaults filled in, policies decided."""

from typing import cast

from stretto.documents.node import Path
from stretto.plan.catalog import COMMAND, tools_of
from stretto.plan.draft import Draft, DraftStep, command_of
from stretto.plan.edges import Edges, stored_names
from stretto.plan.model import (
    EVERYTHING,
    NO_RETRY,
    Brief,
    BriefStyle,
    EdgeReason,
    Plan,
    PlannedAgent,
    PlannedBranch,
    PlannedCommand,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    PlannedWork,
    PlannedWorkflow,
    RetryPolicy,
    Target,
    briefs,
)
from stretto.plan.rules.steps import literal_text
from stretto.plan.rules.templates import feedback_reference
from stretto.recipe.model import (
    Agent,
    Backoff,
    Condition,
    Delegation,
    Loop,
    Map,
    OnFailure,
    Parallel,
    Policy,
    RecipeUse,
    Recovery,
    ShellCommand,
    Switch,
    is_all_prior,
)
from stretto.templates.expression import Expression
from stretto.templates.template import Template
from stretto.vocabulary.models import COMMAND_MODEL
from stretto.vocabulary.names import COMMAND_AGENT, AgentId, StepId

_MAX_ITERATIONS = 3
_BATCH_SIZE = 20


def assemble(draft: Draft, edges: Edges, width: int) -> Plan:
    recipe = draft.recipe
    shared = _SharedEdges(edges)
    steps = tuple(_Assembly(draft, shared, i, step).step() for i, step in enumerate(draft.steps))
    used = {
        agent: None
        for step in steps
        for brief in briefs(step.work)
        for agent in (brief.agent, brief.fallback)
        if agent is not None
    }
    return Plan(
        name=recipe.name,
        description=recipe.description,
        version=recipe.version,
        dialect=recipe.dialect.name,
        digest=recipe.source.digest,
        file=recipe.source.file,
        inputs=recipe.inputs,
        agents={id: _agent(draft, id) for id in used},
        steps=steps,
        output=cast(Template, draft.output.parsed) if draft.output else None,
        stored=stored_names(draft),
        width=recipe.max_concurrency or recipe.dialect.width or width,
        timeout_seconds=recipe.timeout_seconds,
        timeout_template=draft.timeout_template(recipe.at),
        budget=recipe.budget,
        warnings=tuple(draft.warnings),
        title=recipe.title,
    )


def _agent(draft: Draft, id: AgentId) -> PlannedAgent:
    agent = COMMAND if id == COMMAND_AGENT else _find_agent(draft, id)
    # A registered agent's prompt is plain text: `{{` in it is no reference.
    prompt = draft.prompts.get(id) or Template.verbatim(agent.prompt)
    return PlannedAgent(
        id=id,
        name=agent.name or id,
        role=agent.role,
        prompt=prompt,
        tools=tools_of(agent),
        model=agent.model,
        fallback_models=agent.fallback_models,
        max_turns=agent.max_turns,
        max_output_tokens=agent.max_output_tokens,
        timeout_seconds=agent.timeout_seconds,
        validation=agent.validation,
        timeout_template=draft.timeout_template(agent.at) if agent.is_local else None,
        is_local=agent.is_local,
    )


def _find_agent(draft: Draft, id: AgentId) -> Agent:
    agent = draft.agent(id)
    assert agent is not None, "the agents rule found every agent"
    return agent


class _SharedEdges:
    """Steps that wait for the same have the same edges: of a dense layer, one dict for all."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._known: dict[tuple[object, ...], dict[StepId, EdgeReason]] = {}

    def before(self, id: StepId) -> dict[StepId, EdgeReason]:
        into = self._edges[id]
        return self._known.setdefault((*into, *into.values()), into)


class _Assembly:
    """One step; its parts share the draft, so they are methods."""

    def __init__(self, draft: Draft, edges: _SharedEdges, index: int, drafted: DraftStep) -> None:
        self.draft = draft
        self.edges = edges
        self.index = index
        self.written = drafted.step
        self.posture = drafted.posture
        self.dialect = draft.recipe.dialect

    def step(self) -> PlannedStep:
        written, work = self.written, self._work()
        is_writer = self.posture == "writer"
        read_templates = self._templates("read_set", written.read_set)
        write_templates = self._templates("write_set", written.write_set) if is_writer else ()
        # Until its inputs are known, a set that names some claims everything.
        reads = EVERYTHING if read_templates else written.read_set or EVERYTHING
        if isinstance(work, PlannedWorkflow):
            reads = ()  # it touches no files itself, and must not keep its own steps from theirs
        # An empty write-set of a writer is read as none: claiming everything is the safe side.
        writes = (written.write_set or EVERYTHING) if is_writer else ()
        writes = EVERYTHING if write_templates else writes
        mode = written.workspace_mode or ("isolated" if is_writer else "shared")
        return PlannedStep(
            id=written.id,
            index=self.index,
            work=work,
            edges=self.edges.before(written.id),
            when=self._expression((*written.at, "when")) if written.when else None,
            timeout_seconds=written.timeout_seconds,
            on_failure=self._policy(work),
            is_gated=written.is_gated,
            posture=self.posture,
            read_set=reads,
            write_set=writes,
            workspace_mode=mode,
            merge_back=written.merge_back or "auto",
            merge_after=written.merge_after,
            merge_when=self._expression((*written.at, "merge_when"))
            if written.merge_when
            else None,
            recovery=written.recovery or self._guess_recovery(),
            output=written.output,
            is_cached=written.is_cached,
            is_recovery_written=written.recovery is not None,
            max_output_tokens=written.max_output_tokens,
            read_templates=read_templates,
            write_templates=write_templates,
            timeout_template=self.draft.timeout_template(written.at),
        )

    def _templates(self, key: str, texts: tuple[str, ...] | None) -> tuple[Template, ...]:
        """All of a set, if any of it names an input."""
        if not any("{{" in text for text in texts or ()):
            return ()
        at = (*self.written.at, key)
        places = (self.draft.element(at, i, text) for i, text in enumerate(texts or ()))
        return tuple(
            cast(Template, self.draft.parsed.get(place) or Template.verbatim(text))
            for place, text in zip(places, texts or (), strict=True)
        )

    def _guess_recovery(self) -> Recovery:
        command = command_of(self.written)
        is_repeatable = command is None or command.effect == "idempotent"
        # A command says itself what a second run would do; of an agent only its tools can tell.
        if not isinstance(self.written.work, ShellCommand):
            is_repeatable = is_repeatable and self.posture != "writer"
        return "rerun" if is_repeatable else "ask"

    def _work(self) -> PlannedWork:
        at, work = self.written.at, self.written.work
        match work:
            case Delegation(agent):
                named = agent or self.dialect.default_agent
                assert named is not None
                return PlannedDelegation(self._brief(named))
            case ShellCommand():
                return PlannedDelegation(self._command_brief(work))
            case Parallel():
                return self._parallel(work)
            case Condition():
                return PlannedCondition(
                    self._expression((*at, "condition", "eval")),
                    self._target(work.if_true),
                    self._target(work.if_false),
                )
            case Switch():
                cases = tuple((case, self._target(name)) for case, name in work.cases.items())
                return PlannedSwitch(
                    self._expression((*at, "switch", "value")),
                    tuple((case, target) for case, target in cases if target),
                    self._target(work.default),
                )
            case Loop():
                return self._loop(work)
            case Map():
                return self._map(work)
            case RecipeUse():
                return self._workflow(work)

    def _workflow(self, work: RecipeUse) -> PlannedWorkflow:
        parsed, at = self.draft.parsed, (*self.written.at, "inputs")
        texts = [name for name, value in work.inputs.items() if isinstance(value, str)]
        return PlannedWorkflow(
            {name: cast(Template, parsed[*at, name]) for name in texts},
            {name: value for name, value in work.inputs.items() if name not in texts},
        )

    def _parallel(self, work: Parallel) -> PlannedParallel:
        branches = zip(work.output_keys, work.branches, strict=True)
        return PlannedParallel(
            tuple(
                PlannedBranch(
                    key, self._brief(branch.agent, branch.instruction, branch.instruction_at)
                )
                for key, branch in branches
                if branch.agent
            ),
            work.wait,
        )

    def _loop(self, work: Loop) -> PlannedLoop:
        assert work.agent is not None
        at = (*self.written.at, "loop", "until")
        return PlannedLoop(
            producer=self._brief(work.agent),
            validator=self._validator(work),
            until=self._expression(at) if work.until else None,
            max_iterations=work.max_iterations or _MAX_ITERATIONS,
            feedback=feedback_reference(work.feedback_path) if work.feedback_path else None,
        )

    def _validator(self, work: Loop) -> Brief | None:
        if work.command is not None:
            return self._command_brief(work.command)
        return self._bare_brief(work.validator) if work.validator else None

    def _command_brief(self, command: ShellCommand) -> Brief:
        parsed, at, retry = self.draft.parsed, command.at, self.written.retry
        on_failure = self.written.on_failure or retry.on_failure
        return Brief(
            agent=COMMAND_AGENT,
            instruction=None,
            model=COMMAND_MODEL,
            retry=_retry(retry.max_attempts or 1, retry.backoff or "none"),
            on_failure=on_failure.policy if on_failure else None,
            command=PlannedCommand(
                literal_text(command.run or ""),
                {name: cast(Template, parsed[*at, "env", name]) for name in command.env},
                cast(Template, parsed[*at, "stdin"]) if command.stdin is not None else None,
                command.effect or "in_doubt",
            ),
        )

    def _map(self, work: Map) -> PlannedMap:
        over = self.draft.parsed[(*self.written.at, "map", "over")]
        assert isinstance(over, Template)
        if work.stages:
            stages = tuple(
                self._brief(stage.agent, stage.instruction, stage.instruction_at)
                for stage in work.stages
                if stage.agent
            )
        else:
            assert work.agent is not None
            stages = (self._brief(work.agent, work.instruction, work.instruction_at),)
        return PlannedMap(
            over=over,
            stages=stages,
            reducer=self._bare_brief(work.reduce) if work.reduce else None,
            batch_size=work.batch_size or _BATCH_SIZE,
            max_items=work.max_items or self.draft.limits.map_items,
            on_item_failure=work.on_item_failure,
        )

    def _target(self, name: str | None) -> Target | None:
        if name is None:
            return None
        if StepId(name) in self.draft.by_id:
            return Target(step=StepId(name))
        return Target(brief=self._brief(AgentId(name)))

    def _brief(self, agent: AgentId, text: str | None = None, at: Path = ()) -> Brief:
        """`text`: of a branch or stage; without one it is told what the step says."""
        if text is None:
            text, at = self.written.instruction, self.written.instruction_at
        return self._brief_of(agent, text, at)

    def _bare_brief(self, agent: AgentId) -> Brief:
        """A validator or reducer: what it gets is the work of others."""
        return self._brief_of(agent, None, ())

    def _brief_of(self, agent: AgentId, text: str | None, at: Path) -> Brief:
        defined = _find_agent(self.draft, agent)
        gets_all = text is not None and is_all_prior(text)
        instruction = None if text is None or gets_all else self.draft.parsed[at]
        step_retry, agent_retry = self.written.retry, defined.retry
        nearest = self._nearest_on_failure(defined)
        return Brief(
            agent=agent,
            instruction=cast("Template | None", instruction),
            style=self._style(at),
            gets_all_prior=gets_all,
            model=self.written.model or defined.model,
            retry=_retry(
                step_retry.max_attempts or agent_retry.max_attempts or 1,
                step_retry.backoff or agent_retry.backoff or "none",
            ),
            on_failure=nearest.policy if nearest else None,
            fallback=nearest.fallback if nearest else None,
            fallback_retry=self._own_retry(nearest.fallback if nearest else None),
        )

    def _own_retry(self, agent: AgentId | None) -> RetryPolicy:
        if agent is None:
            return NO_RETRY
        retry = _find_agent(self.draft, agent).retry
        return _retry(retry.max_attempts or 1, retry.backoff or "none")

    def _style(self, at: Path) -> BriefStyle:
        is_written = at and at[-1] in ("prompt", "input", "task")
        return cast(BriefStyle, at[-1] if is_written else self.dialect.instruction_key)

    def _nearest_on_failure(self, agent: Agent) -> OnFailure | None:
        return self.written.on_failure or self.written.retry.on_failure or agent.retry.on_failure

    def _policy(self, work: PlannedWork) -> Policy:
        """The step's, else its one agent's, else the dialect's."""
        for written in (self.written.on_failure, self.written.retry.on_failure):
            if written is not None:
                # `fallback:x` says who takes over; if that fails too, the step aborts.
                return written.policy or "abort"
        if isinstance(work, PlannedDelegation | PlannedLoop):
            brief = work.brief if isinstance(work, PlannedDelegation) else work.producer
            if brief.on_failure or brief.fallback:
                return brief.on_failure or "abort"
        return self.dialect.on_failure

    def _expression(self, at: Path) -> Expression:
        expression = self.draft.parsed[at]
        assert isinstance(expression, Expression)
        return expression


def _retry(max_attempts: int, backoff: Backoff) -> RetryPolicy:
    written = RetryPolicy(max_attempts, backoff)
    return NO_RETRY if written == NO_RETRY else written
