"""`stretto list`: the saved recipes, broken ones too."""

import click

from stretto.assembly.json_forms import workflow_as_json
from stretto.assembly.recipe_files import origins_of
from stretto.cli.options import json_option
from stretto.cli.project import open_project
from stretto.cli.terminal import columns, print_json, say
from stretto.problems.render import count
from stretto.registry.workflows import Entry


@click.command("list")
@json_option
def command(as_json: bool) -> None:
    """List the saved recipes: the project's, your own and the bundled ones."""
    project = open_project()
    entries, origins = project.workflows.entries(), origins_of(project)
    if as_json:
        found = [workflow_as_json(project, entry, origins[entry.file]) for entry in entries]
        print_json({"ok": True, "workflows": found})
        return
    rows = [("NAME", "FROM", "STEPS", "DESCRIPTION")]
    rows += [_cells(entry, origins[entry.file]) for entry in entries]
    say("\n".join(columns(rows, has_head=True)))
    for entry in entries:
        for notice in project.notices_about(entry):
            say(f"\n{notice}", err=True)
        if entry.shadows and not entry.is_passed_over:
            file = project.display_path(entry.file)
            say(f"\n{file} replaces the {entry.shadows} recipe '{entry.name}'", err=True)
    if any(entry.problems for entry in entries):
        say("\nstretto validate FILE shows what is wrong.")


def _cells(entry: Entry, origin: str) -> tuple[str, str, str, str]:
    if entry.problems:
        return (
            entry.name,
            entry.layer,
            "-",
            f"{count(entry.problems)} in {entry.recipe.source.file}",
        )
    if entry.is_passed_over:
        said = f"not used: this folder is not trusted; the {entry.shadows} recipe counts"
        return (entry.name, entry.layer, "-", said)
    lines = (entry.recipe.title or entry.recipe.description).strip().splitlines() or [""]
    layer = f"{entry.layer}, emitted" if origin == "emitted" else entry.layer
    return (entry.name, layer, str(len(entry.recipe.steps)), lines[0])
