"""How many words, sentences, bullets … a text has. In: a text. Out: the fewest and the most that
one may count, for people count these in more than one way; None where nobody can."""

import re
from typing import NamedTuple

from stretto.validation.rules.checks import Unit

_FENCED = re.compile(r"(?ms)^[ \t]*```.*?^[ \t]*```[^\n]*$")
_BULLET = re.compile(r"(?m)^([ \t]*)(?:[-*+•–‣◦])[ \t]+\S")
_NUMBERED = re.compile(r"(?m)^([ \t]*)(?:\d{1,3}[.)])[ \t]+\S")
_HEADING = re.compile(r"(?m)^[ ]{0,3}(#{1,6})[ \t]+(\S[^\n]*)$")
_UNDERLINED = re.compile(r"(?m)^(?![ \t]*[-*+#>|])(\S[^\n]*)\n(=+|-{2,})[ \t]*$")
_BOLD_LINE = re.compile(r"(?m)^[ \t]*\*\*([^*\n]+)\*\*:?[ \t]*$")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|$)")
_ABBREVIATED = re.compile(
    r"(?i)(?:\b(?:e\.g|i\.e|etc|vs|dr|mr|mrs|ms|inc|ltd|st|no|approx|fig|cf|[a-z])|\b\d+)\.$"
)
# Scripts that put no blanks between words.
_UNSPACED = re.compile(
    "[぀-ヿ㐀-鿿豈-﫿\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff]"
)


class Counted(NamedTuple):
    fewest: int
    most: int


def count(text: str, unit: Unit) -> Counted | None:
    match unit:
        case "words":
            return _words(text)
        case "characters":
            return _range(len(text.strip()), len(text))
        case "sentences":
            return _sentences(text)
        case "lines":
            lines = text.strip().splitlines()
            return _range(sum(bool(line.strip()) for line in lines), len(lines))
        case "paragraphs":
            return _paragraphs(text)
        case "bullets":
            return _bullets(text)
        case "headings" | "sections":
            return _headings(text)


def titles(text: str) -> list[str]:
    """What the headings say, however Markdown writes them."""
    prose = _FENCED.sub("", text)
    found = [heading[2].rstrip("# \t") for heading in _HEADING.finditer(prose)]
    found += [heading[1] for heading in _UNDERLINED.finditer(prose)]
    return found + [heading[1] for heading in _BOLD_LINE.finditer(prose)]


def _words(text: str) -> Counted | None:
    if _UNSPACED.search(text):
        return None
    # A dash or a bullet between blanks is no word; one may count well-known as one or two.
    found = [word for word in text.split() if any(map(str.isalnum, word))]
    joints = sum(len(re.findall(r"(?<=\w)[-–—/](?=\w)", word)) for word in found)
    return _range(len(found), len(found) + joints)


def _sentences(text: str) -> Counted | None:
    if _UNSPACED.search(text):
        return None
    ends = [end.end() for end in _SENTENCE_END.finditer(text)]
    length = len(text.rstrip())
    doubtful = sum(_is_abbreviated(text, end) for end in ends if end < length)
    tail = text[ends[-1] if ends else 0 :]
    # Headings and bullets often end without a stop: each may be a sentence or none.
    unended = sum(any(map(str.isalnum, line)) for line in tail.splitlines())
    inside = sum(
        any(map(str.isalnum, line)) and not _SENTENCE_END.search(line.rstrip()[-3:])
        for line in text.splitlines()
    )
    return _range(len(ends) - doubtful, len(ends) + max(unended, inside))


def _is_abbreviated(text: str, end: int) -> bool:
    return _ABBREVIATED.search(text[max(0, end - 12) : end]) is not None


def _paragraphs(text: str) -> Counted:
    blocks = [block for block in re.split(r"\n[ \t]*\n", text.strip()) if block.strip()]
    prose = [block for block in blocks if re.match(r"\s*(?:[\w\"'“(*_\[]|$)", block)]
    lists = [block for block in prose if _BULLET.match(block) or _NUMBERED.match(block)]
    bold = [block for block in prose if _BOLD_LINE.fullmatch(block)]
    return _range(len(prose) - len(lists) - len(bold), len(blocks))


def _bullets(text: str) -> Counted:
    prose = _FENCED.sub("", text)
    indents = [len(bullet[1].expandtabs()) for bullet in _BULLET.finditer(prose)]
    numbered = len(_NUMBERED.findall(prose))
    outermost = indents.count(min(indents, default=0))
    return _range(outermost, len(indents) + numbered)


def _headings(text: str) -> Counted:
    prose = _FENCED.sub("", text)
    levels = [len(heading[1]) for heading in _HEADING.finditer(prose)]
    levels += [1 if rule[2][0] == "=" else 2 for rule in _UNDERLINED.finditer(prose)]
    bold = len(_BOLD_LINE.findall(prose))
    if not levels:
        return _range(0, bold)
    # A single heading above all others is the title: one may count what stands below it alone.
    counts = sorted((level, levels.count(level)) for level in set(levels))
    sections = counts[0][1]
    if sections == 1 and len(counts) > 1:
        sections = counts[1][1]
    return _range(sections, len(levels) + bold)


def _range(fewest: int, most: int) -> Counted:
    return Counted(max(0, min(fewest, most)), max(fewest, most))
