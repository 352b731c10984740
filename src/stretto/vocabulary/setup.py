"""Who answers in a run, and with what: what a plan leaves to the machine that it runs on.

A plan says `model: fast` or nothing at all; only the machine knows that this is a certain model
behind a certain URL. Two attempts are the same work only if this is the same too.
"""

from collections.abc import Mapping

from msgspec import Struct, field


class Setup(Struct, frozen=True):
    # A model as a plan writes it ("" where it names none) → who really answers, and where.
    models: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)  # a tool's name → how it is configured
    judge: str = ""  # who decides the rules that code cannot decide
