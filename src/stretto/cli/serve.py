"""`stretto serve`: Stretto over HTTP, and the tokens with which it may be used."""

import os
import sys
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, print_json, say
from stretto.config.settings import home_of
from stretto.problems.errors import InvalidUsage, NotReady

if TYPE_CHECKING:
    from stretto.server.process import ServedAt

_PORT = 7317


@click.group("serve", invoke_without_command=True)
@click.option("--host", default="127.0.0.1", help="Where it listens; 127.0.0.1.")
@click.option("--port", default=_PORT, type=click.IntRange(0, 65535), help="0 picks one; 7317.")
@click.option("--public", "is_public", is_flag=True, help="Other machines may reach it.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A name it is called by."
)
@click.option("--workers", type=click.IntRange(1), default=1, help="Processes; 1.")
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", help="Of stderr; text."
)
@click.option("--verbose", "is_verbose", is_flag=True, help="Log every request.")
@click.pass_context
def command(
    ctx: click.Context,
    host: str,
    port: int,
    is_public: bool,
    hosts: tuple[str, ...],
    workers: int,
    log_format: str,
    is_verbose: bool,
) -> None:
    """Serve the HTTP API and the console, on this machine alone.

    Prints where it is and a login link for a browser, which counts once. Programs send the token in
    ~/.stretto/token, or STRETTO_TOKEN, as 'Authorization: Bearer TOKEN'.
    """
    _check_installed()
    if ctx.invoked_subcommand is not None:
        return
    if workers > 1:
        store = os.environ.get("STRETTO_STORE") or "sqlite"
        hint = "one process serves thousands of runs; leave --workers out"
        raise InvalidUsage(f"the store '{store}' has one process as its server", hint=hint)
    from stretto.server.process import ServeOptions, serve, write_log

    write_log(log_format == "json", is_verbose)
    if is_public:
        said = "other machines can reach this server: put a proxy that speaks https before it"
        say(said, err=True, mark="warning", colour="yellow")
    options = ServeOptions(host, port, is_public, hosts)
    serve(options, OpenStretto, home_of(os.environ), os.environ, _tell)


def _tell(at: "ServedAt", end: Callable[[], None]) -> None:
    say(f"Stretto is at {at.url}")
    say(f"Log in once with {at.login_url}")
    sys.stdout.flush()


def _check_installed() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if not find_spec(name)]
    if missing:
        hint = "pip install 'stretto[serve]'"
        raise NotReady(f"stretto serve needs {', '.join(missing)}", hint=hint)


@command.command("link")
@click.option("--port", default=_PORT, type=click.IntRange(1, 65535), help="Of the server; 7317.")
def link(port: int) -> None:
    """Print a new login link of the server that runs here."""
    from stretto.server.process import new_link

    say(new_link(port, home_of(os.environ), os.environ))


@command.group("token")
def token() -> None:
    """Tokens for other people and programs, each with a role."""


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "author", "admin"]),
    default="viewer",
    help="What it may do; viewer.",
)
@json_option
def add(name: str, role: str, as_json: bool) -> None:
    """Make a token and print it, this once: only its digest is kept."""
    from stretto.server.tokens import add_token

    made = add_token(home_of(os.environ), name, role)
    if as_json:
        print_json({"ok": True, "name": name, "role": role, "token": made})
        return
    say(made)
    say(f"the token of {name}, {role}; it is not shown again", err=True)


@token.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List the tokens."""
    from stretto.server.tokens import list_tokens

    found = list_tokens(home_of(os.environ))
    if as_json:
        rows = [{"name": each.name, "role": each.role, "at": each.at} for each in found]
        print_json({"ok": True, "tokens": rows})
        return
    rows_shown = [(each.name, each.role, _day(each.at)) for each in found]
    say("\n".join(columns([("NAME", "ROLE", "MADE"), *rows_shown])))


@token.command("remove")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Refuse a token, and the sessions opened with it, from now on."""
    from stretto.server.tokens import remove_token

    remove_token(home_of(os.environ), name)
    if as_json:
        print_json({"ok": True, "name": name})
    else:
        say(f"removed the token of {name}", err=True)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")
