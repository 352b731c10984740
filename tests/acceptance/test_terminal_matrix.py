"""Every command on terminals of three widths, in pipes, without colours and in ASCII."""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stretto.cli.commands import COMMANDS
from stretto.text.short import columns
from support import shown
from support.cli import Said, environment, stretto
from support.warm_interpreter import show_forked

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# How a live view moves the cursor; nothing else may be sent to a terminal.
MOVES = re.compile(r"\x1b\[(?:\?[0-9]+[hl]|[0-9]*[ABCDGJK]|[0-9;]*H)")
OBEYED = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]")
FOREIGN = re.compile("[漢字会社]")  # what the project itself holds


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ids = shown.make_project(folder)

    def words(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._ids.get(word[1:], word) if word[:1] == "@" else word for word in words)

    def at(self, width: int, words: tuple[str, ...], env: Mapping[str, str] | None = None) -> str:
        """All that came on a terminal of this width."""
        environ = environment(self.folder, {"TERM": "xterm-256color", **(env or {})})
        done = show_forked(list(self.words(words)), self.folder, environ, (24, width), 120)
        assert b"Traceback" not in done.out, (words, done.out)
        return done.out.decode("utf-8")

    def piped(self, words: tuple[str, ...], env: Mapping[str, str] | None = None) -> Said:
        said = stretto(self.folder, *self.words(words), env=env)
        assert "Traceback" not in said.out + said.err, (words, said)
        return said


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    # A short path: what is too wide is our doing then.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Project(Path(folder))


def too_wide(screen: str, width: int) -> list[str]:
    """A single word, such as a path, stays whole, so that it can be copied."""
    lines = re.split(r"[\r\n]+", MOVES.sub("", COLOURS.sub("", screen)))
    return [line for line in lines if columns(line) > width and len(line.split()) > 1]


def test_every_command_is_in_the_matrix() -> None:
    assert {words[1] for words in shown.helping()} == set(COMMANDS)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(project: Project, width: int) -> None:
    helping = shown.helping() if width < 80 else ()  # the text is the same
    every = (*helping, *shown.showing(), *shown.driving())
    found = {words: too_wide(project.at(width, words), width) for words in every}
    assert {words: lines for words, lines in found.items() if lines} == {}


def test_no_color_leaves_bold_and_underlined_alone(project: Project) -> None:
    for words in (*shown.showing(), *shown.driving()):
        text = project.at(80, words, {"NO_COLOR": "1"})
        assert not re.search(r"\x1b\[[0-9;]*[34][0-9]", text), (words, text)


def test_a_dumb_terminal_gets_nothing_but_text(project: Project) -> None:
    for words in shown.showing():
        text = project.at(80, words, {"TERM": "dumb"}).replace("\r\n", "\n")
        assert not OBEYED.search(text.replace("^D\b\b", "")), (words, text)


def test_a_dumb_terminal_follows_a_run_by_lines(project: Project) -> None:
    for words in shown.driving():
        text = project.at(80, words, {"TERM": "dumb"}).replace("\r\n", "\n")
        assert not OBEYED.search(text), (words, text)
        assert too_wide(text, 80) == [], words


def test_a_pipe_gets_no_control_codes(project: Project) -> None:
    for words in (*shown.showing(), *shown.driving(), *shown.data()):
        said = project.piped(words)
        assert not OBEYED.search(said.out + said.err), (words, said)


def test_a_terminal_in_the_c_locale_gets_ascii(project: Project) -> None:
    for words in (*shown.helping(), *shown.showing(), *shown.driving()):
        text = project.at(60, words, {"LANG": "C"})
        assert text.isascii(), (words, [line for line in text.split("\n") if not line.isascii()])


def test_a_pipe_in_the_c_locale_gets_our_words_in_ascii(project: Project) -> None:
    """The letters of others stay: a program may want them."""
    for words in (("plan", shown.NAME, "-i", "topic=x"), ("explain", shown.NAME), ("list",),
                  ("validate", "bad.yaml"), ("runs",), ("report", "@failed"), ("help", "draft"),
                  ("run", "small", "--model", "scripted:b-fails.yaml")):  # fmt: skip
        said = project.piped(words, {"LANG": "C"})
        assert FOREIGN.sub("", said.out + said.err).isascii(), (words, said)
    whole = project.piped(("output", "@complete"), {"LANG": "C"})
    assert whole.out == f"{shown.ANSWER}\n"


def test_python_saying_utf_8_for_the_c_locale_is_not_the_user_saying_it(project: Project) -> None:
    said = project.piped(("list",), {"LANG": "C", "LC_ALL": "C.UTF-8"})
    assert said.code == 0
    for variables, is_plain in (
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LC_ALL": "C", "LANG": "C.UTF-8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C.UTF-8"}, False),
    ):
        graph = project.piped(("validate", "bad.yaml"), variables).out
        assert graph.isascii() == is_plain, variables


@pytest.mark.parametrize("words", list(shown.driving()), ids=" ".join)
def test_stdout_is_the_answer_and_nothing_else(project: Project, words) -> None:
    said = project.piped(words)
    if "-o" in words:
        assert said.out == ""
    elif "--report" in words:
        assert said.out.startswith("## Workflow Execution Report: small\n")
    elif words[0] == "batch":
        assert said.out == "## 1. What Acme sells and to whom\n\nFine.\n"
    else:
        whole = "scripted:whole.yaml" in words
        assert said.out == (f"{shown.ANSWER}\n" if whole else "Fine.\n"), said


@pytest.mark.parametrize(
    "words", [words for words in shown.data() if "--json" in words], ids=" ".join
)
def test_json_is_alone_on_stdout_and_everywhere(project: Project, words) -> None:
    said = project.piped(words)
    assert said.err == ""
    assert all(isinstance(json.loads(line), dict) for line in said.out.splitlines())


def test_states_have_the_same_word_everywhere(project: Project) -> None:
    for run, word in (("complete", "complete"), ("failed", "partial"), ("waiting", "waiting")):
        handle = project.words((f"@{run}",))[0]
        assert json.loads(project.piped(("report", handle, "--json")).out)["status"] == word
        assert f"Status: {word.upper()}" in project.piped(("report", handle)).out
        row = next(
            line for line in project.piped(("runs", "--limit", "9999")).out.splitlines()
            if line.startswith(handle)
        )  # fmt: skip
        assert row.split()[1] == word
        preposition = "after" if run == "waiting" else "in"
        assert f"{word} {preposition} " in project.piped(("watch", handle)).err
