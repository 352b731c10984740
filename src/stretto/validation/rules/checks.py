"""What a rule asks for, once it is understood. One kind of check for each thing code can decide."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["boolean", "array", "number", "integer", "string", "object"]
Unit: TypeAlias = Literal[
    "words", "characters", "sentences", "lines", "paragraphs", "bullets", "headings", "sections"
]


@dataclass(frozen=True, slots=True)
class Name:
    """A field as the rule names it."""

    text: str
    # `overall_score` and "score" are meant to the letter; the words company overview are also
    # companyOverview. `Summary` may be summary.
    is_exact: bool = False
    # Whether the rule says that it is a field. Where it does not, "summary" may be a heading or a
    # passage, and an answer without such a field proves nothing.
    is_field: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """How many, or how much: both ends belong to it unless they are open."""

    least: float | None = None
    most: float | None = None
    is_open_below: bool = False
    is_open_above: bool = False
    # "3 findings" without "exactly": fewer are too few, but more may well be meant.
    is_bare: bool = False

    def is_below(self, number: float) -> bool:
        if self.least is None:
            return False
        return number <= self.least if self.is_open_below else number < self.least

    def is_above(self, number: float) -> bool:
        if self.most is None:
            return False
        return number >= self.most if self.is_open_above else number > self.most


@dataclass(frozen=True, slots=True)
class HasFields:
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class LacksFields:
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Mentions:
    """Bare nouns: "must include a summary". A filled field of that name settles it; nothing else
    does."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class HasSections:
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IsKind:
    kind: Kind
    of: Kind | None = None  # what the elements of an array are


@dataclass(frozen=True, slots=True)
class IsThere:
    """For a field that must be present, whatever it holds."""


@dataclass(frozen=True, slots=True)
class IsJson:
    pass


@dataclass(frozen=True, slots=True)
class IsOneOf:
    values: tuple[str | bool, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """A number within these bounds."""

    amount: Amount


@dataclass(frozen=True, slots=True)
class NotEmpty:
    pass


@dataclass(frozen=True, slots=True)
class CountOf:
    """How many things of this name: the elements of a list. ANY_ITEM: of whichever list it is."""

    noun: Name
    amount: Amount


@dataclass(frozen=True, slots=True)
class LengthOf:
    """How many words, lines … a text has."""

    unit: Unit
    amount: Amount


@dataclass(frozen=True, slots=True)
class Whole:
    """`the answer must …`: the output, although a field may have the same name."""

    noun: str
    checks: "tuple[Check, ...]"


@dataclass(frozen=True, slots=True)
class On:
    """The field is there, and this holds of it."""

    name: Name
    checks: "tuple[Check, ...]"


@dataclass(frozen=True, slots=True)
class Each:
    """This holds of every element of the list of that name."""

    noun: Name
    checks: "tuple[Check, ...]"


Check: TypeAlias = (
    HasFields
    | LacksFields
    | Mentions
    | HasSections
    | IsKind
    | IsThere
    | IsJson
    | IsOneOf
    | Between
    | NotEmpty
    | CountOf
    | LengthOf
    | Whole
    | On
    | Each
)

Checks: TypeAlias = tuple[Check, ...]

ANY_ITEM = Name("items")
