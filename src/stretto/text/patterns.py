"""Regular expressions that an outsider wrote, matched by RE2 in time linear in the text.

Python's `re` backtracks: `(a+)+$` takes years on forty letters. RE2 never does; in return it knows
no look-around and no back-references. See docs/decisions/0020-re2.md.
"""

import re
from functools import lru_cache
from typing import Any

from msgspec import Struct

LONGEST_PATTERN = 2_000
_MEMORY_BYTES = 1 << 20  # of one compiled pattern: about 60,000 instructions at the most

# JSON Schema asks for ECMAScript's \u escapes, and Python writes \Z for what RE2 calls \z.
_FOREIGN_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<end>Z)|.)", re.DOTALL)
_HINTS = (
    (
        re.compile(r"\(\?<?[=!]"),
        "look-ahead and look-behind are not supported: list what may match",
    ),
    (
        re.compile(r"\\[1-9]|operator: \(\?P"),
        "back-references are not supported: write the repetition out",
    ),
    (
        re.compile(r"repetition size"),
        "a repetition may count to 1,000: limit a text with maxLength",
    ),
)


class PatternError(Exception):
    """RE2 does not know this pattern. The message says why."""


class TextPattern(Struct, frozen=True):
    size: int  # instructions; one search costs at most this times the bytes of the text
    _compiled: Any

    def occurs_in(self, text: str) -> bool:
        return self.search(text.encode("utf-8", "replace")) is not None

    def search(self, text: bytes, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """Where the leftmost match begins and ends. Other threads run while RE2 searches."""
        found = self._compiled.search(text, start, end)
        return None if found is None else found.span()


@lru_cache(maxsize=512)
def compile_pattern(
    pattern: str, *, ignore_case: bool = False, by_line: bool = False, dot_all: bool = False
) -> TextPattern:
    """`by_line`: ^ and $ match at every line, and no match goes over the end of a line. `dot_all`:
    a dot matches line ends, too, and ^ and $ match at every line. Raises PatternError."""
    # Not at the top: most commands never match a pattern. The package has no type stubs.
    import re2  # type: ignore[import-untyped]

    if len(pattern) > LONGEST_PATTERN:
        raise PatternError(f"it is longer than {LONGEST_PATTERN:,} characters")
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = not ignore_case
    options.never_nl = by_line
    options.dot_nl = dot_all
    written = _FOREIGN_ESCAPE.sub(_as_re2, pattern)
    try:
        compiled = re2.compile(f"(?m){written}" if by_line or dot_all else written, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise PatternError(_reason(pattern, error)) from None
    return TextPattern(compiled.programsize, compiled)


def _as_re2(escape: re.Match[str]) -> str:
    if escape["code"]:
        return rf"\x{{{escape['code']}}}"
    return r"\z" if escape["end"] else escape[0]


def _reason(pattern: str, error: Exception) -> str:
    said = error.args[0] if error.args else ""
    reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(error)
    hints = (hint for sign, hint in _HINTS if sign.search(reason))
    return f"{reason[:200]} ({hint})" if (hint := next(hints, None)) else reason[:200]
