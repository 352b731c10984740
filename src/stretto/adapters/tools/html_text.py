"""Turn a web page, however broken, into the text that a reader would see, with its links.

This runs as a program of its own, because some pages keep a decoder or the parser busy for minutes
and only a process can be stopped. So it imports nothing of this package. It reads from stdin a line
of JSON (the charset, whether the page is HTML) and the bytes of the page, and writes UTF-8 to stdout.
"""

import json
import re
import sys
from html.parser import HTMLParser

_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object"})
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body dd details div dl dt fieldset figcaption figure "
        "footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tr ul",
    )
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CELLS = frozenset({"td", "th"})
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")
_EMPTY_LINES = re.compile(r"\n[ \n]*\n")


def text_of(html: str) -> str:
    page = _Page()
    page.feed(html)
    page.close()
    return page.text()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._hidden: list[str] = []  # the open elements that nobody sees
        self._links: list[str] = []
        self._is_preformatted = False
        self._is_title = False
        self._title = ""

    def text(self) -> str:
        lines = (line.strip(" ") for line in "".join(self._parts).split("\n"))
        body = _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()
        title = " ".join(self._title.split())
        return f"{title}\n\n{body}" if title else body

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "title":
            self._is_title = True
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag in _CELLS:
            self._parts.append(" | ")
        elif tag in _BLOCKS:
            self._is_preformatted = tag == "pre"
            mark = "- " if tag == "li" else _HEADINGS.get(tag, "")
            self._parts.append(f"\n{'' if tag in ('li', 'tr') else chr(10)}{mark}")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            # Whatever was opened inside it and never closed ends with it.
            last = len(self._hidden) - 1 - self._hidden[::-1].index(tag)
            del self._hidden[last:]
        elif tag == "title":
            self._is_title = False
        elif tag == "a" and self._links:
            target = self._links.pop()
            if target.startswith(("http://", "https://", "/")) and not self._hidden:
                self._parts.append(f" ({target})")
        elif tag in _BLOCKS:
            self._is_preformatted = False
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._is_title and not self._hidden:
            self._title += data
        elif not self._hidden:
            flat = data if self._is_preformatted else _BLANKS.sub(" ", data.replace("\n", " "))
            self._parts.append(flat)


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    page = sys.stdin.buffer.read().decode(request["charset"], "replace")
    text = text_of(page) if request["is_html"] else page
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
