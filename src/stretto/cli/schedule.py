"""`stretto schedule`: what starts runs by itself. Schedules, webhooks, watched folders."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

import click

from stretto.assembly.request import RunRequest
from stretto.cli.agents import FlagsAnywhere
from stretto.cli.foreground import (
    INTERRUPTED,
    OpenStretto,
    drive,
    hear_stop_signals,
    prepare,
    wait_until_stopped,
)
from stretto.cli.inputs import given_inputs, input_options
from stretto.cli.options import json_option, permission_option
from stretto.cli.result import ResultOptions
from stretto.cli.terminal import columns, print_json, say
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.text.short import listed
from stretto.text.visible import one_line
from stretto.triggers.cron import MISSED, OVERLAP
from stretto.triggers.trigger import Trigger, TriggerFire, fire_as_json, trigger_as_json
from stretto.vocabulary.amounts import iso, parse_duration
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.assembly.triggers import AddedWebhook, Triggers

_T = TypeVar("_T")
_KINDS = {"--cron": "cron", "--webhook": "is_webhook", "--watch": "watch"}
# Which options only one kind of trigger has, with the names of their values.
_OPTIONS_OF_KIND = {
    "--cron": {"--zone": "zone", "--missed": "missed"},
    "--webhook": {"--map": "mapped"},
    "--watch": {
        "--input-for-file": "input_for_file",
        "--pattern": "pattern",
        "--settle": "settle",
        "--existing": "existing",
    },
}


@click.group("schedule", cls=FlagsAnywhere)
def command() -> None:
    """Start workflows by themselves: at certain times, when somebody posts to a webhook, or for each
    file that comes into a folder.

    They fire while stretto serve runs, or stretto schedule run. Every command takes --json.
    """


@command.command("add")
@click.argument("name")
@click.argument("workflow")
@click.option("--cron", metavar="EXPR", help="Fire at these times: minute hour day month weekday.")
@click.option("--zone", help="The time zone by whose clock it fires; UTC by default.")
@click.option(
    "--webhook", "is_webhook", is_flag=True, help="Fire when a request is posted to its address."
)
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="INPUT=TEMPLATE",
    help="What an input gets from the body, such as {{body.title}}.",
)
@click.option(
    "--watch",
    metavar="FOLDER",
    help="Fire for each file that comes into this folder, or changes there.",
)
@click.option("--input-for-file", metavar="INPUT", help="The input that gets the file's path.")
@click.option("--pattern", help="Only files whose names match this; '*' by default.")
@click.option("--settle", help="How long a file must not have changed; 2s by default.")
@click.option(
    "--existing", is_flag=True, default=None, help="Fire for the files that are there already, too."
)
@click.option(
    "--missed",
    type=click.Choice(MISSED),
    help="What becomes of times at which no server ran; once by default.",
)
@click.option(
    "--overlap",
    type=click.Choice(OVERLAP),
    help="What happens when it fires while its last run goes on.",
)
@permission_option
@input_options
@json_option
def add(
    name: str,
    workflow: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Add a trigger of a saved WORKFLOW: a schedule (--cron), a webhook or a watched folder."""
    _check_kind(said)
    inputs = given_inputs(pairs, input_json)
    common: dict[str, Any] = {"inputs": inputs, **_pick_given(said, "permission", "overlap")}

    async def work(triggers: "Triggers") -> "Trigger | AddedWebhook":
        if said["cron"] is not None:
            more = _pick_given(said, "zone", "missed")
            return await triggers.add_schedule(name, workflow, said["cron"], **common, **more)
        if said["is_webhook"]:
            mapping = _mapping(said["mapped"])
            return await triggers.add_webhook(name, workflow, mapping=mapping, **common)
        if said["input_for_file"] is None:
            hint = "--input-for-file names the input that gets the file's path"
            raise InvalidUsage("--watch needs --input-for-file", hint=hint)
        more = _pick_given(said, "pattern", "existing") | {"input": said["input_for_file"]}
        more |= {} if said["settle"] is None else {"settle_seconds": _seconds(said["settle"])}
        return await triggers.add_folder(name, workflow, said["watch"], **common, **more)

    _print_added(_do(work), as_json)


def _check_kind(said: dict[str, Any]) -> None:
    """Raises InvalidUsage unless the options are those of one kind of trigger."""
    kinds = [kind for kind, name in _KINDS.items() if said[name] not in (None, False)]
    if len(kinds) != 1:
        raise InvalidUsage(
            "say when: one of --cron, --webhook and --watch",
            hint='stretto schedule add nightly digest --cron "0 2 * * *" --zone Europe/Berlin',
        )
    lost = [
        option
        for kind, options in _OPTIONS_OF_KIND.items()
        for option, name in options.items()
        if kind not in kinds and said[name] not in (None, ())
    ]
    if lost:
        hint = "only another kind of trigger has such an option"
        raise InvalidUsage(f"{listed(lost)} cannot be used with {kinds[0]}", hint=hint)


def _pick_given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options that were given; the others have defaults of their own."""
    return {name: options[name] for name in names if options[name] is not None}


def _mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, template = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidUsage(f"'{pair}' maps nothing", hint="--map topic='{{body.title}}'")
        found[name.strip()] = template
    return found


def _seconds(written: str) -> float:
    seconds = parse_duration(written)
    if seconds is None:
        raise InvalidUsage(f"--settle {written} is no duration", hint="such as 2s or 500ms")
    return seconds


def _print_added(added: "Trigger | AddedWebhook", as_json: bool) -> None:
    trigger = added if isinstance(added, Trigger) else added.trigger
    secret = {} if isinstance(added, Trigger) else {"secret": added.secret}
    if as_json:
        print_json({"ok": True, "schedule": trigger_as_json(trigger), **secret})
        return
    say(f"{trigger.name}: {_when(trigger)}, {trigger.workflow}")
    if secret:
        say(f"  address  /hooks/{trigger.hook} of stretto serve")
        say(f"  secret   {secret['secret']}")
        say("  The secret is shown this once: give it to the sender, who signs with it.")
    else:
        say("  It starts while one of these runs: stretto schedule run, stretto serve", err=True)


@command.command("change")
@click.argument("name")
@click.option("--workflow", help="Start another saved workflow.")
@click.option("--cron", metavar="EXPR", help="Of a schedule: the times at which it fires.")
@click.option("--zone", help="Of a schedule: the time zone by whose clock it fires.")
@click.option(
    "--missed",
    type=click.Choice(MISSED),
    help="Of a schedule: what becomes of times at which no server ran.",
)
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="INPUT=TEMPLATE",
    help="Of a webhook: all inputs that are taken from the body.",
)
@click.option(
    "--watch", "folder", metavar="FOLDER", help="Of a watched folder: the folder to watch instead."
)
@click.option(
    "--input-for-file", "input", metavar="INPUT", help="The input that gets the file's path."
)
@click.option("--pattern", help="Only files whose names match this.")
@click.option("--settle", help="How long a file must not have changed.")
@click.option(
    "--existing", is_flag=True, default=None, help="Fire for the files that are there already, too."
)
@click.option(
    "--overlap",
    type=click.Choice(OVERLAP),
    help="What happens when it fires while its last run goes on.",
)
@permission_option
@input_options
@json_option
def change(
    name: str, pairs: tuple[str, ...], input_json: str | None, as_json: bool, **said: Any
) -> None:
    """Change a trigger. What is not named stays as it is, and so does the record of its fires."""
    own = ("workflow", "cron", "zone", "missed", "folder", "input", "pattern", "existing")
    settings = _pick_given(said, *own, "overlap", "permission")
    settings |= {"mapping": _mapping(said["mapped"])} if said["mapped"] else {}
    settings |= {"settle_seconds": _seconds(said["settle"])} if said["settle"] else {}
    given = given_inputs(pairs, input_json)

    async def work(triggers: "Triggers") -> Trigger:
        more = {"inputs": {**(await triggers.show(name)).inputs, **given}} if given else {}
        return await triggers.change(name, **settings, **more)

    _print_done(_do(work), "changed", as_json)


@command.command("list")
@json_option
def list_triggers(as_json: bool) -> None:
    """List the triggers of this project."""

    async def work(triggers: "Triggers") -> list[tuple[Trigger, float | None]]:
        found = []
        for each in await triggers.list():
            coming = await triggers.next(each.name, 1)
            found.append((each, coming[0] if coming else None))
        return found

    found = _do(work)
    if as_json:
        rows = [{**trigger_as_json(each), "next_at": iso(at)} for each, at in found]
        print_json({"ok": True, "schedules": rows})
        return
    if not found:
        say('There is none. stretto schedule add NAME WORKFLOW --cron "0 2 * * *" adds one.')
        return
    head = ("NAME", "WHEN", "WORKFLOW", "NEXT")
    cells = [
        (
            each.name,
            _when(each),
            each.workflow,
            "paused" if each.is_paused else _local(at, each.zone) if at is not None else "-",
        )
        for each, at in found
    ]
    say("\n".join(columns([head, *cells])))


@command.command("show")
@click.argument("name")
@click.option(
    "--limit", default=20, type=click.IntRange(1, 10_000), help="How many fires; 20 by default."
)
@json_option
def show(name: str, limit: int, as_json: bool) -> None:
    """Show a trigger, and what became of each of its fires."""

    async def work(triggers: "Triggers") -> tuple[Trigger, tuple[TriggerFire, ...]]:
        return await triggers.show(name), await triggers.fires(name, limit)

    trigger, fires = _do(work)
    if as_json:
        shown = [fire_as_json(each) for each in fires]
        print_json({"ok": True, "schedule": trigger_as_json(trigger), "fires": shown})
        return
    pairs = {
        "name": trigger.name,
        "when": _when(trigger),
        "workflow": trigger.workflow,
        "inputs": ", ".join(f"{key}={value}" for key, value in trigger.inputs.items()),
        "mapping": ", ".join(f"{key}={value}" for key, value in trigger.mapping.items()),
        "missed": trigger.missed if trigger.kind == "schedule" else "",
        "overlap": trigger.overlap,
        "paused": "yes" if trigger.is_paused else "",
    }
    say("\n".join(columns([(key, one_line(value, 200)) for key, value in pairs.items() if value])))
    if fires:
        cells = [
            (_local(each.due_at, trigger.zone), each.status, each.run_id, one_line(each.why, 120))
            for each in fires
        ]
        say("\n" + "\n".join(columns([("DUE", "STATUS", "RUN", "WHY"), *cells])))


@command.command("next")
@click.argument("name")
@click.option(
    "--count", default=5, type=click.IntRange(1, 1000), help="How many times; 5 by default."
)
@json_option
def show_next(name: str, count: int, as_json: bool) -> None:
    """Show when a schedule fires next."""

    async def work(triggers: "Triggers") -> tuple[Trigger, tuple[float, ...]]:
        return await triggers.show(name), await triggers.next(name, count)

    trigger, moments = _do(work)
    if as_json:
        print_json({"ok": True, "name": name, "next": [_local(at, trigger.zone) for at in moments]})
    elif not moments:
        say(
            "it is paused"
            if trigger.is_paused
            else f"a {trigger.kind} fires when something arrives, at no fixed times"
        )
    for at in () if as_json else moments:
        say(_local(at, trigger.zone))


@command.command("pause")
@click.argument("name")
@json_option
def pause(name: str, as_json: bool) -> None:
    """Pause a trigger: it does not fire until it is resumed."""
    _print_done(_do(lambda triggers: triggers.pause(name)), "paused", as_json)


@command.command("resume")
@click.argument("name")
@json_option
def resume(name: str, as_json: bool) -> None:
    """Let a paused trigger fire again, from now on."""
    _print_done(_do(lambda triggers: triggers.resume(name)), "resumed", as_json)


@command.command("remove")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a trigger. The runs that it has started are kept."""
    _do(lambda triggers: triggers.remove(name))
    if as_json:
        print_json({"ok": True, "name": name})
    else:
        say(f"{name}: removed")


@command.command("rotate")
@click.argument("name")
@json_option
def rotate(name: str, as_json: bool) -> None:
    """Give a webhook a new secret; the old one is refused from then on."""
    _print_added(_do(lambda triggers: triggers.rotate(name)), as_json)


@command.command("run-now")
@click.argument("name")
@json_option
def run_now(name: str, as_json: bool) -> int:
    """Run the workflow of a trigger now, with the trigger's inputs."""
    return asyncio.run(_run_now(name, ResultOptions(as_json)))


async def _run_now(name: str, result: ResultOptions) -> int:
    async with OpenStretto() as stretto:
        fire = await stretto.triggers.fire(name, is_started_here=True)
        try:
            trigger = await stretto.triggers.show(name)
            request = RunRequest(
                trigger.workflow,
                trigger.inputs,
                permission=trigger.permission,
                run_id=RunId(fire.run_id),
                trigger=f"{trigger.kind} {trigger.name}",
            )
            prepared = await prepare(stretto, request, result)
            code = await drive(stretto, prepared, result)
            await stretto.triggers.note_begun(fire)
            return code
        except BaseException as error:  # Ctrl-C too
            await stretto.triggers.give_up(fire, _why(error))
            raise


def _why(error: BaseException) -> str:
    if isinstance(error, StrettoError):
        return "; ".join([error.with_hint, *(each.message for each in error.problems)])
    if isinstance(error, Exception) and not isinstance(error, click.Abort):
        return f"{type(error).__name__}: {error}"
    return "it was interrupted before its run began"


@command.command("run")
@json_option
def run(as_json: bool) -> int:
    """Fire triggers in the foreground, until Ctrl-C. stretto serve fires them as well."""
    return asyncio.run(_serve(as_json))


async def _serve(as_json: bool) -> int:
    def tell(fire: TriggerFire) -> None:
        if as_json:
            print_json(fire_as_json(fire))
        else:
            why = f": {one_line(fire.why, 300)}" if fire.why else ""
            say(f"{fire.kind} {fire.trigger}: run {fire.run_id} {fire.status}{why}")

    stopped = hear_stop_signals()
    async with OpenStretto() as stretto:
        serving = asyncio.create_task(stretto.triggers.serve(tell))
        await wait_until_stopped(serving, stopped)
        serving.cancel()
        await asyncio.wait([serving])
    return INTERRUPTED


def _do(work: "Callable[[Triggers], Awaitable[_T]]") -> _T:
    async def main() -> _T:
        async with OpenStretto() as stretto:
            return await work(stretto.triggers)

    return asyncio.run(main())


def _print_done(trigger: Trigger, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"ok": True, "schedule": trigger_as_json(trigger)})
    else:
        say(f"{trigger.name}: {done}")


def _when(trigger: Trigger) -> str:
    if trigger.kind == "schedule":
        return f"{trigger.cron} {trigger.zone}"
    return f"watches {trigger.folder}" if trigger.kind == "folder" else "webhook"


def _local(at: float, zone: str) -> str:
    return datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat(timespec="seconds")
