"""The change of a step, for those who look at it or apply it."""

import asyncio
from pathlib import Path

import pytest

import stretto
from stretto.agents import live_events
from stretto.assembly.changes import change_of
from stretto.assembly.project import Project
from stretto.events.model import MergeFailed, RunStarted
from stretto.execution.history import History
from stretto.problems.errors import NotFound
from stretto.vocabulary.names import StepId
from support.scheduling import Driven, plan_of

WRITER = """
name: t
steps: [{id: a, subagent: worker, prompt: go, posture: writer, write_set: [out]}]
"""


def test_a_change_that_could_not_be_kept_says_why_and_where_its_copy_is(tmp_path: Path) -> None:
    run = Driven(plan_of(WRITER)).start()
    while not run.state.collecting:
        assert run.step()
    why = "its changes could not be kept: No space left on device (the copy: /kept-1)"
    run.see(MergeFailed(run.now, StepId("a"), "", why))
    assert isinstance(run.journal[0], RunStarted)
    history = History(run.journal[0], tuple(run.journal), len(run.journal), run.state)
    with pytest.raises(NotFound, match=r"No space left .*the copy: /kept-1") as caught:
        change_of(Project(tmp_path, {"STRETTO_HOME": str(tmp_path / "home")}), history, "a")
    assert caught.value.hint == "stretto retry run-1 runs the step again"


def test_a_workspace_that_takes_long_to_copy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_events, "MOMENT_SECONDS", 0.0)
    project = tmp_path / "project"
    project.mkdir()
    recipe = WRITER.replace("subagent: worker", "subagent: author")

    async def main() -> list[str]:
        agents = {"author": lambda: "made"}
        async with stretto.Stretto(project, home=tmp_path / "home", agents=agents) as w:
            run = await w.start(recipe)
            await run.report()
            return [e.phase async for e in run.events() if isinstance(e, stretto.PhaseLasted)]

    assert "copies the workspace" in asyncio.run(main())
