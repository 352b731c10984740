"""Which attempt, and which timer. All of these are keys of dicts, made once and passed around.

A step is made of parts, each given to one agent: the whole step, a branch, a try of a loop, an
element of a map in one of its stages. An attempt is one try at one part. `text` is how a part is
shown to people, and how they name it: `stretto approve --edit`, scripts of replies, logs.
"""

from typing import TypeAlias

from msgspec import Struct

from stretto.vocabulary.names import StepId


class _Value(Struct, frozen=True, gc=False, tag_field="kind"):
    """Frozen, and in JSON an object whose `kind` says which of the values it is."""


class WholeStep(_Value, frozen=True, tag="step"):
    @property
    def text(self) -> str:
        return ""


class BranchPart(_Value, frozen=True, tag="branch"):
    key: str  # its name in steps.ID.outputs

    @property
    def text(self) -> str:
        return self.key


class TryPart(_Value, frozen=True, tag="try"):
    """One try of a loop: its agent makes a candidate."""

    iteration: int  # from 1

    @property
    def text(self) -> str:
        return f"try.{self.iteration}"


class CheckPart(_Value, frozen=True, tag="check"):
    """The check of a try's candidate. It gives a verdict, whatever form the step's output has."""

    iteration: int

    @property
    def text(self) -> str:
        return f"check.{self.iteration}"


class ItemPart(_Value, frozen=True, tag="item"):
    """An element of a map in one of its stages."""

    index: int  # from 0
    stage: int

    @property
    def text(self) -> str:
        return f"item.{self.index}.stage.{self.stage}"


class ReducePart(_Value, frozen=True, tag="reduce"):
    """The reduction of a map: its agent is given what the elements gave."""

    @property
    def text(self) -> str:
        return "reduce"


Part: TypeAlias = WholeStep | BranchPart | TryPart | CheckPart | ItemPart | ReducePart
WHOLE_STEP = WholeStep()
REDUCE = ReducePart()


class AttemptId(Struct, frozen=True, gc=False, omit_defaults=True, cache_hash=True):
    step: StepId
    number: int  # from 1; goes on counting over retries and fallbacks of one part
    part: Part = WHOLE_STEP

    @property
    def text(self) -> str:
        return f"{self.step}/{self.part.text}/{self.number}"


class RunTimer(_Value, frozen=True, tag="run"):
    """The time of the whole run is up."""


class StepTimer(_Value, frozen=True, tag="step"):
    step: StepId


class AttemptTimer(_Value, frozen=True, tag="attempt"):
    attempt: AttemptId


class RetryTimer(_Value, frozen=True, tag="retry"):
    """When it fires, the attempt after this one starts."""

    attempt: AttemptId


Timer: TypeAlias = RunTimer | StepTimer | AttemptTimer | RetryTimer
RUN_TIMER = RunTimer()
