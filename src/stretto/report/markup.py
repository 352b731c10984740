"""HTML that cannot be broken by what it shows. In: text and Html. Out: Html.

Every plain string is escaped where it enters; only `tag` and `trusted` make Html. So what a model
says can never be anything but text.
"""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from stretto.text.visible import visible

_EMPTY_TAGS = ("br", "hr", "meta")


class Html(str):
    """Markup: shown as it is."""

    __slots__ = ()


Content: TypeAlias = "str | Iterable[Content]"  # a str that is no Html is text
NOTHING = Html("")


def tag(name: str, /, *content: Content, **attributes: str | bool) -> Html:
    """`class_` and `aria_label` are written `class` and `aria-label`; False leaves one out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY_TAGS:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(content)}</{name}>")


def join(content: Iterable[Content]) -> Html:
    return Html("".join(_html(each) for each in content))


def trusted(markup: str) -> Html:
    """For markup of our own making alone: the drawing, the style sheet."""
    return Html(markup)


def _html(content: Content) -> str:
    if isinstance(content, Html):
        return content
    return escape(visible(content)) if isinstance(content, str) else join(content)


def _attribute(key: str, value: str | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(visible(value))}"'
