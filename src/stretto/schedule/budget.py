"""Whether the run can afford one more subagent, and whether it spent too much (RECIPES §8).
In: RunState. Out: why not, and by how much.
"""

from stretto.schedule.state import RunState


def refusal(state: RunState) -> str | None:
    budget = state.plan.budget
    if budget.agents is not None and state.deployed >= budget.agents:
        return f"budget exhausted: {state.deployed} of {budget.agents} agents deployed"
    if budget.tokens is not None and state.usage.tokens >= budget.tokens:
        return f"budget exhausted: {state.usage.tokens:,} of {budget.tokens:,} tokens used"
    if budget.usd is not None and state.usage.usd >= budget.usd:
        return f"budget exhausted: ${state.usage.usd:.4f} of ${budget.usd:.4f} spent"
    return None


def excess(state: RunState) -> str | None:
    """By how much the budget was exceeded. Every call was reserved before it was made, so somebody
    has taken more than was reserved for it."""
    budget, used = state.plan.budget, state.usage
    over = []
    if budget.tokens is not None and used.tokens > budget.tokens:
        more = used.tokens - budget.tokens
        over.append(f"by {more:,} tokens ({used.tokens:,} of {budget.tokens:,})")
    if budget.usd is not None and used.usd > budget.usd:
        over.append(f"by ${used.usd - budget.usd:.4f} (${used.usd:.4f} of ${budget.usd:.4f})")
    if not over:
        return None
    why = "a model took more than was reserved for its call"
    return f"the budget was exceeded {' and '.join(over)}: {why}"
