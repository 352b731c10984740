"""`stretto models test`: does a model answer, does it keep to a schema, and how fast is it?"""

import asyncio
import sys

import click

from stretto.assembly.json_forms import trial_as_json
from stretto.assembly.local_models import LocalModels, Trial, try_model
from stretto.assembly.project import Project
from stretto.assembly.subagents import Ask
from stretto.cli.options import json_option
from stretto.cli.progress.rows import one_line
from stretto.cli.terminal import columns, confirm, print_json, say


@click.command("test")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> int:
    """Ask a model two small questions: one in words, one that wants JSON."""
    named, trials = asyncio.run(_try(Project(), name))
    is_ok = all(each.is_ok for each in trials)
    if as_json:
        print_json({"ok": is_ok, "model": named, "tried": [trial_as_json(each) for each in trials]})
        return 0 if is_ok else 1
    say(f"{named}\n")
    say("\n".join(columns([_cells(each) for each in trials])))
    return 0 if is_ok else 1


async def _try(project: Project, name: str | None) -> tuple[str, list[Trial]]:
    named = name or await LocalModels(project).model_in_use() or "embedded"
    return named, await try_model(project, named, _ask_to_fetch())


def _ask_to_fetch() -> Ask | None:
    is_watched = sys.stdin.isatty() and sys.stderr.isatty()
    return (lambda question: confirm(question, default=True, err=True)) if is_watched else None


def _cells(trial: Trial) -> tuple[str, ...]:
    speed = f"{trial.tokens_per_second:.1f} tokens/s" if trial.tokens else "-"
    return (
        trial.what,
        "ok" if trial.is_ok else "failed",
        speed,
        one_line(trial.says)[:200],
    )
