"""What templates read and expressions compute: JSON, or nothing at all."""

from enum import Enum
from typing import Final

from stretto.vocabulary.values import Json as Json


class Missing(Enum):
    """Nothing there. Not null: a field that holds null is there. An enum, so `is` narrows."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


def kind_of(value: Json) -> str:
    """The kind of a value, as an author would say it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
