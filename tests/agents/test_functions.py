import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from stretto.adapters.models.scripted import Script, ScriptedRunner
from stretto.agents.functions import AgentContext, FunctionAgents, FunctionRunner
from stretto.events.attempts import WHOLE_STEP, AttemptId
from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.ports.runner import AttemptResult, Failure, FunctionArguments, Success
from stretto.problems.errors import InvalidUsage
from stretto.recipe.read import read_recipe
from stretto.schedule.state import RunState
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.statuses import RunStatus
from support.driven_runs import Stage
from support.subagents import Heard, request


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run_test() -> None:
        asyncio.run(test())

    return run_test


RECIPE = """
name: rate
inputs: {company: {type: string}, employees: {type: number, default: 3}}
steps:
  - id: look
    subagent: analyst
    prompt: Look at {{ company }}.
  - id: rate
    subagent: score
    depends_on: [look]
    prompt: Rate {{ company }}.
"""


def functions(**given: Callable[..., object]) -> FunctionAgents:
    return FunctionAgents(given)


def plan_with(given: FunctionAgents, recipe: str = RECIPE) -> Plan:
    from stretto.agents.agent_files import load_catalog

    built = build(read_recipe(recipe), given.add_to(load_catalog((), Path.cwd())))
    assert isinstance(built, Plan), built
    return built


async def ask(function: Callable[..., object], **fields: Any) -> AttemptResult:
    runner = FunctionRunner(functions(score=function), ScriptedRunner(Script(), VirtualClock()))
    arguments = FunctionArguments(
        inputs={"company": "Acme", "employees": 3}, results={"look": "Solid."}
    )
    given = {"model": "python:score", "arguments": arguments, **fields}
    return await runner.run(request(**given), Heard())


def run(function: Callable[..., object], **fields: Any) -> AttemptResult:
    return asyncio.run(ask(function, **fields))


def drive(function: Callable[..., object], recipe: str = RECIPE, **inputs: Any) -> RunState:
    given = functions(score=function)
    stage = Stage(plan_with(given, recipe), "default: From the script.")
    scripted = ScriptedRunner(Script(), stage.clock)
    stage.runner.acceptance = scripted.acceptance  # type: ignore[attr-defined]
    stage.runner = FunctionRunner(given, stage.runner)  # type: ignore[arg-type,assignment]
    return stage.start(company="Acme", employees=3, **inputs)


def test_a_function_gets_its_prompt_and_what_it_returns_is_the_output() -> None:
    assert run(lambda prompt: prompt.upper(), prompt="hello") == Success(
        "HELLO", Usage(), model="python:score"
    )


def test_parameters_named_like_inputs_get_them_converted_to_their_type() -> None:
    def score(company: str, employees: float) -> str:
        return f"{company} {employees!r}"

    assert run(score) == Success("Acme 3.0", model="python:score")


@dataclass
class Given:
    company: str
    employees: int


class Rated(BaseModel):
    company: str
    points: int


def test_inputs_are_converted_to_a_dataclass_and_a_model_returned_becomes_json() -> None:
    def score(inputs: Given) -> Rated:
        return Rated(company=inputs.company, points=inputs.employees * 10)

    result = run(score)
    assert isinstance(result, Success)
    assert result.output == {"company": "Acme", "points": 30}


def test_a_dataclass_returned_becomes_json() -> None:
    result = run(lambda inputs: Given(**inputs))
    assert isinstance(result, Success)
    assert result.output == {"company": "Acme", "employees": 3}


def test_the_context_says_for_whom_the_function_works() -> None:
    seen = list[AgentContext]()

    def score(context: AgentContext) -> str:
        seen.append(context)
        return "ok"

    run(score, run_id="run-1", attempt=AttemptId("rate", 2), workspace="/work")
    context = seen[0]
    assert (context.run_id, context.step, context.attempt) == ("run-1", "rate", 2)
    assert context.key == "run-1/rate//2"
    assert context.workspace == Path("/work")
    assert context.results == {"look": "Solid."}


@in_a_loop
async def test_a_coroutine_function_is_awaited_in_the_loop() -> None:
    async def score(prompt: str) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert await ask(score) == Success(threading.current_thread().name, model="python:score")


@in_a_loop
async def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    result = await ask(lambda: threading.current_thread().name)
    assert result == Success("stretto function", model="python:score")


def test_none_fails_as_empty() -> None:
    assert run(lambda: None) == Failure("empty", "the function returned None", model="python:score")


@pytest.mark.parametrize("error", [ValueError("no number"), SystemExit(3)])
def test_what_a_function_raises_fails_the_attempt(error: BaseException) -> None:
    def score() -> str:
        raise error

    result = run(score)
    assert isinstance(result, Failure)
    assert (result.kind, result.error) == ("error", f"{type(error).__name__}: {error}")


def test_what_is_not_json_fails_the_attempt() -> None:
    for output in (object(), float("nan"), {"a": float("inf")}):
        result = run(lambda output=output: output)
        assert isinstance(result, Failure), output
        assert "neither text nor JSON" in result.error


def test_an_input_of_the_wrong_type_fails_the_attempt() -> None:
    def score(company: int) -> str:
        return str(company)

    result = run(score)
    assert isinstance(result, Failure)
    assert "ValidationError" in result.error


def test_the_answer_is_validated_like_that_of_any_model() -> None:
    schema = {"type": "object", "required": ["score"]}
    good = run(lambda: {"score": 3}, schema=schema)
    assert isinstance(good, Success)
    bad = run(lambda: {"points": 3}, schema=schema)
    assert isinstance(bad, Failure)
    assert bad.kind == "validation"


@in_a_loop
async def test_cancelling_an_attempt_cancels_a_coroutine_function() -> None:
    ended = asyncio.Event()

    async def score() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    task = asyncio.create_task(ask(score))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


@in_a_loop
async def test_cancelling_an_attempt_drops_the_result_of_a_plain_function() -> None:
    began, go_on = threading.Event(), threading.Event()

    def score() -> str:
        began.set()
        go_on.wait(10)
        return "too late"

    task = asyncio.create_task(ask(score))
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()


@in_a_loop
async def test_a_task_cancelled_inside_the_function_is_a_failure_and_no_cancellation() -> None:
    async def score() -> str:
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner
        return "never"

    result = await ask(score)
    assert isinstance(result, Failure)
    assert result.error.startswith("CancelledError")


def test_other_agents_are_left_to_the_other_runner() -> None:
    result = run(lambda: "from the function", model="openai:gpt-4o")
    assert isinstance(result, Failure)
    assert "the script has no reply" in result.error


def test_a_workflow_calls_a_function_as_a_step_like_any_other() -> None:
    def score(company: str, context: AgentContext) -> str:
        return f"{company}: {context.results['look']}"

    state = drive(score)
    assert state.status is RunStatus.COMPLETE
    assert state.values["rate"].output == "Acme: From the script."


def test_a_function_that_fails_is_tried_again_as_the_step_says() -> None:
    attempts = list[int]()

    def score(context: AgentContext) -> str:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise RuntimeError("for a moment")
        return "ok"

    state = drive(score, RECIPE + "    retry: {max_attempts: 2}\n")
    assert state.status is RunStatus.COMPLETE
    assert attempts == [1, 2]


def test_a_function_is_called_whatever_model_the_step_names() -> None:
    state = drive(lambda: "from the function", RECIPE + "    model: openai:gpt-4o\n")
    assert state.values["rate"].output == "from the function"


def test_a_function_gets_the_item_of_a_map() -> None:
    recipe = """
name: rate
inputs: {company: {type: string}, employees: {type: number}}
steps:
  - id: rate
    map:
      over: '["a", "b"]'
      agent: score
"""
    state = drive(lambda item, index: f"{index}{item}", recipe)
    assert state.values["rate"].output == ["0a", "1b"]


def test_another_input_is_other_work_even_if_the_prompt_is_the_same() -> None:
    def key(employees: int) -> str:
        given = functions(score=lambda inputs: "ok")
        stage = Stage(plan_with(given))
        stage.runner.acceptance = None  # type: ignore[attr-defined]
        stage.runner = FunctionRunner(given, stage.runner)  # type: ignore[arg-type,assignment]
        state = stage.start(company="Acme", employees=employees)
        return state.steps["rate"].parts[WHOLE_STEP].attempts[0].key

    assert key(3) != key(4)
    assert key(3) == key(3)


def test_a_parameter_that_is_no_input_is_a_problem() -> None:
    def score(prompt: str, compnay: str, weight: int = 2) -> str:
        return ""

    given = functions(score=score)
    problems = given.problems(plan_with(given))
    assert [problem.code for problem in problems] == ["RUN009"]
    assert "wants 'compnay', which is no input of this workflow" in problems[0].message
    assert "company, employees" in (problems[0].hint or "")


def test_a_recipes_own_agent_of_the_same_name_is_a_problem() -> None:
    given = functions(score=lambda: "")
    recipe = RECIPE + "agents: {score: {prompt: Rate it.}}\n"
    (problem,) = given.problems(plan_with(given, recipe))
    assert "defined in the recipe, and a Python function is given for it too" in problem.message


def test_a_recipes_own_agent_may_call_the_function_by_its_model() -> None:
    recipe = RECIPE + "agents: {score: {prompt: Rate it., model: 'python:score'}}\n"
    state = drive(lambda context, prompt: f"{context.instructions} {prompt}", recipe)
    assert state.values["rate"].output == "Rate it. Rate Acme."


def test_a_plan_that_needs_a_function_that_is_not_given_is_a_problem() -> None:
    plan = plan_with(functions(score=lambda: ""))
    (problem,) = functions().problems(plan)
    assert "python:score, which is not given here" in problem.message


def _generator() -> Any:
    yield "a"


def _positional(a: str, /) -> str:
    return a


class Rater:
    def rate(self, prompt: str) -> str:
        return prompt


def _unknown_type(a: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("no id!", lambda: "", "cannot be the name of an agent"),
        ("score", "a text", "is a str, not a function"),
        ("score", _generator, "is a generator"),
        ("score", _positional, "'a' cannot be given by name"),
        ("score", _unknown_type, "its signature cannot be read: NameError"),
        ("score", Rater.rate, "it is a method without its object"),
    ],
)
def test_what_cannot_be_an_agent_is_told_at_once(name: str, function: Any, says: str) -> None:
    with pytest.raises(InvalidUsage, match=says):
        FunctionAgents({name: function})


def identity(function: Callable[..., object]) -> str:
    runner = FunctionRunner(functions(score=function), ScriptedRunner(Script(), VirtualClock()))
    models: Mapping[str, str] = runner.identify(["", "python:score"], []).models
    assert models[""].startswith("scripted:")
    return models["python:score"]


def _captures(points: int) -> Callable[[], int]:
    return lambda: points


def _from_text(body: str) -> Callable[..., object]:
    names: dict[str, Any] = {}
    exec(f"def score():\n    return {body}", names)
    return names["score"]  # type: ignore[no-any-return]


def _add(a: int, b: int = 1) -> int:
    return a + b


@dataclass(frozen=True)
class Scorer:
    weight: int

    def __call__(self, prompt: str) -> int:
        return self.weight


def test_the_identity_of_a_function_is_its_name_its_code_and_what_it_carries() -> None:
    assert identity(_captures(1)) == identity(_captures(1))
    assert identity(_captures(1)) != identity(_captures(2))
    assert identity(_from_text("1")) == identity(_from_text("1"))
    assert identity(_from_text("1")) != identity(_from_text("2"))
    assert identity(partial(_add, a=1)) != identity(partial(_add, a=2))
    assert identity(Scorer(1)) != identity(Scorer(2))
    assert identity(Scorer(1)) == identity(Scorer(1))
    assert "test_functions._add " in identity(partial(_add, a=1))


class Rater:
    def __init__(self, weight: object) -> None:
        self.weight = weight

    def rate(self, prompt: str) -> str:
        return f"{self.weight}"


class Compact:
    __slots__ = ("weight",)

    def __init__(self, weight: object) -> None:
        self.weight = weight

    def __call__(self, prompt: str) -> str:
        return f"{self.weight}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), ([1], [1, 1]), ({"a": 1}, {"a": 2}), ({1, 2}, {1, 3}), (None, False), ("1", 1),
        (Path("a"), Path("b")), (Decimal("1.5"), Decimal("1.6")), (date(2026, 1, 1), date(2026, 1, 2)),
        (re.compile("a" * 300 + "b"), re.compile("a" * 300 + "c")), (re.compile("a"), re.compile("a", re.I)),
        (Scorer(1), Scorer(2)), (len, sum), (lambda: 1, lambda: 2), (Path, Decimal),
    ],
)  # fmt: skip
def test_a_function_that_carries_another_value_is_another(one: object, other: object) -> None:
    def agents(value: object) -> list[Callable[..., object]]:
        return [Rater(value).rate, Compact(value), partial(Rater.rate, Rater(value)), _captures(value)]  # fmt: skip

    for left, right in zip(agents(one), agents(other), strict=True):
        assert identity(left) != identity(right)
    assert list(map(identity, agents(one))) == list(map(identity, agents(one)))


def test_what_a_client_of_the_object_counts_makes_it_no_other() -> None:
    client = Rater(0)
    agent = Rater(client).rate
    before = identity(agent)
    client.weight = 1
    assert identity(agent) == before


def test_two_functions_of_one_line_are_two() -> None:
    one, other = (lambda prompt: "yes"), (lambda prompt: "no")  # fmt: skip
    assert identity(one) != identity(other)


def test_a_file_that_was_edited_after_its_import_is_not_what_runs(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"

    def load(source: str) -> Callable[..., object]:
        file.write_text(source, encoding="utf-8")
        names: dict[str, Any] = {"__name__": "mine"}
        exec(compile(source, str(file), "exec"), names)
        return names["score"]  # type: ignore[no-any-return]

    old = load("def score(n: int):\n    return 10\n")
    edited = "def score(n: int):\n    return 200\n"
    new = identity(load(edited))
    assert identity(old) != new == identity(load(edited))
    assert identity(load(edited.replace("int", "str"))) != new


def test_an_object_that_can_be_called_is_an_agent() -> None:
    assert run(Scorer(7)) == Success(7, model="python:score")


def test_an_agent_is_described_by_the_first_line_of_its_docstring() -> None:
    def score() -> str:
        """Rate a company.

        More."""
        return ""

    catalog = functions(score=score).add_to(Catalog())
    agent = catalog.agents["score"]  # type: ignore[index]
    assert (agent.role, agent.model) == ("Rate a company.", "python:score")
