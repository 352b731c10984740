"""Recipes in every form, checked and planned; and a mistake of each kind with its error."""

import asyncio
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import stretto
from support.api import BRIEF, GATED, Open, Scripted

PLAIN: dict[str, Any] = {
    "name": "plain",
    "steps": [{"id": "a", "subagent": "writer", "prompt": "Write."}],
}
WRITING = """
name: writing
steps:
  - {id: make, subagent: worker, prompt: Make it., posture: writer, write_set: [out.txt]}
"""


def test_a_recipe_is_a_name_a_path_a_text_or_a_dict(open_stretto: Open, project: Path) -> None:
    (project / "workflows").mkdir()
    (project / "workflows" / "saved.yaml").write_text(BRIEF.replace("brief\n", "saved\n", 1))
    file = project / "file.yaml"
    file.write_text(BRIEF)

    async def main() -> None:
        async with open_stretto() as w:
            for recipe, inputs, name in (
                ("saved", {"topic": "x"}, "saved"),
                (file, {"topic": "x"}, "brief"),
                (str(file), {"topic": "x"}, "brief"),
                (BRIEF, {"topic": "x"}, "brief"),
                (PLAIN, {}, "plain"),
                ('{"name": "one-line", "steps": [{"id": "a", "subagent": "writer", "prompt": "x"}]}',
                 {}, "one-line"),
            ):  # fmt: skip
                assert await w.validate(recipe) == ()
                report = await (await w.start(recipe, inputs)).report()
                assert (report.workflow, report.status) == (name, "complete")

    asyncio.run(main())


def test_all_problems_of_a_recipe_come_at_once_with_their_places(open_stretto: Open) -> None:
    broken = BRIEF.replace("[gather]", "[gathered]").replace("researcher", "reseacher")

    async def main() -> None:
        async with open_stretto() as w:
            problems = await w.validate(broken)
            assert [problem.code for problem in problems] == ["RCP108", "RCP104"]
            assert all(problem.place is not None for problem in problems)
            assert "did you mean 'researcher'?" in problems[0].hint
            with pytest.raises(stretto.InvalidRecipe) as caught:
                await w.start(broken, {"topic": "x"})
            assert caught.value.problems == problems
            notes = caught.value.__notes__  # which a traceback shows
            assert "<text>:6: RCP108" in notes[0]
            assert "did you mean 'researcher'?" in notes[0]
            assert await w.runs() == []  # nothing was journaled
            (one,) = await w.validate({**PLAIN, "setps": []})
            assert "setps" in one.message

    asyncio.run(main())


def test_a_plan_tells_what_would_run_and_draws_itself(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            plan = await w.plan(BRIEF, {"topic": "looms"})
            assert (plan.workflow, plan.steps) == ("brief", ("gather", "brief"))
            assert plan.waves == (("gather",), ("brief",))
            assert plan.json["would_run"][0]["prompt"] == "Find looms."
            assert "gather" in str(plan)
            assert plan.draw("mermaid").startswith("flowchart")
            with pytest.raises(stretto.InvalidUsage, match="no format 'png'"):
                plan.draw("png")
            with pytest.raises(stretto.InvalidInputs, match="topic"):
                await w.plan(BRIEF)
            other = await w.plan(BRIEF, {"topic": "looms"}, model="openai:another")
            assert other.json["would_run"][0]["model"] == "openai:another"
            assert await w.runs() == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("recipe", "inputs", "options", "error", "said"),
    [
        ("nowhere", {}, {}, stretto.NotFound, "no workflow and no file 'nowhere'"),
        (Path("nowhere.yaml"), {}, {}, stretto.InvalidRecipe, "nowhere.yaml has 1 problem"),
        ("name: x\nsteps: []\n", {}, {}, stretto.InvalidRecipe, "1 problem"),
        ({"name": {1}}, {}, {}, stretto.InvalidUsage, "not JSON"),
        (BRIEF, {}, {}, stretto.InvalidInputs, "topic"),
        (BRIEF, {"topic": "x", "tpoic": 1}, {}, stretto.InvalidInputs, "tpoic"),
        (WRITING, {}, {"permission": "read_only"}, stretto.PermissionDenied, "may only read"),
        (PLAIN, {}, {"permission": "maybe"}, stretto.InvalidUsage, "permission is 'maybe'"),
        (PLAIN, {}, {"budget": {"euros": 1}}, stretto.InvalidUsage, "no 'euros'"),
        (PLAIN, {}, {"budget": {"usd": -1}}, stretto.InvalidUsage, "from 0 on"),
        (PLAIN, {}, {"model": "nobody:x"}, stretto.NotReady, "cannot run here"),
        (PLAIN, {}, {"model": "scripted:/nowhere.yaml"}, stretto.NotReady, "cannot run here"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_error(
    open_stretto: Open, recipe: Any, inputs: Any, options: Any, error: Any, said: str
) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            with pytest.raises(error, match=said) as caught:
                await w.start(recipe, inputs, **options)
            assert isinstance(caught.value, stretto.StrettoError)

    asyncio.run(main())


def test_mistakes_about_runs_have_their_errors_too(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            nobody = w.open("20200101-000000-0000000000")
            for act in (nobody.report, nobody.status, nobody.resume, nobody.retry, nobody.cancel):
                with pytest.raises(stretto.NotFound, match="there is no run"):
                    await act()
            with pytest.raises(stretto.NotFound):
                await anext(nobody.events())
            run = await w.start(GATED)
            await run.wait()
            with pytest.raises(stretto.InvalidUsage, match="'look' does not await approval"):
                await run.approve("look")
            with pytest.raises(stretto.InvalidUsage, match="something else than you were shown"):
                await run.approve("send", key="another")
            with pytest.raises(stretto.NotFound, match="left no change"):
                await run.diff("look")

    asyncio.run(main())


def test_settings_that_cannot_be_read_are_an_error_of_their_own(project: Path) -> None:
    (project / "stretto.yaml").write_text("modle: x\n")
    with pytest.raises(stretto.InvalidConfig, match="1 problem") as caught:
        stretto.Stretto(project, home=project / "home", trust=True)
    assert "modle" in caught.value.problems[0].message


def test_a_budget_in_python_is_one_more_limit(open_stretto: Open, scripted: Scripted) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            model = scripted("default: {reply: x, tokens: 900}")
            options: dict[str, Any] = {"model": model, "budget": {"tokens": 1000}}
            report = await (await w.start(BRIEF, {"topic": "x"}, **options)).report()
            assert report.status == "failed"
            assert "budget" in str([step.error for step in report.steps])

    asyncio.run(main())


def test_with_permission_ask_a_writer_waits_for_a_person(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(WRITING, permission="ask")
            assert await run.wait() == "waiting"
            await run.approve("make")
            assert await run.wait() == "complete"

    asyncio.run(main())


def test_a_recipe_is_any_mapping_and_nothing_else_is_one(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            step = {"id": "a", "subagent": "writer", "prompt": "x"}
            assert await w.validate(MappingProxyType({"name": "x", "steps": (step,)})) == ()  # type: ignore[arg-type]
            for wrong in (None, 3, b"name: x\n", [1]):
                for act in (w.validate, w.start, w.plan):
                    with pytest.raises(stretto.InvalidUsage, match="a recipe cannot be"):
                        await act(wrong)  # type: ignore[operator]
            with pytest.raises(stretto.InvalidRecipe, match=r"^the recipe has 1 problem"):
                await w.start("{")

    asyncio.run(main())


def test_options_of_the_wrong_kind_are_refused(open_stretto: Open, project: Path) -> None:
    with pytest.raises(stretto.NotFound, match="there is no folder"):
        stretto.Stretto(project / "nowhere")
    for options in ({"tools": 3}, {"agents": [1]}, {"agents": {3: len}}, {"model": 3}):
        with pytest.raises(stretto.InvalidUsage):
            open_stretto(**options)

    async def main() -> None:
        async with open_stretto() as w:
            run: Any = await w.start(GATED)
            await run.wait()
            typed: Any = w
            for wrong in (
                lambda: typed.start(PLAIN, 3),
                lambda: typed.start(PLAIN, {3: 1}),
                lambda: typed.start(PLAIN, model=3),
                lambda: typed.start(PLAIN, budget=3),
                lambda: typed.plan(PLAIN, [("a", 1)]),
                lambda: typed.runs(limit=-1),
                lambda: typed.runs(limit=None),
                lambda: typed.runs(since="today"),
                lambda: run.resume(permission="everything"),
                lambda: run.resume(model=3),
                lambda: run.retry(permission="everything"),
                lambda: run.retry(inputs=3),
                lambda: run.retry(from_step=3),
                lambda: run.fork(3),
            ):
                with pytest.raises(stretto.InvalidUsage):
                    await wrong()
            recipe = "name: i\ninputs: {x: {type: array}}\nsteps: [{id: a, subagent: writer, prompt: x}]\n"
            endless: list[stretto.Json] = []
            endless.append(endless)
            for value in ([{1}], [b"x"], [project], endless):
                with pytest.raises(stretto.InvalidInputs, match="input 'x' is not JSON"):
                    await typed.start(recipe, {"x": value})
            assert await (await typed.start(recipe, {"x": ("a", "b")})).wait() == "complete"

    asyncio.run(main())


def test_a_plan_is_held_to_the_permission_that_a_run_would_have(open_stretto: Open) -> None:
    step = {"id": "a", "agent": "writer", "prompt": "x", "posture": "writer", "write_set": ["a"]}
    writes = {"name": "w", "steps": [step]}

    async def main() -> None:
        async with open_stretto() as w:
            gates = [
                (await w.plan(writes, permission=each)).json["would_run"][0]["gate"]
                for each in (None, "auto", "ask")
            ]
            assert [gate is not None for gate in gates] == [False, False, True]
            with pytest.raises(stretto.PermissionDenied, match="may only read"):
                await w.plan(writes, permission="read_only")

    asyncio.run(main())
