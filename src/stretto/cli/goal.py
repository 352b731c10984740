"""`stretto goal`: run again until a verifier passes. Set, list, show, clear, resume."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import TypeVar

import click

from stretto.assembly.goal_executor import GoalWatch
from stretto.assembly.goal_requests import GoalRequest, read_limits
from stretto.assembly.goals import Goal, Goals
from stretto.assembly.request import PreparedRun
from stretto.cli.agents import FlagsAnywhere
from stretto.cli.foreground import (
    FAILED,
    INTERRUPTED,
    WAITING,
    OpenStretto,
    can_ask,
    open_progress,
    stopped_by_signals,
)
from stretto.cli.handles import refuse_blank
from stretto.cli.inputs import given_inputs, input_options
from stretto.cli.options import json_option, model_option, permission_option
from stretto.cli.project import open_recipe
from stretto.cli.result import ResultOptions
from stretto.cli.terminal import columns, local_time, print_json, say
from stretto.execution.driver import Listener
from stretto.goals.goal import (
    DEFAULT_ITERATIONS,
    DEFAULT_STALL,
    CheckEnded,
    CheckStarted,
    GoalEvent,
    GoalLimits,
    GoalReport,
    GoalStanding,
    IterationEnded,
    IterationStarted,
    IterationWaits,
)
from stretto.plan.model import Plan
from stretto.problems.errors import InvalidUsage, NotFound, StrettoError
from stretto.schedule.state import RunState
from stretto.text.short import counted, did_you_mean, shorten
from stretto.text.visible import one_line
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import StepId

_T = TypeVar("_T")
_CODES = {"achieved": 0, "waiting": WAITING, "overdue": WAITING, "interrupted": INTERRUPTED}
_COLOURS = {"achieved": "green", "active": "yellow", "waiting": "yellow", "interrupted": "yellow"}
_BUDGET = re.compile(
    r"(?:(tokens|usd)=)?(\$)?(\d+(?:\.\d+)?)(k|m)?\s*(tokens|usd)?\Z", re.IGNORECASE
)
_MOST_SHOWN = 20  # lines of evidence at the end


def _limit_options(function: Callable[..., int]) -> Callable[..., int]:
    for option in (
        click.option("--timeout", metavar="TIME", help="How long all the work together may take, such as 90s or 2h."),
        click.option(
            "--budget", metavar="BUDGET", multiple=True,
            help="What all runs together may cost, such as tokens=200k,usd=5.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


@click.group("goal", cls=FlagsAnywhere)
def command() -> None:
    """Run again until a verifier passes, the budget is spent, or it is given up.

    Without a command the goals are listed; every command takes --json.
    """


@command.command("set")
@click.argument("text")
@click.option("--verify", metavar="KIND:SPEC", required=True,
              help="command:CMD, test:PATHS, ci:CMD or ref, data:FILE-or-URL#EXPRESSION, llm:words.")  # fmt: skip
@click.option(
    "--workflow",
    metavar="NAME|FILE",
    help="What one iteration runs; without it, a turn of the lead agent.",
)
@input_options
@click.option(
    "--evidence-input", metavar="INPUT", help="The input that gets the evidence of the last check."
)
@click.option("--max-iterations", type=int, default=DEFAULT_ITERATIONS, show_default=True,
              help="How many runs at most.")  # fmt: skip
@_limit_options
@click.option(
    "--verify-timeout", metavar="TIME", help="How long one check may take; 10m by default."
)
@click.option("--stall-after", type=int, default=DEFAULT_STALL, show_default=True,
              help="After how many iterations without new evidence to stop; 0 for never.")  # fmt: skip
@model_option
@permission_option
@click.option("--detach", "is_detached", is_flag=True, help="Leave it to a background process.")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, only the end.")
@json_option
def set_goal(
    text: str,
    verify: str,
    workflow: str | None,
    pairs: tuple[str, ...],
    input_json: str | None,
    evidence_input: str | None,
    max_iterations: int,
    budget: tuple[str, ...],
    timeout: str | None,
    verify_timeout: str | None,
    stall_after: int,
    model: str | None,
    permission: str | None,
    is_detached: bool,
    is_quiet: bool,
    as_json: bool,
) -> int:
    """Verify, run, verify again, until the verifier passes.

    Each iteration runs the workflow, which is given the evidence of the last check, or a turn of an
    agent. A goal that is cut off goes on with stretto goal resume.
    """
    limits = read_limits(
        GoalLimits(), max_iterations, read_budget(budget), timeout, verify_timeout, stall_after
    )
    stretto = OpenStretto()
    recipe = open_recipe(stretto.project, workflow) if workflow is not None else None
    request = GoalRequest(
        text, verify, recipe, given_inputs(pairs, input_json), evidence_input, limits, model, permission
    )  # fmt: skip
    result = ResultOptions(as_json, is_quiet, is_streamed=False)
    return asyncio.run(_set(stretto, request, is_detached, result))


async def _set(
    stretto: OpenStretto, request: GoalRequest, is_detached: bool, result: ResultOptions
) -> int:
    async with stretto:
        id = await stretto.goals.record(request)
        _warn(await stretto.goals.show(id), result)
        if is_detached:
            return await _detach(stretto, id, result)
        return await _drive(stretto, id, result)


def _warn(goal: GoalReport, result: ResultOptions) -> None:
    if goal.workflow and not goal.evidence_input and not (result.as_json or result.is_quiet):
        said = f"{goal.workflow} has no input for text, so it is not told what the last check said"
        say(f"{said}: declare an input 'evidence'", err=True)


@command.command("resume")
@click.argument("goal", required=False)
@click.option(
    "--max-iterations", type=int, help="How many runs at most, those already made included."
)
@_limit_options
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, only the end.")
@json_option
def resume(
    goal: str | None,
    max_iterations: int | None,
    budget: tuple[str, ...],
    timeout: str | None,
    is_quiet: bool,
    as_json: bool,
) -> int:
    """Go on with a goal that was interrupted, or that waited for a person.

    One that is exhausted, stalled or unachievable is opened again; what it has used still counts.
    """
    result = ResultOptions(as_json, is_quiet, is_streamed=False)

    async def main() -> int:
        async with OpenStretto() as stretto:
            found = await find_goal(stretto.goals, goal)
            if found.state in ("achieved", "cleared"):
                # As `stretto resume` does for a run that has ended: print how it came out.
                return _print(found, result)
            limits = read_limits(
                found.limits, max_iterations, read_budget(budget), timeout, None, None
            )
            return await _drive(stretto, found.id, result, limits)

    return asyncio.run(main())


@command.command("list")
@json_option
def list_goals(as_json: bool) -> None:
    """List the goals, newest first."""
    found = _do(lambda goals: goals.list())
    if as_json:
        print_json({"ok": True, "goals": [each.json() for each in found]})
        return
    if not found:
        say('There are no goals. stretto goal set "…" --verify KIND:SPEC sets one.')
        return
    head = ("ID", "STATUS", "ITERATIONS", "SET", "GOAL")
    rows = [
        (
            each.id,
            each.status,
            f"{each.iterations} of {each.limits.iterations}",
            local_time(each.made_at),
            one_line(each.text, 80),
        )
        for each in found
    ]
    say("\n".join(columns([head, *rows])))


@command.command("show")
@click.argument("goal", required=False)
@json_option
def show(goal: str | None, as_json: bool) -> None:
    """Show how a goal stands, and what each check said. Without a GOAL: the newest."""
    found = _do(lambda goals: find_goal(goals, goal))
    if as_json:
        print_json({"ok": True, "goal": found.json()})
        return
    pairs = {
        "goal": found.text,
        "id": found.id,
        "status": f"{found.status}: {found.why}" if found.why else found.status,
        "verify": found.verify,
        "workflow": found.workflow or "",
        "used": _describe_use(found),
        "folder": found.folder,
    }
    say("\n".join(columns([(key, one_line(value)) for key, value in pairs.items() if value])))
    if found.before is not None:
        say(f"\nbefore the first iteration\n{_indent(found.before)}")
    for each in found.history:
        say(f"\niteration {each.number}: run {each.run_id} {each.status or 'under way'}")
        if each.error:
            say(f"  {one_line(each.error, 400)}")
        for warning in each.warnings:
            say(f"  warning: {one_line(warning, 400)}")
        if each.evidence is not None:
            say(_indent(each.evidence))


@command.command("clear")
@click.argument("goal")
@json_option
def clear(goal: str, as_json: bool) -> int:
    """End a goal, and the run that works on it. What was done is kept."""

    async def work(goals: Goals) -> GoalReport:
        return await goals.clear((await find_goal(goals, goal)).id)

    found = _do(work)
    if as_json:
        print_json({"ok": found.state != "active", "goal": found.json()})
    elif found.state == "active":
        say(
            f"{found.id}: asked the process that drives it to stop; it has not answered yet",
            err=True,
        )
    else:
        say(f"{found.id}: {found.status}")
    return FAILED if found.state == "active" else 0


def read_budget(written: tuple[str, ...]) -> Mapping[str, float] | None:
    """`tokens=200k`, `usd=5`, `$5`, `200000`; several with commas. Raises InvalidUsage."""
    found: dict[str, float] = {}
    for each in (part.strip() for text in written for part in text.split(",")):
        match = _BUDGET.match(each)
        units = {*filter(None, (match[1], match[5]))} if match else set()
        if match is None or len(units) > 1 or (match[2] and "tokens" in units):
            hint = "write --budget tokens=200k,usd=5"
            raise InvalidUsage(f"'{shorten(each, 40)}' is no budget", hint=hint)
        unit = "usd" if match[2] else next(iter(units), "tokens").lower()
        found[unit] = float(match[3]) * {"k": 1e3, "m": 1e6}.get((match[4] or "").lower(), 1)
    return found or None


async def find_goal(goals: Goals, handle: str | None) -> GoalReport:
    """An id, its beginning or end, `last`, or nothing for the newest. Raises NotFound."""
    refuse_blank(handle, "GOAL")
    if handle and handle != "last":
        known = await goals.list()
        found = [each for each in known if each.id == handle] or [
            each for each in known if each.id.startswith(handle) or each.id.endswith(handle)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidUsage(
                f"'{handle}' may be {len(found)} goals: {', '.join(each.id for each in found[:8])}"
            )
        hint = did_you_mean(handle, [each.id for each in known]) or "stretto goal list shows them"
        raise NotFound(f"there is no goal '{handle}'", hint=hint)
    listed = await goals.list()
    if not listed:
        raise NotFound("there are no goals yet", hint="stretto goal set sets one")
    return listed[0]


async def _drive(
    stretto: OpenStretto, id: str, result: ResultOptions, limits: GoalLimits | None = None
) -> int:
    """Drive the goal until it ends or waits, with progress on stderr. Returns the exit code."""
    postponed: set[StepId] = set()
    while True:
        with GoalProgress(stretto, result) as progress:
            watch = GoalWatch(progress.hear, progress.prepare, progress.open)
            report = await _wait(await stretto.goals.drive(id, limits, watch), result)
        limits = None
        if report.status != "waiting" or not can_ask(result):
            break
        try:
            if not await _ask(stretto, report, progress.run, postponed):
                break
        except (click.Abort, KeyboardInterrupt):
            break
    return _print(report, result)


async def _ask(
    stretto: OpenStretto, goal: GoalReport, run: PreparedRun | None, postponed: set[StepId]
) -> bool:
    """Whether the person at the terminal has decided something, so that the goal can go on."""
    from stretto.cli.chat_view import ask_about_call
    from stretto.cli.gate import ask_at_gates

    if goal.workflow is not None:
        assert run is not None  # it was driven from here just now
        return await ask_at_gates(stretto, run, await _state(stretto, run.run_id), postponed)
    chat, has_decided = stretto.chat(goal.id), False
    for awaited in (await chat.turns())[-1].awaits:
        if not awaited.key:
            state = await _state(stretto, awaited.run_id)
            prepared = await stretto.prepare_again(chat, awaited.run_id)
            has_decided |= await ask_at_gates(stretto, prepared, state, postponed)
        elif (verdict := ask_about_call(awaited)) is not None:
            decide = chat.approve if verdict.is_approved else chat.reject
            await decide(awaited.key, verdict.reason)
            has_decided = True
    return has_decided


async def _state(stretto: OpenStretto, run_id: str) -> RunState:
    return (await stretto.open(run_id).history()).state


def _print(report: GoalReport, result: ResultOptions) -> int:
    if result.as_json:
        print_json({"ok": report.is_ok, "goal": report.json()})
    else:
        _print_end(report, result)
    return _CODES.get(report.status, FAILED)


async def _wait(goal: Goal, result: ResultOptions) -> GoalReport:
    try:
        with stopped_by_signals(goal.halt):
            return await goal.wait()
    except StrettoError:
        if not result.as_json:
            resume = f"stretto goal resume {goal.id}"
            say(f"goal {goal.id} is kept; once that is fixed: {resume}", err=True)
        raise


class GoalProgress:
    """Shows what happens, line by line, and each run as `stretto run` shows it."""

    def __init__(self, stretto: OpenStretto, result: ResultOptions) -> None:
        self._stretto = stretto
        self._result = result
        self._view = ExitStack()
        self._said: set[str] = set()
        self.run: PreparedRun | None = None  # the last one of a workflow

    def __enter__(self) -> "GoalProgress":
        return self

    def __exit__(self, *error: object) -> None:
        self._view.close()

    def prepare(self, prepared: PreparedRun) -> None:
        """Warnings, and which model is asked: each once."""
        self.run = prepared
        if self._result.as_json or self._result.is_quiet:
            return
        texts = [warning.message for warning in prepared.warnings]
        for text in (*texts, *prepared.notices):
            if text not in self._said:
                self._said.add(text)
                say(text, err=True)

    def open(self, plan: Plan) -> Listener:
        self._view.close()
        now = self._stretto.engine.now
        return self._view.enter_context(open_progress(plan, self._result, now))

    def hear(self, event: GoalEvent, goal: GoalStanding) -> None:
        if isinstance(event, CheckEnded | IterationEnded | IterationWaits):
            self._view.close()
        if self._result.as_json or self._result.is_quiet:
            return
        match event:
            case CheckStarted():
                say(f"verifying by {one_line(goal.spec.verify, 120)}", err=True)
            case IterationStarted():
                most = goal.limits.iterations
                say(f"iteration {event.number} of {most}: run {event.run_id}", err=True)
            case CheckEnded(is_met=True):
                say(f"verified: {one_line(event.evidence, 200)}", err=True)
            case CheckEnded():
                say(f"not met: {one_line(event.evidence, 200)}", err=True)
            case _:
                pass


def _print_end(report: GoalReport, result: ResultOptions) -> None:
    colour = _COLOURS.get(report.status, "red")
    why = f": {one_line(report.why, 400)}" if report.why else ""
    say(f"after {counted(report.iterations, 'iteration')}{why}", mark=report.status, colour=colour)
    if result.is_quiet:
        return
    if not report.is_ok and report.evidence:
        say(_indent(report.evidence), err=True)
    say(f"goal {report.id}: {_describe_use(report)}", err=True)
    for line in _next(report):
        say(f"  {line}", err=True)


def _next(report: GoalReport) -> list[str]:
    resume = f"stretto goal resume {report.id}"
    match report.status:
        case "waiting" | "overdue":
            where = f"stretto report {report.run_id}"
            if report.workflow is None:
                where = f"stretto chat --resume {report.id}  asks; or with --approve KEY"
            return [where, f"{resume}  when somebody has decided"]
        case "interrupted" | "stalled" | "unachievable":
            return [resume]
        case "exhausted":
            option = {"iterations": "--max-iterations", "time": "--timeout"}
            return [f"{resume} {option.get(report.limit or '', '--budget')} …"]
        case _:
            return []


def _describe_use(report: GoalReport) -> str:
    used = [counted(report.iterations, "iteration"), f"{report.usage.tokens:,} tokens"]
    used += [f"${report.usage.usd:.4f}"] if report.usage.usd else []
    return ", ".join([*used, f"{format_duration(report.worked_seconds)} at work"])


def _indent(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > _MOST_SHOWN:
        lines = [*lines[:_MOST_SHOWN], f"… and {len(lines) - _MOST_SHOWN} more lines"]
    return "\n".join(f"  {line}" for line in lines)


async def _detach(stretto: OpenStretto, id: str, result: ResultOptions) -> int:
    """Returns once another process drives the goal."""
    from stretto.cli.background import start_background

    child = start_background(stretto, id, ["goal", "resume", id, "--json"])

    async def is_begun() -> bool:
        found = await stretto.goals.show(id)
        return found.status not in ("interrupted",)

    await child.wait_until(is_begun, "the goal")
    if result.as_json:
        found = await stretto.goals.show(id)
        print_json({"ok": True, "goal": found.json(), "log": str(child.log)})
        return 0
    say(id)  # alone on stdout, for `goal=$(stretto goal set … --detach)`
    if not result.is_quiet:
        say(f"\n  stretto goal show {id}\n  stretto goal clear {id}", err=True)
    return 0


def _do(work: Callable[[Goals], Awaitable[_T]]) -> _T:
    async def main() -> _T:
        async with OpenStretto() as stretto:
            return await work(stretto.goals)

    return asyncio.run(main())
