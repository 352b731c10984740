"""Runs in this process, by the same road as `stretto run`: real driver, real tools, a real server.

In: a folder, a recipe, what the model says. Out: the report, and the exit code it would give.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.adapters.models.http_client import close_clients
from stretto.assembly.changes import with_patches
from stretto.assembly.request import RunRequest
from stretto.assembly.stretto import Stretto
from stretto.cli.foreground import exit_code
from stretto.report.html import as_html
from stretto.report.json_form import report_as_json
from stretto.report.markdown import as_markdown
from stretto.report.model import Report
from stretto.report.report import report_of
from stretto.schedule.state import RunState
from stretto.testing.openai_server import OpenAIServer
from stretto.vocabulary.json_value import Json
from support.cli import environment, write


@dataclass(frozen=True)
class Happened:
    report: Report
    code: int
    state: RunState
    said: tuple[str, ...]  # before the run

    @property
    def forms(self) -> tuple[str, str, dict[str, Any]]:
        return (
            as_markdown(self.report),
            as_html(self.report, self.state.plan),
            report_as_json(self.report),
        )

    @property
    def is_silent(self) -> bool:
        """Complete, exit code 0, and not a word that anything was amiss."""
        return self.report.is_ok and self.code == 0 and not self.report.warnings


async def happen(
    folder: Path,
    recipe: str,
    model: str | None,
    inputs: Mapping[str, Json],
    environ: Mapping[str, str],
) -> Happened:
    recipe_file = write(folder, "recipe.yaml", recipe)
    async with Stretto(folder, environ={**environment(folder), **environ}) as stretto:
        prepared = await stretto._engine.prepare(RunRequest(recipe_file, inputs, model=model))
        run = await stretto._launch(prepared)
        async with asyncio.timeout(60):
            await run.wait()
        history = await stretto._engine.history(run.id)
        report = with_patches(stretto._engine.project, report_of(history.state), history)
    return Happened(report, exit_code(history.state), history.state, prepared.notices)


def scripted(folder: Path, recipe: str, script: str, **inputs: Json) -> Happened:
    file = write(folder, "script.yaml", script)
    return asyncio.run(happen(folder, recipe, f"scripted:{file}", inputs, {}))


def over_http(
    folder: Path, recipe: str, script: Any, model: str | None = "openai:m", **inputs: Json
) -> Happened:
    """Without a `model` each agent asks its own."""

    async def main() -> Happened:
        async with OpenAIServer(script) as server:
            environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
            try:
                return await happen(folder, recipe, model, inputs, environ)
            finally:
                await close_clients()

    return asyncio.run(main())
