"""Read an agent's list of tools. In: `Read`, `Bash(git diff:*)`, `mcp__x__y`. Out: names, filters.

What delegates is not among them, whatever the list says: delegation is one level deep.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from stretto.vocabulary.tools import DELEGATING_ALIASES, DELEGATING_TOOLS, tool_name

_DELEGATING = frozenset(name.casefold() for name in DELEGATING_TOOLS | DELEGATING_ALIASES)


@dataclass(frozen=True, slots=True)
class ListedTool:
    name: str
    filters: tuple[str, ...] = ()  # what stands in brackets; none: all that the tool can do


def read_listed(written: Iterable[str]) -> tuple[ListedTool, ...]:
    """Each name once. Listed with and without a filter, it has none."""
    filters: dict[str, list[str] | None] = {}
    for each in written:
        name = tool_name(each)
        if not name or name.casefold() in _DELEGATING:
            continue
        inside = _filter_of(each)
        so_far = filters.get(name, [])
        filters[name] = None if inside is None or so_far is None else [*so_far, inside]
    return tuple(ListedTool(name, tuple(found or ())) for name, found in filters.items())


def _filter_of(written: str) -> str | None:
    _, bracket, rest = written.partition("(")
    # An unclosed bracket is still meant to forbid something.
    return rest.strip().removesuffix(")").strip() if bracket else None
