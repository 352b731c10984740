import json

import pytest

from stretto.problems import Place, Problem
from stretto.problems.errors import InvalidRecipe, NotFound
from stretto.problems.render import as_json, as_text, count, error_as_json, error_as_text
from stretto.text.short import columns


def problem(line: str, column: int, width: int = 1, **more: str) -> Problem:
    return Problem(
        "RCP104", "it is wrong", "news.yaml", Place(14, column, width), source_line=line, **more
    )


def shown(line: str, column: int, width: int = 1) -> tuple[str, str]:
    """The source line and the caret line, without the margin."""
    lines = as_text(problem(line, column, width)).split("\n")
    assert lines[2].startswith("14│ ")
    assert lines[3].startswith("  │ ")
    return lines[2][4:], lines[3][4:]


def test_a_problem_is_shown_as_the_style_guide_draws_it():
    drawn = Problem(
        "RCP104",
        "step 'review' depends on 'drafts', which this recipe does not define",
        "news.yaml",
        Place(14, 18, 6),
        "steps[2].depends_on[0]",
        "did you mean 'draft'?",
        "    depends_on: [drafts]",
    )
    assert as_text(drawn) == (
        "RCP104 step 'review' depends on 'drafts', which this recipe does not define\n"
        "  ┌ news.yaml:14:18\n"
        "14│     depends_on: [drafts]\n"
        "  │                  ^^^^^^ did you mean 'draft'?"
    )


def test_a_problem_without_a_place_has_no_caret():
    assert as_text(Problem("RCP001", "gone")) == "RCP001 gone"
    assert as_text(Problem("RCP001", "gone", "a.yaml")) == "RCP001 gone\n  ┌ a.yaml"
    assert as_text(Problem("RCP301", "missing", hint="-i a=…")) == "RCP301 missing\n  = -i a=…"


def test_a_text_without_a_file_is_called_so():
    assert "<text>:1:1" in as_text(Problem("RCP005", "no", place=Place(1, 1)))


def test_the_caret_keeps_tabs_so_that_it_stands_under_its_word():
    assert shown("\ta:\tb", 5) == ("\ta:\tb", "\t  \t^")


def test_wide_characters_take_two_columns_and_marks_none():
    assert shown("日本 x", 4) == ("日本 x", "     ^")
    assert shown("日本", 1, 2) == ("日本", "^^^^")
    assert shown("e\u0301 x", 4) == ("e\u0301 x", "  ^")


def test_a_caret_is_never_wider_than_its_line():
    assert shown("abc", 2, 500) == ("abc", " ^^")


def test_a_place_past_the_end_gets_a_caret_behind_the_line():
    assert shown("abc", 4) == ("abc", "   ^")
    assert shown("", 1) == ("", "^")
    assert shown("abc", 999) == ("abc", "   ^")


@pytest.mark.parametrize("column", [1, 60, 61, 100, 4990, 5000])
def test_a_long_line_is_cut_around_its_place(column):
    line = "".join(chr(ord("a") + i % 26) for i in range(5000))
    part, caret = shown(line, column)
    assert len(part) == 120
    assert part in line
    assert part[caret.index("^")] == line[column - 1]


def test_what_a_file_says_cannot_move_the_cursor():
    hostile = Problem(
        "RCP101",
        "a step has no key '\x1b[2J\r\n'",
        "a\x1b.yaml",
        Place(1, 1),
        hint="did you mean '\x07'?",
        source_line="\x1b[31m\u202e: 1",
    )
    text = as_text(hostile)
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert text.count("\n") == 3
    assert "␛[2J" in text


def test_json_has_the_place_in_plain_numbers():
    assert as_json(problem("    x: y", 5, path="steps[0].x", hint="no")) == {
        "code": "RCP104",
        "file": "news.yaml",
        "line": 14,
        "column": 5,
        "path": "steps[0].x",
        "message": "it is wrong",
        "hint": "no",
    }
    assert as_json(Problem("RCP301", "x"))["line"] is None


def test_an_error_has_one_shape_on_every_surface():
    error = InvalidRecipe("news.yaml has 1 problem", [problem("x", 1)], hint="fix it")
    shape = error_as_json(error)
    assert json.loads(json.dumps(shape)) == shape
    assert shape == {
        "ok": False,
        "error": {
            "kind": "invalid_recipe",
            "message": "news.yaml has 1 problem",
            "details": {"problems": [as_json(problem("x", 1))], "hint": "fix it"},
        },
    }
    bare = error_as_json(NotFound("there is no such workflow"))
    assert bare["error"] == {
        "kind": "not_found",
        "message": "there is no such workflow",
        "details": {},
    }


def test_an_error_is_shown_as_its_problems_or_else_its_message():
    two = InvalidRecipe("two", [problem("b", 2), problem("a", 1)])
    assert error_as_text(two) == f"{as_text(problem('a', 1))}\n\n{as_text(problem('b', 2))}"
    assert error_as_text(NotFound("gone")) == "gone"
    assert error_as_text(NotFound("gone", hint="look")) == "gone\n  = look"


def test_problems_are_counted_in_words():
    assert count([problem("x", 1)]) == "1 problem"
    assert count([]) == "0 problems"
    assert count(iter([problem("x", 1), problem("x", 1)])) == "2 problems"


@pytest.mark.parametrize("room", [40, 60, 80])
@pytest.mark.parametrize("column", [1, 30, 70, 139])
def test_a_problem_fits_its_terminal(room, column):
    long = problem("漢 " + "word " * 28, column, hint="write something that is rather long here")
    lines = as_text(long, room).split("\n")
    assert max(map(columns, lines)) <= room
    assert "rather long" in " ".join(" ".join(lines).split())
