"""What a turn of the lead agent has and no subagent: tools that delegate, earlier turns, and a memory.

Assembly makes one LeadTurn for one run, and hands it to the runner of that run alone. So no other agent
can have these tools, whatever its allowlist says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stretto.ports.model import ChatMessage, ModelReply, UserMessage
from stretto.ports.runner import AttemptRequest
from stretto.ports.tool import Tool
from stretto.vocabulary.ids import AgentId

LEAD = AgentId("lead")


class Memory(Protocol):
    """What was said. Whoever repeats an interrupted turn is given the same replies again, so the same
    calls are made under the same keys, and none of them has its effect twice."""

    @property
    def earlier(self) -> Sequence[ChatMessage]:
        """The turns before this one."""
        ...

    async def recall(self, number: int) -> ModelReply | None:
        """The reply of that number in this turn, from 0; None: the model has yet to be asked."""
        ...

    async def keep(self, number: int, reply: ModelReply) -> None:
        """Returns when it is durable."""
        ...


@dataclass(frozen=True, slots=True)
class LeadTurn:
    run_id: str
    delegating: Callable[[AttemptRequest], Mapping[str, Tool]]
    memory: Memory

    def is_asked(self, request: AttemptRequest) -> bool:
        return request.run_id == self.run_id and request.agent == LEAD


def as_text(earlier: Sequence[ChatMessage]) -> str:
    """Earlier turns for an agent of another program, which takes one prompt; empty without any."""
    told = []
    for each in earlier:
        if isinstance(each, UserMessage):
            told.append(f"The user said:\n{each.text}")
        elif isinstance(each, ModelReply):
            told.append(f"You answered:\n{each.text}")
    return "\n\n".join(told)
