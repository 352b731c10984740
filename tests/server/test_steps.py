"""What a client is told of one step."""

import asyncio
import json
import threading
from pathlib import Path

from stretto.assembly.project import Project
from stretto.assembly.surface import Surface
from stretto.server.service import Service
from stretto.server.steps import show_step
from stretto.text.redaction import Redactor
from support.cli import environment

SECRET = "canary-5f3a9c04d1"
RECIPE = "name: long\nsteps: [{id: a, subagent: writer, prompt: Tell a long story.}]\n"
STORY = f"{'word ' * 30_000}{SECRET}"


class _OffTheLoop(Redactor):
    def text(self, text: str) -> str:
        is_loop = threading.current_thread() is threading.main_thread()
        assert len(text) < 100_000 or not is_loop, "a large text was redacted on the event loop"
        return super().text(text)


def test_the_transcript_of_a_long_answer_is_redacted_in_a_thread(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(json.dumps({"default": STORY}))

    async def story() -> dict[str, object]:
        environ = environment(tmp_path, {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"})
        async with Surface(lambda place: Project(place or tmp_path, environ)) as stretto:
            run = await stretto.start(RECIPE)
            await run.report()
            stretto.engine.project.redactor = _OffTheLoop({"SERVICE_TOKEN": SECRET})
            service = Service(stretto, *[None] * 3)  # type: ignore[arg-type]
            answer = await show_step(run.id, "a", service)
            return json.loads(bytes(answer.body))["transcript"][-1]  # type: ignore[no-any-return]

    assert str(asyncio.run(story())["text"]).endswith("word [redacted]")
