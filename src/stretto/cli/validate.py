"""`stretto validate FILE…`: every problem of every file at once."""

import os
from pathlib import Path

import click

from stretto.assembly.project import Project
from stretto.cli.options import json_option
from stretto.cli.project import open_project, open_recipe
from stretto.cli.terminal import print_json, print_problems, print_warnings, say
from stretto.plan.check import Checked, Problems
from stretto.problems import Problem
from stretto.problems.errors import InvalidRecipe, InvalidUsage, NotFound
from stretto.problems.render import as_json, count, error_as_json
from stretto.recipe.read import SUFFIXES
from stretto.registry.folders import Folder, files_in


@click.command("validate")
@click.argument("files", nargs=-1, metavar="[FILE|NAME|FOLDER]...")
@json_option
def command(files: tuple[str, ...], as_json: bool) -> int:
    """Check recipes and show every problem at once.

    Without a FILE, every recipe of the project is checked.
    """
    project = open_project()
    checked = {name: project.check(open_recipe(project, name)) for name in _names(project, files)}
    checked.update(_clashes(project, checked))
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


def _names(project: Project, files: tuple[str, ...]) -> list[str]:
    names: list[str] = []
    for file in files or (project.display_path(project.settings.workflows_dir),):
        if not file.strip():
            raise InvalidUsage("a file without a name", hint="name a file: stretto validate FILE")
        if not os.path.isdir(file):  # never raises, unlike Path.is_dir
            names.append(file)
            continue
        found = [str(path) for path in files_in(Folder(Path(file), ""), SUFFIXES)]
        if not found:
            raise NotFound(
                f"there are no recipes in {file}", hint="name a file: stretto validate FILE"
            )
        names.extend(found)
    return list(dict.fromkeys(names))


def _clashes(project: Project, checked: dict[str, Checked | Problems]) -> dict[str, Problems]:
    """Two saved recipes of one name: each is valid, and it is not defined which one would run."""
    if len(checked) < 2:
        return {}
    named = {Path(name).resolve(): name for name in checked}
    return {
        named[entry.file.resolve()]: Problems(entry.problems)
        for entry in project.workflows.entries()
        if entry.is_clash and entry.file.resolve() in named
    }


def _print_json(checked: dict[str, Checked | Problems], bad: list[Problem]) -> None:
    """An error has one shape everywhere, so warnings are printed only if all files are sound."""
    sound = [built for built in checked.values() if isinstance(built, Checked)]
    warnings = [as_json(warning) for built in sound for warning in built.warnings]
    if not bad:
        print_json({"ok": True, "warnings": warnings})
        return
    broken = [name for name, built in checked.items() if isinstance(built, Problems)]
    print_json(error_as_json(InvalidRecipe(f"{', '.join(broken)}: {count(bad)}", bad)))


def _print_text(checked: dict[str, Checked | Problems], bad: list[Problem]) -> None:
    for name, built in checked.items():
        if isinstance(built, Problems):
            print_problems(built.problems)
        else:
            print_warnings(built.warnings)
            recipe = built.draft.recipe
            steps = "1 step" if len(recipe.steps) == 1 else f"{len(recipe.steps)} steps"
            about = steps if name == recipe.name else f"{recipe.name}, {steps}"
            say(f"{name} ({about})", mark="ok", colour="green")
    if bad:
        broken = sum(isinstance(built, Problems) for built in checked.values())
        of = f" in {broken} of {len(checked)} files" if len(checked) > 1 else ""
        say(f"{len(bad)} problem{'s' if len(bad) > 1 else ''}{of}")
