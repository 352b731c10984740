"""Whether the run can afford one more subagent (RECIPES §8). In: RunState. Out: why not."""

from weft.schedule.state import RunState


def refusal(state: RunState) -> str | None:
    budget = state.plan.budget
    if budget.agents is not None and state.deployed >= budget.agents:
        return f"budget exhausted: {state.deployed} of {budget.agents} agents deployed"
    if budget.tokens is not None and state.usage.tokens >= budget.tokens:
        return f"budget exhausted: {state.usage.tokens:,} of {budget.tokens:,} tokens used"
    if budget.usd is not None and state.usage.usd >= budget.usd:
        return f"budget exhausted: ${state.usage.usd:.4f} of ${budget.usd:.4f} spent"
    return None
