"""`stretto capture`: delegations that worked become a workflow."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from stretto.assembly.surface import Surface
from stretto.cli.foreground import FAILED, OpenStretto
from stretto.cli.handles import find_run, refuse_blank
from stretto.cli.inputs import input_pairs
from stretto.cli.options import json_option
from stretto.cli.terminal import hide_secrets, print_for_program, print_json, print_problems, say
from stretto.problems.errors import InvalidUsage
from stretto.problems.render import as_json as problem_as_json

if TYPE_CHECKING:
    from stretto.assembly.captures import CapturedWorkflow
    from stretto.registry.saved_recipe import SavedRecipe


@click.command("capture")
@click.argument("sources", metavar="[RUN|CHAT]...", nargs=-1)
@click.option("--save", "save_as", metavar="NAME", help="Save it under this name.")
@click.option("-i", "--input", "pairs", multiple=True, metavar="NAME=TEXT",
              help="A text in the prompts that becomes an input; may be repeated.")  # fmt: skip
@json_option
def command(
    sources: tuple[str, ...], save_as: str | None, pairs: tuple[str, ...], as_json: bool
) -> int:
    """Make a recipe of delegations that worked: of a chat, of one turn of it, or of runs of tasks.

    What flowed from one into another becomes an edge, what came from you becomes an input. The
    recipe is checked, and replayed against what was recorded; it is printed on stdout.
    """
    return asyncio.run(_capture(sources or ("last",), save_as, input_pairs(pairs), as_json))


async def _capture(
    sources: tuple[str, ...], save_as: str | None, given: dict[str, str], as_json: bool
) -> int:
    async with OpenStretto() as stretto:
        ids = [await _find(stretto, each, as_json) for each in sources]
        captured = await stretto.workflows.capture(*ids, name=save_as, inputs=given)
        saved = None
        if save_as and captured.is_proven:
            why = f"captured from {', '.join(ids)}"
            saved = await stretto.workflows.save(
                captured.recipe, name=save_as, emitted=True, why=why
            )
        if as_json:
            print_json(_as_json(captured, saved))
        else:
            _print(stretto, captured, saved)
        return 0 if captured.is_proven else FAILED


async def _find(stretto: Surface, source: str, as_json: bool) -> str:
    """A chat by its id, or a part of it; else a run."""
    refuse_blank(source, "RUN")
    chats = [each.id for each in await stretto.chats(limit=1_000)]
    found = [each for each in chats if each == source]
    if not found and source != "last":
        found = [each for each in chats if each.startswith(source) or each.endswith(source)]
    if len(found) > 1:
        raise InvalidUsage(f"'{source}' may be several chats; write more of the id")
    return found[0] if found else await find_run(stretto, source, as_json)


def _as_json(captured: "CapturedWorkflow", saved: "SavedRecipe | None") -> dict[str, object]:
    return {
        "ok": captured.is_proven,
        "recipe": captured.recipe,
        "name": captured.name,
        "inputs": dict(captured.inputs),
        "diagram": captured.diagram,
        "notes": list(captured.notes),
        "differences": list(captured.differences),
        "problems": [problem_as_json(each) for each in captured.problems],
        "same_as": captured.same_as or None,
        "saved": saved and {
            "name": saved.name, "file": str(saved.file), "version": saved.version,
            "same_as": saved.same_as or None,
        },
    }  # fmt: skip


def _print(stretto: Surface, captured: "CapturedWorkflow", saved: "SavedRecipe | None") -> None:
    if sys.stdout.isatty():
        say(captured.recipe.rstrip("\n"), is_exact=True)
    else:
        print_for_program(hide_secrets(captured.recipe))
    sys.stdout.flush()
    if captured.diagram:
        say(f"{captured.diagram}\n", err=True, is_exact=True)
    print_problems(captured.problems, to_stderr=True)
    for each in captured.notes:
        say(f"note: {each}", err=True)
    for each in captured.differences:
        say(each, err=True, mark="differs:", colour="red")
    if captured.is_proven:
        say("replayed: the same steps were asked the same, in the same order", err=True)
    else:
        say("it is not saved: it would not do what was done", err=True)
    if saved is not None and not saved.same_as:
        shown = stretto.project.display_path(saved.file)
        said = f"saved {shown} (version {saved.version}, emitted)"
        say(f"{said}: stretto run {saved.name}", err=True)
    elif captured.same_as:
        say(f"'{captured.same_as}' does the same already: stretto run {captured.same_as}", err=True)
