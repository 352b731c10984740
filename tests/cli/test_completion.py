"""Completion at Tab: the right words, from real shells, without the engine."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from stretto.cli.commands import commands
from stretto.cli.completion import _CHOICES, PROVIDERS, options_of, words_for
from support.cli import GOOD, ROOT, environment, stretto, write

SCRIPT = "default: Fine.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "workflows/good.yaml", GOOD)
    write(tmp_path, "script.yaml", SCRIPT)
    write(tmp_path, "notes one.txt", "x")
    said = stretto(
        tmp_path, "run", "good", "-i", "topic=tea", "--model", "scripted:script.yaml", "--json"
    )
    assert said.code == 0, said
    return tmp_path


def words(folder: Path, line: str) -> list[str]:
    environ = {"STRETTO_HOME": str(folder / "home")}
    return words_for(line, folder, environ.get)


def run_of(folder: Path) -> str:
    return str(stretto(folder, "runs", "--json").json["runs"][0]["run_id"])


def test_words_fit_their_place(folder: Path) -> None:
    run = run_of(folder)
    assert words(folder, "stretto ru") == ["run", "runs"]
    assert words(folder, "stretto run go") == ["good"]
    assert words(folder, "stretto run research") == ["research-and-brief"]
    assert words(folder, "stretto logs l") == ["last"]
    assert words(folder, f"stretto logs {run[:9]}") == [run]
    assert words(folder, "stretto logs last ") == ["look", "write", "check"]
    assert words(folder, f"stretto approve {run} w") == ["write"]
    assert words(folder, "stretto retry --from ch") == ["check"]
    assert words(folder, "stretto run good --model scripted:s") == ["scripted:script.yaml"]
    assert words(folder, "stretto run good --model local:") != []
    assert words(folder, "stretto run good --det") == ["--detach"]
    assert words(folder, "stretto models p") == ["pull"]
    assert words(folder, "stretto help tr") == ["trust"]
    assert words(folder, "stretto completion z") == ["zsh"]


def test_files_are_the_fallback(folder: Path) -> None:
    assert words(folder, "stretto run script") == ["script.yaml"]
    assert words(folder, "stretto run workflows/g") == ["workflows/good.yaml"]
    assert words(folder, "stretto run good -i text=@x --input-json no") == ["notes one.txt"]
    assert words(folder, "stretto run workf") == ["workflows/"]


@pytest.mark.parametrize("line", ["", "stretto", "stretto 'un", 'stretto run "', "stretto -"])
def test_no_line_is_too_strange(tmp_path: Path, line: str) -> None:
    words(tmp_path, line)


def all_commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[list[str], click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield [*path, name], command
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))


def test_the_options_are_those_of_the_commands() -> None:
    for path, command in all_commands(commands):
        found = command.get_params(click.Context(command))
        options = [each for each in found if isinstance(each, click.Option) and not each.hidden]
        known = {word for option in options for word in option.opts if word.startswith("--")}
        wanted = " ".join(sorted(known | {"--help"}))
        assert " ".join(options_of(path)) == wanted, f"write this for {' '.join(path)}"


def test_the_commands_of_a_group_are_completed(folder: Path) -> None:
    for path, command in all_commands(commands):
        if isinstance(command, click.Group):
            own = command.list_commands(click.Context(command))
            assert set(own) <= set(words(folder, f"stretto {' '.join(path)} ")), path


def test_what_may_follow_a_group_are_words_and_not_the_letters_of_one(folder: Path) -> None:
    for group, following in _CHOICES.items():
        assert isinstance(following, tuple), group
    assert "--resume" in words(folder, "stretto chat --")
    assert "-" not in words(folder, "stretto chat ")


def test_the_words_of_a_group_are_its_own(folder: Path) -> None:
    assert "--limit" in words(folder, "stretto playbooks search --")
    assert words(folder, "stretto agents show revi") == [
        "review-finder",
        "review-synthesizer",
        "reviewer",
    ]
    assert "local:smollm2" in words(folder, "stretto models pull ")
    assert words(folder, "stretto playbooks show nowhere") == []


def test_every_provider_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(PROVIDERS) - set(project["entry-points"]["stretto.models"]) == set()


def in_shell(folder: Path, shell: str, code: str) -> list[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", code],
        cwd=folder,
        env=environment(folder, {"PATH": path}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("stretto resu", ["resume"]),
        ("stretto run go", ["good"]),
        ("stretto logs last wr", ["write"]),
        # bash has split the word at its colon, and takes only what follows it.
        ("stretto run good --model scripted:scr", ["script.yaml"]),
        ("stretto run good --input-json no", ["notes\\ one.txt"]),
    ],
)
def test_bash_completes(folder: Path, line: str, replies: list[str]) -> None:
    code = f"""
        eval "$(stretto completion bash)"
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'
        compopt() {{ :; }}
        _stretto
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert in_shell(folder, "bash", code) == replies


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(folder: Path) -> None:
    code = "stretto completion fish | source; complete -C 'stretto logs last wr'"
    assert in_shell(folder, "fish", code) == ["write"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(folder: Path) -> None:
    code = 'autoload -U compinit; compinit -D; eval "$(stretto completion zsh)"; print $_comps[stretto]'
    assert in_shell(folder, "zsh", code) == ["_stretto"]
