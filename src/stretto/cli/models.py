"""`stretto models`: the models that run on this machine, and which one is used."""

import asyncio
from collections.abc import Sequence

import click

from stretto.adapters.models.local.catalog import CATALOG, Weights
from stretto.adapters.models.local.shelf import Shelf, models_folder
from stretto.assembly.project import Project
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, print_json, say

_HELP = {
    "list": "List the local models, and say which model is used.",
    "pull": "Fetch a local model's weights and check them.",
    "use": "Use a model from now on: write it into your own stretto.yaml.",
    "test": "Ask a model two small questions and say how fast it answers.",
}
_RESOLVE_SECONDS = 2.0


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
    """List the local models, and say which model is used when nobody names one."""
    project = Project()
    shelf = Shelf(models_folder(project.settings.home, project.environ))
    show(shelf, asyncio.run(model_in_use(project)), as_json)


def show(shelf: Shelf, resolved: str | None, as_json: bool) -> None:
    known = list(CATALOG.values())
    if as_json:
        rows = [_row(weights, shelf) for weights in known]
        folder = str(shelf.folder)
        print_json({"ok": True, "folder": folder, "models": rows, "in_use": resolved})
        return
    cells = [_cells(weights, shelf) for weights in known]
    say("\n".join(columns([("NAME", "SIZE", "LICENCE", "HERE", "ABOUT"), *cells])))
    if resolved is not None:
        say(f"\nin use: {resolved}; stretto models use NAME changes it")
    if absent := [weights.name for weights in known if shelf.state(weights) == "absent"]:
        say("\n".join(["", *(f"  stretto models pull {name}" for name in absent)]))


async def model_in_use(project: Project) -> str | None:
    """The model for agents that name none; None when that cannot be told quickly."""
    if project.settings.model is not None:
        return project.settings.model
    from stretto.adapters.models.resolve import resolve
    from stretto.problems.errors import StrettoError

    shelf = Shelf(models_folder(project.settings.home, project.environ))
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await resolve(project.environ, pulled=lambda: best_pulled(shelf))
    except (TimeoutError, StrettoError):
        return None
    return found.name


def best_pulled(shelf: Shelf, known: Sequence[Weights] = tuple(CATALOG.values())) -> str | None:
    """The largest that is here, the embedded one aside."""
    here = [w for w in known if not w.traits.is_tiny and shelf.state(w) != "absent"]
    return max(here, key=lambda weights: weights.size_bytes).model if here else None


def _row(weights: Weights, shelf: Shelf) -> dict[str, object]:
    return {
        "name": weights.name,
        "model": weights.model,
        "title": weights.title,
        "state": shelf.state(weights),
        "size_bytes": weights.size_bytes,
        "licence": weights.licence,
        "sha256": weights.sha256,
        "file": str(shelf.path(weights)),
        "about": weights.about,
    }


def _cells(weights: Weights, shelf: Shelf) -> tuple[str, ...]:
    size = f"{weights.megabytes:,} MB"
    state = {"absent": "no", "unchecked": "not checked yet", "verified": "verified"}
    return (
        weights.model,
        size,
        weights.licence,
        state[shelf.state(weights)],
        f"{weights.title}, {weights.about}",
    )
