"""What a model wrote in Markdown is shown as it was meant, and can do its reader no harm."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from stretto.report.rendered_markdown import MOST_MARKDOWN_CHARACTERS, render_markdown
from support.hostile_markdown import HOSTILE, hostile

# Every tag there may be, with every attribute that it may have.
_ALLOWED = {
    **{name: set() for name in ("p", "ul", "li", "em", "strong", "s", "code", "blockquote")},
    **{name: set() for name in ("h3", "h4", "h5", "h6", "br", "hr", "thead", "tbody", "tr")},
    **{name: {"scope", "class"} for name in ("th", "td")},
    "table": set(),
    "ol": {"start"},
    "pre": {"tabindex", "role", "aria-label"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "span": {"class"},
    "a": {"href", "rel", "target"},
}


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert {name for name, _ in attrs} <= _ALLOWED[tag], (tag, attrs)
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag not in ("br", "hr"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.words += data


def rendered(text: str) -> str:
    found = render_markdown(text, 2, "the answer")
    assert found is not None
    return found


def test_there_are_enough_hostile_samples():
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("sample", hostile())
def test_a_hostile_text_is_harmless(sample: str):
    for text in (sample, f"before\n\n{sample}\n\nafter", f"- {sample}"):
        found = _Tags(rendered(text))
        assert all(re.match(r"https?://|mailto:", link) for link in found.links)
        assert not any("site.test" in link for link in found.links)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", found.words)


@given(st.lists(st.sampled_from(hostile()) | st.text(max_size=9), max_size=6).map("".join))
def test_so_is_any_mixture_of_them(text: str):
    _Tags(rendered(text))


def test_what_markdown_means_is_shown():
    text = (
        "# Title\nOne *soft* **hard** ~~gone~~ `code`\nnext line\n\n"
        "3. three\n4. four\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```py\nx < 1\n```\n---\n> said"
    )
    found = rendered(text)
    for expected in (
        "<h3>Title</h3>",
        "<em>soft</em> <strong>hard</strong> <s>gone</s> <code>code</code><br>next line",
        '<ol start="3"><li>three</li><li>four</li></ol>',
        '<th scope="col" class="right">b</th>',
        '<td class="right">2</td>',
        "<code>x &lt; 1</code></pre>",
        "<hr>",
        "<blockquote><p>said</p></blockquote>",
    ):
        assert expected in found, expected


def test_a_link_names_the_place_it_leads_to():
    assert ">good-bank.test</a><span" in rendered("[good-bank.test](https://evil.test/x)")
    assert "(evil.test)" in rendered("[good-bank.test](https://evil.test/x)")
    assert "<span" not in rendered("<https://a.test/x>")


def test_an_image_is_named_and_not_loaded():
    found = rendered("![a chart](https://a.test/c.png)")
    assert "image, not loaded: a chart, https://a.test/c.png" in found
    assert "<img" not in found


def test_what_cannot_be_rendered_whole_is_not_rendered():
    assert render_markdown("".join(f"{'  ' * n}- deep\n" for n in range(60)), 2, "x") is None
    assert render_markdown(">" * 50 + " deep", 2, "x") is None
    assert render_markdown("x" * (MOST_MARKDOWN_CHARACTERS + 1), 2, "x") is None
    assert "deep" in rendered(">" * 5 + " deep")


@pytest.mark.parametrize("piece", ["[", "![", "*a **b _c ", "<", "[a](<b", "**a", "|a", "> ", "`"])
def test_no_text_takes_long(piece: str):
    text = (piece * MOST_MARKDOWN_CHARACTERS)[:MOST_MARKDOWN_CHARACTERS]
    began = time.process_time()
    render_markdown(text, 2, "x")
    assert time.process_time() - began < 10
