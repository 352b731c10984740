"""What a client is told of one step."""

import asyncio
import json
from pathlib import Path

from stretto.assembly.project import Project
from stretto.assembly.surface import Surface
from stretto.server.approvals import GateList, show_approval
from stretto.server.service import Service
from stretto.server.steps import show_step
from support.cli import environment
from support.off_the_loop import OffTheLoop

SECRET = "canary-5f3a9c04d1"
RECIPE = """\
name: long
steps:
  - {id: a, subagent: writer, prompt: Tell a long story.}
  - {id: b, subagent: writer, prompt: Go on., gate: human, depends_on: [a]}
"""
STORY = f"{'word ' * 30_000}{SECRET}"


def test_a_long_answer_is_redacted_in_a_thread_for_whoever_reads_it(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(json.dumps({"default": STORY}))

    async def story() -> list[str]:
        environ = environment(tmp_path, {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"})
        async with Surface(lambda place: Project(place or tmp_path, environ)) as stretto:
            run = await stretto.start(RECIPE)
            await run.report()
            stretto.engine.project.redactor = OffTheLoop({"SERVICE_TOKEN": SECRET})
            service = Service(stretto, *[None] * 3)  # type: ignore[arg-type]
            step = json.loads(bytes((await show_step(run.id, "a", service)).body))
            gate = json.loads(bytes((await show_approval(run.id, "b", service)).body))
            (listed,) = await GateList(service).read()
            return [
                step["transcript"][-1]["text"],
                *(each["grounds"][0]["output"] for each in (gate, listed)),
            ]

    for told in asyncio.run(story()):
        assert told.endswith("word [redacted]")
