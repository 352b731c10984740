"""How a goal stands, for people and programs. In: a GoalStanding, and who drives it. Out: a GoalReport."""

from dataclasses import dataclass
from typing import Any

from stretto.goals.goal import GoalIteration, GoalLimits, GoalStanding, GoalState, LimitWord
from stretto.vocabulary.usage import Usage

GOAL_WORDS = {
    "active": "a process works on it",
    "waiting": "its run waits for a person; `stretto goal resume` goes on afterwards",
    "overdue": "its run waited for a person and a deadline has passed; `stretto goal resume` goes on",
    "interrupted": "it has not ended and no process drives it; `stretto goal resume` goes on",
    "achieved": "the verifier passed",
    "exhausted": "its iterations, tokens, dollars or time are spent",
    "stalled": "iterations in a row changed nothing in what the verifier says",
    "unachievable": "the agent gave up with a reason, and the verifier did not pass",
    "cleared": "a person ended it",
}


@dataclass(frozen=True, slots=True)
class GoalReport:
    """How a goal stands: `status` is one of nine words, `state` one of six."""

    id: str
    text: str
    verify: str
    workflow: str | None
    status: str
    state: GoalState
    why: str
    limit: LimitWord | None  # which one is exhausted
    history: tuple[GoalIteration, ...]
    before: str | None  # the evidence of the check before the first iteration
    usage: Usage
    worked_seconds: float
    limits: GoalLimits
    folder: str
    made_at: float
    ended_at: float | None
    run_id: str | None  # the run in flight

    @property
    def iterations(self) -> int:
        return len(self.history)

    @property
    def is_ok(self) -> bool:
        return self.state == GoalState.ACHIEVED

    @property
    def evidence(self) -> str:
        """Of the last check."""
        checked = [each.evidence for each in self.history if each.evidence is not None]
        return checked[-1] if checked else self.before or ""

    def json(self) -> dict[str, Any]:
        """As `stretto goal show --json` prints it below `goal`."""
        return {
            "id": self.id,
            "text": self.text,
            "verify": self.verify,
            "workflow": self.workflow,
            "status": self.status,
            "state": self.state.value,
            "why": self.why or None,
            "limit": self.limit,
            "iterations": self.iterations,
            "history": [_entry(each) for each in self.history],
            "before": self.before,
            "usage": _usage(self.usage),
            "worked_seconds": round(self.worked_seconds, 3),
            "limits": {
                "iterations": self.limits.iterations,
                "tokens": self.limits.tokens,
                "usd": self.limits.usd,
                "seconds": self.limits.seconds,
                "stall_after": self.limits.stall_after,
            },
            "folder": self.folder,
            "made_at": self.made_at,
            "ended_at": self.ended_at,
            "run_id": self.run_id,
        }


def _entry(each: GoalIteration) -> dict[str, Any]:
    return {
        "iteration": each.number,
        "run_id": each.run_id,
        "run_status": each.status or None,
        "met": each.is_met,
        "evidence": each.evidence,
        "error": each.error or None,
        "usage": _usage(each.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
        "model_calls": usage.model_calls,
    }


def goal_report(goal: GoalStanding, is_driven: bool) -> GoalReport:
    spec = goal.spec
    return GoalReport(
        goal.id,
        spec.text,
        spec.verify,
        spec.workflow or None,
        goal_word(goal, is_driven),
        goal.state,
        goal.why,
        goal.limit,
        goal.iterations,
        goal.before.evidence if goal.before else None,
        goal.usage,
        goal.worked_seconds,
        goal.limits,
        spec.folder,
        goal.made_at,
        goal.ended_at,
        (goal.in_flight.run_id or None) if goal.in_flight else None,
    )


def goal_word(goal: GoalStanding, is_driven: bool) -> str:
    if goal.state != GoalState.ACTIVE or is_driven:
        return goal.state.value
    return goal.waits or "interrupted"
