"""`stretto show`: a saved recipe as it is written, and the versions that were kept of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from stretto.assembly.json_forms import version_as_json
from stretto.assembly.recipe_files import version_of, versions_of
from stretto.cli.options import json_option
from stretto.cli.project import open_project, open_recipe
from stretto.cli.terminal import columns, local_time, print_json, print_problems, say
from stretto.documents.node import plain
from stretto.plan.check import Problems
from stretto.problems.errors import InvalidRecipe
from stretto.problems.render import count

if TYPE_CHECKING:
    from stretto.registry.versions import RecipeVersion


@click.command("show")
@click.argument("recipe", metavar="NAME|FILE")
@click.option("--versions", "is_list", is_flag=True, help="List the versions that were kept.")
@click.option("--version", "number", type=int, help="Show this version.")
@json_option
def command(recipe: str, is_list: bool, number: int | None, as_json: bool) -> int:
    """Show a recipe as it is written, and what is wrong with it if anything is."""
    project = open_project()
    if is_list:
        return _list_versions(versions_of(project, recipe), recipe, as_json)
    if number is not None:
        return _show_version(version_of(project, recipe, number), recipe, as_json)
    found = open_recipe(project, recipe)
    built = project.check(found)
    problems = built.problems if isinstance(built, Problems) else ()
    if found.root is None:
        raise InvalidRecipe(f"{recipe} cannot be read", problems)
    if as_json and problems:
        raise InvalidRecipe(f"{recipe} has {count(problems)}", problems)
    if as_json:
        print_json(
            {
                "ok": True,
                "workflow": found.name,
                "file": found.source.file,
                "dialect": found.dialect.name,
                "recipe": plain(found.root),
            }
        )
    else:
        say(f"# {found.source.file}")
        say(found.source.text.rstrip("\n"), is_exact=True)
        if problems:
            say()
            print_problems(problems, to_stderr=True)
    return InvalidRecipe.exit_code if problems else 0


def _list_versions(found: "Sequence[RecipeVersion]", name: str, as_json: bool) -> int:
    if as_json:
        print_json(
            {"ok": True, "workflow": name, "versions": [version_as_json(each) for each in found]}
        )
        return 0
    head = ("VERSION", "TIME", "BY", "ORIGIN", "HOW")
    cells = [
        (f"{each.number}{' *' if each.is_current else ''}", local_time(each.at, has_seconds=True), each.by or "-",
         each.origin, each.why)
        for each in found
    ]  # fmt: skip
    say("\n".join(columns([head, *cells], has_head=True)))
    is_current = any(each.is_current for each in found)
    say("\n* what its file holds" if is_current else "\nits file is gone, or holds something else")
    return 0


def _show_version(found: "RecipeVersion", name: str, as_json: bool) -> int:
    if as_json:
        print_json(
            {
                "ok": True,
                "workflow": name,
                "version": {**version_as_json(found), "text": found.text},
            }
        )
    else:
        say(f"# {name}, version {found.number}")
        say(found.text.rstrip("\n"), is_exact=True)
    return 0
