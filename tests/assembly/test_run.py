"""A run that a caller opens, and what its caller leaves behind."""

import asyncio
from pathlib import Path

import pytest

from stretto import AgentContext, Stretto
from stretto.workspaces.merge_state import merge_lock

WRITING = """
name: writing
steps:
  - {id: make, subagent: author, prompt: Make it., posture: writer, write_set: [a.txt], merge_back: manual}
"""


def author(context: AgentContext) -> str:
    assert context.workspace is not None
    (context.workspace / "a.txt").write_text("new\n")
    return "made"


def test_an_apply_that_is_cancelled_twice_is_on_record_before_it_raises(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()

    async def main() -> None:
        async with Stretto(project, home=home, model=None, agents={"author": author}) as w:
            run = await w.start(WRITING)
            await run.report()
            with merge_lock(home, project):
                applying = asyncio.create_task(run.apply("make"))
                for _ in range(2):
                    await asyncio.sleep(0)
                    applying.cancel()
                await asyncio.wait([applying], timeout=0.01)
                assert not applying.done()
            with pytest.raises(asyncio.CancelledError):
                await applying
            changes = (await run.report()).steps["make"].changes
            assert changes is not None
            assert changes.standing == "applied"

    asyncio.run(main())
