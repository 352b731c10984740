"""Python functions as agents: steps that call a function instead of a model.

    def score(prompt: str, company: str, context: AgentContext) -> dict[str, int]: ...

    functions = FunctionAgents({"score": score})  # reads the signatures; raises InvalidUsage
    catalog = functions.add_to(catalog)           # the planner then knows an agent "score"
    problems = functions.problems(plan)           # what the recipe and the functions disagree on
    runner = FunctionRunner(functions, others)    # `others` is asked about every other agent

To the planner a function is an agent whose model is `python:NAME`. So the name stands in the plan,
the function's identity in the run's setup, and equal keys still mean equal work.

A function gets its arguments by the names of its parameters:

    prompt      the rendered prompt
    context     an AgentContext (also under any other name that is annotated so)
    inputs      all inputs of the workflow, converted to the annotated type
    item, index, candidate, feedback, iteration
                inside a map or a loop
    NAME        the workflow's input of that name, converted to the annotated type

It returns a text, a JSON value, a dataclass or a pydantic model; None fails as "empty". Whatever it
raises fails the attempt. A plain function runs in a thread, which nothing can stop: when its attempt
is cancelled or times out, the attempt ends and the thread's result is dropped. A coroutine function
is cancelled.
"""

import asyncio
import inspect
import json
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import structs

from stretto.agents.acceptance import Acceptance, Answer
from stretto.agents.python_function import (
    call_in_thread,
    check_bound,
    describe_error,
    digest_of,
    is_async,
    parameter_types,
    plain_function,
)
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan, PlannedWorkflow, briefs
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    Failure,
    FunctionArguments,
    Runner,
    Witness,
    is_identified,
)
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Agent
from stretto.text.short import kind_of, listed
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import FUNCTION_MODEL, Setup, is_function
from stretto.vocabulary.names import AgentId, StepId, is_id

_LOCAL = ("item", "index", "candidate", "feedback", "iteration")


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The step that a function works for."""

    run_id: str
    step: str
    part: str  # which delegation of the step: a branch, an element of a map, a round of a loop
    attempt: int
    key: str  # of this attempt; for services that recognise a request that is sent twice
    workspace: Path | None  # the folder that the step works in
    inputs: Mapping[str, Json]
    results: Mapping[str, Json]  # the outputs of the steps that this step depends on
    local: Mapping[str, Json]  # item, index, candidate, feedback, iteration
    instructions: str  # the agent's own prompt, where the recipe defines the agent
    previous: Json  # the output of the map stage before, or what a loop's validator checks
    seconds_left: float | None  # until a timeout ends the attempt


class AnsweringRunner(Runner, Protocol):
    """A runner that says how answers are accepted in its run."""

    acceptance: Acceptance


@dataclass(frozen=True, slots=True)
class FunctionAgent:
    name: str
    call: Callable[..., object]
    parameters: tuple["_Parameter", ...]

    @property
    def identity(self) -> str:
        """Its qualified name, and a digest of its code and of what it carries, which may change between runs."""
        inner = plain_function(self.call)
        name = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', '')}"
        return f"{FUNCTION_MODEL}{name} {digest_of(self.call)}"

    async def answer(self, request: AttemptRequest) -> object:
        context = _context(request)
        arguments = {
            parameter.name: value
            for parameter in self.parameters
            if (value := parameter.value(request.prompt, context)) is not inspect.Parameter.empty
        }
        if is_async(self.call):
            result = self.call(**arguments)
        else:
            result = await call_in_thread(partial(self.call, **arguments))
        return await result if inspect.isawaitable(result) else result


class FunctionAgents:
    def __init__(self, functions: Mapping[str, Callable[..., object]]) -> None:
        self._functions = {name: _read(name, function) for name, function in functions.items()}

    def __bool__(self) -> bool:
        return bool(self._functions)

    def named(self, model: str | None) -> FunctionAgent | None:
        return (
            self._functions.get(model.removeprefix(FUNCTION_MODEL)) if is_function(model) else None
        )

    def add_to(self, catalog: Catalog) -> Catalog:
        agents = {
            AgentId(name): Agent(
                AgentId(name), role=_summary(function.call), model=f"{FUNCTION_MODEL}{name}"
            )
            for name, function in self._functions.items()
        }
        # A ChainMap, because the catalog reads an agent's file only when that agent is asked for.
        return structs.replace(
            catalog, agents=ChainMap(agents, cast(MutableMapping[AgentId, Agent], catalog.agents))
        )

    def problems(self, plan: Plan) -> tuple[Problem, ...]:
        """What the recipe and the functions disagree on: names, parameters, missing functions."""
        found = list[Problem]()
        for agent in plan.agents.values():
            if agent.id in self._functions and agent.model != f"{FUNCTION_MODEL}{agent.id}":
                found.append(_clash(agent.id))
            elif self.named(agent.model) is None and is_function(agent.model):
                found.append(_missing(agent.id, agent.model or ""))
        for model, inputs in dict.fromkeys(_find_models(plan)):
            if (function := self.named(model)) is not None:
                found += _unknown_parameters(function, inputs)
        return tuple(dict.fromkeys(found))


def _find_models(plan: Plan) -> Iterator[tuple[str | None, frozenset[str]]]:
    """Who is asked, and which inputs the recipe has that asks: that of the run, or of a workflow step."""
    inputs: dict[StepId | None, frozenset[str]] = {
        None: frozenset(each.name for each in plan.inputs)
    }
    for step in plan.steps:
        if isinstance(step.work, PlannedWorkflow):
            inputs[step.id] = frozenset(each.name for each in step.work.inputs)
        for brief in briefs(step.work):
            for agent in (brief.agent, brief.fallback):
                if agent is not None:
                    yield plan.agents[agent].model, inputs[step.inside]


def _unknown_parameters(function: FunctionAgent, inputs: Collection[str]) -> Iterator[Problem]:
    for parameter in function.parameters:
        if not parameter.is_required or parameter.is_known or parameter.name in inputs:
            continue
        names = listed(sorted(inputs)) if inputs else "none"
        yield Problem(
            "RUN009",
            f"agent '{function.name}': its function wants '{parameter.name}', "
            "which is no input of this workflow",
            hint=f"inputs: {names}; or take prompt, context or inputs, or give it a default",
        )


def _clash(id: AgentId) -> Problem:
    return Problem(
        "RUN009",
        f"agent '{id}' is defined in the recipe, and a Python function is given for it too",
        hint="rename one of them; or let the recipe's agent call the function: "
        f"model: {FUNCTION_MODEL}{id}",
    )


def _missing(id: AgentId, model: str) -> Problem:
    return Problem(
        "RUN009",
        f"agent '{id}' is the Python function {model}, which is not given here",
        hint="start and resume this run from the program that gives it: Stretto(agents={…})",
    )


class FunctionRunner:
    def __init__(self, functions: FunctionAgents, others: AnsweringRunner) -> None:
        self._functions = functions
        self._others = others
        self.acceptance = others.acceptance

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        own = {name: self._functions.named(name) for name in models}
        if not is_identified(self._others):
            raise TypeError(f"{type(self._others).__name__} cannot say who answers")
        setup = self._others.identify([name for name in models if own[name] is None], tools)
        known = {name: function.identity for name, function in own.items() if function}
        return structs.replace(setup, models={**setup.models, **known})

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        function = self._functions.named(request.model)
        if function is None:
            return await self._others.run(request, witness)
        model = request.model or ""
        await witness.confirm()
        try:
            output = _as_json(await function.answer(request))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The attempt was not cancelled: something inside the function was.
            return Failure("error", describe_error(error), model=model)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever else it raises, the run goes on
            return Failure("error", describe_error(error), model=model)
        if output is None:
            return Failure("empty", "the function returned None", model=model)
        return await self.acceptance.check(Answer(output, Usage(), model), request, witness)


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    is_required: bool
    is_context: bool
    convert: Callable[[object], object] | None  # None: as it is

    @property
    def is_known(self) -> bool:
        return self.is_context or self.name in ("prompt", "inputs", *_LOCAL)

    def value(self, prompt: str, context: AgentContext) -> object:
        """`inspect.Parameter.empty`: it is left to the function's own default."""
        if self.is_context:
            return context
        if self.name == "prompt":
            return prompt
        if self.name == "inputs":
            found: object = context.inputs
        elif self.name in context.local:
            found = context.local[self.name]
        elif self.name in context.inputs:
            found = context.inputs[self.name]
        elif self.is_required:
            raise InvalidUsage(f"nothing here is called '{self.name}'")
        else:
            return inspect.Parameter.empty
        return self.convert(found) if self.convert else found


def _context(request: AttemptRequest) -> AgentContext:
    # Copies: what a function changes in them stays its own.
    given = deepcopy(request.arguments) or FunctionArguments()
    return AgentContext(
        run_id=request.run_id,
        step=request.step,
        part=request.attempt.part.text,
        attempt=request.attempt.number,
        key=request.name,
        workspace=Path(request.workspace) if request.workspace else None,
        inputs=given.inputs,
        results=given.results,
        local=given.local,
        instructions=request.instructions,
        previous=given.previous,
        seconds_left=request.seconds_left,
    )


def _read(name: object, function: Callable[..., object]) -> FunctionAgent:
    if not isinstance(name, str) or not is_id(name):
        raise InvalidUsage(f"agents: '{name}' cannot be the name of an agent")
    if not callable(function):
        raise InvalidUsage(f"agent '{name}' is {kind_of(function)}, not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidUsage(f"agent '{name}' is a generator; let it return its answer")
    try:
        return FunctionAgent(name, function, tuple(_parameters(function)))
    except InvalidUsage as error:
        raise InvalidUsage(f"agent '{name}': {error.message}") from None
    except Exception as error:  # annotations are the user's own code
        said = describe_error(error).partition("\n")[0]  # pydantic adds an address to read more at
        raise InvalidUsage(f"agent '{name}': its signature cannot be read: {said}") from None


def _parameters(function: Callable[..., object]) -> Iterator[_Parameter]:
    kinds = parameter_types(function)
    check_bound(function, kinds)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.kind not in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        ):  # fmt: skip
            raise InvalidUsage(f"'{parameter.name}' cannot be given by name")
        kind = kinds.get(parameter.name, Any)
        is_context = kind is AgentContext or parameter.name == "context"
        is_plain = is_context or parameter.name == "prompt" or kind is Any
        yield _Parameter(
            parameter.name,
            parameter.default is inspect.Parameter.empty,
            is_context,
            None if is_plain else _converter(kind),
        )


def _converter(kind: Any) -> Callable[[object], object]:
    # Imported here: a program that gives no functions does not wait for pydantic.
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python


def _summary(function: Callable[..., object]) -> str:
    return (inspect.getdoc(plain_function(function)) or "").partition("\n")[0]


def _as_json(output: object) -> Json:
    if output is None or type(output) is str:
        return output
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        value: Json = to_jsonable_python(output)
        json.dumps(value, allow_nan=False)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        said = f"it returned {kind_of(output)}, which is neither text nor JSON: {error}"
        raise InvalidUsage(said) from None
    return value
