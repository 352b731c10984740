"""From a request to a run that may start: for new runs, resumed ones and those that run again."""

from pathlib import Path

import pytest

from stretto.assembly.request import RunRequest
from stretto.execution.runs import Resume, Start
from stretto.problems.errors import InvalidInputs, InvalidUsage, NotFound, PermissionDenied
from stretto.recipe.model import Budget
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.names import RunId
from support.assembled import in_memory, settings_of

RECIPE = """
name: brief
budget: {tokens: 500}
inputs:
  topic: {type: string, required: true}
steps:
  - {id: a, subagent: researcher, prompt: "Find {{inputs.topic}}."}
  - {id: b, subagent: writer, depends_on: [a], prompt: Write.}
"""
WRITER = "name: w\nsteps: [{id: a, subagent: worker, prompt: x, posture: writer, write_set: [o]}]\n"
GATED = "name: g\nsteps: [{id: a, subagent: writer, prompt: x, gate: human}]\n"


def test_a_new_run_gets_an_id_bound_inputs_and_the_stricter_budget() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock) as w:
            request = RunRequest(RECIPE, {"topic": "looms"}, budget=Budget(tokens=900, usd=1.0))
            prepared = await w._engine.prepare(request)
            start = prepared.beginning
            assert isinstance(start, Start)
            assert prepared.run_id == start.run_id
            assert start.inputs == {"topic": "looms"}
            assert prepared.plan.budget == Budget(tokens=500, usd=1.0)
            other = await w._engine.prepare(request)
            assert other.run_id != prepared.run_id
            named = await w._engine.prepare(
                RunRequest(RECIPE, {"topic": "x"}, run_id=RunId("mine"))
            )
            assert named.run_id == "mine"
            assert await w.runs() == []  # nothing is journaled before the launch

    clock.run(main())


def test_a_request_that_cannot_run_is_refused_before_anything_is_journaled() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock) as w:
            with pytest.raises(InvalidInputs):
                await w._engine.prepare(RunRequest(RECIPE))
            with pytest.raises(PermissionDenied):
                await w._engine.prepare(RunRequest(WRITER, permission="read_only"))
            with pytest.raises(NotFound):
                await w._engine.prepare(RunRequest(of=RunId("nobody"), is_resumed=True))
            assert await w.runs() == []

    clock.run(main())


def test_the_permission_of_a_request_comes_before_that_of_the_settings(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def main() -> None:
        settings = settings_of(tmp_path, permission="read_only")
        async with in_memory(clock, settings=settings) as w:
            prepared = await w._engine.prepare(RunRequest(WRITER, permission="ask"))
            assert [step.is_gated for step in prepared.plan.steps] == [True]
            with pytest.raises(PermissionDenied):
                await w._engine.prepare(RunRequest(WRITER))

    clock.run(main())


def test_no_secret_of_the_environment_gets_into_what_is_journaled() -> None:
    clock = VirtualClock()

    async def main() -> None:
        environ = {"MY_API_KEY": "sk-very-secret-value"}
        async with in_memory(clock, environ=environ) as w:
            recipe = RECIPE.replace("prompt: Write.", "prompt: Use sk-very-secret-value.")
            prepared = await w._engine.prepare(
                RunRequest(recipe, {"topic": "sk-very-secret-value"})
            )
            assert isinstance(prepared.beginning, Start)
            assert prepared.beginning.inputs == {"topic": "[redacted]"}
            assert "sk-very-secret-value" not in repr(prepared.beginning.plan)

    clock.run(main())


def test_a_resumed_run_keeps_its_plan_and_a_decided_one_goes_on() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock) as w:
            prepared = await w._engine.prepare(RunRequest(GATED))
            run = await w._launch(prepared)
            assert await run.wait() == "waiting"
            again = await w._engine.prepare(RunRequest(of=RunId(run.id), is_resumed=True))
            assert again.beginning == Resume(RunId(run.id), "auto")
            assert again.plan == prepared.plan
            assert prepared.resumed().beginning == Resume(RunId(run.id), "auto")

    clock.run(main())


def test_a_run_that_is_run_again_takes_what_was_given_and_reuses_what_was_done() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with in_memory(clock) as w:
            run = await w._launch(await w._engine.prepare(RunRequest(RECIPE, {"topic": "looms"})))
            await run.wait()
            of = RunId(run.id)
            again = (await w._engine.prepare(RunRequest(of=of))).beginning
            assert isinstance(again, Start)
            assert (again.parent, again.inputs) == (run.id, {"topic": "looms"})
            assert len(again.reusable.answers) == 2
            assert again.reusable.anew == frozenset()
            forked = (await w._engine.prepare(RunRequest(of=of, from_step="b"))).beginning
            assert isinstance(forked, Start)
            assert forked.reusable.anew == {"b"}
            other = (await w._engine.prepare(RunRequest(of=of, inputs={"topic": "x"}))).beginning
            assert isinstance(other, Start)
            assert other.inputs == {"topic": "x"}
            with pytest.raises(InvalidUsage, match="has no step 'c'"):
                await w._engine.prepare(RunRequest(of=of, from_step="c"))

    clock.run(main())


@pytest.mark.parametrize("levels", [101, 400, 5_000])
def test_an_input_that_is_nested_deep_is_refused(levels: int) -> None:
    recipe = 'name: s\ninputs: [{name: x, type: array}]\nsteps: [{id: a, subagent: writer, prompt: "{{inputs.x}}"}]\n'
    deep: list[object] = []
    for _ in range(levels - 1):
        deep = [deep]

    async def main() -> None:
        async with in_memory(VirtualClock(), "default: Done.") as w:
            with pytest.raises(InvalidInputs, match="nested more than 100 levels"):
                await w.start(recipe, {"x": deep})
            with pytest.raises(InvalidInputs, match="nested more than 100 levels"):
                await w.plan(recipe, {"x": deep})

    VirtualClock().run(main())
