"""Write. In: a path and its new content. Out: what was done."""

from threading import Event

from stretto.adapters.tools.arguments import Given, Parameter, Parameters, Text
from stretto.adapters.tools.checked import CheckedTool, Failed, checked
from stretto.adapters.tools.decoding import has_surrogates
from stretto.adapters.tools.files import Files

_SAYS = (
    "Write a file of the workspace, whole: what was in it is replaced, folders are made as needed."
)
_TAKES = Parameters(
    Parameter("file_path", Text(1, 4096), "the file, relative to the workspace", is_required=True),
    Parameter("content", Text(), "all that is to be in it", is_required=True),
)


def write(files: Files) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        content = given.text("content")
        if has_surrogates(content):
            raise Failed("the content holds a lone surrogate, which cannot be written as UTF-8")
        written = content.encode()
        path = given.text("file_path")
        where, is_new = await files.aside(lambda: files.write(path, written), Event())
        return f"{'Made' if is_new else 'Replaced'} {where}: {len(written):,} bytes."

    # The same content again is the same file.
    return checked("Write", _SAYS, _TAKES, work, changes_files=True, recovery="idempotent")
