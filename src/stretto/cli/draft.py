"""`stretto draft`: words become a recipe, a person approves it, it runs.

Nothing that a model wrote runs before somebody has approved it: at the terminal, or with --yes. stdout gets
the answer of the run; while nothing runs, the recipe is the answer.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from stretto.assembly.drafts import (
    DraftedRecipe,
    check_is_draft,
    constrain,
    draft_request,
    examine_draft,
    read_draft,
)
from stretto.assembly.json_forms import draft_as_json
from stretto.assembly.request import RunRequest
from stretto.cli.files import write_target
from stretto.cli.foreground import (
    INTERRUPTED,
    WAITING,
    OpenStretto,
    can_ask,
    drive_with_progress,
    exit_code,
    prepare,
    print_end,
)
from stretto.cli.handles import find_run
from stretto.cli.inputs import ask_missing, given_inputs, input_options
from stretto.cli.options import model_option, permission_option
from stretto.cli.result import ResultOptions, print_result, result_options
from stretto.cli.terminal import (
    ask,
    columns,
    hide_secrets,
    print_for_program,
    print_json,
    print_problems,
    say,
)
from stretto.lead.drafts import DRAFT, MAX_REPAIRS, MOST_REPAIRS
from stretto.problems.errors import InvalidRecipe, InvalidUsage, StrettoError
from stretto.problems.render import count
from stretto.report.json_form import report_as_json
from stretto.report.report import report_of
from stretto.text.short import counted, shorten
from stretto.text.visible import one_line
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from stretto.registry.saved_recipe import SavedRecipe
    from stretto.schedule.state import RunState

_QUESTION = "Run it? [y]es, [n]o, [e]dit, [s]ave only"
_BROKEN_QUESTION = "It cannot run like this. [e]dit, or [n]o"
_WORDS = ("yes", "no", "edit", "save")


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """What was said on the command line."""

    is_approved: bool
    save_as: str | None
    may_command: bool
    inputs: Mapping[str, Json]
    model: str | None
    permission: str | None
    max_repairs: int


@click.command("draft")
@click.argument("words", required=False)
@click.option("--resume", "draft_id", metavar="DRAFT", help="Go on with a draft that was kept.")
@click.option("-y", "--yes", "is_approved", is_flag=True, help="Run it without asking.")
@click.option("--save", "save_as", metavar="NAME", help="Save it under this name.")
@click.option("--allow-commands", "may_command", is_flag=True,
              help="With --yes: also one that runs commands or other programs.")  # fmt: skip
@click.option("--max-repairs", type=click.IntRange(0, MOST_REPAIRS), default=MAX_REPAIRS,
              help=f"How often the model may fix it; {MAX_REPAIRS} by default.")  # fmt: skip
@input_options
@model_option
@permission_option
@result_options
def command(
    words: str | None,
    draft_id: str | None,
    is_approved: bool,
    save_as: str | None,
    may_command: bool,
    max_repairs: int,
    pairs: tuple[str, ...],
    input_json: str | None,
    model: str | None,
    permission: str | None,
    result: ResultOptions,
) -> int:
    """Turn words into a recipe, show it, ask, and run it. '-' as the WORDS reads them from stdin.

    A model writes the recipe, and fixes it until it has no problems. Where no person can be asked
    and --yes is missing, the recipe is printed and kept, and the exit code is 3.
    """
    if (words is None) == (draft_id is None):
        hint = 'stretto draft "first …, then …", or: stretto draft --resume DRAFT'
        raise InvalidUsage("say what is to be done, or which draft is meant", hint=hint)
    told = sys.stdin.buffer.read().decode("utf-8", "replace") if words == "-" else words
    given = given_inputs(pairs, input_json)
    options = DraftOptions(is_approved, save_as, may_command, given, model, permission, max_repairs)
    return asyncio.run(_draft(OpenStretto(), told, draft_id, options, result))


async def _draft(
    stretto: OpenStretto,
    words: str | None,
    draft_id: str | None,
    options: DraftOptions,
    result: ResultOptions,
) -> int:
    # One document with --json, not a line an event: two runs would be hard to tell apart.
    result = replace(result, is_streamed=False)
    async with stretto:
        state, was_stopped = await _drive_draft(stretto, words, draft_id, options, result)
        if was_stopped:
            return _print_stopped(state.run_id, result)
        draft = await read_draft(
            stretto.project, report_of(state, is_interrupted=not state.has_ended)
        )
        if can_ask(result) and not options.is_approved:
            return await _ask_and_run(stretto, draft, options, result)
        return await _run_unasked(stretto, draft, options, result)


def _print_stopped(draft_id: str, result: ResultOptions) -> int:
    way = f"stretto draft --resume {draft_id}"
    if result.as_json:
        print_json({"ok": False, "status": "interrupted", "draft": {"id": draft_id}, "next": [way]})
    else:
        say(f"stopped; to go on: {way}", err=True)
    return INTERRUPTED


async def _drive_draft(
    stretto: OpenStretto,
    words: str | None,
    draft_id: str | None,
    options: DraftOptions,
    result: ResultOptions,
) -> "tuple[RunState, bool]":
    if draft_id is not None:
        run = await find_run(stretto, draft_id, result.as_json)
        state = (await stretto.open(run).history()).state
        check_is_draft(state.plan, run)
        if state.has_ended:
            return state, False
        resumed = RunRequest(of=run, is_resumed=True, model=options.model)
        return await drive_with_progress(stretto, await prepare(stretto, resumed, result), result)
    assert words is not None
    request = draft_request(stretto.project, words, options.max_repairs, model=options.model)
    prepared = await prepare(stretto, request, result)
    if again := constrain(stretto.project, request, prepared):
        prepared = await stretto.prepare(again)
    return await drive_with_progress(stretto, prepared, result)


async def _run_unasked(
    stretto: OpenStretto, draft: DraftedRecipe, options: DraftOptions, result: ResultOptions
) -> int:
    if not draft.is_sound:
        raise _unsound(draft)
    if not options.is_approved:
        _print_waiting(draft, result)
        return WAITING
    if not options.may_command:
        draft.check_read()
    if not (result.as_json or result.is_quiet):
        _show(draft)
    saved = None
    if options.save_as:
        saved = await _save(stretto, draft, options.save_as, is_read=False)
    if saved and not (result.as_json or result.is_quiet):
        _tell_saved(saved)
    state, was_stopped = await _run(stretto, draft, options, result)
    if not result.as_json:
        await print_end(stretto, state, result, was_stopped)
    else:
        report = report_of(state, is_interrupted=not state.has_ended, now=stretto.engine.now())
        if result.file is not None:
            print_result(report, replace(result, as_json=False, is_quiet=True))
        print_json({
            "ok": report.is_ok,
            "draft": draft_as_json(draft),
            "saved": saved and {"name": saved.name, "file": str(saved.file), "same_as": saved.same_as},
            "report": report_as_json(report),
        })  # fmt: skip
    return INTERRUPTED if was_stopped else exit_code(state)


def _unsound(draft: DraftedRecipe) -> StrettoError:
    left = count(draft.problems) if draft.recipe else "no recipe in it"
    said = f"the draft cannot run: after {counted(draft.rounds, 'round')} it has {left}"
    hint = f"stretto draft --resume {draft.id} lets you edit it; or say it in other words"
    return InvalidRecipe(said, draft.problems, hint=hint)


def _print_waiting(draft: DraftedRecipe, result: ResultOptions) -> None:
    """The recipe is the answer; how to go on stands beside it."""
    commands = (
        (f"stretto draft --resume {draft.id} --yes", "runs it; --save NAME saves it too"),
        (f"stretto output {draft.id} > NAME.yaml", "writes it to a file"),
    )
    if result.as_json:
        ways = [each for each, _ in commands]
        details = {"hint": ways[0]}
        error = {"kind": "waiting", "message": "nobody has approved this draft", "details": details}
        print_json({"ok": False, "error": error, "draft": draft_as_json(draft), "next": ways})
        return
    if result.file is not None:
        write_target(result.file, hide_secrets(draft.recipe))
    elif sys.stdout.isatty():
        say(draft.recipe.rstrip("\n"), is_exact=True)
    else:
        print_for_program(hide_secrets(draft.recipe))
    if result.is_quiet:
        return
    _show_beside(draft)
    say("nobody has approved it yet, so nothing of it has run", err=True)
    for line in columns(list(commands), margin=2):
        say(f"  {line}", err=True)


def _show(draft: DraftedRecipe) -> None:
    say(f"\n{draft.recipe.rstrip()}\n", err=True, is_exact=True)
    _show_beside(draft)


def _show_beside(draft: DraftedRecipe) -> None:
    if draft.diagram:
        say(f"{draft.diagram}\n", err=True, is_exact=True)
    for each in draft.to_read:
        say(each, err=True, mark="read this:", colour="yellow")
    print_problems(draft.problems, to_stderr=True)


async def _ask_and_run(
    stretto: OpenStretto, draft: DraftedRecipe, options: DraftOptions, result: ResultOptions
) -> int:
    if not draft.recipe:
        raise _unsound(draft)
    _show(draft)
    try:
        draft, word = _decide(stretto, draft)
        if word == "no":
            say(f"nothing has run; it is kept: stretto draft --resume {draft.id}", err=True)
            return 0
        name = options.save_as or _name(stretto, draft) if word == "save" else options.save_as
        if name and not await _save_as(stretto, draft, name):
            return 0
        if word == "save":
            return 0
        state, was_stopped = await _run(stretto, draft, options, result)
    except (click.Abort, KeyboardInterrupt):
        say(f"\nnothing is decided; it is kept: stretto draft --resume {draft.id}", err=True)
        raise
    await print_end(stretto, state, result, was_stopped)
    if exit_code(state) == 0 and not name:
        await _offer_to_save(stretto, draft)
    return INTERRUPTED if was_stopped else exit_code(state)


def _decide(stretto: OpenStretto, draft: DraftedRecipe) -> tuple[DraftedRecipe, str]:
    """What is to be done, and with which text. Enter asks again: nothing is decided by accident."""
    while True:
        typed = ask(_QUESTION if draft.is_sound else _BROKEN_QUESTION).lower()
        word = next((each for each in _WORDS if typed and each.startswith(typed)), "")
        if word == "edit":
            from stretto.cli.gate import edit_text

            text = edit_text(draft.recipe, "recipe", ".yaml")
            if text is None or text.strip() in ("", draft.recipe.strip()):
                say("the recipe is unchanged", err=True)
            else:
                draft = examine_draft(stretto.project, draft, f"{text.rstrip()}\n")
                _show(draft)
        elif word == "no" or (word and draft.is_sound):
            return draft, word


async def _run(
    stretto: OpenStretto, draft: DraftedRecipe, options: DraftOptions, result: ResultOptions
) -> "tuple[RunState, bool]":
    """Exactly the text that was approved."""
    recipe = stretto.project.recipe_from_text(draft.recipe, "draft.yaml")
    inputs = (
        ask_missing(stretto.project, recipe, options.inputs) if can_ask(result) else options.inputs
    )
    request = RunRequest(
        recipe,
        inputs,
        model=options.model,
        permission=options.permission,
        trigger=f"{DRAFT} {draft.id}",
        is_read=True,
    )
    return await drive_with_progress(stretto, await prepare(stretto, request, result), result)


async def _save(
    stretto: OpenStretto, draft: DraftedRecipe, name: str, is_read: bool = True
) -> "SavedRecipe":
    why = f"drafted from: {shorten(one_line(draft.words), 200)}"
    return await stretto.workflows.save(
        draft.recipe, name=name, emitted=True, read=is_read, why=why
    )


async def _save_as(stretto: OpenStretto, draft: DraftedRecipe, name: str) -> bool:
    """Ask for another name where this one cannot be had. Whether it is saved."""
    while name:
        try:
            _tell_saved(await _save(stretto, draft, name))
            return True
        except StrettoError as error:
            say(error.with_hint, err=True)
            name = ask("Another name (Enter: do not save it)")
    return False


def _tell_saved(saved: "SavedRecipe") -> None:
    if saved.same_as:
        say(f"it is saved already, as '{saved.same_as}': stretto run {saved.same_as}", err=True)
    else:
        said = f"saved {saved.file} (version {saved.version}, emitted)"
        say(f"{said}: stretto run {saved.name}", err=True)


def _name(stretto: OpenStretto, draft: DraftedRecipe) -> str:
    own = stretto.project.recipe_from_text(draft.recipe).name
    return ask(f"Save it as (Enter: {own})") or own


async def _offer_to_save(stretto: OpenStretto, draft: DraftedRecipe) -> None:
    own = stretto.project.recipe_from_text(draft.recipe).name
    typed = ask(f"Save it for later? [y]es as {own}, another name, or Enter for no")
    if typed.lower() not in ("", "n", "no"):
        await _save_as(stretto, draft, own if typed.lower() in ("y", "yes") else typed)
