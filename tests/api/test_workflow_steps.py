"""Workflow steps from Python: a recipe as a dict, functions inside, gates inside."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import stretto
from support.api import Open

INNER = {
    "name": "rating",
    "inputs": {"company": {"required": True}, "least": {"type": "number", "default": 1}},
    "steps": [
        {"id": "rate", "subagent": "score", "prompt": "Rate {{inputs.company}}."},
        {"id": "tell", "subagent": "say", "prompt": "x", "depends_on": ["rate"]},
    ],
}
OUTER = {
    "name": "outer",
    "inputs": {"name": {"required": True}},
    "steps": [
        {
            "id": "sub",
            "workflow": "rating.json",
            "inputs": {"company": "{{inputs.name}}", "least": 2},
        }
    ],
}


def score(company: str, least: int, context: stretto.AgentContext) -> dict[str, Any]:
    return {"points": len(company), "least": least, "step": context.step}


def say(inputs: dict[str, Any], context: stretto.AgentContext) -> str:
    return json.dumps([inputs, context.results])


def test_functions_inside_see_the_inputs_and_results_of_their_own_recipe(
    open_stretto: Open, project: Path
) -> None:
    (project / "rating.json").write_text(json.dumps(INNER))

    async def main() -> Any:
        async with open_stretto(agents={"score": score, "say": say}) as w:
            run = await w.start(OUTER, {"name": "Ada & Co"})
            return await run.report()

    report = asyncio.run(main())
    assert report.status == "complete", report
    assert report.steps["sub/rate"].output == {"points": 8, "least": 2, "step": "sub/rate"}
    inputs, results = json.loads(report.output)
    assert inputs == {"company": "Ada & Co", "least": 2}
    assert list(results) == ["rate"]


def test_a_function_that_wants_an_input_of_the_outer_recipe_is_refused(
    open_stretto: Open, project: Path
) -> None:
    (project / "rating.json").write_text(json.dumps(INNER))

    def wants_name(name: str) -> str:
        return name

    async def main() -> None:
        async with open_stretto(agents={"score": wants_name, "say": say}) as w:
            await w.start(OUTER, {"name": "x"})

    with pytest.raises(stretto.NotReady, match="wants 'name', which is no input"):
        asyncio.run(main())


def test_a_gate_inside_is_approved_from_python(open_stretto: Open, project: Path) -> None:
    inner = "name: i\nsteps: [{id: ask, subagent: writer, prompt: x, gate: human}]"
    (project / "i.yaml").write_text(inner)

    async def main() -> tuple[str, str, str]:
        async with open_stretto() as w:
            run = await w.start("name: o\nsteps: [{id: sub, workflow: i.yaml}]\n")
            waiting = await run.wait()
            before = (await run.report()).steps["sub"].status
            await run.approve("sub/ask")
            return waiting, before, await run.wait()

    assert asyncio.run(main()) == ("waiting", "waiting", "complete")


def test_a_recipe_is_not_saved_where_the_files_that_it_names_are_not(
    open_stretto: Open, project: Path
) -> None:
    inner = "name: i\nsteps: [{id: ask, subagent: writer, prompt: x}]"
    (project / "i.yaml").write_text(inner)
    (project / "workflows").mkdir()
    outer = "name: o\nsteps: [{id: sub, workflow: i.yaml}]\n"

    async def main() -> None:
        async with open_stretto() as w:
            assert await w.validate(outer) == ()
            await w.workflows.save(outer)

    with pytest.raises(stretto.InvalidRecipe) as refused:
        asyncio.run(main())
    assert "there is no file 'i.yaml'" in refused.value.problems[0].message
    assert not list((project / "workflows").iterdir())
