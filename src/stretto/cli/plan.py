"""`stretto plan`: what a run would do, without calling a model."""

import textwrap
import time
from typing import TYPE_CHECKING

import click

from stretto.assembly.playbook_choice import equip_plan
from stretto.cli.inputs import ask_missing, given_inputs, input_options
from stretto.cli.options import json_option
from stretto.cli.project import open_project, open_recipe
from stretto.cli.terminal import columns, print_json, print_warnings, say
from stretto.events.model import Approved
from stretto.plan.dry_run import dry_run
from stretto.plan.model import Plan
from stretto.problems.errors import InvalidUsage
from stretto.templates.render import as_text
from stretto.vocabulary.ids import COMMAND_AGENT

if TYPE_CHECKING:
    from stretto.execution.history import History

_PROMPT_LINES = 12


@click.command("plan")
@click.argument("recipe", metavar="[NAME|FILE]", required=False)
@input_options
@click.option("--full", is_flag=True, help="Show whole prompts.")
@click.option("--run", metavar="RUN", help="The plan that a run has stored, instead of a recipe.")
@json_option
def command(
    recipe: str | None,
    pairs: tuple[str, ...],
    input_json: str | None,
    full: bool,
    run: str | None,
    as_json: bool,
) -> None:
    """Show what a run would do: inputs, prompts, order and cost. No model is called."""
    if (recipe is None) == (run is None):
        raise InvalidUsage("name a recipe, or a run with --run")
    if run is not None:
        _show_stored(run, as_json, full)
    elif recipe is not None:
        show_dry_run(recipe, pairs, input_json, as_json, full)


def _show_stored(run: str, as_json: bool, full: bool) -> None:
    """What a person reads before accepting a plan whose seal does not hold."""
    import asyncio  # a dry run needs no loop

    history, mark = asyncio.run(_load_stored(run, as_json))
    plan = history.state.plan
    found = dry_run(plan, dict(history.started.inputs), history.started.model)
    if as_json:
        print_json({**found, "fingerprint": mark})
        return
    say("\n".join(_text(plan, found, full)))
    say(
        f"\nstored by run {history.started.run_id}, which works on {history.started.workspace or 'no folder'}"
    )
    for event in history.events:
        if isinstance(event, Approved):
            say(f"approved: {event.step}, by {event.by or 'a person'}")
    say(f"fingerprint {mark}")


async def _load_stored(run: str, as_json: bool) -> "tuple[History, str]":
    from stretto.cli.foreground import OpenStretto
    from stretto.cli.handles import find_run

    async with OpenStretto() as stretto:
        runs = await stretto.engine.runs_of()
        history = await runs.history(await find_run(stretto, run, as_json))
        return history, runs.fingerprint(history)


def show_dry_run(
    recipe: str, pairs: tuple[str, ...], input_json: str | None, as_json: bool, full: bool
) -> None:
    project = open_project()
    opened = open_recipe(project, recipe)
    plan = project.plan(opened)
    given = given_inputs(pairs, input_json)
    if not as_json:
        given = ask_missing(project, opened, given)
    inputs = project.inputs(plan, given)
    plan = project.with_copy_warnings(project.bind(plan, inputs), project.model(None))
    plan, _ = equip_plan(plan, inputs, project.settings, time.time, is_dry_run=True)
    found = dry_run(plan, inputs, project.settings.model)
    if as_json:
        print_json(found)
    else:
        print_warnings(plan.warnings)
        say("\n".join(_text(plan, found, full)))


def _text(plan: Plan, found: dict, full: bool) -> list[str]:  # type: ignore[type-arg]
    summary = found["summary"]
    lines = [f"{plan.name}: dry run, no model was called", ""]
    if found["inputs"]:
        lines.append("Inputs")
        rows = [
            (name, "(empty)" if value in (None, "") else as_text(value))
            for name, value in found["inputs"].items()
        ]
        lines += [f"  {line}" for line in columns(rows, margin=2)] + [""]
    lines.append(f"Waves, {summary['max_concurrency']} at once, if every step took equally long")
    lines += [f"  {i}. {', '.join(wave)}" for i, wave in enumerate(found["waves"], start=1)] + [""]
    for number, step in enumerate(found["would_run"], start=1):
        lines += _step_lines(number, step, full)
    lines.append(
        f"{summary['steps']} steps, at most {summary['max_delegations']:,} subagents "
        f"and {summary['max_model_calls']:,} model calls"
    )
    return lines


def _step_lines(number: int, step: dict, full: bool) -> list[str]:  # type: ignore[type-arg]
    title = f"{number}. {step['id']} ({step['type']})"
    facts = [
        ("waits for", ", ".join(step["depends_on"])),
        ("runs when", step["when"] or ""),
        ("gate", "a person must allow it" if step["gate"] else ""),
        ("files", _files(step)),
        ("if it fails", step["on_failure"]),
        ("decides", _decision(step["decides"])),
    ]
    lines = [title, *(f"   {line}" for line in columns([(k, v) for k, v in facts if v], margin=3))]
    for each in step["delegations"]:
        model = f", model {each['model']}" if each["model"] else ""
        tools = f", tools {' '.join(each['tools'])}" if each["tools"] else ""
        who = "a command" if each["agent"] == COMMAND_AGENT else f"{each['agent']}{model}{tools}"
        given = each.get("playbooks")
        methods = f", playbooks {' '.join(given)}" if given else ""
        lines.append(f"   {each['role']}: {who}{methods}")
        lines += [f"     │ {line}" for line in _prompt_lines(each["prompt"], full)]
    return [*lines, ""]


def _files(step: dict) -> str:  # type: ignore[type-arg]
    if step["posture"] == "read_only":
        return f"reads {', '.join(step['read_set'])}"
    return f"writes {', '.join(step['write_set'])} ({step['workspace_mode']})"


def _decision(decides: dict | None) -> str:  # type: ignore[type-arg]
    if not decides:
        return ""
    ways = decides.get("cases") or {key: decides[key] for key in ("true", "false")}
    if decides.get("default"):
        ways = {**ways, "otherwise": decides["default"]}
    spelt = ", ".join(f"{way} → {target or 'nothing'}" for way, target in ways.items())
    return f"{decides.get('eval') or decides.get('value')}: {spelt}"


def _prompt_lines(prompt: str, full: bool) -> list[str]:
    lines = [piece for line in prompt.splitlines() for piece in textwrap.wrap(line, 92) or [""]]
    if full or len(lines) <= _PROMPT_LINES:
        return lines
    left = len(lines) - _PROMPT_LINES + 1
    return [*lines[: _PROMPT_LINES - 1], f"… {left} more lines; --full shows them"]
