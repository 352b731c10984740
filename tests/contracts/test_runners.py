"""What every runner of attempts must do, whoever does the work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec import structs

from stretto.adapters.clock import SystemClock
from stretto.adapters.models.cli.runner import CliRunner
from stretto.adapters.models.named import NamedModels
from stretto.adapters.models.scripted import Reply, Script, ScriptedRunner
from stretto.adapters.tools.command_runner import CommandRunner
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.agents.functions import FunctionAgents, FunctionRunner
from stretto.agents.redacted import RedactedRunner
from stretto.agents.subagent import Subagents
from stretto.assembly.models import WithCommands
from stretto.assembly.playbook_choice import CountedRunner
from stretto.assembly.project import Project
from stretto.assembly.subagents import _OnUse
from stretto.events.model import FailureKind
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    CommandRequest,
    Failure,
    Identified,
    Runner,
    Success,
    Witness,
)
from stretto.testing.openai_script import Hang, Said, Status
from stretto.testing.openai_server import OpenAIServer
from stretto.text.redaction import Redactor
from stretto.vocabulary.models import ModelSelection, Setup
from support.cli_agents import script
from support.subagents import Heard, request

PORTS = (Runner,)

ANSWER, HANGS, FAILS, EMPTY = "The answer is 42.", "hangs", "fails", "says nothing"
SECRET = "correct horse battery staple"
TELLS = "tells a secret"


@dataclass(frozen=True)
class Kind:
    """One runner, made so that it behaves as a word says, and the model that its attempts name."""

    open: Callable[[str, Path], AbstractAsyncContextManager[Runner]]
    model: str
    may_be_silent: bool = False  # a command that prints nothing has done its work


@asynccontextmanager
async def over_http(behaviour: str, folder: Path) -> AsyncIterator[Runner]:
    answers = {
        HANGS: Hang(),
        FAILS: Status(401, "bad key"),
        EMPTY: Said(""),
        TELLS: Said(f"It is {SECRET}."),
    }
    async with OpenAIServer(answers.get(behaviour, Said(behaviour))) as server:
        environ = {"OPENAI_BASE_URL": server.url}
        toolbox = StandardToolbox(ToolSettings(project=folder), environ)
        models = NamedModels(environ)
        try:
            yield Subagents(ModelSelection("openai:m"), models, toolbox)
        finally:
            await toolbox.close()
            await models.close()


@asynccontextmanager
async def as_a_program(behaviour: str, folder: Path) -> AsyncIterator[Runner]:
    lines = {
        HANGS: "sleep 60",
        FAILS: "echo broken >&2; exit 3",
        EMPTY: "true",
        TELLS: f"echo 'It is {SECRET}.'",
    }
    program = script(folder, "answer.sh", lines.get(behaviour, f"echo '{behaviour}'"))
    toolbox = StandardToolbox(ToolSettings(project=folder), {})
    cli = CliRunner(lambda words: True, {"PATH": "/usr/bin:/bin"})
    try:
        on_use = _OnUse(lambda: cli)
        yield Subagents(ModelSelection(f"cli:{program}"), NamedModels({}), toolbox, on_use)
    finally:
        await toolbox.close()


@asynccontextmanager
async def from_a_script(behaviour: str, folder: Path) -> AsyncIterator[Runner]:
    replies = {
        HANGS: Reply("late", delay_seconds=60),
        FAILS: Reply(error="rate limited", kind="unavailable"),
        EMPTY: Reply(""),
        TELLS: Reply(f"It is {SECRET}."),
    }
    yield ScriptedRunner(Script((replies.get(behaviour, Reply(behaviour)),)), SystemClock())


@asynccontextmanager
async def as_assembled(behaviour: str, folder: Path) -> AsyncIterator[Runner]:
    """Behind what a run has before its subagents: it runs commands, and counts playbooks."""
    project = Project(folder, {"STRETTO_HOME": str(folder)})
    async with from_a_script(behaviour, folder) as scripted:
        assert isinstance(scripted, ScriptedRunner)
        yield CountedRunner(WithCommands(project, scripted), project.settings)


@asynccontextmanager
async def as_a_function(behaviour: str, folder: Path) -> AsyncIterator[Runner]:
    async def score() -> str | None:
        if behaviour == HANGS:
            await asyncio.sleep(60)
        if behaviour == FAILS:
            raise ValueError("no number")
        return {EMPTY: None, TELLS: f"It is {SECRET}."}.get(behaviour, behaviour)

    others = ScriptedRunner(Script(), SystemClock())
    yield FunctionRunner(FunctionAgents({"score": score}), others)


@asynccontextmanager
async def as_a_command(behaviour: str, folder: Path) -> AsyncIterator[Runner]:
    lines = {
        HANGS: "sleep 60",
        FAILS: "echo broken >&2; exit 3",
        EMPTY: "true",
        TELLS: f"echo 'It is {SECRET}.'; echo '{SECRET}' >&2",
    }
    toolbox = StandardToolbox(ToolSettings(project=folder), {})
    others = ScriptedRunner(Script(), SystemClock())
    run = CommandRequest(lines.get(behaviour, f"echo '{behaviour}'"))
    runner = CommandRunner(toolbox, others, Redactor({}), lambda: "a sandbox")
    yield _Given(runner, {"command": run, "workspace": str(folder)})


@dataclass(frozen=True)
class _Given:
    """A runner whose requests hold more than those of agents."""

    runner: CommandRunner
    fields: dict[str, Any]

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        return await self.runner.run(structs.replace(request, **self.fields), witness)

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        return self.runner.identify(models, tools)


KINDS = {
    "subagents": Kind(over_http, ""),
    "cli": Kind(as_a_program, ""),
    "scripted": Kind(from_a_script, ""),
    "assembled": Kind(as_assembled, ""),
    "function": Kind(as_a_function, "python:score"),
    "command": Kind(as_a_command, "command:", may_be_silent=True),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def result_of(
    kind: Kind, behaviour: str, folder: Path, **fields: Any
) -> tuple[AttemptResult, Heard]:
    async def main() -> tuple[AttemptResult, Heard]:
        heard = Heard()
        async with kind.open(behaviour, folder) as runner, asyncio.timeout(30):
            return await runner.run(request(model=kind.model or None, **fields), heard), heard

    return asyncio.run(main())


def test_an_answer_is_a_success_and_says_who_gave_it(kind: Kind, tmp_path: Path) -> None:
    result, heard = result_of(kind, ANSWER, tmp_path)
    assert isinstance(result, Success)
    assert result.output == ANSWER
    assert result.model
    assert heard.spent.tokens <= result.usage.tokens


@pytest.mark.parametrize("behaviour", [FAILS, EMPTY])
def test_what_goes_wrong_is_a_failure_and_no_exception(
    kind: Kind, behaviour: str, tmp_path: Path
) -> None:
    if behaviour == EMPTY and kind.may_be_silent:
        result, _ = result_of(kind, behaviour, tmp_path)
        assert isinstance(result, Success)
        return
    result, _ = result_of(kind, behaviour, tmp_path)
    assert isinstance(result, Failure)
    assert result.kind in get_args(FailureKind)
    assert (result.kind == "empty") is (behaviour == EMPTY)
    assert result.error.strip()
    assert result.model


def test_an_answer_is_held_to_its_schema(kind: Kind, tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["score"]}
    good, _ = result_of(kind, '{"score": 3}', tmp_path, schema=schema, format="json")
    assert isinstance(good, Success)
    assert good.output == {"score": 3}
    bad, _ = result_of(kind, '{"points": 3}', tmp_path, schema=schema, format="json")
    assert isinstance(bad, Failure)
    assert bad.kind == "validation"


def test_a_rule_that_nobody_can_check_is_a_warning(kind: Kind, tmp_path: Path) -> None:
    result, _ = result_of(kind, ANSWER, tmp_path, rules=("must sound like Goethe",))
    assert isinstance(result, Success)
    (warning,) = result.warnings
    assert warning.startswith("the rule 'must sound like Goethe' was not checked")


def test_cancelling_ends_an_attempt_soon(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        async with kind.open(HANGS, tmp_path) as runner:
            asked = runner.run(request(model=kind.model or None), Heard())
            attempt = asyncio.create_task(asked)
            await asyncio.sleep(0.3)
            assert not attempt.done()
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                async with asyncio.timeout(10):
                    await attempt

    asyncio.run(main())


def test_several_attempts_run_side_by_side(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        async with kind.open(ANSWER, tmp_path) as runner, asyncio.timeout(30):
            some = [runner.run(request(model=kind.model or None), Heard()) for _ in range(5)]
            results = await asyncio.gather(*some)
            assert [each.output for each in results if isinstance(each, Success)] == [ANSWER] * 5

    asyncio.run(main())


def test_a_runner_can_say_who_answers(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        async with kind.open(ANSWER, tmp_path) as runner:
            assert isinstance(runner, Identified)
            setup = runner.identify(["", kind.model], ["Read"])
            assert setup.models.keys() == {"", kind.model}
            assert all(setup.models.values())
            assert setup == runner.identify(["", kind.model], ["Read"])

    asyncio.run(main())


def test_behind_the_redactor_no_secret_leaves_an_attempt(kind: Kind, tmp_path: Path) -> None:
    async def main() -> None:
        heard = Heard()
        async with kind.open(TELLS, tmp_path) as runner, asyncio.timeout(30):
            hidden = RedactedRunner(runner, Redactor({"DB_PASSWORD": SECRET}))
            result = await hidden.run(request(model=kind.model or None), heard)
        assert isinstance(result, Success)
        assert result.output == "It is [redacted]."
        assert SECRET not in repr(heard.events)

    asyncio.run(main())
