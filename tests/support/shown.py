"""A project with something of every kind in it, and every command that shows any of it."""

import json
from collections.abc import Iterator
from pathlib import Path

from support.cli import BAD, GOOD, stretto, write

NAME = "quarterly-competitive-landscape-review"
BIG = f"""\
name: {NAME}
description: Look at every rival from several sides, weigh what was found, and write a review that a
  busy person can read in five minutes.
inputs:
  - {{name: topic, required: true, description: "What the review is about, in a plain sentence or two"}}
  - {{name: rivals, type: json, default: ["Acme", "Globex Corporation International", "漢字会社"]}}
timeout: 30m
steps:
  - id: gather-everything-that-is-known-about-the-subject
    agent: researcher
    prompt: |
      Gather what is known about {{{{inputs.topic}}}}.
      Name each source with its address, its author and the day on which it was read, please; then stop.
    timeout: 5m
    retry: {{max_attempts: 2, backoff: linear}}
    output: {{format: json, schema: {{type: object, required: [score], properties: {{score: {{type: number}}}}}}}}
  - id: views
    parallel:
      - {{agent: analyst, input: "{{{{steps.gather-everything-that-is-known-about-the-subject.output}}}}"}}
      - {{agent: reviewer, input: "As a rival", output_key: rival-with-quite-a-long-name-for-a-branch}}
    wait: 1
  - id: each-rival
    map: {{over: "{{{{inputs.rivals}}}}", agent: analyst, input: "Look at {{{{item}}}}", reduce: synthesizer}}
    depends_on: [views]
  - id: route
    depends_on: [each-rival]
    condition: {{eval: "steps.gather-everything-that-is-known-about-the-subject.output.score >= 50", true: long-form, false: short-form}}
  - {{id: long-form, agent: writer, prompt: "Write at length", depends_on: [route]}}
  - {{id: short-form, agent: writer, prompt: "Write briefly", depends_on: [route]}}
  - id: polish
    depends_on: [long-form, short-form]
    loop: {{agent: editor, validator: reviewer, max_iterations: 2, feedback_path: feedback}}
    input: "Polish {{{{steps.long-form.output}}}}{{{{steps.short-form.output}}}}"
output: "{{{{steps.polish.output}}}}"
"""
SMALL = """\
name: small
steps:
  - {id: a, agent: researcher, prompt: look}
  - {id: b, agent: writer, prompt: "write {{steps.a.output}}", on_failure: inline}
  - {id: c, agent: reviewer, prompt: "check {{steps.b.output}}"}
"""
GATED = """\
name: gated
steps:
  - {id: a, agent: researcher, prompt: look}
  - {id: publish-the-announcement, agent: writer, gate: human, depends_on: [a],
     prompt: "Publish this on every channel that the company has, and tell the people who asked for it: {{steps.a.output}}"}
"""
WRITES = """\
name: writes
steps:
  - id: make
    run: mkdir -p out && echo x > out/a-file-with-a-rather-long-name-for-the-terminal.txt
    write_set: [out]
    posture: writer
    workspace_mode: isolated
    merge_back: manual
"""
GROW = """\
name: grow
steps:
  - {id: add, run: echo line >> lines.txt, write_set: [lines.txt]}
"""
WORSE = f"""\
{BAD}\
  - id: a-step-with-a-very-long-name-that-has-problems-too
    subagent: writer
    depends_on: [a-step-that-is-not-there-and-has-a-long-name-as-well, b]
    prompt: "A long prompt that mentions {{{{steps.nothing.output}}}} and {{{{inputs.something}}}} on one line that no terminal shows"
    timeout: soon
"""
REASON = (
    "the server said 503 Service Unavailable, for a reason that takes more than one line to tell"
)
ANSWER = "Fine. 漢字 is a wide word, and this answer is a sentence that is longer than sixty columns are."
_FIRST = "gather-everything-that-is-known-about-the-subject: {reply: {score: 80}, tokens: 900}"
_AGENT = """\
---
name: a-project-agent-with-a-long-name
description: Does many things for the people of this project, above all those which nobody wants to do
tools: Read, Grep, Glob, Bash, Write, Edit
---
Do it.
"""
FILES = {
    f"workflows/{NAME}.yaml": BIG,
    "workflows/small.yaml": SMALL,
    "workflows/gated.yaml": GATED,
    "workflows/writes.yaml": WRITES,
    "workflows/grow.yaml": GROW,
    "workflows/good.yaml": GOOD,
    "bad.yaml": WORSE,
    "tasks.yaml": "- {agent: researcher, prompt: Look., description: What Acme sells and to whom}\n",
    "whole.yaml": f'default: {{reply: "{ANSWER}", tokens: 1200}}\nreplies:\n  {_FIRST}\n  polish/check.1: {{reply: {{passed: true}}}}\n',
    "failing.yaml": f'default: Fine.\nreplies:\n  {_FIRST}\n  each-rival: {{fail: "{REASON}"}}\n',
    "ok.yaml": "default: {reply: Fine., tokens: 10}\n",
    "b-fails.yaml": f'default: ok\nreplies: {{b: {{fail: "{REASON}"}}}}\n',
    "lines.txt": "",
    "inbox/x.txt": "a",
    ".claude/agents/a-project-agent-with-a-long-name.md": _AGENT,
    "agents/writer.md": "---\nname: writer\ndescription: Not the bundled one\ntools: Read, Write\n---\nWrite.\n",
    "stretto.yaml": "model: openai:gpt-5\nmcp_servers:\n  a-server-with-a-long-name: {command: python3, args: [-m, a.module.that.is.not.there, --with, many, arguments]}\n",
    "method/retry-politely/SKILL.md": "---\nname: retry-politely\ndescription: How to ask a server again without making its bad day worse than it is already\n---\nWait longer.\n",
    "elsewhere/stretto.yaml": "model: openai:gpt-5\n",
    "elsewhere/agents/a-project-agent-with-a-long-name.md": _AGENT,
}  # fmt: skip
_OK = ("--model", "scripted:ok.yaml")
_RUNS = {
    "complete": ("run", NAME, "-i", "topic=tea and coffee in the north, with all that is drunk beside them", "--model", "scripted:whole.yaml"),
    "failed": ("run", NAME, "-i", "topic=tea", "--model", "scripted:failing.yaml"),
    "partial": ("run", "small", "--model", "scripted:b-fails.yaml"),
    "waiting": ("run", "gated", *_OK),
    "writes": ("run", "writes"),
    "task": ("task", "researcher", "What does Acme sell?", *_OK),
    "batch": ("batch", "tasks.yaml", *_OK),
}  # fmt: skip
_BEFORE = (
    ("chat", "-p", "Hello there", *_OK, "--json"),
    ("goal", "set", "Some lines stand in the file lines.txt, whatever it takes to get them there",
     "--verify", "command:test -s lines.txt", "--workflow", "grow", *_OK, "--json"),
    ("schedule", "add", "nightly-review-of-the-competitive-landscape", NAME, "--cron", "0 2 * * *",
     "--zone", "Asia/Tokyo", "-i", "topic=tea", "--json"),
    ("schedule", "add", "inbox", "good", "--watch", "inbox", "--input-for-file", "topic", "--json"),
    ("playbooks", "add", "method/retry-politely", "--json"),
)  # fmt: skip


def make_project(folder: Path) -> dict[str, str]:
    """The ids of its runs, by what they are."""
    for name, text in FILES.items():
        write(folder, name, text)
    ids = {}
    for key, words in _RUNS.items():
        said = stretto(folder, *words, "--json")
        ids[key] = json.loads(said.out.splitlines()[-1])["run_id"]
    for words in _BEFORE:
        assert stretto(folder, *words).code == 0, words
    return ids


_HELPED = [
    "init",
    "new",
    "validate",
    "plan",
    "explain",
    "graph",
    "list",
    "show",
    "restore",
    "capture",
    "schema",
    "run",
    "draft",
    "task",
    "batch",
    "chat",
    "goal",
    "resume",
    "retry",
    "fork",
    "cancel",
    "runs",
    "watch",
    "report",
    "logs",
    "output",
    "events",
    "diff",
    "approve",
    "reject",
    "apply",
    "serve",
    "mcp",
    "schedule",
    "doctor",
    "models",
    "agents",
    "playbooks",
    "trust",
    "prune",
    "completion",
    "help",
]
_GROUPS = {
    "goal": "set list show clear resume",
    "schedule": "add list next pause remove resume rotate run run-now show",
    "models": "list pull use test",
    "agents": "check list show",
    "playbooks": "add audit capture curate delete list pin restore search show unpin",
    "serve": "link token",
}
# @complete stands for the id of that run. What stands after each line's words is said by _commands.
_PLAIN = f"""
help
nonsense
runn
run --nonsense
run
run no-such
run {NAME} -i topc=x
run bad.yaml
run small --model sonnet
run small --model openai:gpt-5
run small --model scripted:nope.yaml
run workflows/writes.yaml --permission read_only
new
new x --template nope
validate
validate bad.yaml tasks.yaml nope.yaml
plan {NAME} -i topic=tea
plan {NAME} -i topic=tea --full
plan --run @failed
explain {NAME}
explain RCP104
explain RCP999
graph {NAME}
list
show {NAME} --versions
restore {NAME}
capture @task
capture nope
runs
runs --limit 1
runs --status failed
runs --status nope
runs tea --since 1h --project .
report nope
output @partial b
output @partial nope
logs @complete each-rival
resume @complete
resume
retry @partial --from nope
diff @failed @complete
diff small
apply @writes make --dry-run
apply @partial a
approve @waiting publish-the-announcement --show
approve @partial b
reject @waiting nope
cancel @complete
task reseacher What?
batch bad.yaml
chat --list
goal
goal list
goal show
goal set x --verify nonsense
goal clear nope
goal resume
playbooks
playbooks search server again
playbooks show retry-politely
playbooks audit
playbooks curate --dry-run
schedule list
schedule show nightly-review-of-the-competitive-landscape
schedule next nightly-review-of-the-competitive-landscape
schedule show nope
agents
agents show researcher
agents show a-project-agent-with-a-long-name
agents check
models
models pull nope
trust --list
trust --list elsewhere
doctor
prune --dry-run --keep 0
completion
serve token
serve link
"""
_DRIVEN = f"""
run small --model scripted:ok.yaml
run {NAME} -i topic=tea --model scripted:whole.yaml
run {NAME} -i topic=tea --model scripted:failing.yaml
run small --model scripted:ok.yaml --report
run small --model scripted:ok.yaml -o answer.txt
run small --model scripted:ok.yaml -q
retry @failed --model scripted:whole.yaml
fork @partial --from b --model scripted:ok.yaml
task researcher What? --model scripted:ok.yaml
batch tasks.yaml --model scripted:ok.yaml
chat -p Hello --model scripted:ok.yaml
"""
# Read by programs, or copied as they stand: their lines are as long as they are.
_DATA = f"""
show {NAME}
schema
events @complete
graph {NAME} --format mermaid
graph {NAME} --format svg
report @failed --format md
diff @writes make
completion bash
run small --model scripted:ok.yaml --json
runs --json
report @complete --json
validate bad.yaml --json
doctor --json
"""


def helping() -> Iterator[tuple[str, ...]]:
    yield from (("help", name) for name in _HELPED)
    yield from (("help", group, name) for group, names in _GROUPS.items() for name in names.split())


def showing() -> Iterator[tuple[str, ...]]:
    """Those that show or refuse something, and change nothing that another shows."""
    yield from _lines(_PLAIN)
    for run in _RUNS:
        yield from ((name, f"@{run}") for name in ("watch", "report", "logs", "output"))


def driving() -> Iterator[tuple[str, ...]]:
    yield from _lines(_DRIVEN)


def data() -> Iterator[tuple[str, ...]]:
    yield from _lines(_DATA)


def _lines(text: str) -> Iterator[tuple[str, ...]]:
    yield from (tuple(line.split()) for line in text.strip().splitlines())
