"""Run the scenes and judge them. In: a folder of one's own. Out: a Check for each promise.

FOLDER/home/runs.db       the journal, in the real store
FOLDER/home/workspaces/   copies and changes of isolated writers
FOLDER/SCENE/             the workspace of each scene
"""

import asyncio
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.adapters.workspaces import LocalWorkspaces
from stretto.execution.runs import Runs, Start
from stretto.plan.check import Problems
from stretto.plan.prepare import RunPolicy, claimed_sets, prepare
from stretto.ports.journal import StoredEvent
from stretto.ports.runner import Runner
from stretto.smoke import verdicts
from stretto.smoke.check import Check
from stretto.smoke.player import Player
from stretto.smoke.reading import read_elsewhere
from stretto.smoke.scenes import (
    BAD_CODES,
    BAD_RECIPE,
    MADE,
    NEIGHBOURS,
    READERS,
    RIVALS,
    Scene,
    built,
    plan_of,
    scenes,
)
from stretto.vocabulary.ids import RunId
from stretto.workspaces.aliases import aliases_of_sets

_OFFLINE_SECONDS = 60
REAL_SECONDS = 600  # a small model on a slow machine
Begun = Callable[[str], None]


async def prove(
    folder: Path, runner: Runner | None = None, on_begin: Begun = lambda _: None
) -> list[Check]:
    """Without a runner a model is played, and more is asked of it."""
    played = scenes(_OFFLINE_SECONDS if runner is None else REAL_SECONDS)
    await _play(folder, played, runner, on_begin)
    back = await asyncio.to_thread(read_elsewhere, _journal(folder))
    rows = {scene.name: back.journals.get(_run_id(scene), []) for scene in played}
    return [
        _structure(played[0]),
        *_judged(rows, folder, is_strict=runner is None),
        verdicts.on_record("journal", rows, os.getpid(), back.pid),
    ]


async def _play(
    folder: Path, played: tuple[Scene, ...], runner: Runner | None, on_begin: Begun
) -> None:
    store = await SqliteJournal.open(_journal(folder))
    runs = Runs(store, SystemClock(), LocalWorkspaces(folder / "home"))
    try:
        for scene in played:
            on_begin(scene.name)
            workspace = folder / scene.name
            workspace.mkdir()
            (workspace / "README.txt").write_text("The workspace of a proof.\n", encoding="utf-8")
            plan = plan_of(scene)
            plan = prepare(plan, RunPolicy(), aliases_of_sets(workspace, claimed_sets(plan)))
            start = Start(plan, {}, _run_id(scene), workspace=str(workspace))
            await runs.start(start, runner or Player(workspace, f"word-{secrets.token_hex(6)}"))
    finally:
        await store.close()


def _judged(
    rows: dict[str, list[StoredEvent]], folder: Path, *, is_strict: bool
) -> tuple[Check, ...]:
    made = folder / "merge" / MADE
    content = made.read_text(encoding="utf-8", errors="replace") if made.is_file() else None
    return (
        verdicts.side_by_side("parallel readers", rows["readers"], READERS),
        verdicts.in_turn("overlapping writers", rows["rivals"], RIVALS, is_strict),
        verdicts.side_by_side("disjoint writers", rows["neighbours"], NEIGHBOURS),
        verdicts.handed_over("hand-over", rows["handover"], "find", "use", is_strict),
        verdicts.merged("merge back", rows["merge"], "make", "look", content, is_strict),
    )


def _structure(good: Scene) -> Check:
    bad, plan = built(BAD_RECIPE), built(good.recipe)
    codes = [problem.code for problem in bad.problems] if isinstance(bad, Problems) else []
    steps = 0 if isinstance(plan, Problems) else len(plan.steps)
    return verdicts.structure("structure", codes, BAD_CODES, steps)


def _journal(folder: Path) -> Path:
    return folder / "home" / "runs.db"


def _run_id(scene: Scene) -> RunId:
    return RunId(f"smoke-{scene.name}")
