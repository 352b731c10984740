"""No secret of the environment reaches a provider, a journal, a tool or a change."""

import asyncio
import base64
import json
import sys
import threading
from pathlib import Path

import pytest

from stretto.adapters.models.scripted import ScriptedRunner, read_script
from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.toolbox import ToolSettings
from stretto.agents.redacted import RedactedRunner, redact_apart
from stretto.events.attempts import AttemptId
from stretto.events.model import ModelFailedOver, ToolEnded
from stretto.ports.runner import (
    AttemptRequest,
    AttemptResult,
    Failure,
    Identified,
    Success,
    Witness,
)
from stretto.problems.errors import StrettoError
from stretto.testing.clock import VirtualClock
from stretto.testing.openai_script import Said, ToolCall
from stretto.text.redaction import Redactor
from stretto.vocabulary.json_value import Json
from stretto.workspaces.change import find_changes, why_inadmissible
from stretto.workspaces.isolated_copy import isolate
from support.off_the_loop import OffTheLoop
from support.subagents import Heard, Outcome, play, request

SECRET = "canary-5f3a9c04d1"
ENVIRON = {"SERVICE_TOKEN": SECRET, "PATH": "/usr/bin"}
PLAIN = Path(__file__).parents[1] / "support" / "plain_mcp.py"


def server(**told: object) -> ToolSettings:
    args = ("-ISu", str(PLAIN), json.dumps(told))
    plain = McpServer("plain", command=sys.executable, args=args)
    return ToolSettings(Path("/"), mcp_servers={"plain": plain})


def sent(done: Outcome) -> str:
    return str([asked.body for asked in done.server.requests])


def test_what_a_server_says_of_its_tools_is_redacted_for_the_provider() -> None:
    tool = {
        "name": f"x{SECRET}",
        "description": f"Uses {SECRET}.",
        "inputSchema": {"type": "object", "properties": {SECRET: {"description": SECRET}}},
        "annotations": {"readOnlyHint": True},
    }
    script = [Said("", tool_calls=(ToolCall("mcp__plain__xredacted", {}),)), Said("Done.")]
    result = {"content": [{"type": "text", "text": f"it is {SECRET}"}]}
    tools = server(tools={"tools": [tool]}, result=result)
    done = play(script, request(tools=("mcp__plain",)), environ=ENVIRON, tools=tools)
    assert done.output == "Done."
    assert "mcp__plain__xredacted" in sent(done)
    assert SECRET not in sent(done) + repr(done.heard.events)
    (call,) = [event for event in done.heard.events if isinstance(event, ToolEnded)]
    assert call.verdict == "ok"


def test_the_last_words_of_a_server_are_redacted_for_everybody() -> None:
    code = f"import sys; sys.exit('cannot log in with {SECRET}')"
    dying = McpServer("plain", command=sys.executable, args=("-ISuc", code))
    tools = ToolSettings(Path("/"), mcp_servers={"plain": dying})
    asked = request(tools=("mcp__plain__x", "Read"), workspace="/usr/share")
    done = play([Said("Oh.")], asked, environ=ENVIRON, tools=tools)
    assert SECRET not in sent(done) + repr(done.heard.events) + repr(done.result)
    assert "cannot log in with [redacted]" in sent(done) + repr(done.result)


@pytest.mark.parametrize("form", [SECRET, base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex()])  # fmt: skip
def test_a_tool_is_not_given_a_secret(tmp_path: Path, form: str) -> None:
    call = ToolCall("Write", {"file_path": "a.txt", "content": f"x = {form}\n"})
    asked = request(tools=("Write",), workspace=str(tmp_path), may_write=True, write_set=("**",))
    done = play([Said("", tool_calls=(call,)), Said("Done.")], asked, environ=ENVIRON)
    assert not (tmp_path / "a.txt").exists()
    (ended,) = [event for event in done.heard.events if isinstance(event, ToolEnded)]
    assert (ended.verdict, "SERVICE_TOKEN" in ended.message) == ("refused", True)
    assert form not in repr(done.heard.events) + sent(done)


def test_a_secret_at_the_place_where_an_argument_is_cut_is_not_half_shown(tmp_path: Path) -> None:
    text = "x" * 1_990 + SECRET + "y" * 100
    call = ToolCall("Read", {"file_path": text})
    asked = request(tools=("Read",), workspace=str(tmp_path))
    done = play([Said("", tool_calls=(call,)), Said("Done.")], asked, environ=ENVIRON)
    assert SECRET[:6] not in repr(done.heard.events)


def test_the_name_of_a_tool_that_does_not_exist_is_redacted_too() -> None:
    script = [Said("", tool_calls=(ToolCall(f"get_{SECRET}", {}),)), Said("Done.")]
    done = play(script, request(tools=("WebFetch",)), environ=ENVIRON)
    runner = RedactedRunner(_Playing(done), Redactor(ENVIRON))
    heard = Heard()
    asyncio.run(runner.run(request(), heard))
    assert SECRET not in sent(done) + repr(heard.events)


class _Playing:
    """Tells again what was told."""

    def __init__(self, done: Outcome) -> None:
        self._done = done

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        for event in self._done.heard.events:
            witness.note(event)
        return self._done.result


class _Saying:
    def __init__(self, result: AttemptResult | Exception) -> None:
        self._result = result

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        if isinstance(self._result, Exception):
            raise self._result
        await witness.record(
            ModelFailedOver(1.0, AttemptId(request.step, 1), SECRET, "other", f"no {SECRET}")
        )
        return self._result


@pytest.mark.parametrize(
    "result",
    [
        Success({"a": [f"x {SECRET}"], SECRET: 1}, warnings=(SECRET,), model=SECRET),
        Success(SECRET * 10_000),
        Failure("error", f"no {SECRET}", warnings=(f"see {SECRET}",), model=SECRET),
    ],
)
def test_whatever_a_runner_gives_is_redacted(result: AttemptResult) -> None:
    heard = Heard()
    given = asyncio.run(RedactedRunner(_Saying(result), Redactor(ENVIRON)).run(request(), heard))
    assert "[redacted]" in repr(given)
    assert SECRET not in repr(given) + repr(heard.events)


@pytest.mark.parametrize("error", [StrettoError("no", hint=SECRET), ValueError(SECRET)])
def test_what_a_runner_raises_is_redacted(error: Exception) -> None:
    runner = RedactedRunner(_Saying(error), Redactor(ENVIRON))
    with pytest.raises(StrettoError) as raised:
        asyncio.run(runner.run(request(), Heard()))
    assert SECRET not in raised.value.with_hint


def test_what_holds_no_secret_is_given_as_it_is() -> None:
    result = Success({"a": [1]}, warnings=("w",))
    runner = RedactedRunner(_Saying(result), Redactor(ENVIRON))
    assert asyncio.run(runner.run(request(), Heard())) == result
    with pytest.raises(ValueError, match="plain"):
        asyncio.run(RedactedRunner(_Saying(ValueError("plain")), Redactor(ENVIRON)).run(request(), Heard()))  # fmt: skip


LARGE: list[Json] = ["x" * 100_000, ["x" * 1_000] * 100, {"rows": [{"a": 1}] * 60_000}]


@pytest.mark.parametrize("value", LARGE)
def test_a_large_value_is_redacted_in_a_thread(value: Json) -> None:
    worked = asyncio.run(redact_apart(threading.current_thread, "small", value))
    assert worked is not threading.main_thread()


@pytest.mark.parametrize("value", ["", "x" * 50_000, {"rows": [{"a": 1}] * 100}, None, 1.5])
def test_starting_a_thread_for_a_small_value_would_take_longer(value: Json) -> None:
    worked = asyncio.run(redact_apart(threading.current_thread, value))
    assert worked is threading.main_thread()


def test_no_large_prompt_or_answer_of_a_model_holds_up_the_event_loop() -> None:
    call = ToolCall("Nothing", {})
    said = f"{'word ' * 30_000}{SECRET}"
    script = [Said(said, tool_calls=(call,)), Said(said)]
    done = play(script, request(said), redactor=OffTheLoop(ENVIRON))
    assert done.output.endswith("word [redacted]")
    assert SECRET not in sent(done)


def test_a_change_that_holds_a_secret_is_not_merged(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text(f"TOKEN={SECRET}\n")
    copy = isolate(project, tmp_path / "copy")
    (copy.root / "a.txt").write_text(base64.b64encode(f"k={SECRET}".encode()).decode())
    (copy.root / ".env").write_text(f"TOKEN={SECRET}\nMORE=1\n")  # it was there before
    changes = find_changes(copy, tmp_path / "change")
    refused = why_inadmissible(changes, ("**",), redactor=Redactor(ENVIRON))
    assert refused is not None
    assert refused.paths == ("a.txt",)
    assert "SERVICE_TOKEN" in refused.error
    assert SECRET not in refused.error
    assert why_inadmissible(changes, ("**",)) is None


def test_who_answers_is_asked_of_the_runner_inside() -> None:
    """What nobody can identify is never reused, so a wrapper must not hide it."""
    inside = ScriptedRunner(read_script("default: ok"), VirtualClock())
    runner = RedactedRunner(inside, Redactor(ENVIRON))
    assert isinstance(runner, Identified)
    assert runner.identify(["", "m"], ["Read"]) == inside.identify(["", "m"], ["Read"])
