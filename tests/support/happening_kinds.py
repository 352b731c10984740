"""Ways in which nothing, or not what was asked for, really happened.

Each is a recipe and what the model says: over real HTTP with real tools, or from a script.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.testing.openai_script import Said, Status, ToolCall, WrongType
from support.cli import ROOT, write
from support.happenings import Happened, over_http, scripted

PLAIN_MCP = ROOT / "tests/support/plain_mcp.py"


@dataclass(frozen=True)
class Kind:
    name: str
    happen: Callable[[Path], Happened]
    says: str  # what some warning, issue or error must say


def _tools(folder: Path, told: object) -> None:
    args = ["-ISu", str(PLAIN_MCP), json.dumps(told)]
    server = {"command": sys.executable, "args": args}
    write(folder, "stretto.yaml", json.dumps({"mcp_servers": {"plain": server}}))


def _call(tool: str, **arguments: Any) -> Said:
    return Said("", tool_calls=(ToolCall(tool, arguments),))


def _writer(tools: str, mode: str = "isolated", more: str = "") -> str:
    return f"""
name: writer
agents: {{scribe: {{prompt: Write., tools: [{tools}]{more}}}}}
steps: [{{id: a, agent: scribe, prompt: go, write_set: [ok/**], workspace_mode: {mode}}}]
"""


def _http(
    name: str,
    recipe: str,
    script: Any,
    says: str,
    told: object = None,
    model: str | None = "openai:m",
) -> Kind:
    def happen(folder: Path) -> Happened:
        write(folder, "ok/a.txt", "one\n")
        if told is not None:
            _tools(folder, told)
        return over_http(folder, recipe, script, model)

    return Kind(name, happen, says)


def _script(name: str, recipe: str, script: str, says: str, **inputs: Any) -> Kind:
    return Kind(name, lambda folder: scripted(folder, recipe, script, **inputs), says)


def _one(more: str = "", head: str = "") -> str:
    return f"name: one\n{head}\nsteps: [{{id: a, subagent: writer, prompt: go{more}}}]\n"


DONE = Said("I have done it.")
READER = "name: r\nagents: {r: {prompt: P., tools: [%s]}}\nsteps: [{id: a, agent: r, prompt: go}]\n"
FAN = """
name: fan
steps:
  - id: a
    wait: %s
    parallel:
      - {agent: writer, prompt: x, output_key: x}
      - {agent: writer, prompt: y, output_key: y%s}
"""
MAP = "name: m\nsteps:\n  - {id: a, map: {over: '%s', agent: writer, on_item_failure: skip}}\n"
ROUTE = """
name: route
steps:
  - {id: look, subagent: writer, prompt: go}
  - {id: route, condition: {eval: "steps.look.output%s == 'hot'", true: hot, false: cold}}
  - {id: hot, subagent: writer, prompt: go}
  - {id: cold, subagent: writer, prompt: go}
"""
RULED = 'name: j\nagents: {r: {prompt: P., validation: {rules: ["Be kind to the reader"]}}}\n'
RULED += "steps: [{id: a, agent: r, prompt: go}]\n"
FALLBACK = "name: f\nagents: {r: {prompt: P.}, s: {prompt: Q.}}\nsteps: [{id: a, agent: r, prompt: go, on_failure: 'fallback:s'}]\n"
LOOP = "name: l\nsteps: [{id: a, prompt: go, loop: {agent: writer, validator: reviewer, max_iterations: 2}}]\n"
MODELS = 'name: m\nagents: {r: {prompt: P., model: "openai:x", fallback_models: ["openai:y"]}}\nsteps: [{id: a, agent: r, prompt: go}]\n'

INNER = """name: inner
inputs: [{name: wanted, default: "no"}, {name: blank, default: ""}]
steps: [{id: a, subagent: writer, prompt: go, when: "inputs.wanted == 'yes'"}]
output: %s
"""
OUTER = "name: outer\nsteps: [{id: o, workflow: ./inner.yaml%s}]\n"
NO_TESTS = (
    ("pytest", "no tests ran in 0.01s"),
    ("unittest", "Ran 0 tests in 0.000s\\n\\nOK"),
    ("go", "?   example.com/m [no test files]"),
    ("jest", "No tests found, exiting with code 0"),
    ("cargo", "running 0 tests\\n\\ntest result: ok. 0 passed; 0 failed; 0 ignored"),
)


def _with(file: str, text: str, kind: Kind) -> Kind:
    """With one more file in the workspace."""

    def happen(folder: Path) -> Happened:
        write(folder, file, text)
        return kind.happen(folder)

    return Kind(kind.name, happen, kind.says)


def _run(command: str, more: str = "posture: read_only") -> str:
    return f"name: r\nsteps: [{{id: a, run: '{command}', {more}}}]\n"


TEXT_CALL = '{"name": "Read", "arguments": {"file_path": "ok/a.txt"}}'
FAILED_TESTS = (
    ("pytest", "==== 1 failed, 2 passed in 0.1s ===="),
    ("unittest", "Ran 3 tests in 0.001s\\n\\nFAILED (failures=1)"),
    ("go", "--- FAIL: TestA (0.00s)"),
    ("jest", "Tests:       1 failed, 2 passed, 3 total"),
    ("make", "make: *** [Makefile:3: test] Error 1"),
    ("playwright", "  1 failed\\n    a.spec.ts:3:5 › has title\\n  2 passed (3.2s)"),
    ("bun", " 2 pass\\n 1 fail\\nRan 3 tests across 1 files."),
)
SKIPPED_TESTS = (
    ("unittest", "Ran 3 tests in 0.000s\\n\\nOK (skipped=3)"),
    ("jest", "Tests:       3 skipped, 3 total"),
    ("maven", "Tests run: 3, Failures: 0, Errors: 0, Skipped: 3"),
)
PARTS = """
name: parts
max_concurrency: 1
agents: {scribe: {prompt: Write., tools: [Write]}}
steps: [{id: a, prompt: go, write_set: [ok/**], %s}]
"""


def _raw(name: str, *chunks: object, says: str) -> Kind:
    """A stream as a provider may send it."""
    told = "".join(
        f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n" for each in chunks
    )
    return _http(name, _one(), WrongType("text/event-stream", told), says)


def _chunk(finish: str | None = None, **delta: str) -> object:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


KINDS = (
    # tools
    _http("Write refused", _writer("Write"), [_call("Write", file_path="no.txt", content="x"), DONE], "Write was refused"),
    _http("Write refused in the shared workspace", _writer("Write", "shared"), [_call("Write", file_path="no.txt", content="x"), DONE], "Write was refused"),
    _http("Edit of a text that is not there", _writer("Edit, Read"), [_call("Read", file_path="ok/a.txt"), _call("Edit", file_path="ok/a.txt", old_string="zzz", new_string="y"), DONE], "Edit failed"),
    _http("Write without arguments", _writer("Write"), [_call("Write"), DONE], "Write failed"),
    _http("arguments that are no JSON", _writer("Write"), [Said("", tool_calls=(ToolCall("Write", "{"),)), DONE], "Write failed"),
    _http("a tool that the agent does not have", _writer("Write"), [_call("Delete", file_path="x"), DONE], "Delete was refused"),
    _http("a tool that delegates", READER % "Read", [_call("task", prompt="x"), DONE], "a subagent cannot delegate"),
    _http("a writer that only talks", _writer("Write"), DONE, "made no tool call and changed no file"),
    _http("a writer that only talks, shared", _writer("Write", "shared"), DONE, "made no tool call and changed no file"),
    _http("a writer that only reads", _writer("Write, Read"), [_call("Read", file_path="ok/a.txt"), DONE], "changed no file"),
    _http("a writer that writes what was there", _writer("Write, Read"), [_call("Read", file_path="ok/a.txt"), _call("Write", file_path="ok/a.txt", content="one\n"), DONE], "changed no file"),
    _http("Read of a file that is not there", READER % "Read", [_call("Read", file_path="no.txt"), DONE], "Read failed"),
    _http("Read outside the workspace", READER % "Read", [_call("Read", file_path="/etc/passwd"), DONE], "Read"),
    _http("an MCP server that dies in a call", READER % "mcp__plain__x", [_call("mcp__plain__x"), DONE], "mcp__plain__x failed", {"result": "!die"}),
    _http("an MCP tool that reports an error", READER % "mcp__plain__x", [_call("mcp__plain__x"), DONE], "mcp__plain__x failed", {"result": {"content": [{"type": "text", "text": "no"}], "isError": True}}),
    _http("an MCP tool that is not marked read-only", READER % "mcp__plain__note, Read", DONE, "mcp__plain__note cannot be used", {}),
    _http("an MCP tool that the server does not have", READER % "mcp__plain__zzz, Read", DONE, "mcp__plain__zzz cannot be used", {}),
    _http("all turns used up", READER.replace("[%s]", "[Read], max_turns: 2"), [Said("So far.", tool_calls=(ToolCall("Read", {"file_path": "ok/a.txt"}),))] * 2, "max turns (2) reached"),
    # answers
    _http("a cut answer", _one(), Said("The first half", finish_reason="length"), "cut off"),
    _http("a cut answer, inlined", _one(", on_failure: inline"), Said("The first half", finish_reason="length"), "cut off"),
    _http("an empty answer", _one(), Said(""), "empty"),
    _http("a filtered answer", _one(), Said("", finish_reason="content_filter"), "will not answer"),
    _http("an answer that is only thought", _one(), Said("<think>Hm, let me see.</think>\n"), "empty"),
    _http("an answer that stops while it thinks", _one(), Said("<think>Hm, let me"), "empty"),
    _http("an answer that ended with an error", _one(), [Said("Some", finish_reason="error"), DONE], "1 retry of the model after"),
    _http("another model answered", MODELS, [Status(404), Said("By another.")], "could not answer", model=None),
    _script("an answer that does not fit its schema", _one(", output: {schema: {type: object}}, on_failure: skip"), "default: words", "must be JSON"),
    _script("a rule that nobody checked", RULED, "default: words", "was not checked"),
    _script("a fallback answered", FALLBACK, "replies: {a: [{fail: broke}, fine]}", "took over"),
    _script("a retry was needed", _one(", retry: {max_attempts: 2}"), "replies: {a: [{fail: broke}, fine]}", "1 retry"),
    # shapes
    _script("a loop at its last iteration", LOOP, "default: x\nreplies: {a/check.1: {reply: {passed: false, feedback: no}}, a/check.2: {reply: {passed: false, feedback: no}}}", "max iterations reached"),
    _script("a verdict that says nothing", LOOP, "default: x\nreplies: {a/check.1: fine, a/check.2: fine}", "does not say `passed`"),
    _script("a map of nothing", MAP % "[]", "default: x", "no elements"),
    _script("an element that failed", MAP % "[1, 2]", "default: x\nreplies: {a/item.1.stage.0: {fail: broke}}", "item 1 failed"),
    _script("a branch that lost", FAN % ("any", ""), "replies: {a/x: x, a/y: {reply: y, delay: 1h}}", "stopped once 1 of 2 had succeeded: y"),
    _script("a branch that failed and was not needed", FAN % ("any", ""), "replies: {a/x: {reply: x, delay: 100ms}, a/y: {fail: broke}}", "branch y failed"),
    _script("all steps skipped", _one(", when: '1 == 2'"), "default: x", "no output"),
    _script("all steps skipped, and an output that needs none", _one(", when: '1 == 2'") + "output: Done!\n", "default: x", "no agent was asked"),
    _script("a condition that chooses nothing", "name: c\nsteps:\n  - {id: c, condition: {eval: '1 == 2', true: t}}\n  - {id: t, subagent: writer, prompt: x}\noutput: Done!\n", "default: x", "no agent was asked"),
    _script("an output that was routed away", ROUTE % "" + "output: '{{steps.cold.output}}'\n", "default: x\nreplies: {look: hot}", "no output"),
    _script("a condition that cannot be decided", ROUTE % ".field", "default: x", "undecided"),
    _script("a reference that is not there", "name: r\nsteps:\n  - {id: a, subagent: writer, prompt: x, output: {format: json}}\n  - {id: b, subagent: writer, prompt: 'Say {{steps.a.output.x}}'}\n", "default: x\nreplies: {a: {reply: {y: 1}}}", "left empty"),
    _script("a step that failed and was skipped", _one(", on_failure: skip") .replace("steps: [", "steps: [{id: z, subagent: writer, prompt: p}, "), "default: x\nreplies: {a: {fail: broke}}", "broke"),
    _script("a step held by another", "name: h\nsteps:\n  - {id: a, subagent: writer, prompt: x, on_failure: block}\n  - {id: b, subagent: writer, prompt: x, depends_on: [a]}\n  - {id: c, subagent: writer, prompt: x}\n", "default: x\nreplies: {a: {fail: broke}}", "held"),
    _script("a budget that was used up", "name: b\nbudget: {tokens: 5}\nsteps:\n  - {id: a, subagent: writer, prompt: x}\n  - {id: b, subagent: writer, prompt: x, depends_on: [a]}\n", "default: {reply: x, tokens: 5}", "budget"),
    _script("a step that timed out", _one(", timeout: 100ms, on_failure: skip"), "default: {reply: x, delay: 1h}", "timed out"),
    _script("a run that timed out", _one(head="timeout: 100ms"), "default: {reply: x, delay: 1h}", "timed out"),
    _script("a gate that nobody opened", _one(", gate: human"), "default: x", "approv"),
    _script("a writer without a workspace", _writer("Write"), "default: done", "no workspace"),
    _script("a reply that the script does not have", _one(", on_failure: skip"), "replies: {}", "no reply"),
    # commands
    _script("a command that only talks", _run("echo I have done it", "posture: writer"), "{}", "changed no file"),
    _script("a command that only talks, with a write-set", _run("echo done", "write_set: [ok/**]"), "{}", "changed no file"),
    _script("a command that only talks, shared", _run("echo done", "posture: writer, workspace_mode: shared"), "{}", "changed no file"),
    _script("a command that writes what was there", _run("printf one > a.txt; printf one > a.txt; rm a.txt", "posture: writer"), "{}", "changed no file"),
    *(_script(f"a command without tests: {name}", _run(f'printf "{said}"'), "{}", "no test ran") for name, said in NO_TESTS),
    _script("a validator without tests", "name: v\nsteps: [{id: a, prompt: go, posture: read_only, loop: {agent: writer, validator: {run: 'echo collected 0 items'}}}]\n", "default: x", "no test ran"),
    # empty outputs
    _script("an output that renders to nothing", _run("true") + 'output: "{{steps.a.output}}"\n', "{}", "empty text"),
    _script("an output of white space", _run("printf hi") + 'inputs: [{name: x, default: ""}]\noutput: " {{inputs.x}} "\n', "{}", "empty text"),
    _script("a command that says nothing and changes nothing", _run("true"), "{}", "empty text"),
    _script("an empty field as the output", _one(", output: {format: json}") + "output: '{{steps.a.output.x}}'\n", 'default: {reply: {x: ""}}', "empty text"),
    _script("an output of control characters", _run(r'printf "\033[0m"'), "{}", "empty text"),
    _script("a command that prints a placeholder", _run("echo null"), "{}", "printed only"),
    _script("a text around outputs that are empty", _run("true") + 'output: "It says: {{steps.a.output}}"\n', "{}", "names is empty"),
    _script("a part of the output that is not there", _one(", output: {format: json}") + "output: 'It is {{steps.a.output.x}} of {{steps.a.output.y}}.'\n", "default: {reply: {y: 1}}", "left empty in the run"),
    _with("inner.yaml", _one(", output: {format: json}") + "output: 'It is {{steps.a.output.x}} of {{steps.a.output.y}}.'\n", _script("a part of the output of a workflow step that is not there", OUTER % "", "default: {reply: {y: 1}}", "left empty in the output of workflow")),
    # nothing asked, nothing chosen
    _script("a prompt that renders to nothing", "name: p\ninputs: [{name: x, default: ''}]\nsteps: [{id: a, subagent: writer, prompt: '{{inputs.x}}'}]\n", "default: x", "is an empty text"),
    _script("a prompt of a step that was skipped", "name: p\nsteps:\n  - {id: s, subagent: writer, prompt: x, when: '1 == 2'}\n  - {id: r, subagent: writer, prompt: y}\n  - {id: a, subagent: writer, prompt: '{{steps.s.output}}', depends_on: [s, r]}\n", "default: x", "is an empty text"),
    _script("an input that renders to nothing", "workflow: {name: w, inputs: [{name: x, default: ' '}], agents: {r: {prompt: P.}}, steps: [{id: a, agent: r, input: '{{x}}'}]}\n", "default: x", "is an empty text"),
    _script("blank elements of a map", "name: m\nsteps: [{id: a, map: {over: '[\"\", \" \"]', agent: writer, input: '{{item}}'}}]\n", "default: x", "is an empty text"),
    _script("a switch without a case for it", "name: s\nsteps:\n  - {id: a, subagent: writer, prompt: x}\n  - {id: s, switch: {value: steps.a.output, cases: {hot: h}}}\n  - {id: h, subagent: writer, prompt: h}\n", "default: cold", "nothing was chosen"),
    _script("a change that waited for a step that was skipped", "name: v\nsteps:\n  - {id: w, run: 'echo hi > a.txt; echo done', merge_back: after ok}\n  - {id: ok, subagent: writer, prompt: x, depends_on: w, when: '1 == 2'}\n", "default: x", "was not merged"),
    _script("a command as validator that never passes", "name: v\nsteps: [{id: a, prompt: go, posture: read_only, loop: {agent: writer, validator: {run: exit 1}, max_iterations: 2}}]\n", "default: x", "max iterations reached"),
    # workflow steps
    _with("inner.yaml", INNER % "Done!", _script("a workflow step all of whose steps were skipped", OUTER % "", "default: x", "no agent was asked")),
    _with("inner.yaml", INNER % "Done!", _script("a workflow step in which nothing happened, beside one in which something did", OUTER.replace("[{", "[{id: b, subagent: writer, prompt: go}, {") % "", "default: x", "no agent was asked")),
    _with("inner.yaml", INNER % '"{{inputs.blank}}"', _script("a workflow step that gives an empty text", OUTER % ", inputs: {wanted: 'yes'}", "default: x", "empty text")),
    _with("inner.yaml", _run("echo done", "posture: writer"), _script("a command in a workflow step that changes nothing", OUTER % "", "{}", "changed no file")),
    # what providers say of the end of an answer
    *(_http(f"an answer that ended by {word}", _one(), Said("The first half", finish_reason=word), says) for word, says in (
        ("MAX_TOKENS", "cut off"), ("model_length", "cut off"), ("SAFETY", "will not answer"), ("refusal", "will not answer"),
        ("recitation", "will not answer"), ("insufficient_system_resource", "ended with an error"),
        ("other", "may not be whole"), ("tool_calls", "called none"),
    )),
    _http("an answer that ended by network_error", _one(), [Said("The first half", finish_reason="network_error"), DONE], "1 retry of the model after"),
    _raw("an answer without a reason for its end", _chunk(role="assistant", content="The first half"), "[DONE]", says="did not say why it stopped"),
    _raw("a refusal behind some words", _chunk(content="Sure: "), _chunk(refusal="No."), _chunk("stop"), "[DONE]", says="will not answer"),
    _raw("an error in a choice", _chunk(content="The first half"), {"choices": [{"delta": {}, "error": {"message": "upstream died", "code": 502}}]}, _chunk("stop"), "[DONE]", says="upstream died"),
    _http("an error named as an event", _one(), WrongType("text/event-stream", f'data: {json.dumps(_chunk(content="Half"))}\n\nevent: error\ndata: {{"message": "overloaded"}}\n\n'), "overloaded"),
    _http("no choices", _one(), [WrongType("application/json", '{"choices": []}'), DONE], "1 retry of the model after"),
    _http("status 200 and an error", _one(), WrongType("application/json", '{"error": {"message": "No such model", "code": 404}}'), "No such model"),
    # what is no answer
    *(_http(f"an answer that is only thought: {said[:9]}", _one(), Said(said), "empty") for said in (
        "<thinking>Hm.</thinking>", "<reasoning>Hm.", "[THINK]Hm.[/THINK]", "◁think▷Hm.◁/think▷", "<|channel|>analysis<|message|>Hm.<|end|>",
    )),
    _http("reasoning and no answer", _one(), Said("", reasoning="Let me think."), "empty"),
    _http("an empty fence", _one(), Said("```\n```"), "empty"),
    *(_http(f"an answer that is only {said}", _one(), Said(said), "empty") for said in ("</s>", "<|im_end|>", '""')),
    _http("control characters", _one(), Said("\x01\x02"), "empty"),
    _http("characters that show nothing", _one(), Said("\u200b\ufeff"), "empty"),
    *(_http(f"a tool call as text: {said[:12]}", READER % "Read", Said(said), "as text") for said in (
        TEXT_CALL, f"```json\n{TEXT_CALL}\n```", f"<tool_call>{TEXT_CALL}</tool_call>", f"I look.\n<tool_call>{TEXT_CALL}</tool_call>",
        "[TOOL_CALLS]Read{}", '<function=Read>{"file_path": "x"}</function>',
    )),
    _http("a tool call as text, of an agent without tools", _one(), Said(f"<tool_call>{TEXT_CALL}</tool_call>"), "as text"),
    *(_http(f"a tool call as text, in other words: {said[:12]}", READER % "Read", Said(said), "as text") for said in (
        "Action: Read\nAction Input: {}", "I look.\nRead(file_path='x')", f"I look.\n```json\n{TEXT_CALL}\n```", "<Read><file_path>x</file_path></Read>",
    )),
    *(_http(f"an answer of nothing that is seen: {said!r}", _one(), Said(said), "empty") for said in ("\u3164", "\x1b[0m", "<!-- -->", "I think so.</think>")),
    *(_http(f"an answer that says nothing: {said}", _one(), Said(said), "says nothing") for said in ("null", "---", "[]", "<answer></answer>")),
    *(_http(f"a tool call as text, of another program: {said[:12]}", READER % "Read", Said(said), "as text") for said in (
        '{"name": "read_file", "arguments": {"path": "x"}}', "<read_file>\n<path>ok/a.txt</path>\n</read_file>", "read_file(path='x')",
    )),
    *(_http(f"an answer that is only talk: {said[:12]}", READER % "Read", Said(said), says) for said, says in (
        ("I'm sorry, but I can't assist with that.", "says that it cannot do this"), ("Let me read the file first.", "says only what it will do"),
        ("Please share the file you want me to read.", "asks for what it should work on"), ("Here is the summary:", "announces what does not follow"),
    )),
    _http("a promise behind a tool call", READER % "Read", [_call("Read", file_path="ok/a.txt"), Said("Let me check the other file too.")], "says only what it will do"),
    # parts of a writer
    _http("an element that only talked", PARTS % "map: {over: '[1, 2]', agent: scribe, batch_size: 1}", [_call("Write", file_path="ok/n.txt", content="x"), DONE, DONE], "made no tool call, though it can write: item.1"),
    _http("a branch that only talked", PARTS % "parallel: [{agent: scribe, input: x, output_key: x}, {agent: scribe, input: y, output_key: y}]", [_call("Write", file_path="ok/n.txt", content="x"), DONE, DONE], "made no tool call, though it can write: y"),
    _http("a last try that only talked", PARTS % "loop: {agent: scribe, validator: reviewer}", [_call("Write", file_path="ok/n.txt", content="x"), DONE, Said('{"passed": false, "feedback": "no"}'), DONE, Said('{"passed": true, "feedback": ""}')], "made no tool call, though it can write: try.2"),
    # tools
    _http("an MCP server without tools", READER % "mcp__plain, Read", DONE, "offers no tool", {"tools": {"tools": []}}),
    # commands whose exit code says nothing
    *(_script(f"a pipe that hides a failed test: {name}", _run(f'printf -- "{said}" | tail -5'), "{}", "a test failed") for name, said in FAILED_TESTS),
    *(_script(f"a command all of whose tests were skipped: {name}", _run(f'printf "{said}"'), "{}", "no test ran") for name, said in SKIPPED_TESTS),
    *(_script(f"a pipe that hides what did not run: {name}", _run(command), "{}", "did not run") for name, command in (
        ("a program", "pytst -q | tail -3; echo done"), ("a file that may not be written", "touch no.txt; echo done"),
        ("a repository", "git status | cat; echo done"), ("a crash", "python3 -c 1/0 | cat; echo done"), ("a script", "./no.sh | cat; echo done"), ("a module", "python3 -m pytst 2>&1 | tail -1"),
    )),
    *(_script(f"a pipe that hides what failed: {name}", _run(command), "{}", "a part of it failed") for name, command in (
        ("a build", 'echo "error: could not compile \\`m\\`" | cat'), ("an option that is not there", "ls --zzz | cat; echo done"),
        ("an archive of nothing", "tar -cf /dev/null no.txt | cat; echo done"), ("a text that never ends", "cat <<END\n\n  echo done"),
    )),
    _script("a linter without files", _run("echo Checked 0 files in 3ms.; echo done"), "{}", "no file to work on"),
    _script("a validator that hides what did not run", "name: v\nsteps: [{id: a, prompt: go, posture: read_only, loop: {agent: writer, validator: {run: 'pytst -q | cat'}}}]\n", "default: x", "did not run"),
    _script("a validator that hides a failed test", "name: v\nsteps: [{id: a, prompt: go, posture: read_only, loop: {agent: writer, validator: {run: 'echo 1 failed in 0.1s | cat'}}}]\n", "default: x", "a test failed"),
)  # fmt: skip
