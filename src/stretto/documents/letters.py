"""Characters that no text may hold, written out or as escapes."""

import re

# What YAML calls non-printable. A terminal would obey some of these, so none may pass.
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"
)


def named(letter: str) -> str:
    return "a NUL byte" if letter == "\0" else f"control character U+{ord(letter):04X}"
