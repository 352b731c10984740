"""Markdown that a model wrote, as Html. In: any text. Out: a few harmless tags around that text.

Raw HTML stays text. Only absolute web and mail addresses become links, each with the host that it
leads to beside it; an image is named and never loaded. Whatever this module does not know is text.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from stretto.report.markup import Html, join, tag
from stretto.text.visible import visible

# Longer hostile ones take seconds to read.
MOST_MARKDOWN_CHARACTERS = 40_000
_LINK = re.compile(r"(?i)https?://[^\s/?#]|mailto:[^\s]+@")
_TAGS: Mapping[str, str] = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "em": "em",
    "strong": "strong",
    "s": "s",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
}
_DEEPEST_HEADING = 6
_DEEPEST_LEVEL = 20


def render_markdown(text: str, under: int, name: str) -> Html | None:
    """`under`: the level of the heading that it stands under. `name`: says what it is.

    None: it is too long, or its lists and quotes are nested so deeply that some would be lost.
    """
    if len(text) > MOST_MARKDOWN_CHARACTERS:
        return None
    tokens = _reader().parse(visible(text))
    if any(token.level >= _DEEPEST_LEVEL - 1 for token in tokens):
        return None
    content = _Writer(under, name).children(SyntaxTreeNode(tokens))
    return tag("div", content, class_="prose")


@cache
def _reader() -> MarkdownIt:
    # Line breaks stay: what models write as lines is meant as lines.
    options = {"html": False, "breaks": True, "maxNesting": _DEEPEST_LEVEL}
    reader = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    reader.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]
    return reader


class _Writer:
    def __init__(self, under: int, name: str) -> None:
        self._under = under
        self._name = name

    def children(self, node: SyntaxTreeNode) -> Html:
        return join(self._html(child) for child in node.children)

    def _html(self, node: SyntaxTreeNode) -> Html:
        write = _WRITERS.get(node.type)
        if write is not None:
            return write(self, node)
        inner = self.children(node) if node.children else join([node.content])
        # The paragraphs of a list without blank lines are hidden: its elements are lines.
        if node.type not in _TAGS or (node.type == "paragraph" and node.hidden):
            return inner
        return tag(_TAGS[node.type], inner)

    def heading(self, node: SyntaxTreeNode) -> Html:
        level = min(_DEEPEST_HEADING, self._under + int(node.tag[1:]))
        return tag(f"h{level}", self.children(node))

    def ordered_list(self, node: SyntaxTreeNode) -> Html:
        start = node.attrs.get("start")
        return tag("ol", self.children(node), start=str(start) if start is not None else False)

    def code(self, node: SyntaxTreeNode) -> Html:
        words = tag("code", node.content.rstrip("\n"))
        return tag("pre", words, tabindex="0", role="group", aria_label=f"Code in {self._name}")

    def table(self, node: SyntaxTreeNode) -> Html:
        table, label = tag("table", self.children(node)), f"Table in {self._name}"
        return tag("div", table, class_="wide", tabindex="0", role="group", aria_label=label)

    def cell(self, node: SyntaxTreeNode) -> Html:
        side = str(node.attrs.get("style", "")).removeprefix("text-align:")
        place = side if side in ("right", "center") else False
        is_head = node.type == "th"
        return tag(node.type, self.children(node), scope="col" if is_head else False, class_=place)

    def link(self, node: SyntaxTreeNode) -> Html:
        address, words = str(node.attrs.get("href", "")), self.children(node)
        leaving = "noopener noreferrer nofollow"
        link = tag("a", words, href=address, rel=leaving, target="_blank")
        place = _place(address)
        # A text may name another place than the one it leads to.
        return link if place in words else join([link, tag("span", f" ({place})", class_="muted")])

    def image(self, node: SyntaxTreeNode) -> Html:
        said = (
            f"[image, not loaded: {node.content or 'without a text'}, {node.attrs.get('src', '')}]"
        )
        return tag("span", said, class_="muted")


def _place(address: str) -> str:
    try:
        parts = urlsplit(address)
        return parts.hostname or parts.path
    except ValueError:
        return address


_WRITERS: Mapping[str, Callable[[_Writer, SyntaxTreeNode], Html]] = {
    "heading": _Writer.heading,
    "ordered_list": _Writer.ordered_list,
    "fence": _Writer.code,
    "code_block": _Writer.code,
    "code_inline": lambda _, node: tag("code", node.content),
    "table": _Writer.table,
    "th": _Writer.cell,
    "td": _Writer.cell,
    "link": _Writer.link,
    "image": _Writer.image,
    "hr": lambda _, __: tag("hr"),
    "softbreak": lambda _, __: tag("br"),
    "hardbreak": lambda _, __: tag("br"),
}
