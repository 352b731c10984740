"""The table of commands in the README, and what stands below it, are what the command line is."""

import re
from collections.abc import Iterator

import click

from stretto.cli.commands import COMMANDS, commands
from stretto.problems.errors import StrettoError
from support.cli import TEMPLATES
from support.doc_pages import DOCS, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBERS = {8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}


def rows(text: str) -> list[tuple[str, str]]:
    """The first cell and the rest of each row of the table of commands."""
    table = text.replace(r"\|", "/").partition("\n| command |")[2].partition("\n\n")[0]
    cells = [line.strip("| ").partition(" | ") for line in table.splitlines() if "`" in line]
    return [(first, rest) for first, _, rest in cells]


def named(cell: str) -> set[str]:
    words = (code.removeprefix("stretto ").split()[0] for code in re.findall(r"`([^`]+)`", cell))
    return {word for word in words if re.fullmatch(r"[a-z]+", word)}


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command, or the commands of a group with the group itself where that can be called."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            yield from leaves(inner, f"{name} {each}")


def command_of(name: str) -> click.Command:
    found = commands.get_command(click.Context(commands), name)
    assert found is not None
    return found


def options_of(name: str) -> set[str]:
    found = (each for _, leaf in leaves(command_of(name), name) for each in leaf.params)
    return {option for each in found for option in each.opts} | {"--json"}


def test_the_table_names_every_command_and_no_other():
    assert {name for first, _ in rows(README) for name in named(first)} == set(COMMANDS)


def test_the_table_names_options_that_its_commands_have():
    told = 0
    for first, rest in rows(README):
        codes = " ".join(re.findall(r"`([^`]+)`", f"{first} {rest}"))
        written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", codes))
        known = set().union(*(options_of(name) for name in named(first)))
        assert written <= known, first
        told += len(written)
    assert told > 5


def test_the_commands_without_json_are_those_that_are_named():
    without = {
        name.split()[0]
        for top in COMMANDS
        for name, leaf in leaves(command_of(top), top)
        if not any("--json" in each.opts for each in leaf.params)
    }
    sentence = re.search(r"All but ([^.]*) take\s+`--json`", README)
    assert sentence is not None
    assert set(re.findall(r"`(\w+)`", sentence[1])) == without


def test_the_number_of_templates_is_told():
    assert f"one of {NUMBERS[len(TEMPLATES)]} templates" in README
    shipped = (ROOT / "src/stretto/bundled/templates").glob("*.yaml")
    assert sorted(TEMPLATES) == sorted(each.stem for each in shipped)


def test_every_exit_code_is_in_the_table_and_in_the_readme():
    runs = (DOCS / "runs.md").read_text(encoding="utf-8")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", runs, re.MULTILINE)}
    assert {each.exit_code for each in every_error(StrettoError)} <= told
    listed = README.partition("Exit codes:")[2].partition("\n\n")[0]
    assert {int(code) for code in re.findall(r"\b(\d+)\s+[a-z]", listed)} == told


def every_error(kind: type[StrettoError]) -> Iterator[type[StrettoError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from every_error(each)
