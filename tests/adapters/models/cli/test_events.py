"""What each CLI's lines mean. The lines have the shapes that the real ones printed."""

import json
from collections.abc import Sequence

import pytest

from stretto.adapters.models.cli.cli_spec import json_line
from stretto.adapters.models.cli.names import CLI_NAMES, known_cli
from stretto.adapters.models.cli.transcript import TranscriptRecorder
from stretto.ports.runner import AttemptResult, Failure, Success
from stretto.text.redaction import NOTHING_SECRET
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from support.cli_agents import Watching, attempt

CLAUDE = (
    '{"type":"system","subtype":"init","model":"claude-opus-4-8","tools":["Read"]}',
    '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start","message":'
    '{"usage":{"input_tokens":11,"output_tokens":1}}}}',
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Read",'
    '"input":{"file_path":"a.txt"}}]}}',
    '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_delta",'
    '"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}}',
    '{"type":"user","message":{"content":[{"tool_use_id":"t1","type":"tool_result",'
    '"content":"1\\thello"}]}}',
    '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start","message":'
    '{"usage":{"input_tokens":5,"cache_read_input_tokens":6,"output_tokens":1}}}}',
    '{"type":"stream_event","parent_tool_use_id":"t9","event":{"type":"content_block_delta",'
    '"delta":{"type":"text_delta","text":"a helper thinks aloud"}}}',
    '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta",'
    '"delta":{"type":"text_delta","text":"It is "}}}',
    '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta",'
    '"delta":{"type":"text_delta","text":"42."}}}',
    '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_delta",'
    '"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}}',
)
CLAUDE_END = (
    '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"It is 42.",'
    '"total_cost_usd":0.00046,"modelUsage":{"claude-opus-4-8":{"inputTokens":16,"outputTokens":14,'
    '"cacheReadInputTokens":6,"cacheCreationInputTokens":0}}}'
)
CODEX = (
    '{"type":"thread.started","thread_id":"x"}',
    '{"type":"item.completed","item":{"id":"item_0","type":"error","message":"no metadata"}}',
    '{"type":"turn.started"}',
    '{"type":"item.started","item":{"id":"item_1","type":"command_execution",'
    '"command":"cat a.txt","aggregated_output":"","exit_code":null,"status":"in_progress"}}',
    '{"type":"item.completed","item":{"id":"item_1","type":"command_execution",'
    '"command":"cat a.txt","aggregated_output":"hello\\n","exit_code":0,"status":"completed"}}',
    '{"type":"error","message":"Reconnecting... 2/5"}',
    '{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"It is 42."}}',
    '{"type":"turn.completed","usage":{"input_tokens":22,"cached_input_tokens":3,'
    '"output_tokens":14,"reasoning_output_tokens":2}}',
)
GEMINI = (
    "Ripgrep is not available. Falling back to GrepTool.",
    '{"type":"init","session_id":"x","model":"gemini-2.5-flash"}',
    '{"type":"message","role":"user","content":"How many?"}',
    '{"type":"tool_use","tool_name":"read_file","tool_id":"r1","parameters":{"file_path":"a.txt"}}',
    '{"type":"tool_result","tool_id":"r1","status":"success","output":"hello"}',
    '{"type":"message","role":"assistant","content":"It is ","delta":true}',
    '{"type":"message","role":"assistant","content":"42.","delta":true}',
    '{"type":"result","status":"success","stats":{"total_tokens":36,"input_tokens":22,'
    '"output_tokens":14,"cached":0,"tool_calls":1}}',
)
OPENCODE = (
    '{"type":"step_start","sessionID":"s","part":{"type":"step-start"}}',
    '{"type":"tool_use","sessionID":"s","part":{"type":"tool","tool":"read","callID":"c1","state":'
    '{"status":"completed","input":{"filePath":"a.txt"},"output":"hello"}}}',
    '{"type":"step_finish","part":{"reason":"tool-calls","tokens":{"input":10,"output":5,'
    '"reasoning":2,"cache":{"write":0,"read":1}},"cost":0.000025}}',
    '{"type":"text","part":{"type":"text","text":"It is 42."}}',
    '{"type":"step_finish","part":{"reason":"stop","tokens":{"input":11,"output":7,"reasoning":0,'
    '"cache":{"write":0,"read":0}},"cost":0.000025}}',
)
GOOSE = (
    '{"type":"message","message":{"id":"cc","role":"assistant","content":[{"type":"toolRequest",'
    '"id":"c1","toolCall":{"status":"success","value":{"name":"shell","arguments":'
    '{"command":"cat a.txt"}}}}]}}',
    '{"type":"message","message":{"id":"m2","role":"user","content":[{"type":"toolResponse",'
    '"id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text",'
    '"text":"hello"}],"isError":false}}}]}}',
    '{"type":"message","message":{"id":"cc","role":"assistant","content":[{"type":"text",'
    '"text":"It is "}]}}',
    '{"type":"message","message":{"id":"cc","role":"assistant","content":[{"type":"text",'
    '"text":"42."}]}}',
    '{"type":"complete","total_tokens":36,"input_tokens":22,"output_tokens":14}',
)


def _heard(name: str, lines: Sequence[str]) -> tuple[AttemptResult, Watching]:
    watching = Watching()
    recorder = TranscriptRecorder(attempt(f"cli:{name}"), watching, NOTHING_SECRET, None)
    for line in lines:
        event = json_line(line.encode())
        for said in known_cli(name).read(event) if event is not None else ():
            recorder.record(said)
    recorder.close()
    return recorder.result(f"cli:{name}"), watching


@pytest.mark.parametrize(
    ("name", "lines", "usage"),
    [
        ("claude", (*CLAUDE, CLAUDE_END), Usage(22, 14, 0.00046, 2)),
        ("codex", CODEX, Usage(22, 14, 0.0, 2)),
        ("gemini", GEMINI, Usage(22, 14, 0.0, 2)),
        ("opencode", OPENCODE, Usage(22, 14, 0.00005, 2)),
        ("goose", GOOSE, Usage(22, 14, 0.0, 2)),
    ],
)
def test_a_call_an_answer_and_what_it_cost(name: str, lines: Sequence[str], usage: Usage) -> None:
    result, watching = _heard(name, lines)
    assert isinstance(result, Success)
    assert result.output == "It is 42."
    assert result.usage == usage
    assert watching.spent == usage
    assert watching.spoken == "It is 42."
    (call,) = watching.calls
    assert (call.call, call.verdict) == (1, "ok")
    assert "a.txt" in str(call.arguments)
    assert call.result_bytes in (5, 6, 7)


ALL = {
    "claude": (*CLAUDE, CLAUDE_END),
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "goose": GOOSE,
}


@pytest.mark.parametrize("name", ALL)
def test_an_answer_whose_end_never_came_is_doubted(name: str) -> None:
    """It ended with exit code 0, and nothing says that it was done."""
    whole, _ = _heard(name, ALL[name])
    half, _ = _heard(name, ALL[name][:-1])
    assert isinstance(whole, Success)
    assert whole.warnings == ()
    assert isinstance(half, Success)
    assert any("may not be whole" in each for each in half.warnings)


def test_an_answer_from_before_the_last_call_is_doubted() -> None:
    words, call, end = CODEX[6].replace("It is 42.", "I will look."), CODEX[4], CODEX[7]
    result, _ = _heard("codex", (words, call, end))
    assert isinstance(result, Success)
    assert result.output == "I will look."
    assert any("ended with a tool call" in each for each in result.warnings)


@pytest.mark.parametrize("name", ["claude", "opencode"])
def test_what_was_spent_counts_before_the_end(name: str) -> None:
    lines = CLAUDE if name == "claude" else OPENCODE[:3]
    _, watching = _heard(name, lines)
    assert watching.spent.tokens > 0
    assert watching.spent.model_calls > 0


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        (
            "claude",
            '{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,'
            '"tool_use_id":"t1","content":"denied"}]}}',
            "denied",
        ),
        (
            "gemini",
            '{"type":"tool_result","tool_id":"r1","status":"error","output":"denied",'
            '"error":{"type":"policy_violation","message":"denied by policy"}}',
            "denied by policy",
        ),
        (
            "codex",
            '{"type":"item.completed","item":{"id":"item_1","type":"command_execution",'
            '"command":"x","aggregated_output":"denied","exit_code":1,"status":"failed"}}',
            "denied",
        ),
        (
            "opencode",
            '{"type":"tool_use","part":{"tool":"write","callID":"c1","state":{"status":"error",'
            '"input":{"filePath":"n"},"error":"a rule prevents it"}}}',
            "a rule prevents it",
        ),
        (
            "goose",
            '{"type":"message","message":{"id":"m","role":"user","content":[{"type":"toolResponse",'
            '"id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text",'
            '"text":"denied"}],"isError":true}}}]}}',
            "denied",
        ),
    ],
)
def test_a_call_that_failed_is_told_as_one(name: str, line: str, message: str) -> None:
    begun = {"claude": CLAUDE[:3], "gemini": GEMINI[:4], "goose": GOOSE[:1]}.get(name, ())
    _, watching = _heard(name, (*begun, line))
    (call,) = watching.calls
    assert call.verdict == "error"
    assert call.message == message


@pytest.mark.parametrize(
    ("name", "line", "kind", "error"),
    [
        (
            "claude",
            '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,'
            '"result":"API Error: Request rejected (429)"}',
            "unavailable",
            "claude: API Error: Request rejected (429)",
        ),
        (
            "claude",
            '{"type":"result","subtype":"success","is_error":true,"api_error_status":null,'
            '"result":"Not logged in · Please run /login"}',
            "permanent",
            "claude is not logged in",
        ),
        (
            "codex",
            '{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429"}}',
            "unavailable",
            "codex: exceeded retry limit",
        ),
        (
            "codex",
            '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: no"}}',
            "permanent",
            "run `codex login`",
        ),
        (
            "gemini",
            '{"type":"result","status":"error","error":{"type":"unknown","message":'
            '"[API Error: {\\"error\\":{\\"message\\":\\"bad key\\",\\"code\\":401}}]"},"stats":{}}',
            "permanent",
            "gemini is not logged in",
        ),
        (
            "opencode",
            '{"type":"error","error":{"name":"APIError","data":{"message":"invalid x-api-key",'
            '"statusCode":401,"isRetryable":false}}}',
            "permanent",
            "opencode is not logged in",
        ),
        (
            "goose",
            '{"type":"message","message":{"id":null,"role":"assistant","content":[{"type":"text",'
            '"text":"Ran into this error: Rate limit exceeded: slow down."}]}}',
            "unavailable",
            "goose: Rate limit exceeded",
        ),
        (
            "goose",
            '{"type":"error","error":"no provider configured"}',
            "permanent",
            "goose configure",
        ),
    ],
)
def test_a_failure_is_of_its_kind_and_says_what_to_do(
    name: str, line: str, kind: str, error: str
) -> None:
    result, _ = _heard(name, [line])
    assert isinstance(result, Failure)
    assert result.kind == kind
    assert error in result.error


def test_opencode_says_when_to_try_again() -> None:
    line = (
        '{"type":"error","error":{"name":"APIError","data":{"message":"slow down",'
        '"statusCode":429,"responseHeaders":{"retry-after":"7"}}}}'
    )
    result, _ = _heard("opencode", [line])
    assert isinstance(result, Failure)
    assert (result.kind, result.retry_after_seconds) == ("unavailable", 7.0)


@pytest.mark.parametrize(
    ("name", "lines", "end"),
    [
        ("claude", CLAUDE, '{"type":"result","subtype":"error_max_turns","is_error":true}'),
        (
            "goose",
            GOOSE[:4],
            '{"type":"message","message":{"id":null,"role":"assistant","content":[{"type":"text",'
            '"text":"I\'ve reached the maximum number of actions I can do without user input."}]}}',
        ),
    ],
)
def test_at_its_cap_an_agent_answers_with_what_there_was(
    name: str, lines: Sequence[str], end: str
) -> None:
    result, _ = _heard(name, (*lines, end))
    assert isinstance(result, Success)
    assert result.output == "It is 42."
    assert result.warnings == ("max turns reached; the answer so far was kept",)


def test_goose_may_quote_its_own_error_without_having_one() -> None:
    line = GOOSE[2].replace("It is ", "Ran into this error: is what it says.")
    result, _ = _heard("goose", [line])
    assert isinstance(result, Success)


def test_claude_is_stopped_when_its_key_is_refused_again() -> None:
    line = '{"type":"system","subtype":"api_retry","attempt":2,"error":"authentication_failed"}'
    event = json_line(line.encode())
    assert event is not None
    recorder = TranscriptRecorder(attempt("cli:claude"), Watching(), NOTHING_SECRET, None)
    for said in known_cli("claude").read(event):
        recorder.record(said)
    assert recorder.is_over


def test_claude_answers_in_the_shape_that_was_asked_for() -> None:
    end = CLAUDE_END[:-1] + ',"structured_output":{"n":42}}'
    result, _ = _heard("claude", (*CLAUDE, end))
    assert isinstance(result, Success)
    assert json.loads(str(result.output)) == {"n": 42}


ODD: list[Json] = [None, True, -1, 1.5, "x", [], {}, [[{}]], {"type": {}}, {"message": "x"}]


@pytest.mark.parametrize("name", sorted(CLI_NAMES))
def test_lines_of_another_shape_do_no_harm(name: str) -> None:
    lines = {"claude": (*CLAUDE, CLAUDE_END), "codex": CODEX, "gemini": GEMINI}
    lines |= {"opencode": OPENCODE, "goose": GOOSE}
    for line in lines[name]:
        event = json_line(line.encode()) or {}
        for spoilt in _spoilt(event):
            for said in known_cli(name).read(spoilt):
                TranscriptRecorder(attempt("cli:x"), Watching(), NOTHING_SECRET, 3).record(said)


def _spoilt(event: dict[str, Json]) -> list[dict[str, Json]]:
    """The event, with one value after the other replaced by something odd."""
    found: list[dict[str, Json]] = []
    for key, value in event.items():
        found += [{**event, key: odd} for odd in ODD if key != "type"]
        if isinstance(value, dict):
            found += [{**event, key: inner} for inner in _spoilt(value)]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found += [{**event, key: [inner]} for inner in _spoilt(value[0])]
    return found
