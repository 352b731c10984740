"""What a server goes on with by itself, and what it leaves alone."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stretto.assembly.project import Project
from stretto.assembly.request import RunRequest
from stretto.assembly.surface import Surface, SurfaceRun
from stretto.problems.errors import StrettoError
from stretto.server.ledger import open_ledger
from stretto.server.service import Service
from stretto.server.upkeep import Upkeep
from support.cli import environment

RECIPE = "name: gated\nsteps: [{id: act, subagent: writer, gate: human, prompt: x}]\n"


@asynccontextmanager
async def served_run(folder: Path, trigger: str) -> AsyncIterator[tuple[Service, SurfaceRun]]:
    """A run that a person has decided about, and that nobody drives."""
    (folder / "script.yaml").write_text("default: Hello!\n")
    environ = environment(folder, {"STRETTO_MODEL": f"scripted:{folder / 'script.yaml'}"})
    async with Surface(lambda place: Project(place or folder, environ)) as stretto:
        with open_ledger(folder / "home") as ledger:
            service = Service(stretto, None, ledger, SimpleNamespace())  # type: ignore[arg-type]
            run = await stretto.launch(await stretto.prepare(RunRequest(RECIPE, trigger=trigger)))
            await run.wait()
            runs = await stretto.engine.runs_of()
            await runs.decide(run._id, "act", True, "ada")  # type: ignore[arg-type]
            yield service, stretto.open(run.id)


def test_a_run_of_a_terminal_is_taken_up_once_a_server_has_gone_on_with_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with served_run(tmp_path, trigger="") as (service, run):
            upkeep = Upkeep(service)
            await upkeep.look()
            assert not await run.is_driven()
            service.ledger.adopt(run.id, service.stretto.engine.now(), 0.0)
            await upkeep.look()
            assert await run.wait() == "complete"

    asyncio.run(story())


@pytest.mark.parametrize("trigger", ["", "mcp stdio"])
def test_a_run_that_was_resumed_here_is_taken_up_by_the_next_server(
    tmp_path: Path, trigger: str
) -> None:
    async def story() -> None:
        async with served_run(tmp_path, trigger=trigger) as (service, run):
            assert await service.resume(run.id)
            assert run.id in service.ledger.adopted()
            assert await run.wait() == "complete"

    asyncio.run(story())


def test_a_run_that_could_not_be_read_once_is_taken_up_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Service.history

    async def fail(service: Service, run_id: str) -> Any:
        raise StrettoError("the store is busy")

    async def story() -> None:
        async with served_run(tmp_path, trigger="http") as (service, run):
            now = service.stretto.engine.now()
            monkeypatch.setattr(service.stretto.engine, "now", lambda: now)
            upkeep = Upkeep(service)
            monkeypatch.setattr(Service, "history", fail)
            await upkeep.look()
            monkeypatch.setattr(Service, "history", read)
            assert not await run.is_driven()
            now += 2.0
            await upkeep.look()
            assert await run.wait() == "complete"

    asyncio.run(story())


class FakeService:
    """With one run and one goal, which cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.tried_at: dict[str, list[float]] = {"r": [], "g-1": []}
        self.now = 0.0
        self.error = error
        engine = SimpleNamespace(runs_of=self.runs_of, now=lambda: self.now)
        self.stretto = SimpleNamespace(engine=engine, goals=SimpleNamespace(show=self.history))
        self.ledger = SimpleNamespace(adopted=lambda: {"r", "g-1"})
        self.done_goals: set[str] = set()

    async def runs_of(self) -> Any:
        return SimpleNamespace(is_interrupted=lambda row: True)

    async def unended(self) -> list[Any]:
        return [SimpleNamespace(run_id="r")]

    async def history(self, id: str) -> Any:
        self.tried_at[id].append(self.now)
        raise self.error


def test_what_fails_each_time_is_tried_less_and_less_often_and_for_ever() -> None:
    async def story() -> None:
        service = FakeService(StrettoError("the store is busy"))
        upkeep = Upkeep(service)  # type: ignore[arg-type]
        for second in range(3_000):
            service.now = float(second)
            await upkeep.look()
        for tried in service.tried_at.values():
            assert tried[:5] == [0, 2, 6, 14, 30]
            assert tried[-1] - tried[-2] == 600

    asyncio.run(story())


def test_a_fault_of_our_own_is_logged_and_ends_no_upkeep(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("stretto.server.upkeep._LOOK_SECONDS", 0.0)
    caplog.set_level(logging.ERROR, "stretto.server")

    async def story() -> None:
        service = FakeService(RuntimeError("no such column"))
        keeping = asyncio.create_task(Upkeep(service).keep())  # type: ignore[arg-type]
        await until(lambda: len(service.tried_at["r"]) > 1)
        keeping.cancel()

    asyncio.run(story())
    assert "no such column" in caplog.text


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0)
