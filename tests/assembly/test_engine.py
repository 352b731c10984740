"""What a Stretto and its runs share: one store, the runs that are driven, the end of both."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stretto.agents.conversation import LeadTurn
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.request import RunRequest
from stretto.assembly.stretto import Stretto
from stretto.events.model import Event
from stretto.execution.driver import Driver
from stretto.ports.runner import Runner
from stretto.problems.errors import InvalidUsage
from stretto.schedule.state import RunState
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.names import RunId
from support.assembled import in_memory, settings_of

SLOW = "name: s\nsteps: [{id: a, subagent: writer, prompt: x}]\n"


def open_in(folder: Path, environ: dict[str, str] | None = None) -> Stretto:
    project = Project(environ=environ or {}, settings=settings_of(folder))
    return Stretto(_open_project=lambda _: project, _ports=Ports())


def test_the_store_is_opened_once_and_only_when_it_is_needed(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_in(tmp_path) as w:
            assert await w.validate("name: x\nsteps: []\n") != ()
            assert not (tmp_path / "home").exists()
            one, other = await asyncio.gather(w._engine.runs_of(), w._engine.runs_of())
            assert one is other
            assert (tmp_path / "home" / "runs.db").exists()
            accepted = await w._engine.runs_of(None, frozenset(["mark"]))
            assert accepted is not one

    asyncio.run(main())


def test_a_run_that_is_driven_is_one_value_and_is_forgotten_when_it_has_ended() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock, "default: {reply: x, delay: 1h}") as w:
            run = await w.start(SLOW)
            assert w.open(run.id) is run
            assert run._is_driven_here
            assert await run.wait() == "complete"
            assert w._engine.driven == {}
            assert not w._engine.tasks
            assert w.open(run.id) is not run

    clock.run(main())


def test_closing_stops_the_runs_and_refuses_what_comes_later() -> None:
    clock = VirtualClock()

    async def main() -> None:
        w = in_memory(clock, "default: {reply: x, delay: 1h}")
        run = await w.start(SLOW)
        await w.close()
        assert not run._is_driven_here
        with pytest.raises(InvalidUsage, match="closed"):
            await w.runs()
        with pytest.raises(InvalidUsage, match="closed"):
            await w.start(SLOW)

    clock.run(main())


def test_whoever_is_cancelled_while_starting_leaves_no_task_behind(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock, "default: {reply: x, delay: 1h}") as w:
            prepared = await w._engine.prepare(RunRequest(SLOW, run_id=RunId("r")))
            starting = asyncio.create_task(w._launch(prepared))
            await asyncio.sleep(0)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            await asyncio.sleep(1)
            assert not w._engine.tasks

    clock.run(main())


class _SlowPorts(Ports):
    """Whose runner takes an hour to close, as one whose MCP servers do not end."""

    @asynccontextmanager
    async def open_runner(  # type: ignore[override]
        self, project: Project, chosen: ModelSelection, lead: LeadTurn | None = None
    ) -> AsyncIterator[Runner]:
        async with super().open_runner(project, chosen, lead) as runner:
            yield runner
            await asyncio.sleep(3600)


@pytest.mark.parametrize("verb", ["approve", "reject", "resume"])
def test_a_run_whose_task_is_still_closing_its_tools_goes_on_all_the_same(verb: str) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock) as w:
            ports = w._engine.ports
            w._engine.ports = _SlowPorts(ports.store, ports.clock, ports.runner, False)
            run = await w.start(SLOW.replace("prompt: x", "prompt: x, gate: human"))
            await asyncio.sleep(60)  # by now it waits for a person, and its runner is closing
            assert run._is_driven_here
            if verb == "resume":
                await run.resume()
                assert await run.wait() == "waiting"
                return
            await (run.approve("a") if verb == "approve" else run.reject("a"))
            assert await run.wait() in ("complete", "failed")

    clock.run(main())


def test_a_run_that_waits_and_that_nobody_drives_can_be_cancelled() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock) as w:
            run = await w.start(SLOW.replace("prompt: x", "prompt: x, gate: human"))
            assert await run.wait() == "waiting"
            await run.cancel("enough")
            assert await run.status() == "cancelled"

    clock.run(main())


@pytest.mark.parametrize("name", ["STRETTO_LEASE_SECONDS", "STRETTO_MAX_CRASHES"])
def test_a_number_in_the_environment_must_be_one(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        async with open_in(tmp_path, {name: "soon"}) as w:
            with pytest.raises(InvalidUsage, match=f"{name} is 'soon'"):
                await w.runs()

    asyncio.run(main())


def test_a_run_began_in_another_folder_counts_with_the_settings_of_that_folder(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    script = tmp_path / "script.yaml"
    script.write_text("default: x")
    options = {"home": tmp_path / "home", "model": f"scripted:{script}"}

    async def main() -> None:
        async with Stretto(there, **options) as w:  # type: ignore[arg-type]
            run = await w.start(SLOW)
            await run.wait()
        async with Stretto(here, **options) as w:  # type: ignore[arg-type]
            history = await w._engine.history(run.id)
            assert w._engine.project_of(history).settings.project == there
            prepared = await w._engine.prepare(RunRequest(of=RunId(run.id)))
            assert prepared.project.settings.project == there

    asyncio.run(main())


def test_a_listener_that_raises_is_told_no_more_and_the_run_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    heard: list[Event] = []

    def listen(event: Event, state: RunState) -> None:
        heard.append(event)
        raise BrokenPipeError("nobody looks")

    async def main() -> None:
        async with in_memory(clock, "default: x") as w:
            run = await w._launch(await w._engine.prepare(RunRequest(SLOW)), listen)
            assert await run.wait() == "complete"

    clock.run(main())
    assert len(heard) == 1
    assert "the view of run" in caplog.text


def objects_of(*kinds: type) -> int:
    gc.collect()
    return sum(isinstance(each, kinds) for each in gc.get_objects())


def test_a_run_in_line_has_neither_driver_nor_state_and_hears_what_is_said_to_it(
    tmp_path: Path,
) -> None:
    """A burst of runs is accepted first: it must cost little memory until they begin."""
    script = tmp_path / "script.yaml"
    script.write_text("default: x\n")

    async def main() -> None:
        before = objects_of(Driver, RunState)
        async with open_in(tmp_path) as w:
            with w._engine.start_line.accepting():
                w._engine.start_line._patience_seconds = 3600
                runs = [await w.start(SLOW, model=f"scripted:{script}") for _ in range(20)]
                assert [await run.status() for run in runs] == ["running"] * 20
                assert objects_of(Driver, RunState) == before
                cancelling = asyncio.create_task(runs[0].cancel("not needed"))
                place = (await w._engine.runs_of())._drivers[RunId(runs[0].id)]
                while not place._inbox:  # the mailbox is looked through now and then
                    await asyncio.sleep(0.01)
            assert [await run.wait() for run in runs] == ["cancelled", *["complete"] * 19]
            await cancelling
            runs.clear()  # each holds the state that it ended with
            assert objects_of(Driver, RunState) == before

    asyncio.run(main())
