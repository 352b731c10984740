"""Keep secrets out of prompts, journals, reports and terminals. In: the environment. Out: text
without them.

A secret is found as it is and in the forms that programs give it: base64 at any offset, also broken
into lines, hexadecimal, escaped for a URL, for JSON, HTML or a shell.
"""

import json
import re
from base64 import b32encode, standard_b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import count, pairwise
from urllib.parse import quote, quote_plus

from stretto.text.secrets import is_telling, secret_values
from stretto.vocabulary.json_value import Json

MASK = "[redacted]"
_DUMP = re.compile(r"(?:[0-9A-Fa-f]{2}[ :]){3}|\\x[0-9a-f]{2}")
_LINE_BREAKS = re.compile(r"(?:\\n|[\r\n])\s*")
_LONG = 10_000
_LONGEST_KEPT = 100_000  # letters of a text whose outcome is kept
_MOST_KEPT = 64  # such texts
_MASKS = re.compile(rf"{re.escape(MASK)}(?:\s*{re.escape(MASK)})+")
# A longer secret is looked for in pieces: a stream would hold back too much text until all of
# it has come.
_LONGEST_PIECE = 96
_SHORTEST_LAST_PIECE = 12
_MOST_PIECES = 64
_MOST_ENCODED_PIECES = 4
_SHORTEST_LINE = 60  # of base64, whose lines have 64 or 76 letters
_SHORTEST_HALF = 12

_MARKS = ("%", "\\", "&")  # every escape but the `+` for a blank begins with one of these
_RUNS = re.compile(r"[A-Za-z0-9]+")
_SHORTEST_RUN = 3
_LONGEST_FORM = 12  # characters of one escaped byte or letter
_OWN = {
    "&": ["&amp;"],
    "<": ["&lt;"],
    ">": ["&gt;"],
    '"': ["&quot;"],
    "'": ["&apos;", r"'\\''"],
    " ": [r"\+"],
}
# `html.escape` does the same, but every start would pay for the import of `html`.
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def _may_hold_escapes(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


class _EscapedSecret:
    """A secret as encoders write it. An encoder for URLs, JSON, HTML or a shell leaves letters and
    digits alone, and what it does to the others depends on the program: `%2F` or `%2f`, `\\u0026`,
    `\\/` or `/`. So each other character may stand in any of these forms."""

    def __init__(self, value: str, name: str) -> None:
        self.name = name
        self.has_blank = " " in value
        self._value = value
        # What stands in every form: it is found faster than the pattern.
        self._run = max(_RUNS.findall(value), key=len, default="")

    @property
    def can_be_found(self) -> bool:
        """Of letters and digits alone there is only one form."""
        return len(self._run) >= _SHORTEST_RUN and self._run != self._value

    @property
    def longest(self) -> int:
        return sum(1 if _is_plain(each) else _LONGEST_FORM for each in self._value)

    def is_likely_in(self, text: str) -> bool:
        return self._run in text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("".join(map(_any_form, self._value)))


def _is_plain(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


def _any_form(letter: str) -> str:
    if _is_plain(letter):
        return letter
    raw = letter.encode("utf-8", "surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        rf"\\{{0,4}}{re.escape(letter)}",
        "".join(f"%{byte:02x}" for byte in raw),
        "".join(rf"\\{{1,4}}x{byte:02x}" for byte in raw),
        "".join(rf"\\{{1,4}}u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        f"&#0{{0,3}}{ord(letter)};",
        f"&#x0{{0,3}}{ord(letter):x};",
        *_OWN.get(letter, ()),
    ]
    return f"(?i:{'|'.join(forms)})"


class Redactor:
    def __init__(self, environ: Mapping[str, str]) -> None:
        """The values are looked for one by one: Python finds a text in a text far faster than any
        of a hundred alternatives of a pattern."""
        self._names: dict[str, str] = {}  # of what is looked for → the variable
        self._whole: dict[str, str] = {}  # half of an encoded secret → all of it
        self._escaped: list[_EscapedSecret] = []
        for value, name in secret_values(environ).items():
            for number, piece in enumerate(_pieces(value)):
                self._look_for(piece, name)
                self._look_for_escaped(piece, name)
                if number < _MOST_ENCODED_PIECES:
                    for form in _forms(piece):
                        self._look_for_form(form, name)
        lengths = map(len, (*self._names, *self._whole.values()))
        self._longest = max((*lengths, *(each.longest for each in self._escaped)), default=0)
        self._escaped_with_blank = [each for each in self._escaped if each.has_blank]
        # The longest first, for one may be a part of another.
        self._needles = sorted(self._names, key=len, reverse=True)
        # Dumps are rare, and their forms many.
        self._usual = [needle for needle in self._needles if not _DUMP.search(needle)]
        self._named_in_kept = lru_cache(maxsize=_MOST_KEPT)(self.named)

    @property
    def has_secrets(self) -> bool:
        return bool(self._needles)

    def text(self, text: str) -> str:
        hits = [needle for needle in self._needles_for(text) if needle in text]
        escaped = self._escaped_in(text)
        if not hits and not escaped:
            return text
        for each in escaped:
            text = each.pattern.sub(MASK, text)
        for needle in hits:
            if (whole := self._whole.get(needle)) is not None:
                text = _broken_into_lines(whole).sub(MASK, text)
            text = text.replace(needle, MASK)
        return _MASKS.sub(MASK, text)

    def named(self, text: str) -> tuple[str, ...]:
        """The variables whose values are in a text."""
        found = [self._names[needle] for needle in self._needles_for(text) if needle in text]
        found += [each.name for each in self._escaped_in(text) if each.pattern.search(text)]
        return tuple(dict.fromkeys(found))

    def named_in_plan(self, text: str) -> tuple[str, ...]:
        """The same, remembered: a saved recipe's text is looked through for each of its runs."""
        return self.named(text) if len(text) > _LONGEST_KEPT else self._named_in_kept(text)

    def _needles_for(self, text: str) -> list[str]:
        is_short = len(text) < _LONG  # beyond, the pattern takes longer than what it saves
        return self._usual if is_short and not _DUMP.search(text) else self._needles

    def _escaped_in(self, text: str) -> list[_EscapedSecret]:
        """Those that may stand in it in some other form than their own."""
        if not self._escaped:
            return []
        if _may_hold_escapes(text):
            likely = self._escaped
        else:
            likely = self._escaped_with_blank if "+" in text else []
        return [each for each in likely if each.is_likely_in(text)]

    def safe_length(self, text: str) -> int:
        """How much of a text that still grows can be told: no secret may begin in it and end later."""
        if not self._needles:
            return len(text)
        # The line breaks in a form make it longer; a text of line breaks alone is not held back.
        breaks = sum(map(len, _LINE_BREAKS.findall(text[-2 * self._longest :])))
        safe = max(0, len(text) - self._longest + 1 - min(breaks, self._longest))
        # From the last to the first: where a secret is held back, one that overlaps it is as well.
        for start, end in sorted(self._places(text, safe), reverse=True):
            if start < safe < end:
                safe = start
        return safe

    def _places(self, text: str, before: int) -> Iterator[tuple[int, int]]:
        """Where secrets stand that begin before a place: from, to."""
        for needle in self._needles_for(text):
            at = text.find(needle)
            if at < 0:
                continue
            if (whole := self._whole.get(needle)) is not None:
                yield from (found.span() for found in _broken_into_lines(whole).finditer(text))
            while 0 <= at < before:
                yield at, at + len(needle)
                at = text.find(needle, at + 1)
        for each in self._escaped_in(text):
            yield from (found.span() for found in each.pattern.finditer(text))

    def json(self, value: Json) -> Json:
        if not self._needles:
            return value
        try:
            return self._json(value)
        except RecursionError:
            return "[nested too deeply to be looked through]"

    def _json(self, value: Json) -> Json:
        match value:
            case str():
                return self.text(value)
            case list():
                return [self._json(each) for each in value]
            case dict():
                hidden: dict[str, Json] = {}
                for key, each in value.items():
                    hidden[self._key(key, value, hidden)] = self._json(each)
                return hidden
            case _:
                return value

    def _key(self, key: str, old: Mapping[str, Json], new: Mapping[str, Json]) -> str:
        """Numbered where another key would be the same, so that the value of neither is lost."""
        hidden = self.text(key)
        if hidden == key or (hidden not in old and hidden not in new):
            return hidden
        numbered = (f"{hidden} {number}" for number in count(len(new) + 1))
        return next(each for each in numbered if each not in old and each not in new)

    def arguments(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """Of a call, as a model wrote them."""
        hidden = self.json(dict(arguments))
        return hidden if isinstance(hidden, dict) else {"arguments": hidden}

    def _look_for(self, needle: str, name: str) -> None:
        if is_telling(needle):
            self._names.setdefault(needle, name)

    def _look_for_escaped(self, piece: str, name: str) -> None:
        if not is_telling(piece):
            return
        escaped = _EscapedSecret(piece, name)
        if escaped.can_be_found:
            self._escaped.append(escaped)
            return
        for form in _usual_escapes(piece):
            self._look_for(form, name)

    def _look_for_form(self, form: str, name: str) -> None:
        """By parts of it, more than lines can break: so one is whole wherever they do."""
        if len(form) // 2 < _SHORTEST_HALF:
            self._look_for(form, name)
            return
        parts = 2 + len(form) // _SHORTEST_LINE
        cuts = [len(form) * number // parts for number in range(parts + 1)]
        for start, end in pairwise(cuts):
            self._look_for(form[start:end], name)
            self._whole.setdefault(form[start:end], form)


def _pieces(value: str) -> list[str]:
    # A key of several lines is often kept in one, as `…\\n…`. Its first and last line are no secret.
    written = map(str.strip, value.replace("\\n", "\n").splitlines())
    lines = [line for line in written if line and not line.startswith("-----")]
    return [piece for line in lines for piece in _pieces_of_line(line)][:_MOST_PIECES]


def _pieces_of_line(line: str) -> Iterator[str]:
    cuts = [*range(0, len(line), _LONGEST_PIECE), len(line)]
    if len(cuts) > 2:
        # A last piece of few letters would not be looked for.
        cuts[-2] = min(cuts[-2], len(line) - _SHORTEST_LAST_PIECE)
    return (line[start:end] for start, end in pairwise(cuts))


def _usual_escapes(piece: str) -> Iterator[str]:
    """Of a secret that has no run of letters by which to find it in every form."""
    yield json.dumps(piece)[1:-1]
    yield piece.translate(_HTML)
    raw = piece.encode("utf-8", "surrogatepass")
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))


def _forms(piece: str) -> Iterator[str]:
    raw = piece.encode("utf-8", "surrogatepass")
    yield from (raw.hex(), raw.hex().upper(), raw.hex(" "), raw.hex(":"), raw.hex(":").upper())
    yield "".join(f"\\x{byte:02x}" for byte in raw)
    yield b32encode(raw).decode().rstrip("=")[:-1]  # the last letter says where it ends
    for offset in range(3):
        yield _base64(raw, offset)
        if (urlsafe := _base64(raw, offset, urlsafe_b64encode)) != _base64(raw, offset):
            yield urlsafe


def _base64(raw: bytes, offset: int, encode: Callable[[bytes], bytes] = standard_b64encode) -> str:
    """The letters that are the same whatever stands `offset` bytes before the secret and after it."""
    first, last = (0, 2, 3)[offset], (offset + len(raw)) * 8 // 6
    return encode(bytes(offset) + raw).decode()[first:last]


def _broken_into_lines(form: str) -> re.Pattern[str]:
    return re.compile(r"(?:\\n|\s)*".join(map(re.escape, form)))


NOTHING_SECRET = Redactor({})
