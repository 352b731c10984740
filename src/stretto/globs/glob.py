"""Globs of read and write sets: parse them, write them, and see whether two overlap."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import normalize

from stretto.globs.intersection import PathWord, any_intersect, shared_path, word_of
from stretto.globs.pattern import (
    ANY,
    EVERY_CHAR,
    EVERY_NAME,
    CharSet,
    Pattern,
    Segment,
    Wild,
    intersect,
    naming_forms,
    plain_names,
)

MOST_CHARACTERS = 1024
MOST_SEGMENTS = 64
MOST_ALTERNATIVES = 64
MOST_OF_A_SET = 256

# Possessive, so that a ']' right after the opening is always a member: `[]` stays unclosed.
_CLASS = r"\[[!^]?+\]?+[^\]/]*\]"
_BRACE_TOKEN = re.compile(rf"{_CLASS}|[\[{{}},]|[^\[{{}},]+")
_LETTER = re.compile(rf"{_CLASS}|\*+|.")
_RANGE = re.compile(r"(.)-(.)|(.)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_OUTSIDE = re.compile(r"[/~]|[A-Za-z]:")
# As in a .gitignore (`!path`), and as in the extended globs of shells: `{!a,b}`, `!(a)`.
_EXCLUDES = re.compile(r"^\s*!|[{,]\s*!|!\(")
_WILD = frozenset("*?[{")
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_LOOKS_OUTSIDE = re.compile(r"~|[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class GlobFault:
    code: str  # RCP121 leaves the workspace, RCP122 is no glob, RCP118 too many
    message: str
    hint: str = ""


@dataclass(frozen=True)  # without slots: cached_property needs a __dict__
class Glob:
    text: str  # as written
    patterns: tuple[Pattern, ...]  # one for each alternative of its braces

    def matches(self, path: str) -> bool:
        """Whether it covers this '/'-separated path, relative to the workspace."""
        names = tuple(_names(normalize("NFC", path)))
        if path.startswith("/") or ".." in names:
            return False
        return any_intersect((word_of(names),), self.words)

    @cached_property
    def words(self) -> tuple[PathWord, ...]:
        """The patterns, made ready to be compared."""
        return tuple(map(word_of, self.patterns))

    def stems(self) -> frozenset[tuple[str, ...]]:
        """The plain names that each pattern begins with. Two globs may overlap only if a stem of
        one begins a stem of the other."""
        return frozenset(map(plain_names, self.patterns))


def parse_glob(text: str, *, names_no_file: bool = False) -> Glob | GlobFault:
    """`names_no_file`: a plain path covers all below it even if it ends like a file's name."""
    try:
        paths = _expand_braces(_check_text(text))
        patterns = (_parse_path(path, names_no_file) for path in paths)
        return Glob(text, tuple(dict.fromkeys(filter(_covers_anything, patterns))))
    except _Refused as refused:
        return refused.fault


def parse_globs(texts: Iterable[str]) -> tuple[Glob, ...]:
    """Texts that are no globs are left out."""
    return tuple(glob for glob in map(parse_glob, texts) if isinstance(glob, Glob))


def set_faults(texts: Sequence[str]) -> Iterator[tuple[int | None, GlobFault]]:
    """What is wrong with the globs of a set, each with its position; None: with all of them."""
    count = 0
    for position, text in enumerate(texts):
        if _EXCLUDES.search(text):
            message = f"'{text}' would exclude something, and a set only says what is in it"
            hint = "list what the step touches; a file whose name begins with '!' is './!name'"
            yield position, GlobFault("RCP122", message, hint)
            continue
        glob = parse_glob(text)
        if isinstance(glob, GlobFault):
            yield position, glob
        else:
            count += len(glob.patterns)
    # Every glob of a step may have to be compared with every one of another.
    if count > MOST_OF_A_SET:
        message = f"this set stands for {count:,} globs; at most {MOST_OF_A_SET} are allowed"
        yield None, GlobFault("RCP118", message, "name folders instead of files")


def overlap(a: Glob, b: Glob) -> bool:
    """Whether any path is matched by both. Exact, code point by code point."""
    return any_intersect(a.words, b.words)


def sets_overlap(a: Sequence[Glob], b: Sequence[Glob]) -> bool:
    return any(overlap(x, y) for x in a for y in b)


def witness(a: Glob, b: Glob) -> str | None:
    """A path that both match, to show why they overlap."""
    paths = (shared_path(x, y) for x in a.patterns for y in b.patterns)
    return next((path for path in paths if path is not None), None)


class _Refused(Exception):
    def __init__(self, code: str, message: str, hint: str) -> None:
        self.fault = GlobFault(code, message, hint)


def _no_glob(message: str, hint: str) -> _Refused:
    return _Refused("RCP122", message, hint)


def _check_text(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise _no_glob(f"this glob has {len(text)} characters", f"{MOST_CHARACTERS} is the most")
    if _CONTROL.search(text):
        raise _no_glob(f"{text!r} holds a control character", "write '?' where one must stand")
    return text


def _expand_braces(text: str) -> list[str]:
    """`{a,b}c` → `ac`, `bc`. Nested braces wait on a list: a recursion could exhaust the stack."""
    outer: list[tuple[list[str], list[str]]] = []
    ended, current = list[str](), [""]
    for token in _BRACE_TOKEN.findall(text):
        if token == "[":
            raise _no_glob(f"'{text}' has a '[' without its ']'", "for the character, write '[[]'")
        if token == "{":
            outer.append((ended, current))
            ended, current = [], [""]
        elif token == "," and outer:
            ended, current = ended + current, [""]
        elif token == "}" and outer:
            inner = ended + current
            ended, current = outer.pop()
            current = [head + tail for head in current for tail in inner]
        else:
            current = [head + token for head in current]
        # No brace stands for nothing, so the whole glob stands for at least as many as this part.
        if len(ended) + len(current) > MOST_ALTERNATIVES:
            raise _no_glob(
                f"the braces of '{text}' stand for more than {MOST_ALTERNATIVES} globs",
                "use '*', or list fewer",
            )
    if outer:
        raise _no_glob(f"'{text}' has a '{{' without its '}}'", "for the character, write '[{]'")
    return current


def _parse_path(text: str, names_no_file: bool) -> Pattern:
    names = _names(normalize("NFC", text))
    if not text:
        raise _no_glob("a glob cannot be empty", "'**' is the whole workspace")
    if _OUTSIDE.match(text) or ".." in names:
        hint = "write it relative to the workspace, without '..'"
        raise _Refused("RCP121", f"'{text}' leaves the workspace", hint)
    if "\\" in text:
        raise _no_glob(f"'{text}' holds a backslash", "use '/' between names")
    if len(names) > MOST_SEGMENTS:
        raise _no_glob(f"this glob has {len(names)} segments", f"{MOST_SEGMENTS} is the most")
    pattern: list[Segment | Wild] = []
    for name in names:
        if name != "**":
            pattern.append(_parse_segment(name))
        elif pattern[-1:] != [ANY]:
            pattern.append(ANY)
    is_plain = all(isinstance(segment, str) for segment in pattern)
    if is_plain and (names_no_file or not (names and ends_like_file(names[-1]))):
        pattern.append(ANY)  # a plain path is everything below it too
    # '**/*', the default of readers and writers, means the same as '**': both give one pattern.
    return (ANY,) if pattern == [ANY, EVERY_NAME] else tuple(pattern)


def ends_like_file(name: str) -> bool:
    """`a.txt` and `.eslintrc.json` have an extension; `src` and `.github` have none."""
    stem, _, extension = name.rpartition(".")
    return bool(stem.strip(".") and extension)


def plain_files(glob: Glob) -> Iterator[tuple[str, ...]]:
    """The paths that are taken for files because of how they end."""
    for pattern in glob.patterns:
        names = tuple(part for part in pattern if isinstance(part, str))
        if names == pattern:
            yield names


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _parse_segment(text: str) -> Segment:
    if not any(wildcard in text for wildcard in "*?["):
        return text
    return tuple(map(_parse_letter, _LETTER.findall(text)))


def _parse_letter(text: str) -> CharSet | Wild:
    if text.startswith("*"):
        return ANY
    if text == "?":
        return EVERY_CHAR
    return _parse_class(text) if len(text) > 1 else ((ord(text), ord(text)),)


def _parse_class(text: str) -> CharSet:
    is_negated = text[1] in "!^"
    ranges = list[tuple[int, int]]()
    for low, high, single in _RANGE.findall(text[1 + is_negated : -1]):
        if low > high:
            raise _no_glob(f"the range '{low}-{high}' runs backwards", f"write '{high}-{low}'")
        ranges.append((ord(low or single), ord(high or single)))
    others = _complement(ranges)
    # Complemented twice, ranges come out sorted and merged.
    return intersect(EVERY_CHAR, others if is_negated else _complement(others))


def _complement(ranges: Sequence[tuple[int, int]]) -> CharSet:
    gaps, begin = list[tuple[int, int]](), 0
    for low, high in sorted(ranges):
        if begin < low:
            gaps.append((begin, low - 1))
        begin = max(begin, high + 1)
    return (*gaps, (begin, sys.maxunicode)) if begin <= sys.maxunicode else tuple(gaps)


def _covers_anything(pattern: Pattern) -> bool:
    # `[.]` is a valid glob, but only '.' matches it, and no file is called that.
    return all(part is ANY or naming_forms(part) for part in pattern)


def text_of(pattern: Pattern) -> str:
    """Write a pattern as the text of a glob that matches at least as much.

    It matches exactly as much except where a character cannot be written in a glob (a backslash,
    control characters, bytes that are no text) and where the ends of a character set are neither
    letters nor digits: those become `?`. A plain path is written without the `/**` it implies, unless
    it ends like the name of a file.
    """
    is_plain = all(isinstance(part, str) and part == _segment_text(part) for part in pattern[:-1])
    is_folder = is_plain and pattern[-1:] == (ANY,)
    if is_folder and len(pattern) > 1 and isinstance(pattern[-2], str):
        is_folder = not ends_like_file(pattern[-2])
    parts = pattern[:-1] if is_folder else pattern
    text = "/".join("**" if isinstance(part, Wild) else _segment_text(part) for part in parts)
    # `~` and `c:` at the beginning would say that it leaves the workspace.
    if _LOOKS_OUTSIDE.match(text):
        text = f"[{text[0]}]{text[1:]}" + ("/**" if len(parts) < len(pattern) else "")
    return text or "**"


def _segment_text(segment: Segment) -> str:
    if isinstance(segment, str):
        return "".join(map(_char_text, segment))
    return "".join("*" if letter is ANY else _set_text(letter) for letter in segment)


def _set_text(chars: CharSet) -> str:
    if len(chars) == 1 and chars[0][0] == chars[0][1]:
        return _char_text(chr(chars[0][0]))
    ends = [(chr(low), chr(high)) for low, high in chars]
    if not all(low.isalnum() and high.isalnum() for low, high in ends):
        return "?"
    return f"[{''.join(low if low == high else f'{low}-{high}' for low, high in ends)}]"


def _char_text(char: str) -> str:
    if _UNWRITABLE.match(char):
        return "?"
    return f"[{char}]" if char in _WILD else char
