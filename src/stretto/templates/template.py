"""Text with `{{ path }}` in it, parsed once: the template, its references, and every fault in it."""

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from msgspec import Struct


class Fault(Struct, frozen=True):
    code: str
    message: str
    hint: str = ""
    offset: int = 0  # index in the text
    width: int = 1


PathPart: TypeAlias = str | int

LONGEST_REFERENCE = 512
BLANKS = " \t"

# \w is what str.isalnum() accepts, and the underscore: names may be in any script.
PATH = r"[\w-]++(?:\.[\w-]++|\[[0-9]++\])*+"
_PATH = re.compile(PATH)
_PART = re.compile(r"\[([0-9]+)\]|[\w-]+")

_QUOTED = re.compile(r"""\[['"]([\w-]+)['"]\]""")  # steps['a'], as other languages write it
_ONLY_A_PATH = "braces hold one path: no filters, no logic"


class Reference(NamedTuple):
    text: str  # as written, trimmed: `steps.gather.output.items[0]`
    path: tuple[PathPart, ...]  # ('steps', 'gather', 'output', 'items', 0)
    offset: int  # where `text` starts in its expression, or in the braces of its template

    @property
    def step(self) -> str | None:
        if len(self.path) > 1 and self.path[0] == "steps" and isinstance(self.path[1], str):
            return self.path[1]
        return None

    @property
    def is_whole_output(self) -> bool:
        """`steps.ID.output` and no more, as most references are."""
        path = self.path
        return (
            len(path) == 3
            and path[2] == "output"
            and path[0] == "steps"
            and isinstance(path[1], str)
        )

    def span(self, index: int) -> tuple[int, int]:
        """Where the part at `index` stands, and how wide it is: for the caret."""
        part = list(_PART.finditer(self.text))[index]
        return self.offset + part.start(), part.end() - part.start()


def parse_reference(text: str, offset: int = 0) -> Reference | Fault:
    unindented = text.lstrip(BLANKS)
    offset += len(text) - len(unindented)
    path = unindented.rstrip(BLANKS)
    if not path:
        hint = "name what goes here, such as {{inputs.topic}}"
        return Fault("RCP201", "the braces are empty", hint, offset)
    if len(path) > LONGEST_REFERENCE:
        message = f"this reference is longer than {LONGEST_REFERENCE} characters"
        return Fault("RCP201", message, "was a '}}' forgotten?", offset, LONGEST_REFERENCE)
    read = _PATH.match(path)
    end = read.end() if read else 0
    if end < len(path):
        return _slip(path, end, offset)
    return Reference(path, parse_path(path), offset)


def parse_path(path: str) -> tuple[PathPart, ...]:
    if "[" not in path:
        return tuple(path.split("."))
    return tuple(int(part[1]) if part[1] else part[0] for part in _PART.finditer(path))


def _slip(path: str, end: int, offset: int) -> Fault:
    """Why the path stops at `end`."""
    at = end + len(path[end:]) - len(path[end:].lstrip(BLANKS))
    character = path[at]
    if character in "\r\n":
        message, hint = "a reference stays on one line", "close it with '}}'"
    elif at > end and (character.isalnum() or character in "_-"):
        message, hint = "a path has no blanks in it", _ONLY_A_PATH
    elif character == ".":
        message, hint = "a name is missing beside this '.'", "write it as in steps.gather.output"
    elif character == "[":
        message, hint = "an index is a whole number from 0", "write it as in items[0]"
        if _QUOTED.search(path):
            hint = f"write {_QUOTED.sub(lambda found: f'.{found[1]}', path).strip()[:80]}"
    elif character == "#" and not end:
        message = f"'{path[:20]}' is no path: there are no blocks"
        hint = "write when: in a step of its own, or map: for a list"
    elif character == "|":
        message, hint = (
            f"{character!r} cannot be part of a path",
            f"write {{{{{path[:end]}}}}} alone",
        )
        hint += ": there are no filters"
    elif character == "{":
        message, hint = "'{' cannot be part of a path", "two braces are enough: {{path}}"
    else:
        message, hint = f"{character!r} cannot be part of a path", _ONLY_A_PATH
        if character == "$" and not end and _PATH.fullmatch(path.strip(" $")):
            hint = f"write {{{{{path.strip(' $')}}}}}"
    return Fault("RCP201", message, hint, offset + at)


# More than a person reads at once; a megabyte of braces must not become a million faults.
MOST_FAULTS = 50


class Slots(Struct, frozen=True, gc=False):
    """Which parts of a template are to be filled in. Whole outputs of steps stand apart, so that
    they are filled in at one go: a prompt may name every step of a layer."""

    outputs: tuple[tuple[int, str], ...]  # each with its step
    others: tuple[int, ...]


class Template:
    """Text and references, parsed once. A plain class: plans store its text and nothing else."""

    __slots__ = ("_braces", "_slots", "parts", "references", "text")

    def __init__(
        self,
        text: str,
        parts: tuple[str | Reference, ...],
        references: tuple[Reference, ...] = (),
        braces: tuple[int, ...] | None = None,
    ) -> None:
        self.text = text  # as written
        self.parts = parts  # literals are already unescaped
        # Templates that name the same share one Reference, whose offset counts from its braces.
        self.references = references
        self._braces = braces  # where they stand; None: wherever the text has some
        self._slots: Slots | None = None

    @property
    def located(self) -> tuple[Reference, ...]:
        """The references, each with its offset in the text: for the places of faults."""
        braces = self._braces
        if braces is None:
            braces = tuple([found.start() for found in re.finditer(r"\{\{", self.text)])
        places = zip(self.references, braces, strict=True)
        return tuple([each._replace(offset=start + each.offset) for each, start in places])

    @property
    def slots(self) -> "Slots":
        """Made when it is first rendered: a plan that is only checked needs none."""
        if self._slots is None:
            found = [(n, part) for n, part in enumerate(self.parts) if isinstance(part, Reference)]
            self._slots = Slots(
                tuple([(n, str(part.path[1])) for n, part in found if part.is_whole_output]),
                tuple([n for n, part in found if not part.is_whole_output]),
            )
        return self._slots

    @classmethod
    def verbatim(cls, text: str) -> "Template":
        """Text in which `{{` is no reference."""
        return cls(text, (text,) if text else ())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Template):
            return NotImplemented
        return self.text == other.text and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    @property
    def is_literal(self) -> bool:
        return not self.references


def parse_template(text: str) -> tuple[Template, tuple[Fault, ...]]:
    """Never raises. What is faulty stays as literal text, so the rest is still checked."""
    plain = _parse_plain(text)
    return (plain, ()) if plain is not None else _parse_with_faults(text)


def _parse_plain(text: str) -> Template | None:
    """A text without faults and escapes, as most are, or None."""
    if "{{{" in text or "\\{{" in text:
        return None
    first, *rest = text.split("{{")
    parts: list[str | Reference] = [first] if first else []
    references: list[Reference] = []
    for piece in rest:
        inside, closing, literal = piece.partition("}}")
        if not closing or len(inside) > LONGEST_REFERENCE:
            return None
        named = _parse_inside(inside)
        if named is None:
            return None
        references.append(named)
        parts.append(named)
        if literal:
            parts.append(literal)
    return Template(text, tuple(parts), tuple(references))


@lru_cache(maxsize=4096)  # the steps of a layer all name the same steps before them
def _parse_inside(inside: str) -> Reference | None:
    parsed = parse_reference(inside, len("{{"))
    return parsed if isinstance(parsed, Reference) else None


def _parse_with_faults(text: str) -> tuple[Template, tuple[Fault, ...]]:
    parts: list[str | Reference] = []
    braces: list[int] = []
    faults: list[Fault] = []
    literal, at = "", 0
    while len(faults) < MOST_FAULTS and (opening := text.find("{{", at)) >= 0:
        if opening > at and text[opening - 1] == "\\":
            literal += text[at : opening - 1] + "{{"
            at = opening + 2
            continue
        found, end = _reference_at(text, opening)
        if faults and text.startswith(("{{/", "{{else"), opening):
            literal += text[at:end]  # the end of a block is one slip with its beginning
        elif isinstance(found, Fault):
            faults.append(found)
            literal += text[at:end]
        else:
            literal += text[at:opening]
            named = found._replace(offset=found.offset - opening)
            parts += [literal, named] if literal else [named]
            braces.append(opening)
            literal = ""
        at = end
    literal += text[at:]
    if literal:
        parts.append(literal)
    references = tuple([part for part in parts if isinstance(part, Reference)])
    return Template(text, tuple(parts), references, tuple(braces)), tuple(faults)


def _reference_at(text: str, opening: int) -> tuple[Reference | Fault, int]:
    """What the braces at `opening` hold, and where to read on."""
    start = opening + 2
    # The search is bounded, or a text of nothing but '{{' would cost its length squared.
    limit = start + LONGEST_REFERENCE
    closing = text.find("}}", start, limit + 2)
    inside = text[start : closing if closing >= 0 else limit]
    if "{{" in inside:
        why = "is not closed before the next '{{'"
    elif "\n" in inside:
        why = "is not closed on its line"
    elif closing < 0:
        within = f" within {LONGEST_REFERENCE} characters" if limit < len(text) else ""
        why = f"is not closed{within}"
    else:
        return parse_reference(inside, start), closing + 2
    hint = "close it with '}}', or write '\\{{' for the braces themselves"
    return Fault("RCP201", f"this '{{{{' {why}", hint, opening, 2), start
