"""What an author wrote: a Recipe and its parts.

Values stand as they were written: templates are text, ids may be unknown, a policy that was
not written is None. `plan` decides what it all means. `at` is a part's path in the file.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from stretto.documents.node import Node, Path, Source
from stretto.problems import Problem
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, InputName, StepId

InputType: TypeAlias = Literal["string", "number", "boolean", "json", "file_path"]
Policy: TypeAlias = Literal["inline", "skip", "block", "abort"]
Backoff: TypeAlias = Literal["none", "linear", "exponential"]
Posture: TypeAlias = Literal["read_only", "writer"]
WorkspaceMode: TypeAlias = Literal["shared", "isolated"]
MergeBack: TypeAlias = Literal["auto", "manual", "never", "after"]
Recovery: TypeAlias = Literal["rerun", "ask", "skip"]
Format: TypeAlias = Literal["json", "text", "markdown"]
Effect: TypeAlias = Literal["idempotent", "in_doubt"]
Wait: TypeAlias = Literal["all", "any"] | int

ALL_PRIOR_CONTEXT = "all prior context"


def is_all_prior(text: str) -> bool:
    """Whether the text is `all prior context` and nothing else, in any case."""
    # The first word is looked at first: prompts are long, and few begin so.
    begins_so = text.lstrip()[:3].casefold() == "all"
    return begins_so and " ".join(text.split()).casefold() == ALL_PRIOR_CONTEXT


class Dialect(Struct, frozen=True):
    """One way to write a recipe. It chooses defaults and nothing else."""

    name: Literal["flat", "wrapped", "structural"]
    agent_key: str  # what messages call the agent of a step
    instruction_key: str  # and what it is told
    chains_steps: bool  # a step without depends_on follows the one listed before it
    on_failure: Policy
    width: int | None  # None: subagents.max_concurrency
    needs_name: bool
    needs_instruction: bool
    default_agent: AgentId | None


class Input(Struct, frozen=True):
    name: InputName
    at: Path
    type: InputType = "string"
    shape: Literal["object", "array"] | None = None  # other tools' finer words for json
    is_required: bool = False
    has_default: bool = False
    default: Json = None
    description: str = ""
    enum: tuple[Json, ...] = ()


class OnFailure(Struct, frozen=True):
    policy: Policy | None = None
    fallback: AgentId | None = None


class Retry(Struct, frozen=True):
    max_attempts: int | None = None
    backoff: Backoff | None = None
    on_failure: OnFailure | None = None


class Validation(Struct, frozen=True):
    schema: Mapping[str, Json] | None = None
    rules: tuple[str, ...] = ()


class Agent(Struct, frozen=True):
    id: AgentId
    at: Path = ()
    name: str = ""
    role: str = ""
    prompt: str = ""
    tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    fallback_models: tuple[str, ...] = ()
    max_turns: int | None = None
    max_output_tokens: int | None = None
    timeout_seconds: float | None = None
    timeout_template: str | None = None  # a timeout that names inputs
    retry: Retry = Retry()
    validation: Validation = Validation()
    posture: Posture | None = None
    is_local: bool = False  # written in the recipe: its prompt is a template


class Output(Struct, frozen=True):
    store_as: str | None = None
    format: Format | None = None
    schema: Mapping[str, Json] | None = None


NO_OUTPUT = Output()


class Budget(Struct, frozen=True):
    tokens: int | None = None
    usd: float | None = None
    agents: int | None = None


class Delegation(Struct, frozen=True):
    agent: AgentId | None


class ShellCommand(Struct, frozen=True):
    """A command instead of an agent: the text of `run`, and the values that it is given."""

    at: Path
    run: str | None
    env: Mapping[str, str] = field(default_factory=dict)  # templates
    stdin: str | None = None  # a template
    effect: Effect | None = None  # of a second run after a crash; None: not written


class Branch(Struct, frozen=True):
    at: Path
    agent: AgentId | None
    instruction: str | None = None
    instruction_at: Path = ()
    output_key: str | None = None


class Parallel(Struct, frozen=True):
    branches: tuple[Branch, ...]
    wait: Wait = "all"

    @property
    def output_keys(self) -> list[str]:
        """What the branches are called in `outputs`: the written key, else the agent's
        id, numbered when it is there already."""
        keys: list[str] = []
        written = {branch.output_key for branch in self.branches if branch.output_key}
        for branch in self.branches:
            key = branch.output_key or str(branch.agent or "branch")
            number = 2
            while not branch.output_key and (key in keys or key in written):
                key = f"{branch.agent or 'branch'}_{number}"
                number += 1
            keys.append(key)
        return keys


class Condition(Struct, frozen=True):
    eval: str | None
    if_true: str | None = None
    if_false: str | None = None


class Switch(Struct, frozen=True):
    value: str | None
    cases: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None


class Loop(Struct, frozen=True):
    agent: AgentId | None
    validator: AgentId | None = None
    until: str | None = None
    max_iterations: int | None = None
    feedback_path: str | None = None
    command: ShellCommand | None = None  # the validator, where a command judges


class Stage(Struct, frozen=True):
    at: Path
    agent: AgentId | None
    instruction: str | None = None
    instruction_at: Path = ()


class Map(Struct, frozen=True):
    over: str | None
    agent: AgentId | None = None
    reduce: AgentId | None = None
    instruction: str | None = None
    instruction_at: Path = ()
    batch_size: int | None = None
    max_items: int | None = None
    on_item_failure: Literal["inline", "skip", "abort"] | None = None
    stages: tuple[Stage, ...] = ()


class RecipeUse(Struct, frozen=True):
    """Another recipe as a step, and what it is given."""

    named: str | None  # its name, or its file
    inputs: Mapping[str, Json] = field(default_factory=dict)  # text is a template


Work: TypeAlias = Delegation | ShellCommand | Parallel | Condition | Switch | Loop | Map | RecipeUse


class Step(Struct, frozen=True):
    id: StepId
    at: Path
    work: Work
    instruction: str | None = None  # prompt, input or task
    instruction_at: Path = ()
    depends_on: tuple[StepId, ...] | None = None  # None: not written
    when: str | None = None
    model: str | None = None
    timeout_seconds: float | None = None
    timeout_template: str | None = None  # a timeout that names inputs
    retry: Retry = Retry()
    on_failure: OnFailure | None = None
    is_gated: bool = False
    posture: Posture | None = None
    read_set: tuple[str, ...] | None = None
    write_set: tuple[str, ...] | None = None
    workspace_mode: WorkspaceMode | None = None
    merge_back: MergeBack | None = None
    merge_after: StepId | None = None  # the step with whose success a change is merged
    merge_when: str | None = None  # and what must be so then
    recovery: Recovery | None = None
    output: Output = NO_OUTPUT
    is_cached: bool = False
    max_output_tokens: int | None = None


class Recipe(Struct, frozen=True):
    name: str
    dialect: Dialect
    source: Source
    root: Node | None
    at: Path = ()  # ("workflow",) in the wrapped dialect
    title: str = ""  # `name`, where there is an `id` too
    description: str = ""
    version: str = ""
    inputs: tuple[Input, ...] = ()
    agents: Mapping[AgentId, Agent] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    output: str | None = None
    timeout_seconds: float | None = None
    timeout_template: str | None = None
    max_concurrency: int | None = None
    budget: Budget = Budget()
    problems: tuple[Problem, ...] = ()  # found while reading; `build` adds its own
    # Misspelt keys, as they were meant. Their values are not checked.
    guessed: frozenset[Path] = frozenset()
