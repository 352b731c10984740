"""One mistake is one problem, at the very words, with a hint.

Every row takes a recipe without problems and puts one mistake into it: what stands there, what
stands there instead, and then the problem: code, line, the words under the caret, the hint.
"""

import pytest

from stretto.problems.render import as_text
from support.recipes import problem_of, problems_of, under_caret

FLAT = """\
name: good
version: 1.2.0
timeout: 1h30m
max_concurrency: 3
budget: {tokens: 1000, usd: 2.5, agents: 9}
inputs:
  - name: topic
    type: string
    required: true
  - {name: depth, type: number, default: 3, enum: [1, 2, 3]}
  - {name: lead, type: json}
agents:
  critic:
    prompt: "Judge {{inputs.topic}} in few words"
    tools: [Read, Bash]
    disallowed_tools: [Bash]
    max_turns: 5
    timeout: 90s
    retry: {max_attempts: 2, backoff: linear, on_failure: fallback:writer}
    validation:
      schema: {type: object, properties: {passed: {type: boolean}, score: {type: number}}}
steps:
  - id: gather
    subagent: researcher
    prompt: "Research {{inputs.topic}} for {{inputs.lead.name}}"
    output: {store_as: facts, format: json}
  - id: judge
    subagent: critic
    depends_on: [gather]
    prompt: "Is this right? {{facts}}"
    when: steps.gather.output.size > 3
    on_failure: skip
  - id: fan
    wait: 2
    parallel:
      - {agent: researcher, prompt: "{{steps.gather.output}}", output_key: first}
      - {agent: writer, prompt: one, output_key: second}
  - id: route
    prompt: Go on
    condition: {eval: steps.judge.output.score >= 7, true: polish, false: worker}
  - id: polish
    prompt: "{{steps.fan.outputs.first}}"
    loop:
      agent: writer
      validator: critic
      max_iterations: 2
      feedback_path: "{{steps.polish.output.feedback}}"
  - id: each
    map: {over: "{{steps.gather.output.rows}}", agent: researcher, input: "{{item}}", max_items: 5}
  - id: pick
    prompt: Go on
    switch: {value: steps.judge.output.score, cases: {1: again}, default: writer}
  - id: again
    type: sequential
    subagent: worker
    prompt: Work
    posture: writer
    read_set: [docs]
    write_set: [src/**]
    gate: human
    cache: true
  - {id: last, subagent: writer, prompt: Sum up, output: {store_as: spare}}
output: "{{steps.polish.output}}"
"""

ROWS = [
    # --- unknown and misspelt keys
    ("    depends_on: [g", "    depend_on: [g", "RCP101", 29, "depend_on", "'depends_on'?"),
    ("version: 1.2.0", "verison: 1.2.0", "RCP101", 2, "verison", "did you mean 'version'?"),
    ("    max_turns: 5", "    maxTurns: 5", "RCP101", 17, "maxTurns", "did you mean 'max_turns'?"),
    ("    gate: human", "    needs: gather", "RCP101", 60, "needs", "write depends_on"),
    ("    gate: human", "    tools: [Read]", "RCP101", 60, "tools", "under agents:"),
    ("    gate: human", "    zzz: 1", "RCP101", 60, "zzz", "known keys: id, type, agent"),
    ("max_items: 5", "workflow: other", "RCP101", 49, "workflow", "put a map over the list into"),
    ("max_items: 5", "run: ls", "RCP101", 49, "run", "take the whole list, by stdin"),
    ("max_iterations: 2", "workflow: other", "RCP101", 46, "workflow", "put the loop into"),
    ("max_iterations: 2", "run: ls", "RCP101", 46, "run", "validator: {run: …}"),
    ("prompt: one", "run: ls, prompt: one", "RCP101", 37, "run", "beside this one"),
    ("prompt: one", "workflow: a, prompt: one", "RCP101", 37, "workflow", "beside this one"),
    ("budget: {tokens", "limits: {tokens", "RCP101", 5, "limits", "stretto.yaml"),
    ("tokens: 1000", "token: 1000", "RCP101", 5, "token", "did you mean 'tokens'?"),
    ("backoff: linear", "back_off: linear", "RCP101", 19, "back_off", "did you mean 'backoff'?"),
    ("store_as: spare", "stores_as: spare", "RCP101", 62, "stores_as", "'store_as'?"),
    ("max_items: 5", "max-items: 5", "RCP101", 49, "max-items", "did you mean 'max_items'?"),
    ("max_iterations: 2", "iterations: 2", "RCP101", 46, "iterations", "'max_iterations'?"),
    # --- missing fields
    ("name: good\n", "", "RCP102", 1, "version", "what it is called"),
    ("    subagent: researcher\n", "", "RCP102", 23, "id: gather", "the agent that does it"),
    ("    prompt: Work\n", "", "RCP102", 53, "id: again", "what the agent is told"),
    ("prompt: Work", 'prompt: " "', "RCP102", 56, '" "', "write what it should do"),
    ("value: steps.judge.output.score, ", "", "RCP102", 52, "cases", "an expression"),
    ("eval: steps.judge.output.score >= 7, ", "", "RCP102", 40, "true", "an expression"),
    ("      validator: critic\n", "", "RCP102", 44, "agent: writer", "validator: who judges"),
    ("agent: researcher, input", "input", "RCP102", 49, '{over: "{{steps.gather.output.rows}}", input: "{{item}}", max_items: 5}', ""),
    ('over: "{{steps.gather.output.rows}}", ', "", "RCP102", 49, "agent", "the list: a template"),
    ("{agent: writer, p", "{p", "RCP102", 37, "{prompt: one, output_key: second}", "the agent that does it"),
    ("{name: depth, type: number, default: 3, enum: [1, 2, 3]}", "{type: number}", "RCP102", 10, "{type: number}", ""),
    # --- mistyped fields
    ("    required: true", "    required: yes", "RCP103", 9, "yes", "write true or false"),
    ("    max_turns: 5", "    max_turns: five", "RCP103", 17, "five", ""),
    ("    cache: true", "    cache: 1", "RCP103", 61, "1", "true or false, without quotes"),
    ("[docs]", "{docs: 1}", "RCP103", 58, "{docs: 1}", ""),
    ("validation:\n      schema", "validation: x\n    # schema", "RCP103", 20, "x", "write validation: {rules: x}"),
    ("budget: {tokens: 1000, usd: 2.5, agents: 9}", "budget: 5", "RCP103", 5, "5", "write budget: {usd: 5}"),
    ("    prompt: Work", "    prompt: [Work]", "RCP103", 56, "[Work]", ""),
    ("    prompt: Work", "    prompt: true", "RCP103", 56, "true", ""),
    ("version: 1.2.0", "version: newest", "RCP103", 2, "newest", ""),
    # --- names
    ("{id: last,", "{id: judge,", "RCP105", 62, "judge", "step 2 is the other one"),
    ("  - id: each", "  - id: for each", "RCP107", 48, "for each", "for example 'for-each'"),
    ("name: depth", "name: topic", "RCP105", 10, "topic", "rename or remove one"),
    ("store_as: spare", "store_as: my words", "RCP107", 62, "my words", "letters, digits"),
    ("store_as: spare", "store_as: item", "RCP117", 62, "item", "rename it"),
    ("store_as: spare", "store_as: topic", "RCP117", 62, "topic", "could mean either"),
    ("store_as: spare", "store_as: facts", "RCP117", 62, "facts", "could mean either"),
    ("output_key: second", "output_key: first", "RCP117", 37, "first", "rename one of them"),
    # --- dependencies and cycles
    ("[gather]\n    prompt", "[gahter]\n    prompt", "RCP104", 29, "gahter", "did you mean 'gather'?"),
    ("[gather]\n    prompt", "[xyzzy]\n    prompt", "RCP104", 29, "xyzzy", "its steps: gather"),
    ("    gate: human", "    depends_on: again", "RCP106", 60, "again", ""),
    # --- agents and targets
    ("subagent: worker", "subagent: wroker", "RCP108", 55, "wroker", "did you mean 'worker'?"),
    ("{agent: writer, p", "{agent: wirter, p", "RCP108", 37, "wirter", "did you mean 'writer'?"),
    ("validator: critic", "validator: critics", "RCP108", 45, "critics", "did you mean 'critic'?"),
    ("agent: researcher, i", "agent: zzz, i", "RCP108", 49, "zzz", "known agents: critic, resear"),
    ("fallback:writer", "fallback:writter", "RCP115", 19, "fallback:writter", "'writer'?"),
    ("fallback:writer", "fallback:critic", "RCP115", 19, "fallback:critic", "name another agent"),
    ("true: polish", "true: pollish", "RCP116", 40, "pollish", "did you mean 'polish'?"),
    ("{1: again}", "{1: agian}", "RCP116", 52, "agian", "did you mean 'again'?"),
    ("default: writer}", "default: zzzz}", "RCP116", 52, "zzzz", "its steps: gather"),
    (", true: polish, false: worker", "", "RCP116", 38, "id: route", "name a step or an agent"),
    # --- choices
    ("    on_failure: skip", "    on_failure: skp", "RCP109", 32, "skp", "did you mean 'skip'?"),
    ("    type: string", "    type: text", "RCP109", 8, "text", ""),
    ("    posture: writer", "    posture: write", "RCP109", 57, "write", "did you mean 'writer'?"),
    ("    gate: human", "    gate: robot", "RCP109", 60, "robot", "human"),
    ("format: json", "format: yaml", "RCP109", 26, "yaml", "one of json, text, markdown"),
    ("backoff: linear", "backoff: linearly", "RCP109", 19, "linearly", "did you mean 'linear'?"),
    # --- numbers, durations, waits
    ("timeout: 1h30m", "timeout: 30m1h", "RCP110", 3, "30m1h", "such as 90s, 3m or 1h30m"),
    ("    timeout: 90s", "    timeout: 90 secs", "RCP110", 18, "90 secs", "write 90s"),
    ("    timeout: 90s", "    timeout: 0", "RCP110", 18, "0", "such as 90s"),
    ("    timeout: 90s", "    timeout_ms: 1s", "RCP110", 18, "1s", ""),
    ("max_concurrency: 3", "max_concurrency: 0", "RCP111", 4, "0", ""),
    ("usd: 2.5", "usd: -1", "RCP111", 5, "-1", ""),
    ("max_attempts: 2", "max_attempts: 0", "RCP111", 19, "0", ""),
    ("    wait: 2", "    wait: 3", "RCP112", 34, "3", "a number from 1 to 2"),
    ("    wait: 2", "    wait: most", "RCP112", 34, "most", "all, any, or a number"),
    ("    wait: 2", "    wait: 0", "RCP112", 34, "0", "all, any, or a number"),
    ("max_items: 5", "max_items: 10001", "RCP118", 49, "10001", "stretto.yaml may raise it"),
    # --- types that disagree, words that say the same twice
    ("type: sequential", "type: loop", "RCP113", 54, "loop", "write type: sequential"),
    ("    wait: 2\n", "    wait: 2\n    agent: writer\n", "RCP113", 35, "agent", "each branch"),
    ("    prompt: Work", "    prompt: Work\n    wait: 1", "RCP113", 57, "wait", ""),
    ("    prompt: Work", "    prompt: Work\n    input: x", "RCP114", 57, "input", "keep one"),
    ("    timeout: 90s", "    timeout: 9s\n    timeout_ms: 9", "RCP114", 19, "timeout_ms", "one"),
    ("      validator: critic", "      validator: critic\n      until: 1 < 2", "RCP114", 46, "until", ""),
    # --- files, tools, schemas
    ("[docs]", "[../docs]", "RCP121", 58, "../docs", "without '..'"),
    ("[docs]", "[/etc]", "RCP121", 58, "/etc", "relative to the workspace"),
    ("[src/**]", "['src/[a']", "RCP122", 59, "'src/[a'", "write '[[]'"),
    ("tools: [Read, Bash]", "tools: [Raed, Bash]", "RCP126", 15, "Raed", "did you mean 'Read'?"),
    ("tools: [Read, Bash]", "tools: [task, Bash]", "RCP125", 15, "task", "only the lead agent"),
    ("[Read, Bash]", "['Read(../x)', Bash]", "RCP128", 15, "'Read(../x)'", "without '..'"),
    ("[Read, Bash]", "['Bash(rm $(x) > y)']", "RCP128", 15, "'Bash(rm $(x) > y)'", "Bash(git diff:*)"),
    ("[Read, Bash]", "[WebFetch(a.com)]", "RCP128", 15, "WebFetch(a.com)", "WebFetch(domain:a.com)"),
    ("score: {type: number}", "score: {type: float}", "RCP124", 21, "float", ""),
    # --- references
    ("{{inputs.topic}} in", "{{inputs.topc}} in", "RCP202", 14, "topc", "did you mean 'topic'?"),
    ("{{inputs.topic}} for", "{{input.topic}} for", "RCP207", 25, "input", "mean 'inputs'?"),
    ("{{inputs.lead.name}}", "{{inputs.topic.name}}", "RCP205", 25, "name", "type: json"),
    ("{{facts}}", "{{fact}}", "RCP207", 30, "fact", "did you mean 'facts'?"),
    ("{{facts}}", "{{gather}}", "RCP207", 30, "gather", "write steps.gather.output"),
    ("{{facts}}", "{{steps.gathr.output}}", "RCP203", 30, "gathr", "did you mean 'gather'?"),
    ("{{facts}}", "{{steps.gather}}", "RCP208", 30, "gather", "write steps.gather.output"),
    ("{{facts}}", "{{steps.gather.ouput}}", "RCP208", 30, "ouput", "did you mean 'output'?"),
    ("{{facts}}", "{{steps.gather.outputs.a}}", "RCP204", 30, "outputs", "steps.gather.output"),
    ("{{facts}}", "{{item}}", "RCP206", 30, "item", "exists inside a map step"),
    ("{{facts}}", "{{feedback}}", "RCP206", 30, "feedback", "exists inside a loop step"),
    ("{{facts}}", "{{facts", "RCP201", 30, "{{", "close it with '}}'"),
    ("{{facts}}", "{{}}", "RCP201", 30, "}", "name what goes here"),
    ("{{facts}}", "{{facts | upper}}", "RCP201", 30, "|", "no filters"),
    ("outputs.first", "outputs.frist", "RCP204", 42, "frist", "did you mean 'first'?"),
    ("output.score >= 7", "output.scor >= 7", "RCP205", 40, "scor", "did you mean 'score'?"),
    ("{{steps.polish.output}}", "{{steps.polsh.output}}", "RCP203", 63, "polsh", "'polish'?"),
    ('"Is this right? {{facts}}"', '"{{steps.judge.output}}"', "RCP211", 30, "steps.judge.output", "before"),
    # --- expressions and paths
    ("output.size > 3", "output.size >", "RCP209", 31, "steps.gather.output.size >", ""),
    ("output.size > 3", "output.size = 3", "RCP209", 31, "=", "use '=='"),
    ("output.score >= 7", "output.score >= (7", "RCP209", 40, "steps.judge.output.score >= (7", ""),
    ("{{steps.gather.output.rows}}", "{{facts}} {{facts}}", "RCP212", 49, '"{{facts}} {{facts}}"', "steps.split.output"),
    ('"{{steps.polish.output.feedback}}"', "some words", "RCP212", 47, "some words", "feedback}}"),
    # --- inputs that disagree with themselves
    ("default: 3, enum", "default: 4, enum", "RCP306", 10, "4", "one of 1, 2, 3"),
    ("default: 3, enum", "default: three, enum", "RCP306", 10, "three", ""),
    ("enum: [1, 2, 3]", "enum: [1, 2, x, 3]", "RCP306", 10, "x", ""),
    ("default: 3, enum: [1, 2, 3]", "enum: []", "RCP306", 10, "[]", "list its values"),
]  # fmt: skip

# --- whole texts that cannot be read at all: (text, code, line, under the caret, hint)
STEPS = "steps:\n  - {id: a, subagent: writer, prompt: x}\n"
TEXTS = [
    ("name: x\nsteps:\n\t- id: a\n", "RCP006", 3, "\t", "use spaces"),
    ("name: x\nsteps:\n  - id: a\n\tprompt: x\n", "RCP006", 4, "\t", "use spaces"),
    ("name: a: b\n", "RCP005", 1, ":", "quote the text"),
    ("name: x\nsteps\n", "RCP005", 2, "s", "add the ':' after the key"),
    ("name: x\n  steps: []\n", "RCP005", 2, ":", "check this line's indentation"),
    ("name: x\nsteps:\n  - id: a\n   - id: b\n", "RCP005", 4, "-", "in the same column"),
    ("name: x\nsteps: - id: a\n", "RCP005", 2, "-", "on a line of its own"),
    ("name: x\nsteps:\n  - {id: a\n    prompt: x}\n", "RCP005", 3, "{", "close it with '}'"),
    ('name: "x\nsteps:\n', "RCP005", 1, '"', "close it"),
    ('name: "a\\q"\n', "RCP005", 1, "\\", "single quotes"),
    ("name: @x\n", "RCP005", 1, "@", "put the value in quotes"),
    ("name: x\nsteps:\n  - {id: a, read_set: [*.py]}\n", "RCP005", 3, "*", "in quotes"),
    ("name: x\nsteps:\n  - id: a\n    prompt: {{inputs.b}}\n", "RCP015", 4, "{", '"{{ … }}"'),
    ("name: x\n? [a]\n: b\n", "RCP015", 2, "[", "one word of text"),
    (f"name: x\nname: y\n{STEPS}", "RCP012", 2, "name", "it stands on line 1 already"),
    (f"name: &n x\n{STEPS}", "RCP010", 1, "&n x", "write the value out"),
    ("name: x\nsteps: [*a]\n", "RCP010", 2, "*a", "quote it if a '*' was meant"),
    (f"name: x\n<<: {{version: 1}}\n{STEPS}", "RCP011", 2, "<<", "write the keys out"),
    (f"name: !!str x\n{STEPS}", "RCP014", 1, "!!str x", "remove it"),
    (f"name: x\n{STEPS}---\nname: y\n", "RCP013", 4, "---", "keep one per file"),
    ("- a\n", "RCP016", 1, "- a", "it starts with `name:`"),
    ("hello\n", "RCP016", 1, "hello", "it starts with `name:`"),
    ("", "RCP016", 0, "", "a recipe starts with `name:`"),
    ("\n# nothing\n", "RCP016", 1, "", "a recipe starts with `name:`"),
    ("name: a\0b\n", "RCP004", 1, "\0", "delete it"),
    ("name: a\n\x1b[2J\n", "RCP004", 2, "\x1b", "delete it"),
    (b"name: a\xffb\n", "RCP003", 1, "\ufffd", "save the file as UTF-8"),
    ("name: x\nsteps: []\n", "RCP119", 2, "[]", "add one under steps:"),
    ("name: x\n", "RCP102", 1, "name", "a list of steps"),
    ('{"name": "x",}', "RCP007", 1, "}", ""),
    ('{"name": "x"', "RCP007", 1, "", ""),
    ('{"name":\n }', "RCP007", 2, "}", ""),
    ('{"name": "x"} {}', "RCP007", 1, "{", "keep one value per file"),
]  # fmt: skip


def test_the_recipe_that_the_mistakes_are_put_into_has_none():
    assert problems_of(FLAT) == ()


@pytest.mark.parametrize(
    ("there", "instead", "code", "line", "under", "hint"),
    ROWS,
    ids=[f"{row[2]}-{row[1].strip()[:40]}" for row in ROWS],
)
def test_one_mistake_is_one_problem_at_its_very_words(there, instead, code, line, under, hint):
    assert FLAT.count(there) == 1
    problem = problem_of(FLAT.replace(there, instead), "good.yaml")
    assert problem.code == code
    assert problem.place is not None
    assert problem.place.line == line
    assert under_caret(problem) == under
    assert hint in problem.hint
    assert problem.file == "good.yaml"


@pytest.mark.parametrize(("text", "code", "line", "under", "hint"), TEXTS)
def test_a_text_that_cannot_be_read_is_one_problem(text, code, line, under, hint):
    problem = problem_of(text)
    assert problem.code == code
    assert (problem.place.line if problem.place else 0) == line
    assert under_caret(problem) == under
    assert hint in problem.hint


@pytest.mark.parametrize(("there", "instead"), [row[:2] for row in ROWS])
def test_every_problem_can_be_shown_with_its_line_and_a_caret(there, instead):
    problem = problem_of(FLAT.replace(there, instead), "good.yaml")
    head, where, line, caret = as_text(problem).split("\n")
    assert head == f"{problem.code} {problem.message}"
    assert where.endswith(f"good.yaml:{problem.place.line}:{problem.place.column}")
    assert line == f"{problem.place.line}│ {problem.source_line}"
    margin = line.index("│") + 2
    assert caret[margin + problem.place.column - 1] == "^"
    assert caret.endswith(problem.hint)


def test_all_problems_are_told_at_once_in_the_order_of_the_file():
    text = (
        FLAT.replace("version: 1.2.0", "verison: 1.2.0")
        .replace("timeout: 1h30m", "timeout: soon")
        .replace("tools: [Read, Bash]", "tools: [Raed, Bash]")
        .replace("{{facts}}", "{{fact}} and {{inputs.topc}}")
        .replace("steps.gather.output.size > 3", "steps.gather.output.size > ")
        .replace("true: polish", "true: pollish")
        .replace("agent: researcher, i", "agent: resarcher, i")
        .replace("[docs]", "[../docs]")
        .replace("{{steps.polish.output}}", "{{steps.polsh.output}}")
    )
    problems = problems_of(text)
    assert [(problem.code, problem.place.line) for problem in problems] == [
        ("RCP101", 2),
        ("RCP110", 3),
        ("RCP126", 15),
        ("RCP207", 30),
        ("RCP202", 30),
        ("RCP209", 31),
        ("RCP116", 40),
        ("RCP108", 49),
        ("RCP121", 58),
        ("RCP203", 63),
    ]


def test_a_mistake_in_a_prompt_that_two_steps_share_is_told_once():
    text = FLAT.replace("Judge {{inputs.topic}}", "Judge {{inputs.topc}}").replace(
        "subagent: worker", "subagent: critic"
    )
    assert problem_of(text).code == "RCP202"


@pytest.mark.parametrize("inputs", ["[topic]", "topic", "[{nam: topic}]", "[{name: }]"])
def test_an_input_that_cannot_be_read_is_one_problem(inputs: str):
    step = "{id: a, subagent: writer, prompt: '{{inputs.topic}} {{topic}}'}"
    assert problem_of(f"name: x\ninputs: {inputs}\nsteps:\n  - {step}\n").place.line == 2
