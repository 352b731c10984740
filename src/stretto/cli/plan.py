"""`stretto plan`: what a run would do, without calling a model."""

import textwrap
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from stretto.assembly.playbook_choice import equip_plan
from stretto.cli.inputs import ask_missing, given_inputs, input_options
from stretto.cli.options import json_option
from stretto.cli.project import open_project, open_recipe
from stretto.cli.terminal import columns, print_json, print_warnings, say, terminal_columns
from stretto.events.model import Approved
from stretto.plan.dry_run import dry_run
from stretto.plan.model import Plan
from stretto.plan.prepare import RunPolicy, prepare
from stretto.problems.errors import InvalidUsage
from stretto.templates.render import as_text
from stretto.text.short import counted, listed, show_json
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import COMMAND_AGENT

if TYPE_CHECKING:
    from stretto.execution.history import History

_PROMPT_LINES = 12
_PROMPT_MARGIN = 8  # columns before the lines of a prompt, and one after them


@click.command("plan")
@click.argument("recipe", metavar="[NAME|FILE]", required=False)
@input_options
@click.option("--full", is_flag=True, help="Show whole prompts, not only their beginnings.")
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
    found = dry_run(
        plan, dict(history.started.inputs), open_project().named_models(history.started.model)
    )
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
    recipe: str,
    pairs: tuple[str, ...],
    input_json: str | None,
    as_json: bool,
    full: bool,
    model: str | None = None,
    permission: str | None = None,
) -> None:
    """`permission`: None shows the plan as it is written, whatever the settings allow."""
    project = open_project()
    opened = open_recipe(project, recipe)
    plan = project.plan(opened)
    given = given_inputs(pairs, input_json)
    if not as_json:
        given = ask_missing(project, opened, given)
    inputs = project.inputs(plan, given)
    override = project.model(model)
    plan = project.with_copy_warnings(project.bind(plan, inputs), override)
    if permission is not None:
        plan = prepare(plan, RunPolicy(permission))
    plan, inputs = project.without_secrets(project.tell_of_secrets(plan, inputs), inputs)
    plan, _ = equip_plan(plan, inputs, project.settings, time.time, is_dry_run=True)
    found = dry_run(plan, inputs, project.named_models(override))
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
    lines.append(f"Result: {_result(plan)}")
    limit = f" in at most {format_duration(plan.timeout_seconds)}" if plan.timeout_seconds else ""
    lines.append(
        f"{counted(summary['steps'], 'step')}, at most "
        f"{counted(summary['max_delegations'], 'subagent')} "
        f"and {counted(summary['max_model_calls'], 'model call')}{limit}"
    )
    return lines


def _result(plan: Plan) -> str:
    if plan.output is not None:
        return plan.output.text.strip()
    if plan.dialect == "structural":
        return "the output of every step, by its id"
    return "the output of the last listed step that has one"


def _step_lines(number: int, step: dict, full: bool) -> list[str]:  # type: ignore[type-arg]
    title = f"{number}. {step['id']} ({step['type']})"
    seconds = step["timeout_seconds"]
    facts = [
        ("recipe", _recipe(step)),
        ("waits for", ", ".join(step["depends_on"])),
        ("runs when", step["when"] or ""),
        ("gate", "a person must allow it" if step["gate"] else ""),
        ("files", _files(step)),
        ("may take", format_duration(seconds) if seconds else ""),
        ("if it fails", step["on_failure"]),
        ("decides", _decision(step["decides"])),
        ("ends when", _end(step)),
        ("elements", _elements(step)),
        ("stored as", step["store_as"] or ""),
    ]
    lines = [title, *(f"   {line}" for line in columns([(k, v) for k, v in facts if v], margin=3))]
    for name, value in step.get("inputs", {}).items():
        lines.append(f"   gives {name}: {show_json(value, 200)}")
    for each in step["delegations"]:
        model = f", model {each['model']}" if each["model"] else ""
        tools = f", tools {' '.join(each['tools'])}" if each["tools"] else ""
        who = "in the shell" if each["agent"] == COMMAND_AGENT else f"{each['agent']}{model}{tools}"
        given = each.get("playbooks")
        methods = f", playbooks {' '.join(given)}" if given else ""
        lines.append(f"   {each['role']}: {who}{methods}")
        lines += [f"     {line}" for line in columns(list(_terms(each)), margin=5)]
        lines += [f"     │ {line}" for line in _prompt_lines(each["prompt"], full)]
    return [*lines, ""]


def _recipe(step: dict) -> str:  # type: ignore[type-arg]
    used = step.get("workflow")
    if not used:
        return ""
    version = f" {used['version']}" if used["version"] else ""
    return (
        f"{used['name']}{version}, {used['file'] or 'given as text'}, digest {used['digest'][:12]}"
    )


def _end(step: dict) -> str:  # type: ignore[type-arg]
    if step["type"] == "parallel":
        needed, count = step["branches_needed"], len(step["delegations"])
        return f"{needed} of {count} branches succeeded (wait: {step['wait']})"
    if step["type"] == "loop":
        until = step["until"] or "the validator passes it"
        return f"{until}, after at most {step['max_iterations']} rounds"
    return ""


def _elements(step: dict) -> str:  # type: ignore[type-arg]
    if step["type"] != "map":
        return ""
    length, most = step["elements"], step["max_items"]
    count = f"at most {most:,}" if length is None else f"{length:,}"
    if length is not None and length > most:
        count += f", and at most {most:,} are allowed (max_items): the step will fail"
    failing = step["on_item_failure"]
    policy = f"; one that fails: {failing}" if failing else ""
    return f"{count}, of {step['over'].strip()}, {step['batch_size']} at once{policy}"


def _terms(each: dict) -> Iterator[tuple[str, str]]:  # type: ignore[type-arg]
    """What is asked of an answer, and what happens without one."""
    if expected := _schema(each["schema"]) or each["format"]:
        yield "answers", expected
    for place, rule in enumerate(each["rules"]):
        yield ("rules" if place == 0 else ""), f"{rule['rule']} ({_decider(rule)})"
    fallback, seconds = each["fallback"], each["timeout_seconds"]
    tries = [_tries(each["retry"])] if each["retry"]["max_attempts"] > 1 else []
    if fallback:
        times = f" ({_tries(fallback)})" if fallback["max_attempts"] > 1 else ""
        tries.append(f"then {fallback['agent']} takes over{times}")
    if tries:
        yield "retries", ", ".join(tries)
    if seconds:
        yield "may take", f"{format_duration(seconds)} each time"


def _schema(schema: Mapping[str, Json] | None) -> str:
    if schema is None:
        return ""
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not fields:
        return f"JSON by a schema: {show_json(dict(schema), 120)}"
    required = schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    said = (
        f"{name}{'' if name in needed else '?'}{_kind(field)}" for name, field in fields.items()
    )
    return f"JSON with {listed(said, 12)}"


def _kind(field: Json) -> str:
    kind = field.get("type") if isinstance(field, dict) else None
    return f" ({kind})" if isinstance(kind, str) else ""


def _decider(rule: dict) -> str:  # type: ignore[type-arg]
    judge = rule["judge"]
    if rule["decided_by"] == "code":
        return f"decided by code; unclear answers by {judge}" if judge else "decided by code"
    return f"decided by {judge}" if judge else "nobody will check it"


def _tries(retry: dict) -> str:  # type: ignore[type-arg]
    wait = "" if retry["backoff"] == "none" else f", {retry['backoff']} backoff"
    return f"up to {retry['max_attempts']} attempts{wait}"


def _files(step: dict) -> str:  # type: ignore[type-arg]
    if step["type"] == "workflow":
        return ""  # those of its steps
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
    room = min(terminal_columns() or 100, 100) - _PROMPT_MARGIN
    lines = [piece for line in prompt.splitlines() for piece in textwrap.wrap(line, room) or [""]]
    if full or len(lines) <= _PROMPT_LINES:
        return lines
    left = len(lines) - _PROMPT_LINES + 1
    return [*lines[: _PROMPT_LINES - 1], f"… {left} more lines; --full shows them"]
