"""`stretto playbooks`: the methods that steps are given. List, search, add, pin, delete, curate."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from stretto.assembly.json_forms import playbook_as_json
from stretto.cli.agents import FlagsAnywhere
from stretto.cli.foreground import OpenStretto
from stretto.cli.handles import find_run
from stretto.cli.options import json_option
from stretto.cli.terminal import columns, local_time, print_json, say
from stretto.playbooks.playbook import Playbook
from stretto.text.visible import one_line

if TYPE_CHECKING:
    from stretto.assembly.playbooks import Playbooks

_HEAD = ("NAME", "FROM", "PINNED", "CONFIDENCE", "USES", "LAST USED", "DESCRIPTION")
_T = TypeVar("_T")


@click.group("playbooks", cls=FlagsAnywhere)
def command() -> None:
    """The methods that steps are given: SKILL.md folders, and what was captured from steps.

    Without a command they are listed; every command takes --json.
    """


@command.command("list")
@json_option
def list_playbooks(as_json: bool) -> None:
    """List every playbook, broken ones too."""
    _print_list(_do(lambda playbooks: playbooks.list()), as_json)


@command.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", default=10, type=click.IntRange(1, 1000), help="How many; 10 by default.")
@json_option
def search(query: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find playbooks by words, the best first."""
    found = _do(lambda playbooks: playbooks.search(" ".join(query), limit))
    if as_json:
        rows = [
            {**playbook_as_json(each.playbook), "score": float(f"{each.score:.3g}")}
            for each in found
        ]
        print_json({"ok": True, "playbooks": rows})
    elif not found:
        say("No playbook has these words.")
    else:
        head = ("SCORE", "NAME", "FROM", "DESCRIPTION")
        cells = [
            (f"{each.score:.3g}", each.playbook.name, each.playbook.layer, _about(each.playbook))
            for each in found
        ]
        say("\n".join(columns([head, *cells], has_head=True)))


@command.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show one playbook in full."""
    found = _do(lambda playbooks: playbooks.show(name))
    if as_json:
        more = {"body": found.body, "files": list(found.files), "origin": dict(found.origin)}
        print_json({"ok": True, "playbook": {**playbook_as_json(found), **more}})
        return
    pairs = {
        "name": found.name,
        "from": f"{found.layer}: {found.folder}" if found.folder else found.layer,
        "description": found.description,
        "pinned": "yes" if found.is_pinned else "no",
        "confidence": f"{found.confidence:.2f}",
        "uses": str(found.uses),
        "last used": _day(found.last_used_at),
        "origin": ", ".join(f"{key} {value}" for key, value in found.origin.items()),
        "files": ", ".join(found.files),
    }
    say("\n".join(columns([(key, value) for key, value in pairs.items() if value])))
    say(f"\n{found.body}")


@command.command("add")
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def add(path: Path, as_json: bool) -> None:
    """Copy a folder with a SKILL.md into your own playbooks, or take a skill-v1 file."""
    _print_one(_do(lambda playbooks: playbooks.add(path)), "added", as_json)


@command.command("capture")
@click.argument("run")
@click.argument("step")
@json_option
def capture(run: str, step: str, as_json: bool) -> None:
    """Keep the prompt and the tools of a step that succeeded as a playbook."""

    async def keep() -> Playbook:
        async with OpenStretto() as stretto:
            found = await find_run(stretto, run, as_json)
            return await stretto.playbooks.capture(found, step)

    _print_one(asyncio.run(keep()), "captured", as_json)


@command.command("pin")
@click.argument("name")
@json_option
def pin(name: str, as_json: bool) -> None:
    """Let curation leave a playbook alone."""
    _print_one(_do(lambda playbooks: playbooks.pin(name)), "pinned", as_json)


@command.command("unpin")
@click.argument("name")
@json_option
def unpin(name: str, as_json: bool) -> None:
    """Let curation decide about a playbook."""
    _print_one(_do(lambda playbooks: playbooks.unpin(name)), "unpinned", as_json)


@command.command("delete")
@click.argument("name")
@json_option
def delete(name: str, as_json: bool) -> None:
    """Stop using a playbook. Its folder stays, and restore undoes it."""
    found = _do(lambda playbooks: playbooks.delete(name))
    _print_one(found, "deleted", as_json)
    if not as_json:
        stays = f"its folder stays: {found.folder}; " if found.folder else ""
        say(f"  {stays}to undo: stretto playbooks restore {found.name}")


@command.command("restore")
@click.argument("name")
@json_option
def restore(name: str, as_json: bool) -> None:
    """Use a deleted or pruned playbook again."""
    _print_one(_do(lambda playbooks: playbooks.restore(name)), "restored", as_json)


@command.command("audit")
@click.option(
    "--limit",
    default=100,
    type=click.IntRange(1, 100_000),
    help="How many changes; 100 by default.",
)
@json_option
def audit(limit: int, as_json: bool) -> None:
    """Show who changed which playbook, newest first."""
    entries = _do(lambda playbooks: playbooks.audit(limit))
    if as_json:
        rows = [
            {
                "at": each.at,
                "action": each.action,
                "name": each.name,
                "why": each.why,
                "by": each.by,
            }
            for each in entries
        ]
        print_json({"ok": True, "audit": rows})
    elif not entries:
        say("Nothing was changed yet.")
    else:
        cells = [
            (
                local_time(each.at, has_seconds=True),
                each.action,
                each.name or "-",
                each.by or "curation",
                each.why,
            )
            for each in entries
        ]
        say("\n".join(columns([("TIME", "ACTION", "NAME", "BY", "WHY"), *cells], has_head=True)))


@command.command("curate")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@json_option
def curate(dry_run: bool, as_json: bool) -> None:
    """Prune what nobody uses and merge what says the same; pinned ones are not touched."""
    steps = _do(lambda playbooks: playbooks.curate(dry_run=dry_run))
    if as_json:
        rows = [{"action": each.action, "name": each.name, "why": each.why} for each in steps]
        print_json({"ok": True, "dry_run": dry_run, "steps": rows})
        return
    for each in steps:
        say(f"{'would ' if dry_run else ''}{each.action} {each.name}: {each.why}")
    if not steps:
        say("Nothing to prune or to merge.")


def _do(work: "Callable[[Playbooks], Awaitable[_T]]") -> _T:
    async def main() -> _T:
        async with OpenStretto() as stretto:
            return await work(stretto.playbooks)

    return asyncio.run(main())


def _print_list(found: Sequence[Playbook], as_json: bool) -> None:
    if as_json:
        print_json({"ok": True, "playbooks": [playbook_as_json(each) for each in found]})
        return
    if not found:
        say("There are no playbooks. stretto playbooks add PATH takes a folder with a SKILL.md.")
        return
    say("\n".join(columns([_HEAD, *map(_cells, found)], has_head=True)))


def _print_one(found: Playbook, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"ok": True, "playbook": playbook_as_json(found)})
    else:
        say(f"{found.name}: {done}")


def _cells(each: Playbook) -> tuple[str, ...]:
    if each.fault:
        return (each.name, each.layer, "-", "-", "-", "-", f"broken: {each.fault}")
    return (
        each.name,
        each.layer,
        "yes" if each.is_pinned else "no",
        f"{each.confidence:.2f}",
        str(each.uses),
        _day(each.last_used_at),
        _about(each),
    )


def _about(each: Playbook) -> str:
    return one_line(each.description, 100)


def _day(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d")
