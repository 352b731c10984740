"""Glob and Grep: find files by their paths, or by what is in them.

Both run in a thread. RE2 lets other threads run meanwhile and takes time linear in the text, so a
thread that looks at its deadline between two searches is enough; nothing must be killed.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import Annotated, Literal

from pydantic import Field, StrictBool

from stretto.adapters.tools.arguments import Arguments, WholeNumber
from stretto.adapters.tools.files import Files, not_text
from stretto.adapters.tools.outcomes import CallFailed, CallRefused
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.globs.glob import Glob, GlobFault, parse_glob
from stretto.text.patterns import PatternError, TextPattern, compile_pattern
from stretto.workspaces.paths import FoundPath, PathRefused

MOST_PATHS = 1_000
TIMEOUT_SECONDS = 20.0
MOST_FILE_BYTES = 5_000_000
# Instructions of the pattern times bytes of the text, in one search that nothing interrupts: in
# the worst case measured (20 ns each) about two seconds.
_MOST_WORK = 100_000_000
_MOST_LINE = 500
_MOST_NOTES = 20

_GLOB = (
    "List files of the workspace by a glob such as **/*.py or src/{a,b}/*.ts. Sorted; links and"
    " what git keeps for itself are not entered."
)
_GREP = (
    "Search the contents of the workspace's files for a regular expression (RE2 syntax: no"
    " look-around, no back-references), line by line. Binary files and links are left out."
)


class GlobArguments(Arguments):
    pattern: str = Field(min_length=1, max_length=1024, description="the glob")
    path: str = Field(
        "", max_length=4096, description="the folder it starts from; the workspace by default"
    )


class GrepArguments(Arguments):
    pattern: str = Field(min_length=1, max_length=2_000, description="the regular expression")
    path: str = Field(
        "", max_length=4096, description="a file or a folder; the workspace by default"
    )
    glob: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(
        None, description="only files that this covers, e.g. *.py or src/**/*.ts"
    )
    output_mode: Literal["files_with_matches", "content", "count"] = Field(
        "files_with_matches",
        description="paths by default; 'content' shows the lines, 'count' how many there are",
    )
    context: WholeNumber = Field(
        0, ge=0, le=20, description="with 'content': lines before and after"
    )
    ignore_case: StrictBool = Field(False, description="do not tell upper from lower case")
    multiline: StrictBool = Field(
        False, description="let the pattern go over line ends; a dot matches them too"
    )
    head_limit: WholeNumber = Field(
        250, ge=1, le=2_000, description="the most lines of output; 250 by default"
    )


def glob(files: Files) -> StandardTool[GlobArguments]:
    async def work(given: GlobArguments) -> str:
        stop = Event()
        return await files.in_thread(
            lambda: _list_paths(files, files.folder(given.path), given.pattern, stop), stop
        )

    return standard_tool("Glob", _GLOB, GlobArguments, work)


def _list_paths(files: Files, under: str, pattern: str, stop: Event) -> str:
    wanted = parse_glob(pattern, names_no_file=True)
    if isinstance(wanted, GlobFault):
        raise CallFailed(f"{wanted.message}; {wanted.hint}" if wanted.hint else wanted.message)
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


def grep(files: Files, timeout_seconds: float = TIMEOUT_SECONDS) -> StandardTool[GrepArguments]:
    async def work(given: GrepArguments) -> str:
        stop = Event()
        return await files.in_thread(lambda: _search(files, given, stop, timeout_seconds), stop)

    return standard_tool("Grep", _GREP, GrepArguments, work)


def _search(files: Files, given: GrepArguments, stop: Event, timeout_seconds: float) -> str:
    over_lines = given.multiline
    try:
        pattern = compile_pattern(
            given.pattern,
            ignore_case=given.ignore_case,
            by_line=not over_lines,
            dot_all=over_lines,
        )
    except PatternError as error:
        raise CallFailed(f"this is not a regular expression that RE2 knows: {error}") from None
    under = files.folder(given.path)
    walked = files.walk(under, stop, _filter(given.glob))
    matcher = _Matcher(pattern, over_lines, _Deadline(stop, timeout_seconds))
    search = _Search(
        files,
        matcher,
        mode=given.output_mode,
        context=given.context,
        limit=given.head_limit,
    )
    return search.run(walked)


def _filter(written: str | None) -> tuple[Glob, ...]:
    if written is None:
        return ()
    # As everyone is used to: a pattern without a folder is for the name alone.
    found = parse_glob(written if "/" in written else f"**/{written}", names_no_file=True)
    if isinstance(found, GlobFault):
        raise CallFailed(f"glob: {found.message}; {found.hint}" if found.hint else found.message)
    return (found,)


class _TimeIsUp(Exception):
    pass


class _Deadline:
    def __init__(self, stop: Event, seconds: float) -> None:
        self._stop = stop
        self._at = time.monotonic() + seconds
        self.seconds = seconds

    def check(self) -> None:
        if self._stop.is_set() or time.monotonic() > self._at:
            raise _TimeIsUp


@dataclass(slots=True)
class _Matcher:
    pattern: TextPattern
    is_over_lines: bool
    deadline: _Deadline
    has_cut_lines: bool = False  # some line was longer than one search may be given

    @property
    def most_bytes(self) -> int:
        """How much text one search may be given."""
        return _MOST_WORK // self.pattern.size

    def lines(self, text: bytes) -> Iterator[int]:
        """The numbers of the lines that match, from 0, ascending, each once."""
        at, line, counted_to = 0, 0, -1
        for start, end in self._matches(text):
            line += text.count(b"\n", at, start)
            at = start
            last = line + text.count(b"\n", start, end)
            yield from range(max(line, counted_to + 1), last + 1)
            counted_to = max(counted_to, last)

    def _matches(self, text: bytes) -> Iterator[tuple[int, int]]:
        at = 0
        while at <= len(text):
            self.deadline.check()
            until = self._end_of_window(text, at)
            found = self.pattern.search(text, at, until)
            if found is None:
                after = text.find(b"\n", until)
                if after < 0 or self.is_over_lines:
                    return
                at = after + 1
                continue
            yield found
            start, end = found
            if self.is_over_lines:
                at = max(end, start + 1)
            else:
                after = text.find(b"\n", end)
                at = after + 1 if after >= 0 else len(text) + 1

    def _end_of_window(self, text: bytes, at: int) -> int:
        most = self.most_bytes
        if self.is_over_lines:
            return min(len(text), most)
        if len(text) - at <= most:
            return len(text)
        # At the end of a line, if there is one.
        last = text.rfind(b"\n", at, at + most)
        self.has_cut_lines |= last < at
        return last if last >= at else at + most


class _Search:
    def __init__(
        self, files: Files, matcher: _Matcher, *, mode: str, context: int, limit: int
    ) -> None:
        self._files = files
        self._matcher = matcher
        self._mode = mode
        self._context = context
        self._limit = limit
        self._lines: list[str] = []
        self._notes: list[str] = []

    def run(self, walked: Iterator[FoundPath]) -> str:
        try:
            for found in walked:
                self._matcher.deadline.check()
                self._lines += self._found_in(found)
                if len(self._lines) > self._limit:
                    del self._lines[self._limit :]
                    self._notes.append("there is more: raise head_limit, or narrow the search")
                    break
            self._lines = self._lines or ["Nothing matches."]
        except PathRefused as refused:
            self._notes.append(f"not all was searched: {refused.message}")
        except _TimeIsUp:
            seconds = self._matcher.deadline.seconds
            note = f"stopped after {seconds:g} s: narrow the search, or use a simpler pattern"
            self._notes.append(note)
        if self._matcher.has_cut_lines:
            most = self._matcher.most_bytes
            self._notes.append(f"of longer lines only the first {most:,} bytes were searched")
        return "\n".join([*self._lines, *(f"[{note}]" for note in self._notes[-_MOST_NOTES:])])

    def _found_in(self, found: FoundPath) -> list[str]:
        text = self._read(found)
        if not text:
            return []
        # Without its last line end, after which there is no further line.
        text = text.removesuffix(b"\n")
        hits = self._matcher.lines(text)
        match self._mode:
            case "files_with_matches":
                return [found.path] if next(hits, None) is not None else []
            case "count":
                count = sum(1 for _ in hits)
                return [f"{found.path}:{count}"] if count else []
            case _:
                some = list(islice(hits, self._limit + 1))
                return self._with_context(found.path, text, some) if some else []

    def _read(self, found: FoundPath) -> bytes:
        if found.kind != "file":
            return b""
        try:
            content = self._files.read_found(found, MOST_FILE_BYTES + 1)
        except (CallFailed, CallRefused, OSError):
            return b""  # removed since it was listed, or not readable for this step
        if not_text(content[:8192]):
            return b""
        # RE2 reads UTF-8; other bytes become the replacement character.
        text = content.decode("utf-8", "replace").replace("\r\n", "\n").encode()
        most = MOST_FILE_BYTES
        if self._matcher.is_over_lines:
            most = min(most, self._matcher.most_bytes)
        if len(text) > most or len(content) > MOST_FILE_BYTES:
            self._notes.append(f"of {found.path} only the first {most:,} bytes")
        return text[:most]

    def _with_context(self, path: str, text: bytes, hits: list[int]) -> list[str]:
        lines = text.split(b"\n")
        hit, output, last = set(hits), list[str](), -1
        for number in hits:
            first = max(number - self._context, last + 1)
            for near in range(first, min(number + self._context + 1, len(lines))):
                if self._context and output and near > last + 1:
                    output.append("--")
                mark = ":" if near in hit else "-"
                output.append(f"{path}{mark}{near + 1}{mark}{_shorten(lines[near])}")
                last = near
            if len(output) > self._limit:
                break
        return output


def _shorten(line: bytes) -> str:
    text = line[: 4 * _MOST_LINE + 4].decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= _MOST_LINE else f"{text[:_MOST_LINE]} […]"
