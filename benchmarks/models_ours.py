"""How Stretto calls a model: its model alone, and the whole engine around it. Run by models.py."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from models_worker import CHAIN, FAN, INSTRUCTIONS, MODEL, Way, of_calls, prompt, serve

REFERENCE = "{{{{steps.s{}.output}}}}"


@asynccontextmanager
async def model_alone(url: str) -> AsyncIterator[Way]:
    from stretto.adapters.models.named import NamedModels
    from stretto.ports.model import ModelQuestion, UserMessage

    models = NamedModels({"OPENAI_BASE_URL": url})
    model = await models.model(f"openai:{MODEL}")

    async def call(words: str) -> str:
        return (await model.ask(ModelQuestion([UserMessage(words)], INSTRUCTIONS))).text

    yield of_calls(call)
    await models.close()


class PooledClient:
    """Calls over httpcore2's own connection pool, in place of our client (decision 0021)."""

    def __init__(self, url: str, *, is_whole: bool) -> None:
        import httpcore2

        from stretto.adapters.models.http_client import ConnectionMaker

        backend = None if is_whole else ConnectionMaker()
        self._pool = httpcore2.AsyncConnectionPool(max_connections=None, network_backend=backend)
        self._url = url.rsplit("/v1", 1)[0]

    @asynccontextmanager
    async def send(self, method, target, headers, body=b"", *, idle_seconds, connect_seconds):
        limits = {"connect": connect_seconds, "read": idle_seconds, "write": idle_seconds}
        async with self._pool.stream(
            method,
            self._url + target,
            headers=headers,
            content=body,
            extensions={"timeout": limits},
        ) as response:
            yield response

    async def close(self) -> None:
        await self._pool.aclose()


def over_pool(*, is_whole: bool):
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Way]:
        from stretto.adapters.models import openai_model

        client = PooledClient(url, is_whole=is_whole)

        async def client_of(_: str) -> PooledClient:
            return client

        openai_model.client_of = client_of
        async with model_alone(url) as way:
            yield way
        await client.close()

    return opened


@asynccontextmanager
async def whole_engine(url: str) -> AsyncIterator[Way]:
    """From a plan to the end of its run: subagents, validation, and a journal on the disk."""
    from stretto.adapters.clock import SystemClock
    from stretto.adapters.models.named import NamedModels
    from stretto.adapters.stores.sqlite import SqliteJournal
    from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
    from stretto.agents.subagent import Subagents
    from stretto.execution.runs import Runs, Start
    from stretto.plan.model import Plan
    from stretto.vocabulary.models import ModelSelection
    from stretto.vocabulary.statuses import RunStatus

    environ = {**os.environ, "OPENAI_BASE_URL": url}
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteJournal.open(Path(folder, "runs.db"))
        models = NamedModels(environ)
        toolbox = StandardToolbox(ToolSettings(project=Path(folder)), environ)
        runner = Subagents(ModelSelection(f"openai:{MODEL}"), models, toolbox)
        runs = Runs(store, SystemClock())

        async def run(plan: Plan) -> int:
            state = await runs.start(Start(plan, {}), runner)
            assert state.status is RunStatus.COMPLETE, state.status
            return len(plan.steps)

        chain_plan, fan_plan = plan_of(CHAIN, is_chain=True), plan_of(FAN, is_chain=False)
        yield Way(lambda: run(chain_plan), lambda: run(fan_plan))
        await toolbox.close()
        await models.close()
        await store.close()


def plan_of(steps: int, *, is_chain: bool):
    from stretto.agents.agent_files import load_catalog
    from stretto.plan.build import build
    from stretto.plan.model import Plan
    from stretto.recipe.read import read_recipe

    lines = [
        "name: measured",
        f"agents: {{terse: {{prompt: {INSTRUCTIONS}, tools: []}}}}",
        "steps:",
    ]
    for n in range(steps):
        words = prompt(f"part {n}", REFERENCE.format(n - 1) if is_chain and n else "")
        lines += [f"  - id: s{n}", "    agent: terse", f"    prompt: '{words}'"]
    catalog = load_catalog((), Path.cwd())
    plan = build(read_recipe("\n".join(lines) + "\n"), catalog, width=steps)
    assert isinstance(plan, Plan), plan.problems
    return plan


if __name__ == "__main__":
    serve(
        {
            "model": model_alone,
            "engine": whole_engine,
            "pool": over_pool(is_whole=False),
            "httpcore2": over_pool(is_whole=True),
        }
    )
