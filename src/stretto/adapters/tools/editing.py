"""Edit and MultiEdit. In: a path, and texts to replace. Out: what was done: all of it, or nothing."""

from collections.abc import Sequence
from threading import Event

from stretto.adapters.tools.arguments import Flag, Given, Parameter, Parameters, Rows, Text
from stretto.adapters.tools.checked import CheckedTool, Failed, checked
from stretto.adapters.tools.decoding import decoded, encoded, has_surrogates, not_text
from stretto.adapters.tools.files import Files
from stretto.adapters.tools.replacing import Replacement, replaced

MOST_BYTES = 10_000_000

_PATH = Parameter(
    "file_path", Text(1, 4096), "the file, relative to the workspace", is_required=True
)
_CHANGE = (
    Parameter("old_string", Text(1), "the text to replace, exactly as it is", is_required=True),
    Parameter("new_string", Text(), "what is to stand there instead", is_required=True),
    Parameter("replace_all", Flag(), "replace it everywhere; otherwise it must occur once"),
)
_EDIT_TAKES = Parameters(_PATH, *_CHANGE)
_EDITS_TAKE = Parameters(
    _PATH,
    Parameter(
        "edits", Rows(Parameters(*_CHANGE)), "made one after the other, or not at all",
        is_required=True,
    ),
)  # fmt: skip


def edit(files: Files) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        return await _aside(files, given, [given])

    says = "Replace a text in a file of the workspace. It must occur exactly once, as it is."
    return checked("Edit", says, _EDIT_TAKES, work, changes_files=True, recovery="in_doubt")


def multi_edit(files: Files) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        return await _aside(files, given, given.rows("edits"))

    says = "Replace several texts in one file of the workspace, one after the other: all or none."
    return checked("MultiEdit", says, _EDITS_TAKE, work, changes_files=True, recovery="in_doubt")


async def _aside(files: Files, given: Given, edits: Sequence[Given]) -> str:
    stop = Event()
    return await files.aside(lambda: _change(files, given.text("file_path"), edits, stop), stop)


def _change(files: Files, path: str, edits: Sequence[Given], stop: Event) -> str:
    # What may not be written need not be read.
    files.writable_path(path)
    content = files.read(path, MOST_BYTES)
    if what := not_text(content):
        raise Failed(f"the file is {what}; only text can be edited")
    text, made = decoded(content), 0
    for number, each in enumerate(edits, 1):
        if stop.is_set():
            raise Failed("nothing was changed: the attempt has ended")
        try:
            text, count = replaced(text, _replacement(each), MOST_BYTES)
        except Failed as failed:
            which = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
            raise Failed(f"nothing was changed: {which}{failed}") from None
        made += count
    where, _ = files.write(path, encoded(text))
    return f"Changed {where} in {made} place{'' if made == 1 else 's'}."


def _replacement(given: Given) -> Replacement:
    new = given.text("new_string")
    if has_surrogates(new):
        raise Failed("new_string holds a lone surrogate, which cannot be written as UTF-8")
    return Replacement(given.text("old_string"), new, given.flag("replace_all"))
