"""`stretto doctor`: what this machine has, what it lacks, and a proof that the engine works here."""

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stretto.assembly.doctor import Finding, examine
from stretto.assembly.json_forms import finding_as_json
from stretto.assembly.project import Project
from stretto.cli.options import json_option, model_option
from stretto.cli.project import open_project
from stretto.cli.terminal import columns, print_json, say
from stretto.problems.errors import InvalidConfig, InvalidUsage

if TYPE_CHECKING:
    from stretto.smoke.verdicts import Check

_COLOURS = {
    "ok": "green",
    "passed": "green",
    "warning": "yellow",
    "optional": "blue",
    "missing": "red",
    "failed": "red",
}
_ORDER = ("ok", "optional", "warning", "missing")
_COUNTED = {
    "ok": "ok",
    "optional": "optional and not here",
    "warning": "doubtful",
    "missing": "missing",
}
_ICONS = {"ok": "✓", "passed": "✓", "warning": "!", "optional": "-", "missing": "✗", "failed": "✗"}


@click.command("doctor")
@click.option("--smoke", "is_smoke", is_flag=True, help="Prove the engine here, offline.")
@click.option("--real", "is_real", is_flag=True, help="The same proof with a real model.")
@model_option
@json_option
def command(is_smoke: bool, is_real: bool, model: str | None, as_json: bool) -> int:
    """Say what this machine has, what is missing and how to fix it.

    --smoke runs small workflows in a folder of its own and judges them by their journal:
    readers overlap, writers of the same files take turns, results are handed over, changes
    are merged. --real asks the configured model (or --model) to take part, which may cost a
    few tokens.
    """
    if model is not None and not is_real:
        raise InvalidUsage("--model is for --real", hint="stretto doctor --real --model MODEL")
    if is_smoke or is_real:
        return _smoke(model, is_real, as_json)
    return _examine(as_json)


def _examine(as_json: bool) -> int:
    findings = asyncio.run(_findings())
    is_well = not any(each.is_essential and each.status == "missing" for each in findings)
    if as_json:
        print_json({"ok": is_well, "checks": [finding_as_json(each) for each in findings]})
        return 0 if is_well else 1
    # What is wrong comes last, where it is seen.
    findings.sort(key=lambda each: _ORDER.index(each.status))
    _print_rows(
        [(it.status, it.name, it.says, it.fix if it.status != "ok" else "") for it in findings]
    )
    counts = Counter[str](each.status for each in findings)
    said = [f"{counts[status]} {word}" for status, word in _COUNTED.items() if counts[status]]
    end = "Stretto can run" if is_well else "something essential is missing"
    if is_well and any(each.name == "model" and each.status == "missing" for each in findings):
        end = "Stretto can run, but no model can answer yet"
    say(f"\n{', '.join(said)}; {end}")
    return 0 if is_well else 1


async def _findings() -> list[Finding]:
    try:
        return [finding async for finding in examine(Project())]
    except InvalidConfig as error:
        # Settings that cannot be read stop every command: nothing else matters until then.
        said = "; ".join(
            f"{each.file}:{each.place.line}: {each.message}" if each.place else each.message
            for each in error.problems
        )
        fix = error.hint or "fix it, or move it away"
        return [Finding("settings", "missing", said or error.message, fix, is_essential=True)]


def _smoke(model: str | None, is_real: bool, as_json: bool) -> int:
    from stretto.smoke.prove import prove  # the engine, which a look at the machine does not need

    began = time.monotonic()
    # The folder is kept if a check failed: its journal says why.
    folder = Path(tempfile.mkdtemp(prefix="stretto-smoke-")).resolve()
    is_kept = False
    try:
        if is_real:
            checks = asyncio.run(_prove_with_model(folder, open_project(), model, as_json))
        else:
            checks = asyncio.run(prove(folder))
        is_kept = not all(check.is_proven for check in checks)
    finally:
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)
    _print_checks(checks, time.monotonic() - began, folder if is_kept else None, as_json)
    return 1 if is_kept else 0


async def _prove_with_model(
    folder: Path, project: Project, model: str | None, as_json: bool
) -> list["Check"]:
    from stretto.assembly.models import choose_models, open_runner
    from stretto.smoke.prove import REAL_SECONDS, prove
    from stretto.smoke.scenes import plan_of, scenes

    model = project.model(model)
    chosen = await choose_models(project, plan_of(scenes(REAL_SECONDS)[0]), model)
    say: Callable[[str], None] = (lambda _: None) if as_json else _say
    for line in chosen.notes or (f"using {chosen.default}",):
        say(line)
    async with open_runner(project, chosen) as runner:
        return await prove(folder, runner, on_begin=lambda scene: say(f"running {scene} …"))


def _say(line: str) -> None:
    say(line, err=True)


def _print_checks(
    checks: Sequence["Check"], seconds: float, kept: Path | None, as_json: bool
) -> None:
    if as_json:
        rows = [_check_as_json(check) for check in checks]
        where = {} if kept is None else {"kept": str(kept)}
        print_json({"ok": kept is None, "checks": rows, "seconds": round(seconds, 3), **where})
        return
    words = ["passed" if check.is_proven else "failed" for check in checks]
    _print_rows([(word, it.name, it.says, "") for word, it in zip(words, checks, strict=True)])
    say(f"\n{words.count('passed')} of {len(words)} passed in {seconds:.1f} s")
    if kept is not None:
        say(f"the journal and the files are kept in {kept}")


def _print_rows(rows: Sequence[tuple[str, str, str, str]]) -> None:
    """A word, a name, what is said of it, and how to fix it."""
    lines = columns([(f"{_ICONS[word]} {word}", name, says) for word, name, says, _ in rows])
    for (word, _, _, fix), line in zip(rows, lines, strict=True):
        mark, rest = line.split(word, 1)
        say(rest.removeprefix(" "), mark=mark + word, colour=_COLOURS[word])
        if fix:
            say(f"      = {fix}")


def _check_as_json(check: "Check") -> dict[str, object]:
    return {
        "name": check.name,
        "ok": check.is_proven,
        "says": check.says,
        "evidence": dict(check.evidence),
    }
