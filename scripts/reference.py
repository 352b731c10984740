"""Print the reference of recipe keys. In: the grammar. Out: Markdown, on stdout.

python scripts/reference.py > docs/reference.md
"""

import sys

from stretto.documents.kinds import (
    Amount,
    AnyMap,
    Anything,
    Choice,
    Count,
    Either,
    Flag,
    Identifier,
    ListOf,
    MapOf,
    NameOr,
    ShapeOf,
    Text,
)
from stretto.documents.shapes import Key, Kind, Shape
from stretto.recipe import grammar

_PLURALS = {"id": "ids", "text": "texts", "one line": "texts", "anything": "values"}
# Heading → shape, in the order of the page.
SECTIONS = {
    "Recipe": grammar.BODY,
    "Beside `workflow:`": grammar.ENVELOPE,
    "Input": grammar.INPUT,
    "Agent": grammar.AGENT,
    "Step": grammar.STEP,
    "Branch of `parallel`": grammar.BRANCH,
    "`condition`": grammar.CONDITION,
    "`switch`": grammar.SWITCH,
    "`loop`": grammar.LOOP,
    "Command as a `validator`": grammar.COMMAND,
    "`map`": grammar.MAP,
    "Stage of a `map`": grammar.STAGE,
    "`output` of a step": grammar.OUTPUT,
    "`retry`": grammar.RETRY,
    "`validation`": grammar.VALIDATION,
    "`budget`": grammar.BUDGET,
}
_HEAD = """\
# Reference: every key

Made from the grammar by `scripts/reference.py`; do not edit it by hand. A key in bold must be
written. What the keys mean together is told in [the guide](recipes.md). `stretto schema` prints the
same as a JSON Schema, for editors.
"""


def page() -> str:
    return "\n".join([_HEAD, *(_section(title, shape) for title, shape in SECTIONS.items())])


def _section(title: str, shape: Shape) -> str:
    rows = "".join(_row(key) for key in shape.keys)
    section = f"## {title}\n\n{shape.about}\n\n| key | value | meaning |\n|---|---|---|\n{rows}"
    if not shape.foreign:
        return section
    others = "".join(f"| `{word}` | {_cell(hint)} |\n" for word, hint in shape.foreign.items())
    note = "Words of other tools, which are refused with a hint:"
    return f"{section}\n{note}\n\n| word | hint |\n|---|---|\n{others}"


def _row(key: Key[object]) -> str:
    name = f"**`{key.name}`**" if key.is_required else f"`{key.name}`"
    return f"| {name} | {_cell(_value(key.kind))} | {_cell(key.about)} |\n"


def _value(kind: Kind[object]) -> str:
    """What may stand behind the key, as an author would say it."""
    match kind:
        case ShapeOf():
            return _link(kind.shape)
        case ListOf():
            return _list(kind)
        case MapOf():
            return f"mapping of {'id' if kind.keys_are_ids else 'text'} → {_value(kind.value)}"
        case NameOr():
            return f"{_value(kind.name)}, or {_value(kind.mapped)}"
        case Either():
            return f"{_value(kind.many)}, or mapping of name → the rest"
        case Choice():
            return " · ".join(
                f"`{choice}`" for choice in dict.fromkeys((*kind.choices, *kind.same))
            )
        case Count():
            return f"{kind.least:,} to {kind.most:,}"
        case Amount() | Flag():
            return kind.called
        case Identifier():
            return "id"
        case Text():
            return "one line" if kind.one_line else "text"
        case AnyMap():
            return "mapping"
        case Anything():
            return "anything"
        case _:
            return kind.called


def _list(kind: ListOf[object]) -> str:
    one = _value(kind.item)
    many = f"list of {_PLURALS.get(one, one)}"
    if kind.or_commas:
        return f"{many}, or text with commas"
    return f"{many}, or one" if kind.or_one else many


def _link(shape: Shape) -> str:
    title = next(title for title, known in SECTIONS.items() if known is shape)
    anchor = title.lower().replace("`", "").replace(":", "").replace(" ", "-")
    called = shape.called.strip("'").removeprefix("a ").removeprefix("an ")
    return f"[{called}](#{anchor})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(page(), end="")
