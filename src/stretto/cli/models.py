"""`stretto models`: the models that run on this machine, and which one is used."""

import asyncio

import click

from stretto.assembly.json_forms import weights_as_json
from stretto.assembly.local_models import LocalModels, ShelvedWeights
from stretto.assembly.project import Project
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, print_json, say

_HELP = {
    "list": "List the local models, and say which model is used.",
    "pull": "Fetch a local model's weights and check them.",
    "use": "Use a model from now on: write it into your own stretto.yaml.",
    "test": "Ask a model two small questions and say how fast it answers.",
}


class _Models(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_HELP)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        match name:
            case "list":
                return list_command
            case "pull":
                from stretto.cli.models_pull import command as pull

                return pull
            case "use":
                from stretto.cli.models_use import command as use

                return use
            case "test":
                from stretto.cli.models_test import command as test

                return test
            case _:
                return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_HELP.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Flags are accepted anywhere, here too: `stretto models --json` lists.
        at = next((i for i, word in enumerate(args) if word in _HELP), None)
        if at is not None:
            args = [args[at], *args[:at], *args[at + 1 :]]
        elif all(word == "--json" for word in args):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("models", cls=_Models)
def command() -> None:
    """The models that run on this machine, and which model is used.

    Local models need no key, and no network once they are pulled.
    """


@click.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the local models, and say which model is used when none is named."""
    models = LocalModels(Project())
    in_use = asyncio.run(models.model_in_use())
    known = models.all()
    if as_json:
        rows = [weights_as_json(model) for model in known]
        folder = str(models.shelf.folder)
        print_json({"ok": True, "folder": folder, "models": rows, "in_use": in_use})
        return
    cells = [_cells(model) for model in known]
    say("\n".join(columns([("NAME", "SIZE", "LICENCE", "HERE", "ABOUT"), *cells], has_head=True)))
    if in_use is not None:
        say(f"\nin use: {in_use}; stretto models use NAME changes it")
    if absent := [model.weights.name for model in known if model.state == "absent"]:
        say("\n".join(["", *(f"  stretto models pull {name}" for name in absent)]))


def _cells(model: ShelvedWeights) -> tuple[str, ...]:
    weights = model.weights
    state = {"absent": "no", "unchecked": "not checked yet", "verified": "verified"}
    return (
        weights.model,
        f"{weights.megabytes:,} MB",
        weights.licence,
        state[model.state],
        f"{weights.title}, {weights.about}",
    )
