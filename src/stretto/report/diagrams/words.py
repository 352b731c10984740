"""Text that fits its place. In: any text. Out: one printable line, measured in columns."""

from unicodedata import category, east_asian_width

from stretto.text.visible import one_line


def plain(text: str) -> str:
    """One line that is not empty: ids and names may hold anything."""
    return one_line(text) or "?"


def columns(text: str) -> int:
    """How wide it is on a terminal: some scripts take two columns a character."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def shorten(text: str, most: int) -> str:
    """The middle goes first: names differ in how they begin and how they end."""
    if columns(text) <= most:
        return text
    head, tail = "", ""
    room = most - 1
    for first, last in zip(text, reversed(text), strict=True):
        if columns(head + first + tail) > room:
            break
        head += first
        if columns(head + last + tail) > room:
            break
        tail = last + tail
    return f"{head}…{tail}" if most > 0 else ""


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0  # an accent on the character before it
    return 2 if east_asian_width(character) in "WF" else 1
