"""Python functions as tools and as agents, through the public API."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.testing import OpenAIServer, Said, ToolCall
from support.api import Open

ASKING = """
name: asking
agents:
  librarian: {prompt: Use the tool., tools: [lookup]}
steps:
  - {id: ask, subagent: librarian, prompt: What is a loom?}
"""
SCORING = """
name: scoring
inputs:
  company: {type: string}
steps:
  - {id: rate, subagent: score, prompt: "Rate {{inputs.company}}."}
  - {id: tell, subagent: writer, depends_on: [rate], prompt: "It got {{steps.rate.output.points}}."}
"""


@stretto.tool(effect="idempotent", read_only=True)
def lookup(word: str) -> str:
    """Look a word up.

    Args:
        word: in its basic form
    """
    return f"{word}: a machine that weaves"


def score(prompt: str, company: str, context: stretto.AgentContext) -> dict[str, Any]:
    """Rate a company."""
    return {"points": len(company), "prompt": prompt, "step": context.step}


def test_the_file_of_an_agent_may_list_an_own_tool(open_stretto: Open, tmp_path: Path) -> None:
    agents = tmp_path / "home" / "agents"
    agents.mkdir(parents=True)
    (agents / "clerk.md").write_text("---\ntools: [lookup]\n---\nUse the tool.\n")
    recipe = "name: t\nsteps: [{id: ask, subagent: clerk, prompt: What is a loom?}]"

    async def main() -> None:
        async with open_stretto(tools=[lookup]) as w:
            assert await w.validate(recipe) == ()
        async with open_stretto() as w:
            (problem,) = await w.validate(recipe)
            assert "there is no tool 'lookup'" in problem.hint

    asyncio.run(main())


def test_an_own_tool_is_offered_to_the_model_called_and_journaled(open_stretto: Open) -> None:
    async def main() -> None:
        answers = [
            Said("", tool_calls=(ToolCall("lookup", {"word": "loom"}),)),
            Said("A loom weaves."),
        ]
        async with OpenAIServer(answers) as server:
            environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x"}
            options: dict[str, Any] = {"environ": environ, "model": "openai:scripted"}
            async with open_stretto(tools=[lookup], **options) as w:
                run = await w.start(ASKING)
                report = await run.report()
                assert (report.status, report.output) == ("complete", "A loom weaves.")
                assert server.requests[0].tool_names == ["lookup"]
                assert "a machine that weaves" in server.requests[1].prompt
                ended = [e async for e in run.events() if isinstance(e, stretto.ToolEnded)]
                assert [(e.tool, e.verdict) for e in ended] == [("lookup", "ok")]

    asyncio.run(main())


def test_a_tool_that_nobody_gave_is_a_problem_of_the_recipe(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            (problem,) = await w.validate(ASKING)
            assert problem.message == "there is no tool 'lookup'"
        async with open_stretto(tools=[lookup]) as w:
            assert await w.validate(ASKING) == ()

    asyncio.run(main())


def test_a_function_is_a_step_like_any_other(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: told", agents={"score": score}) as w:
            run = await w.start(SCORING, {"company": "Acme"})
            report = await run.report()
            rated = report.steps["rate"]
            assert rated.output == {"points": 4, "prompt": "Rate Acme.", "step": "rate"}
            assert rated.attempts[0].model == "python:score"
            again = await (await run.retry()).report()
            assert again.steps["rate"].attempts[0].status == "reused"
            assert "Rate a company." not in rated.warnings

    asyncio.run(main())


def test_an_answer_is_not_reused_once_the_function_is_another_one(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: told", agents={"score": score}) as w:
            run = await w.start(SCORING, {"company": "Acme"})
            await run.wait()

        def rescore(company: str) -> dict[str, int]:
            return {"points": 1}

        async with open_stretto("default: told", agents={"score": rescore}) as w:
            report = await (await w.open(run.id).retry()).report()
            assert report.steps["rate"].output == {"points": 1}

    asyncio.run(main())


def test_resumed_where_its_functions_are_missing_a_run_says_which(open_stretto: Open) -> None:
    async def main() -> None:
        recipe = SCORING.replace('prompt: "Rate', 'gate: human, prompt: "Rate')
        async with open_stretto("default: told", agents={"score": score}) as w:
            run = await w.start(recipe, {"company": "Acme"})
            assert await run.wait() == "waiting"
        async with open_stretto() as w:
            with pytest.raises(stretto.NotReady) as caught:
                await w.open(run.id).resume()
        (problem,) = caught.value.problems
        assert "agent 'score' is the Python function python:score" in problem.message
        assert "Stretto(agents={…})" in problem.hint

    asyncio.run(main())


def test_a_function_that_fails_is_retried_and_its_error_is_reported(open_stretto: Open) -> None:
    async def main() -> None:
        seen: list[int] = []

        async def flaky(context: stretto.AgentContext) -> str:
            seen.append(context.attempt)
            if context.attempt == 1:
                raise ValueError("not yet")
            return "done"

        recipe = "name: f\nsteps: [{id: a, subagent: flaky, prompt: x, retry: {max_attempts: 2}}]\n"
        async with open_stretto(model=None, agents={"flaky": flaky}) as w:
            report = await (await w.start(recipe)).report()
        assert (seen, report.output) == ([1, 2], "done")
        assert report.steps["a"].attempts[0].error == "ValueError: not yet"

    asyncio.run(main())


def test_what_cannot_be_a_tool_or_an_agent_is_refused_at_once(open_stretto: Open) -> None:
    def untyped(word):  # type: ignore[no-untyped-def]
        return word

    with pytest.raises(stretto.InvalidUsage, match="'word' has no annotation"):
        open_stretto(tools=[untyped])
    with pytest.raises(stretto.InvalidUsage, match="same name"):
        open_stretto(tools=[lookup, lookup])
    with pytest.raises(stretto.InvalidUsage, match="'my agent' cannot be the name"):
        open_stretto(agents={"my agent": score})


def test_what_a_function_returns_need_not_be_found_by_its_annotation(open_stretto: Open) -> None:
    # Under `from __future__ import annotations` a class inside a function is a name that nobody finds.
    def grade(company: str) -> "Grade": ...  # type: ignore[name-defined] # noqa: F821

    def search(word: "Word") -> str: ...  # type: ignore[name-defined] # noqa: F821

    open_stretto(agents={"grade": grade}, tools=[stretto.tool(grade)])
    with pytest.raises(stretto.InvalidUsage, match="name 'Word' is not defined"):
        open_stretto(agents={"search": search})
    with pytest.raises(stretto.InvalidUsage, match="name 'Word' is not defined"):
        stretto.tool(search)


def _two_keys(word: str, key: stretto.CallKey, other: stretto.CallKey) -> str:
    return word


class _Shelf:
    def find(self, word: str) -> str:
        return word


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: stretto.tool("idempotent"), "made of a function, not of 'idempotent'"),
        (lambda: stretto.tool(read_only="no")(score), "must be True or False"),
        (lambda: stretto.tool(name=3)(score), "'3' cannot be the name"),
        (lambda: stretto.tool(effect="keyed")(_two_keys), "two parameters annotated with CallKey"),
        (lambda: stretto.tool(_Shelf.find), "a method without its object; give thing.method"),
    ],
)
def test_a_tool_that_was_declared_wrongly_is_refused_with_the_way_out(make: Any, says: str) -> None:
    with pytest.raises(stretto.InvalidUsage, match=says):
        make()


def test_a_tool_is_made_of_a_bound_method_and_again_of_a_tool() -> None:
    made = stretto.tool(read_only=True)(_Shelf().find)
    assert stretto.tool(name="seek")(made).name == "seek"
    assert stretto.tool(made)("loom") == "loom"


def test_an_optional_key_is_filled_in_and_not_shown_to_the_model() -> None:
    @stretto.tool(effect="keyed")
    def send(text: str, key: stretto.CallKey | None = None) -> str:
        return f"{text} {key}"

    assert list(send.spec.parameters["properties"]) == ["text"]  # type: ignore[call-overload,index]


@dataclass
class _Node:
    name: str
    above: "_Node | None" = None
    left_out: str = field(init=False)


def test_a_function_may_carry_classes_and_values_that_hold_themselves(open_stretto: Open) -> None:
    ring: list[object] = []
    ring.append(ring)
    node = _Node("a")
    node.above = node

    def answer() -> str:
        return f"{_Node('b').name} {node.name} {len(ring)} {[Inner(1).number]}"

    @dataclass
    class Inner:
        number: int

    async def main() -> None:
        recipe = "name: f\nsteps: [{id: a, subagent: answer, prompt: x}]\n"
        async with open_stretto(agents={"answer": answer}) as w:
            assert (await (await w.start(recipe)).report()).output == "b a 1 [1]"

    asyncio.run(main())


def test_what_an_error_of_a_function_says_is_cut(open_stretto: Open) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def quote() -> str:
        raise ValueError("x" * 1_000_000)

    def mute() -> str:
        raise Mute

    def stop() -> str:
        raise StopIteration("no more")

    async def main() -> None:
        recipe = "name: f\nsteps:\n" + "".join(
            f"- {{id: {name}, subagent: {name}, prompt: x, on_failure: inline}}\n"
            for name in ("quote", "mute", "stop")
        )
        async with open_stretto(agents={"quote": quote, "mute": mute, "stop": stop}) as w:
            steps = (await (await w.start(recipe)).report()).steps
        assert len(steps["quote"].error) < 5_000
        assert steps["quote"].error.endswith("characters more)")
        assert steps["mute"].error == "Mute"
        assert steps["stop"].error == "RuntimeError: the function raised StopIteration: no more"

    asyncio.run(main())


def _write_half(context: stretto.AgentContext, item: int = 0) -> str:
    assert context.workspace is not None
    (context.workspace / f"half-{item}.txt").write_text("x")
    if item == 2:
        raise ValueError("broke in the middle")
    return "done"


WRITING = 'name: w\nsteps: [{id: a, posture: writer, write_set: ["*.txt"], %s}]\n'
ELEMENTS = "map: {over: '[1, 2, 3]', agent: write, on_item_failure: skip}"


def test_half_done_files_of_a_function_are_not_merged_unasked(
    open_stretto: Open, project: Path
) -> None:
    async def main() -> None:
        async with open_stretto(agents={"write": _write_half}, model=None) as w:
            run = await w.start(WRITING % ELEMENTS)
            assert await run.wait() == "waiting"
            assert not list(project.glob("*.txt"))
            (issue,) = [each for each in (await run.report()).issues if "half-done" in each.text]
            assert "item.1.stage.0" in issue.text

    asyncio.run(main())


def test_what_a_failed_function_left_in_a_shared_workspace_is_named(
    open_stretto: Open, project: Path
) -> None:
    async def main() -> None:
        async with open_stretto(agents={"write": _write_half}, model=None) as w:
            report = await (await w.start(WRITING % f"workspace_mode: shared, {ELEMENTS}")).report()
            (said,) = [each for each in report.steps["a"].warnings if "half-done" in each]
            assert "half-2.txt" in said

    asyncio.run(main())


def test_a_function_can_write_and_remove_what_its_step_may(
    open_stretto: Open, project: Path
) -> None:
    for number in range(20):
        (project / f"old-{number}.txt").write_text("x")

    def tidy(context: stretto.AgentContext) -> str:
        assert context.workspace is not None
        for file in context.workspace.glob("old-*.txt"):
            file.unlink()
        return "done"

    async def main() -> None:
        recipe = WRITING % "subagent: tidy, prompt: x"
        async with open_stretto(agents={"tidy": tidy}, model=None) as w:
            assert await w.validate(recipe) == ()
            assert await (await w.start(recipe)).wait() == "complete"
        assert not list(project.glob("*.txt"))

    asyncio.run(main())


def test_a_function_works_in_the_workspace_whatever_model_is_named(
    open_stretto: Open, project: Path
) -> None:
    (project / "left.txt").write_text("x")

    def copy(context: stretto.AgentContext) -> str:
        assert context.workspace is not None
        (context.workspace / "right.txt").write_text((context.workspace / "left.txt").read_text())
        return "done"

    async def main() -> None:
        recipe = WRITING % "subagent: copy, prompt: x"
        async with open_stretto(agents={"copy": copy}) as w:  # with a scripted model
            report = await (await w.start(recipe)).report()
        assert (report.status, report.steps["a"].output) == ("complete", "done")
        assert (project / "right.txt").read_text() == "x"

    asyncio.run(main())


class _Alarm(BaseException):
    pass


@pytest.mark.parametrize("error", [_Alarm("fire"), GeneratorExit("fire"), SystemExit("fire")])
def test_whatever_a_function_raises_the_run_ends(open_stretto: Open, error: BaseException) -> None:
    def alarm() -> str:
        raise error

    async def alarm_async() -> str:
        raise error

    async def main() -> None:
        recipe = "name: f\nsteps:\n- {id: a, subagent: one, prompt: x}\n- {id: b, subagent: other, prompt: x}\n"
        async with open_stretto(agents={"one": alarm, "other": alarm_async}) as w:
            report = await asyncio.wait_for((await w.start(recipe)).report(), 10)
        assert [step.error for step in report.steps] == [f"{type(error).__name__}: fire"] * 2

    asyncio.run(main())


def test_a_function_in_a_thread_that_raises_keyboardinterrupt_fails_alone(
    open_stretto: Open,
) -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    async def main() -> None:
        recipe = "name: f\nsteps: [{id: a, subagent: one, prompt: x}]\n"
        async with open_stretto(agents={"one": interrupt}) as w:
            report = await asyncio.wait_for((await w.start(recipe)).report(), 10)
        assert report.steps["a"].error == "RuntimeError: the function raised KeyboardInterrupt"

    asyncio.run(main())


def test_a_function_may_return_a_text_of_a_class_of_its_own(open_stretto: Open) -> None:
    class Colour(StrEnum):
        RED = "red"

    async def main() -> None:
        recipe = "name: f\nsteps: [{id: a, subagent: paint, prompt: x}]\n"
        async with open_stretto(agents={"paint": lambda: Colour.RED}) as w:
            assert (await (await w.start(recipe)).report()).output == "red"

    asyncio.run(main())


def test_inputs_are_copied_for_the_run_and_for_each_function(open_stretto: Open) -> None:
    seen: list[object] = []

    async def change(words: list[str]) -> str:
        await asyncio.sleep(0.05)
        seen.append(list(words))
        words.append("changed by a function")
        return "done"

    async def main() -> None:
        recipe = (
            "name: f\ninputs: {words: {type: array}}\nsteps:\n- {id: a, subagent: change, prompt: x}\n"
            "- {id: b, subagent: change, depends_on: [a], prompt: x}\n"
        )
        words: list[stretto.Json] = ["loom"]
        async with open_stretto(agents={"change": change}) as w:
            run = await w.start(recipe, {"words": words})
            words.append("changed by the caller")
            assert await run.wait() == "complete"
        assert seen == [["loom"], ["loom"]]

    asyncio.run(main())


def test_a_run_reads_what_its_own_functions_carry_and_no_others(open_stretto: Open) -> None:
    reads: list[str] = []

    class Carried(list[str]):
        def __iter__(self) -> Iterator[str]:
            reads.append(self[0])
            return super().__iter__()

    def using(carried: Carried) -> Callable[[str], str]:
        return lambda prompt: f"{prompt} {carried[0]}"

    agents = {"used": using(Carried(["one"])), "idle": using(Carried(["two"]))}
    recipe = "name: t\nsteps: [{id: ask, subagent: used, prompt: Do it.}]"

    async def main() -> None:
        async with open_stretto(agents=agents) as w:
            assert (await (await w.start(recipe)).report()).output == "Do it. one"

    asyncio.run(main())
    assert set(reads) == {"one"}
