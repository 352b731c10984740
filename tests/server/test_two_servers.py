"""Two servers of one home: what one of them is quicker at is no fault of the other."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.request import RunRequest
from stretto.assembly.surface import Surface
from stretto.server.ledger import open_ledger
from stretto.server.service import Service
from stretto.server.upkeep import Upkeep
from support.cli import environment

RECIPE = "name: gated\nsteps: [{id: act, subagent: writer, gate: human, prompt: x}]\n"


class Overtaken(Ports):
    """The other server takes the run while this one prepares to go on with it."""

    taken: list[str] = []  # noqa: RUF012
    journal: Any = None

    async def choose(self, *given: Any, **more: Any) -> Any:
        chosen = await super().choose(*given, **more)
        for run_id in self.taken:
            await self.journal.lease(run_id, "the other server", 60)
        return chosen

    @asynccontextmanager
    async def open_runner(self, *given: Any, **more: Any) -> Any:
        for run_id in self.taken:
            await self.journal.lease(run_id, "the other server", 60)
        async with super().open_runner(*given, **more) as runner:
            yield runner

    async def open_store(self, project: Project) -> Any:
        type(self).journal = await super().open_store(project)
        return self.journal


def test_an_approval_counts_though_another_server_goes_on_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("default: Hello!\n")
    environ = environment(tmp_path, {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"})

    async def story() -> None:
        stretto = Surface(lambda place: Project(place or tmp_path, environ), Overtaken())
        async with stretto:
            run = await stretto.launch(await stretto.prepare(RunRequest(RECIPE, trigger="http")))
            await run.wait()
            Overtaken.taken = [run.id]
            await run.approve("act")
            Overtaken.taken = []
            assert (await run.history()).state.awaiting_approval == {}

    asyncio.run(story())


def test_a_run_that_another_server_takes_up_first_is_not_refused_and_not_given_up(
    tmp_path: Path,
) -> None:
    (tmp_path / "script.yaml").write_text("default: Hello!\n")
    environ = environment(tmp_path, {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"})

    async def story() -> None:
        stretto = Surface(lambda place: Project(place or tmp_path, environ), Overtaken())
        async with stretto:
            with open_ledger(tmp_path / "home") as ledger:
                service = Service(stretto, None, ledger, SimpleNamespace())  # type: ignore[arg-type]
                run = await stretto.launch(
                    await stretto.prepare(RunRequest(RECIPE, trigger="http"))
                )
                await run.wait()
                runs = await stretto.engine.runs_of()
                await runs.decide(run._id, "act", True, "ada")  # type: ignore[arg-type]
                Overtaken.taken = [run.id]
                await service.resume(run.id)
                upkeep = Upkeep(service)
                await upkeep.look()
                Overtaken.taken = []
                await Overtaken.journal.release(run.id, fence=await last_fence(run.id))
                await upkeep.look()
                assert await stretto.open(run.id).wait() == "complete"

    async def last_fence(run_id: str) -> int:
        fence: int = await Overtaken.journal.lease(run_id, "the other server", 60)
        return fence

    asyncio.run(story())
