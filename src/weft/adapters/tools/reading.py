"""Read. In: a path, a first line, how many. Out: numbered lines; where it stopped, it says so."""

from typing import BinaryIO

from weft.adapters.tools.arguments import Given, Parameter, Parameters, Text, Whole
from weft.adapters.tools.checked import CheckedTool, Failed, checked
from weft.adapters.tools.decoding import not_text
from weft.adapters.tools.files import Files

DEFAULT_LINES = 2_000
MOST_CHARACTERS = 28_000
_MOST_LINE = 2_000
_MOST_SKIPPED = 200_000_000  # bytes before the first line that is shown

_SAYS = (
    "Read a text file of the workspace. Lines come numbered: the number, a tab, the line."
    " Long files are read in parts, with offset and limit."
)
_TAKES = Parameters(
    Parameter("file_path", Text(1, 4096), "the file, relative to the workspace", is_required=True),
    Parameter("offset", Whole(1, 10**9), "the first line to show, from 1"),
    Parameter("limit", Whole(1, 100_000), f"how many lines; {DEFAULT_LINES:,} by default"),
)


def read(files: Files) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        first = given.whole("offset", 1)
        most = given.whole("limit", DEFAULT_LINES)
        with files.reading(given.text("file_path")) as (where, file):
            what = not_text(file.read(8192))
            if what is not None:
                size = file.seek(0, 2)
                raise Failed(f"'{where}' is {what}, {size:,} bytes; only text can be read")
            file.seek(0)
            return _numbered(file, first, most)

    return checked("Read", _SAYS, _TAKES, work)


def _numbered(file: BinaryIO, first: int, most: int) -> str:
    _skip(file, first - 1)
    lines: list[str] = []
    room = MOST_CHARACTERS
    while len(lines) < most and room > 0:
        raw = file.readline(8 * _MOST_LINE)
        if not raw:
            break
        is_cut = _finish_line(file, raw)
        line = _shown_line(raw, is_cut, is_first=first + len(lines) == 1)
        room -= len(line) + 8
        lines.append(f"{first + len(lines):>6}\t{line}")
    if not lines:
        return "(the file is empty)" if first == 1 else f"(the file has fewer than {first} lines)"
    text = "\n".join(lines)
    if not file.read(1):
        return text
    return f"{text}\n[there is more: go on with offset {first + len(lines)}]"


def _skip(file: BinaryIO, lines: int) -> None:
    skipped = 0
    while lines and (raw := file.readline(1 << 20)):
        skipped += len(raw)
        lines -= raw.endswith(b"\n")
        if skipped > _MOST_SKIPPED:
            raise Failed(f"that line is more than {_MOST_SKIPPED:,} bytes into the file")


def _finish_line(file: BinaryIO, raw: bytes) -> bool:
    """Whether the line went on after what was read. All of it is read then."""
    is_cut = False
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(1 << 20)
        is_cut = is_cut or bool(raw)
    return is_cut


def _shown_line(raw: bytes, is_cut: bool, *, is_first: bool) -> str:
    line = raw.decode("utf-8", "replace").rstrip("\r\n")
    if is_first:
        line = line.removeprefix("\ufeff")
    if is_cut or len(line) > _MOST_LINE:
        return f"{line[:_MOST_LINE]} [the rest of this line is left out]"
    return line
