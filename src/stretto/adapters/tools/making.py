"""Make one tool for one attempt, of what the agent lists and what the step may touch."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from stretto.adapters.tools.bash import BashSettings, bash
from stretto.adapters.tools.editing import edit, multi_edit
from stretto.adapters.tools.files import Files
from stretto.adapters.tools.finding import glob
from stretto.adapters.tools.grep import grep
from stretto.adapters.tools.notebook import notebook_edit
from stretto.adapters.tools.reading import read
from stretto.adapters.tools.search_hosts import hosts_search, search_fault
from stretto.adapters.tools.unusable import unusable
from stretto.adapters.tools.web_search import SearchEndpoint, web_search
from stretto.adapters.tools.writing import write
from stretto.globs.glob import Glob
from stretto.ports.tool import Reach, Tool
from stretto.toolnames.filters import CommandFilter, DomainFilter, ListedTool

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
    if listed.fault is not None:
        return unusable(listed.name, f"{listed.fault.message}; {listed.fault.hint}")
    match listed.name:
        case "WebFetch":
            return _web_fetch(listed, kit)
        case "WebSearch":
            return _web_search(kit)
        case "Bash" if kit.reach is not None:
            commands = [each for each in listed.filters if isinstance(each, CommandFilter)]
            return bash(kit.reach, kit.bash, commands)
        case name if name in FILE_TOOLS and kit.reach is not None:
            globs = [each for each in listed.filters if isinstance(each, Glob)]
            return FILE_TOOLS[name](kit.held.enter_context(Files(kit.reach, globs)))
        case name if name in FILE_TOOLS or name == "Bash":
            return unusable(name, "this step has no workspace")
        case _:
            return None


def _web_fetch(listed: ListedTool, kit: Kit) -> Tool:
    # What speaks HTTP is slow to import, and most agents do not fetch.
    from stretto.adapters.tools.dialing import Dialer
    from stretto.adapters.tools.web_fetch import web_fetch

    domains = tuple(each for each in listed.filters if isinstance(each, DomainFilter))
    return web_fetch(Dialer(allow_private=kit.allow_private), domains)


def _web_search(kit: Kit) -> Tool | None:
    if hosts_search(kit.model, kit.environ):
        return None
    fault = search_fault(kit.model, kit.search, kit.environ)
    if fault is not None or kit.search is None:
        return unusable("WebSearch", fault or "no search is set up")
    return web_search(kit.search, kit.environ)
