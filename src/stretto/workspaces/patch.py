"""A change set as a patch that `git apply` takes, in bytes because files may be in any encoding.

Of modes a patch knows what git knows: executable or not, and links.
"""

import zlib
from base64 import b85encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import NamedTuple

from stretto.workspaces.change import ChangeSet, FileChange
from stretto.workspaces.content import Blobs, FileEntry
from stretto.workspaces.line_diff import SharedLines, find_shared_lines, is_text, split_lines

LARGEST_BINARY = 1024 * 1024  # that a report shows
LARGEST_TEXT = 8 * 1024 * 1024
_AROUND = 3  # unchanged lines before and after a changed one
_NOTHING = "0" * 40
_LINE = 52  # bytes of a binary patch's line


@dataclass(frozen=True, slots=True)
class Summary:
    files: int
    added: int  # lines
    removed: int


class _Side(NamedTuple):
    path: str
    entry: FileEntry | None
    content: bytes

    @property
    def mode(self) -> str:
        if self.entry is None:
            return ""
        if self.entry.kind == "link":
            return "120000"
        return "100755" if self.entry.is_executable else "100644"

    @property
    def id(self) -> str:
        """The content's name as an object of git."""
        if self.entry is None:
            return _NOTHING
        header = b"blob %d\0" % len(self.content)
        return sha1(header + self.content, usedforsecurity=False).hexdigest()


def render_patch(changes: ChangeSet, largest_binary: int | None = None) -> bytes:
    """A binary file of more bytes than `largest_binary` is only named, and then `git apply` does
    not take the patch: that is for readers."""
    return b"".join(_render(*pair, largest_binary) for pair in _pairs(changes))


def summarize(changes: ChangeSet) -> Summary:
    added = removed = 0
    for old, new in _pairs(changes):
        if _is_line_diff(old, new):
            a, b = split_lines(old.content), split_lines(new.content)
            shared = sum(run.length for run in find_shared_lines(a, b))
            added, removed = added + len(b) - shared, removed + len(a) - shared
    return Summary(len(changes.changes), added, removed)


def _pairs(changes: ChangeSet) -> Iterator[tuple[_Side, _Side]]:
    blobs = Blobs(changes.objects)
    for change in changes.changes:
        old, new = _sides(change, blobs)
        is_other_kind = old.entry and new.entry and old.entry.kind != new.entry.kind
        if is_other_kind:
            # A file that became a link is one file less and one link more.
            yield old, _Side(old.path, None, b"")
            yield _Side(new.path, None, b""), new
        else:
            yield old, new


def _sides(change: FileChange, blobs: Blobs) -> tuple[_Side, _Side]:
    before = blobs.read(change.before.digest) if change.before else b""
    after = blobs.read(change.after.digest) if change.after else b""
    old_path = change.path if change.renamed_from is None else change.renamed_from
    return _Side(old_path, change.before, before), _Side(change.path, change.after, after)


def _is_line_diff(old: _Side, new: _Side) -> bool:
    sides = (old.content, new.content)
    return all(is_text(content) and len(content) <= LARGEST_TEXT for content in sides)


def _render(old: _Side, new: _Side, largest_binary: int | None) -> bytes:
    names = _quote(f"a/{old.path}"), _quote(f"b/{new.path}")
    head = [f"diff --git {names[0]} {names[1]}", *_extended_header(old, new)]
    if old.content == new.content and old.entry and new.entry:
        return _text(head)
    # git wants full ids to apply a binary patch; the mode stands here only when it stays.
    mode = f" {old.mode}" if old.mode == new.mode else ""
    head.append(f"index {old.id}..{new.id}{mode}")
    if not _is_line_diff(old, new):
        return _text(head) + _binary(old, new, names, largest_binary)
    if not old.content and not new.content:
        return _text(head)
    head.append(f"--- {_mark_end(names[0]) if old.entry else '/dev/null'}")
    head.append(f"+++ {_mark_end(names[1]) if new.entry else '/dev/null'}")
    return _text(head) + b"".join(_hunks(split_lines(old.content), split_lines(new.content)))


def _extended_header(old: _Side, new: _Side) -> Iterator[str]:
    if old.entry is None:
        yield f"new file mode {new.mode}"
    elif new.entry is None:
        yield f"deleted file mode {old.mode}"
    elif old.mode != new.mode:
        yield f"old mode {old.mode}"
        yield f"new mode {new.mode}"
    if old.path != new.path:
        if old.content == new.content:
            yield "similarity index 100%"
        yield f"rename from {_quote(old.path)}"
        yield f"rename to {_quote(new.path)}"


def _text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _quote(path: str) -> str:
    """As git writes names: plain where it can, else in quotes, byte by byte."""
    raw = path.encode("utf-8", "surrogateescape")
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
        return path
    return '"' + "".join(map(_letter, raw)) + '"'


def _letter(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def _mark_end(name: str) -> str:
    # A tab tells where a name with blanks ends.
    return f"{name}\t" if " " in name and not name.startswith('"') else name


def _hunks(a: list[bytes], b: list[bytes]) -> Iterator[bytes]:
    for group in _groups(_gaps(find_shared_lines(a, b), len(a), len(b))):
        first, last = group[0], group[-1]
        lead = min(_AROUND, first.a)
        trail = min(_AROUND, len(a) - last.a_end)
        a_start, b_start = first.a - lead, first.b - lead
        a_count = last.a_end + trail - a_start
        b_count = last.b_end + trail - b_start
        yield f"@@ -{_span(a_start, a_count)} +{_span(b_start, b_count)} @@\n".encode()
        at = a_start
        for gap in group:
            yield from (_line(b" ", line) for line in a[at : gap.a])
            yield from (_line(b"-", line) for line in a[gap.a : gap.a_end])
            yield from (_line(b"+", line) for line in b[gap.b : gap.b_end])
            at = gap.a_end
        yield from (_line(b" ", line) for line in a[at : at + trail])


class _Gap(NamedTuple):
    a: int
    a_end: int
    b: int
    b_end: int


def _gaps(runs: list[SharedLines], a_length: int, b_length: int) -> Iterator[_Gap]:
    a = b = 0
    for run in (*runs, SharedLines(a_length, b_length, 0)):
        if (a, b) != (run.a, run.b):
            yield _Gap(a, run.a, b, run.b)
        a, b = run.a + run.length, run.b + run.length


def _groups(gaps: Iterator[_Gap]) -> Iterator[list[_Gap]]:
    group = list[_Gap]()
    for gap in gaps:
        if group and gap.a - group[-1].a_end > 2 * _AROUND:
            yield group
            group = []
        group.append(gap)
    if group:
        yield group


def _span(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line + (b"" if line.endswith(b"\n") else b"\n\\ No newline at end of file\n")


def _binary(old: _Side, new: _Side, names: tuple[str, str], largest: int | None) -> bytes:
    if largest is not None and max(len(old.content), len(new.content)) > largest:
        a = names[0] if old.entry else "/dev/null"
        b = names[1] if new.entry else "/dev/null"
        return f"Binary files {a} and {b} differ\n".encode("ascii")
    # Forwards, then backwards, so that the patch can be reverted.
    return b"GIT binary patch\n" + _literal(new.content) + _literal(old.content)


def _literal(content: bytes) -> bytes:
    packed = zlib.compress(content)
    lines = [f"literal {len(content)}\n".encode()]
    for start in range(0, len(packed), _LINE):
        part = packed[start : start + _LINE]
        length = chr(ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27)
        lines.append(length.encode() + b85encode(part, pad=True) + b"\n")
    return b"".join(lines) + b"\n"
