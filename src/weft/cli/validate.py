"""`weft validate FILE…`: every problem of every file at once."""

from pathlib import Path

import click

from weft.assembly import Weft
from weft.cli.options import json_option
from weft.cli.printing import print_json, print_problems, print_warnings
from weft.cli.recipes import open_recipe
from weft.plan.build import Problems
from weft.plan.model import Plan
from weft.problems import Problem
from weft.problems.errors import InvalidRecipe, NotFound
from weft.problems.render import count, error_as_json
from weft.registry.folders import Folder, files_in
from weft.registry.workflows import SUFFIXES


@click.command("validate")
@click.argument("files", nargs=-1, metavar="[FILE|NAME|FOLDER]...")
@json_option
def command(files: tuple[str, ...], as_json: bool) -> int:
    """Check recipes and show every problem at once.

    Without a FILE, every recipe of the project is checked.
    """
    weft = Weft()
    checked = {name: weft.check(open_recipe(weft, name)) for name in _names(weft, files)}
    checked.update(_clashes(weft, checked))
    bad = [
        problem
        for built in checked.values()
        if isinstance(built, Problems)
        for problem in built.problems
    ]
    if as_json:
        _print_json(checked, bad)
    else:
        _print_text(checked, bad)
    return InvalidRecipe.exit_code if bad else 0


def _names(weft: Weft, files: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    for file in files or (str(weft.settings.workflows_dir),):
        if not Path(file).is_dir():
            names.append(file)
            continue
        found = [str(path) for path in files_in(Folder(Path(file), ""), SUFFIXES)]
        if not found:
            raise NotFound(
                f"there are no recipes in {file}", hint="name a file: weft validate FILE"
            )
        names.extend(found)
    return list(dict.fromkeys(names))


def _clashes(weft: Weft, checked: dict[str, Plan | Problems]) -> dict[str, Problems]:
    """Two saved recipes of one name: each is fine, and nobody could say which one would run."""
    if len(checked) < 2:
        return {}
    named = {Path(name).resolve(): name for name in checked}
    return {
        named[entry.file.resolve()]: Problems(entry.problems)
        for entry in weft.workflows.entries()
        if entry.is_clash and entry.file.resolve() in named
    }


def _print_json(checked: dict[str, Plan | Problems], bad: list[Problem]) -> None:
    if bad:
        broken = [name for name, built in checked.items() if isinstance(built, Problems)]
        print_json(error_as_json(InvalidRecipe(f"{', '.join(broken)}: {count(bad)}", bad)))
    else:
        print_json({"ok": True})


def _print_text(checked: dict[str, Plan | Problems], bad: list[Problem]) -> None:
    for name, built in checked.items():
        if isinstance(built, Problems):
            print_problems(built.problems)
        else:
            print_warnings(built.warnings)
            steps = "1 step" if len(built.steps) == 1 else f"{len(built.steps)} steps"
            click.echo(f"{click.style('ok', fg='green', bold=True)} {name} ({built.name}, {steps})")
    if bad:
        broken = sum(isinstance(built, Problems) for built in checked.values())
        of = f" in {broken} of {len(checked)} files" if len(checked) > 1 else ""
        click.echo(f"{len(bad)} problem{'s' if len(bad) > 1 else ''}{of}")
