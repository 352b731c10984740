"""Find what was renamed. In: changes. Out: the same, where a removal and a new file may be one.

First files with the same bytes, those of the same name before others; then texts that share most
of their lines. A guess only joins two changes: merged, they come to the same tree.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from stretto.workspaces.entries import Change, Entry
from stretto.workspaces.line_diff import split_lines

ALIKE = 0.6
_MOST_PAIRS = 2_500  # that are compared line by line
_MOST_BYTES = 512 * 1024


def with_renames(changes: Sequence[Change], read: Callable[[Entry], bytes]) -> list[Change]:
    gone = {c.path: c.before for c in changes if c.after is None and _is_file(c.before)}
    new = {c.path: c.after for c in changes if c.before is None and _is_file(c.after)}
    old_paths = _same(gone, new)
    taken = set(old_paths.values())
    old_paths |= _alike(
        {path: entry for path, entry in gone.items() if path not in taken},
        {path: entry for path, entry in new.items() if path not in old_paths},
        read,
    )
    taken = set(old_paths.values())
    return [
        Change(c.path, gone[old_paths[c.path]], c.after, old_paths[c.path])
        if c.path in old_paths
        else c
        for c in changes
        if c.path not in taken
    ]


def _is_file(entry: Entry | None) -> TypeGuard[Entry]:
    # An empty file is like every other empty file: that says nothing.
    return entry is not None and entry.kind == "file" and entry.size > 0


def _same(gone: Mapping[str, Entry], new: Mapping[str, Entry]) -> dict[str, str]:
    by_digest = defaultdict[str, list[str]](list)
    for path, entry in gone.items():
        by_digest[entry.digest].append(path)
    found = dict[str, str]()
    for path, entry in new.items():
        candidates = by_digest[entry.digest]
        if candidates:
            namesakes = (old for old in candidates if _name(old) == _name(path))
            found[path] = next(namesakes, candidates[0])
            candidates.remove(found[path])
    return found


def _alike(
    gone: Mapping[str, Entry], new: Mapping[str, Entry], read: Callable[[Entry], bytes]
) -> dict[str, str]:
    if len(gone) * len(new) > _MOST_PAIRS:
        return {}
    old_lines = {path: _lines(read(e)) for path, e in gone.items() if e.size <= _MOST_BYTES}
    new_lines = {path: _lines(read(e)) for path, e in new.items() if e.size <= _MOST_BYTES}
    scores = sorted(
        (-_likeness(old_lines[old], new_lines[fresh]), _name(old) != _name(fresh), old, fresh)
        for old in old_lines
        for fresh in new_lines
    )
    found = dict[str, str]()
    taken = set[str]()
    for score, _, old, fresh in scores:
        if -score >= ALIKE and fresh not in found and old not in taken:
            found[fresh] = old
            taken.add(old)
    return found


def _lines(content: bytes) -> Counter[bytes]:
    return Counter() if b"\0" in content else Counter(split_lines(content))


def _likeness(a: Counter[bytes], b: Counter[bytes]) -> float:
    """Bytes in lines that both have, of the bytes of the longer one."""
    longer = max(_bytes(a), _bytes(b))
    return _bytes(a & b) / longer if longer else 0.0


def _bytes(lines: Counter[bytes]) -> int:
    return sum(len(line) * times for line, times in lines.items())


def _name(path: str) -> str:
    return path.rpartition("/")[2]
