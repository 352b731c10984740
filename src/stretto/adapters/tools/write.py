"""Write, Edit and MultiEdit: replace a file, or texts in it. All of a call is done, or nothing."""

import re
from collections.abc import Sequence
from threading import Event

from pydantic import Field, StrictBool

from stretto.adapters.tools.arguments import Arguments, LongText, PathText
from stretto.adapters.tools.files import Files, decode, encode, not_text
from stretto.adapters.tools.outcomes import CallFailed
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.text.short import counted

MOST_BYTES = 10_000_000
_MOST_SHOWN = 1_500
_MOST_LINES_SHOWN = 20
# How much of a file is searched for lines that are similar.
_MOST_COMPARED = 1_000_000
_MOST_LINES_COMPARED = 20_000
_LINE_END = re.compile(r"\r?\n")
_WORD = re.compile(r"\w+|[^\w\s]")

_WRITE = (
    "Write a file of the workspace, whole: what was in it is replaced, folders are made as needed."
)
_EDIT = "Replace a text in a file of the workspace. It must occur exactly once, as it is."
_MULTI_EDIT = (
    "Replace several texts in one file of the workspace, one after the other: all or none."
)


class FileArguments(Arguments):
    file_path: PathText = Field(description="the file, relative to the workspace")


class WriteArguments(FileArguments):
    content: LongText = Field(description="all that is to be in it")


class Replacement(Arguments):
    old_string: LongText = Field(min_length=1, description="the text to replace, exactly as it is")
    new_string: LongText = Field(description="what is to stand there instead")
    replace_all: StrictBool = Field(
        False, description="replace it everywhere; otherwise it must occur once"
    )


class EditArguments(Replacement, FileArguments):
    pass


class MultiEditArguments(FileArguments):
    edits: list[Replacement] = Field(
        min_length=1, max_length=100, description="made one after the other, or not at all"
    )


def write(files: Files) -> StandardTool[WriteArguments]:
    async def work(given: WriteArguments) -> str:
        content = given.content.encode()
        where, is_new = await files.in_thread(
            lambda: files.write(given.file_path, content), Event()
        )
        return f"{'Made' if is_new else 'Replaced'} {where}: {len(content):,} bytes."

    # Writing the same content again gives the same file.
    return standard_tool(
        "Write", _WRITE, WriteArguments, work, changes_files=True, recovery="idempotent"
    )


def edit(files: Files) -> StandardTool[EditArguments]:
    async def work(given: EditArguments) -> str:
        return await _edit_file(files, given.file_path, [given])

    return standard_tool(
        "Edit", _EDIT, EditArguments, work, changes_files=True, recovery="in_doubt"
    )


def multi_edit(files: Files) -> StandardTool[MultiEditArguments]:
    async def work(given: MultiEditArguments) -> str:
        return await _edit_file(files, given.file_path, given.edits)

    return standard_tool(
        "MultiEdit", _MULTI_EDIT, MultiEditArguments, work, changes_files=True, recovery="in_doubt"
    )


async def _edit_file(files: Files, path: str, edits: Sequence[Replacement]) -> str:
    stop = Event()
    return await files.in_thread(lambda: _apply_edits(files, path, edits, stop), stop)


def _apply_edits(files: Files, path: str, edits: Sequence[Replacement], stop: Event) -> str:
    # Checked before the file is read, which may be large.
    files.writable_path(path)
    content = files.read(path, MOST_BYTES)
    if kind := not_text(content):
        raise CallFailed(f"the file is {kind}; only text can be edited")
    text, places = decode(content), 0
    for number, each in enumerate(edits, 1):
        if stop.is_set():
            raise CallFailed("nothing was changed: the attempt has ended")
        try:
            text, count = replace_text(text, each, MOST_BYTES)
        except CallFailed as failed:
            which = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
            raise CallFailed(f"nothing was changed: {which}{failed}") from None
        places += count
    where, _ = files.write(path, encode(text))
    return f"Changed {where} in {counted(places, 'place')}."


def replace_text(text: str, change: Replacement, most: int) -> tuple[str, int]:
    """The changed text, and in how many places it changed. Raises CallFailed with what would help;
    a text of more than `most` characters is not even made."""
    if change.old_string == change.new_string:
        raise CallFailed("old_string and new_string are the same")
    old, new = _with_line_ends_of(text, change.old_string, change.new_string)
    count = text.count(old)
    if count == 0:
        near = _nearest_lines(text, change.old_string)
        raise CallFailed(f"old_string does not occur in the file.{near}")
    if count > 1 and not change.replace_all:
        raise CallFailed(
            f"old_string occurs {count} times, at lines {_line_numbers(text, old)}; add what stands"
            " around the one you mean, or set replace_all"
        )
    if len(text) + count * (len(new) - len(old)) > most:
        raise CallFailed(f"the file would have more than {most:,} characters")
    return text.replace(old, new), count


def _with_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """Models write \\n also where the lines of the file end in \\r\\n."""
    ends = text.count("\n")
    if ends and text.count("\r\n") == ends:
        return _LINE_END.sub("\r\n", old), _LINE_END.sub("\r\n", new)
    if "\r\n" in text and old not in text and "\r" not in old:
        # The file has both kinds: the replaced place keeps its own.
        return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    return old, new


def _line_numbers(text: str, old: str) -> str:
    lines, at, line = list[str](), 0, 1
    while len(lines) < 10 and (found := text.find(old, at)) >= 0:
        line += text.count("\n", at, found)
        lines.append(str(line))
        line += old.count("\n")
        at = found + len(old)
    return ", ".join(lines) + (", …" if text.find(old, at) >= 0 else "")


def _nearest_lines(text: str, old: str) -> str:
    """The lines of the file that share the most words with the first line of `old`."""
    # Not splitlines: it counts form feeds and the like as ends of lines, and editors do not.
    wanted_lines = [line for line in old.split("\n") if line.strip()]
    lines = text[:_MOST_COMPARED].split("\n")[:_MOST_LINES_COMPARED]
    if not wanted_lines or not lines:
        return ""
    wanted = frozenset(_WORD.findall(wanted_lines[0][:500]))
    scores = [_similarity(wanted, line) for line in lines]
    best = max(scores)
    if best < 0.3:
        return " Nothing in it is near; read the file again."
    at = scores.index(best)
    height = min(old.count("\n") + 1, _MOST_LINES_SHOWN)
    near = "\n".join(lines[at : at + height])[:_MOST_SHOWN]
    return f" The nearest is at line {at + 1}, letter by letter:\n{near}"


def _similarity(wanted: frozenset[str], line: str) -> float:
    words = frozenset(_WORD.findall(line[:500]))
    return len(wanted & words) / max(1, len(wanted | words))
