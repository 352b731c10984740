"""Where an answer belongs, so that another run can reuse it there.

A part of a step is a place. An element of a map is one by its value and by how many equal elements
stand before it, not by its index: an element that is inserted at the front moves nobody's answer,
and of equal elements each keeps its own.
"""

import json
from collections import Counter
from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter
from typing import assert_never

from msgspec import Struct

from stretto.events.attempts import (
    BranchPart,
    CheckPart,
    ItemPart,
    Part,
    ReducePart,
    TryPart,
    WholeStep,
)
from stretto.plan.model import (
    Plan,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
)
from stretto.ports.runner import AttemptRequest, FunctionArguments
from stretto.schedule.state import Digest, RunState
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import StepId, tool_name


class ElementPart(Struct, frozen=True):
    """An element of a map in one of its stages, wherever it stands in its list."""

    element: str  # a digest of its value, and how many equal ones stand before it
    stage: int

    @property
    def text(self) -> str:
        return f"item.{self.element}.stage.{self.stage}"


class AnswerPlace(Struct, frozen=True):
    step: StepId
    part: Part | ElementPart


class Places:
    """The places of one run; the elements of each map are counted once."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._elements: dict[StepId, list[str]] = {}

    def of(self, step: StepId, part: Part) -> AnswerPlace:
        if not isinstance(part, ItemPart):
            return AnswerPlace(step, part)
        return AnswerPlace(step, ElementPart(self._element(step, part.index), part.stage))

    def _element(self, step: StepId, index: int) -> str:
        named = self._elements.get(step)
        if named is None:
            items = self._state.steps[step].items
            seen: Counter[str] = Counter()
            named = self._elements[step] = []
            for value in items.values if items else ():
                digest = sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
                named.append(f"{digest}#{seen[digest]}")
                seen[digest] += 1
        return named[index]


class PlannedPlaces:
    """Where a run of a plan may ask. Any element of a map may be in its list."""

    def __init__(self, plan: Plan) -> None:
        self._work = {step.id: step.work for step in plan.steps}

    def __contains__(self, place: AnswerPlace) -> bool:
        work = self._work.get(place.step)
        match place.part:
            case WholeStep():
                return isinstance(work, PlannedDelegation | PlannedCondition | PlannedSwitch)
            case BranchPart(key):
                branches = work.branches if isinstance(work, PlannedParallel) else ()
                return any(branch.key == key for branch in branches)
            case TryPart(iteration):
                return isinstance(work, PlannedLoop) and iteration <= work.max_iterations
            case CheckPart(iteration):
                if not isinstance(work, PlannedLoop) or work.validator is None:
                    return False
                return iteration <= work.max_iterations
            case ElementPart():
                return isinstance(work, PlannedMap) and place.part.stage < len(work.stages)
            case ReducePart():
                return isinstance(work, PlannedMap) and work.reducer is not None
            case ItemPart():
                return False  # no place: its index says nothing about which element it is
            case _:
                assert_never(place.part)


_LENGTH = 32
_MOST_FRAMES = 100
_CANONICAL = JSONEncoder(sort_keys=True, separators=(",", ":"))
_GIVEN = FunctionArguments.__struct_fields__
# Fields of a request that are no part of the digest's last half: who asks, what stands in its first
# half, who really answers (which the setup says), and what changes no answer that came.
_ELSEWHERE = {"run_id", "attempt", "workspace", "origin", "seconds_left", "allowance", "repeats"} | {
    "agent", "instructions", "prompt", "arguments", "model", "fallback_models", "playbooks",
    "loadable", "command",
}  # fmt: skip
OBEYED = tuple(name for name in AttemptRequest.__struct_fields__ if name not in _ELSEWHERE)
_FRAMED = ("agent", "instructions", "model", "fallback_models", "loadable")
_shared = attrgetter(*_FRAMED, *(name for name in OBEYED if name != "schema"))
# An agent of another tool reads and writes files whatever tools its definition lists.
_CLI = "cli:"
_NOT_RECORDED = Setup()


def key_of(state: RunState, request: AttemptRequest) -> str:
    head, end = _frame(state, request)
    digest = head.copy()
    digest.update(f"{quoted(request.prompt)},{end}".encode())
    if request.arguments is not None:
        # A function sees more than its prompt, so equal prompts are not yet equal work.
        given = [getattr(request.arguments, name) for name in _GIVEN]
        digest.update(_CANONICAL.encode(given).encode())
    if (command := request.command) is not None:
        digest.update(_CANONICAL.encode([command.run, dict(command.env), command.stdin]).encode())
    return digest.hexdigest()[:_LENGTH]


def _frame(state: RunState, request: AttemptRequest) -> tuple[Digest, str]:
    """What stands before the prompt, digested, and what stands after it."""
    frames, is_shared = state.key_frames, request.schema is None
    # All that is digested, and not the agent's name alone: an agent of another recipe may have it too.
    shared = _shared(request)
    found = frames.get(shared) if is_shared else None
    if found is None:
        head = sha256(f"[{quoted(request.agent)},{quoted(request.instructions)},".encode())
        found = head, _end(state, request)
        # Instructions that name the item are as many as the items: they are not worth keeping.
        if is_shared and len(frames) < _MOST_FRAMES:
            frames[shared] = found
    return found


def _end(state: RunState, request: AttemptRequest) -> str:
    obeyed = {name: getattr(request, name) for name in OBEYED}
    obeyed["tools"] = sorted(request.tools)
    if request.loadable:  # the instructions name them, and say nothing of what is in them
        obeyed["loadable"] = request.loadable
    return _CANONICAL.encode([obeyed, _setup(state, request)])[1:]


def _setup(state: RunState, request: AttemptRequest) -> Json:
    setup = state.setup or _NOT_RECORDED
    answers = answerers(state, request.model, request.fallback_models)
    names = sorted({tool_name(written) for written in request.tools})
    touches_files = bool(request.tools) or any(each.startswith(_CLI) for each in answers)
    return [
        list(answers),
        [setup.tools.get(name, "") for name in names],
        setup.judge if request.rules else "",
        state.workspace if touches_files else "",
    ]


def answerers(state: RunState, model: str | None, fallbacks: tuple[str, ...]) -> tuple[str, ...]:
    """Who is asked, and who is asked next if that fails."""
    models = (state.setup or _NOT_RECORDED).models
    asked = (model or "", *fallbacks)
    # Where it is not known who answers, the answer is equal to no answer of another run.
    who = (models.get(name) or f"unknown in {state.run_id}: {name}" for name in asked)
    return tuple(dict.fromkeys(who))
