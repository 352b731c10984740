"""`stretto new NAME --template T`: a complete recipe to start from."""

import os
import shlex
from pathlib import Path

import click

from stretto.assembly.recipe_files import recipe_templates, text_of_template
from stretto.cli.files import write_recipe
from stretto.cli.options import json_option
from stretto.cli.project import open_project
from stretto.cli.terminal import columns, print_json, say
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Input
from stretto.recipe.read import read_recipe_file
from stretto.text.short import did_you_mean
from stretto.vocabulary.names import is_id

_SAMPLES = {"number": "3", "boolean": "true", "json": "{}", "object": "{}", "array": "[]"}


@click.command("new")
@click.argument("name", required=False)
@click.option("--template", metavar="TEMPLATE", help="Which template; without it they are listed.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="The folder to write to; workflows.dir of the settings by default.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@json_option
def command(
    name: str | None, template: str | None, folder: Path | None, force: bool, as_json: bool
) -> None:
    """Write a new recipe from one of the built-in templates."""
    templates = recipe_templates()
    if template is None:
        _list(templates, as_json, name)
        return
    if template not in templates:
        hint = did_you_mean(template, templates) or f"there are: {', '.join(templates)}"
        raise InvalidUsage(f"there is no template '{template}'", hint=hint)
    name = template if name is None else name
    if not is_id(name):
        raise InvalidUsage(f"'{name}' is not a name for a recipe",
                           hint="use letters, digits, '-' and '_'")  # fmt: skip
    project = open_project()
    text = text_of_template(templates[template], name)
    file = write_recipe(folder or project.settings.workflows_dir, name, text, force)
    if as_json:
        print_json(
            {"ok": True, "workflow": name, "template": template, "file": project.display_path(file)}
        )
    else:
        shown = project.display_path(file)
        meant = name if folder is None else shlex.quote(shown)
        inputs = _sample_inputs(file, project.settings.project)
        say(f"wrote {shown}\n\n  stretto explain {meant}\n  stretto run {meant}{inputs}")


def _sample_inputs(file: Path, workspace: Path) -> str:
    """Options with which the recipe runs as it stands."""
    wanted = [it for it in read_recipe_file(file).inputs if it.is_required and not it.has_default]
    return "".join(
        f" -i {each.name}={shlex.quote(_sample(each, file, workspace))}" for each in wanted
    )


def _sample(wanted: Input, file: Path, workspace: Path) -> str:
    if wanted.enum:
        return str(wanted.enum[0])
    if wanted.type == "file_path":  # the recipe itself is a file that certainly exists
        return os.path.relpath(file, workspace)
    return _SAMPLES.get(wanted.shape or wanted.type, "tea")


def _list(templates: dict[str, Path], as_json: bool, name: str | None) -> None:
    rows = [(stem, read_recipe_file(path).description.strip()) for stem, path in templates.items()]
    if as_json:
        found = [{"template": stem, "description": about} for stem, about in rows]
        print_json({"ok": True, "templates": found})
        return
    say("\n".join(columns(rows)))
    say(f"\nstretto new {name or 'NAME'} --template {next(iter(templates))}")
