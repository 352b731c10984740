"""One slip is one problem, and doing what its hint says cures it.

Every row is a slip in a recipe, words of the hint, and the recipe with the hint applied.
"""

import pytest

from support.recipes import flat, plan_of, problem_of, problems_of

HEAD = """\
inputs: [{name: t}, {name: rows, type: json}]
agents:
  own: {prompt: Do it.}
  critic: {prompt: Judge it.}
"""


def whole(*steps: str, head: str = HEAD) -> str:
    return flat(*steps, head=head)


def step(written: str) -> str:
    return whole(f"{{id: a, {written}}}")


ASK = "subagent: own, prompt: x"
LOOP = "prompt: x, loop: {agent: own, validator: critic"
FAN = "{id: b, prompt: x, parallel: [{agent: own, output_key: y}, {agent: critic}]}"
MAP = "map: {over: '{{inputs.rows}}', agent: own"
ROUTE = "prompt: x, condition: {eval: 1 < 2, true: own"


def agent(written: str) -> str:
    return whole(
        "{id: a, subagent: it, prompt: x}", head=f"agents: {{it: {{prompt: Do it., {written}}}}}"
    )


def inputs(written: str) -> str:
    return whole("{id: a, subagent: writer, prompt: x}", head=f"inputs: [{written}]")


def two(written: str) -> str:
    return whole("{id: b, subagent: own, prompt: x}", f"{{id: a, {written}}}")


def root(written: str) -> str:
    return f"name: t\n{written}\nsteps: [{{id: a, subagent: writer, prompt: x}}]\n"


# --- steps: keys of other tools
ROWS = [
    (step(f"{ASK}, needs: b").replace("steps:", "steps:\n  - {id: b, subagent: own, prompt: x}"), "write depends_on",
     step(f"{ASK}, depends_on: b").replace("steps:", "steps:\n  - {id: b, subagent: own, prompt: x}")),
    (whole("{id: b, subagent: own, prompt: x}", "{id: a, subagent: own, prompt: x, after: [b]}"), "write depends_on",
     whole("{id: b, subagent: own, prompt: x}", "{id: a, subagent: own, prompt: x, depends_on: [b]}")),
    (step(f"{ASK}, if: 1 < 2"), "write when", step(f"{ASK}, when: 1 < 2")),
    (step(f"{ASK}, run_if: 1 < 2"), "write when", step(f"{ASK}, when: 1 < 2")),
    (step("subagent: own, instructions: x"), "write prompt", step(ASK)),
    (step("subagent: own, message: x"), "write prompt", step(ASK)),
    (step("assignee: own, prompt: x"), "write agent", step("agent: own, prompt: x")),
    (step("worker: own, prompt: x"), "write agent", step("agent: own, prompt: x")),
    (step(f"{ASK}, on_error: skip"), "write on_failure", step(f"{ASK}, on_failure: skip")),
    (step(f"{ASK}, retries: 3"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 3}}")),
    (step(f"{ASK}, max_retries: 3"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 4}}")),
    (step(f"{ASK}, approval: true"), "write gate: human", step(f"{ASK}, gate: human")),
    (step(f"{ASK}, human_input: true"), "write gate: human", step(f"{ASK}, gate: human")),
    (step(f"{ASK}, response_format: json"), "write output: {format: json}", step(f"{ASK}, output: {{format: json}}")),
    (step(f"{ASK}, output_schema: {{type: object}}"), "write output: {schema:", step(f"{ASK}, output: {{schema: {{type: object}}}}")),
    (step(f"{ASK}, expected_output: a list"), "say it in the text", step("subagent: own, prompt: x as a list")),
    (step(f"{ASK}, name: first"), "its 'id'", step(ASK)),
    (step(f"{ASK}, tools: [Read]"), "under agents:", step(ASK)),
    (step(f"{ASK}, rules: [must not be empty]"), "in its validation", step(ASK)),
    (step(f"{ASK}, tags: [a, b]"), "remove it", step(ASK)),
    (step(f"{ASK}, description: what it does"), "write it as a comment", step(ASK)),
    (step(f"{ASK}, timeout_seconds: 30"), "write timeout", step(f"{ASK}, timeout: 30")),
    (step("prompt: x, branches: [{agent: own}, {agent: critic}]"), "write parallel", step("prompt: x, parallel: [{agent: own}, {agent: critic}]")),
    (step("foreach: '{{inputs.rows}}', agent: own"), "write map: {over:", step(MAP + "}")),
    (step("items: '{{inputs.rows}}', agent: own"), "write map: {over:", step(MAP + "}")),
    (step("while: 1 < 2, agent: own, prompt: x"), "with the opposite condition", step("prompt: x, loop: {agent: own, until: 2 < 1}")),
    # --- keys one level too high
    (step("agent: own, prompt: x, validator: critic, max_iterations: 2"), "put it under loop:", step(LOOP + ", max_iterations: 2}")),
    (step("agent: own, prompt: x, until: 1 < 2"), "put it under loop:", step("prompt: x, loop: {agent: own, until: 1 < 2}")),
    (step("agent: own, over: '{{inputs.rows}}', batch_size: 3"), "put it under map:", step(MAP + ", batch_size: 3}")),
    (step("prompt: x, eval: 1 < 2, 'true': own"), "put it under condition:", step(ROUTE + "}")),
    (step("prompt: x, cases: {a: own}, value: inputs.t"), "put it under switch:", step("prompt: x, switch: {value: inputs.t, cases: {a: own}}")),
    (step(f"{ASK}, max_attempts: 3, backoff: linear"), "put it under retry:", step(f"{ASK}, retry: {{max_attempts: 3, backoff: linear}}")),
    (step(f"{ASK}, store_as: facts, format: json"), "put it under output:", step(f"{ASK}, output: {{store_as: facts, format: json}}")),
    (agent("rules: [must not be empty]"), "put it under validation:", agent("validation: {rules: [must not be empty]}")),
    (agent("schema: {type: object}"), "put it under validation:", agent("validation: {schema: {type: object}}")),
    (agent("max_attempts: 2"), "put it under retry:", agent("retry: {max_attempts: 2}")),
    # --- agents
    (whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {instructions: Do it.}}"), "write prompt", agent("name: It")),
    (whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {system_prompt: Do it.}}"), "write prompt", agent("name: It")),
    (agent("llm: openai:gpt-4o"), "write model", agent("model: openai:gpt-4o")),
    (agent("goal: to do it"), "write role", agent("role: to do it")),
    (agent("allowed_tools: [Read]"), "write tools", agent("tools: [Read]")),
    (agent("max_iter: 4"), "write max_turns", agent("max_turns: 4")),
    # --- maps, loops, conditions, switches
    (step("map: {items: '{{inputs.rows}}', agent: own}"), "write over", step(MAP + "}")),
    (step("map: {for_each: '{{inputs.rows}}', agent: own}"), "write over", step(MAP + "}")),
    (step(MAP + ", concurrency: 3}"), "write batch_size", step(MAP + ", batch_size: 3}")),
    (step(MAP + ", reducer: critic}"), "write reduce", step(MAP + ", reduce: critic}")),
    (step("map: {over: [1, 2, 3], agent: own}"), "'[1, 2, 3]'", step("map: {over: '[1, 2, 3]', agent: own}")),
    (step("map: {over: [a, b], agent: own}"), '\'["a", "b"]\'', step("map: {over: '[\"a\", \"b\"]', agent: own}")),
    (step("prompt: x, loop: {agent: own, judge: critic}"), "write validator", step(LOOP + "}")),
    (step("prompt: x, loop: {agent: own, reviewer: critic, max_rounds: 2}"), "write validator and max_iterations", step(LOOP + ", max_iterations: 2}")),
    (step("prompt: x, loop: {agent: own, while: 1 < 2}"), "with the opposite condition", step("prompt: x, loop: {agent: own, until: 2 < 1}")),
    (step("loop: {agent: own, validator: critic, prompt: x}"), "beside loop:", step(LOOP + "}")),
    (step("prompt: x, loop: {agent: own, stop_when: 1 < 2}"), "write until", step("prompt: x, loop: {agent: own, until: 1 < 2}")),
    (step("prompt: x, condition: {if: 1 < 2, then: own, else: critic}"), "write eval and true and false", step(ROUTE + ", false: critic}")),
    (step("prompt: x, condition: {eval: 1 < 2, yes: own, no: critic}"), "write true and false", step(ROUTE + ", false: critic}")),
    (step("prompt: x, switch: {on: inputs.t, cases: {a: own}}"), "write value", step("prompt: x, switch: {value: inputs.t, cases: {a: own}}")),
    (step("prompt: x, switch: {value: inputs.t, cases: {a: own}, else: critic}"), "write default", step("prompt: x, switch: {value: inputs.t, cases: {a: own}, default: critic}")),
    (step("prompt: x, wait: '2', parallel: [{agent: own}, {agent: critic}]"), "write 2, without quotes", step("prompt: x, wait: 2, parallel: [{agent: own}, {agent: critic}]")),
    (step("prompt: x, parallel: [{agent: own, name: first}]"), "write output_key", step("prompt: x, parallel: [{agent: own, output_key: first}]")),
    (step(f"{ASK}, retry: {{attempts: 2}}"), "write max_attempts", step(f"{ASK}, retry: {{max_attempts: 2}}")),
    (step(f"{ASK}, output: {{save_as: facts}}"), "write store_as", step(f"{ASK}, output: {{store_as: facts}}")),
    (step(f"{ASK}, output: {{type: json}}"), "write format", step(f"{ASK}, output: {{format: json}}")),
    # --- inputs and the root
    (inputs("{name: t, options: [a, b]}"), "write enum", inputs("{name: t, enum: [a, b]}")),
    (inputs("{id: t}"), "write name", inputs("{name: t}")),
    (inputs("{name: t, help: what}"), "write description", inputs("{name: t, description: what}")),
    (inputs("{name: t, optional: true}"), "write required: false", inputs("{name: t, required: false}")),
    (root("params: [{name: t}]"), "write inputs", root("inputs: [{name: t}]")),
    (root("concurrency: 3"), "write max_concurrency", root("max_concurrency: 3")),
    (root("tags: [a]"), "remove it", root("")),
    (root("budget: {max_tokens: 5}"), "write tokens", root("budget: {tokens: 5}")),
    ("name: t\ntasks: [{id: a, subagent: writer, prompt: x}]\n", "write steps", root("")),
    ("title: t\nsteps: [{id: a, subagent: writer, prompt: x}]\n", "write name", root("")),
    # --- expressions
    (step(f"{ASK}, when: len(inputs.t) > 3"), "write size", step(f"{ASK}, when: size(inputs.t) > 3")),
    (step(f"{ASK}, when: length(inputs.rows) > 3"), "write size", step(f"{ASK}, when: size(inputs.rows) > 3")),
    (step(f"{ASK}, when: inputs.t == hot"), "quotes: 'hot'", step(f"{ASK}, when: \"inputs.t == 'hot'\"")),
    (step(f"{ASK}, when: inputs.t = 'a'"), "use '=='", step(f"{ASK}, when: inputs.t == 'a'")),
    (step(f"{ASK}, when: inputs.t === 'a'"), "use '=='", step(f"{ASK}, when: inputs.t == 'a'")),
    (step(f"{ASK}, when: inputs.t == 'a' AND 1 < 2"), "'and' in small letters", step(f"{ASK}, when: inputs.t == 'a' and 1 < 2")),
    (step(f"{ASK}, when: 1 < 2 < 3"), "write 1 < 2 and 2 < 3", step(f"{ASK}, when: 1 < 2 and 2 < 3")),
    (step("subagent: own, prompt: '{{input.t}}'"), "mean 'inputs'?", step("subagent: own, prompt: '{{inputs.t}}'")),
    # --- steps of one name
    (whole("{id: a, subagent: own, prompt: x}", "{id: a, subagent: own, prompt: x, depends_on: [a]}"), "step 1 is the other one",
     whole("{id: a, subagent: own, prompt: x}", "{id: b, subagent: own, prompt: x, depends_on: [a]}")),
    (whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {prompt: y, retry: {on_failure: fallback:he}}, he: {prompt: y, retry: {on_failure: fallback:it}}}"), "another policy for 'he'",
     whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {prompt: y, retry: {on_failure: fallback:he}}, he: {prompt: y, retry: {on_failure: skip}}}")),
    # --- words of GitHub Actions
    (step("uses: own, prompt: x"), "agent: for who does it", step("agent: own, prompt: x")),
    (step(f"{ASK}, with: {{text: x}}"), "write {{inputs.NAME}} in the text", step("subagent: own, prompt: 'x {{inputs.t}}'")),
    (step(f"{ASK}, continue-on-error: true"), "write on_failure: inline", step(f"{ASK}, on_failure: inline")),
    (step(f"{ASK}, timeout-minutes: 5"), "write timeout: with its unit, such as 5m", step(f"{ASK}, timeout: 5m")),
    (step("agent: own, strategy: {matrix: {os: [a, b]}}"), "write map: {over:", step("map: {over: '[\"a\", \"b\"]', agent: own}")),
    (step("run: ls, working-directory: src"), "with cd DIR &&", step("run: cd src && ls")),
    (step("run: ls, shell: bash"), "write run: bash FILE", step("run: bash ls.sh")),
    (root("on: push"), "stretto schedule add", root("")),
    (root("env: {A: b}"), "in the steps with run:", "name: t\nsteps: [{id: a, run: ls, env: {A: b}}]\n"),
    (two("subagent: own, prompt: '${{ steps.b.outputs.result }}'"), "write steps.b.output", two("subagent: own, prompt: '{{ steps.b.output }}'")),
    (two("subagent: own, prompt: '{{needs.b.outputs.x}}', depends_on: b"), "write steps.b.output", two("subagent: own, prompt: '{{steps.b.output}}', depends_on: b")),
    (two(f"{ASK}, depends_on: b, when: always()"), "remove it", two(f"{ASK}, depends_on: b")),
    (two(f"{ASK}, depends_on: b, when: failure()"), "write steps.ID.status == 'failed'", two(f"{ASK}, depends_on: b, when: steps.b.status == 'failed'")),
    # --- of Argo
    (two(f"{ASK}, dependencies: [b]"), "write depends_on", two(f"{ASK}, depends_on: [b]")),
    (step("agent: own, withItems: '{{inputs.rows}}'"), "write map: {over:", step(MAP + "}")),
    (step("agent: own, withParam: '{{inputs.rows}}'"), "write map: {over:", step(MAP + "}")),
    (step("template: own, prompt: x"), "write agent", step("agent: own, prompt: x")),
    (step("agent: own, prompt: '{{inputs.parameters.t}}'"), "write inputs.t", step("agent: own, prompt: '{{inputs.t}}'")),
    (two("agent: own, prompt: '{{tasks.b.outputs.result}}', depends_on: b"), "write steps.b.output", two("agent: own, prompt: '{{steps.b.output}}', depends_on: b")),
    (step("agent: own, prompt: '{{workflow.parameters.t}}'"), "write inputs.t", step("agent: own, prompt: '{{inputs.t}}'")),
    (step(f"{ASK}, retryStrategy: {{limit: 3}}"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 4}}")),
    (step(f"{ASK}, activeDeadlineSeconds: 60"), "write timeout", step(f"{ASK}, timeout: 60")),
    (step(f"{ASK}, failFast: true"), "write on_failure: abort", step(f"{ASK}, on_failure: abort")),
    (step("run: [pytest, -k, a or b]"), "write pytest -k 'a or b'", step('run: "pytest -k \'a or b\'"')),
    # --- of Dagu
    (two(f"{ASK}, depends: b"), "write depends_on", two(f"{ASK}, depends_on: b")),
    (step("command: ls"), "write run", step("run: ls")),
    (step("script: ls"), "write run", step("run: ls")),
    (step(f"{ASK}, continueOn: {{failure: true}}"), "write on_failure: inline", step(f"{ASK}, on_failure: inline")),
    (step(f"{ASK}, retryPolicy: {{limit: 2, intervalSec: 5}}"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 3}}")),
    (step(f"{ASK}, preconditions: [{{condition: x, expected: y}}]"), "write when:", step(f"{ASK}, when: \"inputs.t == 'y'\"")),
    (root("params: {topic: tea}"), "write inputs: {NAME: {default:", root("inputs: {topic: {default: tea}}")),
    (step(f"{ASK}, output: FACTS"), "write output: {store_as: FACTS}", step(f"{ASK}, output: {{store_as: FACTS}}")),
    (step(f"{ASK}, output: json"), "write output: {format: json}", step(f"{ASK}, output: {{format: json}}")),
    (root("handlerOn: {failure: {command: ls}}"), "remove it", root("")),
    (root("schedule: '0 2 * * *'"), "stretto schedule add", root("")),
    # --- of CrewAI and LangGraph
    (two(f"{ASK}, context: [b]"), "write depends_on, and {{steps.ID.output}}", two("subagent: own, prompt: '{{steps.b.output}}', depends_on: b")),
    (agent("verbose: true"), "remove it", agent("name: It")),
    (agent("allow_delegation: false"), "remove it", agent("name: It")),
    (agent("temperature: 0.2"), "remove it", agent("name: It")),
    (agent("max_tokens: 500"), "write max_output_tokens", agent("max_output_tokens: 500")),
    (step(f"{ASK}, async_execution: true"), "remove it", step(ASK)),
    (step(f"{ASK}, output_file: out.md"), "remove it", step(ASK)),
    ("name: t\nagents: [{name: own, prompt: Do it.}]\nsteps: [{id: a, subagent: own, prompt: x}]\n", "write each under its id",
     "name: t\nagents: {own: {prompt: Do it.}}\nsteps: [{id: a, subagent: own, prompt: x}]\n"),
    (root("process: sequential"), "remove it", root("")),
    (step("prompt: x, condition: {eval: 1 < 2, true: own, false: END}"), "remove it", step(ROUTE + "}")),
    (step("prompt: x, condition: {eval: 1 < 2, true: own, false: $end}"), "remove it", step(ROUTE + "}")),
    (step("agent: own, prompt: '{{state.t}}'"), "write inputs.t", step("agent: own, prompt: '{{inputs.t}}'")),
    # --- of Conductor and others
    (two(f"{ASK}, routes: [{{to: b}}]"), "write depends_on in what follows", two(ASK)),
    (step("type: agent, prompt: x, agent: own"), "write sequential", step("type: sequential, prompt: x, agent: own")),
    (step("type: human_gate, prompt: x, agent: own"), "write gate: human", step("gate: human, prompt: x, agent: own")),
    (step("agent: own, prompt: '{{ workflow.input.t }}'"), "write inputs.t", step("agent: own, prompt: '{{ inputs.t }}'")),
    (two("agent: own, prompt: '{{steps.b.result}}'"), "write steps.b.output", two("agent: own, prompt: '{{steps.b.output}}'")),
    (two(f"{ASK}, upstream: [b]"), "write depends_on", two(f"{ASK}, depends_on: [b]")),
    (two(f"{ASK}, depends_on: b, trigger_rule: all_done"), "remove it", two(f"{ASK}, depends_on: b")),
    (two(f"{ASK}, depends_on: {{b: succeeded}}"), "write a list of ids", two(f"{ASK}, depends_on: [b]")),
    (whole("{id: b, subagent: own, prompt: x}", "{id: c, subagent: own, prompt: x}", f"{{id: a, {ASK}, depends_on: 'b, c'}}"), "write a list: [b, c]",
     whole("{id: b, subagent: own, prompt: x}", "{id: c, subagent: own, prompt: x}", f"{{id: a, {ASK}, depends_on: [b, c]}}")),
    ("name: t\nsteps:\n  - a: {subagent: writer, prompt: x}\n", "write id: a", root("")),
    ("name: t\nsteps:\n  a: {subagent: writer, prompt: x}\n", "beginning with - id: NAME", root("")),
    (step(f"{ASK}, prompt_file: p.md"), "the text itself under prompt:", step(ASK)),
    # --- values
    (step(f"{ASK}, timeout: 5 minutes"), "write 5m", step(f"{ASK}, timeout: 5m")),
    (step(f"{ASK}, timeout: PT1H30M"), "write 1h30m", step(f"{ASK}, timeout: 1h30m")),
    (step(f"{ASK}, timeout: '00:05:00'"), "write 5m", step(f"{ASK}, timeout: 5m")),
    (step(f"{ASK}, retry: 3"), "write retry: {max_attempts: 3}", step(f"{ASK}, retry: {{max_attempts: 3}}")),
    (step(f"{ASK}, on_failure: continue"), "write inline", step(f"{ASK}, on_failure: inline")),
    (step(f"{ASK}, on_failure: stop"), "write abort", step(f"{ASK}, on_failure: abort")),
    (step(f"{ASK}, on_failure: retry"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 2}}")),
    (step(f"{ASK}, gate: true"), "human", step(f"{ASK}, gate: human")),
    (root("budget: {tokens: 500k}"), "write 500000", root("budget: {tokens: 500000}")),
    (root("budget: {tokens: '2,000'}"), "write 2000", root("budget: {tokens: 2000}")),
    (root("budget: {usd: $5}"), "write 5", root("budget: {usd: 5}")),
    (root("budget: 5"), "write budget: {usd: 5}", root("budget: {usd: 5}")),
    (inputs("{name: t, type: int}"), "write number", inputs("{name: t, type: number}")),
    (inputs("{name: t, type: list}"), "write json", inputs("{name: t, type: json}")),
    (inputs("topic"), "write {name: topic}", inputs("{name: topic}")),
    (step(f"{ASK}, output: {{format: md}}"), "write markdown", step(f"{ASK}, output: {{format: markdown}}")),
    (step(f"{ASK}, when: \"inputs.t matches 'x'\""), "use contains", step(f"{ASK}, when: \"inputs.t contains 'x'\"")),
    (step(f"{ASK}, when: \"startsWith(inputs.t, 'x')\""), "A contains B", step(f"{ASK}, when: \"inputs.t contains 'x'\"")),
    (step(f"{ASK}, when: inputs.t exists"), "write != null", step(f"{ASK}, when: inputs.t != null")),
    (step(f"{ASK}, when: \"inputs.t == 'x' ? true : false\""), "remove what follows it", step(f"{ASK}, when: \"inputs.t == 'x'\"")),
    # --- references and expressions of other languages
    (step("subagent: own, prompt: '{{#if inputs.t}}x{{/if}}'"), "write when: in a step of its own", step(f"{ASK}, when: \"inputs.t == 'x'\"")),
    (step("subagent: own, prompt: '{{#if inputs.t}}x{{else}}y{{/if}}'"), "write when: in a step of its own", step(f"{ASK}, when: \"inputs.t == 'x'\"")),
    (step("subagent: own, prompt: '{{inputs.t | upper}}'"), "write {{inputs.t}} alone", step("subagent: own, prompt: '{{inputs.t}}'")),
    (step("subagent: own, prompt: '{{inputs.t|json}}'"), "write {{inputs.t}} alone", step("subagent: own, prompt: '{{inputs.t}}'")),
    (two("subagent: own, prompt: '{{previous.output}}'"), "write steps.ID.output", two("subagent: own, prompt: '{{steps.b.output}}'")),
    (step("subagent: own, prompt: 'On {{today}}'"), "declare an input for it", step("subagent: own, prompt: 'On {{inputs.t}}'")),
    (two("subagent: own, prompt: '{{steps.b.stdout}}'"), "write steps.b.output", two("subagent: own, prompt: '{{steps.b.output}}'")),
    (two(f"{ASK}, when: steps.b.exit_code == 0"), "write steps.b.status", two(f"{ASK}, when: steps.b.status == 'succeeded'")),
    (two(f"{ASK}, when: steps.b.succeeded"), "write steps.b.status == 'succeeded'", two(f"{ASK}, when: steps.b.status == 'succeeded'")),
    (two(f"{ASK}, when: not steps.b.failed"), "write steps.b.status == 'failed'", two(f"{ASK}, when: not steps.b.status == 'failed'")),
    (two(f"{ASK}, when: b == 'x'"), "write steps.b.output", two(f"{ASK}, when: steps.b.output == 'x'")),
    (step(f"{ASK}, when: size(inputs.t) => 3"), "use '>='", step(f"{ASK}, when: size(inputs.t) >= 3")),
    (step(f"{ASK}, when: size(inputs.t) =< 3"), "use '<='", step(f"{ASK}, when: size(inputs.t) <= 3")),
    (step(f"{ASK}, when: inputs.t =~ 'x'"), "use 'contains'", step(f"{ASK}, when: inputs.t contains 'x'")),
    (step(f"{ASK}, when: \"contains(inputs.t, 'x')\""), "write A contains B", step(f"{ASK}, when: \"inputs.t contains 'x'\"")),
    (step(f"{ASK}, when: \"inputs.t.includes('x')\""), "write inputs.t contains …", step(f"{ASK}, when: \"inputs.t contains 'x'\"")),
    (step(f"{ASK}, when: inputs.t starts with 'x'"), "use contains", step(f"{ASK}, when: inputs.t contains 'x'")),
    (step(f"{ASK}, when: inputs.t.length() > 3"), "write size(inputs.t)", step(f"{ASK}, when: size(inputs.t) > 3")),
    (step(f"{ASK}, when: inputs.t.length > 3"), "write size(inputs.t)", step(f"{ASK}, when: size(inputs.t) > 3")),
    (step(f"{ASK}, when: size(inputs.t) between 1 and 3"), "write A >= B and A <= C", step(f"{ASK}, when: size(inputs.t) >= 1 and size(inputs.t) <= 3")),
    (step(f"{ASK}, when: inputs.t > 50%"), "without '%'", step(f"{ASK}, when: inputs.t > 50")),
    (step(f"{ASK}, when: 'inputs.t > 1,000'"), "without ','", step(f"{ASK}, when: inputs.t > 1000")),
    (step(f"{ASK}, when: inputs.t > 1_000"), "write 1000", step(f"{ASK}, when: inputs.t > 1000")),
    (step(f"{ASK}, when: inputs.t > $5"), "remove it", step(f"{ASK}, when: inputs.t > 5")),
    (two("subagent: own, prompt: \"{{steps['b'].output}}\""), "write steps.b.output", two("subagent: own, prompt: '{{steps.b.output}}'")),
    (two("subagent: own, prompt: '{{$steps.b.output}}'"), "write {{steps.b.output}}", two("subagent: own, prompt: '{{steps.b.output}}'")),
    (whole(FAN, "{id: a, subagent: own, prompt: '{{steps.y.output}}'}"), "write steps.b.outputs.y", whole(FAN, "{id: a, subagent: own, prompt: '{{steps.b.outputs.y}}'}")),
    (step("prompt: x, loop: {agent: own, until: output.done == true}"), "write candidate.done", step("prompt: x, loop: {agent: own, until: candidate.done == true}")),
    # --- one level too high, beside the key itself
    (two("condition: \"inputs.t == 'x'\", true: b"), "write condition: {eval: …}", two("condition: {eval: \"inputs.t == 'x'\", true: b}")),
    (two("switch: inputs.t, cases: {x: b}"), "write switch: {value: …}", two("switch: {value: inputs.t, cases: {x: b}}")),
    (step("type: loop, prompt: x, agent: own, validator: critic"), "put it under loop:", step(f"type: loop, {LOOP}}}")),
    (two("condition: {eval: 1 < 2, true: [b, own]}"), "name one", two("condition: {eval: 1 < 2, true: b}")),
    (two("switch: {value: inputs.t, cases: [{x: b}]}"), "write VALUE: STEP", two("switch: {value: inputs.t, cases: {x: b}}")),
    # --- what other tools have elsewhere
    (step(f"{ASK}, fallback: critic"), "write on_failure: fallback:AGENT", step(f"{ASK}, on_failure: 'fallback:critic'")),
    (step(f"{ASK}, on_failure: {{fallback: critic}}"), "write fallback:critic", step(f"{ASK}, on_failure: 'fallback:critic'")),
    (step(f"{ASK}, on_failure: fallback critic"), "write fallback:critic", step(f"{ASK}, on_failure: 'fallback:critic'")),
    (whole("{step_id: a, subagent: own, prompt: x}"), "write id", step(ASK)),
    (step("config: {agent: own}, subagent: own, prompt: x"), "write its keys in the step itself", step(ASK)),
    (step("subagent: own, action: Write it"), "write prompt: for an agent", step("subagent: own, prompt: Write it")),
    (step(f"{ASK}, tool: Read"), "write them under agents:", step(ASK)),
    (step("prompt: x, loop: {agent: own, critic: critic, rounds: 2}"), "write validator and max_iterations", step(f"{LOOP}, max_iterations: 2}}")),
    (step("type: parallel, prompt: x, agents: [own, critic]"), "write parallel", step("type: parallel, prompt: x, parallel: [{agent: own}, {agent: critic}]")),
    (step("for_each: '{{inputs.rows}}', agent: own, prompt: 'On {{item}}'"), "write map: {over: …, agent: …}", step("map: {over: '{{inputs.rows}}', agent: own, prompt: 'On {{item}}'}")),
    (inputs("{name: xs, type: list, default: [a]}"), "write json", inputs("{name: xs, type: json, default: [a]}")),
    (two("condition: {eval: '{% if inputs.t %}', true: b}"), "without blocks", two("condition: {eval: inputs.t == 'x', true: b}")),
    (step(f"{ASK}, isolation: worktree"), "write workspace_mode: isolated", step(f"{ASK}, workspace_mode: isolated")),
    (step(f"{MAP}, as: row}}"), "remove it", step(f"{MAP}}}")),
    (step("map: {over: inputs.rows, agent: own}"), "write \"{{inputs.rows}}\"", step(f"{MAP}}}")),
    (step("agent: [own, critic], prompt: x"), "name one agent", step("agent: own, prompt: x")),
    (step("agent: {prompt: Do it.}, prompt: x"), "name one agent", step("agent: own, prompt: x")),
    (root("model: openai:gpt-5"), "write it in the agents or the steps", root("")),
    ("name: t\ndefaults: {agent: writer}\nsteps: [{id: a, prompt: x}]\n", "write it in each of the steps", root("")),
    (root("output: {brief: '{{steps.a.output}}'}"), "write one text", root("output: '{{steps.a.output}}'")),
    ("name: t\ninputs: {topic: tea}\nsteps: [{id: a, subagent: writer, prompt: '{{inputs.topic}}'}]\n", "write topic: {default: tea}",
     "name: t\ninputs: {topic: {default: tea}}\nsteps: [{id: a, subagent: writer, prompt: '{{inputs.topic}}'}]\n"),
]  # fmt: skip


@pytest.mark.parametrize(("slip", "hint", "cured"), ROWS, ids=[f"{n}" for n in range(len(ROWS))])
def test_a_slip_is_one_problem_whose_hint_cures_it(slip, hint, cured):
    assert hint in problem_of(slip).hint, problem_of(slip)
    assert problems_of(cured) == ()


def test_there_are_many_slips():
    assert len(ROWS) >= 180


def test_two_slips_are_two_problems():
    text = step(f"{ASK}, tags: [a, {{b: c}}], description: [what]")
    assert [p.code for p in problems_of(text)] == ["RCP101", "RCP101"]


@pytest.mark.parametrize(
    "text",
    [
        step(f"{ASK}, if: 'inputs.t == hot'"),
        step(f"{ASK}, outputs: {{schema: {{score: number}}}}"),
        step("subagent: own, promt: '{{inputs.nobody}}'"),
        step(f"{ASK}, depends_onn: [nobody]"),
        step(f"{ASK}, outputs: [what]"),
        step(f"{ASK}, timeouts: soon"),
        agent("max_turn: many"),
        step("prompt: x, lop: {agent: nobody, until: DONE}"),
        step(f"{ASK}, write_sets: [../outside]"),
        agent("tool: [Raed, Wirte]"),
        "name: t\nstep: [{id: a, subagent: nobody, prompt: '{{x.y}}', depends_on: b}]\n",
    ],
)
def test_what_stands_behind_a_guessed_key_is_not_checked(text):
    assert problem_of(text).code == "RCP101"


def test_all_prior_context_is_meant_in_any_case():
    plan = plan_of(
        whole("{id: a, subagent: own, prompt: x}", "{id: b, agent: own, input: All Prior  Context}")
    )
    assert dict(plan.steps[1].edges)


FOREIGN = {
    "GitHub Actions": "on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps: [{run: make}]\n",
    "Kubernetes": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {entrypoint: main}\n",
    "Docker Compose": "services:\n  web: {image: nginx}\n",
    "graph of nodes": "nodes: [{id: a}]\nedges: [{source: a, target: b}]\n",
    "Conductor": "workflow:\n  name: t\n  entry_point: a\nagents:\n  - {name: a, prompt: x, routes: [{to: $end}]}\n",
    "CrewAI agents": "researcher:\n  role: Researcher\n  goal: To know\n  backstory: Long ago\n",
    "CrewAI tasks": "look:\n  description: Look\n  expected_output: A list\n  agent: researcher\n",
    "Dagu": "steps:\n  - name: one\n    command: ls\n  - {name: two, command: ls, depends: [one]}\n",
}


def test_a_mapping_that_has_nothing_of_a_recipe_is_one_problem():
    problem = problem_of("port: 80\nheadless: true\ndirectory: /srv\n")
    assert (problem.code, problem.message) == ("RCP016", "none of these keys is one of a recipe")


@pytest.mark.parametrize("tool", FOREIGN)
def test_a_file_of_another_tool_is_told_by_name_with_what_a_recipe_looks_like(tool):
    problem = problem_of(FOREIGN[tool])
    assert problem.code == "RCP016"
    assert tool in problem.message
    assert "`steps:`" in problem.hint
    assert "stretto new" in problem.hint


def test_a_list_of_tasks_is_sent_to_batch():
    assert "stretto batch" in problem_of("- {agent: researcher, prompt: x}\n").hint


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("about ${{ inputs.t }}", True),
        ("it costs ${{inputs.n}}", False),
        ("a budget of ${{inputs.budget}}", False),
        ("$5 for {{inputs.t}}", False),
        ("{% if inputs.t %}x{% endif %}", True),
        ("100 {%}", False),
    ],
)
def test_marks_of_other_tools_are_warned_of(text, is_told):
    head = "inputs: [{name: t}, {name: budget}, {name: n, type: number}]"
    plan = plan_of(
        whole(
            f"{{id: a, subagent: writer, prompt: '{text} {{{{inputs.t}}}}{{{{inputs.n}}}}{{{{inputs.budget}}}}'}}",
            head=head,
        )
    )
    assert [w.code for w in plan.warnings] == ["RCP907"] * is_told
