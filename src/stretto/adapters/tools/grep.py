"""Grep. In: a regular expression. Out: the files, lines or counts where it matches."""

import json
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from threading import Event

from stretto.adapters.tools import grep_worker
from stretto.adapters.tools.arguments import Flag, Given, OneOf, Parameter, Parameters, Text, Whole
from stretto.adapters.tools.checked import CheckedTool, Failed, Refused, checked
from stretto.adapters.tools.decoding import not_text
from stretto.adapters.tools.files import Files
from stretto.globs.glob import Glob, GlobFault, parse_glob
from stretto.processes.worker import WorkerTooSlow, run_worker
from stretto.vocabulary.values import Json
from stretto.workspaces.places import Found
from stretto.workspaces.refusals import PathRefused

TIMEOUT_SECONDS = 20.0
MOST_FILE_BYTES = 5_000_000
_MOST_OUTPUT = 1_000_000
_BATCH_BYTES = 1_000_000

_SAYS = (
    "Search the contents of the workspace's files for a regular expression (Python's `re`), line"
    " by line. Binary files and links are left out."
)
_TAKES = Parameters(
    Parameter("pattern", Text(1, 2_000), "the regular expression", is_required=True),
    Parameter("path", Text(0, 4096), "a file or a folder; the workspace by default"),
    Parameter("glob", Text(1, 1024), "only files that this covers, e.g. *.py or src/**/*.ts"),
    Parameter(
        "output_mode",
        OneOf(("files_with_matches", "content", "count")),
        "paths by default; 'content' shows the lines, 'count' how many there are",
    ),
    Parameter("context", Whole(0, 20), "with 'content': lines before and after"),
    Parameter("ignore_case", Flag(), "do not tell upper from lower case"),
    Parameter("multiline", Flag(), "let the pattern go over line ends; a dot matches them too"),
    Parameter("head_limit", Whole(1, 2_000), "the most lines of output; 250 by default"),
)


def grep(files: Files, timeout_seconds: float = TIMEOUT_SECONDS) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        under = await files.aside(lambda: files.folder(given.text("path")), Event())
        search = _Search(files, under, _filter(given.text("glob")), _request(given))
        program = Path(grep_worker.__file__)
        try:
            _, said = await run_worker(program, search.feed(), timeout_seconds, _MOST_OUTPUT)
        except WorkerTooSlow as stopped:
            note = f"[stopped after {timeout_seconds:g} s: search less, or with a simpler pattern]"
            return f"{_text(stopped.output)}{note}"
        return _told(said, search.notes)

    return checked("Grep", _SAYS, _TAKES, work)


def _filter(written: str) -> tuple[Glob, ...]:
    if not written:
        return ()
    # As everyone is used to: a pattern without a folder is for the name alone.
    found = parse_glob(written if "/" in written else f"**/{written}")
    if isinstance(found, GlobFault):
        raise Failed(f"glob: {found.message}; {found.hint}" if found.hint else found.message)
    return (found,)


def _request(given: Given) -> dict[str, Json]:
    return {
        "pattern": given.text("pattern"),
        "mode": given.text("output_mode", "files_with_matches"),
        "context": given.whole("context", 0),
        "ignore_case": given.flag("ignore_case"),
        "multiline": given.flag("multiline"),
        "limit": given.whole("head_limit", 250),
    }


class _Search:
    """What the worker is told: the request, and every file that may be searched."""

    def __init__(
        self, files: Files, under: str, globs: tuple[Glob, ...], request: dict[str, Json]
    ) -> None:
        self.notes: list[str] = []
        self._files = files
        self._stop = Event()
        self._walked = files.walk(under, self._stop, globs)
        self._request = request

    async def feed(self) -> AsyncIterator[bytes]:
        yield json.dumps(self._request).encode() + b"\n"
        while batch := await self._files.aside(self._batch, self._stop):
            yield batch

    def _batch(self) -> bytes:
        batch = bytearray()
        while len(batch) < _BATCH_BYTES:
            try:
                found = next(self._walked, None)
            except PathRefused as refused:
                self.notes.append(f"not all was searched: {refused.message}")
                found = None
            if found is None:
                break
            batch += self._framed(found)
        return bytes(batch)

    def _framed(self, found: Found) -> bytes:
        if found.kind != "file":
            return b""
        try:
            content = self._files.read_found(found, MOST_FILE_BYTES + 1)
        except (Failed, Refused, OSError):
            return b""  # gone since it was listed, or not for us to read
        if not_text(content[:8192]):
            return b""
        if len(content) > MOST_FILE_BYTES:
            content = content[:MOST_FILE_BYTES]
            self.notes.append(f"of {found.path} only the first {MOST_FILE_BYTES:,} bytes")
        return json.dumps([found.path, len(content)]).encode() + b"\n" + content


def _told(said: bytes, notes: list[str]) -> str:
    *lines, last = _text(said).removesuffix("\n").split("\n")
    try:
        ending = json.loads(last)
    except ValueError:
        raise Failed("the search broke off: the pattern or a file was too much for it") from None
    if not isinstance(ending, dict):
        raise Failed("the search broke off") from None
    if "fault" in ending:
        raise Failed(f"this is no regular expression: {ending['fault']}")
    if ending.get("is_cut"):
        notes = [*notes, "there is more: raise head_limit, or search less"]
    found = "\n".join(lines) or "Nothing matches."
    return "\n".join(chain([found], (f"[{note}]" for note in notes[:20])))


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace")
