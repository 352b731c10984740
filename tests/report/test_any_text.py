"""Whatever a model says, the report keeps its shape."""

import re
from html.parser import HTMLParser

from hypothesis import given, strategies as st

from stretto.report.difference import difference, difference_as_text
from stretto.report.html import as_html
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of
from support.reported_runs import CHAIN, EVIL, Fail, driven

_PIECES = ["\n", "```", "~~~", "# ", "---", "<!--", "</pre>", "|", "`", "\\", "&lt;", "\x1b", EVIL]
_TEXTS = st.lists(st.sampled_from(_PIECES) | st.text(max_size=12), min_size=1).map("".join)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _run(output: str, error: str):
    return driven(CHAIN, {"b": Fail(error), "c": output}).state


# What only long, multi-line or formatted texts bring along.
_AS_NEEDED = {"details", "summary", "pre", "span"}
_OF_PROSE = {
    *("p", "ul", "ol", "li", "em", "strong", "s", "code", "pre", "blockquote", "br", "hr", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6", "span", "div"),
}


class _Frame(HTMLParser):
    """The tags around what was said; what is in it may hold only tags of its own."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self._depth = 0  # of divs within rendered prose
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "div" and (self._depth or ("class", "prose") in attrs):
            self._depth += 1
        elif self._depth:
            assert tag in _OF_PROSE
        elif tag not in _AS_NEEDED:
            self.tags.append(f"<{tag}")

    def handle_endtag(self, tag):
        if self._depth:
            self._depth -= tag == "div"
        elif tag not in _AS_NEEDED:
            self.tags.append(f"</{tag}")


def _tags(page: str) -> list[str]:
    return _Frame(page).tags


@given(_TEXTS, _TEXTS)
def test_the_page_has_the_same_tags(output, error):
    plain = as_html(report_of(_run("plain", "plain")))
    page = as_html(report_of(_run(output, error)))
    assert _tags(page) == _tags(plain)
    assert not _CONTROLS.search(page)


@given(_TEXTS, _TEXTS)
def test_the_markdown_has_the_same_headings(output, error):
    text = as_markdown(report_of(_run(output, error)))
    # As CommonMark reads it: a fence ends at the first line of at least as many ticks.
    headings, fence = [], ""
    for line in text.splitlines():
        ticks = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence:
            if ticks and ticks[1].startswith(fence) and not line.strip("` "):
                fence = ""
        elif ticks:
            fence = ticks[1]
        elif re.match(r" {0,3}#{1,6}(\s|$)", line):
            headings.append(line)
    assert not fence
    assert len(headings) == 6
    assert not _CONTROLS.search(text)


@given(_TEXTS, _TEXTS)
def test_a_difference_is_text_for_a_terminal(output, error):
    text = difference_as_text(difference(_run("plain", "plain"), _run(output, error)))
    assert not _CONTROLS.search(text)
