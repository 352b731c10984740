"""What is wrong inside a template or an expression. The caller, who knows the file, says where."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    code: str
    message: str
    hint: str = ""
    offset: int = 0  # index in the text
    width: int = 1
