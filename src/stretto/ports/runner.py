"""The plug point for whatever does the work: one attempt in, its result out."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

from msgspec import Struct, field

from stretto.events.attempts import AttemptId
from stretto.events.model import FailureKind, Happening
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import AgentId, StepId


@dataclass(frozen=True, slots=True)
class CallEstimate:
    input_tokens: int
    output_tokens: int  # of a long answer; fewer may be granted
    usd: Callable[[int, int], float]  # what so many input and output tokens cost


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    input_tokens: int
    output_tokens: int
    usd: float
    is_cut: bool  # fewer output tokens than were asked for: the call must be held to them


@dataclass(frozen=True, slots=True)
class NothingLeft:
    says: str


class Allowance(Protocol):
    """One attempt's share of the budget."""

    async def reserve(self, estimate: CallEstimate) -> Reservation | NothingLeft:
        """Waits while calls under way hold what this one needs: most give some of it back."""
        ...

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """What the call has really taken, or nothing if it was not answered."""
        ...

    def charge(self, usage: Usage) -> None:
        """What a run has taken that the attempt started. It is no part of the attempt's own usage."""
        ...

    def left(self) -> tuple[int | None, float | None]:
        """Tokens and dollars that nobody has spent or reserved; None: there is no limit."""
        ...

    def overspent(self, usage: Usage) -> str | None:
        """Why an agent that calls models on its own must stop, having used so much so far."""
        ...


class FunctionArguments(Struct, frozen=True):
    """What a Python function may take as arguments; a model reads all of it in its prompt."""

    inputs: Mapping[str, Json] = field(default_factory=dict)
    results: Mapping[str, Json] = field(default_factory=dict)  # by the ids of the steps before
    # item, index, candidate, feedback, iteration
    local: Mapping[str, Json] = field(default_factory=dict)
    previous: Json = None  # the output of the map stage before, or what a validator checks


class CommandRequest(Struct, frozen=True):
    """A shell command, with the values that it is given."""

    run: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""


class AttemptRequest(Struct, frozen=True, gc=False):
    """All that a subagent needs to know, and the whole of what a runner obeys.

    The scheduler makes it. The driver adds only where the attempt works, how much time is left
    and whom to ask before money is spent.
    """

    run_id: str
    attempt: AttemptId
    agent: AgentId
    instructions: str
    prompt: str
    model: str | None
    tools: tuple[str, ...]
    max_turns: int | None
    format: str | None
    schema: Mapping[str, Json] | None
    rules: tuple[str, ...]
    fallback_models: tuple[str, ...] = ()
    max_output_tokens: int | None = None  # of one answer; None: the model's own limit
    is_verdict: bool = False  # it judges for a loop: `passed` and `feedback`
    workspace: str = ""  # the folder it works in; empty: it has none
    origin: str = ""  # what that folder is a copy of; empty: it is none
    may_write: bool = False
    read_set: tuple[str, ...] = ("**/*",)
    write_set: tuple[str, ...] = ()
    seconds_left: float | None = None  # until a timeout of attempt, step or run ends it
    allowance: Allowance | None = None  # whom to ask before a model call; None: no budget
    arguments: FunctionArguments | None = None  # None: the agent is no Python function
    playbooks: tuple[str, ...] = ()  # names of those that its instructions hold
    # More playbooks, which the tool load_playbook gives: their names and digests.
    loadable: tuple[tuple[str, str], ...] = ()
    command: CommandRequest | None = None  # None: an agent does the work
    repeats: int | None = None  # the number of the attempt that was interrupted and is done again

    @property
    def step(self) -> StepId:
        return self.attempt.step

    @property
    def name(self) -> str:
        """The key of every effect of this attempt begins with it.

        An attempt that repeats an interrupted one has its name: a service that is sent the same key
        twice then knows that it is the same request.
        """
        attempt = self.attempt
        if self.repeats is not None:
            attempt = AttemptId(attempt.step, self.repeats, attempt.part)
        return f"{self.run_id}/{attempt.text}"


class Success(Struct, frozen=True, gc=False):
    output: Json
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    model: str = ""


class Failure(Struct, frozen=True, gc=False):
    kind: FailureKind
    error: str
    usage: Usage = Usage()
    retry_after_seconds: float | None = None
    model: str = ""
    warnings: tuple[str, ...] = ()


AttemptResult: TypeAlias = Success | Failure


class Witness(Protocol):
    """Who is told what an attempt does while it does it."""

    def now(self) -> float: ...

    def is_followed(self) -> bool:
        """Whether somebody reads along: then what a model says is journaled more often."""
        ...

    def note(self, event: Happening) -> None:
        """Have an event journaled soon, with what else happens."""
        ...

    async def record(self, event: Happening) -> None:
        """Returns when it is durable: for what must be on record before an effect."""
        ...

    async def confirm(self) -> None:
        """Ask this before whatever reaches the outside: a model, a tool, a program.

        Raises Fenced when another process drives the run by now. Costs nothing otherwise.
        """
        ...

    def spend(self, usage: Usage) -> None:
        """What one more model call cost. It counts even if the attempt is cancelled."""
        ...


class Runner(Protocol):
    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        """Never raises for what a model or a tool did wrong; cancelling it stops the work."""
        ...


@runtime_checkable
class Identified(Protocol):
    """A runner that can say who answers. What any other runner has made is never reused."""

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        """`models` and `tools` as a plan writes them; "" is the model of those that name none."""
        ...


def is_identified(runner: Runner) -> TypeGuard[Identified]:
    # Not by isinstance, which looks for the members of a protocol anew each time: every run asks.
    return callable(getattr(runner, "identify", None))
