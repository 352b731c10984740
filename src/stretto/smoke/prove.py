"""Run the scenes and judge them by their journal. In: an empty folder. Out: one Check per promise.

FOLDER/home/runs.db       the journal, in the real store
FOLDER/home/workspaces/   copies and changes of isolated writers
FOLDER/SCENE/             the workspace of each scene
"""

import asyncio
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.request import RunRequest
from stretto.assembly.surface import Surface
from stretto.config.settings import Settings
from stretto.plan.check import Problems
from stretto.ports.journal import StoredEvent
from stretto.ports.runner import Runner
from stretto.recipe.read import read_recipe
from stretto.smoke import verdicts
from stretto.smoke.journal import read_elsewhere
from stretto.smoke.scenes import (
    BAD_CODES,
    BAD_RECIPE,
    MADE,
    NEIGHBOURS,
    READERS,
    RIVALS,
    Player,
    Scene,
    build_scene,
    scenes,
)
from stretto.smoke.verdicts import Check
from stretto.vocabulary.names import RunId

_OFFLINE_SECONDS = 60
REAL_SECONDS = 600  # a small model on a slow machine


async def prove(
    folder: Path, runner: Runner | None = None, on_begin: Callable[[str], None] = lambda scene: None
) -> list[Check]:
    """Without a runner a Player stands in for the model, and its answers are checked strictly."""
    played = scenes(_OFFLINE_SECONDS if runner is None else REAL_SECONDS)
    for scene in played:
        on_begin(scene.name)
        await _run(folder, scene, runner)
    back = await asyncio.to_thread(read_elsewhere, folder / "home" / "runs.db")
    rows = {scene.name: back.journals.get(_run_id(scene), []) for scene in played}
    return [
        _check_structure(played[0]),
        *_check_scenes(rows, folder, is_strict=runner is None),
        verdicts.check_journal("journal", rows, os.getpid(), back.pid),
    ]


async def _run(folder: Path, scene: Scene, runner: Runner | None) -> None:
    workspace = folder / scene.name
    workspace.mkdir()
    (workspace / "README.txt").write_text("The workspace of a proof.\n", encoding="utf-8")
    settings = Settings(workspace, folder / "home", workspace / "workflows", ())
    project = Project(environ={}, settings=settings)
    ports = Ports(runner=runner or Player(workspace, f"word-{secrets.token_hex(6)}"))
    async with Surface(lambda folder: project, ports) as surface:
        request = RunRequest(read_recipe(scene.recipe), run_id=_run_id(scene))
        await (await surface.launch(await surface.prepare(request))).wait()


def _check_scenes(
    rows: dict[str, list[StoredEvent]], folder: Path, *, is_strict: bool
) -> tuple[Check, ...]:
    made = folder / "merge" / MADE
    content = made.read_text(encoding="utf-8", errors="replace") if made.is_file() else None
    return (
        verdicts.check_overlap("parallel readers", rows["readers"], READERS),
        verdicts.check_order("overlapping writers", rows["rivals"], RIVALS, is_strict),
        verdicts.check_overlap("disjoint writers", rows["neighbours"], NEIGHBOURS),
        verdicts.check_handover("hand-over", rows["handover"], "find", "use", is_strict),
        verdicts.check_merge("merge back", rows["merge"], "make", "look", content, is_strict),
    )


def _check_structure(good: Scene) -> Check:
    bad, plan = build_scene(BAD_RECIPE), build_scene(good.recipe)
    codes = [problem.code for problem in bad.problems] if isinstance(bad, Problems) else []
    steps = 0 if isinstance(plan, Problems) else len(plan.steps)
    return verdicts.check_structure("structure", codes, BAD_CODES, steps)


def _run_id(scene: Scene) -> RunId:
    return RunId(f"smoke-{scene.name}")
