"""Whatever a text holds, a terminal only shows it."""

import ast
import json
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given, strategies as st

from stretto.text.visible import encodable, escaped, one_line, visible, visible_line

CLI = Path(__file__).parents[2] / "src" / "stretto" / "cli"
HARMFUL = [
    "\x00", "\x07", "\x08", "\x0b", "\x0c", "\x0e", "\r", "\x1b", "\x7f", "\x80", "\x85", "\x90",
    "\x9b", "\x9d", "\u00ad", "\u061c", "\u115f", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f",
    "\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\u3164", "\ufeff",
    "\ufffe", "\ud800", "\udfff", "\U000e0041", "\U000e0100",
]  # fmt: skip


@pytest.mark.parametrize("letter", HARMFUL, ids=lambda letter: f"{ord(letter):x}")
def test_no_harmful_character_is_left(letter: str) -> None:
    text = f"a{letter}b"
    for made in (visible(text), visible_line(text), one_line(text)):
        assert letter not in made
        assert made.startswith("a")
        assert made.endswith("b")
    written = json.dumps(text, ensure_ascii=False)
    assert letter not in escaped(written)
    assert json.loads(escaped(written)) == text


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\nof two lines", "größer — “quoted” …", "日本語", "عربى", "עברית", "می\u200cخواهم",
        "क्\u200dष", "👨\u200d👩\u200d👧", "e\u0301", "❤\ufe0f", "a\u00a0b", "[link=x]not markup[/link]",
    ],
)  # fmt: skip
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert json.loads(escaped(json.dumps(text, ensure_ascii=False))) == text


def test_line_breaks_of_any_kind_do_not_break_what_is_one_line() -> None:
    assert visible("a\r\nb\nc") == "a\nb\nc"
    assert visible_line("a\r\nb") == "a␍␊b"
    assert one_line("a\r\n\n b\u2028c\x0bd") == "a b c␋d"


@given(st.text(st.characters(exclude_categories=())))
def test_of_any_text_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    for made in (visible(text), visible_line(text), one_line(text)):
        made.encode()
        left = {letter for letter in made if category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        arabic = {
            letter for letter in left if "\u0600" <= letter <= "\u08e2" or letter in "\u200c\u200d"
        }
        others = {letter for letter in left - arabic if letter > "\uffff"}  # hieroglyph joiners
        assert left <= {"\n", "\t"} | arabic | others
    assert len(visible_line(text)) == len(text)


@given(st.text(st.characters(exclude_categories=())))
def test_json_says_the_same(text: str) -> None:
    assert json.loads(escaped(json.dumps({"t": text}, ensure_ascii=False))) == {"t": text}


def test_commands_print_in_one_place() -> None:
    """Whatever prints elsewhere would print unfiltered."""
    found = [
        str(file.relative_to(CLI))
        for file in sorted(CLI.rglob("*.py"))
        if file.name != "terminal.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and _prints(node.func)
    ]
    # `stretto --version` and the words about a signal and about slow imports, before anything is
    # imported, and what the system says of a full disk.
    assert found == ["main.py", "main.py", "streams.py", "streams.py"]


def _prints(function: ast.expr) -> bool:
    words = ast.unparse(function)
    return words == "print" or (words.startswith("click.") and words.removeprefix("click.") in (
        "echo", "secho", "style", "confirm", "prompt", "echo_via_pager", "pause", "clear",
    )) or words.endswith(("stdout.write", "stderr.write", "buffer.write"))  # fmt: skip


def test_a_terminal_without_our_signs_gets_their_likeness():
    assert encodable("1s · a → b …", "utf-8") == "1s · a → b …"
    assert encodable("1s · a → b …", "ascii") == "1s - a -> b ..."
    assert encodable("é · 漢", "latin-1") == "é · ?"
