"""Where an answer belongs. In: a state and a part's name. Out: a place that a list may not move.

A step's part is a place: `("scores", "firmographic")`. An element of a map is one by its value and
by how many equal elements stand before it, not by its index: an element that is inserted at the
front moves nobody's answer, and of equal elements each keeps its own.
"""

import json
from collections import Counter
from hashlib import sha256
from typing import TypeAlias, assert_never

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

Place: TypeAlias = tuple[str, str]  # a step, and which of its delegations


class Places:
    """The places of one run; the elements of each map are counted once."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._elements: dict[StepId, list[str]] = {}

    def of(self, step: StepId, part: str) -> Place:
        if not part.startswith("item."):
            return (step, part)
        _, index, rest = part.split(".", 2)
        return (step, f"{self._element(step, int(index))}.{rest}")

    def _element(self, step: StepId, index: int) -> str:
        named = self._elements.get(step)
        if named is None:
            items = self._state.steps[step].items
            seen: Counter[str] = Counter()
            named = self._elements[step] = []
            for value in items.values if items else ():
                text = json.dumps(value, sort_keys=True).encode()
                name = f"item.{sha256(text).hexdigest()[:32]}"
                named.append(f"{name}#{seen[name]}")
                seen[name] += 1
        return named[index]


class PlannedPlaces:
    """Where a run of a plan may ask. Any element of a map may be in its list."""

    def __init__(self, plan: Plan) -> None:
        self._work = {str(step.id): step.work for step in plan.steps}

    def __contains__(self, place: Place) -> bool:
        work, part = self._work.get(place[0]), place[1]
        match work:
            case None:
                return False
            case PlannedDelegation() | PlannedCondition() | PlannedSwitch():
                return part == ""
            case PlannedParallel():
                return any(branch.key == part for branch in work.branches)
            case PlannedLoop():
                return _is_in_loop(work, part)
            case PlannedMap():
                return _is_in_map(work, part)
            case _:
                assert_never(work)


def _is_in_loop(work: PlannedLoop, part: str) -> bool:
    kind, _, number = part.partition(".")
    is_asked = kind == "try" or (kind == "check" and work.validator is not None)
    return is_asked and number.isdecimal() and int(number) <= work.max_iterations


def _is_in_map(work: PlannedMap, part: str) -> bool:
    if part == "reduce":
        return work.reducer is not None
    head, _, stage = part.rpartition(".stage.")
    return head.startswith("item.") and stage.isdecimal() and int(stage) < len(work.stages)
