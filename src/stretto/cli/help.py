"""`stretto help`: the help of a command, as `stretto COMMAND --help` prints it."""

import click

from stretto.cli.explain import is_code
from stretto.cli.terminal import say
from stretto.text.short import did_you_mean


@click.command("help")
@click.argument("words", metavar="[COMMAND]", nargs=-1)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show all commands in groups, or the options and examples of one command."""
    assert ctx.parent is not None
    say(_find(ctx.parent, words).get_help())


def _find(ctx: click.Context, words: tuple[str, ...]) -> click.Context:
    """The context of the command that the words name, from the outermost on."""
    for word in words:
        group = ctx.command
        known = group.list_commands(ctx) if isinstance(group, click.Group) else []
        found = group.get_command(ctx, word) if isinstance(group, click.Group) else None
        if found is None:
            place = ctx.command_path
            hint = did_you_mean(word, known) or f"{place} --help lists what there is"
            if is_code(word):
                hint = f"stretto explain {word.upper()} says what that code means"
            raise click.UsageError(f"there is no command '{place} {word}'; {hint}")
        ctx = click.Context(found, info_name=word, parent=ctx)
    return ctx
