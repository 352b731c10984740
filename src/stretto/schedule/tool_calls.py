"""Count the tool calls of one step, and warn about those that did not work."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct, field

from stretto.events.model import ToolEnded
from stretto.vocabulary.names import CHANGING_TOOLS, KNOWN_TOOLS, LOAD_PLAYBOOK

CallFault: TypeAlias = tuple[str, str, str]  # tool, verdict, message
# A map may call tools ten thousand times: beyond this many kinds, faults are only counted.
MOST_FAULTS = 20
# A command may be a search as well as a change, so a failed one says nothing about files.
_NOT_FOR_WRITING = (KNOWN_TOOLS - CHANGING_TOOLS) | {"Bash", LOAD_PLAYBOOK}
_VERBS = {"refused": "was refused", "error": "failed"}


class ToolCallCounts(Struct, eq=False):
    made: int = 0
    refused: int = 0
    failed: int = 0
    writes_not_done: int = 0  # of those that were refused or failed
    faults: dict[CallFault, int] = field(default_factory=dict)  # how often each

    def count(self, event: ToolEnded) -> None:
        self.made += 1
        if event.verdict == "ok":
            return
        if event.verdict == "refused":
            self.refused += 1
        else:
            self.failed += 1
        self.writes_not_done += event.tool not in _NOT_FOR_WRITING
        fault = (event.tool, event.verdict, event.message)
        if fault in self.faults or len(self.faults) < MOST_FAULTS:
            self.faults[fault] = self.faults.get(fault, 0) + 1

    @property
    def not_done(self) -> int:
        return self.refused + self.failed

    @property
    def all_in_vain(self) -> bool:
        return 0 < self.made == self.not_done

    @property
    def warnings(self) -> Iterator[str]:
        for (tool, verdict, message), count in self.faults.items():
            often = "" if count == 1 else f" {count:,} times"
            yield f"{tool} {_VERBS.get(verdict, verdict)}{often}: {_reason(message)}"
        unnamed = self.not_done - sum(self.faults.values())
        if unnamed:
            yield f"{unnamed:,} more tool calls were refused or failed"


def fault_of(event: ToolEnded) -> str:
    """What one call's end has to say; empty when it worked."""
    if event.verdict == "ok":
        return ""
    return f"{event.tool} {_VERBS.get(event.verdict, event.verdict)}: {_reason(event.message)}"


def _reason(message: str) -> str:
    # The message to the model begins with the verdict, which the warning has already.
    said = message.removeprefix("Refused: ").removeprefix("Error: ").strip()
    return said or "no reason was given"
