"""A step of a run, by its id. Raises NotFound with the nearest name."""

from stretto.execution.history import History
from stretto.problems.errors import NotFound
from stretto.schedule.state import StepState
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.names import did_you_mean, listed


def known_step(history: History, step: str) -> StepState:
    steps = history.state.steps
    found = steps.get(StepId(step))
    if found is None:
        hint = did_you_mean(step, steps) or f"its steps: {listed(steps)}"
        raise NotFound(f"run {history.started.run_id} has no step '{step}'", hint=hint)
    return found
