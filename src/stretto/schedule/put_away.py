"""Let go of a large output once it lies in the store. In: its event. Out: the state without it.

Nobody sees a difference: a Large is read when it is used, and gives an equal value.
"""

from stretto.events.model import AttemptSucceeded
from stretto.schedule.map_ import element_of
from stretto.schedule.state import RunState
from stretto.vocabulary.large import Large


def put_away(state: RunState, event: AttemptSucceeded, large: Large) -> None:
    step = state.steps.get(event.step)
    part = step.parts.get(event.part) if step else None
    if step is None or part is None:
        return
    if part.kept_output is event.output:
        part.kept_output = large
    if step.kept_output is event.output:
        step.kept_output = large
    if step.kept_outputs is not None and step.kept_outputs.get(part.name) is event.output:
        step.kept_outputs[part.name] = large
    index = element_of(part)
    if step.items is not None and index is not None and step.items.results[index] is event.output:
        step.items.results[index] = large
