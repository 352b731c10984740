"""Say what a YAML syntax error means. In: PyYAML's error. Out: a Problem at the place to mend.

libyaml reports where it gave up; the mistake is often earlier, and its words are about
tokens. Each row below is one such message with what an author did to get it.
"""

import re
from typing import Any

from stretto.documents.source import Source
from stretto.problems import Place, Problem

# (part of libyaml's message, what we say, hint, look at where the construct began?)
_KNOWN: tuple[tuple[str, str, str, bool], ...] = (
    ("mapping values are not allowed", "a ':' cannot stand here",
     "quote the text if it contains ': ', or check this line's indentation", False),
    ("could not find expected ':'", "this line is not `key: value`",
     "add the ':' after the key, or indent the line into the text above it", True),
    ("did not find expected key", "this does not fit the mapping it stands in",
     "check the indentation, and quote text that starts with a quote or bracket", False),
    ("did not find expected '-' indicator", "this does not fit the list it stands in",
     "every item of a list starts with '- ' in the same column", False),
    ("did not find expected node content", "a value is missing here, or a bracket is not closed",
     "write the value, or close the bracket before it", False),
    ("did not find expected ',' or ']'", "the '[' is not closed, or a ',' is missing",
     "close it with ']'", True),
    ("did not find expected ',' or '}'", "the '{' is not closed, or a ',' is missing",
     "close it with '}', or put quotes around {{ … }}", True),
    ("found unexpected end of stream", "the quote is not closed", "close it on its last line", True),
    ("found unexpected document indicator", "the quote is not closed", "close it", True),
    ("found unknown escape character", "unknown escape in double quotes",
     "write '\\\\' for a backslash, or use single quotes", False),
    ("block sequence entries are not allowed", "a list item cannot start here",
     "put the '- ' on a line of its own, below its key", False),
    ("block collections are not allowed", "a list or mapping cannot start here",
     "put it on a line of its own", False),
    ("cannot start any token", "this character cannot start a value", "put the value in quotes",
     False),
    ("did not find expected alphabetic or numeric", "'*' or '&' starts an alias here",
     "put the value in quotes", True),
    ("wrong indentation", "the indentation is wrong", "align it with its neighbours", False),
    ("found invalid Unicode character escape", "this is not a Unicode character",
     "write the character itself", False),
)  # fmt: skip
_UNQUOTED_BRACES = re.compile(r"(?:^|:\s|-\s)\s*(\{\{)")


def explain(error: Any, source: Source) -> Problem:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    if mark is None:
        return source.problem("RCP005", None, f"not YAML: {said}")
    place = Place(mark.line + 1, mark.column + 1)
    line = source.line(place.line)
    if "\t" in line[: place.column] and line[: place.column].strip(" \t-") == "":
        tab = Place(place.line, line.index("\t") + 1)
        return source.problem("RCP006", tab, "a tab cannot indent YAML", "use spaces")
    braces = _braces(error, source, place)
    if braces is not None:
        message = "text that starts with '{{' needs quotes"
        return source.problem("RCP005", braces, message, 'write "{{ … }}"')
    if place.line > len(source.lines) or not source.line(place.line)[place.column - 1 :].strip():
        place = _last_open_bracket(source) or place
    for part, says, hint, at_start in _KNOWN:
        if part in said:
            began = getattr(error, "context_mark", None) if at_start else None
            if began is not None:
                place = Place(began.line + 1, began.column + 1)
            return source.problem("RCP005", place, f"not YAML: {says}", hint)
    return source.problem("RCP005", place, f"not YAML: {said}", "check the line and the one before")


def _last_open_bracket(source: Source) -> Place | None:
    """The file ended inside a bracket: point at that one, not at the end."""
    open_at: list[int] = []
    for at, letter in enumerate(source.text):
        if letter in "[{":
            open_at.append(at)
        elif letter in "]}" and open_at:
            open_at.pop()
    return source.place_of_index(open_at[-1]) if open_at else None


def _braces(error: Any, source: Source, place: Place) -> Place | None:
    """`input: {{inputs.topic}} today` without quotes: the commonest slip of all."""
    began = getattr(error, "context_mark", None)
    for number in {place.line, began.line + 1 if began else place.line}:
        found = _UNQUOTED_BRACES.search(source.line(number))
        if found:
            return Place(number, found.start(1) + 1, 2)
    return None
