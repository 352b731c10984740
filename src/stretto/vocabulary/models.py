"""Names of models, which model answers which agent, and what a plan leaves to its machine."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from msgspec import Struct, field


class Setup(Struct, frozen=True):
    # A model as a plan writes it ("" where it names none) → who really answers, and where.
    models: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)  # a tool's name → how it is configured
    judge: str = ""  # who decides the rules that code cannot decide


# Beginnings of names that mean something else than a provider's model.
CLI_MODEL = "cli:"  # an agent program of another maker
FUNCTION_MODEL = "python:"  # a Python function that the calling program gave as an agent
SCRIPTED_MODEL = "scripted:"  # a file of replies
LOCAL_MODEL = "local:"  # weights on this machine
EMBEDDED_MODEL = "embedded"  # the smallest of these
COMMAND_MODEL = "command:"  # no model: a shell command

JUDGE_OFF = "off"  # in place of a model's name: nobody is asked about rules


def is_function(model: str | None) -> TypeGuard[str]:
    return model is not None and model.startswith(FUNCTION_MODEL)


def works_unseen(model: str) -> bool:
    """Whether whoever answers may change files without a tool call on record."""
    return model.startswith((CLI_MODEL, FUNCTION_MODEL, COMMAND_MODEL))


def is_local(model: str) -> bool:
    """Whether the model runs on this machine and costs nothing."""
    return model == EMBEDDED_MODEL or model.startswith(LOCAL_MODEL)


def is_asked(model: str | None) -> bool:
    """Whether an agent with this model asks one: functions and commands work without."""
    return model is None or not model.startswith((FUNCTION_MODEL, COMMAND_MODEL))


class ModelSelection(Struct, frozen=True):
    """Decided once before a run: which model answers agents that name none, and all others."""

    default: str  # for agents that name no model
    override: str | None = None  # the user's flag: for every agent
    judge: str | None = None  # for rules that code cannot decide; None: whoever answered
    notes: tuple[str, ...] = ()  # for the user: which model and why, what is missing
    # The full name behind a name as an agent writes it; None: the default.
    resolve_name: Callable[[str], str | None] = str
    is_too_small: Callable[[str], bool] = EMBEDDED_MODEL.__eq__  # to judge its own answers

    def names_for(self, model: str | None, fallbacks: Sequence[str] = ()) -> tuple[str, ...]:
        """The models that are asked, each where those before it could not answer."""
        if self.override:
            return (self.override,)
        own = self.resolve_name(model) if model else None
        others = (self.resolve_name(name) or self.default for name in fallbacks)
        return tuple(dict.fromkeys((own or self.default, *others)))

    def judge_of(self, answered_by: str) -> str | None:
        """The model that is asked about the rules of an answer; None: nobody can be."""
        if self.judge is not None:
            return None if self.judge == JUDGE_OFF else self.judge
        is_model = answered_by and not answered_by.startswith((CLI_MODEL, SCRIPTED_MODEL))
        can_judge = is_model and is_asked(answered_by) and not self.is_too_small(answered_by)
        return answered_by if can_judge else None
