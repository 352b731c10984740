"""A shell command is taken apart as a shell would do it, or not at all."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from stretto.toolnames.filters import NotPlain, split_commands

WORDS = st.text(st.sampled_from("abz '\"\\;&|#~*?{}!=-\t"), max_size=6)


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_words_are_what_a_shell_makes_of_them(words: list[str]) -> None:
    command = "printf '%s\\0' " + " ".join(map(shlex.quote, words))
    (parsed,) = split_commands(command)
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
        commands = split_commands(text)
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
