"""`stretto schema`: the JSON Schema of recipes, for editors."""

import json

import click

from stretto.cli.options import json_option
from stretto.cli.terminal import say
from stretto.recipe.grammar import recipe_schema


@click.command("schema")
@json_option
def command(as_json: bool) -> None:
    """Print the JSON Schema of recipes, for editors.

    yaml-language-server reads it from the first line of a recipe:

    \b
        # yaml-language-server: $schema=PATH
    """
    text = json.dumps(recipe_schema(), indent=None if as_json else 2, ensure_ascii=False)
    say(text, is_exact=True)
