"""`stretto run`: a recipe to its answer."""

import asyncio

import click

from stretto.assembly.request import RunRequest
from stretto.cli.foreground import OpenStretto, drive, prepare
from stretto.cli.inputs import ask_missing, given_inputs, input_options
from stretto.cli.options import model_option, permission_option
from stretto.cli.plan import show_dry_run
from stretto.cli.project import open_recipe
from stretto.cli.result import ResultOptions, result_options
from stretto.problems.errors import InvalidUsage
from stretto.vocabulary.names import RunId


@click.command("run")
@click.argument("recipe", metavar="NAME|FILE")
@input_options
@model_option
@permission_option
@click.option("--dry-run", is_flag=True, help="Show what it would do, as stretto plan does.")
@click.option("--detach", "is_detached", is_flag=True, help="Leave it to a background process.")
@click.option("--run-id", hidden=True)
@result_options
def command(
    recipe: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    permission: str | None,
    dry_run: bool,
    is_detached: bool,
    run_id: str | None,
    result: ResultOptions,
) -> int:
    """Run a recipe. Its answer is printed on stdout, everything else on stderr.

    Every event is kept in the journal before anything follows from it, so a run that is cut
    off continues with stretto resume.
    """
    _check_options(recipe, dry_run, is_detached, result)
    if dry_run:
        show_dry_run(recipe, pairs, input_json, result.as_json, False, model, permission)
        return 0
    stretto = OpenStretto()
    opened = open_recipe(stretto.project, recipe)
    given = given_inputs(pairs, input_json)
    request = RunRequest(
        opened,
        given if result.as_json else ask_missing(stretto.project, opened, given),
        model=model,
        permission=permission,
        run_id=RunId(run_id) if run_id else None,
    )
    return asyncio.run(_run(stretto, request, recipe, is_detached, result))


def _check_options(recipe: str, is_dry_run: bool, is_detached: bool, result: ResultOptions) -> None:
    has_target = bool(result.file or result.is_long or result.is_opened)
    if is_dry_run and (is_detached or has_target):
        hint = "leave out --detach, --output, --report and --open"
        raise InvalidUsage("with --dry-run there is no run to leave or to report", hint=hint)
    if is_detached and has_target:
        hint = "when it has ended: stretto output RUN, stretto report RUN"
        raise InvalidUsage("with --detach there is no answer yet to print or write", hint=hint)
    if is_detached and recipe == "-":
        hint = "write it to a file: stretto run FILE --detach"
        raise InvalidUsage("with --detach the recipe cannot come from stdin", hint=hint)


async def _run(
    stretto: OpenStretto, request: RunRequest, recipe: str, is_detached: bool, result: ResultOptions
) -> int:
    async with stretto:
        prepared = await prepare(stretto, request, result)
        if not is_detached:
            return await drive(stretto, prepared, result)
        from stretto.cli.background import detach  # few runs are left to another process

        return await detach(stretto, prepared, recipe, request, result)
