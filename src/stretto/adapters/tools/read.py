"""Read: lines of a text file, numbered. Where it stops before the end it says so."""

from threading import Event
from typing import BinaryIO

from pydantic import Field

from stretto.adapters.tools.arguments import Arguments, PathText, WholeNumber
from stretto.adapters.tools.files import Files, not_text
from stretto.adapters.tools.outcomes import CallFailed
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool

DEFAULT_LINES = 2_000
MOST_CHARACTERS = 28_000
_MOST_LINE = 2_000
_MOST_SKIPPED = 200_000_000  # bytes that are read and not shown

_READ = (
    "Read a text file of the workspace. Lines come numbered: the number, a tab, the line."
    " Long files are read in parts, with offset and limit."
)


class ReadArguments(Arguments):
    file_path: PathText = Field(description="the file, relative to the workspace")
    offset: WholeNumber = Field(1, ge=1, le=10**9, description="the first line to show, from 1")
    limit: WholeNumber = Field(
        DEFAULT_LINES, ge=1, le=100_000, description=f"how many lines; {DEFAULT_LINES:,} by default"
    )


def read(files: Files) -> StandardTool[ReadArguments]:
    async def work(given: ReadArguments) -> str:
        stop = Event()
        return await files.in_thread(lambda: _read(files, given, stop), stop)

    return standard_tool("Read", _READ, ReadArguments, work)


def _read(files: Files, given: ReadArguments, stop: Event) -> str:
    first = given.offset
    with files.open_to_read(given.file_path) as (where, file):
        kind = not_text(file.read(8192))
        if kind is not None:
            size = file.seek(0, 2)
            raise CallFailed(f"'{where}' is {kind}, {size:,} bytes; only text can be read")
        file.seek(0)
        lines = _Lines(file, stop)
        if not lines.skip(first - 1):
            raise CallFailed(f"line {first} is more than {_MOST_SKIPPED:,} bytes into the file")
        return _number_lines(lines, first, given.limit)


def _number_lines(lines: "_Lines", first: int, most: int) -> str:
    shown: list[str] = []
    room = MOST_CHARACTERS
    while len(shown) < most and room > 0 and (raw := lines.next()):
        is_cut = lines.is_within
        line = _show_line(raw, is_cut, is_first=first + len(shown) == 1)
        room -= len(line) + 8
        shown.append(f"{first + len(shown):>6}\t{line}")
        if is_cut and not lines.skip(1):
            return "\n".join([*shown, f"[this line goes on for more than {_MOST_SKIPPED:,} bytes]"])
    if not shown:
        return "(the file is empty)" if first == 1 else f"(the file has fewer than {first} lines)"
    text = "\n".join(shown)
    return (
        text
        if lines.have_ended
        else f"{text}\n[there is more: go on with offset {first + len(shown)}]"
    )


class _Lines:
    """The lines of a file of any shape. A long line is never held whole, and the bytes that are
    read without being shown are bounded."""

    def __init__(self, file: BinaryIO, stop: Event) -> None:
        self._file = file
        self._stop = stop
        self._skipped = 0
        self.is_within = False  # whether the line that was read last goes on

    def next(self) -> bytes:
        """The beginning of the next line; empty at the end of the file."""
        raw = self._file.readline(8 * _MOST_LINE)
        self.is_within = bool(raw) and not raw.endswith(b"\n") and not self.have_ended
        return raw

    def skip(self, lines: int) -> bool:
        """Read past the ends of so many lines. False if that would read too many bytes."""
        while lines and not self._stop.is_set() and (raw := self._file.readline(1 << 16)):
            lines -= raw.endswith(b"\n")
            self._skipped += len(raw)
            if self._skipped > _MOST_SKIPPED:
                return False
        self.is_within = False
        return True

    @property
    def have_ended(self) -> bool:
        at = self._file.tell()
        is_end = not self._file.read(1)
        self._file.seek(at)
        return is_end


def _show_line(raw: bytes, is_cut: bool, *, is_first: bool) -> str:
    line = raw.decode("utf-8", "replace").rstrip("\r\n")
    if is_first:
        line = line.removeprefix("\ufeff")
    if is_cut or len(line) > _MOST_LINE:
        return f"{line[:_MOST_LINE]} [the rest of this line is left out]"
    return line
