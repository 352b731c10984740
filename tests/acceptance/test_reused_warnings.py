"""Neither a retry nor the cache makes a whole run of what was not done, or not as it was asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Asked, Said, ServerAnswer, Status, ToolCall
from stretto.testing.openai_server import OpenAIServer, serving
from support.background_runs import lines
from support.cli import stretto, write

WRITER = """
name: w
agents: {scribe: {prompt: Write., tools: [Write, Read]%s}}
steps: [{id: a, agent: scribe, prompt: go, write_set: [ok/**]%s}]
"""
READER = """
name: r
agents: {scribe: {prompt: Look., tools: [Read]%s}}
steps: [{id: a, agent: scribe, prompt: go%s}]
"""
FAILOVER = """
name: f
agents: {r: {prompt: P., model: "openai:x", fallback_models: ["openai:y"]}}
steps: [{id: a, agent: r, prompt: go%s}]
"""
RULED = 'name: j\nagents: {r: {prompt: P., validation: {rules: ["Be kind to the reader"]}}}\n'
RULED += "steps: [{id: a, agent: r, prompt: go%s}]\n"
CACHED = ", cache: true"
MODEL = ("--model", "openai:m")


def calling(tool: str, **arguments: Any) -> Callable[[Asked], ServerAnswer]:
    """The call, and then the claim that all is done."""
    call = Said("", tool_calls=(ToolCall(tool, arguments),))
    return lambda asked: call if asked.messages[-1]["role"] == "user" else Said("Done.")


REFUSED = calling("Write", file_path="stray.txt", content="x")
NOT_THERE = calling("Read", file_path="none.txt")


def failing_over(asked: Asked) -> ServerAnswer:
    return Status(404) if asked.model == "x" else Said(f"by {asked.model}")


def unjudged(asked: Asked) -> ServerAnswer:
    return Said("Hello.") if asked.times == 1 else Status(400, "no judge")


def told(folder: Path, server: OpenAIServer, *words: str) -> tuple[dict[str, Any], int]:
    """The report, and how often a model was asked for it."""
    before = server.asked_times
    environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
    said = stretto(folder, *words, "--json", env=environ)
    return lines(said)[-1], server.asked_times - before


@pytest.mark.parametrize(
    ("recipe", "script"),
    [(WRITER % ("", ""), REFUSED), (READER % ("", ""), NOT_THERE)],
    ids=["a write that was refused", "a file that is not there"],
)
def test_a_retry_does_anew_what_was_done_in_vain(
    tmp_path: Path, recipe: str, script: Callable[[Asked], ServerAnswer]
) -> None:
    write(tmp_path, "r.yaml", recipe)
    with serving(script) as server:
        first, _ = told(tmp_path, server, "run", "r.yaml", *MODEL)
        assert first["status"] == "partial"
        again, asked = told(tmp_path, server, "retry", first["run_id"], *MODEL)
        assert asked > 0
        assert again["status"] == "partial"


@pytest.mark.parametrize(
    ("recipe", "script", "model", "says"),
    [
        (FAILOVER % "", failing_over, (), "openai:x could not answer"),
        (RULED % "", unjudged, MODEL, "was not checked"),
    ],
    ids=["another model answered", "a rule that nobody checked"],
)
def test_a_warning_goes_where_the_answer_goes(
    tmp_path: Path,
    recipe: str,
    script: Callable[[Asked], ServerAnswer],
    model: tuple[str, ...],
    says: str,
) -> None:
    write(tmp_path, "r.yaml", recipe)
    with serving(script) as server:
        run, _ = told(tmp_path, server, "run", "r.yaml", *model)
        for _ in range(2):  # also when what was reused is reused
            run, asked = told(tmp_path, server, "retry", run["run_id"], *model)
            assert asked == 0
            assert any(says in warning for warning in run["warnings"]), run["warnings"]


@pytest.mark.parametrize(
    ("recipe", "script", "model"),
    [
        (WRITER % ("", CACHED), REFUSED, MODEL),
        (READER % ("", CACHED), NOT_THERE, MODEL),
        (FAILOVER % CACHED, failing_over, ()),
    ],
    ids=["a write that was refused", "a file that is not there", "another model answered"],
)
def test_an_answer_with_a_warning_does_not_enter_the_cache(
    tmp_path: Path, recipe: str, script: Callable[[Asked], ServerAnswer], model: tuple[str, ...]
) -> None:
    write(tmp_path, "r.yaml", recipe)
    with serving(script) as server:
        told(tmp_path, server, "run", "r.yaml", *model)
        again, asked = told(tmp_path, server, "run", "r.yaml", *model)
        assert asked > 0
        assert again["warnings"]


def test_a_model_that_is_back_is_asked_although_another_answered_for_it(tmp_path: Path) -> None:
    write(tmp_path, "r.yaml", FAILOVER % CACHED)
    with serving(failing_over) as server:
        assert told(tmp_path, server, "run", "r.yaml")[0]["output"] == "by y"
    with serving(lambda asked: Said(f"by {asked.model}")) as server:
        assert told(tmp_path, server, "run", "r.yaml")[0]["output"] == "by x"
