"""`stretto serve`: Stretto over HTTP, and the tokens with which it may be used."""

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stretto.cli.foreground import OpenStretto
from stretto.cli.options import CommandGroup, json_option
from stretto.cli.terminal import columns, local_time, print_json, say
from stretto.config.settings import home_of, load_settings
from stretto.problems.errors import InvalidUsage, NotReady
from stretto.vocabulary.amounts import parse_duration

if TYPE_CHECKING:
    from stretto.server.process import ServedAt


@click.group("serve", cls=CommandGroup, invoke_without_command=True)
@click.option("--host", help="The address to listen at; 127.0.0.1 by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port to listen at; 7317 by default, 0 picks a free one.",
)
@click.option(
    "--public",
    "is_public",
    is_flag=True,
    help="Needed with a --host that other machines can reach.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name by which the server may be called.",
)
@click.option("--workers", type=click.IntRange(1), help="How many processes serve; 1 by default.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How logs are written to stderr; text by default.",
)
@click.option("--verbose", "is_verbose", is_flag=True, help="Log every request.")
@click.pass_context
def command(
    ctx: click.Context,
    host: str | None,
    port: int | None,
    is_public: bool,
    hosts: tuple[str, ...],
    workers: int | None,
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
    from stretto.server.process import ServeOptions, serve, write_log

    write_log(log_format == "json", is_verbose)
    own = load_settings(Path.cwd(), os.environ).server
    options = ServeOptions(
        own.host if host is None else host,
        own.port if port is None else port,
        is_public or own.is_public,
        (*own.hosts, *hosts),
        own.workers if workers is None else workers,
    )
    if options.is_public:
        said = "other machines can reach this server: put a proxy that speaks https before it"
        say(said, err=True, mark="warning", colour="yellow")
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
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The port of the server; 7317 by default."
)
def link(port: int | None) -> None:
    """Print a new login link of the server that runs here."""
    from stretto.server.process import new_link

    port = port or load_settings(Path.cwd(), os.environ).server.port
    say(new_link(port, home_of(os.environ), os.environ))


@command.group("token", cls=CommandGroup)
def token() -> None:
    """Tokens for other people and programs, each with a role."""


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "author", "admin"]),
    default="viewer",
    help="What the token may do; viewer by default.",
)
@click.option(
    "--owner", default="", metavar="WHO", help="Who owns the runs that it starts; NAME by default."
)
@click.option(
    "--expires", metavar="TIME", help="How long it is valid, such as 30d; without end by default."
)
@json_option
def add(name: str, role: str, owner: str, expires: str | None, as_json: bool) -> None:
    """Make a token and print it, this once: only its digest is kept."""
    from stretto.server.tokens import add_token

    seconds = None if expires is None else _seconds(expires)
    made = add_token(home_of(os.environ), name, role, owner, seconds)
    if as_json:
        found = {"ok": True, "name": name, "role": role, "owner": owner or name, "token": made}
        print_json({**found, "expires_in_seconds": seconds})
        return
    say(made)
    until = f", for {expires}" if expires else ""
    say(f"the token of {owner or name}, {role}{until}; it is not shown again", err=True)


def _seconds(written: str) -> float:
    seconds = parse_duration(written)
    if seconds is None:
        hint = "such as 12h or 30d, at most a year"
        raise InvalidUsage(f"--expires {written[:40]} is no length of time", hint=hint)
    return seconds


@token.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List the tokens."""
    from stretto.server.tokens import list_tokens

    found = list_tokens(home_of(os.environ))
    if as_json:
        rows = [
            {name: getattr(each, name) for name in ("name", "role", "owner", "at", "expires_at")}
            for each in found
        ]
        print_json({"ok": True, "tokens": rows})
        return
    rows_shown = [
        (each.name, each.role, each.owner, local_time(each.at), _until(each.expires_at))
        for each in found
    ]
    say("\n".join(columns([("NAME", "ROLE", "OWNER", "MADE", "EXPIRES"), *rows_shown])))


@token.command("revoke")
@click.argument("name")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Refuse a token, and the sessions opened with it, from now on."""
    from stretto.server.tokens import revoke_token

    revoke_token(home_of(os.environ), name)
    if as_json:
        print_json({"ok": True, "name": name})
    else:
        say(f"revoked the token {name}", err=True)


@command.command("logout")
@click.argument("owner", required=False)
@json_option
def log_out(owner: str | None, as_json: bool) -> None:
    """End the sessions of all browsers, or those of one OWNER. Tokens stay valid."""
    from stretto.server.tokens import log_out

    count = log_out(home_of(os.environ), owner, os.environ)
    if as_json:
        print_json({"ok": True, "sessions": count})
    else:
        say(f"ended {count} session{'' if count == 1 else 's'}", err=True)


def _until(at: float | None) -> str:
    if at is None:
        return "never"
    return "expired" if at <= time.time() else local_time(at)
