"""Work that was done before. In: an earlier run. Out: the outputs that need not be made again.

Equal keys mean equal work: the same agent, rendered prompt, tools, model and schema. So what
can be reused follows from the content alone, in whatever order the steps now stand.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft.events.model import Approved, Event
from weft.plan.model import Plan
from weft.schedule.commands import StartAttempt
from weft.schedule.state import RunState
from weft.vocabulary.ids import StepId
from weft.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Reusable:
    run_id: str = ""
    outputs: Mapping[str, Mapping[tuple[str, str], Json]] = field(default_factory=dict)
    anew: frozenset[StepId] = frozenset()  # steps that must run again, whatever their keys
    approved: frozenset[StepId] = frozenset()  # what a person allowed then stays allowed

    def find(self, command: StartAttempt) -> "Found | None":
        made = self.outputs.get(command.key)
        if not made or command.step in self.anew:
            return None
        # Two branches may do equal work: each gets its own earlier answer if it had one.
        place = (str(command.step), command.part)
        return Found(made[place] if place in made else next(iter(made.values())), self.run_id)


@dataclass(frozen=True, slots=True)
class Found:
    output: Json
    run_id: str


NOTHING = Reusable()


def reusable(
    state: RunState, events: Iterable[Event], anew: frozenset[StepId] = frozenset()
) -> Reusable:
    outputs: dict[str, dict[tuple[str, str], Json]] = {}
    for step in state.order:
        for part in step.parts.values():
            for attempt in part.attempts:
                if attempt.outcome == "succeeded":
                    place = (str(step.id), part.name)
                    outputs.setdefault(attempt.key, {})[place] = part.output
    approved = {event.step for event in events if isinstance(event, Approved)}
    return Reusable(state.run_id, outputs, anew, frozenset(approved) - anew)


def downstream(plan: Plan, step: StepId) -> frozenset[StepId]:
    """The step and everything that waits for it, however far."""
    found = {step}
    # Edges may point backwards in the listing, so go round until nothing is added.
    while True:
        more = {s.id for s in plan.steps if s.id not in found and found & set(s.depends_on)}
        if not more:
            return frozenset(found)
        found |= more
