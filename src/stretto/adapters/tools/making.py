"""Make one tool for one attempt. In: its name with filters, and a Kit. Out: a Tool.

A filter that is not understood makes the tool unusable: it was written to forbid something.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from stretto.adapters.tools.bash import BashSettings, bash
from stretto.adapters.tools.command_filter import CommandFilter, read_filter
from stretto.adapters.tools.editing import edit, multi_edit
from stretto.adapters.tools.files import Files
from stretto.adapters.tools.finding import glob
from stretto.adapters.tools.grep import grep
from stretto.adapters.tools.listed_tools import ListedTool
from stretto.adapters.tools.notebook import notebook_edit
from stretto.adapters.tools.reading import read
from stretto.adapters.tools.search_hosts import hosts_search, search_fault
from stretto.adapters.tools.unusable import unusable
from stretto.adapters.tools.web_search import SearchEndpoint, web_search
from stretto.adapters.tools.writing import write
from stretto.globs.glob import Glob, parse_glob
from stretto.ports.tool import Reach, Tool

FILE_TOOLS: Mapping[str, Callable[[Files], Tool]] = {
    "Read": read,
    "Write": write,
    "Edit": edit,
    "MultiEdit": multi_edit,
    "NotebookEdit": notebook_edit,
    "Glob": glob,
    "Grep": grep,
}


@dataclass(frozen=True, slots=True)
class Kit:
    """What there is to make tools of."""

    reach: Reach | None  # None: the step has no workspace
    model: str | None
    bash: BashSettings
    search: SearchEndpoint | None
    allow_private: frozenset[str]
    environ: Mapping[str, str]
    held: ExitStack  # closed when the attempt ends


def make(listed: ListedTool, kit: Kit) -> Tool | None:
    """None: there is no such tool, or the model's provider has it. Raises PathRefused."""
    match listed.name:
        case "WebFetch":
            return _web_fetch(listed, kit)
        case "WebSearch":
            return _web_search(listed, kit)
        case "Bash" if kit.reach is not None:
            return _bash(listed, kit, kit.reach)
        case name if name in FILE_TOOLS and kit.reach is not None:
            return _file_tool(listed, kit, kit.reach)
        case name if name in FILE_TOOLS or name == "Bash":
            return unusable(name, "this step has no workspace")
        case _:
            return None


def _file_tool(listed: ListedTool, kit: Kit, reach: Reach) -> Tool:
    only = [parse_glob(text) for text in listed.filters]
    globs = tuple(glob for glob in only if isinstance(glob, Glob))
    if len(globs) < len(only):
        return _not_understood(listed, "a path such as src/**")
    files = kit.held.enter_context(Files(reach, globs))
    return FILE_TOOLS[listed.name](files)


def _bash(listed: ListedTool, kit: Kit, reach: Reach) -> Tool:
    filters = [read_filter(text) for text in listed.filters]
    understood = [each for each in filters if isinstance(each, CommandFilter)]
    if len(understood) < len(filters):
        return _not_understood(listed, "a command such as git diff:*")
    return bash(reach, kit.bash, understood)


def _web_fetch(listed: ListedTool, kit: Kit) -> Tool:
    # What speaks HTTP is slow to import, and most agents do not fetch.
    from stretto.adapters.tools.dialing import Dialer
    from stretto.adapters.tools.web_fetch import web_fetch

    domains = [text.removeprefix("domain:").strip().lower().strip(".") for text in listed.filters]
    if not all(text.startswith("domain:") for text in listed.filters) or "" in domains:
        return _not_understood(listed, "domain:example.com")
    return web_fetch(Dialer(allow_private=kit.allow_private), tuple(domains))


def _web_search(listed: ListedTool, kit: Kit) -> Tool | None:
    if listed.filters:
        return _not_understood(listed, "nothing: WebSearch has no filters")
    if hosts_search(kit.model, kit.environ):
        return None
    fault = search_fault(kit.model, kit.search, kit.environ)
    if fault is not None or kit.search is None:
        return unusable("WebSearch", fault or "no search is set up")
    return web_search(kit.search, kit.environ)


def _not_understood(listed: ListedTool, wanted: str) -> Tool:
    written = ", ".join(f"{listed.name}({text})" for text in listed.filters)
    return unusable(listed.name, f"its filter is not understood: {written}; write {wanted}")
