"""`stretto restore NAME`: an earlier version of a saved recipe becomes the current one."""

import time

import click

from stretto.assembly.recipe_files import restore_workflow
from stretto.cli.options import json_option
from stretto.cli.project import open_project
from stretto.cli.terminal import print_json, say


@click.command("restore")
@click.argument("name")
@click.option(
    "--version", "number", type=int, help="Which version; by default the one before the current."
)
@json_option
def command(name: str, number: int | None, as_json: bool) -> None:
    """Make an earlier version of a saved recipe the current one. The current one is kept."""
    from stretto.assembly.run import user_name  # imports all that drives a run

    project = open_project()
    saved = restore_workflow(project, name, number, time.time(), user_name())
    file = project.display_path(saved.file)
    if as_json:
        print_json(
            {
                "ok": True,
                "workflow": name,
                "file": file,
                "version": saved.version,
                "replaced": saved.replaced,
            }
        )
    elif saved.version == 0:
        say(f"{file} holds that version already")
    else:
        was = f"; what it held is version {saved.replaced}" if saved.replaced else ""
        say(f"{file}: restored as version {saved.version}{was}")
