"""Where an answer belongs, so that another run can reuse it there.

A part of a step is a place. An element of a map is one by its value and
by how many equal elements stand before it, not by its index: an element that is inserted at the
front moves nobody's answer, and of equal elements each keeps its own.
"""

import json
from collections import Counter
from hashlib import sha256
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
from stretto.schedule.state import RunState
from stretto.vocabulary.ids import StepId


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
