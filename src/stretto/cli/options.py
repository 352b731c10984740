"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class CommandGroup(click.Group):
    """A group whose help says all that each command is for; click alone would cut that to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(1_000)) for name, each in known if each]
            )


class _RunBefore(click.Argument):
    """An optional RUN before a required word: a single word is the required one."""

    def __init__(self, *names: Any, needed: str, **more: Any) -> None:
        super().__init__(*names, **more)
        self._needed = needed

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return f"'{self._needed}'"


def run_before(needed: str) -> Callable[[F], F]:
    return click.argument("run", metavar="[RUN]", cls=_RunBefore, needed=needed)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")

model_option = click.option(
    "--model", metavar="MODEL", help="The model for every agent: provider:name, or scripted:FILE."
)

permission_option = click.option(
    "--permission",
    type=click.Choice(["read_only", "ask", "auto"]),
    help="What a run may do to files; auto unless the settings say otherwise.",
)

accept_option = click.option(
    "--accept-plan",
    "accepted",
    metavar="FINGERPRINT",
    help="Accept this stored plan, which has no valid seal; stretto plan --run RUN shows it.",
)
