"""A step of a run, by its id. Raises NotFound with the nearest name."""

from weft.problems.errors import NotFound
from weft.run.history import History
from weft.schedule.state import StepState
from weft.vocabulary.ids import StepId
from weft.vocabulary.names import did_you_mean, listed


def known_step(history: History, step: str) -> StepState:
    steps = history.state.steps
    found = steps.get(StepId(step))
    if found is None:
        hint = did_you_mean(step, steps) or f"its steps: {listed(steps)}"
        raise NotFound(f"run {history.started.run_id} has no step '{step}'", hint=hint)
    return found
