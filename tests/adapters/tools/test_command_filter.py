"""Which commands a filter lets through, and what cannot be smuggled past it."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stretto.adapters.tools.command_filter import CommandFilter, forbidden_because, read_filter
from stretto.adapters.tools.shell_words import NotPlain, simple_commands


def filters(*texts: str) -> list[CommandFilter]:
    found = [read_filter(text) for text in texts]
    return [each for each in found if each is not None]


GIT = filters("git diff:*", "git log:*", "npm run test:*", "ls")


@pytest.mark.parametrize(
    "command",
    [
        "git diff",
        "git diff --stat HEAD~1 -- 'a b.py'",
        "  git   log -5 ",
        "git diff && git log",
        "git diff | git log; ls",
        "git log\ngit diff\n",
        "git diff 2>&1",
        'git log --format="%H %s" --grep "a && b; c"',
        "git log # a comment; rm -rf /",
        "g'i't di\"ff\"",
        "npm run test -- --watch=false",
        "git log --since=1.day HEAD@{1}..main *.py '{a,b}' {}",
    ],
)
def test_a_command_whose_parts_all_match_may_run(command: str) -> None:
    assert forbidden_because(command, GIT) is None


@pytest.mark.parametrize(
    "word", ["{--output=x,HEAD}", "{{a},--output=x}", "{'--output=a b',x}", "a{1..9}"]
)
def test_braces_that_become_several_words_are_not_plain(word: str) -> None:
    assert "braces" in str(forbidden_because(f"git diff {word}", GIT))


@pytest.mark.parametrize(
    "command",
    [
        "git",
        "git push",
        "git difftool",
        "git -c core.pager=id diff",
        "rm -rf .",
        "ls -l",
        "git diff; rm -rf .",
        "git diff && rm x",
        "git diff || rm x",
        "git diff | sh",
        "git diff & rm x",
        "git diff\nrm x",
        "git diff $(rm x)",
        "git diff `rm x`",
        'git diff "$(rm x)"',
        'git diff "`rm x`"',
        "git diff <(rm x)",
        "git diff > out",
        "git diff >> out",
        "git diff 2> out",
        "git diff &> out",
        "git diff >& out",
        "git diff < /etc/passwd",
        "git diff << EOF\nx\nEOF",
        "git diff ${x@P}",
        "git diff $HOME",
        "git diff $'\\x3b' rm",
        "(git diff; rm x)",
        "{ git diff; }",
        "git() { rm x; }",
        "X=1 git diff",
        "! git diff",
        "if git diff; then rm x; fi",
        "env git diff",
        "exec git diff",
        "gi? diff",
        "git\\\ndiff",
        "git diff 'unclosed",
        'git diff "unclosed',
        "git diff \\",
        "git diff \x00",
        "git diff \r rm",
        "",
        "   ",
        "# nothing",
        "\\git\\ diff",
    ],
)  # fmt: skip
def test_everything_else_is_refused_with_what_may_run(command: str) -> None:
    why = forbidden_because(command, GIT)
    assert why is not None
    assert "You may run: git diff:*, git log:*, npm run test:*, ls" in why


def test_a_filter_is_a_prefix_of_words_or_one_command() -> None:
    assert read_filter("git diff:*") == CommandFilter("git diff:*", ("git", "diff"), True)
    assert read_filter("git *") == CommandFilter("git *", ("git",), True)
    assert read_filter("npm test") == CommandFilter("npm test", ("npm", "test"), False)
    assert read_filter("*") == CommandFilter("*", (), True)
    for text in ("", "a; b", "a > b", "$(x)", "'unclosed"):
        assert read_filter(text) is None, text


WORDS = st.text(st.sampled_from("abz '\"\\;&|#~*?{}!=-\t"), max_size=6)


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_words_are_what_a_shell_makes_of_them(words: list[str]) -> None:
    command = "printf '%s\\0' " + " ".join(map(shlex.quote, words))
    (parsed,) = simple_commands(command)
    ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True)
    assert parsed[2:] == ran.stdout.decode().split("\0")[:-1] == words


# Called by bash for each program that it does not find.
HANDLER = "command_not_found_handle() { printf '%s\\0' \"$1\" >&9; }\n"


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="there is no /bin/bash")
@settings(max_examples=60, deadline=None)
@example("\\\n 1")
@given(st.text(st.sampled_from("eco ab;&|\n\"'\\#>2&1 \t"), max_size=14))
def test_no_text_makes_a_shell_start_what_was_not_seen(text: str) -> None:
    try:
        commands = simple_commands(text)
    except NotPlain:
        return
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as started:
        command = f"exec 9>&{write_end}\n{HANDLER}{text}"
        subprocess.run(
            ["/bin/bash", "--norc", "-c", command],
            env={"PATH": "/nonexistent"}, pass_fds=(write_end,), timeout=20,
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(write_end)
        programs = started.read().decode().split("\0")[:-1]
    assert set(programs) <= {words[0] for words in commands}
