"""Help in groups, with examples that can be typed as they stand; `help` and `explain CODE`."""

import re
import shlex

import click
import pytest

from stretto.cli.commands import COMMANDS, EXAMPLES, GROUPS, _example_lines, commands
from support.cli import GOOD, refused, stretto, write
from support.problem_codes import TITLES

LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]


def parse(line):
    """As main does it: the words of an example, up to the first wide gap or redirection."""
    written = re.split(r"\s{2,}| > ", line)[0]
    words = shlex.split(written)
    assert words[0] == "stretto"
    ctx, words = click.Context(commands, info_name="stretto"), words[1:]
    while isinstance(ctx.command, click.Group) and words:
        name, command, words = ctx.command.resolve_command(ctx, words)
        ctx = command.make_context(name, list(words), parent=ctx)
        words = [*ctx._protected_args, *ctx.args] if isinstance(command, click.Group) else []


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_an_example_is_accepted_as_it_stands(name, line):
    assert line.startswith(f"stretto {name}")
    assert len(line) <= 74
    parse(line)


def test_an_example_with_an_unknown_option_would_be_found():
    with pytest.raises(click.UsageError):
        parse("stretto run brief.yaml --nope")


def test_every_command_stands_in_one_group_and_has_an_example():
    named = [name for group in GROUPS.values() for name in group]
    assert sorted(named) == sorted(set(named))
    assert set(named) == set(COMMANDS)
    assert set(COMMANDS) - set(EXAMPLES) == set()


def test_help_shows_the_groups_in_their_order(tmp_path):
    said = stretto(tmp_path, "help")
    assert said.code == 0
    assert said.out == stretto(tmp_path, "--help").out
    places = [said.out.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places)
    assert "Examples:\n    stretto init" in said.out


def test_the_commands_of_a_group_are_told_whole(tmp_path):
    for name in ("goal", "schedule", "playbooks", "serve", "agents", "models"):
        assert "..." not in stretto(tmp_path, "help", name).out.partition("\nCommands:")[2]


@pytest.mark.parametrize("width", [60, 80])
def test_an_example_fits_the_terminal_and_can_be_copied_in_pieces(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for lines in EXAMPLES.values():
        shown = [f"  {line}" for line in _example_lines(lines)]
        assert max(map(len, shown)) <= width, shown
        again = re.sub(r" \\\n +", " ", "\n".join(shown))
        for line in lines:
            assert re.split(r"\s{2,}", line)[0] in again


@pytest.mark.parametrize(("word", "hint"), [("RCP9999", "RCP90"), ("run01", "RUN001")])
def test_a_code_with_a_slip_in_its_digits_is_still_a_code(tmp_path, word, hint):
    said = stretto(tmp_path, "explain", word)
    assert said.code == 2
    assert f"there is no problem with the code {word.upper()}" in said.err
    assert hint in said.err


@pytest.mark.parametrize("words", [("run",), ("models", "pull"), ("list",)], ids=" ".join)
def test_help_of_a_command_is_what_its_own_flag_prints(tmp_path, words):
    said = stretto(tmp_path, "help", *words)
    assert (said.code, said.err) == (0, "")
    assert said.out == stretto(tmp_path, *words, "--help").out


def test_help_of_an_unknown_command_suggests_one(tmp_path):
    said = stretto(tmp_path, "help", "rnu")
    assert said.code == 2
    assert "did you mean 'run'?" in said.err
    assert "stretto explain RUN001" in stretto(tmp_path, "help", "run001").err
    assert "did you mean 'pull'?" in stretto(tmp_path, "help", "models", "pul").err


@pytest.mark.parametrize("code", TITLES)
def test_every_code_is_explained(tmp_path, code):
    said = stretto(tmp_path, "explain", code, "--json").json
    assert said["code"] == code
    assert said["title"]
    assert said["text"].startswith(f"# {code} · {said['title']}")


def test_a_code_is_explained_as_text_whatever_its_case(tmp_path):
    said = stretto(tmp_path, "explain", "rcp104")
    assert said.code == 0
    assert said.out.startswith("RCP104 · unknown dependency")
    assert "    depends_on: [drafts]" in said.out
    assert "```" not in said.out


@pytest.mark.parametrize(
    ("asked", "hint"), [("RCP120", "RCP119"), ("RUN999", "RUN0"), ("XYZ123", "codes begin with")]
)
def test_an_unknown_code_suggests_one(tmp_path, asked, hint):
    error = refused(stretto(tmp_path, "explain", asked, "--json"), "usage")
    assert asked in error["message"]
    assert hint in stretto(tmp_path, "explain", asked).err


def test_a_page_has_whole_paragraphs_and_names_other_pages(tmp_path):
    lines = stretto(tmp_path, "explain", "RUN003").out.splitlines()
    (fixed,) = (line for line in lines if line.startswith("Fixed: "))
    assert "as Tools (docs/tools.md) shows. A project's" in fixed
    assert fixed.endswith("the message says that its server is not used.")
    assert "    clerk:" in "\n".join(lines)


def test_defaults_are_explained_as_they_are_written(tmp_path):
    rows = "  - {name: rows, type: json, default: [ö, true]}\n"
    write(tmp_path, "a.yaml", GOOD.replace("inputs:\n", f"inputs:\n{rows}"))
    assert 'rows (json, default ["ö", true])' in stretto(tmp_path, "explain", "a.yaml").out


def test_a_recipe_is_explained_as_before(tmp_path):
    write(tmp_path, "good.yaml", GOOD)
    assert "look" in stretto(tmp_path, "explain", "good.yaml").out
