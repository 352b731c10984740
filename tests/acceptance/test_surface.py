"""What holds for every command: flags anywhere, JSON alone, pipes, mistakes, no traces."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import BAD, GOOD, environment, refused, stretto, tree, write

READING = {
    "validate": ("validate", "good.yaml"),
    "plan": ("plan", "good.yaml", "-i", "topic=bees"),
    "explain": ("explain", "good.yaml"),
    "graph": ("graph", "good.yaml"),
    "list": ("list",),
    "show": ("show", "good.yaml"),
    "schema": ("schema",),
    "new": ("new",),
}
WRONG = {
    "unknown command": ("valdate",),
    "unknown option": ("validate", "--nope"),
    "unknown option of plan": ("plan", "good.yaml", "--ful"),
    "missing argument": ("plan",),
    "extra argument": ("list", "extra"),
    "missing value": ("graph", "good.yaml", "--format"),
    "unknown value": ("graph", "good.yaml", "--format", "png"),
    "unknown template": ("new", "x", "--template", "nope"),
    "bad name": ("new", "../x", "--template", "map-reduce"),
    "unreadable input": ("plan", "good.yaml", "-i", "topic=@nope"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "good.yaml", GOOD)
    write(tmp_path, "bad.yaml", BAD)
    return tmp_path


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_json_is_accepted_anywhere_and_alone_on_stdout(
    folder: Path, words: tuple[str, ...]
) -> None:
    first = stretto(folder, "--json", *words)
    assert (first.code, first.err) == (0, "")
    assert isinstance(first.json, dict)
    assert stretto(folder, *words, "--json") == first


def test_json_before_the_command_counts_for_mistakes_too(folder: Path) -> None:
    refused(stretto(folder, "--json", "valdate", "x"), "usage")
    refused(stretto(folder, "--json", "validate", "--nope"), "usage")
    refused(stretto(folder, "--json", "validate", "bad.yaml"), "invalid_recipe")
    refused(stretto(folder, "validate", "--json", "bad.yaml"), "invalid_recipe")


def test_other_flags_are_accepted_anywhere_too(folder: Path) -> None:
    usual = stretto(folder, "graph", "good.yaml", "--format", "dot")
    assert usual.code == 0
    assert stretto(folder, "--format", "dot", "graph", "good.yaml") == usual
    assert stretto(folder, "graph", "--format=dot", "good.yaml") == usual
    planned = stretto(folder, "plan", "good.yaml", "-i", "topic=x")
    assert stretto(folder, "-i", "topic=x", "plan", "good.yaml") == planned


@pytest.mark.parametrize("command", ["approve", "reject", "apply", "diff"])
def test_a_run_that_may_be_left_out_is_not_what_is_missing(folder: Path, command: str) -> None:
    said = stretto(folder, command)
    assert said.code == 2
    assert "Missing argument 'STEP" in said.err


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_json_error_and_writes_nothing(
    folder: Path, words: tuple[str, ...]
) -> None:
    before = tree(folder)
    refused(stretto(folder, *words, "--json"), "usage")
    assert tree(folder) == before


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_usage_in_text_goes_to_stderr(folder: Path, words: tuple[str, ...]) -> None:
    said = stretto(folder, *words)
    assert said.code == 2
    assert said.out == ""
    assert said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_piped_output_has_no_control_codes_and_reading_leaves_no_traces(
    folder: Path, words: tuple[str, ...]
) -> None:
    before = tree(folder)
    # Even if the environment speaks of a colourful terminal: it is not where the output goes.
    said = stretto(folder, *words, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    assert said.code == 0
    assert said.out
    assert all(c.isprintable() or c == "\n" for c in said.out + said.err)
    assert tree(folder) == before


def test_piped_problems_have_no_control_codes(folder: Path) -> None:
    said = stretto(folder, "validate", "bad.yaml", env={"TERM": "xterm-256color"})
    assert said.code == 2
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize("command", ["validate", "plan", "explain", "graph", "show"])
@pytest.mark.parametrize("recipe", ["bad.yaml", "nope.yaml", "nope"])
def test_bad_input_is_exit_2_and_writes_nothing(folder: Path, command: str, recipe: str) -> None:
    before = tree(folder)
    said = stretto(folder, command, recipe)
    assert said.code == 2
    assert said.out + said.err
    assert "Traceback" not in said.err
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("valdate", "validate"), ("plna", "plan"), ("lst", "list"), ("Show", "show"), ("nwe", "new")],
)
def test_a_misspelt_command_is_guessed(folder: Path, typed: str, meant: str) -> None:
    assert f"did you mean '{meant}'?" in stretto(folder, typed).err
    assert f"did you mean '{meant}'?" in stretto(folder, typed, "good.yaml", "--json").out


def test_a_word_like_no_command_points_to_the_help(folder: Path) -> None:
    said = stretto(folder, "xyzzy")
    assert said.code == 2
    assert "xyzzy" in said.err
    assert "stretto --help" in said.err


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands(folder: Path, flag: str) -> None:
    said = stretto(folder, flag)
    assert (said.code, said.err) == (0, "")
    for command in READING:
        assert f"\n  {command} " in said.out


@pytest.mark.parametrize("command", READING)
def test_every_command_has_help(folder: Path, command: str) -> None:
    said = stretto(folder, command, "--help")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"Usage: stretto {command} ")
    assert "--json" in said.out


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_one_line(folder: Path, flag: str) -> None:
    said = stretto(folder, flag)
    assert (said.code, said.err) == (0, "")
    name, version = said.out.split()
    assert name == "stretto"
    assert version[0].isdigit()


def test_two_calls_print_the_same_bytes(folder: Path) -> None:
    for words in (("plan", "good.yaml", "-i", "topic=x", "--json"), ("schema",), ("list",)):
        one = stretto(folder, *words, env={"PYTHONHASHSEED": "1"})
        assert stretto(folder, *words, env={"PYTHONHASHSEED": "2"}) == one


@pytest.mark.parametrize("words", [("schema",), ("show", "good.yaml"), ("plan", "wide.yaml")])
def test_a_reader_that_leaves_early_hears_nothing(folder: Path, words: tuple[str, ...]) -> None:
    """`stretto … | head -1`"""
    # More than a pipe holds, so that the reader is surely gone before the writer is done.
    steps = "".join(
        f"  - {{id: s{n}, subagent: writer, prompt: {'x' * 900}}}\n" for n in range(400)
    )
    write(folder, "wide.yaml", f"name: wide\nsteps:\n{steps}")
    read, write_end = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "stretto", *words],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        os.close(write_end)
        with open(read, "rb") as reader:
            assert reader.readline()
        _, err = child.communicate(timeout=60)
    assert err == ""


def test_unicode_survives_both_ways(folder: Path) -> None:
    write(folder, "ünï.yaml", GOOD.replace("Look, then write", "Größe → 你好"))
    shown = stretto(folder, "show", "ünï.yaml", "--json")
    assert shown.json["recipe"]["description"] == "Größe → 你好, then check."
    assert "你好" in stretto(folder, "show", "ünï.yaml").out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_json_is_json_for_a_reader_of_any_encoding(folder: Path, encoding: str) -> None:
    write(folder, "x.yaml", GOOD.replace("Look, then write", "Größe → 你好"))
    done = subprocess.run(
        [sys.executable, "-m", "stretto", "show", "x.yaml", "--json"],
        cwd=folder,
        env=environment(folder, {"PYTHONIOENCODING": encoding}),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout.decode("ascii"))["recipe"]["description"].startswith("Größe → 你")


def test_stretto_alone_says_what_it_can_do(folder: Path) -> None:
    said = stretto(folder)
    assert said.code == 0
    assert "Write recipes:" in said.out
