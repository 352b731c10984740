"""Glob. In: a pattern. Out: the paths of the workspace that it covers, sorted."""

from itertools import islice
from threading import Event

from stretto.adapters.tools.arguments import Given, Parameter, Parameters, Text
from stretto.adapters.tools.checked import CheckedTool, Failed, checked
from stretto.adapters.tools.files import Files
from stretto.globs.glob import GlobFault, parse_glob
from stretto.workspaces.paths import PathRefused

MOST_PATHS = 1_000

_SAYS = (
    "List files of the workspace by a glob such as **/*.py or src/{a,b}/*.ts. Sorted; links and"
    " what git keeps for itself are not entered."
)
_TAKES = Parameters(
    Parameter("pattern", Text(1, 1024), "the glob", is_required=True),
    Parameter("path", Text(0, 4096), "the folder it starts from; the workspace by default"),
)


def glob(files: Files) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        path, pattern, stop = given.text("path"), given.text("pattern"), Event()
        return await files.aside(lambda: _listed(files, files.folder(path), pattern, stop), stop)

    return checked("Glob", _SAYS, _TAKES, work)


def _listed(files: Files, under: str, pattern: str, stop: Event) -> str:
    wanted = parse_glob(pattern)
    if isinstance(wanted, GlobFault):
        raise Failed(f"{wanted.message}; {wanted.hint}" if wanted.hint else wanted.message)
    inside = f"{under}/" if under else ""
    paths: list[str] = []
    note = ""
    try:
        matching = (
            found.path
            for found in files.walk(under, stop)
            if wanted.matches(found.path.removeprefix(inside))
        )
        paths += islice(matching, MOST_PATHS + 1)
    except PathRefused as refused:
        note = f"\n[not all was seen: {refused.message}; give a path to start from]"
    if len(paths) > MOST_PATHS:
        note = f"\n[only the first {MOST_PATHS:,}; there are more]"
    return ("\n".join(sorted(paths[:MOST_PATHS])) or "No file matches.") + note
