"""`stretto show`: a saved recipe as it is written."""

import click

from stretto.cli.options import json_option
from stretto.cli.project import open_project, open_recipe
from stretto.cli.terminal import print_json, print_problems, say
from stretto.documents.node import plain
from stretto.plan.check import Problems
from stretto.problems.errors import InvalidRecipe
from stretto.problems.render import count


@click.command("show")
@click.argument("recipe", metavar="NAME|FILE")
@json_option
def command(recipe: str, as_json: bool) -> int:
    """Show a recipe as it is written, and what is wrong with it if anything is."""
    project = open_project()
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
        say(found.source.text.rstrip("\n"))
        if problems:
            say()
            print_problems(problems, to_stderr=True)
    return InvalidRecipe.exit_code if problems else 0
